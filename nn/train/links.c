/* links.c - see links.h. */
#include "nn/train/links.h"

#include <math.h>

#include "core/base/status.h"

/* What is copied: enough for the bytes to count, and little enough for a slow link; and next to nothing, for what a
 * transfer takes besides. Of each, the second time counts: the first may set things up. */
enum { MUCH = 4 * 1024 * 1024, SOME = 256 * 1024, LITTLE = 256, TIMES = 2 };
/* A link that takes so long for SOME is slow enough to be measured by it. */
static const double SLOW = 1e-3;

typedef struct look {
    cek_stream *stream;
    cek_marker *start, *end;
    unsigned char *host;
    cek_ref parameters, gradients;
} look;

typedef cek_status (*copy_fn)(const look *l, uint64_t bytes);

static cek_status out_and_in(const look *l, uint64_t bytes)
{
    cek_status st = cek_stream_download(l->stream, l->host, l->parameters, bytes);

    return st == CEK_OK ? cek_stream_upload(l->stream, l->parameters, l->host, bytes) : st;
}

static cek_status over_itself(const look *l, uint64_t bytes)
{
    cek_ref to = { l->gradients.mem, l->gradients.offset + bytes };

    return cek_stream_copy(l->stream, to, l->stream, l->gradients, bytes);
}

/* Device seconds of a copy; 0 where the device cannot tell. */
static cek_status seconds_of(const look *l, copy_fn copy, uint64_t bytes, double *out)
{
    cek_status st;
    uint64_t ns = 0;

    *out = 0;
    for (int i = 0; i < TIMES; i++) {
        CEK_TRY(cek_marker_record(l->start, l->stream));
        CEK_TRY(copy(l, bytes));
        CEK_TRY(cek_marker_record(l->end, l->stream));
        CEK_TRY(cek_stream_sync(l->stream, CEK_FOREVER));
        st = cek_marker_elapsed(l->start, l->end, &ns);
        if (st == CEK_UNSUPPORTED)
            return CEK_OK;
        CEK_TRY(st);
    }
    *out = 1e-9 * (double)ns;
out:
    return st;
}

static cek_status link_measure(const look *l, uint64_t most, cek__costs_device *out)
{
    cek_status st;
    uint64_t bytes = most < SOME ? most : SOME;
    double little, much;

    CEK_TRY(seconds_of(l, out_and_in, most < LITTLE ? most : LITTLE, &little));
    CEK_TRY(seconds_of(l, out_and_in, bytes, &much));
    if (much < SLOW && most > bytes) {
        bytes = most < MUCH ? most : MUCH;
        CEK_TRY(seconds_of(l, out_and_in, bytes, &much));
    }
    out->latency = little / 2; /* one of two copies */
    out->link_bytes = much > little ? 2 * (double)bytes / (much - little) : INFINITY;
out:
    return st;
}

static cek_status memory_measure(const look *l, uint64_t most, cek__costs_device *out)
{
    cek_status st;
    uint64_t bytes = (most < MUCH ? most : MUCH) / 2 / CEK_ALIGNMENT * CEK_ALIGNMENT;
    double seconds = 0;

    if (bytes > 0)
        CEK_TRY(seconds_of(l, over_itself, bytes, &seconds));
    else
        st = CEK_OK;
    out->own_bytes = seconds > 0 ? 2 * (double)bytes / seconds : INFINITY; /* read and written */
out:
    return st;
}

cek_status cek__links_measure(cek__replica *replica, size_t buckets, const uint64_t *bucket_bytes,
                              cek__costs_device *out)
{
    cek_status st;
    cek_device *device = cek__replica_device(replica);
    look l = { .stream = cek__replica_stream(replica) };
    size_t largest = 0;
    uint64_t most;

    *out = (cek__costs_device){ .in_turn = cek__replica_is_inline(replica) };
    for (size_t b = 1; b < buckets; b++)
        if (bucket_bytes[b] > bucket_bytes[largest])
            largest = b;
    most = bucket_bytes[largest] < MUCH ? bucket_bytes[largest] : MUCH;
    l.parameters = cek__replica_parameters(replica, largest);
    l.gradients = cek__replica_gradients(replica, largest);
    CEK_TRY(cek_marker_create(device, true, &l.start));
    CEK_TRY(cek_marker_create(device, true, &l.end));
    CEK_TRY(cek_pinned_alloc(device, most, (void **)&l.host));
    CEK_TRY(link_measure(&l, most, out));
    CEK_TRY(memory_measure(&l, most, out));
out:
    if (l.host != NULL && cek__replica_quiesce(replica))
        cek_pinned_free(device, l.host);
    else if (l.host != NULL)
        cek_pinned_abandon(device, l.host); /* the device may still use it */
    cek_marker_free(l.start);
    cek_marker_free(l.end);
    return st;
}
