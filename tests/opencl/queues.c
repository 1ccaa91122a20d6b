/* queues.c - what the opencl plugin asks of a driver beside the commands themselves: arguments, flushes, queues,
 * statuses, profiling, waits; and that its command buffers do what their commands do. */
#include "tests/opencl/failures.h"

enum { ROWS = 4, COLUMNS = 4, VALUES = ROWS * COLUMNS };

static cek_status run_on(cek_ref from, cek_ref to)
{
    return d.plugin.op_run(d.queue, op, (cek_ref[]){ from, to }, 2, (cek_ref){ NULL, 0 });
}

static void sync_queue(void)
{
    cek_status st = d.plugin.queue_sync(d.queue, CEK_FOREVER);
    ck_assert_msg(st == CEK_OK, "queue_sync: %u %s", st, d.text);
}

/* Rows of equal values have a softmax of 1/COLUMNS, which what was there before is not. */
static void holds_softmax(cek_ref to)
{
    float got[VALUES];
    ck_assert_uint_eq(d.plugin.download(d.queue, got, to, sizeof got), CEK_OK);
    sync_queue();
    for (int i = 0; i < VALUES; i++)
        ck_assert_msg(got[i] == 1.0f / COLUMNS, "value %d is %g", i, (double)got[i]);
}

static void clear(cek_ref at)
{
    ck_assert_uint_eq(d.plugin.fill(d.queue, at, 0, 4, BYTES), CEK_OK);
}

/* --- arguments -------------------------------------------------------------------------------- */

START_TEST(an_argument_is_set_when_it_differs_from_the_one_before)
{
    int before;
    open_door();
    clear(a);
    ck_assert_uint_eq(run_on(a, b), CEK_OK);
    before = shim.argument.calls;
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(run_on(a, b), CEK_OK);
    ck_assert_int_eq(shim.argument.calls, before);
    ck_assert_uint_eq(run_on(a, (cek_ref){ b.mem, 256 }), CEK_OK); /* the offset is among the numbers */
    ck_assert_int_eq(shim.argument.calls, before + 1);
    holds_softmax((cek_ref){ b.mem, 256 });
    ck_assert_uint_eq(run_on(b, a), CEK_OK);
    ck_assert_int_eq(shim.argument.calls, before + 4);
    sync_queue();
    shut_door(0);
}
END_TEST

/* Handles and addresses come back; what they name is another memory. */
START_TEST(memory_in_the_place_of_another_is_an_argument_of_its_own)
{
    open_door();
    clear(a);
    for (int i = 0; i < 8; i++) {
        cek_ref to = { door_mem(&d, BYTES), 0 };
        int before = shim.argument.calls;
        ck_assert_uint_eq(run_on(a, to), CEK_OK);
        ck_assert_int_ge(shim.argument.calls, before + 1);
        holds_softmax(to);
        d.plugin.mem_free(to.mem);
    }
    shut_door(0);
}
END_TEST

START_TEST(an_argument_that_could_not_be_set_is_set_the_next_time)
{
    open_door();
    clear(a);
    ck_assert_uint_eq(run_on(b, a), CEK_OK);
    for (int after = 0; after < 3; after++) { /* of the three that differ */
        cek_ref from = after % 2 ? b : a, to = { after % 2 ? a.mem : b.mem, 256 * (uint64_t)(after + 1) };
        shim.argument.error = CL_OUT_OF_HOST_MEMORY;
        shim.argument.after = after;
        ck_assert_uint_eq(run_on(from, to), CEK_OUT_OF_MEMORY);
        shim.argument.error = 0;
        ck_assert_uint_eq(run_on(from, to), CEK_OK);
    }
    clear(a);
    ck_assert_uint_eq(run_on(a, b), CEK_OK);
    holds_softmax(b);
    shut_door(0);
}
END_TEST

/* --- command buffers -------------------------------------------------------------------------- */

