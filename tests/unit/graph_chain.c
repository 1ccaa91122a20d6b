/* graph_chain.c - chains of instructions: the derivative of each, of chains that a caller wrote, over inputs that are
 * broadcast; padding, types, and a derivative that does not fit one chain. */
#include "tests/graph_check.h"

enum { SHAPES = 20 };

/* Up to three axes of up to three elements. */
static cek__dims shape_any(int which)
{
    cek__dims dims = { .rank = (int)pick(which, 1, 1, 3) };

    for (int i = 0; i < dims.rank; i++)
        dims.size[i] = pick(which, 2 + (uint64_t)i, 1, 3);
    return dims;
}

/* What is broadcast to `full`: without some of its first axes, of one element along others. Input 0 has all of it. */
static cek__dims shape_under(const cek__dims *full, int which, int input)
{
    uint64_t stream = 10 + 10 * (uint64_t)input;
    cek__dims dims = { .rank = full->rank };

    if (input > 0)
        dims.rank = (int)pick(which, stream, 1, full->rank);
    for (int i = 0; i < dims.rank; i++) {
        bool one = input > 0 && pick(which, stream + 1 + (uint64_t)i, 0, 2) == 0;

        dims.size[i] = one ? 1 : full->size[full->rank - dims.rank + i];
    }
    return dims;
}

/* The chain's value for each sample times one of its own. */
static int per_sample_product(net *n, int y)
{
    cek__dims dims = { .rank = n->graph.flows[y].dims.rank + 1, .samples = 1, .size = { 1 } };

    for (int i = 1; i < dims.rank; i++)
        dims.size[i] = n->graph.flows[y].dims.size[i - 1];
    return chain(n, CEK_PW_MUL, y, samples(n, dims));
}

/* ---- each instruction ---- */

typedef struct code_case {
    uint32_t code;
    int inputs;
    double low, high;
} code_case;
/* clang-format off */
static const code_case codes[] = {
    { CEK_PW_COPY, 1, -1, 1 },  { CEK_PW_ADD, 2, -1, 1 },    { CEK_PW_SUB, 2, -1, 1 },      { CEK_PW_MUL, 2, -1, 1 },
    { CEK_PW_DIV, 2, 0.5, 2 },  { CEK_PW_MIN, 2, -1, 1 },    { CEK_PW_MAX, 2, -1, 1 },      { CEK_PW_NEG, 1, -1, 1 },
    { CEK_PW_ABS, 1, -1, 1 },   { CEK_PW_SQRT, 1, 0.5, 2 },  { CEK_PW_EXP, 1, -1, 1 },      { CEK_PW_LOG, 1, 0.5, 2 },
    { CEK_PW_RELU, 1, -1, 1 },  { CEK_PW_TANH, 1, -1, 1 },   { CEK_PW_SIGMOID, 1, -1, 1 },  { CEK_PW_GELU, 1, -2, 2 },
    { CEK_PW_POW, 2, 0.5, 2 },  { CEK_PW_ERF, 1, -2, 2 },    { CEK_PW_LOG1P, 1, -0.5, 2 },  { CEK_PW_EXPM1, 1, -1, 1 },
    { CEK_PW_FLOOR, 1, -3, 3 }, { CEK_PW_SIGN, 1, -1, 1 },   { CEK_PW_SIN, 1, -3, 3 },      { CEK_PW_COS, 1, -3, 3 },
    { CEK_PW_LESS, 2, -1, 1 },  { CEK_PW_EQUAL, 2, -1, 1 },  { CEK_PW_SELECT, 3, -1, 1 },   { CEK_PW_CONST, 1, -1, 1 },
    { CEK_PW_ADD_IMM, 1, -1, 1 }, { CEK_PW_MUL_IMM, 1, -1, 1 }, { CEK_PW_RELU_GRAD, 2, -1, 1 },
    { CEK_PW_TANH_GRAD, 2, -1, 1 }, { CEK_PW_SIGMOID_GRAD, 2, -1, 1 }, { CEK_PW_GELU_GRAD, 2, -2, 2 },
};
/* clang-format on */

/* (instruction + product of the first and last input)^2, of which each needs what the instruction gave. What chooses is
 * there as -1, 0 and 1. */
