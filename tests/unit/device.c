/* device.c - tests of devices: opening, streams and markers, and an end of the host's memory. */
#include <math.h>
#include <stddef.h>

#include "core/base/fault.h"
#include "devices.h"

/* ---- opening and failing calls ---- */

START_TEST(a_device_is_opened_when_first_used)
{
    const cek_plugin *table;
    cek_dev *dev;
    cek_device_info info = { .size = sizeof info };

    start("a.so");
    ck_assert_int_eq(control->live, 1); /* the instance */
    assert_ok(cek_device_describe(device, &info));
    assert_ok(cek_device_sync(device));
    ck_assert_int_eq(control->live, 1);
    assert_ok(cek_device_raw(device, &table, &dev));
    ck_assert_int_eq(control->live, 2);
    ck_assert_str_eq(table->name, "a");
    ck_assert_ptr_eq(cek_device_engine(device), engine);
    stop();
}
END_TEST

START_TEST(a_device_that_does_not_open_says_why)
{
    const cek_plugin *table = (const cek_plugin *)&table;
    cek_dev *dev = (cek_dev *)&dev;
    cek_memory *memory = (cek_memory *)&memory;

    start("a-noopen.so");
    assert_fails(cek_device_raw(device, &table, &dev), CEK_INTERNAL, "a:0: device_open", "in use elsewhere");
    ck_assert_ptr_null(table);
    ck_assert_ptr_null(dev);
    assert_fails(cek_memory_alloc(device, 1, 0, &memory), CEK_INTERNAL, "a:0", "in use elsewhere");
    ck_assert_ptr_null(memory);
    stop();
}
END_TEST

START_TEST(statuses_without_a_text_get_one_and_unknown_ones_are_internal)
{
    cek_memory *memory;
    cek_stream *stream;

    start("a.so");
    control->silent_status = 4711;
    assert_fails(cek_memory_alloc(device, 1, 0, &memory), CEK_INTERNAL, "a:0: mem_alloc", "unknown status 4711");
    control->silent_status = CEK_UNSUPPORTED;
    assert_fails(cek_memory_alloc(device, 1, 0, &memory), CEK_UNSUPPORTED, "a:0: mem_alloc", "not available");
    control->silent_status = CEK_BAD_INPUT; /* a status of the libraries, which no plugin may answer */
    assert_fails(cek_memory_alloc(device, 1, 0, &memory), CEK_INTERNAL, "a:0: mem_alloc", "unknown status 64");
    control->silent_status = 0;
    assert_ok(cek_stream_create(device, &stream));
    control->lost = true;
    assert_fails(cek_memory_alloc(device, 1, 0, &memory), CEK_DEVICE_LOST, "a:0: mem_alloc",
                 "the fake cable was pulled");
    assert_fails(cek_stream_sync(stream, 0), CEK_DEVICE_LOST, "a:0: queue_sync", "the fake cable was pulled");
    cek_stream_free(stream);
    stop();
}
END_TEST

START_TEST(what_a_failed_queue_create_leaves_is_not_touched)
{
    cek_stream *stream;

    start("a-stale.so");
    assert_fails(cek_stream_create(device, &stream), CEK_OUT_OF_MEMORY, "a:0: queue_create", "no queue is left");
    ck_assert_ptr_null(stream);
    stop();
}
END_TEST

