/* types_spread.c - several devices in bf16 and f16: what travels of parameters is what products read, and their owners
 * keep the rest, whoever that is. */
#include <cekernels/parts.h>
#include <math.h>
#include <stdatomic.h>

#include "core/device/device.h"
#include "nn/train/shards.h"
#include "tests/suite.h"
#include "types_bench.h"

/* Sizes that are multiples of 128 elements, so that nothing is padded in any type. */
#define WIDE "flatten linear:128 relu linear:128"
enum { WEIGHTS = 128 * PIXELS + 128 * 128 };

static const cek_optimizer adam = { .size = sizeof adam, .algorithm = CEK_OPTIMIZER_ADAM, .lr = 0.002 };

static cek_trainer *trainer_with(cek_model *m, const team *t, cek_dtype type, uint32_t shares,
                                 const cek_optimizer *optimizer)
{
    const cek_trainer_options o = { .size = sizeof o,
                                    .batch = ROWS,
                                    .shares = shares,
                                    .optimizer = optimizer,
                                    .average = 0.5,
                                    .max_norm = 1000,
                                    .type = type };
    cek_trainer *trainer;

    assert_ok(cek_trainer_create(m, t->devices, t->count, &o, &trainer));
    return trainer;
}

/* ---- how much ---- */

static struct {
    cek_plugin table;
    const cek_plugin *own;
    atomic_uint_least64_t bytes;
} counted;

static cek_status counted_upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    counted.bytes += bytes;
    return counted.own->upload(queue, dst, src, bytes);
}

static cek_status counted_download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes)
{
    counted.bytes += bytes;
    return counted.own->download(queue, dst, src, bytes);
}

/* All that goes between the host and devices without memory in common, in the third step. */
static uint64_t bytes_of_a_step(const char *list, cek_dtype type)
{
    team t;
    cek_model *m = network(WIDE);
    cek_trainer *trainer;
    uint64_t bytes = 0;

    setenv("CEKERNELS_SIM_DEVICES", "3", 1);
    setenv("CEKERNELS_SIM_SHARED", "0", 1);
    team_open(&t, list);
    counted.own = t.devices[0]->plugin;
    counted.table = *counted.own;
    counted.table.upload = counted_upload;
    counted.table.download = counted_download;
    for (size_t i = 0; i < t.count; i++) {
        ck_assert_ptr_eq(t.devices[i]->plugin, counted.own);
        t.devices[i]->plugin = &counted.table;
    }
    trainer = trainer_with(m, &t, type, CEK_SHARES_EQUAL, &adam);
    for (int i = 0; i < 3; i++) {
        uint64_t skipped; /* waits for all of the step */

        counted.bytes = 0;
        (void)step_loss(trainer);
        assert_ok(cek_trainer_skipped(trainer, &skipped));
        bytes = counted.bytes;
    }
    for (size_t i = 0; i < t.count; i++)
        t.devices[i]->plugin = counted.own;
    cek_trainer_free(trainer);
    team_close(&t);
    cek_model_free(m);
    unsetenv("CEKERNELS_SIM_SHARED");
    return bytes;
}

/* The owner sends once, everybody else receives: 2 bytes less of each weight, and the same of biases. */
START_TEST(of_what_products_read_two_bytes_travel)
{
    static const char *const teams[] = { "sim:0,sim:1", "sim:0,sim:1,sim:2" };
    const uint64_t devices = 2 + (uint64_t)(_i / 2), wide = bytes_of_a_step(teams[_i / 2], CEK_F32),
                   low = bytes_of_a_step(teams[_i / 2], LOW[_i % 2]);

    ck_assert_uint_gt(low, 0);
    ck_assert_uint_ge(wide, low);
    ck_assert_uint_eq(wide - low, 2 * devices * WEIGHTS);
}
END_TEST

/* ---- what everybody has ---- */

/* To nearest even, with 8 bits of a bf16's fraction and 11 of an f16's, whose steps below 2^-14 are equal. */
static float rounded_to(float x, cek_dtype type)
{
    int exponent;
    double step;

    (void)frexp((double)x, &exponent);
    step = ldexp(1, type == CEK_BF16 ? exponent - 8 : exponent < -13 ? -24 : exponent - 11);
    return (float)(nearbyint((double)x / step) * step);
}

static int by_value(const void *a, const void *b)
{
    const float one = *(const float *)a, other = *(const float *)b;

    return (one > other) - (one < other);
}

