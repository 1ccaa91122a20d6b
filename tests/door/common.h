/* SPDX-License-Identifier: MIT
 *
 * common.h - a host for the tests of backends/common, which keeps what it is told.
 */
#ifndef CEK_TESTS_DOOR_COMMON_H
#define CEK_TESTS_DOOR_COMMON_H

#include <stdio.h>
#include <string.h>

#include <cekernels/plugin.h>

#include "tests/suite.h"

static char text[1024];
static cek_status told;
static void failed(void *user, cek_status status, const char *line)
{
    (void)user;
    told = status;
    snprintf(text, sizeof text, "%s", line);
}
static const cek_host host = { .size = sizeof host, .abi = CEK_ABI, .fail = failed };

#endif
