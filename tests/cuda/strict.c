/* strict.c - the fake driver and the fake compiler punish what real ones punish: builtins that are not found, code that
 * would be loaded inside a capture, operands that are not aligned as their type wants, accesses beyond memory; and a
 * watchdog, which they only tell of. */
#include <signal.h>
#include <sys/wait.h>

#include "tests/cuda/life.h"

typedef struct program program;
static uint32_t (*create)(program **, const char *, const char *, int, const char *const *, const char *const *);
static uint32_t (*compile)(program *, int, const char *const *);
static uint32_t (*log_bytes)(program *, size_t *);
static uint32_t (*log_get)(program *, char *);
static uint32_t (*image_bytes)(program *, size_t *);
static uint32_t (*image_get)(program *, char *);
static uint32_t (*destroy)(program **);

static const char source[] = "struct __attribute__((aligned(16))) four { float x[4]; };\n"
                             "extern \"C\" __global__ void wide(four *y) { y->x[0] = 1; }\n"
                             "extern \"C\" __global__ void narrow(float *y) { y[0] = 1; }\n"
                             "extern \"C\" __global__ void beyond(float *y) { y[64] = 1; }\n";

static void *nvrtc_find(const char *name)
{
    static void *library;
    char path[128];
    snprintf(path, sizeof path, "%s/libnvrtc.so.13", fake.folder);
    library = library ? library : dlopen(path, RTLD_NOW);
    void *found = library ? dlsym(library, name) : NULL;
    ck_assert_msg(found != NULL, "%s", name);
    return found;
}

static void nvrtc_open(void)
{
    *(void **)&create = nvrtc_find("nvrtcCreateProgram");
    *(void **)&compile = nvrtc_find("nvrtcCompileProgram");
    *(void **)&log_bytes = nvrtc_find("nvrtcGetProgramLogSize");
    *(void **)&log_get = nvrtc_find("nvrtcGetProgramLog");
    *(void **)&image_bytes = nvrtc_find("nvrtcGetCUBINSize");
    *(void **)&image_get = nvrtc_find("nvrtcGetCUBIN");
    *(void **)&destroy = nvrtc_find("nvrtcDestroyProgram");
}

static program *compiled(uint32_t want)
{
    static const char *const options_of[] = { "--gpu-architecture=sm_90", "--fmad=true", "--std=c++14" };
    program *made;
    ck_assert_uint_eq(create(&made, source, "strict", 0, NULL, NULL), 0);
    uint32_t error = compile(made, 3, options_of);
    ck_assert_uint_eq(error, want);
    return made;
}

/* The first of this program: what is loaded stays loaded. */
START_TEST(nothing_is_compiled_before_the_builtins_are_found)
{
    char path[128], log[8192];
    size_t bytes;
    fake_open();
    nvrtc_open();
    program *without = compiled(7);
    ck_assert_uint_eq(log_bytes(without, &bytes), 0);
    ck_assert_uint_le(bytes, sizeof log);
    ck_assert_uint_eq(log_get(without, log), 0);
    ck_assert_msg(strstr(log, "failed to open libnvrtc-builtins.so.13.0") != NULL, "%s", log);
    destroy(&without);
    snprintf(path, sizeof path, "%s/libnvrtc-builtins.so.13.0", fake.folder);
    ck_assert_ptr_nonnull(dlopen(path, RTLD_NOW));
    program *with = compiled(0);
    destroy(&with);
}
END_TEST

/* How a process ends in which a kernel gets an address so far behind the start of a memory: launched, or captured
 * before or after a launch of it has ended. */
