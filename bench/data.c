/* data.c - from options to data sets and a model; see data.h. */
#include "bench/data.h"

#include <cekernels/parts.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/images.h"
#include "bench/progress.h"

/* That part of `rows`, rounded up: a fifth of 506 is 102. A product that only rounding lifts above a whole number is
 * that number. */
static int64_t rows_of(double fraction, int64_t rows)
{
    return (int64_t)ceil(fraction * (double)rows - 1e-9);
}

/* Of a set whose part for testing is known: nothing may say which. */
static int parted_check(const bench_options *o, const char *source, const char *has, const char *kind)
{
    if (!o->split && o->test_fraction < 0)
        return EXIT_OK;
    return complain(EXIT_USAGE, "--%s: %s has %s (%s)", o->split ? "split" : "test-fraction", source, has, kind);
}

static cek_status fraction_split(const bench_options *o, const cek_dataset *whole, bench_data *d)
{
    const double fraction = o->test_fraction >= 0 ? o->test_fraction : 0.2;
    return cek_dataset_split(whole, rows_of(fraction, cek_dataset_size(whole)), o->seed, &d->train, &d->test);
}

static int table_open(const bench_options *o, bench_data *d)
{
    cek_dataset *whole = NULL;
    progress_begin(0, "reading %s", o->csv);
    cek_status st = cek_dataset_csv(o->csv, o->target, &whole);
    progress_end();
    if (st)
        return complain_status(st);
    if (o->split)
        st = cek_dataset_split_file(whole, o->split, &d->train, &d->test);
    else
        st = fraction_split(o, whole, d);
    if (!st && !cek_dataset_size(d->train)) {
        int code = complain(EXIT_BAD_INPUT, "%s: %lld rows are too few: none is left to train on", o->csv,
                            (long long)cek_dataset_size(whole));
        cek_dataset_free(whole);
        return code;
    }
    /* The test set first: the training set's numbers change with its own turn. */
    if (!st && o->standardize && d->test && cek_dataset_size(d->test))
        st = cek_dataset_standardize(d->test, d->train);
    if (!st && o->standardize)
        st = cek_dataset_standardize(d->train, d->train);
    cek_dataset_free(whole);
    snprintf(d->source, sizeof d->source, "%.200s", o->csv);
    cek_text_printable(d->source);
    return st ? complain_status(st) : EXIT_OK;
}

static bool same_samples(const cek_dataset *a, const cek_dataset *b)
{
    int64_t one[CEK_RANK_MAX], other[CEK_RANK_MAX];
    int rank = cek_dataset_shape(a, one);
    return cek_dataset_input_type(a) == cek_dataset_input_type(b) && rank == cek_dataset_shape(b, other) &&
           !memcmp(one, other, (size_t)rank * sizeof *one);
}

static bool same_targets(const cek_dataset *a, const cek_dataset *b)
{
    return !cek_dataset_classes(a) == !cek_dataset_classes(b) &&
           cek_dataset_target_columns(a) == cek_dataset_target_columns(b);
}

/* In colour for a network that is made for it. */
static cek_status digits_open(const cek_preset *preset, bench_data *d)
{
    const bool coloured = preset->rank == 3 && preset->shape[0] == 3;
    cek_status (*const make)(uint64_t, bool, cek_dataset **) = coloured ? cek_dataset_coloured_digits
                                                                        : cek_dataset_digits;
    cek_status st = make(1, true, &d->train);
    snprintf(d->source, sizeof d->source, "generated digits%s", coloured ? " in colour" : "");
    return st ? st : make(1, false, &d->test);
}

static cek_status text_open(const bench_options *o, const cek_preset *preset, bench_data *d)
{
    cek_status st = cek_dataset_text(o->data, preset->shape[0], true, &d->train);
    snprintf(d->source, sizeof d->source, "%.200s", o->data);
    cek_text_printable(d->source);
    return st ? st : cek_dataset_text(o->data, preset->shape[0], false, &d->test);
}

bool model_is_file(const bench_options *o)
{
    return o->argc == 1 && ends_with(o->argv[0], ".onnx");
}

/* What images are brought to: what was asked for; for the network of a file, what that reads; grey for one that is
 * made for grey. */
static cek_image_options images_wanted(const bench_options *o, const cek_preset *preset)
{
    cek_image_options images = { .size = sizeof images, .height = o->image_height, .width = o->image_width };
    if (preset->rank != 3)
        return images;
    if (preset->shape[0] == 1 || preset->shape[0] == 3)
        images.channels = (uint32_t)preset->shape[0];
    if (model_is_file(o) && !o->image_height) {
        images.height = preset->shape[1];
        images.width = preset->shape[2];
    }
    return images;
}

