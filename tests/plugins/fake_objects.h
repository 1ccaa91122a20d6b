/* fake_objects.h - the fake plugin's objects, and what its two files know of each other. */
#ifndef CEK_TESTS_PLUGINS_FAKE_OBJECTS_H
#define CEK_TESTS_PLUGINS_FAKE_OBJECTS_H

#include <cekernels/plugin.h>
#include <pthread.h>

#include "fake.h"

enum { INPUTS_MAX = 8 };

/* fake.c: what the test steers, and what the file's name says. */
extern fake_control control;
extern char plugin_name[64];
bool mode_is(const char *mode);

/* Every object is made and unmade here, and counted. */
void *make(size_t size);
void unmake(void *object);
cek_status fail(const cek_instance *in, cek_status status, const char *text);

struct cek_instance {
    cek_host host;
    pthread_mutex_t lock; /* over all queues: a wait on one may run another */
};
struct cek_dev {
    cek_instance *instance;
};
struct cek_mem {
    cek_dev *dev;
    uint64_t bytes;
    uint8_t *data;
};
struct cek_op {
    uint32_t inputs, instructions, rank;
    uint64_t shape[CEK_RANK_MAX];
    int64_t out_strides[CEK_RANK_MAX];
    cek_pointwise_input input[INPUTS_MAX];
    cek_pointwise_instruction instruction[CEK_POINTWISE_INSTRUCTIONS];
};

/* Where a call may be told to block (fake_control). */
void block(fake_call call);

/* fake_queue.c: slots of the table. */
cek_status queue_create(cek_dev *dev, const cek_queue_desc *desc, cek_queue **out);
void queue_destroy(cek_queue *queue);
cek_status queue_status(cek_queue *queue, char *text, uint64_t cap);
cek_status queue_sync(cek_queue *queue, uint64_t timeout_ns);
cek_status upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes);
cek_status download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes);
cek_status copy(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes);
cek_status fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes);
cek_status update(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes);
cek_status op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count, cek_ref workspace);
cek_status event_create(cek_dev *dev, const cek_event_desc *desc, cek_event **out);
void event_destroy(cek_event *event);
cek_status event_record(cek_queue *queue, cek_event *event);
cek_status event_wait(cek_queue *queue, cek_event *event);
cek_status event_query(cek_event *event);
cek_status event_sync(cek_event *event, uint64_t timeout_ns);
cek_status event_status(cek_event *event, char *text, uint64_t cap);
cek_status event_elapsed(cek_event *start, cek_event *end, uint64_t *ns);

#endif