enum { LAUNCH = 1, CAPTURE = 2 };
static int end_of(const char *name, uint64_t shift, int what)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child)
        return waitpid(child, &status, 0) == child ? status : -1;
    const cuda_driver *api = &fake.driver;
    program *made = compiled(0);
    size_t bytes;
    CUmodule module;
    CUfunction function;
    CUstream stream;
    CUdeviceptr memory;
    CUgraph graph;
    CUcontext context;
    image_bytes(made, &bytes);
    char *image = malloc(bytes);
    image_get(made, image);
    if (api->cuDevicePrimaryCtxRetain(&context, 0) || api->cuCtxPushCurrent(context) ||
        api->cuModuleLoadData(&module, image) || api->cuModuleGetFunction(&function, module, name) ||
        api->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) || api->cuMemAlloc(&memory, 256))
        _exit(1);
    memory += shift;
    void *parameters[] = { &memory };
    for (int turn = LAUNCH; turn <= CAPTURE; turn++) {
        if (!(what & turn))
            continue;
        if (turn == CAPTURE && api->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
            _exit(2);
        if (api->cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL))
            _exit(3);
        if (turn == CAPTURE && api->cuStreamEndCapture(stream, &graph))
            _exit(4);
        while (turn == LAUNCH && api->cuStreamQuery(stream))
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    _exit(0);
}

START_TEST(a_kernel_that_reads_past_the_alignment_of_its_type_ends_the_program)
{
    ck_assert_int_eq(end_of("wide", 0, LAUNCH), 0);
    ck_assert_int_eq(end_of("wide", 16, LAUNCH), 0);
    int status = end_of("wide", 4, LAUNCH);
    ck_assert_msg(WIFSIGNALED(status), "status %#x", status);
    ck_assert_int_eq(end_of("narrow", 4, LAUNCH), 0);
    status = end_of("narrow", 2, LAUNCH);
    ck_assert_msg(WIFSIGNALED(status), "status %#x", status);
}
END_TEST

START_TEST(code_is_loaded_before_a_capture)
{
    int status = end_of("narrow", 0, CAPTURE);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %#x", status);
    ck_assert_int_eq(end_of("narrow", 0, LAUNCH | CAPTURE), 0);
}
END_TEST

/* Of a card that shows a picture a launch is ended after some seconds: there alone it is made in parts. */
START_TEST(a_long_product_is_launched_in_parts_where_the_driver_has_a_watchdog)
{
    enum { M = 300, N = 200, K = 100, BATCH = 2 };
    static float a[M * K * BATCH], b[K * N * BATCH], c[2][M * N * BATCH];
    cek_gemm_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_GEMM },
                           .m = M,
                           .n = N,
                           .k = K,
                           .batch = BATCH,
                           .lda = K,
                           .ldb = N,
                           .ldc = N,
                           .stride_a = M * K,
                           .stride_b = K * N,
                           .stride_c = M * N,
                           .a_type = CEK_F32,
                           .b_type = CEK_F32,
                           .c_type = CEK_F32 };
    unsigned launches[2];
    fake_open();
    for (int i = 0; i < M * K * BATCH; i++)
        a[i] = (float)(i % 97) / 97;
    for (int i = 0; i < K * N * BATCH; i++)
        b[i] = (float)(i % 89) / 89;
    setenv("FAKE_CUDA_CLOCK", "1000", 1); /* kHz: seven units have 3.5 million multiply-adds in half a second */
    for (int watched = 0; watched < 2; watched++) {
        array arrays[] = { IN(a, sizeof a), IN(b, sizeof b), OUT(c[watched], sizeof c[watched]) };
        cek_op_info info;
        if (watched)
            setenv("FAKE_CUDA_WATCHDOG", "yes", 1);
        door_open(&d, "cuda", options);
        cek_op *op = door_op(&d, &desc.op, arrays, 3, &info);
        launches[watched] = fake.calls("cuLaunchKernel");
        door_op_run(&d, op, &info, arrays, 3);
        launches[watched] = fake.calls("cuLaunchKernel") - launches[watched];
        d.plugin.op_destroy(op);
        door_close(&d);
    }
    unsetenv("FAKE_CUDA_WATCHDOG");
    unsetenv("FAKE_CUDA_CLOCK");
    ck_assert_uint_eq(launches[0], 1);
    ck_assert_uint_ge(launches[1], (unsigned)((double)M * N * K * BATCH / 3.5e6) + 1);
    ck_assert(!memcmp(c[0], c[1], sizeof c[0]));
}
END_TEST

