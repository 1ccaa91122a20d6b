/* SPDX-License-Identifier: MIT
 *
 * program.h - what a device has compiled or loaded: each program once, known by its source and the definitions in
 * front of it.
 *
 * A driver embeds cek__gpu_program as the first member of its own. The list, with its lock, is the driver's.
 */
#ifndef CEK_BACKENDS_GPU_PROGRAM_H
#define CEK_BACKENDS_GPU_PROGRAM_H

#include <stddef.h>

#include "backends/gpu/gpu.h"

typedef struct cek__gpu_program {
    struct cek__gpu_program *next;
    char *defines;
    char source[64];
} cek__gpu_program;

/* Compiles or loads what source and defines say. On error it leaves nothing behind. */
typedef cek_status cek__gpu_program_make_fn(cek_dev *dev, cek__gpu_program *program);

/* cek__gpu_program_get - the program of the list, where it is not there yet one of `bytes` that `make` fills in: all
 * zero but for the head. cek__gpu_program_free - one that is no longer in a list, after what the driver added. */
cek_status cek__gpu_program_get(cek_dev *dev, cek__gpu_program **list, const char *source, const char *defines,
                                size_t bytes, cek__gpu_program_make_fn *make, cek__gpu_program **out);
void cek__gpu_program_free(cek__gpu_program *program);

#endif
