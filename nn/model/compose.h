/* compose.h - from a model's graph to that of a plan: a loss at its end, then the passes. */
#ifndef CEK_NN_MODEL_COMPOSE_H
#define CEK_NN_MODEL_COMPOSE_H

#include "nn/graph/fold.h"
#include "nn/model/model.h"

typedef struct cek__purpose {
    bool training; /* the loss's gradient goes back to all parameters, which all lead to the output */
    bool softmax;  /* a prediction gives probabilities */
    cek_loss loss; /* 0: a prediction */
    cek_dtype target_type;
    /* A prediction of several nodes gives their elements one behind the other, of each sample; 0:
     * the model's output. */
    const int *outputs;
    size_t output_count;
    cek_dtype low;       /* of 16 bits, where products read and give them (nn/graph/types.h); CEK_DTYPE_NONE: nowhere */
    const bool *rounded; /* by parameter, whether it is kept in that type; NULL: wherever this graph can do with that */
    const cek__image *images;    /* by parameter, how it lies already; NULL: as its first reader wants it */
    const cek__folding *folding; /* of a prediction: what follows from weights comes first (fold.h); NULL: it stays */
} cek__purpose;

/* compose - the graph after all its passes, ready to be lowered; the caller clears it.
 * Errors: CEK_INVALID names a node whose parameters do not lead to the output and cannot
 * be trained; CEK_OUT_OF_MEMORY. */
CEK__SHARED CEK__CHECKED cek_status cek__model_compose(const cek_model *model, const cek__purpose *purpose,
                                                       cek__graph *out);

/* How each parameter lies on devices, images[parameter_count], and whether neither training nor evaluation reads it in
 * more than `low`, rounded[parameter_count]. */
CEK__CHECKED cek_status cek__model_images(const cek_model *model, cek_dtype low, cek__image *images, bool *rounded);

/* Whether a parameter is nothing but the right side of products, row by row: it may lie in pieces of whole rows. */
bool cek__model_is_divisible(const cek_model *model, size_t parameter);

#endif
