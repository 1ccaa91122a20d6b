/* SPDX-License-Identifier: MIT
 * reference.c - the door of the reference plugin: the oracle in plain C, and the skeleton to clone for a
 * new backend. */
#include <stddef.h>

#include "backends/reference/reference.h"

const cek_plugin *cek_plugin_query(uint32_t host_abi)
{
    return host_abi >> 16 == CEK_ABI_MAJOR ? &cek__reference_plugin : NULL;
}
