/* host_app - a program that uses one backend without libcekernels: dlopen, the vtable, two operations.
 *
 *     host_app PLUGIN.so [DEVICE_INDEX]
 *
 * Needs <cekernels/plugin.h> and -ldl, nothing else. Multiplies two matrices and runs a convolution with a fused bias.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cekernels/plugin.h>

/* The text of a failed call arrives through the host's `fail`, before the call returns. */
static void on_fail(void *user, cek_status status, const char *text)
{
    (void)user;
    fprintf(stderr, "host_app: status %u: %s\n", status, text);
}

typedef struct app {
    cek_plugin p; /* what the plugin has, zeros beyond */
    cek_instance *instance;
    cek_dev *dev;
    cek_queue *queue;
} app;

static cek_status plugin_open(app *a, const char *path)
{
    const cek_host host = { .size = sizeof host, .abi = CEK_ABI, .fail = on_fail };
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cek_plugin_query_fn query;
    const cek_plugin *found;
    cek_status st;
    if (!so) {
        fprintf(stderr, "host_app: %s\n", dlerror());
        return CEK_UNAVAILABLE;
    }
    *(void **)&query = dlsym(so, CEK_PLUGIN_SYMBOL);
    found = query ? query(CEK_ABI) : NULL;
    if (!found || found->abi >> 16 != CEK_ABI_MAJOR) {
        fprintf(stderr, "host_app: %s is no plugin of ABI %u\n", path, CEK_ABI_MAJOR);
        dlclose(so);
        return CEK_UNSUPPORTED;
    }
    if (found->profile < CEK_PROFILE_INFERENCE) {
        fprintf(stderr, "host_app: %s has no operations: its profile is that of memory alone\n", path);
        dlclose(so);
        return CEK_UNSUPPORTED;
    }
    memcpy(&a->p, found, found->size < sizeof a->p ? found->size : sizeof a->p);
    st = a->p.create(&host, &a->instance);
    if (st != CEK_OK)
        a->instance = NULL;
    return st; /* from here on the object stays loaded */
}

/* Device memory with the given contents. */
static cek_mem *memory(app *a, const void *data, uint64_t bytes)
{
    cek_mem_desc want = { .size = sizeof want, .bytes = bytes };
    cek_mem *mem = NULL;
    if (a->p.mem_alloc(a->dev, &want, &mem) != CEK_OK)
        return NULL;
    if (data && a->p.upload(a->queue, (cek_ref){ mem, 0 }, data, bytes) != CEK_OK) {
        a->p.mem_free(mem);
        return NULL;
    }
    return mem;
}

/* Creates, runs and destroys one operation, and waits. */
static cek_status run(app *a, const cek_op_desc *desc, const cek_ref *operands, uint32_t count)
{
    cek_op_info info = { .size = sizeof info };
    cek_mem *workspace = NULL;
    cek_op *op = NULL;
    cek_status st = a->p.op_create(a->dev, desc, &info, &op);
    if (st != CEK_OK)
        return st;
    printf("  algorithm: %s\n", info.algorithm);
    if (info.workspace_bytes && !(workspace = memory(a, NULL, info.workspace_bytes)))
        st = CEK_OUT_OF_MEMORY;
    if (st == CEK_OK)
        st = a->p.op_run(a->queue, op, operands, count, (cek_ref){ workspace, 0 });
    if (st == CEK_OK)
        st = a->p.queue_sync(a->queue, 10000000000u);
    a->p.mem_free(workspace);
    a->p.op_destroy(op);
    return st;
}

static int expect(const char *what, const float *got, const float *want, int count)
{
    for (int i = 0; i < count; i++)
        if (got[i] != want[i]) {
            fprintf(stderr, "host_app: %s, element %d: %g, not %g\n", what, i, got[i], want[i]);
            return 1;
        }
    printf("%s: right\n", what);
    return 0;
}

