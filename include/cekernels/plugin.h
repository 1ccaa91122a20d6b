/* SPDX-License-Identifier: MIT
 *
 * plugin.h - the cekernels plugin ABI, version 1.1: the one door between a host and a device
 * backend.
 *
 * A plugin is a shared object that exports one symbol, cek_plugin_query(). Through the struct which
 * that returns, a host finds devices, allocates memory, queues copies and runs neural network
 * operations. The host is usually libcekernels, but any program may dlopen() a plugin and call it
 * with nothing but this header:
 *
 *     void *so = dlopen("/usr/lib/cekernels/cpu.so", RTLD_NOW | RTLD_LOCAL);
 *     cek_plugin_query_fn query = (cek_plugin_query_fn)dlsym(so, CEK_PLUGIN_SYMBOL);
 *     const cek_plugin *p = query(CEK_ABI);
 *     if (!p || p->abi >> 16 != CEK_ABI_MAJOR) ...refuse...
 *     cek_instance *in;  cek_dev *dev;  cek_mem *mem;
 *     p->create(NULL, &in);                             // NULL: no callbacks, default options
 *     p->device_open(in, 0, NULL, &dev);
 *     cek_mem_desc want = { .size = sizeof want, .bytes = 1 << 20 };
 *     p->mem_alloc(dev, &want, &mem);                   // ... op_create, op_run, queue_sync ...
 *     p->mem_free(mem);  p->device_close(dev);  p->destroy(in);
 *
 * Contents:  1 Rules   2 Status and types   3 Host and plugin   4 Devices   5 Memory
 *            6 Queues and events   7 Operations   8 Blocks   9 Random numbers
 *            10 Operation descriptors   11 Command buffers   12 The table
 *
 * To write a backend, start from the examples that are installed with this header, in the folder
 * that `pkg-config --variable=examplesdir cekernels` prints: plugin/ is the smallest useful one, in
 * one file; reference/ has every slot and every operation, in plain C. Each has a Makefile.
 * `cekernels-bench check --plugin=FILE` is the conformance suite, cekernels-plugin(7) the guide.
 *
 * -------------------------------------------------------------------------------------------------
 * 1 Rules
 *
 * Smallest useful backend. Profile CEK_PROFILE_MEMORY: the required slots of section 12 up to
 * event_elapsed, no operations. CEK_PROFILE_INFERENCE adds op_create, op_destroy, op_run and the
 * operations marked [I] in section 10; CEK_PROFILE_TRAINING adds those marked [T]. "Required"
 * always means: contiguous f32 operands and every feature that is not called optional. The
 * conformance suite runs the required cases of the profile that a plugin claims.
 *
 * Version 1.0 is frozen: the kinds CEK_OP_GEMM to CEK_OP_ARG with the fields, slots and enumerators
 * below, apart from what is marked "since 1.1", and what the profiles require of them. A host
 * trains every network with what profile TRAINING requires: normalisations, gradients of softmax,
 * attention, embeddings and losses are products, chains, reductions, gathers and scatter-adds
 * there. Epilogues, prepacked weights and other types than f32 are accelerators that it asks for
 * and does without. What comes later is marked with its version.
 *
 * Growth. This header is append-only within one major version. Structs passed by pointer start with
 * `size`, set by whoever fills them in; both sides copy min(their size, the other's size) bytes
 * into a zeroed struct of their own. Elements of arrays have no size of their own: their count and
 * element size are passed beside them. A size smaller than that of version 1.0 (0, because it was
 * forgotten) is CEK_INVALID, of an element as of a struct: what is missing is never read as zeros.
 * (The element size of an array without elements is not looked at.) cek_ref (16 bytes), cek_f32x2
 * (8), cek_op_desc (64) and the blocks of section 8 are frozen. A NULL or missing function slot
 * means CEK_UNSUPPORTED. Zero in a new field always means the old behaviour. A plugin that finds a
 * non-zero byte beyond the size it knows, an unknown flag bit or an unknown enumerator in a struct
 * given to it answers CEK_UNSUPPORTED, so nothing new is ever silently ignored; `reserved` fields
 * must be zero and follow the same rule. The exception is cek_host: a plugin ignores what lies
 * beyond the callbacks it knows. Structs that a plugin fills in (`out` structs): the caller zeroes
 * them and sets size, the plugin writes at most that many bytes and leaves size alone. What each
 * profile requires is frozen for major 1: kinds and features added later are optional, and asked
 * for by op_create. Frozen for major 1: enumerators are uint32_t, sizes in bytes uint64_t, strides
 * int64_t in elements, spatial arrays have CEK_SPATIAL_MAX entries, tensor shapes CEK_RANK_MAX.
 * Pointers are 64-bit; there is no padding in any struct. Entries of spatial, shape and stride
 * arrays beyond `spatial` or `rank` are 0, else CEK_INVALID. Shapes, window strides, dilations,
 * groups and rows_per_sample are at least 1 unless said otherwise; strides and leading dimensions
 * are not negative. rows_per_sample need not divide rows: the last sample then has fewer. Hosts
 * read an unknown status as CEK_INTERNAL, an unknown device kind as CEK_KIND_ACCELERATOR, unknown
 * info flags as absent.
 *
 * Sizes. A descriptor whose shape has, or one of whose operands spans from its first byte to its
 * last, more than 2^63 - 1 elements or bytes is CEK_INVALID; so is a sum of sizes, paddings and
 * dilations beyond that. Plugins compute sizes with arithmetic that sees the overflow. What fits in
 * 64 bits but not in the device is CEK_OUT_OF_MEMORY of mem_alloc, for any number of bytes, and
 * CEK_UNSUPPORTED of op_create.
 *
 * Handles. What a device handle made belongs to that handle: two handles of one index are two
 * devices in this respect. Memory, operations and command buffers of another handle, index or
 * instance are CEK_INVALID to every command and to event_record (for its event), with two
 * exceptions, which a host asks for to find its way: the source of copy and the event of
 * event_wait, where CEK_UNSUPPORTED says that there is no such way. A plugin cannot see, and need
 * not, that a handle is of another plugin or was freed.
 *
 * NULL. Where this header does not say that an argument may be NULL, a call with NULL for it is
 * CEK_INVALID: a handle, the memory of a cek_ref whose bytes are not 0, a descriptor, an output, an
 * array whose count is not 0. Outputs are then NULL or zero, nothing else has happened, and the text
 * names what is NULL; where that is the first argument, through which a plugin would find its host,
 * no text is needed. device_count of NULL is 0, mem_host_ptr of NULL is NULL, and functions that
 * destroy or free do nothing.
 *
 * State. A plugin has no mutable globals: everything hangs off the cek_instance, so that several
 * hosts in one process can use one shared object at once.
 *
 * Threads. Functions that take an instance, a device, a memory, an operation or an event may be
 * called from any thread at once. A queue (and a command buffer being run) belongs to one thread at
 * a time. A plugin leaves driver state that belongs to the calling thread (a current CUDA context)
 * as it found it. Callbacks of the host must not call into the plugin.
 *
 * Processes and signals. A plugin installs no signal handler, changes no disposition, and leaves
 * the calling thread's signal mask as it was. Threads that it starts block all signals, so that
 * handlers run on threads of the application; on threads that a driver starts it has no hold.
 * Behind fork() a child calls nothing of a plugin of which its parent had an instance, neither with
 * handles nor create: it may only exec or end, and that must not need the plugin.
 *
 * Arguments. Every struct, array and text given to a call may be reused when it returns (plugins
 * copy what they keep), except the host memory of upload and download.
 *
 * Errors. A function that fails calls host->fail (where there is a host) with one line that names
 * object and cause, on the calling thread, and returns the status; outputs are then NULL or zero.
 * CEK_NOT_READY, CEK_TIMEOUT and a failed queue's status seen again need no text. For create's
 * CEK_UNAVAILABLE the text is the line of the load report. A call on a queue that returns an error
 * has enqueued nothing and the queue stays usable, except after CEK_DEVICE_LOST. Work that fails
 * after it was enqueued makes the *queue* and the *events* recorded behind it failed: queue_sync,
 * queue_status, event_query, event_sync then return that status for ever, waiting on a failed event
 * makes the waiting queue failed too, and a failed queue can only be destroyed; enqueuing on it
 * returns its failure. Execution that fails inside an enqueuing call, on a device that works
 * inline, is a failure of the queue all the same: the call itself may return CEK_OK.
 * CEK_DEVICE_LOST latches on the *handle* (cek_dev) on which it was met: from then on every call on
 * it and on what it made returns CEK_DEVICE_LOST at once, with a text from device_status, and frees
 * and destroys succeed locally. It never becomes well again. Other handles of the same silicon are
 * not touched by the latch: they meet the loss in calls of their own, or not at all. A host may
 * close the lost handle and open the index again, as often as it likes: device_open gives a handle
 * that works, or CEK_DEVICE_LOST where driver or silicon do not come back.
 * Waiting has a deadline: queue_sync and event_sync take one (0 polls once), queue_destroy has one
 * (cek_queue_desc), at which it leaks what still runs and latches CEK_DEVICE_LOST. That a device
 * hangs is for the host to decide: however long work has been running, a plugin answers CEK_TIMEOUT
 * and CEK_NOT_READY as often as it is asked, has no watchdog of its own, and says CEK_DEVICE_LOST
 * when its driver does, or at the deadline of a queue_destroy. Driver calls that have none
 * (allocation, map, compilation, close) may hang; a host that must not guards them with a thread of
 * its own and may abandon the call: that thread stays inside for ever, nothing more of that device
 * is called and destroy never, and the arguments of the call and the callbacks of the host stay
 * valid. Calls on other devices must go on then, so a plugin holds no lock that they need while it
 * is in the driver. After CEK_DEVICE_LOST, or a queue_destroy that hit its deadline, host memory
 * given to upload or download on that device must never be freed. A host never unloads a plugin
 * after create succeeded.
 *
 * Order. Commands of one queue run in order. Between queues there is no order but through events
 * and syncs; that a record has happened before another thread waits for it is the host's own
 * handshake. CEK_OK of event_query, event_sync or queue_sync is such a sync: what it speaks of is
 * visible to the host, and to whatever is enqueued from then on, in any queue of the device. Where
 * a driver promises that of a wait alone, the plugin waits for what it found finished.
 *
 * Progress. What precedes an event_record in its queue starts without further calls, and work that
 * was enqueued never waits for later calls of the host. Queues of one device progress
 * independently: one waits for another only where event_wait says so, and they may use disjoint
 * ranges of one cek_mem at once. A call that enqueues blocks at most for room in its own queue; so
 * do uploads and downloads, where the host memory is host_alloc's of the same device or registered
 * with it. event_query, event_status, queue_status and device_status never wait behind a call that
 * is blocked in the driver. queue_sync and event_sync return within 10 ms of their time-out.
 *
 * Lifetimes. The caller keeps memory, operations, events and command buffers alive until the queued
 * work that uses them has finished; plugins do not track that. Objects are destroyed before the
 * device, devices before the instance.
 *
 * Overlap. Inputs may overlap or be equal. An output (or the workspace) overlaps no other operand
 * of the command, except that it may be the *same* cek_ref as an input where the tables of section
 * 10 allow it (ALIASES). Two operands overlap where an element of the one shares a byte with an
 * element of the other; what lies in gaps that strides or leading dimensions leave is not touched,
 * so one operand may lie in the gaps of another. A plugin refuses what it can tell from the ranges:
 * two operands without gaps that share a byte, and two that begin at the same place. Of others with
 * gaps it may take the caller's word. A range that leaves its memory, a misaligned offset and a
 * forbidden overlap are CEK_INVALID.
 */
