/* device_deadlines.c - tests of waits for devices that hang, that are slow, and of processes that were stopped. */
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>

#include "devices.h"

#define TIMEOUT_NS 24000000u /* of eight slices: what follows counts slices, not time */
enum { SLICES = 8, BYTES = 1 << 20 };

static cek_device *other; /* of a plugin that does not hang */

/* The first device of each file is `device` and `other`. */
static void start_with_timeout(const char *file, uint64_t timeout_ns)
{
    const char *files[] = { fake_install(file), fake_install("well-lazy.so"), NULL };
    cek_engine_options options = {
        .size = sizeof options, .plugin_files = files, .only_plugin_files = true, .timeout_ns = timeout_ns
    };

    assert_ok(cek_engine_create(&options, &engine));
    device = cek_engine_device(engine, 0);
    other = cek_engine_device(engine, 2);
    control = fake_steer(files[0]);
}

/* ---- a device that hangs ---- */

typedef struct hung {
    cek_stream *stream, *well;
    cek_marker *marker, *never;
    cek_memory *memory, *there;
    cek_tensor *tensor;
    cek_op *op;
} hung;

static const cek_pointwise_instruction same = { .code = CEK_PW_MUL_IMM, .imm = 1 };
static const cek_pointwise_input input = { .type = CEK_F32, .strides = { 1 } };
static const cek_pointwise_desc pointwise = {
    .op = { .size = sizeof pointwise,
            .kind = CEK_OP_POINTWISE,
            .operands = CEK_BIT(CEK_POINTWISE_IN0) | CEK_BIT(CEK_POINTWISE_OUT) },
    .rank = 1,
    .out_type = CEK_F32,
    .shape = { 4 },
    .out_strides = { 1 },
    .inputs = &input,
    .instructions = &same,
    .input_count = 1,
    .input_size = sizeof input,
    .instruction_count = 1,
    .instruction_size = sizeof same,
};

static char host[BYTES];

static cek_status sync_stream(hung *h)
{
    return cek_stream_sync(h->stream, CEK_FOREVER);
}

static cek_status sync_marker(hung *h)
{
    return cek_marker_sync(h->marker, CEK_FOREVER);
}

static cek_status sync_device(hung *h)
{
    (void)h;
    return cek_device_sync(device);
}

static cek_status wait_across(hung *h)
{
    return cek_stream_wait(h->well, h->marker);
}

static cek_status copy_from(hung *h)
{
    return cek_stream_copy(h->well, cek_memory_ref(h->there), h->stream, cek_memory_ref(h->memory), BYTES);
}

static cek_status copy_to(hung *h)
{
    return cek_stream_copy(h->stream, cek_memory_ref(h->memory), h->well, cek_memory_ref(h->there), BYTES);
}

static cek_status read_tensor(hung *h)
{
    return cek_tensor_read(h->tensor, host, cek_tensor_bytes(h->tensor));
}

static cek_status write_tensor(hung *h)
{
    return cek_tensor_write(h->tensor, host, cek_tensor_bytes(h->tensor));
}

static cek_status fill_wide(hung *h)
{
    cek_tensor *wide;

    (void)h;
    return cek_tensor_full(device, CEK_F64, 1, (int64_t[]){ 100 }, 1.1, &wide);
}

static cek_status free_stream(hung *h)
{
    cek_stream_free(h->stream);
    h->stream = NULL;
    return cek_device_sync(device);
}

static const struct {
    const char *call;
    cek_status (*wait)(hung *h);
} waits[] = {
    { "queue_sync", sync_stream }, { "event_sync", sync_marker },  { "queue_sync", sync_device },
    { "event_sync", wait_across }, { "queue_sync", copy_from },    { "queue_sync", copy_to },
    { "queue_sync", read_tensor }, { "queue_sync", write_tensor }, { "queue_sync", fill_wide },
    { "queue_sync", free_stream },
};
enum { WAITS = sizeof waits / sizeof *waits };

static void hung_open(hung *h)
{
    assert_ok(cek_stream_create(device, &h->stream));
    assert_ok(cek_stream_create(other, &h->well));
    assert_ok(cek_marker_create(device, false, &h->marker));
    assert_ok(cek_marker_create(device, false, &h->never));
    assert_ok(cek_memory_alloc(device, BYTES, 0, &h->memory));
    assert_ok(cek_memory_alloc(other, BYTES, 0, &h->there));
    assert_ok(cek_op_make(device, &pointwise.op, NULL, &h->op));
    assert_ok(cek_tensor_from_host(device, CEK_F32, 1, (int64_t[]){ 5000 }, host, &h->tensor));
    control->slow = true;
    assert_ok(cek_stream_upload(h->stream, cek_memory_ref(h->memory), host, BYTES));
    assert_ok(cek_marker_record(h->marker, h->stream));
}

static void hung_close(hung *h)
{
    cek_op_free(device, h->op);
    cek_tensor_free(h->tensor);
    cek_marker_free(h->marker);
    cek_marker_free(h->never);
    cek_stream_free(h->stream);
    cek_stream_free(h->well);
    cek_memory_free(h->memory);
    cek_memory_free(h->there);
}

