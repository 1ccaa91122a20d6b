/* binding.h - a program bound to memory, and run there.
 *
 * Owns: where each instruction's operands lie, and the command buffers of the stretches. A stretch is a list of
 * instructions that always run together. The first time it runs instruction by instruction; the second time it is
 * recorded, and from then on it is one call of the device. Where the device answers CEK_UNSUPPORTED, or there is no
 * memory for it, it is not asked again for that stretch, which goes on instruction by instruction, as one does of which
 * a part is left to another device.
 * Must not know: what a stretch is for, whose the memory is. */
#ifndef CEK_NN_PROGRAM_BINDING_H
#define CEK_NN_PROGRAM_BINDING_H

#include "nn/program/fallback.h"

typedef struct cek__binding cek__binding;

typedef struct cek__stretch {
    int begin, end;  /* instructions from `begin` to before `end` */
    bool accumulate; /* in the form that adds to its gradients, where there is one */
} cek__stretch;

/* Commands of others that follow a stretch and are recorded with it, on the same device. */
typedef struct cek__tail {
    const cek_cmd *cmds;
    uint32_t count;
    uint64_t serial; /* another for each list that was ever made; above 0 */
} cek__tail;

typedef struct cek__places {
    cek_ref single[CEK__PLACE_SINGLE];
    const cek_ref *arena;                            /* by piece */
    const cek_ref *parameters, *rounded, *gradients; /* by bucket; NULL: there are none */
    cek_ref workspace;
    cek__fallback fallback;
} cek__places;

/* create - resolves every operand. The program and the stretches outlive the binding; `places` does not.
 * Errors: CEK_INVALID names what is needed and missing; CEK_OUT_OF_MEMORY. */
CEK__SHARED CEK__CHECKED cek_status cek__binding_create(const cek__program *program, const cek__stretch *stretches,
                                                        size_t count, const cek__places *places, cek__binding **out);
CEK__SHARED void cek__binding_free(
    cek__binding *binding); /* of which nothing is in flight; before the program and the memory */

/* pack - enqueues the packing of weights, behind those that run ahead. Errors: those of cek_stream_prepack. */
CEK__SHARED CEK__CHECKED cek_status cek__binding_pack(const cek__binding *binding, cek_stream *stream);

/* run - enqueues a stretch; one stream at a time. Errors: those of cek_stream_run, cek_commands_make,
 * cek_stream_run_commands. */
CEK__SHARED CEK__CHECKED cek_status cek__binding_run(cek__binding *binding, cek_stream *stream, size_t stretch);
/* run_with - a stretch, then the tail, recorded as one; anew where it was recorded with another tail. */
CEK__CHECKED cek_status cek__binding_run_with(cek__binding *binding, cek_stream *stream, size_t stretch,
                                              const cek__tail *tail);
/* is_refused - whether this stretch is none that is recorded: the device was asked, and has no command buffers, or none
 * for that; or a part of it is another device's. */
bool cek__binding_is_refused(const cek__binding *binding, size_t stretch);

#endif
