/* problem.h - one case, worked out: a descriptor, the contents of its operands, and what must come
 * back.
 *
 * Each file of spec/ that describes an operation turns the text of a case into a spec_problem;
 * run.c takes it to the device. Memory of a problem is freed with it. Knows nothing of devices. */
#ifndef SPEC_PROBLEM_H
#define SPEC_PROBLEM_H

#include "spec/number.h"
#include "spec/spec.h"

enum { SPEC_OPERANDS_MAX = 16, SPEC_RANGES_MAX = 8 };
enum { SPEC_IN = 1, SPEC_OUT = 2, SPEC_INOUT = 3 };
/* How big an operand is, where only the device knows. */
enum { SPEC_SIZE_KNOWN = 0, SPEC_SIZE_RESERVE = 1, SPEC_SIZE_PREPACK = 2 };

typedef struct spec_operand {
    const char *name;
    uint32_t slot;
    uint32_t direction;
    uint32_t sizing;
    cek_dtype type; /* NONE: raw bytes (blocks) */
    uint64_t count; /* elements, or bytes of raw ones */
    double *value;  /* contents before the run */
    double *expect; /* contents after it, and the tolerance; outputs alone */
    double *bound;
    uint8_t *written; /* NULL: all; else 0 for elements that must keep their old bits */
    void *raw;
    void *raw_expect; /* of a raw output */
    uint32_t alias;   /* 1 + slot of the input whose place this output shares; 0 = none */
    bool plain;       /* given to op_prepack instead of op_run */
    bool accumulated; /* the old contents count */
    bool zeros;       /* exact zeros have a sign; elsewhere the order of a sum makes it */
} spec_operand;

typedef struct spec_problem spec_problem;
struct spec_problem {
    union {
        cek_op_desc op;
        cek_gemm_desc gemm;
        cek_conv_desc conv;
        cek_pool_desc pool;
        cek_pointwise_desc pointwise;
        cek_reduce_desc reduce;
        cek_softmax_desc softmax;
        cek_cross_entropy_desc cross_entropy;
        cek_squared_error_desc squared_error;
        cek_dropout_desc dropout;
        cek_random_desc random;
        cek_optimizer_desc optimizer;
        cek_copy_desc copy;
        cek_gather_desc gather; /* and scatter_add */
        cek_arg_desc arg;
    } desc;
    cek_epilogue epilogue;
    cek_pointwise_input inputs[CEK_POINTWISE_INPUTS];
    cek_pointwise_instruction instructions[CEK_POINTWISE_INSTRUCTIONS];
    cek_param_range ranges[SPEC_RANGES_MAX];

    spec_operand operand[SPEC_OPERANDS_MAX];
    uint32_t operand_count;
    bool no_memory;        /* why it could not be built */
    spec_problem *forward; /* run before this one, to fill its reserve */

    cek_dtype type;
    uint32_t fill;
    bool inexact;   /* the device announced a transform: bounds are those of INEXACT, nothing is exact
                   */
    bool flushes;   /* CEK_DEVICE_FLUSHES_DENORMALS */
    bool twice;     /* ":det": two runs, same bits */
    uint32_t steps; /* runs in a row, 0 and 1 the same; before each but the first next() works on
                     * from the outputs that the device left in `value` of the inout operands */
    void (*next)(spec_problem *p, uint32_t step);

    uint64_t seed;                               /* of the fill */
    bool (*preset)(void *user, spec_operand *o); /* may write o->value instead of the fill (true) */
    void *preset_user;
    void **blocks; /* what spec_problem_free() frees */
    uint32_t block_count;
    char error[SPEC_TEXT_MAX];
};

/* A case of an operation. One check for each type and fill. */
typedef struct spec_case {
    const char *text;
    uint32_t types; /* mask of 1 << cek_dtype */
    uint32_t fills; /* mask of 1 << SPEC_WHOLE ... */
    bool optional;  /* else required, with f32 */
    bool any_type;  /* required with its other types too */
} spec_case;

#define SPEC_T(type) (1u << CEK_##type)
#define SPEC_F(fill) (1u << SPEC_##fill)
#define SPEC_T_F32 SPEC_T(F32)
#define SPEC_T_BOTH (SPEC_T(F32) | SPEC_T(F64))
#define SPEC_T_LOW (SPEC_T(F16) | SPEC_T(BF16))
#define SPEC_T_ALL (SPEC_T_BOTH | SPEC_T_LOW)
#define SPEC_F_BOTH (SPEC_F(WHOLE) | SPEC_F(REAL))
#define SPEC_F_ALL (SPEC_F_BOTH | SPEC_F(NAN))

typedef struct spec_kind {
    const char *name; /* "gemm" */
    uint32_t kind;
    uint32_t profile;    /* in which its required cases are required */
    const char *typical; /* a small case with f32, on which misuse is tried */
    const spec_case *cases;
    uint32_t case_count;
    /* Works the case out. False: p->error says why (an error of spec itself). */
    bool (*build)(const char *text, spec_problem *p);
} spec_kind;

#define SPEC_KIND(name_, kind_, profile_, typical_, cases_, build_)                              \
    {                                                                                            \
        .name = name_, .kind = kind_, .profile = profile_, .typical = typical_, .cases = cases_, \
        .case_count = sizeof cases_ / sizeof *cases_, .build = build_                            \
    }

extern const spec_kind spec_kind_gemm, spec_kind_conv_forward, spec_kind_conv_backward_data,
    spec_kind_conv_backward_weights, spec_kind_pool_forward, spec_kind_pool_backward, spec_kind_pointwise,
    spec_kind_reduce, spec_kind_softmax, spec_kind_cross_entropy, spec_kind_squared_error, spec_kind_dropout,
    spec_kind_random, spec_kind_optimizer, spec_kind_copy, spec_kind_gather, spec_kind_scatter_add, spec_kind_arg;
