/* onnx_attend.c - tests of nn/onnx: Attention against its formula. ONNX's own cases are
 * run by scripts/check-onnx-nodes. */
#include <math.h>

#include "onnx_nets.h"

enum { BOOL = 9, HEADS = 2, STEPS = 2, WIDTH = 2, PAST = 2, MOST_STEPS = PAST + STEPS, SAMPLES = 2 };

typedef enum masking { UNMASKED, TRUTHS, NUMBERS, SHORT } masking;

/* Queries are x; keys are x, or of its first head; values are -keys. What came before: keys -x, values x. */
typedef struct attention {
    bool flat, causal, past, shared; /* shared: both heads of queries have one of keys */
    masking mask;
    float cap;
    int output, mode;
} attention;

/* As [2,2] the first query sees nothing. Of a mask that is shorter than the keys, none of those behind it are seen. */
static const uint8_t seen[STEPS * MOST_STEPS] = { 0, 0, 1, 0, 1, 0, 1, 1 };
static const float added[STEPS * MOST_STEPS] = { 0.5f, -0.25f, 1, -2, 0.75f, -INFINITY, 0.125f, 3 };

/* What the mask adds at a query's step, of those that are there. */
static double bias(const attention *a, int query, int step, int steps)
{
    const int size = a->mask == SHORT ? steps - 1 : steps, at = query * size + step;

    if (a->causal && step > query + (a->past ? PAST : 0))
        return -INFINITY;
    if (a->mask == UNMASKED)
        return 0;
    if (a->mask == NUMBERS)
        return (double)added[at];
    return step < size && seen[at] ? 0 : -INFINITY;
}

/* One output of one head: the plain formula. */
static void attend(const attention *a, const float *query, const float *key, double *out)
{
    const int past = a->past ? PAST : 0, steps = past + STEPS;

    for (int t = 0; t < STEPS; t++) {
        double stage[4][MOST_STEPS], all = 0; /* of the modes: product, capped, with the mask, share */

        for (int s = 0; s < steps; s++) {
            const double sign = s < past ? -1 : 1;

            stage[0][s] = 0;
            for (int e = 0; e < WIDTH; e++)
                stage[0][s] += (double)query[t * WIDTH + e] * sign * (double)key[s % STEPS * WIDTH + e] / sqrt(WIDTH);
            stage[1][s] = a->cap != 0 ? (double)a->cap * tanh(stage[0][s] / (double)a->cap) : stage[0][s];
            stage[2][s] = stage[1][s] + bias(a, t, s, steps);
            all += exp(stage[2][s]);
        }
        for (int s = 0; s < steps; s++)
            stage[3][s] = all > 0 ? exp(stage[2][s]) / all : 0;
        for (int s = 0; s < steps && a->output == 3; s++)
            out[t * steps + s] = stage[a->mode][s];
        for (int e = 0; e < WIDTH && a->output == 0; e++) {
            out[t * WIDTH + e] = 0;
            for (int s = 0; s < steps; s++)
                out[t * WIDTH + e] -= stage[3][s] * (s < past ? -1 : 1) * (double)key[s % STEPS * WIDTH + e];
        }
    }
    for (int i = 0; i < steps * WIDTH && (a->output == 1 || a->output == 2); i++)
        out[i] = (i < past * WIDTH ? -1 : 1) * (a->output == 1 ? 1 : -1) * (double)key[i % (STEPS * WIDTH)];
}

