/* SPDX-License-Identifier: MIT
 *
 * semantics_ops.c - operations and command buffers as plugin.h promises them: operands, overlaps,
 * workspace, reserve, prepacked weights, repetition. As semantics.c, over the reference and the
 * reference inside the simulator.
 */
#include "tests/door/semantics.h"

/* y = x + 1 over 64 floats. */
/* clang-format off */
static const cek_pointwise_input add_inputs[] = { { .type = CEK_F32, .strides = { 1 } } };
static const cek_pointwise_instruction add_one[] = { { .code = CEK_PW_ADD_IMM, .imm = 1 } };
static const cek_pointwise_desc add_desc = {
    .op = { .size = sizeof add_desc, .kind = CEK_OP_POINTWISE, .operands = CEK_BIT(0) | CEK_BIT(8), .align = 4 },
    .rank = 1, .out_type = CEK_F32, .shape = { 64 }, .out_strides = { 1 }, .inputs = add_inputs,
    .instructions = add_one, .input_count = 1, .input_size = sizeof *add_inputs, .instruction_count = 1,
    .instruction_size = sizeof *add_one,
};
/* clang-format on */

START_TEST(a_run_takes_the_operands_that_were_promised_and_no_others)
{
    start(_i);
    cek_op *op;
    cek_mem *x = door_mem(&d, 256), *y = door_mem(&d, 512);
    const cek_ref none = { NULL, 0 };
    cek_ref refs[9] = { { x, 0 } };
    OK(d.plugin.op_create(d.dev, &add_desc.op, NULL, &op));
    refs[8] = (cek_ref){ y, 4 };
    OK(d.plugin.op_run(d.queue, op, refs, 9, none));
    REFUSED(CEK_INVALID, "cover", d.plugin.op_run(d.queue, op, refs, 8, none));
    REFUSED(CEK_INVALID, "operands is NULL", d.plugin.op_run(d.queue, op, NULL, 9, none));
    refs[1] = (cek_ref){ y, 256 };
    REFUSED(CEK_INVALID, "not in the mask", d.plugin.op_run(d.queue, op, refs, 9, none));
    refs[1] = none;
    refs[0] = none;
    REFUSED(CEK_INVALID, "IN0 is missing", d.plugin.op_run(d.queue, op, refs, 9, none));
    refs[0] = (cek_ref){ x, 2 };
    REFUSED(CEK_INVALID, "multiple of 4", d.plugin.op_run(d.queue, op, refs, 9, none));
    refs[0] = (cek_ref){ x, 4 };
    REFUSED(CEK_INVALID, "256 bytes at offset 4", d.plugin.op_run(d.queue, op, refs, 9, none));
    refs[0] = (cek_ref){ x, 0 };
    refs[8] = (cek_ref){ y, 260 };
    REFUSED(CEK_INVALID, "OUT", d.plugin.op_run(d.queue, op, refs, 9, none));
    OK(d.plugin.queue_sync(d.queue, CEK_FOREVER)); /* refusals leave the queue usable */
    d.plugin.op_destroy(op);
    d.plugin.op_destroy(NULL);
    d.plugin.mem_free(x);
    d.plugin.mem_free(y);
    door_close(&d);
}
END_TEST

START_TEST(an_output_may_be_its_input_but_not_overlap_it)
{
    start(_i);
    cek_op *op;
    cek_mem *mem = door_mem(&d, 1024);
    const cek_ref none = { NULL, 0 };
    cek_ref refs[9] = { { mem, 256 } };
    float values[64];
    OK(d.plugin.op_create(d.dev, &add_desc.op, NULL, &op));
    OK(d.plugin.fill(d.queue, (cek_ref){ mem, 0 }, 0, 4, 1024));
    refs[8] = refs[0];
    OK(d.plugin.op_run(d.queue, op, refs, 9, none));
    OK(d.plugin.op_run(d.queue, op, refs, 9, none));
    OK(d.plugin.download(d.queue, values, refs[0], 256));
    for (int i = 0; i < 64; i++)
        ck_assert_float_eq(values[i], 2);
    for (int i = 0; i < 2; i++) {
        refs[8].offset = i ? 256 - 4 : 256 + 252;
        REFUSED(CEK_INVALID, "overlaps", d.plugin.op_run(d.queue, op, refs, 9, none));
    }
    refs[8].offset = 512;
    OK(d.plugin.op_run(d.queue, op, refs, 9, none));
    d.plugin.op_destroy(op);

    /* The same place with other strides is not the same operand. */
    const cek_pointwise_input backwards = { .type = CEK_F32, .strides = { 0 } };
    cek_pointwise_desc other = add_desc;
    other.inputs = &backwards;
    OK(d.plugin.op_create(d.dev, &other.op, NULL, &op));
    refs[8] = refs[0];
    REFUSED(CEK_INVALID, "overlaps", d.plugin.op_run(d.queue, op, refs, 9, none));
    d.plugin.op_destroy(op);
    d.plugin.mem_free(mem);
    door_close(&d);
}
END_TEST

