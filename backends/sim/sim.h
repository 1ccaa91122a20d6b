/* SPDX-License-Identifier: MIT
 *
 * sim.h - the simulator inside: wrappers around another plugin's handles, the gate that every call
 * on a device passes, and what commands cost on the clock (clock.h).
 *
 * Handles of one index share its memory, its counts of calls, its loss, its engines and its link; each queue is a line
 * of its own. What a queue does not finish in time is lost with its handle alone.
 */
#ifndef CEK_BACKENDS_SIM_SIM_H
#define CEK_BACKENDS_SIM_SIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <cekernels/plugin.h>

#include "backends/common/failure.h"
#include "backends/sim/clock.h"

/* The plugin's table (plugins/sim.c answers the query with it). */
extern const cek_plugin cek__sim_plugin;

enum { CEK__SIM_DEVICES = 64, CEK__SIM_FAULTS = 16, CEK__SIM_SLEEP_MS = 200 };

/* Calls that a fault may strike, each with the group that it belongs to. */
/* clang-format off */
#define CEK__SIM_CALLS(CALL)                                                                                      \
    CALL(device_open, MAKE) CALL(mem_alloc, MAKE) CALL(host_alloc, MAKE) CALL(host_register, MAKE)                \
    CALL(mem_import, MAKE) CALL(queue_create, MAKE)                                                               \
    CALL(event_create, MAKE) CALL(op_create, MAKE) CALL(cmdbuf_create, MAKE)                                      \
    CALL(upload, ENQUEUE) CALL(download, ENQUEUE) CALL(copy, ENQUEUE) CALL(fill, ENQUEUE) CALL(update, ENQUEUE)   \
    CALL(op_prepack, ENQUEUE) CALL(op_run, ENQUEUE) CALL(cmdbuf_run, ENQUEUE)                                     \
    CALL(event_record, ENQUEUE) CALL(event_wait, ENQUEUE)                                                         \
    CALL(queue_sync, WAIT) CALL(event_sync, WAIT)                                                                 \
    CALL(device_memory, LOOK) CALL(device_sensors, LOOK) CALL(mem_map, LOOK)                                      \
    CALL(mem_unmap, LOOK) CALL(event_query, LOOK) CALL(event_elapsed, LOOK)                                       \
    CALL(mem_free, RELEASE) CALL(host_free, RELEASE) CALL(host_unregister, RELEASE)                               \
    CALL(queue_destroy, RELEASE) CALL(event_destroy, RELEASE)                                                     \
    CALL(op_destroy, RELEASE) CALL(cmdbuf_destroy, RELEASE)
#define CEK__SIM_CALL_ENUM(NAME, GROUP) CEK__SIM_##NAME,
typedef enum cek__sim_call { CEK__SIM_CALLS(CEK__SIM_CALL_ENUM) CEK__SIM_CALL_COUNT } cek__sim_call;
/* clang-format on */

/* What a fault does to the call that it strikes. */
typedef enum cek__sim_effect {
    CEK__SIM_NONE,
    CEK__SIM_FAIL,  /* the call returns the status */
    CEK__SIM_LATER, /* the call succeeds, what it enqueued fails with the status */
    CEK__SIM_HANG,  /* what it enqueued, or the call itself, does not end */
    CEK__SIM_BLOCK, /* the call never returns, whatever the watchdog says */
    CEK__SIM_SLEEP, /* it returns CEK__SIM_SLEEP_MS later */
    CEK__SIM_HALVE  /* from what it enqueues on, the device computes at half its speed */
} cek__sim_effect;

typedef struct cek__sim_fault {
    cek__sim_effect effect;
    cek_status status;
    uint64_t calls;  /* mask of 1 << cek__sim_call */
    uint32_t device; /* UINT32_MAX: each, counted by itself */
    uint64_t at;     /* the call of these that is struck, from 1 */
    bool from_then_on;
} cek__sim_fault;

