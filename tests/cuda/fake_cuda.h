/* SPDX-License-Identifier: MIT
 *
 * fake_cuda.h - the fake driver inside: its objects, the machine that they share, and what every call begins with.
 */
#ifndef CEK_TESTS_CUDA_FAKE_CUDA_H
#define CEK_TESTS_CUDA_FAKE_CUDA_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/driver.h"
#include "tests/cuda/fake.h"

#define DEVICES_MAX 4
#define STACK_MAX 16
#define STREAMS_MAX 256
#define PARAMETERS_MAX 16
#define ERROR_INVALID_VALUE 1
#define ERROR_NOT_INITIALIZED 3
#define ERROR_INVALID_CONTEXT 201
#define ERROR_NOT_FOUND 500
#define ERROR_CAPTURE_UNSUPPORTED 900
#define ERROR_CAPTURE_INVALIDATED 901

struct CUctx_st {
    unsigned users, index, live; /* live: objects made in it */
    uint64_t used;
    uint32_t error; /* once set, every call answers it */
    bool peers[DEVICES_MAX];
};

typedef struct block { /* memory of a device, or page-locked */
    struct block *next;
    CUcontext context;
    unsigned char *base;
    size_t bytes, mapped; /* mapped: 0, it is the program's and registered */
    bool host;
} block;

/* One recording of an event. */
typedef struct record {
    unsigned users;
    bool done;
    double time_ms;
} record;

struct CUevent_st {
    CUcontext context;
    bool timing;
    record *latest;
};

struct CUfunc_st {
    CUmodule module;
    fake_kernel *kernel;
    struct CUfunc_st *next;
};

struct CUmod_st {
    CUcontext context;
    fake_module *module;
    struct CUfunc_st *functions;
};

typedef struct work {
    struct work *next;
    enum { COPY, FILL, KERNEL, CALL, RECORD, WAIT, GRAPH } kind;
    unsigned char *to;
    const unsigned char *from;
    unsigned char *copy; /* what a pageable source held */
    size_t bytes;
    unsigned pattern, pattern_bytes;
    fake_kernel *kernel;
    unsigned grid[3], block[3];
    unsigned char *parameters; /* each 16 bytes aligned, behind one another; of CALL: the data */
    void (*call)(void *data);
    record *record;
    CUgraphExec graph;
} work;

struct CUgraph_st {
    CUcontext context;
    work *first, **end;
};

struct CUgraphExec_st {
    CUcontext context;
    unsigned users; /* launches that have not finished, and the handle */
    work *first;
};

struct CUstream_st {
    CUcontext context;
    pthread_t thread;
    work *first, **end;
    bool busy, over;
    CUgraph capture; /* or NULL */
    bool capture_broken;
};

/* --- fake_cuda.c: the machine, its devices, and calls -------------------------------------------- */

/* One lock for all: this is about rules, not about speed. Kernels and copies run without it. */
extern pthread_mutex_t lock;
extern pthread_cond_t changed;
extern unsigned live;

typedef struct fake_thread {
    CUcontext stack[STACK_MAX];
    unsigned depth;
    CUstream capturing;
} fake_thread;
extern __thread fake_thread thread;

/* The calls, counted and made to fail on demand; fake_cuX() is what the plugin finds as cuX. */
enum {
#define NUMBER(NAME, VERSION, PARAMETERS) CALL_##NAME,
    CEK__CUDA_FUNCTIONS(NUMBER)
#undef NUMBER
        CALLS
};
#define DECLARE(NAME, VERSION, PARAMETERS) CUresult fake_##NAME PARAMETERS;
CEK__CUDA_FUNCTIONS(DECLARE)
#undef DECLARE

/* Counts a call; whether it is to fail. Names the context that it runs in. */
uint32_t enter(unsigned call, CUcontext *context);
#define ENTER(NAME, CONTEXT)                           \
    do {                                               \
        uint32_t error_ = enter(CALL_##NAME, CONTEXT); \
        if (error_)                                    \
            return error_;                             \
    } while (0)

/* What may not be called while this thread captures. */
uint32_t no_capture(void);
#define NO_CAPTURE()             \
    do {                         \
        if (no_capture())        \
            return no_capture(); \
    } while (0)

/* An object belongs to the context it is used in. */
void own(const char *what, CUcontext of, CUcontext current);
/* One object more, or one less, is alive in a context. */
void made(CUcontext context, int by);
unsigned number(const char *variable, unsigned otherwise);
uint64_t memory_total(void);
double now_ms(void);

/* --- fake_memory.c ------------------------------------------------------------------------------- */

/* Under lock: the memory that holds these bytes, or NULL. */
block *block_of(const void *address, size_t bytes);
/* memory_forget - what is registered is so no more. */
void memory_forget(void);
unsigned char *device_memory(const char *call, CUdeviceptr address, size_t bytes, CUcontext context);

/* --- fake_stream.c ------------------------------------------------------------------------------- */

extern CUstream streams[STREAMS_MAX];
/* The kernel that is to fail, counted down, and how; hanging kernels wait for another generation. */
extern unsigned kernel_fault, hang_generation;
extern _Atomic bool kernel_faults; /* what a device punishes ends a context, and not the program */
extern uint32_t kernel_error;

void work_free(work *of);
/* Under lock. A capturing stream's work goes to its graph. */
void append(CUstream stream, work of);
void enqueue(CUstream stream, CUcontext context, work of);
/* Until all streams of a context have nothing left to do. */
void idle_wait(CUcontext context);
/* What fake_cuda_watch, _blind and _waits tell and are told; under the lock. */
typedef struct fake_watch {
    size_t bytes;
    unsigned uploads, waits;
    bool blind;
} fake_watch;
extern fake_watch watch;

#endif