START_TEST(sensors_are_read_of_a_device_that_is_not_open)
{
    cek_device_sensors all = { .size = sizeof all };
    struct {
        uint32_t size, known;
        double utilization;
        uint64_t guard;
    } older = { .size = offsetof(cek_device_sensors, interval_ns), .guard = 7 };

    start("a-sensors.so");
    control->sensors = (cek_device_sensors){ .known = CEK_SENSOR_UTILIZATION | CEK_SENSOR_POWER | 1u << 30,
                                             .utilization = 0.25,
                                             .watts = 700 };
    assert_ok(cek_device_read_sensors(device, &all));
    ck_assert_int_eq(control->live, 1); /* the instance */
    ck_assert_uint_eq(all.size, sizeof all);
    ck_assert_uint_eq(all.known & (CEK_SENSOR_MEMORY | CEK_SENSOR_UTILIZATION), CEK_SENSOR_UTILIZATION);
    ck_assert(all.utilization == 0.25);
    ck_assert(all.watts == 700);
    assert_ok(cek_device_read_sensors(device, (cek_device_sensors *)&older));
    ck_assert(older.utilization == 0.25);
    ck_assert_uint_eq(older.guard, 7);
    all.size = 0;
    assert_fails(cek_device_read_sensors(device, &all), CEK_INVALID, "a:0: the result's size", "was not set");
    all.size = UINT32_MAX; /* never set: nothing is written there */
    assert_fails(cek_device_read_sensors(device, &all), CEK_INVALID, "a:0: the result's size", "was not set");
    assert_fails(cek_device_describe(device, &(cek_device_info){ .size = UINT32_MAX }), CEK_INVALID, "a:0", "not set");
    assert_fails(cek_device_memory_stats(device, &(cek_memory_stats){ .size = UINT32_MAX }), CEK_INVALID, "a:0",
                 "not set");
    assert_fails(cek_device_read_times(device, &(cek_device_times){ .size = UINT32_MAX }), CEK_INVALID, "a:0",
                 "not set");
    all.size = sizeof all;
    control->lost = true;
    assert_fails(cek_device_read_sensors(device, &all), CEK_DEVICE_LOST, "a:0: device_sensors", "");
    ck_assert(all.watts == 0 && all.known == 0);
    control->lost = false;
    stop();
}
END_TEST

START_TEST(sensors_that_tell_what_cannot_be_are_not_passed_on)
{
    static const struct {
        cek_device_sensors told;
        const char *text;
    } cases[] = {
        { { .known = CEK_SENSOR_UTILIZATION, .utilization = 1.5 }, "a utilization of 1.5, not 0 to 1" },
        { { .known = CEK_SENSOR_UTILIZATION, .utilization = NAN }, "a utilization of nan" },
        { { .known = CEK_SENSOR_TEMPERATURE, .celsius = -300 }, "a temperature of -300" },
        { { .known = CEK_SENSOR_POWER, .watts = INFINITY }, "a power of inf" },
        { { .known = CEK_SENSOR_CLOCK, .hertz = -1 }, "a clock of -1" },
        { { .known = CEK_SENSOR_MEMORY, .used_bytes = 2, .total_bytes = 1 }, "used memory of 2, not 0 to 1" },
        { { .known = CEK_SENSOR_THROTTLED, .throttled = 2 }, "throttled of 2" },
    };

    start("a-sensors.so");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cek_device_sensors all = { .size = sizeof all };

        control->sensors = cases[i].told;
        assert_fails(cek_device_read_sensors(device, &all), CEK_BAD_PLUGIN, "a:0: device_sensors", cases[i].text);
        ck_assert_uint_eq(all.known, 0);
        control->sensors.known = 0; /* what is unknown may be anything there, and is 0 here */
        assert_ok(cek_device_read_sensors(device, &all));
        ck_assert_mem_eq(&all, (&(cek_device_sensors){ .size = sizeof all }), sizeof all);
    }
    stop();
    start("a.so");
    cek_device_sensors none = { .size = sizeof none };
    assert_fails(cek_device_read_sensors(device, &none), CEK_UNSUPPORTED, "a:0", "the plugin has no device_sensors");
    stop();
}
END_TEST

/* ---- streams and markers ---- */

