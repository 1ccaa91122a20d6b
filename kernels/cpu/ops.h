/* ops.h - the inner loops of everything but products and convolutions, one table per instruction
 * set.
 *
 * Owns: the signatures that kernels and backends/cpu/ops share.
 * Must not know: threads, descriptors, strides of tensors, and, but for pools, storage types: all work on runs of
 * floats in host memory (callers convert blocks that fit the cache).
 *
 * Arrays need no alignment. In place (an output that is exactly an input) is allowed everywhere.
 * Sums run in an order fixed by their length and the instruction set. */
#ifndef CEK_KERNELS_CPU_OPS_H
#define CEK_KERNELS_CPU_OPS_H

#include <stdint.h>

#include "kernels/cpu/kernels.h"

typedef struct cpu_pointwise_kernels {
    /* y[i] = code(a[i], b[i], c[i], imm), code a CEK_PW_... but VALID; what the code does not use may be NULL */
    void (*run)(uint32_t code, int64_t n, const float *a, const float *b, const float *c, float imm, float *y);
    void (*from_u8)(int64_t n, const uint8_t *x, float *y);
    void (*from_i32)(int64_t n, const int32_t *x, float *y);
    void (*to_u8)(int64_t n, const float *x, uint8_t *y); /* nearest even, saturated, NaN to 0 */
    void (*to_i32)(int64_t n, const float *x, int32_t *y);
} cpu_pointwise_kernels;

typedef struct cpu_reduce_kernels {
    /* CEK_REDUCE_... of a run; MEAN is the sum. n >= 1; keep it to some thousands, the sum is
     * f32 */
    float (*run)(uint32_t function, int64_t n, const float *x);
    /* the same of every column of rows x columns numbers */
    void (*columns)(uint32_t function, int64_t rows, int64_t columns, const float *x, int64_t ldx, float *y);
    /* the sum of every column of (x - centre) x2, or of (x - centre)^2 where x2 is NULL; centre has a number for each
     * column */
    void (*terms)(int64_t rows, int64_t columns, const float *x, int64_t ldx, const float *x2, int64_t ldx2,
                  const float *centre, float *y);
} cpu_reduce_kernels;

/* What one row adds to the loss. */
typedef struct cpu_row_loss {
    double loss; /* not yet weighted */
    int correct;
} cpu_row_loss;

typedef struct cpu_loss_kernels {
    void (*softmax)(int64_t n, const float *x, float *y);
    void (*log_softmax)(int64_t n, const float *x, float *y);
    /* -ln softmax(x)[label]; d = scale * (softmax(x) - onehot(label)), or NULL. 0 <= label < n */
    cpu_row_loss (*cross_entropy)(int64_t n, const float *x, int64_t label, float scale, float *d);
    /* sum of (x - t)^2; d = scale * (x - t), or NULL */
    double (*squared_error)(int64_t n, const float *x, const float *t, float scale, float *d);
} cpu_loss_kernels;

enum { CPU_PHILOX_SLACK = 64 }; /* words that generators may write beyond the last one asked for */

typedef struct cpu_random_kernels {
    /* the words of `blocks` consecutive blocks of 4 from `block` on (plugin.h section 9), and up
     * to CPU_PHILOX_SLACK more */
    void (*words)(uint64_t key, uint32_t stream, uint64_t sample, uint64_t block, int64_t blocks, uint32_t *words);
    /* y = word >= threshold ? x * scale : 0 */
    void (*dropout)(int64_t n, const uint32_t *words, uint32_t threshold, float scale, const float *x, float *y);
    /* from words on a pair boundary; read and write up to CPU_PHILOX_SLACK beyond n */
    void (*uniform)(int64_t n, const uint32_t *words, float low, float width, float *y);
    void (*normal)(int64_t n, const uint32_t *words, float mean, float deviation, float *y);
} cpu_random_kernels;

/* The numbers of one optimizer step for one parameter group. */
typedef struct cpu_adam {
    float grad_scale, weight_decay;   /* g = grad_scale * g + weight_decay * p */
    float shrink;                     /* p *= shrink first: 1 - lr * decoupled decay */
    float beta1, beta2, rest1, rest2; /* rest = 1 - beta */
    float rate;                       /* lr / (1 - beta1^t) */
    float root;                       /* 1 / sqrt(1 - beta2^t) */
    float epsilon;
} cpu_adam;
typedef struct cpu_sgd {
    float grad_scale, weight_decay, shrink, rate;
    float momentum, rest; /* m = momentum * m + rest * g; first step: momentum 0, rest 1 */
    float ahead, direct;  /* p -= rate * (ahead * m + direct * g) */
} cpu_sgd;