/* Devices compute with what the owners' parameters round to (in whatever order they lie), and with biases
 * as they are. */
static void copies_are_of_masters(cek_trainer *trainer, cek_model *m, size_t devices, cek_dtype type)
{
    assert_ok(cek_trainer_pull(trainer));
    for (size_t p = 0; p < cek_model_parameter_count(m); p++) {
        cek_parameter parameter;
        int64_t digits = 0;
        uint64_t bytes;
        float *one, *other;

        assert_ok(cek_model_parameter(m, p, &parameter));
        bytes = (uint64_t)parameter.count * sizeof *one;
        one = malloc(bytes);
        other = malloc(bytes);
        assert_ok(cek_trainer_read_replica(trainer, 0, p, one, bytes));
        for (size_t d = 1; d < devices; d++) {
            assert_ok(cek_trainer_read_replica(trainer, d, p, other, bytes));
            ck_assert_msg(!memcmp(one, other, bytes), "%s differs on device %zu", parameter.name, d);
        }
        for (int64_t i = 0; i < parameter.count; i++) {
            other[i] = parameter.rank > 1 ? rounded_to(parameter.data[i], type) : parameter.data[i];
            digits += other[i] != parameter.data[i];
        }
        ck_assert_msg(parameter.rank == 1 || digits > parameter.count / 2, "%s: the owners have rounded ones too",
                      parameter.name);
        qsort(one, (size_t)parameter.count, sizeof *one, by_value);
        qsort(other, (size_t)parameter.count, sizeof *other, by_value);
        for (int64_t i = 0; i < parameter.count; i++)
            ck_assert_msg(one[i] == other[i], "%s: %.9g, the owner's rounds to %.9g", parameter.name, (double)one[i],
                          (double)other[i]);
        free(one);
        free(other);
    }
}

static const char *const lists[] = { "cpu:0", "cpu:0,cpu:1", "sim:0,cpu:0,sim:1", "reference:0,cpu:0" };

START_TEST(copies_are_what_owners_have_rounded)
{
    team t;
    cek_model *m = network(WIDE);
    cek_trainer *trainer;

    team_open(&t, lists[_i / 2]);
    trainer = trainer_with(m, &t, LOW[_i % 2], CEK_SHARES_EQUAL, &adam);
    copies_are_of_masters(trainer, m, t.count, LOW[_i % 2]);
    for (int i = 0; i < 4; i++)
        (void)step_loss(trainer);
    copies_are_of_masters(trainer, m, t.count, LOW[_i % 2]);
    cek_trainer_free(trainer);
    team_close(&t);
    cek_model_free(m);
}
END_TEST

/* The weights between two that are trained, as their owner has them and as device 0 computes with them. */
enum { FROZEN = 2, FROZEN_COUNT = 128 * 128 };

typedef struct frozen {
    float masters[FROZEN_COUNT], copies[FROZEN_COUNT];
} frozen;

static void frozen_read(cek_trainer *trainer, cek_model *m, frozen *to)
{
    cek_parameter weights;

    assert_ok(cek_model_parameter(m, FROZEN, &weights));
    ck_assert_str_eq(weights.name, "3.weight");
    ck_assert_int_eq(weights.count, FROZEN_COUNT);
    memcpy(to->masters, weights.data, sizeof to->masters);
    assert_ok(cek_trainer_read_replica(trainer, 0, FROZEN, to->copies, sizeof to->copies));
}

