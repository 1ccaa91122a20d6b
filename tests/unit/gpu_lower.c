/* gpu_lower.c - the launches of operations whose time is that of memory (backends/gpu/lower_tensor.c, lower_train.c),
 * and of products that take long, on a device that is a table: how work is shared out, and that all of it is. */
#include <stdio.h>
#include <string.h>

#include "backends/gpu/lower.h"
#include "backends/gpu/lowering.h"
#include "backends/gpu/op.h"
#include "backends/gpu/tuner.h"
#include "tests/suite.h"

/* --- a device that only counts ---------------------------------------------------------------- */

static cek_status kernel_load(cek_dev *dev, const char *source, const char *defines, const char *name,
                              cek__gpu_kernel **out)
{
    (void)dev, (void)source, (void)defines, (void)name;
    *out = (cek__gpu_kernel *)&"a kernel";
    return CEK_OK;
}
static void kernel_free(cek_dev *dev, cek__gpu_kernel *kernel)
{
    (void)dev, (void)kernel;
}
static cek_status kernel_warm(cek_dev *dev, const cek__gpu_step *step)
{
    (void)dev, (void)step;
    return CEK_OK;
}
static const cek__gpu_driver driver = { .kernel_load = kernel_load,
                                        .kernel_free = kernel_free,
                                        .kernel_warm = kernel_warm };
static cek_instance instance;
static cek_dev device = { .instance = &instance, .driver = &driver, .traits = { .max_group = 1024 } };

static cek_op *lowered(cek_op_desc *desc, cek__gpu_lower_fn *lower)
{
    cek_op *op;
    ck_assert_uint_eq(cek__gpu_op_make(&device, desc, &op), CEK_OK);
    ck_assert_uint_eq(lower(op), CEK_OK);
    return op;
}
#define ARGS(op, i, type) ((const type *)(const void *)(op)->steps[i].args)

/* --- division --------------------------------------------------------------------------------- */

static uint32_t quotient(uint32_t number, const cek_k_shape *shape, uint32_t d)
{
    return (uint32_t)((uint64_t)number * shape->multiplier[d] >> shape->shift[d]);
}

START_TEST(every_number_below_2_31_is_divided_exactly)
{
    for (uint32_t log = 0; log < 31; log++)
        for (int64_t size = (INT64_C(1) << log) - 2; size <= (INT64_C(1) << log) + 2; size++) {
            cek_k_shape shape;
            const uint64_t one = (uint64_t)size;
            if (size < 1)
                continue;
            ck_assert(cek__gpu_shape(1, &one, &shape));
            /* A quotient goes wrong where it changes first: at multiples, and the largest ones most. */
            for (uint64_t i = 0; i < 1000; i++) {
                const uint64_t steps = INT32_MAX / one, multiple = (steps - steps * i / 1000) * one;
                ck_assert_uint_eq(quotient((uint32_t)multiple, &shape, 0), multiple / one);
                ck_assert_uint_eq(quotient((uint32_t)multiple - 1, &shape, 0), (multiple - 1) / one);
            }
            ck_assert_uint_eq(quotient(INT32_MAX, &shape, 0), INT32_MAX / one);
            ck_assert_uint_eq(quotient(0, &shape, 0), 0);
        }
}
END_TEST

START_TEST(sizes_whose_numbers_reach_2_31_are_refused)
{
    cek_k_shape shape;
    ck_assert(cek__gpu_shape(2, (const uint64_t[]){ INT32_MAX, 1 }, &shape));
    ck_assert(!cek__gpu_shape(2, (const uint64_t[]){ UINT64_C(1) << 30, 2 }, &shape));
    ck_assert(!cek__gpu_shape(1, (const uint64_t[]){ UINT64_C(1) << 31 }, &shape));
    ck_assert(!cek__gpu_shape(3, (const uint64_t[]){ UINT64_C(1) << 30, UINT64_C(1) << 30, UINT64_C(1) << 30 },
                              &shape));
}
END_TEST

