/* SPDX-License-Identifier: MIT
 *
 * opencl.h - the OpenCL driver inside: instances, devices, memory, queues and events over the ICD loader.
 *
 * Drivers are taken at their worst: allocations are lazy, errors do not stick, a wait on what
 * failed never ends, nothing has a deadline. So memory is touched before it counts as allocated;
 * every command's event is kept in its queue's ledger until its status was looked at; and every
 * wait polls, up to a deadline.
 */
#ifndef CEK_BACKENDS_OPENCL_OPENCL_H
#define CEK_BACKENDS_OPENCL_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include "backends/gpu/program.h"

extern const cek__gpu_driver cek__opencl_driver;

/* A device as it was found. */
typedef struct found_device {
    cl_platform_id platform;
    cl_device_id id;
    bool part; /* a sub-device, which is ours to release */
} found_device;

typedef struct cek__clblast cek__clblast;

typedef struct opencl_instance {
    cek_instance head;
    pthread_mutex_t allocation; /* one at a time: each sees the memory that the one before it took */
    uint32_t count;
    found_device *devices;
    pthread_mutex_t clblast_lock; /* of the two below: CLBlast is looked for when it is first asked of */
    bool clblast_sought;
    cek__clblast *clblast; /* or NULL */
} opencl_instance;

typedef struct pinned_block pinned_block;
typedef struct stage_place stage_place;

/* Functions of cl_khr_command_buffer; all NULL where the driver has not what cmdbuf.c wants. */
typedef struct cek__opencl_recorder cek__opencl_recorder;
typedef void *cek__opencl_recording;
struct cek__opencl_recorder {
    cek__opencl_recording (*create)(cl_uint queue_count, const cl_command_queue *queues, const cl_bitfield *properties,
                                    cl_int *error);
    cl_int (*launch)(cek__opencl_recording recording, cl_command_queue queue, const cl_bitfield *properties,
                     cl_kernel kernel, cl_uint dims, const size_t *offset, const size_t *global, const size_t *local,
                     cl_uint wait_count, const cl_uint *waits, cl_uint *point, void *mutable_handle);
    cl_int (*finalize)(cek__opencl_recording recording);
    cl_int (*release)(cek__opencl_recording recording);
    cl_int (*enqueue)(cl_uint queue_count, cl_command_queue *queues, cek__opencl_recording recording,
                      cl_uint wait_count, const cl_event *waits, cl_event *event);
};

typedef struct opencl_dev {
    cek_dev head;
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;
    bool host_memory;  /* device memory is host memory: allocations are held against the host's and touched */
    bool fine_grained; /* and may be used from both sides without mapping */
    bool pins;         /* copies are faster from page-locked memory: not where a processor makes them */
    uint64_t max_alloc_bytes;
    bool keeps_kernels; /* compiled kernels are stored on disk by us; not where the driver does so itself */
    char build_options[80];
    char cache_key[64]; /* device and driver, for file names of compiled kernels */
    atomic_bool clblast_used;
    atomic_uint_fast64_t generations; /* memories that were made */
    cek__opencl_recorder recorder;
    pthread_mutex_t own_lock; /* of the queue for what is done when objects are made */
    cek_queue *own;           /* made when it is first needed */
    /* Of all ledgers of the device, which look into each other: two queues that wait for each
     * other's events in turn would lock each other out with a lock each. Recursive, because such a
     * look can come back to where it began. */
    pthread_mutex_t ledgers_lock;
    pthread_mutex_t programs_lock; /* of the two lists below */
    cek__gpu_program *programs;
    pinned_block *pinned;
    pthread_mutex_t stage_lock;
    stage_place *stage;              /* places for updates that are free */
    _Atomic(unsigned char *) places; /* all of them, NULL where there are none */
    atomic_bool staged;              /* somebody makes them, or has */
} opencl_dev;

typedef struct opencl_mem {
    cek_mem head;
    cl_mem buffer;
    void *block;           /* fine-grained SVM, or NULL */
    unsigned char *shared; /* where the buffer stands in it */
    uint64_t generation;   /* of all memories of the device this one's alone, for ever */
    atomic_bool mapped;
    void *map;
} opencl_mem;
#define CEK__GENERATION_FIRST 2

/* What a queue enqueued and nobody has looked at yet, in order. Outlives its queue while events refer to it. */
typedef struct ledger ledger;

