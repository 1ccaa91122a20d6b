/* elements.c - see elements.h. */
#include "backends/cpu/ops/elements.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* One run along the innermost axis. Copies of one constant size become single moves. */
INLINE void take(uint32_t bytes, const unsigned char *from, int64_t stride, int64_t n, unsigned char *to)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * bytes, from + i * stride * bytes, bytes);
}

INLINE void put(uint32_t bytes, const unsigned char *from, int64_t stride, int64_t n, unsigned char *to)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * stride * bytes, from + i * bytes, bytes);
}

/* The same element again and again: as many as a vector holds, then vectors. */
INLINE void repeat(uint32_t bytes, const unsigned char *from, int64_t n, unsigned char *to)
{
    enum { VECTOR = 16 };
    unsigned char many[VECTOR];
    const int64_t size = n * bytes;
    int64_t i = 0;

    take(bytes, from, 0, VECTOR / bytes, many);
    for (; i + VECTOR <= size; i += VECTOR)
        memcpy(to + i, many, VECTOR);
    memcpy(to + i, many, (size_t)(size - i));
}

INLINE void take_any(uint32_t bytes, const unsigned char *from, int64_t stride, int64_t n, unsigned char *to)
{
    if (stride == 0)
        repeat(bytes, from, n, to);
    else
        take(bytes, from, stride, n, to);
}

static void take_run(uint32_t bytes, const unsigned char *from, int64_t stride, int64_t n, unsigned char *to)
{
    if (stride == 1)
        memcpy(to, from, (size_t)n * bytes);
    else if (bytes == 4)
        take_any(4, from, stride, n, to);
    else if (bytes == 2)
        take_any(2, from, stride, n, to);
    else if (bytes == 1)
        take_any(1, from, stride, n, to);
    else
        take_any(8, from, stride, n, to);
}

static void put_run(uint32_t bytes, const unsigned char *from, int64_t stride, int64_t n, unsigned char *to)
{
    if (stride == 1)
        memcpy(to, from, (size_t)n * bytes);
    else if (bytes == 4)
        put(4, from, stride, n, to);
    else if (bytes == 2)
        put(2, from, stride, n, to);
    else if (bytes == 1)
        put(1, from, stride, n, to);
    else
        put(8, from, stride, n, to);
}

void cek__elements_gather(const cpu_space *space, int tensor, uint32_t bytes, const void *from, int64_t first,
                          int64_t n, void *to)
{
    const int inner = space->rank - 1;
    unsigned char *next = to;
    cpu_place place;

    cek__place_of(space, first, &place);
    while (n > 0) {
        const int64_t left = space->shape[inner] - place.at[inner], run = n < left ? n : left;
        const int64_t offset = cek__place_offset(space, &place, tensor);

        take_run(bytes, (const unsigned char *)from + offset * bytes, space->stride[tensor][inner], run, next);
        next += run * bytes;
        n -= run;
        cek__place_advance(space, &place, run);
    }
}

void cek__elements_scatter(const cpu_space *space, int tensor, uint32_t bytes, const void *from, int64_t first,
                           int64_t n, void *to)
{
    const int inner = space->rank - 1;
    const unsigned char *next = from;
    cpu_place place;

    cek__place_of(space, first, &place);
    while (n > 0) {
        const int64_t left = space->shape[inner] - place.at[inner], run = n < left ? n : left;
        const int64_t offset = cek__place_offset(space, &place, tensor);

        put_run(bytes, next, space->stride[tensor][inner], run, (unsigned char *)to + offset * bytes);
        next += run * bytes;
        n -= run;
        cek__place_advance(space, &place, run);
    }
}