static int multiply(app *a)
{
    const float x[6] = { 1, 2, 3, 4, 5, 6 }, y[6] = { 7, 8, 9, 10, 11, 12 }, want[4] = { 58, 64, 139, 154 };
    float got[4] = { 0 };
    cek_mem *mx = memory(a, x, sizeof x), *my = memory(a, y, sizeof y), *mz = memory(a, NULL, sizeof got);
    int failed = 1;
    cek_gemm_desc gemm = {
        .op = { .size = sizeof gemm,
                .kind = CEK_OP_GEMM,
                .operands = CEK_BIT(CEK_GEMM_A) | CEK_BIT(CEK_GEMM_B) | CEK_BIT(CEK_GEMM_C) },
        .m = 2,
        .n = 2,
        .k = 3,
        .batch = 1,
        .lda = 3,
        .ldb = 2,
        .ldc = 2,
        .a_type = CEK_F32,
        .b_type = CEK_F32,
        .c_type = CEK_F32,
    };
    cek_ref operands[] = { [CEK_GEMM_A] = { mx, 0 }, [CEK_GEMM_B] = { my, 0 }, [CEK_GEMM_C] = { mz, 0 } };
    if (mx && my && mz && run(a, &gemm.op, operands, 3) == CEK_OK &&
        a->p.download(a->queue, got, (cek_ref){ mz, 0 }, sizeof got) == CEK_OK &&
        a->p.queue_sync(a->queue, 10000000000u) == CEK_OK)
        failed = expect("2x3 times 3x2", got, want, 4);
    a->p.mem_free(mz);
    a->p.mem_free(my);
    a->p.mem_free(mx);
    return failed;
}

/* A 2x2 kernel of ones over a 3x3 image, plus a bias of 100. */
static int convolve(app *a)
{
    const float image[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, kernel[4] = { 1, 1, 1, 1 }, bias[1] = { 100 };
    const float want[4] = { 112, 116, 124, 128 };
    float got[4] = { 0 };
    cek_mem *x = memory(a, image, sizeof image), *w = memory(a, kernel, sizeof kernel),
            *b = memory(a, bias, sizeof bias);
    cek_mem *y = memory(a, NULL, sizeof got);
    int failed = 1;
    cek_conv_desc conv = {
        .op = { .size = sizeof conv,
                .kind = CEK_OP_CONV_FORWARD,
                .math = CEK_MATH_STRICT,
                .operands = CEK_BIT(CEK_CONV_FORWARD_X) | CEK_BIT(CEK_CONV_FORWARD_W) | CEK_BIT(CEK_CONV_FORWARD_Y) |
                            CEK_BIT(CEK_CONV_FORWARD_BIAS) },
        .spatial = 2,
        .groups = 1,
        .batch = 1,
        .in_channels = 1,
        .out_channels = 1,
        .in = { 3, 3 },
        .kernel = { 2, 2 },
        .stride = { 1, 1 },
        .dilation = { 1, 1 },
        .x_type = CEK_F32,
        .w_type = CEK_F32,
        .y_type = CEK_F32,
    };
    cek_ref operands[] = { [CEK_CONV_FORWARD_X] = { x, 0 },
                           [CEK_CONV_FORWARD_W] = { w, 0 },
                           [CEK_CONV_FORWARD_Y] = { y, 0 },
                           [CEK_CONV_FORWARD_BIAS] = { b, 0 } };
    if (x && w && b && y && run(a, &conv.op, operands, 4) == CEK_OK &&
        a->p.download(a->queue, got, (cek_ref){ y, 0 }, sizeof got) == CEK_OK &&
        a->p.queue_sync(a->queue, 10000000000u) == CEK_OK)
        failed = expect("convolution", got, want, 4);
    a->p.mem_free(y);
    a->p.mem_free(b);
    a->p.mem_free(w);
    a->p.mem_free(x);
    return failed;
}

static int index_read(const char *text, uint32_t *out)
{
    char *end;
    const long number = strtol(text, &end, 10);
    *out = (uint32_t)number;
    return end != text && !*end && number >= 0 && number <= INT32_MAX;
}

int main(int argc, char **argv)
{
    app a = { 0 };
    cek_device_info info = { .size = sizeof info };
    uint32_t index = 0;
    int failed = 1;
    if (argc < 2 || argc > 3 || (argc == 3 && !index_read(argv[2], &index))) {
        fprintf(stderr, "usage: host_app PLUGIN.so [DEVICE_INDEX]\n");
        return 2;
    }
    if (plugin_open(&a, argv[1]) != CEK_OK)
        return 1;
    if (index >= a.p.device_count(a.instance))
        fprintf(stderr, "host_app: %s has %u devices\n", a.p.name, a.p.device_count(a.instance));
    else if (a.p.device_info(a.instance, index, &info) == CEK_OK &&
             a.p.device_open(a.instance, index, NULL, &a.dev) == CEK_OK &&
             a.p.queue_create(a.dev, NULL, &a.queue) == CEK_OK) {
        printf("%s:%u %s\n", a.p.name, index, info.name);
        failed = multiply(&a);
        failed |= convolve(&a);
    }
    a.p.queue_destroy(a.queue);
    a.p.device_close(a.dev);
    a.p.destroy(a.instance);
    return failed;
}
