/* meter.c - see meter.h. */
#include "nn/train/meter.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/status.h"

typedef struct span {
    cek_marker *start, *end;
} span;

typedef struct metered {
    int64_t step;
    size_t count; /* spans that were begun */
    span *spans;  /* [cek__meter.spans] */
} metered;

struct cek__meter {
    cek_stream *stream;
    size_t steps, spans;
    metered *ring; /* [step % steps] */
};

cek_status cek__meter_create(cek_device *device, cek_stream *stream, size_t steps, size_t spans, cek__meter **out)
{
    cek_status st;
    cek__meter *m = NULL;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *m, &m));
    *m = (cek__meter){ .stream = stream, .steps = steps, .spans = spans };
    CEK_TRY(cek__calloc(steps, sizeof *m->ring, &m->ring));
    for (size_t i = 0; i < steps; i++) {
        CEK_TRY(cek__calloc(spans, sizeof *m->ring[i].spans, &m->ring[i].spans));
        for (size_t k = 0; k < spans; k++) {
            CEK_TRY(cek_marker_create(device, true, &m->ring[i].spans[k].start));
            CEK_TRY(cek_marker_create(device, true, &m->ring[i].spans[k].end));
        }
    }
    *out = m;
    return CEK_OK;
out:
    cek__meter_free(m);
    return st;
}

void cek__meter_free(cek__meter *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; m->ring != NULL && i < m->steps; i++) {
        for (size_t k = 0; m->ring[i].spans != NULL && k < m->spans; k++) {
            cek_marker_free(m->ring[i].spans[k].start);
            cek_marker_free(m->ring[i].spans[k].end);
        }
        free(m->ring[i].spans);
    }
    free(m->ring);
    free(m);
}

static metered *at(const cek__meter *m, int64_t step)
{
    return &m->ring[(size_t)step % m->steps];
}

cek_status cek__meter_start(cek__meter *m, int64_t step)
{
    metered *s;

    if (m == NULL)
        return CEK_OK;
    s = at(m, step);
    if (s->step != step) {
        s->step = step;
        s->count = 0;
    }
    if (s->count == m->spans)
        return CEK_OK;
    return cek_marker_record(s->spans[s->count++].start, m->stream);
}

cek_status cek__meter_stop(cek__meter *m, int64_t step)
{
    metered *s;

    if (m == NULL)
        return CEK_OK;
    s = at(m, step);
    return cek_marker_record(s->spans[s->count - 1].end, m->stream);
}

static double seconds_between(cek_marker *start, cek_marker *end)
{
    uint64_t ns;

    return cek_marker_elapsed(start, end, &ns) == CEK_OK ? 1e-9 * (double)ns : 0;
}

void cek__meter_read(const cek__meter *m, int64_t step, double *busy, double *period)
{
    const metered *s = at(m, step), *before = at(m, step - 1);

    *busy = *period = 0;
    if (s->step != step || s->count == 0)
        return;
    for (size_t k = 0; k < s->count; k++)
        *busy += seconds_between(s->spans[k].start, s->spans[k].end);
    if (step > 1 && before->step == step - 1 && before->count > 0)
        *period = seconds_between(before->spans[before->count - 1].end, s->spans[s->count - 1].end);
}
