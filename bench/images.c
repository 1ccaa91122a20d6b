/* images.c - see images.h. */
#include "bench/images.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool wrong(const char *name, const char *text, const char *wanted)
{
    complain(EXIT_USAGE, "--%s=%s: %s is wanted", name, text, wanted);
    return false;
}

bool image_size_parse(const char *name, const char *text, int64_t *height, int64_t *width)
{
    enum { MOST = 1 << 16 };
    char *end = NULL;
    errno = 0;
    *height = strtoll(text, &end, 10);
    *width = *end == 'x' ? strtoll(end + 1, &end, 10) : 0;
    if (errno || *end || *height < 1 || *width < 1 || *height > MOST || *width > MOST)
        return wrong(name, text, "HEIGHTxWIDTH in pixels, such as 32x32,");
    return true;
}

/* The number behind a word and a colon, from 0 to `most`. */
static bool number_behind(const char *item, size_t word, double most, double *out)
{
    char *end;
    *out = item[word] == ':' ? strtod(item + word + 1, &end) : NAN;
    return item[word] == ':' && end != item + word + 1 && (!*end || *end == ',') && *out >= 0 && *out <= most;
}

bool augment_parse(const char *name, const char *text, cek_augment_options *out)
{
    static const char wanted[] = "a list such as crop:4,flip,rotate:10,colour:0.2";
    *out = (cek_augment_options){ .size = sizeof *out };
    for (const char *item = text, *next; item; item = next) {
        const size_t word = strcspn(item, ":,"), length = strcspn(item, ",");
        double crop = 0;
        bool well = false;
        next = item[length] ? item + length + 1 : NULL;
        if (word == 4 && !strncmp(item, "crop", 4))
            well = number_behind(item, word, 1024, &crop) && crop == floor(crop) && (out->crop = (uint32_t)crop, true);
        else if (length == 4 && !strncmp(item, "flip", 4))
            well = out->flip = true;
        else if (word == 6 && !strncmp(item, "rotate", 6))
            well = number_behind(item, word, 180, &out->rotate);
        else if (word == 6 && !strncmp(item, "colour", 6))
            well = number_behind(item, word, 1, &out->colour);
        if (!well)
            return wrong(name, text, wanted);
    }
    return true;
}

/* Numbers between commas up to `stop`; how many, 0: something else is there. */
static int64_t numbers_read(const char *text, char stop, double *out, const char **rest)
{
    int64_t count = 0;
    for (char *end;; text = end + 1) {
        double value = strtod(text, &end);
        if (end == text || !isfinite(value) || count == CHANNELS_MOST)
            return 0;
        out[count++] = value;
        *rest = end;
        if (*end == stop)
            return count;
        if (*end != ',')
            return 0;
    }
}

bool normalize_parse(const char *name, const char *text, double *mean, double *deviation, int64_t *count)
{
    const char *rest = text;
    *count = 0;
    if (!strcmp(text, "measured"))
        return true;
    const int64_t means = numbers_read(text, ':', mean, &rest);
    const int64_t deviations = means ? numbers_read(rest + 1, '\0', deviation, &rest) : 0;
    bool well = means && means == deviations;
    for (int64_t i = 0; i < deviations; i++)
        well = well && deviation[i] > 0;
    *count = means;
    return well || wrong(name, text, "\"measured\", or means and positive deviations such as 0.5,0.5,0.5:0.2,0.2,0.2");
}

/* What was made of a data set, in its place. */
static cek_status replace(cek_dataset **set, cek_status st, cek_dataset *const *made)
{
    if (st)
        return st;
    cek_dataset_free(*set);
    *set = *made;
    return CEK_OK;
}

/* As options would say them. */
static void numbers_tell(const double *mean, const double *deviation, int64_t count)
{
    fputs("cekernels-bench: --normalize=", stderr);
    for (int64_t i = 0; i < 2 * count; i++)
        fprintf(stderr, "%s%.6g", !i ? "" : i == count ? ":" : ",", i < count ? mean[i] : deviation[i - count]);
    fputs(" was measured\n", stderr);
}

static int normalize(const bench_options *o, cek_dataset **train, cek_dataset **test)
{
    double mean[CHANNELS_MOST], deviation[CHANNELS_MOST];
    int64_t shape[CEK_RANK_MAX];
    cek_dataset *other = NULL;
    const int rank = cek_dataset_shape(*train, shape);
    const int64_t width = rank == 3 ? shape[0] : shape[rank - 1];
    cek_status st = CEK_OK;
    memcpy(mean, o->mean, sizeof mean);
    memcpy(deviation, o->deviation, sizeof deviation);
    if (width > CHANNELS_MOST || (o->normal_count && o->normal_count != width))
        return complain(EXIT_USAGE, "--normalize=%s: the samples have %lld channels", o->normalize, (long long)width);
    if (!o->normal_count) {
        st = cek_dataset_channel_statistics(*train, mean, deviation);
        if (!st && !o->quiet)
            numbers_tell(mean, deviation, width);
    }
    if (!st)
        st = replace(train, cek_dataset_normalize(*train, mean, deviation, &other), &other);
    if (!st && *test)
        st = replace(test, cek_dataset_normalize(*test, mean, deviation, &other), &other);
    return st ? complain_status(st) : EXIT_OK;
}

int images_prepare(const bench_options *o, cek_dataset **train, cek_dataset **test)
{
    cek_dataset *drawn = NULL;
    cek_status st = CEK_OK;
    if (o->augment)
        st = replace(train, cek_dataset_augment(*train, &o->augmentation, &drawn), &drawn);
    if (st)
        return complain_status(st);
    return o->normalize ? normalize(o, train, test) : EXIT_OK;
}