/* clang-format off */
START_TEST(inputs_may_overlap_and_a_workspace_may_not)
{
    start(_i);
    cek_op *op;
    char needed[80];
    cek_op_info info = { .size = sizeof info };
    cek_gemm_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_GEMM, .operands = 7 }, .m = 8, .n = 8, .k = 8, .batch = 1,
        .lda = 8, .ldb = 8, .ldc = 8, .a_type = CEK_F32, .b_type = CEK_F32, .c_type = CEK_F32,
    };
    OK(d.plugin.op_create(d.dev, &desc.op, &info, &op));
    ck_assert_uint_gt(info.workspace_bytes, 0);
    ck_assert(info.algorithm[0] && info.numeric_id);
    cek_mem *mem = door_mem(&d, 4096), *scratch = door_mem(&d, info.workspace_bytes);
    OK(d.plugin.fill(d.queue, (cek_ref){ mem, 0 }, 0x3f800000, 4, 4096));
    cek_ref refs[] = { { mem, 0 }, { mem, 0 }, { mem, 256 } };
    snprintf(needed, sizeof needed, "gemm: its workspace of %llu bytes is missing",
             (unsigned long long)info.workspace_bytes);
    REFUSED(CEK_INVALID, needed, d.plugin.op_run(d.queue, op, refs, 3, (cek_ref){ NULL, 0 }));
    REFUSED(CEK_INVALID, "workspace", d.plugin.op_run(d.queue, op, refs, 3, (cek_ref){ scratch, 256 }));
    REFUSED(CEK_INVALID, "overlaps the workspace", d.plugin.op_run(d.queue, op, refs, 3, (cek_ref){ mem, 256 }));
    OK(d.plugin.op_run(d.queue, op, refs, 3, (cek_ref){ scratch, 0 }));
    float c[64];
    OK(d.plugin.download(d.queue, c, refs[2], sizeof c));
    ck_assert_float_eq(c[63], 8);
    refs[2].offset = 0;
    REFUSED(CEK_INVALID, "overlaps", d.plugin.op_run(d.queue, op, refs, 3, (cek_ref){ scratch, 0 }));
    d.plugin.op_destroy(op);
    d.plugin.mem_free(mem);
    d.plugin.mem_free(scratch);
    door_close(&d);
}
END_TEST
/* clang-format on */

START_TEST(columns_of_one_matrix_are_apart_although_their_extents_meet)
{
    start(_i);
    cek_op *op;
    /* y = columns 4 to 7 of a matrix with rows of 8, x = columns 0 to 3. */
    const cek_copy_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_COPY, .operands = 3, .align = 4 },
        .rank = 2,
        .x_type = CEK_F32,
        .y_type = CEK_F32,
        .shape = { 3, 4 },
        .x_strides = { 8, 1 },
        .y_strides = { 8, 1 },
    };
    float values[24];
    cek_mem *mem = door_mem(&d, sizeof values);
    for (int i = 0; i < 24; i++)
        values[i] = (float)i;
    OK(d.plugin.op_create(d.dev, &desc.op, NULL, &op));
    OK(d.plugin.upload(d.queue, (cek_ref){ mem, 0 }, values, sizeof values));
    const cek_ref refs[] = { { mem, 0 }, { mem, 16 } };
    OK(d.plugin.op_run(d.queue, op, refs, 2, (cek_ref){ NULL, 0 }));
    OK(d.plugin.download(d.queue, values, refs[0], sizeof values));
    for (int i = 0; i < 24; i++)
        ck_assert_float_eq(values[i], (float)(i - (i % 8 >= 4 ? 4 : 0)));
    d.plugin.op_destroy(op);
    d.plugin.mem_free(mem);
    door_close(&d);
}
END_TEST

