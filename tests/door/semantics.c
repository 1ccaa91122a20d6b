/* SPDX-License-Identifier: MIT
 *
 * semantics.c - memory, queues, events, operations and command buffers as plugin.h promises them, driven through the table
 * of a plugin loaded by bare dlopen: the reference, and the reference inside the simulator.
 */
#include "tests/door/door.h"

#include <math.h>
#include <pthread.h>

static const char *const plugins[] = { "reference", "sim" };
static const char *const sim_inside[] = { "sim_inner", "reference", NULL };
enum { PLUGINS = sizeof plugins / sizeof *plugins };

static door d;

static void start(int which)
{
    door_open(&d, plugins[which], sim_inside);
}

#define OK(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, d.text)
/* The call is refused, and the reason names what it is about. */
#define REFUSED(status, words, call)                                                                     \
    do {                                                                                                 \
        d.text[0] = 0;                                                                                   \
        cek_status got_ = (call);                                                                        \
        ck_assert_msg(got_ == (status), "%s: %u instead of %u: %s", #call, got_, (cek_status)(status), d.text); \
        ck_assert_msg(strstr(d.text, words) != NULL, "%s: \"%s\" says nothing of \"%s\"", #call, d.text, words); \
        ck_assert_uint_eq(d.failure, (status));                                                          \
    } while (0)

/* --- plugin and devices -------------------------------------------------------------------------------------------- */

START_TEST(the_query_refuses_another_major_and_finds_the_symbol_alone)
{
    void *so;
    door_table(&so, plugins[_i]);
    cek_plugin_query_fn query = (cek_plugin_query_fn)dlsym(so, CEK_PLUGIN_SYMBOL);
    ck_assert_ptr_null(query((CEK_ABI_MAJOR + 1) << 16));
    ck_assert_ptr_nonnull(query(CEK_ABI + 7));  /* a newer minor */
    ck_assert_ptr_null(dlsym(so, "cek__fail"));
}
END_TEST

START_TEST(devices_say_what_they_are)
{
    start(_i);
    cek_device_info info = { .size = sizeof info };
    OK(d.plugin.device_info(d.instance, 0, &info));
    ck_assert_uint_eq(info.size, sizeof info);
    ck_assert_uint_eq(info.kind, CEK_KIND_CPU);
    ck_assert(info.flags & CEK_DEVICE_ONLY_WHEN_NAMED);
    ck_assert_int_eq(!(info.flags & CEK_DEVICE_INLINE), !strcmp(plugins[_i], "sim")); /* it stands for a device beside the host */
    ck_assert(info.types >> CEK_F64 & 1);
    ck_assert_uint_gt(info.total_bytes, 1 << 20);
    ck_assert(info.name[0] && info.numeric_id && info.processor[0]);

    REFUSED(CEK_INVALID, "device", d.plugin.device_info(d.instance, 99, &info));
    cek_dev *dev;
    REFUSED(CEK_INVALID, "device", d.plugin.device_open(d.instance, 99, NULL, &dev));
    ck_assert_ptr_null(dev);
    const cek_device_options options = { .size = sizeof options, .flags = 1u << 31 };
    REFUSED(CEK_UNSUPPORTED, "flags", d.plugin.device_open(d.instance, 0, &options, &dev));
    info.size = 8;
    REFUSED(CEK_INVALID, "size", d.plugin.device_info(d.instance, 0, &info));

    uint64_t free_bytes, total_bytes;
    char text[16] = "x";
    OK(d.plugin.device_memory(d.dev, &free_bytes, &total_bytes));
    ck_assert_uint_le(free_bytes, total_bytes);
    OK(d.plugin.device_status(d.dev, text, sizeof text));
    ck_assert_str_eq(text, "");
    door_close(&d);
}
END_TEST

START_TEST(an_instance_needs_no_host_and_two_may_live_at_once)
{
    void *so;
    const cek_plugin *table = door_table(&so, "reference");
    cek_instance *a, *b;
    ck_assert_uint_eq(table->create(NULL, &a), CEK_OK);
    ck_assert_uint_eq(table->create(NULL, &b), CEK_OK);
    ck_assert_ptr_ne(a, b);
    table->destroy(a);
    cek_dev *dev;
    ck_assert_uint_eq(table->device_open(b, 0, NULL, &dev), CEK_OK);
    cek_mem *mem;
    ck_assert_uint_eq(table->mem_alloc(dev, NULL, &mem), CEK_INVALID);
    table->device_close(dev);
    table->destroy(b);
    table->destroy(NULL);
    cek_host other = { .size = sizeof other, .abi = 2u << 16 };
    ck_assert_uint_eq(table->create(&other, &a), CEK_UNSUPPORTED);
    ck_assert_ptr_null(a);
    const struct { cek_host host; const void *newer; } newer = { { .size = sizeof newer, .abi = CEK_ABI + 1 }, &newer };
    ck_assert_uint_eq(table->create(&newer.host, &a), CEK_OK);  /* an offer that it may leave alone */
    table->destroy(a);
}
END_TEST

/* --- memory -------------------------------------------------------------------------------------------------------- */

START_TEST(memory_is_aligned_there_and_refused_beyond_what_is_left)
{
    start(_i);
    cek_mem *mem;
    const uint64_t sizes[] = { 1, 255, 4097, (2u << 20) - 1, 5u << 20 };
    for (int i = 0; i < 5; i++) {
        mem = door_mem(&d, sizes[i]);
        unsigned char *at = d.plugin.mem_host_ptr(mem);
        ck_assert_uint_eq((uintptr_t)at % CEK_ALIGNMENT, 0);
        memset(at, 0x5a, sizes[i]);
        d.plugin.mem_free(mem);
    }
    struct { cek_mem_desc desc; uint64_t later; } grown = { { .size = sizeof grown, .bytes = 64 }, 0 };
    OK(d.plugin.mem_alloc(d.dev, &grown.desc, &mem));
    d.plugin.mem_free(mem);
    grown.later = 1;
    REFUSED(CEK_UNSUPPORTED, "not zero", d.plugin.mem_alloc(d.dev, &grown.desc, &mem));
    cek_mem_desc desc = { .size = sizeof desc, .bytes = 0 };
    REFUSED(CEK_INVALID, "0 bytes", d.plugin.mem_alloc(d.dev, &desc, &mem));
    desc = (cek_mem_desc){ .size = 0, .bytes = 1 };
    REFUSED(CEK_INVALID, "size", d.plugin.mem_alloc(d.dev, &desc, &mem));
    desc = (cek_mem_desc){ .size = sizeof desc, .bytes = 1, .flags = 4 };
    REFUSED(CEK_UNSUPPORTED, "flags", d.plugin.mem_alloc(d.dev, &desc, &mem));
    /* More than the machine has: refused at once, with numbers, instead of promised. */
    uint64_t free_bytes, total_bytes;
    OK(d.plugin.device_memory(d.dev, &free_bytes, &total_bytes));
    desc = (cek_mem_desc){ .size = sizeof desc, .bytes = total_bytes };
    REFUSED(CEK_OUT_OF_MEMORY, "free", d.plugin.mem_alloc(d.dev, &desc, &mem));
    ck_assert_ptr_null(mem);
    desc.bytes = UINT64_MAX - 5;
    REFUSED(CEK_OUT_OF_MEMORY, "bytes", d.plugin.mem_alloc(d.dev, &desc, &mem));
    d.plugin.mem_free(NULL);
    door_close(&d);
}
END_TEST

START_TEST(memory_maps_once_at_a_time)
{
    start(_i);
    cek_mem *mem = door_mem(&d, 1000);
    void *at, *again;
    OK(d.plugin.mem_map(mem, CEK_MAP_READ | CEK_MAP_WRITE, &at));
    ck_assert_ptr_eq(at, d.plugin.mem_host_ptr(mem));
    REFUSED(CEK_INVALID, "mapped already", d.plugin.mem_map(mem, CEK_MAP_READ, &again));
    OK(d.plugin.mem_unmap(mem));
    REFUSED(CEK_INVALID, "not mapped", d.plugin.mem_unmap(mem));
    REFUSED(CEK_INVALID, "neither", d.plugin.mem_map(mem, 0, &at));
    REFUSED(CEK_UNSUPPORTED, "access", d.plugin.mem_map(mem, 8, &at));
    d.plugin.mem_free(mem);
    OK(d.plugin.host_alloc(d.dev, 70000, &at));
    ck_assert_uint_eq((uintptr_t)at % CEK_ALIGNMENT, 0);
    memset(at, 1, 70000);
    d.plugin.host_free(d.dev, at);
    d.plugin.host_free(d.dev, NULL);
    REFUSED(CEK_INVALID, "0 bytes", d.plugin.host_alloc(d.dev, 0, &at));
    door_close(&d);
}
END_TEST

/* --- queues -------------------------------------------------------------------------------------------------------- */

START_TEST(bytes_move_where_they_should_and_nowhere_else)
{
    start(_i);
    unsigned char from[300], to[300];
    cek_mem *a = door_mem(&d, 300), *b = door_mem(&d, 300);
    for (int i = 0; i < 300; i++)
        from[i] = (unsigned char)(i * 7 + 1);
    OK(d.plugin.fill(d.queue, (cek_ref){ b, 0 }, 0xabcdef12, 4, 300));
    OK(d.plugin.upload(d.queue, (cek_ref){ a, 13 }, from, 200));
    OK(d.plugin.copy(d.queue, (cek_ref){ b, 5 }, (cek_ref){ a, 13 }, 200));
    OK(d.plugin.download(d.queue, to, (cek_ref){ b, 0 }, 300));
    OK(d.plugin.queue_sync(d.queue, CEK_FOREVER));
    const unsigned char pattern[] = { 0x12, 0xef, 0xcd, 0xab };
    for (int i = 0; i < 300; i++)
        ck_assert_uint_eq(to[i], i < 5 || i >= 205 ? pattern[i % 4] : from[i - 5]);

    OK(d.plugin.fill(d.queue, (cek_ref){ a, 2 }, 0xffff1234, 2, 4));
    OK(d.plugin.fill(d.queue, (cek_ref){ a, 1 }, 0x77, 1, 1));
    OK(d.plugin.update(d.queue, (cek_ref){ a, 8 }, from, 8));
    memset(from, 0, 8);  /* update has copied */
    OK(d.plugin.download(d.queue, to, (cek_ref){ a, 1 }, 15));
    const unsigned char want[] = { 0x77, 0x34, 0x12, 0x34, 0x12 };
    ck_assert_mem_eq(to, want, 5);
    ck_assert_uint_eq(to[7], 1);
    ck_assert_uint_eq(to[14], 50);
    d.plugin.mem_free(a);
    d.plugin.mem_free(b);
    door_close(&d);
}
END_TEST

START_TEST(commands_out_of_bounds_are_refused_and_the_queue_stays_usable)
{
    start(_i);
    unsigned char bytes[8192] = { 0 };
    cek_mem *mem = door_mem(&d, 100), *large = door_mem(&d, 8192);
    const cek_ref start_of = { mem, 0 }, none = { NULL, 0 };
    REFUSED(CEK_INVALID, "101 bytes", d.plugin.upload(d.queue, start_of, bytes, 101));
    REFUSED(CEK_INVALID, "offset 101", d.plugin.upload(d.queue, (cek_ref){ mem, 101 }, bytes, 1));
    REFUSED(CEK_INVALID, "offset", d.plugin.download(d.queue, bytes, (cek_ref){ mem, UINT64_MAX }, 2));
    REFUSED(CEK_INVALID, "download", d.plugin.download(d.queue, bytes, (cek_ref){ mem, 50 }, UINT64_MAX - 10));
    REFUSED(CEK_INVALID, "no memory", d.plugin.upload(d.queue, none, bytes, 1));
    REFUSED(CEK_INVALID, "no source", d.plugin.upload(d.queue, start_of, NULL, 1));
    REFUSED(CEK_INVALID, "overlap", d.plugin.copy(d.queue, start_of, (cek_ref){ mem, 9 }, 10));
    REFUSED(CEK_INVALID, "pattern", d.plugin.fill(d.queue, start_of, 0, 3, 9));
    REFUSED(CEK_INVALID, "multiples", d.plugin.fill(d.queue, (cek_ref){ mem, 2 }, 0, 4, 4));
    REFUSED(CEK_INVALID, "4096", d.plugin.update(d.queue, (cek_ref){ large, 0 }, bytes, 4100));
    REFUSED(CEK_INVALID, "multiples", d.plugin.update(d.queue, start_of, bytes, 6));
    REFUSED(CEK_INVALID, "multiples", d.plugin.update(d.queue, (cek_ref){ mem, 2 }, bytes, 4));
    OK(d.plugin.copy(d.queue, (cek_ref){ mem, 10 }, start_of, 10));
    OK(d.plugin.upload(d.queue, none, NULL, 0));
    OK(d.plugin.download(d.queue, NULL, none, 0));
    OK(d.plugin.copy(d.queue, none, none, 0));
    OK(d.plugin.fill(d.queue, none, 0, 4, 0));
    OK(d.plugin.update(d.queue, none, NULL, 0));
    OK(d.plugin.queue_sync(d.queue, 0));

    cek_queue *queue;
    const cek_queue_desc desc = { .size = sizeof desc, .flags = 1u << 20 };
    REFUSED(CEK_UNSUPPORTED, "flags", d.plugin.queue_create(d.dev, &desc, &queue));
    d.plugin.queue_destroy(NULL);
    d.plugin.mem_free(mem);
    d.plugin.mem_free(large);
    door_close(&d);
}
END_TEST

START_TEST(memory_of_another_handle_is_another_device)
{
    start(_i);
    cek_dev *other;
    cek_queue *queue;
    cek_mem *theirs;
    unsigned char bytes[64], back[64];
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = 64 };
    OK(d.plugin.device_open(d.instance, 0, NULL, &other));
    OK(d.plugin.mem_alloc(other, &desc, &theirs));
    OK(d.plugin.queue_create(other, NULL, &queue));
    memset(bytes, 0x3c, sizeof bytes);
    REFUSED(CEK_INVALID, "another device", d.plugin.upload(d.queue, (cek_ref){ theirs, 0 }, bytes, 64));
    /* But a copy may come from there. */
    cek_mem *mine = door_mem(&d, 64);
    OK(d.plugin.upload(queue, (cek_ref){ theirs, 0 }, bytes, 64));
    OK(d.plugin.copy(d.queue, (cek_ref){ mine, 0 }, (cek_ref){ theirs, 0 }, 64));
    OK(d.plugin.download(d.queue, back, (cek_ref){ mine, 0 }, 64));
    ck_assert_mem_eq(bytes, back, 64);
    cek_event *event;
    OK(d.plugin.event_create(other, NULL, &event));
    OK(d.plugin.event_record(queue, event));
    REFUSED(CEK_UNSUPPORTED, "another device", d.plugin.event_wait(d.queue, event));
    d.plugin.event_destroy(event);
    d.plugin.mem_free(mine);
    d.plugin.mem_free(theirs);
    d.plugin.queue_destroy(queue);
    d.plugin.device_close(other);
    door_close(&d);
}
END_TEST

/* --- events -------------------------------------------------------------------------------------------------------- */

START_TEST(an_event_that_was_never_recorded_is_invalid)
{
    start(_i);
    cek_event *event;
    char text[64] = "x";
    OK(d.plugin.event_create(d.dev, NULL, &event));
    REFUSED(CEK_INVALID, "never recorded", d.plugin.event_query(event));
    REFUSED(CEK_INVALID, "never recorded", d.plugin.event_sync(event, CEK_FOREVER));
    REFUSED(CEK_INVALID, "never recorded", d.plugin.event_wait(d.queue, event));
    REFUSED(CEK_INVALID, "never recorded", d.plugin.event_status(event, text, sizeof text));
    OK(d.plugin.queue_status(d.queue, text, sizeof text));  /* the refused wait left no mark */
    OK(d.plugin.event_record(d.queue, event));
    OK(d.plugin.event_record(d.queue, event));  /* again */
    OK(d.plugin.event_query(event));
    OK(d.plugin.event_sync(event, 0));
    OK(d.plugin.event_wait(d.queue, event));
    OK(d.plugin.event_status(event, text, sizeof text));
    ck_assert_str_eq(text, "");
    d.plugin.event_destroy(event);
    d.plugin.event_destroy(NULL);
    const cek_event_desc desc = { .size = sizeof desc, .flags = 64 };
    REFUSED(CEK_UNSUPPORTED, "flags", d.plugin.event_create(d.dev, &desc, &event));
    door_close(&d);
}
END_TEST

START_TEST(events_tell_time_when_they_were_made_for_it)
{
    start(_i);
    cek_event *plain, *first, *last;
    cek_queue *timed;
    uint64_t ns = 1;
    const cek_event_desc timing = { .size = sizeof timing, .flags = CEK_EVENT_TIMING };
    const cek_queue_desc with_timing = { .size = sizeof with_timing, .flags = CEK_QUEUE_TIMING };
    OK(d.plugin.queue_create(d.dev, &with_timing, &timed));
    OK(d.plugin.event_create(d.dev, NULL, &plain));
    OK(d.plugin.event_create(d.dev, &timing, &first));
    OK(d.plugin.event_create(d.dev, &timing, &last));
    OK(d.plugin.event_record(timed, plain));
    OK(d.plugin.event_record(timed, first));
    REFUSED(CEK_INVALID, "never recorded", d.plugin.event_elapsed(first, last, &ns));
    ck_assert_uint_eq(ns, 0);
    cek_mem *mem = door_mem(&d, 1 << 20);
    OK(d.plugin.fill(timed, (cek_ref){ mem, 0 }, 1, 4, 1 << 20));
    OK(d.plugin.event_record(timed, last));
    OK(d.plugin.event_elapsed(first, last, &ns));
    ck_assert(ns > 1000 && ns < UINT64_C(60000000000));
    REFUSED(CEK_INVALID, "TIMING", d.plugin.event_elapsed(plain, last, &ns));
    REFUSED(CEK_INVALID, "before the start", d.plugin.event_elapsed(last, first, &ns));
    OK(d.plugin.event_record(d.queue, last));
    REFUSED(CEK_UNSUPPORTED, "CEK_QUEUE_TIMING", d.plugin.event_elapsed(first, last, &ns));
    d.plugin.mem_free(mem);
    d.plugin.event_destroy(plain);
    d.plugin.event_destroy(first);
    d.plugin.event_destroy(last);
    d.plugin.queue_destroy(timed);
    door_close(&d);
}
END_TEST

static void *query_often(void *event)
{
    for (int i = 0; i < 2000; i++)
        if (d.plugin.event_query(event))
            return event;
    return NULL;
}

START_TEST(an_event_is_recorded_by_one_thread_and_asked_by_another)
{
    start(_i);
    cek_event *event;
    pthread_t other;
    void *failed;
    OK(d.plugin.event_create(d.dev, NULL, &event));
    OK(d.plugin.event_record(d.queue, event));
    ck_assert_int_eq(pthread_create(&other, NULL, query_often, event), 0);
    for (int i = 0; i < 2000; i++)
        OK(d.plugin.event_record(d.queue, event));
    pthread_join(other, &failed);
    ck_assert_ptr_null(failed);
    d.plugin.event_destroy(event);
    door_close(&d);
}
END_TEST

/* --- operations ---------------------------------------------------------------------------------------------------- */

/* y = x + 1 over 64 floats. */
static const cek_pointwise_input add_inputs[] = { { .type = CEK_F32, .strides = { 1 } } };
static const cek_pointwise_instruction add_one[] = { { .code = CEK_PW_ADD_IMM, .imm = 1 } };
static const cek_pointwise_desc add_desc = {
    .op = { .size = sizeof add_desc, .kind = CEK_OP_POINTWISE, .operands = CEK_BIT(0) | CEK_BIT(8), .align = 4 },
    .rank = 1, .out_type = CEK_F32, .shape = { 64 }, .out_strides = { 1 }, .inputs = add_inputs,
    .instructions = add_one, .input_count = 1, .input_size = sizeof *add_inputs, .instruction_count = 1,
    .instruction_size = sizeof *add_one,
};

START_TEST(a_run_takes_the_operands_that_were_promised_and_no_others)
{
    start(_i);
    cek_op *op;
    cek_mem *x = door_mem(&d, 256), *y = door_mem(&d, 512);
    const cek_ref none = { NULL, 0 };
    cek_ref refs[9] = { { x, 0 } };
    OK(d.plugin.op_create(d.dev, &add_desc.op, NULL, &op));
    refs[8] = (cek_ref){ y, 4 };
    OK(d.plugin.op_run(d.queue, op, refs, 9, none));
    REFUSED(CEK_INVALID, "cover", d.plugin.op_run(d.queue, op, refs, 8, none));
    REFUSED(CEK_INVALID, "cover", d.plugin.op_run(d.queue, op, NULL, 9, none));
    refs[1] = (cek_ref){ y, 256 };
    REFUSED(CEK_INVALID, "not in the mask", d.plugin.op_run(d.queue, op, refs, 9, none));
    refs[1] = none;
    refs[0] = none;
    REFUSED(CEK_INVALID, "IN0 is missing", d.plugin.op_run(d.queue, op, refs, 9, none));
    refs[0] = (cek_ref){ x, 2 };
    REFUSED(CEK_INVALID, "multiple of 4", d.plugin.op_run(d.queue, op, refs, 9, none));
    refs[0] = (cek_ref){ x, 4 };
    REFUSED(CEK_INVALID, "256 bytes at offset 4", d.plugin.op_run(d.queue, op, refs, 9, none));
    refs[0] = (cek_ref){ x, 0 };
    refs[8] = (cek_ref){ y, 260 };
    REFUSED(CEK_INVALID, "OUT", d.plugin.op_run(d.queue, op, refs, 9, none));
    OK(d.plugin.queue_sync(d.queue, CEK_FOREVER));  /* refusals leave the queue usable */
    d.plugin.op_destroy(op);
    d.plugin.op_destroy(NULL);
    d.plugin.mem_free(x);
    d.plugin.mem_free(y);
    door_close(&d);
}
END_TEST

START_TEST(an_output_may_be_its_input_but_not_overlap_it)
{
    start(_i);
    cek_op *op;
    cek_mem *mem = door_mem(&d, 1024);
    const cek_ref none = { NULL, 0 };
    cek_ref refs[9] = { { mem, 256 } };
    float values[64];
    OK(d.plugin.op_create(d.dev, &add_desc.op, NULL, &op));
    OK(d.plugin.fill(d.queue, (cek_ref){ mem, 0 }, 0, 4, 1024));
    refs[8] = refs[0];
    OK(d.plugin.op_run(d.queue, op, refs, 9, none));
    OK(d.plugin.op_run(d.queue, op, refs, 9, none));
    OK(d.plugin.download(d.queue, values, refs[0], 256));
    for (int i = 0; i < 64; i++)
        ck_assert_float_eq(values[i], 2);
    for (int i = 0; i < 2; i++) {
        refs[8].offset = i ? 256 - 4 : 256 + 252;
        REFUSED(CEK_INVALID, "overlaps", d.plugin.op_run(d.queue, op, refs, 9, none));
    }
    refs[8].offset = 512;
    OK(d.plugin.op_run(d.queue, op, refs, 9, none));
    d.plugin.op_destroy(op);

    /* The same place with other strides is not the same operand. */
    const cek_pointwise_input backwards = { .type = CEK_F32, .strides = { 0 } };
    cek_pointwise_desc other = add_desc;
    other.inputs = &backwards;
    OK(d.plugin.op_create(d.dev, &other.op, NULL, &op));
    refs[8] = refs[0];
    REFUSED(CEK_INVALID, "overlaps", d.plugin.op_run(d.queue, op, refs, 9, none));
    d.plugin.op_destroy(op);
    d.plugin.mem_free(mem);
    door_close(&d);
}
END_TEST

START_TEST(inputs_may_overlap_and_a_workspace_may_not)
{
    start(_i);
    cek_op *op;
    cek_op_info info = { .size = sizeof info };
    cek_gemm_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_GEMM, .operands = 7 }, .m = 8, .n = 8, .k = 8, .batch = 1,
        .lda = 8, .ldb = 8, .ldc = 8, .a_type = CEK_F32, .b_type = CEK_F32, .c_type = CEK_F32,
    };
    OK(d.plugin.op_create(d.dev, &desc.op, &info, &op));
    ck_assert_uint_gt(info.workspace_bytes, 0);
    ck_assert(info.algorithm[0] && info.numeric_id);
    cek_mem *mem = door_mem(&d, 4096), *scratch = door_mem(&d, info.workspace_bytes);
    OK(d.plugin.fill(d.queue, (cek_ref){ mem, 0 }, 0x3f800000, 4, 4096));
    cek_ref refs[] = { { mem, 0 }, { mem, 0 }, { mem, 256 } };
    REFUSED(CEK_INVALID, "workspace", d.plugin.op_run(d.queue, op, refs, 3, (cek_ref){ NULL, 0 }));
    REFUSED(CEK_INVALID, "workspace", d.plugin.op_run(d.queue, op, refs, 3, (cek_ref){ scratch, 256 }));
    REFUSED(CEK_INVALID, "overlaps the workspace", d.plugin.op_run(d.queue, op, refs, 3, (cek_ref){ mem, 256 }));
    OK(d.plugin.op_run(d.queue, op, refs, 3, (cek_ref){ scratch, 0 }));
    float c[64];
    OK(d.plugin.download(d.queue, c, refs[2], sizeof c));
    ck_assert_float_eq(c[63], 8);
    refs[2].offset = 0;
    REFUSED(CEK_INVALID, "overlaps", d.plugin.op_run(d.queue, op, refs, 3, (cek_ref){ scratch, 0 }));
    d.plugin.op_destroy(op);
    d.plugin.mem_free(mem);
    d.plugin.mem_free(scratch);
    door_close(&d);
}
END_TEST

