/* strided.h - the loops over several strided tensors of one shape, made as few and as long as
 * their strides allow.
 *
 * Owns: dropping, ordering and merging of axes; walking along the result.
 * Must not know: element types, what is done to elements. */
#ifndef CEK_BACKENDS_CPU_OPS_STRIDED_H
#define CEK_BACKENDS_CPU_OPS_STRIDED_H

#include <stdbool.h>
#include <stdint.h>

#include <cekernels/plugin.h>

enum { CPU_SPACE_TENSORS = CEK_POINTWISE_INPUTS + 2 }; /* inputs, which rows count, the result */

/* Axes from the outermost to the innermost; a space of one element has one axis of 1 with
 * strides of 0. */
typedef struct cpu_space {
    int rank, tensors;
    int64_t shape[CEK_RANK_MAX];
    int64_t stride[CPU_SPACE_TENSORS][CEK_RANK_MAX];
} cpu_space;

/* cek__space_simplify - drops axes of 1, orders the others by the stride of tensor `lead`, the
 * largest first, and merges neighbours that every tensor walks as one. */
void cek__space_simplify(cpu_space *space, int lead);

/* cek__space_elements - how many there are. */
int64_t cek__space_elements(const cpu_space *space);

/* cek__space_dense - whether the tensor's offset is the element's number. */
bool cek__space_dense(const cpu_space *space, int tensor);

/* cek__space_period - the smallest p such that the tensor's offset is (element number mod p), 0
 * if there is none. A dense tensor has the number of elements, one that is broadcast everywhere
 * 1. */
int64_t cek__space_period(const cpu_space *space, int tensor);

/* A place in a space: the element's coordinates. */
typedef struct cpu_place {
    int64_t at[CEK_RANK_MAX];
} cpu_place;

/* cek__place_of - of element number n, counted with the innermost axis fastest. */
void cek__place_of(const cpu_space *space, int64_t n, cpu_place *place);

/* cek__place_offset - of the tensor there. */
int64_t cek__place_offset(const cpu_space *space, const cpu_place *place, int tensor);

/* cek__place_advance - by `by` elements, which do not pass the end of the innermost axis. */
void cek__place_advance(const cpu_space *space, cpu_place *place, int64_t by);

#endif
