/* dataset.h - samples by number: inputs, and what they should become. What libcekernels-nn knows of a cek_dataset.
 *
 * An input is u8, f32 or i32 with a shape of its own, images channels last (height, width, channels). A target is
 * `target_width` class labels (i32) or values (f32). Views share the samples of their parent.
 * Threads: cek__dataset_read on one data set from any number of threads at once. */
#ifndef CEK_NN_DATA_DATASET_H
#define CEK_NN_DATA_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "cekernels/nn.h"
#include "core/base/export.h"

enum { CEK__DATA_RANK_MAX = 5 };

/* What one sample looks like; the same for all of a data set. */
typedef struct cek__data_format {
    cek_dtype input_type;                    /* CEK_U8, CEK_F32 or CEK_I32 */
    uint32_t input_rank;                     /* 1 to CEK__DATA_RANK_MAX, without the batch */
    int64_t input_shape[CEK__DATA_RANK_MAX]; /* of images (cek__data_is_image) channels last */
    cek_dtype target_type;                   /* CEK_I32: labels below class_count; CEK_F32: values */
    int64_t target_width;                    /* values or labels of a target */
    int64_t class_count;                     /* 0 for values */
} cek__data_format;

/* u8 or f32 of three axes: they lie channels last, all others in the order of their axes. */
CEK__SHARED bool cek__data_is_image(const cek__data_format *format);

/* CEK_INVALID unless that many such samples are possible; sizes computed from the format then fit size_t. */
CEK__SHARED CEK__CHECKED cek_status cek__data_format_check(const cek__data_format *format, int64_t count);

/* Arrays of `count` samples in memory. Labels out of range and values that are not finite are CEK_BAD_INPUT.
 *   borrow  the arrays stay the caller's and must outlive the data set and its views;
 *   copy    they may be freed at once;
 *   adopt   they become the data set's, which frees them with free(), on failure too. */
CEK__SHARED CEK__CHECKED cek_status cek__dataset_borrow(const cek__data_format *format, int64_t count,
                                                        const void *inputs, const void *targets, cek_dataset **out);
CEK__SHARED CEK__CHECKED cek_status cek__dataset_copy(const cek__data_format *format, int64_t count, const void *inputs,
                                                      const void *targets, cek_dataset **out);
CEK__SHARED CEK__CHECKED cek_status cek__dataset_adopt(const cek__data_format *format, int64_t count, void *inputs,
                                                       void *targets, cek_dataset **out);

/* Which numbers of chance sources draw that change samples. */
typedef struct cek__data_draw {
    uint64_t seed;
    int64_t epoch;
} cek__data_draw;

/* Samples that come from elsewhere: `read` fills `count` inputs and targets, one after the other, for these rows (each
 * below the data set's count), and is called by several threads at once. It fails with cek__fail. `draw` NULL: samples
 * as they are, of a source that changes them by chance. */
typedef struct cek__data_source {
    void *user;
    cek_status (*read)(void *user, const cek__data_draw *draw, const int64_t *rows, int64_t count, void *inputs,
                       void *targets);
    void (*destroy)(void *user); /* at the last free; may be NULL. Not called if creation failed. */
    /* nn.h: cek_dataset_class_name, for a label that is one, and cek_dataset_row_name; may be NULL. */
    const char *(*class_name)(void *user, int64_t label);
    const char *(*row_name)(void *user, int64_t row);
} cek__data_source;

CEK__SHARED CEK__CHECKED cek_status cek__dataset_from_source(const cek__data_format *format, int64_t count,
                                                             const cek__data_source *source, cek_dataset **out);

/* A view of some rows, in this order; `rows` is copied. The view keeps what it needs of `parent` alive. */
CEK__SHARED CEK__CHECKED cek_status cek__dataset_view(const cek_dataset *parent, const int64_t *rows, int64_t count,
                                                      cek_dataset **out);

/* Another handle on the same samples, untouched by what happens to the first one. */
CEK__SHARED CEK__CHECKED cek_status cek__dataset_share(const cek_dataset *dataset, cek_dataset **out);

CEK__SHARED const cek__data_format *cek__dataset_format(const cek_dataset *dataset);
/* Samples are copied from arrays in memory, and nothing else happens to them. */
CEK__SHARED bool cek__dataset_is_arrays(const cek_dataset *dataset);
CEK__SHARED size_t cek__data_input_bytes(const cek__data_format *format);  /* of one sample */
CEK__SHARED size_t cek__data_target_bytes(const cek__data_format *format); /* of one sample */

/* Writes `count` inputs and targets, packed, in the order of `rows`. A row out of range is CEK_INVALID. */
CEK__SHARED CEK__CHECKED cek_status cek__dataset_read(const cek_dataset *dataset, const int64_t *rows, int64_t count,
                                                      void *inputs, void *targets);
/* The same as they are drawn in an epoch. */
CEK__SHARED CEK__CHECKED cek_status cek__dataset_draw(const cek_dataset *dataset, const cek__data_draw *draw,
                                                      const int64_t *rows, int64_t count, void *inputs, void *targets);

/* Mean and population standard deviation of each channel (the last dimension: a table's column) over all samples, in
 * double. A constant channel gets 1, so that dividing by it is possible. Each array has one entry a channel. */
CEK__SHARED CEK__CHECKED cek_status cek__dataset_statistics(const cek_dataset *dataset, double *mean,
                                                            double *deviation);

/* Replaces the inputs by f32 (x - mean) / deviation by channel, computed in double, in memory of the data set's own:
 * views and parents keep what they have. Nobody may read it meanwhile; nothing changes on failure. */
CEK__SHARED CEK__CHECKED cek_status cek__dataset_standardize(cek_dataset *dataset, const double *mean,
                                                             const double *deviation);

#endif
