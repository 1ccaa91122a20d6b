/* base.c - tests of core/base: statuses, memory, options, random numbers, SHA-256, log. Files: base_files.c. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#include "core/base/alloc.h"
#include "core/base/fault.h"
#include "core/base/log.h"
#include "core/base/options.h"
#include "core/base/random.h"
#include "core/base/sha256.h"
#include "core/base/thread.h"
#include "scratch.h"

/* ---- status ---- */

START_TEST(failure_text_names_what_it_was_given_and_context_comes_first)
{
    ck_assert_uint_eq(cek__fail(CEK_BAD_INPUT, "file %d", 7), CEK_BAD_INPUT);
    ck_assert_str_eq(cek_error_text(), "file 7");
    ck_assert_uint_eq(cek__fail_prefix(CEK_BAD_INPUT, "loading %s", "x"), CEK_BAD_INPUT);
    ck_assert_str_eq(cek_error_text(), "loading x: file 7");
    cek__fail(CEK_IO, "again: %s", cek_error_text()); /* an argument inside the thread's own buffer */
    ck_assert_str_eq(cek_error_text(), "again: loading x: file 7");
    cek__fail_errno(CEK_IO, ENOSPC, "disk");
    ck_assert_str_eq(cek_error_text(), "disk: No space left on device");
}
END_TEST

START_TEST(long_text_is_cut_and_says_so)
{
    char text[3000];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    cek__fail(CEK_IO, "%s", text);
    ck_assert_uint_eq(strlen(cek_error_text()), CEK__ERROR_TEXT_MAX - 1);
    ck_assert_str_eq(cek_error_text() + CEK__ERROR_TEXT_MAX - 4, "...");
}
END_TEST

/* ---- text ---- */

static const struct {
    const char *given, *printable;
} texts[] = {
    { "", "" },
    { "plain ~ text", "plain ~ text" },
    { "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80", "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80" },
    { "two\nlines\tand\rmore", "two lines and more" },
    { "\x1b[31mred\x7f", "?[31mred?" },
    { "a\xc2\x9b"
      "b\xc2\x85"
      "c",
      "a?b c" }, /* C1: control sequence introducer, next line */
    { "a\xe2\x80\xa8"
      "b\xe2\x80\xae"
      "c",
      "a b?c" }, /* line separator, right-to-left override */
    { "\xff"
      "a\x9b"
      "b\xc3",
      "?a?b?" },                                                            /* no character begins so, or ends so */
    { "\xc0\xaf|\xe0\x80\xaf|\xed\xa0\x80|\xf4\x90\x80\x80|", "?|?|?|?|" }, /* too long, surrogate, too far */
    { "\xe2\x82"
      "euro\xf0\x9f",
      "?euro?" },
};

START_TEST(foreign_text_becomes_one_line_that_steers_no_terminal)
{
    char text[64];

    strcpy(text, texts[_i].given);
    cek_text_printable(text);
    ck_assert_str_eq(text, texts[_i].printable);
    cek_text_printable(text);
    ck_assert_str_eq(text, texts[_i].printable);
    cek__fail(CEK_IO, "[%s]", texts[_i].given);
    ck_assert_int_eq(strncmp(cek_error_text() + 1, texts[_i].printable, strlen(texts[_i].printable)), 0);
    ck_assert_uint_eq(strlen(cek_error_text()), strlen(texts[_i].printable) + 2);
}
END_TEST

START_TEST(a_long_text_is_cut_between_characters)
{
    for (int shift = 0; shift < 4; shift++) {
        char text[2 * CEK__ERROR_TEXT_MAX + 8] = "xxxx";
        const char *cut = cek_error_text();
        size_t length;

        for (int i = 0; i < CEK__ERROR_TEXT_MAX; i++)
            memcpy(text + shift + 2 * i, "\xc3\xa9", 3);
        cek__fail(CEK_IO, "%s", text);
        length = strlen(cut);
        ck_assert_uint_ge(length, CEK__ERROR_TEXT_MAX - 4);
        ck_assert_str_eq(cut + length - 5, "\xc3\xa9...");
        ck_assert_ptr_null(strchr(cut, '?'));
    }
}
END_TEST

