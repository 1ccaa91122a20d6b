/* augment.h - images that are changed by chance when they are read (nn.h: cek_dataset_augment).
 *
 * What becomes of a sample is a function of the draw (dataset.h) and its row; without a draw it is left as it is. */
#ifndef CEK_NN_DATA_AUGMENT_H
#define CEK_NN_DATA_AUGMENT_H

#include "nn/data/dataset.h"

CEK__CHECKED cek_status cek__augment_dataset(const cek_dataset *dataset, const cek_augment_options *options,
                                             cek_dataset **out);

#endif
