/* SPDX-License-Identifier: MIT
 *
 * life.h - the cuda plugin over the fake driver in one process: the driver's controls, the host
 * application's own context, and a program that uses everything, from the first device to the last
 * memory.
 */
#ifndef CEK_TESTS_CUDA_LIFE_H
#define CEK_TESTS_CUDA_LIFE_H

#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "backends/cuda/driver.h"
#include "tests/cuda/fake.h"
#include "tests/door/door.h"

enum { ILLEGAL_ADDRESS = 700, UNKNOWN = 999 };

static struct {
    char folder[64], cache[128];
    fake_cuda_fail_fn *inject;
    fake_cuda_kernel_fn *kernel;
    fake_cuda_faults_fn *faults;
    fake_cuda_calls_fn *calls;
    fake_cuda_watch_fn *watch;
    fake_cuda_watched_fn *watched;
    fake_cuda_blind_fn *blind;
    fake_cuda_waits_fn *waits;
    fake_cuda_live_fn *live;
    fake_cuda_reset_fn *reset;
    fake_cuda_depth_fn *depth;
    fake_cuda_current_fn *current;
    cuda_driver driver;
    CUcontext context; /* the host application's own, of another device */
} fake;
static const char *options[] = { "cuda_path", fake.folder, "cuda_cache", fake.cache, NULL };
static door d;

static inline void link_make(const char *library, const char *name)
{
    char from[4096], to[128];
    snprintf(from, sizeof from, "%s/tests/cuda/.libs/%s", getenv("top_builddir"), library);
    snprintf(to, sizeof to, "%s/%s", fake.folder, name);
    ck_assert_int_eq(symlink(from, to), 0);
}

