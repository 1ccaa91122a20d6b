/* picture.c - tests of bench/picture: samples are where they should be, in their own colours, and captions say
 * who was right. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/picture.h"
#include "tests/suite.h"

enum { GAP = 4, CAPTION = 14, WIDTH = 80 };

static bool is(const picture *p, int64_t x, int64_t y, int r, int g, int b)
{
    const uint8_t *at = p->pixels + 3 * (y * p->width + x);
    return at[0] == r && at[1] == g && at[2] == b;
}

/* Pixels of a colour below sample (column, row), each of this width and height. */
static int dots(const picture *p, int column, int row, int64_t width, int64_t height, int r, int g, int b)
{
    int count = 0;
    for (int64_t y = 0; y < CAPTION; y++)
        for (int64_t x = 0; x < width; x++)
            count += is(p, GAP + column * (width + GAP) + x, GAP + row * (height + CAPTION + GAP) + height + y, r, g,
                        b);
    return count;
}

START_TEST(a_right_answer_is_green_and_a_wrong_one_red_beside_the_class)
{
    const uint8_t pixels[3] = { 0, 128, 255 };
    const int32_t labels[3] = { 1, 0, 10 };
    float probabilities[3][11] = { { 0.2f, 0.7f }, { 0.2f, 0.7f }, { [10] = 1 } };
    const picture_samples s = { .count = 3,
                                .type = CEK_U8,
                                .height = 1,
                                .width = 1,
                                .channels = 1,
                                .pixels = pixels,
                                .labels = labels,
                                .classes = 11,
                                .probabilities = probabilities[0] };
    picture p;
    ck_assert(picture_draw(&s, &p));
    ck_assert_int_eq(p.width, 3 * (WIDTH + GAP) + GAP);
    ck_assert_int_eq(p.height, GAP + WIDTH + CAPTION + GAP);
    for (int i = 0; i < 3; i++) {
        const int grey = pixels[i];
        ck_assert(is(&p, GAP + i * (WIDTH + GAP), GAP, grey, grey, grey));
        ck_assert(is(&p, GAP + i * (WIDTH + GAP) + WIDTH - 1, GAP + WIDTH - 1, grey, grey, grey));
    }
    /* "1 70%": 8, 7, 11 and 7 dots of four pixels */
    ck_assert_int_eq(dots(&p, 0, 0, WIDTH, WIDTH, 80, 200, 80), 4 * (8 + 7 + 12 + 7));
    ck_assert_int_eq(dots(&p, 0, 0, WIDTH, WIDTH, 230, 230, 230), 0);
    ck_assert_int_eq(dots(&p, 1, 0, WIDTH, WIDTH, 240, 80, 70), 4 * (8 + 7 + 12 + 7));
    ck_assert_int_eq(dots(&p, 1, 0, WIDTH, WIDTH, 230, 230, 230), 4 * 12);                       /* "0" */
    ck_assert_int_eq(dots(&p, 2, 0, WIDTH, WIDTH, 80, 200, 80), 4 * (8 + 12 + 8 + 12 + 12 + 7)); /* "10 100%" */
    free(p.pixels);
}
END_TEST

START_TEST(samples_stand_in_rows_of_four_in_their_own_colours)
{
    enum { HEIGHT = 60, LARGE = 512 }; /* half of it is shown */
    static uint8_t pixels[6][HEIGHT][LARGE][3];
    const int32_t labels[6] = { 0 };
    const float probabilities[6] = { 1, 1, 1, 1, 1, 1 };
    const picture_samples s = { .count = 6,
                                .type = CEK_U8,
                                .height = HEIGHT,
                                .width = LARGE,
                                .channels = 3,
                                .pixels = pixels,
                                .labels = labels,
                                .classes = 1,
                                .probabilities = probabilities };
    picture p;
    for (int i = 0; i < 6; i++)
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < LARGE; x++)
                memcpy(pixels[i][y][x], (uint8_t[]){ (uint8_t)(40 * i), (uint8_t)(x / 2), (uint8_t)(y / 2) }, 3);
    ck_assert(picture_draw(&s, &p));
    ck_assert_int_eq(p.width, 4 * (256 + GAP) + GAP);
    ck_assert_int_eq(p.height, 2 * (30 + CAPTION + GAP) + GAP);
    for (int i = 0; i < 6; i++)
        for (int y = 0; y < 30; y++)
            for (int x = 0; x < 256; x++)
                ck_assert(is(&p, GAP + i % 4 * (256 + GAP) + x, GAP + i / 4 * (30 + CAPTION + GAP) + y, 40 * i, x, y));
    free(p.pixels);
}
END_TEST

