/* zip.h - the entries of a zip archive as torch.save and NumPy write them.
 *
 * Owns: the archive's structure. Nothing in it is believed before it was compared with the rest: each entry is told of
 * twice, lies before the directory, overlaps no other, and its checksum is right (of a deflated one, when it is
 * unpacked). Encryption, several disks and comments are refused; compression where the caller says so. Must not know:
 * what the entries mean. */
#ifndef CEK_NN_FORMATS_ZIP_H
#define CEK_NN_FORMATS_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

typedef struct cek__zip_entry {
    const char *name; /* in the archive: no 0 byte behind it */
    size_t name_length;
    uint8_t *data;     /* in the archive */
    uint64_t size;     /* unpacked */
    uint64_t packed;   /* bytes in the archive */
    uint32_t checksum; /* of what is unpacked */
    bool deflated;
    uint64_t begin; /* of its header in the archive */
} cek__zip_entry;

typedef struct cek__zip {
    const char *path; /* for errors */
    size_t count;
    cek__zip_entry *entries; /* in the order of their names */
} cek__zip;

bool cek__zip_magic(const uint8_t *bytes, size_t size);

/* The archive in bytes[size], which stays the caller's and must outlive it; so must `path`. Without `deflated` one
 * that is compressed is refused. Errors: CEK_BAD_INPUT names the file and what is wrong. */
CEK__CHECKED cek_status cek__zip_open(const char *path, uint8_t *bytes, size_t size, bool deflated, cek__zip *out);
void cek__zip_close(cek__zip *zip); /* a zeroed one is accepted */

/* The entry's bytes as they were packed; the caller's (free). */
CEK__CHECKED cek_status cek__zip_unpack(const cek__zip *zip, const cek__zip_entry *entry, uint8_t **out);

/* NULL if there is none of that name. */
const cek__zip_entry *cek__zip_find(const cek__zip *zip, const char *name, size_t length);

#endif