START_TEST(a_stream_works_in_order_and_a_marker_tells_how_far)
{
    cek_stream *stream;
    cek_marker *first, *second;
    cek_memory *memory;
    uint32_t in[2] = { 1, 2 }, out[2] = { 0 };
    uint64_t ns;

    start("a-lazy.so");
    assert_ok(cek_stream_create(device, &stream));
    ck_assert_ptr_eq(cek_stream_device(stream), device);
    ck_assert_ptr_nonnull(cek_stream_raw(stream));
    assert_ok(cek_marker_create(device, true, &first));
    assert_ok(cek_marker_create(device, true, &second));
    assert_ok(cek_memory_alloc(device, 4, 0, &memory));
    assert_fails(cek_marker_query(first), CEK_INVALID, "a:0: event_query", "never recorded");
    assert_ok(cek_stream_upload(stream, cek_memory_ref(memory), &in[0], 4));
    assert_ok(cek_stream_download(stream, &out[0], cek_memory_ref(memory), 4));
    assert_ok(cek_marker_record(first, stream));
    assert_ok(cek_stream_upload(stream, cek_memory_ref(memory), &in[1], 4));
    assert_ok(cek_stream_download(stream, &out[1], cek_memory_ref(memory), 4));
    assert_ok(cek_marker_record(second, stream));
    ck_assert_uint_eq(cek_marker_query(first), CEK_NOT_READY);
    assert_ok(cek_marker_sync(first, CEK_FOREVER));
    assert_ok(cek_marker_query(first));
    ck_assert_uint_eq(cek_marker_query(second), CEK_NOT_READY);
    ck_assert_uint_eq(out[0], 1);
    ck_assert_uint_eq(out[1], 0);
    assert_ok(cek_device_sync(device));
    assert_ok(cek_marker_query(second));
    ck_assert_uint_eq(out[1], 2);
    assert_ok(cek_marker_elapsed(first, second, &ns));
    ck_assert_uint_gt(ns, 0);
    assert_ok(cek_stream_upload(stream, (cek_ref){ 0 }, NULL, 0));
    control->slow = true;
    assert_fails(cek_stream_sync(stream, 1000), CEK_TIMEOUT, "a:0: queue_sync", "time");
    control->slow = false;
    assert_ok(cek_stream_sync(stream, 1000));
    cek_marker_free(first);
    cek_marker_free(second);
    cek_marker_free(NULL);
    cek_stream_free(stream);
    cek_stream_free(NULL);
    cek_memory_free(memory);
    stop();
}
END_TEST

START_TEST(a_stream_fills_updates_and_runs_operations)
{
    cek_stream *stream;
    cek_memory *memory;
    cek_op *op;
    cek_cmdbuf *commands;
    cek_pointwise_input input = { .type = CEK_F32, .strides = { 1 } };
    cek_pointwise_instruction twice = { .code = CEK_PW_MUL_IMM, .imm = 2 };
    cek_op_info info = { .size = sizeof info };
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc,
                .kind = CEK_OP_POINTWISE,
                .operands = CEK_BIT(CEK_POINTWISE_IN0) | CEK_BIT(CEK_POINTWISE_OUT) },
        .rank = 1,
        .out_type = CEK_F32,
        .shape = { 4 },
        .out_strides = { 1 },
        .inputs = &input,
        .instructions = &twice,
        .input_count = 1,
        .input_size = sizeof input,
        .instruction_count = 1,
        .instruction_size = sizeof twice,
    };
    cek_ref operands[CEK_POINTWISE_OUT + 1] = { { 0 } };
    float block[2] = { 3, 4 }, out[4];

    start("a-lazy.so");
    assert_ok(cek_stream_create(device, &stream));
    assert_ok(cek_memory_alloc(device, sizeof out, 0, &memory));
    operands[CEK_POINTWISE_IN0] = operands[CEK_POINTWISE_OUT] = cek_memory_ref(memory);
    assert_ok(cek_op_make(device, &desc.op, &info, &op));
    assert_ok(cek_stream_fill(stream, cek_memory_ref(memory), 0x3f800000, 4, sizeof out));
    assert_ok(cek_stream_update(stream, cek_memory_ref(memory), block, sizeof block));
    block[0] = 77; /* was copied */
    assert_ok(cek_stream_run(stream, op, operands, CEK_POINTWISE_OUT + 1, (cek_ref){ 0 }));
    assert_ok(cek_stream_download(stream, out, cek_memory_ref(memory), sizeof out));
    assert_ok(cek_stream_sync(stream, CEK_FOREVER));
    ck_assert(out[0] == 6 && out[1] == 8 && out[2] == 2 && out[3] == 2);
    assert_ok(cek_stream_fill(stream, (cek_ref){ 0 }, 0, 4, 0));
    assert_ok(cek_stream_update(stream, (cek_ref){ 0 }, NULL, 0));
    cek_op_free(device, op);
    cek_op_free(device, NULL);
    desc.out_type = CEK_F64;
    assert_fails(cek_op_make(device, &desc.op, NULL, &op), CEK_UNSUPPORTED, "a:0: op_create", "nothing but pointwise");
    ck_assert_ptr_null(op);
    assert_fails(cek_commands_make(device, &(cek_cmd){ .kind = CEK_CMD_RUN }, 1, &commands), CEK_UNSUPPORTED,
                 "a:0: cmdbuf_create", "the plugin has no cmdbuf_create");
    ck_assert_ptr_null(commands);
    cek_commands_free(device, NULL);
    control->poison = true;
    assert_ok(cek_stream_fill(stream, cek_memory_ref(memory), 0, 4, sizeof out));
    ck_assert_uint_eq(cek_stream_sync(stream, CEK_FOREVER), CEK_INTERNAL);
    assert_fails(cek_stream_fill(stream, cek_memory_ref(memory), 0, 4, 4), CEK_INTERNAL, "a:0: fill", "caught fire");
    assert_fails(cek_stream_update(stream, cek_memory_ref(memory), block, 4), CEK_INTERNAL, "a:0: update", "fire");
    cek_stream_free(stream);
    cek_memory_free(memory);
    stop();
}
END_TEST