START_TEST(instructions)
{
    const code_case *c = &codes[_i];
    static net n;

    for (int shape = 0; shape < SHAPES; shape++) {
        const cek__dims full = shape_any(shape);
        uint32_t v = (uint32_t)c->inputs;
        cek__part part = {
            .kind = CEK__PART_CHAIN,
            .inputs = c->inputs,
            .chain = { 5,
                       { { .code = CEK_PW_FLOOR, .a = 0 },
                         { .code = c->code,
                           .a = c->code == CEK_PW_SELECT ? v : 0,
                           .b = c->inputs > 1 ? 1 : 0,
                           .c = c->inputs > 2 ? 2 : 0,
                           .imm = 0.75 },
                         { .code = CEK_PW_MUL, .a = 0, .b = v - 1 },
                         { .code = CEK_PW_ADD, .a = v + 1, .b = v + 2 },
                         { .code = CEK_PW_MUL, .a = v + 3, .b = v + 3 } } },
        };
        int y;

        net_open(&n);
        for (int k = 0; k < c->inputs; k++)
            part.input[k] = parameter(&n, shape_under(&full, shape, k), c->low, c->high);
        assert_ok(cek__graph_add(&n.graph, &part, &y));
        gradients_are_right(&n, per_sample_product(&n, y), "instruction");
    }
}
END_TEST

/* Ties: both have half; powers of 0 and to the power of 0; the absolute value of 0. As PyTorch has them. */
static const struct {
    uint32_t code;
    double a, b, y, da, db;
} corners[] = {
    { CEK_PW_MAX, 0.5, 0.5, 0.5, 0.5, 0.5 },
    { CEK_PW_MIN, 0.5, 0.5, 0.5, 0.5, 0.5 },
    { CEK_PW_POW, 0, 2, 0, 0, 0 },
    { CEK_PW_POW, 0, 1, 0, 1, 0 },
    { CEK_PW_POW, 3, 0, 1, 0, 1.0986122886681098 },
    { CEK_PW_POW, 0, 0, 1, 0, 0 },
};
START_TEST(corners_are_as_pytorch_has_them)
{
    static net n;
    static double got[PARAMETERS][ROOM];
    double dy = 0;
    int a, b, y;

    net_open(&n);
    a = parameter(&n, AXES(1), 0, 1);
    b = parameter(&n, AXES(1), 0, 1);
    y = chain(&n, corners[_i].code, a, b);
    n.theta[0][0] = corners[_i].a;
    n.theta[1][0] = corners[_i].b;
    gradients_of(&n, per_sample_product(&n, y), got);
    for (int i = 0; i < ROWS; i++)
        dy += 2 * (corners[_i].y * n.samples[i] - n.target[i]) * n.samples[i];
    ck_assert_double_eq_tol(got[0][0], dy * corners[_i].da, 1e-12);
    ck_assert_double_eq_tol(got[1][0], dy * corners[_i].db, 1e-12);
    net_close(&n);
}
END_TEST

/* ---- chains as a caller writes them ---- */

/* One in which nothing grows, whatever is chosen: 16 instructions over 8 inputs. */
static void code_any(cek__part *part, int which)
{
    static const struct {
        uint32_t code;
        int reads;
    } from[] = {
        { CEK_PW_ADD, 2 },  { CEK_PW_SUB, 2 },    { CEK_PW_MUL, 2 },  { CEK_PW_MAX, 2 },  { CEK_PW_MIN, 2 },
        { CEK_PW_TANH, 1 }, { CEK_PW_SIN, 1 },    { CEK_PW_COS, 1 },  { CEK_PW_ERF, 1 },  { CEK_PW_ABS, 1 },
        { CEK_PW_LESS, 2 }, { CEK_PW_SELECT, 3 }, { CEK_PW_GELU, 1 }, { CEK_PW_RELU, 1 }, { CEK_PW_SIGMOID, 1 },
    };

    for (uint32_t i = 0; i < part->chain.count; i++) {
        int before = part->inputs + (int)i;
        uint64_t stream = 200 + 4 * (uint64_t)i;
        cek_pointwise_instruction *in = &part->chain.code[i];
        int64_t which_code = pick(which, stream, 0, sizeof from / sizeof *from - 1);

        in->code = from[which_code].code;
        in->a = (uint32_t)pick(which, stream + 1, before > 6 ? before - 6 : 0, before - 1);
        in->b = from[which_code].reads > 1 ? (uint32_t)pick(which, stream + 2, 0, before - 1) : 0;
        in->c = from[which_code].reads > 2 ? (uint32_t)pick(which, stream + 3, 0, before - 1) : 0;
        if (i == 0) /* each input counts */
            *in = (cek_pointwise_instruction){ .code = CEK_PW_ADD, .a = 0, .b = 1 };
        else if ((int)i + 1 < part->inputs)
            *in = (cek_pointwise_instruction){ .code = i % 2 ? CEK_PW_MUL : CEK_PW_ADD,
                                               .a = (uint32_t)before - 1,
                                               .b = i + 1 };
        else if (i + 1 == part->chain.count)
            *in = (cek_pointwise_instruction){ .code = CEK_PW_ADD,
                                               .a = (uint32_t)before - 1,
                                               .b = 2 * (uint32_t)part->inputs - 2 };
    }
}

