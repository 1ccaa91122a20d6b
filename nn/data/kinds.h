/* kinds.h - which form the data at a place have, by the names that are there; and such data as a data set,
 * whatever their form.
 *
 * Must not know: what is in a file (each form's own header). */
#ifndef CEK_NN_DATA_KINDS_H
#define CEK_NN_DATA_KINDS_H

#include "nn/data/dataset.h"

/* nn.h: cek_data_recognize, cek_dataset_open. */
CEK__CHECKED cek_status cek__kind_find(const char *path, cek_data_kind *out);
CEK__CHECKED cek_status cek__kind_open(const char *path, bool train, const cek_image_options *images,
                                       cek_dataset **out);

#endif
