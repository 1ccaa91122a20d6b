/* failures.c - what fails below the cuda plugin surfaces as plugin.h says: every function of the
 * driver that a program reaches, at each of its calls, in three ways; kernels that end their
 * context or never end.
 *
 * After each: the documented status, no hang, nothing left behind, and the thread's own context as it was. */
#include <stdatomic.h>

#include "backends/cuda/cuda.h"
#include "tests/cuda/life.h"

/* --- every call fails once -------------------------------------------------------------------- */

/* What is asked where a failure leaves the answer empty, or where nothing can be told. */
static bool is_tolerated(const char *function)
{
    static const char *const names[] = {
        "cuGetErrorName",      "cuGetErrorString", "cuDeviceGetAttribute", "cuDeviceTotalMem",
        "cuDeviceGetPCIBusId", "cuDeviceGetUuid",  "cuDeviceGetName",      "cuDeviceCanAccessPeer",
        "cuMemFree",           "cuMemFreeHost",    "cuStreamDestroy",      "cuEventDestroy",
        "cuModuleUnload",      "cuGraphDestroy",   "cuGraphExecDestroy",   "cuDevicePrimaryCtxRelease",
        "cuCtxPopCurrent",     "cuStreamQuery",    "cuCtxPushCurrent",     "cuMemHostUnregister",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], function))
            return true;
    return false;
}

/* The calls that give something back: failing, they leave it; popping, the context stays. */
static bool is_giving_back(const char *function)
{
    return strstr(function, "Free") || strstr(function, "Destroy") || strstr(function, "Unload") ||
           strstr(function, "Unregister") || strstr(function, "Release") || !strcmp(function, "cuCtxPopCurrent") ||
           !strcmp(function, "cuCtxPushCurrent") || !strcmp(function, "cuStreamQuery");
}

static void one_failure(const char *function, unsigned nth, uint32_t error)
{
    life l = { 0 };
    context_push();
    unsigned live = fake.live(), depth = fake.depth();
    double start = seconds();
    fake.inject(function, nth, error);
    life_make(&l);
    if (!l.status)
        life_run(&l);
    life_end(&l);
    ck_assert_msg(seconds() - start < 8, "%s, call %u, %u: %.1f s", function, nth, error, seconds() - start);
    cek_status want = error == 2 ? CEK_OUT_OF_MEMORY : error == UNKNOWN ? CEK_INTERNAL : CEK_DEVICE_LOST;
    if (!strcmp(function, "cuStreamQuery") || !strcmp(function, "cuEventQuery"))
        want = CEK_DEVICE_LOST; /* of work that ran */
    if (!strcmp(function, "cuMemHostRegister") && error == UNKNOWN)
        want = CEK_UNSUPPORTED;
    if (!l.dev && want == CEK_DEVICE_LOST && l.status == CEK_INTERNAL)
        want = CEK_INTERNAL; /* before there is a device to lose */
    ck_assert_msg(l.status == want || (!l.status && is_tolerated(function)), "%s, call %u, %u: status %u, not %u: %s",
                  function, nth, error, l.status, want, d.text);
    if (l.status)
        ck_assert_msg(d.text[0], "%s, call %u: no text", function, nth);
    if (error != ILLEGAL_ADDRESS && l.status != CEK_DEVICE_LOST && !is_giving_back(function))
        ck_assert_msg(fake.live() == live, "%s, call %u, %u: %u objects are left", function, nth, error,
                      fake.live() - live);
    if (strcmp(function, "cuCtxPopCurrent")) {
        ck_assert_msg(fake.depth() == depth, "%s, call %u, %u: %u contexts pushed, not %u", function, nth, error,
                      fake.depth(), depth);
        ck_assert_ptr_eq(fake.current(), fake.context);
    }
    while (fake.depth() > depth) {
        CUcontext was;
        ck_assert_uint_eq(fake.driver.cuCtxPopCurrent(&was), 0);
    }
    fake.reset();
    ck_assert_uint_eq(fake.driver.cuDevicePrimaryCtxRetain(&fake.context, 1), 0);
    context_pop();
}