START_TEST(columns_of_one_matrix_are_apart_although_their_extents_meet)
{
    start(_i);
    cek_op *op;
    /* y = columns 4 to 7 of a matrix with rows of 8, x = columns 0 to 3. */
    const cek_copy_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_COPY, .operands = 3, .align = 4 }, .rank = 2, .x_type = CEK_F32,
        .y_type = CEK_F32, .shape = { 3, 4 }, .x_strides = { 8, 1 }, .y_strides = { 8, 1 },
    };
    float values[24];
    cek_mem *mem = door_mem(&d, sizeof values);
    for (int i = 0; i < 24; i++)
        values[i] = (float)i;
    OK(d.plugin.op_create(d.dev, &desc.op, NULL, &op));
    OK(d.plugin.upload(d.queue, (cek_ref){ mem, 0 }, values, sizeof values));
    const cek_ref refs[] = { { mem, 0 }, { mem, 16 } };
    OK(d.plugin.op_run(d.queue, op, refs, 2, (cek_ref){ NULL, 0 }));
    OK(d.plugin.download(d.queue, values, refs[0], sizeof values));
    for (int i = 0; i < 24; i++)
        ck_assert_float_eq(values[i], (float)(i - (i % 8 >= 4 ? 4 : 0)));
    d.plugin.op_destroy(op);
    d.plugin.mem_free(mem);
    door_close(&d);
}
END_TEST

