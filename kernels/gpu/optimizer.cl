/* SPDX-License-Identifier: MIT
 *
 * optimizer.cl - a step of an algorithm over one range of parameters; step_count counts the step once all ranges are
 * done.
 *
 * LOW_TYPE: of the rounded copy, where there is one. Words of the blocks of plugin.h:
 */
#define STEP_LN_BETA1 6
#define STEP_LN_BETA2 8
#define STEP_LR 64
#define STEP_WEIGHT_DECAY 128

DEVICE_FN cek_u32 is_skipped(GLOBAL const char *update, cek_u32 given)
{
    return given && ((GLOBAL const cek_u32 *)update)[2];
}

/* Steps applied, with this one. */
DEVICE_FN cek_f32 steps_of(GLOBAL const char *state)
{
    GLOBAL const cek_u32 *words = (GLOBAL const cek_u32 *)state;
    return (cek_f32)(((cek_u64)words[0] | (cek_u64)words[1] << 32) + 1);
}

#define OPERANDS                                                                                   \
    GLOBAL char *RESTRICT param, GLOBAL char *RESTRICT grad, GLOBAL char *RESTRICT m_,             \
    GLOBAL char *RESTRICT v_, GLOBAL char *RESTRICT state, GLOBAL char *RESTRICT step,             \
    GLOBAL char *RESTRICT update, GLOBAL char *RESTRICT low, GLOBAL char *RESTRICT mean_,          \
    const cek_k_optimizer a

/* The numbers that all elements share. */
#define PREPARE                                                                                \
    if (!a.count || is_skipped(AT(update, 6), a.update))                                       \
        return;                                                                                \
    GLOBAL const cek_f32 *numbers = (GLOBAL const cek_f32 *)AT(step, 5);                       \
    const cek_f32 lr = numbers[STEP_LR + 2 * a.group], decay = numbers[STEP_WEIGHT_DECAY + 2 * a.group]; \
    const cek_f32 steps = steps_of(AT(state, 4));                                              \
    const cek_f32 scale = a.update ? *(GLOBAL const cek_f32 *)AT(update, 6) : 1.0f;

/* Buffer n at element `i` of the range. */
#define RANGE(buffer, n, i) (AT(buffer, n) + (a.begin + (i)) * 4)

/* A work-item's elements: on a CPU one after the other, elsewhere four, which begin at a multiple of four of the
 * buffer; of the first and the last four not all may be in the range. GET and PUT move them, in one access where they
 * are all there. */
#ifdef CEK_CPU
#define BLOCK 1
#define FOR_BLOCKS FOR_EACH(i, a.count)
#define FIND
#define GET(buffer, n, v) v[0] = load_f32(RANGE(buffer, n, 0), i);
#define PUT(buffer, n, v) store_f32(RANGE(buffer, n, 0), i, v[0]);
#define PUT_LOW(v) STORE(LOW_TYPE, AT(low, 7), a.begin + i, v[0]);
#else
#define BLOCK 4
#define FOR_BLOCKS FOR_EACH(block, (a.begin % BLOCK + a.count + BLOCK - 1) / BLOCK)
#define FIND                                                                                       \
    const cek_u64 before = a.begin % BLOCK, start = block * BLOCK; /* element `start - before` of the range */ \
    const cek_u32 from = start < before ? (cek_u32)before : 0;                                     \
    const cek_u32 to = before + a.count - start < BLOCK ? (cek_u32)(before + a.count - start) : BLOCK; \
    const cek_u32 whole = to - from == BLOCK;
#define GET(buffer, n, v)                                                                          \
    if (whole && IS_ALIGNED(n, 16))                                                                \
        load4_f32(RANGE(buffer, n, start - before), v);                                            \
    else                                                                                           \
        for (cek_u32 e = 0; e < BLOCK; e++)                                                        \
            v[e] = e >= from && e < to ? load_f32(RANGE(buffer, n, start - before), e) : 0.0f;
#define PUT(buffer, n, v)                                                                          \
    if (whole && IS_ALIGNED(n, 16))                                                                \
        store4_f32(RANGE(buffer, n, start - before), v);                                           \
    else                                                                                           \
        for (cek_u32 e = 0; e < BLOCK; e++)                                                        \
            if (e >= from && e < to)                                                               \
                store_f32(RANGE(buffer, n, start - before), e, v[e]);
#define PUT_LOW(v)                                                                                 \
    if (whole && IS_ALIGNED(7, BLOCK * BYTES(LOW_TYPE)))                                           \
        STORE_WIDE(4, LOW_TYPE, AT(low, 7) + (a.begin + start - before) * BYTES(LOW_TYPE), v);     \
    else                                                                                           \
        for (cek_u32 e = 0; e < BLOCK; e++)                                                        \
            if (e >= from && e < to)                                                               \
                STORE(LOW_TYPE, AT(low, 7), a.begin + start - before + e, v[e]);
#endif
#ifndef LOW_TYPE
#undef PUT_LOW
#define PUT_LOW(v)
#endif

KERNEL void sgd(OPERANDS)
{
    PREPARE
    FOR_BLOCKS {
        cek_f32 p[BLOCK], g[BLOCK], m[BLOCK];
        FIND
        GET(param, 0, p)
        GET(grad, 1, g)
        if (a.momentum_given) {
            GET(m_, 2, m)
        }
        for (cek_u32 e = 0; e < BLOCK; e++) {
            const cek_f32 gradient = scale * g[e] + decay * p[e];
            cek_f32 d = gradient;
            if (a.momentum_given) {
                m[e] = steps == 1.0f ? gradient : a.momentum * m[e] + a.one_minus_dampening * gradient;
                d = a.nesterov ? gradient + a.momentum * m[e] : m[e];
            }
            p[e] -= lr * d;
        }
        if (a.momentum_given) {
            PUT(m_, 2, m)
        }
        PUT(param, 0, p)
        PUT_LOW(p)
    }
}