/* Updates go around them; and steps compute with what a trainer that begins now loads. */
START_TEST(copies_of_frozen_parameters_stay_as_they_were_loaded)
{
    static frozen before, after;
    const cek_parameter_group group = { .size = sizeof group, .flags = CEK_GROUP_FROZEN, .names = "3.*" };
    const cek_trainer_options o = { .size = sizeof o,
                                    .batch = ROWS,
                                    .shares = CEK_SHARES_EQUAL,
                                    .optimizer = &adam,
                                    .type = LOW[_i % 2],
                                    .groups = &group,
                                    .group_count = 1 };
    cek_model *m = network("flatten linear:128 relu linear:128 relu linear:128");
    cek_trainer *trainer, *fresh;
    char begun[65], trained[65];
    team t;

    team_open(&t, lists[_i / 2]);
    assert_ok(cek_trainer_create(m, t.devices, t.count, &o, &trainer));
    copies_are_of_masters(trainer, m, t.count, LOW[_i % 2]);
    frozen_read(trainer, m, &before);
    cek_model_sha256(m, begun);
    for (int i = 0; i < 4; i++)
        (void)step_loss(trainer);
    copies_are_of_masters(trainer, m, t.count, LOW[_i % 2]);
    frozen_read(trainer, m, &after);
    cek_model_sha256(m, trained);
    ck_assert_str_ne(begun, trained);
    ck_assert(memcmp(before.masters, after.masters, sizeof before.masters) == 0);
    ck_assert(memcmp(before.copies, after.copies, sizeof before.copies) == 0);
    assert_ok(cek_trainer_create(m, t.devices, t.count, &o, &fresh));
    ck_assert_double_eq(step_loss(trainer), step_loss(fresh));
    cek_trainer_free(fresh);
    cek_trainer_free(trainer);
    team_close(&t);
    cek_model_free(m);
}
END_TEST

/* The average is computed with, rounded, while it is in use; then the parameters are, with all their digits. */
START_TEST(the_average_is_rounded_too_and_parameters_come_back)
{
    team t;
    cek_model *m = network(WIDE);
    cek_trainer *trainer;
    char before[65], average[65], after[65];

    team_open(&t, lists[_i / 2]);
    trainer = trainer_with(m, &t, LOW[_i % 2], CEK_SHARES_EQUAL, &adam);
    for (int look = 0; look < 2; look++) {
        for (int i = 0; i < 3; i++)
            (void)step_loss(trainer);
        assert_ok(cek_trainer_pull(trainer));
        cek_model_sha256(m, before);
        assert_ok(cek_trainer_use_average(trainer, true));
        copies_are_of_masters(trainer, m, t.count, LOW[_i % 2]);
        cek_model_sha256(m, average);
        ck_assert_str_ne(before, average);
        assert_ok(cek_trainer_use_average(trainer, false));
        copies_are_of_masters(trainer, m, t.count, LOW[_i % 2]);
        cek_model_sha256(m, after);
        ck_assert_str_eq(before, after);
    }
    cek_trainer_free(trainer);
    team_close(&t);
    cek_model_free(m);
}
END_TEST

/* ---- other owners ---- */

/* Of more elements than have one owner (CEK__SHARD_LEAST). */
#define SHARED_OUT "flatten linear:1024 relu linear:128"

enum { MANY = 60, LAST = 2 /* its last weights */, LAST_COUNT = 128 * 1024 };

/* Steps that are too short to change a parameter. */
static const cek_optimizer nothing = { .size = sizeof nothing, .algorithm = CEK_OPTIMIZER_SGD, .lr = 1e-30 };

/* Of which one is so slow that it leaves before MANY steps are over. */
static void uneven_team_open(team *t)
{
    setenv("CEKERNELS_SIM_DEVICES", "3", 1);
    setenv("CEKERNELS_SIM_FLOPS", "4G,4G,10M", 1);
    setenv("CEKERNELS_SIM_LINK", "100G", 1);
    setenv("CEKERNELS_SIM_LAUNCH_NS", "100", 1);
    setenv("CEKERNELS_SIM_LATENCY_NS", "100", 1);
    team_open(t, "sim:0,sim:1,sim:2");
}

static void uneven_team_close(team *t)
{
    team_close(t);
    unsetenv("CEKERNELS_SIM_FLOPS");
    unsetenv("CEKERNELS_SIM_LINK");
    unsetenv("CEKERNELS_SIM_LAUNCH_NS");
    unsetenv("CEKERNELS_SIM_LATENCY_NS");
}

START_TEST(parameters_move_with_all_their_digits)
{
    team t;
    cek_model *m = network(SHARED_OUT);
    cek_trainer *trainer;
    char before[65], after[65];

    cek_model_sha256(m, before);
    uneven_team_open(&t);
    trainer = trainer_with(m, &t, LOW[_i], CEK_SHARES_AUTO, &nothing);
    for (int i = 0; i < MANY; i++)
        (void)step_loss(trainer);
    ck_assert_int_eq(cek_trainer_share(trainer, 2), 0); /* it has left */
    assert_ok(cek_trainer_pull(trainer));
    cek_model_sha256(m, after);
    ck_assert_str_eq(before, after);
    cek_trainer_free(trainer);
    uneven_team_close(&t);
    cek_model_free(m);
}
END_TEST

