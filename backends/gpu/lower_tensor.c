/* SPDX-License-Identifier: MIT
 * lower_tensor.c - copy and pointwise. */
#include <stdio.h>
#include <string.h>

#include "backends/gpu/lower.h"

#define OPERANDS_MAX CEK_K_STRIDED
#define CHUNK 4096    /* elements of a work-item of a CPU, as in kernels/gpu/dialect.h */
#define WIDE_CPU 16   /* elements of a block there: a vector of any instruction set's; elsewhere */
#define WIDE_BYTES 16 /* what a work-item moves in one access */

static uint64_t shape_count(uint32_t rank, const uint64_t *shape)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < rank; i++)
        count *= shape[i];
    return count;
}

/* --- strided operands ------------------------------------------------------------------------- */

/* An elementwise kernel over operands of one shape; all zero where there is no operand. */
typedef struct strided {
    const char *source, *kernel;
    char defines[CEK__GPU_DEFINES];
    uint32_t wide; /* elements of a block; 0: by the bytes of the largest element */
    uint32_t rank, operands;
    uint64_t shape[CEK_RANK_MAX], strides[OPERANDS_MAX][CEK_RANK_MAX];
    uint32_t bytes[OPERANDS_MAX]; /* of an element */
    cek__gpu_place buffers[OPERANDS_MAX];
    void *args; /* begins with a cek_k_strided */
    uint32_t args_bytes;
} strided;

/* Whether all operands lie alike and without gaps: element i at place i. */
static bool is_flat(const strided *s)
{
    for (uint32_t i = 0; i < s->operands; i++)
        if (s->rank != 1 || (s->bytes[i] && s->strides[i][0] != 1 && s->shape[0] != 1))
            return false;
    return true;
}

static uint32_t wide_choose(const cek_dev *dev, const strided *s)
{
    uint32_t largest = 2;
    for (uint32_t i = 0; i < s->operands; i++)
        largest = s->bytes[i] > largest ? s->bytes[i] : largest;
    return dev->traits.vector_width ? WIDE_CPU : WIDE_BYTES / largest;
}

/* Whether blocks and places stay below 2^31. */
static bool strided_fill(const strided *s, cek_k_strided *a)
{
    uint64_t sizes[CEK_RANK_MAX];
    const uint32_t last = s->rank - 1;
    memcpy(sizes, s->shape, sizeof sizes);
    sizes[last] = (sizes[last] + s->wide - 1) / s->wide;
    if (!cek__gpu_shape(s->rank, sizes, &a->shape) || s->shape[last] > INT32_MAX)
        return false;
    for (uint32_t i = 0; i < s->operands; i++) {
        uint64_t extent = 0;
        for (uint32_t d = 0; d < s->rank; d++) {
            const int64_t stride = (int64_t)s->strides[i][d];
            extent += (s->shape[d] - 1) * (uint64_t)(stride < 0 ? -stride : stride);
            a->stride[i][d] = s->shape[d] == 1 ? 0 : (cek_i32)stride;
        }
        if (extent > INT32_MAX)
            return false;
    }
    a->rank = s->rank;
    a->row = (cek_u32)s->shape[last];
    a->blocks = (cek_u32)shape_count(s->rank, sizes);
    return true;
}

/* How far dimension `d` reaches, in elements of the operand in which it does so most. */
static uint64_t reach_of(const strided *s, uint32_t d)
{
    uint64_t most = s->shape[d];
    for (uint32_t i = 0; i < s->operands; i++) {
        const int64_t stride = (int64_t)s->strides[i][d];
        const uint64_t reach = (s->shape[d] - 1) * (uint64_t)(stride < 0 ? -stride : stride);
        most = reach > most ? reach : most;
    }
    return s->shape[d] > 1 ? most : 0;
}