/* clang-format off */
START_TEST(a_reserve_belongs_to_its_forward_operation)
{
    start(_i);
    cek_op *forward, *bare, *backward;
    cek_pool_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_POOL_FORWARD, .operands = 7 }, .mode = CEK_POOL_MAX, .spatial = 2,
        .type = CEK_F32, .batch = 1, .channels = 1, .in = { 4, 4 }, .kernel = { 2, 2 }, .stride = { 2, 2 },
    };
    cek_op_info info = { .size = sizeof info };
    OK(d.plugin.op_create(d.dev, &desc.op, &info, &forward));
    ck_assert_uint_gt(info.reserve_bytes, 0);
    desc.op.operands = 3;
    OK(d.plugin.op_create(d.dev, &desc.op, &info, &bare));
    ck_assert_uint_eq(info.reserve_bytes, 0);
    /* clang-format on */

    desc.op.kind = CEK_OP_POOL_BACKWARD;
    desc.op.operands = 7;
    REFUSED(CEK_INVALID, "forward", d.plugin.op_create(d.dev, &desc.op, NULL, &backward));
    ck_assert_ptr_null(backward);
    desc.op.forward = bare;
    REFUSED(CEK_INVALID, "no reserve", d.plugin.op_create(d.dev, &desc.op, NULL, &backward));
    desc.op.forward = forward;
    desc.batch = 2;
    REFUSED(CEK_INVALID, "geometry", d.plugin.op_create(d.dev, &desc.op, NULL, &backward));
    desc.batch = 1;
    desc.op.operands = 3;
    REFUSED(CEK_INVALID, "RESERVE", d.plugin.op_create(d.dev, &desc.op, NULL, &backward));
    desc.op.operands = 7;
    OK(d.plugin.op_create(d.dev, &desc.op, NULL, &backward));
    d.plugin.op_destroy(backward);
    d.plugin.op_destroy(bare);
    d.plugin.op_destroy(forward);
    door_close(&d);
}
END_TEST

/* clang-format off */
START_TEST(prepacked_weights_give_the_same_product)
{
    start(_i);
    enum { M = 3, N = 5, K = 4 };
    float a[M * K], b[N * K], plain[M * N], packed[M * N];
    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i % 5) - 2;
    for (int i = 0; i < N * K; i++)
        b[i] = (float)(i % 7) - 3;
    cek_gemm_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_GEMM }, .m = M, .n = N, .k = K, .batch = 1,
            .lda = K, .ldb = K, .ldc = N,
        .trans = CEK_GEMM_TRANS_B, .a_type = CEK_F32, .b_type = CEK_F32, .c_type = CEK_F32,
    };
    const array arrays[] = { IN(a, sizeof a), IN(b, sizeof b), OUT(plain, sizeof plain) };
    door_run(&d, &desc.op, arrays, 3);
    /* clang-format on */

    cek_op *op;
    cek_op_info info = { .size = sizeof info };
    desc.op.flags = CEK_OP_PREPACKED;
    desc.op.operands = CEK_BIT(CEK_GEMM_A) | CEK_BIT(CEK_GEMM_C);
    REFUSED(CEK_INVALID, "PACKED", d.plugin.op_create(d.dev, &desc.op, &info, &op));
    desc.op.operands |= CEK_BIT(CEK_GEMM_PACKED);
    OK(d.plugin.op_create(d.dev, &desc.op, &info, &op));
    ck_assert(info.prepack_bytes && info.prepack_layout);
    cek_ref refs[7] = { { door_mem(&d, sizeof a), 0 },
                        { door_mem(&d, sizeof b), 0 },
                        { door_mem(&d, sizeof packed), 0 } };
    const cek_ref to = { door_mem(&d, info.prepack_bytes), 0 }, scratch = { door_mem(&d, info.workspace_bytes), 0 };
    OK(d.plugin.upload(d.queue, refs[0], a, sizeof a));
    OK(d.plugin.upload(d.queue, refs[1], b, sizeof b));
    REFUSED(CEK_INVALID, "cover", d.plugin.op_prepack(d.queue, op, refs, 1, to));
    REFUSED(CEK_INVALID, "overlap", d.plugin.op_prepack(d.queue, op, refs, 3, refs[1]));
    OK(d.plugin.op_prepack(d.queue, op, refs, 3, to));
    d.plugin.mem_free(refs[1].mem); /* the plain form is not needed any more */
    refs[1] = (cek_ref){ NULL, 0 };
    refs[CEK_GEMM_PACKED] = to;
    OK(d.plugin.op_run(d.queue, op, refs, 7, scratch));
    OK(d.plugin.download(d.queue, packed, refs[2], sizeof packed));
    ck_assert_mem_eq(plain, packed, sizeof plain);
    d.plugin.op_destroy(op);
    d.plugin.mem_free(refs[0].mem);
    d.plugin.mem_free(refs[2].mem);
    d.plugin.mem_free(to.mem);
    d.plugin.mem_free(scratch.mem);
    door_close(&d);
}
END_TEST

