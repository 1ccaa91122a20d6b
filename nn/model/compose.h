/* compose.h - from layers to the graph of parts: what a plan is made of. */
#ifndef CEK_NN_MODEL_COMPOSE_H
#define CEK_NN_MODEL_COMPOSE_H

#include "nn/graph/graph.h"
#include "nn/model/model.h"

typedef struct cek__purpose {
    bool training; /* the loss's gradient goes back to all parameters; every layer leads to the output */
    bool softmax;  /* a prediction gives probabilities */
    cek_loss loss; /* 0: a prediction */
    cek_dtype target_type;
} cek__purpose;

/* compose - the graph after all its passes, ready to be lowered; the caller clears it.
 * Errors: CEK_INVALID names a node that does not lead to the output and cannot be trained; CEK_OUT_OF_MEMORY. */
CEK__CHECKED cek_status cek__model_compose(const cek_model *model, const cek__purpose *purpose, cek__graph *out);

/* How each parameter lies on devices: images[parameter_count]. */
CEK__CHECKED cek_status cek__model_images(const cek_model *model, cek__image *images);

#endif
