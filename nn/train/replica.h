/* replica.h - one device's copy of a model: parameters, gradients, plans, and the memory they run in.
 *
 * Owns: device memory, streams, at most CEK__REPLICA_PLANS training plans. Must not know: other
 * replicas (see reducer.h), the optimizer, where batches come from. One thread at a time. */
#ifndef CEK_NN_TRAIN_REPLICA_H
#define CEK_NN_TRAIN_REPLICA_H

#include "cekernels/nn.h"
#include "core/base/export.h"
#include "nn/model/layout.h"
#include "nn/model/model.h"
#include "nn/model/plan.h"
#include "nn/train/samples.h"

enum { CEK__REPLICA_PLANS = 4 };

typedef struct cek__replica cek__replica;

typedef struct cek__replica_options {
    bool training;
    cek_loss loss; /* 0: prediction, with outputs */
    bool softmax;
    const int *outputs; /* as in cek__plan_options; they outlive the replica */
    size_t output_count;
    bool cut_forward;      /* in the layout's segments, for a device that gets its parameters from others */
    cek_dtype input_type;  /* of the samples in host memory */
    cek__targets targets;  /* with a loss */
    int64_t rows;          /* the largest share of a batch, and the largest micro-batch */
    int64_t micro_most;    /* samples of a micro-batch at most; 0: as many as fit */
    int64_t group;         /* samples that a run has, as the model computes with them together; 0: as memory wants it */
    uint64_t memory_limit; /* of this replica in bytes, on the fallback too; 0: what the device has free */
    uint64_t optimizer_bytes; /* of the limit, taken by others: optimizer state and inboxes */
    uint32_t math;            /* as in cek__plan_options */
    cek_device *fallback;     /* as in cek__plan_options; which operations it does is logged */
} cek__replica_options;

/* A share of a batch in host memory. */
typedef struct cek__share {
    const void *inputs[CEK_INPUTS_MOST]; /* rows of each */
    const void *targets;                 /* rows of int32_t labels or float values */
    int64_t rows;
    uint64_t sample_base; /* position in the global batch */
    bool is_ours;         /* in memory that a driver may go on using after a failure; a caller's is copied before */
} cek__share;

/* Called after each backward segment of the last micro-batch: gradients of the buckets below
 * `buckets` are queued on the compute stream and their parameters will not be read again. */
typedef cek_status (*cek__segment_fn)(void *user, size_t buckets);

/* `layout` and `model` outlive the replica. Chooses the micro-batch: the largest that fits the
 * memory, by estimate and then by trying. Errors: CEK_OUT_OF_MEMORY says what one sample needs and
 * what there is. */
CEK__CHECKED cek_status cek__replica_create(const cek_model *model, const cek__layout *layout, cek_device *device,
                                            const cek__replica_options *options, cek__replica **out);
void cek__replica_free(cek__replica *replica);

const cek__layout *cek__replica_layout(const cek__replica *replica);
cek_device *cek__replica_device(const cek__replica *replica);
cek_stream *cek__replica_stream(const cek__replica *replica); /* computes */
bool cek__replica_is_inline(const cek__replica *replica);     /* commands have been executed when they are enqueued */
uint64_t cek__replica_element_bytes(const cek__replica *replica);
const cek_memory *cek__replica_parameter_memory(const cek__replica *replica, size_t bucket);
const cek_memory *cek__replica_rounded_memory(const cek__replica *replica, size_t bucket); /* NULL: it has no copies */
const cek_memory *cek__replica_gradient_memory(const cek__replica *replica, size_t bucket);
cek_ref cek__replica_parameters(const cek__replica *replica, size_t bucket);
cek_ref cek__replica_rounded(const cek__replica *replica, size_t bucket);
cek_ref cek__replica_gradients(const cek__replica *replica, size_t bucket);
cek_ref cek__replica_step_block(const cek__replica *replica);
int64_t cek__replica_micro_batch(const cek__replica *replica);
uint64_t cek__replica_bytes(const cek__replica *replica);

/* Copies the model's parameters to the device, a bucket of them with its rounded copies (NULL: what the host rounds
 * them to), or bytes to or from it; all wait. */
CEK__CHECKED cek_status cek__replica_load(cek__replica *replica, const cek_model *model);
CEK__CHECKED cek_status cek__replica_write_bucket(cek__replica *replica, size_t bucket, const void *parameters,
                                                  const uint16_t *rounded);
/* What evaluation reads beside parameters: values[model->buffer_elements]. */
CEK__CHECKED cek_status cek__replica_load_buffers(cek__replica *replica, const float *values);
CEK__CHECKED cek_status cek__replica_write(cek__replica *replica, cek_ref dst, const void *src, uint64_t bytes);
CEK__CHECKED cek_status cek__replica_read(cek__replica *replica, cek_ref src, void *dst, uint64_t bytes);

