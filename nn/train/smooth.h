/* smooth.h - a measured value that follows changes and not noise. */
#ifndef CEK_NN_TRAIN_SMOOTH_H
#define CEK_NN_TRAIN_SMOOTH_H

#include <math.h>
#include <string.h>

/* A measurement moves what is known by this part, after the median of three has taken single late ones away. */
static const double CEK__FRESH = 0.4;
/* How far measurements waver is learnt slower, and none counts for more than CEK__WAVER_MOST: it may be a
 * change of speed. */
static const double CEK__WAVER_FRESH = 0.1, CEK__WAVER_MOST = 0.25;

typedef struct cek__smooth {
    double recent[3], value;
    double
        waver; /* by which part a measurement differs from the one before, on average: a change of level counts once */
    int count;
} cek__smooth;

static inline double cek__median(const double *v, int count)
{
    if (count < 3)
        return count == 1 ? v[0] : fmin(v[0], v[1]);
    return fmax(fmin(v[0], v[1]), fmin(fmax(v[0], v[1]), v[2]));
}

static inline void cek__smooth_set(cek__smooth *s, double value)
{
    *s = (cek__smooth){ .recent = { value }, .value = value, .count = 1, .waver = s->waver };
}

static inline void cek__smooth_add(cek__smooth *s, double value)
{
    double middle, step;

    if (s->count == 0) {
        cek__smooth_set(s, value);
        return;
    }
    step = fabs(value / s->recent[0] - 1);
    memmove(s->recent + 1, s->recent, 2 * sizeof *s->recent);
    s->recent[0] = value;
    s->count += s->count < 3;
    middle = cek__median(s->recent, s->count);
    s->waver += CEK__WAVER_FRESH * (fmin(step, CEK__WAVER_MOST) - s->waver);
    s->value += CEK__FRESH * (middle - s->value);
}

#endif
