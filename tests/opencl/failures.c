/* failures.c - what fails below the opencl plugin surfaces as plugin.h says, without a hang.
 *
 * This program defines some of OpenCL's functions itself: they stand before the ICD loader's in the plugin's eyes, fail on demand,
 * and pass everything else on. */
#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdbool.h>
#include <time.h>

#include "tests/door/door.h"

/* --- the shim -------------------------------------------------------------------------------------------------------- */

static struct {
    cl_int enqueue, build, event, buffer;  /* the error to give; 0: pass on */
    int enqueue_after;                     /* launches that still work */
    bool running;                          /* every command seems to run for ever */
} fail;

static void *real(const char *name)
{
    static void *loader;
    if (!loader)
        loader = dlopen("libOpenCL.so.1", RTLD_NOW);
    return dlsym(loader, name);
}

#define EXPORT __attribute__((visibility("default")))

EXPORT cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset, const size_t *global,
                                     const size_t *local, cl_uint waits, const cl_event *list, cl_event *event)
{
    cl_int (*call)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *, cl_uint, const cl_event *,
                   cl_event *) = (cl_int(*)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *, cl_uint,
                                            const cl_event *, cl_event *))real("clEnqueueNDRangeKernel");
    if (fail.enqueue && fail.enqueue_after-- <= 0)
        return fail.enqueue;
    return call(queue, kernel, dims, offset, global, local, waits, list, event);
}

EXPORT cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                             void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    cl_int (*call)(cl_program, cl_uint, const cl_device_id *, const char *, void(CL_CALLBACK *)(cl_program, void *), void *) =
        (cl_int(*)(cl_program, cl_uint, const cl_device_id *, const char *, void(CL_CALLBACK *)(cl_program, void *),
                   void *))real("clBuildProgram");
    return fail.build ? fail.build : call(program, count, devices, options, notify, user);
}

EXPORT cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t bytes, void *value, size_t *length)
{
    cl_int (*call)(cl_event, cl_event_info, size_t, void *, size_t *) =
        (cl_int(*)(cl_event, cl_event_info, size_t, void *, size_t *))real("clGetEventInfo");
    cl_int error = call(event, what, bytes, value, length);
    if (what == CL_EVENT_COMMAND_EXECUTION_STATUS && !error && fail.event)
        *(cl_int *)value = fail.event;
    if (what == CL_EVENT_COMMAND_EXECUTION_STATUS && !error && fail.running)
        *(cl_int *)value = CL_RUNNING;
    return error;
}

EXPORT cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *error)
{
    cl_mem (*call)(cl_context, cl_mem_flags, size_t, void *, cl_int *) =
        (cl_mem(*)(cl_context, cl_mem_flags, size_t, void *, cl_int *))real("clCreateBuffer");
    if (!fail.buffer)
        return call(context, flags, bytes, host, error);
    *error = fail.buffer;
    return NULL;
}

/* --- what must follow ------------------------------------------------------------------------------------------------ */

static const char *const options[] = { "opencl_cache", "off", NULL };
static door d;

static void open_door(void)
{
    memset(&fail, 0, sizeof fail);
    door_open(&d, "opencl", options);
}

static cek_op *softmax(cek_op_info *info)
{
    cek_softmax_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_SOFTMAX }, .rows = 4, .columns = 4, .type = CEK_F32 };
    static const float x[16];
    static float y[16];
    const array arrays[] = { IN(x, sizeof x), OUT(y, sizeof y) };
    return door_op(&d, &desc.op, arrays, 2, info);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

START_TEST(a_launch_that_is_refused_leaves_the_queue_usable)
{
    cek_op_info info;
    open_door();
    cek_op *op = softmax(&info);
    cek_ref refs[2] = { { door_mem(&d, 64), 0 }, { door_mem(&d, 64), 0 } };
    fail.enqueue = CL_OUT_OF_RESOURCES;
    ck_assert_uint_eq(d.plugin.op_run(d.queue, op, refs, 2, (cek_ref){ NULL, 0 }), CEK_OUT_OF_MEMORY);
    ck_assert_msg(strstr(d.text, "CL_OUT_OF_RESOURCES") != NULL, "%s", d.text);
    fail.enqueue = CL_INVALID_WORK_GROUP_SIZE;
    ck_assert_uint_eq(d.plugin.op_run(d.queue, op, refs, 2, (cek_ref){ NULL, 0 }), CEK_INTERNAL);
    fail.enqueue = 0;
    ck_assert_uint_eq(d.plugin.op_run(d.queue, op, refs, 2, (cek_ref){ NULL, 0 }), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OK);
    d.plugin.op_destroy(op);
    d.plugin.mem_free(refs[0].mem);
    d.plugin.mem_free(refs[1].mem);
    door_close(&d);
}
END_TEST