/* The node, and what it reads but its mask. */
static message attention_of(const attention *a)
{
    const char *inputs[7] = { "x", a->shared ? "one" : "x", "v", a->mask ? "mask" : "", NULL };
    const char *const outputs[5] = { a->output == 0 ? "y" : "", a->output == 1 ? "y" : "", a->output == 2 ? "y" : "",
                                     a->output == 3 ? "y" : "" };
    message g = { .size = 0 }, node, part;

    if (a->shared) {
        node = node_of("Slice", NAMES("x", "first", "second", "second"), NAMES("one"));
        put_message(&g, 1, &node);
        part = list_of("first", SHAPE(0), 1);
        put_message(&g, 5, &part);
        part = list_of("second", SHAPE(1), 1);
        put_message(&g, 5, &part);
    }
    node = node_of("Neg", NAMES(inputs[1]), NAMES("v"));
    put_message(&g, 1, &node);
    if (a->past) {
        inputs[4] = "v";
        inputs[5] = inputs[1];
    }
    node = node_of("Attention", inputs, outputs);
    put_whole(&node, "is_causal", a->causal);
    put_number(&node, "softcap", a->cap);
    put_whole(&node, "qk_matmul_output_mode", a->mode);
    if (a->flat) {
        put_whole(&node, "q_num_heads", HEADS);
        put_whole(&node, "kv_num_heads", HEADS);
        ends_put(&g, 3, SHAPE(0, STEPS, HEADS * WIDTH));
    } else {
        ends_put(&g, 4, SHAPE(0, HEADS, STEPS, WIDTH));
    }
    put_message(&g, 1, &node);
    return g;
}

/* Where element i of a head's [STEPS,WIDTH] lies. */
static int place_of(const attention *a, int sample, int head, int i)
{
    return a->flat ? ((sample * STEPS + i / WIDTH) * HEADS + head) * WIDTH + i % WIDTH
                   : (sample * HEADS + head) * STEPS * WIDTH + i;
}

/* The same of samples as they are given: heads that are an axis are channels there, which come last. */
static int given_place_of(const attention *a, int sample, int head, int i)
{
    return a->flat ? place_of(a, sample, head, i) : (sample * STEPS * WIDTH + i) * HEADS + head;
}

static void assert_attends(const message *g, const attention *a)
{
    const int steps = (a->past ? PAST : 0) + STEPS;
    const int heads = a->shared && (a->output == 1 || a->output == 2) ? 1 : HEADS;
    const int each = a->output == 0 ? STEPS * WIDTH : a->output == 3 ? STEPS * steps : steps * WIDTH;
    float x[SAMPLES][HEADS][STEPS * WIDTH], given[SAMPLES * HEADS * STEPS * WIDTH], y[MOST];

    for (int i = 0; i < COUNT(given); i++) {
        const int sample = i / (HEADS * STEPS * WIDTH), head = i / (STEPS * WIDTH) % HEADS, at = i % (STEPS * WIDTH);

        x[sample][head][at] = given[given_place_of(a, sample, head, at)] = (float)(i * 7 % 11) / 8 - 0.5f;
    }
    ck_assert_int_eq(predicted(g, given, SAMPLES, y), SAMPLES * heads * each);
    for (int i = 0; i < SAMPLES * heads; i++) {
        const int sample = i / heads, head = i % heads;
        double expected[MOST_STEPS * MOST_STEPS];

        attend(a, x[sample][head], x[sample][a->shared ? 0 : head], expected);
        for (int k = 0; k < each; k++) {
            const double got = (double)y[a->output == 0 ? place_of(a, sample, head, k) : i * each + k];

            if (isinf(expected[k])) /* what a mask leaves out */
                ck_assert_double_eq(got, expected[k]);
            else
                ck_assert_double_eq_tol(got, expected[k], 64 * 0x1p-24); /* 16 roundings of what is below 4 */
        }
    }
}

