/* SPDX-License-Identifier: MIT
 * source.c - the embedded sources by name. The table is generated at build time (kernels/embed.sh). */
#include <string.h>

#include "backends/gpu/gpu.h"

const char *cek__gpu_source_text(const char *name)
{
    for (const cek__gpu_source *at = cek__gpu_sources; at->name; at++)
        if (!strcmp(at->name, name))
            return at->text;
    return NULL;
}
