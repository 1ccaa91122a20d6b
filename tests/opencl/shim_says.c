/* shim_says.c - the shim does not flatter: for everything that it is strict about, a program that does wrong hears so,
 * and one that does right does not. The programs are here, straight on OpenCL; there is no plugin. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/opencl/shim.h"
#include "tests/suite.h"

enum { BYTES = 4096 };

/* As the plugin's kernels: memory, and numbers that are longer than a handle. */
static const char *const source = "typedef struct { ulong n[8]; } numbers;\n"
                                  "typedef struct { ulong n[64]; } many;\n"
                                  "kernel void one(global uint *to, numbers by) { if (by.n[0]) to[0] = 1; }\n"
                                  "kernel void other(global uint *to, numbers by) { if (by.n[0]) to[1] = 1; }\n"
                                  "kernel void bare(global uint *to) { to[2] = 1; }\n"
                                  "kernel void wide(many a, many b, global uint *to) { to[0] = a.n[0] + b.n[0]; }\n";

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_mem memory;
static cl_program program;

static cl_command_queue queues[8];
static int queue_count;

static cl_command_queue queue_make(cl_command_queue_properties properties)
{
    cl_int error;
    ck_assert_int_lt(queue_count, 8);
    queues[queue_count] = clCreateCommandQueue(context, device, properties, &error);
    ck_assert_int_eq(error, CL_SUCCESS);
    return queues[queue_count++];
}

/* PoCL crashes in a process that ends while it works. */
static void settle(void)
{
    shim.dead = NULL;
    while (queue_count)
        clFinish(queues[--queue_count]);
}

static void context_open(void)
{
    cl_int error;
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    ck_assert_int_eq(error, CL_SUCCESS);
    queue = queue_make(0);
    memory = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &error);
    ck_assert_int_eq(error, CL_SUCCESS);
}

static void device_open(void)
{
    cl_platform_id platform;
    cl_uint count = 0;
    shim_be_strict();
    ck_assert_int_eq(clGetPlatformIDs(1, &platform, &count), CL_SUCCESS);
    ck_assert_int_eq(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, &count), CL_SUCCESS);
}

static void open_all(void)
{
    device_open();
    context_open();
}

static void program_open(void)
{
    cl_int error;
    program = clCreateProgramWithSource(context, 1, (const char *[]){ source }, NULL, &error);
    ck_assert_int_eq(error, CL_SUCCESS);
    ck_assert_int_eq(clBuildProgram(program, 1, &device, "-cl-std=CL1.2", NULL, NULL), CL_SUCCESS);
}

static cl_kernel kernel_of(const char *name)
{
    cl_int error;
    cl_kernel made = clCreateKernel(program, name, &error);
    ck_assert_int_eq(error, CL_SUCCESS);
    return made;
}

static cl_event filled(cl_command_queue in, cl_uint waits, const cl_event *list)
{
    const cl_uint zero = 0;
    cl_event event = NULL;
    ck_assert_int_eq(clEnqueueFillBuffer(in, memory, &zero, sizeof zero, 0, BYTES, waits, list, &event), CL_SUCCESS);
    return event;
}

static cl_int status_of(cl_event event)
{
    cl_int status = 1;
    ck_assert_int_eq(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL),
                     CL_SUCCESS);
    return status;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
}

static cl_int ended(cl_event event)
{
    cl_int status;
    while ((status = status_of(event)) > CL_COMPLETE)
        pause_ms(1);
    return status;
}

/* --- flushes ---------------------------------------------------------------------------------- */

static void CL_CALLBACK ring(cl_event event, cl_int status, void *user)
{
    (void)event, (void)status;
    atomic_store((atomic_bool *)user, true);
}