static const attention attentions[] = {
    { .mode = 0 },
    { .causal = true },
    { .mask = TRUTHS },
    { .mask = NUMBERS },
    { .mask = NUMBERS, .causal = true },
    { .cap = 0.5f },
    { .flat = true, .causal = true },
    { .shared = true },
    { .past = true },
    { .past = true, .causal = true },
    { .past = true, .mask = TRUTHS },
    { .past = true, .mask = SHORT },
    { .past = true, .shared = true, .output = 1 },
    { .past = true, .shared = true, .output = 2 },
    { .cap = 0.5f, .mask = NUMBERS, .output = 3, .mode = 0 },
    { .cap = 0.5f, .mask = NUMBERS, .output = 3, .mode = 1 },
    { .cap = 0.5f, .mask = NUMBERS, .output = 3, .mode = 2 },
    { .cap = 0.5f, .mask = NUMBERS, .output = 3, .mode = 3 },
    { .mask = TRUTHS, .output = 3, .mode = 3 },
};

START_TEST(attention_is_that_of_the_formula)
{
    const attention *a = &attentions[_i];
    const int size = (a->past ? PAST : 0) + STEPS - (a->mask == SHORT);
    message g = attention_of(a), mask = tensor_of("mask", a->mask == NUMBERS ? FLOAT : BOOL, 2, SHAPE(STEPS, size));

    if (a->mask == NUMBERS)
        put_bytes(&mask, 9, added, (size_t)(STEPS * size) * sizeof *added);
    else
        put_bytes(&mask, 9, seen, (size_t)(STEPS * size));
    put_message(&g, 5, &mask);
    assert_attends(&g, a);
}
END_TEST

/* ---- masks of truths ---- */

static message truths_of(const char *name, int rank, const int64_t *shape, const uint8_t *values, size_t count)
{
    message m = tensor_of(name, BOOL, rank, shape);

    put_bytes(&m, 9, values, count);
    return m;
}

/* Each gives a mask of the steps that are not later: of what is known while the file is read, of what is too large for
 * that, and of what is computed when it runs. "*": what the node before gives. */
static const struct {
    const char *op, *inputs[4];
} masks[][5] = {
    { { "Constant", { "low" } } },
    { { "ConstantOfShape", { "small" } }, { "Trilu", { "*" } } },
    { { "Constant", { "true" } }, { "Expand", { "*", "small" } }, { "Trilu", { "*" } } },
    { { "ConstantOfShape", { "large" } }, { "Slice", { "*", "zeros", "small" } }, { "Trilu", { "*" } } },
    { { "Constant", { "true" } },
      { "Expand", { "*", "large" } },
      { "Slice", { "*", "zeros", "small" } },
      { "Trilu", { "*" } } },
    { { "Less", { "x", "nine" } }, { "And", { "*", "low" } } },
    { { "Less", { "x", "nine" } }, { "Where", { "*", "low", "low" } } },
    { { "Less", { "x", "nine" } }, { "Where", { "*", "twos", "twos" } }, { "Cast", { "*" } } },
    { { "Less", { "x", "nine" } }, { "Where", { "*", "twos", "twos" } }, { "CastLike", { "*", "low" } } },
    { { "Less", { "x", "nine" } }, { "And", { "*", "low" } }, { "Split", { "*" } } },
    { { "Less", { "x", "nine" } }, { "And", { "*", "low" } }, { "Pad", { "*", "nowhere" } } },
};

