/* zip.c - the directory of a zip archive, held against the entries that it tells of.
 *
 * The form: .ZIP File Format Specification (APPNOTE.TXT) 6.3, sections 4.3 and 4.5.3. The directory at the end counts;
 * what stands before each entry has to agree with it. */
#include "nn/formats/zip.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/base/alloc.h"
#include "nn/formats/zip_form.h"

enum {
    NAME_SHOWN = 200,
    FLAG_EFFORT = 3 << 1, /* of a deflated entry: how hard it was tried */
    FLAG_BEHIND = 1 << 3, /* size and checksum stand behind the entry */
    RATIO_MAX = 1032,     /* deflate's best */
    EXTRA_64 = 1          /* the extra field with numbers of 64 bits */
};

typedef struct archive {
    const char *path;
    uint8_t *bytes;
    uint64_t size, directory, directory_end, count;
    bool deflated; /* entries may be */
} archive;

typedef struct listed { /* an entry as the directory has it */
    cek__zip_entry entry;
    uint16_t flags;
} listed;

static uint16_t u16_at(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t u32_at(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof value);
    return le32toh(value);
}

static uint64_t u64_at(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof value);
    return le64toh(value);
}

bool cek__zip_magic(const uint8_t *bytes, size_t size)
{
    return size >= 4 && u32_at(bytes) == CEK__ZIP_ENTRY;
}

static cek_status bad(const archive *a, const char *cause)
{
    return cek__fail(CEK_BAD_INPUT, "%s: damaged zip archive: %s", a->path, cause);
}

static cek_status entry_bad(const archive *a, const cek__zip_entry *e, const char *cause)
{
    return cek__fail(CEK_BAD_INPUT, "%s: entry '%.*s': %s", a->path,
                     (int)(e->name_length < NAME_SHOWN ? e->name_length : NAME_SHOWN), e->name, cause);
}

/* ---- the end ---- */

/* Where the directory ends and what stands behind it: numbers of 64 bits, and where they are. */
static cek_status end64_read(archive *a, const uint8_t *end)
{
    const uint8_t *locator = end - CEK__ZIP_LOCATOR_BYTES, *wide = locator - CEK__ZIP_END64_BYTES;

    if (a->size < CEK__ZIP_END_BYTES + CEK__ZIP_LOCATOR_BYTES + CEK__ZIP_END64_BYTES ||
        u32_at(wide) != CEK__ZIP_END64 || u64_at(wide + 4) != CEK__ZIP_END64_BYTES - 12)
        return bad(a, "its 64-bit end is not where it has to be");
    a->directory_end = (uint64_t)(wide - a->bytes);
    if (u64_at(locator + 8) != a->directory_end || u32_at(locator + 4) != 0 || u32_at(locator + 16) > 1 ||
        u32_at(wide + 16) != 0 || u32_at(wide + 20) != 0 || u64_at(wide + 24) != u64_at(wide + 32))
        return bad(a, "its 64-bit end is wrong");
    a->count = u64_at(wide + 32);
    a->directory = u64_at(wide + 48);
    if (u64_at(wide + 40) != a->directory_end - a->directory || a->directory > a->directory_end)
        return bad(a, "its directory has another size");
    return CEK_OK;
}

/* A number that stands in two sizes: all ones in the small one say that the other counts. */
static bool agree(uint64_t small, uint64_t ones, uint64_t wide)
{
    return small == wide || small == ones;
}

static cek_status end_read(archive *a)
{
    const uint8_t *end;
    bool wide;
    cek_status st;

    if (a->size < CEK__ZIP_END_BYTES)
        return bad(a, "it has no end");
    end = a->bytes + a->size - CEK__ZIP_END_BYTES;
    if (u32_at(end) != CEK__ZIP_END || u16_at(end + 20) != 0)
        return bad(a, "its last bytes are not the end of an archive without a comment");
    wide = a->size >= CEK__ZIP_END_BYTES + CEK__ZIP_LOCATOR_BYTES &&
           u32_at(end - CEK__ZIP_LOCATOR_BYTES) == CEK__ZIP_LOCATOR;
    if (wide) {
        CEK_TRY(end64_read(a, end));
    } else {
        a->directory_end = (uint64_t)(end - a->bytes);
        a->directory = u32_at(end + 16);
        a->count = u16_at(end + 10);
    }
    if (u16_at(end + 4) != 0 || u16_at(end + 6) != 0 || u16_at(end + 8) != u16_at(end + 10) ||
        !agree(u16_at(end + 10), UINT16_MAX, a->count) || !agree(u32_at(end + 16), UINT32_MAX, a->directory) ||
        a->directory > a->directory_end || !agree(u32_at(end + 12), UINT32_MAX, a->directory_end - a->directory))
        return bad(a, "its end does not agree with its size");
    st = CEK_OK;
out:
    return st;
}

/* ---- the directory ---- */

