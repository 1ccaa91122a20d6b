/* recurrent.h - LSTM and GRU over a fixed number of steps, of parts: each step reads the same weights.
 *
 * Must not know: models, devices. */
#ifndef CEK_NN_LAYERS_RECURRENT_H
#define CEK_NN_LAYERS_RECURRENT_H

#include "nn/graph/graph.h"

/* Flows, in PyTorch's order of gates (LSTM: i, f, g, o; GRU: r, z, n), each of H rows of the weights. 0:
 * none, or zeros. */
typedef struct cek__recurrent {
    int x;                      /* [N,T,D] */
    int w_input, w_state;       /* [gates * H, D], [gates * H, H] */
    int bias_input, bias_state; /* [gates * H] */
    int state, cell;            /* [N,H] before the first step; cell: of LSTM */
    bool reverse;               /* from the last step to the first */
} cek__recurrent;

/* What each step gives, in the order of x, and what is there behind the last that was computed. */
typedef struct cek__recurrence {
    int steps;       /* [N,T,H] */
    int state, cell; /* [N,H] */
} cek__recurrence;

/* Errors: CEK_INVALID for shapes that do not fit. */
CEK__SHARED CEK__CHECKED cek_status cek__layer_lstm(cek__graph *graph, const cek__recurrent *recurrent,
                                                    cek__recurrence *out);
CEK__SHARED CEK__CHECKED cek_status cek__layer_gru(cek__graph *graph, const cek__recurrent *recurrent,
                                                   cek__recurrence *out);

#endif
