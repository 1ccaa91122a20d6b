/* state.c - a model's parameters in a safetensors file, their fingerprint, and whether they are numbers.
 *
 * A file that is loaded names exactly the model's parameters, all with or all without a leading "module." (which
 * torch.nn.DataParallel puts there). Beside them it may count batches: single integers whose names end in
 * ".num_batches_tracked", which PyTorch's batch norm keeps and nothing computes with, are passed over where the model
 * has none of that name; so are the further names of a parameter that the model reads in several places
 * (cek_part_shared) and PyTorch has in each. Everything is converted before anything in the model changes.
 * Must not know: the file's form (nn/formats/state_file.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/sha256.h"
#include "core/base/status.h"
#include "nn/formats/safetensors.h"
#include "nn/formats/state_file.h"
#include "nn/model/model.h"

static const char module_prefix[] = "module.";

cek_status cek_model_save(const cek_model *model, const char *path)
{
    cek_status st;
    cek__st_tensor *tensors = NULL;
    size_t count;
    const char *metadata[1][2] = { { CEK__ST_CLASSES, NULL } };
    char *classes = NULL;

    CEK__NOT_NULL(model);
    CEK__NOT_NULL(path);
    count = cek__model_tensor_count(model);
    CEK_TRY(cek__calloc(count, sizeof *tensors, &tensors));
    for (size_t i = 0; i < count; i++) {
        const cek_parameter *p = cek__model_tensor(model, i);

        tensors[i] = (cek__st_tensor){ .name = p->name,
                                       .type = CEK__ST_F32,
                                       .rank = (uint32_t)p->rank,
                                       .count = (uint64_t)p->count,
                                       .data = p->data };
        memcpy(tensors[i].shape, p->shape, sizeof p->shape);
    }
    if (model->class_names.count > 0)
        CEK_TRY(cek__class_names_join(&model->class_names, &classes));
    metadata[0][1] = classes;
    CEK_TRY(cek__safetensors_write(path, tensors, count, (const char *const(*)[2])metadata, classes != NULL));
    st = CEK_OK;
out:
    free(classes);
    free(tensors);
    return st;
}

/* "128x64x3x3"; "a single value" for rank 0. */
static const char *shape_text(uint32_t rank, const int64_t *shape, char *text, size_t cap)
{
    size_t used = 0;

    snprintf(text, cap, "a single value");
    for (uint32_t i = 0; i < rank && used < cap; i++)
        used += (size_t)snprintf(text + used, cap - used, "%s%lld", i ? "x" : "", (long long)shape[i]);
    return text;
}

/* The tensor for one parameter, if name and shape are right. */
static cek_status tensor_for(const cek__st_file *file, const char *prefix, const cek_parameter *p,
                             const cek__st_tensor **out)
{
    cek_status st;
    char *name = NULL, wanted[192], found[192];
    const cek__st_tensor *t;

    *out = NULL;
    shape_text((uint32_t)p->rank, p->shape, wanted, sizeof wanted);
    CEK_TRY(cek__asprintf(&name, "%s%s", prefix, p->name));
    t = cek__st_find(file, name);
    if (!t)
        CEK_FAIL(CEK_BAD_INPUT, "%s: no tensor \"%s\" (%s), which the model has", file->path, name, wanted);
    shape_text(t->rank, t->shape, found, sizeof found);
    if (strcmp(wanted, found) != 0)
        CEK_FAIL(CEK_BAD_INPUT, "%s: tensor \"%s\" has the shape %s, the model's has %s", file->path, name, found,
                 wanted);
    *out = t;
    st = CEK_OK;
out:
    free(name);
    return st;
}

/* How many batches a batch norm has seen. */
static bool counts_batches(const cek__st_tensor *t)
{
    static const char suffix[] = ".num_batches_tracked";
    size_t length = strlen(t->name);

    return t->type == CEK__ST_I64 && t->rank == 0 && length >= sizeof suffix - 1 &&
           strcmp(t->name + length - (sizeof suffix - 1), suffix) == 0;
}

/* A node stands for it, beside that which it was made for. */
static bool is_shared(const cek_model *model, size_t parameter)
{
    bool shared = false;

    for (int i = 0; i < model->node_count; i++)
        shared |= i != model->parameters[parameter].node && model->nodes[i].flow == model->parameters[parameter].flow;
    return shared;
}

static bool has_shape(const cek__st_tensor *t, const cek_parameter *p)
{
    return t->rank == (uint32_t)p->rank && memcmp(t->shape, p->shape, t->rank * sizeof *t->shape) == 0;
}

/* Whether a tensor says once more what the file says of a shared parameter: its shape and its values, to the bit. */
static cek_status repeats_shared(const cek__st_tensor *t, const cek_model *model, float *const *values, bool *out)
{
    cek_status st = CEK_OK;
    float *these = NULL;

    *out = false;
    for (size_t i = 0; i < model->parameter_count && !*out; i++) {
        const cek_parameter *p = &model->parameters[i].public;

        if (!is_shared(model, i) || !has_shape(t, p))
            continue;
        if (!these) {
            CEK_TRY(cek__alloc_array((size_t)p->count, sizeof *these, &these));
            if (cek__st_to_f32(t, these) != CEK_OK) /* of a type that no parameter has */
                break;
        }
        *out = memcmp(these, values[i], (size_t)p->count * sizeof *these) == 0;
    }
out:
    free(these);
    return st;
}

