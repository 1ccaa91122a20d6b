/* split.h - divides a data set in two: by a share drawn from a seed, or by row numbers from a file.
 *
 * Both parts keep the order of the whole. */
#ifndef CEK_NN_DATA_SPLIT_H
#define CEK_NN_DATA_SPLIT_H

#include <stdint.h>

#include "core/base/export.h"
#include "nn/data/dataset.h"

/* Row numbers from 0, separated by blanks, commas or line ends; each below `whole` and there once.
 * At least one, and not all of them. *rows is the caller's (free). Errors are CEK_BAD_INPUT with
 * file and line. */
CEK__SHARED CEK__CHECKED cek_status cek__split_rows_read(const char *path, int64_t whole, int64_t **rows,
                                                         int64_t *count);

#endif