/* Steps go on as on one device, whoever becomes the owner of a shard. */
START_TEST(steps_go_on_with_other_owners)
{
    team t;
    cek_model *m = network(SHARED_OUT), *same = network(SHARED_OUT);
    cek_trainer *trainer;
    double losses[MANY], want;

    uneven_team_open(&t);
    trainer = trainer_with(m, &t, LOW[_i], CEK_SHARES_AUTO, &adam);
    for (int i = 0; i < MANY; i++)
        losses[i] = step_loss(trainer);
    ck_assert_int_eq(cek_trainer_share(trainer, 2), 0); /* it has left */
    copies_are_of_masters(trainer, m, t.count, LOW[_i]);
    cek_trainer_free(trainer);
    uneven_team_close(&t);
    team_open(&t, "cpu:0");
    trainer = trainer_with(same, &t, LOW[_i], CEK_SHARES_EQUAL, &adam);
    for (int i = 0; i < MANY; i++) {
        want = step_loss(trainer);
        ck_assert_msg(fabs(losses[i] - want) <= 12 * UNIT[_i] * want, "step %d: %.9g, alone %.9g", i, losses[i], want);
    }
    cek_trainer_free(trainer);
    team_close(&t);
    cek_model_free(same);
    cek_model_free(m);
}
END_TEST

/* ---- who rounds ---- */

static struct {
    cek_plugin table;
    const cek_plugin *own;
    bool refuses;
    int updates, casts; /* operations that were asked for: updates that round, and casts of what updates have left */
} rounding;

static bool updates_and_rounds(const cek_op_desc *desc)
{
    return desc->kind == CEK_OP_OPTIMIZER && desc->operands & CEK_BIT(CEK_OPTIMIZER_LOW);
}

static cek_status rounding_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    *out = NULL;
    rounding.updates += updates_and_rounds(desc);
    rounding.casts += desc->kind == CEK_OP_POINTWISE && desc->align == CEK__ROUNDED_ALIGN;
    if (rounding.refuses && updates_and_rounds(desc))
        return (cek_status)CEK_UNSUPPORTED;
    return rounding.own->op_create(dev, desc, info, out);
}

typedef struct trained {
    float *masters, *copies; /* all parameters: as their owner has them, and as it computes with them */
    uint64_t bytes;          /* of each */
} trained;

static trained trained_by(bool refuses, cek_dtype type)
{
    team t;
    cek_model *m = network(NET);
    cek_trainer *trainer;
    trained all;

    team_open(&t, "cpu:0");
    rounding.own = t.devices[0]->plugin;
    rounding.table = *rounding.own;
    rounding.table.op_create = rounding_create;
    rounding.refuses = refuses;
    rounding.updates = rounding.casts = 0;
    t.devices[0]->plugin = &rounding.table;
    trainer = trainer_with(m, &t, type, CEK_SHARES_EQUAL, &adam);
    for (int i = 0; i < 4; i++)
        (void)step_loss(trainer);
    all.masters = masters_of(trainer, m, &all.bytes);
    all.copies = parameters_of(trainer, m, 0, &all.bytes);
    cek_trainer_free(trainer);
    t.devices[0]->plugin = rounding.own;
    team_close(&t);
    cek_model_free(m);
    return all;
}

/* Updates make copies as they go, in one pass; a device may know none, and casts what they leave. */
START_TEST(copies_are_the_same_whether_updates_make_them_or_casts)
{
    trained updated = trained_by(false, LOW[_i]), cast;

    ck_assert_int_gt(rounding.updates, 0);
    ck_assert_int_eq(rounding.casts, 0);
    cast = trained_by(true, LOW[_i]);
    ck_assert_int_gt(rounding.updates, 0);
    ck_assert_int_eq(rounding.casts, rounding.updates);
    ck_assert_mem_eq(updated.masters, cast.masters, updated.bytes);
    ck_assert_mem_eq(updated.copies, cast.copies, updated.bytes);
    free(updated.masters);
    free(updated.copies);
    free(cast.masters);
    free(cast.copies);
}
END_TEST

/* ---- a device's own rounding ---- */

static struct {
    cek_plugin table;
    const cek_plugin *own;
    int casts;
} flushing;

