/* SPDX-License-Identifier: MIT
 * sim.c - the door of the sim plugin: devices that fail on demand, with real results from another plugin inside. */
#include <stddef.h>

#include "backends/sim/sim.h"

const cek_plugin *cek_plugin_query(uint32_t host_abi)
{
    return host_abi >> 16 == CEK_ABI_MAJOR ? &cek__sim_plugin : NULL;
}
