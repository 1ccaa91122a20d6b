/* SPDX-License-Identifier: MIT
 *
 * dialect.h - the words in which kernels/gpu is written, for OpenCL C 1.2 and for CUDA.
 *
 * Scalars only: CUDA has no float16. Element types are names - f32, f16, bf16, u8, i32 - that LOAD and STORE paste
 * into the functions below; a kernel's TYPE macros hold such names.
 */
#define CEK_DEVICE_CODE 1

#ifndef __CUDACC__

typedef ulong cek_u64;
typedef long cek_i64;
typedef uint cek_u32;
typedef int cek_i32;
typedef uchar cek_u8;
typedef ushort cek_u16;
typedef float cek_f32;
#define KERNEL __kernel
#define GROUP_IS(x, y) __attribute__((reqd_work_group_size(x, y, 1))) /* before KERNEL: compiled for this size alone */
#define GLOBAL __global
#define LOCAL __local
#define DEVICE_FN static inline
#ifdef CEK_CPU /* in rows */
#define GLOBAL_ID() ((cek_u64)get_global_id(1) * get_global_size(0) + get_global_id(0))
#else
#define GLOBAL_ID() ((cek_u64)get_global_id(0))
#endif
#define GROUP_ID(d) ((cek_u64)get_group_id(d))
#define ITEM_ID(d) ((cek_u32)get_local_id(d))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define RESTRICT restrict
#define MUL_HIGH(a, b) mul_hi((cek_u32)(a), (cek_u32)(b))
#define AS_U32(x) as_uint(x)
#define AS_F32(x) as_float(x)
#define ROUND_EVEN(x) rint(x)
DEVICE_FN cek_f32 load_f16(GLOBAL const void *p, cek_u64 i)
{
    return vload_half(i, (GLOBAL const half *)p);
}
DEVICE_FN void store_f16(GLOBAL void *p, cek_u64 i, cek_f32 x)
{
    vstore_half_rte(x, i, (GLOBAL half *)p);
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
#define GROUP_IS(x, y)
#define GLOBAL
#define LOCAL __shared__
#define DEVICE_FN __device__ __forceinline__
#define CEK_X_(v, d) ((d) == 0 ? v.x : (d) == 1 ? v.y : v.z)
#define GLOBAL_ID() ((cek_u64)blockIdx.x * blockDim.x + threadIdx.x)
#define GROUP_ID(d) ((cek_u64)CEK_X_(blockIdx, d))
#define ITEM_ID(d) ((cek_u32)CEK_X_(threadIdx, d))
#define BARRIER() __syncthreads()
#define RESTRICT __restrict__
#define MUL_HIGH(a, b) __umulhi(a, b)
#define AS_U32(x) __float_as_uint(x)
#define AS_F32(x) __uint_as_float(x)
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
DEVICE_FN cek_f32 load_f16(GLOBAL const void *p, cek_u64 i)
{
    cek_f32 x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(((const cek_u16 *)p)[i]));
    return x;
}
DEVICE_FN void store_f16(GLOBAL void *p, cek_u64 i, cek_f32 x)
{
    cek_u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    ((cek_u16 *)p)[i] = h;
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
DEVICE_FN void store_bf16(GLOBAL void *p, cek_u64 i, cek_f32 x)
{
    cek_u32 bits = AS_U32(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        bits = bits | 0x400000u; /* quiet, so that a NaN whose payload is in the low half stays one */
    else
        bits = bits + 0x7fffu + (bits >> 16 & 1u);
    ((GLOBAL cek_u16 *)p)[i] = (cek_u16)(bits >> 16);
}

/* Integers: exactly, or rounded to f32; back to the nearest, saturating, NaN to 0. */
DEVICE_FN cek_f32 load_u8(GLOBAL const void *p, cek_u64 i)
{
    return (cek_f32)((GLOBAL const cek_u8 *)p)[i];
}
DEVICE_FN void store_u8(GLOBAL void *p, cek_u64 i, cek_f32 x)
{
    ((GLOBAL cek_u8 *)p)[i] = x >= 255.0f ? (cek_u8)255 : x > 0.0f ? (cek_u8)ROUND_EVEN(x) : (cek_u8)0;
}
DEVICE_FN cek_f32 load_i32(GLOBAL const void *p, cek_u64 i)
{
    return (cek_f32)((GLOBAL const cek_i32 *)p)[i];
}
DEVICE_FN void store_i32(GLOBAL void *p, cek_u64 i, cek_f32 x)
{
    ((GLOBAL cek_i32 *)p)[i] = x >= 2147483648.0f    ? 2147483647
                               : x <= -2147483648.0f ? -2147483647 - 1
                               : x == x              ? (cek_i32)ROUND_EVEN(x)
                                                     : 0;
}

#define CEK_PASTE_(a, b) a##b
#define CEK_PASTE(a, b) CEK_PASTE_(a, b)
#define LOAD(type, p, i) CEK_PASTE(load_, type)(p, i)
#define STORE(type, p, i, x) CEK_PASTE(store_, type)(p, i, x)

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
#define FOR_EACH(i, count) \
    for (cek_u64 i = GLOBAL_ID() * CHUNK, i##_end = i + CHUNK < (count) ? i + CHUNK : (count); i < i##_end; i++)
#else
#define LANES 1
#define FOR_EACH(i, count) for (cek_u64 i = GLOBAL_ID(), i##_once = 1; i##_once && i < (count); i##_once = 0)
#endif

/* Buffer number `n` of a kernel: its pointer, from its memory's start. */
#define AT(buffer, n) ((buffer) + a.at[n])

/* Where element `i` of a shape lies. */
DEVICE_FN cek_u64 place_of(cek_u64 i, cek_u64 rank, const cek_u64 *shape, const cek_u64 *stride)
{
    cek_u64 place = 0;
    for (cek_u64 d = rank; d > 1; d--) {
        place += i % shape[d - 1] * stride[d - 1];
        i /= shape[d - 1];
    }
    return place + i * stride[0];
}

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
