/* onnx_attend.c - tests of nn/onnx: Attention against its formula. ONNX's own cases are run by scripts/check-onnx-nodes. */
#include <math.h>

#include "onnx_nets.h"

enum { STEPS = 2, WIDTH = 2 };

/* Of one head, queries, keys and values alike: the plain formula. `seen` [query][step]; NULL: all. */
static void attend(double x[STEPS][WIDTH], const uint8_t *seen, bool causal, double cap, double y[STEPS][WIDTH])
{
    for (int t = 0; t < STEPS; t++) {
        double share[STEPS], all = 0;

        for (int s = 0; s < STEPS; s++) {
            double score = 0;

            for (int e = 0; e < WIDTH; e++)
                score += x[t][e] * x[s][e] / sqrt(WIDTH);
            score = cap != 0 ? cap * tanh(score / cap) : score;
            share[s] = (seen && !seen[t * STEPS + s]) || (causal && s > t) ? 0 : exp(score);
            all += share[s];
        }
        for (int e = 0; e < WIDTH; e++) {
            y[t][e] = 0;
            for (int s = 0; s < STEPS && all > 0; s++)
                y[t][e] += share[s] / all * x[s][e];
        }
    }
}

static const struct {
    bool flat, causal, masked;
    float cap;
} attentions[] = { { 0 }, { .causal = true }, { .masked = true }, { .cap = 0.5f }, { .flat = true, .causal = true } };

/* Two samples of two heads; the first query of the mask sees nothing. */
START_TEST(attention_is_that_of_the_formula)
{
    static const uint8_t seen[STEPS * STEPS] = { 0, 0, 1, 0 };
    const bool flat = attentions[_i].flat;
    const char *const names[] = { "x", "x", "x", attentions[_i].masked ? "seen" : NULL, NULL };
    message g = { .size = 0 }, node = node_of("Attention", names, NAMES("y")),
            mask = tensor_of("seen", 9, 2, SHAPE(2, 2));
    float x[16], given[16], y[MOST];

    put_whole(&node, "is_causal", attentions[_i].causal);
    put_number(&node, "softcap", attentions[_i].cap);
    if (flat) {
        put_whole(&node, "q_num_heads", 2);
        put_whole(&node, "kv_num_heads", 2);
    }
    put_message(&g, 1, &node);
    put_bytes(&mask, 9, seen, sizeof seen);
    put_message(&g, 5, &mask);
    if (flat)
        ends_put(&g, 3, SHAPE(0, STEPS, 2 * WIDTH));
    else
        ends_put(&g, 4, SHAPE(0, 2, STEPS, WIDTH));
    for (int i = 0; i < 16; i++) {
        x[i] = (float)(i * 7 % 11) / 8 - 0.5f;
        given[flat ? i : i / 8 * 8 + i % 4 * 2 + i / 4 % 2] = x[i]; /* heads are channels, which come last */
    }
    ck_assert_int_eq(predicted(&g, given, 2, y), 16);
    for (int head = 0; head < 4; head++) { /* of both samples */
        double one[STEPS][WIDTH], expected[STEPS][WIDTH];
        const int first = flat ? head / 2 * 8 + head % 2 * WIDTH : head * 4, step = flat ? 2 * WIDTH : WIDTH;

        for (int i = 0; i < STEPS * WIDTH; i++)
            one[i / WIDTH][i % WIDTH] = (double)x[first + i / WIDTH * step + i % WIDTH];
        attend(one, attentions[_i].masked ? seen : NULL, attentions[_i].causal, (double)attentions[_i].cap, expected);
        for (int i = 0; i < STEPS * WIDTH; i++)
            ck_assert_double_eq_tol((double)y[first + i / WIDTH * step + i % WIDTH], expected[i / WIDTH][i % WIDTH],
                                    16 * 0x1p-24);
    }
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

int main(void)
{
    Suite *suite = suite_create("onnx_attend");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_loop_test(all, attention_is_that_of_the_formula, 0, COUNT(attentions));
    tcase_add_test(all, what_attention_has_no_part_for_is_refused);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
