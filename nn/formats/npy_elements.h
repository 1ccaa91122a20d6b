/* npy_elements.h - what lies behind the header of a .npy file: elements of NumPy's types, in either order of bytes and
 * of axes, as an array of this machine's, the last axis fastest.
 *
 * Must not know: files, tensors, what an array is for. */
#ifndef CEK_NN_FORMATS_NPY_ELEMENTS_H
#define CEK_NN_FORMATS_NPY_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "cekernels/nn.h"
#include "core/base/status.h"
#include "nn/formats/npy_header.h"

/* What elements become where nobody says it: of whole numbers CEK_U8 (of uint8 and bool) or CEK_I32, of others CEK_F32,
 * or with KEPT the type of the same size. */
typedef enum cek__npy_as { CEK__NPY_NEAREST, CEK__NPY_KEPT } cek__npy_as;

/* The array of a .npy file's bytes, or of an entry of an archive: type, rank, shape, count and data of `out`, whose
 * data is the caller's (free, on failure too). Elements become `type`: CEK_F32, or of whole numbers CEK_I32 or CEK_U8;
 * CEK_DTYPE_NONE: as `as` says. Errors: CEK_BAD_INPUT (also for an element that the type does not hold) without the
 * file's name, CEK_OUT_OF_MEMORY. */
CEK__CHECKED cek_status cek__npy_take(const uint8_t *bytes, size_t size, cek__npy_as as, cek_dtype type, cek_npy *out);

/* The type whose elements lie in the file as they would lie in memory; CEK_DTYPE_NONE: there is none. */
cek_dtype cek__npy_lies_as(const cek__npy_header *h);

/* How a header calls a type's elements in a file; NULL: NumPy has none such. */
const char *cek__npy_descr(cek_dtype type);

#endif
