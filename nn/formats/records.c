/* records.c - see records.h. Every system call is a site of CEK__FAULT_FILE. */
#include "nn/formats/records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/fault.h"

enum { HEAD = 12, TAIL = 4 }; /* around a record */

/* True if a test wants this system call to fail. */
static bool faulty(void)
{
    if (!cek__fault_hit(CEK__FAULT_FILE))
        return false;
    errno = EIO;
    return true;
}

/* ---- checksums ---- */

/* By four bits at a time: of the polynomial 0x82f63b78, its bits from the lowest up. */
uint32_t cek__crc32c(const void *bytes, size_t size)
{
    static const uint32_t table[16] = { 0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
                                        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75 };
    const uint8_t *at = bytes;
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < size; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

uint32_t cek__crc32c_masked(const void *bytes, size_t size)
{
    const uint32_t crc = cek__crc32c(bytes, size);

    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* ---- the file ---- */

cek_status cek__records_create(const char *path, cek__records *out, bool *exists)
{
    cek_status st;

    *exists = false;
    *out = (cek__records){ .fd = -1 };
    CEK_TRY(cek__strdup(path, &out->path));
    out->fd = faulty() ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (out->fd < 0) {
        *exists = errno == EEXIST;
        st = cek__fail_errno(CEK_IO, errno, "%s: cannot be made", path);
        goto out;
    }
    return CEK_OK;
out:
    free(out->path);
    *out = (cek__records){ .fd = -1 };
    return st;
}

cek_status cek__records_begin(cek__records *r, cek__message **out)
{
    static const uint8_t room[HEAD];

    *out = &r->next;
    r->next.size = 0;
    return cek__message_bytes(&r->next, room, sizeof room);
}

/* What was written of a record since is taken back. Keeps the text of the failure. */
static void take_back(cek__records *r)
{
    r->broken = faulty() || ftruncate(r->fd, (off_t)r->size) != 0;
}

static cek_status write_all(cek__records *r)
{
    cek_status st;
    const uint8_t *bytes = r->next.at;

    for (size_t left = r->next.size; left > 0;) {
        const ssize_t n = faulty() ? -1 : write(r->fd, bytes, left);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            st = cek__fail_errno(CEK_IO, n < 0 ? errno : ENOSPC, "%s: write failed", r->path);
            take_back(r);
            return st;
        }
        bytes += n;
        left -= (size_t)n;
    }
    r->size += r->next.size;
    return CEK_OK;
}

cek_status cek__records_add(cek__records *r)
{
    cek_status st;
    const uint64_t length = r->next.size - HEAD;
    uint32_t crc;

    if (r->broken)
        CEK_FAIL(CEK_IO, "%s: ends in a part of a record, which could not be taken back", r->path);
    crc = cek__crc32c_masked(r->next.at + HEAD, length);
    CEK_TRY(cek__message_bytes(&r->next, &crc, TAIL));
    memcpy(r->next.at, &length, sizeof length);
    crc = cek__crc32c_masked(&length, sizeof length);
    memcpy(r->next.at + sizeof length, &crc, sizeof crc);
    st = write_all(r);
out:
    return st;
}

cek_status cek__records_sync(cek__records *r)
{
    if (faulty() || fdatasync(r->fd) != 0)
        return cek__fail_errno(CEK_IO, errno, "%s: sync failed", r->path);
    return CEK_OK;
}

void cek__records_close(cek__records *r)
{
    if (r->path != NULL && r->fd >= 0)
        close(r->fd);
    free(r->path);
    free(r->next.at);
    *r = (cek__records){ .fd = -1 };
}