START_TEST(work_items_of_a_row_are_a_power_of_two_within_the_group)
{
    for (uint32_t group = 1; group <= 256; group *= 2)
        for (uint64_t length = 1; length < 100000; length += 1 + length / 7) {
            const uint32_t items = cek__gpu_row_items(length, group);
            ck_assert_uint_eq(items & (items - 1), 0);
            ck_assert_uint_le(items, group);
            ck_assert(items == 1 || items < 2 * length);
        }
    ck_assert_uint_eq(cek__gpu_row_items(10, 256), 16);
    ck_assert_uint_eq(cek__gpu_row_items(1000, 256), 128); /* eight each */
    ck_assert_uint_eq(cek__gpu_row_items(50000, 256), 256);
}
END_TEST

/* --- launches --------------------------------------------------------------------------------- */

static uint64_t items_of(const cek__gpu_step *step)
{
    return step->groups[0] * step->groups[1] * step->groups[2] * step->group[0];
}

START_TEST(a_sum_of_many_rows_leaves_few_to_each_work_item)
{
    /* The gradient of a bias: 64 images of 28 x 28 positions, 64 channels. */
    cek_reduce_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_REDUCE, .operands = 3 },
                             .function = CEK_REDUCE_SUM,
                             .axes = 1,
                             .rank = 2,
                             .x_type = CEK_F32,
                             .shape = { 50176, 64 },
                             .x_strides = { 64, 1 } };
    cek_op *op = lowered(&desc.op, cek__gpu_lower_reduce);
    ck_assert_uint_eq(op->step_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const cek_k_reduce *a = ARGS(op, i, cek_k_reduce);
        ck_assert_uint_eq(a->outputs, 64);
        ck_assert_uint_eq(op->steps[i].group[0], a->lanes * a->results);
        ck_assert_uint_ge(op->steps[i].groups[0] * a->results, a->outputs);
        ck_assert_uint_ge(op->steps[i].groups[2] * a->piece, a->length);
        ck_assert_uint_le((a->piece + a->lanes - 1) / a->lanes, 17);
    }
    ck_assert_uint_eq(ARGS(op, 0, cek_k_reduce)->length, 50176);
    ck_assert_uint_eq(ARGS(op, 1, cek_k_reduce)->length, op->steps[0].groups[2]);
    cek__gpu_op_destroy(op);
}
END_TEST

START_TEST(what_is_short_is_summed_in_one_launch)
{
    cek_reduce_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_REDUCE, .operands = 3 },
                             .function = CEK_REDUCE_MEAN,
                             .axes = 2,
                             .rank = 2,
                             .x_type = CEK_F32,
                             .shape = { 1000, 1000 },
                             .x_strides = { 1000, 1 } };
    cek_op *op = lowered(&desc.op, cek__gpu_lower_reduce);
    ck_assert_uint_eq(op->step_count, 1);
    ck_assert_uint_eq(op->info.workspace_bytes, 0);
    ck_assert_uint_eq(ARGS(op, 0, cek_k_reduce)->lanes, 128);
    ck_assert_uint_ge(items_of(&op->steps[0]), 128000);
    ck_assert(ARGS(op, 0, cek_k_reduce)->number == 1000);
    cek__gpu_op_destroy(op);
}
END_TEST

START_TEST(a_long_row_is_shared_and_a_total_of_many_rows_too)
{
    cek_cross_entropy_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_CROSS_ENTROPY, .operands = 0x43 },
                                    .rows = 8192,
                                    .classes = 1000,
                                    .rows_per_sample = 1,
                                    .type = CEK_F32 };
    cek_op *op = lowered(&desc.op, cek__gpu_lower_loss);
    const cek_k_rows *rows = ARGS(op, 0, cek_k_rows);
    ck_assert_uint_eq(rows->lanes, 128);
    ck_assert_uint_eq(op->steps[0].group[0], rows->lanes * rows->group_rows);
    ck_assert_uint_ge(op->steps[0].groups[0] * rows->group_rows, 8192);
    const cek_k_total *total = ARGS(op, 1, cek_k_total);
    ck_assert_uint_eq(total->groups, op->steps[0].groups[0]);
    ck_assert_uint_eq(op->steps[1].group[0], 256);
    ck_assert_uint_eq(total->lanes, 256);
    cek__gpu_op_destroy(op);
}
END_TEST