struct cek_queue {
    opencl_dev *dev;
    cl_command_queue queue;
    cl_command_queue clock; /* profiled, of markers alone; made by the first record that is timed */
    bool timing;
    bool unflushed; /* something was enqueued that the driver may keep to itself */
    uint64_t deadline_ns;
    ledger *ledger;
};

/* --- status.c --------------------------------------------------------------------------------- */

/* cek__opencl_error - "CL_OUT_OF_RESOURCES"; cek__opencl_status - what plugin.h calls it. */
const char *cek__opencl_error(cl_int error);
cek_status cek__opencl_status(cl_int error);
/* cek__opencl_judge - the same of a call on an open device: asks it whether it still works where that is in doubt. */
cek_status cek__opencl_judge(opencl_dev *dev, cl_int error);
/* cek__opencl_ended - the same of a command that was enqueued and ended with this error. */
cek_status cek__opencl_ended(cl_int error);
/* cek__opencl_fail - reports an OpenCL call that failed and returns its status; latches the loss of a device. */
cek_status cek__opencl_fail(opencl_dev *dev, const char *call, const char *function, cl_int error);

/* --- info.c: what the driver says of a device --------------------------------------------------- */

/* A number, or a text without spaces around it; 0 or "" where the driver does not say. */
uint32_t cek__opencl_number(cl_device_id id, cl_device_info what);
uint64_t cek__opencl_long(cl_device_id id, cl_device_info what);
/* cek__opencl_max_alloc - bytes that the driver gives at once, CEK_UNKNOWN where it does not say. */
uint64_t cek__opencl_max_alloc(cl_device_id id);
void cek__opencl_text(cl_device_id id, cl_device_info what, char *to, uint64_t cap);
bool cek__opencl_has(cl_device_id id, const char *extension);
bool cek__opencl_is_cpu(cl_device_id id);
/* A simulator that looks for mistakes: nobody wants to train on it unasked. */
bool cek__opencl_is_simulator(cl_platform_id platform);
/* Its memory is the host's: a processor's, an integrated GPU's. And both sides may use it without mapping. */
bool cek__opencl_in_host_memory(const found_device *found);
bool cek__opencl_shares_memory(const found_device *found);

/* Where a card sits. */
typedef struct cek__opencl_card {
    int domain; /* or -1: not told */
    uint32_t bus, slot, function;
} cek__opencl_card;
/* cek__opencl_place - false where nobody tells. */
bool cek__opencl_place(cl_device_id id, cek__opencl_card *to);
void cek__opencl_place_text(const cek__opencl_card *card, char *to, uint64_t cap);

/* cek__opencl_numeric_id - of what this build computes on a device; _with: of another build, with other algorithms. */
uint64_t cek__opencl_numeric_id(const found_device *found);
uint64_t cek__opencl_numeric_id_with(const found_device *found, const char *algorithms);
void cek__opencl_memory_tell(const found_device *found, uint64_t *free_bytes, uint64_t *total_bytes);
cek_status cek__opencl_found(cek_instance *head, const char *call, uint32_t index, const found_device **out);

/* --- probe.c ------------------------------------------------------------------------------------ */

/* cek__opencl_probe - CEK_OK, or CEK_UNAVAILABLE with the reason where listing the devices of the installed drivers
 * would end this process. */
cek_status cek__opencl_probe(const cek_host *host);

/* --- admission.c -------------------------------------------------------------------------------- */

/* cek__opencl_joins - whether a device joins a job by itself; if not, `why` says why not. */
bool cek__opencl_joins(const opencl_instance *instance, const found_device *found, char *why, uint64_t cap);

/* --- ledger.c --------------------------------------------------------------------------------- */

ledger *cek__ledger_create(opencl_dev *dev);
ledger *cek__ledger_share(ledger *of);
void cek__ledger_release(ledger *of);

/* cek__ledger_reserve - room for one more command, before it is enqueued; a new ledger has it.
 * False without memory. cek__ledger_add - takes over the event of a command that was enqueued just
 * now (`call` names it) and `copy`, the place of the stage that it reads (may be NULL), into room that was
 * reserved. */
bool cek__ledger_reserve(ledger *to);
void cek__ledger_add(ledger *to, cl_event event, const char *call, void *copy);
/* cek__ledger_depend - the next command to be added waits for `position` of another ledger. */
void cek__ledger_depend(ledger *to, ledger *on, uint64_t position);
/* cek__ledger_end - the position behind everything enqueued so far. */
uint64_t cek__ledger_end(ledger *of);
/* cek__ledger_look - CEK_OK if all before `position` has finished, CEK_NOT_READY, or the failure of
 * something before it, with its text copied to `text` (CEK__TEXT_BYTES, may be NULL).
 * CEK__LEDGER_ALL: all that is there now, and any failure. */
