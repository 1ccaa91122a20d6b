/* thin.c - a few rows times a matrix that is read once, where it lies: products of which memory is the limit.
 *
 * Owns: the order in which rows are read. Must not know: tasks, parts of k, epilogues.
 *
 * A few rows of B pass side by side, each a stream that processors fetch ahead, and sums wait in L1 meanwhile. Columns
 * from top to bottom would be short runs, each in its own page. Every sum is one chain over k, in order. So many
 * streams are more than processors follow in time: what is far is asked for. */
#include "kernels/cpu/half.h"
#include "kernels/cpu/table.h"

/* Loops that ask ahead are a second copy of all. */
#if defined CEK_ISA_AVX512 || defined CEK_ISA_AVX2 || defined CEK_ISA_NEON
#define HAS_FAR 1
#else
#define HAS_FAR 0
#endif

/* Of 16 bits one loop for both types, where every loop is some 10 KiB: a branch that always goes the same way. */
V_INLINE vf b_load(cpu_type type, int is_f16, const char *at, int is_part, int64_t lanes)
{
    if (type == CPU_F32)
        return is_part ? v_load_part((const float *)(const void *)at, lanes) : v_load((const float *)(const void *)at);
    const cpu_type is = is_f16 ? CPU_F16 : CPU_BF16;
    return is_part ? v_load_typed_part(is, at, lanes) : v_load_typed(is, at);
}

enum {
    STREAMS = 8, /* rows of B at once; 4 and 16 take 1.1 to 1.6 of the time */
    AHEAD = 512, /* bytes, in each row; of 256 to 1536 the fastest */
    WIDEST = 16  /* vectors of columns at once, of a single row: its sums come and go for few multiply-adds each */
};

/* `count` vectors of columns; where is_part, the lanes of one that are left. */
V_INLINE void vectors(cpu_type type, int is_f16, int ahead, int rows, int count, int is_part, int64_t lanes,
                      int64_t depth, const cpu_thin *t, const float *a, const char *b, float *c, int add)
{
    const int64_t bytes = cpu_type_bytes(type);
    vf sum[CPU_THIN_MAX][WIDEST], x[WIDEST];

    if (rows == 0)
        return;
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int v = 0; v < count; v++) {
            const float *at = c + i * t->ldc + v * VL;
            sum[i][v] = !add ? (vf){ 0 } : is_part ? v_load_part(at, lanes) : v_load(at);
        }
    }
    for (; depth > 0; depth--, a += t->step, b += t->ldb * bytes) {
        UNROLL
        for (int v = 0; v < count; v++)
            x[v] = b_load(type, is_f16, b + v * VL * bytes, is_part, lanes);
        if (rows > 1) {
            UNROLL
            for (int v = 0; v < count; v++)
                x[v] = v_once(x[v]);
        }
        if (ahead) {
            UNROLL
            for (int v = 0; v < count; v++)
                __builtin_prefetch(b + v * VL * bytes + AHEAD, 0, 3);
        }
        UNROLL
        for (int i = 0; i < rows; i++) {
            const vf all = v_all(a[i * t->lda]);
            UNROLL
            for (int v = 0; v < count; v++)
                sum[i][v] = v_fma(all, x[v], sum[i][v]);
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int v = 0; v < count; v++)
            if (is_part)
                v_store_part(c + i * t->ldc, lanes, sum[i][v]);
            else
                v_store(c + i * t->ldc + v * VL, sum[i][v]);
    }
}

/* All strips of `count` vectors from column `j` on, of the first `low` rows, then of the others; returns the column
 * behind the last one. */
V_INLINE int64_t strips_of(cpu_type type, int is_f16, int ahead, int low, int high, int count, int64_t j, int64_t depth,
                           const cpu_thin *t, const float *a, const char *b, int add)
{
    const int64_t bytes = cpu_type_bytes(type);
    for (; j + count * VL <= t->columns; j += count * VL) {
        vectors(type, is_f16, ahead, low, count, 0, 0, depth, t, a, b + j * bytes, t->c + j, add);
        vectors(type, is_f16, 0, high, count, 0, 0, depth, t, a + low * t->lda, b + j * bytes, t->c + j + low * t->ldc,
                add);
    }
    return j;
}

