/* stored.h - records of one size, one behind the other in files that stay where they are.
 *
 * Who reads a record gets it by pread, into his own memory: the system keeps what is used in its page cache, as it does
 * for a mapping, but a file that was cut short meanwhile is an error of the read, where a mapping would end the process
 * (SIGBUS). So a set larger than the machine's memory is no more than its files.
 * Threads: cek__stored_take from any number at once. Must not know: what is in a record. */
#ifndef CEK_NN_DATA_STORED_H
#define CEK_NN_DATA_STORED_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

typedef struct cek__stored cek__stored;

CEK__CHECKED cek_status cek__stored_create(size_t bytes, cek__stored **out); /* of one record */
void cek__stored_free(cek__stored *records);                                 /* NULL is accepted */

/* The file's records, from `begin` to its end, behind those that there are. CEK_IO; CEK_BAD_INPUT: what it has there is
 * no whole number of records, or none. */
CEK__CHECKED cek_status cek__stored_add(cek__stored *records, const char *path, uint64_t begin);
int64_t cek__stored_count(const cek__stored *records);

/* Record `row` into out[bytes]. CEK_IO: the file became shorter, or cannot be read. */
CEK__CHECKED cek_status cek__stored_take(const cek__stored *records, int64_t row, void *out);

#endif