START_TEST(elements_that_lie_alike_are_moved_sixteen_bytes_at_a_time)
{
    cek_copy_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_COPY, .operands = 3 },
                           .rank = 1,
                           .x_type = CEK_F32,
                           .y_type = CEK_F32,
                           .shape = { 1000003 },
                           .x_strides = { 1 },
                           .y_strides = { 1 } };
    const cek_dtype types[] = { CEK_F32, CEK_BF16, CEK_U8 };
    const uint64_t each[] = { 4, 8, 16 };
    for (int i = 0; i < 3; i++) {
        desc.x_type = desc.y_type = types[i];
        cek_op *op = lowered(&desc.op, cek__gpu_lower_copy);
        ck_assert_uint_eq(op->step_count, 1);
        ck_assert_uint_ge(items_of(&op->steps[0]) * each[i], 1000003);
        ck_assert_uint_lt(items_of(&op->steps[0]) * each[i], 1000003 + 256 * each[i]);
        cek__gpu_op_destroy(op);
    }
}
END_TEST

/* A transposed copy of rows whose places reach beyond 2^31: of each launch the rows that it begins with. */
START_TEST(what_is_beyond_32_bits_is_launched_in_parts)
{
    const uint64_t rows = (UINT64_C(5) << 29) + 6;
    cek_copy_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_COPY, .operands = 3 },
                           .rank = 2,
                           .x_type = CEK_U8,
                           .y_type = CEK_U8,
                           .shape = { rows, 2 },
                           .x_strides = { 1, (int64_t)rows },
                           .y_strides = { 2, 1 } };
    cek_op *op = lowered(&desc.op, cek__gpu_lower_copy);
    uint64_t done[2] = { 0, 0 };
    ck_assert_uint_gt(op->step_count, 1);
    for (uint32_t i = 0; i < op->step_count; i++) {
        const cek_k_strided *a = ARGS(op, i, cek_k_strided);
        const uint64_t column = op->steps[i].buffers[0].offset / rows, first = op->steps[i].buffers[0].offset % rows;
        const uint64_t count = a->rank == 1 ? a->row : a->shape.size[0];
        ck_assert_uint_eq(op->steps[i].buffers[1].offset, 2 * first + column);
        ck_assert_uint_lt(column, 2);
        ck_assert_uint_eq(first, done[column]);
        for (uint64_t c = column; c < column + (a->rank == 1 ? 1 : a->row); c++)
            done[c] += count;
        ck_assert_uint_ge(items_of(&op->steps[i]), a->blocks);
    }
    ck_assert_uint_eq(done[0], rows);
    ck_assert_uint_eq(done[1], rows);
    cek__gpu_op_destroy(op);
}
END_TEST

/* --- watchdogs -------------------------------------------------------------------------------- */

static cek_op *product_of(uint64_t m, uint64_t n, uint64_t k)
{
    cek_gemm_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_GEMM, .operands = 7 },
                           .m = m,
                           .n = n,
                           .k = k,
                           .batch = 1,
                           .lda = (int64_t)k,
                           .ldb = (int64_t)n,
                           .ldc = (int64_t)n,
                           .a_type = CEK_F32,
                           .b_type = CEK_F32,
                           .c_type = CEK_F32 };
    return lowered(&desc.op, cek__gpu_lower_gemm);
}

/* Every group once, in launches of 128 x 128 x 4096 multiply-adds a group. */
START_TEST(a_product_is_cut_where_a_watchdog_would_end_it)
{
    static const struct {
        uint32_t units;
        uint64_t groups_allowed, groups, launches;
    } devices[] = {
        { 4, 0, 1024, 1 },   { 4, 1024, 1024, 1 }, { 4, 1023, 1023, 2 },
        { 4, 100, 100, 11 }, { 64, 10, 64, 16 }, /* no launch is shorter than a group on each unit */
    };
    const uint64_t work = 128 * 128 * 4096;
    device.traits.compute_units = devices[_i].units;
    device.traits.launch_work = devices[_i].groups_allowed * work;
    cek_op *op = product_of(4096, 4096, 4096);
    ck_assert_uint_eq(op->step_count, devices[_i].launches);
    uint64_t done = 0;
    for (uint32_t i = 0; i < op->step_count; i++) {
        ck_assert_uint_eq(ARGS(op, i, cek_k_product)->first, done);
        ck_assert_uint_le(op->steps[i].groups[0], devices[_i].groups);
        done += op->steps[i].groups[0];
    }
    ck_assert_uint_eq(done, 1024);
    cek__gpu_op_destroy(op);
}
END_TEST

