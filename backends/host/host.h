/* SPDX-License-Identifier: MIT
 *
 * host.h - devices that live in host memory and execute their commands inline, on the calling thread.
 *
 * Owns instance, device, memory, queue, event, command buffer and the head of every operation; most slots of a plugin's
 * table are the functions below, used as they are. A backend on top adds device_count, device_info, device_open and
 * op_create, embeds these structs as the first member of its own, and gives each operation a `run` function on plain
 * pointers. All commands are validated here: `run` sees operands that are inside their memories and do not overlap.
 *
 *     struct cpu_dev { struct cek_dev head; struct pool *pool; };
 *     struct cpu_gemm { struct cek_op head; ... };
 *
 * Since a command has been executed when the call that enqueued it returns, queues hold no
 * commands: only the failure that stuck to them. Knows no operation, and no thread but the
 * caller's.
 */
#ifndef CEK_BACKENDS_HOST_HOST_H
#define CEK_BACKENDS_HOST_HOST_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <cekernels/plugin.h>

#include "backends/common/failure.h"
#include "backends/common/validate.h"
#include "backends/host/pages.h"

struct cek_instance {
    cek_host host;              /* zeroed where there is none */
    pthread_mutex_t allocation; /* one at a time: each sees the memory that the one before it took */
    uint64_t lease_bytes;       /* may be taken without looking at the system again */
};

struct cek_dev {
    cek_instance *instance;
    uint32_t index;
    cek__latch lost;
};

struct cek_mem {
    cek_dev *dev;
    unsigned char *base; /* aligned to CEK_ALIGNMENT */
    uint64_t bytes;
    uint64_t mapped_bytes; /* of the mmap, 0 where base is from the C library */
    bool foreign;          /* base is somebody else's (mem_import) */
    atomic_bool mapped;    /* between mem_map and mem_unmap */
};

struct cek_queue {
    cek_dev *dev;
    bool timing;
    cek__failure failure; /* of work */
};

struct cek_event {
    cek_dev *dev;
    pthread_mutex_t lock; /* of all that follows: record and query may come from two threads */
    bool timing, recorded;
    bool timed;           /* the latest record was in a queue with CEK_QUEUE_TIMING */
    cek__failure failure; /* of the queue at the latest record */
    uint64_t time_ns;
};

/* Executes the operation; `at` holds an address per slot, NULL for slots that are not given. Work that fails sets
 * the queue's failure. */
typedef void cek__op_run_fn(const cek_op *op, cek_queue *queue, void *const *at, void *workspace);
/* Writes the packed form of the plain weights. */
typedef void cek__op_prepack_fn(const cek_op *op, cek_queue *queue, void *const *at, void *packed);

/* Head of every operation. op_create fills it in: cek__host_op_init(), then info (without size), run, and the others if
 * needed, and hands it over with cek__host_op_publish(). */
struct cek_op {
    cek_dev *dev;
    cek__request request;
    /* workspace_bytes, reserve_bytes and prepack_bytes are what runs are checked against */
    cek_op_info info;
    cek__op_run_fn *run;
    cek__op_prepack_fn *prepack; /* NULL: none */
    void (*fini)(cek_op *op);    /* frees what the backend's own struct holds, not the struct; NULL: nothing */
};

/* --- for backends ------------------------------------------------------------------------------------------------- */

/* cek__host_instance_init, _fini - the head of an instance; `host` as given to create(). */
cek_status cek__host_instance_init(cek_instance *instance, const cek_host *host);
void cek__host_instance_fini(cek_instance *instance);

/* cek__host_device_init, _fini - the head of an open device. Checks `options`. */
cek_status cek__host_device_init(cek_dev *dev, cek_instance *instance, uint32_t index,
                                 const cek_device_options *options);
void cek__host_device_fini(cek_dev *dev);

/* cek__host_op_init - checks and copies the descriptor into a zeroed operation; `forward` is known to be of this device
 * afterwards. On error cek__host_op_fini() must not be called. */
cek_status cek__host_op_init(cek_op *op, cek_dev *dev, const cek_op_desc *desc);
void cek__host_op_fini(cek_op *op);

/* cek__host_op_publish - the last step of op_create: sets *info (may be NULL) and *out. On error
 * the operation is destroyed. */
