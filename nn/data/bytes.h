/* bytes.h - a file's bytes from front to back, gzip-compressed or not.
 *
 * Which of the two is seen from the first bytes, not from the name. Nobody believes a length before it was seen to be
 * possible: cek__bytes_could_hold is asked before memory is allocated for what a header promises. */
#ifndef CEK_NN_DATA_BYTES_H
#define CEK_NN_DATA_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

typedef struct cek__bytes cek__bytes;

/* Reads the file whole into memory (compressed as it is). */
CEK__SHARED CEK__CHECKED cek_status cek__bytes_open(const char *path, cek__bytes **out);
CEK__SHARED void cek__bytes_close(cek__bytes *bytes); /* NULL is accepted */

/* CEK_BAD_INPUT if `size` more bytes cannot be in the file: exact for plain files, deflate's best ratio for gzip. */
CEK__SHARED CEK__CHECKED cek_status cek__bytes_could_hold(const cek__bytes *bytes, uint64_t size);

/* The next `size` bytes; CEK_BAD_INPUT if there are fewer or the compressed data is damaged. */
CEK__SHARED CEK__CHECKED cek_status cek__bytes_take(cek__bytes *bytes, void *out, size_t size);

/* CEK_BAD_INPUT unless everything was taken, the checksum of a gzip file was seen and was right. */
CEK__SHARED CEK__CHECKED cek_status cek__bytes_end(cek__bytes *bytes);

#endif