/* One launch, or more where one is too large: halves of the dimension that reaches furthest. */
static void strided_launch(cek_op *op, strided *s)
{
    s->rank = cek__gpu_collapse(s->rank, s->shape, s->strides, s->operands);
    if (strided_fill(s, s->args)) {
        const uint64_t blocks = ((cek_k_strided *)s->args)->blocks, piece = CHUNK / s->wide;
        const uint64_t items = op->dev->traits.vector_width ? (blocks + piece - 1) / piece : blocks;
        cek__gpu_step_fill(cek__gpu_step_add(op, s->source, s->defines, s->kernel, items), s->buffers, s->operands,
                           s->args, s->args_bytes);
        return;
    }
    uint32_t widest = 0;
    for (uint32_t d = 1; d < s->rank; d++)
        widest = reach_of(s, d) > reach_of(s, widest) ? d : widest;
    const uint64_t whole = s->shape[widest];
    cek_k_strided *a = s->args;
    strided half = *s;
    half.shape[widest] = whole / 2;
    strided_launch(op, &half);
    half = *s;
    for (uint32_t i = 0; i < s->operands; i++)
        half.buffers[i].offset += whole / 2 * s->strides[i][widest] * s->bytes[i];
    const uint64_t first = a->first;
    a->first += whole / 2 * s->strides[OPERANDS_MAX - 1][widest];
    half.shape[widest] = whole - whole / 2;
    strided_launch(op, &half);
    a->first = first;
}

/* The kernel with its definitions: of the operands' layout behind those that are there. */
static void strided_add(cek_op *op, strided *s)
{
    const bool cpu = op->dev->traits.vector_width;
    const size_t at = strlen(s->defines), room = sizeof s->defines - at;
    s->rank = cek__gpu_collapse(s->rank, s->shape, s->strides, s->operands);
    if (!s->wide)
        s->wide = wide_choose(op->dev, s);
    if (!is_flat(s)) {
        snprintf(s->defines + at, room, "#define WIDE %u\n", s->wide);
        strided_launch(op, s);
        return;
    }
    cek_k_strided *a = s->args;
    a->count = s->shape[0];
    const uint64_t items = cpu ? cek__gpu_items(op->dev, a->count) : (a->count + s->wide - 1) / s->wide;
    if (cpu)
        snprintf(s->defines + at, room, "#define FLAT 1\n");
    else
        snprintf(s->defines + at, room, "#define FLAT 1\n#define WIDE %u\n", s->wide);
    cek__gpu_step_fill(cek__gpu_step_add(op, s->source, s->defines, s->kernel, items), s->buffers, s->operands, a,
                       s->args_bytes);
}

cek_status cek__gpu_lower_copy(cek_op *op)
{
    const cek_copy_desc *desc = &op->request.desc.copy;
    const uint32_t bytes = cek__type_bytes(desc->x_type);
    const bool same = desc->x_type == desc->y_type;
    cek_k_strided a = { 0 };
    strided s = { .source = "copy.cl",
                  .kernel = same ? "copy_same" : "copy_convert",
                  .wide = same && !op->dev->traits.vector_width ? WIDE_BYTES / bytes : 0,
                  .rank = desc->rank,
                  .operands = 2,
                  .bytes = { bytes, cek__type_bytes(desc->y_type) },
                  .buffers = { { CEK_COPY_X, 0 }, { CEK_COPY_Y, 0 } },
                  .args = &a,
                  .args_bytes = sizeof a };
    for (uint32_t d = 0; d < CEK_RANK_MAX; d++) {
        s.shape[d] = desc->shape[d];
        s.strides[0][d] = (uint64_t)desc->x_strides[d];
        s.strides[1][d] = (uint64_t)desc->y_strides[d];
    }
    if (same)
        cek__gpu_defines(op->dev, s.defines, "#define COPY_AS %s\n",
                         bytes == 1   ? "cek_u8"
                         : bytes == 2 ? "cek_u16"
                                      : "cek_u32");
    else
        cek__gpu_defines(op->dev, s.defines, "#define X_TYPE %s\n#define Y_TYPE %s\n", cek__gpu_type(desc->x_type),
                         cek__gpu_type(desc->y_type));
    strided_add(op, &s);
    return op->failure;
}

/* --- pointwise -------------------------------------------------------------------------------- */

