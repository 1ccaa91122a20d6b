/* common.h - common subexpressions, behind differentiate.h and before physical.h: what several parts compute alike is
 * computed once.
 *
 * Of what belongs to no sample, or is one number for each. What grows with the batch would have to be kept from the
 * first reader to the last, where computing it again may be the cheaper. */
#ifndef CEK_NN_GRAPH_COMMON_H
#define CEK_NN_GRAPH_COMMON_H

#include "nn/graph/graph.h"

/* Errors: CEK_OUT_OF_MEMORY. */
CEK__SHARED CEK__CHECKED cek_status cek__common(cek__graph *graph);

#endif
