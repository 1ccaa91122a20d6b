/* parts_refused.c - what parts refuse: each by its name in the model, and with the shapes that do not fit. */
#include <cekernels/parts.h>
#include <string.h>

#include "scratch.h"
#include "tests/suite.h"

enum { CHANNELS = 4, SIDE = 5 };

/* Node 1 is [N,2,3]. */
static int reshape_badly(cek_model *m)
{
    return cek_part_reshape(m, 1, 2, (int64_t[]){ CEK_SAMPLES, 7 });
}
static int reshape_to_nothing(cek_model *m)
{
    return cek_part_reshape(m, 1, 2, NULL);
}
static int two(cek_model *m)
{
    return cek_part_reduce(m, 1, CEK_REDUCE_SUM, 1 << 2, false);
}
static int add_badly(cek_model *m)
{
    return cek_part_apply(m, CEK_PW_ADD, 1, two(m));
}
static int concat_badly(cek_model *m)
{
    return cek_part_concat(m, 2, (int[]){ 1, two(m) }, 1);
}
static int multiply_badly(cek_model *m)
{
    return cek_part_matmul(m, 1, two(m), false);
}
static int gather_badly(cek_model *m)
{
    return cek_part_gather(m, 1, 1, 0);
}
static int array_of_nothing(cek_model *m)
{
    return cek_part_array(m, 1, (int64_t[]){ 3 }, NULL);
}
static int softmax_badly(cek_model *m)
{
    return cek_part_softmax(m, 1, 3);
}
static int random_badly(cek_model *m)
{
    return cek_part_random(m, 1, (int64_t[]){ 3 }, CEK_RANDOM_UNIFORM, 2, 1);
}
static int arg_badly(cek_model *m)
{
    return cek_part_arg(m, 1, CEK_ARG_MAX, 0);
}