/* How fast a device is. Nothing is 0, so that no time is infinite. */
typedef struct cek__sim_speed {
    uint64_t flops, bandwidth;      /* a second: of its operations, of its own memory (bytes) */
    uint64_t link;                  /* bytes a second between it and the host or another device */
    uint64_t latency_ns, launch_ns; /* before each transfer over the link; before each operation, fill and copy */
} cek__sim_speed;

typedef struct cek__sim_device {
    uint64_t memory_bytes; /* CEK_UNKNOWN: what the inner plugin has */
    cek__sim_speed speed;
    uint64_t copy_engines, wave_ns;
    pthread_mutex_t lock;    /* of what follows */
    uint64_t held_ns;        /* of the watchdog's time, by waits that ended at their own deadlines */
    pthread_cond_t lost_now; /* ends waits for what hangs: after `lost`, or a handle's, was set */
    uint64_t used_bytes, seen[CEK__SIM_FAULTS];
    atomic_uint_fast64_t calls[CEK__SIM_CALL_COUNT]; /* not those that enqueue */
    cek__latch lost;
} cek__sim_device;

/* When commands do their work: with their call, on the clock when their time has passed, or never; then there is no
 * device memory either. */
typedef enum cek__sim_when { CEK__SIM_WORK_ALL, CEK__SIM_WORK_LATE, CEK__SIM_WORK_NONE } cek__sim_when;

struct cek_instance {
    cek_host host;
    cek_plugin plugin; /* the inner one */
    cek_instance *inner;
    cek__clock *clock; /* NULL: commands take the time that the inner plugin takes */
    uint64_t count, watchdog_ns;
    uint64_t shared;      /* the host and other devices reach device memory */
    uint64_t inline_work; /* a call returns when what it enqueued has ended */
    uint64_t work;        /* cek__sim_when */
    uint32_t lacks;       /* mask of 1 << CEK_OP_...: operations that no device has */
    uint32_t fault_count;
    cek__sim_fault faults[CEK__SIM_FAULTS];
    cek__sim_device devices[CEK__SIM_DEVICES];
};

struct cek_dev {
    cek_instance *instance;
    uint32_t index;
    cek_dev *inner;
    cek__latch lost; /* this handle, not the device */
};
struct cek_mem {
    cek_dev *dev;
    cek_mem *inner;
    uint64_t bytes;
};
struct cek_queue {
    cek_dev *dev;
    cek_queue *inner;
    bool timing, hangs;
    uint64_t deadline_ns;         /* of its destruction while it hangs */
    cek__line *line;              /* on the clock, where there is one */
    struct cek__sim_later *later; /* the work of the command that is being enqueued, if it is for later */
    cek__failure failure;
};
struct cek_event {
    cek_dev *dev;
    cek_event *inner;
    bool timing;
    cek__mark *mark;      /* the clock's, of the latest record */
    pthread_mutex_t lock; /* of what follows: the queue at the latest record */
    bool recorded, timed, hangs;
    cek__failure failure;
};
struct cek_op {
    cek_dev *dev;
    cek_op *inner;
    uint64_t cost_ns, prepack_ns, reserve_bytes;
};
struct cek_cmdbuf {
    cek_dev *dev;
    cek_cmdbuf *inner;
    uint64_t *costs_ns; /* of its commands */
    uint32_t count;
};

/* --- options.c: what the host asked for; inner.c: the plugin inside --------------------------- */

cek_status cek__sim_options_read(cek_instance *instance);

/* cek__sim_inner_load - fills in instance->plugin. */
cek_status cek__sim_inner_load(cek_instance *instance);

/* --- faults.c: the text of sim_faults --------------------------------------------------------- */

cek_status cek__sim_faults_parse(cek_instance *instance, const char *text);
const char *cek__sim_call_name(cek__sim_call call);
const char *cek__sim_fault_name(const cek__sim_fault *fault);

/* --- gate.c ----------------------------------------------------------------------------------- */

static inline cek__sim_device *cek__sim_state(const cek_dev *dev)
{
    return &dev->instance->devices[dev->index];
}

/* A look at the latch that is no call, so that no fault strikes it. */
static inline cek_status cek__sim_latch_status(const cek_dev *dev, char *text, uint64_t cap)
{
    const cek_status st = cek__latch_status(&dev->lost, text, cap);
    return st ? st : cek__latch_status(&cek__sim_state(dev)->lost, text, cap);
}