static cek_cmdbuf *recorded(const cek_cmd *cmds, uint32_t count)
{
    cek_cmdbuf *cmdbuf = NULL;
    cek_status st = d.plugin.cmdbuf_create(d.dev, cmds, count, sizeof *cmds, &cmdbuf);
    ck_assert_msg(st == CEK_OK, "cmdbuf_create: %u %s", st, d.text);
    return cmdbuf;
}

#define RUN(from, to)                                                                          \
    {                                                                                          \
        .kind = CEK_CMD_RUN, .op = op, .operands = (cek_ref[]){ from, to }, .operand_count = 2 \
    }

/* As a list of ours, and as one command of a driver's that can. */
static void open_recorder(bool of_driver)
{
    shim.device = of_driver ? CL_DEVICE_TYPE_GPU : 0;
    shim.recorder = of_driver;
    open_door();
}

START_TEST(a_command_buffer_sets_no_argument_and_is_flushed)
{
    open_recorder(_i);
    const cek_cmd cmds[] = { RUN(a, b), RUN(b, a), RUN(a, b) };
    cek_cmdbuf *cmdbuf = recorded(cmds, 3);
    for (int i = 0; i < 4; i++) {
        clear(a);
        clear(b);
        int arguments = shim.argument.calls, flushes = shim.flush.calls, launches = shim.launch.calls;
        ck_assert_uint_eq(d.plugin.cmdbuf_run(d.queue, cmdbuf), CEK_OK);
        ck_assert_int_eq(shim.argument.calls, arguments);
        ck_assert_int_eq(shim.flush.calls, flushes + 1);
        ck_assert_int_eq(shim.launch.calls, launches + (_i ? 0 : 3));
        holds_softmax(b);
    }
    clear(a);
    ck_assert_uint_eq(run_on(a, b), CEK_OK); /* the operation's own arguments are where they were */
    holds_softmax(b);
    d.plugin.cmdbuf_destroy(cmdbuf);
    shut_door(0);
}
END_TEST

START_TEST(a_command_buffer_runs_again_before_its_last_run_has_ended)
{
    open_recorder(_i);
    const cek_cmd cmds[] = { RUN(a, b), { .kind = CEK_CMD_COPY, .dst = a, .src = b, .bytes = BYTES } },
                  plain[] = { RUN(a, b), RUN(b, a) };
    cek_cmdbuf *both[] = { recorded(cmds, 2), recorded(plain, 2) };
    clear(a);
    for (int i = 0; i < 40; i++)
        ck_assert_uint_eq(d.plugin.cmdbuf_run(d.queue, both[i % 4 > 0]), CEK_OK);
    holds_softmax(a);
    for (int i = 0; i < 2; i++)
        d.plugin.cmdbuf_destroy(both[i]);
    shut_door(0);
}
END_TEST

START_TEST(half_a_command_buffer_makes_the_queue_fail)
{
    open_door();
    const cek_cmd cmds[] = { RUN(a, b), RUN(b, a) };
    cek_cmdbuf *cmdbuf = recorded(cmds, 2);
    shim.launch.error = CL_OUT_OF_HOST_MEMORY;
    ck_assert_uint_eq(d.plugin.cmdbuf_run(d.queue, cmdbuf), CEK_OUT_OF_MEMORY); /* nothing was enqueued */
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OK);
    shim.launch.after = 1;
    ck_assert_uint_eq(d.plugin.cmdbuf_run(d.queue, cmdbuf), CEK_OUT_OF_MEMORY);
    shim.launch.error = 0;
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.cmdbuf_run(d.queue, cmdbuf), CEK_OUT_OF_MEMORY);
    d.plugin.cmdbuf_destroy(cmdbuf);
    shut_door(1);
}
END_TEST