/* They are told by their name in the model, and with the shapes that did not fit. */
START_TEST(what_does_not_fit_is_told_with_its_shapes)
{
    const struct {
        int (*add)(cek_model *);
        const char *said;
    } cases[] = {
        { reshape_badly, "node 2 (reshape): view: the elements are not as many (of [N,2,3] to [N,7])" },
        { add_badly, "(of [N,2,3], [N,2])" },
        { concat_badly, "(of [N,2,3], [N,2])" },
        { multiply_badly, "(of [N,2,3], [N,2])" },
        { reshape_to_nothing, "node 2 (reshape): shape is NULL" },
        { gather_badly, "node 2 (gather): gather: its index is not of i32 (of [N,2,3], [N,2,3])" },
        { array_of_nothing, "node 2 (array): values is NULL" },
        { softmax_badly, "node 2 (softmax): axis 3, there are 0 to 2, or -1 to -3" },
        { random_badly, "node 2 (random): low and high 2 and 1" },
        { arg_badly, "node 2 (arg): arg: would mix samples (of [N,2,3])" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cek_model *m;

        assert_ok(cek_model_create(1, (int64_t[]){ 6 }, &m));
        cek_part_reshape(m, 0, 3, (int64_t[]){ CEK_SAMPLES, 2, 3 });
        ck_assert_int_eq(cases[i].add(m), -1);
        ck_assert(cek_model_status(m) != CEK_OK);
        ck_assert_msg(strstr(cek_error_text(), cases[i].said), "%zu: %s", i, cek_error_text());
        cek_model_free(m);
    }
}
END_TEST

/* A refused input takes its name with it, and leaves that which was said for what comes next. */
START_TEST(a_refused_input_names_nothing_else)
{
    cek_parameter p;
    cek_model *m;
    int y;

    assert_ok(cek_model_create(1, (int64_t[]){ 4 }, &m));
    ck_assert_int_eq(cek_part_input(m, "extra", CEK_F64, 1, (int64_t[]){ 3 }), -1);
    assert_ok(cek_model_linear(m, 0, 2, true, &y));
    assert_ok(cek_model_parameter(m, 0, &p));
    ck_assert_str_eq(p.name, "0.weight");
    assert_ok(cek_model_name(m, "head"));
    ck_assert_int_eq(cek_part_input(m, "extra", CEK_F64, 1, (int64_t[]){ 3 }), -1);
    assert_ok(cek_model_linear(m, y, 2, true, &y));
    assert_ok(cek_model_parameter(m, 2, &p));
    ck_assert_str_eq(p.name, "head.weight");
    cek_model_free(m);
}
END_TEST

START_TEST(each_refusal_names_the_part)
{
    const cek_parameter_options bad = { .size = sizeof bad, .rank = 5 };
    const int64_t two[] = { CEK_SAMPLES, CEK_SAMPLES }, none[] = { CEK_SAMPLES, 0 };
    const cek_windows empty = { .size = sizeof empty };

    for (int i = 0; i < 20; i++) {
        cek_model *m;
        int n;
        const char *name;

        assert_ok(cek_model_create(3, (int64_t[]){ CHANNELS, SIDE, SIDE }, &m));
        switch (i) {
        case 0: n = cek_part_parameter(m, "w", &bad), name = "parameter"; break;
        case 1: n = cek_part_parameter(m, "w", NULL), name = "parameter"; break;
        case 2: n = cek_part_target(m, CEK_F32, 1, two + 1), name = "target"; break;
        case 3: n = cek_part_reshape(m, 0, 2, two), name = "reshape"; break;
        case 4: n = cek_part_reshape(m, 0, 2, none), name = "reshape"; break;
        case 5: n = cek_part_chain(m, 9, (int[9]){ 0 }, 1, NULL), name = "chain"; break;
        case 6: n = cek_part_apply(m, 9999, 0, -1), name = "chain"; break;
        case 7: n = cek_part_slice(m, 0, 1, 3, 2), name = "slice"; break;
        case 8: n = cek_part_concat(m, 0, NULL, 1), name = "concat"; break;
        case 9: n = cek_part_pool(m, 0, CEK_POOL_MAX, false, &empty), name = "pool"; break;
        case 10: n = cek_part_matmul(m, 0, 5, false), name = "matmul"; break;
        case 11: n = cek_part_reduce(m, 0, CEK_REDUCE_SUM, 1 << 4, false), name = "reduce"; break;
        case 12: n = cek_part_cast(m, 0, CEK_U8), name = "cast"; break;
        case 13: n = cek_part_softmax(m, cek_part_cast(m, 0, CEK_I32), -1), name = "softmax"; break;
        case 15: n = cek_part_apply(m, CEK_PW_ADD, 0, -1), name = "apply"; break;
        case 16: n = cek_part_apply(m, CEK_PW_MUL_IMM, 0, -1), name = "apply"; break;
        case 14: n = cek_part_reshape(m, cek_part_constant(m, 1), 0, NULL), name = "reshape"; break;
        case 17: n = cek_part_state(m, 0, CEK_STATE_HIDDEN), name = "state): node 0 (input) has no states"; break;
        case 18: n = cek_part_state(m, 0, (cek_state)2), name = "state): 2 is neither"; break;
        default: n = cek_part_slice(m, 0, 0, 0, 1), name = "slice"; break;
        }
        ck_assert_int_eq(n, -1);
        ck_assert(cek_model_status(m) != CEK_OK);
        ck_assert_msg(strstr(cek_error_text(), name), "%d: %s", i, cek_error_text());
        cek_model_free(m);
    }
    ck_assert_int_eq(cek_part_apply(NULL, CEK_PW_EXP, 0, -1), -1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parts_refused");
    TCase *tcase = tcase_create("parts_refused");

    tcase_add_test(tcase, a_refused_input_names_nothing_else);
    tcase_add_test(tcase, each_refusal_names_the_part);
    tcase_add_test(tcase, what_does_not_fit_is_told_with_its_shapes);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
