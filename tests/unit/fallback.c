/* fallback.c - operations that a device has not, left to another: the same bits where both compute alike, every kind of
 * operation, alone and in a team; who does what is told; what fails says where. */
#include <cekernels/parts.h>
#include <math.h>
#include <stdatomic.h>
#include <time.h>

#include "core/device/device.h"
#include "scratch.h"

enum { SIDE = 8, PIXELS = 2 * SIDE * SIDE, WORDS = 7, CLASSES = 3, SAMPLES = 23, STEPS = 3, MOST = 4096 };

static float images[SAMPLES][PIXELS];
static int32_t words[SAMPLES][WORDS], labels[SAMPLES];

/* Activations that round nothing: within an operation, or behind it, they give the same bits. Softmax is the
 * predictor's. */
#define IMAGES \
    "conv:4,3,p1 relu maxpool:2 batchnorm conv:5,3,p1 relu avgpool:2 dropout:0.25 flatten linear:7 relu linear:3"
#define TEXTS "words"

static struct {
    int warnings, operations; /* left, as the log has them */
    char warning[512], operation[512];
    const char *kind; /* of the operations that count */
} told;

static void hear(void *user, int level, const char *text)
{
    (void)user;
    if (strstr(text, " leaves ") != NULL && level == CEK_LOG_WARN) {
        told.warnings++;
        snprintf(told.warning, sizeof told.warning, "%s", text);
    }
    if (strstr(text, ": left to ") != NULL && (told.kind == NULL || strstr(text, told.kind) != NULL)) {
        told.operations++;
        snprintf(told.operation, sizeof told.operation, "%s", text);
    }
}

typedef struct place {
    cek_engine *engine;
    cek_device **devices, *fallback; /* NULL: none */
    size_t count;
    cek_model *model;
    bool text;
    cek_dataset *set;
} place;

static void data_make(void)
{
    for (int s = 0; s < SAMPLES; s++) {
        labels[s] = s % CLASSES;
        for (int i = 0; i < PIXELS; i++)
            images[s][i] = (float)((s * 31 + i * 7) % 61) / 30 - 1;
        for (int i = 0; i < WORDS; i++)
            words[s][i] = (s * 5 + i * 3) % 11;
    }
}

static cek_model *text_model(void)
{
    cek_model *m;
    int x;

    assert_ok(cek_model_create(0, NULL, &m));
    x = cek_part_input(m, "words", CEK_I32, 1, (int64_t[]){ WORDS });
    assert_ok(cek_model_embedding(m, x, 11, 6, &x));
    assert_ok(cek_model_flatten(m, x, &x));
    assert_ok(cek_model_linear(m, x, 5, true, &x));
    assert_ok(cek_model_activation(m, x, CEK_ACT_RELU, &x));
    assert_ok(cek_model_linear(m, x, CLASSES, true, &x));
    return m;
}

static void place_open(place *p, const char *list, const char *fallback, const char *net)
{
    cek_array_options a = { .size = sizeof a,
                            .input_type = CEK_F32,
                            .count = SAMPLES,
                            .rank = 3,
                            .shape = { 2, SIDE, SIDE },
                            .inputs = images,
                            .labels = labels,
                            .classes = CLASSES };

    memset(p, 0, sizeof *p);
    memset(&told, 0, sizeof told);
    cek_log_set(hear, NULL, CEK_LOG_INFO);
    data_make();
    setenv("CEKERNELS_CPU_DEVICES", "1", 1);
    assert_ok(cek_engine_create(NULL, &p->engine));
    assert_ok(cek_engine_select(p->engine, list, CEK_PROFILE_TRAINING, &p->devices, &p->count));
    p->fallback = NULL;
    if (fallback)
        assert_ok(cek_engine_find(p->engine, fallback, &p->fallback));
    p->text = strcmp(net, TEXTS) == 0;
    if (p->text)
        a = (cek_array_options){ .size = sizeof a,
                                 .input_type = CEK_I32,
                                 .count = SAMPLES,
                                 .rank = 1,
                                 .shape = { WORDS },
                                 .inputs = words,
                                 .labels = labels,
                                 .classes = CLASSES };
    if (p->text)
        p->model = text_model();
    else
        assert_ok(cek_model_parse(net, a.rank, a.shape, &p->model));
    cek_model_init(p->model, 3);
    assert_ok(cek_dataset_arrays(&a, &p->set));
}