/* cek__sim_lost - CEK_OK, or the latch, told to the host as the answer to `call`. */
cek_status cek__sim_lost(const cek_dev *dev, const char *call);

/* cek__sim_release_pass - where a call that gives something back is told to block or sleep. */
void cek__sim_release_pass(const cek_dev *dev, cek__sim_call call);

/* cek__sim_pass - CEK_OK, or the failure that this call meets: the latch, or a fault. */
cek_status cek__sim_pass(const cek_dev *dev, cek__sim_call call);

/* cek__sim_queue_pass - whether a command goes on to the inner queue; else *st is the answer: an
 * error, or CEK_OK where the command was enqueued only to fail or to hang. */
bool cek__sim_queue_pass(cek_queue *queue, cek__sim_call call, cek_status *st);

/* cek__sim_wait_pass - the same of a wait: whether there is anything to wait for in the inner plugin. `hangs`: what is
 * waited for does not end. */
bool cek__sim_wait_pass(const cek_dev *dev, cek__sim_call call, bool hangs, uint64_t timeout_ns, cek_status *st);

/* cek__sim_lose - the device is gone, for each handle; ends what hangs; the first reason stays. _handle: that alone is
 * given up. */
void cek__sim_lose(const cek_dev *dev, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
void cek__sim_lose_handle(cek_dev *dev, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* cek__sim_hold - waits for what never ends: CEK_TIMEOUT at the deadline, CEK_DEVICE_LOST when the device was lost. */
cek_status cek__sim_hold(const cek_dev *dev, uint64_t timeout_ns);

/* cek__sim_free_bytes - of a device with a cap. */
uint64_t cek__sim_free_bytes(cek_instance *instance, uint32_t index);

/* cek__sim_wrapper_make - a zeroed wrapper of `bytes` that starts with { dev, inner }; the inner
 * handle is still to come. cek__sim_wrapper_done - after that was asked for with result `st`: frees
 * the wrapper if there is none. `out` is the address of the caller's handle. */
cek_status cek__sim_wrapper_make(cek_dev *dev, cek__sim_call call, size_t bytes, void *out);
cek_status cek__sim_wrapper_done(void *wrapper, cek_status st, void *out);

/* --- cost.c: what commands take ---------------------------------------------------------------- */

/* In ns: work on a device, a transfer over its link, a copy to it. */
uint64_t cek__sim_work_ns(const cek__sim_speed *speed, uint64_t flops, uint64_t bytes);
uint64_t cek__sim_transfer_ns(const cek__sim_speed *speed, uint64_t bytes);
uint64_t cek__sim_copy_ns(const cek_dev *dev, cek_ref src, uint64_t bytes);

/* cek__sim_op_cost - floating-point operations and bytes of one run. Sizes private to the inner
 * plugin: `packed_bytes` and `reserve_bytes`. The errors of cek__request_init. */
cek_status cek__sim_op_cost(const cek_host *host, const cek_op_desc *desc, uint64_t packed_bytes,
                            uint64_t reserve_bytes, uint64_t *flops, uint64_t *bytes);

/* Calls a slot of the inner plugin; a missing one is CEK_UNSUPPORTED. */
#define INNER(dev, slot, ...) \
    ((dev)->instance->plugin.slot ? (dev)->instance->plugin.slot(__VA_ARGS__) : (cek_status)CEK_UNSUPPORTED)

static inline cek_ref inner_ref(cek_ref ref)
{
    return (cek_ref){ ref.mem ? ref.mem->inner : NULL, ref.offset };
}

/* Likewise for what is about device memory, of which an idle simulator has none. */
#define UNLESS_IDLE(dev, slot, ...) \
    ((dev)->instance->work == CEK__SIM_WORK_NONE ? (cek_status)CEK_OK : INNER(dev, slot, __VA_ARGS__))

/* --- work.c: what a command does ---------------------------------------------------------------- */

/* A call that enqueues and its arguments, with the inner plugin's handles: those that the call has. The workspace of
 * op_run, and what op_prepack writes, is `dst`. */
typedef struct cek__sim_work {
    cek__sim_call call;
    cek_ref dst, src;
    const void *from;
    void *to;
    uint64_t bytes;
    uint32_t pattern, pattern_bytes, count;
    const cek_op *op;
    cek_cmdbuf *cmdbuf;
    cek_event *event;
    cek_ref operands[CEK_SLOT_MAX];
} cek__sim_work;

/* cek__sim_do - does it, or keeps it in queue->later. */
cek_status cek__sim_do(cek_queue *queue, const cek__sim_work *work);
/* What was kept comes behind all that the queue has on the clock, or is given up. */
cek_status cek__sim_work_follow(cek_queue *queue);
void cek__sim_work_drop(cek_queue *queue);

/* --- queue.c ----------------------------------------------------------------------------------- */

/* cek__sim_spend - commands were enqueued with result `st`: what they take, of the device's compute engine; `st`, or no
 * memory. */
cek_status cek__sim_spend(cek_queue *queue, cek_status st, const uint64_t *costs_ns, size_t count);

/* --- the slots: memory.c, queue.c, event.c, op.c, cmdbuf.c ------------------------------------ */

cek_status cek__sim_mem_alloc(cek_dev *dev, const cek_mem_desc *desc, cek_mem **out);
void cek__sim_mem_free(cek_mem *mem);
void *cek__sim_mem_host_ptr(cek_mem *mem);
cek_status cek__sim_mem_map(cek_mem *mem, uint32_t access_bits, void **out);
cek_status cek__sim_mem_unmap(cek_mem *mem);
cek_status cek__sim_host_alloc(cek_dev *dev, uint64_t bytes, void **out);
cek_status cek__sim_mem_import(cek_dev *dev, const cek_foreign *foreign, cek_mem **out);
cek_status cek__sim_host_register(cek_dev *dev, void *ptr, uint64_t bytes);
void cek__sim_host_unregister(cek_dev *dev, void *ptr);
void cek__sim_host_free(cek_dev *dev, void *ptr);

cek_status cek__sim_queue_create(cek_dev *dev, const cek_queue_desc *desc, cek_queue **out);
void cek__sim_queue_destroy(cek_queue *queue);
cek_status cek__sim_queue_status(cek_queue *queue, char *text, uint64_t cap);
cek_status cek__sim_queue_sync(cek_queue *queue, uint64_t timeout_ns);
cek_status cek__sim_upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes);
cek_status cek__sim_download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes);
cek_status cek__sim_copy(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes);
cek_status cek__sim_fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes);
cek_status cek__sim_update(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes);

