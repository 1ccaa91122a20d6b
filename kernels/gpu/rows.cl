/* SPDX-License-Identifier: MIT
 *
 * rows.cl - softmax and the losses; TYPE is the element type. Rows are short or long: `lanes` neighbouring work-items
 * share one, a group has as many rows as it has room for, and each group leaves the sum of its losses in f32.
 *
 * A row that does not count is selected out, not multiplied by zero: it may hold anything.
 */

/* The blocks of plugin.h, by 32-bit words. */
#define STEP_INV_N 2
#define STEP_LOSS_SCALE 4
#define BATCH_ROWS_VALID 2

/* The row of a work-item, of which it has every lanes-th column from its `lane` on; beyond a.rows there is none. */
#define FIND_ROW                                                                                   \
    const cek_u32 lane = ITEM_ID(0) & (a.lanes - 1);                                               \
    const cek_u64 row = GROUP_NUMBER() * a.group_rows + (ITEM_ID(0) >> a.lane_bits), first = row * a.columns; \
    (void)lane;

/* Statements for all columns j of a work-item below `columns`, with the element v there. */
#ifdef CEK_CPU
#define FOR_COLUMNS(columns, type, x, ...)                                                         \
    for (cek_u64 j = 0; j < (columns); j++) {                                                      \
        const cek_f32 v = LOAD(type, x, first + j);                                                \
        __VA_ARGS__                                                                                 \
    }
#else
#define FOR_COLUMNS(columns, type, x, ...)                                                         \
    for (cek_u64 next = lane; next < (columns); next += (cek_u64)IN_FLIGHT * a.lanes) {            \
        cek_f32 values[IN_FLIGHT];                                                                 \
        for (cek_u32 u = 0; u < IN_FLIGHT; u++)                                                    \
            values[u] = next + u * a.lanes < (columns) ? LOAD(type, x, first + next + u * a.lanes) : 0.0f; \
        for (cek_u32 u = 0; u < IN_FLIGHT; u++)                                                    \
            if (next + u * a.lanes < (columns)) {                                                  \
                const cek_u64 j = next + u * a.lanes;                                              \
                const cek_f32 v = values[u];                                                       \
                (void)j;                                                                           \
                __VA_ARGS__                                                                         \
            }                                                                                      \
    }
#endif

KERNEL void softmax(GLOBAL char *x, GLOBAL char *y, const cek_k_rows a)
{
    HELD(cek_f32, held)
    FIND_ROW
    const cek_u64 columns = row < a.rows ? a.columns : 0;
    cek_f32 largest = -INFINITY, sum = 0.0f;
    FOR_COLUMNS(columns, TYPE, AT(x, 0), largest = v > largest ? v : largest;)
    FOLD(cek_f32, held, largest, lane, a.lanes, 1, other > largest ? other : largest)
    FOR_COLUMNS(columns, TYPE, AT(x, 0), sum += exp(v - largest);)
    FOLD(cek_f32, held, sum, lane, a.lanes, 1, sum + other)
    const cek_f32 log_sum = log(sum);
    FOR_COLUMNS(columns, TYPE, AT(x, 0),
                STORE(TYPE, AT(y, 1), first + j, a.log ? v - largest - log_sum : exp(v - largest) / sum);)
}

DEVICE_FN cek_u32 row_counts(GLOBAL const char *batch, cek_u32 given, cek_u64 row, cek_u64 rows_per_sample)
{
    return !given || row < ((GLOBAL const cek_u32 *)batch)[BATCH_ROWS_VALID] * rows_per_sample;
}

DEVICE_FN cek_f32 gradient_scale(GLOBAL const char *step, cek_u32 given)
{
    return given ? ((GLOBAL const cek_f32 *)step)[STEP_LOSS_SCALE] * ((GLOBAL const cek_f32 *)step)[STEP_INV_N] : 0.0f;
}

/* The group's losses and hits, of one work-item of each row, in one sum each. */
#ifdef CEK_CPU
#define GROUP_TOTAL(loss, hit)
#else
#define GROUP_TOTAL(loss, hit)                                                                     \
    loss = lane ? 0.0f : loss;                                                                     \
    hit = lane ? 0.0f : hit;                                                                       \
    FOLD(cek_f32, held, loss, ITEM_ID(0), GROUP_SIZE(), 1, loss + other)                                    \
    FOLD(cek_f32, held, hit, ITEM_ID(0), GROUP_SIZE(), 1, hit + other)