static void place_close(place *p)
{
    cek_log_set(NULL, NULL, 0);
    cek_dataset_free(p->set);
    cek_model_free(p->model);
    free(p->devices);
    cek_engine_free(p->engine);
}

static cek_batch batch_of(const place *p, int64_t first, int64_t count)
{
    return (cek_batch){ .size = sizeof(cek_batch),
                        .count = count,
                        .inputs = p->text ? (const void *)words[first] : images[first],
                        .targets = labels + first,
                        .input_type = p->text ? CEK_I32 : CEK_F32 };
}

static cek_trainer_options options_of(const place *p)
{
    return (cek_trainer_options){ .size = sizeof(cek_trainer_options),
                                  .batch = 12,
                                  .seed = 5,
                                  .accumulate = 2, /* gradients are written, then added to */
                                  .norm_group = 12,
                                  .shares = CEK_SHARES_EQUAL,
                                  .fallback = p->fallback };
}

/* All that comes of training. */
typedef struct trained {
    double losses[STEPS], gradients[MOST];
    int64_t count;
    cek_metrics metrics;
    char sha256[65];
    float outputs[SAMPLES][CLASSES];
} trained;

static void gradients_read(const place *p, cek_trainer *t, trained *out)
{
    out->count = 0;
    for (size_t i = 0; i < cek_model_parameter_count(p->model); i++) {
        cek_parameter info;

        assert_ok(cek_model_parameter(p->model, i, &info));
        ck_assert_int_le(out->count + info.count, MOST);
        assert_ok(cek_trainer_read_gradient(t, i, out->gradients + out->count, info.count));
        out->count += info.count;
    }
}

static void train(place *p, const cek_trainer_options *o, trained *out)
{
    const cek_predictor_options po = { .size = sizeof po,
                                       .batch = 7,
                                       .input_type = p->text ? CEK_I32 : CEK_F32,
                                       .softmax = true,
                                       .fallback = p->fallback };
    cek_trainer *t;
    cek_predictor *predictor;

    memset(out, 0, sizeof *out);
    out->metrics.size = sizeof out->metrics;
    assert_ok(cek_trainer_create(p->model, p->devices, p->count, o, &t));
    for (int i = 0; i < STEPS; i++) {
        cek_batch batch = batch_of(p, i, SAMPLES - 2 * i);
        cek_step_result r = { .size = sizeof r };

        assert_ok(cek_trainer_step(t, &batch, &r));
        out->losses[i] = r.loss;
    }
    gradients_read(p, t, out);
    assert_ok(cek_trainer_evaluate(t, p->set, &out->metrics));
    assert_ok(cek_trainer_pull(t));
    cek_trainer_free(t);
    cek_model_sha256(p->model, out->sha256);
    assert_ok(cek_predictor_create(p->model, p->devices, p->count, &po, &predictor));
    assert_ok(cek_predictor_run_dataset(predictor, p->set, out->outputs[0]));
    cek_predictor_free(predictor);
}

static void are_equal(const trained *a, const trained *b, const char *what)
{
    for (int i = 0; i < STEPS; i++)
        ck_assert_msg(a->losses[i] == b->losses[i], "%s: step %d: loss %.9g, %.9g", what, i + 1, a->losses[i],
                      b->losses[i]);
    ck_assert_int_eq(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++)
        ck_assert_msg(a->gradients[i] == b->gradients[i], "%s: gradient %lld: %.9g, %.9g", what, (long long)i,
                      a->gradients[i], b->gradients[i]);
    ck_assert_msg(strcmp(a->sha256, b->sha256) == 0, "%s: other weights", what);
    ck_assert_msg(a->metrics.loss == b->metrics.loss && a->metrics.accuracy == b->metrics.accuracy, "%s: metrics",
                  what);
    ck_assert_msg(memcmp(a->outputs, b->outputs, sizeof a->outputs) == 0, "%s: outputs", what);
}

/* ---- every kind ---- */