#ifndef CEKERNELS_PLUGIN_H
#define CEKERNELS_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ABI version: major << 16 | minor. Only another major is refused. */
#define CEK_ABI_MAJOR 1u
#define CEK_ABI_MINOR 1u
#define CEK_ABI (CEK_ABI_MAJOR << 16 | CEK_ABI_MINOR)

#define CEK_PLUGIN_SYMBOL "cek_plugin_query"
#define CEK_SPATIAL_MAX 4    /* entries of spatial arrays; 1 to 3 are used */
#define CEK_RANK_MAX 8       /* entries of tensor shapes and strides */
#define CEK_DEVICES_MAX 1024 /* of one instance */
#define CEK_ALIGNMENT \
    256u                       /* base alignment of device memory, and of operand offsets unless a
                                 * descriptor says less */
#define CEK_UNKNOWN UINT64_MAX /* a size that the device cannot tell */
#define CEK_FOREVER UINT64_MAX /* a time-out that never comes */

/* -------------------------------------------------------------------------------------------------
 * 2 Status and types
 */

/* What a call answers. 0 to 63 belong to the ABI, 64 and up to the host's own libraries. A plugin
 * returns only the first group. */
typedef uint32_t cek_status;
enum {
    CEK_OK = 0,
    CEK_INVALID = 1,       /* the caller broke a rule of this header: a bad handle, size, shape,
                             * operand set or order of calls */
    CEK_UNSUPPORTED = 2,   /* a valid request that this backend does not implement; another way may
                             * work */
    CEK_UNAVAILABLE = 3,   /* the hardware, driver or library is absent; create() says so,
                             * quietly */
    CEK_OUT_OF_MEMORY = 4, /* device or host memory is exhausted; nothing changed, smaller requests
                             * may work */
    CEK_DEVICE_LOST = 5,   /* the device is gone or hangs; latches on the device */
    CEK_TIMEOUT = 6,       /* the deadline of a sync came first; the work goes on, sync may be
                             * called again */
    CEK_NOT_READY = 7,     /* event_query, event_elapsed: not yet */
    CEK_INTERNAL = 8       /* the backend or its driver failed in another way (a build error, a
                             * failed kernel) */
};

/* Element types. Bit (1 << type) of cek_device_info.types says that a device stores it. */
typedef uint32_t cek_dtype;
enum {
    CEK_DTYPE_NONE = 0, /* "absent": the value of a type field that does not apply */
    CEK_F32 = 1,        /* IEEE binary32 */
    CEK_F16 = 2,        /* IEEE binary16 storage; sums are f32 */
    CEK_BF16 = 3,       /* upper half of binary32, round to nearest even; sums are f32 */
    CEK_F64 = 4,        /* IEEE binary64; sums, losses and gradients are then f64 too */
    CEK_U8 = 5,
    CEK_I32 = 6
};

/* What f32 operands may be turned into. f16 and bf16 operands may use matrix units with f32
 * accumulation under any of them. */
enum {
    CEK_MATH_F32 = 0,    /* default: f32 products; also transforms such as Winograd, within the
                           * bound that conformance checks */
    CEK_MATH_STRICT = 1, /* f32 products and sums, in any order, no transforms */
    CEK_MATH_TF32 = 2,   /* operands may be rounded to 10 bits of fraction */
    CEK_MATH_FAST = 3    /* operands may be rounded to bf16 */
};

typedef uint32_t cek_activation;
enum {
    CEK_ACT_NONE = 0,
    CEK_ACT_RELU = 1,    /* y = x > 0 ? x : x <= 0 ? 0 : NaN.  dx = y <= 0 ? 0 : dy (so NaN
                           * passes). Backward reads the output y */
    CEK_ACT_TANH = 2,    /* dx = dy * (1 - y*y).  Backward reads the output y */
    CEK_ACT_SIGMOID = 3, /* y = 1 / (1 + exp(-x)); dx = dy * y * (1 - y).  Backward reads the
                           * output y */
    CEK_ACT_GELU = 4     /* y = x/2 * (1 + erf(x / sqrt 2)).  Backward reads the input x, so
                           * training does not fuse it forward */
};
/* Their errors and edges, in epilogues too, are those of the instructions in section 10. */

/* Handles. Each belongs to the plugin that made it; a host never looks inside. */
typedef struct cek_instance cek_instance;
typedef struct cek_dev cek_dev;
typedef struct cek_mem cek_mem;
typedef struct cek_queue cek_queue;
typedef struct cek_event cek_event;
typedef struct cek_op cek_op;
typedef struct cek_cmdbuf cek_cmdbuf;

/* A place in device memory. Frozen at 16 bytes. {NULL, 0} means "no operand". */
typedef struct cek_ref {
    cek_mem *mem;
    uint64_t offset; /* bytes; for operands of operations a multiple of the descriptor's align */
} cek_ref;

/* -------------------------------------------------------------------------------------------------
 * 3 Host and plugin
 */

enum { CEK_LOG_ERROR = 1, CEK_LOG_WARN = 2, CEK_LOG_INFO = 3, CEK_LOG_DEBUG = 4 };

/* What a host offers to a plugin; create() may be given NULL instead. Any callback may be NULL.
 * Callbacks may be called from any thread, also from threads of the plugin, until destroy()
 * returns. Texts are UTF-8, one line, copied by the host. */
typedef struct cek_host {
    uint32_t size;
    uint32_t abi; /* the host's CEK_ABI */
    void *user;   /* handed back as the first argument */
    /* the reason of the error about to be returned */
    void (*fail)(void *user, cek_status status, const char *text);
    void (*log)(void *user, uint32_t level, const char *text);
    /* The value of a setting in lower case ("cpu_devices"), or NULL; valid until destroy().
     * libcekernels answers with the environment variable CEKERNELS_<KEY IN UPPER CASE>. A plugin
     * reads its settings here alone, never from the environment. Those of the installed plugins
     * ("cpu_threads", "cpu_isa", ...) are in cekernels-bench(1), ENVIRONMENT. */
    const char *(*option)(void *user, const char *key);
} cek_host;

enum {
    CEK_PROFILE_MEMORY = 1,    /* devices, memory, queues, events, copies */
    CEK_PROFILE_INFERENCE = 2, /* and the operations [I] */
    CEK_PROFILE_TRAINING = 3   /* and the operations [T] */
};

/* -------------------------------------------------------------------------------------------------
 * 4 Devices
 */

enum { CEK_KIND_CPU = 1, CEK_KIND_GPU = 2, CEK_KIND_ACCELERATOR = 3 };

enum {
    CEK_DEVICE_UNIFIED_MEMORY = 1u << 0,   /* device memory is host memory: mem_host_ptr works */
    CEK_DEVICE_ONLY_WHEN_NAMED = 1u << 1,  /* never joins a job by itself (an oracle, a simulator,
                                            * a device that lacks what most jobs need); `reason`
                                            * says why */
    CEK_DEVICE_INLINE = 1u << 2,           /* commands have been executed when the enqueuing call
                                            * returns */
    CEK_DEVICE_FLUSHES_DENORMALS = 1u << 3 /* its f32 arithmetic may take any denormal number,
                                            * operand or result, for 0 of either sign */
};

/* Filled in by device_info. Texts are NUL-terminated and empty when unknown. */
typedef struct cek_device_info {
    uint32_t size;
    uint32_t kind;
    uint32_t flags;
    uint32_t compute_units; /* cores, compute units, multiprocessors */
    uint32_t copy_engines;  /* copies that can run beside computation; 0 if none or unknown */
    uint32_t reserved;
    uint64_t total_bytes; /* memory, or CEK_UNKNOWN */
    uint64_t free_bytes;  /* at the time of the call, or CEK_UNKNOWN */
    uint64_t max_alloc_bytes;
    uint64_t types;      /* 1 << cek_dtype, for types that at least the copy operation
                              * supports */
    uint64_t numeric_id; /* algorithms, ISA, compiler and driver in one number: explains
                              * differences between devices */
    char name[128];
    char vendor[64];
    char driver[128];   /* driver or library versions, for people */
    char pci[16];       /* "0000:01:00.0" */
    uint8_t uuid[16];   /* all zero if there is none */
    char processor[64]; /* which silicon: "cpu" for the host's own processor,
                              * "pci:0000:01:00.0" for a card, else any text. Two *plugins*
                              * reporting the same text report the same processor twice; a host uses
                              * one of them. */
    char reason[128];   /* why CEK_DEVICE_ONLY_WHEN_NAMED is set, for people: "it is a
                              * simulator" */
} cek_device_info;

/* What a device has done, on its own clock. */
typedef struct cek_device_times {
    uint32_t size;
    uint32_t reserved;
    uint64_t now_ns;     /* since the instance was created */
    uint64_t compute_ns; /* of these: an operation or a fill ran */
    uint64_t copy_ns;    /* a transfer over a link did */
    uint64_t exposed_ns; /* a transfer did, and nothing was computed beside it */
} cek_device_times;

/* Since 1.1: what the sensors of the silicon say (device_sensors). */
enum {
    CEK_SENSOR_UTILIZATION = 1u << 0,
    CEK_SENSOR_TEMPERATURE = 1u << 1,
    CEK_SENSOR_POWER = 1u << 2,
    CEK_SENSOR_CLOCK = 1u << 3,
    CEK_SENSOR_MEMORY = 1u << 4,
    CEK_SENSOR_THROTTLED = 1u << 5
};
/* Each is of the whole silicon, whoever uses it, and the latest that there is. */
typedef struct cek_device_sensors {
    uint32_t size;
    uint32_t known;       /* mask of CEK_SENSOR_...: what is not in it is unknown, and 0 below */
    double utilization;   /* 0 to 1, the part of the time that was spent computing: of a processor the
                           * mean of the device's cores, of a GPU the time in which any kernel ran */
    uint64_t interval_ns; /* that utilization is of, up to now; 0: the driver does not say */
    double celsius;       /* of its chip; of several, of the hottest */
    double watts;         /* that it draws */
    double hertz;         /* of the clock of its compute units */
    uint64_t used_bytes;  /* of its memory: of all programs, and what the driver keeps for itself */
    uint64_t total_bytes;
    uint32_t throttled; /* 1: it is slower than it could be, because of heat or power; 0: not */
    uint32_t reserved;
} cek_device_sensors;

