/* layout.h - where each parameter of a model lies in device memory: buckets, and the conversion to
 * and from PyTorch's order.
 *
 * A bucket is one device memory; a parameter lies in one bucket, contiguous, at a multiple of 256
 * bytes. The weights of a large linear layer lie in several, in pieces of whole rows: devices give less at once than
 * they have. What is cut, and where, follows from the model and the type alone, since sums over pieces round otherwise:
 * so no result depends on what a device gives. The same layout serves parameters, gradients and optimizer state, on
 * every device and for every micro-batch size, so that replicating, reducing, updating and saving are operations on
 * ranges of buckets. Bucket 0 holds the *last* layers' parameters: buckets are in the order in
 * which backward finishes them.
 * Where products read 16 bits, a parameter that nothing else reads has a rounded copy, which devices compute with and
 * send to each other; the full value is its owner's. In each bucket such parameters lie behind all others, and their
 * copies in one memory more.
 * Must not know: devices, plans, the trainer. */
#ifndef CEK_NN_MODEL_LAYOUT_H
#define CEK_NN_MODEL_LAYOUT_H

#include "cekernels/nn.h"
#include "core/base/export.h"
#include "nn/graph/graph.h"

/* A parameter, or a piece of one. */
typedef struct cek__placement {
    size_t parameter;
    uint64_t at; /* the parameter's element that it begins with: the same in PyTorch's order and the device's */
    uint64_t count;
    size_t bucket;
    uint64_t first; /* element in the bucket */
} cek__placement;

typedef struct cek__layout {
    cek_dtype type;            /* of parameters and gradients: CEK_F32 or CEK_F64 */
    cek_dtype low;             /* of what products read and give: CEK_BF16 or CEK_F16; CEK_DTYPE_NONE: as `type` */
    size_t bucket_count;       /* 0 for a model without parameters */
    uint64_t *bucket_elements; /* [bucket_count], padding included; padding is always zero */
    uint64_t *bucket_exact; /* [bucket_count]: elements in front of those that have a rounded copy; all without `low` */
    bool *rounded;          /* [parameter_count]: it has one */
    size_t parameter_count;
    cek__placement *placement; /* [piece_of[parameter_count]], by the model's numbers */
    cek__image *image;         /* [parameter_count]: how it lies, with all its pieces */
    size_t *piece_of;          /* [parameter_count + 1]: those of parameter p are piece_of[p] .. piece_of[p + 1] - 1 */
    /* Forward reads buckets from the last to the first. Cut before each layer that reads below what was read so far, it
     * has forward_count >= 1 segments; segment i reads no bucket below forward_reads[i], which falls to 0. */
    size_t forward_count;
    size_t *forward_reads;
} cek__layout;

/* type: CEK_F32, CEK_F64; or CEK_BF16, CEK_F16, which products read and give: parameters are f32 then. */
CEK__SHARED CEK__CHECKED cek_status cek__layout_create(const cek_model *model, cek_dtype type, cek__layout **out);
/* The same with pieces of another size than that of all trainers and predictors, for tests. */
CEK__SHARED CEK__CHECKED cek_status cek__layout_create_cut(const cek_model *model, cek_dtype type, uint64_t piece_bytes,
                                                           cek__layout **out);
CEK__SHARED void cek__layout_free(cek__layout *layout);

/* What it was created for. */
static inline cek_dtype cek__layout_computes(const cek__layout *layout)
{
    return layout->low ? layout->low : layout->type;
}

CEK__SHARED uint64_t cek__layout_bucket_bytes(const cek__layout *layout, size_t bucket);
/* Of a bucket's rounded copies; 0: it has none. */
CEK__SHARED uint64_t cek__layout_rounded_bytes(const cek__layout *layout, size_t bucket);

/* How a range of a bucket is read: the elements in front as they are, those behind rounded. */
typedef struct cek__halves {
    uint64_t exact, rounded; /* elements */
    uint64_t rounded_first;  /* of the bucket's copies, the first of them */
} cek__halves;
CEK__SHARED cek__halves cek__layout_halves(const cek__layout *layout, size_t bucket, uint64_t first, uint64_t end);

/* Of a parameter, all pieces together. */
static inline uint64_t cek__layout_elements(const cek__layout *layout, size_t parameter)
{
    const cek__placement *last = &layout->placement[layout->piece_of[parameter + 1] - 1];

    return last->at + last->count;
}

/* All parameters of one bucket between the model's host arrays (PyTorch's order, f32) and the bytes of a
 * device bucket. */
CEK__SHARED void cek__layout_pack(const cek__layout *layout, const cek_model *model, size_t bucket, void *dst);
CEK__SHARED void cek__layout_unpack(const cek__layout *layout, cek_model *model, size_t bucket, const void *src);

/* Rounded copies of a bucket in f32: to nearest even, overflow to infinity. */
CEK__SHARED void cek__layout_round(const cek__layout *layout, size_t bucket, const void *src, uint16_t *dst);

/* One parameter, device order (`src`: all of its elements, of `type`) to PyTorch's order as doubles: for
 * gradients. */
CEK__SHARED void cek__layout_unpack_one(const cek__layout *layout, size_t parameter, const void *src, double *dst);
CEK__SHARED void cek__layout_pack_one(const cek__layout *layout, size_t parameter, const double *src, void *dst);

#endif