START_TEST(a_reserve_belongs_to_its_forward_operation)
{
    start(_i);
    cek_op *forward, *bare, *backward;
    cek_pool_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_POOL_FORWARD, .operands = 7 }, .mode = CEK_POOL_MAX, .spatial = 2,
        .type = CEK_F32, .batch = 1, .channels = 1, .in = { 4, 4 }, .kernel = { 2, 2 }, .stride = { 2, 2 },
    };
    cek_op_info info = { .size = sizeof info };
    OK(d.plugin.op_create(d.dev, &desc.op, &info, &forward));
    ck_assert_uint_gt(info.reserve_bytes, 0);
    desc.op.operands = 3;
    OK(d.plugin.op_create(d.dev, &desc.op, &info, &bare));
    ck_assert_uint_eq(info.reserve_bytes, 0);

    desc.op.kind = CEK_OP_POOL_BACKWARD;
    desc.op.operands = 7;
    REFUSED(CEK_INVALID, "forward", d.plugin.op_create(d.dev, &desc.op, NULL, &backward));
    ck_assert_ptr_null(backward);
    desc.op.forward = bare;
    REFUSED(CEK_INVALID, "no reserve", d.plugin.op_create(d.dev, &desc.op, NULL, &backward));
    desc.op.forward = forward;
    desc.batch = 2;
    REFUSED(CEK_INVALID, "geometry", d.plugin.op_create(d.dev, &desc.op, NULL, &backward));
    desc.batch = 1;
    desc.op.operands = 3;
    REFUSED(CEK_INVALID, "RESERVE", d.plugin.op_create(d.dev, &desc.op, NULL, &backward));
    desc.op.operands = 7;
    OK(d.plugin.op_create(d.dev, &desc.op, NULL, &backward));
    d.plugin.op_destroy(backward);
    d.plugin.op_destroy(bare);
    d.plugin.op_destroy(forward);
    door_close(&d);
}
END_TEST

