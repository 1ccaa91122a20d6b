/* thin.h - products of a few rows, whose B lies row by row: it is read once and packed by nobody.
 *
 * Owns: their tasks, the walk of one. Must not know: how other products are computed. */
#ifndef CEK_BACKENDS_CPU_PRODUCT_THIN_H
#define CEK_BACKENDS_CPU_PRODUCT_THIN_H

#include "backends/cpu/product/product.h"

/* cek__thin_plan - chooses the tasks of a product, plan->thin, functions of its shape alone; sums are never made in a C
 * that is added to. Rows are 2 * CPU_THIN_MAX at most, B's col_stride is 1, A is of floats or one of its strides is 1.
 */
void cek__thin_plan(product_plan *plan);

/* cek__thin_walk - as cek__walk, of all rows. */
void cek__thin_walk(const product_part *p, const walk_task *t, const product_plan *plan, walk_take *take,
                    const walk_scratch *s);

#endif
