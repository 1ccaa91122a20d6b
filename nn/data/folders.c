/* folders.c - see folders.h. */
#include "nn/data/folders.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/alloc.h"
#include "core/base/nearest.h"
#include "nn/images/image.h"

/* ---- what is in a folder ---- */

void cek__names_free(cek__names *n)
{
    for (int64_t i = 0; i < n->count; i++)
        free(n->names[i]);
    free(n->names);
    *n = (cek__names){ 0 };
}

/* Takes `name` (of malloc) over, on failure too. */
static cek_status name_add(cek__names *n, char *name)
{
    if ((n->count & (n->count - 1)) == 0) { /* full: there is room for powers of two */
        cek_status st = cek__realloc_array(n->count > 0 ? 2 * (size_t)n->count : 1, sizeof *n->names, &n->names);

        if (st != CEK_OK) {
            free(name);
            return st;
        }
    }
    n->names[n->count++] = name;
    return CEK_OK;
}

static int by_bytes(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

cek_status cek__names_read(const char *folder, cek__names *out)
{
    cek_status st = CEK_OK;
    cek__names names = { 0 };
    DIR *dir = opendir(folder);

    *out = (cek__names){ 0 };
    if (dir == NULL) {
        const int error = errno;
        cek__nearest near;

        st = cek__fail_errno(CEK_IO, error, "%s: cannot be read as a folder", folder);
        return error == ENOENT ? cek__fail(st, "%s%s", cek_error_text(), cek__nearest_file(&near, folder)) : st;
    }
    errno = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL; errno = 0) {
        char *name;

        if (entry->d_name[0] == '.')
            continue;
        CEK_TRY(cek__strdup(entry->d_name, &name));
        CEK_TRY(name_add(&names, name));
    }
    if (errno != 0) {
        st = cek__fail_errno(CEK_IO, errno, "%s: cannot be read to its end", folder);
        goto out;
    }
    if (names.count > 0)
        qsort(names.names, (size_t)names.count, sizeof *names.names, by_bytes);
    *out = names;
    names = (cek__names){ 0 };
out:
    if (dir != NULL)
        closedir(dir);
    cek__names_free(&names);
    return st;
}

bool cek__is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool cek__has_folder(const char *folder, const char *name)
{
    char path[PATH_MAX]; /* what is longer is no path to stat either; and whether a class is there hangs on no memory */
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);

    return length >= 0 && (size_t)length < sizeof path && cek__is_folder(path);
}

/* ---- samples ---- */

typedef struct pictures {
    cek__names classes, files; /* paths */
    int32_t *labels;           /* of each file; NULL: there are no classes */
    int64_t height, width;
    uint32_t channels;
    bool exact; /* each has that size, none is scaled */
} pictures;

static void pictures_free(void *user)
{
    pictures *p = user;

    if (p == NULL)
        return;
    cek__names_free(&p->classes);
    cek__names_free(&p->files);
    free(p->labels);
    free(p);
}

static cek_status picture_read(const pictures *p, int64_t row, uint8_t *to)
{
    cek_status st;
    cek__pixels image = { 0 };

    CEK_TRY(cek__image_read(p->files.names[row], &image));
    if (p->exact && (image.height != p->height || image.width != p->width))
        CEK_FAIL(CEK_BAD_INPUT,
                 "%s: %" PRId64 " x %" PRId64 " pixels, the first image has %" PRId64 " x %" PRId64
                 "; images of several sizes need a height and width that they are brought to",
                 p->files.names[row], image.height, image.width, p->height, p->width);
    st = cek__image_fit(&image, p->height, p->width, p->channels, to);
out:
    cek__pixels_free(&image);
    return st;
}

static cek_status pictures_read(void *user, const cek__data_draw *draw, const int64_t *rows, int64_t count,
                                void *inputs, void *targets)
{
    const pictures *p = user;
    const size_t bytes = (size_t)p->height * (size_t)p->width * p->channels;
    cek_status st = CEK_OK;

    (void)draw;
    for (int64_t i = 0; i < count; i++) {
        CEK_TRY(picture_read(p, rows[i], (uint8_t *)inputs + (size_t)i * bytes));
        if (p->labels != NULL)
            ((int32_t *)targets)[i] = p->labels[rows[i]];
        else
            ((float *)targets)[i] = 0;
    }
out:
    return st;
}

static const char *class_name(void *user, int64_t label)
{
    return ((const pictures *)user)->classes.names[label];
}

static const char *row_name(void *user, int64_t row)
{
    return ((const pictures *)user)->files.names[row];
}

/* The sizes that the options leave open, from the first image; and the options themselves. */
static cek_status format_find(pictures *p, const cek_image_options *o, cek__data_format *format)
{
    cek_status st = CEK_OK;
    cek__pixels first = { 0 };

    if (o->channels != 0 && o->channels != 1 && o->channels != 3)
        CEK_FAIL(CEK_INVALID, "images of %" PRIu32 " channels: 1 (grey) and 3 (RGB) are made", o->channels);
    if ((o->height != 0) != (o->width != 0) || o->height < 0 || o->width < 0 ||
        (o->height > 0 && o->width > CEK__PIXELS_MOST / o->height))
        CEK_FAIL(CEK_INVALID,
                 "images of %" PRId64 " x %" PRId64 " pixels: both are given or neither, at most %d in all", o->height,
                 o->width, CEK__PIXELS_MOST);
    if (p->files.count == 0)
        CEK_FAIL(CEK_INVALID, "images: none are given");
    CEK_TRY(cek__image_read(p->files.names[0], &first));
    p->exact = o->height == 0;
    p->height = p->exact ? first.height : o->height;
    p->width = p->exact ? first.width : o->width;
    p->channels = o->channels != 0 ? o->channels : first.channels;
    *format = (cek__data_format){ .input_type = CEK_U8,
                                  .input_rank = 3,
                                  .input_shape = { p->height, p->width, p->channels },
                                  .target_type = p->labels != NULL ? CEK_I32 : CEK_F32,
                                  .target_width = 1,
                                  .class_count = p->classes.count };
out:
    cek__pixels_free(&first);
    return st;
}