#define CEK__LEDGER_ALL UINT64_MAX
cek_status cek__ledger_look(ledger *of, uint64_t position, char *text);
/* cek__ledger_failure - the failure that is known already, or CEK_OK. Asks the driver nothing. */
cek_status cek__ledger_failure(ledger *of, char *text);
/* cek__ledger_wait - looks until the answer is not CEK_NOT_READY or the time is over: CEK_TIMEOUT.
 * Sleeps until the driver tells of the last of the commands, and looks now and then. */
cek_status cek__ledger_wait(ledger *of, uint64_t position, uint64_t timeout_ns, char *text);
/* cek__ledger_drain - waits until nothing of the queue runs any more, whatever became of it:
 * CEK_OK, its failure, or CEK_TIMEOUT. */
cek_status cek__ledger_drain(ledger *of, uint64_t timeout_ns);
/* cek__ledger_fail - a failure of our own sticks; the first one stays. */
void cek__ledger_fail(ledger *of, cek_status status, const char *text);
/* cek__ledger_event - the event of the last command before `position`, retained; NULL where that was seen to have
 * finished, or there is none: whatever is enqueued now comes behind it. */
cl_event cek__ledger_event(ledger *of, uint64_t position);

/* --- bell.c ----------------------------------------------------------------------------------- */

typedef struct bell bell;
/* cek__bell_hang - the driver rings it when the command has ended; NULL: it takes none. cek__bell_wait - until it has
 * rung, or the time is over: false. */
bell *cek__bell_hang(cl_event event);
bool cek__bell_wait(bell *b, uint64_t ns);
void cek__bell_drop(bell *b);

/* --- program.c, launch.c ---------------------------------------------------------------------- */

void cek__opencl_programs_free(opencl_dev *dev);
cek_status cek__opencl_kernel_load(cek_dev *dev, const char *source, const char *defines, const char *name,
                                   cek__gpu_kernel **out);
/* cek__opencl_kernel_copy - the same kernel with arguments of its own, none set. */
cek_status cek__opencl_kernel_copy(cek_dev *dev, const cek__gpu_kernel *of, cek__gpu_kernel **out);
void cek__opencl_kernel_free(cek_dev *dev, cek__gpu_kernel *kernel);
uint32_t cek__opencl_kernel_group(const cek__gpu_kernel *kernel);
cek_status cek__opencl_kernel_warm(cek_dev *dev, const cek__gpu_step *step);
cek_status cek__opencl_launch(cek_queue *queue, const cek__gpu_step *step, const cek_ref *refs);
/* What a launch consists of: the arguments of a step, those that differ from what was set last; its grid; the launch
 * with what is set, named `call` where it fails. */
cl_int cek__opencl_arguments_set(cek__gpu_kernel *kernel, const cek__gpu_step *step, const cek_ref *refs);
void cek__opencl_grid(const cek__gpu_step *step, size_t global[3], size_t local[3]);
cek_status cek__opencl_kernel_enqueue(cek_queue *queue, const char *call, const cek__gpu_kernel *kernel,
                                      const size_t global[3], const size_t local[3]);
cl_kernel cek__opencl_kernel_object(const cek__gpu_kernel *kernel);

/* --- stage.c ---------------------------------------------------------------------------------- */

/* cek__opencl_stage_make - the places, once for a device; `call` names who wants them.
 * cek__opencl_stage_take - memory for an update of `bytes`, at most CEK__UPDATE_MAX, from which the device reads.
 * stage_give - it has (NULL is nothing). */
cek_status cek__opencl_stage_make(opencl_dev *dev, const char *call);
cek_status cek__opencl_stage_take(opencl_dev *dev, uint64_t bytes, void **out);
void cek__opencl_stage_give(opencl_dev *dev, void *place);

/* --- queue.c ---------------------------------------------------------------------------------- */

/* cek__opencl_enqueued - every command ends with it: its event is kept in the ledger (cek__ledger_add). */
void cek__opencl_enqueued(cek_queue *queue, cl_event event, const char *call, void *copy);
/* cek__opencl_queue_flush - what was enqueued since the last one starts without further calls. */
cl_int cek__opencl_queue_flush(cek_queue *queue);
/* cek__opencl_queue_clock - a marker that ends when all that was enqueued has, and tells when that was. */
cek_status cek__opencl_queue_clock(cek_queue *queue, const char *call, cl_event *marker);
/* cek__opencl_own_take - the device's own queue, nobody else's until it is given back; nothing is under way there.
 * own_give - with the outcome: a queue that failed, or whose work did not end, is given up. */