cek_status cek__sim_event_create(cek_dev *dev, const cek_event_desc *desc, cek_event **out);
void cek__sim_event_destroy(cek_event *event);
cek_status cek__sim_event_record(cek_queue *queue, cek_event *event);
cek_status cek__sim_event_wait(cek_queue *queue, cek_event *event);
cek_status cek__sim_event_query(cek_event *event);
cek_status cek__sim_event_sync(cek_event *event, uint64_t timeout_ns);
cek_status cek__sim_event_status(cek_event *event, char *text, uint64_t cap);
cek_status cek__sim_event_elapsed(cek_event *start, cek_event *end, uint64_t *ns);

cek_status cek__sim_op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out);
void cek__sim_op_destroy(cek_op *op);
cek_status cek__sim_op_prepack(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                               cek_ref packed);
cek_status cek__sim_op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                           cek_ref workspace);

/* cek__sim_operands - operands with the inner plugin's handles; `to` has room for CEK_SLOT_MAX. */
cek_status cek__sim_operands(const cek_dev *dev, const cek_ref *operands, uint32_t count, cek_ref *to);

cek_status cek__sim_cmdbuf_create(cek_dev *dev, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size,
                                  cek_cmdbuf **out);
void cek__sim_cmdbuf_destroy(cek_cmdbuf *cmdbuf);
cek_status cek__sim_cmdbuf_run(cek_queue *queue, cek_cmdbuf *cmdbuf);

#endif