START_TEST(chains_of_many_instructions_over_many_inputs)
{
    static net n;

    for (int which = 0; which < SHAPES; which++) {
        const cek__dims full = shape_any(which);
        cek__part part = { .kind = CEK__PART_CHAIN, .inputs = (int)pick(which, 190, 2, CEK__PART_INPUTS) };
        int y;

        net_open(&n);
        part.chain.count = (uint32_t)pick(which, 191, part.inputs, CEK_POINTWISE_INSTRUCTIONS);
        code_any(&part, which);
        for (int k = 0; k < part.inputs; k++)
            part.input[k] = parameter(&n, shape_under(&full, which, k), -1, 1);
        assert_ok(cek__graph_add(&n.graph, &part, &y));
        gradients_are_right(&n, per_sample_product(&n, y), "chain");
    }
}
END_TEST

/* 16 instructions whose derivative is longer than a chain and reads more than a chain does. */
START_TEST(a_derivative_may_take_several_chains)
{
    static net n;
    cek__part part = { .kind = CEK__PART_CHAIN, .inputs = CEK__PART_INPUTS, .chain = { .count = 15 } };
    int chains = 0, y;

    net_open(&n);
    for (int k = 0; k < part.inputs; k++)
        part.input[k] = parameter(&n, k % 2 ? AXES(2, 3) : AXES(3), 0.5, 1.5);
    for (uint32_t i = 0; i < part.chain.count; i++)
        part.chain.code[i] = i < 7 ? (cek_pointwise_instruction){ .code = CEK_PW_POW, .a = i ? 7 + i : 0, .b = i + 1 }
                                   : (cek_pointwise_instruction){ .code = i % 2 ? CEK_PW_SIN : CEK_PW_SIGMOID,
                                                                  .a = 7 + i };
    assert_ok(cek__graph_add(&n.graph, &part, &y));
    loss_add(&n, per_sample_product(&n, y));
    passes(&n);
    for (int i = 0; i < n.graph.length; i++)
        chains += n.graph.parts[n.graph.sequence[i]].kind == CEK__PART_CHAIN;
    ck_assert_int_gt(chains,
                     2 + 2 * CEK__PART_INPUTS); /* more than one for each input, and the sums over broadcast axes */
    net_close(&n);

    net_open(&n);
    for (int k = 0; k < part.inputs; k++)
        part.input[k] = parameter(&n, k % 2 ? AXES(2, 3) : AXES(3), 0.5, 1.5);
    assert_ok(cek__graph_add(&n.graph, &part, &y));
    gradients_are_right(&n, per_sample_product(&n, y), "long chain");
}
END_TEST

/* ---- padding ---- */

/* Wherever the samples' axis is, and however the image lies: x where the sample counts, else -7. */
START_TEST(a_chain_knows_padding)
{
    static const cek__dims shapes[] = {
        { .rank = 2, .samples = 1, .size = { 1, 4 } },
        { .rank = 4, .samples = 1, .size = { 1, 2, 3, 2 } }, /* lies with its channels last */
        { .rank = 3, .samples = 2, .size = { 4, 1, 2 } },    /* [T,N,2] */
        { .rank = 2, .samples = 2, .size = { 3, 2 } },       /* [3,N*2] */
    };
    const cek__dims *dims = &shapes[_i];
    cek__part part = { .kind = CEK__PART_CHAIN,
                       .inputs = 1,
                       .dims = *dims,
                       .chain = { 3,
                                  { { .code = CEK_PW_VALID },
                                    { .code = CEK_PW_CONST, .imm = -7 },
                                    { .code = CEK_PW_SELECT, .a = 1, .b = 0, .c = 2 } } } };
    static net n;
    double out[ROOM];
    int64_t inner = 1, axis = 0, count;
    int x, y;

    net_open(&n);
    n.valid = 2;
    while (!(dims->samples >> axis & 1))
        axis++;
    for (int i = (int)axis + 1; i < dims->rank; i++)
        inner *= dims->size[i];
    x = samples(&n, axis ? PER_SAMPLE(dims->size[0], 2) : *dims);
    for (int64_t i = 0; i < n.inputs; i++)
        n.samples[i] = 1 + (double)i; /* as they lie, and no -7 */
    if (axis) {
        assert_ok(cek__permute(&n.graph, x, (int[]){ 1, 0, 2 }, &x));
        assert_ok(cek__view(&n.graph, x, dims, &x));
    }
    part.input[0] = x;
    assert_ok(cek__graph_add(&n.graph, &part, &y));
    count = values_of(&n, y, out);
    for (int64_t i = 0; i < count; i++) {
        int64_t sample = i / inner / dims->size[axis] % ROWS;

        ck_assert_msg((out[i] == -7) == (sample >= 2), "element %lld of sample %lld is %g", (long long)i,
                      (long long)sample, out[i]);
    }
}
END_TEST

