/* train_races.c - no wait between queues is missing: on devices that do their work when its time has passed, in
 * whatever order their engines and links bring about, training several steps deep gives the bits of devices that do
 * it at once. */
#include <stdio.h>

#include "nn/train/trainer.h"
#include "train_bench.h"

/* Three buckets, cut forward; a step's random numbers and its place in Adam's averages show in every other step. */
#define LARGE_NET "flatten linear:1024 relu dropout:0.3 linear:1024 relu dropout:0.3 linear:1100 relu linear:5"
/* What forward reads first is a bucket by itself that the first of two devices owns, the last of three; behind it wait
 * more shards of each owner than may be on their way from one device. */
#define WIDE_NET "flatten linear:256 relu linear:4096 relu linear:1024 relu linear:5"
enum { DEPTH = 3 };

static const struct {
    const char *sims, *shared, *list;
} fleets[] = {
    { "1", "1", "sim" },
    { "4", "1", "sim" },     /* each pulls from the others */
    { "4", "0", "sim" },     /* through places in host memory */
    { "1", "1", "cpu,sim" }, /* an inline owner among them */
    { "2", "0", "cpu,sim:0,sim:1" },
    { "2", "0", "cpu,sim:0" }, /* and it owns what forward of WIDE_NET reads first */
    { "2", "0", "sim:0,sim:1,cpu" },
    { "2", "0", "sim" }, /* of unequal links */
};
enum { CPU_SIM = 3, FLEETS = 5 };

/* What is late: computation; with the phase between gather and update, the link; samples and their labels, which come
 * when all that does not need them has been computed. Then, with memory for half a share at a time, or less. */
static const struct {
    const char *net, *flops, *link;
    double max_norm;
    uint64_t memory_limit;
    const char *bandwidth;
    bool first_alone; /* has samples */
} loads[] = {
    { NET, "20G", "100G", 0, 0, "100G", false },          { NET, "100T", "300M", 0.1, 0, "100G", false },
    { NET, "100T", "1M", 0, 0, "100G", false },           { NET, "100T", "1M", 0, 400000, "100G", false },
    { NET, "20G", "100G", 0, 400000, "100G", false },     { LARGE_NET, "20G", "100G", 0, 0, "100G", false },
    { LARGE_NET, "100T", "300M", 0.1, 0, "100G", false }, { LARGE_NET, "100T", "1M", 0, 0, "100G", false },
    { WIDE_NET, "100T", "1M,100M", 0, 0, "100G", false }, { LARGE_NET, "100T", "100G", 0, 0, "1M", true },
};
enum { WIDE = 8, SLOW_MEMORY };

/* No two steps have the same samples in the same place, and there are more sizes of batches than plans. */
static const struct {
    int64_t first, count;
} batches[] = { { 0, 96 }, { 35, 61 }, { 0, 95 }, { 94, 2 }, { 17, 33 }, { 60, 31 }, { 2, 50 }, { 40, 51 }, { 1, 94 } };
enum { STEPS = sizeof batches / sizeof *batches };

/* What sims lack where they leave operations to a device of the host: each is a wait for what they have computed
 * before, and its results come in behind that. What needs the largest workspaces stays, or else other sizes of samples
 * would be padded. */
#define LACKS "conv_forward,conv_backward_data,pool_backward,cross_entropy,dropout"
static bool leaves;

static cek_device *fallback_of(bench *b)
{
    cek_device *device = NULL;

    if (leaves)
        ok(cek_engine_find(b->engine, "cpu:0", &device));
    return device;
}

typedef struct trained {
    double losses[STEPS], loss, accuracy;
    char sha256[65];
    float outputs[SAMPLES][CLASSES];
} trained;

static void evaluate_and_predict(bench *b, uint64_t memory_limit, trained *out)
{
    const cek_array_options a = { .size = sizeof a,
                                  .input_type = CEK_F32,
                                  .count = SAMPLES,
                                  .rank = 3,
                                  .shape = { 1, SIDE, SIDE },
                                  .inputs = images,
                                  .labels = labels,
                                  .classes = CLASSES };
    const cek_predictor_options o = {
        .size = sizeof o, .batch = SAMPLES, .memory_limit = memory_limit, .fallback = fallback_of(b)
    };
    cek_metrics metrics = { .size = sizeof metrics };
    cek_predictor *predictor;
    cek_dataset *set;

    ok(cek_dataset_arrays(&a, &set));
    ok(cek_trainer_evaluate(b->trainer, set, &metrics));
    out->loss = metrics.loss;
    out->accuracy = metrics.accuracy;
    ok(cek_trainer_pull(b->trainer));
    cek_model_sha256(b->model, out->sha256);
    ok(cek_predictor_create(b->model, b->devices, b->count, &o, &predictor));
    ok(cek_predictor_run_dataset(predictor, set, out->outputs[0]));
    cek_predictor_free(predictor);
    cek_dataset_free(set);
}