V_INLINE void strips(cpu_type type, int is_f16, int ahead, int rows, const cpu_thin *t)
{
    /* Where registers are few, vectors of B are loaded twice, for half of the rows each, rather than one by one. */
    const int fits = REGISTERS < 32 ? 6 : CPU_THIN_MAX, low = rows > fits ? (rows + 1) / 2 : rows, high = rows - low;
    /* Whole lines, if it can be: of rows that lie 4096 bytes apart L1 loses what another strip would use. */
    const int line = 64 / (VL * 4), fit = (REGISTERS - 2) / (low + 1);
    const int count = fit >= 4 ? 4 : fit >= line ? fit / line * line : fit;
    const int wide = line == 1 && rows <= 2 ? WIDEST / rows : count;
    const int64_t bytes = cpu_type_bytes(type);

    for (int64_t k = 0; k < t->depth; k += STREAMS) {
        const int64_t depth = t->depth - k < STREAMS ? t->depth - k : STREAMS;
        const float *a = t->a + k * t->step;
        const char *b = (const char *)t->b + k * t->ldb * bytes;
        const int add = t->add || k > 0;
        int64_t j = strips_of(type, is_f16, ahead, low, high, wide, 0, depth, t, a, b, add);
        if (wide > count)
            j = strips_of(type, is_f16, ahead, low, high, count, j, depth, t, a, b, add);
        for (; j < t->columns; j += VL)
            vectors(type, is_f16, 0, rows, 1, 1, t->columns - j < VL ? t->columns - j : VL, depth, t, a, b + j * bytes,
                    t->c + j, add);
    }
}

V_INLINE void thin(cpu_type type, int is_f16, int ahead, const cpu_thin *t)
{
    switch (t->rows) {
    case 1: /* its streams are followed in time */
        if (!ahead)
            strips(type, is_f16, 0, 1, t);
        break;
    case 2: strips(type, is_f16, ahead, 2, t); break;
    case 3: strips(type, is_f16, ahead, 3, t); break;
    case 4: strips(type, is_f16, ahead, 4, t); break;
    case 5: strips(type, is_f16, ahead, 5, t); break;
    case 6: strips(type, is_f16, ahead, 6, t); break;
    case 7: strips(type, is_f16, ahead, 7, t); break;
    default: break;
    }
}

static __attribute__((noinline)) void thin_f32(const cpu_thin *t)
{
    thin(CPU_F32, 0, 0, t);
}

#if HAS_FAR
static __attribute__((noinline)) void thin_far(const cpu_thin *t)
{
    thin(CPU_F32, 0, 1, t);
}
#endif

#if !defined CEK_ISA_AVX512
/* Of types that have no loop of their own here, numbers become floats once for all rows: a strip of B at a time. */
static void thin_converted(const cpu_thin *t)
{
    enum { ROWS = 8, COLUMNS = 64 * VL };
    void (*const strip_load)(cpu_type, int64_t, const void *, float *) = ISA_NAME(load);
    float strip[ROWS * COLUMNS];
    cpu_thin part = *t;
    const int64_t bytes = cpu_type_bytes(t->type);

    part.type = CPU_F32;
    part.b = strip;
    part.ldb = COLUMNS;
    for (int64_t k = 0; k < t->depth; k += ROWS) {
        part.depth = t->depth - k < ROWS ? t->depth - k : ROWS;
        part.a = t->a + k * t->step;
        part.add = t->add || k > 0;
        for (int64_t j = 0; j < t->columns; j += COLUMNS) {
            part.columns = t->columns - j < COLUMNS ? t->columns - j : COLUMNS;
            part.c = t->c + j;
            for (int64_t i = 0; i < part.depth; i++)
                strip_load(t->type, part.columns, (const char *)t->b + ((k + i) * t->ldb + j) * bytes,
                           strip + i * COLUMNS);
            thin_f32(&part);
        }
    }
}
#endif

/* The same rows of B meet each half of A's while L1 has them. */
static void in_halves(const cpu_thin *t)
{
    const int64_t low = (t->rows + 1) / 2, bytes = cpu_type_bytes(t->type);
    cpu_thin part = *t;

    for (int64_t k = 0; k < t->depth; k += STREAMS) {
        part.depth = t->depth - k < STREAMS ? t->depth - k : STREAMS;
        part.b = (const char *)t->b + k * t->ldb * bytes;
        part.add = t->add || k > 0;
        for (int64_t row = 0; row < t->rows; row += low) {
            part.is_far = t->is_far && row == 0;
            part.rows = row ? t->rows - low : low;
            part.a = t->a + row * t->lda + k * t->step;
            part.c = t->c + row * t->ldc;
            ISA_NAME(thin)(&part);
        }
    }
}

void ISA_NAME(thin)(const cpu_thin *t)
{
    if (t->rows > CPU_THIN_MAX)
        in_halves(t);
#if HAS_FAR
    else if (t->type == CPU_F32 && t->is_far && t->rows > 1)
        thin_far(t);
#endif
    else if (t->type == CPU_F32)
        thin_f32(t);
#if defined CEK_ISA_AVX512
    else
        thin(CPU_BF16, t->type == CPU_F16, 0, t);
#else
#if defined CEK_ISA_AVX2 || defined CEK_ISA_NEON
    else if (t->type == CPU_BF16)
        thin(CPU_BF16, 0, 0, t);
#endif
    else
        thin_converted(t);
#endif
}
