/* image.c - see image.h.
 *
 * Owns: the copying. Must not know: what the copies are for. */
#include "backends/cpu/conv/image.h"

#include <string.h>

#include "backends/cpu/sizes.h"

void cek__windows_dense(windows *w, int64_t channels)
{
    w->image = channels;
    for (int i = 2; i >= 0; i--) {
        w->pitch[i] = w->image;
        w->image *= w->dim[i].size;
    }
}

/* A window position; `at` is what tap 0 looks at, along each dimension. */
typedef struct position {
    int64_t image, index[3], at[3];
} position;

static void position_set(const windows *w, int64_t row, position *p)
{
    for (int i = 2; i >= 0; i--) {
        p->index[i] = row % w->dim[i].positions;
        p->at[i] = p->index[i] * w->dim[i].step + w->dim[i].first;
        row /= w->dim[i].positions;
    }
    p->image = row;
}

static void position_next(const windows *w, position *p)
{
    for (int i = 2; i >= 0; i--) {
        p->at[i] += w->dim[i].step;
        if (++p->index[i] < w->dim[i].positions)
            return;
        p->index[i] = 0;
        p->at[i] = w->dim[i].first;
    }
    p->image++;
}

/* The line of the image (its pixel 0) that taps (td, th) look at, or NULL outside. */
static const char *line_at(const windows *w, int64_t bytes, const char *image, const position *p, int64_t td,
                           int64_t th)
{
    const int64_t d = p->at[0] + td * w->dim[0].tap_step, h = p->at[1] + th * w->dim[1].tap_step;
    if (d < 0 || d >= w->dim[0].size || h < 0 || h >= w->dim[1].size)
        return NULL;
    return image + (p->image * w->image + d * w->pitch[0] + h * w->pitch[1]) * bytes;
}

/* Copies elements [low, high) of a run of `n`; the run's element e comes from from[e], zeros
 * outside [inside, outside). */
static void run_copy(const cpu_kernels *kernels, cpu_type type, int64_t bytes, const char *from, int64_t low,
                     int64_t high, int64_t inside, int64_t outside, float *to)
{
    const int64_t first = least(most(low, inside), high), last = most(least(high, outside), first);
    for (int64_t e = low; e < first; e++)
        to[e - low] = 0;
    if (last > first && type == CPU_F32)
        memcpy(to + (first - low), from + first * 4, (size_t)(last - first) * 4);
    else if (last > first)
        kernels->load(type, last - first, from + first * bytes, to + (first - low));
    for (int64_t e = last; e < high; e++)
        to[e - low] = 0;
}

/* The elements [low, high) that one line of taps (along w) gives to a row. Neighbouring taps are
 * neighbours in memory when there is one group and no dilation: then they are one run. */
static void taps_copy(const windows *w, const cpu_kernels *kernels, cpu_type type, const char *line, int64_t at,
                      int64_t low, int64_t high, float *to)
{
    const window_dim *x = &w->dim[2];
    const int64_t c = w->channels, bytes = cpu_type_bytes(type);

    if (line == NULL) {
        memset(to, 0, (size_t)(high - low) * 4);
        return;
    }
    if (x->tap_step == 1 && c == w->pitch[2]) {
        run_copy(kernels, type, bytes, line + at * c * bytes, low, high, most(-at, 0) * c, most(x->size - at, 0) * c,
                 to);
        return;
    }
    for (int64_t tap = low / c; tap * c < high; tap++) {
        const int64_t pixel = at + tap * x->tap_step, first = most(low - tap * c, 0), last = least(high - tap * c, c);
        const int64_t inside = pixel >= 0 && pixel < x->size ? c : 0;
        run_copy(kernels, type, bytes, line + pixel * w->pitch[2] * bytes, first, last, 0, inside,
                 to + tap * c + first - low);
    }
}

void cek__windows_copy(const windows *w, const cpu_kernels *kernels, cpu_type type, const void *image, int64_t row,
                       int64_t rows, int64_t col, int64_t cols, float *to, int64_t ld)
{
    const int64_t line = w->dim[2].taps * w->channels, bytes = cpu_type_bytes(type), end = col + cols;
    position p;

    position_set(w, row, &p);
    for (int64_t r = 0; r < rows; r++, to += ld, position_next(w, &p))
        for (int64_t l = col / line; l * line < end; l++) {
            const int64_t low = most(col - l * line, 0), high = least(end - l * line, line);
            const char *from = line_at(w, bytes, image, &p, l / w->dim[1].taps, l % w->dim[1].taps);
            taps_copy(w, kernels, type, from, p.at[2], low, high, to + l * line + low - col);
        }
}