/* A group goes through its part of k alone, however many others there are. */
START_TEST(a_group_of_a_product_sums_no_more_than_a_part_of_a_long_k)
{
    cek_op *op = product_of(4096, 4096, (1 << 20) + 4096);
    ck_assert_uint_eq(op->step_count, 2); /* the product, and the sum of its pieces */
    ck_assert_uint_le(ARGS(op, 0, cek_k_product)->split_k, 1 << 17);
    ck_assert_uint_ge(ARGS(op, 0, cek_k_product)->split_k * ARGS(op, 0, cek_k_product)->splits, (1 << 20) + 4096);
    cek__gpu_op_destroy(op);
}
END_TEST

START_TEST(what_a_launch_may_take_grows_with_the_device)
{
    ck_assert_uint_eq(cek__gpu_launch_work(24, 1200), UINT64_C(14400000000));
    ck_assert_uint_eq(cek__gpu_launch_work(2, 0), 1000000000); /* a driver need not tell */
    ck_assert_uint_eq(cek__gpu_launch_work(0, 1000), 500000000);
}
END_TEST

/* --- tiles of convolutions -------------------------------------------------------------------- */

static cek_conv_desc conv_desc_of(uint32_t kind, uint32_t flags)
{
    return (cek_conv_desc){ .op = { .size = sizeof(cek_conv_desc), .kind = kind, .flags = flags, .operands = 7 },
                            .spatial = 2,
                            .groups = 1,
                            .batch = 64,
                            .in_channels = 64,
                            .out_channels = 128,
                            .in = { 56, 56 },
                            .kernel = { 3, 3 },
                            .stride = { 1, 1 },
                            .dilation = { 1, 1 },
                            .x_type = CEK_F32,
                            .w_type = CEK_F32,
                            .y_type = CEK_F32 };
}

static cek_op *conv_of(uint32_t kind, uint32_t flags)
{
    cek_op *op;
    cek_conv_desc desc = conv_desc_of(kind, flags);
    ck_assert_uint_eq(cek__gpu_op_make(&device, &desc.op, &op), CEK_OK);
    return op;
}

/* Each candidate is taken when it is asked for, and computes all of the result. */
START_TEST(a_convolution_is_lowered_to_the_tile_that_it_was_given)
{
    uint32_t tiles[CEK__GPU_TILES];
    const uint32_t kind = CEK_OP_CONV_FORWARD + (uint32_t)_i;
    cek_op *op = conv_of(kind, 0);
    const uint32_t count = cek__gpu_tiles(op, tiles);
    cek__gpu_op_destroy(op);
    ck_assert_uint_eq(count, 3); /* of 128 x 128, 64 x 64 and the long one along the long side */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rows, columns;
        op = conv_of(kind, 0);
        op->tile = tiles[i];
        ck_assert_uint_eq(cek__gpu_lower_conv(op), CEK_OK);
        ck_assert_uint_eq(op->tile, tiles[i]);
        ck_assert_int_eq(sscanf(op->info.algorithm, "tiles of %ux%u", &rows, &columns), 2);
        const cek_k_product *a = ARGS(op, 0, cek_k_product);
        ck_assert_uint_eq(op->steps[0].groups[0],
                          (a->m + rows - 1) / rows * ((a->n + columns - 1) / columns) * a->splits);
        ck_assert_uint_eq(op->steps[0].group[0] * op->steps[0].group[1] * 64, rows * columns);
        cek__gpu_op_destroy(op);
    }
}
END_TEST

/* A device that is a CPU. */
static cek_op *tiled(uint32_t kind, uint64_t batch, uint64_t size, uint64_t channels)
{
    cek_op *op;
    cek_conv_desc desc = conv_desc_of(kind, CEK_OP_DETERMINISTIC);
    desc.op.math = CEK_MATH_STRICT;
    desc.batch = batch, desc.in_channels = desc.out_channels = channels;
    desc.in[0] = desc.in[1] = size;
    for (uint32_t i = 0; i < 2; i++)
        desc.pad_lo[i] = desc.pad_hi[i] = 1;
    device.traits.vector_width = 16;
    ck_assert_uint_eq(cek__gpu_op_make(&device, &desc.op, &op), CEK_OK);
    ck_assert_uint_eq(cek__gpu_lower_conv(op), CEK_OK);
    device.traits.vector_width = 0;
    return op;
}

