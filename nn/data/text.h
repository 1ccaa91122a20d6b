/* text.h - the bytes of a file as a text to be gone on with: windows of it, and for each of their bytes the
 * one behind it.
 *
 * Window i begins at byte i, so they overlap; inputs are i32 [context] of 0 to 255, targets as many labels of 256
 * classes. The file is held once, windows are cut out when they are read. */
#ifndef CEK_NN_DATA_TEXT_H
#define CEK_NN_DATA_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"
#include "nn/data/dataset.h"

enum { CEK__TEXT_CLASSES = 256 };

/* Of the first nine tenths of the file, rounded up, or (not `train`) of the rest, so no window of one has a byte
 * of the other.
 * Errors: CEK_BAD_INPUT: too short for a window of either. */
CEK__SHARED CEK__CHECKED cek_status cek__text_dataset(const char *path, int64_t context, bool train, cek_dataset **out);

#endif
