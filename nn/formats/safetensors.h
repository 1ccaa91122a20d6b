/* safetensors.h - named tensors in a file, as PyTorch and its relatives exchange them.
 *
 * The format: 8 bytes with the header's length N (little-endian), N bytes of JSON
 *     {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {"KEY": "VALUE"}}
 * and the values, little-endian, packed, row-major; offsets count from behind the header
 * (https://github.com/huggingface/safetensors, "Format").
 * Must not know: models, layouts, what a name means. */
#ifndef CEK_NN_FORMATS_SAFETENSORS_H
#define CEK_NN_FORMATS_SAFETENSORS_H

#include "nn/formats/tensors.h"

#define CEK__ST_METADATA "__metadata__"
#define CEK__ST_CLASSES "cekernels.classes" /* its key for names of classes, with '/' between them */

/* CEK_BAD_INPUT, with file and tensor in the text, unless header, offsets, shapes and length all
 * agree: every byte behind the header belongs to exactly one tensor, no name is there twice. Values are not read before
 * all of this was seen. */
CEK__SHARED CEK__CHECKED cek_status cek__safetensors_read(const char *path, cek__st_file **out);

/* Writes packed tensors (in any order; in the file they stand in the order of their names) atomically: the
 * former file stays until the new one is complete. `metadata`: pairs of key and value, `pairs` of
 * them. Two tensors of one name, or a name that is not UTF-8: CEK_INVALID. */
CEK__SHARED CEK__CHECKED cek_status cek__safetensors_write(
    const char *path, const cek__st_tensor *tensors, size_t count, const char *const (*metadata)[2], size_t pairs);

#endif