START_TEST(prepacked_weights_give_the_same_product)
{
    start(_i);
    enum { M = 3, N = 5, K = 4 };
    float a[M * K], b[N * K], plain[M * N], packed[M * N];
    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i % 5) - 2;
    for (int i = 0; i < N * K; i++)
        b[i] = (float)(i % 7) - 3;
    cek_gemm_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_GEMM }, .m = M, .n = N, .k = K, .batch = 1, .lda = K, .ldb = K, .ldc = N,
        .trans = CEK_GEMM_TRANS_B, .a_type = CEK_F32, .b_type = CEK_F32, .c_type = CEK_F32,
    };
    const array arrays[] = { IN(a, sizeof a), IN(b, sizeof b), OUT(plain, sizeof plain) };
    door_run(&d, &desc.op, arrays, 3);

    cek_op *op;
    cek_op_info info = { .size = sizeof info };
    desc.op.flags = CEK_OP_PREPACKED;
    desc.op.operands = CEK_BIT(CEK_GEMM_A) | CEK_BIT(CEK_GEMM_C);
    REFUSED(CEK_INVALID, "PACKED", d.plugin.op_create(d.dev, &desc.op, &info, &op));
    desc.op.operands |= CEK_BIT(CEK_GEMM_PACKED);
    OK(d.plugin.op_create(d.dev, &desc.op, &info, &op));
    ck_assert(info.prepack_bytes && info.prepack_layout);
    cek_ref refs[7] = { { door_mem(&d, sizeof a), 0 }, { door_mem(&d, sizeof b), 0 }, { door_mem(&d, sizeof packed), 0 } };
    const cek_ref to = { door_mem(&d, info.prepack_bytes), 0 }, scratch = { door_mem(&d, info.workspace_bytes), 0 };
    OK(d.plugin.upload(d.queue, refs[0], a, sizeof a));
    OK(d.plugin.upload(d.queue, refs[1], b, sizeof b));
    REFUSED(CEK_INVALID, "cover", d.plugin.op_prepack(d.queue, op, refs, 1, to));
    REFUSED(CEK_INVALID, "overlap", d.plugin.op_prepack(d.queue, op, refs, 3, refs[1]));
    OK(d.plugin.op_prepack(d.queue, op, refs, 3, to));
    d.plugin.mem_free(refs[1].mem);  /* the plain form is not needed any more */
    refs[1] = (cek_ref){ NULL, 0 };
    refs[CEK_GEMM_PACKED] = to;
    OK(d.plugin.op_run(d.queue, op, refs, 7, scratch));
    OK(d.plugin.download(d.queue, packed, refs[2], sizeof packed));
    ck_assert_mem_eq(plain, packed, sizeof plain);
    d.plugin.op_destroy(op);
    d.plugin.mem_free(refs[0].mem);
    d.plugin.mem_free(refs[2].mem);
    d.plugin.mem_free(to.mem);
    d.plugin.mem_free(scratch.mem);
    door_close(&d);
}
END_TEST