typedef struct cek_device_options {
    uint32_t size;
    uint32_t flags; /* none yet */
} cek_device_options;

/* -------------------------------------------------------------------------------------------------
 * 5 Memory
 */

typedef struct cek_mem_desc {
    uint32_t size;
    uint32_t flags; /* none yet */
    uint64_t bytes; /* > 0; contents start undefined */
} cek_mem_desc;

enum { CEK_MAP_READ = 1u << 0, CEK_MAP_WRITE = 1u << 1 };

/* Since 1.1: memory by an address that others know too (mem_import, mem_export). */
enum {
    CEK_FOREIGN_HOST = 1, /* the address of a program */
    CEK_FOREIGN_CUDA = 2  /* a CUdeviceptr, of the device with that ordinal of the CUDA driver */
};
typedef struct cek_foreign {
    uint32_t size;
    uint32_t kind;    /* CEK_FOREIGN_... */
    uint32_t ordinal; /* of the device among its kind; 0 of the host */
    uint32_t reserved;
    uint64_t address; /* of mem_import a multiple of CEK_ALIGNMENT */
    uint64_t bytes;   /* > 0 */
} cek_foreign;

/* -------------------------------------------------------------------------------------------------
 * 6 Queues and events
 */

typedef struct cek_queue_desc {
    uint32_t size;
    uint32_t flags;       /* CEK_QUEUE_TIMING */
    uint64_t deadline_ns; /* of queue_destroy; 0 = 10 seconds */
} cek_queue_desc;
/* Events with CEK_EVENT_TIMING may be recorded in this queue, to be asked for event_elapsed. A host
 * may set it for every queue: it costs something at the records of such events, never at a command
 * or at another event. */
enum { CEK_QUEUE_TIMING = 1u << 0 };

typedef struct cek_event_desc {
    uint32_t size;
    uint32_t flags;
} cek_event_desc;
enum { CEK_EVENT_TIMING = 1u << 0 }; /* event_elapsed will be asked */

/* -------------------------------------------------------------------------------------------------
 * 7 Operations
 *
 * op_create() gets a descriptor with everything that the choice of an algorithm may depend on. It
 * may choose, tune, compile and launch on scratch memory of its own; op_run() then allocates no
 * device memory, compiles nothing and waits for nothing. An operation is immutable: several queues
 * may run it at once, each with a workspace of its own.
 *
 * Operands are numbered slots (section 10). The descriptor's `operands` mask says which slots every
 * run will fill; another set at run time is CEK_INVALID. op_run() gets an array indexed by slot, of
 * `count` entries, that covers the highest bit; slots outside the mask hold {NULL, 0}. At creation
 * a bit of `operands` or `accumulate` whose slot the table of the kind lacks is CEK_UNSUPPORTED: a
 * later minor may have it. Of slots that the table has, a required one that is missing, and an
 * accumulate bit of one that is not in the mask or where the table says no, is CEK_INVALID. At
 * least one output is given.
 *
 * `accumulate` is a mask of output slots: 0 = the output is overwritten (its old contents are not
 * read, NaN there does not matter), 1 = the result is added to what is there. Allowed where the
 * table says "acc". With an epilogue: C += f(v).
 *
 * Reserve: memory that a forward operation writes and its backward operation reads (the indices of
 * a max-pool), of reserve_bytes, in a layout private to the backend. reserve_bytes is 0 unless the
 * mask has RESERVE. The backward descriptor names in `forward` the operation that fills it: same
 * device, same geometry and type; that operation outlives the backward one. Nothing else may fill a
 * reserve. RESERVE or `forward` where there is none (average pooling) is CEK_INVALID.
 *
 * Prepack: with CEK_OP_PREPACKED the weights come in a form of the backend's choice, of
 * prepack_bytes, in the slot PACKED; op_prepack() makes it from the plain operand and is run again
 * after that changes; its operand array covers the plain slot although the mask may lack it.
 * Operations that describe the same weights alike (sizes, strides, type) and have equal, non-zero
 * prepack_layout may share one packed buffer. Without the flag
 * PACKED is not given; with it PACKED is required and the plain weights are optional and not read.
 * An optional feature: CEK_UNSUPPORTED is a fair answer.
 *
 * Workspace, reserve, packed buffers and blocks lie at multiples of CEK_ALIGNMENT whatever `align`
 * says. `math` is a permission: every value is accepted. DETERMINISTIC is a required feature.
 */

enum {
    CEK_OP_GEMM = 1,                  /* [I] */
    CEK_OP_CONV_FORWARD = 2,          /* [I] */
    CEK_OP_CONV_BACKWARD_DATA = 3,    /* [T] */
    CEK_OP_CONV_BACKWARD_WEIGHTS = 4, /* [T] */
    CEK_OP_POOL_FORWARD = 5,          /* [I] */
    CEK_OP_POOL_BACKWARD = 6,         /* [T] */
    CEK_OP_POINTWISE = 7,             /* [I] */
    CEK_OP_REDUCE = 8,                /* [I] */
    CEK_OP_SOFTMAX = 9,               /* [I] */
    CEK_OP_CROSS_ENTROPY = 10,        /* [T] */
    CEK_OP_SQUARED_ERROR = 11,        /* [T] */
    CEK_OP_DROPOUT = 12,              /* [T] */
    CEK_OP_RANDOM = 13,               /* [T] */
    CEK_OP_OPTIMIZER = 14,            /* [T] */
    CEK_OP_COPY = 15,                 /* [I] */
    CEK_OP_GATHER = 16,               /* [T] */
    CEK_OP_SCATTER_ADD = 17,          /* [T] */
    CEK_OP_ARG = 18                   /* [I] */
};

enum {
    CEK_OP_DETERMINISTIC = 1u << 0, /* algorithm and order of sums depend on descriptor, device
                                      * model and library versions alone: no timing, no atomics, no
                                      * number of threads */
    CEK_OP_PREPACKED = 1u << 1
};

/* Fused work at the end of gemm and convolution, applied to the finished sum v (with accumulate:
 * before adding to the old contents):  v += bias;  v = activation(v);  v *= derivative of act_grad,
 * from operand ACT_REF.
 * The bias is added if BIAS is in the mask, with or without this struct; it is a required feature.
 * ACT_REF is in the mask if and only if act_grad is not NONE. activation and act_grad are optional
 * features. Backward data takes act_grad alone, backward weights no epilogue. */
typedef struct cek_epilogue {
    uint32_t size;
    cek_activation activation;
    cek_activation act_grad; /* ACT_REF holds what that activation's backward reads (see
                               * cek_activation), in the type and layout of the result */
    uint32_t reserved;
} cek_epilogue;

typedef struct cek_op_extra cek_op_extra; /* where the head may grow in later minors */

/* Head of every descriptor: `op` in the structs of section 10. Frozen at 64 bytes. */
typedef struct cek_op_desc {
    uint32_t size;       /* of the whole descriptor of this kind, e.g.
                                    * sizeof(cek_gemm_desc) */
    uint32_t kind;       /* CEK_OP_... */
    uint64_t operands;   /* mask of slots that every run fills */
    uint64_t accumulate; /* mask of output slots that are added to */
    uint32_t flags;
    uint32_t math;
    uint32_t align; /* every operand offset is a multiple of this power of two, and of the
                                    * size of the operand's own elements; 0 = CEK_ALIGNMENT. A backend
                                    * may refuse less than CEK_ALIGNMENT for any operation but
                                    * pointwise, reduce and copy with CEK_UNSUPPORTED */
    uint32_t reserved;
    const cek_op *forward;        /* backward operations that read a reserve; else NULL */
    const cek_epilogue *epilogue; /* gemm and convolution; else, or when there is none, NULL */
    const cek_op_extra *extra;    /* NULL; anything else is CEK_UNSUPPORTED in 1.0 */
} cek_op_desc;

/* Filled in by op_create. */
typedef struct cek_op_info {
    uint32_t size;
    uint32_t flags;           /* CEK_OP_INFO_... */
    uint64_t workspace_bytes; /* scratch that op_run needs; contents do not survive */
    uint64_t reserve_bytes;
    uint64_t prepack_bytes;
    uint64_t prepack_layout;
    uint64_t numeric_id; /* of DETERMINISTIC operations: equal ids give equal bits for equal
                                * operands, on any device of any plugin (hash the plugin's name into
                                * it). 0 promises nothing */
    char algorithm[64];  /* for people: "implicit gemm 14x32 avx512" */
} cek_op_info;
enum { CEK_OP_INFO_INEXACT = 1u << 0 }; /* a transform is used: small integers are not exact */

/* -------------------------------------------------------------------------------------------------
 * 8 Blocks: what changes while training lives in device memory
 *
 * Numbers that change from step to step are not arguments but operands, so that command buffers
 * stay valid. A block is a struct in device memory; the host writes it by upload or queue update.
 * The sizes 768, 256 and 256 are frozen: a later field takes reserved words, and is read only by
 * operations whose descriptor asks for it; more data would be a new block in a new slot.
 *
 * A cek_f32x2 is the unevaluated sum hi + lo of two floats: hi is the value rounded to f32, lo the
 * rest. Backends that compute in f32 read hi; f64 operations add the two.
 */
typedef struct cek_f32x2 {
    float hi, lo;
} cek_f32x2;

#define CEK_PARAM_GROUPS 32

/* Step block: written before the step, the same on every device. */
typedef struct cek_step_block {
    uint64_t random_key;  /* key of dropout and random operations; changes each step */
    cek_f32x2 inv_n;      /* 1 / (global sum of sample weights [x columns, for squared
                                * error]) */
    cek_f32x2 loss_scale; /* 1 unless f16 gradients are scaled */
    cek_f32x2 ln_beta1;   /* natural logarithm of Adam's beta1 (0.9) and beta2 (0.999) */
    cek_f32x2 ln_beta2;
    uint32_t reserved[54];
    cek_f32x2 lr[CEK_PARAM_GROUPS]; /* by parameter group */
    cek_f32x2 weight_decay[CEK_PARAM_GROUPS];
} cek_step_block;

