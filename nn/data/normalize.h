/* normalize.h - samples brought to mean 0 and deviation 1 by channel when they are
 * read (nn.h: cek_dataset_normalize). */
#ifndef CEK_NN_DATA_NORMALIZE_H
#define CEK_NN_DATA_NORMALIZE_H

#include "nn/data/dataset.h"

/* One number for each channel (the last axis in memory). */
CEK__CHECKED cek_status cek__normalize_dataset(const cek_dataset *dataset, const double *mean, const double *deviation,
                                               cek_dataset **out);

#endif
