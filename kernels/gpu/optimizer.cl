/* SPDX-License-Identifier: MIT
 *
 * optimizer.cl - a step of SGD or Adam over one range of parameters; step_count counts the step once all ranges are
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
    GLOBAL char *RESTRICT update, GLOBAL char *RESTRICT low, const cek_k_optimizer a

/* The numbers that all elements share. */
#define PREPARE                                                                                \
    if (!a.count || is_skipped(AT(update, 6), a.update))                                       \
        return;                                                                                \
    GLOBAL const cek_f32 *numbers = (GLOBAL const cek_f32 *)AT(step, 5);                       \
    GLOBAL cek_f32 *params = (GLOBAL cek_f32 *)AT(param, 0) + a.begin;                         \
    GLOBAL const cek_f32 *grads = (GLOBAL const cek_f32 *)AT(grad, 1) + a.begin;               \
    cek_f32 lr = numbers[STEP_LR + 2 * a.group], decay = numbers[STEP_WEIGHT_DECAY + 2 * a.group]; \
    cek_f32 steps = steps_of(AT(state, 4));                                                    \
    cek_f32 scale = a.update ? *(GLOBAL const cek_f32 *)AT(update, 6) : 1.0f;

KERNEL void sgd(OPERANDS)
{
    PREPARE
    GLOBAL cek_f32 *ms = (GLOBAL cek_f32 *)AT(m_, 2) + a.begin;
    FOR_EACH(i, a.count) {
        cek_f32 p = params[i], g = scale * grads[i] + decay * p, d = g;
        if (a.momentum_given) {
            cek_f32 m = steps == 1.0f ? g : a.momentum * ms[i] + a.one_minus_dampening * g;
            d = a.nesterov ? g + a.momentum * m : m;
            ms[i] = m;
        }
        p -= lr * d;
        params[i] = p;
#ifdef LOW_TYPE
        STORE(LOW_TYPE, AT(low, 7), a.begin + i, p);
#endif
    }
}

KERNEL void adam(OPERANDS)
{
    PREPARE
    GLOBAL cek_f32 *ms = (GLOBAL cek_f32 *)AT(m_, 2) + a.begin;
    GLOBAL cek_f32 *vs = (GLOBAL cek_f32 *)AT(v_, 3) + a.begin;
    cek_f32 ln1 = numbers[STEP_LN_BETA1], ln2 = numbers[STEP_LN_BETA2], beta1 = exp(ln1), beta2 = exp(ln2);
    /* 1 - beta is -expm1(ln beta), which keeps the digits that 1 - exp(ln beta) loses. */
    cek_f32 rest1 = -expm1(ln1), rest2 = -expm1(ln2), all1 = -expm1(steps * ln1), all2 = -expm1(steps * ln2);
    cek_f32 shrink = a.decoupled ? 1.0f - lr * decay : 1.0f, coupled = a.decoupled ? 0.0f : decay;
    FOR_EACH(i, a.count) {
        cek_f32 p = params[i] * shrink, g = scale * grads[i] + coupled * p;
        cek_f32 m = beta1 * ms[i] + rest1 * g, v = beta2 * vs[i] + rest2 * g * g;
        ms[i] = m;
        vs[i] = v;
        p -= lr * (m / all1) / (sqrt(v / all2) + a.epsilon);
        params[i] = p;
#ifdef LOW_TYPE
        STORE(LOW_TYPE, AT(low, 7), a.begin + i, p);
#endif
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
