/* data_api.c - data.h in terms of the files beside this one.
 *
 * Owns: options and their defaults. Must not know: how anything is done. */
#include "cekernels/nn.h"
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/data/arrays.h"
#include "nn/data/augment.h"
#include "nn/data/callback.h"
#include "nn/data/cifar.h"
#include "nn/data/folders.h"
#include "nn/data/kinds.h"
#include "nn/data/normalize.h"

/* At the head of a function that makes a data set: *out is NULL whatever fails. */
#define CEK__OUT(out)   \
    CEK__NOT_NULL(out); \
    *out = NULL

/* `from` may be NULL. */
static cek_status images_take(const char *who, const cek_image_options *from, cek_image_options *to)
{
    cek_status st = cek__options_take(who, to, sizeof *to, from);

    if (st != CEK_OK || to->classes == NULL)
        return st != CEK_OK || to->class_count == 0 ? st : cek__fail(CEK_INVALID, "%s: classes is NULL", who);
    for (uint64_t i = 0; i < to->class_count; i++)
        if (to->classes[i] == NULL)
            return cek__fail(CEK_INVALID, "%s: classes[%llu] is NULL", who, (unsigned long long)i);
    return CEK_OK;
}

cek_status cek_dataset_folders(const char *directory, const cek_image_options *options, cek_dataset **out)
{
    cek_image_options o;
    cek_status st;

    CEK__OUT(out);
    CEK__NOT_NULL(directory);
    st = images_take("cek_dataset_folders", options, &o);
    return st != CEK_OK ? st : cek__folders_dataset(directory, &o, out);
}

cek_status cek_dataset_images(const char *const *paths, int64_t count, const cek_image_options *options,
                              cek_dataset **out)
{
    cek_image_options o;
    cek_status st;

    CEK__OUT(out);
    CEK__NOT_NULL(paths);
    for (int64_t i = 0; i < count; i++)
        CEK__NOT_NULL(paths[i]);
    st = images_take("cek_dataset_images", options, &o);
    return st != CEK_OK ? st : cek__images_dataset(paths, count, &o, out);
}

cek_status cek_dataset_cifar10(const char *directory, bool train, cek_dataset **out)
{
    CEK__OUT(out);
    CEK__NOT_NULL(directory);
    return cek__cifar_dataset(directory, train, out);
}

cek_status cek_dataset_source(const cek_source_options *options, cek_dataset **out)
{
    cek_source_options o;
    cek_status st;

    CEK__OUT(out);
    CEK__NOT_NULL(options);
    st = cek__options_take("cek_dataset_source", &o, sizeof o, options);
    return st != CEK_OK ? st : cek__callback_dataset(&o, out);
}

cek_status cek_dataset_npy(const char *x, const char *y, cek_dataset **out)
{
    CEK__OUT(out);
    CEK__NOT_NULL(x);
    CEK__NOT_NULL(y);
    return cek__npy_dataset(x, y, CEK__ARRAYS_HELD, out);
}

const char *cek_data_kind_name(cek_data_kind kind)
{
    static const char *const names[] = {
        NULL, "IDX files", "CIFAR-10", "class folders", "class folders of two sets", "images", "an image", "arrays"
    };

    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : NULL;
}

cek_status cek_data_recognize(const char *path, cek_data_kind *out)
{
    CEK__NOT_NULL(out);
    *out = 0;
    CEK__NOT_NULL(path);
    return cek__kind_find(path, out);
}

cek_status cek_dataset_open(const char *path, bool train, const cek_image_options *images, cek_dataset **out)
{
    cek_image_options o;
    cek_status st;

    CEK__OUT(out);
    CEK__NOT_NULL(path);
    st = images_take("cek_dataset_open", images, &o);
    return st != CEK_OK ? st : cek__kind_open(path, train, &o, out);
}

/* ---- on the workers ---- */

cek_status cek_dataset_augment(const cek_dataset *dataset, const cek_augment_options *options, cek_dataset **out)
{
    cek_augment_options o;
    cek_status st;

    CEK__OUT(out);
    CEK__NOT_NULL(dataset);
    CEK__NOT_NULL(options);
    st = cek__options_take("cek_dataset_augment", &o, sizeof o, options);
    return st != CEK_OK ? st : cek__augment_dataset(dataset, &o, out);
}

cek_status cek_dataset_channel_statistics(const cek_dataset *dataset, double *mean, double *deviation)
{
    const cek__data_format *f;
    cek_status st;

    CEK__NOT_NULL(dataset);
    CEK__NOT_NULL(mean);
    CEK__NOT_NULL(deviation);
    f = cek__dataset_format(dataset);
    if (f->input_type == CEK_I32)
        return cek__fail(CEK_INVALID, "data set: samples of whole numbers have no mean");
    st = cek__dataset_statistics(dataset, mean, deviation);
    for (int64_t c = 0; st == CEK_OK && f->input_type == CEK_U8 && c < f->input_shape[f->input_rank - 1]; c++) {
        mean[c] /= 255;
        deviation[c] /= 255;
    }
    return st;
}

cek_status cek_dataset_normalize(const cek_dataset *dataset, const double *mean, const double *deviation,
                                 cek_dataset **out)
{
    CEK__OUT(out);
    CEK__NOT_NULL(dataset);
    CEK__NOT_NULL(mean);
    CEK__NOT_NULL(deviation);
    return cek__normalize_dataset(dataset, mean, deviation, out);
}