const spec_kind *const *spec_kinds(uint32_t *count);

/* spec_problem_init - sizes, kind and type; the rest is zero. */
void spec_problem_init(spec_problem *p, uint32_t kind, cek_dtype type, uint32_t fill, bool inexact, uint64_t seed);
void spec_problem_free(spec_problem *p);
void *spec_problem_alloc(spec_problem *p, uint64_t count, size_t size); /* zeroed; NULL sets p->error */
bool spec_fail(spec_problem *p, const char *fmt, ...) __attribute__((__format__(__printf__, 2, 3))); /* returns false */

/* spec_operand_add - puts the slot into the descriptor's mask; name and direction come from the
 * tables of plugin.h. Values are zero, bounds 0. NULL sets p->error. The pointer stays valid. */
spec_operand *spec_operand_add(spec_problem *p, uint32_t slot, cek_dtype type, uint64_t count);
/* The same for a block: `bytes` are copied. */
spec_operand *spec_operand_block(spec_problem *p, uint32_t slot, const void *data, uint64_t bytes);
/* For RESERVE and PACKED. */
spec_operand *spec_operand_sized(spec_problem *p, uint32_t slot, uint32_t sizing);
spec_operand *spec_operand_find(spec_problem *p, uint32_t slot);

/* spec_operand_fill - integers in [low, high], or reals in [-1,1) (as wide as asked where |low|,
 * |high| > 8), as the problem's fill says; for float types, if `special`, NaN under SPEC_NAN and infinities
 * under SPEC_INFINITE. */
void spec_operand_fill(spec_problem *p, spec_operand *o, int low, int high, bool special);
/* spec_operand_edges - numbers at which arithmetic turns (edge.c): number i / step of the list, round
 * and round, and where it is longer than the square of the list patterns of bits at random; step 0:
 * which one, by chance. `output` of an activation: what it makes of them. Denormals are 0 for a device that flushes. */
void spec_operand_edges(spec_problem *p, spec_operand *o, uint64_t step, cek_activation output);
uint64_t spec_edge_count(void);
/* What a product passes on unchanged. */
void spec_operand_ones(spec_operand *o);
/* A different number for every (seed, index). */
uint64_t spec_mix(uint64_t seed, uint64_t index);
double spec_uniform(uint64_t seed, uint64_t index); /* [0,1) */
bool spec_whole(const spec_problem *p);             /* operands are integers and no transform is used */

/* In which arithmetic operations on `type` are judged: its sum type, with SPEC_DENORMALS where they
 * count on the device. */
cek_dtype spec_arithmetic(const spec_problem *p, cek_dtype type);
/* Marks an output as added to, and fills its old contents. */
void spec_operand_accumulate(spec_problem *p, spec_operand *o);
/* The result of output element `i`: adds the old contents if it accumulates, rounds, stores
 * expectation and bound. */
void spec_operand_expect(spec_operand *o, uint64_t i, spec_num v, cek_dtype sum_type);

/* Modifiers, ":name" or ":nameVALUE" behind the problem. Walks them: false at the end. */
bool spec_modifier(const char **cursor, char *word, size_t cap);
/* Those that every operation has: det, strict, alignN. */
bool spec_modifier_common(spec_problem *p, const char *word);
/* True if `word` is `name` followed by a number. */
bool spec_modifier_number(const char *word, const char *name, uint64_t *out);
/* relu, tanh, sigmoid, gelu; 0 for anything else. */
cek_activation spec_activation_parse(const char *word);
/* Reads "4x5x6" into shape; returns the rank, 0 if it is none. *cursor moves behind it. */
uint32_t spec_shape_read(const char **cursor, uint64_t shape[CEK_RANK_MAX]);
/* Row-major strides of a shape; returns the number of elements. */
uint64_t spec_strides(uint32_t rank, const uint64_t *shape, int64_t *strides);
/* Element of a strided array that the row-major `index` of the shape means. */
uint64_t spec_offset(uint32_t rank, const uint64_t *shape, const int64_t *strides, uint64_t index);
/* Elements from the first to the last that the shape touches through the strides. */
uint64_t spec_extent(uint32_t rank, const uint64_t *shape, const int64_t *strides);
/* Lays a shape out as the letters say: digits = axes that are broadcast (stride 0), "^" =
 * column-major, "_" = gaps between the elements of the last axis. False for other letters. */
bool spec_layout(const char *letters, uint32_t rank, const uint64_t *shape, int64_t *strides);
/* Reads letters and then a number ("mb12"): false if there are none. */
/* More elements than this nobody can store, and products of sizes below it do not overflow. */
#define SPEC_COUNT_MAX ((uint64_t)1 << 56)
/* True if a tensor of these sizes has no more. */
bool spec_countable(uint32_t rank, const uint64_t *shape, uint64_t times);
bool spec_pair_read(const char **cursor, char key[8], uint64_t *value);

/* Names and directions from the tables of plugin.h. NULL: no such slot. */
const char *spec_slot_name(uint32_t kind, uint32_t slot);
uint32_t spec_slot_direction(uint32_t kind, uint32_t slot);
bool spec_slot_optional(uint32_t kind, uint32_t slot);
bool spec_slot_accumulates(uint32_t kind, uint32_t slot);
uint64_t spec_slot_aliases(uint32_t kind, uint32_t slot);
uint32_t spec_desc_size(uint32_t kind);

#endif
