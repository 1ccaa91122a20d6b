/* window.h - what convolutions and pools say about their windows. */
#ifndef CEK_NN_LAYERS_WINDOW_H
#define CEK_NN_LAYERS_WINDOW_H

#include "nn/model/layer.h"

/* CEK_INVALID where the first input is no image [N,C,H,W]. */
CEK__CHECKED cek_status cek__image_wanted(const cek__layer *layer);
/* One spatial axis: the output's size, or 0 if the window does not fit. */
int64_t cek__window_count(int64_t in, uint32_t kernel, uint32_t stride, uint32_t pad, uint32_t dilation);
/* ", stride 2" or ", stride 2x1"; nothing where both are the usual value. */
void cek__note_pair(cek__layer *layer, const char *name, uint32_t h, uint32_t w, uint32_t usual);

#endif
