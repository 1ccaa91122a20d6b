/* SPDX-License-Identifier: MIT
 *
 * dialect.h - the words in which kernels/gpu is written, for OpenCL C 1.2 and for CUDA.
 *
 * Scalars, and words of memory in twos and fours: CUDA has no float16. Element types are names - f32, f16, bf16, u8,
 * i32 - that LOAD and STORE paste into the functions below; a kernel's TYPE macros hold such names.
 */
#define CEK_DEVICE_CODE 1

/* KERNEL_OF(x, y, groups): a kernel for groups of x * y work-items alone, whose registers suffice for so
 * many of them. */

#ifndef __CUDACC__

typedef ulong cek_u64;
typedef long cek_i64;
typedef uint cek_u32;
typedef int cek_i32;
typedef uchar cek_u8;
typedef ushort cek_u16;
typedef float cek_f32;
#define KERNEL __kernel
#define KERNEL_OF(x, y, groups) __kernel __attribute__((reqd_work_group_size(x, y, 1)))
#define GLOBAL __global
#define LOCAL __local /* a variable of a group; NEAR: what a pointer to it points to */
#define NEAR __local
#define DEVICE_FN static inline
/* A function that is handed memory of a group: PoCL gives groups memory of their own in kernels alone, and what is not
 * inlined there then finds another. */
#define GROUP_FN static inline __attribute__((always_inline))
/* In front of a loop whose values are to be registers: it is written out, but where a processor stands in for a GPU,
 * whose compiler takes seconds for so much code, and has not so many registers. */
#if !defined(CEK_CPU) && (defined(__x86_64__) || defined(__i386__) || defined(__aarch64__) || defined(__arm__) || \
                          defined(__riscv) || defined(__powerpc64__))
#define UNROLL _Pragma("unroll 1")
#else
#define UNROLL _Pragma("unroll")
#endif
#ifdef CEK_CPU /* in rows */
#define GLOBAL_ID() ((cek_u64)get_global_id(1) * get_global_size(0) + get_global_id(0))
#define GROUP_NUMBER() ((cek_u64)get_group_id(1) * get_num_groups(0) + get_group_id(0))
#else
#define GLOBAL_ID() ((cek_u64)get_global_id(0))
#define GROUP_NUMBER() GROUP_ID(0)
#endif
#define GROUP_ID(d) ((cek_u64)get_group_id(d))
#define ITEM_ID(d) ((cek_u32)get_local_id(d))
#define GROUP_SIZE() ((cek_u32)get_local_size(0))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define RESTRICT restrict
#define MUL_HIGH(a, b) mul_hi((cek_u32)(a), (cek_u32)(b))
#define AS_U32(x) as_uint(x)
#define AS_F32(x) as_float(x)
typedef float4 cek_quad;
#define ROUND_EVEN(x) rint(x)
DEVICE_FN cek_f32 load_f16(GLOBAL const void *p, cek_u64 i)
{
    return vload_half(i, (GLOBAL const half *)p);
}
DEVICE_FN void store_f16(GLOBAL void *p, cek_u64 i, cek_f32 x)
{
    vstore_half_rte(x, i, (GLOBAL half *)p);
}
DEVICE_FN void load4_f16(GLOBAL const void *p, cek_f32 *v)
{
    vstore4(vloada_half4(0, (GLOBAL const half *)p), 0, v);
}
DEVICE_FN void load8_f16(GLOBAL const void *p, cek_f32 *v)
{
    vstore8(vloada_half8(0, (GLOBAL const half *)p), 0, v);
}
DEVICE_FN void store4_f16(GLOBAL void *p, const cek_f32 *v)
{
    vstorea_half4_rte(vload4(0, v), 0, (GLOBAL half *)p);
}
DEVICE_FN void store8_f16(GLOBAL void *p, const cek_f32 *v)
{
    vstorea_half8_rte(vload8(0, v), 0, (GLOBAL half *)p);
}

#else /* CUDA */