/* The first of this program: what a library was loaded for stays loaded. */
START_TEST(to_list_devices_loads_no_library)
{
    static const char *const names[] = { "libnvrtc.so.13", "libcublasLt.so.13", "libcudnn.so.9" };
    cek_device_info info = { .size = sizeof info };
    char path[128];
    context_push();
    door_prepare();
    link_make("fake_cublaslt.so", names[1]);
    link_make("fake_cudnn.so", names[2]);
    ck_assert_uint_eq(d.plugin.create(&d.host, &d.instance), CEK_OK);
    ck_assert_uint_eq(d.plugin.device_info(d.instance, 0, &info), CEK_OK);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", fake.folder, names[i]);
        ck_assert_msg(!dlopen(path, RTLD_NOW | RTLD_NOLOAD) && !dlopen(names[i], RTLD_NOW | RTLD_NOLOAD),
                      "%s is loaded", names[i]);
    }
    ck_assert_msg(!strchr(info.driver, ';'), "%s", info.driver);
    for (int i = 1; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", fake.folder, names[i]);
        unlink(path);
    }
    d.plugin.destroy(d.instance);
    d.instance = NULL;
    context_pop();
}
END_TEST

static unsigned used_calls[64];
static const char *const functions[] = {
#define NAME(FUNCTION, VERSION, PARAMETERS) #FUNCTION,
    CEK__CUDA_FUNCTIONS(NAME)
#undef NAME
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

START_TEST(a_program_that_uses_everything_leaves_nothing_behind)
{
    life l = { 0 };
    context_push();
    door_prepare();
    unsigned live = fake.live(), depth = fake.depth();
    for (int pass = 0; pass < 2; pass++) { /* the second finds compiled kernels */
        for (unsigned i = 0; i < FUNCTIONS; i++)
            used_calls[i] = fake.calls(functions[i]);
        memset(&l, 0, sizeof l);
        life_make(&l);
        life_run(&l);
        life_end(&l);
        ck_assert_msg(!l.status, "status %u: %s", l.status, d.text);
        for (unsigned i = 0; i < FUNCTIONS; i++)
            used_calls[i] = fake.calls(functions[i]) - used_calls[i];
    }
    ck_assert_uint_eq(fake.live(), live);
    ck_assert_uint_eq(fake.depth(), depth);
    ck_assert_ptr_eq(fake.current(), fake.context);
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (double)l.y[i];
    ck_assert_msg(sum > 0.999999 && sum < 1.000001 && l.y[3] > l.y[2], "softmax: %g %g %g %g", l.y[0], l.y[1], l.y[2],
                  l.y[3]);
    context_pop();
}
END_TEST

START_TEST(every_call_of_the_driver_may_fail)
{
    unsigned reached = 0, failures = 0;
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        reached += used_calls[i] > 0;
        /* Calls without end, such as polls and contexts, are as good as their first. */
        unsigned most = used_calls[i] < 40 ? used_calls[i] : 40;
        for (unsigned nth = 1; nth <= most; nth++)
            for (int way = 0; way < 3; way++, failures++)
                one_failure(functions[i], nth, way == 0 ? 2 : way == 1 ? UNKNOWN : ILLEGAL_ADDRESS);
    }
    printf("%u functions of %u, %u failures\n", reached, (unsigned)FUNCTIONS, failures);
    ck_assert_uint_ge(reached, 40);
    ck_assert_uint_ge(failures, 300);
}
END_TEST

/* --- kernels ---------------------------------------------------------------------------------- */

static void life_open(life *l)
{
    memset(l, 0, sizeof *l);
    context_push();
    door_prepare();
    life_make(l);
    ck_assert_msg(!l->status, "status %u: %s", l->status, d.text);
}

static void life_over(life *l)
{
    life_end(l);
    ck_assert_ptr_eq(fake.current(), fake.context);
    fake.reset();
    ck_assert_uint_eq(fake.driver.cuDevicePrimaryCtxRetain(&fake.context, 1), 0);
    context_pop();
}