START_TEST(a_mask_of_truths_is_one_whatever_gives_it)
{
    static const uint8_t low[4] = { 1, 0, 1, 1 };
    static const int64_t nowhere[8] = { 0 };
    const attention a = { .mask = TRUTHS }, causal = { .causal = true };
    const message parts[] = { truths_of("low", 2, SHAPE(2, 2), low, 4),
                              truths_of("true", 0, NULL, low, 1),
                              floats_of("nine", 0, NULL, (const float[]){ 9 }, 1),
                              floats_of("twos", 2, SHAPE(2, 2), (const float[]){ 2, 0, 2, 2 }, 4),
                              list_of("small", SHAPE(2, 2), 2),
                              list_of("large", SHAPE(64, 65), 2),
                              list_of("zeros", SHAPE(0, 0), 2),
                              list_of("nowhere", nowhere, 8) };
    message g = { .size = 0 }, rest = attention_of(&a), node, one = truths_of("", 1, SHAPE(1), low, 1);
    const char *const names[] = { "m0", "m1", "m2", "m3" };

    for (int i = 0; masks[_i][i].op; i++) {
        const char *const op = masks[_i][i].op, *inputs[5] = { NULL };
        const char *const outputs[] = { masks[_i][i + 1].op ? names[i] : "mask",
                                        strcmp(op, "Split") == 0 ? "other" : NULL, NULL };

        for (int k = 0; k < 4 && masks[_i][i].inputs[k]; k++)
            inputs[k] = *masks[_i][i].inputs[k] == '*' ? names[i - 1] : masks[_i][i].inputs[k];
        node = node_of(op, strcmp(op, "Constant") == 0 ? NAMES(NULL) : inputs, outputs);
        if (strcmp(op, "Constant") == 0)
            put_tensor_attribute(&node, "value", &parts[strcmp(inputs[0], "true") == 0]);
        if (strcmp(op, "ConstantOfShape") == 0)
            put_tensor_attribute(&node, "value", &one);
        if (strcmp(op, "Trilu") == 0)
            put_whole(&node, "upper", 0);
        if (strcmp(op, "Cast") == 0)
            put_whole(&node, "to", BOOL);
        if (strcmp(op, "Split") == 0)
            put_whole(&node, "axis", 1);
        put_message(&g, 1, &node);
    }
    memcpy(g.bytes + g.size, rest.bytes, rest.size);
    g.size += rest.size;
    for (int i = 0; i < COUNT(parts); i++)
        put_message(&g, 5, &parts[i]);
    assert_attends(&g, &causal);
}
END_TEST

START_TEST(what_attention_has_no_part_for_is_refused)
{
    message g = { .size = 0 }, node = node_of("Attention", NAMES("x", "x", "x"), NAMES("y"));
    cek_model *model;

    put_whole(&node, "left_window_size", 3);
    put_message(&g, 1, &node);
    ends_put(&g, 4, SHAPE(0, 1, 2, 2));
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED, "Attention y", "left_window_size");
}
END_TEST

/* Of x [2,3,N] the numbers of each head. */
START_TEST(heads_of_a_width_that_counts_samples_are_refused)
{
    message g = { .size = 0 }, node = node_of("Attention", NAMES("x", "x", "x"), NAMES("y"));
    cek_model *model;

    put_whole(&node, "q_num_heads", 1);
    put_whole(&node, "kv_num_heads", 1);
    put_message(&g, 1, &node);
    ends_put(&g, 3, SHAPE(2, 3, 0));
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED, "Attention y",
                 "axis 2 counts samples");
}
END_TEST

/* Of x [2,N,3]: which of them come later is not known by their places. */
START_TEST(causal_steps_that_count_samples_are_refused)
{
    message g = { .size = 0 }, node = node_of("Attention", NAMES("x", "w", "w"), NAMES("y")), part;
    cek_model *model;

    put_whole(&node, "q_num_heads", 1);
    put_whole(&node, "kv_num_heads", 1);
    put_whole(&node, "is_causal", 1);
    put_message(&g, 1, &node);
    part = floats_of("w", 3, SHAPE(2, 1, 3), (const float[]){ 1, 2, 3, 4, 5, 6 }, 6);
    put_message(&g, 5, &part);
    ends_put(&g, 3, SHAPE(2, 0, 3));
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED, "Attention y",
                 "steps that count samples");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("onnx_attend");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_loop_test(all, attention_is_that_of_the_formula, 0, COUNT(attentions));
    tcase_add_loop_test(all, a_mask_of_truths_is_one_whatever_gives_it, 0, COUNT(masks));
    tcase_add_test(all, what_attention_has_no_part_for_is_refused);
    tcase_add_test(all, heads_of_a_width_that_counts_samples_are_refused);
    tcase_add_test(all, causal_steps_that_count_samples_are_refused);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