static void train(int load, int fleet, trained *out)
{
    static const double first_alone[] = { 1, 0 };
    cek_trainer_options o = options_small();
    bench b;

    o.depth = DEPTH;
    o.max_norm = loads[load].max_norm;
    o.memory_limit = loads[load].memory_limit;
    if (loads[load].first_alone) {
        o.shares = CEK_SHARES_GIVEN;
        o.share_weights = first_alone;
    }
    bench_engine(&b, "1", fleets[fleet].list);
    o.fallback = fallback_of(&b);
    cek_model_free(b.model);
    ok(cek_model_parse(loads[load].net, 3, (int64_t[]){ 1, SIDE, SIDE }, &b.model));
    cek_model_init(b.model, 3);
    ok(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer));
    while (o.memory_limit > 0 && 2 * cek_trainer_micro_batch(b.trainer, b.count - 1) > SAMPLES / (int64_t)b.count) {
        cek_trainer_free(b.trainer); /* the smaller a share, the less it takes to cut it */
        o.memory_limit -= o.memory_limit / 8;
        ok(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer));
    }
    for (int submitted = 0, collected = 0; collected < STEPS; collected++) {
        cek_step_result r = { .size = sizeof r };
        for (; submitted < STEPS && submitted < collected + DEPTH; submitted++) {
            cek_batch batch = batch_of(batches[submitted].first, batches[submitted].count);
            b.trainer->rules.lr[0] *= submitted % 2 ? 0.5 : 1.5; /* no two steps' blocks say the same to updates */
            ok(cek_trainer_submit(b.trainer, &batch));
        }
        ok(cek_trainer_collect(b.trainer, &r));
        out->losses[collected] = r.loss;
    }
    replicas_are_equal(&b);
    evaluate_and_predict(&b, o.memory_limit, out);
    bench_close(&b);
}

/* `lacking`: and as devices that lack nothing. */
static void late_is_as_at_once(int load, int fleet, bool lacking)
{
    static trained at_once, late;

    setenv("CEKERNELS_SIM_DEVICES", fleets[fleet].sims, 1);
    setenv("CEKERNELS_SIM_SHARED", fleets[fleet].shared, 1);
    train(load, fleet, &at_once);
    setenv("CEKERNELS_SIM_WORK", "late", 1);
    setenv("CEKERNELS_SIM_FLOPS", loads[load].flops, 1);
    setenv("CEKERNELS_SIM_LINK", loads[load].link, 1);
    setenv("CEKERNELS_SIM_BANDWIDTH", loads[load].bandwidth, 1);
    setenv("CEKERNELS_SIM_LACKS", lacking ? LACKS : "", 1);
    leaves = lacking;
    train(load, fleet, &late);
    for (int i = 0; i < STEPS; i++)
        ck_assert_msg(at_once.losses[i] == late.losses[i], "load %d, %s: step %d: loss %.9g, at once %.9g", load,
                      fleets[fleet].list, i + 1, late.losses[i], at_once.losses[i]);
    ck_assert_msg(strcmp(at_once.sha256, late.sha256) == 0, "load %d, %s: other weights", load, fleets[fleet].list);
    ck_assert(at_once.loss == late.loss && at_once.accuracy == late.accuracy);
    ck_assert_int_eq(memcmp(at_once.outputs, late.outputs, sizeof late.outputs), 0);
}

START_TEST(late_work_changes_no_bit)
{
    late_is_as_at_once(_i / FLEETS, _i % FLEETS, false);
}
END_TEST

/* An inline owner goes on to the next step when it has what forward reads first, and then gets the rest of this one's
 * to update. Between devices of unequal links gradients wait in each place until the slow one has read it. An owner
 * without samples has never computed when it updates, and its memory is slow to be cleared. */
START_TEST(nor_does_it_in_these_places)
{
    static const struct {
        int load, fleet;
    } places[] = { { WIDE, FLEETS }, { WIDE, FLEETS + 1 }, { WIDE, FLEETS + 2 }, { SLOW_MEMORY, CPU_SIM } };

    late_is_as_at_once(places[_i].load, places[_i].fleet, false);
}
END_TEST