START_TEST(a_command_buffer_repeats_its_commands)
{
    start(_i);
    cek_op *op;
    cek_cmdbuf *cmdbuf;
    cek_mem *mem = door_mem(&d, 1024);
    float values[64];
    OK(d.plugin.op_create(d.dev, &add_desc.op, NULL, &op));
    cek_ref refs[9] = { { mem, 0 } };
    refs[8] = (cek_ref){ mem, 0 };
    struct { cek_cmd cmd; uint64_t later; } cmds[] = {
        { .cmd = { .kind = CEK_CMD_RUN, .op = op, .operands = refs, .operand_count = 9 } },
        { .cmd = { .kind = CEK_CMD_COPY, .dst = { mem, 512 }, .src = { mem, 0 }, .bytes = 256 } },
        { .cmd = { .kind = CEK_CMD_FILL, .dst = { mem, 256 }, .pattern = 7, .pattern_bytes = 1, .bytes = 4 } },
    };
    OK(d.plugin.fill(d.queue, (cek_ref){ mem, 0 }, 0, 4, 1024));
    OK(d.plugin.cmdbuf_create(d.dev, &cmds[0].cmd, 3, sizeof *cmds, &cmdbuf));
    memset(refs, 0, sizeof refs);  /* everything was copied */
    OK(d.plugin.cmdbuf_run(d.queue, cmdbuf));
    OK(d.plugin.cmdbuf_run(d.queue, cmdbuf));
    OK(d.plugin.download(d.queue, values, (cek_ref){ mem, 512 }, 256));
    for (int i = 0; i < 64; i++)
        ck_assert_float_eq(values[i], 2);
    OK(d.plugin.download(d.queue, values, (cek_ref){ mem, 256 }, 4));
    ck_assert_mem_eq(values, "\7\7\7\7", 4);
    d.plugin.cmdbuf_destroy(cmdbuf);
    d.plugin.cmdbuf_destroy(NULL);

    cmds[2].later = 1;
    refs[0] = refs[8] = (cek_ref){ mem, 0 };
    REFUSED(CEK_UNSUPPORTED, "not zero", d.plugin.cmdbuf_create(d.dev, &cmds[0].cmd, 3, sizeof *cmds, &cmdbuf));
    cmds[2].later = 0;
    cmds[2].cmd.kind = 9;
    REFUSED(CEK_UNSUPPORTED, "command 9", d.plugin.cmdbuf_create(d.dev, &cmds[0].cmd, 3, sizeof *cmds, &cmdbuf));
    cmds[2].cmd.kind = CEK_CMD_COPY;
    cmds[2].cmd.bytes = 2000;
    REFUSED(CEK_INVALID, "2000 bytes", d.plugin.cmdbuf_create(d.dev, &cmds[0].cmd, 3, sizeof *cmds, &cmdbuf));
    refs[0].offset = 2;
    REFUSED(CEK_INVALID, "multiple", d.plugin.cmdbuf_create(d.dev, &cmds[0].cmd, 1, sizeof *cmds, &cmdbuf));
    ck_assert_ptr_null(cmdbuf);
    d.plugin.op_destroy(op);
    d.plugin.mem_free(mem);
    door_close(&d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("a plugin through its table");
    TCase *each = tcase_create("reference, and inside sim");
#define EACH(test) tcase_add_loop_test(each, test, 0, PLUGINS)
    EACH(the_query_refuses_another_major_and_finds_the_symbol_alone);
    EACH(devices_say_what_they_are);
    tcase_add_test(each, an_instance_needs_no_host_and_two_may_live_at_once);
    EACH(memory_is_aligned_there_and_refused_beyond_what_is_left);
    EACH(memory_maps_once_at_a_time);
    EACH(bytes_move_where_they_should_and_nowhere_else);
    EACH(commands_out_of_bounds_are_refused_and_the_queue_stays_usable);
    EACH(memory_of_another_handle_is_another_device);
    EACH(an_event_that_was_never_recorded_is_invalid);
    EACH(events_tell_time_when_they_were_made_for_it);
    EACH(an_event_is_recorded_by_one_thread_and_asked_by_another);
    EACH(a_run_takes_the_operands_that_were_promised_and_no_others);
    EACH(an_output_may_be_its_input_but_not_overlap_it);
    EACH(inputs_may_overlap_and_a_workspace_may_not);
    EACH(columns_of_one_matrix_are_apart_although_their_extents_meet);
    EACH(a_reserve_belongs_to_its_forward_operation);
    EACH(prepacked_weights_give_the_same_product);
    EACH(a_command_buffer_repeats_its_commands);
    suite_add_tcase(suite, each);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