static const struct {
    const char *net, *lacks;
} kinds[] = {
    { IMAGES, "gemm" },
    { IMAGES, "conv_forward" },
    { IMAGES, "conv_backward_data" },
    { IMAGES, "conv_backward_weights" },
    { IMAGES, "pool_forward" },
    { IMAGES, "pool_backward" },
    { IMAGES, "pointwise" },
    { IMAGES, "reduce" },
    { IMAGES, "softmax" },
    { IMAGES, "cross_entropy" },
    { IMAGES, "dropout" },
    { TEXTS, "gather" },
    { TEXTS, "scatter_add" },
    { TEXTS, "gemm,gather,scatter_add,cross_entropy,pointwise,reduce,softmax" },
    { IMAGES, "gemm,conv_forward,conv_backward_data,conv_backward_weights,pool_forward,pool_backward,pointwise,reduce,"
              "softmax,cross_entropy,squared_error,dropout,random,copy,gather,scatter_add,arg" },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* With `late`, sims that lack operations do their work when its time has passed: a missing wait shows. */
static void lacking_is_as_having(const char *net, const char *lacks, const char *list, const char *fallback, bool late)
{
    static trained has, lacking;
    place p;
    cek_trainer_options o;

    unsetenv("CEKERNELS_SIM_LACKS");
    place_open(&p, list, NULL, net);
    o = options_of(&p);
    train(&p, &o, &has);
    ck_assert_int_eq(told.operations, 0);
    place_close(&p);
    setenv("CEKERNELS_SIM_LACKS", lacks, 1);
    if (late) {
        setenv("CEKERNELS_SIM_WORK", "late", 1);
        setenv("CEKERNELS_SIM_FLOPS", "10G", 1);
    }
    place_open(&p, list, fallback, net);
    o = options_of(&p);
    if (strchr(lacks, ',') == NULL)
        told.kind = lacks;
    train(&p, &o, &lacking);
    ck_assert_msg(told.operations > 0 && told.warnings > 0, "%s: %d operations, %d warnings", lacks, told.operations,
                  told.warnings);
    place_close(&p);
    are_equal(&has, &lacking, lacks);
}

START_TEST(a_device_alone_gives_the_same_bits_whatever_it_leaves)
{
    setenv("CEKERNELS_SIM_DEVICES", "1", 1);
    setenv("CEKERNELS_SIM_INNER", "reference", 1);
    lacking_is_as_having(kinds[_i].net, kinds[_i].lacks, "sim:0", "reference:0", false);
}
END_TEST

/* Inline, all is done on the caller's thread. */
START_TEST(and_so_does_an_inline_device)
{
    setenv("CEKERNELS_SIM_DEVICES", "1", 1);
    setenv("CEKERNELS_SIM_INNER", "reference", 1);
    setenv("CEKERNELS_SIM_INLINE", "1", 1);
    lacking_is_as_having(kinds[_i].net, kinds[_i].lacks, "sim:0", "reference:0", false);
}
END_TEST

/* Beside the device that helps them, with no link between any two. */
static const struct {
    const char *list, *lacks;
} teams[] = {
    { "cpu:0,sim:0", "conv_backward_data" },
    { "cpu:0,sim:0", "conv_backward_weights" },
    { "cpu:0,sim:0", "pool_forward" },
    { "cpu:0,sim:0", "pool_backward" },
    { "cpu:0,sim:0", "cross_entropy" },
    { "cpu:0,sim:0", "gemm,cross_entropy" },
    { "cpu:0,sim:0", "conv_forward,pool_forward,cross_entropy,dropout,gemm" },
    { "sim:0,sim:1", "conv_backward_weights,pool_backward" },
    { "sim:0,sim:1", "conv_forward,pool_forward,cross_entropy,dropout,gemm" },
    { "sim:0,cpu:0,sim:1", "pool_backward,dropout" },
    { "sim:0,cpu:0,sim:1", "gemm,conv_backward_weights,conv_backward_data" },
    { "sim:0", "gemm,conv_forward,conv_backward_data,conv_backward_weights,pool_forward,pool_backward,pointwise,reduce,"
               "cross_entropy,dropout" },
};
enum { TEAMS = sizeof teams / sizeof *teams };

START_TEST(a_team_gives_the_same_bits_when_work_is_late_too)
{
    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    setenv("CEKERNELS_SIM_SHARED", "0", 1);
    lacking_is_as_having(
        "conv:4,3,p1 relu maxpool:2 conv:5,3,p1 relu avgpool:2 dropout:0.25 flatten linear:7 relu linear:3",
        teams[_i / 2].lacks, teams[_i / 2].list, "cpu:0", _i % 2);
}
END_TEST

/* ---- what is said ---- */

static cek_status trainer_make(const place *p, cek_trainer **t)
{
    const cek_trainer_options o = options_of(p);

    return cek_trainer_create(p->model, p->devices, p->count, &o, t);
}

static cek_status step(const place *p, cek_trainer *t)
{
    const cek_batch batch = batch_of(p, 0, SAMPLES);

    return cek_trainer_step(t, &batch, NULL);
}

START_TEST(without_a_fallback_layer_operation_and_device_are_named)
{
    const cek_predictor_options o = { .size = sizeof o };
    cek_predictor *predictor;
    cek_trainer *t;
    place p;

    setenv("CEKERNELS_SIM_LACKS", "pool_backward,softmax", 1);
    place_open(&p, "sim:0", NULL, IMAGES);
    assert_fails(trainer_make(&p, &t), CEK_UNSUPPORTED,
                 "node 7 (pool) backward, pool_backward: sim:0: op_create: ", "pool_backward is among sim_lacks");
    ck_assert_ptr_null(t);
    assert_ok(cek_predictor_create(p.model, p.devices, p.count, &o, &predictor)); /* which needs none of both */
    cek_predictor_free(predictor);
    place_close(&p);
}
END_TEST

START_TEST(the_log_says_what_is_left_to_whom)
{
    cek_trainer *t;
    place p;

    setenv("CEKERNELS_SIM_LACKS", "pool_backward", 1);
    place_open(&p, "sim:0", "cpu:0", "maxpool:2 flatten linear:3 relu linear:3");
    assert_ok(trainer_make(&p, &t)); /* of whose input there is no gradient */
    ck_assert_int_eq(told.warnings + told.operations, 0);
    cek_trainer_free(t);
    place_close(&p);
    place_open(&p, "sim:0", "cpu:0", "conv:2,3 maxpool:2 flatten linear:3");
    assert_ok(trainer_make(&p, &t));
    ck_assert_int_eq(told.warnings, 1);
    ck_assert_str_eq(told.warning,
                     "sim:0 leaves 2 operations of training to cpu:0 and waits for each, the last of them "
                     "node 2 (pool) backward, pool_backward");
    ck_assert_int_eq(told.operations, 2); /* with the one that fills its reserve */
    ck_assert_str_eq(told.operation, "sim:0: node 2 (pool) backward, pool_backward: left to cpu:0");
    assert_ok(step(&p, t));
    ck_assert_int_eq(told.warnings, 1);
    cek_trainer_free(t);
    place_close(&p);
}
END_TEST

/* A table before the device's own, with an operation that it lacks, or that does not come back. */
static struct {
    cek_plugin table, own;
    uint32_t lacks;
    atomic_int runs_left;
    int recorded; /* commands, in buffers that were run */
} other;

static cek_status other_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    *out = NULL;
    return desc->kind == other.lacks ? (cek_status)CEK_UNSUPPORTED : other.own.op_create(dev, desc, info, out);
}

