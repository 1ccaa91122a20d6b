/* npz.c - see npz.h. */
#include "nn/formats/npz.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/file.h"

enum { ENDING = sizeof CEK__NPZ_ENDING - 1 };

void cek_npz_close(cek_npz *npz)
{
    if (npz == NULL)
        return;
    for (size_t i = 0; npz->names != NULL && i < npz->count; i++)
        free(npz->names[i]);
    free(npz->names);
    cek__zip_close(&npz->zip);
    free(npz->bytes);
    free(npz->path);
    free(npz);
}

cek_status cek_npz_open(const char *path, cek_npz **out)
{
    cek_status st;
    cek_npz *npz = NULL;
    size_t size;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(path);
    CEK_TRY(cek__calloc(1, sizeof *npz, &npz));
    CEK_TRY(cek__strdup(path, &npz->path));
    CEK_TRY(cek__file_read(path, INT64_MAX, &npz->bytes, &size));
    CEK_TRY(cek__zip_open(npz->path, npz->bytes, size, true, &npz->zip));
    CEK_TRY(cek__calloc(npz->zip.count, sizeof *npz->names, &npz->names));
    for (size_t i = 0; i < npz->zip.count; i++) {
        const cek__zip_entry *e = &npz->zip.entries[i];

        if (e->name_length > ENDING && memcmp(e->name + e->name_length - ENDING, CEK__NPZ_ENDING, ENDING) == 0)
            CEK_TRY(cek__strndup(e->name, e->name_length - ENDING, &npz->names[npz->count++]));
    }
    *out = npz;
    return CEK_OK;
out:
    cek_npz_close(npz);
    return st;
}

size_t cek_npz_count(const cek_npz *npz)
{
    return npz != NULL ? npz->count : 0;
}

const char *cek_npz_name(const cek_npz *npz, size_t index)
{
    return npz != NULL && index < npz->count ? npz->names[index] : NULL;
}

bool cek__npz_has(const cek_npz *npz, const char *name)
{
    for (size_t i = 0; i < npz->count; i++)
        if (strcmp(npz->names[i], name) == 0)
            return true;
    return false;
}

cek_status cek__npz_take(const cek_npz *npz, const char *name, cek__npy_as as, cek_npy *out)
{
    cek_status st;
    char *file = NULL;
    uint8_t *bytes = NULL;
    const cek__zip_entry *e;

    *out = (cek_npy){ .size = sizeof *out };
    CEK_TRY(cek__asprintf(&file, "%s" CEK__NPZ_ENDING, name));
    e = cek__zip_find(&npz->zip, file, strlen(file));
    if (e == NULL)
        CEK_FAIL(CEK_NOT_FOUND,
                 npz->count > 0 ? "%s: no array '%s'; it has %zu, the first is '%s'"
                                : "%s: no array '%s', nor any other",
                 npz->path, name, npz->count, npz->count > 0 ? npz->names[0] : "");
    CEK_TRY(cek__zip_unpack(&npz->zip, e, &bytes));
    st = cek__npy_take(bytes, e->size, as, CEK_DTYPE_NONE, out);
    if (st != CEK_OK)
        cek__fail_prefix(st, "%s: array '%s'", npz->path, name);
out:
    free(bytes);
    free(file);
    if (st != CEK_OK) {
        free(out->data);
        out->data = NULL;
    }
    return st;
}