/* Wait, with a deadline past which the device hangs: for all that the replica has queued (then it reads no host memory
 * any more), for another stream of its device, for a marker. */
CEK__CHECKED cek_status cek__replica_drain(cek__replica *replica);
CEK__CHECKED cek_status cek__replica_drain_stream(cek_stream *stream);
CEK__CHECKED cek_status cek__replica_await(cek_marker *marker);
/* Whether such a wait says that all has ended, well or not (plugin.h, queue_sync). */
static inline bool cek__replica_drained(cek_status st)
{
    return st != CEK_DEVICE_LOST;
}
/* After a failure here or elsewhere, whose text stays: waits for what is queued. True if the device uses no host memory
 * of the caller's any more; false if it is lost or hangs. */
CEK__SHARED bool cek__replica_quiesce(cek__replica *replica);

/* The largest share of a batch from now on; micro-batches stay as they are. */
void cek__replica_set_most(cek__replica *replica, int64_t rows);
int64_t cek__replica_most(const cek__replica *replica);
/* Makes a plan for shares of `rows`, and room for it in place of older ones, when nothing is under way. Where there is
 * no memory for that, such shares are padded. */
CEK__CHECKED cek_status cek__replica_prepare(cek__replica *replica, int64_t rows);

/* Bytes that a copy of the largest share takes, and that copy: *out is the share with its samples at `batch`. */
uint64_t cek__replica_share_bytes(const cek__replica *replica);
void cek__replica_copy_share(const cek__replica *replica, const cek__share *share, unsigned char *batch,
                             cek__share *out);

/* Queues the upload of the first micro-batch of the share that is computed next, where there is room for it beside what
 * is being computed; else does nothing. When the share before it is queued whole. */
CEK__CHECKED cek_status cek__replica_upload_ahead(cek__replica *replica, const cek__share *share);

/* Segments of forward, and which buckets they read, as in cek__order_options. */
size_t cek__replica_forward_count(const cek__replica *replica, const size_t **reads);

/* Queue: the step block, which goes with the first samples' batch block; forward of the share's first micro-batch,
 * segment after segment; then its backward, and forward and backward of all others, into the gradients. A share has at
 * least one row. */
void cek__replica_set_step(cek__replica *replica, const cek_step_block *block);
CEK__CHECKED cek_status cek__replica_forward(cek__replica *replica, const cek__share *share, size_t segment);
CEK__CHECKED cek_status cek__replica_train(cek__replica *replica, const cek__share *share, cek__segment_fn segment,
                                           void *user);

/* set_updates - commands that make new parameters of whole gradients, which train_whole queues behind backward: they
 * stay as they are, with their operands, until others are set (0: none). train_whole - forward, backward, updates and
 * the result, as one; `is_whole` says whether a share can go through so: it is one micro-batch, and nobody wants to see
 * what lies between. */
CEK__CHECKED cek_status cek__replica_set_updates(cek__replica *replica, const cek_cmd *updates, uint32_t count);
/* Where the device takes no such call, it goes in parts from then on. */
bool cek__replica_is_whole(const cek__replica *replica, const cek__share *share);
CEK__CHECKED cek_status cek__replica_train_whole(cek__replica *replica, const cek__share *share);

/* Forward alone in evaluation mode: adds up loss and right answers. */
CEK__CHECKED cek_status cek__replica_evaluate(cek__replica *replica, const cek__share *share);

/* Queues the download of the sums of loss and right answers to `tally`, and sets them to 0; of a whole step, what they
 * were at its end. When that has finished, read_tally says what they are. */
enum { CEK__TALLY_BYTES = 2 * CEK_ALIGNMENT };
/* With what the runs add to the model's buffers behind loss and right answers; how many runs a share of so
 * many rows is. */
uint64_t cek__replica_tally_bytes(const cek__replica *replica);
int64_t cek__replica_runs(const cek__replica *replica, int64_t rows);
CEK__CHECKED cek_status cek__replica_count(cek__replica *replica, unsigned char *tally);
CEK__CHECKED cek_status cek__replica_count_whole(cek__replica *replica, unsigned char *tally);
void cek__replica_read_tally(const cek__replica *replica, const unsigned char *tally, double *loss, int64_t *correct);
/* Waits for the queued work; the sums of loss and right answers since the last collect. */
CEK__CHECKED cek_status cek__replica_collect(cek__replica *replica, double *loss, int64_t *correct);
/* What was summed up counts for nothing. */
CEK__CHECKED cek_status cek__replica_forget(cek__replica *replica);

/* Prediction: outputs[rows][outputs] of f32 are there when it returns. */
CEK__CHECKED cek_status cek__replica_predict(cek__replica *replica, const cek__share *share, float *outputs);

#endif