START_TEST(a_failure_of_queued_work_is_told_with_its_text)
{
    cek_stream *stream, *waiter;
    cek_marker *marker;
    cek_memory *memory;
    uint32_t value = 1;

    start("a-lazy.so");
    assert_ok(cek_stream_create(device, &stream));
    assert_ok(cek_stream_create(device, &waiter));
    assert_ok(cek_marker_create(device, false, &marker));
    assert_ok(cek_memory_alloc(device, 4, 0, &memory));
    control->poison = true;
    assert_ok(cek_stream_upload(stream, cek_memory_ref(memory), &value, 4));
    assert_ok(cek_marker_record(marker, stream));
    assert_ok(cek_stream_wait(waiter, marker));
    assert_fails(cek_stream_sync(stream, CEK_FOREVER), CEK_INTERNAL, "a:0: queue_sync", "a fake kernel caught fire");
    assert_fails(cek_stream_sync(stream, CEK_FOREVER), CEK_INTERNAL, "a:0: queue_sync", "a fake kernel caught fire");
    assert_fails(cek_stream_upload(stream, cek_memory_ref(memory), &value, 4), CEK_INTERNAL, "a:0: upload",
                 "caught fire");
    assert_fails(cek_marker_sync(marker, CEK_FOREVER), CEK_INTERNAL, "a:0: event_sync", "caught fire");
    assert_fails(cek_stream_sync(waiter, CEK_FOREVER), CEK_INTERNAL, "a:0", "caught fire");
    assert_fails(cek_device_sync(device), CEK_INTERNAL, "a:0", "caught fire");
    cek_stream_free(waiter);
    cek_stream_free(stream);
    cek_marker_free(marker);
    cek_memory_free(memory);
    stop();
}
END_TEST

