/* SPDX-License-Identifier: MIT
 * program.c - see program.h. */
#include "backends/gpu/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cek_status cek__gpu_program_get(cek_dev *dev, cek__gpu_program **list, const char *source, const char *defines,
                                size_t bytes, cek__gpu_program_make_fn *make, cek__gpu_program **out)
{
    *out = NULL;
    for (cek__gpu_program *at = *list; at; at = at->next)
        if (!strcmp(at->source, source) && !strcmp(at->defines, defines)) {
            *out = at;
            return CEK_OK;
        }
    cek__gpu_program *made = calloc(1, bytes);
    if (made)
        made->defines = strdup(defines);
    if (!made || !made->defines) {
        free(made);
        return cek__host_fail(&dev->instance->host, CEK_OUT_OF_MEMORY, "op_create: no memory for a program");
    }
    snprintf(made->source, sizeof made->source, "%s", source);
    cek_status st = make(dev, made);
    if (st) {
        cek__gpu_program_free(made);
        return st;
    }
    made->next = *list;
    *list = made;
    *out = made;
    return CEK_OK;
}

void cek__gpu_program_free(cek__gpu_program *program)
{
    free(program->defines);
    free(program);
}
