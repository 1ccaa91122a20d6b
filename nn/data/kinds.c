/* kinds.c - see kinds.h. */
#include "nn/data/kinds.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "nn/data/arrays.h"
#include "nn/data/cifar.h"
#include "nn/data/folders.h"
#include "nn/data/idx.h"
#include "nn/images/image.h"

static bool has(const cek__names *names, const char *name)
{
    for (int64_t i = 0; i < names->count; i++)
        if (strcmp(names->names[i], name) == 0)
            return true;
    return false;
}

/* FOLDER/NAME has folders in it, so that NAME is no class but a part. */
static cek_status is_part(const char *folder, const char *name, bool *out)
{
    cek_status st = CEK_OK;
    cek__names names = { 0 };
    char *path = NULL;

    *out = false;
    if (!cek__has_folder(folder, name))
        return CEK_OK;
    CEK_TRY(cek__asprintf(&path, "%s/%s", folder, name));
    CEK_TRY(cek__names_read(path, &names));
    for (int64_t i = 0; i < names.count && !*out; i++)
        *out = cek__has_folder(path, names.names[i]);
out:
    cek__names_free(&names);
    free(path);
    return st;
}

/* *out 0: nothing that is known. */
static cek_status folder_kind(const char *path, const cek__names *names, cek_data_kind *out)
{
    static const char *const idx[] = { "train-images-idx3-ubyte", "train-images-idx3-ubyte.gz",
                                       "t10k-images-idx3-ubyte", "t10k-images-idx3-ubyte.gz" };
    cek_data_kind kind = 0;
    bool part;
    cek_status st;

    for (size_t i = 0; i < sizeof idx / sizeof *idx; i++)
        if (has(names, idx[i]))
            kind = CEK_DATA_IDX;
    if (kind == 0 && (has(names, "data_batch_1.bin") || has(names, "test_batch.bin")))
        kind = CEK_DATA_CIFAR10;
    if (kind == 0 && cek__arrays_there(path))
        kind = CEK_DATA_ARRAYS;
    if (kind == 0) {
        CEK_TRY(is_part(path, "train", &part));
        kind = part ? CEK_DATA_SPLIT : 0;
    }
    *out = kind;
    for (int64_t i = 0; kind == 0 && i < names->count && *out != CEK_DATA_FOLDERS; i++)
        if (cek__has_folder(path, names->names[i]))
            *out = CEK_DATA_FOLDERS;
        else if (cek__image_named(names->names[i]))
            *out = CEK_DATA_IMAGES;
    return CEK_OK;
out:
    return st;
}

cek_status cek__kind_find(const char *path, cek_data_kind *out)
{
    cek_status st;
    cek__names names = { 0 };

    *out = 0;
    if (!cek__is_folder(path) && access(path, F_OK) == 0) {
        if (cek__arrays_there(path)) {
            *out = CEK_DATA_ARRAYS;
            return CEK_OK;
        }
        if (!cek__image_named(path))
            CEK_FAIL(CEK_BAD_INPUT,
                     "%s: neither a folder nor an image (.png, .jpg, .jpeg, .ppm, .pgm, .pnm) nor arrays (.npz, "
                     ".safetensors)",
                     path);
        *out = CEK_DATA_IMAGE;
        return CEK_OK;
    }
    CEK_TRY(cek__names_read(path, &names));
    CEK_TRY(folder_kind(path, &names, out));
    if (*out == 0)
        CEK_FAIL(
            CEK_BAD_INPUT,
            "%s: there is neither train-images-idx3-ubyte (IDX) nor data_batch_1.bin (CIFAR-10) nor x.npy, no folder "
            "of a class and no image",
            path);
    st = CEK_OK;
out:
    cek__names_free(&names);
    return st;
}

static cek_status images_open(const char *folder, const cek_image_options *images, cek_dataset **out)
{
    cek_status st;
    cek__names names = { 0 }, paths = { 0 };

    CEK_TRY(cek__names_read(folder, &names));
    CEK_TRY(cek__calloc((size_t)names.count, sizeof *paths.names, &paths.names));
    for (int64_t i = 0; i < names.count; i++)
        if (cek__image_named(names.names[i])) {
            CEK_TRY(cek__asprintf(&paths.names[paths.count], "%s/%s", folder, names.names[i]));
            paths.count++;
        }
    st = cek__images_dataset((const char *const *)paths.names, paths.count, images, out);
out:
    cek__names_free(&paths);
    cek__names_free(&names);
    return st;
}

/* Names of classes and the channels of images are those of the training set. */
static cek_status test_open(const char *train, const char *test, const cek_image_options *images, cek_dataset **out)
{
    cek_status st;
    cek_image_options o = *images;
    cek_dataset *by = NULL;
    const char **names = NULL;

    CEK_TRY(cek__folders_dataset(train, images, &by));
    o.channels = (uint32_t)cek__dataset_format(by)->input_shape[2];
    o.class_count = (uint64_t)cek_dataset_classes(by);
    CEK_TRY(cek__alloc_array(o.class_count, sizeof *names, &names));
    for (uint64_t i = 0; i < o.class_count; i++)
        names[i] = cek_dataset_class_name(by, (int64_t)i);
    o.classes = names;
    st = cek__folders_dataset(test, &o, out);
out:
    cek_dataset_free(by);
    free(names);
    return st;
}

static cek_status split_open(const char *path, bool train, const cek_image_options *images, cek_dataset **out)
{
    cek_status st;
    char *first = NULL, *second = NULL;

    CEK_TRY(cek__asprintf(&first, "%s/train", path));
    if (train) {
        st = cek__folders_dataset(first, images, out);
        goto out;
    }
    CEK_TRY(cek__asprintf(&second, "%s/%s", path, cek__has_folder(path, "test") ? "test" : "val"));
    if (!cek__is_folder(second))
        CEK_FAIL(CEK_NOT_FOUND, "%s: there is neither test nor val beside train", path);
    st = test_open(first, second, images, out);
out:
    free(first);
    free(second);
    return st;
}

cek_status cek__kind_open(const char *path, bool train, const cek_image_options *images, cek_dataset **out)
{
    cek_status st;
    cek_data_kind kind;

    *out = NULL;
    CEK_TRY(cek__kind_find(path, &kind));
    switch (kind) {
    case CEK_DATA_IDX: return cek__idx_mnist(path, train, out);
    case CEK_DATA_CIFAR10: return cek__cifar_dataset(path, train, out);
    case CEK_DATA_ARRAYS: return cek__arrays_dataset(path, train, out);
    case CEK_DATA_SPLIT: return split_open(path, train, images, out);
    case CEK_DATA_FOLDERS:
    case CEK_DATA_IMAGES:
    case CEK_DATA_IMAGE: break;
    }
    if (!train)
        CEK_FAIL(CEK_NOT_FOUND, "%s: has no part for testing", path);
    if (kind == CEK_DATA_FOLDERS)
        return cek__folders_dataset(path, images, out);
    if (kind == CEK_DATA_IMAGES)
        return images_open(path, images, out);
    return cek__images_dataset(&path, 1, images, out);
out:
    return st;
}
