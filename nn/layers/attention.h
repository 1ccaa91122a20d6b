/* attention.h - scaled dot-product attention with several heads, of parts.
 *
 * Must not know: models, devices. */
#ifndef CEK_NN_LAYERS_ATTENTION_H
#define CEK_NN_LAYERS_ATTENTION_H

#include "nn/graph/graph.h"

typedef struct cek__attention {
    int q, k, v;   /* flows: [N,T,E], [N,S,E], [N,S,F] */
    int64_t heads; /* E and F are multiples of it */
    bool causal;   /* step t sees steps 0 to t alone */
    int mask;      /* a flow that is added to the scores [N,heads,T,S], to which it is broadcast; 0: none */
    double scale;  /* of the scores; 0: 1 / sqrt(E / heads) */
} cek__attention;

/* *out [N,T,F]: for each head the softmax over S of scale * q k^T, times v. Errors: CEK_INVALID for shapes that
 * do not fit. */
CEK__SHARED CEK__CHECKED cek_status cek__layer_attention(cek__graph *graph, const cek__attention *attention, int *out);

#endif
