/* winograd_tiles.c - see winograd_tiles.h. */
#include "backends/cpu/conv/winograd_tiles.h"

#include <string.h>

#include "backends/cpu/conv/method.h"

void cek__winograd_tile(const winograd_plan *w, int64_t tile, int64_t *image, int64_t at[2])
{
    at[1] = tile % w->tiles[1] * w->form->outputs;
    at[0] = tile / w->tiles[1] % w->tiles[0] * w->form->outputs;
    *image = tile / (w->tiles[0] * w->tiles[1]);
}

/* `n` pixels that lie side by side, of each `channels` from `element` on. */
static void pixels_load(const cpu_kernels *kernels, const winograd_image *from, int64_t element, int64_t n,
                        int64_t channels, float *to, int64_t ld)
{
    if (channels == from->channels && channels == ld)
        kernels->load(from->type, n * channels, conv_at(from->at, from->type, element), to);
    else
        for (int64_t i = 0; i < n; i++, element += from->channels)
            kernels->load(from->type, channels, conv_at(from->at, from->type, element), to + i * ld);
}

void cek__winograd_square(const cpu_kernels *kernels, const winograd_image *from, cpu_transform *transform,
                          int64_t side, int64_t image, const int64_t at[2], int64_t channel, int64_t channels,
                          float *square, float *to, int64_t line_to, int64_t pixel_to)
{
    const int64_t h = from->size[0], w = from->size[1], ld = round_up(channels, 16);
    const int64_t first = ((image * h + at[0]) * w + at[1]) * from->channels + channel;

    if (from->type == CPU_F32 && at[0] >= 0 && at[1] >= 0 && at[0] + side <= h && at[1] + side <= w) {
        transform(channels, (const float *)from->at + first, w * from->channels, from->channels, to, line_to, pixel_to);
        return;
    }
    /* pixels of a line that are in the image, which may end before the square or begin behind it */
    const int64_t low = least(most(-at[1], 0), side), high = most(least(side, w - at[1]), low);
    for (int64_t i = 0; i < side; i++) {
        const int64_t y = at[0] + i;
        float *line = square + i * side * ld;
        if (y < 0 || y >= h) {
            memset(line, 0, (size_t)(side * ld) * 4);
            continue;
        }
        memset(line, 0, (size_t)(low * ld) * 4);
        memset(line + high * ld, 0, (size_t)((side - high) * ld) * 4);
        pixels_load(kernels, from, first + (i * w + low) * from->channels, high - low, channels, line + low * ld, ld);
    }
    transform(channels, square, side * ld, ld, to, line_to, pixel_to);
}

void cek__winograd_ahead(const winograd_plan *w, const winograd_image *of, int64_t tile, int64_t channel,
                         int64_t channels)
{
    const int64_t bytes = cpu_type_bytes(of->type), pixel = of->channels * bytes, outputs = w->form->outputs;
    int64_t image, at[2];

    if (tile >= w->count)
        return;
    cek__winograd_tile(w, tile, &image, at);
    for (int64_t y = at[0]; y < least(at[0] + outputs, of->size[0]); y++) {
        const char *line = conv_at(of->at, of->type, channel) +
                           ((image * of->size[0] + y) * of->size[1] + at[1]) * pixel;
        for (int64_t x = 0; x < least(outputs, of->size[1] - at[1]); x++)
            for (int64_t i = 0; i < channels * bytes; i += 64)
                __builtin_prefetch(line + x * pixel + i, 0, 2);
    }
}

/* All channels are wanted, or where pixels do not begin with whole words, come with those that are. */
static bool has_all(const winograd_part *part)
{
    const winograd_image *of = &part->image;

    return part->channels == of->channels || of->channels * cpu_type_bytes(of->type) % 4 != 0;
}

/* `lines` of `pixels` that lie side by side: one line, or all channels. */
static cpu_ahead pixels_ahead(const winograd_part *part, int64_t pixel, int64_t pixels, int64_t lines)
{
    const winograd_image *of = &part->image;
    const int64_t bytes = cpu_type_bytes(of->type), first = pixel * of->channels;
    const float *at = of->at;

    if (pixels <= 0 || lines <= 0)
        return (cpu_ahead){ 0 };
    if (!has_all(part))
        return cpu_ahead_rows(at + (first + part->channel) * bytes / 4, pixels, ceil_div(part->channels * bytes, 4),
                              of->channels * bytes / 4);
    return cpu_ahead_rows(at + first * bytes / 4, lines, ceil_div(pixels * of->channels * bytes, 4),
                          of->size[1] * of->channels * bytes / 4);
}

/* The first pixel of a line of tiles, or behind the last one. */
static int64_t line_pixel(const winograd_plan *w, const winograd_image *of, int64_t line)
{
    const int64_t y = least(line % w->tiles[0] * w->form->outputs, of->size[0]);

    return (line / w->tiles[0] * of->size[0] + y) * of->size[1];
}

/* Whole lines of tiles at once: their pixels lie side by side, in how many images ever. Of tiles that are no whole line
 * all lines of pixels, or where these are but some of the channels, one of them. */
static cpu_ahead part_next(const winograd_plan *w, winograd_part *part)
{
    const winograd_image *of = &part->image;
    const int64_t line = part->first / w->tiles[1], tile = part->first % w->tiles[1];
    const int64_t whole = tile == 0 ? (part->end - part->first) / w->tiles[1] : 0;
    const int64_t pixel = line_pixel(w, of, line);

    if (whole > 0) {
        part->first += whole * w->tiles[1];
        return pixels_ahead(part, pixel, line_pixel(w, of, line + whole) - pixel, 1);
    }
    const int64_t end = least((line + 1) * w->tiles[1], part->end), x = tile * w->form->outputs;
    const int64_t pixels = least((end - part->first) * w->form->outputs, of->size[1] - x);
    const int64_t lines = (line_pixel(w, of, line + 1) - pixel) / of->size[1], done = part->line;
    part->line = has_all(part) || done + 1 >= lines ? 0 : done + 1;
    if (part->line == 0)
        part->first = end;
    return pixels_ahead(part, pixel + done * of->size[1] + x, pixels, lines);
}

cpu_ahead *cek__winograd_comes(const winograd_plan *w, winograd_coming *coming, cpu_ahead *other)
{
    while (coming->piece.rows < 1) {
        if (coming->count == 0)
            return other;
        winograd_part *part = &coming->of[coming->count - 1];
        if (part->image.at == NULL || part->first >= part->end) {
            coming->count--;
            continue;
        }
        coming->piece = part_next(w, part);
        coming->piece.stretch = coming->stretch;
    }
    return &coming->piece;
}
