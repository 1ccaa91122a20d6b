/* event_log.c - the file of an event log, and the values that stand in it: scalars, histograms, images, texts.
 *
 * A log is flat: nothing is kept but the file, so that what one call writes cannot hang on what another did. */
#include "nn/report/event_log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/text.h"
#include "nn/formats/png_write.h"
#include "nn/report/histogram.h"

enum { DT_STRING = 7 };
#define IMAGE_BYTES_MAX ((int64_t)1 << 28) /* 8192 x 8192 RGBA: what a browser still shows */

/* ---- the file ---- */

double cek__event_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* With the folders above it. */
static cek_status folder_make(const char *folder)
{
    cek_status st;
    char *path;
    struct stat info;

    CEK_TRY(cek__strdup(folder, &path));
    for (char *slash = strchr(path + (path[0] == '/'), '/');; slash = strchr(slash + 1, '/')) {
        if (slash != NULL)
            *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST) {
            st = cek__fail_errno(CEK_IO, errno, "%s: the folder %s cannot be made", folder, path);
            goto out;
        }
        if (slash == NULL)
            break;
        *slash = '/';
    }
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        CEK_FAIL(CEK_IO, "%s: not a folder", folder);
out:
    free(path);
    return st;
}

/* As TensorBoard's own writers call theirs: by time, host, process, and a number where all these are taken. */
static cek_status file_make(const char *folder, cek__records *out)
{
    enum { TRIES = 10000 };
    cek_status st = CEK_OK;
    char host[65] = "", *path = NULL;
    bool exists = true;

    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0' || strchr(host, '/') != NULL)
        strcpy(host, "localhost");
    for (int number = 0; number < TRIES && exists; number++) {
        free(path);
        CEK_TRY(cek__asprintf(&path, "%s/events.out.tfevents.%010lld.%s.%ld.%d", folder, (long long)time(NULL), host,
                              (long)getpid(), number));
        st = cek__records_create(path, out, &exists);
    }
out:
    free(path);
    return st;
}

cek_status cek_event_log_create(const char *folder, cek_event_log **out)
{
    cek_status st;
    cek_event_log *log = NULL;
    cek__message *event;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(folder);
    CEK_TRY(cek__calloc(1, sizeof *log, &log));
    log->records.fd = -1;
    CEK_TRY(folder_make(folder));
    CEK_TRY(file_make(folder, &log->records));
    CEK_TRY(cek__event_begin(log, 0, &event));
    CEK_TRY(cek__message_text(event, CEK__EVENT_VERSION, "brain.Event:2"));
    CEK_TRY(cek__records_add(&log->records));
    *out = log;
    return CEK_OK;
out:
    if (log != NULL && log->records.path != NULL)
        unlink(log->records.path);
    cek_event_log_free(log);
    return st;
}

cek_status cek_event_log_flush(cek_event_log *log)
{
    CEK__NOT_NULL(log);
    return cek__records_sync(&log->records);
}

void cek_event_log_free(cek_event_log *log)
{
    if (log == NULL)
        return;
    cek__records_close(&log->records);
    free(log);
}

/* ---- events ---- */

cek_status cek__event_text_check(const char *what, const char *text)
{
    const char *at = text;
    uint32_t code;

    if (text == NULL)
        return cek__fail(CEK_INVALID, "a %s is NULL", what);
    while (*at != '\0') {
        const size_t length = cek__utf8_next(at, &code);

        if (length == 0)
            return cek__fail(CEK_INVALID, "a %s is no UTF-8: %s", what, text);
        at += length;
    }
    return CEK_OK;
}

cek_status cek__event_name_check(const char *what, const char *name)
{
    const cek_status st = cek__event_text_check(what, name);

    return st == CEK_OK && name[0] == '\0' ? cek__fail(CEK_INVALID, "a %s is empty", what) : st;
}

static cek_status step_check(const char *what, int64_t step)
{
    return step < 0 ? cek__fail(CEK_INVALID, "%s: step %" PRId64 " is below 0", what, step) : CEK_OK;
}

/* What every value begins with. */
static cek_status value_begin(const char *tag, int64_t step, cek__message *value)
{
    cek_status st;

    CEK_TRY(cek__event_name_check("tag", tag));
    CEK_TRY(step_check(tag, step));
    st = cek__message_text(value, CEK__VALUE_TAG, tag);
out:
    return st;
}

cek_status cek__event_begin(cek_event_log *log, int64_t step, cek__message **out)
{
    cek_status st;

    CEK_TRY(cek__records_begin(&log->records, out));
    CEK_TRY(cek__message_double(*out, CEK__EVENT_WALL_TIME, cek__event_now()));
    if (step != 0) /* what is not there is 0 */
        st = cek__message_integer(*out, CEK__EVENT_STEP, step);
out:
    return st;
}

cek_status cek__event_summary(cek_event_log *log, int64_t step, cek__message *summary)
{
    cek_status st;
    cek__message *event;

    CEK_TRY(cek__event_begin(log, step, &event));
    CEK_TRY(cek__message_within(event, CEK__EVENT_SUMMARY, summary));
    st = cek__records_add(&log->records);
out:
    return st;
}

cek_status cek__event_value(cek_event_log *log, int64_t step, cek__message *value)
{
    cek_status st;
    cek__message summary = { 0 };

    CEK_TRY(cek__message_within(&summary, CEK__SUMMARY_VALUE, value));
    st = cek__event_summary(log, step, &summary);
out:
    free(summary.at);
    return st;
}

