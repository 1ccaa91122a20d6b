/* idx.h - reads IDX files (the format of MNIST and its relatives), plain or gzip-compressed.
 *
 * A file that is shorter or longer than its header says, of a type that is not read or of an impossible shape is
 * CEK_BAD_INPUT with a text that names it. Format: two zero bytes, the type, the rank, the dimensions and the values,
 * all big-endian (http://yann.lecun.com/exdb/mnist). */
#ifndef CEK_NN_DATA_IDX_H
#define CEK_NN_DATA_IDX_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"
#include "nn/data/dataset.h"

enum { CEK__IDX_RANK_MAX = 5 };

typedef struct cek__idx {
    cek_dtype type; /* CEK_U8, CEK_I32 or CEK_F32 */
    uint32_t rank;
    int64_t shape[CEK__IDX_RANK_MAX];
    void *data; /* in the host's byte order; free() */
} cek__idx;

/* *out is all zero on failure. */
CEK__SHARED CEK__CHECKED cek_status cek__idx_read(const char *path, cek__idx *out);

/* Images (count, height, width[, channels]) or rows (count, width) of u8 or f32, and as many labels of u8 or i32, each
 * below `class_count`. 0 classes: as many as the largest label says. A channel dimension of 1 is added
 * where none is. */
CEK__SHARED CEK__CHECKED cek_status cek__idx_dataset(const char *inputs_path, const char *labels_path,
                                                     int64_t class_count, cek_dataset **out);

/* The same; inputs of more than `held` bytes that are not compressed stay in their file. */
CEK__SHARED CEK__CHECKED cek_status cek__idx_dataset_held(const char *inputs_path, const char *labels_path,
                                                          int64_t class_count, uint64_t held, cek_dataset **out);

/* The training or the test pair of MNIST's names (train-..., t10k-...) in a folder, with or without .gz; 10 classes. */
CEK__SHARED CEK__CHECKED cek_status cek__idx_mnist(const char *folder, bool train, cek_dataset **out);

#endif
