/* optimizer.c - one step of each algorithm over a run of parameters, each number read and
 * written once.
 *
 * Must not know: groups, the count of steps; what varies from step to step arrives as numbers. */
#include "kernels/cpu/ops.h"
#include "kernels/cpu/vector.h"

/* Floats from what is updated to what comes into L2 meanwhile: several streams, each in a page of its own, where
 * processors look ahead no further than its end. 1 KiB gained a ninth, 2 to 8 KiB a tenth. */
enum { AHEAD = 256 };

V_INLINE void ahead(const float *p)
{
    __builtin_prefetch(p + AHEAD, 0, 2);
}

typedef struct adam_state {
    vf p, m, v;
} adam_state;

static inline __attribute__((always_inline)) adam_state adam_step(const cpu_adam *by, vf p, vf g, vf m, vf v)
{
    g = g * by->grad_scale + p * by->weight_decay;
    m = m * by->beta1 + g * by->rest1;
    v = v * by->beta2 + g * g * by->rest2;
    p = p * by->shrink - m * by->rate / (v_sqrt(v) * by->root + by->epsilon);
    return (adam_state){ p, m, v };
}

static void adam(int64_t n, const cpu_adam *given, const float *g, float *p, float *m, float *v)
{
    const cpu_adam by = *given; /* a copy that no store can change, so that it stays in registers */
    int64_t i = 0;
    adam_state s;

    for (; i + VL <= n; i += VL) {
        ahead(p + i), ahead(g + i), ahead(m + i), ahead(v + i);
        s = adam_step(&by, v_load(p + i), v_load(g + i), v_load(m + i), v_load(v + i));
        v_store(p + i, s.p);
        v_store(m + i, s.m);
        v_store(v + i, s.v);
    }
    if (i < n) {
        const int64_t part = n - i;

        s = adam_step(&by, v_load_part(p + i, part), v_load_part(g + i, part), v_load_part(m + i, part),
                      v_load_part(v + i, part));
        v_store_part(p + i, part, s.p);
        v_store_part(m + i, part, s.m);
        v_store_part(v + i, part, s.v);
    }
}

static void sgd_plain(int64_t n, const cpu_sgd *by, const float *g, float *p)
{
    for (int64_t i = 0; i < n; i += VL) {
        const int64_t part = n - i < VL ? n - i : VL;
        vf old = v_load_part(p + i, part);
        vf d = v_load_part(g + i, part) * by->grad_scale + old * by->weight_decay;

        v_store_part(p + i, part, old * by->shrink - d * by->rate);
    }
}

static void sgd(int64_t n, const cpu_sgd *given, const float *g, float *p, float *m)
{
    const cpu_sgd by = *given;

    if (!m) {
        sgd_plain(n, &by, g, p);
        return;
    }
    for (int64_t i = 0; i < n; i += VL) {
        const int64_t part = n - i < VL ? n - i : VL;
        vf old = v_load_part(p + i, part);
        vf d = v_load_part(g + i, part) * by.grad_scale + old * by.weight_decay;
        vf next = d * by.rest;

        if (by.momentum != 0) /* the first step ignores what M held */
            next += v_load_part(m + i, part) * by.momentum;
        v_store_part(m + i, part, next);
        v_store_part(p + i, part, old * by.shrink - (next * by.ahead + d * by.direct) * by.rate);
    }
}

static void rmsprop(int64_t n, const cpu_rmsprop *given, const float *g, float *p, float *m, float *v, float *mean)
{
    const cpu_rmsprop by = *given;
    const vf zero = { 0 };

    for (int64_t i = 0; i < n; i += VL) {
        const int64_t part = n - i < VL ? n - i : VL;
        vf old = v_load_part(p + i, part), d;
        vf slope = v_load_part(g + i, part) * by.grad_scale + old * by.weight_decay;
        vf square = v_load_part(v + i, part) * by.decay + slope * slope * by.rest;

        v_store_part(v + i, part, square);
        if (mean) {
            vf middle = v_load_part(mean + i, part) * by.decay + slope * by.rest;

            v_store_part(mean + i, part, middle);
            square -= middle * middle;
            square = v_select(square < zero, zero, square); /* by rounding; NaN stays */
        }
        d = slope / (v_sqrt(square) + by.epsilon);
        if (m) {
            d += v_load_part(m + i, part) * by.momentum;
            v_store_part(m + i, part, d);
        }
        v_store_part(p + i, part, old - d * by.rate);
    }
}

static void adagrad(int64_t n, const cpu_adagrad *given, const float *g, float *p, float *v)
{
    const cpu_adagrad by = *given;

    for (int64_t i = 0; i < n; i += VL) {
        const int64_t part = n - i < VL ? n - i : VL;
        vf old = v_load_part(p + i, part);
        vf slope = v_load_part(g + i, part) * by.grad_scale + old * by.weight_decay;
        vf sum = v_load_part(v + i, part) + slope * slope;

        v_store_part(v + i, part, sum);
        v_store_part(p + i, part, old - slope * by.rate / (v_sqrt(sum) + by.epsilon));
    }
}

const cpu_optimizer_kernels ISA_NAME(cek__optimizer_kernels) = {
    .adam = adam,
    .sgd = sgd,
    .rmsprop = rmsprop,
    .adagrad = adagrad,
};
