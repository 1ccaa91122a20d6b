/* train_races.c - no wait between queues is missing: on devices that do their work when its time has passed, in whatever order their
 * engines and links bring about, training several steps deep gives the bits of devices that do it at once. */
#include <stdio.h>

#include "train_bench.h"

/* Three buckets, cut forward; a step's random numbers and its place in Adam's averages show in every other step. */
#define LARGE_NET "flatten linear:1024 relu dropout:0.3 linear:1024 relu dropout:0.3 linear:1100 relu linear:5"
enum { STEPS = 6, DEPTH = 3 };

static const struct {
    const char *sims, *shared, *list;
} fleets[] = {
    { "1", "1", "sim" },
    { "3", "1", "sim" },     /* each pulls from the others */
    { "3", "0", "sim" },     /* through places in host memory */
    { "1", "1", "cpu,sim" }, /* an inline owner among them */
    { "2", "0", "cpu,sim:0,sim:1" },
};
enum { FLEETS = sizeof fleets / sizeof *fleets };

/* What is late: computation, or, with the phase between gather and update, the link. */
static const struct {
    const char *flops, *link;
    double max_norm;
} speeds[] = { { "20G", "100G", 0 }, { "100T", "300M", 0.1 } };
enum { SPEEDS = sizeof speeds / sizeof *speeds };

static void train(const char *net, double max_norm, int fleet, char sha256[65])
{
    static const int64_t samples[] = { SAMPLES, 61, SAMPLES, 2 };
    cek_trainer_options o = options_small();
    bench b;

    o.depth = DEPTH;
    o.max_norm = max_norm;
    bench_engine(&b, "1", fleets[fleet].list);
    cek_model_free(b.model);
    ok(cek_model_parse(net, 3, (int64_t[]){ 1, SIDE, SIDE }, &b.model));
    cek_model_init(b.model, 3);
    ok(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer));
    for (int submitted = 0, collected = 0; collected < STEPS; collected++) {
        for (; submitted < STEPS && submitted < collected + DEPTH; submitted++) {
            cek_batch batch = batch_of(0, samples[submitted % 4]);
            ok(cek_trainer_submit(b.trainer, &batch));
        }
        ok(cek_trainer_collect(b.trainer, NULL));
    }
    replicas_are_equal(&b);
    ok(cek_trainer_pull(b.trainer));
    cek_model_sha256(b.model, sha256);
    bench_close(&b);
}

START_TEST(late_work_changes_no_bit)
{
    static const char *const nets[] = { NET, LARGE_NET };
    char at_once[65], late[65];
    int fleet = _i % FLEETS;
    const char *net = nets[_i / FLEETS];

    setenv("CEKERNELS_SIM_DEVICES", fleets[fleet].sims, 1);
    setenv("CEKERNELS_SIM_SHARED", fleets[fleet].shared, 1);
    for (int s = 0; s < SPEEDS; s++) {
        unsetenv("CEKERNELS_SIM_WORK");
        unsetenv("CEKERNELS_SIM_FLOPS");
        unsetenv("CEKERNELS_SIM_LINK");
        train(net, speeds[s].max_norm, fleet, at_once);
        setenv("CEKERNELS_SIM_WORK", "late", 1);
        setenv("CEKERNELS_SIM_FLOPS", speeds[s].flops, 1);
        setenv("CEKERNELS_SIM_LINK", speeds[s].link, 1);
        train(net, speeds[s].max_norm, fleet, late);
        ck_assert_msg(strcmp(at_once, late) == 0, "%s, %s operations and %s bytes a second: other weights",
                      fleets[fleet].list, speeds[s].flops, speeds[s].link);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_races");
    TCase *tc = tcase_create("train_races");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, late_work_changes_no_bit, 0, 2 * FLEETS);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