/* beta1, beta2; 1 - beta1, 1 - beta2; and what the means are divided by, 1 - beta1 ^ steps and 1 - beta2 ^ steps. Of
 * the latter four, 1 - beta is -expm1(ln beta), which keeps the digits that 1 - exp(ln beta) loses. */
#define ADAM_NUMBERS 6
DEVICE_FN cek_f32 adam_number(cek_u32 i, GLOBAL const char *step, GLOBAL const char *state)
{
    const cek_f32 ln = ((GLOBAL const cek_f32 *)step)[i & 1 ? STEP_LN_BETA2 : STEP_LN_BETA1];
    return i < 2 ? exp(ln) : -expm1(i < 4 ? ln : steps_of(state) * ln);
}

KERNEL void adam(OPERANDS)
{
#ifdef CEK_CPU
    PREPARE
    cek_f32 shared[ADAM_NUMBERS];
    for (cek_u32 i = 0; i < ADAM_NUMBERS; i++)
        shared[i] = adam_number(i, AT(step, 5), AT(state, 4));
#else
    LOCAL cek_f32 shared[ADAM_NUMBERS]; /* once for a group, a work-item each */
    for (cek_u32 i = ITEM_ID(0); a.count && i < ADAM_NUMBERS; i += GROUP_SIZE())
        shared[i] = adam_number(i, AT(step, 5), AT(state, 4));
    BARRIER();
    PREPARE
#endif
    (void)steps;
    const cek_f32 beta1 = shared[0], beta2 = shared[1], rest1 = shared[2], rest2 = shared[3];
    const cek_f32 all1 = shared[4], all2 = shared[5];
    const cek_f32 shrink = a.decoupled ? 1.0f - lr * decay : 1.0f, coupled = a.decoupled ? 0.0f : decay;
    FOR_BLOCKS {
        cek_f32 p[BLOCK], g[BLOCK], m[BLOCK], v[BLOCK];
        FIND
        GET(param, 0, p)
        GET(grad, 1, g)
        GET(m_, 2, m)
        GET(v_, 3, v)
        for (cek_u32 e = 0; e < BLOCK; e++) {
            p[e] *= shrink;
            const cek_f32 gradient = scale * g[e] + coupled * p[e];
            m[e] = beta1 * m[e] + rest1 * gradient;
            v[e] = beta2 * v[e] + rest2 * gradient * gradient;
            p[e] -= lr * (m[e] / all1) / (sqrt(v[e] / all2) + a.epsilon);
        }
        PUT(m_, 2, m)
        PUT(v_, 3, v)
        PUT(param, 0, p)
        PUT_LOW(p)
    }
}

KERNEL void rmsprop(OPERANDS)
{
    PREPARE
    (void)steps;
    FOR_BLOCKS {
        cek_f32 p[BLOCK], g[BLOCK], m[BLOCK], v[BLOCK], mean[BLOCK];
        FIND
        GET(param, 0, p)
        GET(grad, 1, g)
        GET(v_, 3, v)
        if (a.momentum_given) {
            GET(m_, 2, m)
        }
        if (a.centered) {
            GET(mean_, 8, mean)
        }
        for (cek_u32 e = 0; e < BLOCK; e++) {
            const cek_f32 gradient = scale * g[e] + decay * p[e];
            v[e] = a.decay * v[e] + a.one_minus_decay * gradient * gradient;
            cek_f32 w = v[e];
            if (a.centered) {
                mean[e] = a.decay * mean[e] + a.one_minus_decay * gradient;
                w -= mean[e] * mean[e];
                w = w < 0.0f ? 0.0f : w; /* by rounding; NaN stays */
            }
            cek_f32 d = gradient / (sqrt(w) + a.epsilon);
            if (a.momentum_given) {
                d += a.momentum * m[e];
                m[e] = d;
            }
            p[e] -= lr * d;
        }
        PUT(v_, 3, v)
        if (a.momentum_given) {
            PUT(m_, 2, m)
        }
        if (a.centered) {
            PUT(mean_, 8, mean)
        }
        PUT(param, 0, p)
        PUT_LOW(p)
    }
}

KERNEL void adagrad(OPERANDS)
{
    PREPARE
    const cek_f32 rate = lr / (1.0f + (steps - 1.0f) * a.decay);
    FOR_BLOCKS {
        cek_f32 p[BLOCK], g[BLOCK], v[BLOCK];
        FIND
        GET(param, 0, p)
        GET(grad, 1, g)
        GET(v_, 3, v)
        for (cek_u32 e = 0; e < BLOCK; e++) {
            const cek_f32 gradient = scale * g[e] + decay * p[e];
            v[e] += gradient * gradient;
            p[e] -= rate * gradient / (sqrt(v[e]) + a.epsilon);
        }
        PUT(v_, 3, v)
        PUT(param, 0, p)
        PUT_LOW(p)
    }
}

KERNEL void step_count(OPERANDS)
{
    if (!a.count || GLOBAL_ID() || is_skipped(AT(update, 6), a.update))
        return;
    GLOBAL cek_u32 *words = (GLOBAL cek_u32 *)AT(state, 4);
    words[0] += 1;
    if (!words[0])
        words[1] += 1;
}