static void images_tell(const bench_options *o, const bench_data *d, cek_data_kind kind)
{
    int64_t shape[CEK_RANK_MAX];
    const int rank = cek_dataset_shape(d->train, shape);
    if (o->quiet || kind == CEK_DATA_IDX)
        return;
    char text[64] = "", sizes[128] = "";
    if (cek_dataset_classes(d->train))
        snprintf(text, sizeof text, " of %lld classes", (long long)cek_dataset_classes(d->train));
    for (int i = 0; i < rank; i++) {
        const size_t used = strlen(sizes);
        snprintf(sizes + used, sizeof sizes - used, "%s%lld", i ? " x " : "", (long long)shape[i]);
    }
    fprintf(stderr, "cekernels-bench: %s: %s: %lld samples%s, %s\n", d->source, cek_data_kind_name(kind),
            (long long)cek_dataset_size(d->train), text, sizes);
}

static int place_split(const bench_options *o, bench_data *d)
{
    cek_dataset *all = d->train;
    d->train = NULL;
    cek_status st = o->split ? cek_dataset_split_file(all, o->split, &d->train, &d->test) : fraction_split(o, all, d);
    cek_dataset_free(all);
    return st ? complain_status(st) : EXIT_OK;
}

/* They are brought to a size when they are read. */
static bool has_image_files(cek_data_kind kind)
{
    return kind == CEK_DATA_FOLDERS || kind == CEK_DATA_SPLIT || kind == CEK_DATA_IMAGES || kind == CEK_DATA_IMAGE;
}

/* What has no part for testing is divided as a table is; images without classes are only looked at. */
static int place_open(const bench_options *o, const cek_preset *preset, bench_data *d)
{
    const cek_image_options images = images_wanted(o, preset);
    cek_data_kind kind;
    progress_begin(0, "reading %s", o->data);
    cek_status st = cek_data_recognize(o->data, &kind);
    if (!st)
        st = cek_dataset_open(o->data, true, &images, &d->train);
    progress_end();
    if (st)
        return complain_status(st);
    snprintf(d->source, sizeof d->source, "%.200s", o->data);
    cek_text_printable(d->source);
    if (o->image_height && !has_image_files(kind))
        return complain(EXIT_USAGE, "--image-size: %s holds samples of one size (%s)", d->source,
                        cek_data_kind_name(kind));
    images_tell(o, d, kind);
    d->unlabelled = kind == CEK_DATA_IMAGE || kind == CEK_DATA_IMAGES;
    st = d->unlabelled ? CEK_OK : cek_dataset_open(o->data, false, &images, &d->test);
    if (st == CEK_NOT_FOUND && (kind == CEK_DATA_FOLDERS || kind == CEK_DATA_ARRAYS))
        return place_split(o, d);
    if (st)
        return complain_status(st);
    return parted_check(o, d->source, d->unlabelled ? "no classes" : "its test set", cek_data_kind_name(kind));
}

/* That of the model's name; none for others, and files. CEK_BAD_INPUT: the name is one, and what is behind it wrong. */
static cek_status preset_named(const bench_options *o, cek_preset *preset)
{
    *preset = (cek_preset){ .size = sizeof *preset };
    const cek_status st = o->argc == 1 && !model_is_file(o) ? cek_preset_find(o->argv[0], preset) : CEK_NOT_FOUND;
    if (st)
        *preset = (cek_preset){ .size = sizeof *preset };
    return st == CEK_NOT_FOUND ? CEK_OK : st;
}

/* As many samples as the first array has along its first axis, or one: the model may have another opinion. */
static int arrays_open(const bench_options *o, bench_data *d)
{
    for (size_t i = 0; i < o->input_count; i++) {
        d->arrays[i].size = sizeof d->arrays[i];
        cek_status st = cek_npy_read(o->inputs[i], CEK_DTYPE_NONE, &d->arrays[i]);
        if (st)
            return complain_status(st);
        d->array_count++;
    }
    cek_preset preset;
    const cek_status st = preset_named(o, &preset);
    if (st)
        return complain_status(st);
    /* one sample may come without the first axis: as many axes as a known network reads, or a single one */
    const cek_npy *first = &d->arrays[0];
    const int from = first->rank > 1 && first->rank != preset.rank;
    d->rank = first->rank - from;
    for (int i = 0; i < d->rank; i++)
        d->shape[i] = first->shape[from + i];
    d->input_type = first->type;
    return EXIT_OK;
}