static cek_status other_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                            cek_ref workspace)
{
    while (atomic_fetch_sub(&other.runs_left, 1) <= 0)
        nanosleep(&(struct timespec){ .tv_sec = 3600 }, NULL);
    return other.own.op_run(queue, op, operands, count, workspace);
}

static cek_status other_record(cek_dev *dev, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size, cek_cmdbuf **out)
{
    other.recorded += (int)count;
    return other.own.cmdbuf_create(dev, cmds, count, cmd_size, out);
}

static void other_take(cek_device *device, uint32_t lacks, int runs)
{
    other.own = other.table = *device->plugin;
    other.table.op_create = other_create;
    other.table.op_run = other_run;
    other.table.cmdbuf_create = other_record;
    other.lacks = lacks;
    other.runs_left = runs;
    device->plugin = &other.table;
}

START_TEST(what_neither_can_do_names_both)
{
    cek_trainer *t;
    place p;

    setenv("CEKERNELS_SIM_LACKS", "pool_backward", 1);
    place_open(&p, "sim:0", "cpu:0", IMAGES);
    other_take(p.fallback, CEK_OP_POOL_BACKWARD, 0);
    assert_fails(trainer_make(&p, &t), CEK_UNSUPPORTED, "node 7 (pool) backward, pool_backward: sim:0: op_create: ",
                 "; nor can it be left: cpu:0: op_create: ");
    ck_assert_ptr_null(t);
    place_close(&p);
}
END_TEST