/* Padding holds what may be there: no gradient sees it. */
START_TEST(padding_changes_no_gradient)
{
    static net n;
    static double got[2][PARAMETERS][ROOM];
    cek__part part = { .kind = CEK__PART_CHAIN,
                       .inputs = 2,
                       .chain = { 4,
                                  { { .code = CEK_PW_MUL, .a = 0, .b = 1 },
                                    { .code = CEK_PW_VALID },
                                    { .code = CEK_PW_CONST, .imm = 2 },
                                    { .code = CEK_PW_SELECT, .a = 3, .b = 2, .c = 4 } } } };

    for (int garbage = 0; garbage < 2; garbage++) {
        int y;

        net_open(&n);
        n.valid = 2;
        part.input[0] = samples(&n, PER_SAMPLE(3));
        part.input[1] = parameter(&n, AXES(3), -1, 1);
        for (int i = 6; i < 9 && garbage; i++)
            n.samples[i] = 1e30;
        assert_ok(cek__graph_add(&n.graph, &part, &y));
        gradients_of(&n, y, got[garbage]);
        net_close(&n);
    }
    ck_assert_mem_eq(got[0][0], got[1][0], 3 * sizeof(double));
    ck_assert_double_ne(got[0][0][0], 0);
}
END_TEST

START_TEST(what_a_chain_refuses)
{
    static net n;
    cek__part part = { .kind = CEK__PART_CHAIN, .inputs = 1, .chain = { 1, { { .code = CEK_PW_VALID } } } };
    int out;

    net_open(&n);
    part.input[0] = parameter(&n, AXES(3), -1, 1);
    ck_assert_int_eq(cek__graph_add(&n.graph, &part, &out), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "has not one axis of samples"));
    part.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_SELECT, .c = 1 };
    ck_assert_int_eq(cek__graph_add(&n.graph, &part, &out), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "instruction 0 reads value 1"));
    part.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_ADD_IMM };
    part.chain.code[1] = (cek_pointwise_instruction){ .code = CEK_PW_EXP, .a = 1, .b = 1 };
    part.chain.count = 2;
    ck_assert_int_eq(cek__graph_add(&n.graph, &part, &out), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "instruction 1 has 2 operands, it takes 1"));
    part = (cek__part){ .kind = CEK__PART_CHAIN };
    ck_assert_int_eq(cek__graph_add(&n.graph, &part, &out), CEK_INVALID);
    net_close(&n);
}
END_TEST

/* ---- types ---- */

/* Rounded to whole numbers and back: their values, and no gradient through them. */
START_TEST(integers_have_values_and_no_gradient)
{
    static net n;
    double out[ROOM];
    int x, y, w;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(2));
    for (int i = 0; i < 6; i++)
        n.samples[i] = i - 2.5; /* ties go to the even one */
    assert_ok(cek__cast(&n.graph, x, CEK_I32, &y));
    assert_ok(cek__cast(&n.graph, y, CEK_DTYPE_NONE, &y));
    ck_assert_int_eq(values_of(&n, y, out), 6);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq(out[i], nearbyint(i - 2.5));

    net_open(&n);
    w = parameter(&n, AXES(2), 1, 4);
    assert_ok(cek__cast(&n.graph, w, CEK_I32, &y));
    ck_assert(!n.graph.flows[y].needs_gradient);
    assert_ok(cek__cast(&n.graph, y, CEK_DTYPE_NONE, &y));
    assert_ok(cek__constant(&n.graph, 0.5, &AXES(2), &x));
    y = chain(&n, CEK_PW_ADD, chain(&n, CEK_PW_MUL, y, x), chain(&n, CEK_PW_MUL, w, w));
    gradients_are_right(&n, per_sample_product(&n, y), "cast");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph_chain");
    TCase *tcase = tcase_create("graph_chain");

    tcase_add_loop_test(tcase, instructions, 0, sizeof codes / sizeof *codes);
    tcase_add_loop_test(tcase, corners_are_as_pytorch_has_them, 0, sizeof corners / sizeof *corners);
    tcase_add_test(tcase, chains_of_many_instructions_over_many_inputs);
    tcase_add_test(tcase, a_derivative_may_take_several_chains);
    tcase_add_loop_test(tcase, a_chain_knows_padding, 0, 4);
    tcase_add_test(tcase, padding_changes_no_gradient);
    tcase_add_test(tcase, what_a_chain_refuses);
    tcase_add_test(tcase, integers_have_values_and_no_gradient);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