START_TEST(copies_and_fills_are_recorded_too)
{
    unsigned char got[BYTES];
    open_door();
    const cek_cmd cmds[] = { { .kind = CEK_CMD_FILL, .dst = a, .bytes = BYTES, .pattern = 0x5a, .pattern_bytes = 1 },
                             { .kind = CEK_CMD_COPY, .dst = { b.mem, 256 }, .src = a, .bytes = 512 } };
    cek_cmdbuf *cmdbuf = recorded(cmds, 2);
    clear(b);
    ck_assert_uint_eq(d.plugin.cmdbuf_run(d.queue, cmdbuf), CEK_OK);
    ck_assert_uint_eq(d.plugin.download(d.queue, got, b, BYTES), CEK_OK);
    sync_queue();
    for (int i = 0; i < BYTES; i++)
        ck_assert_int_eq(got[i], i >= 256 && i < 768 ? 0x5a : 0);
    d.plugin.cmdbuf_destroy(cmdbuf);
    shut_door(0);
}
END_TEST

START_TEST(a_command_buffer_that_cannot_be_made_leaves_nothing)
{
    cek_cmdbuf *cmdbuf = (cek_cmdbuf *)&d;
    open_door();
    const cek_cmd cmds[] = { RUN(a, b), RUN(b, a) }, same[] = { RUN(a, b), RUN(a, ((cek_ref){ b.mem, 2 })) };
    shim_call *const calls[] = { &shim.kernel, &shim.argument };
    int kernels = shim.kernels;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        calls[i]->error = CL_OUT_OF_HOST_MEMORY;
        calls[i]->after = 1;
        ck_assert_uint_eq(d.plugin.cmdbuf_create(d.dev, cmds, 2, sizeof *cmds, &cmdbuf), CEK_OUT_OF_MEMORY);
        ck_assert_msg(strstr(d.text, "cmdbuf_create") != NULL, "%s", d.text);
        ck_assert_ptr_null(cmdbuf);
        ck_assert_int_eq(shim.kernels, kernels);
        calls[i]->error = 0;
    }
    ck_assert_uint_eq(d.plugin.cmdbuf_create(d.dev, same, 2, sizeof *cmds, &cmdbuf), CEK_INVALID);
    ck_assert_ptr_null(cmdbuf);
    ck_assert_int_eq(shim.kernels, kernels);
    shut_door(0);
}
END_TEST

/* --- queues ----------------------------------------------------------------------------------- */

START_TEST(what_is_made_shares_one_queue)
{
    void *at;
    cek_op *other[3];
    cek_mem *mem[3];
    cek_softmax_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_SOFTMAX, .operands = 3 },
                              .rows = 4,
                              .columns = 4 };
    desc.type = CEK_F32;
    shim.device = CL_DEVICE_TYPE_GPU; /* which fills, maps and warms up */
    shim.no_svm = true;
    open_door();
    int before = shim.queue.calls;
    ck_assert_int_eq(shim.queues, 2); /* the door's and the device's own */
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(d.plugin.op_create(d.dev, &desc.op, NULL, &other[i]), CEK_OK);
        mem[i] = door_mem(&d, BYTES);
        ck_assert_uint_eq(d.plugin.mem_map(mem[i], CEK_MAP_READ, &at), CEK_OK);
        ck_assert_uint_eq(d.plugin.mem_unmap(mem[i]), CEK_OK);
        ck_assert_uint_eq(d.plugin.host_alloc(d.dev, BYTES, &at), CEK_OK);
        d.plugin.host_free(d.dev, at);
    }
    ck_assert_int_eq(shim.queue.calls, before);
    for (int i = 0; i < 3; i++) {
        d.plugin.op_destroy(other[i]);
        d.plugin.mem_free(mem[i]);
    }
    shut_door(0);
}
END_TEST

