/* nets.h - networks as functions: each adds its layers to a new model by public calls, under the names that its
 * parameters have in torchvision, so that state dicts go either way.
 *
 * Images of any size that the windows fit and of any number of channels; torchvision's are 3x224x224. Parameters are
 * initialised as there too. Must not know: what a layer computes, data, devices. */
#ifndef CEK_NN_NETS_NETS_H
#define CEK_NN_NETS_NETS_H

#include "cekernels/nn.h"
#include "core/base/status.h"

/* He et al. 2015; of the bottlenecks of the large one the 3x3 convolution has the stride. */
CEK__CHECKED cek_status cek__resnet18(cek_model *model, int64_t classes);
CEK__CHECKED cek_status cek__resnet50(cek_model *model, int64_t classes);
/* Sandler et al. 2018 */
CEK__CHECKED cek_status cek__mobilenet_v2(cek_model *model, int64_t classes);

/* On bytes, an input [T] of whole numbers; 128 wide, four heads; with its loss. Not torchvision's: names
 * as gpt.c says. */
CEK__CHECKED cek_status cek__gpt(cek_model *model, int64_t layers);

#endif
