/* cmd_copy.c - `copy`: bytes per second from the host, to the host, on a device and between
 * devices; what arrives is compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/output.h"
#include "bench/progress.h"
#include "bench/stats.h"
#include "bench/tables.h"

enum { RUNS = 9, WARMUP = 2, SIZES_MAX = 64 };
static const char default_sizes[] = "4K,1M,64M";

static const output_column columns[] = {
    { "from", "from", -14, 0, 0 },      { "to", "to", -14, 0, 0 },           { "bytes", "bytes", 12, 0, 0 },
    { "median_ns", "us", 10, 1e-3, 2 }, { "spread", "spread %", 8, 100, 1 }, { "bytes_per_second", "GB/s", 9, 1e-9, 2 },
    { "wrong", "wrong", 6, 0, 0 },
};

/* One end of a copy: a piece of device memory with its stream, or host memory. */
typedef struct place {
    const char *name;
    cek_stream *stream; /* NULL: host memory */
    cek_ref ref;
    void *host;
} place;

/* A device with all that copies need there. */
typedef struct station {
    cek_device *device;
    cek_stream *stream;
    cek_memory *first, *second;
    void *pinned;
} station;

typedef struct copy_run {
    uint64_t bytes, wrong;
    unsigned char *pattern, *back; /* pageable */
    double *seconds;
    int64_t runs, warmup;
    output *out;
} copy_run;

static cek_status copy_once(const place *from, const place *to, uint64_t bytes)
{
    cek_status st;
    if (!from->stream)
        st = cek_stream_upload(to->stream, to->ref, from->host, bytes);
    else if (!to->stream)
        st = cek_stream_download(from->stream, to->host, from->ref, bytes);
    else
        st = cek_stream_copy(to->stream, to->ref, from->stream, from->ref, bytes);
    return st ? st : cek_stream_sync(to->stream ? to->stream : from->stream, CEK_FOREVER);
}

static cek_status place_write(copy_run *r, const place *p, const unsigned char *bytes)
{
    if (!p->stream)
        return memcpy(p->host, bytes, r->bytes), CEK_OK;
    cek_status st = cek_stream_upload(p->stream, p->ref, bytes, r->bytes);
    return st ? st : cek_stream_sync(p->stream, CEK_FOREVER);
}

/* How many bytes at the place are not the pattern's. */
static cek_status place_compare(copy_run *r, const place *p, uint64_t *wrong)
{
    const unsigned char *seen = p->host;
    cek_status st = CEK_OK;
    if (p->stream) {
        st = cek_stream_download(p->stream, r->back, p->ref, r->bytes);
        if (!st)
            st = cek_stream_sync(p->stream, CEK_FOREVER);
        seen = r->back;
    }
    *wrong = 0;
    for (uint64_t i = 0; i < r->bytes && !st; i++)
        *wrong += seen[i] != r->pattern[i];
    return st;
}

static cek_status copy_measure(copy_run *r, const place *from, const place *to)
{
    uint64_t wrong = 0;
    progress_fact(0, "%s to %s", from->name, to->name);
    memset(r->back, 0, r->bytes);
    cek_status st = place_write(r, to, r->back);
    if (!st)
        st = place_write(r, from, r->pattern);
    for (int64_t i = -r->warmup; i < r->runs && !st; i++) {
        double start = seconds_now();
        st = copy_once(from, to, r->bytes);
        r->seconds[i < 0 ? 0 : i] = seconds_now() - start;
    }
    if (!st)
        st = place_compare(r, to, &wrong);
    if (st)
        return st;
    double median = stats_median(r->seconds, (size_t)r->runs);
    output_row(r->out,
               json_pack("{ss ss sI sf sf so sf sI}", "from", from->name, "to", to->name, "bytes", (json_int_t)r->bytes,
                         "median_ns", median * 1e9, "spread", stats_spread(r->seconds, (size_t)r->runs), "runs_ns",
                         runs_json(r->seconds, (size_t)r->runs), "bytes_per_second", (double)r->bytes / median, "wrong",
                         (json_int_t)wrong));
    r->wrong += wrong;
    progress_one();
    return CEK_OK;
}

static void station_close(station *s)
{
    cek_memory_free(s->first);
    cek_memory_free(s->second);
    cek_pinned_free(s->device, s->pinned);
    cek_stream_free(s->stream);
    *s = (station){ .device = s->device };
}

static cek_status station_open(cek_device *device, uint64_t bytes, station *s)
{
    *s = (station){ .device = device };
    cek_status st = cek_stream_create(device, &s->stream);
    if (!st)
        st = cek_memory_alloc(device, bytes, 0, &s->first);
    if (!st)
        st = cek_memory_alloc(device, bytes, 0, &s->second);
    if (!st)
        st = cek_pinned_alloc(device, bytes, &s->pinned);
    if (st)
        station_close(s);
    return st;
}

