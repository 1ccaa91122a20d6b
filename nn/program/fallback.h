/* fallback.h - runs an instruction that its device has left to another.
 *
 * Operands go down to the other device, results come up again, behind all that was queued and before all that will be.
 * The other device works on the thread that calls it, so this waits for the program's device alone; that goes on with
 * the results by itself. Owns: nothing.
 * Must not know: why an instruction was left. */
#ifndef CEK_NN_PROGRAM_FALLBACK_H
#define CEK_NN_PROGRAM_FALLBACK_H

#include "nn/program/program.h"

/* Where what is left runs, one instruction at a time; all of it NULL: nothing is left. The program's device still reads
 * the host's side when a run returns, up to what is queued behind it. */
typedef struct cek__fallback {
    cek_stream *stream;  /* of an inline device */
    cek_ref room;        /* there: left_bytes of the program, then its left_workspace_bytes */
    unsigned char *host; /* left_bytes, page-locked for the program's device */
} cek__fallback;

/* Instruction `index`, in the form `op`, with operands on the program's device and its stream. Errors: of either
 * device, behind the instruction's name. */
CEK__CHECKED cek_status cek__fallback_run(const cek__fallback *fallback, const cek__program *program, int index,
                                          const cek_op *op, const cek_ref operands[CEK__SLOTS], cek_stream *stream);

#endif