static inline void fake_open(void)
{
    if (fake.inject)
        return;
    strcpy(fake.folder, "/tmp/cek-cuda-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(fake.folder));
    snprintf(fake.cache, sizeof fake.cache, "%s/cache", fake.folder);
    link_make("fake_cuda.so", "libcuda.so.1");
    link_make("fake_nvrtc.so", "libnvrtc.so.13");
    link_make("fake_builtins.so", "libnvrtc-builtins.so.13.0");
    char path[128];
    snprintf(path, sizeof path, "%s/libcuda.so.1", fake.folder);
    void *so = dlopen(path, RTLD_NOW);
    ck_assert_msg(so != NULL, "%s", dlerror());
    fake.inject = (fake_cuda_fail_fn *)dlsym(so, "fake_cuda_fail");
    fake.kernel = (fake_cuda_kernel_fn *)dlsym(so, "fake_cuda_kernel");
    fake.faults = (fake_cuda_faults_fn *)dlsym(so, "fake_cuda_faults");
    fake.calls = (fake_cuda_calls_fn *)dlsym(so, "fake_cuda_calls");
    fake.watch = (fake_cuda_watch_fn *)dlsym(so, "fake_cuda_watch");
    fake.watched = (fake_cuda_watched_fn *)dlsym(so, "fake_cuda_watched");
    fake.blind = (fake_cuda_blind_fn *)dlsym(so, "fake_cuda_blind");
    fake.waits = (fake_cuda_waits_fn *)dlsym(so, "fake_cuda_waits");
    fake.live = (fake_cuda_live_fn *)dlsym(so, "fake_cuda_live");
    fake.reset = (fake_cuda_reset_fn *)dlsym(so, "fake_cuda_reset");
    fake.depth = (fake_cuda_depth_fn *)dlsym(so, "fake_cuda_depth");
    fake.current = (fake_cuda_current_fn *)dlsym(so, "fake_cuda_current");
    CUresult (*get)(const char *, void **, int, uint64_t, uint32_t *) =
        (CUresult(*)(const char *, void **, int, uint64_t, uint32_t *))dlsym(so, "cuGetProcAddress_v2");
#define GET(NAME, VERSION, PARAMETERS) ck_assert_uint_eq(get(#NAME, (void **)&fake.driver.NAME, VERSION, 0, NULL), 0);
    CEK__CUDA_FUNCTIONS(GET)
#undef GET
    ck_assert_uint_eq(fake.driver.cuInit(0), 0);
}

static inline void fake_remove(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", fake.folder);
    if (system(command))
        puts(command);
}

/* Engines that are made from now on find these plugins ("=cuda") and the fake driver, which has forgotten
 * what was injected. */
static inline void fake_for_engines(const char *plugins)
{
    fake_open();
    fake.reset();
    setenv("CEKERNELS_PLUGINS", plugins, 1);
    setenv("CEKERNELS_CUDA_PATH", fake.folder, 1);
    setenv("CEKERNELS_CUDA_CACHE", fake.cache, 1);
}

/* Runs a suite in this process, since the fake driver is opened once. The program's exit status; 77, having said why,
 * where it cannot run. */
static inline int fake_suite_run(Suite *suite)
{
    const char *sanitizers = getenv("SANITIZERS"), *lacks = NULL;
    if (sanitizers && strcmp(sanitizers, "no"))
        lacks = "the sanitizers do not know the fake driver's fibers";
    else if (system("command -v c++ >/dev/null || exit 1"))
        lacks = "no C++ compiler, which stands for the device's";
    SRunner *runner = srunner_create(suite);
    int failed = 0;
    if (lacks) {
        printf("skipped: %s\n", lacks);
    } else {
        srunner_set_fork_status(runner, CK_NOFORK);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        fake_remove();
    }
    srunner_free(runner);
    return lacks ? 77 : failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The host application's context of device 1 is current while the plugin drives device 0. */
static inline void context_push(void)
{
    fake_open();
    fake.reset();
    ck_assert_uint_eq(fake.driver.cuDevicePrimaryCtxRetain(&fake.context, 1), 0);
    ck_assert_uint_eq(fake.driver.cuCtxPushCurrent(fake.context), 0);
}

static inline void context_pop(void)
{
    CUcontext was;
    ck_assert_uint_eq(fake.driver.cuCtxPopCurrent(&was), 0);
    ck_assert_ptr_eq(was, fake.context);
    ck_assert_uint_eq(fake.driver.cuDevicePrimaryCtxRelease(1), 0);
}

static inline double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* --- a program that uses everything ----------------------------------------------------------- */

typedef struct life {
    cek_status status; /* the first that was not CEK_OK */
    cek_dev *dev;
    cek_queue *queue, *other;
    cek_mem *mems[4];
    cek_event *events[2];
    cek_op *op, *loss;
    cek_cmdbuf *cmdbuf;
    void *pinned;
    bool registered;
    float y[16], own[64];
} life;

#define STEP(call)               \
    do {                         \
        cek_status st_ = (call); \
        if (st_) {               \
            if (!l->status)      \
                l->status = st_; \
            return;              \
        }                        \
    } while (0)

enum { BYTES = 1024 };

static inline void life_make(life *l)
{
    const cek_plugin *p = &d.plugin;
    cek_device_info info = { .size = sizeof info };
    uint64_t free_bytes, total;
    STEP(p->create(&d.host, &d.instance));
    STEP(p->device_info(d.instance, 0, &info));
    STEP(p->device_open(d.instance, 0, NULL, &l->dev));
    STEP(p->device_memory(l->dev, &free_bytes, &total));
    STEP(p->queue_create(
        l->dev,
        &(cek_queue_desc){ .size = sizeof(cek_queue_desc), .flags = CEK_QUEUE_TIMING, .deadline_ns = 2000000000 },
        &l->queue));
    STEP(p->queue_create(l->dev, NULL, &l->other));
    for (int i = 0; i < 4; i++)
        STEP(p->mem_alloc(l->dev, &(cek_mem_desc){ .size = sizeof(cek_mem_desc), .bytes = BYTES }, &l->mems[i]));
    STEP(p->host_alloc(l->dev, BYTES, &l->pinned));
    STEP(p->host_register(l->dev, l->own, sizeof l->own));
    l->registered = true;
    for (int i = 0; i < 2; i++)
        STEP(p->event_create(l->dev, &(cek_event_desc){ .size = sizeof(cek_event_desc), .flags = CEK_EVENT_TIMING },
                             &l->events[i]));
    cek_softmax_desc softmax = { .op = { .size = sizeof softmax, .kind = CEK_OP_SOFTMAX, .operands = 3 },
                                 .rows = 4,
                                 .columns = 4,
                                 .type = CEK_F32 };
    STEP(p->op_create(l->dev, &softmax.op, NULL, &l->op));
    cek_cross_entropy_desc loss = {
        .op = { .size = sizeof loss, .kind = CEK_OP_CROSS_ENTROPY, .operands = 1 << 0 | 1 << 1 | 1 << 6 },
        .rows = 4,
        .classes = 4,
        .rows_per_sample = 1,
        .type = CEK_F32
    };
    cek_op_info made = { .size = sizeof made };
    STEP(p->op_create(l->dev, &loss.op, &made, &l->loss));
    const cek_ref refs[] = { { l->mems[0], 0 }, { l->mems[1], 0 } };
    const cek_cmd cmds[] = {
        { .kind = CEK_CMD_FILL, .dst = { l->mems[3], 0 }, .pattern = 7, .pattern_bytes = 1, .bytes = 64 },
        { .kind = CEK_CMD_RUN, .op = l->op, .operands = refs, .operand_count = 2 },
        { .kind = CEK_CMD_COPY, .dst = { l->mems[2], 0 }, .src = { l->mems[1], 0 }, .bytes = 64 },
    };
    STEP(p->cmdbuf_create(l->dev, cmds, 3, sizeof *cmds, &l->cmdbuf));
}

static inline void life_run(life *l)
{
    const cek_plugin *p = &d.plugin;
    static const float x[16] = { 1, 2, 3, 4 };
    const cek_ref refs[] = { { l->mems[0], 0 }, { l->mems[1], 0 } };
    uint64_t ns;
    memset(l->pinned, 0, BYTES);
    memcpy(l->pinned, x, sizeof x);
    STEP(p->event_record(l->queue, l->events[0]));
    STEP(p->upload(l->queue, refs[0], l->pinned, BYTES));
    STEP(p->update(l->queue, refs[0], x, sizeof x));
    STEP(p->fill(l->queue, (cek_ref){ l->mems[1], 0 }, 0, 4, BYTES));
    STEP(p->fill(l->queue, (cek_ref){ l->mems[1], 0 }, 0, 2, BYTES));
    STEP(p->op_run(l->queue, l->op, refs, 2, (cek_ref){ NULL, 0 }));
    STEP(p->copy(l->queue, (cek_ref){ l->mems[2], 0 }, refs[1], 64));
    STEP(p->cmdbuf_run(l->queue, l->cmdbuf));
    STEP(p->event_record(l->queue, l->events[1]));
    STEP(p->event_wait(l->other, l->events[1]));
    STEP(p->download(l->other, l->y, (cek_ref){ l->mems[2], 0 }, sizeof l->y));
    STEP(p->queue_sync(l->other, UINT64_C(5000000000)));
    STEP(p->event_sync(l->events[1], UINT64_C(5000000000)));
    STEP(p->event_query(l->events[1]));
    STEP(p->event_elapsed(l->events[0], l->events[1], &ns));
    STEP(p->queue_status(l->queue, NULL, 0));
}

static inline void life_end(life *l)
{
    const cek_plugin *p = &d.plugin;
    p->cmdbuf_destroy(l->cmdbuf);
    p->op_destroy(l->op);
    p->op_destroy(l->loss);
    p->event_destroy(l->events[0]);
    p->event_destroy(l->events[1]);
    if (l->pinned)
        p->host_free(l->dev, l->pinned);
    if (l->registered)
        p->host_unregister(l->dev, l->own);
    for (int i = 0; i < 4; i++)
        p->mem_free(l->mems[i]);
    p->queue_destroy(l->queue);
    p->queue_destroy(l->other);
    p->device_close(l->dev);
    p->destroy(d.instance);
    d.instance = NULL;
}

static inline void door_prepare(void)
{
    memset(&d, 0, sizeof d);
    const cek_plugin *table = door_table(&d.so, "cuda");
    memcpy(&d.plugin, table, sizeof d.plugin);
    d.options = options;
    d.host =
        (cek_host){ .size = sizeof d.host, .abi = CEK_ABI, .user = &d, .fail = door_failed, .option = door_option };
}

#endif