/* Update block: written after backward, by an operation (one device) or by the host (several). */
typedef struct cek_update_block {
    cek_f32x2 grad_scale; /* gradients are multiplied by this: clip / loss scale */
    uint32_t skip;        /* any bit set (so a device may write it as f32): the optimizer
                                * changes nothing */
    uint32_t reserved[61];
} cek_update_block;

/* Batch block: one per plan, updated in queue order before each micro-batch. */
typedef struct cek_batch_block {
    uint64_t sample_base; /* position of this micro-batch's first sample in the global batch */
    uint32_t rows_valid;  /* samples (each rows_per_sample rows of an operand) that count; the
                                * rest is padding: finite, without effect on any loss or gradient */
    uint32_t reserved[61];
} cek_batch_block;

/* -------------------------------------------------------------------------------------------------
 * 9 Random numbers
 *
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 * Key     = { low, high 32 bits of cek_step_block.random_key }.
 * Counter = { low 32 bits of (index / 4), stream, low, high 32 bits of sample }, where sample =
 * sample_base + row / rows_per_sample, and index is the row-major index within that sample, over
 * (H, W, C) for images:
 * (row % rows_per_sample) * columns + column, less than 2^34. Output word number index % 4 belongs
 * to that element. Known answers (counter -> output, words in order): key 0, counter 0 -> 6627e8d5
 * e169c58d bc57ac4c 9b00dbd8; key a4093822 299f31d0, counter 243f6a88 85a308d3 13198a2e 03707344 ->
 * d16cfe09 94fdcceb 5001e420 24126ea1. So a number depends on what it is for, never on device,
 * split or micro-batch; backward computes a mask again.
 *
 * Dropout keeps an element iff word >= threshold; threshold = floor(p * 2^32 + 0.5), 0 <= p < 1.
 * Uniform: low + (high - low) * ((word >> 8) * 2^-24); high itself only by rounding.
 * Normal: words come in pairs (0,1) and (2,3); u1 = ((first >> 8) + 1) * 2^-24, u2 = (second >> 8)
 * * 2^-24; the first gets mean + std * sqrt(-2 ln u1) * cos(2 pi u2), the second the same with sin.
 */

/* -------------------------------------------------------------------------------------------------
 * 10 Operation descriptors
 *
 * One struct and one table of operands per kind. The tables are lists of
 *     ROW(KIND, SLOT, NUMBER, DIRECTION, PRESENCE, ACCUMULATE, ALIASES, SHAPE)
 * DIRECTION in, out or inout; PRESENCE required, optional (the mask may leave it out) or weights
 * (required without CEK_OP_PREPACKED); ACCUMULATE acc or no; ALIASES a mask of slots that an output
 * may be identical with; SHAPE for people. The lower-case words are for pasting: MY_##PRESENCE.
 * (The parameter is not called X, which is the name of a slot.) Matrices and images are row-major.
 * "sum type" is f64 where the operands are f64, else f32.
 *
 * Sums: of products, of elements, of a window, in any order and with or without fused multiply-add.
 * With u = 2^-24 in f32 and 2^-53 in f64, a sum of n terms is off by at most (n + 1) u / (1 - (n +
 * 1) u) times the sum of the terms' magnitudes, before it is rounded to the output's type; terms
 * and results below the smallest normal number may count as 0. Sums of integers whose magnitudes
 * add up to at most 2^24 (2^53) are exact. Products under CEK_MATH_TF32 and CEK_MATH_FAST are off
 * by another (2 + e) e of each, e = 2^-10 and 2^-7. With CEK_OP_INFO_INEXACT (never under
 * CEK_MATH_STRICT) integers are not exact, and a result of random numbers is off by at most
 * 64 (n + 64) u a b before it is rounded, where n is the number of terms of a sum that no padding
 * cuts short and a and b are the root mean squares of the two operands: 64 times what rounding does
 * to a sum of so many terms of random signs, which Winograd's F(4x4, 3x3) needs, and as many terms
 * more as its transforms add up for a result. What is NaN by the definition is NaN then, too; where an
 * operand holds a NaN, others may be, which are transformed together with those. Where it holds an
 * infinity, what is infinite by the definition is that or NaN, so that an overflow shows behind a
 * transform, and others may be anything. cekernels-bench check holds devices to this, and has them
 * compute under CEK_MATH_STRICT again what they did so.
 */
#define CEK_SLOT(kind, slot) CEK_##kind##_##slot
#define CEK_BIT(slot) ((uint64_t)1 << (slot))
#define CEK_SLOT_ENUM_(KIND, SLOT, NUMBER, DIRECTION, PRESENCE, ACCUMULATE, ALIASES, SHAPE) \
    CEK_##KIND##_##SLOT = NUMBER,

/* gemm: C[b] = epilogue(op(A[b]) op(B[b])) for b < batch, op(A) m x k, op(B) k x n, C m x n.
 * A matrix is stored row-major with the given leading dimension (elements from one row to the next,
 * >= the row's length), transposed where flagged: op(A)(i,p) = A[i*lda + p], or A[p*lda + i] with
 * CEK_GEMM_TRANS_A. Batches are stride_* elements apart; stride_a or stride_b of 0 uses one matrix
 * for all. A batch may have a second level: `outer` times those matrices, outer_* elements apart (for A
 * and B perhaps 0), so that matrix b of o begins at o * outer_* + b * stride_*; outer = 0 is 1, and a
 * count of 1 leaves its strides unread. Heads of attention are read where they lie: of [N][T][H][d] the
 * N times H matrices T x d have outer = N, batch = H, ld = H*d, stride = d, outer_ = T*H*d.
 * m, n > 0; k >= 0 (k = 0 gives the epilogue of 0); batch > 0. A_SUM: the sum over p of
 * op(A)(i,p), untouched by the epilogue: the bias gradient of a linear layer when A = dY^T; of one
 * matrix only. ACT_REF lies as C does.
 * Types: a, b, c all f32 required; f64, and f16 or bf16 a = b with c of the same type or f32,
 * optional. Required: both levels of a batch, transposes, leading dimensions, BIAS, A_SUM, accumulation on C and
 * A_SUM. */
typedef struct cek_gemm_desc {
    cek_op_desc op;
    uint64_t m, n, k, batch;
    int64_t lda, ldb, ldc;
    int64_t stride_a, stride_b, stride_c;
    uint64_t outer;
    int64_t outer_a, outer_b, outer_c;
    cek_dtype a_type, b_type, c_type;
    uint32_t trans; /* CEK_GEMM_TRANS_A | CEK_GEMM_TRANS_B */
} cek_gemm_desc;
enum { CEK_GEMM_TRANS_A = 1u << 0, CEK_GEMM_TRANS_B = 1u << 1 };
#define CEK_GEMM_OPERANDS(ROW)                                                                        \
    ROW(GEMM, A, 0, in, required, no, 0, "a_type; outer x batch matrices m x k (k x m with TRANS_A)") \
    ROW(GEMM, B, 1, in, weights, no, 0, "b_type; outer x batch matrices k x n (n x k with TRANS_B)")  \
    ROW(GEMM, C, 2, out, required, acc, 0, "c_type; outer x batch matrices m x n")                    \
    ROW(GEMM, BIAS, 3, in, optional, no, 0, "sum type; [n], added to every row")                      \
    ROW(GEMM, ACT_REF, 4, in, optional, no, 0, "c_type; as C, required with act_grad")                \
    ROW(GEMM, A_SUM, 5, out, optional, acc, 0, "sum type; [m]")                                       \
    ROW(GEMM, PACKED, 6, in, optional, no, 0, "prepack_bytes; B as op_prepack wrote it")

/* Convolution (cross-correlation, as in PyTorch), 1 to 3 spatial dimensions, groups.
 * Layouts: images [batch][spatial...][channels] (NHWC), weights [out][kernel...][in/groups].
 * out[i] = (in[i] + pad_lo[i] + pad_hi[i] - dilation[i] * (kernel[i]-1) - 1) / stride[i] + 1, >= 1.
 * Output channel o belongs to group o / (out_channels/groups) and reads the input channels of that
 * group.
 * Types: all f32 required; f64, and f16 or bf16 (gradients of weights f32), optional.
 * Required: 1 to 3 spatial dimensions, stride, dilation, asymmetric padding, groups, BIAS,
 * BIAS_GRAD, accumulation.
 *   forward:           Y  = epilogue(X * W)                      (accumulate is not allowed)
 *   backward data:     DX = epilogue(sum of DY * W over all that X took part in),
 *                      epilogue with act_grad only
 *   backward weights:  DW = sum over batch and positions of X, DY;  BIAS_GRAD = sum of DY */
typedef struct cek_conv_desc {
    cek_op_desc op;
    uint32_t spatial, groups;
    uint64_t batch, in_channels, out_channels;
    uint64_t in[CEK_SPATIAL_MAX], kernel[CEK_SPATIAL_MAX];
    uint64_t stride[CEK_SPATIAL_MAX], dilation[CEK_SPATIAL_MAX];
    uint64_t pad_lo[CEK_SPATIAL_MAX], pad_hi[CEK_SPATIAL_MAX];
    cek_dtype x_type, w_type, y_type; /* of X or DX, W, Y or DY; DW and BIAS_GRAD have the sum
                                        * type */
    uint32_t reserved;
} cek_conv_desc;
#define CEK_CONV_FORWARD_OPERANDS(ROW)                                                                   \
    ROW(CONV_FORWARD, X, 0, in, required, no, 0, "x_type; [batch][in...][in_channels]")                  \
    ROW(CONV_FORWARD, W, 1, in, weights, no, 0, "w_type; [out_channels][kernel...][in_channels/groups]") \
    ROW(CONV_FORWARD, Y, 2, out, required, no, 0, "y_type; [batch][out...][out_channels]")               \
    ROW(CONV_FORWARD, BIAS, 3, in, optional, no, 0, "sum type; [out_channels]")                          \
    ROW(CONV_FORWARD, PACKED, 4, in, optional, no, 0, "prepack_bytes; W as op_prepack wrote it")
#define CEK_CONV_BACKWARD_DATA_OPERANDS(ROW)                                                                    \
    ROW(CONV_BACKWARD_DATA, DY, 0, in, required, no, 0, "y_type; [batch][out...][out_channels]")                \
    ROW(CONV_BACKWARD_DATA, W, 1, in, required, no, 0, "w_type; [out_channels][kernel...][in_channels/groups]") \
    ROW(CONV_BACKWARD_DATA, DX, 2, out, required, acc, 0, "x_type; [batch][in...][in_channels]")                \
    ROW(CONV_BACKWARD_DATA, ACT_REF, 3, in, optional, no, 0, "x_type; as DX, required with act_grad")