START_TEST(a_kernel_that_ends_its_context_loses_the_device_for_good)
{
    life l;
    char text[256];
    life_open(&l);
    const cek_ref refs[] = { { l.mems[0], 0 }, { l.mems[1], 0 } };
    fake.kernel(1, ILLEGAL_ADDRESS);
    ck_assert_uint_eq(d.plugin.op_run(l.queue, l.op, refs, 2, (cek_ref){ NULL, 0 }), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_sync(l.queue, UINT64_C(5000000000)), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.device_status(l.dev, text, sizeof text), CEK_DEVICE_LOST);
    ck_assert_msg(strstr(text, "CUDA_ERROR_ILLEGAL_ADDRESS") != NULL, "%s", text);
    unsigned before = fake.calls("cuCtxPushCurrent");
    ck_assert_uint_eq(d.plugin.op_run(l.queue, l.op, refs, 2, (cek_ref){ NULL, 0 }), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.upload(l.other, refs[0], l.y, 4), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.event_record(l.other, l.events[0]), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.event_query(l.events[0]), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.queue_status(l.other, text, sizeof text), CEK_DEVICE_LOST);
    ck_assert_uint_eq(fake.calls("cuCtxPushCurrent"), before); /* at once: the driver is not asked */
    cek_dev *again = NULL;                                     /* the driver gives the dead context once more */
    ck_assert_uint_eq(d.plugin.device_open(d.instance, 0, NULL, &again), CEK_DEVICE_LOST);
    ck_assert_ptr_null(again);
    life_over(&l);
}
END_TEST

START_TEST(a_kernel_that_never_ends_is_left_at_the_deadline)
{
    life l;
    life_open(&l);
    const cek_ref refs[] = { { l.mems[0], 0 }, { l.mems[1], 0 } };
    fake.kernel(1, 0);
    ck_assert_uint_eq(d.plugin.op_run(l.queue, l.op, refs, 2, (cek_ref){ NULL, 0 }), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_record(l.queue, l.events[0]), CEK_OK);
    double start = seconds();
    ck_assert_uint_eq(d.plugin.queue_sync(l.queue, 20000000), CEK_TIMEOUT);
    ck_assert_uint_eq(d.plugin.event_sync(l.events[0], 20000000), CEK_TIMEOUT);
    ck_assert_uint_eq(d.plugin.event_query(l.events[0]), CEK_NOT_READY);
    ck_assert_uint_eq(d.plugin.queue_sync(l.queue, 0), CEK_TIMEOUT);
    d.plugin.queue_destroy(l.queue); /* its deadline is two seconds */
    l.queue = NULL;
    ck_assert_msg(seconds() - start < 4, "%.1f s", seconds() - start);
    ck_assert_uint_eq(d.plugin.device_status(l.dev, NULL, 0), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.event_query(l.events[0]), CEK_DEVICE_LOST);
    life_over(&l);
}
END_TEST

START_TEST(half_an_operation_fails_its_queue_and_whoever_waits_for_it)
{
    life l;
    char text[256];
    life_open(&l);
    cek_ref refs[7] = { { l.mems[0], 0 }, { l.mems[1], 0 } };
    refs[6] = (cek_ref){ l.mems[2], 0 };
    fake.inject("cuLaunchKernel", 2, UNKNOWN); /* the losses of the rows are on their way, their sum is not */
    ck_assert_uint_eq(d.plugin.op_run(l.queue, l.loss, refs, 7, (cek_ref){ l.mems[3], 0 }), CEK_INTERNAL);
    ck_assert_uint_eq(d.plugin.queue_status(l.queue, text, sizeof text), CEK_INTERNAL);
    ck_assert_msg(strstr(text, "only a part") != NULL, "%s", text);
    ck_assert_uint_eq(d.plugin.queue_sync(l.queue, CEK_FOREVER), CEK_INTERNAL);
    ck_assert_uint_eq(d.plugin.upload(l.queue, refs[0], l.y, 4), CEK_INTERNAL);
    ck_assert_uint_eq(d.plugin.event_record(l.queue, l.events[0]), CEK_INTERNAL);
    ck_assert_uint_eq(d.plugin.event_query(l.events[0]), CEK_INTERNAL);
    ck_assert_uint_eq(d.plugin.event_wait(l.other, l.events[0]), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_status(l.other, text, sizeof text), CEK_INTERNAL);
    ck_assert_msg(strstr(text, "waited for an event that failed") != NULL, "%s", text);
    ck_assert_uint_eq(d.plugin.device_status(l.dev, NULL, 0), CEK_OK);
    life_over(&l);
}
END_TEST

