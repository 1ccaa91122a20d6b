/* SPDX-License-Identifier: MIT
 *
 * fake.h - a CUDA driver and an NVRTC for machines without a GPU: device memory is host memory,
 * kernels are compiled by the host's C++ compiler and run work-item by work-item. For tests alone.
 *
 * What a real driver would punish at random, these punish at once: they say what was wrong and abort().
 */
#ifndef CEK_TESTS_CUDA_FAKE_H
#define CEK_TESTS_CUDA_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_API __attribute__((visibility("default")))

/* What the fake NVRTC makes and the fake driver loads: this head, then a shared object of the host's. */
typedef struct fake_image {
    char magic[8]; /* "FAKECUBN" or "FAKEPTX" */
    int arch;      /* 90 is sm_90 */
    int fmad;
    uint64_t bytes;
} fake_image;

/* fake_die - a rule of the driver API was broken. */
void fake_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* --- fake_compile.c --------------------------------------------------------------------------- */

/* fake_compile - the shared object of a CUDA source in the dialect, malloc'ed; NULL with the compiler's
 * words in `log`. */
void *fake_compile(const char *text, const char *include, uint64_t *bytes, char *log, size_t cap);

/* --- fake_run.c ------------------------------------------------------------------------------- */

typedef struct fake_module fake_module;
typedef struct fake_kernel {
    const fake_module *module;
    const char *name;
    unsigned parameter_count;
    const uint64_t *sizes;         /* of the parameters */
    const unsigned char *pointers; /* which of them are addresses */
    void (*item)(void **parameters);
    _Atomic bool launched; /* the driver loads code at the first launch; that this has ended */
} fake_kernel;

fake_module *fake_module_load(const void *object, uint64_t bytes);
void fake_module_free(fake_module *module);
fake_kernel *fake_module_kernel(fake_module *module, const char *name);
/* fake_kernel_run - all groups, one after the other; one kernel at a time in the whole process. Returns 0, or with what
 * error a device ends the context of who does what a work-item did: where `faults`, else the program ends
 * as it does. */
uint32_t fake_kernel_run(fake_kernel *kernel, const unsigned grid[3], const unsigned block[3], void **parameters,
                         bool faults);

/* --- controls, for programs that have the fake driver in their own process (by dlsym) --------- */

/* fake_cuda_fail - the `nth` call (1 is the next) of a function of the driver's answers `error`; NULL: none does. */
typedef void fake_cuda_fail_fn(const char *function, unsigned nth, uint32_t error);
/* fake_cuda_kernel - the `nth` kernel to run from now on (0: none) ends its context with `error`,
 * or hangs where that is 0. */
typedef void fake_cuda_kernel_fn(unsigned nth, uint32_t error);
/* fake_cuda_faults - whether a kernel that touches what is no memory, or is not aligned as its type wants, ends its
 * context from now on, as on a device, and not the program. */
typedef void fake_cuda_faults_fn(bool faults);
/* fake_cuda_calls - how often a function was called. */
typedef unsigned fake_cuda_calls_fn(const char *function);
/* fake_cuda_watch - from now on uploads of so many bytes are counted; fake_cuda_watched says how many there were. */
typedef void fake_cuda_watch_fn(size_t bytes);
typedef unsigned fake_cuda_watched_fn(void);
/* fake_cuda_blind - whether who asks for an event or a stream hears that it is not ready, whatever it is. */
typedef void fake_cuda_blind_fn(bool blind);
/* fake_cuda_waits - calls that returned when a device had done something: memory given back, copies between a device
 * and memory that is not page-locked (to a device: of more than a real driver takes over at once). */
typedef unsigned fake_cuda_waits_fn(void);
/* fake_cuda_live - contexts, memory, streams, events, modules and graphs that were made and not given back. */
typedef unsigned fake_cuda_live_fn(void);
/* fake_cuda_depth, fake_cuda_current - of this thread's stack of contexts. */
typedef unsigned fake_cuda_depth_fn(void);
typedef void *fake_cuda_current_fn(void);
/* fake_cuda_reset - a new machine: faults forgotten, hanging kernels let go, contexts as new. */
typedef void fake_cuda_reset_fn(void);

/* --- for the fake libraries that use the driver ----------------------------------------------- */

/* fake_cuda_call - `call` of a copy of `data`, when the stream (a CUstream of the current context) comes to it. */
typedef void fake_cuda_call_fn(void *stream, void (*call)(void *data), const void *data, size_t bytes);
/* fake_cuda_spend - the work at hand took so long, to the device's clock alone. */
typedef void fake_cuda_spend_fn(double milliseconds);
/* fake_cuda_alive - whether this is a stream that was made and not destroyed. */
typedef bool fake_cuda_alive_fn(void *stream);
/* fake_cuda_capturing - whether this thread captures a graph. */
typedef bool fake_cuda_capturing_fn(void);

#endif