START_TEST(the_one_queue_is_made_when_it_is_first_needed_and_again_when_it_failed)
{
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = BYTES };
    cek_mem *mem = (cek_mem *)&d;
    shim.device = CL_DEVICE_TYPE_GPU;
    shim.no_svm = true;
    door_open(&d, "opencl", options);
    ck_assert_int_eq(shim.queues, 2); /* the door's, and the device's own, which mapped the places of updates */
    shim.fill.error = CL_OUT_OF_HOST_MEMORY;
    ck_assert_uint_eq(d.plugin.mem_alloc(d.dev, &desc, &mem), CEK_OUT_OF_MEMORY);
    ck_assert_int_eq(shim.queues, 1);
    shim.fill.error = 0;
    shim.queue.error = CL_OUT_OF_HOST_MEMORY;
    ck_assert_uint_eq(d.plugin.mem_alloc(d.dev, &desc, &mem), CEK_OUT_OF_MEMORY);
    ck_assert_ptr_null(mem);
    ck_assert_msg(strstr(d.text, "clCreateCommandQueue") != NULL, "%s", d.text);
    shim.queue.error = 0;
    for (int i = 0; i < 3; i++) {
        shim.fill.error = i == 1 ? CL_OUT_OF_HOST_MEMORY : 0;
        ck_assert_uint_eq(d.plugin.mem_alloc(d.dev, &desc, &mem), i == 1 ? CEK_OUT_OF_MEMORY : CEK_OK);
        d.plugin.mem_free(mem);
    }
    door_close(&d);
    ck_assert_int_eq(shim.queues, 0);
    ck_assert_int_eq(shim.buffers, 0);
}
END_TEST

START_TEST(one_flush_does_for_all_that_was_enqueued)
{
    cek_event *plain;
    open_door();
    ck_assert_uint_eq(d.plugin.event_create(d.dev, NULL, &plain), CEK_OK);
    int before = shim.flush.calls;
    for (int i = 0; i < 10; i++)
        clear(a);
    ck_assert_int_eq(shim.flush.calls, before);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(d.plugin.event_record(d.queue, plain), CEK_OK);
    ck_assert_int_eq(shim.flush.calls, before + 1); /* by the record: a query alone would wait for ever */
    ck_assert_uint_eq(d.plugin.event_sync(plain, CEK_FOREVER), CEK_OK);
    sync_queue();
    ck_assert_int_eq(shim.flush.calls, before + 1);
    d.plugin.event_destroy(plain);
    shut_door(0);
}
END_TEST

/* Some drivers wait for every command of a queue that is profiled. */
START_TEST(markers_alone_are_profiled)
{
    cek_event *end, *plain;
    uint64_t ns = 0;
    const cek_event_desc timing = { .size = sizeof timing, .flags = CEK_EVENT_TIMING };
    open_door();
    ck_assert_uint_eq(d.plugin.event_create(d.dev, &timing, &end), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_create(d.dev, NULL, &plain), CEK_OK);
    clear(a);
    ck_assert_uint_eq(d.plugin.event_record(d.queue, plain), CEK_OK);
    ck_assert_uint_eq(run_on(a, b), CEK_OK);
    sync_queue();
    ck_assert_int_eq(shim.profiling_queues, 0);
    ck_assert_uint_eq(d.plugin.event_record(d.queue, event), CEK_OK);
    for (int i = 0; i < 20; i++)
        clear(a);
    ck_assert_uint_eq(run_on(a, b), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_record(d.queue, end), CEK_OK);
    sync_queue();
    ck_assert_uint_eq(d.plugin.event_elapsed(event, end, &ns), CEK_OK);
    ck_assert_uint_gt(ns, 0);
    ck_assert_int_eq(shim.profiling_queues, 1);
    ck_assert_int_eq(shim.profiled, 2); /* the two markers */
    d.plugin.event_destroy(end);
    d.plugin.event_destroy(plain);
    shut_door(0);
}
END_TEST

/* --- looking and waiting ---------------------------------------------------------------------- */