#define CEK_CONV_BACKWARD_WEIGHTS_OPERANDS(ROW)                                                     \
    ROW(CONV_BACKWARD_WEIGHTS, X, 0, in, required, no, 0, "x_type; [batch][in...][in_channels]")    \
    ROW(CONV_BACKWARD_WEIGHTS, DY, 1, in, required, no, 0, "y_type; [batch][out...][out_channels]") \
    ROW(CONV_BACKWARD_WEIGHTS, DW, 2, out, required, acc, 0,                                        \
        "sum type; [out_channels][kernel...][in_channels/groups]")                                  \
    ROW(CONV_BACKWARD_WEIGHTS, BIAS_GRAD, 3, out, optional, acc, 0, "sum type; [out_channels]")

/* Pooling over NHWC images: out[i] = (in[i] + pad_lo[i] + pad_hi[i] - kernel[i]) / stride[i] + 1.
 * Maximum: padding never wins, NaN does, and ties go to the first in row-major scan order. Average:
 * the divisor is the whole kernel with CEK_POOL_COUNT_PAD (PyTorch's default; of averages alone),
 * else the positions inside the image. Global pooling is kernel = in. A window that lies wholly in
 * the padding is CEK_INVALID, and pad < kernel; more than half a kernel, which PyTorch refuses, is
 * fine. Maximum forward writes RESERVE only if the slot is given (training); backward needs it and `forward`.
 * backward: DX gets the sum of what each window sends to it; positions that no window reads get 0.
 * Types: x = y f32 required; f64, f16, bf16 optional. 1 to 3 spatial dimensions required. */
typedef struct cek_pool_desc {
    cek_op_desc op;
    uint32_t mode;  /* CEK_POOL_MAX, CEK_POOL_AVERAGE */
    uint32_t flags; /* CEK_POOL_COUNT_PAD */
    uint32_t spatial;
    cek_dtype type;
    uint64_t batch, channels;
    uint64_t in[CEK_SPATIAL_MAX], kernel[CEK_SPATIAL_MAX], stride[CEK_SPATIAL_MAX];
    uint64_t pad_lo[CEK_SPATIAL_MAX], pad_hi[CEK_SPATIAL_MAX];
} cek_pool_desc;
enum { CEK_POOL_MAX = 1, CEK_POOL_AVERAGE = 2 };
enum { CEK_POOL_COUNT_PAD = 1u << 0 };
#define CEK_POOL_FORWARD_OPERANDS(ROW)                                               \
    ROW(POOL_FORWARD, X, 0, in, required, no, 0, "type; [batch][in...][channels]")   \
    ROW(POOL_FORWARD, Y, 1, out, required, no, 0, "type; [batch][out...][channels]") \
    ROW(POOL_FORWARD, RESERVE, 2, out, optional, no, 0, "reserve_bytes")
#define CEK_POOL_BACKWARD_OPERANDS(ROW)                                               \
    ROW(POOL_BACKWARD, DY, 0, in, required, no, 0, "type; [batch][out...][channels]") \
    ROW(POOL_BACKWARD, DX, 1, out, required, no, 0, "type; [batch][in...][channels]") \
    ROW(POOL_BACKWARD, RESERVE, 2, in, optional, no, 0, "reserve_bytes of `forward`; required for maximum")

/* Pointwise: a short chain of instructions, evaluated for every element of `shape`. Inputs are
 * converted to f32 (f64 where OUT is f64; i32 and u8 exactly or rounded), read through strides (0
 * broadcasts), the last value is converted to out_type (integers: round to nearest even, saturate,
 * NaN to 0). Values are numbered: inputs first, then one per instruction; an instruction may use
 * any earlier value.
 * Without instructions the last value is the last input; no input and no instruction is CEK_INVALID.
 * OUT may be an input of the same type and strides. Accumulate: floating-point OUT only. Strides of
 * OUT are >= 0 and give each element its own place.
 * VALID tells rows that count from padding: an element's row is its index along axis 0, whatever the strides, and
 * counts if row / rows_per_sample < rows_valid of BATCH (all do without BATCH). rows_per_sample is 0 in a chain without
 * VALID, and BATCH is not given then. rows_valid counts samples, of rows_per_sample rows each; the last may be cut
 * short. A chain that leaves padding out takes VALID as the condition of a SELECT: a product with 0 keeps
 * NaN and infinity.
 * Required: f32 inputs and output, u8 and i32 inputs, all instructions, up to CEK_POINTWISE_INPUTS
 * and CEK_POINTWISE_INSTRUCTIONS. Other types optional. */
#define CEK_POINTWISE_INPUTS 8
#define CEK_POINTWISE_INSTRUCTIONS 16
enum {
    CEK_PW_CONST = 1, /* imm */
    CEK_PW_COPY = 2,  /* a */
    CEK_PW_ADD = 3,   /* a + b */
    CEK_PW_SUB = 4,
    CEK_PW_MUL = 5,
    CEK_PW_DIV = 6,
    CEK_PW_MIN = 7, /* NaN if either is NaN; so for MAX */
    CEK_PW_MAX = 8,
    CEK_PW_NEG = 9,
    CEK_PW_ABS = 10,
    CEK_PW_SQRT = 11,
    CEK_PW_EXP = 12,
    CEK_PW_LOG = 13,     /* natural */
    CEK_PW_ADD_IMM = 14, /* a + imm */
    CEK_PW_MUL_IMM = 15, /* a * imm */
    CEK_PW_RELU = 16,    /* of a; see cek_activation for these and for the gradients */
    CEK_PW_TANH = 17,
    CEK_PW_SIGMOID = 18,
    CEK_PW_GELU = 19,
    CEK_PW_RELU_GRAD = 20,    /* a = dy, b = y */
    CEK_PW_TANH_GRAD = 21,    /* a = dy, b = y */
    CEK_PW_SIGMOID_GRAD = 22, /* a = dy, b = y */
    CEK_PW_GELU_GRAD = 23,    /* a = dy, b = x */
    CEK_PW_LESS = 24,         /* a < b ? 1 : 0 */
    CEK_PW_EQUAL = 25,        /* a == b ? 1 : 0 */
    CEK_PW_SELECT = 26,       /* a != 0 ? b : c (a NaN is not 0) */
    CEK_PW_POW = 27,          /* a to the power of b, as C's pow */
    CEK_PW_ERF = 28,
    CEK_PW_LOG1P = 29, /* ln (1 + a) */
    CEK_PW_EXPM1 = 30, /* exp(a) - 1 */
    CEK_PW_FLOOR = 31,
    CEK_PW_SIGN = 32, /* a > 0 ? 1 : a < 0 ? -1 : a */
    CEK_PW_SIN = 33,  /* of radians, of any size; so COS */
    CEK_PW_COS = 34,
    CEK_PW_VALID = 35 /* 1 in rows that count, 0 in others; see above */
};
/* Errors. An instruction is at most so many units away from the exact result for the operands that
 * it is given, in its type of arithmetic (f32, or f64). A unit is the distance of neighbouring
 * numbers at the exact result, never less than the smallest denormal. CONST, COPY, MIN, MAX, NEG,
 * ABS, RELU, RELU_GRAD, LESS, EQUAL, SELECT, FLOOR, SIGN and VALID are exact; ADD, SUB, MUL and their immediate forms
 * rounded to nearest (1/2). DIV, SQRT, EXP, LOG, POW, ERF, LOG1P, EXPM1, SIN and COS are what OpenCL asks of every
 * device. The others follow from them: exp(-|x|) and a quotient for SIGMOID; for GELU the normal distribution function,
 * which must not be 1 + erf where that cancels, nor erfc(x / sqrt 2) with a rounded argument, whose error grows
 * with x * x. The unit of GELU_GRAD is that at Phi(x) + |x| phi(x), two terms that may cancel, the
 * product with dy being rounded in addition; TANH_GRAD and SIGMOID_GRAD are the products and differences
 * written at cek_activation, each rounded, their b being in [-1, 1] and [0, 1]. */
#define CEK_ULP_DIV 2.5
#define CEK_ULP_SQRT 3.0
#define CEK_ULP_EXP 3.0
#define CEK_ULP_LOG 3.0
#define CEK_ULP_TANH 5.0
#define CEK_ULP_SIGMOID 10.0
#define CEK_ULP_GELU 20.0
#define CEK_ULP_GELU_GRAD 24.0
#define CEK_ULP_POW 16.0
#define CEK_ULP_ERF 16.0
#define CEK_ULP_LOG1P 2.0
#define CEK_ULP_EXPM1 3.0
#define CEK_ULP_SIN 4.0
#define CEK_ULP_COS 4.0
/* Edges. NaN gives NaN, except where RELU_GRAD, SELECT and the comparisons select, and in POW. Exactly: SQRT(+-0) =
 * +-0; EXP(+-0) = 1, EXP(-inf) = 0, EXP(inf) = inf; LOG(+-0) = -inf, LOG(1) = 0, LOG(inf) = inf; SQRT and LOG
 * of less than 0 are NaN; TANH(+-0) = +-0, TANH(+-inf) = +-1; SIGMOID(-inf) = 0, SIGMOID(inf) = 1;
 * GELU(+-0) = +-0, GELU(inf) = inf, and NaN for -inf, as for GELU_GRAD of either infinity, as the formulas
 * give; ERF, LOG1P, EXPM1, FLOOR, SIGN and SIN of +-0 = +-0, COS(+-0) = 1, ERF(+-inf) = +-1, LOG1P(-1) = -inf,
 * LOG1P(inf) = EXPM1(inf) = inf, EXPM1(-inf) = -1; LOG1P of less than -1, SIN and COS of infinities are NaN; FLOOR of
 * infinities is themselves. POW as C11 F.10.4.4 has it: 1 where b is +-0 or a is 1, whatever the other is (a NaN too),
 * NaN where a < 0 is finite and b is finite and no integer, and so on. What is beyond the largest number by more than
 * its error is infinite. A zero that is exact has the sign that IEEE 754 gives it in the formulas (so RELU(-0) = +0);
 * the sign is open of a zero that a rounding made, of MIN and MAX of zeros of different sign, and of sums and products
 * over several elements (gemm, convolution, reduce). Denormals count, as operands and as results, unless the device
 * has CEK_DEVICE_FLUSHES_DENORMALS; sums and products over several elements may flush them on any. */
