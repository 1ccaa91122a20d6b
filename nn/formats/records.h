/* records.h - a file of records as TFRecord has them, one behind the other, each with its length and checksums:
 *
 *     uint64 length, uint32 crc(length), the record, uint32 crc(record)     all little-endian
 *
 * where crc is the CRC-32C (Castagnoli) of the bytes, masked, so that records within records have checksums as good as
 * theirs.
 *
 * A record is there whole or not at all: it is one write, and what a full disk took of it is taken back. What was
 * written outlives the process; what was synced, the machine's power.
 * Must not know: what a record means. Threads: one at a time. */
#ifndef CEK_NN_FORMATS_RECORDS_H
#define CEK_NN_FORMATS_RECORDS_H

#include <stdbool.h>

#include "nn/formats/message.h"

CEK__SHARED uint32_t cek__crc32c(const void *bytes, size_t size);
/* As it stands in the file. */
CEK__SHARED uint32_t cek__crc32c_masked(const void *bytes, size_t size);

typedef struct cek__records {
    char *path;
    int fd;
    uint64_t size; /* of whole records */
    bool broken;   /* a part of a record could not be taken back: nothing may follow it */
    cek__message next;
} cek__records;

/* A new file. *exists, with CEK_IO: there is one already, which stays as it is. Errors: CEK_IO names the path. */
CEK__CHECKED cek_status cek__records_create(const char *path, cek__records *out, bool *exists);
/* begin - what the caller writes into the message that it gives is the next record; add - that record goes into the
 * file.
 * Errors of add: CEK_IO: the record is not in the file. */
CEK__CHECKED cek_status cek__records_begin(cek__records *records, cek__message **out);
CEK__CHECKED cek_status cek__records_add(cek__records *records);
CEK__CHECKED cek_status cek__records_sync(cek__records *records);
/* Also of records that were zeroed. Whether everything is on the disk, sync has said. */
void cek__records_close(cek__records *records);

#endif