/* What the network of an ONNX file reads, as far as that decides what data there are for it. */
static int file_take(const bench_options *o, bench_data *d, cek_preset *preset)
{
    cek_input input = { .size = sizeof input };
    cek_status st = cek_model_read_onnx(o->argv[0], NULL, &d->model);
    if (st == CEK_UNSUPPORTED) /* it is the file that has what there is not, not a device that lacks it */
        return complain(EXIT_BAD_INPUT, "%s", cek_error_text());
    if (!st)
        st = cek_model_input(d->model, 0, &input);
    if (st)
        return complain_status(st);
    if (cek_model_input_count(d->model) > 1 || (input.rank == 1) != (input.type == CEK_I32))
        return EXIT_OK;
    preset->rank = input.rank;
    preset->input_type = input.type == CEK_I32 ? CEK_I32 : CEK_DTYPE_NONE;
    memcpy(preset->shape, input.shape, (size_t)input.rank * sizeof *input.shape);
    return EXIT_OK;
}

/* What a model reads against what is there for it. */
static int preset_check(const bench_options *o, const cek_preset *preset)
{
    const bool reads_text = preset->input_type == CEK_I32;
    if (reads_text && !o->data)
        return complain(EXIT_USAGE, "%s reads whole numbers, the bytes of a text: --data=FILE is wanted%s", o->argv[0],
                        o->csv ? ", not a table" : "");
    if (preset->rank == 1 && !reads_text && !o->csv)
        return complain(EXIT_USAGE, "%s reads a table: --csv=FILE and --target=COLUMN are wanted", o->argv[0]);
    if ((o->augment || o->normalize || o->image_height) && (reads_text || o->csv))
        return complain(EXIT_USAGE, "--%s is for images",
                        o->augment     ? "augment"
                        : o->normalize ? "normalize"
                                       : "image-size");
    return reads_text ? parted_check(o, o->data, "its last tenth for testing", "a text") : EXIT_OK;
}

/* Words for digits, whose shape is known before they are drawn. */
static int words_check(const bench_options *o)
{
    cek_model *model = NULL;
    cek_status st = cek_model_parse(o->argv[0], 3, (const int64_t[]){ 1, 28, 28 }, &model);
    cek_model_free(model);
    return st ? complain_status(st) : EXIT_OK;
}

int data_check(const bench_options *o)
{
    if (o->argc != 1)
        return complain(EXIT_USAGE, o->argc ? "one MODEL; a text with blanks goes in quotes" : "which MODEL?");
    if (o->type == CEK_U8 || o->type == CEK_I32)
        return complain(EXIT_NO_DEVICE, "--dtype=%s: networks compute in f32, bf16 and f16, train in f64, too",
                        cek_dtype_name(o->type));
    if (o->input_count)
        return EXIT_OK;
    if (o->data && o->csv)
        return complain(EXIT_USAGE, "--data and --csv cannot both be the data");
    if (o->csv && !o->target)
        return complain(EXIT_USAGE, "--csv needs --target=COLUMN");
    if (model_is_file(o))
        return EXIT_OK;
    cek_preset preset;
    const cek_status st = preset_named(o, &preset);
    const int code = st ? complain_status(st) : preset_check(o, &preset);
    return code || preset.name || o->data || o->csv ? code : words_check(o);
}

static int sets_open(const bench_options *o, bench_data *d)
{
    cek_preset preset;
    const cek_status named = preset_named(o, &preset);
    int code = named ? complain_status(named) : EXIT_OK;
    if (!code && model_is_file(o)) {
        code = file_take(o, d, &preset);
        if (!code)
            code = preset_check(o, &preset);
    }
    if (code)
        return code;
    const bool reads_text = preset.input_type == CEK_I32;
    if (o->csv) {
        code = table_open(o, d);
    } else if (o->data && !reads_text) {
        code = place_open(o, &preset, d);
    } else {
        progress_begin(0, "reading %s", o->data ? o->data : "generated digits");
        cek_status st = reads_text ? text_open(o, &preset, d) : digits_open(&preset, d);
        progress_end();
        code = st ? complain_status(st) : EXIT_OK;
    }
    if (!code && d->test && !same_samples(d->train, d->test))
        code = complain(EXIT_BAD_INPUT, "%s: samples for testing have another shape or type than those for training",
                        d->source);
    if (!code && d->test && !cek_dataset_size(d->test)) {
        cek_dataset_free(d->test);
        d->test = NULL;
    }
    if (!code && d->test && !same_targets(d->train, d->test))
        code = complain(EXIT_BAD_INPUT, "%s: samples for testing have other targets than those for training",
                        d->source);
    if (!code && !reads_text && !o->csv)
        code = images_prepare(o, &d->train, &d->test);
    if (!code) {
        d->input_type = cek_dataset_input_type(d->train);
        d->rank = cek_dataset_shape(d->train, d->shape);
        d->classes = cek_dataset_classes(d->train);
    }
    return code;
}

int data_open(const bench_options *o, bench_data *d)
{
    *d = (bench_data){ .train = NULL };
    int code = o->input_count ? arrays_open(o, d) : sets_open(o, d);
    if (code)
        data_close(d);
    return code;
}

