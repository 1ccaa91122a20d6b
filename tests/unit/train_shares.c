/* train_shares.c - how a batch is shared out, and the crew of
 * threads that does the work. */
#include <stdatomic.h>

#include "nn/train/crew.h"
#include "nn/train/shares.h"
#include "scratch.h"

/* ---- Shares ---------------------------------------------------------------------------------- */

static void shares_are(int64_t total, size_t count, const double *weights, const int64_t *want)
{
    int64_t got[8];
    cek__shares_split(total, count, weights, got);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(got[i] == want[i], "%lld over %zu: share %zu is %lld, not %lld", (long long)total, count, i,
                      (long long)got[i], (long long)want[i]);
}

START_TEST(equal_shares_differ_by_at_most_one_and_the_earlier_are_larger)
{
    shares_are(128, 2, NULL, (int64_t[]){ 64, 64 });
    shares_are(20, 2, NULL, (int64_t[]){ 10, 10 });
    shares_are(404, 3, NULL, (int64_t[]){ 135, 135, 134 });
    shares_are(2, 3, NULL, (int64_t[]){ 1, 1, 0 });
}
END_TEST

START_TEST(given_shares_are_in_proportion_and_add_up)
{
    shares_are(100, 3, (double[]){ 1, 2, 1 }, (int64_t[]){ 25, 50, 25 });
    shares_are(10, 3, (double[]){ 1, 1, 1 }, (int64_t[]){ 4, 3, 3 });
    shares_are(7, 3, (double[]){ 0, 1, 0 }, (int64_t[]){ 0, 7, 0 });
    for (int64_t total = 1; total < 200; total++) {
        double weights[4] = { 0.3, 0, 5.5, 1.7 };
        int64_t got[4];
        cek__shares_split(total, 4, weights, got);
        ck_assert_int_eq(got[0] + got[1] + got[2] + got[3], total);
        ck_assert_int_eq(got[1], 0);
        for (int i = 0; i < 4; i++)
            ck_assert(fabs((double)got[i] - (double)total * weights[i] / 7.5) < 1);
    }
}
END_TEST

/* ---- Crew ------------------------------------------------------------------------------------ */

static cek_status count_up(void *user, size_t member)
{
    atomic_int *seen = user;
    atomic_fetch_add(&seen[member], 1);
    return CEK_OK;
}

static cek_status second_is_lost(void *user, size_t member)
{
    (void)user;
    return member == 1 ? cek__fail(CEK_DEVICE_LOST, "member %zu fell", member) : cek__fail(CEK_CANCELLED, "gave up");
}

START_TEST(crew_runs_every_member_once_per_job)
{
    cek__crew *crew;
    atomic_int seen[3] = { 0 };
    assert_ok(cek__crew_create(NULL, 3, &crew));
    for (int job = 1; job <= 100; job++) {
        assert_ok(cek__crew_run(crew, count_up, seen));
        for (int i = 0; i < 3; i++)
            ck_assert_int_eq(atomic_load(&seen[i]), job);
    }
    cek__crew_free(crew);
}
END_TEST

START_TEST(crew_reports_the_failure_that_came_first_in_cause)
{
    cek__crew *crew;
    assert_ok(cek__crew_create(NULL, 3, &crew));
    ck_assert_uint_eq(cek__crew_run(crew, second_is_lost, NULL), CEK_DEVICE_LOST);
    ck_assert_str_eq(cek_error_text(), "member 1 fell");
    cek__crew_free(crew);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train shares");
    TCase *tc = tcase_create("train shares");

    tcase_add_test(tc, equal_shares_differ_by_at_most_one_and_the_earlier_are_larger);
    tcase_add_test(tc, given_shares_are_in_proportion_and_add_up);
    tcase_add_test(tc, crew_runs_every_member_once_per_job);
    tcase_add_test(tc, crew_reports_the_failure_that_came_first_in_cause);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