START_TEST(a_fallback_works_inline)
{
    const cek_predictor_options o = { .size = sizeof o, .fallback = NULL };
    cek_predictor_options with = o;
    cek_predictor *predictor;
    cek_trainer *t;
    place p;

    place_open(&p, "cpu:0", "sim:0", IMAGES);
    assert_fails(trainer_make(&p, &t), CEK_UNSUPPORTED, "fallback sim:0", "inline");
    with.fallback = p.fallback;
    assert_fails(cek_predictor_create(p.model, p.devices, p.count, &with, &predictor), CEK_UNSUPPORTED,
                 "fallback sim:0", "inline");
    place_close(&p);
}
END_TEST

/* A lone device records a whole step, with its update. With an operation of the forward pass left it cannot, but
 * backward. */
START_TEST(what_has_no_part_elsewhere_is_recorded_as_before)
{
    static const uint32_t lacks[] = { 0, CEK_OP_CONV_FORWARD, CEK_OP_CONV_BACKWARD_WEIGHTS };
    int recorded[3];

    for (int i = 0; i < 3; i++) {
        cek_trainer *t;
        place p;
        cek_batch batch;

        place_open(&p, "sim:0", "cpu:0", "conv:2,3 relu flatten linear:3");
        other_take(p.devices[0], lacks[i], INT32_MAX);
        other.recorded = 0;
        batch = batch_of(&p, 0, 12); /* one micro-batch */
        assert_ok(trainer_make(&p, &t));
        for (int k = 0; k < 4; k++)
            assert_ok(cek_trainer_step(t, &batch, NULL));
        cek_trainer_free(t);
        recorded[i] = other.recorded;
        place_close(&p);
    }
    ck_assert_int_gt(recorded[1], 2);           /* backward */
    ck_assert_int_gt(recorded[2], 2);           /* forward */
    ck_assert_int_gt(recorded[0], recorded[1]); /* all, and updates */
    ck_assert_int_gt(recorded[0], recorded[2]);
}
END_TEST

/* ---- memory ---- */

static uint64_t used(cek_device *device)
{
    cek_memory_stats stats = { .size = sizeof stats };

    assert_ok(cek_device_memory_stats(device, &stats));
    return stats.used_bytes;
}

START_TEST(what_is_left_takes_counted_memory_and_gives_it_back)
{
    cek_trainer *t;
    uint64_t planned, sum;
    int64_t rows;
    place p;
    cek_trainer_options o;
    cek_batch batch;

    setenv("CEKERNELS_SIM_LACKS", "conv_backward_weights", 1);
    place_open(&p, "sim:0", "cpu:0", "conv:8,3,p1 relu conv:8,3,p1 flatten linear:3");
    o = options_of(&p);
    o.accumulate = 1;
    batch = batch_of(&p, 0, o.batch);
    assert_ok(cek_trainer_create(p.model, p.devices, p.count, &o, &t));
    ck_assert_int_gt(told.operations, 0);
    planned = cek_trainer_planned_bytes(t, 0);
    rows = cek_trainer_micro_batch(t, 0);
    ck_assert_uint_gt(used(p.fallback), 10000);  /* a gradient of its activations and what they were */
    sum = used(p.devices[0]) + used(p.fallback); /* in whole pieces, which planned bytes are not */
    ck_assert_msg(sum < planned + 30 * CEK_ALIGNMENT && planned < sum + 30 * CEK_ALIGNMENT,
                  "%llu bytes are used, %llu planned", (unsigned long long)sum, (unsigned long long)planned);
    cek_trainer_free(t);
    ck_assert_uint_eq(used(p.fallback), 0);
    o.memory_limit = planned; /* it fits, and less does not */
    assert_ok(cek_trainer_create(p.model, p.devices, p.count, &o, &t));
    ck_assert_int_eq(cek_trainer_micro_batch(t, 0), rows);
    cek_trainer_free(t);
    o.memory_limit = planned - 1;
    assert_ok(cek_trainer_create(p.model, p.devices, p.count, &o, &t));
    ck_assert_int_lt(cek_trainer_micro_batch(t, 0), rows);
    assert_ok(cek_trainer_step(t, &batch, NULL));
    cek_trainer_free(t);
    place_close(&p);
}
END_TEST