START_TEST(every_wait_for_a_device_that_hangs_ends_with_its_loss)
{
    hung h;
    char lost[64];
    void *pinned;
    cek_memory *memory;
    cek_stream *stream;
    cek_op *op;

    start_with_timeout("a-lazy.so", TIMEOUT_NS);
    hung_open(&h);
    snprintf(lost, sizeof lost, "%s: no command finished for 0.024 s", waits[_i].call);
    ck_assert_uint_eq(waits[_i].wait(&h), CEK_DEVICE_LOST);
    ck_assert_msg(strstr(cek_error_text(), "a:0: ") != NULL && strstr(cek_error_text(), lost) != NULL, "%s",
                  cek_error_text());
    /* From now on the plugin is not asked. */
    control->slow = false;
#define LOST(call) assert_fails(call, CEK_DEVICE_LOST, "a:0: ", lost)
    LOST(cek_marker_query(h.marker));
    LOST(cek_marker_sync(h.marker, 0));
    LOST(cek_device_sync(device));
    LOST(cek_memory_alloc(device, 1, 0, &memory));
    LOST(cek_pinned_alloc(device, 1, &pinned));
    LOST(cek_stream_create(device, &stream));
    LOST(cek_op_make(device, &pointwise.op, NULL, &op));
    LOST(write_tensor(&h));
    if (h.stream != NULL)
        LOST(cek_stream_upload(h.stream, cek_memory_ref(h.memory), host, 1));
    assert_ok(cek_device_sync(other)); /* which is not lost */
    control->slow = true;
    hung_close(&h);
    cek_engine_free(engine);
    ck_assert_int_eq(control->destroyed, 0);
    ck_assert_int_gt(control->live, 5);
    ck_assert_int_gt(control->instances, 0);
    ck_assert_int_eq(fake_steer(scratch_path("well-lazy.so"))->live, 0);
}
END_TEST

START_TEST(an_engine_is_freed_although_its_device_hangs)
{
    cek_tensor *tensor;

    start_with_timeout("a-lazy.so", TIMEOUT_NS);
    assert_ok(cek_tensor_full(device, CEK_F32, 1, (int64_t[]){ 4 }, 1, &tensor));
    cek_tensor_free(tensor);
    control->slow = true;
    cek_engine_free(engine);
    ck_assert_int_eq(control->destroyed, 0);
    ck_assert_int_gt(control->live, 2);
}
END_TEST

START_TEST(the_cache_of_a_device_that_hangs_is_not_waited_for_twice)
{
    cek_tensor *tensor;
    cek_memory *memory;

    start_with_timeout("a-lazy.so", TIMEOUT_NS);
    control->capacity = 4 << 20;
    assert_ok(cek_tensor_full(device, CEK_F32, 1, (int64_t[]){ 4 }, 1, &tensor));
    control->slow = true;
    assert_fails(cek_memory_alloc(device, 8 << 20, 0, &memory), CEK_DEVICE_LOST, "a:0", "no command finished");
    cek_tensor_free(tensor);
    cek_engine_free(engine);
    ck_assert_int_eq(control->destroyed, 0);
}
END_TEST

START_TEST(a_callers_deadline_comes_first)
{
    hung h;

    start_with_timeout("a-lazy.so", 3600000000000u);
    hung_open(&h);
    assert_fails(cek_stream_sync(h.stream, 1000000), CEK_TIMEOUT, "a:0: queue_sync", "time");
    assert_fails(cek_marker_sync(h.marker, 0), CEK_TIMEOUT, "a:0: event_sync", "time");
    control->slow = false;
    assert_ok(cek_stream_sync(h.stream, CEK_FOREVER));
    hung_close(&h);
    stop();
}
END_TEST

/* ---- devices that are slow ---- */

static void upload_much(cek_stream *stream, cek_memory *memory, int commands)
{
    for (int i = 0; i < commands; i++)
        assert_ok(cek_stream_upload(stream, cek_memory_ref(memory), host, 4));
}

/* Waits by which one command finishes, commands: all of them take far longer than the time-out, none alone does; of
 * the longest list, events stand behind every fourth command at the end. */
static const struct {
    int pace, commands;
} slow[] = { { SLICES - 2, 12 }, { 1, 120 }, { 2, 60 } };