START_TEST(nor_where_operations_are_left_to_another_device)
{
    static const int whole_shares[] = { 0, 1, 5 }; /* with limits these would be cut otherwise */

    late_is_as_at_once(whole_shares[_i / FLEETS], _i % FLEETS, true);
}
END_TEST

/* ---- other members ---- */

typedef struct moved {
    double losses[STEPS];
    char sha256[65];
} moved;

/* The first device has all samples; the second is an owner at first, then outside, then an owner again, which has to be
 * given the parameters as they are now. The optimizer's state goes with its owners, through memory of the host that is
 * given back at once. */
static void train_and_move(const char *list, moved *out)
{
    static const bool members[STEPS][2] = { { true, true },  { true, true },  { true, false },
                                            { true, false }, { true, true },  { true, true },
                                            { true, true },  { true, false }, { true, true } };
    static const double first_alone[] = { 1, 0 };
    const int64_t most[] = { SAMPLES, SAMPLES };
    cek_trainer_options o = options_small();
    bench b;

    o.shares = CEK_SHARES_GIVEN;
    o.share_weights = first_alone;
    bench_engine(&b, "1", list);
    cek_model_free(b.model);
    ok(cek_model_parse(LARGE_NET, 3, (int64_t[]){ 1, SIDE, SIDE }, &b.model));
    cek_model_init(b.model, 3);
    ok(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer));
    for (int i = 0; i < STEPS; i++) {
        ok(cek__trainer_settle(b.trainer));
        if (i > 0 && members[i][1] != members[i - 1][1])
            ok(cek__lineup_change(&b.trainer->lineup, members[i], most));
        out->losses[i] = step(&b, batches[i].first, batches[i].count);
    }
    replicas_are_equal(&b);
    ok(cek_trainer_pull(b.trainer));
    cek_model_sha256(b.model, out->sha256);
    bench_close(&b);
}

START_TEST(what_moves_to_other_members_has_arrived)
{
    static const char *const lists[] = { "sim", "sim:0,cpu", "cpu,sim:0" };
    static moved at_once, late;

    setenv("CEKERNELS_SIM_DEVICES", _i == 0 ? "2" : "1", 1);
    train_and_move(lists[_i], &at_once);
    setenv("CEKERNELS_SIM_WORK", "late", 1);
    setenv("CEKERNELS_SIM_LINK", "10M", 1);
    train_and_move(lists[_i], &late);
    for (int i = 0; i < STEPS; i++)
        ck_assert_msg(at_once.losses[i] == late.losses[i], "%s: step %d: loss %.9g, at once %.9g", lists[_i], i + 1,
                      late.losses[i], at_once.losses[i]);
    ck_assert_str_eq(at_once.sha256, late.sha256);
}
END_TEST

/* ---- a trainer that cannot be made ---- */

/* One device fails when the other has begun to look whether it can copy from its memory; the link is slow. */
START_TEST(what_others_still_read_is_not_freed_where_a_trainer_cannot_be_made)
{
    int failures = 0;

    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    setenv("CEKERNELS_SIM_WORK", "late", 1);
    setenv("CEKERNELS_SIM_LATENCY_NS", "1000000", 1);
    for (int n = 1; n <= 40; n++) {
        const cek_trainer_options o = options_small();
        char fault[64];
        bench b;
        snprintf(fault, sizeof fault, "%s@event_create#%d/0", _i == 0 ? "device_lost" : "out_of_memory", n);
        setenv("CEKERNELS_SIM_FAULTS", fault, 1);
        bench_engine(&b, "1", "sim");
        const cek_status st = cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer);
        ck_assert_msg(st == CEK_OK || strstr(cek_error_text(), "simulated") != NULL, "%s: %s", fault, cek_error_text());
        failures += st != CEK_OK;
        bench_close(&b);
    }
    ck_assert_int_gt(failures, 30);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_races");
    TCase *tc = tcase_create("train_races"), *members = tcase_create("members");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, late_work_changes_no_bit, 0, WIDE * FLEETS);
    tcase_add_loop_test(tc, nor_does_it_in_these_places, 0, 4);
    tcase_add_loop_test(tc, nor_where_operations_are_left_to_another_device, 0, 3 * FLEETS);
    tcase_set_timeout(members, 120);
    tcase_add_loop_test(members, what_moves_to_other_members_has_arrived, 0, 3);
    tcase_add_loop_test(members, what_others_still_read_is_not_freed_where_a_trainer_cannot_be_made, 0, 2);
    suite_add_tcase(suite, tc);
    suite_add_tcase(suite, members);
    return suite_run(suite);
}