static place place_of(const station *s, cek_memory *memory)
{
    return (place){ cek_device_name(s->device), s->stream, cek_memory_ref(memory), NULL };
}

static cek_status station_measure(copy_run *r, const station *s, unsigned char *pageable)
{
    const place first = place_of(s, s->first), second = place_of(s, s->second);
    const place hosts[] = { { "host", NULL, { NULL, 0 }, pageable }, { "pinned", NULL, { NULL, 0 }, s->pinned } };
    cek_status st = CEK_OK;
    for (int i = 0; i < 2 && !st; i++) {
        st = copy_measure(r, &hosts[i], &first);
        if (!st)
            st = copy_measure(r, &first, &hosts[i]);
    }
    return st ? st : copy_measure(r, &first, &second);
}

/* One size, all devices, all pairs of them. 0, or an exit code after complaining. */
static int size_measure(copy_run *r, cek_device *const *devices, size_t count)
{
    station *stations = calloc(count, sizeof *stations);
    unsigned char *pageable = malloc(r->bytes);
    r->pattern = malloc(r->bytes);
    r->back = malloc(r->bytes);
    bool room = stations && pageable && r->pattern && r->back;
    int code = room ? EXIT_OK
                    : complain(EXIT_MEMORY, "no host memory for %llu bytes three times", (unsigned long long)r->bytes);
    cek_status st = room ? CEK_OK : CEK_OUT_OF_MEMORY;
    for (uint64_t i = 0; i < r->bytes && !st; i++)
        r->pattern[i] = (unsigned char)(1 + i % 251);
    size_t open = 0;
    for (; open < count && !st; open += !st)
        st = station_open(devices[open], r->bytes, &stations[open]);
    for (size_t i = 0; i < open && !st; i++)
        st = station_measure(r, &stations[i], pageable);
    for (size_t a = 0; a < open && !st; a++) {
        for (size_t b = 0; b < open && !st; b++) {
            if (a == b)
                continue;
            const place from = place_of(&stations[a], stations[a].first);
            const place to = place_of(&stations[b], stations[b].second);
            st = copy_measure(r, &from, &to);
        }
    }
    if (st && room)
        code = complain_status(st); /* before closing may fail too */
    while (open)
        station_close(&stations[--open]);
    free(stations), free(pageable), free(r->pattern), free(r->back);
    return code;
}

/* Sizes separated by commas. 0, after complaining, if one of them is none. */
static size_t sizes_parse(const char *list, uint64_t sizes[SIZES_MAX])
{
    char text[32];
    size_t count = 0;
    for (const char *at = list; count < SIZES_MAX; at++) {
        size_t length = strcspn(at, ",");
        snprintf(text, sizeof text, "%.*s", (int)length, at);
        if (!bytes_parse("sizes", text, &sizes[count++]))
            return 0;
        at += length;
        if (!*at)
            return count;
    }
    complain(EXIT_USAGE, "--sizes: more than %d sizes", SIZES_MAX);
    return 0;
}

/* From a device: to and from two places of the host, within it, and to each other one. */
int copy_rows(const bench_options *o, cek_device *const *devices, size_t count, output *out)
{
    uint64_t sizes[SIZES_MAX];
    copy_run r = { .runs = o->runs < 0 ? RUNS : o->runs, .warmup = o->warmup < 0 ? WARMUP : o->warmup, .out = out };
    const size_t size_count = sizes_parse(o->sizes ? o->sizes : default_sizes, sizes);
    output_open(out, o->output, columns, sizeof columns / sizeof *columns, "results");
    for (int end = 0; end < 2; end++) {
        words_expect(out, end ? "to" : "from", "host,pinned");
        devices_expect(out, end ? "to" : "from", devices, count);
    }
    r.seconds = calloc((size_t)r.runs, sizeof *r.seconds);
    int code = r.seconds ? EXIT_OK : complain(EXIT_MEMORY, "no host memory");
    progress_begin((int64_t)(size_count * count * (5 + count - 1)), "copy");
    for (size_t i = 0; i < size_count && !code; i++) {
        r.bytes = sizes[i];
        code = size_measure(&r, devices, count);
    }
    if (!code && r.wrong)
        code = complain(EXIT_WRONG, "%llu bytes arrived wrong", (unsigned long long)r.wrong);
    free(r.seconds);
    return code;
}

int cmd_copy(const bench_options *o)
{
    uint64_t sizes[SIZES_MAX];
    if (o->argc)
        return complain(EXIT_USAGE, "copy takes no argument: %s", o->argv[0]);
    if (!sizes_parse(o->sizes ? o->sizes : default_sizes, sizes))
        return EXIT_USAGE;
    return table_run(o, "copy", CEK_PROFILE_MEMORY, copy_rows);
}
