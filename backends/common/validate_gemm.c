/* SPDX-License-Identifier: MIT
 * validate_gemm.c - what a gemm descriptor may say, and how large its operands are. */
#include "backends/common/validate_inside.h"

/* Matrices of rows x columns with a leading dimension, in two levels of batches, as a tensor of rank 4. A count of 1
 * has no stride. */
static cek_status matrix_check(const cek__validation *check, uint32_t slot, cek_dtype type, const char *name,
                               uint64_t rows, uint64_t columns, int64_t leading, int64_t stride, int64_t outer)
{
    const cek_gemm_desc *desc = &check->request->desc.gemm;
    if (leading < 0 || (uint64_t)leading < columns)
        return CEK__INVALID(check, "ld%s is %lld, but a row has %llu elements", name, (long long)leading,
                            (unsigned long long)columns);
    if (stride < 0)
        return CEK__INVALID(check, "stride_%s is %lld", name, (long long)stride);
    if (outer < 0)
        return CEK__INVALID(check, "outer_%s is %lld", name, (long long)outer);
    const uint64_t shape[CEK_RANK_MAX] = { desc->outer, desc->batch, rows, columns };
    const int64_t strides[CEK_RANK_MAX] = { desc->outer > 1 ? outer : 0, desc->batch > 1 ? stride : 0, leading, 1 };
    return cek__slot_strided(check, slot, type, 4, shape, strides);
}

cek_status cek__validate_gemm(const cek__validation *check)
{
    cek__request *request = check->request;
    const cek_gemm_desc *desc = &request->desc.gemm;
    cek_dtype sum = cek__type_sum(desc->a_type);
    bool prepacked = desc->op.flags & CEK_OP_PREPACKED;

    CEK__VALIDATE(cek__validate_flags(check, "trans", desc->trans, CEK_GEMM_TRANS_A | CEK_GEMM_TRANS_B));
    CEK__VALIDATE(cek__validate_positive(check, "m", desc->m));
    CEK__VALIDATE(cek__validate_positive(check, "n", desc->n));
    CEK__VALIDATE(cek__validate_positive(check, "batch", desc->batch));
    if (!desc->outer)
        request->desc.gemm.outer = 1;
    CEK__VALIDATE(cek__validate_type(check, "a_type", desc->a_type, CEK__TYPES_REAL));
    CEK__VALIDATE(cek__validate_type(check, "b_type", desc->b_type, 1u << desc->a_type));
    CEK__VALIDATE(cek__validate_type(check, "c_type", desc->c_type, 1u << desc->a_type | 1u << sum));

    bool trans_a = desc->trans & CEK_GEMM_TRANS_A, trans_b = desc->trans & CEK_GEMM_TRANS_B;
    CEK__VALIDATE(matrix_check(check, CEK_GEMM_A, desc->a_type, "a", trans_a ? desc->k : desc->m,
                               trans_a ? desc->m : desc->k, desc->lda, desc->stride_a, desc->outer_a));
    CEK__VALIDATE(matrix_check(check, CEK_GEMM_B, desc->b_type, "b", trans_b ? desc->n : desc->k,
                               trans_b ? desc->k : desc->n, desc->ldb, desc->stride_b, desc->outer_b));
    CEK__VALIDATE(matrix_check(check, CEK_GEMM_C, desc->c_type, "c", desc->m, desc->n, desc->ldc, desc->stride_c,
                               desc->outer_c));
    request->slots[CEK_GEMM_ACT_REF].bytes = request->slots[CEK_GEMM_C].bytes;
    request->slots[CEK_GEMM_ACT_REF].element = request->slots[CEK_GEMM_C].element;
    request->slots[CEK_GEMM_ACT_REF].dense = request->slots[CEK_GEMM_C].dense;
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_GEMM_BIAS, sum, desc->n));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_GEMM_A_SUM, sum, desc->m));

    CEK__VALIDATE(cek__validate_presence(check, CEK_GEMM_ACT_REF, request->epilogue.act_grad != CEK_ACT_NONE,
                                         "with act_grad"));
    CEK__VALIDATE(cek__validate_presence(check, CEK_GEMM_PACKED, prepacked, "with CEK_OP_PREPACKED"));
    if (cek__request_given(request, CEK_GEMM_A_SUM) && (desc->batch != 1 || desc->outer != 1))
        return CEK__INVALID(check, "A_SUM of %llu matrices", (unsigned long long)(desc->outer * desc->batch));
    return CEK_OK;
}