typedef unsigned long long cek_u64;
typedef long long cek_i64;
typedef unsigned int cek_u32;
typedef int cek_i32;
typedef unsigned char cek_u8;
typedef unsigned short cek_u16;
typedef float cek_f32;
#define KERNEL extern "C" __global__
#define KERNEL_OF(x, y, groups) extern "C" __launch_bounds__((x) * (y), groups) __global__
#define GLOBAL
#define LOCAL __shared__
#define NEAR
#define DEVICE_FN __device__ __forceinline__
#define GROUP_FN DEVICE_FN
#define UNROLL _Pragma("unroll")
#define CEK_X_(v, d) ((d) == 0 ? v.x : (d) == 1 ? v.y : v.z)
#define GLOBAL_ID() ((cek_u64)blockIdx.x * blockDim.x + threadIdx.x)
#define GROUP_ID(d) ((cek_u64)CEK_X_(blockIdx, d))
#define GROUP_NUMBER() GROUP_ID(0)
#define ITEM_ID(d) ((cek_u32)CEK_X_(threadIdx, d))
#define GROUP_SIZE() ((cek_u32)blockDim.x)
#define BARRIER() __syncthreads()
#define RESTRICT __restrict__
#define MUL_HIGH(a, b) __umulhi(a, b)
#define AS_U32(x) __float_as_uint(x)
#define AS_F32(x) __uint_as_float(x)
typedef struct __attribute__((aligned(16))) cek_quad {
    cek_f32 x, y, z, w;
} cek_quad;
#define ROUND_EVEN(x) rintf(x)
#undef NAN
#undef INFINITY
#define NAN __int_as_float(0x7fffffff)
#define INFINITY __int_as_float(0x7f800000)
#define exp expf
#define log logf
#define sqrt sqrtf
#define copysign copysignf
#define expm1 expm1f
#define fabs fabsf
#define cos cosf
#define sin sinf
DEVICE_FN cek_f32 f16_value(cek_u16 h)
{
    cek_f32 x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
}
DEVICE_FN cek_u16 f16_bits(cek_f32 x)
{
    cek_u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}
DEVICE_FN cek_f32 load_f16(GLOBAL const void *p, cek_u64 i)
{
    return f16_value(((const cek_u16 *)p)[i]);
}
DEVICE_FN void store_f16(GLOBAL void *p, cek_u64 i, cek_f32 x)
{
    ((cek_u16 *)p)[i] = f16_bits(x);
}
#define CEK_F16_LOW(w) f16_value((cek_u16)(w))
#define CEK_F16_HIGH(w) f16_value((cek_u16)((w) >> 16))
#define CEK_F16_PAIR(v, i) ((cek_u32)f16_bits((v)[i]) | (cek_u32)f16_bits((v)[(i) + 1]) << 16)
DEVICE_FN void load4_f16(const void *p, cek_f32 *v)
{
    const uint2 w = *(const uint2 *)p;
    v[0] = CEK_F16_LOW(w.x), v[1] = CEK_F16_HIGH(w.x), v[2] = CEK_F16_LOW(w.y), v[3] = CEK_F16_HIGH(w.y);
}
DEVICE_FN void load8_f16(const void *p, cek_f32 *v)
{
    const uint4 w = *(const uint4 *)p;
    v[0] = CEK_F16_LOW(w.x), v[1] = CEK_F16_HIGH(w.x), v[2] = CEK_F16_LOW(w.y), v[3] = CEK_F16_HIGH(w.y);
    v[4] = CEK_F16_LOW(w.z), v[5] = CEK_F16_HIGH(w.z), v[6] = CEK_F16_LOW(w.w), v[7] = CEK_F16_HIGH(w.w);
}
DEVICE_FN void store4_f16(void *p, const cek_f32 *v)
{
    uint2 w;
    w.x = CEK_F16_PAIR(v, 0), w.y = CEK_F16_PAIR(v, 2);
    *(uint2 *)p = w;
}
DEVICE_FN void store8_f16(void *p, const cek_f32 *v)
{
    uint4 w;
    w.x = CEK_F16_PAIR(v, 0), w.y = CEK_F16_PAIR(v, 2), w.z = CEK_F16_PAIR(v, 4), w.w = CEK_F16_PAIR(v, 6);
    *(uint4 *)p = w;
}