static void *thread_fails(void *other)
{
    ck_assert_str_eq(cek_error_text(), "");
    cek__fail(CEK_IO, "of the thread");
    return other;
}

START_TEST(text_belongs_to_its_thread)
{
    pthread_t thread;

    cek__fail(CEK_IO, "mine");
    ck_assert_int_eq(pthread_create(&thread, NULL, thread_fails, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert_str_eq(cek_error_text(), "mine");
}
END_TEST

START_TEST(statuses_have_distinct_names)
{
    static const cek_status known[] = {
        CEK_OK,          CEK_INVALID,   CEK_UNSUPPORTED, CEK_UNAVAILABLE, CEK_OUT_OF_MEMORY,
        CEK_DEVICE_LOST, CEK_TIMEOUT,   CEK_NOT_READY,   CEK_INTERNAL,    CEK_BAD_INPUT,
        CEK_IO,          CEK_NOT_FOUND, CEK_CANCELLED,   CEK_NO_DEVICE,   CEK_BAD_PLUGIN,
        CEK_NOT_FINITE
    };
    size_t count = sizeof known / sizeof *known;

    for (size_t i = 0; i < count; i++) {
        ck_assert_str_ne(cek_status_name(known[i]), "unknown");
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(cek_status_name(known[i]), cek_status_name(known[j]));
    }
    ck_assert_str_eq(cek_status_name(CEK_OUT_OF_MEMORY), "out_of_memory");
    ck_assert_str_eq(cek_status_name(12345), "unknown");
}
END_TEST

/* ---- memory ---- */

START_TEST(overflowing_sizes_are_out_of_memory)
{
    double *p = (double *)&p;
    char *grown = NULL;

    assert_fails(cek__calloc(SIZE_MAX / 4, 8, &p), CEK_OUT_OF_MEMORY, "8 bytes", "out of host memory");
    ck_assert_ptr_null(p);
    assert_fails(cek__alloc_array(SIZE_MAX, SIZE_MAX, &p), CEK_OUT_OF_MEMORY, "items", "out of host memory");
    assert_ok(cek__malloc(10, &grown));
    char *before = grown;
    assert_fails(cek__realloc_array(SIZE_MAX / 2, 4, &grown), CEK_OUT_OF_MEMORY, "4 bytes", "out of host memory");
    ck_assert_ptr_eq(grown, before);
    free(grown);
}
END_TEST

START_TEST(memory_is_what_was_asked_for)
{
    char *text, *zero;
    void *aligned;

    assert_ok(cek__calloc(0, 4, &zero));
    ck_assert_ptr_nonnull(zero);
    assert_ok(cek__strndup("shape", 3, &text));
    ck_assert_str_eq(text, "sha");
    assert_ok(cek__alloc_aligned(256, 1, &aligned));
    ck_assert_uint_eq((uintptr_t)aligned % 256, 0);
    free(text);
    assert_ok(cek__asprintf(&text, "%s-%d", "a", 1));
    ck_assert_str_eq(text, "a-1");
    free(text);
    free(zero);
    free(aligned);
}
END_TEST

START_TEST(the_nth_allocation_fails_once)
{
    char *p;

    cek__fault_set(CEK__FAULT_ALLOC, 2);
    assert_ok(cek__malloc(1, &p));
    free(p);
    ck_assert(cek__fault_pending(CEK__FAULT_ALLOC));
    assert_fails(cek__strdup("x", &p), CEK_OUT_OF_MEMORY, "2 bytes", "out of host memory");
    ck_assert_ptr_null(p);
    ck_assert(!cek__fault_pending(CEK__FAULT_ALLOC));
    assert_ok(cek__strdup("x", &p));
    free(p);
}
END_TEST

/* ---- options ---- */

START_TEST(whole_numbers_are_read_whole_or_refused)
{
    int64_t value = -1;
    static const char *const bad[] = { "", " 1", "1 ", "1x", "0x10", "1.0", "--1", "+", "9223372036854775808" };

    assert_ok(cek__parse_int("--batch", "64", 1, 100, &value));
    ck_assert_int_eq(value, 64);
    assert_ok(cek__parse_int("--seed", "-3", INT64_MIN, INT64_MAX, &value));
    ck_assert_int_eq(value, -3);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(cek__parse_int("--batch", bad[i], 1, 100, &value), CEK_INVALID, "--batch", "not a whole number");
    assert_fails(cek__parse_int("--batch", "101", 1, 100, &value), CEK_INVALID, "--batch", "out of range");
    ck_assert_int_eq(value, -3); /* arguments unchanged on error */
}
END_TEST

START_TEST(lists_are_walked_item_by_item_and_empty_ones_are_seen)
{
    const char *cursor = "64,,32", *item;
    size_t length;

    ck_assert(cek__list_next(&cursor, &item, &length) && length == 2 && strncmp(item, "64", 2) == 0);
    ck_assert(cek__list_next(&cursor, &item, &length) && length == 0);
    ck_assert(cek__list_next(&cursor, &item, &length) && length == 2 && strncmp(item, "32", 2) == 0);
    ck_assert(!cek__list_next(&cursor, &item, &length));
    cursor = "64,";
    ck_assert(cek__list_next(&cursor, &item, &length) && length == 2);
    ck_assert(cek__list_next(&cursor, &item, &length) && length == 0);
    ck_assert(!cek__list_next(&cursor, &item, &length));
}
END_TEST

START_TEST(decimals_are_finite_and_have_a_point)
{
    double number;
    static const char *const bad[] = { "", "nan", "inf", "1e999", "0x1p3", "1,5", "1.5.2", " 1" };

    assert_ok(cek__parse_double("--lr", "1e-3", 0, 1, &number));
    ck_assert_double_eq(number, 1e-3);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(cek__parse_double("--lr", bad[i], 0, 1, &number), CEK_INVALID, "--lr", "finite number");
    assert_fails(cek__parse_double("--lr", "2", 0, 1, &number), CEK_INVALID, "--lr", "out of range");
}
END_TEST

START_TEST(an_empty_variable_counts_as_unset)
{
    unsetenv("CEKERNELS_TEST_N");
    ck_assert_ptr_null(cek__env("CEKERNELS_TEST_N"));
    setenv("CEKERNELS_TEST_N", "", 1);
    ck_assert_ptr_null(cek__env("CEKERNELS_TEST_N"));
    setenv("CEKERNELS_TEST_N", "7", 1);
    ck_assert_str_eq(cek__env("CEKERNELS_TEST_N"), "7");
}
END_TEST

/* ---- random ---- */

START_TEST(philox_gives_the_published_vectors) /* kat_vectors of Random123, philox4x32 with 10 rounds */
{
    static const uint32_t vectors[][10] = {
        { 0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 },
        { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
          0x6d5451fd },
        { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420,
          0x24126ea1 },
    };
    uint32_t out[4];

    for (size_t i = 0; i < 3; i++) {
        cek__philox4x32_10(vectors[i], vectors[i] + 4, out);
        ck_assert_mem_eq(out, vectors[i] + 6, sizeof out);
    }
    /* The documented counter layout: stream and key words, and which word of the block an index means. */
    uint64_t key = 0x299f31d0a4093822u, stream = 0x0370734413198a2eu, index = 0x05a308d3243f6a88u * 4 + 2;
    uint32_t counter[4] = { 0x243f6a88, 0x05a308d3, 0x13198a2e, 0x03707344 };

    cek__philox4x32_10(counter, vectors[2] + 4, out);
    ck_assert_uint_eq(cek__random_u32(key, stream, index), out[2]);
}
END_TEST

START_TEST(uniform_numbers_have_their_moments)
{
    enum { N = 200000 };
    double sum = 0, squares = 0, pairs = 0;

    for (int i = 0; i < N; i++) {
        float u = cek__random_uniform(1, 2, (uint64_t)i);

        ck_assert(u >= 0.0f && u < 1.0f);
        sum += u;
        squares += u * u;
        if (i % 2)
            pairs += (u - 0.5) * (cek__random_uniform(1, 2, (uint64_t)i - 1) - 0.5);
    }
    /* Five standard errors: the variance of u is 1/12, of u^2 4/45, of a product of two that are centred 1/144. */
    ck_assert_double_le(fabs(sum / N - 0.5), 5 * sqrt(1.0 / 12 / N));
    ck_assert_double_le(fabs(squares / N - 1.0 / 3), 5 * sqrt(4.0 / 45 / N));
    ck_assert_double_le(fabs(pairs / (N / 2)), 5 * sqrt(1.0 / 144 / (N / 2)));
}
END_TEST

START_TEST(filled_ranges_equal_single_numbers)
{
    float out[37];

    for (uint64_t first = 0; first < 6; first++) {
        cek__random_fill_uniform(9, 8, first, 37, -2.0f, 3.0f, out);
        for (uint64_t i = 0; i < 37; i++)
            ck_assert_float_eq(out[i], -2.0f + 5.0f * cek__random_uniform(9, 8, first + i));
    }
}
END_TEST

START_TEST(permutations_are_complete_and_differ_by_key_and_stream)
{
    enum { N = 1000 };
    int64_t a[N], b[N], c[N];
    char seen[N] = { 0 };
    int fixed = 0;

    cek__random_permutation(1, cek__stream(CEK__STREAM_PERMUTATION, 0), N, a);
    cek__random_permutation(1, cek__stream(CEK__STREAM_PERMUTATION, 0), N, b);
    ck_assert_mem_eq(a, b, sizeof a);
    cek__random_permutation(1, cek__stream(CEK__STREAM_PERMUTATION, 1), N, b);
    cek__random_permutation(2, cek__stream(CEK__STREAM_PERMUTATION, 0), N, c);
    ck_assert_mem_ne(a, b, sizeof a);
    ck_assert_mem_ne(a, c, sizeof a);
    for (int i = 0; i < N; i++) {
        ck_assert(a[i] >= 0 && a[i] < N && !seen[a[i]]);
        seen[a[i]] = 1;
        fixed += a[i] == i;
    }
    ck_assert_int_le(fixed, 10); /* Poisson with mean 1 */
}
END_TEST

START_TEST(every_permutation_is_equally_likely)
{
    enum { N = 24000 };
    int count[6] = { 0 };
    double chi = 0;

    for (uint64_t key = 0; key < N; key++) {
        int64_t p[3];

        cek__random_permutation(key, 0, 3, p);
        count[p[0] * 2 + (p[1] > p[2])]++;
    }
    for (int i = 0; i < 6; i++)
        chi += (count[i] - N / 6.0) * (count[i] - N / 6.0) / (N / 6.0);
    ck_assert_double_lt(chi, 20.5); /* 0.999 quantile, 5 degrees of freedom */
}
END_TEST

/* ---- SHA-256: examples of FIPS 180-4 and NIST's long message ---- */

START_TEST(sha256_gives_the_published_digests)
{
    static const struct {
        const char *text, *hex;
    } vectors[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    };
    char *million, hex[65];
    uint8_t digest[32];
    cek__sha256 hash;

    for (size_t i = 0; i < 3; i++) {
        cek__sha256_init(&hash);
        for (const char *c = vectors[i].text; *c; c++) /* byte by byte: every position in a block */
            cek__sha256_update(&hash, c, 1);
        cek__sha256_final(&hash, digest);
        cek__sha256_hex(digest, hex);
        ck_assert_str_eq(hex, vectors[i].hex);
    }
    assert_ok(cek__malloc(1000000, &million));
    memset(million, 'a', 1000000);
    cek__sha256_init(&hash);
    cek__sha256_update(&hash, million, 77);
    cek__sha256_update(&hash, million, 1000000 - 77);
    cek__sha256_final(&hash, digest);
    cek__sha256_hex(digest, hex);
    ck_assert_str_eq(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}
END_TEST

/* ---- log ---- */

static void log_keep(void *user, int level, const char *text)
{
    snprintf(user, 100, "%d %s", level, text);
}

START_TEST(log_passes_what_its_level_allows)
{
    char line[100] = "";

    cek__log(CEK_LOG_ERROR, "nobody listens");
    cek_log_set(log_keep, line, CEK_LOG_WARN);
    cek__log(CEK_LOG_INFO, "too fine");
    ck_assert_str_eq(line, "");
    cek__log(CEK_LOG_WARN, "n = %d", 3);
    ck_assert_str_eq(line, "2 n = 3");
    cek__log(CEK_LOG_WARN, "%s = 4", "a\x1b\nb");
    ck_assert_str_eq(line, "2 a? b = 4");
    cek_log_set(NULL, NULL, CEK_LOG_DEBUG);
    cek__log(CEK_LOG_ERROR, "nobody listens any more");
    ck_assert_str_eq(line, "2 a? b = 4");
}
END_TEST

/* ---- threads ---- */

typedef struct sight {
    size_t stack;
    int blocked; /* signals */
} sight;

static void *thread_looks(void *arg)
{
    sight *seen = arg;
    pthread_attr_t attributes;
    sigset_t mask;

    ck_assert_int_eq(pthread_getattr_np(pthread_self(), &attributes), 0);
    pthread_attr_getstacksize(&attributes, &seen->stack);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    seen->blocked = sigismember(&mask, SIGINT) + sigismember(&mask, SIGTERM) + sigismember(&mask, SIGALRM);
    return NULL;
}

static sight thread_seen(void)
{
    pthread_t thread;
    sight seen = { 0 };

    ck_assert_int_eq(cek__thread_start(&thread, thread_looks, &seen), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    return seen;
}

/* ulimit -s sets what pthread_setattr_default_np does. */
START_TEST(threads_take_no_signals_and_have_a_stack_whatever_the_limit)
{
    const size_t limits[] = { 256 << 10, 16 << 20 }; /* no less than 128 KiB on 64-bit ARM */
    pthread_attr_t attributes;
    sigset_t mask;

    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_attr_init(&attributes), 0);
        ck_assert_int_eq(pthread_attr_setstacksize(&attributes, limits[i]), 0);
        ck_assert_int_eq(pthread_setattr_default_np(&attributes), 0);
        pthread_attr_destroy(&attributes);
        sight seen = thread_seen();
        ck_assert_uint_ge(seen.stack, i == 0 ? 8 << 20 : 16 << 20);
        ck_assert_int_eq(seen.blocked, 3);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    ck_assert_int_eq(sigismember(&mask, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base");
    TCase *tc = tcase_create("base");

    tcase_add_test(tc, failure_text_names_what_it_was_given_and_context_comes_first);
    tcase_add_test(tc, long_text_is_cut_and_says_so);
    tcase_add_loop_test(tc, foreign_text_becomes_one_line_that_steers_no_terminal, 0, sizeof texts / sizeof *texts);
    tcase_add_test(tc, a_long_text_is_cut_between_characters);
    tcase_add_test(tc, text_belongs_to_its_thread);
    tcase_add_test(tc, statuses_have_distinct_names);
    tcase_add_test(tc, overflowing_sizes_are_out_of_memory);
    tcase_add_test(tc, memory_is_what_was_asked_for);
    tcase_add_test(tc, the_nth_allocation_fails_once);
    tcase_add_test(tc, whole_numbers_are_read_whole_or_refused);
    tcase_add_test(tc, lists_are_walked_item_by_item_and_empty_ones_are_seen);
    tcase_add_test(tc, decimals_are_finite_and_have_a_point);
    tcase_add_test(tc, an_empty_variable_counts_as_unset);
    tcase_add_test(tc, philox_gives_the_published_vectors);
    tcase_add_test(tc, uniform_numbers_have_their_moments);
    tcase_add_test(tc, filled_ranges_equal_single_numbers);
    tcase_add_test(tc, permutations_are_complete_and_differ_by_key_and_stream);
    tcase_add_test(tc, every_permutation_is_equally_likely);
    tcase_add_test(tc, sha256_gives_the_published_digests);
    tcase_add_test(tc, log_passes_what_its_level_allows);
    tcase_add_test(tc, threads_take_no_signals_and_have_a_stack_whatever_the_limit);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