/* Casts to f16 take what is below its smallest normal number for zero; and copies are casts. */
static cek_status flushing_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    static const cek_pointwise_instruction flush[] = {
        { .code = CEK_PW_ABS, .a = 0 },
        { .code = CEK_PW_CONST, .imm = 0x1p-14 },
        { .code = CEK_PW_LESS, .a = 1, .b = 2 },
        { .code = CEK_PW_CONST, .imm = 0 },
        { .code = CEK_PW_SELECT, .a = 3, .b = 4, .c = 0 },
    };
    cek_pointwise_desc cast;

    if (updates_and_rounds(desc)) {
        *out = NULL;
        return (cek_status)CEK_UNSUPPORTED;
    }
    if (desc->kind != CEK_OP_POINTWISE)
        return flushing.own->op_create(dev, desc, info, out);
    cast = *(const cek_pointwise_desc *)desc;
    if (cast.out_type == CEK_F16 && cast.input_count == 1 && cast.instruction_count <= 1) {
        cast.instructions = flush;
        cast.instruction_count = sizeof flush / sizeof *flush;
        cast.instruction_size = sizeof *flush;
        flushing.casts++;
    }
    return flushing.own->op_create(dev, &cast.op, info, out);
}

static void flushing_begin(team *t)
{
    flushing.own = t->devices[0]->plugin;
    flushing.table = *flushing.own;
    flushing.table.op_create = flushing_create;
    flushing.casts = 0;
    for (size_t i = 0; i < t->count; i++)
        t->devices[i]->plugin = &flushing.table;
}

static void flushing_end(team *t)
{
    ck_assert_int_gt(flushing.casts, 0);
    for (size_t i = 0; i < t->count; i++)
        t->devices[i]->plugin = flushing.own;
}

/* SHARED_OUT, half of whose last weights are subnormal numbers of f16. */
static cek_model *subnormal_network(void)
{
    cek_model *m = network(SHARED_OUT);
    cek_parameter weights;

    assert_ok(cek_model_parameter(m, LAST, &weights));
    ck_assert_int_eq(weights.count, LAST_COUNT);
    for (int64_t i = 0; i < LAST_COUNT; i += 2) /* in steps of 6e-8, up to 6e-5 */
        weights.data[i] = (float)(i % 500 + 1) * 1e-7f;
    return m;
}

/* The last weights as a device computes with them; the caller's (free). */
static float *last_copies(cek_trainer *trainer, size_t device)
{
    const uint64_t bytes = LAST_COUNT * sizeof(float);
    float *copies = malloc(bytes);
    int zeros = 0;

    assert_ok(cek_trainer_read_replica(trainer, device, LAST, copies, bytes));
    for (int i = 0; i < LAST_COUNT; i++)
        zeros += copies[i] == 0;
    ck_assert_int_ge(zeros, LAST_COUNT / 2);
    return copies;
}

static void copies_are_equal(cek_trainer *trainer, size_t device, const float *copies)
{
    float *other = last_copies(trainer, device);

    ck_assert_msg(!memcmp(copies, other, LAST_COUNT * sizeof *copies), "device %zu has other copies", device);
    free(other);
}

/* Who has left gets what the others have, and those who stay got it from their owners, whoever they were. */
START_TEST(replicas_are_equal_where_devices_flush_subnormal_numbers)
{
    team t;
    cek_model *m = subnormal_network();
    cek_trainer *trainer;
    float *copies;

    uneven_team_open(&t);
    flushing_begin(&t);
    trainer = trainer_with(m, &t, CEK_F16, CEK_SHARES_AUTO, &nothing);
    for (int i = 0; i < MANY; i++)
        (void)step_loss(trainer);
    ck_assert_int_eq(cek_trainer_share(trainer, 2), 0); /* it has left */
    copies = last_copies(trainer, 0);
    for (size_t d = 1; d < t.count; d++)
        copies_are_equal(trainer, d, copies);
    flushing_end(&t);
    cek_trainer_free(trainer);
    uneven_team_close(&t);
    cek_model_free(m);
    free(copies);
}
END_TEST