START_TEST(a_command_buffer_repeats_its_commands)
{
    start(_i);
    cek_op *op;
    cek_cmdbuf *cmdbuf;
    cek_mem *mem = door_mem(&d, 1024);
    float values[64];
    OK(d.plugin.op_create(d.dev, &add_desc.op, NULL, &op));
    cek_ref refs[9] = { { mem, 0 } };
    refs[8] = (cek_ref){ mem, 0 };
    struct {
        cek_cmd cmd;
        uint64_t later;
    } cmds[] = {
        { .cmd = { .kind = CEK_CMD_RUN, .op = op, .operands = refs, .operand_count = 9 } },
        { .cmd = { .kind = CEK_CMD_COPY, .dst = { mem, 512 }, .src = { mem, 0 }, .bytes = 256 } },
        { .cmd = { .kind = CEK_CMD_FILL, .dst = { mem, 256 }, .pattern = 7, .pattern_bytes = 1, .bytes = 4 } },
    };
    OK(d.plugin.fill(d.queue, (cek_ref){ mem, 0 }, 0, 4, 1024));
    OK(d.plugin.cmdbuf_create(d.dev, &cmds[0].cmd, 3, sizeof *cmds, &cmdbuf));
    memset(refs, 0, sizeof refs); /* everything was copied */
    OK(d.plugin.cmdbuf_run(d.queue, cmdbuf));
    OK(d.plugin.cmdbuf_run(d.queue, cmdbuf));
    OK(d.plugin.download(d.queue, values, (cek_ref){ mem, 512 }, 256));
    for (int i = 0; i < 64; i++)
        ck_assert_float_eq(values[i], 2);
    OK(d.plugin.download(d.queue, values, (cek_ref){ mem, 256 }, 4));
    ck_assert_mem_eq(values, "\7\7\7\7", 4);
    d.plugin.cmdbuf_destroy(cmdbuf);
    d.plugin.cmdbuf_destroy(NULL);

    cmds[2].later = 1;
    refs[0] = refs[8] = (cek_ref){ mem, 0 };
    REFUSED(CEK_UNSUPPORTED, "not zero", d.plugin.cmdbuf_create(d.dev, &cmds[0].cmd, 3, sizeof *cmds, &cmdbuf));
    cmds[2].later = 0;
    cmds[2].cmd.kind = 9;
    REFUSED(CEK_UNSUPPORTED, "command 9", d.plugin.cmdbuf_create(d.dev, &cmds[0].cmd, 3, sizeof *cmds, &cmdbuf));
    cmds[2].cmd.kind = CEK_CMD_COPY;
    REFUSED(CEK_INVALID, "src.mem is NULL", d.plugin.cmdbuf_create(d.dev, &cmds[0].cmd, 3, sizeof *cmds, &cmdbuf));
    cmds[2].cmd.src = (cek_ref){ mem, 0 };
    cmds[2].cmd.bytes = 2000;
    REFUSED(CEK_INVALID, "2000 bytes", d.plugin.cmdbuf_create(d.dev, &cmds[0].cmd, 3, sizeof *cmds, &cmdbuf));
    refs[0].offset = 2;
    REFUSED(CEK_INVALID, "multiple", d.plugin.cmdbuf_create(d.dev, &cmds[0].cmd, 1, sizeof *cmds, &cmdbuf));
    ck_assert_ptr_null(cmdbuf);
    d.plugin.op_destroy(op);
    d.plugin.mem_free(mem);
    door_close(&d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("operations through the table");
    TCase *tc = tcase_create("reference, and inside sim");
    EACH(tc, a_run_takes_the_operands_that_were_promised_and_no_others);
    EACH(tc, an_output_may_be_its_input_but_not_overlap_it);
    EACH(tc, inputs_may_overlap_and_a_workspace_may_not);
    EACH(tc, columns_of_one_matrix_are_apart_although_their_extents_meet);
    EACH(tc, a_reserve_belongs_to_its_forward_operation);
    EACH(tc, prepacked_weights_give_the_same_product);
    EACH(tc, a_command_buffer_repeats_its_commands);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