/* What a library of the same process does with the context that a device's users share: a kernel, in a stream of its
 * own, with memory of its own so far behind its start. */
static void guest_faults(const char *name, uint64_t shift, CUresult want)
{
    const cuda_driver *api = &fake.driver;
    program *made = compiled(0);
    size_t bytes;
    CUcontext context, was;
    CUmodule module;
    CUfunction function;
    CUstream stream;
    CUdeviceptr memory;
    CUresult error;
    ck_assert_uint_eq(image_bytes(made, &bytes), 0);
    char *image = malloc(bytes);
    ck_assert_uint_eq(image_get(made, image), 0);
    ck_assert_uint_eq(api->cuDevicePrimaryCtxRetain(&context, 0), 0);
    ck_assert_uint_eq(api->cuCtxPushCurrent(context), 0);
    ck_assert_uint_eq(api->cuModuleLoadData(&module, image), 0);
    ck_assert_uint_eq(api->cuModuleGetFunction(&function, module, name), 0);
    ck_assert_uint_eq(api->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
    ck_assert_uint_eq(api->cuMemAlloc(&memory, 256), 0);
    memory += shift;
    void *parameters[] = { &memory };
    ck_assert_uint_eq(api->cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL), 0);
    while ((error = api->cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    ck_assert_uint_eq(error, want);
    ck_assert_uint_eq(api->cuCtxPopCurrent(&was), 0);
    ck_assert_uint_eq(api->cuDevicePrimaryCtxRelease(0), 0);
    free(image);
    destroy(&made);
}

static void shared_context_faults(const char *name, uint64_t shift, CUresult error, const char *word)
{
    life l = { 0 };
    char text[256];
    cek_dev *other;
    cek_queue *queue;
    context_push();
    door_prepare();
    life_make(&l);
    life_run(&l);
    ck_assert_msg(!l.status, "status %u: %s", l.status, d.text);
    fake.faults(true);
    guest_faults(name, shift, error);
    ck_assert_uint_eq(d.plugin.upload(l.queue, (cek_ref){ l.mems[0], 0 }, l.y, 4), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.device_status(l.dev, text, sizeof text), CEK_DEVICE_LOST);
    ck_assert_msg(strstr(text, word) != NULL, "%s", text);
    ck_assert_uint_eq(d.plugin.queue_sync(l.other, CEK_FOREVER), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.event_query(l.events[1]), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.device_open(d.instance, 1, NULL, &other), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_create(other, NULL, &queue), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_sync(queue, CEK_FOREVER), CEK_OK);
    ck_assert_uint_eq(d.plugin.device_status(other, NULL, 0), CEK_OK);
    d.plugin.queue_destroy(queue);
    d.plugin.device_close(other);
    life_end(&l);
    ck_assert_ptr_eq(fake.current(), fake.context);
    fake.reset();
    ck_assert_uint_eq(fake.driver.cuDevicePrimaryCtxRetain(&fake.context, 1), 0);
    context_pop();
}

START_TEST(a_fault_of_who_shares_the_context_loses_that_device_and_no_other)
{
    shared_context_faults("beyond", 0, CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS");
    shared_context_faults("wide", 4, CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda strict");
    TCase *tcase = tcase_create("strict");
    tcase_add_test(tcase, nothing_is_compiled_before_the_builtins_are_found);
    tcase_add_test(tcase, a_kernel_that_reads_past_the_alignment_of_its_type_ends_the_program);
    tcase_add_test(tcase, a_long_product_is_launched_in_parts_where_the_driver_has_a_watchdog);
    tcase_add_test(tcase, code_is_loaded_before_a_capture);
    tcase_add_test(tcase, a_fault_of_who_shares_the_context_loses_that_device_and_no_other);
    suite_add_tcase(suite, tcase);
    return fake_suite_run(suite);
}
