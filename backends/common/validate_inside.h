/* SPDX-License-Identifier: MIT
 *
 * validate_inside.h - what the files of validate share among themselves; backends include validate.h.
 *
 * Each kind has one function that checks the fields of its own descriptor and says how large its
 * operands are. The head of the descriptor, the masks and the alignment are checked by validate.c
 * around it.
 */
#ifndef CEK_BACKENDS_COMMON_VALIDATE_INSIDE_H
#define CEK_BACKENDS_COMMON_VALIDATE_INSIDE_H

#include "backends/common/extent.h"
#include "backends/common/fail.h"
#include "backends/common/validate.h"

typedef struct cek__validation {
    const cek_host *host;
    cek__request *request;
    const char *kind; /* for texts */
} cek__validation;

/* INVALID and UNSUPPORTED with "<kind>: " in front; for the return statements of checks. */
#define CEK__INVALID(check, ...) cek__validate_fail(check, CEK_INVALID, __VA_ARGS__)
#define CEK__UNSUPPORTED(check, ...) cek__validate_fail(check, CEK_UNSUPPORTED, __VA_ARGS__)
cek_status cek__validate_fail(const cek__validation *check, cek_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Evaluates a check and returns from the function if it does not pass. */
#define CEK__VALIDATE(expression)      \
    do {                               \
        cek_status st_ = (expression); \
        if (st_)                       \
            return st_;                \
    } while (0)

/* cek__validate_type - one of the types in the mask `allowed`. Unknown and not allowed ones are UNSUPPORTED,
 * NONE INVALID. */
cek_status cek__validate_type(const cek__validation *check, const char *field, cek_dtype type, uint32_t allowed);
cek_status cek__validate_reserved(const cek__validation *check, uint32_t value);
cek_status cek__validate_positive(const cek__validation *check, const char *field, uint64_t value);
/* cek__validate_flags - UNSUPPORTED for bits outside `known`. */
cek_status cek__validate_flags(const cek__validation *check, const char *field, uint64_t value, uint64_t known);
/* cek__validate_enum - UNSUPPORTED outside first..last. */
cek_status cek__validate_enum(const cek__validation *check, const char *field, uint32_t value, uint32_t first,
                              uint32_t last);
cek_status cek__validate_finite(const cek__validation *check, const char *field, double value, double low);
/* cek__validate_presence - INVALID unless the slot is given exactly when `needed`; `why` says when it is. */
cek_status cek__validate_presence(const cek__validation *check, uint32_t slot, bool needed, const char *why);

/* cek__slot_size - the slot holds the product of `count` factors, elements of `type`, without gaps. */
cek_status cek__slot_size(const cek__validation *check, uint32_t slot, cek_dtype type, const uint64_t *factors,
                          uint32_t count);
#define CEK__SLOT_SIZE(check, slot, type, ...)                           \
    cek__slot_size(check, slot, type, (const uint64_t[]){ __VA_ARGS__ }, \
                   sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))
/* cek__slot_strided - the slot holds a strided tensor (rank <= CEK_RANK_MAX, strides checked here). */
cek_status cek__slot_strided(const cek__validation *check, uint32_t slot, cek_dtype type, uint32_t rank,
                             const uint64_t *shape, const int64_t *strides);
/* cek__slot_block - the slot holds `bytes` without a type (a block, state). */
void cek__slot_block(const cek__validation *check, uint32_t slot, uint64_t bytes);
/* cek__validate_shape - rank 1 to CEK_RANK_MAX, sizes > 0, a product that fits; entries past rank are 0. */
cek_status cek__validate_shape(const cek__validation *check, uint32_t rank, const uint64_t *shape);

/* One per kind. */
cek_status cek__validate_gemm(const cek__validation *check);
cek_status cek__validate_conv(const cek__validation *check);
cek_status cek__validate_pool(const cek__validation *check);
cek_status cek__validate_pointwise(const cek__validation *check);
cek_status cek__validate_reduce(const cek__validation *check);
cek_status cek__validate_copy(const cek__validation *check);
cek_status cek__validate_gather(const cek__validation *check);
cek_status cek__validate_arg(const cek__validation *check);
cek_status cek__validate_softmax(const cek__validation *check);
cek_status cek__validate_cross_entropy(const cek__validation *check);
cek_status cek__validate_squared_error(const cek__validation *check);
cek_status cek__validate_dropout(const cek__validation *check);
cek_status cek__validate_random(const cek__validation *check);
cek_status cek__validate_optimizer(const cek__validation *check);

#endif