#endif
#define TOTAL_PUT(loss, hit)                                                                       \
    GROUP_TOTAL(loss, hit)                                                                         \
    if (!ITEM_ID(0) && row < a.rows) {                                                             \
        GLOBAL cek_f32 *total = (GLOBAL cek_f32 *)AT(totals, 6);                                   \
        total[GROUP_NUMBER()] = loss;                                                              \
        total[a.groups + GROUP_NUMBER()] = hit;                                                    \
    }

#define HIGHEST_NONE 0xfffffffeu /* no column was looked at */
#define HIGHEST_NAN 0xffffffffu  /* or one that is NaN: there is none then */

/* Where a row is highest: `at` of the first column of those that hold `value`. Labels are below 2^31, and so is every
 * column that is worth a number of its own. */
typedef struct highest { cek_f32 value; cek_u32 at; } highest;
DEVICE_FN highest higher(highest p, highest q)
{
    const cek_u32 at = q.value > p.value || (q.value == p.value && q.at < p.at) ? q.at : p.at;
    highest result;
    result.value = q.value > p.value ? q.value : p.value;
    result.at = p.at == HIGHEST_NAN || q.at == HIGHEST_NAN ? HIGHEST_NAN : at;
    return result;
}
DEVICE_FN highest highest_column(cek_f32 value, cek_u64 column)
{
    highest result;
    result.value = value == value ? value : -INFINITY;
    result.at = value != value ? HIGHEST_NAN : column < 0x80000000u ? (cek_u32)column : 0x80000000u;
    return result;
}

#ifdef CEK_CPU
#define FOLD_HIGHEST(held, columns, best)
#else
#define FOLD_HIGHEST(held, columns, best)                                                          \
    BARRIER();                                                                                     \
    held[ITEM_ID(0)] = best.value;                                                                 \
    columns[ITEM_ID(0)] = best.at;                                                                 \
    for (cek_u32 reach = a.lanes / 2; reach; reach /= 2) {                                         \
        BARRIER();                                                                                 \
        if (lane < reach) {                                                                        \
            highest other;                                                                         \
            other.value = held[ITEM_ID(0) + reach];                                                \
            other.at = columns[ITEM_ID(0) + reach];                                                \
            best = higher(best, other);                                                            \
            held[ITEM_ID(0)] = best.value;                                                         \
            columns[ITEM_ID(0)] = best.at;                                                         \
        }                                                                                          \
    }                                                                                              \
    BARRIER();                                                                                     \
    best.value = held[ITEM_ID(0) - lane];                                                          \
    best.at = columns[ITEM_ID(0) - lane];
#endif

/* totals: of each group the losses, then the hits, as f32. */
KERNEL void cross_entropy(GLOBAL char *logits, GLOBAL char *labels, GLOBAL char *weights, GLOBAL char *step,
                          GLOBAL char *batch, GLOBAL char *gradient, GLOBAL char *totals, const cek_k_rows a)
{
    HELD(cek_f32, held)
    HELD(cek_u32, held_columns)
    FIND_ROW
    GLOBAL const char *x = AT(logits, 0);
    const cek_u32 counts = row < a.rows && row_counts(AT(batch, 4), a.batch, row, a.rows_per_sample);
    const cek_f32 weight = !counts ? 0.0f : a.weights ? ((GLOBAL const cek_f32 *)AT(weights, 2))[row] : 1.0f;
    const cek_i32 label = counts ? ((GLOBAL const cek_i32 *)AT(labels, 1))[row] : -1;
    const cek_u32 known = label >= 0 && (cek_u64)label < a.columns;
    const cek_u64 columns = counts ? a.columns : 0, weighed = weight != 0.0f ? columns : 0;
    cek_f32 sum = 0.0f, loss = 0.0f, hit = 0.0f;
    highest best;
    best.value = -INFINITY, best.at = HIGHEST_NONE;
    FOR_COLUMNS(columns, TYPE, x, best = higher(best, highest_column(v, j));)
    FOLD_HIGHEST(held, held_columns, best)
    hit = known && best.at == (cek_u32)label ? 1.0f : 0.0f;
    FOR_COLUMNS(weighed, TYPE, x, sum += exp(v - best.value);)
    FOLD(cek_f32, held, sum, lane, a.lanes, 1, sum + other)
    if (weighed && !lane) {
        const cek_f32 own = known ? LOAD(TYPE, x, first + (cek_u64)label) : NAN;
        loss = weight * (log(sum) - (own - best.value));
    }
    TOTAL_PUT(loss, hit)
    if (!a.gradient)
        return;
    const cek_f32 scale = gradient_scale(AT(step, 3), a.step) * weight;
    FOR_COLUMNS(weighed, TYPE, x,
                const cek_f32 p = exp(v - best.value) / sum, target = !known ? NAN : j == (cek_u64)label ? 1.0f : 0.0f;
                STORE(TYPE, AT(gradient, 5), first + j, scale * (p - target));)
    if (row < a.rows && !weighed)
        for (cek_u64 j = lane; j < a.columns; j += a.lanes)
            STORE(TYPE, AT(gradient, 5), first + j, 0.0f);
}

