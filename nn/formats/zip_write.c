/* zip_write.c - see zip_write.h. The form: .ZIP File Format Specification (APPNOTE.TXT) 6.3, section 4.3. */
#include "nn/formats/zip_write.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/base/alloc.h"
#include "core/base/file.h"
#include "nn/formats/zip_form.h"

enum {
    VERSION = 20,           /* that has deflate */
    DAY_FIRST = 1 << 5 | 1, /* the first of January 1980: equal tensors make equal files */
    ENTRIES_MAX = UINT16_MAX
};
#define BYTES_MAX ((uint64_t)UINT32_MAX)

struct cek__zip_writer {
    cek__file_writer *file;
    uint64_t at;     /* bytes written */
    uint8_t *listed; /* the directory so far */
    size_t listed_bytes;
    unsigned count;
};

static uint8_t *u16_put(uint8_t *at, uint64_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    return at + 2;
}

static uint8_t *u32_put(uint8_t *at, uint64_t value)
{
    return u16_put(u16_put(at, value & UINT16_MAX), value >> 16);
}

cek_status cek__zip_create(const char *path, cek__zip_writer **out)
{
    cek_status st;
    cek__zip_writer *zip = NULL;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *zip, &zip));
    CEK_TRY(cek__file_create(path, &zip->file));
    *out = zip;
    return CEK_OK;
out:
    free(zip);
    return st;
}

/* As a deflate stream without zlib's head, the caller's (free). */
static cek_status pack(const uint8_t *bytes, size_t size, uint8_t **out, size_t *packed)
{
    cek_status st;
    z_stream z = { .next_in = (Bytef *)bytes, .avail_in = (uInt)size };
    uLong room;

    *out = NULL;
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return cek__fail(CEK_OUT_OF_MEMORY, "deflate: no memory");
    room = deflateBound(&z, (uLong)size);
    CEK_TRY(cek__malloc(room, out));
    z.next_out = *out;
    z.avail_out = (uInt)room; /* less than 2^32: see cek__zip_add */
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        CEK_FAIL(CEK_INTERNAL, "deflate: it did not end");
    *packed = z.total_out;
out:
    deflateEnd(&z);
    return st;
}

/* What stands before the entry and in the directory alike, from the version on. */
static uint8_t *common_put(uint8_t *at, bool deflated, uint32_t checksum, uint64_t packed, uint64_t size, size_t name)
{
    at = u16_put(at, VERSION);
    at = u16_put(at, CEK__ZIP_UTF8);
    at = u16_put(at, deflated ? CEK__ZIP_DEFLATED : 0);
    at = u16_put(at, 0);
    at = u16_put(at, DAY_FIRST);
    at = u32_put(at, checksum);
    at = u32_put(at, packed);
    at = u32_put(at, size);
    at = u16_put(at, name);
    return u16_put(at, 0);
}

cek_status cek__zip_add(cek__zip_writer *zip, const char *name, const uint8_t *bytes, size_t size, bool deflated)
{
    cek_status st = CEK_OK;
    const size_t length = strlen(name), listed = CEK__ZIP_LISTED_BYTES + length;
    uint8_t head[CEK__ZIP_ENTRY_BYTES], *made = NULL, *at;
    size_t packed = size;
    uint32_t checksum;

    if (deflated && size <= BYTES_MAX / 2)
        CEK_TRY(pack(bytes, size, &made, &packed));
    if (size > BYTES_MAX / 2 || zip->count == ENTRIES_MAX ||
        zip->at + CEK__ZIP_ENTRY_BYTES + length + packed + zip->listed_bytes + listed > BYTES_MAX)
        CEK_FAIL(CEK_UNSUPPORTED,
                 "'%s': an archive has room for 65535 arrays and 4 GiB, half of it for one: save files", name);
    checksum = (uint32_t)crc32_z(0, bytes, size);
    CEK_TRY(cek__realloc_array(zip->listed_bytes + listed, 1, &zip->listed));
    at = zip->listed + zip->listed_bytes;
    at = u32_put(at, CEK__ZIP_LISTED);
    at = u16_put(at, VERSION);
    at = common_put(at, deflated, checksum, packed, size, length);
    memset(at, 0, 10); /* no comment, the first disk, no attributes */
    at = u32_put(at + 10, zip->at);
    memcpy(at, name, length);
    zip->listed_bytes += listed;
    common_put(u32_put(head, CEK__ZIP_ENTRY), deflated, checksum, packed, size, length);
    CEK_TRY(cek__file_write(zip->file, head, sizeof head));
    CEK_TRY(cek__file_write(zip->file, name, length));
    CEK_TRY(cek__file_write(zip->file, deflated ? made : bytes, packed));
    zip->at += CEK__ZIP_ENTRY_BYTES + length + packed;
    zip->count++;
out:
    free(made);
    return st;
}

cek_status cek__zip_commit(cek__zip_writer **writer)
{
    cek_status st;
    cek__zip_writer *zip = *writer;
    uint8_t end[CEK__ZIP_END_BYTES], *at = u32_put(end, CEK__ZIP_END);

    at = u32_put(at, 0);
    at = u16_put(at, zip->count);
    at = u16_put(at, zip->count);
    at = u32_put(at, zip->listed_bytes);
    at = u32_put(at, zip->at);
    u16_put(at, 0);
    CEK_TRY(cek__file_write(zip->file, zip->listed, zip->listed_bytes));
    CEK_TRY(cek__file_write(zip->file, end, sizeof end));
    st = cek__file_commit(&zip->file);
out:
    cek__zip_abandon(writer);
    return st;
}

void cek__zip_abandon(cek__zip_writer **zip)
{
    if (*zip == NULL)
        return;
    cek__file_abandon(&(*zip)->file);
    free((*zip)->listed);
    free(*zip);
    *zip = NULL;
}