/* Takes the number of 64 bits that stands in the extra field for one that is all ones. */
static bool widen(const uint8_t **extra, const uint8_t *end, uint64_t *value)
{
    if (*value != UINT32_MAX)
        return true;
    if (end - *extra < 8)
        return false;
    *value = u64_at(*extra);
    *extra += 8;
    return true;
}

/* The extra field of that kind: from *extra to the end that is returned; both NULL if there is none. False: damaged. */
static bool extra_find(const uint8_t *at, uint16_t length, const uint8_t **extra, const uint8_t **end)
{
    const uint8_t *last = at + length;

    *extra = *end = NULL;
    while (last - at >= 4) {
        uint16_t bytes = u16_at(at + 2);

        if (bytes > last - at - 4)
            return false;
        if (u16_at(at) == EXTRA_64) {
            *extra = at + 4;
            *end = at + 4 + bytes;
            return true;
        }
        at += 4 + bytes;
    }
    return at == last;
}

static cek_status listed_read(const archive *a, uint64_t *at, listed *out)
{
    const uint8_t *p = a->bytes + *at, *extra, *extra_end;
    uint64_t left = a->directory_end - *at, bytes;

    if (left < CEK__ZIP_LISTED_BYTES || u32_at(p) != CEK__ZIP_LISTED)
        return bad(a, "its directory has fewer entries than it says");
    bytes = (uint64_t)CEK__ZIP_LISTED_BYTES + u16_at(p + 28) + u16_at(p + 30) + u16_at(p + 32);
    if (left < bytes)
        return bad(a, "an entry of its directory is cut short");
    *out = (listed){ .entry.name = (const char *)p + CEK__ZIP_LISTED_BYTES, .entry.name_length = u16_at(p + 28) };
    if (memchr(out->entry.name, 0, out->entry.name_length) != NULL)
        return entry_bad(a, &out->entry, "its name has a byte of 0, so that nobody could ask for it");
    out->flags = u16_at(p + 8);
    out->entry.checksum = u32_at(p + 16);
    out->entry.deflated = u16_at(p + 10) == CEK__ZIP_DEFLATED;
    if (u16_at(p + 10) != 0 && (!a->deflated || !out->entry.deflated))
        return entry_bad(a, &out->entry,
                         a->deflated ? "it is compressed in another way than by deflate"
                                     : "it is compressed; only archives that keep entries as they are, as torch.save "
                                       "does, are read");
    if ((out->flags & ~(FLAG_BEHIND | CEK__ZIP_UTF8 | (out->entry.deflated ? FLAG_EFFORT : 0))) != 0)
        return entry_bad(a, &out->entry, "it is encrypted or of another unknown form");
    out->entry.packed = u32_at(p + 20);
    out->entry.size = u32_at(p + 24);
    out->entry.begin = u32_at(p + 42);
    if (!extra_find(p + CEK__ZIP_LISTED_BYTES + out->entry.name_length, u16_at(p + 30), &extra, &extra_end) ||
        !widen(&extra, extra_end, &out->entry.size) || !widen(&extra, extra_end, &out->entry.packed) ||
        !widen(&extra, extra_end, &out->entry.begin) || u16_at(p + 34) != 0)
        return entry_bad(a, &out->entry, "what the directory says of it is damaged");
    if (!out->entry.deflated && out->entry.packed != out->entry.size)
        return entry_bad(a, &out->entry, "it is not compressed and yet has two sizes");
    *at += bytes;
    return CEK_OK;
}

/* What stands before the entry, and the entry. */
static cek_status entry_check(const archive *a, listed *l)
{
    cek__zip_entry *e = &l->entry;
    const uint8_t *p;
    uint64_t room;

    if (e->begin > a->directory || a->directory - e->begin < CEK__ZIP_ENTRY_BYTES)
        return entry_bad(a, e, "it begins behind the archive's entries");
    p = a->bytes + e->begin;
    room = a->directory - e->begin - CEK__ZIP_ENTRY_BYTES;
    if (u32_at(p) != CEK__ZIP_ENTRY || u16_at(p + 6) != l->flags ||
        u16_at(p + 8) != (e->deflated ? CEK__ZIP_DEFLATED : 0) || u16_at(p + 26) != e->name_length ||
        room < e->name_length || memcmp(p + CEK__ZIP_ENTRY_BYTES, e->name, e->name_length) != 0)
        return entry_bad(a, e, "the directory and what stands before it do not agree");
    room -= e->name_length;
    if (room < u16_at(p + 28) || room - u16_at(p + 28) < e->packed)
        return entry_bad(a, e, "it is larger than the archive");
    if ((l->flags & FLAG_BEHIND) == 0 && (u32_at(p + 14) != e->checksum || !agree(u32_at(p + 22), UINT32_MAX, e->size)))
        return entry_bad(a, e, "the directory and what stands before it do not agree");
    e->data = a->bytes + e->begin + CEK__ZIP_ENTRY_BYTES + e->name_length + u16_at(p + 28);
    if (!e->deflated && crc32_z(0, e->data, e->size) != e->checksum)
        return entry_bad(a, e, "its checksum is wrong: the file is damaged");
    return CEK_OK;
}