START_TEST(streams_wait_for_markers_on_their_device_and_across)
{
    cek_device *other;
    cek_stream *maker, *taker, *far;
    cek_marker *made, *never;
    cek_memory *memory;
    uint32_t in = 42, out = 0;

    start("a-lazy.so");
    other = cek_engine_device(engine, 1);
    assert_ok(cek_stream_create(device, &maker));
    assert_ok(cek_stream_create(device, &taker));
    assert_ok(cek_stream_create(other, &far));
    assert_ok(cek_marker_create(device, false, &made));
    assert_ok(cek_marker_create(other, false, &never));
    assert_ok(cek_memory_alloc(device, 4, 0, &memory));
    assert_ok(cek_stream_upload(maker, cek_memory_ref(memory), &in, 4));
    assert_ok(cek_marker_record(made, maker));
    assert_ok(cek_stream_wait(taker, made));
    assert_ok(cek_stream_download(taker, &out, cek_memory_ref(memory), 4));
    assert_ok(cek_stream_sync(taker, CEK_FOREVER));
    ck_assert_uint_eq(out, 42);
    in = 43;
    assert_ok(cek_stream_upload(maker, cek_memory_ref(memory), &in, 4));
    assert_ok(cek_marker_record(made, maker));
    assert_ok(cek_stream_wait(far, made)); /* of another device: has happened when the call returns */
    assert_ok(cek_marker_query(made));
    assert_fails(cek_marker_record(made, far), CEK_INVALID, "a:0", "a:1");
    uint64_t ns = 7;
    assert_fails(cek_marker_elapsed(made, never, &ns), CEK_INVALID, "a:0", "a:1");
    ck_assert_uint_eq(ns, 0);
    cek_marker_free(made);
    cek_marker_free(never);
    cek_stream_free(far);
    cek_stream_free(taker);
    cek_stream_free(maker);
    cek_memory_free(memory);
    stop();
}
END_TEST

/* ---- host memory runs out ---- */

static cek_status use_everything(void)
{
    cek_status st;
    cek_device *other = cek_engine_device(engine, 1);
    cek_stream *from = NULL, *to = NULL;
    cek_marker *marker = NULL;
    cek_memory *src = NULL, *dst = NULL, *large = NULL, *alone = NULL;
    void *pinned = NULL;

    CEK_TRY(cek_memory_alloc(device, 100, 0, &src));
    CEK_TRY(cek_memory_alloc(other, 100, 0, &dst));
    CEK_TRY(cek_memory_alloc(other, 5 << 20, 0, &large));
    CEK_TRY(cek_memory_alloc(other, 100, CEK_MEMORY_ALONE, &alone));
    CEK_TRY(cek_stream_create(device, &from));
    CEK_TRY(cek_stream_create(other, &to));
    CEK_TRY(cek_marker_create(device, true, &marker));
    CEK_TRY(cek_marker_record(marker, from));
    CEK_TRY(cek_stream_copy(to, cek_memory_ref(dst), from, cek_memory_ref(src), 100));
    CEK_TRY(cek_stream_wait(to, marker));
    CEK_TRY(cek_pinned_alloc(device, 100, &pinned));
out:
    cek_pinned_free(device, pinned);
    cek_marker_free(marker);
    cek_stream_free(from);
    cek_stream_free(to);
    cek_memory_free(src);
    cek_memory_free(dst);
    cek_memory_free(large);
    cek_memory_free(alone);
    return st;
}

START_TEST(every_failing_allocation_is_reported_and_leaves_nothing)
{
    long site, failures = 0;

    for (site = 1;; site++) {
        cek_status st;
        bool pending;

        start("a-lazy.so");
        cek__fault_set(CEK__FAULT_ALLOC, site);
        st = use_everything();
        pending = cek__fault_pending(CEK__FAULT_ALLOC);
        cek__fault_set(CEK__FAULT_ALLOC, 0);
        failures += st != CEK_OK;
        ck_assert(st == CEK_OK || (st == CEK_OUT_OF_MEMORY && strstr(cek_error_text(), "out of ") != NULL));
        for (size_t i = 0; i < 2; i++)
            ck_assert_uint_eq(stats_of(cek_engine_device(engine, i)).used_bytes, 0);
        stop();
        if (pending)
            break;
    }
    /* Memory requests try again and so survive; streams, markers and staging do not. */
    ck_assert_int_ge(site, 12);
    ck_assert_int_ge(failures, 5);
}
END_TEST

/* ---- lives ---- */

typedef struct belongings {
    cek_tensor *tensor, *sum;
    cek_memory *memory;
    cek_stream *stream;
    cek_marker *marker;
    void *pinned;
    cek_op *op;
    cek_device *of;
} belongings;

static void tensor_free(belongings *b)
{
    float values[2] = { 0 };

    assert_ok(cek_tensor_read(b->tensor, values, sizeof values)); /* it works as before */
    ck_assert_float_eq(values[1], 2.5f);
    cek_tensor_free(b->tensor);
}