/* What an instruction computes, of the values %a and %b. */
/* clang-format off */
static const char *const formulas[] = {
    [CEK_PW_COPY] = "%a", [CEK_PW_ADD] = "%a + %b", [CEK_PW_SUB] = "%a - %b",
        [CEK_PW_MUL] = "%a * %b", [CEK_PW_DIV] = "%a / %b",
    [CEK_PW_MIN] = "pw_min(%a, %b)", [CEK_PW_MAX] = "pw_max(%a, %b)", [CEK_PW_NEG] = "-%a", [CEK_PW_ABS] = "fabs(%a)",
    [CEK_PW_SQRT] = "sqrt(%a)", [CEK_PW_EXP] = "exp(%a)", [CEK_PW_LOG] = "log(%a)", [CEK_PW_RELU] = "act_relu(%a)",
    [CEK_PW_TANH] = "act_tanh(%a)", [CEK_PW_SIGMOID] = "act_sigmoid(%a)", [CEK_PW_GELU] = "act_gelu(%a)",
    [CEK_PW_RELU_GRAD] = "grad_relu(%a, %b)", [CEK_PW_TANH_GRAD] = "grad_tanh(%a, %b)",
    [CEK_PW_SIGMOID_GRAD] = "grad_sigmoid(%a, %b)", [CEK_PW_GELU_GRAD] = "grad_gelu(%a, %b)",
    [CEK_PW_LESS] = "%a < %b ? 1.0f : 0.0f", [CEK_PW_EQUAL] = "%a == %b ? 1.0f : 0.0f",
    [CEK_PW_SELECT] = "%a != 0.0f ? %b : %c", [CEK_PW_POW] = "pow(%a, %b)", [CEK_PW_ERF] = "erf(%a)",
    [CEK_PW_LOG1P] = "log1p(%a)", [CEK_PW_EXPM1] = "expm1(%a)", [CEK_PW_FLOOR] = "floor(%a)",
    [CEK_PW_SIGN] = "pw_sign(%a)", [CEK_PW_SIN] = "sin(%a)", [CEK_PW_COS] = "cos(%a)",
    [CEK_PW_VALID] = "COUNTS ? 1.0f : 0.0f",
    [CEK_PW_CONST] = "%i", [CEK_PW_ADD_IMM] = "%a + %i", [CEK_PW_MUL_IMM] = "%a * %i",
};
/* clang-format on */

/* Writes `formula` with its letters filled in; an immediate goes by its bits, so that every value is exact. */
static int formula_write(char *to, size_t cap, const char *formula, const cek_pointwise_instruction *at)
{
    size_t used = 0;
    for (const char *from = formula; *from && used + 32 < cap; from++) {
        if (*from != '%') {
            to[used++] = *from;
            continue;
        }
        float imm = (float)at->imm;
        uint32_t bits;
        memcpy(&bits, &imm, sizeof bits);
        from++;
        used += (size_t)(*from == 'i' ? snprintf(to + used, cap - used, "AS_F32(0x%08xu)", bits)
                                      : snprintf(to + used, cap - used, "v%u",
                                                 *from == 'a'   ? at->a
                                                 : *from == 'b' ? at->b
                                                                : at->c));
    }
    to[used] = 0;
    return (int)used;
}

static void chain_write(const cek_pointwise_desc *desc, char *to, size_t cap)
{
    size_t at = (size_t)snprintf(to, cap, "#define CHAIN ");
    uint32_t value = 0;
    for (; value < desc->input_count; value++)
        at += (size_t)snprintf(to + at, cap - at, "const cek_f32 v%u = IN(%u); ", value, value);
    for (uint32_t i = 0; i < desc->instruction_count; i++, value++) {
        at += (size_t)snprintf(to + at, cap - at, "const cek_f32 v%u = ", value);
        at += (size_t)formula_write(to + at, cap - at, formulas[desc->instructions[i].code], &desc->instructions[i]);
        at += (size_t)snprintf(to + at, cap - at, "; ");
    }
    snprintf(to + at, cap - at, "value = v%u;\n", value - 1);
}

/* The chain as numbers, for the kernel that reads it. */
static void chain_number(const cek_op *op, const cek_pointwise_desc *desc, cek_k_chain *c)
{
    _Static_assert(CEK_POINTWISE_INSTRUCTIONS <= CEK_K_INSTRUCTIONS && sizeof *c <= CEK__GPU_ARGS_BYTES,
                   "a chain does not fit");
    c->inputs = desc->input_count;
    c->instructions = desc->instruction_count;
    c->accumulate = cek__request_accumulates(&op->request, CEK_POINTWISE_OUT);
    c->types[CEK_POINTWISE_OUT] = desc->out_type;
    for (uint32_t i = 0; i < desc->input_count; i++)
        c->types[i] = desc->inputs[i].type;
    for (uint32_t i = 0; i < desc->instruction_count; i++) {
        c->instruction[i] = desc->instructions[i].code | desc->instructions[i].a << 8 | desc->instructions[i].b << 16 |
                            desc->instructions[i].c << 24;
        c->imm[i] = (float)desc->instructions[i].imm;
    }
}

