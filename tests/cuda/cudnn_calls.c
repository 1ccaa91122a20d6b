/* cudnn_calls.c - convolutions by cuDNN as a host calls them, over the fake ones: captured into command buffers, at
 * addresses that change, on several queues, deterministic where that was asked for; and nothing left behind. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/fake.h"
#include "tests/door/door.h"

enum { PIXELS = 2 * 9 * 9, IN = 5, CHANNELS = 7, TAPS = 9 };
enum { X_BYTES = PIXELS * IN * 4, W_BYTES = CHANNELS * TAPS * IN * 4, Y_BYTES = PIXELS * CHANNELS * 4 };

static char folder[64] = "/tmp/cek-cudnn-XXXXXX", cache[128];
static const char *options[] = { "cuda_path", folder, "cuda_cache", cache, "providers", "=cudnn", NULL };
static door d;
static float x[PIXELS * IN], w[CHANNELS * TAPS * IN], bias[CHANNELS];

static void link_make(const char *library, const char *name)
{
    char from[4096], to[128];
    snprintf(from, sizeof from, "%s/tests/cuda/.libs/%s", getenv("top_builddir"), library);
    snprintf(to, sizeof to, "%s/%s", folder, name);
    ck_assert_int_eq(symlink(from, to), 0);
}

static void folder_make(void)
{
    if (*cache)
        return;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(cache, sizeof cache, "%s/cache", folder);
    link_make("fake_cuda.so", "libcuda.so.1");
    link_make("fake_nvrtc.so", "libnvrtc.so.13");
    link_make("fake_builtins.so", "libnvrtc-builtins.so.13.0");
    link_make("fake_cudnn.so", "libcudnn.so.9");
    setenv("CEKERNELS_CUDA_PATH", folder, 1); /* where the fake libraries look for the driver */
}

/* Fills that are not integers: other orders of sums have other bits. */
static void fill(float *to, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(seed >> 8) / (float)(1 << 24) - 0.5f;
    }
}

static void open_device(void)
{
    folder_make();
    fill(x, PIXELS * IN, 1);
    fill(w, CHANNELS * TAPS * IN, 2);
    fill(bias, CHANNELS, 3);
    door_open(&d, "cuda", options);
}

static cek_conv_desc forward(uint32_t math, uint32_t flags)
{
    return (cek_conv_desc){ .op = { .size = sizeof(cek_conv_desc),
                                    .kind = CEK_OP_CONV_FORWARD,
                                    .math = math,
                                    .flags = flags,
                                    .operands = 15 },
                            .spatial = 2,
                            .groups = 1,
                            .batch = 2,
                            .in_channels = IN,
                            .out_channels = CHANNELS,
                            .in = { 9, 9 },
                            .kernel = { 3, 3 },
                            .stride = { 1, 1 },
                            .dilation = { 1, 1 },
                            .pad_lo = { 1, 1 },
                            .pad_hi = { 1, 1 },
                            .x_type = CEK_F32,
                            .w_type = CEK_F32,
                            .y_type = CEK_F32 };
}

/* What one output of the convolution is, written from plugin.h. */
static double expected(const float *image, int n, int row, int column, int channel)
{
    double sum = (double)bias[channel];
    for (int kh = 0; kh < 3; kh++)
        for (int kw = 0; kw < 3; kw++)
            for (int c = 0; c < IN; c++) {
                int h = row + kh - 1, v = column + kw - 1;
                if (h >= 0 && h < 9 && v >= 0 && v < 9)
                    sum += (double)image[((n * 9 + h) * 9 + v) * IN + c] *
                           (double)w[(channel * TAPS + kh * 3 + kw) * IN + c];
            }
    return sum;
}

static void result_check(const char *what, const float *image, const float *y)
{
    for (int i = 0; i < PIXELS * CHANNELS; i++) {
        double want = expected(image, i / CHANNELS / 81, i / CHANNELS / 9 % 9, i / CHANNELS % 9, i % CHANNELS);
        double off = (double)y[i] - want;
        ck_assert_msg(off < 1e-5 && off > -1e-5, "%s: output %d is %g, not %g", what, i, (double)y[i], want);
    }
}

/* The operands' memories, filled; operands[2] is the result. */
static void operands_make(cek_ref refs[4], const float *image)
{
    const void *from[] = { image, w, NULL, bias };
    const uint64_t bytes[] = { X_BYTES, W_BYTES, Y_BYTES, sizeof bias };
    for (int i = 0; i < 4; i++) {
        refs[i] = (cek_ref){ door_mem(&d, bytes[i]), 0 };
        if (from[i])
            ck_assert_uint_eq(d.plugin.upload(d.queue, refs[i], from[i], bytes[i]), CEK_OK);
    }
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OK);
}

static void operands_free(cek_ref refs[4])
{
    for (int i = 0; i < 4; i++)
        d.plugin.mem_free(refs[i].mem);
}

static void download(cek_queue *queue, cek_ref from, float *y)
{
    ck_assert_uint_eq(d.plugin.download(queue, y, from, Y_BYTES), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_sync(queue, CEK_FOREVER), CEK_OK);
}