#endif

DEVICE_FN cek_f32 load_f32(GLOBAL const void *p, cek_u64 i)
{
    return ((GLOBAL const cek_f32 *)p)[i];
}
DEVICE_FN void store_f32(GLOBAL void *p, cek_u64 i, cek_f32 x)
{
    ((GLOBAL cek_f32 *)p)[i] = x;
}

DEVICE_FN cek_f32 load_bf16(GLOBAL const void *p, cek_u64 i)
{
    return AS_F32((cek_u32)((GLOBAL const cek_u16 *)p)[i] << 16);
}
DEVICE_FN cek_u32 bf16_bits(cek_f32 x)
{
    cek_u32 bits = AS_U32(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        bits = bits | 0x400000u; /* quiet, so that a NaN whose payload is in the low half stays one */
    else
        bits = bits + 0x7fffu + (bits >> 16 & 1u);
    return bits >> 16;
}
DEVICE_FN void store_bf16(GLOBAL void *p, cek_u64 i, cek_f32 x)
{
    ((GLOBAL cek_u16 *)p)[i] = (cek_u16)bf16_bits(x);
}

/* Integers: exactly, or rounded to f32; back to the nearest, saturating, NaN to 0. */
DEVICE_FN cek_u8 u8_nearest(cek_f32 x)
{
    return x >= 255.0f ? (cek_u8)255 : x > 0.0f ? (cek_u8)ROUND_EVEN(x) : (cek_u8)0;
}
DEVICE_FN cek_i32 i32_nearest(cek_f32 x)
{
    return x >= 2147483648.0f    ? 2147483647
           : x <= -2147483648.0f ? -2147483647 - 1
           : x == x              ? (cek_i32)ROUND_EVEN(x)
                                 : 0;
}
DEVICE_FN cek_f32 load_u8(GLOBAL const void *p, cek_u64 i)
{
    return (cek_f32)((GLOBAL const cek_u8 *)p)[i];
}
DEVICE_FN void store_u8(GLOBAL void *p, cek_u64 i, cek_f32 x)
{
    ((GLOBAL cek_u8 *)p)[i] = u8_nearest(x);
}
DEVICE_FN cek_f32 load_i32(GLOBAL const void *p, cek_u64 i)
{
    return (cek_f32)((GLOBAL const cek_i32 *)p)[i];
}
DEVICE_FN void store_i32(GLOBAL void *p, cek_u64 i, cek_f32 x)
{
    ((GLOBAL cek_i32 *)p)[i] = i32_nearest(x);
}

/* Four or eight elements in one access, at an address that is a multiple of their bytes. */
DEVICE_FN void load4_f32(GLOBAL const void *p, cek_f32 *v)
{
    const uint4 w = *(GLOBAL const uint4 *)p;
    v[0] = AS_F32(w.x), v[1] = AS_F32(w.y), v[2] = AS_F32(w.z), v[3] = AS_F32(w.w);
}
DEVICE_FN void store4_f32(GLOBAL void *p, const cek_f32 *v)
{
    uint4 w;
    w.x = AS_U32(v[0]), w.y = AS_U32(v[1]), w.z = AS_U32(v[2]), w.w = AS_U32(v[3]);
    *(GLOBAL uint4 *)p = w;
}
DEVICE_FN void load4_i32(GLOBAL const void *p, cek_f32 *v)
{
    const uint4 w = *(GLOBAL const uint4 *)p;
    v[0] = (cek_f32)(cek_i32)w.x, v[1] = (cek_f32)(cek_i32)w.y;
    v[2] = (cek_f32)(cek_i32)w.z, v[3] = (cek_f32)(cek_i32)w.w;
}
DEVICE_FN void store4_i32(GLOBAL void *p, const cek_f32 *v)
{
    uint4 w;
    w.x = (cek_u32)i32_nearest(v[0]), w.y = (cek_u32)i32_nearest(v[1]);
    w.z = (cek_u32)i32_nearest(v[2]), w.w = (cek_u32)i32_nearest(v[3]);
    *(GLOBAL uint4 *)p = w;
}
#define CEK_BF16_LOW(w) AS_F32((w) << 16)
#define CEK_BF16_HIGH(w) AS_F32((w)&0xffff0000u)
#define CEK_BF16_PAIR(v, i) (bf16_bits((v)[i]) | bf16_bits((v)[(i) + 1]) << 16)
DEVICE_FN void load4_bf16(GLOBAL const void *p, cek_f32 *v)
{
    const uint2 w = *(GLOBAL const uint2 *)p;
    v[0] = CEK_BF16_LOW(w.x), v[1] = CEK_BF16_HIGH(w.x), v[2] = CEK_BF16_LOW(w.y), v[3] = CEK_BF16_HIGH(w.y);
}
DEVICE_FN void load8_bf16(GLOBAL const void *p, cek_f32 *v)
{
    const uint4 w = *(GLOBAL const uint4 *)p;
    v[0] = CEK_BF16_LOW(w.x), v[1] = CEK_BF16_HIGH(w.x), v[2] = CEK_BF16_LOW(w.y), v[3] = CEK_BF16_HIGH(w.y);
    v[4] = CEK_BF16_LOW(w.z), v[5] = CEK_BF16_HIGH(w.z), v[6] = CEK_BF16_LOW(w.w), v[7] = CEK_BF16_HIGH(w.w);
}
DEVICE_FN void store4_bf16(GLOBAL void *p, const cek_f32 *v)
{
    uint2 w;
    w.x = CEK_BF16_PAIR(v, 0), w.y = CEK_BF16_PAIR(v, 2);
    *(GLOBAL uint2 *)p = w;
}
DEVICE_FN void store8_bf16(GLOBAL void *p, const cek_f32 *v)
{
    uint4 w;
    w.x = CEK_BF16_PAIR(v, 0), w.y = CEK_BF16_PAIR(v, 2), w.z = CEK_BF16_PAIR(v, 4), w.w = CEK_BF16_PAIR(v, 6);
    *(GLOBAL uint4 *)p = w;
}
#define CEK_BYTE(w, i) ((cek_f32)((w) >> 8 * (i)&0xffu))
#define CEK_BYTES(v, i)                                                                                               \
    ((cek_u32)u8_nearest((v)[i]) | (cek_u32)u8_nearest((v)[(i) + 1]) << 8 | (cek_u32)u8_nearest((v)[(i) + 2]) << 16 | \
     (cek_u32)u8_nearest((v)[(i) + 3]) << 24)
DEVICE_FN void load4_u8(GLOBAL const void *p, cek_f32 *v)
{
    const cek_u32 w = *(GLOBAL const cek_u32 *)p;
    v[0] = CEK_BYTE(w, 0), v[1] = CEK_BYTE(w, 1), v[2] = CEK_BYTE(w, 2), v[3] = CEK_BYTE(w, 3);
}
DEVICE_FN void load8_u8(GLOBAL const void *p, cek_f32 *v)
{
    const uint2 w = *(GLOBAL const uint2 *)p;
    v[0] = CEK_BYTE(w.x, 0), v[1] = CEK_BYTE(w.x, 1), v[2] = CEK_BYTE(w.x, 2), v[3] = CEK_BYTE(w.x, 3);
    v[4] = CEK_BYTE(w.y, 0), v[5] = CEK_BYTE(w.y, 1), v[6] = CEK_BYTE(w.y, 2), v[7] = CEK_BYTE(w.y, 3);
}
DEVICE_FN void store4_u8(GLOBAL void *p, const cek_f32 *v)
{
    *(GLOBAL cek_u32 *)p = CEK_BYTES(v, 0);
}
DEVICE_FN void store8_u8(GLOBAL void *p, const cek_f32 *v)
{
    uint2 w;
    w.x = CEK_BYTES(v, 0), w.y = CEK_BYTES(v, 4);
    *(GLOBAL uint2 *)p = w;
}

#define CEK_PASTE_(a, b) a##b
#define CEK_PASTE(a, b) CEK_PASTE_(a, b)
#define LOAD(type, p, i) CEK_PASTE(load_, type)(p, i)
#define STORE(type, p, i, x) CEK_PASTE(store_, type)(p, i, x)
#define CEK_JOIN_(a, b, c, d) a##b##c##d
#define CEK_JOIN(a, b, c, d) CEK_JOIN_(a, b, c, d)
#define LOAD_WIDE(count, type, p, v) CEK_JOIN(load, count, _, type)(p, v)
#define STORE_WIDE(count, type, p, v) CEK_JOIN(store, count, _, type)(p, v)
#define BYTES_f32 4
#define BYTES_f16 2
#define BYTES_bf16 2
#define BYTES_u8 1
#define BYTES_i32 4
#define BYTES(type) CEK_PASTE(BYTES_, type)

/* Four f32 of local memory, at a multiple of 16 bytes, read at once. */
#define QUAD(p) (*(NEAR const cek_quad *)(p))

/* The same for a type that only the arguments name, by its number in plugin.h. */
DEVICE_FN cek_f32 load_any(cek_u32 type, GLOBAL const void *p, cek_u64 i)
{
    return type == 1   ? load_f32(p, i)
           : type == 2 ? load_f16(p, i)
           : type == 3 ? load_bf16(p, i)
           : type == 5 ? load_u8(p, i)
                       : load_i32(p, i);
}
DEVICE_FN void store_any(cek_u32 type, GLOBAL void *p, cek_u64 i, cek_f32 x)
{
    switch (type) {
    case 1: store_f32(p, i, x); break;
    case 2: store_f16(p, i, x); break;
    case 3: store_bf16(p, i, x); break;
    case 5: store_u8(p, i, x); break;
    default: store_i32(p, i, x);
    }
}

/* Element i of `count`, and how many a work-item takes. On a CPU it is a piece of memory, whose loop the compiler
 * vectorises; elsewhere it is one, and neighbouring work-items take neighbours. LANES: of channels or columns,
 * likewise. */
#ifdef CEK_CPU
#define CHUNK 4096
#define LANES 16
#define FOR_PIECE(i, count, piece) \
    for (cek_u64 i = GLOBAL_ID() * (piece), i##_end = i + (piece) < (count) ? i + (piece) : (count); i < i##_end; i++)
#else
#define CHUNK 1
#define LANES 4
#define FOR_PIECE(i, count, piece) for (cek_u64 i = GLOBAL_ID(), i##_once = 1; i##_once && i < (count); i##_once = 0)
#endif
#define FOR_EACH(i, count) FOR_PIECE(i, count, CHUNK)

/* Buffer number `n` of a kernel: its pointer, from its memory's start. Whether it lies at a multiple of `bytes`. */
#define AT(buffer, n) ((buffer) + a.at[n])
#define IS_ALIGNED(n, bytes) (!(a.at[n] & ((bytes)-1)))

/* A number below 2^31 divided by dimension d of a cek_k_shape. */
#define QUOTIENT(number, shape, d) ((cek_u32)((cek_u64)(number) * (shape).multiplier[d] >> (shape).shift[d]))

/* Strided operands (cek_k_strided), in blocks of WIDE elements, X(n) for each operand: FIND_BLOCK finds where block
 * number `block` begins, its elements `here`, and p<n>, the element of each operand at which it begins. */
#define FIND_PLACE(n) cek_i32 p##n = (cek_i32)start * a.stride[n][last];
#define FIND_STEP(n) p##n += (cek_i32)own * a.stride[n][d];
#define FIND_BLOCK(X)                                                                                 \
    const cek_u32 last = a.rank - 1, line = QUOTIENT(block, a.shape, last);                           \
    const cek_u32 start = ((cek_u32)block - line * a.shape.size[last]) * WIDE;                        \
    const cek_u32 here = a.row - start < WIDE ? a.row - start : WIDE;                                 \
    X(FIND_PLACE)                                                                                     \
    for (cek_u32 d = last, rest = line; d-- > 0;) {                                                   \
        const cek_u32 next = d ? QUOTIENT(rest, a.shape, d) : 0, own = rest - next * a.shape.size[d]; \
        X(FIND_STEP)                                                                                  \
        rest = next;                                                                                  \
    }
/* The elements of a block, where a full one can be in one access, else one by one; those that are not there are 0. */
#define BLOCK_AT(type, buffer, n, place) (AT(buffer, n) + (cek_i64)(place)*BYTES(type))
#define IS_WHOLE(type, n, place, step) \
    (here == WIDE && (step) == 1 && !(((cek_u32)a.at[n] + (cek_u32)(place)*BYTES(type)) & (WIDE * BYTES(type) - 1)))
#ifdef CEK_CPU
#define BLOCK_READ(type, buffer, n, place, step, v)                 \
    if (here == WIDE && (step) == 1)                                \
        for (cek_u32 e = 0; e < WIDE; e++)                          \
            v[e] = LOAD(type, BLOCK_AT(type, buffer, n, place), e); \
    else                                                            \
        for (cek_u32 e = 0; e < WIDE; e++)                          \
            v[e] = e < here ? LOAD(type, AT(buffer, n), (cek_u64)((place) + (cek_i32)e * (step))) : 0.0f;
#define BLOCK_WRITE(type, buffer, n, place, step, v)                \
    if (here == WIDE && (step) == 1)                                \
        for (cek_u32 e = 0; e < WIDE; e++)                          \
            STORE(type, BLOCK_AT(type, buffer, n, place), e, v[e]); \
    else                                                            \
        for (cek_u32 e = 0; e < here; e++)                          \
            STORE(type, AT(buffer, n), (cek_u64)((place) + (cek_i32)e * (step)), v[e]);
#else
#define BLOCK_READ(type, buffer, n, place, step, v)                 \
    if (IS_WHOLE(type, n, place, step))                             \
        LOAD_WIDE(WIDE, type, BLOCK_AT(type, buffer, n, place), v); \
    else                                                            \
        for (cek_u32 e = 0; e < WIDE; e++)                          \
            v[e] = e < here ? LOAD(type, AT(buffer, n), (cek_u64)((place) + (cek_i32)e * (step))) : 0.0f;
#define BLOCK_WRITE(type, buffer, n, place, step, v)                 \
    if (IS_WHOLE(type, n, place, step))                              \
        STORE_WIDE(WIDE, type, BLOCK_AT(type, buffer, n, place), v); \
    else                                                             \
        for (cek_u32 e = 0; e < WIDE; e++)                           \
            if (e < here)                                            \
                STORE(type, AT(buffer, n), (cek_u64)((place) + (cek_i32)e * (step)), v[e]);
#endif

/* The most work-items of a group that share local memory, and how many loads each of them has under way. */
#define GROUP_MOST 256
#define IN_FLIGHT 8

/* `value` of each of `lanes` work-items of a group, `pitch` apart, becomes what `join` makes of it and of `other`, in
 * an order that follows from `lanes` alone. HELD declares the memory for it. All work-items of the group come here. */
#ifdef CEK_CPU /* where a group is one work-item */
#define HELD(type, held)
#define FOLD(type, held, value, lane, lanes, pitch, join)
#else
#define HELD(type, held) LOCAL type held[GROUP_MOST];
#define FOLD(type, held, value, lane, lanes, pitch, join)          \
    BARRIER();                                                     \
    held[ITEM_ID(0)] = value;                                      \
    for (cek_u32 reach = (lanes) / 2; reach; reach /= 2) {         \
        BARRIER();                                                 \
        if ((lane) < reach) {                                      \
            const type other = held[ITEM_ID(0) + reach * (pitch)]; \
            value = join;                                          \
            held[ITEM_ID(0)] = value;                              \
        }                                                          \
    }                                                              \
    BARRIER();                                                     \
    value = held[ITEM_ID(0) - (lane) * (pitch)];
#endif

/* Activations by their numbers in plugin.h. */
/* clang-format off */
DEVICE_FN cek_f32 act_relu(cek_f32 x) { return x > 0.0f ? x : x <= 0.0f ? 0.0f : x; }
DEVICE_FN cek_f32 act_tanh(cek_f32 x)
{
    const cek_f32 size = fabs(x), square = x * x, far = 1.0f - 2.0f / (exp(size + size) + 1.0f);
    cek_f32 p = 0.00214753696f;
    p = p * square - 0.00818267372f;
    p = p * square + 0.0217029676f;
    p = p * square - 0.0539472029f;
    p = p * square + 0.133332103f;
    p = p * square - 0.333333313f;
    p = p * square * size + size;
    return copysign(size < 0.625f ? p : far, x);
}
/* 1 / (1 + e) or e / (1 + e) with e = exp(-|x|): neither overflows nor cancels. */
DEVICE_FN cek_f32 act_sigmoid(cek_f32 x)
{
    const cek_f32 e = exp(-fabs(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}
/* For the normal distribution function Phi: exp(-x*x/2) in *density, and Phi(-|x|) as a multiple of it, so that
 * neither cancels nor vanishes before the result does. x*x is high*high, which is exact, and the rest; beyond 16 the
 * density is 0 already. */
DEVICE_FN cek_f32 normal_tail(cek_f32 x, cek_f32 *density)
{
    const cek_f32 size = fabs(x), t = 1.0f / (1.0f + 0.5f * (size * 0.707106781f));
    const cek_f32 bounded = size < 16.0f ? size : 16.0f, high = AS_F32(AS_U32(bounded) & 0xfffff000u);
    const cek_f32 low = bounded - high, r = -low * (high + 0.5f * low);
    cek_f32 p = 0.0138520468f;
    p = p * t - 0.131616592f;
    p = p * t + 0.448174238f;
    p = p * t - 0.695050716f;
    p = p * t + 0.441483557f;
    p = p * t - 0.108793922f;
    p = p * t + 0.229018077f;
    p = p * t + 0.237934873f;
    p = p * t + 0.282937825f;
    p = p * t + 0.282060593f;
    *density = exp(-0.5f * high * high) * (1.0f + r * (1.0f + r * (0.5f + r * (0.166666667f + r * 0.0416666667f))));
    return 0.5f * p * t;
}
DEVICE_FN cek_f32 act_gelu(cek_f32 x)
{
    cek_f32 density;
    const cek_f32 tail = normal_tail(x, &density), above = x * (1.0f - density * tail), below = x * tail * density;
    return x > 0.0f ? above : below;
}
DEVICE_FN cek_f32 grad_relu(cek_f32 dy, cek_f32 y) { return y <= 0.0f ? 0.0f : dy; }
DEVICE_FN cek_f32 grad_tanh(cek_f32 dy, cek_f32 y) { return dy * (1.0f - y * y); }
DEVICE_FN cek_f32 grad_sigmoid(cek_f32 dy, cek_f32 y) { return dy * (y * (1.0f - y)); }
DEVICE_FN cek_f32 grad_gelu(cek_f32 dy, cek_f32 x)
{
    cek_f32 density;
    const cek_f32 tail = normal_tail(x, &density), rest = x * 0.398942280f + (x > 0.0f ? -tail : tail);
    return dy * ((x > 0.0f ? 1.0f : 0.0f) + rest * density);
}
DEVICE_FN cek_f32 activate(cek_u32 activation, cek_f32 x)
{
    return activation == 1 ? act_relu(x) : activation == 2 ? act_tanh(x) : activation == 3 ? act_sigmoid(x)
         : activation == 4 ? act_gelu(x) : x;
}
DEVICE_FN cek_f32 activate_grad(cek_u32 activation, cek_f32 dy, cek_f32 ref)
{
    return activation == 1 ? grad_relu(dy, ref) : activation == 2 ? grad_tanh(dy, ref)
         : activation == 3 ? grad_sigmoid(dy, ref) : activation == 4 ? grad_gelu(dy, ref) : dy;
}
/* clang-format on */
