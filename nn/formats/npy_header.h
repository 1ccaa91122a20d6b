/* npy_header.h - what stands before the elements of a .npy file, read and written.
 *
 * The format: the bytes 93 4E 55 4D 50 59 ("\x93NUMPY"), a version's two bytes, the length of what follows (two bytes
 * of version 1, four of 2 and 3, little-endian), a dictionary as Python writes it
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 * and the elements (numpy.lib.format). The header is held against the size of the file before an element is looked at.
 * Must not know: which types are read. */
#ifndef CEK_NN_FORMATS_NPY_HEADER_H
#define CEK_NN_FORMATS_NPY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

enum { CEK__NPY_DESCR = 16, CEK__NPY_HEADER_MAX = 128 + CEK_RANK_MAX * 24 };

typedef struct cek__npy_header {
    char descr[CEK__NPY_DESCR]; /* "<f4" */
    bool fortran;               /* the first axis is the fastest */
    int rank;
    int64_t shape[CEK_RANK_MAX];
    size_t values; /* where the elements begin */
} cek__npy_header;

/* Errors: CEK_BAD_INPUT without the file's name. */
CEK__CHECKED cek_status cek__npy_header_read(const uint8_t *bytes, size_t size, cek__npy_header *out);

/* Whether the shape's elements, of `element` bytes each, are what there is: `there` bytes. *count: how many. */
CEK__CHECKED cek_status cek__npy_size_check(const cek__npy_header *h, uint64_t element, uint64_t there, int64_t *count);

/* Version 1, C's order, with blanks behind so that elements are aligned; its length. */
size_t cek__npy_header_make(const char *descr, int rank, const int64_t *shape, char text[CEK__NPY_HEADER_MAX]);

#endif
