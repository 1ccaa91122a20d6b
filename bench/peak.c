/* peak.c - see peak.h. */
#include "bench/peak.h"

#include <stdlib.h>

#include "bench/device_op.h"
#include "bench/stats.h"

enum { SIDE_LEAST = 256, SIDE_MOST = 8192, ROUNDS = 5 };
static const double LONG_ENOUGH = 0.01; /* seconds of one product */

double peak_part(double flops, double peak)
{
    return flops < peak ? flops / peak : 1;
}

void *peak_numbers(cek_dtype type, uint64_t count, uint64_t seed)
{
    size_t width = cek_dtype_bytes(type);
    unsigned char *numbers = malloc(count * width);
    for (uint64_t i = 0, bits = 0; numbers && i < count; i++) { /* sign and fraction are random */
        bits = (seed << 40) + (i + 1) * 0x9E3779B97F4A7C15u;
        bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u >> 20;
        uint32_t f32 = 0x3f000000u | ((uint32_t)bits & 0x807fffffu);
        uint16_t low = (uint16_t)(type == CEK_F16 ? 0x3800u | (bits & 0x83ffu) : 0x3f00u | (bits & 0x807fu));
        if (type == CEK_F32)
            ((uint32_t *)(void *)numbers)[i] = f32;
        else
            ((uint16_t *)(void *)numbers)[i] = low;
    }
    return numbers;
}

static cek_status side_measure(cek_device *device, cek_dtype type, uint32_t math, uint64_t side, double *once,
                               double *flops)
{
    const cek_gemm_desc desc = { .op = { .size = sizeof desc,
                                         .kind = CEK_OP_GEMM,
                                         .math = math,
                                         .operands = CEK_BIT(CEK_GEMM_A) | CEK_BIT(CEK_GEMM_B) | CEK_BIT(CEK_GEMM_C) },
                                 .m = side,
                                 .n = side,
                                 .k = side,
                                 .batch = 1,
                                 .lda = (int64_t)side,
                                 .ldb = (int64_t)side,
                                 .ldc = (int64_t)side,
                                 .a_type = type,
                                 .b_type = type,
                                 .c_type = type };
    const uint64_t bytes = side * side * cek_dtype_bytes(type);
    double seconds[ROUNDS];
    device_op op;
    cek_status st = device_op_create(device, &desc.op, &op);
    if (st)
        return st;
    void *numbers = peak_numbers(type, side * side, 1);
    st = numbers ? device_op_operand(&op, CEK_GEMM_A, numbers, bytes) : CEK_OUT_OF_MEMORY;
    if (!st)
        st = device_op_operand(&op, CEK_GEMM_B, numbers, bytes);
    if (!st)
        st = device_op_operand(&op, CEK_GEMM_C, NULL, bytes);
    if (!st)
        st = spec_time(&(spec_timing){ .seconds = seconds, .runs = ROUNDS, .warmup = 1 }, device_op_run, NULL, &op);
    if (!st) {
        *once = stats_median(seconds, ROUNDS);
        *flops = 2.0 * (double)side * (double)side * (double)side / *once;
    }
    free(numbers);
    device_op_free(&op);
    return st;
}

cek_status peak_product(cek_device *device, cek_dtype type, uint32_t math, double *flops, uint64_t *side)
{
    *flops = 0;
    *side = 0;
    for (uint64_t s = SIDE_LEAST; s <= SIDE_MOST; s *= 2) {
        double once, rate;
        cek_status st = side_measure(device, type, math, s, &once, &rate);
        if (st == CEK_OUT_OF_MEMORY && *side)
            break;
        if (st)
            return st;
        if (rate > *flops)
            *flops = rate, *side = s;
        if (once >= LONG_ENOUGH)
            break;
    }
    return CEK_OK;
}
