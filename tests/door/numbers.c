/* SPDX-License-Identifier: MIT
 *
 * numbers.c - what all backends compute alike: Philox against its published answers, the half types bit by bit.
 */
#include <float.h>

#include "backends/common/half.h"
#include "backends/common/philox.h"
#include "tests/suite.h"

START_TEST(philox_gives_the_published_answers)
{
    static const struct {
        uint32_t counter[4], key[2], words[4];
    } known[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { ~0u, ~0u, ~0u, ~0u }, { ~0u, ~0u }, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t words[4];
        cek__philox(known[i].counter, known[i].key, words);
        ck_assert_mem_eq(words, known[i].words, sizeof words);
    }
    /* The third again, as key, stream, sample and block. */
    uint32_t words[4];
    cek__random_block(UINT64_C(0x299f31d0a4093822), 0x85a308d3, UINT64_C(0x0370734413198a2e), 0x243f6a88, words);
    ck_assert_mem_eq(words, known[2].words, sizeof words);
}
END_TEST

/* The value of a half by its definition. */
static double f16_value(uint32_t h)
{
    double sign = h & 0x8000 ? -1 : 1, fraction = (h & 0x3ff) / 1024.0;
    int exponent = h >> 10 & 31;
    return exponent == 31 ? (h & 0x3ff ? NAN : sign * INFINITY)
           : exponent     ? sign * ldexp(1 + fraction, exponent - 15)
                          : sign * ldexp(fraction, -14);
}

START_TEST(every_half_comes_back_and_what_lies_between_goes_to_the_nearest)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        double value = f16_value(h);
        float f16 = cek__f16_to_f32((uint16_t)h), bf16 = cek__bf16_to_f32((uint16_t)h);
        if (isnan(value)) {
            ck_assert(isnan(f16) && (cek__f32_to_f16(f16) & 0x7fff) > 0x7c00);
        } else {
            ck_assert_msg(f16 == value && !signbit(f16) == !signbit(value), "f16 %#x: %g", h, f16);
            ck_assert_uint_eq(cek__f32_to_f16(f16), h);
            ck_assert_uint_eq(cek__f64_to_f16(value), h);
        }
        if (isnan(bf16)) {
            ck_assert((cek__f32_to_bf16(bf16) & 0x7fff) > 0x7f80);
        } else {
            ck_assert_uint_eq(cek__f32_to_bf16(bf16), h);
            ck_assert_uint_eq(cek__f64_to_bf16(bf16), h);
        }
    }
    /* Between neighbours: the middle goes to the even one, a touch to either side to that side. */
    for (uint32_t h = 0; h < 0x7bff; h++) {
        double low = f16_value(h), middle = (low + f16_value(h + 1)) / 2;
        uint32_t even = h + (h & 1);
        ck_assert_uint_eq(cek__f32_to_f16((float)middle), even);
        ck_assert_uint_eq(cek__f64_to_f16(middle), even);
        ck_assert_uint_eq(cek__f64_to_f16(nextafter(middle, 0)), h);
        ck_assert_uint_eq(cek__f64_to_f16(-nextafter(middle, INFINITY)), 0x8000 | (h + 1));
    }
    for (uint32_t h = 0; h < 0x7f7f; h++) {
        double low = cek__bf16_to_f32((uint16_t)h), middle = (low + cek__bf16_to_f32((uint16_t)(h + 1))) / 2;
        uint32_t even = h + (h & 1);
        ck_assert_uint_eq(cek__f32_to_bf16((float)middle), even);
        ck_assert_uint_eq(cek__f64_to_bf16(middle), even);
        ck_assert_uint_eq(cek__f64_to_bf16(nextafter(middle, 0)), h);
        ck_assert_uint_eq(cek__f64_to_bf16(-nextafter(middle, INFINITY)), 0x8000 | (h + 1));
    }
}
END_TEST

START_TEST(halves_overflow_to_infinity_and_keep_nan)
{
    ck_assert_uint_eq(cek__f32_to_f16(65519.996f), 0x7bff);
    ck_assert_uint_eq(cek__f32_to_f16(65520), 0x7c00);
    ck_assert_uint_eq(cek__f64_to_f16(-1e300), 0xfc00);
    ck_assert_uint_eq(cek__f64_to_bf16(1e300), 0x7f80);
    ck_assert_uint_eq(cek__f32_to_bf16(FLT_MAX), 0x7f80);
    ck_assert_uint_eq(cek__f64_to_f16(DBL_MIN), 0);
    ck_assert_uint_eq(cek__f64_to_bf16(-DBL_MIN), 0x8000);
    /* A payload in the lower half alone. */
    const float low_payload = cek__bits_float(0x7f800001);
    ck_assert(isnan(low_payload));
    ck_assert_uint_gt(cek__f32_to_bf16(low_payload) & 0x7fff, 0x7f80);
    ck_assert_uint_gt(cek__f32_to_f16(low_payload) & 0x7fff, 0x7c00);
    ck_assert_uint_gt(cek__f64_to_f16(NAN) & 0x7fff, 0x7c00);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("numbers");
    TCase *cases = tcase_create("numbers");
    tcase_add_test(cases, philox_gives_the_published_answers);
    tcase_add_test(cases, every_half_comes_back_and_what_lies_between_goes_to_the_nearest);
    tcase_add_test(cases, halves_overflow_to_infinity_and_keep_nan);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