KERNEL void squared_error(GLOBAL char *prediction, GLOBAL char *target, GLOBAL char *weights, GLOBAL char *step,
                          GLOBAL char *batch, GLOBAL char *gradient, GLOBAL char *totals, const cek_k_rows a)
{
    HELD(cek_f32, held)
    FIND_ROW
    GLOBAL const cek_f32 *wanted = (GLOBAL const cek_f32 *)AT(target, 1);
    const cek_u32 counts = row < a.rows && row_counts(AT(batch, 4), a.batch, row, a.rows_per_sample);
    const cek_f32 weight = !counts ? 0.0f : a.weights ? ((GLOBAL const cek_f32 *)AT(weights, 2))[row] : 1.0f;
    const cek_f32 scale = weight != 0.0f ? gradient_scale(AT(step, 3), a.step) * weight * 2.0f : 0.0f;
    const cek_u64 columns = weight != 0.0f ? a.columns : 0;
    cek_f32 loss = 0.0f, hit = 0.0f;
    FOR_COLUMNS(columns, TYPE, AT(prediction, 0), const cek_f32 error = v - wanted[first + j]; loss += error * error;
                if (a.gradient) STORE(TYPE, AT(gradient, 5), first + j, scale * error);)
    if (row < a.rows && !columns && a.gradient)
        for (cek_u64 j = lane; j < a.columns; j += a.lanes)
            STORE(TYPE, AT(gradient, 5), first + j, 0.0f);
    FOLD(cek_f32, held, loss, lane, a.lanes, 1, loss + other)
    loss = columns ? weight * loss : 0.0f;
    TOTAL_PUT(loss, hit)
}

/* One group: groups are few, and their order is fixed. */
KERNEL void total_rows(GLOBAL char *totals, GLOBAL char *loss, GLOBAL char *correct, const cek_k_total a)
{
    HELD(cek_f32, held)
    HELD(cek_i32, held_hits)
    GLOBAL const cek_f32 *total = (GLOBAL const cek_f32 *)AT(totals, 0);
    cek_f32 sum = 0.0f;
    cek_i32 hits = 0;
    for (cek_u64 next = ITEM_ID(0); next < a.groups; next += (cek_u64)IN_FLIGHT * a.lanes) {
        cek_f32 losses[IN_FLIGHT], counts[IN_FLIGHT];
        for (cek_u32 u = 0; u < IN_FLIGHT; u++) {
            losses[u] = next + u * a.lanes < a.groups ? total[next + u * a.lanes] : 0.0f;
            counts[u] = next + u * a.lanes < a.groups ? total[a.groups + next + u * a.lanes] : 0.0f;
        }
        for (cek_u32 u = 0; u < IN_FLIGHT; u++)
            sum += losses[u], hits += (cek_i32)counts[u];
    }
    FOLD(cek_f32, held, sum, ITEM_ID(0), a.lanes, 1, sum + other)
    FOLD(cek_i32, held_hits, hits, ITEM_ID(0), a.lanes, 1, hits + other)
    if (ITEM_ID(0) || GROUP_NUMBER()) /* the latter where nothing is to be done */
        return;
    if (a.loss) {
        GLOBAL cek_f32 *to = (GLOBAL cek_f32 *)AT(loss, 1);
        *to = a.accumulate_loss ? *to + sum : sum;
    }
    if (a.correct) {
        GLOBAL cek_i32 *to = (GLOBAL cek_i32 *)AT(correct, 2);
        *to = a.accumulate_correct ? *to + hits : hits;
    }
}