START_TEST(what_a_poll_finds_complete_is_a_synchronisation_point)
{
    cek_queue *other;
    cek_event *plain;
    open_door();
    ck_assert_uint_eq(d.plugin.queue_create(d.dev, NULL, &other), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_create(d.dev, NULL, &plain), CEK_OK);
    clear(a);
    int before = shim.wait.calls, waits = shim.waits, barriers = shim.barrier.calls;
    ck_assert_uint_eq(d.plugin.event_record(d.queue, plain), CEK_OK);
    while (d.plugin.event_query(plain) == CEK_NOT_READY)
        ;
    ck_assert_int_eq(shim.wait.calls, before + 1);
    ck_assert_int_eq(shim.waits, waits); /* there was nothing left to wait for */
    ck_assert_uint_eq(d.plugin.event_wait(other, plain), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_query(plain), CEK_OK);
    ck_assert_int_eq(shim.wait.calls, before + 1);
    ck_assert_int_eq(shim.barrier.calls, barriers); /* what is enqueued now is behind that wait */
    d.plugin.queue_destroy(other);
    d.plugin.event_destroy(plain);
    shut_door(0);
}
END_TEST

START_TEST(a_wait_for_what_has_finished_that_fails_is_the_commands_failure)
{
    open_door();
    clear(a);
    shim.wait.error = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_INTERNAL);
    shim.wait.error = 0;
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_INTERNAL);
    ck_assert_uint_eq(fill(), CEK_INTERNAL);
    shut_door(1);
}
END_TEST

/* Some drivers enqueue a command of their own for each event that is asked too early. */
START_TEST(of_many_commands_the_last_is_asked_for)
{
    cek_event *plain;
    int others = 0;
    open_door();
    ck_assert_uint_eq(d.plugin.event_create(d.dev, NULL, &plain), CEK_OK);
    shim.running = true;
    for (int i = 0; i < 20; i++)
        clear(a);
    cl_event last = shim.latest;
    ck_assert_uint_eq(d.plugin.event_record(d.queue, plain), CEK_OK);
    for (int i = 0; i < 50; i++) {
        ck_assert_uint_eq(d.plugin.event_query(plain), CEK_NOT_READY);
        others += shim.asked != last;
    }
    ck_assert_int_lt(others, 40); /* the oldest now and then, by the clock */
    shim.running = false;
    ck_assert_uint_eq(d.plugin.event_sync(plain, CEK_FOREVER), CEK_OK);
    d.plugin.event_destroy(plain);
    shut_door(0);
}
END_TEST

/* A driver may take the bell and never ring it, or not take it. */
START_TEST(a_wait_ends_when_the_work_does_whether_the_driver_rings_or_not)
{
    open_door();
    shim.deaf = _i == 1;
    shim.callback.error = _i == 2 ? CL_OUT_OF_HOST_MEMORY : 0;
    for (int round = 0; round < 3; round++) {
        cek_ref large = { door_mem(&d, 64 << 20), 0 };
        for (int i = 0; i < 8; i++)
            ck_assert_uint_eq(d.plugin.fill(d.queue, large, (uint32_t)i, 4, 64 << 20), CEK_OK);
        sync_queue();
        d.plugin.mem_free(large.mem);
    }
    ck_assert_int_ge(shim.callback.calls, 1);
    shim.callback.error = 0;
    shut_door(0);
}
END_TEST

START_TEST(a_wait_ends_at_its_deadline_though_nothing_rings)
{
    open_door();
    shim.running = shim.deaf = true;
    clear(a);
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, 20000000), CEK_TIMEOUT);
    shim.running = false;
    sync_queue();
    shut_door(0);
}
END_TEST

/* --- memory ----------------------------------------------------------------------------------- */

static cek_device_info told(void)
{
    cek_device_info info = { .size = sizeof info };
    ck_assert_uint_eq(d.plugin.device_info(d.instance, 0, &info), CEK_OK);
    return info;
}

