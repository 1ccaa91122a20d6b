/* arrays.h - arrays in files as samples: x, one along the first axis for each, and y, what they should become.
 *
 * Files: .npy of NumPy, archives of such (.npz), safetensors. What each array means follows from its type
 * and axes (data.h).
 * Must not know: how such files are made up (nn/formats). */
#ifndef CEK_NN_DATA_ARRAYS_H
#define CEK_NN_DATA_ARRAYS_H

#include <stdbool.h>

#include "nn/data/dataset.h"

/* Files of more bytes than this stay where they are; what they hold is read when a batch wants it. */
enum { CEK__ARRAYS_HELD = 256 << 20 };

/* nn.h: cek_dataset_npy. An x of more than `held` bytes stays in its file, where its type allows it. */
CEK__SHARED CEK__CHECKED cek_status cek__npy_dataset(const char *x, const char *y, uint64_t held, cek_dataset **out);

/* Whether a place is named like one with arrays (.npz, .safetensors), or is a folder that has
 * them (x.npy, x_train.npy). */
bool cek__arrays_there(const char *path);
/* x_train and y_train, or x and y; for testing x_test and y_test. CEK_NOT_FOUND: there is no such part. */
CEK__CHECKED cek_status cek__arrays_dataset(const char *path, bool train, cek_dataset **out);

#endif
