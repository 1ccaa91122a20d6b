/* SPDX-License-Identifier: MIT
 *
 * fake_run.c - modules as shared objects, and groups of work-items as loops: or as fibers, once one
 * of them comes to a barrier.
 */
#undef _FORTIFY_SOURCE /* its longjmp takes another stack for a broken one */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "backends/cuda/driver.h"
#include "tests/cuda/fake.h"

#define ITEMS_MAX 1024
#define STACK_BYTES (64 << 10)
#define KERNELS_MAX 512

typedef struct index3 {
    unsigned x, y, z;
} index3;

struct fake_module {
    void *object;
    int file;
    index3 *item, *group, *group_size, *grid;
    void (**barrier)(void);
    unsigned count;
    fake_kernel kernels[KERNELS_MAX];
};

/* --- modules ---------------------------------------------------------------------------------- */

typedef struct table_row { /* fake::kernel in fake_compile.c */
    const char *name;
    unsigned number;
    const uint64_t *sizes;
    const unsigned char *pointers;
    void (*item)(void **parameters);
} table_row;

fake_module *fake_module_load(const void *object, uint64_t bytes)
{
    char path[64];
    fake_module *module = calloc(1, sizeof *module);
    module->file = memfd_create("fake-cuda-module", MFD_CLOEXEC);
    if (module->file < 0 || write(module->file, object, bytes) != (ssize_t)bytes)
        fake_die("a module cannot be written");
    snprintf(path, sizeof path, "/proc/self/fd/%d", module->file);
    module->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module->object) {
        close(module->file);
        free(module);
        return NULL;
    }
    module->item = dlsym(module->object, "threadIdx");
    module->group = dlsym(module->object, "blockIdx");
    module->group_size = dlsym(module->object, "blockDim");
    module->grid = dlsym(module->object, "gridDim");
    module->barrier = dlsym(module->object, "fake_barrier");
    const table_row *rows = dlsym(module->object, "fake_kernels");
    for (unsigned i = 0; rows[i].name; i++) {
        if (i == KERNELS_MAX)
            fake_die("too many kernels in a module");
        module->kernels[module->count++] = (fake_kernel){ module,           rows[i].name, rows[i].number, rows[i].sizes,
                                                          rows[i].pointers, rows[i].item, false };
    }
    return module;
}

void fake_module_free(fake_module *module)
{
    dlclose(module->object);
    close(module->file);
    free(module);
}

fake_kernel *fake_module_kernel(fake_module *module, const char *name)
{
    for (unsigned i = 0; i < module->count; i++)
        if (!strcmp(module->kernels[i].name, name))
            return &module->kernels[i];
    return NULL;
}

/* --- groups ----------------------------------------------------------------------------------- */

enum { WAITING, AT_BARRIER, ENDED };

static struct {
    pthread_mutex_t lock; /* one kernel at a time: local memory is static, and so are the indices */
    const fake_kernel *kernel;
    void **parameters;
    unsigned items, now;
    bool fibers; /* this item runs in a fiber and may wait */
    int state[ITEMS_MAX];
    index3 index[ITEMS_MAX];
    jmp_buf home, fault, place[ITEMS_MAX];
    pthread_t thread; /* that runs a kernel whose faults are a device's */
    bool faults;
    ucontext_t start[ITEMS_MAX], back;
    char *stacks;
} run = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void barrier(void)
{
    if (!run.fibers)
        fake_die("%s: some work-items of a group come to a barrier, others do not", run.kernel->name);
    unsigned own = run.now;
    run.state[own] = AT_BARRIER;
    if (!_setjmp(run.place[own]))
        _longjmp(run.home, 1);
    *run.kernel->module->item = run.index[own];
}

static void fiber(void)
{
    run.kernel->item(run.parameters);
    run.state[run.now] = ENDED;
    _longjmp(run.home, 1);
}