static int by_begin(const void *left, const void *right)
{
    const cek__zip_entry *x = left, *y = right;

    return (x->begin > y->begin) - (x->begin < y->begin);
}

static int by_name(const void *left, const void *right)
{
    const cek__zip_entry *x = left, *y = right;
    size_t shorter = x->name_length < y->name_length ? x->name_length : y->name_length;
    int order = memcmp(x->name, y->name, shorter);

    return order != 0 ? order : (x->name_length > y->name_length) - (x->name_length < y->name_length);
}

/* Each byte is one entry's, each name too. Leaves the entries in the order of their names. */
static cek_status entries_order(const archive *a, cek__zip *zip)
{
    qsort(zip->entries, zip->count, sizeof *zip->entries, by_begin);
    for (size_t i = 1; i < zip->count; i++)
        if (zip->entries[i - 1].data + zip->entries[i - 1].packed > a->bytes + zip->entries[i].begin)
            return entry_bad(a, &zip->entries[i], "it overlaps another");
    qsort(zip->entries, zip->count, sizeof *zip->entries, by_name);
    for (size_t i = 1; i < zip->count; i++)
        if (by_name(&zip->entries[i - 1], &zip->entries[i]) == 0)
            return entry_bad(a, &zip->entries[i], "another one has the same name");
    return CEK_OK;
}

cek_status cek__zip_open(const char *path, uint8_t *bytes, size_t size, bool deflated, cek__zip *out)
{
    archive a = { .path = path, .bytes = bytes, .size = size, .deflated = deflated };
    uint64_t at;
    cek_status st;

    *out = (cek__zip){ .path = path };
    CEK_TRY(end_read(&a));
    at = a.directory;
    if (a.count > (a.directory_end - a.directory) / CEK__ZIP_LISTED_BYTES) {
        st = bad(&a, "its directory has fewer entries than it says");
        goto out;
    }
    CEK_TRY(cek__calloc(a.count, sizeof *out->entries, &out->entries));
    for (uint64_t i = 0; i < a.count; i++) {
        listed l;

        CEK_TRY(listed_read(&a, &at, &l));
        CEK_TRY(entry_check(&a, &l));
        out->entries[out->count++] = l.entry;
    }
    if (at != a.directory_end) {
        st = bad(&a, "its directory has more entries than it says");
        goto out;
    }
    CEK_TRY(entries_order(&a, out));
    return CEK_OK;
out:
    cek__zip_close(out);
    return st;
}

void cek__zip_close(cek__zip *zip)
{
    free(zip->entries);
    *zip = (cek__zip){ 0 };
}

/* The whole stream at once, in pieces that zlib can count. Z_STREAM_END: that gave what the entry promises. */
static int inflate_all(const cek__zip_entry *e, uint8_t *out)
{
    z_stream z = { .next_in = e->data, .next_out = out };
    uint64_t in = e->packed, room = e->size;
    int answer = Z_OK;

    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return Z_MEM_ERROR;
    while (answer == Z_OK) {
        const uInt given = in < UINT32_MAX ? (uInt)in : UINT32_MAX,
                   wanted = room < UINT32_MAX ? (uInt)room : UINT32_MAX;

        z.avail_in = given;
        z.avail_out = wanted;
        answer = inflate(&z, Z_NO_FLUSH);
        in -= given - z.avail_in;
        room -= wanted - z.avail_out;
    }
    inflateEnd(&z);
    return answer == Z_STREAM_END && (in > 0 || room > 0) ? Z_DATA_ERROR : answer;
}

cek_status cek__zip_unpack(const cek__zip *zip, const cek__zip_entry *e, uint8_t **out)
{
    const archive a = { .path = zip->path };
    int answer = Z_STREAM_END;
    cek_status st;

    *out = NULL;
    if (e->deflated && e->size / RATIO_MAX > e->packed)
        return entry_bad(&a, e, "it is said to be larger than it can be");
    CEK_TRY(cek__malloc(e->size, out));
    if (!e->deflated)
        memcpy(*out, e->data, e->size);
    else
        answer = inflate_all(e, *out);
    if (answer == Z_MEM_ERROR)
        st = cek__fail(CEK_OUT_OF_MEMORY, "%s: no memory to decompress it", zip->path);
    else if (answer != Z_STREAM_END || (e->deflated && crc32_z(0, *out, e->size) != e->checksum))
        st = entry_bad(&a, e, "what is compressed there is damaged");
    if (st != CEK_OK) {
        free(*out);
        *out = NULL;
    }
out:
    return st;
}

const cek__zip_entry *cek__zip_find(const cek__zip *zip, const char *name, size_t length)
{
    cek__zip_entry key = { .name = name, .name_length = length };

    return bsearch(&key, zip->entries, zip->count, sizeof key, by_name);
}