START_TEST(what_nobody_flushed_is_queued_and_rings_no_bell)
{
    static atomic_bool rang;
    open_all();
    cl_event event = filled(queue, 0, NULL);
    ck_assert_int_eq(clSetEventCallback(event, CL_COMPLETE, ring, &rang), CL_SUCCESS);
    for (int i = 0; i < 50; i++, pause_ms(1)) /* PoCL has done it long ago */
        ck_assert_int_eq(status_of(event), CL_QUEUED);
    ck_assert(!rang);
    ck_assert_int_eq(clFlush(queue), CL_SUCCESS);
    ck_assert_int_eq(ended(event), CL_COMPLETE);
    while (!rang)
        pause_ms(1);
}
END_TEST

START_TEST(a_command_that_waits_for_what_nobody_flushed_is_counted)
{
    open_all();
    cl_command_queue other = queue_make(0);
    cl_event event = filled(queue, 0, NULL);
    filled(queue, 1, &event); /* in order anyway */
    ck_assert_int_eq(shim.unflushed, 0);
    filled(other, 1, &event);
    ck_assert_int_eq(shim.unflushed, 1);
    clFlush(queue);
    filled(other, 1, &event);
    ck_assert_int_eq(shim.unflushed, 1);
}
END_TEST

/* --- order ------------------------------------------------------------------------------------ */

START_TEST(a_poll_that_is_taken_as_ordering_is_counted)
{
    open_all();
    cl_command_queue other = queue_make(0);
    cl_event event = filled(queue, 0, NULL);
    clFlush(queue);
    ck_assert_int_eq(ended(event), CL_COMPLETE);
    filled(queue, 0, NULL); /* behind it in any case */
    ck_assert_int_eq(shim.unordered, 0);
    filled(other, 0, NULL);
    ck_assert_int_eq(shim.unordered, 1);
    ck_assert_int_eq(clWaitForEvents(1, &event), CL_SUCCESS);
    filled(other, 0, NULL);
    ck_assert_int_eq(shim.unordered, 1);
}
END_TEST

static void *poll_and_go_on(void *event)
{
    ended(event);
    filled(queue, 0, NULL);
    return NULL;
}

START_TEST(a_poll_of_another_thread_orders_nothing_either)
{
    pthread_t thread;
    open_all();
    cl_command_queue other = queue_make(0);
    cl_event event = filled(queue, 0, NULL);
    clFlush(queue);
    pthread_create(&thread, NULL, poll_and_go_on, event);
    pthread_join(thread, NULL);
    filled(other, 0, NULL);
    ck_assert_int_eq(shim.unordered, 1);
}
END_TEST

/* What orders: a wait of the host, a wait list, a blocking command, clFinish. */
START_TEST(a_wait_behind_a_poll_orders)
{
    unsigned char byte;
    open_all();
    cl_command_queue other = queue_make(0);
    cl_event event = filled(queue, 0, NULL);
    clFlush(queue);
    ended(event);
    if (_i == 0)
        clWaitForEvents(1, &event);
    else if (_i == 1)
        filled(other, 1, &event);
    else if (_i == 2)
        clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, 1, &byte, 0, NULL, NULL);
    else
        clFinish(queue);
    filled(other, 0, NULL);
    ck_assert_int_eq(shim.unordered, 0);
    ck_assert_int_eq(shim.finishes, _i == 3);
    ck_assert_int_eq(shim.waits, _i == 2);
}
END_TEST

/* --- limits ----------------------------------------------------------------------------------- */

static cl_int launched(cl_kernel kernel, size_t group)
{
    return clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &group, &group, 0, NULL, NULL);
}

static void numbers_set(cl_kernel kernel, cl_ulong number)
{
    const cl_ulong numbers[8] = { number };
    ck_assert_int_eq(clSetKernelArg(kernel, 0, sizeof memory, &memory), CL_SUCCESS);
    ck_assert_int_eq(clSetKernelArg(kernel, 1, sizeof numbers, numbers), CL_SUCCESS);
}