START_TEST(memory_is_called_unified_where_the_host_has_an_address_for_it)
{
    static const struct {
        cl_device_type device;
        bool no_svm, integrated, unified;
    } machines[] = {
        { CL_DEVICE_TYPE_CPU, false, false, true },  { CL_DEVICE_TYPE_CPU, true, false, false },
        { CL_DEVICE_TYPE_GPU, false, true, true },   { CL_DEVICE_TYPE_GPU, true, true, false },
        { CL_DEVICE_TYPE_GPU, false, false, false },
    };
    shim.device = machines[_i].device;
    shim.no_svm = machines[_i].no_svm;
    shim.integrated = machines[_i].integrated;
    open_door();
    ck_assert_int_eq(!!(told().flags & CEK_DEVICE_UNIFIED_MEMORY), machines[_i].unified);
    ck_assert_int_eq(d.plugin.mem_host_ptr(a.mem) != NULL, machines[_i].unified);
    clear(a);
    ck_assert_uint_eq(run_on(a, b), CEK_OK);
    holds_softmax(b);
    shut_door(0);
}
END_TEST

/* Of a card's memory nobody tells how much is free; an integrated GPU's is what the host has left. */
START_TEST(an_integrated_device_takes_no_more_than_the_host_has)
{
    uint64_t free_bytes, total_bytes;
    cek_mem *mem;
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = UINT64_C(1) << 46 };
    shim.device = CL_DEVICE_TYPE_GPU;
    shim.no_svm = true;
    shim.integrated = _i;
    shim.memory = UINT64_C(1) << 50;
    open_door();
    ck_assert_uint_eq(d.plugin.device_memory(d.dev, &free_bytes, &total_bytes), CEK_OK);
    ck_assert_int_eq(free_bytes != CEK_UNKNOWN, _i);
    ck_assert_int_eq(told().free_bytes != CEK_UNKNOWN, _i);
    int asked = shim.buffer.calls;
    ck_assert_uint_eq(d.plugin.mem_alloc(d.dev, &desc, &mem), CEK_OUT_OF_MEMORY);
    ck_assert_int_eq(shim.buffer.calls, asked + !_i); /* the driver would have promised it */
    ck_assert_int_eq(strstr(d.text, "are free") != NULL, _i);
    shut_door(0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("opencl queues");
    TCase *tc = tcase_create("asked of the driver");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, an_argument_is_set_when_it_differs_from_the_one_before);
    tcase_add_test(tc, memory_in_the_place_of_another_is_an_argument_of_its_own);
    tcase_add_test(tc, an_argument_that_could_not_be_set_is_set_the_next_time);
    tcase_add_loop_test(tc, a_command_buffer_sets_no_argument_and_is_flushed, 0, 2);
    tcase_add_loop_test(tc, a_command_buffer_runs_again_before_its_last_run_has_ended, 0, 2);
    tcase_add_test(tc, half_a_command_buffer_makes_the_queue_fail);
    tcase_add_test(tc, copies_and_fills_are_recorded_too);
    tcase_add_test(tc, a_command_buffer_that_cannot_be_made_leaves_nothing);
    tcase_add_test(tc, what_is_made_shares_one_queue);
    tcase_add_test(tc, the_one_queue_is_made_when_it_is_first_needed_and_again_when_it_failed);
    tcase_add_test(tc, one_flush_does_for_all_that_was_enqueued);
    tcase_add_test(tc, markers_alone_are_profiled);
    tcase_add_test(tc, what_a_poll_finds_complete_is_a_synchronisation_point);
    tcase_add_test(tc, a_wait_for_what_has_finished_that_fails_is_the_commands_failure);
    tcase_add_test(tc, of_many_commands_the_last_is_asked_for);
    tcase_add_loop_test(tc, a_wait_ends_when_the_work_does_whether_the_driver_rings_or_not, 0, 3);
    tcase_add_test(tc, a_wait_ends_at_its_deadline_though_nothing_rings);
    tcase_add_loop_test(tc, memory_is_called_unified_where_the_host_has_an_address_for_it, 0, 5);
    tcase_add_loop_test(tc, an_integrated_device_takes_no_more_than_the_host_has, 0, 2);
    suite_add_tcase(suite, tc);
    return failures_run(suite);
}