START_TEST(half_an_operation_makes_the_queue_fail)
{
    cek_op_info info;
    cek_reduce_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_REDUCE }, .function = CEK_REDUCE_SUM, .axes = 1, .rank = 1,
                             .x_type = CEK_F32, .shape = { 16 }, .x_strides = { 1 } };
    static const float x[16];
    static float y[1];
    const array arrays[] = { IN(x, sizeof x), OUT(y, sizeof y) };
    open_door();
    cek_op *op = door_op(&d, &desc.op, arrays, 2, &info);
    cek_ref refs[2] = { { door_mem(&d, 64), 0 }, { door_mem(&d, 64), 0 } }, workspace = { door_mem(&d, info.workspace_bytes), 0 };
    fail.enqueue = CL_OUT_OF_HOST_MEMORY;
    fail.enqueue_after = 1;
    ck_assert_uint_eq(d.plugin.op_run(d.queue, op, refs, 2, workspace), CEK_OUT_OF_MEMORY);
    fail.enqueue = 0;
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.op_run(d.queue, op, refs, 2, workspace), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.device_status(d.dev, NULL, 0), CEK_OK);
    d.plugin.op_destroy(op);
    d.plugin.mem_free(refs[0].mem);
    d.plugin.mem_free(refs[1].mem);
    d.plugin.mem_free(workspace.mem);
    door_close(&d);
}
END_TEST

START_TEST(a_build_that_fails_is_internal_and_names_the_source)
{
    cek_op *op = (cek_op *)&d;
    cek_softmax_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_SOFTMAX, .operands = 3 }, .rows = 4, .columns = 4, .type = CEK_F32 };
    open_door();
    fail.build = CL_BUILD_PROGRAM_FAILURE;
    ck_assert_uint_eq(d.plugin.op_create(d.dev, &desc.op, NULL, &op), CEK_INTERNAL);
    ck_assert_ptr_null(op);
    ck_assert_msg(strstr(d.text, "rows.cl") && strstr(d.text, "CL_BUILD_PROGRAM_FAILURE"), "%s", d.text);
    fail.build = 0;
    ck_assert_uint_eq(d.plugin.op_create(d.dev, &desc.op, NULL, &op), CEK_OK);
    d.plugin.op_destroy(op);
    door_close(&d);
}
END_TEST

START_TEST(a_command_that_fails_sticks_to_queue_events_and_waiters)
{
    cek_queue *other;
    cek_event *event;
    char text[256] = "";
    open_door();
    cek_ref at = { door_mem(&d, 256), 0 };
    ck_assert_uint_eq(d.plugin.queue_create(d.dev, NULL, &other), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_create(d.dev, NULL, &event), CEK_OK);
    fail.event = CL_OUT_OF_RESOURCES;
    ck_assert_uint_eq(d.plugin.fill(d.queue, at, 0, 4, 256), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_record(d.queue, event), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OUT_OF_MEMORY);
    fail.event = 0;  /* a driver that has forgotten by now */
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.queue_status(d.queue, text, sizeof text), CEK_OUT_OF_MEMORY);
    ck_assert_msg(strstr(text, "fill") && strstr(text, "CL_OUT_OF_RESOURCES"), "%s", text);
    ck_assert_uint_eq(d.plugin.event_query(event), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.event_sync(event, CEK_FOREVER), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.fill(d.queue, at, 0, 4, 256), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.event_wait(other, event), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_sync(other, CEK_FOREVER), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.device_status(d.dev, NULL, 0), CEK_OK);
    double start = seconds();
    d.plugin.queue_destroy(other);
    d.plugin.event_destroy(event);
    d.plugin.mem_free(at.mem);
    door_close(&d);
    ck_assert_msg(seconds() - start < 5, "destroying took %g s", seconds() - start);
}
END_TEST