START_TEST(a_group_that_is_larger_than_the_kernel_takes_is_refused)
{
    size_t most = 0;
    cl_device_type type = 0;
    open_all();
    program_open();
    cl_kernel kernel = kernel_of("one");
    numbers_set(kernel, 1);
    clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    ck_assert_uint_eq(type, CL_DEVICE_TYPE_GPU);
    clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof most, &most, NULL);
    ck_assert_uint_gt(most, 128); /* so who asks the device alone is wrong */
    for (size_t limit = 64; limit <= 128; limit *= 2) {
        shim.kernel_group = limit;
        clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL);
        ck_assert_uint_eq(most, limit);
        ck_assert_int_eq(launched(kernel, limit), CL_SUCCESS);
        ck_assert_int_eq(launched(kernel, limit + 1), CL_INVALID_WORK_GROUP_SIZE);
    }
}
END_TEST

START_TEST(a_buffer_is_a_quarter_of_the_memory_and_all_of_them_no_more_than_that)
{
    cl_ulong total, most;
    cl_int error;
    cl_mem quarters[4];
    device_open();
    shim.memory = 1 << 20;
    context_open();
    ck_assert_int_eq(clReleaseMemObject(memory), CL_SUCCESS);
    clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof total, &total, NULL);
    clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most, &most, NULL);
    ck_assert_uint_eq(total, 1 << 20);
    ck_assert_uint_eq(most, total / 4);
    ck_assert_ptr_null(clCreateBuffer(context, CL_MEM_READ_WRITE, most + 1, NULL, &error));
    ck_assert_int_eq(error, CL_INVALID_BUFFER_SIZE);
    for (int i = 0; i < 4; i++) {
        quarters[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, most, NULL, &error);
        ck_assert_int_eq(error, CL_SUCCESS);
    }
    ck_assert_ptr_null(clCreateBuffer(context, CL_MEM_READ_WRITE, 1, NULL, &error));
    ck_assert_int_eq(error, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    clReleaseMemObject(quarters[0]);
    ck_assert_ptr_nonnull(clCreateBuffer(context, CL_MEM_READ_WRITE, 1, NULL, &error));
}
END_TEST

START_TEST(arguments_beyond_the_limit_are_refused_kernel_by_kernel)
{
    static const cl_ulong many[64];
    size_t most = 0;
    open_all();
    program_open();
    clGetDeviceInfo(device, CL_DEVICE_MAX_PARAMETER_SIZE, sizeof most, &most, NULL);
    ck_assert_uint_eq(most, 2 * sizeof many);
    for (int round = 0; round < 3; round++) { /* in the place of one that was released */
        cl_kernel kernel = kernel_of("wide");
        ck_assert_int_eq(clSetKernelArg(kernel, 0, sizeof many, many), CL_SUCCESS);
        ck_assert_int_eq(clSetKernelArg(kernel, 1, sizeof many, many), CL_SUCCESS);
        ck_assert_int_eq(clSetKernelArg(kernel, 1, sizeof many, many), CL_SUCCESS); /* once more is not more */
        ck_assert_int_eq(clSetKernelArg(kernel, 2, sizeof memory, &memory), CL_INVALID_ARG_SIZE);
        ck_assert_int_eq(clReleaseKernel(kernel), CL_SUCCESS);
    }
}
END_TEST

/* --- what a driver lacks ---------------------------------------------------------------------- */

START_TEST(a_driver_without_a_compiler_compiles_nothing)
{
    cl_bool there = true;
    open_all();
    shim.no_compiler = true;
    clGetDeviceInfo(device, CL_DEVICE_COMPILER_AVAILABLE, sizeof there, &there, NULL);
    ck_assert(!there);
    program = clCreateProgramWithSource(context, 1, (const char *[]){ source }, NULL, &(cl_int){ 0 });
    ck_assert_int_eq(clBuildProgram(program, 1, &device, "", NULL, NULL), CL_COMPILER_NOT_AVAILABLE);
}
END_TEST

