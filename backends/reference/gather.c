/* SPDX-License-Identifier: MIT
 * gather.c - rows of a table that an index names, and sums of rows into them. */
#include "backends/common/extent.h"
#include "backends/reference/element.h"
#include "backends/reference/reference.h"

/* The row that element `i` of batch `b` names, or -1. */
static int64_t row_of(const cek_gather_desc *desc, const int32_t *index, uint64_t b, uint64_t i)
{
    int32_t row = index[(desc->flags & CEK_GATHER_SHARED ? 0 : b * desc->count) + i];
    return row >= 0 && (uint64_t)row < desc->rows ? row : -1;
}

void cek__reference_gather(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_gather_desc *desc = &op->request.desc.gather;
    const double nothing = desc->type == CEK_U8 || desc->type == CEK_I32 ? 0 : NAN;
    uint64_t to = 0;
    (void)queue, (void)workspace;
    for (uint64_t b = 0; b < desc->batch; b++)
        for (uint64_t i = 0; i < desc->count; i++) {
            int64_t row = row_of(desc, at[CEK_GATHER_INDEX], b, i);
            uint64_t from = row < 0 ? 0 : (b * desc->rows + (uint64_t)row) * desc->columns;
            for (uint64_t c = 0; c < desc->columns; c++)
                store(at[CEK_GATHER_Y], desc->type, to++,
                      row < 0 ? nothing : load(at[CEK_GATHER_TABLE], desc->type, from + c));
        }
}

/* The sums of one batch, in double. */
void cek__reference_scatter_prepare(cek_op *op)
{
    const cek_gather_desc *desc = &op->request.desc.gather;
    if (!cek__product((const uint64_t[]){ desc->rows, desc->columns, sizeof(double) }, 3, &op->info.workspace_bytes))
        op->info.workspace_bytes = UINT64_MAX; /* nobody has so much */
}

void cek__reference_scatter_add(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_gather_desc *desc = &op->request.desc.gather;
    const cek_dtype sum = cek__type_sum(desc->type);
    const bool add = cek__request_accumulates(&op->request, CEK_SCATTER_ADD_DTABLE);
    const uint64_t table = desc->rows * desc->columns;
    double *sums = workspace;
    (void)queue;
    for (uint64_t b = 0; b < desc->batch; b++) {
        for (uint64_t n = 0; n < table; n++)
            sums[n] = add ? load(at[CEK_SCATTER_ADD_DTABLE], sum, b * table + n) : 0;
        for (uint64_t i = 0; i < desc->count; i++) {
            int64_t row = row_of(desc, at[CEK_SCATTER_ADD_INDEX], b, i);
            for (uint64_t c = 0; row >= 0 && c < desc->columns; c++)
                sums[(uint64_t)row * desc->columns + c] += load(at[CEK_SCATTER_ADD_DY], desc->type,
                                                                (b * desc->count + i) * desc->columns + c);
        }
        for (uint64_t n = 0; n < table; n++)
            store(at[CEK_SCATTER_ADD_DTABLE], sum, b * table + n, sums[n]);
    }
}