START_TEST(a_queue_that_waits_for_what_fails_later_fails_too)
{
    cek_queue *other;
    cek_event *event;
    open_door();
    cek_ref at = { door_mem(&d, 256), 0 };
    ck_assert_uint_eq(d.plugin.queue_create(d.dev, NULL, &other), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_create(d.dev, NULL, &event), CEK_OK);
    fail.running = true;
    ck_assert_uint_eq(d.plugin.fill(d.queue, at, 0, 4, 256), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_record(d.queue, event), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_query(event), CEK_NOT_READY);
    ck_assert_uint_eq(d.plugin.event_wait(other, event), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_sync(other, 1000000), CEK_TIMEOUT);
    fail.running = false;
    fail.event = CL_OUT_OF_RESOURCES;
    ck_assert_uint_eq(d.plugin.queue_sync(other, CEK_FOREVER), CEK_OUT_OF_MEMORY);
    d.plugin.queue_destroy(other);
    d.plugin.event_destroy(event);
    d.plugin.mem_free(at.mem);
    door_close(&d);
}
END_TEST

START_TEST(work_that_never_ends_is_left_at_the_deadline)
{
    cek_queue *queue;
    const cek_queue_desc desc = { .size = sizeof desc, .deadline_ns = 200000000 };
    char text[256] = "";
    open_door();
    cek_ref at = { door_mem(&d, 256), 0 };
    ck_assert_uint_eq(d.plugin.queue_create(d.dev, &desc, &queue), CEK_OK);
    fail.running = true;
    ck_assert_uint_eq(d.plugin.fill(queue, at, 0, 4, 256), CEK_OK);
    double start = seconds();
    ck_assert_uint_eq(d.plugin.queue_sync(queue, 50000000), CEK_TIMEOUT);
    d.plugin.queue_destroy(queue);
    ck_assert_msg(seconds() - start < 2, "it took %g s", seconds() - start);
    ck_assert_uint_eq(d.plugin.device_status(d.dev, text, sizeof text), CEK_DEVICE_LOST);
    ck_assert_msg(*text, "no reason is given");
    ck_assert_uint_eq(d.plugin.fill(d.queue, at, 0, 4, 256), CEK_DEVICE_LOST);
    d.plugin.mem_free(at.mem);
    door_close(&d);
}
END_TEST

START_TEST(an_allocation_that_fails_is_out_of_memory_and_the_next_one_works)
{
    cek_mem *mem = (cek_mem *)&d;
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = 4096 };
    open_door();
    fail.buffer = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    ck_assert_uint_eq(d.plugin.mem_alloc(d.dev, &desc, &mem), CEK_OUT_OF_MEMORY);
    ck_assert_ptr_null(mem);
    fail.buffer = 0;
    d.plugin.mem_free(door_mem(&d, 4096));
    door_close(&d);
}
END_TEST

START_TEST(a_device_that_is_gone_is_lost_for_good)
{
    cek_op_info info;
    open_door();
    cek_op *op = softmax(&info);
    cek_ref refs[2] = { { door_mem(&d, 64), 0 }, { door_mem(&d, 64), 0 } };
    fail.enqueue = CL_DEVICE_NOT_AVAILABLE;
    ck_assert_uint_eq(d.plugin.op_run(d.queue, op, refs, 2, (cek_ref){ NULL, 0 }), CEK_DEVICE_LOST);
    fail.enqueue = 0;
    ck_assert_uint_eq(d.plugin.op_run(d.queue, op, refs, 2, (cek_ref){ NULL, 0 }), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_DEVICE_LOST);
    d.plugin.op_destroy(op);
    d.plugin.mem_free(refs[0].mem);
    d.plugin.mem_free(refs[1].mem);
    door_close(&d);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("opencl failures");
    TCase *c = tcase_create("shim");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, a_launch_that_is_refused_leaves_the_queue_usable);
    tcase_add_test(c, half_an_operation_makes_the_queue_fail);
    tcase_add_test(c, a_build_that_fails_is_internal_and_names_the_source);
    tcase_add_test(c, a_command_that_fails_sticks_to_queue_events_and_waiters);
    tcase_add_test(c, a_queue_that_waits_for_what_fails_later_fails_too);
    tcase_add_test(c, work_that_never_ends_is_left_at_the_deadline);
    tcase_add_test(c, an_allocation_that_fails_is_out_of_memory_and_the_next_one_works);
    tcase_add_test(c, a_device_that_is_gone_is_lost_for_good);
    suite_add_tcase(s, c);
    if (system("CEKERNELS_PLUGINS==opencl \"$CEKERNELS_BENCH\" devices --json 2>/dev/null | grep -q '\"opencl:0\"'")) {
        puts("skipped: no OpenCL device");
        return 77;
    }
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