START_TEST(an_old_driver_knows_nothing_newer)
{
    char text[64] = "";
    const cl_uint zero = 0;
    open_all();
    shim.old = true;
    clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof text, text, NULL);
    ck_assert_int_eq(strncmp(text, "OpenCL 1.1 ", 11), 0);
    program = clCreateProgramWithSource(context, 1, (const char *[]){ source }, NULL, &(cl_int){ 0 });
    ck_assert_int_eq(clBuildProgram(program, 1, &device, "-cl-std=CL1.2", NULL, NULL), CL_INVALID_BUILD_OPTIONS);
    ck_assert_int_ne(clEnqueueFillBuffer(queue, memory, &zero, sizeof zero, 0, BYTES, 0, NULL, NULL), CL_SUCCESS);
    ck_assert_int_ne(clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL), CL_SUCCESS);
    ck_assert_int_ne(clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL), CL_SUCCESS);
}
END_TEST

START_TEST(what_is_listed_may_not_be_had)
{
    cl_int error;
    open_all();
    shim.unavailable = true;
    ck_assert_ptr_null(clCreateContext(NULL, 1, &device, NULL, NULL, &error));
    ck_assert_int_eq(error, CL_DEVICE_NOT_AVAILABLE);
}
END_TEST

/* --- failures --------------------------------------------------------------------------------- */

START_TEST(a_launch_that_faults_takes_its_context_with_it_and_no_other)
{
    cl_event event, before;
    cl_int error;
    size_t one = 1;
    open_all();
    program_open();
    cl_kernel kernel = kernel_of("one");
    numbers_set(kernel, 1);
    before = filled(queue, 0, NULL);
    clFlush(queue);
    shim.fault = CL_OUT_OF_RESOURCES;
    ck_assert_int_eq(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, &event), CL_SUCCESS);
    ck_assert_int_eq(shim.dead_calls, 0);
    ck_assert_int_eq(ended(before), CL_COMPLETE);
    ck_assert_int_eq(ended(event), CL_OUT_OF_RESOURCES);
    ck_assert_int_ne(clWaitForEvents(1, &event), CL_SUCCESS);
    ck_assert_int_ne(clFinish(queue), CL_SUCCESS);
    ck_assert_int_ne(launched(kernel, 1), CL_SUCCESS);
    ck_assert_int_ne(clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL), CL_SUCCESS);
    ck_assert_ptr_null(clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &error));
    ck_assert_ptr_null(clCreateCommandQueue(context, device, 0, &error));
    ck_assert_int_eq(error, CL_OUT_OF_RESOURCES);
    ck_assert_int_eq(shim.dead_calls, 4);
    context_open(); /* another one */
    clFlush(queue);
    event = filled(queue, 0, NULL);
    clFlush(queue);
    ck_assert_int_eq(ended(event), CL_COMPLETE);
}
END_TEST

/* Launches that warm up do nothing, so they neither fault nor are they noted; the numbers that count are the kernel's
 * own, whoever set them, and when. */
static void *zeros_set(void *kernel)
{
    numbers_set(kernel, 0);
    return NULL;
}

START_TEST(a_launch_has_something_to_do_if_the_numbers_of_its_kernel_say_so)
{
    pthread_t thread;
    open_all();
    program_open();
    cl_kernel one = kernel_of("one"), other = kernel_of("other");
    numbers_set(one, 1);
    numbers_set(other, 0);
    shim.fault = CL_OUT_OF_RESOURCES;
    ck_assert_int_eq(launched(other, 1), CL_SUCCESS);
    ck_assert_ptr_null(shim.dead);
    if (_i == 0) {
        ck_assert_int_eq(launched(one, 1), CL_SUCCESS); /* though zeros were set last */
    } else if (_i == 1) {
        numbers_set(other, 1);
        pthread_create(&thread, NULL, zeros_set, other);
        pthread_join(thread, NULL);
        ck_assert_int_eq(launched(other, 1), CL_SUCCESS); /* zeros of another thread */
        ck_assert_ptr_null(shim.dead);
        return;
    } else {
        clFinish(queue);
        clReleaseKernel(other);
        cl_kernel bare = kernel_of("bare"); /* perhaps in its place */
        clSetKernelArg(bare, 0, sizeof memory, &memory);
        ck_assert_int_eq(launched(bare, 1), CL_SUCCESS);
    }
    ck_assert_ptr_nonnull(shim.dead);
}
END_TEST

