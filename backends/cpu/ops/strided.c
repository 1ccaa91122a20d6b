/* strided.c - loops over strided tensors; see strided.h. */
#include "backends/cpu/ops/strided.h"

static void axis_copy(cpu_space *s, int to, int from)
{
    s->shape[to] = s->shape[from];
    for (int t = 0; t < s->tensors; t++)
        s->stride[t][to] = s->stride[t][from];
}

static void drop_ones(cpu_space *s)
{
    int kept = 0;

    for (int i = 0; i < s->rank; i++)
        if (s->shape[i] != 1)
            axis_copy(s, kept++, i);
    if (kept == 0) {
        s->shape[0] = 1;
        for (int t = 0; t < s->tensors; t++)
            s->stride[t][0] = 0;
        kept = 1;
    }
    s->rank = kept;
}

/* Insertion sort: equal strides keep their order. */
static void order(cpu_space *s, int lead)
{
    cpu_space sorted = *s;

    for (int i = 0; i < s->rank; i++) {
        int place = 0;

        for (int j = 0; j < s->rank; j++)
            place += j < i ? s->stride[lead][j] >= s->stride[lead][i] : s->stride[lead][j] > s->stride[lead][i];
        sorted.shape[place] = s->shape[i];
        for (int t = 0; t < s->tensors; t++)
            sorted.stride[t][place] = s->stride[t][i];
    }
    *s = sorted;
}

static bool mergeable(const cpu_space *s, int outer, int inner)
{
    for (int t = 0; t < s->tensors; t++)
        if (s->stride[t][outer] != s->stride[t][inner] * s->shape[inner])
            return false;
    return true;
}

static void merge(cpu_space *s)
{
    int last = 0;

    for (int i = 1; i < s->rank; i++) {
        if (mergeable(s, last, i)) {
            const int64_t outer = s->shape[last];

            axis_copy(s, last, i);
            s->shape[last] *= outer;
        } else {
            axis_copy(s, ++last, i);
        }
    }
    s->rank = last + 1;
}

void cek__space_simplify(cpu_space *space, int lead)
{
    drop_ones(space);
    order(space, lead);
    merge(space);
}

int64_t cek__space_elements(const cpu_space *space)
{
    int64_t n = 1;

    for (int i = 0; i < space->rank; i++)
        n *= space->shape[i];
    return n;
}

int64_t cek__space_period(const cpu_space *space, int tensor)
{
    int64_t period = 1;
    int i = space->rank - 1;

    for (; i >= 0 && (space->stride[tensor][i] == period || space->shape[i] == 1); i--)
        period *= space->shape[i];
    for (; i >= 0; i--)
        if (space->stride[tensor][i] != 0)
            return 0;
    return period;
}

bool cek__space_dense(const cpu_space *space, int tensor)
{
    return cek__space_period(space, tensor) == cek__space_elements(space);
}

void cek__place_of(const cpu_space *space, int64_t n, cpu_place *place)
{
    for (int i = space->rank - 1; i >= 0; i--) {
        place->at[i] = n % space->shape[i];
        n /= space->shape[i];
    }
}

int64_t cek__place_offset(const cpu_space *space, const cpu_place *place, int tensor)
{
    int64_t offset = 0;

    for (int i = 0; i < space->rank; i++)
        offset += place->at[i] * space->stride[tensor][i];
    return offset;
}

void cek__place_advance(const cpu_space *space, cpu_place *place, int64_t by)
{
    int i = space->rank - 1;

    place->at[i] += by;
    for (; i > 0 && place->at[i] == space->shape[i]; i--) {
        place->at[i] = 0;
        place->at[i - 1]++;
    }
}
