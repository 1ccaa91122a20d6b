/* slab.c - see slab.h.
 *
 * Owns: copying and the tables. Must not know: what the copy is for.
 *
 * A slab is a list of runs: positions of one (image, d), whose lines h follow each other. A run
 * holds all lines of the image from the first that its first line of windows looks at to the last
 * of its last, for each tap along d. */
#include "backends/cpu/conv/slab.h"

#include <string.h>

#include "backends/cpu/product/pack.h"
#include "backends/cpu/sizes.h"

enum { LONG_PIXEL = 64 }; /* channels, from which on to ask for a pixel ahead costs less than to wait for it */

/* Heights of the image that `lines` lines of windows look at. */
static int64_t run_heights(const windows *w, int64_t lines)
{
    return (lines - 1) * w->dim[1].step + (w->dim[1].taps - 1) * w->dim[1].tap_step + 1;
}

void cek__slab_plan(const windows *w, int64_t rows, slab *out)
{
    /* an odd number of cache lines from pixel to pixel, so that the pixels of a tile fall into
     * different sets */
    const int64_t c = w->channels,
                  widest = (w->dim[2].positions - 1) * w->dim[2].step + (w->dim[2].taps - 1) * w->dim[2].tap_step + 1;
    const int64_t high = w->dim[1].positions, lines = ceil_div(rows, w->dim[2].positions);
    /* one end more where they do not begin with images; where windows leave lines out that only an end saves, the
     * fewest are the most */
    const int64_t runs = run_heights(w, 1) < w->dim[1].step || high % lines == 0 || lines % high == 0
                             ? ceil_div(lines, high)
                             : (lines + high - 2) / high + 1;

    out->pixel = c < 16 ? c : ((c + 15) / 16 | 1) * 16;
    out->line = (widest * out->pixel + 15) / 16 * 16;
    out->height = w->dim[0].taps * out->line;
    out->floats = ((lines - runs) * w->dim[1].step + runs * run_heights(w, 1)) * out->height;
    /* a tile reads whole panels, which may begin in the last pixel */
    out->floats += CPU_NR_MAX;
}

/* One line: pixels [first, first + n) of the image's line `from`, zeros outside it. */
static void line_copy(const slab *s, const windows *w, const cpu_kernels *kernels, cpu_type type, const char *from,
                      int64_t first, int64_t n, float *to)
{
    const int64_t bytes = cpu_type_bytes(type) * w->pitch[2];
    const int64_t low = first < 0 ? least(-first, n) : 0, high = least(n, w->dim[2].size - first);

    if (low >= high) {
        memset(to, 0, (size_t)(n * s->pixel) * 4);
        return;
    }
    memset(to, 0, (size_t)(low * s->pixel) * 4);
    memset(to + high * s->pixel, 0, (size_t)((n - high) * s->pixel) * 4);
    if (s->pixel == w->pitch[2]) { /* of the last one this group's channels alone */
        kernels->load(type, (high - low - 1) * s->pixel + w->channels, from + (first + low) * bytes,
                      to + low * s->pixel);
        return;
    }
    for (int64_t i = low; i < high; i++) {
        if (w->channels >= LONG_PIXEL && i + CPU_ROWS_AHEAD < high)
            cek__pack_row_ahead(from + (first + i + CPU_ROWS_AHEAD) * bytes, w->channels * cpu_type_bytes(type));
        kernels->load(type, w->channels, from + (first + i) * bytes, to + i * s->pixel);
    }
}

/* The run of `lines` lines of windows from (image, d, h). */
static void run_copy(const slab *s, const windows *w, const cpu_kernels *kernels, cpu_type type, const char *image,
                     int64_t number, int64_t d, int64_t h, int64_t lines, float *to)
{
    const window_dim *z = &w->dim[0], *y = &w->dim[1], *x = &w->dim[2];
    const int64_t width = (x->positions - 1) * x->step + (x->taps - 1) * x->tap_step + 1;
    const int64_t heights = run_heights(w, lines), bytes = cpu_type_bytes(type);

    for (int64_t i = 0; i < heights; i++)
        for (int64_t tap = 0; tap < z->taps; tap++, to += s->line) {
            const int64_t at_d = d * z->step + z->first + tap * z->tap_step, at_h = h * y->step + y->first + i;
            if (at_d < 0 || at_d >= z->size || at_h < 0 || at_h >= y->size)
                memset(to, 0, (size_t)(width * s->pixel) * 4);
            else
                line_copy(s, w, kernels, type,
                          image + (number * w->image + at_d * w->pitch[0] + at_h * w->pitch[1]) * bytes, x->first,
                          width, to);
        }
}

void cek__slab_copy(const slab *s, const windows *w, const cpu_kernels *kernels, cpu_type type, const void *image,
                    int64_t row, int64_t rows, float *to, int32_t *pixel)
{
    const int64_t width = w->dim[2].positions, high = w->dim[1].positions, deep = w->dim[0].positions;
    int64_t used = 0;

    for (int64_t r = 0; r < rows;) {
        const int64_t line = (row + r) / width, last = (row + rows - 1) / width;
        const int64_t lines = least(last - line + 1, high - line % high);
        run_copy(s, w, kernels, type, image, line / high / deep, line / high % deep, line % high, lines, to + used);
        for (int64_t y = 0, x = (row + r) % width; y < lines && r < rows; y++, x = 0)
            for (int64_t at = used + y * w->dim[1].step * s->height; x < width && r < rows; x++)
                pixel[r++] = (int32_t)(at + x * w->dim[2].step * s->pixel);
        used += run_heights(w, lines) * s->height;
    }
}

void cek__slab_taps(const slab *s, const windows *w, int64_t col, int64_t cols, int32_t *tap)
{
    const int64_t c = w->channels, wide = w->dim[2].taps, high = w->dim[1].taps;
    for (int64_t i = 0; i < cols;) {
        const int64_t t = (col + i) / c, first = (col + i) % c, n = least(c - first, cols - i);
        int32_t at = (int32_t)(t / wide / high * s->line + t / wide % high * w->dim[1].tap_step * s->height +
                               t % wide * w->dim[2].tap_step * s->pixel + first);
        for (int64_t end = i + n; i < end; i++)
            tap[i] = at++;
    }
}