static void sum_free(belongings *b)
{
    cek_tensor_free(b->sum);
}

static void memory_free(belongings *b)
{
    cek_memory_free(b->memory);
}

static void stream_free(belongings *b)
{
    assert_ok(cek_stream_sync(b->stream, CEK_FOREVER));
    cek_stream_free(b->stream);
}

static void marker_free(belongings *b)
{
    cek_marker_free(b->marker);
}

static void pinned_free(belongings *b)
{
    cek_pinned_free(b->of, b->pinned);
}

static void op_free(belongings *b)
{
    cek_op_free(b->of, b->op);
}

/* Garbage collectors free in any order: whoever is last, the engine and its plugin go with it and not before. */
START_TEST(an_engine_lives_as_long_as_its_last_object)
{
    static void (*const frees[])(belongings *) = { tensor_free, sum_free,    memory_free, stream_free,
                                                   marker_free, pinned_free, op_free };
    enum { FREES = sizeof frees / sizeof *frees };
    float values[2] = { 1, 2.5f };
    cek_pointwise_input input = { .type = CEK_F32, .strides = { 1 } };
    cek_pointwise_instruction neg = { .code = CEK_PW_NEG, .a = 0 };
    cek_op_info info = { .size = sizeof info };
    cek_pointwise_desc desc = { .op = { .size = sizeof desc,
                                        .kind = CEK_OP_POINTWISE,
                                        .operands = CEK_BIT(CEK_POINTWISE_IN0) | CEK_BIT(CEK_POINTWISE_OUT) },
                                .rank = 1,
                                .out_type = CEK_F32,
                                .shape = { 2 },
                                .out_strides = { 1 },
                                .inputs = &input,
                                .instructions = &neg,
                                .input_count = 1,
                                .input_size = sizeof input,
                                .instruction_count = 1,
                                .instruction_size = sizeof neg };
    belongings b;

    start("a-pinned.so");
    b.of = device;
    assert_ok(cek_tensor_from_host(device, CEK_F32, 1, (int64_t[]){ 2 }, values, &b.tensor));
    assert_ok(cek_add(b.tensor, b.tensor, &b.sum));
    assert_ok(cek_memory_alloc(device, 1000, 0, &b.memory));
    assert_ok(cek_stream_create(device, &b.stream));
    assert_ok(cek_marker_create(device, false, &b.marker));
    assert_ok(cek_pinned_alloc(device, 100, &b.pinned));
    assert_ok(cek_op_make(device, &desc.op, &info, &b.op));
    cek_engine_free(engine);
    for (int i = 0; i < FREES; i++) {
        ck_assert_int_eq(control->instances, 1);
        frees[(_i + i) % FREES](&b);
    }
    ck_assert_int_eq(control->instances, 0);
    ck_assert_int_eq(control->live, 0);
    ck_assert_uint_eq(control->bytes, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device");
    TCase *tc = tcase_create("device");

    tcase_add_checked_fixture(tc, scratch_make, scratch_remove);
    tcase_add_test(tc, a_device_is_opened_when_first_used);
    tcase_add_test(tc, a_device_that_does_not_open_says_why);
    tcase_add_test(tc, statuses_without_a_text_get_one_and_unknown_ones_are_internal);
    tcase_add_test(tc, what_a_failed_queue_create_leaves_is_not_touched);
    tcase_add_test(tc, sensors_are_read_of_a_device_that_is_not_open);
    tcase_add_test(tc, sensors_that_tell_what_cannot_be_are_not_passed_on);
    tcase_add_test(tc, a_stream_works_in_order_and_a_marker_tells_how_far);
    tcase_add_test(tc, a_stream_fills_updates_and_runs_operations);
    tcase_add_test(tc, a_failure_of_queued_work_is_told_with_its_text);
    tcase_add_test(tc, streams_wait_for_markers_on_their_device_and_across);
    tcase_add_test(tc, every_failing_allocation_is_reported_and_leaves_nothing);
    tcase_add_loop_test(tc, an_engine_lives_as_long_as_its_last_object, 0, 7);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