START_TEST(a_command_buffer_that_cannot_be_captured_leaves_no_capture_behind)
{
    life l;
    life_open(&l);
    const cek_ref refs[] = { { l.mems[0], 0 }, { NULL, 0 } }; /* the second operand is missing */
    const cek_cmd cmds[] = { { .kind = CEK_CMD_FILL, .dst = { l.mems[3], 0 }, .pattern_bytes = 1, .bytes = 64 },
                             { .kind = CEK_CMD_RUN, .op = l.op, .operands = refs, .operand_count = 2 } };
    cek_cmdbuf *cmdbuf;
    ck_assert_uint_eq(d.plugin.cmdbuf_create(l.dev, cmds, 2, sizeof *cmds, &cmdbuf), CEK_INVALID);
    ck_assert_ptr_null(cmdbuf);
    ck_assert_uint_eq(d.plugin.cmdbuf_create(l.dev, cmds, 1, sizeof *cmds, &cmdbuf), CEK_OK);
    d.plugin.cmdbuf_destroy(cmdbuf);
    life_run(&l);
    ck_assert_msg(!l.status, "status %u: %s", l.status, d.text);
    life_over(&l);
}
END_TEST

/* Of all that the driver says of a module which it cannot use on this device, none is the end: it is compiled. */
START_TEST(a_module_that_the_driver_cannot_use_is_compiled)
{
    static const uint32_t errors[] = {
        CUDA_ERROR_INVALID_IMAGE,          CUDA_ERROR_NO_BINARY_FOR_GPU,       CUDA_ERROR_INVALID_PTX,
        CUDA_ERROR_JIT_COMPILER_NOT_FOUND, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_JIT_COMPILATION_DISABLED,
        CUDA_ERROR_INVALID_SOURCE
    };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        life l = { 0 };
        context_push();
        door_prepare();
        fake.inject("cuModuleLoadData", 1, errors[i]);
        life_make(&l);
        ck_assert_msg(!l.status, "%u: status %u: %s", errors[i], l.status, d.text);
        life_over(&l);
    }
}
END_TEST

START_TEST(what_the_driver_refuses_to_capture_is_unsupported)
{
    life l;
    cek_cmdbuf *cmdbuf;
    life_open(&l);
    const cek_ref refs[] = { { l.mems[0], 0 }, { l.mems[1], 0 } };
    const cek_cmd cmd = { .kind = CEK_CMD_RUN, .op = l.op, .operands = refs, .operand_count = 2 };
    fake.inject("cuStreamEndCapture", 1, 901);
    ck_assert_uint_eq(d.plugin.cmdbuf_create(l.dev, &cmd, 1, sizeof cmd, &cmdbuf), CEK_UNSUPPORTED);
    ck_assert_ptr_null(cmdbuf);
    ck_assert_uint_eq(d.plugin.device_status(l.dev, NULL, 0), CEK_OK);
    fake.inject("cuStreamQuery", 1, 900); /* the host application captures: this thread may not ask */
    ck_assert_uint_eq(d.plugin.queue_sync(l.queue, CEK_FOREVER), CEK_INTERNAL);
    ck_assert_uint_eq(d.plugin.device_status(l.dev, NULL, 0), CEK_OK);
    life_over(&l);
}
END_TEST

/* Its code is loaded by then: a capture can begin. */
START_TEST(a_kernel_is_warm_when_a_launch_of_it_has_ended)
{
    life l;
    cek_op *op;
    cek_cmdbuf *cmdbuf;
    cek_reduce_desc sum = { .op = { .size = sizeof sum, .kind = CEK_OP_REDUCE, .operands = 3 },
                            .rank = 1,
                            .axes = 1,
                            .shape = { 16 },
                            .x_strides = { 1 },
                            .function = CEK_REDUCE_SUM,
                            .x_type = CEK_F32 };
    cek_op_info info = { .size = sizeof info };
    life_open(&l);
    fake.inject("cuLaunchKernel", 1, UNKNOWN); /* the first launch of all of the first kernel */
    ck_assert_uint_eq(d.plugin.op_create(l.dev, &sum.op, &info, &op), CEK_INTERNAL);
    ck_assert_uint_eq(d.plugin.op_create(l.dev, &sum.op, &info, &op), CEK_OK);
    const cek_ref refs[] = { { l.mems[0], 0 }, { l.mems[1], 0 } };
    const cek_cmd cmd = {
        .kind = CEK_CMD_RUN, .op = op, .operands = refs, .operand_count = 2, .workspace = { l.mems[2], 0 }
    };
    ck_assert_uint_eq(d.plugin.cmdbuf_create(l.dev, &cmd, 1, sizeof cmd, &cmdbuf), CEK_OK);
    d.plugin.cmdbuf_destroy(cmdbuf);
    d.plugin.op_destroy(op);
    life_over(&l);
}
END_TEST