static cek_op *op_make(uint32_t math, uint32_t flags, cek_op_info *info)
{
    cek_conv_desc desc = forward(math, flags);
    cek_op *op = NULL;
    *info = (cek_op_info){ .size = sizeof *info };
    cek_status st = d.plugin.op_create(d.dev, &desc.op, info, &op);
    ck_assert_msg(st == CEK_OK, "op_create: %u %s", st, d.text);
    ck_assert_msg(strstr(info->algorithm, "cuDNN") != NULL && info->workspace_bytes > 0, "%s", info->algorithm);
    return op;
}

START_TEST(captured_convolutions_are_those_that_run_at_once)
{
    static float y[PIXELS * CHANNELS], other[PIXELS * IN];
    cek_op_info info;
    cek_ref refs[4], more[4];
    cek_cmdbuf *cmdbuf;
    open_device();
    fill(other, PIXELS * IN, 9);
    cek_op *op = op_make(CEK_MATH_F32, 0, &info);
    operands_make(refs, x);
    operands_make(more, other);
    cek_ref workspace = { door_mem(&d, info.workspace_bytes), 0 };
    const cek_cmd cmds[] = {
        /* one operation at two places */
        { .kind = CEK_CMD_RUN, .op = op, .operands = refs, .operand_count = 4, .workspace = workspace },
        { .kind = CEK_CMD_RUN, .op = op, .operands = more, .operand_count = 4, .workspace = workspace },
    };
    cek_status st = d.plugin.cmdbuf_create(d.dev, cmds, 2, sizeof *cmds, &cmdbuf);
    ck_assert_msg(st == CEK_OK, "cmdbuf_create: %u %s", st, d.text);
    for (int round = 0; round < 3; round++) { /* between two, the operation runs elsewhere */
        ck_assert_uint_eq(d.plugin.fill(d.queue, refs[2], 0xff, 1, Y_BYTES), CEK_OK);
        ck_assert_uint_eq(d.plugin.fill(d.queue, more[2], 0xff, 1, Y_BYTES), CEK_OK);
        ck_assert_uint_eq(d.plugin.cmdbuf_run(d.queue, cmdbuf), CEK_OK);
        download(d.queue, refs[2], y);
        result_check("captured", x, y);
        download(d.queue, more[2], y);
        result_check("captured, at the other place", other, y);
        ck_assert_uint_eq(d.plugin.op_run(d.queue, op, more, 4, workspace), CEK_OK);
    }
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OK);
    d.plugin.cmdbuf_destroy(cmdbuf);
    d.plugin.op_destroy(op);
    d.plugin.mem_free(workspace.mem);
    operands_free(refs);
    operands_free(more);
    door_close(&d);
}
END_TEST

/* A queue, its operands and the thread that uses them. */
typedef struct user {
    cek_queue *queue;
    const cek_op *op;
    cek_ref refs[4], workspace;
    float image[PIXELS * IN], y[PIXELS * CHANNELS];
    cek_status status;
} user;

static void *user_run(void *arg)
{
    user *u = arg;
    for (int i = 0; i < 20 && !u->status; i++)
        u->status = d.plugin.op_run(u->queue, u->op, u->refs, 4, u->workspace);
    return NULL;
}

START_TEST(threads_with_queues_of_their_own_share_an_operation)
{
    enum { USERS = 3 };
    user *users = calloc(USERS, sizeof *users);
    pthread_t threads[USERS];
    cek_op_info info;
    open_device();
    cek_op *op = op_make(CEK_MATH_STRICT, CEK_OP_DETERMINISTIC, &info);
    for (int i = 0; i < USERS; i++) {
        users[i].op = op;
        fill(users[i].image, PIXELS * IN, 20 + (unsigned)i);
        ck_assert_uint_eq(d.plugin.queue_create(d.dev, NULL, &users[i].queue), CEK_OK);
        operands_make(users[i].refs, users[i].image);
        users[i].workspace.mem = door_mem(&d, info.workspace_bytes);
    }
    for (int i = 0; i < USERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, user_run, &users[i]), 0);
    for (int i = 0; i < USERS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < USERS; i++) {
        ck_assert_uint_eq(users[i].status, CEK_OK);
        download(users[i].queue, users[i].refs[2], users[i].y);
        result_check("shared", users[i].image, users[i].y);
        d.plugin.queue_destroy(users[i].queue);
        operands_free(users[i].refs);
        d.plugin.mem_free(users[i].workspace.mem);
    }
    d.plugin.op_destroy(op);
    free(users);
    door_close(&d);
}
END_TEST