typedef struct cek_pointwise_input {
    cek_dtype type;
    uint32_t reserved;
    int64_t strides[CEK_RANK_MAX]; /* elements, >= 0 */
} cek_pointwise_input;
typedef struct cek_pointwise_instruction {
    uint32_t code;    /* CEK_PW_... */
    uint32_t a, b, c; /* numbers of earlier values; 0 where not used */
    double imm;       /* rounded to the type of arithmetic */
} cek_pointwise_instruction;
typedef struct cek_pointwise_desc {
    cek_op_desc op;
    uint32_t rank; /* 1 to CEK_RANK_MAX */
    cek_dtype out_type;
    uint64_t shape[CEK_RANK_MAX];
    int64_t out_strides[CEK_RANK_MAX];
    const cek_pointwise_input *inputs;
    const cek_pointwise_instruction *instructions;
    uint32_t input_count, input_size; /* input_size = sizeof(cek_pointwise_input) of
                                                    * the caller */
    uint32_t instruction_count, instruction_size;
    uint64_t rows_per_sample; /* for VALID; else 0 */
} cek_pointwise_desc;
#define CEK_POINTWISE_OPERANDS(ROW)                                                            \
    ROW(POINTWISE, IN0, 0, in, optional, no, 0, "inputs[0].type; shape through its strides")   \
    ROW(POINTWISE, IN1, 1, in, optional, no, 0, "inputs[1].type")                              \
    ROW(POINTWISE, IN2, 2, in, optional, no, 0, "inputs[2].type")                              \
    ROW(POINTWISE, IN3, 3, in, optional, no, 0, "inputs[3].type")                              \
    ROW(POINTWISE, IN4, 4, in, optional, no, 0, "inputs[4].type")                              \
    ROW(POINTWISE, IN5, 5, in, optional, no, 0, "inputs[5].type")                              \
    ROW(POINTWISE, IN6, 6, in, optional, no, 0, "inputs[6].type")                              \
    ROW(POINTWISE, IN7, 7, in, optional, no, 0, "inputs[7].type")                              \
    ROW(POINTWISE, OUT, 8, out, required, acc, 0xff,                                           \
        "out_type; shape through out_strides; all and only the inputs 0 to input_count-1 are " \
        "given")                                                                               \
    ROW(POINTWISE, BATCH, 9, in, optional, no, 0, "cek_batch_block: rows_valid; with VALID alone")

/* Reduce: Y = function of the terms along the axes in the mask (bit i = axis i), row-major over the
 * axes that remain (one element if none does). A term is an element of X; with CENTRE, X - CENTRE,
 * CENTRE lying as Y does; with X2 that times X2, of x_type and read through x2_strides. Difference and
 * product may be rounded, each, to the sum type, which Y has. Mean divides by the number of terms.
 * MAX and MIN propagate NaN.
 * BATCH leaves padding out, whatever it holds: rows are indices along axis 0, of which those count with
 * row / rows_per_sample < rows_valid, and elements of the others are no terms. rows_per_sample is 0
 * without BATCH. Of no terms at all sums, means and counts are 0, MAX is -infinity, MIN infinity.
 * So normalisations and the gradients of softmax are two or three operations: dx = (dy - sum of dy * y)
 * * y has its sum from X = dy, X2 = y; a variance is SUM_SQUARES with CENTRE the mean, over a count.
 * Required: f32 X, all functions, any strides >= 0, X2, CENTRE, BATCH. Other types optional. Accumulate:
 * SUM, MEAN, SUM_SQUARES, COUNT_NONFINITE. axes 0 reduces nothing; bits at or above rank are
 * CEK_INVALID. */
enum {
    CEK_REDUCE_SUM = 1,
    CEK_REDUCE_MEAN = 2,
    CEK_REDUCE_MAX = 3,
    CEK_REDUCE_MIN = 4,
    CEK_REDUCE_SUM_SQUARES = 5,
    CEK_REDUCE_COUNT_NONFINITE = 6
};
typedef struct cek_reduce_desc {
    cek_op_desc op;
    uint32_t function;
    uint32_t axes;
    uint32_t rank;
    cek_dtype x_type;
    uint64_t shape[CEK_RANK_MAX];
    int64_t x_strides[CEK_RANK_MAX], x2_strides[CEK_RANK_MAX]; /* x2: 0 without X2 */
    uint64_t rows_per_sample;                                  /* with BATCH; else 0 */
} cek_reduce_desc;
#define CEK_REDUCE_OPERANDS(ROW)                                                  \
    ROW(REDUCE, X, 0, in, required, no, 0, "x_type; shape through x_strides")     \
    ROW(REDUCE, Y, 1, out, required, acc, 0, "sum type; the axes that remain")    \
    ROW(REDUCE, X2, 2, in, optional, no, 0, "x_type; shape through x2_strides")   \
    ROW(REDUCE, CENTRE, 3, in, optional, no, 0, "sum type; the axes that remain") \
    ROW(REDUCE, BATCH, 4, in, optional, no, 0, "cek_batch_block: rows_valid")

/* Arg: Y = the index along `axis` of the largest (smallest) element of X, row-major over the axes that
 * remain (one element if none does). Of equal ones, +0 and -0 among them, the first; a NaN counts as
 * larger (smaller) than all that is none, so that the first NaN wins, as in PyTorch. shape[axis] is at
 * most 2^31. Required: f32, any strides >= 0. Other types optional. */
enum { CEK_ARG_MAX = 1, CEK_ARG_MIN = 2 };
typedef struct cek_arg_desc {
    cek_op_desc op;
    uint32_t function;
    uint32_t axis; /* < rank */
    uint32_t rank;
    cek_dtype type;
    uint64_t shape[CEK_RANK_MAX];
    int64_t x_strides[CEK_RANK_MAX];
} cek_arg_desc;
#define CEK_ARG_OPERANDS(ROW)                                            \
    ROW(ARG, X, 0, in, required, no, 0, "type; shape through x_strides") \
    ROW(ARG, Y, 1, out, required, no, 0, "i32; the axes that remain")

/* Softmax over each row of a rows x columns matrix, computed without overflow; CEK_SOFTMAX_LOG
 * gives its logarithm. Types: f32 required, others optional. */
typedef struct cek_softmax_desc {
    cek_op_desc op;
    uint64_t rows, columns;
    cek_dtype type;
    uint32_t flags; /* CEK_SOFTMAX_LOG */
} cek_softmax_desc;
enum { CEK_SOFTMAX_LOG = 1u << 0 };
#define CEK_SOFTMAX_OPERANDS(ROW)                                    \
    ROW(SOFTMAX, X, 0, in, required, no, 0, "type; [rows][columns]") \
    ROW(SOFTMAX, Y, 1, out, required, no, CEK_BIT(0), "type; [rows][columns]")

/* Cross-entropy of logits against class labels, and its gradient. A row r counts if r /
 * rows_per_sample < rows_valid (all do without BATCH). With w = WEIGHTS[r] (1 without), p =
 * softmax(LOGITS[r]):
 *   LOSS    (+)= sum over rows that count of  w * -ln p[label]
 *   CORRECT (+)= number of rows that count whose first largest logit is the label's
 *   DLOGITS      = loss_scale * inv_n * w * (p - onehot(label)) in rows that count,
 *                  exactly 0 in the others
 * A row with w = 0 adds exactly 0 to LOSS and gets exactly 0 in DLOGITS, whatever it holds.
 * Otherwise a label outside 0 to classes-1 gives NaN in LOSS and in its row of DLOGITS (and reads
 * nothing out of bounds), and so does a NaN or +inf logit. CORRECT does not look at w; a row with a
 * NaN or a label out of range is never correct.
 * STEP is required with DLOGITS. Types: f32 required, others optional. */
typedef struct cek_cross_entropy_desc {
    cek_op_desc op;
    uint64_t rows, classes;
    uint64_t rows_per_sample;
    cek_dtype type;
    uint32_t reserved;
} cek_cross_entropy_desc;
#define CEK_CROSS_ENTROPY_OPERANDS(ROW)                                                    \
    ROW(CROSS_ENTROPY, LOGITS, 0, in, required, no, 0, "type; [rows][classes]")            \
    ROW(CROSS_ENTROPY, LABELS, 1, in, required, no, 0, "i32; [rows]")                      \
    ROW(CROSS_ENTROPY, WEIGHTS, 2, in, optional, no, 0, "f32; [rows]")                     \
    ROW(CROSS_ENTROPY, STEP, 3, in, optional, no, 0, "cek_step_block")                     \
    ROW(CROSS_ENTROPY, BATCH, 4, in, optional, no, 0, "cek_batch_block")                   \
    ROW(CROSS_ENTROPY, DLOGITS, 5, out, optional, no, CEK_BIT(0), "type; [rows][classes]") \
    ROW(CROSS_ENTROPY, LOSS, 6, out, optional, acc, 0, "sum type; [1]")                    \
    ROW(CROSS_ENTROPY, CORRECT, 7, out, optional, acc, 0, "i32; [1]")

/* Squared error: rows, weights and w = 0 as above, `columns` values each.
 *   LOSS (+)= sum over rows that count of  w * sum over columns of (PREDICTION - TARGET)^2
 *   DPREDICTION = loss_scale * inv_n * w * 2 * (PREDICTION - TARGET) in rows that count,
 *                 exactly 0 in the others
 * (a mean over all values comes from inv_n). STEP is required with DPREDICTION. Types: f32
 * required, others optional. */
typedef struct cek_squared_error_desc {
    cek_op_desc op;
    uint64_t rows, columns;
    uint64_t rows_per_sample;
    cek_dtype type;
    uint32_t reserved;
} cek_squared_error_desc;
#define CEK_SQUARED_ERROR_OPERANDS(ROW)                                                        \
    ROW(SQUARED_ERROR, PREDICTION, 0, in, required, no, 0, "type; [rows][columns]")            \
    ROW(SQUARED_ERROR, TARGET, 1, in, required, no, 0, "sum type; [rows][columns]")            \
    ROW(SQUARED_ERROR, WEIGHTS, 2, in, optional, no, 0, "f32; [rows]")                         \
    ROW(SQUARED_ERROR, STEP, 3, in, optional, no, 0, "cek_step_block")                         \
    ROW(SQUARED_ERROR, BATCH, 4, in, optional, no, 0, "cek_batch_block")                       \
    ROW(SQUARED_ERROR, DPREDICTION, 5, out, optional, no, CEK_BIT(0), "type; [rows][columns]") \
    ROW(SQUARED_ERROR, LOSS, 6, out, optional, acc, 0, "sum type; [1]")

/* Dropout, forward and backward alike: Y = keep ? X * scale : 0, mask from section 9. The kept
 * value of a NaN is NaN. Types: f32 required, others optional. */