/* --- the host's memory, registered ------------------------------------------------------------ */

static char room[8192];

/* Read-only or mapped; not permitted, not supported; what nobody has heard of; and pages that are locked already. */
START_TEST(memory_that_the_driver_does_not_lock_is_unsupported)
{
    static const uint32_t errors[] = { 1, 800, 801, UNKNOWN };
    life l;
    life_open(&l);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        fake.inject("cuMemHostRegister", 1, errors[i]);
        ck_assert_uint_eq(d.plugin.host_register(l.dev, room, sizeof room), CEK_UNSUPPORTED);
        ck_assert_msg(strstr(d.text, "cuMemHostRegister") != NULL, "%u: %s", errors[i], d.text);
    }
    fake.inject("cuMemHostRegister", 1, 2);
    ck_assert_uint_eq(d.plugin.host_register(l.dev, room, sizeof room), CEK_OUT_OF_MEMORY);
    const cek_status st = d.plugin.host_register(l.dev, room, sizeof room);
    ck_assert_msg(!st, "status %u: %s", st, d.text);
    ck_assert_uint_eq(d.plugin.host_register(l.dev, room, sizeof room), CEK_INVALID);
    ck_assert_uint_eq(d.plugin.host_register(l.dev, room + 1, 10), CEK_UNSUPPORTED);
    d.plugin.host_unregister(l.dev, room);
    ck_assert_uint_eq(d.plugin.device_status(l.dev, NULL, 0), CEK_OK);
    life_over(&l);
}
END_TEST

/* Whichever of two is lost and gives it back first: the other unlocks it, and equal memory is locked again. */
START_TEST(memory_that_a_lost_device_shared_is_unlocked_by_the_other)
{
    for (int lost_first = 0; lost_first < 2; lost_first++) {
        life l;
        cek_dev *peer;
        life_open(&l);
        const cek_ref refs[] = { { l.mems[0], 0 }, { l.mems[1], 0 } };
        const unsigned locked = fake.calls("cuMemHostRegister"), unlocked = fake.calls("cuMemHostUnregister");
        ck_assert_uint_eq(d.plugin.device_open(d.instance, 1, NULL, &peer), CEK_OK);
        ck_assert_uint_eq(d.plugin.host_register(l.dev, room, sizeof room), CEK_OK);
        ck_assert_uint_eq(d.plugin.host_register(peer, room, sizeof room), CEK_OK);
        ck_assert_uint_eq(fake.calls("cuMemHostRegister") - locked, 1);
        fake.kernel(1, ILLEGAL_ADDRESS);
        ck_assert_uint_eq(d.plugin.op_run(l.queue, l.op, refs, 2, (cek_ref){ NULL, 0 }), CEK_OK);
        ck_assert_uint_eq(d.plugin.queue_sync(l.queue, UINT64_C(5000000000)), CEK_DEVICE_LOST);
        d.plugin.host_unregister(lost_first ? l.dev : peer, room);
        d.plugin.host_unregister(lost_first ? peer : l.dev, room);
        ck_assert_uint_eq(fake.calls("cuMemHostUnregister") - unlocked, 1);
        ck_assert_uint_eq(d.plugin.host_register(peer, room, sizeof room), CEK_OK);
        ck_assert_uint_eq(fake.calls("cuMemHostRegister") - locked, 2);
        d.plugin.device_close(peer); /* with what is registered */
        ck_assert_uint_eq(fake.calls("cuMemHostUnregister") - unlocked, 2);
        life_over(&l);
    }
}
END_TEST

static struct {
    atomic_bool inside, go_on;
    CUresult (*own)(void *address, size_t bytes, unsigned int flags);
    cek_dev *dev;
} stuck;

static CUresult register_when_told(void *address, size_t bytes, unsigned int flags)
{
    stuck.inside = true;
    while (address == (void *)room && !stuck.go_on)
        usleep(1000);
    return stuck.own(address, bytes, flags);
}

static void *register_room(void *arg)
{
    (void)arg;
    ck_assert_uint_eq(d.plugin.host_register(stuck.dev, room, sizeof room), CEK_OK);
    return NULL;
}

