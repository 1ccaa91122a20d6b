/* callback.h - samples that a function of the caller's gives (nn.h: cek_dataset_source). */
#ifndef CEK_NN_DATA_CALLBACK_H
#define CEK_NN_DATA_CALLBACK_H

#include "nn/data/dataset.h"

/* `destroy` is not called if this fails. */
CEK__CHECKED cek_status cek__callback_dataset(const cek_source_options *options, cek_dataset **out);

#endif