cek_status cek__host_op_publish(cek_op *op, cek_op_info *info, cek_op **out);

/* cek__host_ready - CEK_OK, or the latched CEK_DEVICE_LOST with its text; the first thing that a
 * slot of the backend's own does. cek__host_queue_ready: that, or the failure that stuck to the
 * queue. `call` names the slot. */
static inline cek_status cek__host_ready(const cek_dev *dev, const char *call)
{
    return cek__latch_check(&dev->lost, &dev->instance->host, call, dev->index);
}
cek_status cek__host_queue_ready(const cek_queue *queue, const char *call);

/* cek__host_mem_bytes - a cek__mem_bytes_fn whose `user` is the device. */
bool cek__host_mem_bytes(const void *dev, const cek_mem *mem, uint64_t *bytes);

/* Checks of copy and fill for bytes > 0, shared by queues and command buffers, and the fill itself. */
cek_status cek__host_copy_check(cek_dev *dev, cek_ref dst, cek_ref src, uint64_t bytes);
void cek__host_fill_bytes(unsigned char *at, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes);

/* The operands of a run, checked, as addresses by slot. */
typedef struct cek__host_addresses {
    void *at[CEK__SLOTS];
    void *workspace;
} cek__host_addresses;
cek_status cek__host_op_addresses(cek_dev *dev, const cek_op *op, const cek_ref *operands, uint32_t count,
                                  cek_ref workspace, cek__host_addresses *out);

/* --- slots of the table, as plugin.h says ------------------------------------------------------------------------- */

cek_status cek__host_device_status(cek_dev *dev, char *text, uint64_t cap);
cek_status cek__host_device_memory(cek_dev *dev, uint64_t *free_bytes, uint64_t *total_bytes);

cek_status cek__host_mem_alloc(cek_dev *dev, const cek_mem_desc *desc, cek_mem **out);
void cek__host_mem_free(cek_mem *mem);
cek_status cek__host_mem_import(cek_dev *dev, const cek_foreign *foreign, cek_mem **out);
void *cek__host_mem_host_ptr(cek_mem *mem);
cek_status cek__host_mem_map(cek_mem *mem, uint32_t access, void **out);
cek_status cek__host_mem_unmap(cek_mem *mem);
cek_status cek__host_host_alloc(cek_dev *dev, uint64_t bytes, void **out);
cek_status cek__host_host_register(cek_dev *dev, void *ptr, uint64_t bytes);
void cek__host_host_unregister(cek_dev *dev, void *ptr);
void cek__host_host_free(cek_dev *dev, void *ptr);

cek_status cek__host_queue_create(cek_dev *dev, const cek_queue_desc *desc, cek_queue **out);
void cek__host_queue_destroy(cek_queue *queue);
cek_status cek__host_queue_status(cek_queue *queue, char *text, uint64_t cap);
cek_status cek__host_queue_sync(cek_queue *queue, uint64_t timeout_ns);
cek_status cek__host_upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes);
cek_status cek__host_download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes);
cek_status cek__host_copy_mem(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes);
cek_status cek__host_fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes);
cek_status cek__host_update(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes);

cek_status cek__host_event_create(cek_dev *dev, const cek_event_desc *desc, cek_event **out);
void cek__host_event_destroy(cek_event *event);
cek_status cek__host_event_record(cek_queue *queue, cek_event *event);
cek_status cek__host_event_wait(cek_queue *queue, cek_event *event);
cek_status cek__host_event_query(cek_event *event);
cek_status cek__host_event_sync(cek_event *event, uint64_t timeout_ns);
cek_status cek__host_event_status(cek_event *event, char *text, uint64_t cap);
cek_status cek__host_event_elapsed(cek_event *start, cek_event *end, uint64_t *ns);

/* op_destroy frees the operation with free(): a backend allocates its struct with calloc(). */
void cek__host_op_destroy(cek_op *op);
cek_status cek__host_op_prepack(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                                cek_ref packed);
cek_status cek__host_op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                            cek_ref workspace);

cek_status cek__host_cmdbuf_create(cek_dev *dev, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size,
                                   cek_cmdbuf **out);
void cek__host_cmdbuf_destroy(cek_cmdbuf *cmdbuf);
cek_status cek__host_cmdbuf_run(cek_queue *queue, cek_cmdbuf *cmdbuf);

#endif