/* Of images of one pixel and windows of nine, the tap in the middle; of those of four pixels all nine. */
START_TEST(taps_that_see_nothing_are_neither_packed_nor_multiplied)
{
    for (uint32_t kind = CEK_OP_CONV_FORWARD; kind <= CEK_OP_CONV_BACKWARD_WEIGHTS; kind++)
        for (uint32_t size = 1; size <= 2; size++) {
            const bool weights = kind == CEK_OP_CONV_BACKWARD_WEIGHTS, data = kind == CEK_OP_CONV_BACKWARD_DATA;
            cek_op *op = tiled(kind, weights ? 1024 : 32, size, 512); /* of weights several slices */
            const cek_k_taps taps = weights ? ARGS(op, 0, cek_k_weights_tile)->taps
                                            : ARGS(op, 1, cek_k_conv_tile)->taps;
            const cek_u32 seen = size == 1 ? 1 : 3;
            for (uint32_t i = 0; i < 2; i++) {
                ck_assert_uint_eq(taps.all[i], 3);
                ck_assert_uint_eq(taps.first[i], size == 1);
                ck_assert_uint_eq(taps.seen[i], seen);
            }
            ck_assert_uint_eq(op->steps[0].groups[weights ? 0 : 1], data ? 1 : seen * seen); /* data: zeros alone */
            ck_assert_uint_eq(op->steps[1].groups[1], weights ? 9 : 16); /* finished are all; 16 panels */
            cek__gpu_op_destroy(op);
        }
}
END_TEST

/* Whole panels of weights lie as a gradient of data reads them, if it does not read them too often. */
START_TEST(weights_are_packed_for_many_pixels_or_part_of_a_panel)
{
    cek_op *few = tiled(CEK_OP_CONV_BACKWARD_DATA, 2, 28, 64), *many = tiled(CEK_OP_CONV_BACKWARD_DATA, 20, 28, 64);
    cek_op *part = tiled(CEK_OP_CONV_BACKWARD_DATA, 2, 28, 48);
    ck_assert(ARGS(few, 0, cek_k_pack_weights)->nothing);
    ck_assert(!ARGS(many, 0, cek_k_pack_weights)->nothing);
    ck_assert(!ARGS(part, 0, cek_k_pack_weights)->nothing);
    cek__gpu_op_destroy(few);
    cek__gpu_op_destroy(many);
    cek__gpu_op_destroy(part);
}
END_TEST

/* 512 channels are 16 panels of 32, 37 tiles of 14 channels. */
START_TEST(work_items_of_few_pixels_share_panels_out)
{
    for (uint32_t kind = CEK_OP_CONV_FORWARD; kind <= CEK_OP_CONV_BACKWARD_DATA; kind++) {
        cek_op *few = tiled(kind, 32, 1, 512), *many = tiled(kind, 32, 28, 512);
        ck_assert_uint_eq(ARGS(few, 1, cek_k_conv_tile)->panels, 1);
        ck_assert_uint_eq(few->steps[1].groups[1], 16);
        ck_assert_uint_eq(ARGS(many, 1, cek_k_conv_tile)->panels, 16);
        ck_assert_uint_eq(many->steps[1].groups[1], 1);
        cek__gpu_op_destroy(few);
        cek__gpu_op_destroy(many);
    }
}
END_TEST

/* And are then found by one launch, zeros among them. */
START_TEST(gradients_of_weights_of_small_images_go_through_many_at_once)
{
    cek_op *few = tiled(CEK_OP_CONV_BACKWARD_WEIGHTS, 32, 1, 512);
    const cek_k_weights_tile *a = ARGS(few, 0, cek_k_weights_tile);
    ck_assert_uint_ge(a->images, 32);
    ck_assert_uint_eq(a->slices, 1);
    ck_assert_uint_eq(a->panels, 1); /* of one slice's few pixels, which caches hold for all */
    ck_assert_uint_eq(few->steps[0].groups[0], 9);
    ck_assert_uint_eq(few->steps[0].groups[2], 16);
    ck_assert_uint_eq(few->step_count, 1);
    cek__gpu_op_destroy(few);
    cek_op *small = tiled(CEK_OP_CONV_BACKWARD_WEIGHTS, 256, 4, 512);
    a = ARGS(small, 0, cek_k_weights_tile);
    ck_assert_uint_eq(a->images, 16);
    ck_assert_uint_eq(a->slices, small->steps[0].groups[1]);
    ck_assert_uint_eq(a->panels, 16 / small->steps[0].groups[2]);
    cek__gpu_op_destroy(small);
    cek_op *large = tiled(CEK_OP_CONV_BACKWARD_WEIGHTS, 32, 56, 512);
    a = ARGS(large, 0, cek_k_weights_tile);
    ck_assert_uint_eq(a->images, 1);
    ck_assert_uint_eq(a->band, 256 / 56);
    ck_assert_uint_eq(a->panels, 16);
    cek__gpu_op_destroy(large);
}
END_TEST