/* Not with those that the host would make of the parameters that come back. */
START_TEST(training_goes_on_with_its_copies_when_an_average_was_evaluated)
{
    const cek_array_options arrays = { .size = sizeof arrays,
                                       .count = ROWS,
                                       .input_type = CEK_F32,
                                       .rank = 3,
                                       .shape = { CHANNELS, SIDE, SIDE },
                                       .inputs = inputs,
                                       .labels = labels,
                                       .classes = CLASSES };
    team t;
    cek_model *m = subnormal_network();
    cek_trainer *trainer;
    cek_dataset *set;
    cek_metrics metrics = { .size = sizeof metrics };
    float *copies;

    team_open(&t, lists[_i]);
    flushing_begin(&t);
    trainer = trainer_with(m, &t, CEK_F16, CEK_SHARES_EQUAL, &nothing);
    assert_ok(cek_dataset_arrays(&arrays, &set));
    (void)step_loss(trainer);
    copies = last_copies(trainer, 0);
    assert_ok(cek_trainer_use_average(trainer, true));
    assert_ok(cek_trainer_evaluate(trainer, set, &metrics));
    assert_ok(cek_trainer_use_average(trainer, false));
    for (size_t d = 0; d < t.count; d++)
        copies_are_equal(trainer, d, copies);
    flushing_end(&t);
    cek_trainer_free(trainer);
    cek_dataset_free(set);
    team_close(&t);
    cek_model_free(m);
    free(copies);
}
END_TEST

/* Trained on what lies turned, evaluated on what does not: of the copies, than which the others have no more, there is
 * one in that order. */
START_TEST(copies_are_read_in_another_order_where_evaluation_wants_that)
{
    enum { AXES = 2 };
    const int64_t shape[AXES] = { CHANNELS, SIDE * SIDE };
    const cek_array_options data = { .size = sizeof data,
                                     .input_type = CEK_F32,
                                     .count = ROWS,
                                     .rank = AXES,
                                     .shape = { shape[0], shape[1] },
                                     .inputs = inputs,
                                     .labels = labels,
                                     .classes = CLASSES };
    cek_trainer_options o = { .size = sizeof o, .batch = ROWS, .shares = CEK_SHARES_EQUAL, .type = LOW[_i] };
    cek_metrics few = { .size = sizeof few }, all = { .size = sizeof all };
    cek_dataset *set;
    cek_trainer *trainer;
    cek_model *m;
    team t;
    int x;

    cek_model_free(network(NET)); /* which makes the samples */
    assert_ok(cek_model_create(AXES, shape, &m));
    x = cek_part_phase(m, cek_part_softmax(m, 0, 1), 0);
    x = cek_part_reshape(m, x, 2, (int64_t[]){ CEK_SAMPLES, PIXELS });
    assert_ok(cek_model_linear(m, x, CLASSES, true, NULL));
    cek_model_init(m, 5);
    assert_ok(cek_dataset_arrays(&data, &set));
    team_open(&t, "cpu");
    assert_ok(cek_trainer_create(m, t.devices, t.count, &o, &trainer));
    step_loss(trainer);
    assert_ok(cek_trainer_evaluate(trainer, set, &few));
    assert_ok(cek_trainer_pull(trainer));
    cek_trainer_free(trainer);
    o.type = CEK_F32;
    assert_ok(cek_trainer_create(m, t.devices, t.count, &o, &trainer));
    assert_ok(cek_trainer_evaluate(trainer, set, &all));
    ck_assert_double_eq_tol(few.loss, all.loss, 4 * UNIT[_i] * all.loss); /* of weights, of samples, each way of both */
    cek_trainer_free(trainer);
    cek_dataset_free(set);
    team_close(&t);
    cek_model_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("types_spread");
    TCase *tcase = tcase_create("types_spread");

    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, of_what_products_read_two_bytes_travel, 0, 4);
    tcase_add_loop_test(tcase, copies_are_what_owners_have_rounded, 0, 8);
    tcase_add_loop_test(tcase, copies_of_frozen_parameters_stay_as_they_were_loaded, 0, 8);
    tcase_add_loop_test(tcase, the_average_is_rounded_too_and_parameters_come_back, 0, 8);
    tcase_add_loop_test(tcase, parameters_move_with_all_their_digits, 0, 2);
    tcase_add_loop_test(tcase, steps_go_on_with_other_owners, 0, 2);
    tcase_add_loop_test(tcase, copies_are_the_same_whether_updates_make_them_or_casts, 0, 2);
    tcase_add_test(tcase, replicas_are_equal_where_devices_flush_subnormal_numbers);
    tcase_add_loop_test(tcase, training_goes_on_with_its_copies_when_an_average_was_evaluated, 0, 2);
    tcase_add_loop_test(tcase, copies_are_read_in_another_order_where_evaluation_wants_that, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