/* Takes `p` over, on failure too. */
static cek_status pictures_dataset(pictures *p, const cek_image_options *options, cek_dataset **out)
{
    const cek__data_source source = { .user = p,
                                      .read = pictures_read,
                                      .destroy = pictures_free,
                                      .class_name = p->classes.count > 0 ? class_name : NULL,
                                      .row_name = row_name };
    cek__data_format format;
    cek_status st;

    CEK_TRY(format_find(p, options, &format));
    CEK_TRY(cek__dataset_from_source(&format, p->files.count, &source, out));
    return CEK_OK;
out:
    pictures_free(p);
    return st;
}

cek_status cek__images_dataset(const char *const *paths, int64_t count, const cek_image_options *options,
                               cek_dataset **out)
{
    cek_status st;
    pictures *p = NULL;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *p, &p));
    for (int64_t i = 0; i < count; i++) {
        char *path;

        CEK_TRY(cek__strdup(paths[i], &path));
        CEK_TRY(name_add(&p->files, path));
    }
    return pictures_dataset(p, options, out);
out:
    pictures_free(p);
    return st;
}

/* ---- classes ---- */

/* The sub-folders of a folder, whatever else lies there. */
static cek_status classes_find(const char *directory, cek__names *out)
{
    cek_status st;
    cek__names all = { 0 };

    *out = (cek__names){ 0 };
    CEK_TRY(cek__names_read(directory, &all));
    for (int64_t i = 0; i < all.count; i++) {
        if (!cek__has_folder(directory, all.names[i]))
            continue;
        st = name_add(out, all.names[i]);
        all.names[i] = NULL;
        CEK_TRY(st);
    }
    if (out->count == 0)
        CEK_FAIL(CEK_BAD_INPUT, "%s: there are no folders in it, one for the images of each class", directory);
out:
    cek__names_free(&all);
    if (st != CEK_OK)
        cek__names_free(out);
    return st;
}

/* The label of a folder's name; -1: no class is called like that. */
static int32_t label_of(const pictures *p, const char *name)
{
    for (int64_t i = 0; i < p->classes.count; i++)
        if (strcmp(p->classes.names[i], name) == 0)
            return (int32_t)i;
    return -1;
}

static cek_status classes_given(const cek_image_options *o, pictures *p)
{
    cek_status st = CEK_OK;

    for (uint64_t i = 0; i < o->class_count; i++) {
        char *name;

        if (label_of(p, o->classes[i]) >= 0)
            CEK_FAIL(CEK_INVALID, "classes[%" PRIu64 "] is \"%s\", as one before it", i, o->classes[i]);
        CEK_TRY(cek__strdup(o->classes[i], &name));
        CEK_TRY(name_add(&p->classes, name));
    }
out:
    return st;
}

/* The images of one class behind those that there are. */
static cek_status class_add(pictures *p, const char *directory, const char *name, int32_t label)
{
    cek_status st;
    cek__names all = { 0 };
    char *folder = NULL, *path;
    const int64_t before = p->files.count;

    CEK_TRY(cek__asprintf(&folder, "%s/%s", directory, name));
    CEK_TRY(cek__names_read(folder, &all));
    for (int64_t i = 0; i < all.count; i++) {
        if (!cek__image_named(all.names[i])) {
            if (cek__has_folder(folder, all.names[i]))
                CEK_FAIL(CEK_BAD_INPUT, "%s/%s: a folder within that of a class, where images alone are looked for",
                         folder, all.names[i]);
            continue;
        }
        CEK_TRY(cek__asprintf(&path, "%s/%s", folder, all.names[i]));
        CEK_TRY(name_add(&p->files, path));
    }
    if (p->files.count == before)
        CEK_FAIL(CEK_BAD_INPUT, "%s: a class without images (.png, .jpg, .jpeg, .ppm, .pgm, .pnm)", folder);
    CEK_TRY(cek__realloc_array((size_t)p->files.count, sizeof *p->labels, &p->labels));
    for (int64_t i = before; i < p->files.count; i++)
        p->labels[i] = label;
out:
    free(folder);
    cek__names_free(&all);
    return st;
}

cek_status cek__folders_dataset(const char *directory, const cek_image_options *options, cek_dataset **out)
{
    cek_status st;
    pictures *p = NULL;
    cek__names folders = { 0 };

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *p, &p));
    CEK_TRY(classes_find(directory, &folders));
    if (options->classes != NULL)
        CEK_TRY(classes_given(options, p));
    for (int64_t i = 0; i < folders.count; i++) {
        const int32_t label = options->classes != NULL ? label_of(p, folders.names[i]) : (int32_t)i;

        if (label < 0)
            CEK_FAIL(CEK_BAD_INPUT,
                     "%s/%s: no class is called \"%s\"; the %" PRId64 " that there are begin with \"%s\"", directory,
                     folders.names[i], folders.names[i], p->classes.count,
                     p->classes.count > 0 ? p->classes.names[0] : "");
        CEK_TRY(class_add(p, directory, folders.names[i], label));
    }
    if (options->classes == NULL) {
        p->classes = folders;
        folders = (cek__names){ 0 };
    }
    cek__names_free(&folders);
    return pictures_dataset(p, options, out);
out:
    cek__names_free(&folders);
    pictures_free(p);
    return st;
}