/* This device has no tuner, nor could anything be timed on it. */
START_TEST(what_must_not_depend_on_a_clock_or_has_one_way_is_not_timed)
{
    uint32_t tiles[CEK__GPU_TILES];
    cek_op *fixed = conv_of(CEK_OP_CONV_FORWARD, CEK_OP_DETERMINISTIC), *any = conv_of(CEK_OP_CONV_FORWARD, 0);
    ck_assert_uint_eq(cek__gpu_tune_tile(fixed), 0);
    device.traits.vector_width = 16;
    ck_assert_uint_eq(cek__gpu_tiles(any, tiles), 0);
    ck_assert_uint_eq(cek__gpu_tune_tile(any), 0);
    device.traits.vector_width = 0;
    cek__gpu_op_destroy(fixed);
    cek__gpu_op_destroy(any);
}
END_TEST

/* --- numeric ids ------------------------------------------------------------------------------ */

static uint64_t numeric_id_on(uint64_t device_id)
{
    cek_op *op = conv_of(CEK_OP_CONV_FORWARD, 0);
    device.traits.numeric_id = device_id;
    ck_assert_uint_eq(cek__gpu_lower_as(op, NULL), CEK_OK);
    device.traits.numeric_id = 0;
    const uint64_t id = op->info.numeric_id;
    cek__gpu_op_destroy(op);
    return id;
}

START_TEST(the_same_operation_is_another_on_another_device)
{
    ck_assert_uint_eq(numeric_id_on(1), numeric_id_on(1));
    ck_assert_uint_ne(numeric_id_on(1), numeric_id_on(2));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gpu, launches");
    TCase *c = tcase_create("division");
    tcase_add_test(c, every_number_below_2_31_is_divided_exactly);
    tcase_add_test(c, sizes_whose_numbers_reach_2_31_are_refused);
    tcase_add_test(c, work_items_of_a_row_are_a_power_of_two_within_the_group);
    suite_add_tcase(s, c);
    c = tcase_create("sharing out");
    tcase_add_test(c, a_sum_of_many_rows_leaves_few_to_each_work_item);
    tcase_add_test(c, what_is_short_is_summed_in_one_launch);
    tcase_add_test(c, a_long_row_is_shared_and_a_total_of_many_rows_too);
    tcase_add_test(c, elements_that_lie_alike_are_moved_sixteen_bytes_at_a_time);
    tcase_add_test(c, what_is_beyond_32_bits_is_launched_in_parts);
    suite_add_tcase(s, c);
    c = tcase_create("watchdogs");
    tcase_add_loop_test(c, a_product_is_cut_where_a_watchdog_would_end_it, 0, 5);
    tcase_add_test(c, a_group_of_a_product_sums_no_more_than_a_part_of_a_long_k);
    tcase_add_test(c, what_a_launch_may_take_grows_with_the_device);
    suite_add_tcase(s, c);
    c = tcase_create("tiles");
    tcase_add_loop_test(c, a_convolution_is_lowered_to_the_tile_that_it_was_given, 0, 3);
    tcase_add_test(c, what_must_not_depend_on_a_clock_or_has_one_way_is_not_timed);
    tcase_add_test(c, taps_that_see_nothing_are_neither_packed_nor_multiplied);
    tcase_add_test(c, weights_are_packed_for_many_pixels_or_part_of_a_panel);
    tcase_add_test(c, work_items_of_few_pixels_share_panels_out);
    tcase_add_test(c, gradients_of_weights_of_small_images_go_through_many_at_once);
    suite_add_tcase(s, c);
    c = tcase_create("numeric ids");
    tcase_add_test(c, the_same_operation_is_another_on_another_device);
    suite_add_tcase(s, c);
    return suite_run(s);
}
