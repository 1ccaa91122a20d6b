/* SPDX-License-Identifier: MIT
 *
 * sim.h - the simulator inside: wrappers around another plugin's handles, and the gate that every call on a device passes.
 *
 * Handles of one index share its memory, its count of calls and its latch.
 */
#ifndef CEK_BACKENDS_SIM_SIM_H
#define CEK_BACKENDS_SIM_SIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <cekernels/plugin.h>

#include "backends/common/fail.h"

/* The plugin's table (plugins/sim.c answers the query with it). */
extern const cek_plugin cek__sim_plugin;

enum { CEK__SIM_DEVICES = 64 };

typedef struct cek__sim_device {
    pthread_mutex_t lock;  /* of what follows */
    uint64_t used_bytes, calls;
    bool lost;
} cek__sim_device;

struct cek_instance {
    cek_host host;
    cek_plugin plugin;     /* the inner one */
    cek_instance *inner;
    uint64_t count, memory_bytes;
    uint64_t fail_at, fail_device;
    const char *fail_call; /* NULL: any */
    cek_status fail_status;
    cek__sim_device devices[CEK__SIM_DEVICES];
};

struct cek_dev {
    cek_instance *instance;
    uint32_t index;
    cek_dev *inner;
};
struct cek_mem {
    cek_dev *dev;
    cek_mem *inner;
    uint64_t bytes;
};
struct cek_queue {
    cek_dev *dev;
    cek_queue *inner;
    cek_status failure;
    char text[CEK__TEXT_BYTES];
};
struct cek_event {
    cek_dev *dev;
    cek_event *inner;
    pthread_mutex_t lock;  /* of what follows */
    cek_status failure;    /* of the queue at the latest record */
    char text[CEK__TEXT_BYTES];
};
struct cek_op {
    cek_dev *dev;
    cek_op *inner;
};
struct cek_cmdbuf {
    cek_dev *dev;
    cek_cmdbuf *inner;
};

/* --- gate.c --------------------------------------------------------------------------------------------------------- */

cek__sim_device *cek__sim_state(const cek_dev *dev);

/* cek__sim_pass - CEK_OK, or the failure that this call meets: the latch, or the one that was asked for. */
cek_status cek__sim_pass(const cek_dev *dev, const char *call);

/* cek__sim_queue_pass - whether a command goes on to the inner queue; else *st is the answer. An injected CEK_INTERNAL is a
 * failure of work that was enqueued: the call succeeds, the queue fails. */
bool cek__sim_queue_pass(cek_queue *queue, const char *call, cek_status *st);

/* cek__sim_is_lost - looks at the latch without being a call that counts. */
bool cek__sim_is_lost(const cek_dev *dev, char *text, uint64_t cap);

/* cek__sim_free_bytes - of a device with a cap. */
uint64_t cek__sim_free_bytes(cek_instance *instance, uint32_t index);

/* cek__sim_wrapper_make - a zeroed wrapper of `bytes` that starts with { dev, inner }; the inner handle is still to come.
 * cek__sim_wrapper_done - after that was asked for with result `st`: frees the wrapper if there is none. `out` is the
 * address of the caller's handle. */
cek_status cek__sim_wrapper_make(cek_dev *dev, const char *call, size_t bytes, void *out);
cek_status cek__sim_wrapper_done(void *wrapper, cek_status st, void *out);

/* Calls a slot of the inner plugin; a missing one is CEK_UNSUPPORTED. */
#define INNER(dev, slot, ...) \
    ((dev)->instance->plugin.slot ? (dev)->instance->plugin.slot(__VA_ARGS__) : (cek_status)CEK_UNSUPPORTED)

static inline cek_ref inner_ref(cek_ref ref)
{
    return (cek_ref){ ref.mem ? ref.mem->inner : NULL, ref.offset };
}

/* --- the slots: memory.c, queue.c, op.c ------------------------------------------------------------------------------ */

cek_status cek__sim_mem_alloc(cek_dev *dev, const cek_mem_desc *desc, cek_mem **out);
void cek__sim_mem_free(cek_mem *mem);
void *cek__sim_mem_host_ptr(cek_mem *mem);
cek_status cek__sim_mem_map(cek_mem *mem, uint32_t access_bits, void **out);
cek_status cek__sim_mem_unmap(cek_mem *mem);
cek_status cek__sim_host_alloc(cek_dev *dev, uint64_t bytes, void **out);
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
cek_status cek__sim_cmdbuf_create(cek_dev *dev, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size,
                                  cek_cmdbuf **out);
void cek__sim_cmdbuf_destroy(cek_cmdbuf *cmdbuf);
cek_status cek__sim_cmdbuf_run(cek_queue *queue, cek_cmdbuf *cmdbuf);

#endif