/* --- queues ----------------------------------------------------------------------------------- */

START_TEST(a_queue_takes_time_to_make_and_with_profiling_waits_for_each_command)
{
    struct timespec from, to;
    open_all();
    clock_gettime(CLOCK_MONOTONIC, &from);
    cl_command_queue profiled = queue_make(CL_QUEUE_PROFILING_ENABLE);
    clock_gettime(CLOCK_MONOTONIC, &to);
    ck_assert_int_ge((to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec, 5000000);
    ck_assert_int_eq(shim.profiled, 0);
    cl_event event = filled(profiled, 0, NULL);
    ck_assert_int_eq(status_of(event), CL_COMPLETE);
    ck_assert_int_eq(shim.profiling_queues, 1);
    ck_assert_int_eq(shim.profiled, 1);
}
END_TEST

START_TEST(what_is_asked_is_counted)
{
    unsigned char byte;
    open_all();
    program_open();
    cl_kernel kernel = kernel_of("one");
    const shim_counts from = shim_count();
    numbers_set(kernel, 1);
    launched(kernel, 1);
    cl_event event = filled(queue, 0, NULL);
    clFlush(queue);
    status_of(event);
    clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, 1, &byte, 0, NULL, NULL);
    queue_make(0);
    clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &(cl_int){ 0 });
    clFinish(queue);
    const shim_counts to = shim_count();
    ck_assert_int_eq(to.commands - from.commands, 3);
    ck_assert_int_eq(to.launches - from.launches, 1);
    ck_assert_int_eq(to.arguments - from.arguments, 2);
    ck_assert_int_eq(to.flushes - from.flushes, 1);
    ck_assert_int_eq(to.polls - from.polls, 1);
    ck_assert_int_eq(to.waits - from.waits, 1);
    ck_assert_int_eq(to.queues - from.queues, 1);
    ck_assert_int_eq(to.buffers - from.buffers, 1);
    ck_assert_int_eq(to.finishes - from.finishes, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("the shim of OpenCL");
    TCase *tc = tcase_create("says what is wrong");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, NULL, settle);
    tcase_add_test(tc, what_nobody_flushed_is_queued_and_rings_no_bell);
    tcase_add_test(tc, a_command_that_waits_for_what_nobody_flushed_is_counted);
    tcase_add_test(tc, a_poll_that_is_taken_as_ordering_is_counted);
    tcase_add_test(tc, a_poll_of_another_thread_orders_nothing_either);
    tcase_add_loop_test(tc, a_wait_behind_a_poll_orders, 0, 4);
    tcase_add_test(tc, a_group_that_is_larger_than_the_kernel_takes_is_refused);
    tcase_add_test(tc, a_buffer_is_a_quarter_of_the_memory_and_all_of_them_no_more_than_that);
    tcase_add_test(tc, arguments_beyond_the_limit_are_refused_kernel_by_kernel);
    tcase_add_test(tc, a_driver_without_a_compiler_compiles_nothing);
    tcase_add_test(tc, an_old_driver_knows_nothing_newer);
    tcase_add_test(tc, what_is_listed_may_not_be_had);
    tcase_add_test(tc, a_launch_that_faults_takes_its_context_with_it_and_no_other);
    tcase_add_loop_test(tc, a_launch_has_something_to_do_if_the_numbers_of_its_kernel_say_so, 0, 3);
    tcase_add_test(tc, a_queue_takes_time_to_make_and_with_profiling_waits_for_each_command);
    tcase_add_test(tc, what_is_asked_is_counted);
    suite_add_tcase(suite, tc);
    /* Another process looks: a child that is forked from one that has a driver loaded would hang. */
    if (system("CEKERNELS_PLUGINS==opencl \"$CEKERNELS_BENCH\" devices --json 2>/dev/null | grep -q '\"opencl:0\"'")) {
        puts("skipped: no OpenCL device");
        return 77;
    }
    return suite_run(suite);
}
