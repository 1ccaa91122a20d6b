/* scaler.c - see scaler.h. */
#include "nn/train/scaler.h"

#include "core/base/status.h"

enum { UNHEARD, GOOD, SKIPPED };

/* Beyond these bounds no f16 gains by it, and squares of what it multiplies would leave f32. */
static const double FACTOR_FIRST = 65536, FACTOR_MOST = 1ull << 40, FACTOR_LEAST = 1.0 / (1ull << 40);
enum { INTERVAL = 2000 };

cek_status cek__scaler_create(double first, uint32_t interval, size_t depth, cek__scaler *out)
{
    *out = (cek__scaler){ .factor = first != 0 ? first : FACTOR_FIRST,
                          .interval = interval ? interval : INTERVAL,
                          .depth = (int64_t)depth };
    if (!(out->factor >= FACTOR_LEAST && out->factor <= FACTOR_MOST))
        return cek__fail(CEK_INVALID, "a loss scale of %g: allowed are numbers from %g to %g", first, FACTOR_LEAST,
                         FACTOR_MOST);
    return CEK_OK;
}

static size_t place(int64_t step)
{
    return (size_t)step % CEK__SCALER_STEPS;
}

static void count(cek__scaler *s, int64_t step)
{
    bool current = s->given[place(step)] == s->factor;

    if (atomic_load(&s->verdicts[place(step)]) == SKIPPED) {
        s->skipped++;
        s->good = 0;
        s->factor = current && s->factor > FACTOR_LEAST ? s->factor / 2 : s->factor;
    } else if (current && ++s->good == s->interval) {
        s->good = 0;
        s->factor = s->factor < FACTOR_MOST ? 2 * s->factor : s->factor;
    }
}

double cek__scaler_next(cek__scaler *s)
{
    while (s->counted < s->submitted - s->depth)
        count(s, ++s->counted);
    return s->factor;
}

void cek__scaler_submit(cek__scaler *s)
{
    s->submitted++;
    s->given[place(s->submitted)] = s->factor;
    atomic_store(&s->verdicts[place(s->submitted)], UNHEARD);
}

double cek__scaler_given(const cek__scaler *s, int64_t step)
{
    return s->given[place(step)];
}

void cek__scaler_hear(cek__scaler *s, int64_t step, bool skipped)
{
    atomic_store(&s->verdicts[place(step)], skipped ? SKIPPED : GOOD);
}

uint64_t cek__scaler_skipped(const cek__scaler *s)
{
    uint64_t skipped = s->skipped;

    for (int64_t step = s->counted + 1; step <= s->submitted; step++)
        skipped += atomic_load(&s->verdicts[place(step)]) == SKIPPED;
    return skipped;
}
