/* SPDX-License-Identifier: MIT
 *
 * rows.cl - softmax and the losses, a row per work-item; TYPE is the element type. Sums of a loss are f32, over rows
 * in order.
 *
 * A row that does not count is selected out, not multiplied by zero: it may hold anything.
 */

/* The blocks of plugin.h, by 32-bit words. */
#define STEP_INV_N 2
#define STEP_LOSS_SCALE 4
#define BATCH_ROWS_VALID 2

KERNEL void softmax(GLOBAL char *x, GLOBAL char *y, const cek_k_rows a)
{
    cek_u64 row = GLOBAL_ID();
    if (row >= a.rows)
        return;
    cek_u64 first = row * a.columns;
    cek_f32 largest = LOAD(TYPE, AT(x, 0), first), sum = 0.0f;
    for (cek_u64 j = 1; j < a.columns; j++) {
        cek_f32 v = LOAD(TYPE, AT(x, 0), first + j);
        largest = v > largest ? v : largest;
    }
    for (cek_u64 j = 0; j < a.columns; j++)
        sum += exp(LOAD(TYPE, AT(x, 0), first + j) - largest);
    cek_f32 log_sum = log(sum);
    for (cek_u64 j = 0; j < a.columns; j++) {
        cek_f32 v = LOAD(TYPE, AT(x, 0), first + j) - largest;
        STORE(TYPE, AT(y, 1), first + j, a.log ? v - log_sum : exp(v) / sum);
    }
}

DEVICE_FN cek_u32 row_counts(GLOBAL const char *batch, cek_u32 given, cek_u64 sample)
{
    return !given || sample < ((GLOBAL const cek_u32 *)batch)[BATCH_ROWS_VALID];
}

DEVICE_FN cek_f32 gradient_scale(GLOBAL const char *step, cek_u32 given)
{
    return given ? ((GLOBAL const cek_f32 *)step)[STEP_LOSS_SCALE] * ((GLOBAL const cek_f32 *)step)[STEP_INV_N] : 0.0f;
}

/* totals: loss of each row, then whether it was a hit, as f32. */
KERNEL void cross_entropy(GLOBAL char *logits, GLOBAL char *labels, GLOBAL char *weights, GLOBAL char *step,
                          GLOBAL char *batch, GLOBAL char *gradient, GLOBAL char *totals, const cek_k_rows a)
{
    cek_u64 row = GLOBAL_ID();
    if (row >= a.rows)
        return;
    GLOBAL const char *x = AT(logits, 0);
    GLOBAL cek_f32 *total = (GLOBAL cek_f32 *)AT(totals, 6);
    cek_u64 first = row * a.columns, best = 0;
    cek_u32 counts = row_counts(AT(batch, 4), a.batch, row / a.rows_per_sample), has_nan = 0;
    cek_f32 weight = a.weights ? ((GLOBAL const cek_f32 *)AT(weights, 2))[row] : 1.0f;
    cek_f32 loss = 0.0f, hit = 0.0f;
    if (counts) {
        cek_i32 label = ((GLOBAL const cek_i32 *)AT(labels, 1))[row];
        cek_u32 known = label >= 0 && (cek_u64)label < a.columns;
        cek_f32 largest = LOAD(TYPE, x, first), sum = 0.0f;
        for (cek_u64 j = 0; j < a.columns; j++) {
            cek_f32 v = LOAD(TYPE, x, first + j);
            has_nan |= v != v;
            if (v > largest)
                largest = v, best = j;
        }
        hit = known && !has_nan && best == (cek_u64)label ? 1.0f : 0.0f;
        if (weight != 0.0f) {
            for (cek_u64 j = 0; j < a.columns; j++)
                sum += exp(LOAD(TYPE, x, first + j) - largest);
            cek_f32 own = known ? LOAD(TYPE, x, first + (cek_u64)label) : NAN;
            loss = weight * (log(sum) - (own - largest));
            cek_f32 scale = gradient_scale(AT(step, 3), a.step) * weight;
            for (cek_u64 j = 0; a.gradient && j < a.columns; j++) {
                cek_f32 p = exp(LOAD(TYPE, x, first + j) - largest) / sum;
                cek_f32 target = !known ? NAN : j == (cek_u64)label ? 1.0f : 0.0f;
                STORE(TYPE, AT(gradient, 5), first + j, scale * (p - target));
            }
        }
    }
    if (a.gradient && (!counts || weight == 0.0f))
        for (cek_u64 j = 0; j < a.columns; j++)
            STORE(TYPE, AT(gradient, 5), first + j, 0.0f);
    total[row] = loss;
    total[a.rows + row] = hit;
}

KERNEL void squared_error(GLOBAL char *prediction, GLOBAL char *target, GLOBAL char *weights, GLOBAL char *step,
                          GLOBAL char *batch, GLOBAL char *gradient, GLOBAL char *totals, const cek_k_rows a)
{
    cek_u64 row = GLOBAL_ID();
    if (row >= a.rows)
        return;
    GLOBAL cek_f32 *total = (GLOBAL cek_f32 *)AT(totals, 6);
    cek_f32 weight = a.weights ? ((GLOBAL const cek_f32 *)AT(weights, 2))[row] : 1.0f, loss = 0.0f;
    cek_u32 counts = row_counts(AT(batch, 4), a.batch, row / a.rows_per_sample) && weight != 0.0f;
    cek_f32 scale = counts ? gradient_scale(AT(step, 3), a.step) * weight * 2.0f : 0.0f;
    for (cek_u64 j = row * a.columns; j < (row + 1) * a.columns; j++) {
        cek_f32 error = 0.0f;
        if (counts) {
            error = LOAD(TYPE, AT(prediction, 0), j) - ((GLOBAL const cek_f32 *)AT(target, 1))[j];
            loss += error * error;
        }
        if (a.gradient)
            STORE(TYPE, AT(gradient, 5), j, counts ? scale * error : 0.0f);
    }
    total[row] = counts ? weight * loss : 0.0f;
    total[a.rows + row] = 0.0f;
}

/* One work-item: rows are few, and their order is fixed. */
KERNEL void total_rows(GLOBAL char *totals, GLOBAL char *loss, GLOBAL char *correct, const cek_k_total a)
{
    GLOBAL const cek_f32 *total = (GLOBAL const cek_f32 *)AT(totals, 0);
    if (!a.rows || GLOBAL_ID())
        return;
    cek_f32 sum = 0.0f;
    cek_i32 hits = 0;
    for (cek_u64 i = 0; i < a.rows; i++) {
        sum += total[i];
        hits += total[a.rows + i] != 0.0f;
    }
    if (a.loss) {
        GLOBAL cek_f32 *to = (GLOBAL cek_f32 *)AT(loss, 1);
        *to = a.accumulate_loss ? *to + sum : sum;
    }
    if (a.correct) {
        GLOBAL cek_i32 *to = (GLOBAL cek_i32 *)AT(correct, 2);
        *to = a.accumulate_correct ? *to + hits : hits;
    }
}