/* The definitions that turn the source into a kernel for this chain alone. */
static void chain_define(const cek_op *op, const cek_pointwise_desc *desc, char *defines)
{
    char chain[CEK__GPU_DEFINES / 2], types[CEK_POINTWISE_INPUTS * 32] = "", inputs[CEK_POINTWISE_INPUTS * 8] = "";
    for (uint32_t i = 0; i < desc->input_count; i++) {
        size_t at = strlen(types), end = strlen(inputs);
        snprintf(types + at, sizeof types - at, "#define TYPE_%u %s\n", i, cek__gpu_type(desc->inputs[i].type));
        snprintf(inputs + end, sizeof inputs - end, " X(%u)", i);
    }
    chain_write(desc, chain, sizeof chain);
    cek__gpu_defines(op->dev, defines, "%s#define INPUTS(X)%s\n%s#define OUT_TYPE %s\n%s%s", chain, inputs, types,
                     cek__gpu_type(desc->out_type), desc->rows_per_sample ? "#define VALID 1\n" : "",
                     cek__request_accumulates(&op->request, CEK_POINTWISE_OUT) ? "#define ACCUMULATE 1\n" : "");
}

/* Nothing has longer arguments than a chain over strided operands; chains that are interpreted are CUDA's alone. */
const uint32_t cek__gpu_arguments_most = sizeof(cek_k_strided) + OPERANDS_MAX * sizeof(void *);

/* For VALID: elements are numbered in the order of the shape, whose axis 0 has the rows. */
static void valid_fill(const cek_op *op, const cek_pointwise_desc *desc, strided *s, cek_k_strided *a)
{
    uint64_t row = 1, sample;
    for (uint32_t d = desc->rank; d-- > 0; row *= desc->shape[d])
        s->strides[CEK_POINTWISE_BATCH][d] = row;
    const uint64_t all = row;
    row /= desc->shape[0];
    a->sample = cek__mul(row, desc->rows_per_sample, &sample) && sample < all ? sample : all;
    a->samples = (all + a->sample - 1) / a->sample;
    a->batch = cek__request_given(&op->request, CEK_POINTWISE_BATCH);
}

cek_status cek__gpu_lower_pointwise(cek_op *op)
{
    const cek_pointwise_desc *desc = &op->request.desc.pointwise;
    const bool interpret = op->dev->traits.built_in_only;
    cek_k_chain c = { .inputs = 0 };
    strided s = { .source = "pointwise.cl",
                  .kernel = "pointwise",
                  .rank = desc->rank,
                  .operands = CEK_POINTWISE_BATCH + 1,
                  .args = &c,
                  .args_bytes = interpret ? sizeof c : sizeof c.strided };
    for (uint32_t d = 0; d < CEK_RANK_MAX; d++) {
        s.shape[d] = desc->shape[d];
        s.strides[CEK_POINTWISE_OUT][d] = (uint64_t)desc->out_strides[d];
        for (uint32_t i = 0; i < desc->input_count; i++)
            s.strides[i][d] = (uint64_t)desc->inputs[i].strides[d];
    }
    s.bytes[CEK_POINTWISE_OUT] = cek__type_bytes(desc->out_type);
    for (uint32_t i = 0; i < desc->input_count; i++)
        s.bytes[i] = cek__type_bytes(desc->inputs[i].type);
    for (uint32_t i = 0; i <= CEK_POINTWISE_BATCH; i++)
        s.buffers[i] = cek__gpu_slot(op, i);
    if (desc->rows_per_sample)
        valid_fill(op, desc, &s, &c.strided);
    if (interpret) {
        chain_number(op, desc, &c);
        cek__gpu_defines(op->dev, s.defines, "#define INTERPRET 1\n");
        snprintf(op->info.algorithm, sizeof op->info.algorithm, "a chain of instructions, interpreted");
        s.wide = 1;
        strided_launch(op, &s);
    } else {
        chain_define(op, desc, s.defines);
        strided_add(op, &s);
    }
    return op->failure;
}