void data_close(bench_data *d)
{
    cek_dataset_free(d->train);
    cek_dataset_free(d->test);
    d->train = d->test = NULL;
    cek_model_free(d->model);
    d->model = NULL;
    for (size_t i = 0; i < d->array_count; i++)
        free(d->arrays[i].data);
    d->array_count = 0;
}

/* What suits data that no preset knows: Adam; labels want cross-entropy. */
static void preset_guess(const bench_data *d, cek_preset *preset)
{
    *preset =
        (cek_preset){ .size = sizeof *preset, .loss = d->classes ? CEK_LOSS_CROSS_ENTROPY : CEK_LOSS_MSE, .batch = 64 };
}

int model_export(const bench_options *o, const cek_model *model)
{
    cek_status st = o->export ? cek_model_write_onnx(model, o->export, NULL) : CEK_OK;
    if (st == CEK_UNSUPPORTED) /* of the file, not of a device */
        return complain(EXIT_BAD_INPUT, "%s: %s", o->export, cek_error_text());
    return st ? complain_status(st) : EXIT_OK;
}

/* A built-in name with as many classes as the data have, where it does not say itself; or words. */
static cek_status words_open(const bench_options *o, const bench_data *d, const cek_preset *preset, cek_model **model)
{
    char text[256];
    const bool asks = preset->classes && d->classes && !strchr(o->argv[0], ':');
    snprintf(text, sizeof text, "%.200s:%lld", o->argv[0], (long long)d->classes);
    cek_status st = cek_model_parse(asks ? text : o->argv[0], d->rank, d->shape, model);
    if (st)
        return st;
    const bool bytes = d->input_type == CEK_U8; /* pixels go to [-1, 1]; floats are what is to be seen */
    cek_model_set_input_scale(*model, bytes ? 2.0 / 255 : 1, bytes ? -1 : 0);
    cek_model_init(*model, o->seed);
    return CEK_OK;
}

/* Words have a label each, which a loss of their own compares. */
static cek_status file_open(const bench_options *o, bench_data *d, cek_preset *preset, cek_model **model)
{
    cek_status st = CEK_OK;
    if (!d->model) /* arrays are what they are */
        return cek_model_read_onnx(o->argv[0], NULL, model);
    *model = d->model;
    d->model = NULL;
    if (d->train && d->classes && cek_dataset_target_columns(d->train) > 1) {
        const cek_loss_options loss = { .size = sizeof loss, .kind = CEK_LOSS_CROSS_ENTROPY };
        preset->loss = CEK_LOSS_OWN;
        st = cek_model_loss(*model, cek_model_output(*model), &loss, NULL);
    }
    return st;
}

int model_open(const bench_options *o, bench_data *d, cek_model **model, cek_preset *preset)
{
    *model = NULL;
    const bool file = model_is_file(o);
    *preset = (cek_preset){ .size = sizeof *preset };
    if (file || cek_preset_find(o->argv[0], preset) != CEK_OK)
        preset_guess(d, preset);
    cek_status st = file ? file_open(o, d, preset, model) : words_open(o, d, preset, model);
    if (file && st == CEK_UNSUPPORTED)
        return complain(EXIT_BAD_INPUT, "%s", cek_error_text());
    if (!st && o->dropout >= 0)
        st = cek_model_set_dropout(*model, o->dropout);
    if (!st && o->load)
        st = cek_model_load(*model, o->load);
    if (!st)
        return EXIT_OK;
    cek_model_free(*model);
    *model = NULL;
    return complain_status(st);
}

int classes_name(const bench_data *d, cek_model *model)
{
    if (!d->train || !cek_dataset_class_name(d->train, 0))
        return EXIT_OK;
    const char **names = calloc((size_t)d->classes, sizeof *names);
    if (!names)
        return complain(EXIT_MEMORY, "no host memory");
    for (int64_t i = 0; i < d->classes; i++)
        names[i] = cek_dataset_class_name(d->train, i);
    cek_status st = cek_model_set_class_names(model, names, d->classes);
    free(names);
    return st ? complain_status(st) : EXIT_OK;
}

int classes_agree(const bench_options *o, const bench_data *d, const cek_model *model)
{
    for (int64_t i = 0; i < d->classes; i++) {
        const char *ours = cek_dataset_class_name(d->train, i), *theirs = cek_model_class_name(model, i);
        if (ours && theirs && strcmp(ours, theirs))
            return complain(EXIT_BAD_INPUT, "class %lld is \"%s\" in %s, and \"%s\" to the weights of %s", (long long)i,
                            ours, d->source, theirs, o->load);
    }
    return EXIT_OK;
}
