/* winograd_filters.c - the weights of a convolution as Winograd's products read them: panels of transformed squares.
 *
 * Owns: the order of taps and channels in either direction. Must not know: images, tiles, tasks.
 *
 * Vectors lie along the panel's columns. Backward-data finds them so, its taps are turned around; forward has nine taps
 * turned before they become the many points of a square, unless
 * they were packed so. */
#include "backends/cpu/conv/method.h"

enum { DEPTH = 16 }; /* rows of a panel that are turned at once: their taps stay in L1 */

int64_t cek__winograd_filters_room(const cpu_kernels *kernels)
{
    return 10 * DEPTH * kernels->nr; /* nine taps, and what they are turned from */
}

/* Rows are input channels, which lie side by side. */
static void filters_forward(const conv_call *call, int64_t panel, int64_t first, int64_t rows, float *room, float *to,
                            int64_t plane)
{
    const winograd_plan *w = &call->plan->winograd;
    const cpu_kernels *kernels = call->plan->config->kernels;
    const cpu_type type = call->plan->d.w;
    const int64_t nr = kernels->nr, columns = least(nr, w->to - panel * nr), tap_floats = DEPTH * nr;
    float *loaded = room + 9 * tap_floats;

    for (int64_t k = first; k < first + rows; k += DEPTH) {
        const int64_t depth = least(first + rows - k, DEPTH);
        for (int64_t tap = 0; tap < 9; tap++) {
            const char *at = conv_at(call->args->w, type, (panel * nr * 9 + tap) * w->from + k);
            if (type == CPU_F32) {
                kernels->transpose(columns, depth, (const float *)(const void *)at, 9 * w->from,
                                   room + tap * tap_floats, nr);
                continue;
            }
            for (int64_t j = 0; j < columns; j++)
                kernels->load(type, depth, at + j * 9 * w->from * cpu_type_bytes(type), loaded + j * DEPTH);
            kernels->transpose(columns, depth, loaded, DEPTH, room + tap * tap_floats, nr);
        }
        for (int64_t i = 0; i < depth; i++, to += nr)
            w->form->weights(columns, room + i * nr, 3 * tap_floats, tap_floats, to, w->points * plane, plane);
    }
}

/* The same of weights that lie in panels already. */
static void filters_packed(const conv_call *call, int64_t panel, int64_t first, int64_t rows, float *to, int64_t plane)
{
    const winograd_plan *w = &call->plan->winograd;
    const int64_t nr = call->plan->config->kernels->nr, tap_floats = w->from * nr;
    const float *at = cek__conv_packed_panel(call, 0, panel * nr);

    for (int64_t k = first; k < first + rows; k++, to += nr)
        w->form->weights(least(nr, w->to - panel * nr), at + k * nr, 3 * tap_floats, tap_floats, to, w->points * plane,
                         plane);
}

/* Rows are output channels. */
static void filters_data(const conv_call *call, int64_t panel, int64_t first, int64_t rows, float *room, float *to,
                         int64_t plane)
{
    const winograd_plan *w = &call->plan->winograd;
    const cpu_kernels *kernels = call->plan->config->kernels;
    const cpu_type type = call->plan->d.w;
    const int64_t nr = kernels->nr, columns = least(nr, w->to - panel * nr);

    for (int64_t k = first; k < first + rows; k++, to += nr) {
        const char *at = conv_at(call->args->w, type, k * 9 * w->to + panel * nr);
        const float *taps = (const float *)(const void *)at;
        int64_t ld = w->to;
        if (type != CPU_F32) {
            for (int64_t tap = 0; tap < 9; tap++)
                kernels->load(type, columns, at + tap * w->to * cpu_type_bytes(type), room + tap * nr);
            taps = room;
            ld = nr;
        }
        w->form->weights(columns, taps + 8 * ld, -3 * ld, -ld, to, w->points * plane, plane);
    }
}

void cek__winograd_filters(const conv_call *call, int64_t panel, int64_t first, int64_t rows, float *room, float *to,
                           int64_t plane)
{
    if (call->plan->d.packed)
        filters_packed(call, panel, first, rows, to, plane);
    else if (call->plan->d.direction == CONV_FORWARD)
        filters_forward(call, panel, first, rows, room, to, plane);
    else
        filters_data(call, panel, first, rows, room, to, plane);
}