/* ---- failures ---- */

static void fails_and_stays_so(place *p, cek_status status, const char *object, const char *cause)
{
    cek_trainer *t;
    cek_status st = CEK_OK;

    assert_ok(trainer_make(p, &t));
    for (int i = 0; i < 20 && st == CEK_OK; i++)
        st = step(p, t);
    assert_fails(st, status, object, cause);
    assert_fails(step(p, t), status, object, cause);
    cek_trainer_free(t);
}

START_TEST(a_lost_fallback_is_named_with_who_left_what)
{
    place p;

    setenv("CEKERNELS_SIM_INLINE", "1", 1);
    setenv("CEKERNELS_SIM_FAULTS", _i == 0 ? "device_lost@op_run#5" : "later_device_lost@op_run#5", 1);
    place_open(&p, "cpu:0", "sim:0", "conv:2,3 maxpool:2 flatten linear:3");
    other_take(p.devices[0], CEK_OP_POOL_FORWARD, INT32_MAX);
    fails_and_stays_so(&p, CEK_DEVICE_LOST, "node 2 (pool)", ", left to sim:0 by cpu:0: sim:0: ");
    place_close(&p);
}
END_TEST

/* The thread is left there: the trainer is freed all the same, and what it may touch stays. */
START_TEST(a_fallback_that_does_not_come_back_is_lost_within_its_time)
{
    static const char *const lists[] = { "sim:0", "sim:0,sim:1" };
    place p;

    setenv("CEKERNELS_SIM_LACKS", "pool_backward", 1);
    setenv("CEKERNELS_TIMEOUT", "0.3", 1);
    place_open(&p, lists[_i], "reference:0", "conv:2,3 maxpool:2 flatten linear:3");
    other_take(p.fallback, 0, 5);
    fails_and_stays_so(&p, CEK_DEVICE_LOST, "reference:0: ", "has not returned for 0.3 s");
    place_close(&p);
}
END_TEST

/* One of three, in whatever it does there. */
START_TEST(a_lost_device_beside_others_is_named)
{
    static const char *const faults[] = { "device_lost@download#7/1", "device_lost@queue_sync#9/1",
                                          "hang@upload#9/1",          "hang@download#7/1",
                                          "block@download#7/1",       "later_device_lost@op_run#30/1" };
    place p;

    setenv("CEKERNELS_SIM_DEVICES", "3", 1);
    setenv("CEKERNELS_SIM_LACKS", "conv_backward_weights,cross_entropy", 1);
    setenv("CEKERNELS_SIM_FAULTS", faults[_i], 1);
    setenv("CEKERNELS_SIM_WATCHDOG_MS", "3600000", 1);
    setenv("CEKERNELS_TIMEOUT", "0.3", 1);
    place_open(&p, "sim:0,sim:1,sim:2", "cpu:0", "conv:2,3 relu maxpool:2 flatten linear:3");
    fails_and_stays_so(&p, CEK_DEVICE_LOST, "sim:1", "");
    place_close(&p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fallback");
    TCase *tcase = tcase_create("fallback");

    tcase_add_loop_test(tcase, a_device_alone_gives_the_same_bits_whatever_it_leaves, 0, KINDS);
    tcase_add_loop_test(tcase, and_so_does_an_inline_device, 0, KINDS);
    tcase_add_loop_test(tcase, a_team_gives_the_same_bits_when_work_is_late_too, 0, 2 * TEAMS);
    tcase_add_test(tcase, without_a_fallback_layer_operation_and_device_are_named);
    tcase_add_test(tcase, the_log_says_what_is_left_to_whom);
    tcase_add_test(tcase, what_neither_can_do_names_both);
    tcase_add_test(tcase, a_fallback_works_inline);
    tcase_add_test(tcase, what_has_no_part_elsewhere_is_recorded_as_before);
    tcase_add_test(tcase, what_is_left_takes_counted_memory_and_gives_it_back);
    tcase_add_loop_test(tcase, a_lost_fallback_is_named_with_who_left_what, 0, 2);
    tcase_add_loop_test(tcase, a_fallback_that_does_not_come_back_is_lost_within_its_time, 0, 2);
    tcase_add_loop_test(tcase, a_lost_device_beside_others_is_named, 0, 6);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
