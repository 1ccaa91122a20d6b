/* npz.h - the arrays of a .npz archive by their names, as arrays of this machine's (nn.h has them as tensors).
 *
 * Owns: which entry of the archive an array is. Must not know: tensors, what an array is for. */
#ifndef CEK_NN_FORMATS_NPZ_H
#define CEK_NN_FORMATS_NPZ_H

#include <stdbool.h>
#include <stddef.h>

#include "nn/formats/npy_elements.h"
#include "nn/formats/zip.h"

#define CEK__NPZ_ENDING ".npy" /* behind an array's name in its entry's */

struct cek_npz {
    char *path;
    void *bytes;
    cek__zip zip;
    size_t count;
    char **names; /* of the arrays */
};

/* Needs no memory. */
bool cek__npz_has(const cek_npz *npz, const char *name);

/* The array as cek__npy_take gives it: `data` is the caller's (free), NULL on failure. Errors: CEK_NOT_FOUND, and those
 * of cek__npy_take, which name the file and the array. */
CEK__CHECKED cek_status cek__npz_take(const cek_npz *npz, const char *name, cek__npy_as as, cek_npy *out);

#endif