START_TEST(a_slow_chain_of_commands_is_no_hang)
{
    cek_stream *stream, *behind;
    cek_marker *marker;
    cek_memory *memory;

    start_with_timeout("a-lazy.so", TIMEOUT_NS);
    assert_ok(cek_stream_create(device, &stream));
    assert_ok(cek_stream_create(device, &behind));
    assert_ok(cek_marker_create(device, false, &marker));
    assert_ok(cek_memory_alloc(device, 4, 0, &memory));
    control->pace = slow[_i].pace;
    upload_much(stream, memory, slow[_i].commands);
    assert_ok(cek_stream_sync(stream, CEK_FOREVER));
    upload_much(stream, memory, slow[_i].commands);
    assert_ok(cek_marker_record(marker, stream));
    assert_ok(cek_marker_sync(marker, CEK_FOREVER));
    /* Nor is it one to who waits for a stream that waits for this one, but the last command here and the first one
     * there look like one. */
    control->pace = (control->pace + 1) / 2;
    upload_much(stream, memory, slow[_i].commands);
    assert_ok(cek_marker_record(marker, stream));
    assert_ok(cek_stream_wait(behind, marker));
    assert_ok(cek_stream_sync(behind, CEK_FOREVER));
    control->pace = 0;
    cek_stream_free(stream);
    cek_stream_free(behind);
    cek_marker_free(marker);
    cek_memory_free(memory);
    stop();
}
END_TEST

START_TEST(a_single_command_that_takes_too_long_is_one)
{
    cek_stream *stream;
    cek_memory *memory;

    start_with_timeout("a-lazy.so", TIMEOUT_NS);
    assert_ok(cek_stream_create(device, &stream));
    assert_ok(cek_memory_alloc(device, 4, 0, &memory));
    control->pace = 1000000;
    upload_much(stream, memory, 3);
    assert_fails(cek_stream_sync(stream, CEK_FOREVER), CEK_DEVICE_LOST, "a:0", "no command finished for 0.024 s");
    cek_stream_free(stream);
    cek_memory_free(memory);
    cek_engine_free(engine);
}
END_TEST

/* Stops this process for twice the time-out while a command takes six of its eight slices. */
START_TEST(a_process_that_was_stopped_has_not_waited)
{
    cek_stream *stream;
    cek_memory *memory;
    pid_t stopper;

    start_with_timeout("a-lazy.so", TIMEOUT_NS);
    assert_ok(cek_stream_create(device, &stream));
    assert_ok(cek_memory_alloc(device, 4, 0, &memory));
    control->pace = SLICES - 2;
    upload_much(stream, memory, 1);
    stopper = fork();
    ck_assert_int_ge(stopper, 0);
    if (stopper == 0) {
        nanosleep(&(struct timespec){ .tv_nsec = TIMEOUT_NS / SLICES * 3 }, NULL);
        kill(getppid(), SIGSTOP);
        nanosleep(&(struct timespec){ .tv_nsec = 2 * TIMEOUT_NS }, NULL);
        kill(getppid(), SIGCONT);
        _exit(0);
    }
    assert_ok(cek_stream_sync(stream, CEK_FOREVER));
    ck_assert_int_eq(waitpid(stopper, NULL, 0), stopper);
    control->pace = 0;
    cek_stream_free(stream);
    cek_memory_free(memory);
    stop();
}
END_TEST

/* ---- the time-out ---- */

START_TEST(the_time_out_comes_from_the_option_or_the_variable)
{
    cek_stream *stream;
    cek_memory *memory;

    setenv("CEKERNELS_TIMEOUT", "0.016", 1);
    start_with_timeout("a-lazy.so", _i == 0 ? 0 : TIMEOUT_NS);
    assert_ok(cek_stream_create(device, &stream));
    assert_ok(cek_memory_alloc(device, 4, 0, &memory));
    control->slow = true;
    assert_fails(cek_stream_sync(stream, CEK_FOREVER), CEK_DEVICE_LOST, "a:0",
                 _i == 0 ? "finished for 0.016 s" : "finished for 0.024 s");
    cek_stream_free(stream);
    cek_memory_free(memory);
    cek_engine_free(engine);
}
END_TEST

START_TEST(a_time_out_that_is_none_is_refused)
{
    static const char *const texts[] = { "soon", "0", "-1", "1e30" };

    setenv("CEKERNELS_TIMEOUT", texts[_i], 1);
    assert_fails(cek_engine_create(NULL, &engine), CEK_INVALID,
                 "CEKERNELS_TIMEOUT: ", _i == 0 ? "'soon'" : "out of range");
    ck_assert_ptr_null(engine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device deadlines");
    TCase *tc = tcase_create("device deadlines");

    tcase_add_checked_fixture(tc, fakes_setup, scratch_remove);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, every_wait_for_a_device_that_hangs_ends_with_its_loss, 0, WAITS);
    tcase_add_test(tc, an_engine_is_freed_although_its_device_hangs);
    tcase_add_test(tc, the_cache_of_a_device_that_hangs_is_not_waited_for_twice);
    tcase_add_test(tc, a_callers_deadline_comes_first);
    tcase_add_loop_test(tc, a_slow_chain_of_commands_is_no_hang, 0, sizeof slow / sizeof *slow);
    tcase_add_test(tc, a_single_command_that_takes_too_long_is_one);
    tcase_add_test(tc, a_process_that_was_stopped_has_not_waited);
    tcase_add_loop_test(tc, the_time_out_comes_from_the_option_or_the_variable, 0, 2);
    tcase_add_loop_test(tc, a_time_out_that_is_none_is_refused, 0, 4);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