START_TEST(real_numbers_go_from_black_to_white_and_what_is_none_is_black)
{
    const float pixels[8] = { -3, 1, -1, 0, 7, 7, 7, 7 };
    const int32_t labels[2] = { 0 };
    const float probabilities[2] = { 1, 1 };
    picture_samples s = { .count = 2,
                          .type = CEK_F32,
                          .height = 1,
                          .width = 4,
                          .channels = 1,
                          .pixels = pixels,
                          .labels = labels,
                          .classes = 1,
                          .probabilities = probabilities };
    const float broken[4] = { -1, NAN, 1, NAN };
    picture p;
    ck_assert(picture_draw(&s, &p));
    for (int i = 0; i < 4; i++) {
        const int grey = (int[]){ 0, 255, 128, 191 }[i];
        ck_assert(is(&p, GAP + 20 * i, GAP, grey, grey, grey));
        ck_assert(is(&p, GAP + WIDTH + GAP + 20 * i, GAP, 0, 0, 0));
    }
    free(p.pixels);
    s.count = 1;
    s.pixels = broken;
    ck_assert(picture_draw(&s, &p));
    for (int i = 0; i < 4; i++)
        ck_assert(is(&p, GAP + 20 * i, GAP, i == 2 ? 255 : 0, i == 2 ? 255 : 0, i == 2 ? 255 : 0));
    free(p.pixels);
}
END_TEST

/* How many dots the letters of a number, or of a per cent sign, have. */
static int letters_dots(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += *text == '%' ? 7 : *text == ' ' ? 0 : (int[]){ 12, 8, 11, 11, 9, 11, 12, 7, 13, 12 }[*text - '0'];
    return 4 * count;
}

/* A label of ten digits beside a class of five: 21 letters, where eighty pixels have room for ten. */
START_TEST(captions_of_large_numbers_are_whole_and_below_their_own_samples)
{
    enum { CLASSES = 12346, SIDE = 112, LETTERS = 5 + 1 + 4 + 1 + 10 };
    static float probabilities[2][CLASSES];
    static uint8_t pixels[2][SIDE];
    const int32_t labels[2] = { INT32_MAX, 12345 };
    const picture_samples s = { .count = 2,
                                .type = CEK_U8,
                                .height = 1,
                                .width = SIDE,
                                .channels = 1,
                                .pixels = pixels,
                                .labels = labels,
                                .classes = CLASSES,
                                .probabilities = probabilities[0] };
    picture p;
    probabilities[0][12345] = probabilities[1][12345] = 1;
    ck_assert(picture_draw(&s, &p));
    const int64_t width = (p.width - GAP) / 2 - GAP, height = p.height - CAPTION - 2 * GAP;
    ck_assert_int_ge(width, 8 * LETTERS);
    ck_assert_int_eq(width % SIDE, 0);
    ck_assert_int_eq(dots(&p, 0, 0, width, height, 240, 80, 70), letters_dots("12345 100%"));
    ck_assert_int_eq(dots(&p, 0, 0, width, height, 230, 230, 230), letters_dots("2147483647"));
    ck_assert_int_eq(dots(&p, 1, 0, width, height, 80, 200, 80), letters_dots("12345 100%"));
    ck_assert_int_eq(dots(&p, 1, 0, width, height, 240, 80, 70), 0);
    ck_assert_int_eq(dots(&p, 1, 0, width, height, 230, 230, 230), 0);
    free(p.pixels);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("picture");
    TCase *tc = tcase_create("picture");
    tcase_add_test(tc, a_right_answer_is_green_and_a_wrong_one_red_beside_the_class);
    tcase_add_test(tc, samples_stand_in_rows_of_four_in_their_own_colours);
    tcase_add_test(tc, real_numbers_go_from_black_to_white_and_what_is_none_is_black);
    tcase_add_test(tc, captions_of_large_numbers_are_whole_and_below_their_own_samples);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