typedef struct cpu_rmsprop {
    float grad_scale, weight_decay, rate;
    float decay, rest; /* v = decay * v + rest * g * g, the mean likewise */
    float momentum, epsilon;
} cpu_rmsprop;
typedef struct cpu_adagrad {
    float grad_scale, weight_decay, rate, epsilon;
} cpu_adagrad;
typedef struct cpu_optimizer_kernels {
    void (*adam)(int64_t n, const cpu_adam *by, const float *g, float *p, float *m, float *v);
    /* m may be NULL: momentum 0 */
    void (*sgd)(int64_t n, const cpu_sgd *by, const float *g, float *p, float *m);
    /* m may be NULL: momentum 0; mean may be NULL: not centered */
    void (*rmsprop)(int64_t n, const cpu_rmsprop *by, const float *g, float *p, float *m, float *v, float *mean);
    void (*adagrad)(int64_t n, const cpu_adagrad *by, const float *g, float *p, float *v);
} cpu_optimizer_kernels;

enum { CPU_INDEX_SLACK = 64 }; /* bytes behind an array of indices that may be read */

/* Pools over one position: `channels` numbers of `type` at each of `count` places, results in floats. `more`: go on
 * from what an earlier call with other places left in the outputs. */
typedef struct cpu_pool_kernels {
    /* y = the largest of x[0], x[1], ..., index = the number[] of the first that is; NaN is
     * larger than all. index_bytes 1, 4, or 0 for none */
    void (*max)(cpu_type type, int64_t channels, int count, const void *const *x, const uint32_t *number, int more,
                float *y, void *index, int index_bytes);
    /* dx = sum of dy[j] where index[j] is number[j] */
    void (*max_grad)(cpu_type type, int64_t channels, int count, const void *const *dy, const void *const *index,
                     const uint32_t *number, int index_bytes, int more, float *dx);
    /* The same for a row of `outputs` windows, y of `type`, too: place j of the first is at x[j], that of the next one
     * `step` elements on; index in bytes, or NULL */
    void (*max_row)(cpu_type type, int64_t outputs, int64_t channels, int64_t step, int count, const void *const *x,
                    const uint32_t *number, void *y, uint8_t *index);
    /* the way back of such a row whose windows share no place: at dx[j] dy where index is number[j], else 0; `stream`:
     * floats past the caches where they can be, and the caller drains */
    void (*max_grad_row)(cpu_type type, int64_t outputs, int64_t channels, int64_t step, int count, void *const *dx,
                         const uint32_t *number, const void *dy, const uint8_t *index, int stream);
    /* y = (sum of x[j]) / divisor */
    void (*average)(cpu_type type, int64_t channels, int count, const void *const *x, float divisor, int more,
                    float *y);
    /* dx = sum of dy[j] / divisor[j] */
    void (*average_grad)(cpu_type type, int64_t channels, int count, const void *const *dy, const float *divisor,
                         int more, float *dx);
} cpu_pool_kernels;

struct cpu_op_kernels {
    const cpu_pointwise_kernels *pointwise;
    const cpu_reduce_kernels *reduce;
    const cpu_loss_kernels *loss;
    const cpu_random_kernels *random;
    const cpu_optimizer_kernels *optimizer;
    const cpu_pool_kernels *pool;
};

#ifdef CEK_ISA
#include "kernels/cpu/isa.h"
extern const cpu_pointwise_kernels ISA_NAME(cek__pointwise_kernels);
extern const cpu_reduce_kernels ISA_NAME(cek__reduce_kernels);
extern const cpu_loss_kernels ISA_NAME(cek__loss_kernels);
extern const cpu_random_kernels ISA_NAME(cek__random_kernels);
extern const cpu_optimizer_kernels ISA_NAME(cek__optimizer_kernels);
extern const cpu_pool_kernels ISA_NAME(cek__pool_kernels);
extern const cpu_op_kernels ISA_NAME(cek__op_kernels);
#endif

#endif