/* Lets one item run to its end or to a barrier. */
static void fiber_step(unsigned item, bool first)
{
    run.now = item;
    *run.kernel->module->item = run.index[item];
    if (_setjmp(run.home))
        return;
    if (!first)
        _longjmp(run.place[item], 1);
    getcontext(&run.start[item]);
    run.start[item].uc_stack.ss_sp = run.stacks + (size_t)item * STACK_BYTES;
    run.start[item].uc_stack.ss_size = STACK_BYTES;
    run.start[item].uc_link = NULL;
    makecontext(&run.start[item], fiber, 0);
    setcontext(&run.start[item]);
}

/* The first item tells: a group without barriers is a loop. */
static void group_run(void)
{
    run.fibers = true;
    fiber_step(0, true);
    if (run.state[0] == ENDED) {
        run.fibers = false;
        for (unsigned i = 1; i < run.items; i++) {
            *run.kernel->module->item = run.index[i];
            run.kernel->item(run.parameters);
        }
        return;
    }
    for (unsigned i = 1; i < run.items; i++)
        fiber_step(i, true);
    for (;;) {
        unsigned ended = 0;
        for (unsigned i = 0; i < run.items; i++)
            ended += run.state[i] == ENDED;
        if (ended == run.items)
            return;
        if (ended)
            fake_die("%s: %u of %u work-items of a group wait at a barrier for ever", run.kernel->name,
                     run.items - ended, run.items);
        for (unsigned i = 0; i < run.items; i++)
            fiber_step(i, false);
    }
}

/* --- kernels ---------------------------------------------------------------------------------- */

static void grid_run(const fake_module *module, const unsigned grid[3])
{
    for (unsigned z = 0; z < grid[2]; z++)
        for (unsigned y = 0; y < grid[1]; y++)
            for (unsigned x = 0; x < grid[0]; x++) {
                *module->group = (index3){ x, y, z };
                group_run();
            }
}

static const int fault_signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP };
enum { FAULT_SIGNALS = sizeof fault_signals / sizeof *fault_signals };

/* What is not a kernel's does again what it did, and ends the program. */
static void faulted(int number)
{
    if (run.faults && pthread_equal(run.thread, pthread_self()))
        _longjmp(run.fault, number);
    signal(number, SIG_DFL);
}

static uint32_t faults_run(const fake_module *module, const unsigned grid[3])
{
    struct sigaction own = { .sa_handler = faulted, .sa_flags = SA_NODEFER }, before[FAULT_SIGNALS];
    for (int i = 0; i < FAULT_SIGNALS; i++)
        sigaction(fault_signals[i], &own, &before[i]);
    run.thread = pthread_self();
    run.faults = true;
    int number = _setjmp(run.fault);
    if (!number)
        grid_run(module, grid);
    run.faults = false;
    for (int i = 0; i < FAULT_SIGNALS; i++)
        sigaction(fault_signals[i], &before[i], NULL);
    return !number                                 ? CUDA_SUCCESS
           : number == SIGSEGV || number == SIGBUS ? CUDA_ERROR_ILLEGAL_ADDRESS
                                                   : CUDA_ERROR_MISALIGNED_ADDRESS; /* fake_compile.c traps */
}

uint32_t fake_kernel_run(fake_kernel *kernel, const unsigned grid[3], const unsigned block[3], void **parameters,
                         bool faults)
{
    const fake_module *module = kernel->module;
    pthread_mutex_lock(&run.lock);
    if (!run.stacks)
        run.stacks = mmap(NULL, (size_t)ITEMS_MAX * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                          -1, 0);
    run.kernel = kernel;
    run.parameters = parameters;
    run.items = 0;
    for (unsigned z = 0; z < block[2]; z++)
        for (unsigned y = 0; y < block[1]; y++)
            for (unsigned x = 0; x < block[0]; x++)
                run.index[run.items++] = (index3){ x, y, z };
    *module->group_size = (index3){ block[0], block[1], block[2] };
    *module->grid = (index3){ grid[0], grid[1], grid[2] };
    *module->barrier = barrier;
    uint32_t error = CUDA_SUCCESS;
    if (faults)
        error = faults_run(module, grid);
    else
        grid_run(module, grid);
    kernel->launched = true;
    pthread_mutex_unlock(&run.lock);
    return error;
}