cek_status cek__opencl_own_take(opencl_dev *dev, cek_queue **out);
void cek__opencl_own_give(opencl_dev *dev, cek_status outcome);

/* --- clblast.c -------------------------------------------------------------------------------- */

extern const cek__gpu_provider cek__clblast_provider;
void cek__clblast_free(cek__clblast *clblast);
/* cek__clblast_device_close - CLBlast is not used for the device any more; before its context is released. */
void cek__clblast_device_close(opencl_dev *dev);

/* --- slots of the table ----------------------------------------------------------------------- */

extern const char cek__opencl_build[];
cek_status cek__opencl_create(const cek_host *host, cek_instance **out);
void cek__opencl_destroy(cek_instance *instance);
uint32_t cek__opencl_device_count(cek_instance *instance);
cek_status cek__opencl_device_info(cek_instance *instance, uint32_t index, cek_device_info *info);
cek_status cek__opencl_device_open(cek_instance *instance, uint32_t index, const cek_device_options *options,
                                   cek_dev **out);
void cek__opencl_device_close(cek_dev *dev);
cek_status cek__opencl_device_memory(cek_dev *dev, uint64_t *free_bytes, uint64_t *total_bytes);

cek_status cek__opencl_mem_alloc(cek_dev *dev, const cek_mem_desc *desc, cek_mem **out);
void cek__opencl_mem_free(cek_mem *mem);
void *cek__opencl_mem_host_ptr(cek_mem *mem);
cek_status cek__opencl_mem_map(cek_mem *mem, uint32_t access, void **out);
cek_status cek__opencl_mem_unmap(cek_mem *mem);
cek_status cek__opencl_host_alloc(cek_dev *dev, uint64_t bytes, void **out);
/* cek__opencl_pinned_alloc - page-locked memory for `call`, which host_free or the device's end gives back. */
cek_status cek__opencl_pinned_alloc(opencl_dev *dev, const char *call, uint64_t bytes, void **out);
void cek__opencl_host_free(cek_dev *dev, void *ptr);
void cek__opencl_pinned_free(opencl_dev *dev);

cek_status cek__opencl_queue_create(cek_dev *dev, const cek_queue_desc *desc, cek_queue **out);
void cek__opencl_queue_destroy(cek_queue *queue);
cek_status cek__opencl_queue_status(cek_queue *queue, char *text, uint64_t cap);
cek_status cek__opencl_queue_sync(cek_queue *queue, uint64_t timeout_ns);
cek_status cek__opencl_upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes);
cek_status cek__opencl_download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes);
cek_status cek__opencl_copy(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes);
cek_status cek__opencl_fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes);
cek_status cek__opencl_update(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes);
/* cek__opencl_queue_ready - CEK_OK: one more command has room in the ledger; the latched loss, the
 * failure that stuck, or CEK_OUT_OF_MEMORY, which does not stick. */
cek_status cek__opencl_queue_ready(cek_queue *queue, const char *call);
cek_dev *cek__opencl_queue_dev(cek_queue *queue);
void cek__opencl_queue_fail(cek_queue *queue, cek_status status, const char *text);

/* cek__opencl_recorder_find - what there is of cl_khr_command_buffer. */
void cek__opencl_recorder_find(opencl_dev *dev);
cek_status cek__opencl_cmdbuf_create(cek_dev *dev, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size,
                                     cek_cmdbuf **out);
void cek__opencl_cmdbuf_destroy(cek_cmdbuf *cmdbuf);
cek_status cek__opencl_cmdbuf_run(cek_queue *queue, cek_cmdbuf *cmdbuf);

cek_status cek__opencl_event_create(cek_dev *dev, const cek_event_desc *desc, cek_event **out);
void cek__opencl_event_destroy(cek_event *event);
cek_status cek__opencl_event_record(cek_queue *queue, cek_event *event);
cek_status cek__opencl_event_wait(cek_queue *queue, cek_event *event);
cek_status cek__opencl_event_query(cek_event *event);
cek_status cek__opencl_event_sync(cek_event *event, uint64_t timeout_ns);
cek_status cek__opencl_event_status(cek_event *event, char *text, uint64_t cap);
cek_status cek__opencl_event_elapsed(cek_event *start, cek_event *end, uint64_t *ns);

#endif