/* The first tensor that no parameter of the model is called after. `values`: what the file has for each. */
static cek_status unknown_tensor(const cek__st_file *file, const char *prefix, const cek_model *model,
                                 float *const *values)
{
    cek_status st = CEK_OK;

    for (size_t i = 0; i < file->count; i++) {
        const char *name = file->tensors[i].name;
        bool known = counts_batches(&file->tensors[i]);

        for (size_t k = 0; !known && k < cek__model_tensor_count(model); k++)
            known = strncmp(name, prefix, strlen(prefix)) == 0 &&
                    strcmp(name + strlen(prefix), cek__model_tensor(model, k)->name) == 0;
        if (!known)
            CEK_TRY(repeats_shared(&file->tensors[i], model, values, &known));
        if (!known)
            CEK_FAIL(CEK_BAD_INPUT, "%s: tensor \"%s\" is none of the model's", file->path, name);
    }
out:
    return st;
}

cek_status cek_model_load(cek_model *model, const char *path)
{
    cek_status st;
    cek__st_file *file = NULL;
    cek__class_names names = { 0 };
    float **values = NULL;
    size_t count;
    const char *prefix = "";

    CEK__NOT_NULL(model);
    CEK__NOT_NULL(path);
    count = cek__model_tensor_count(model);
    CEK_TRY(cek__st_read(path, &file));
    CEK_TRY(cek__calloc(count, sizeof *values, &values));
    if (file->count > 0 && count > 0 && strncmp(file->tensors[0].name, module_prefix, strlen(module_prefix)) == 0 &&
        strncmp(cek__model_tensor(model, 0)->name, module_prefix, strlen(module_prefix)) != 0)
        prefix = module_prefix;
    for (size_t i = 0; i < count; i++) {
        const cek_parameter *p = cek__model_tensor(model, i);
        const cek__st_tensor *t;

        CEK_TRY(tensor_for(file, prefix, p, &t));
        CEK_TRY(cek__alloc_array((size_t)p->count, sizeof *values[i], &values[i]));
        st = cek__st_to_f32(t, values[i]);
        if (st != CEK_OK) {
            cek__fail_prefix(st, "%s", path);
            goto out;
        }
    }
    CEK_TRY(unknown_tensor(file, prefix, model, values));
    if (file->classes != NULL)
        CEK_TRY(cek__class_names_split(file->classes, &names));
    for (size_t i = 0; i < count; i++)
        memcpy(cek__model_tensor(model, i)->data, values[i],
               (size_t)cek__model_tensor(model, i)->count * sizeof(float));
    if (names.count > 0) {
        cek__class_names_clear(&model->class_names);
        model->class_names = names;
    }
    st = CEK_OK;
out:
    for (size_t i = 0; values && i < count; i++)
        free(values[i]);
    free(values);
    cek__st_free(file);
    return st;
}

/* The parameter whose name comes next in the order of bytes; NULL `after` asks for the first. */
static const cek_parameter *next_by_name(const cek_model *model, const char *after)
{
    const cek_parameter *best = NULL;

    for (size_t i = 0; i < cek__model_tensor_count(model); i++) {
        const cek_parameter *p = cek__model_tensor(model, i);

        if ((!after || strcmp(p->name, after) > 0) && (!best || strcmp(p->name, best->name) < 0))
            best = p;
    }
    return best;
}

cek_status cek_model_check_finite(const cek_model *model)
{
    CEK__NOT_NULL(model);
    for (size_t i = 0; i < cek__model_tensor_count(model); i++) {
        const cek_parameter *p = cek__model_tensor(model, i);

        for (int64_t k = 0; k < p->count; k++)
            if (!isfinite(p->data[k]))
                return cek__fail(CEK_NOT_FINITE, "parameter %s: element %lld of %lld is %g", p->name, (long long)k,
                                 (long long)p->count, (double)p->data[k]);
    }
    return CEK_OK;
}

void cek_model_sha256(const cek_model *model, char hex[65])
{
    cek__sha256 hash;
    uint8_t digest[32];

    if (!hex)
        return;
    hex[0] = '\0';
    if (!model)
        return;
    cek__sha256_init(&hash);
    for (const cek_parameter *p = next_by_name(model, NULL); p; p = next_by_name(model, p->name)) {
        for (int64_t i = 0; i < p->count; i += 1024) {
            size_t n = p->count - i < 1024 ? (size_t)(p->count - i) : 1024;
            uint32_t words[1024];

            memcpy(words, p->data + i, n * 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
            for (size_t k = 0; k < n; k++)
                words[k] = __builtin_bswap32(words[k]);
#endif
            cek__sha256_update(&hash, words, n * 4);
        }
    }
    cek__sha256_final(&hash, digest);
    cek__sha256_hex(digest, hex);
}
