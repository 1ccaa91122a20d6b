/* gradients.c - see gradients.h. A safetensors file is the length of a JSON header (8 bytes, little-endian), the header, the
 * data. This one is a scratch file of a comparison: it is not written atomically, as weights are. */
#include "bench/gradients.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

/* The header, padded with blanks to a multiple of eight bytes; the caller's (free). */
static char *header_text(const cek_model *model)
{
    json_t *header = json_object();
    json_int_t at = 0;
    for (size_t i = 0; i < cek_model_parameter_count(model); i++) {
        cek_parameter p;
        if (cek_model_parameter(model, i, &p))
            continue;
        json_t *shape = json_array();
        for (int k = 0; k < p.rank; k++)
            json_array_append_new(shape, json_integer(p.shape[k]));
        json_int_t bytes = p.count * (json_int_t)sizeof(double);
        json_object_set_new(header, p.name, json_pack("{ss so s[II]}", "dtype", "F64", "shape", shape, "data_offsets", at, at + bytes));
        at += bytes;
    }
    char *text = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    size_t length = text ? strlen(text) : 0, padded = (length + 7) / 8 * 8;
    char *out = text ? realloc(text, padded + 1) : NULL;
    if (out) {
        memset(out + length, ' ', padded - length);
        out[padded] = 0;
    }
    return out;
}

/* Doubles as they lie in memory: safetensors wants little-endian, which is what the machines that we run on have. */
static bool tensors_write(cek_trainer *trainer, const cek_model *model, FILE *file, cek_status *st)
{
    bool ok = true;
    for (size_t i = 0; i < cek_model_parameter_count(model) && ok; i++) {
        cek_parameter p;
        if ((*st = cek_model_parameter(model, i, &p)))
            return false;
        double *values = malloc((size_t)p.count * sizeof *values);
        *st = values ? cek_trainer_read_gradient(trainer, i, values, p.count) : CEK_OUT_OF_MEMORY;
        ok = !*st && fwrite(values, sizeof *values, (size_t)p.count, file) == (size_t)p.count;
        free(values);
    }
    return ok;
}

int gradients_save(cek_trainer *trainer, const cek_model *model, const char *path)
{
    char *header = header_text(model);
    if (!header)
        return complain(EXIT_MEMORY, "no host memory");
    uint64_t length = strlen(header);
    uint8_t prefix[8];
    for (int i = 0; i < 8; i++)
        prefix[i] = (uint8_t)(length >> 8 * i);
    cek_status st = CEK_OK;
    FILE *file = fopen(path, "wb");
    bool ok = file && fwrite(prefix, 8, 1, file) == 1 && fwrite(header, length, 1, file) == 1
              && tensors_write(trainer, model, file, &st);
    if (file && fclose(file))
        ok = false;
    free(header);
    if (st)
        return complain_status(st);
    return ok ? EXIT_OK : complain(EXIT_BAD_INPUT, "%s: %s", path, strerror(errno));
}
