/* state_file.c - tells the forms of files apart. */
#include "nn/formats/state_file.h"

#include <string.h>

#include "core/base/file.h"
#include "nn/formats/safetensors.h"
#include "nn/formats/torch_file.h"
#include "nn/formats/zip.h"

enum { LOOK = 9, JSON_AT = 8 /* safetensors begins with a length, which may be any bytes, and then an object */ };

cek_status cek__st_read(const char *path, cek__st_file **out)
{
    static const uint8_t old[] = { 0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9 }; /* torch's former MAGIC_NUMBER */
    cek__file in = CEK__FILE_NONE;
    uint8_t begin[LOOK] = { 0 };
    cek_status st;

    *out = NULL;
    CEK_TRY(cek__file_open(path, UINT64_MAX, &in));
    CEK_TRY(cek__file_take(&in, begin, in.size < LOOK ? in.size : LOOK));
    cek__file_close(&in);
    if (memcmp(begin, old, sizeof old) == 0)
        CEK_FAIL(CEK_BAD_INPUT, "%s: the form in which torch.save wrote before PyTorch 1.6; save it again", path);
    if (cek__zip_magic(begin, LOOK) && begin[JSON_AT] != '{')
        return cek__torch_read(path, out);
    return cek__safetensors_read(path, out);
out:
    cek__file_close(&in);
    return st;
}
