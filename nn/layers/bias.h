/* bias.h - a parameter "bias" for each place on one axis. */
#ifndef CEK_NN_LAYERS_BIAS_H
#define CEK_NN_LAYERS_BIAS_H

#include "nn/model/layer.h"

/* *out = y + bias, which has a number for each place on `axis` of y. */
CEK__CHECKED cek_status cek__bias_add(cek__layer *layer, int y, int axis, double fan_in, int *out);

#endif
