/* elementwise.h - a chain of instructions over the elements of strided tensors, a block at a
 * time.
 *
 * Owns: which operands are read in place, which through a block of floats; the buffers of
 * intermediate values.
 * Must not know: which operation of plugin.h asks (pointwise, or a copy that converts).
 *
 * A block is a run of consecutive elements of the result that fits the first-level cache
 * together with all intermediate values, so a chain costs one pass over memory. Dense f32
 * operands are used where they lie. */
#ifndef CEK_BACKENDS_CPU_OPS_ELEMENTWISE_H
#define CEK_BACKENDS_CPU_OPS_ELEMENTWISE_H

#include "backends/cpu/ops/ops.h"
#include "backends/cpu/ops/strided.h"

enum {
    CPU_BLOCK = 512,             /* elements: 2 KiB a value; a switch costs 10 ns, the simplest loop 30 */
    CPU_SCRATCH = 8 * CPU_BLOCK, /* of all values: half of a first-level cache, and little of a stack */
    CPU_VALUES = CPU_SPACE_TENSORS - 1 + CEK_POINTWISE_INSTRUCTIONS
};

/* How an operand reaches the kernels. */
typedef enum {
    CPU_DIRECT,    /* f32, dense: a pointer into it */
    CPU_CONVERTED, /* dense, of another type: converted block by block */
    CPU_REPEATED,  /* its values repeat, with a period that divides the block: fetched once per piece */
    CPU_GATHERED,  /* anything else: fetched run by run */
    CPU_COUNTED    /* no memory: 1 in the rows that count, 0 in the others */
} cpu_access;

typedef struct cpu_elementwise {
    cpu_space space; /* tensors: inputs, then the result */
    int64_t elements, block;
    int64_t room; /* of a scratch block, at least `block` */
    int inputs, instructions;
    cek_dtype type[CPU_SPACE_TENSORS];
    cpu_access access[CPU_SPACE_TENSORS];
    cek_pointwise_instruction code[CEK_POINTWISE_INSTRUCTIONS];
    int8_t buffer[CPU_VALUES]; /* scratch block of each value; -1: none */
    bool accumulate;
    bool counts;         /* the last input tells which rows count: its offset is the row */
    uint64_t ps_element; /* estimate, for cutting */
} cpu_elementwise;

/* cek__elementwise_plan - completes *e, in which the caller has set space, inputs, instructions,
 * type, code, accumulate and counts. All types are of CPU_TYPES. */
void cek__elementwise_plan(cpu_elementwise *e);

/* cek__elementwise_run - at[i] is the address of tensor i; rows below `counted` count. */
void cek__elementwise_run(const cpu_elementwise *e, const cpu_dev *dev, const void *const *at, int64_t counted,
                          void *out);

#endif
