/* npy.h - an array of NumPy's whose bytes are in memory: those of a .npy file, or of an entry of an archive.
 *
 * Must not know: files, what an array is for. */
#ifndef CEK_NN_FORMATS_NPY_H
#define CEK_NN_FORMATS_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "cekernels/nn.h"
#include "core/base/status.h"

/* nn.h: cek_npy_read, of which `out` gets type, rank, shape, count and data (the caller's: free, on failure too). Errors: CEK_BAD_INPUT
 * without the file's name, CEK_OUT_OF_MEMORY. */
CEK__CHECKED cek_status cek__npy_take(const uint8_t *bytes, size_t size, cek_dtype type, cek_npy *out);

#endif