typedef struct cek_dropout_desc {
    cek_op_desc op;
    uint64_t rows, columns;
    uint64_t rows_per_sample;
    double scale; /* 1 / (1 - p) */
    uint32_t threshold;
    uint32_t stream; /* number of the layer */
    cek_dtype type;
    uint32_t reserved;
} cek_dropout_desc;
#define CEK_DROPOUT_OPERANDS(ROW)                                              \
    ROW(DROPOUT, X, 0, in, required, no, 0, "type; [rows][columns]")           \
    ROW(DROPOUT, Y, 1, out, required, no, CEK_BIT(0), "type; [rows][columns]") \
    ROW(DROPOUT, STEP, 2, in, required, no, 0, "cek_step_block: random_key")   \
    ROW(DROPOUT, BATCH, 3, in, optional, no, 0, "cek_batch_block: sample_base (0 without)")

/* Random numbers, section 9. Types: f32 required, others optional (computed in f32, or in f64 for
 * f64, then rounded). */
enum { CEK_RANDOM_UNIFORM = 1, CEK_RANDOM_NORMAL = 2 };
typedef struct cek_random_desc {
    cek_op_desc op;
    uint64_t rows, columns;
    uint64_t rows_per_sample;
    double a, b; /* low, high; or mean, standard deviation */
    uint32_t distribution;
    uint32_t stream;
    cek_dtype type;
    uint32_t reserved;
} cek_random_desc;
#define CEK_RANDOM_OPERANDS(ROW)                                            \
    ROW(RANDOM, Y, 0, out, required, no, 0, "type; [rows][columns]")        \
    ROW(RANDOM, STEP, 1, in, required, no, 0, "cek_step_block: random_key") \
    ROW(RANDOM, BATCH, 2, in, optional, no, 0, "cek_batch_block: sample_base (0 without)")

/* Optimizer step over `count` contiguous parameters. Each range [begin, end) takes lr and
 * weight_decay of its group from the step block; ranges ascend, do not overlap, and elements
 * outside all of them are left alone. With g = grad_scale * GRAD (grad_scale 1 without UPDATE), t =
 * number of steps applied including this one (STATE), nothing at all happens if skip:
 *   SGD:   g += wd * p (coupled);  m = t == 1 ? g : momentum * m + (1 - dampening) * g;  d =
 *       nesterov ? g + momentum * m : m
 *          (d = g where momentum is 0: then M is not given);  p -= lr * d
 *   Adam:  g += wd * p (coupled) or p *= 1 - lr * wd (CEK_OPTIMIZER_DECOUPLED);  b = exp(ln_beta);
 *          m = b1*m + (1-b1)*g;  v = b2*v + (1-b2)*g*g;
 *          p -= lr * (m / -expm1(t ln b1)) / (sqrt(v / -expm1(t ln b2)) + epsilon)
 *   RMSprop: g += wd * p;  v = decay*v + (1-decay)*g*g;  w = v;
 *          centered: mean = decay*mean + (1-decay)*g, w = v - mean*mean, 0 where that is negative;
 *          d = g / (sqrt(w) + epsilon);  m = momentum * m + d, d = m where momentum is not 0;
 *          p -= lr * d
 *   Adagrad: g += wd * p;  v += g*g;  p -= lr / (1 + (t-1) * decay) * g / (sqrt(v) + epsilon)
 * as torch.optim.SGD, Adam, AdamW, RMSprop and Adagrad. Any denormal number, operand or result, may be taken for 0, on
 * any device. M, MEAN and V start as zeros (Adagrad's V as the host likes), STATE as zeros; STATE counts in its
 * first uint64 and belongs to one optimizer operation alone; it is incremented after every element
 * has used it. Fields of the other algorithm are 0. Types: PARAM and GRAD f32 required; both f64
 * optional; LOW (a rounded copy of the new parameters) f16 or bf16 optional. */
enum { CEK_OPTIMIZER_SGD = 1, CEK_OPTIMIZER_ADAM = 2, CEK_OPTIMIZER_RMSPROP = 3, CEK_OPTIMIZER_ADAGRAD = 4 };
enum {
    CEK_OPTIMIZER_NESTEROV = 1u << 0,  /* SGD with momentum */
    CEK_OPTIMIZER_DECOUPLED = 1u << 1, /* Adam */
    CEK_OPTIMIZER_CENTERED = 1u << 2   /* RMSprop */
};
typedef struct cek_param_range {
    uint64_t begin, end;
    uint32_t group; /* < CEK_PARAM_GROUPS */
    uint32_t reserved;
} cek_param_range;
typedef struct cek_optimizer_desc {
    cek_op_desc op;
    uint64_t count;
    const cek_param_range *ranges;
    uint32_t range_count, range_size;
    double momentum, dampening, epsilon;
    uint32_t algorithm;
    uint32_t flags;
    cek_dtype type;     /* of PARAM, GRAD, M, V, MEAN */
    cek_dtype low_type; /* CEK_DTYPE_NONE without LOW */
    double decay;       /* RMSprop: of its means, 0 to 1; Adagrad: of the rate, >= 0 */
} cek_optimizer_desc;
#define CEK_OPTIMIZER_OPERANDS(ROW)                                                                    \
    ROW(OPTIMIZER, PARAM, 0, inout, required, no, 0, "type; [count]")                                  \
    ROW(OPTIMIZER, GRAD, 1, in, required, no, 0, "type; [count]")                                      \
    ROW(OPTIMIZER, M, 2, inout, optional, no, 0, "type; [count]; Adam, SGD and RMSprop with momentum") \
    ROW(OPTIMIZER, V, 3, inout, optional, no, 0, "type; [count]; all but SGD")                         \
    ROW(OPTIMIZER, STATE, 4, inout, required, no, 0, "256 bytes: uint64 steps applied, then zeros")    \
    ROW(OPTIMIZER, STEP, 5, in, required, no, 0, "cek_step_block")                                     \
    ROW(OPTIMIZER, UPDATE, 6, in, optional, no, 0, "cek_update_block")                                 \
    ROW(OPTIMIZER, LOW, 7, out, optional, no, 0, "low_type; [count]")                                  \
    ROW(OPTIMIZER, MEAN, 8, inout, optional, no, 0, "type; [count]; RMSprop, centered")

/* Copy: Y[i...] = X[i...], any strides >= 0 on either side (a permutation, a slice, a broadcast of
 * X), with conversion where the types differ (to f16, bf16: nearest even, overflow to infinity; to
 * integers: nearest even, saturate, NaN to 0). Required: f32 to f32, u8 and i32 to f32 and to
 * themselves. Other pairs optional. */
typedef struct cek_copy_desc {
    cek_op_desc op;
    uint32_t rank;
    cek_dtype x_type, y_type;
    uint32_t reserved;
    uint64_t shape[CEK_RANK_MAX];
    int64_t x_strides[CEK_RANK_MAX], y_strides[CEK_RANK_MAX];
} cek_copy_desc;
#define CEK_COPY_OPERANDS(ROW)                                              \
    ROW(COPY, X, 0, in, required, no, 0, "x_type; shape through x_strides") \
    ROW(COPY, Y, 1, out, required, no, 0, "y_type; shape through y_strides, each element its own place")

/* Gather: Y[b][i] = TABLE[b][INDEX[b][i]], rows of `columns` elements, for b < batch and i < count. An index outside 0
 * to rows-1 reads nothing and gives a row of NaN (of zeros, where the type is an integer's).
 * Scatter-add: DTABLE[b][r] (+)= the sum of DY[b][i] over all i with INDEX[b][i] = r: the terms are added one after the
 * other in the order of i, to 0 or, accumulating, to what is there; a row that no index names is 0, or stays. An index
 * outside 0 to rows-1 is left out: so is one that a chain made -1 because it stands for padding. Always deterministic.
 * CEK_GATHER_SHARED: INDEX is [count], the same for all batches.
 * Types: f32 required, others optional: of gather all, which it moves as they are; of scatter-add f64, f16 and bf16,
 * where DTABLE has the sum type. INDEX is i32. */
typedef struct cek_gather_desc {
    cek_op_desc op;
    uint64_t batch, rows, count, columns;
    cek_dtype type;
    uint32_t flags; /* CEK_GATHER_SHARED */
} cek_gather_desc;
enum { CEK_GATHER_SHARED = 1u << 0 };
#define CEK_GATHER_OPERANDS(ROW)                                                            \
    ROW(GATHER, TABLE, 0, in, required, no, 0, "type; [batch][rows][columns]")              \
    ROW(GATHER, INDEX, 1, in, required, no, 0, "i32; [batch][count], or [count] if shared") \
    ROW(GATHER, Y, 2, out, required, no, 0, "type; [batch][count][columns]")
#define CEK_SCATTER_ADD_OPERANDS(ROW)                                                            \
    ROW(SCATTER_ADD, DY, 0, in, required, no, 0, "type; [batch][count][columns]")                \
    ROW(SCATTER_ADD, INDEX, 1, in, required, no, 0, "i32; [batch][count], or [count] if shared") \
    ROW(SCATTER_ADD, DTABLE, 2, out, required, acc, 0, "sum type; [batch][rows][columns]")

/* All tables, and the slot numbers CEK_GEMM_A, CEK_CONV_FORWARD_X, ... that they give. */
/* clang-format off */
#define CEK_ALL_OPERANDS(ROW)                                                                      \
    CEK_GEMM_OPERANDS(ROW) CEK_CONV_FORWARD_OPERANDS(ROW) CEK_CONV_BACKWARD_DATA_OPERANDS(ROW)     \
    CEK_CONV_BACKWARD_WEIGHTS_OPERANDS(ROW) CEK_POOL_FORWARD_OPERANDS(ROW)                         \
        CEK_POOL_BACKWARD_OPERANDS(ROW)                                                            \
    CEK_POINTWISE_OPERANDS(ROW) CEK_REDUCE_OPERANDS(ROW) CEK_SOFTMAX_OPERANDS(ROW)                 \
        CEK_CROSS_ENTROPY_OPERANDS(ROW)                                                            \
    CEK_SQUARED_ERROR_OPERANDS(ROW) CEK_DROPOUT_OPERANDS(ROW) CEK_RANDOM_OPERANDS(ROW)             \
        CEK_OPTIMIZER_OPERANDS(ROW)                                                                \
    CEK_COPY_OPERANDS(ROW) CEK_GATHER_OPERANDS(ROW) CEK_SCATTER_ADD_OPERANDS(ROW)           \
        CEK_ARG_OPERANDS(ROW)
enum { CEK_ALL_OPERANDS(CEK_SLOT_ENUM_) CEK_SLOT_MAX = 64 };
/* clang-format on */

