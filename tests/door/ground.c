/* SPDX-License-Identifier: MIT
 *
 * ground.c - backends/common beneath the validation: extents and places of strided tensors, options, texts.
 */
#include "backends/common/extent.h"
#include "backends/common/fail.h"
#include "tests/door/common.h"

START_TEST(extents_and_places)
{
    const uint64_t shape[] = { 3, 4, 1 };
    const int64_t dense[] = { 4, 1, 99 }, columns[] = { 1, 3, 0 }, gaps[] = { 10, 2, 0 }, shared[] = { 4, 0, 0 },
                  meet[] = { 3, 1, 0 };
    uint64_t extent;
    ck_assert(cek__strided_extent(3, shape, gaps, &extent));
    ck_assert_uint_eq(extent, 27);
    ck_assert_uint_eq(cek__strided_places(3, shape, dense), CEK__PLACES_OWN);
    ck_assert_uint_eq(cek__strided_places(3, shape, columns), CEK__PLACES_OWN);
    ck_assert_uint_eq(cek__strided_places(3, shape, gaps), CEK__PLACES_OWN);
    ck_assert_uint_eq(cek__strided_places(3, shape, shared), CEK__PLACES_SHARED);
    ck_assert_uint_eq(cek__strided_places(3, shape, meet), CEK__PLACES_SHARED);
    uint64_t out;
    ck_assert(cek__window_out(5, 3, 2, 1, 1, 1, &out));
    ck_assert_uint_eq(out, 3);
    ck_assert(!cek__window_out(5, 3, 2, 3, 0, 0, &out));
    ck_assert(!cek__window_out(INT64_MAX, 1, 1, 1, 1, 0, &out));
    ck_assert(!cek__mul(UINT64_C(1) << 32, UINT64_C(1) << 31, &out));
    ck_assert(cek__mul(UINT64_C(1) << 32, UINT64_C(1) << 30, &out));
    ck_assert(!cek__add(INT64_MAX, 1, &out));
}
END_TEST

/* The places of small strided tensors, counted, against what is said of them. */
START_TEST(places_are_never_said_to_be_apart_when_they_are_not)
{
    int unknown = 0;
    for (int64_t code = 0; code < 6 * 6 * 6 * 4 * 4 * 4; code++) {
        int64_t c = code;
        uint64_t shape[3];
        int64_t strides[3];
        for (int i = 0; i < 3; i++, c /= 6)
            strides[i] = c % 6;
        for (int i = 0; i < 3; i++, c /= 4)
            shape[i] = (uint64_t)(c % 4) + 1;
        char used[64] = { 0 };
        bool apart = true;
        for (uint64_t i = 0; i < shape[0] * shape[1] * shape[2]; i++) {
            int64_t at = (int64_t)(i % shape[0]) * strides[0] + (int64_t)(i / shape[0] % shape[1]) * strides[1] +
                         (int64_t)(i / shape[0] / shape[1]) * strides[2];
            apart &= !used[at]++;
        }
        uint32_t said = cek__strided_places(3, shape, strides);
        unknown += said == CEK__PLACES_UNKNOWN;
        if (said != CEK__PLACES_UNKNOWN)
            ck_assert_int_eq(said == CEK__PLACES_OWN, apart);
    }
    ck_assert_int_lt(unknown, 6 * 6 * 6 * 4 * 4 * 4 / 7); /* few, even among such strides */
}
END_TEST

static const char *answer;
static const char *option(void *user, const char *key)
{
    (void)user, (void)key;
    return answer;
}

START_TEST(options_are_numbers_in_their_range)
{
    const cek_host asking = { .size = sizeof asking, .abi = CEK_ABI, .fail = failed, .option = option };
    static const char *const bad[] = { "0", "11", "-1", "1x", " 1", "1.5", "99999999999999999999", "0x2" };
    uint64_t value = 5;
    ck_assert_uint_eq(cek__host_option_number(&asking, "n", 1, 10, &value), CEK_OK);
    ck_assert_uint_eq(cek__host_option_number(NULL, "n", 1, 10, &value), CEK_OK);
    ck_assert_uint_eq(value, 5);
    answer = "10";
    ck_assert_uint_eq(cek__host_option_number(&asking, "n", 1, 10, &value), CEK_OK);
    ck_assert_uint_eq(value, 10);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        answer = bad[i];
        ck_assert_uint_eq(cek__host_option_number(&asking, "n", 1, 10, &value), CEK_INVALID);
        ck_assert(strstr(text, bad[i]) && strstr(text, "1 to 10"));
    }
    ck_assert_uint_eq(value, 10);
}
END_TEST

START_TEST(texts_end_within_their_room)
{
    char room[8];
    memset(room, 'x', sizeof room);
    cek__text_out(room, 4, "long text");
    ck_assert_str_eq(room, "lon");
    ck_assert_int_eq(room[4], 'x');
    cek__text_out(room, sizeof room, NULL);
    ck_assert_str_eq(room, "");
    cek__text_out(NULL, 9, "a");
    cek__text_out(room, 0, "a");
    ck_assert_str_eq(CEK__AMOUNT(CEK_UNKNOWN), "unknown");
    ck_assert_str_eq(CEK__AMOUNT(CEK_UNKNOWN - 1), "18446744073709551614");
    ck_assert_str_eq(room, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("backends/common");
    TCase *tc = tcase_create("ground");
    tcase_add_test(tc, extents_and_places);
    tcase_add_test(tc, places_are_never_said_to_be_apart_when_they_are_not);
    tcase_add_test(tc, options_are_numbers_in_their_range);
    tcase_add_test(tc, texts_end_within_their_room);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
