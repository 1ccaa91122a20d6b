/* tensors.h - a state dict that was read from a file of whatever form: names, types, shapes, values.
 *
 * A reader of a form fills in a cek__st_file (safetensors.h, torch_file.h); who wants values by name does not ask which
 * (state_file.h picks the reader).
 * Must not know: any form of file; models, layouts, what a name means. */
#ifndef CEK_NN_FORMATS_TENSORS_H
#define CEK_NN_FORMATS_TENSORS_H

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
    CEK__ST_BOOL,
    CEK__ST_TYPES
} cek__st_type;

typedef struct cek__st_tensor {
    const char *name;
    cek__st_type type;
    uint32_t rank; /* 0: a single value */
    int64_t shape[CEK_RANK_MAX];
    uint64_t count;               /* of values */
    const void *data;             /* of the first; may be misaligned for its type in a file that was read */
    bool strided;                 /* false: count values, packed, row-major */
    int64_t stride[CEK_RANK_MAX]; /* in values; the reader has seen that all of them lie in the file */
} cek__st_tensor;

/* A file that was read and checked whole: tensors in the order of their names (by bytes). */
typedef struct cek__st_file {
    char *path;
    size_t count;
    cek__st_tensor *tensors;
    char *header;        /* names point into it, */
    void *values;        /* and data into this */
    const char *classes; /* what safetensors say of names of classes, in the header; NULL: nothing */
} cek__st_file;

enum { CEK__ST_NAME_SHOWN = 200 }; /* bytes of a name that an error quotes */

/* safetensors' names of types: false if there is none like this, or it is none that is read. */
bool cek__st_type_find(const char *name, cek__st_type *type);
const char *cek__st_type_name(cek__st_type type);
uint64_t cek__st_type_bytes(cek__st_type type);

/* Into the order of names; returns a name that two of them have, else NULL. */
const char *cek__st_sort(cek__st_tensor *tensors, size_t count);

/* NULL if there is none of that name. */
CEK__SHARED const cek__st_tensor *cek__st_find(const cek__st_file *file, const char *name);
CEK__SHARED void cek__st_free(cek__st_file *file); /* NULL is accepted */

/* The values of an F32, F64, F16 or BF16 tensor as floats, or doubles, row-major. CEK_BAD_INPUT for other
 * types, and where a finite value does not fit a float. Infinities and NaN stay what they are. The
 * text does not name the file: the caller's to add. */
CEK__SHARED CEK__CHECKED cek_status cek__st_to_f32(const cek__st_tensor *tensor, float *out);
CEK__SHARED CEK__CHECKED cek_status cek__st_to_f64(const cek__st_tensor *tensor, double *out);

#endif