/* How many of ten runs have other bits than the first. */
static int runs_that_differ(uint32_t flags, const char *engine)
{
    static float first[PIXELS * CHANNELS], y[PIXELS * CHANNELS];
    cek_op_info info;
    cek_ref refs[4];
    int differ = 0;
    cek_op *op = op_make(CEK_MATH_STRICT, flags, &info);
    ck_assert_msg(strstr(info.algorithm, engine) != NULL, "%s, not %s", info.algorithm, engine);
    ck_assert_uint_eq(info.flags & CEK_OP_INFO_INEXACT, 0);
    operands_make(refs, x);
    cek_ref workspace = { door_mem(&d, info.workspace_bytes), 0 };
    for (int run = 0; run < 10; run++) {
        ck_assert_uint_eq(d.plugin.op_run(d.queue, op, refs, 4, workspace), CEK_OK);
        download(d.queue, refs[2], run ? y : first);
        differ += run && memcmp(first, y, sizeof y);
    }
    d.plugin.op_destroy(op);
    d.plugin.mem_free(workspace.mem);
    operands_free(refs);
    return differ;
}

START_TEST(deterministic_convolutions_get_an_engine_of_fixed_order)
{
    open_device();
    ck_assert_int_gt(runs_that_differ(0, "engine 14"), 0);
    ck_assert_int_eq(runs_that_differ(CEK_OP_DETERMINISTIC, "engine 15"), 0);
    door_close(&d);
}
END_TEST

START_TEST(what_is_deterministic_depends_on_no_clock)
{
    cek_op_info fast, first;
    open_device();
    setenv("FAKE_CUDNN", "reversed", 1);
    cek_op *ops[] = { op_make(CEK_MATH_F32, 0, &fast), op_make(CEK_MATH_F32, CEK_OP_DETERMINISTIC, &first) };
    unsetenv("FAKE_CUDNN");
    ck_assert_msg(strstr(fast.algorithm, "engine 14") != NULL, "%s", fast.algorithm);
    ck_assert_msg(strstr(first.algorithm, "engine 13") != NULL, "%s", first.algorithm);
    cek_op *again = op_make(CEK_MATH_F32, 0, &first); /* measured once: a device keeps to its choice */
    ck_assert_str_eq(first.algorithm, fast.algorithm);
    ck_assert_uint_eq(first.numeric_id, fast.numeric_id);
    d.plugin.op_destroy(again);
    for (int i = 0; i < 2; i++)
        d.plugin.op_destroy(ops[i]);
    door_close(&d);
}
END_TEST

START_TEST(bias_and_relu_need_no_kernel_of_ours)
{
    const cek_epilogue relu = { .size = sizeof relu, .activation = CEK_ACT_RELU };
    cek_conv_desc desc = forward(CEK_MATH_F32, 0);
    cek_op_info info = { .size = sizeof info };
    fake_cuda_calls_fn *calls;
    cek_ref refs[4];
    cek_op *op;
    open_device();
    char path[128];
    snprintf(path, sizeof path, "%s/libcuda.so.1", folder);
    *(void **)&calls = dlsym(dlopen(path, RTLD_NOW | RTLD_NOLOAD), "fake_cuda_calls");
    desc.op.epilogue = &relu;
    ck_assert_uint_eq(d.plugin.op_create(d.dev, &desc.op, &info, &op), CEK_OK);
    operands_make(refs, x);
    cek_ref workspace = { door_mem(&d, info.workspace_bytes), 0 };
    unsigned before = calls("cuLaunchKernel");
    ck_assert_uint_eq(d.plugin.op_run(d.queue, op, refs, 4, workspace), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OK);
    ck_assert_uint_eq(calls("cuLaunchKernel"), before);
    d.plugin.op_destroy(op);
    d.plugin.mem_free(workspace.mem);
    operands_free(refs);
    door_close(&d);
}
END_TEST

START_TEST(ids_differ_by_engine_and_by_what_is_fused)
{
    cek_op_info some, same, other;
    open_device();
    cek_op *ops[] = { op_make(CEK_MATH_F32, 0, &some), op_make(CEK_MATH_F32, 0, &same),
                      op_make(CEK_MATH_STRICT, 0, &other) };
    ck_assert_uint_eq(some.flags & CEK_OP_INFO_INEXACT, CEK_OP_INFO_INEXACT);
    ck_assert_uint_eq(some.numeric_id, same.numeric_id);
    ck_assert_uint_ne(some.numeric_id, other.numeric_id);
    for (int i = 0; i < 3; i++)
        d.plugin.op_destroy(ops[i]);
    door_close(&d);
}
END_TEST

int main(void)
{
    if (system("command -v c++ >/dev/null || exit 1")) {
        puts("skipped: no C++ compiler, which stands for the device's");
        return 77;
    }
    Suite *suite = suite_create("cudnn calls");
    TCase *tcase = tcase_create("calls");
    SRunner *runner = srunner_create(suite);
    tcase_add_test(tcase, captured_convolutions_are_those_that_run_at_once);
    tcase_add_test(tcase, threads_with_queues_of_their_own_share_an_operation);
    tcase_add_test(tcase, deterministic_convolutions_get_an_engine_of_fixed_order);
    tcase_add_test(tcase, what_is_deterministic_depends_on_no_clock);
    tcase_add_test(tcase, bias_and_relu_need_no_kernel_of_ours);
    tcase_add_test(tcase, ids_differ_by_engine_and_by_what_is_fused);
    suite_add_tcase(suite, tcase);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command))
        puts(command);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