START_TEST(while_a_driver_locks_memory_other_memory_is_registered_and_given_back)
{
    static char other[100];
    life l;
    cek_dev *peer;
    pthread_t thread;
    life_open(&l);
    cuda_driver *driver = &((cuda_instance *)d.instance)->driver;
    ck_assert_uint_eq(d.plugin.device_open(d.instance, 1, NULL, &peer), CEK_OK);
    stuck.own = driver->cuMemHostRegister;
    stuck.dev = l.dev;
    driver->cuMemHostRegister = register_when_told;
    ck_assert_int_eq(pthread_create(&thread, NULL, register_room, NULL), 0);
    while (!stuck.inside)
        usleep(1000);
    ck_assert_uint_eq(d.plugin.host_register(peer, other, sizeof other), CEK_OK);
    d.plugin.host_unregister(peer, other);
    stuck.go_on = true;
    pthread_join(thread, NULL);
    d.plugin.host_unregister(l.dev, room);
    d.plugin.device_close(peer);
    life_over(&l);
}
END_TEST

START_TEST(devices_of_one_instance_copy_to_each_other)
{
    life l;
    life_open(&l);
    cek_dev *peer;
    cek_queue *queue;
    cek_mem *mem;
    float x[16], y[16] = { 0 };
    for (int i = 0; i < 16; i++)
        x[i] = (float)i;
    ck_assert_uint_eq(d.plugin.device_open(d.instance, 1, NULL, &peer), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_create(peer, NULL, &queue), CEK_OK);
    ck_assert_uint_eq(d.plugin.mem_alloc(peer, &(cek_mem_desc){ .size = sizeof(cek_mem_desc), .bytes = 64 }, &mem),
                      CEK_OK);
    ck_assert_uint_eq(d.plugin.upload(l.queue, (cek_ref){ l.mems[0], 256 }, x, sizeof x), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_sync(l.queue, CEK_FOREVER), CEK_OK);
    for (int again = 0; again < 2; again++)
        ck_assert_uint_eq(d.plugin.copy(queue, (cek_ref){ mem, 0 }, (cek_ref){ l.mems[0], 256 }, sizeof x), CEK_OK);
    ck_assert_uint_eq(d.plugin.download(queue, y, (cek_ref){ mem, 0 }, sizeof y), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_sync(queue, CEK_FOREVER), CEK_OK);
    ck_assert_mem_eq(x, y, sizeof x);
    ck_assert_uint_eq(fake.calls("cuCtxEnablePeerAccess"), 1);
    ck_assert_uint_eq(d.plugin.event_wait(queue, l.events[0]), CEK_UNSUPPORTED);
    d.plugin.mem_free(mem);
    d.plugin.queue_destroy(queue);
    d.plugin.device_close(peer);
    life_over(&l);
}
END_TEST

int main(void)
{
    if (!system("command -v c++ >/dev/null || exit 1")) {
        Suite *suite = suite_create("cuda failures");
        TCase *tcase = tcase_create("failures");
        SRunner *runner = srunner_create(suite);
        tcase_add_test(tcase, to_list_devices_loads_no_library);
        tcase_add_test(tcase, a_program_that_uses_everything_leaves_nothing_behind);
        tcase_add_test(tcase, every_call_of_the_driver_may_fail);
        tcase_add_test(tcase, a_kernel_that_ends_its_context_loses_the_device_for_good);
        tcase_add_test(tcase, a_kernel_that_never_ends_is_left_at_the_deadline);
        tcase_add_test(tcase, half_an_operation_fails_its_queue_and_whoever_waits_for_it);
        tcase_add_test(tcase, a_command_buffer_that_cannot_be_captured_leaves_no_capture_behind);
        tcase_add_test(tcase, a_module_that_the_driver_cannot_use_is_compiled);
        tcase_add_test(tcase, what_the_driver_refuses_to_capture_is_unsupported);
        tcase_add_test(tcase, a_kernel_is_warm_when_a_launch_of_it_has_ended);
        tcase_add_test(tcase, memory_that_the_driver_does_not_lock_is_unsupported);
        tcase_add_test(tcase, memory_that_a_lost_device_shared_is_unlocked_by_the_other);
        tcase_add_test(tcase, while_a_driver_locks_memory_other_memory_is_registered_and_given_back);
        tcase_add_test(tcase, devices_of_one_instance_copy_to_each_other);
        suite_add_tcase(suite, tcase);
        srunner_set_fork_status(runner, CK_NOFORK); /* what the first test counts, the second goes through */
        srunner_run_all(runner, CK_NORMAL);
        int failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        fake_remove();
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    puts("skipped: no C++ compiler, which stands for the device's");
    return 77;
}
