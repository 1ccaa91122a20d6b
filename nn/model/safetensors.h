/* safetensors.h - named tensors in a file, as PyTorch and its relatives exchange them.
 *
 * The format: 8 bytes with the header's length N (little-endian), N bytes of JSON
 *     {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {"KEY": "VALUE"}}
 * and the values, little-endian, packed, row-major; offsets count from behind the header
 * (https://github.com/huggingface/safetensors, "Format").
 * Must not know: models, layouts, what a name means. */
#ifndef CEK_NN_MODEL_SAFETENSORS_H
#define CEK_NN_MODEL_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

typedef enum cek__st_type {
    CEK__ST_F32,
    CEK__ST_F64,
    CEK__ST_F16,
    CEK__ST_BF16,
    CEK__ST_I32,
    CEK__ST_I64,
    CEK__ST_U8,
    CEK__ST_TYPES
} cek__st_type;

typedef struct cek__st_tensor {
    const char *name;
    cek__st_type type;
    uint32_t rank; /* 0: a single value */
    int64_t shape[CEK_RANK_MAX];
    uint64_t count;   /* of values */
    const void *data; /* count values; may be misaligned for its type in a file that was read */
} cek__st_tensor;

/* A file that was read and checked whole: tensors in the order of their names (by bytes). */
typedef struct cek__st_file {
    char *path;
    size_t count;
    cek__st_tensor *tensors;
    char *header; /* names point into it, */
    void *values; /* and data into this */
} cek__st_file;

#define CEK__ST_METADATA "__metadata__"
enum { CEK__ST_NAME_SHOWN = 200 }; /* bytes of a name that an error quotes */

/* The format's names of types: false if there is none like this, or it is none that is read. */
bool cek__st_type_find(const char *name, cek__st_type *type);
const char *cek__st_type_name(cek__st_type type);
uint64_t cek__st_type_bytes(cek__st_type type);

/* Into the order of names; returns a name that two of them have, else NULL. */
const char *cek__st_sort(cek__st_tensor *tensors, size_t count);

/* CEK_BAD_INPUT, with file and tensor in the text, unless header, offsets, shapes and length all
 * agree: every byte behind the header belongs to exactly one tensor, no name is there twice. Values are not read before
 * all of this was seen. */
CEK__SHARED CEK__CHECKED cek_status cek__st_read(const char *path, cek__st_file **out);
CEK__SHARED void cek__st_free(cek__st_file *file); /* NULL is accepted */

/* NULL if there is none of that name. */
CEK__SHARED const cek__st_tensor *cek__st_find(const cek__st_file *file, const char *name);

/* The values of an F32, F64, F16 or BF16 tensor as floats, or doubles. CEK_BAD_INPUT for other
 * types, and where a finite value does not fit a float. Infinities and NaN stay what they are. The
 * text does not name the file: the caller's to add. */
CEK__SHARED CEK__CHECKED cek_status cek__st_to_f32(const cek__st_tensor *tensor, float *out);
CEK__SHARED CEK__CHECKED cek_status cek__st_to_f64(const cek__st_tensor *tensor, double *out);

/* Writes tensors (in any order; in the file they stand in the order of their names) atomically: the
 * former file stays until the new one is complete. `metadata`: pairs of key and value, `pairs` of
 * them. Two tensors of one name, or a name that is not UTF-8: CEK_INVALID. */
CEK__SHARED CEK__CHECKED cek_status cek__st_write(const char *path, const cek__st_tensor *tensors, size_t count,
                                                  const char *const (*metadata)[2], size_t pairs);

#endif