cek_status cek__event_plugin(cek__message *value, const char *plugin, cek__message *content)
{
    cek_status st;
    cek__message data = { 0 }, metadata = { 0 };

    CEK_TRY(cek__message_text(&data, 1, plugin));
    CEK_TRY(cek__message_within(&data, 2, content));
    CEK_TRY(cek__message_within(&metadata, 1, &data));
    st = cek__message_within(value, CEK__VALUE_METADATA, &metadata);
out:
    free(data.at);
    free(metadata.at);
    return st;
}

/* ---- values ---- */

cek_status cek_event_log_scalar(cek_event_log *log, const char *tag, int64_t step, double value)
{
    CEK__NOT_NULL(tag);
    return cek_event_log_scalars(log, step, &(cek_event_scalar){ tag, value }, 1);
}

cek_status cek_event_log_scalars(cek_event_log *log, int64_t step, const cek_event_scalar *scalars, size_t count)
{
    cek_status st;
    cek__message value = { 0 }, summary = { 0 };

    CEK__NOT_NULL(log);
    CEK__NOT_NULL(scalars);
    for (size_t i = 0; i < count; i++) {
        CEK_TRY(value_begin(scalars[i].tag, step, &value));
        CEK_TRY(cek__message_float(&value, CEK__VALUE_SCALAR, (float)scalars[i].value));
        CEK_TRY(cek__message_within(&summary, CEK__SUMMARY_VALUE, &value));
    }
    CEK_TRY(step_check("no scalars", step)); /* of others it was checked */
    st = cek__event_summary(log, step, &summary);
out:
    free(value.at);
    free(summary.at);
    return st;
}

cek_status cek_event_log_histogram(cek_event_log *log, const char *tag, int64_t step, const float *values,
                                   int64_t count)
{
    cek_status st;
    cek__message value = { 0 }, within = { 0 };
    cek__histogram *h = NULL;

    CEK__NOT_NULL(log);
    CEK__NOT_NULL(tag);
    CEK__NOT_NULL(values);
    CEK_TRY(value_begin(tag, step, &value));
    if (count < 0)
        CEK_FAIL(CEK_INVALID, "%s: a histogram of %" PRId64 " values", tag, count);
    CEK_TRY(cek__malloc(sizeof *h, &h));
    cek__histogram_of(values, count, h);
    CEK_TRY(cek__histogram_write(h, &within));
    CEK_TRY(cek__message_within(&value, CEK__VALUE_HISTOGRAM, &within));
    st = cek__event_value(log, step, &value);
out:
    free(h);
    free(within.at);
    free(value.at);
    return st;
}

static cek_status image_check(const char *tag, int64_t height, int64_t width, int64_t channels)
{
    if (height < 1 || width < 1 || channels < 1 || channels > 4 || width > IMAGE_BYTES_MAX / height / channels)
        return cek__fail(CEK_INVALID,
                         "%s: an image of %" PRId64 " x %" PRId64 " pixels in %" PRId64
                         " channels; 1 to 4 channels and at most %" PRId64 " bytes are taken",
                         tag, height, width, channels, IMAGE_BYTES_MAX);
    return CEK_OK;
}

cek_status cek_event_log_image(cek_event_log *log, const char *tag, int64_t step, const uint8_t *pixels, int64_t height,
                               int64_t width, int64_t channels)
{
    cek_status st;
    cek__message value = { 0 }, image = { 0 }, png = { 0 };

    CEK__NOT_NULL(log);
    CEK__NOT_NULL(tag);
    CEK__NOT_NULL(pixels);
    CEK_TRY(value_begin(tag, step, &value));
    CEK_TRY(image_check(tag, height, width, channels));
    CEK_TRY(cek__png_write(pixels, (uint32_t)height, (uint32_t)width, (uint32_t)channels, &png));
    CEK_TRY(cek__message_integer(&image, 1, height));
    CEK_TRY(cek__message_integer(&image, 2, width));
    CEK_TRY(cek__message_integer(&image, 3, channels));
    CEK_TRY(cek__message_within(&image, 4, &png));
    CEK_TRY(cek__message_within(&value, CEK__VALUE_IMAGE, &image));
    st = cek__event_value(log, step, &value);
out:
    free(png.at);
    free(image.at);
    free(value.at);
    return st;
}

cek_status cek_event_log_text(cek_event_log *log, const char *tag, int64_t step, const char *text)
{
    cek_status st;
    cek__message value = { 0 }, tensor = { 0 }, content = { 0 };

    CEK__NOT_NULL(log);
    CEK__NOT_NULL(tag);
    CEK__NOT_NULL(text);
    CEK_TRY(value_begin(tag, step, &value));
    CEK_TRY(cek__event_text_check("text", text));
    CEK_TRY(cek__event_plugin(&value, "text", &content));
    CEK_TRY(cek__message_integer(&tensor, 1, DT_STRING));
    CEK_TRY(cek__message_field(&tensor, 2, NULL, 0)); /* of no axes */
    CEK_TRY(cek__message_text(&tensor, 8, text));
    CEK_TRY(cek__message_within(&value, CEK__VALUE_TENSOR, &tensor));
    st = cek__event_value(log, step, &value);
out:
    free(tensor.at);
    free(content.at);
    free(value.at);
    return st;
}