/* -------------------------------------------------------------------------------------------------
 * 11 Command buffers (optional)
 *
 * A recorded list of commands that runs with one call: addresses are frozen, what varies arrives
 * through the blocks. cmdbuf_create copies everything that it is given; the operations and memory
 * stay the caller's and outlive it. Runs of one command buffer do not overlap in time; a second run
 * on the same queue (or behind an event_wait) may be enqueued at once, with updates of blocks in
 * between ordered as usual.
 */
enum { CEK_CMD_RUN = 1, CEK_CMD_FILL = 2, CEK_CMD_COPY = 3 };
typedef struct cek_cmd {
    uint32_t kind;
    uint32_t operand_count;
    const cek_op *op; /* RUN: with operands and workspace, as for op_run */
    const cek_ref *operands;
    cek_ref workspace;
    cek_ref dst, src; /* COPY within the device; FILL: dst */
    uint64_t bytes;   /* COPY, FILL */
    uint32_t pattern; /* FILL: as queue fill */
    uint32_t pattern_bytes;
} cek_cmd;

/* -------------------------------------------------------------------------------------------------
 * 12 The table
 *
 * Slots are required for every profile unless marked optional or [I]. A host copies min(size) bytes
 * into a zeroed struct of its own and calls through that.
 */
typedef struct cek_plugin {
    uint32_t size;
    uint32_t abi;     /* CEK_ABI that the plugin was built with */
    const char *name; /* "cpu": [a-z][a-z0-9_]*, the prefix of its devices "cpu:0"; unlike that
                           * of any other plugin */
    const char *version;
    const char *build; /* compiler, flags, features: one line for bug reports */
    uint32_t profile;
    uint32_t reserved;

    /* create - finds drivers and devices. CEK_UNAVAILABLE: nothing here to drive (quiet); anything
     * else is a fault (loud). `host` may be NULL and need not outlive the call (copy it); its
     * callbacks must stay valid until destroy. */
    cek_status (*create)(const cek_host *host, cek_instance **out);
    void (*destroy)(cek_instance *instance);
    uint32_t (*device_count)(
        cek_instance *instance); /* constant for the life of the instance; at most CEK_DEVICES_MAX */
    cek_status (*device_info)(cek_instance *instance, uint32_t index, cek_device_info *info);
    /* device_open - `options` may be NULL. Opening the same index twice gives two independent
     * handles. */
    cek_status (*device_open)(cek_instance *instance, uint32_t index, const cek_device_options *options, cek_dev **out);
    void (*device_close)(cek_dev *dev);
    /* device_status - CEK_OK or the latched CEK_DEVICE_LOST; the reason is copied to text (cap
     * bytes, NUL-terminated; may be NULL, 0). */
    cek_status (*device_status)(cek_dev *dev, char *text, uint64_t cap);
    /* device_memory - free and total bytes now, CEK_UNKNOWN where the device cannot tell. */
    cek_status (*device_memory)(cek_dev *dev, uint64_t *free_bytes, uint64_t *total_bytes);

    /* mem_alloc - memory that is really there when the call succeeds: no lazy promise that kills
     * the process later. */
    cek_status (*mem_alloc)(cek_dev *dev, const cek_mem_desc *desc, cek_mem **out);
    void (*mem_free)(cek_mem *mem);
    /* mem_host_ptr - an address through which the host may read and write while no queued work uses
     * this memory, or NULL. */
    void *(*mem_host_ptr)(cek_mem *mem);
    /* mem_map, mem_unmap - the fallback where mem_host_ptr is NULL; optional. Blocking. No queued
     * command may use a mapped cek_mem. One map at a time. access = CEK_MAP_...; with WRITE alone
     * the old contents are lost. */
    cek_status (*mem_map)(cek_mem *mem, uint32_t access, void **out);
    cek_status (*mem_unmap)(cek_mem *mem);
    /* host_alloc, host_free - page-locked host memory for fast uploads and downloads, aligned to
     * 256 bytes; optional. */
    cek_status (*host_alloc)(cek_dev *dev, uint64_t bytes, void **out);
    void (*host_free)(cek_dev *dev, void *ptr);

    /* Queues run their commands in order. `desc` may be NULL. */
    cek_status (*queue_create)(cek_dev *dev, const cek_queue_desc *desc, cek_queue **out);
    void (*queue_destroy)(cek_queue *queue);
    /* queue_status - CEK_OK or the failure that stuck to the queue, and its text. Does not wait. */
    cek_status (*queue_status)(cek_queue *queue, char *text, uint64_t cap);
    /* queue_sync - until all that was enqueued has finished: CEK_OK, CEK_TIMEOUT, or the queue's
     * failure. */
    cek_status (*queue_sync)(cek_queue *queue, uint64_t timeout_ns);
    /* Of upload, download, copy, fill and update with bytes = 0: CEK_OK, nothing happens, {NULL, 0}
     * is allowed.
     * upload, download - any byte offset; memory that is neither from host_alloc nor registered may
     * make the call wait for the queue. Host memory stays valid and untouched until an event
     * recorded behind has happened. */
    cek_status (*upload)(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes);
    cek_status (*download)(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes);
    /* copy - dst is on the queue's device; src there too, or on another device of the instance
     * (else CEK_UNSUPPORTED), in which case the caller has ordered it. The ranges do not
     * overlap. */
    cek_status (*copy)(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes);
    /* fill - repeats the low pattern_bytes (1, 2 or 4) of pattern; offset and bytes are multiples
     * of pattern_bytes. */
    cek_status (*fill)(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes);
    /* update - up to 4096 bytes, offset and size multiples of 4; src is copied before the call
     * returns. For blocks. */
    cek_status (*update)(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes);

    /* Events. `desc` may be NULL. record may be repeated; a wait, query or sync binds to the latest
     * record. On an event that was never recorded they are CEK_INVALID. event_wait takes events of
     * the queue's own device (else CEK_UNSUPPORTED); it does not block. "Latest" means at the time
     * of the call. */
    cek_status (*event_create)(cek_dev *dev, const cek_event_desc *desc, cek_event **out);
    void (*event_destroy)(cek_event *event);
    cek_status (*event_record)(cek_queue *queue, cek_event *event);
    cek_status (*event_wait)(cek_queue *queue, cek_event *event);
    cek_status (*event_query)(cek_event *event); /* CEK_OK, CEK_NOT_READY or the failure */
    cek_status (*event_sync)(cek_event *event, uint64_t timeout_ns);
    /* as event_query, with the failure's text */
    cek_status (*event_status)(cek_event *event, char *text, uint64_t cap);
    /* event_elapsed - device time from the completion of start to that of end: events with
     * CEK_EVENT_TIMING (else CEK_INVALID) recorded in queues with CEK_QUEUE_TIMING (else
     * CEK_UNSUPPORTED is allowed). CEK_NOT_READY before both have happened; an end that happened
     * before its start is CEK_INVALID. */
    cek_status (*event_elapsed)(cek_event *start, cek_event *end, uint64_t *ns);

    /* [I] Operations, section 7. `info` may be NULL. */
    cek_status (*op_create)(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out);
    void (*op_destroy)(cek_op *op);
    /* op_prepack - optional. Reads the plain weights from operands (indexed by slot), writes
     * `packed`. */
    cek_status (*op_prepack)(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                             cek_ref packed);
    /* op_run - workspace: at least workspace_bytes, {NULL, 0} if that is 0. */
    cek_status (*op_run)(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                         cek_ref workspace);

    /* Optional, section 11. cmd_size = sizeof(cek_cmd) of the caller. */
    cek_status (*cmdbuf_create)(cek_dev *dev, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size, cek_cmdbuf **out);
    void (*cmdbuf_destroy)(cek_cmdbuf *cmdbuf);
    cek_status (*cmdbuf_run)(cek_queue *queue, cek_cmdbuf *cmdbuf);

    /* device_times - optional, for devices that count it: all work on the silicon, through whatever
     * handle. times->size is set by the host, as in device_info. Does not wait. */
    cek_status (*device_times)(cek_dev *dev, cek_device_times *times);

    /* host_register, host_unregister - optional, since 1.1. For uploads and downloads of this device,
     * host memory of any address and size becomes as good as that of host_alloc, in place:
     * page-locked, where that is what helps. It stays the caller's, who may read and write it but for
     * what queued work uses, and keeps it until host_unregister, which gets the same address when no
     * queued work uses the memory. Of a lost device host_unregister may be left out: what was given
     * to its copies stays for ever (section 1, Errors). The same range may be registered with several
     * devices of an instance, once with each, but overlaps no other that is registered. 0 bytes are
     * CEK_INVALID; where memory cannot be registered the answer is CEK_UNSUPPORTED or
     * CEK_OUT_OF_MEMORY, and it may be used as it is. */
    cek_status (*host_register)(cek_dev *dev, void *ptr, uint64_t bytes);
    void (*host_unregister)(cek_dev *dev, void *ptr);

    /* mem_import - optional, since 1.1. Memory that somebody else has, as device memory in place: nothing is copied,
     * every command may use it as memory of mem_alloc, and what is written is seen on both sides. It stays its
     * owner's, who keeps it until mem_free, which lets go of it. Its first bytes may be no part of what the owner
     * shares: only operands are touched. CEK_UNSUPPORTED: a kind or place of memory that the device does not reach;
     * the host copies it then. */
    cek_status (*mem_import)(cek_dev *dev, const cek_foreign *foreign, cek_mem **out);
    /* mem_export - optional, since 1.1, for memory without mem_host_ptr: where others find it. out->size is set by the
     * host. Valid until mem_free. */
    cek_status (*mem_export)(cek_mem *mem, cek_foreign *out);

    /* device_sensors - optional, since 1.1. Needs no open device, makes no context, and is cheap enough for every
     * second, but for the first call, which may load a library of the driver's. Any thread, also while the device
     * works; waits for no command. out->size is set by the host, as in device_info. What cannot be told, or not to this
     * user, is left out of out->known: no failure, also where that is everything. CEK_DEVICE_LOST where the driver says
     * that the silicon is gone; handles are latched by calls of their own. */
    cek_status (*device_sensors)(cek_instance *instance, uint32_t index, cek_device_sensors *out);
} cek_plugin;

/* cek_plugin_query - the one exported symbol. Returns a struct that lives as long as the shared
 * object, or NULL if the plugin cannot serve a host of this ABI major. Called before create, from
 * any thread, any number of times; no side effects. */
typedef const cek_plugin *(*cek_plugin_query_fn)(uint32_t host_abi);
#if defined(_WIN32)
#define CEK_PLUGIN_EXPORT __declspec(dllexport)
#else
#define CEK_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif
CEK_PLUGIN_EXPORT const cek_plugin *cek_plugin_query(uint32_t host_abi);

#ifdef __cplusplus
}
#endif

#endif /* CEKERNELS_PLUGIN_H */
