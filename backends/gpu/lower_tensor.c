/* SPDX-License-Identifier: MIT
 * lower_tensor.c - copy, pointwise and reduce. */
#include <stdio.h>
#include <string.h>

#include "backends/gpu/lower.h"

/* Whether all operands lie alike and without gaps: element i at place i. */
static bool is_flat(const cek_k_strided *a, const uint32_t *operands, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a->rank != 1 || (a->stride[operands[i]][0] != 1 && a->count != 1))
            return false;
    return true;
}

static uint64_t shape_count(uint32_t rank, const uint64_t *shape)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < rank; i++)
        count *= shape[i];
    return count;
}

cek_status cek__gpu_lower_copy(cek_op *op)
{
    const cek_copy_desc *desc = &op->request.desc.copy;
    cek_k_strided a = { .count = shape_count(desc->rank, desc->shape) };
    uint64_t strides[2][CEK_RANK_MAX];
    char defines[CEK__GPU_DEFINES];
    for (uint32_t d = 0; d < CEK_RANK_MAX; d++) {
        a.shape[d] = desc->shape[d];
        strides[0][d] = (uint64_t)desc->x_strides[d];
        strides[1][d] = (uint64_t)desc->y_strides[d];
    }
    a.rank = cek__gpu_collapse(desc->rank, a.shape, strides, 2);
    memcpy(a.stride, strides, sizeof strides);
    bool same = desc->x_type == desc->y_type;
    const char *flat = is_flat(&a, (const uint32_t[]){ 0, 1 }, 2) ? "#define FLAT 1\n" : "";
    if (same)
        cek__gpu_defines(op->dev, defines, "#define COPY_AS %s\n%s",
                         cek__type_bytes(desc->x_type) == 1   ? "cek_u8"
                         : cek__type_bytes(desc->x_type) == 2 ? "cek_u16"
                                                              : "cek_u32",
                         flat);
    else
        cek__gpu_defines(op->dev, defines, "#define X_TYPE %s\n#define Y_TYPE %s\n%s", cek__gpu_type(desc->x_type),
                         cek__gpu_type(desc->y_type), flat);
    cek__gpu_step *step = cek__gpu_step_add(op, "copy.cl", defines, same ? "copy_same" : "copy_convert",
                                            cek__gpu_items(op->dev, a.count));
    const cek__gpu_place buffers[] = { { CEK_COPY_X, 0 }, { CEK_COPY_Y, 0 } };
    cek__gpu_step_fill(step, buffers, 2, &a, sizeof a);
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
                                      : snprintf(to + used, cap - used, "v%u", *from == 'a' ? at->a : at->b));
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
        c->instruction[i] = desc->instructions[i].code | desc->instructions[i].a << 8 | desc->instructions[i].b << 16;
        c->imm[i] = (float)desc->instructions[i].imm;
    }
}

/* The definitions that turn the source into a kernel for this chain alone. */
static void chain_define(const cek_op *op, const cek_pointwise_desc *desc, bool flat, char *defines)
{
    char chain[CEK__GPU_DEFINES / 2], types[CEK_POINTWISE_INPUTS * 32] = "";
    for (uint32_t i = 0; i < desc->input_count; i++) {
        size_t at = strlen(types);
        snprintf(types + at, sizeof types - at, "#define TYPE_%u %s\n", i, cek__gpu_type(desc->inputs[i].type));
    }
    chain_write(desc, chain, sizeof chain);
    cek__gpu_defines(op->dev, defines, "%s%s%s#define OUT_TYPE %s\n%s", chain, types, flat ? "#define FLAT 1\n" : "",
                     cek__gpu_type(desc->out_type),
                     cek__request_accumulates(&op->request, CEK_POINTWISE_OUT) ? "#define ACCUMULATE 1\n" : "");
}

/* Nothing has longer arguments than a chain over strided operands; chains that are interpreted are CUDA's alone. */
const uint32_t cek__gpu_arguments_most = sizeof(cek_k_strided) + (CEK_POINTWISE_OUT + 1) * sizeof(void *);

cek_status cek__gpu_lower_pointwise(cek_op *op)
{
    const cek_pointwise_desc *desc = &op->request.desc.pointwise;
    cek_k_chain c = { .strided.count = shape_count(desc->rank, desc->shape) };
    cek_k_strided *a = &c.strided;
    uint64_t strides[CEK_POINTWISE_INPUTS + 1][CEK_RANK_MAX] = { { 0 } };
    uint32_t used[CEK_POINTWISE_INPUTS + 1] = { CEK_POINTWISE_OUT }, used_count = 1;
    char defines[CEK__GPU_DEFINES];
    cek__gpu_place buffers[CEK_POINTWISE_OUT + 1];
    bool interpret = op->dev->traits.built_in_only;
    for (uint32_t d = 0; d < CEK_RANK_MAX; d++) {
        a->shape[d] = desc->shape[d];
        strides[CEK_POINTWISE_OUT][d] = (uint64_t)desc->out_strides[d];
        for (uint32_t i = 0; i < desc->input_count; i++)
            strides[i][d] = (uint64_t)desc->inputs[i].strides[d];
    }
    a->rank = cek__gpu_collapse(desc->rank, a->shape, strides, CEK_POINTWISE_OUT + 1);
    memcpy(a->stride, strides, sizeof strides);
    for (uint32_t i = 0; i < desc->input_count; i++)
        used[used_count++] = i;
    for (uint32_t i = 0; i <= CEK_POINTWISE_OUT; i++)
        buffers[i] = cek__gpu_slot(op, i);
    if (interpret) {
        chain_number(op, desc, &c);
        cek__gpu_defines(op->dev, defines, "#define INTERPRET 1\n");
        snprintf(op->info.algorithm, sizeof op->info.algorithm, "a chain of instructions, interpreted");
    } else {
        chain_define(op, desc, is_flat(a, used, used_count), defines);
    }
    cek__gpu_step *step = cek__gpu_step_add(op, "pointwise.cl", defines, "pointwise",
                                            cek__gpu_items(op->dev, a->count));
    cek__gpu_step_fill(step, buffers, CEK_POINTWISE_OUT + 1, &c, interpret ? sizeof c : sizeof *a);
    return op->failure;
}

/* --- reduce ----------------------------------------------------------------------------------- */

#define CHUNK_LEAST 256    /* elements that are worth a partial result of their own */
#define ITEMS_ENOUGH 16384 /* work-items that fill any device of today */

static bool is_columns(const cek_k_reduce *a)
{
    return a->kept_rank == 1 && (a->kept_stride[0] == 1 || a->outputs == 1) && a->reduced_rank == 1 && a->outputs >= 8;
}

void cek__gpu_reduce_add(cek_op *op, const cek__gpu_reduction *r)
{
    cek_k_reduce a = { .function = r->function, .accumulate = r->accumulate };
    uint64_t kept[CEK_RANK_MAX] = { 0 }, reduced[CEK_RANK_MAX] = { 0 }, kept_strides[1][CEK_RANK_MAX],
             reduced_strides[1][CEK_RANK_MAX];
    uint32_t kept_rank = 0, reduced_rank = 0;
    char defines[CEK__GPU_DEFINES];
    for (uint32_t d = 0; d < r->rank; d++)
        if (r->axes >> d & 1) {
            reduced_strides[0][reduced_rank] = (uint64_t)r->strides[d];
            reduced[reduced_rank++] = r->shape[d];
        } else {
            kept_strides[0][kept_rank] = (uint64_t)r->strides[d];
            kept[kept_rank++] = r->shape[d];
        }
    a.outputs = shape_count(kept_rank, kept);
    a.length = shape_count(reduced_rank, reduced);
    a.kept_rank = cek__gpu_collapse(kept_rank, kept, kept_strides, 1);
    a.reduced_rank = cek__gpu_collapse(reduced_rank, reduced, reduced_strides, 1);
    memcpy(a.kept_shape, kept, sizeof kept);
    memcpy(a.kept_stride, kept_strides, sizeof kept_strides);
    memcpy(a.reduced_shape, reduced, sizeof reduced);
    memcpy(a.reduced_stride, reduced_strides, sizeof reduced_strides);
    a.scale = 1.0f / (float)a.length;
    a.chunk_first = a.reduced_stride[a.reduced_rank - 1] < a.kept_stride[a.kept_rank - 1] || a.outputs == 1;

    uint64_t most = (a.length + CHUNK_LEAST - 1) / CHUNK_LEAST, enough = (ITEMS_ENOUGH + a.outputs - 1) / a.outputs;
    a.chunks = most < enough ? most : enough;
    if (!a.chunks)
        a.chunks = 1;
    uint32_t lanes = cek__gpu_lanes(op->dev);
    bool columns = is_columns(&a) && lanes > 1;
    if (columns) /* fewer, longer: each takes whole rows of lanes */
        a.chunks = most < 64 ? most : 64;
    uint64_t items = columns ? (a.outputs + lanes - 1) / lanes * a.chunks : a.outputs * a.chunks;
    cek__gpu_place partial = cek__gpu_workspace(op, a.outputs * a.chunks * sizeof(float));
    const cek__gpu_place buffers[] = { r->from, partial, r->to };
    cek__gpu_defines(op->dev, defines, "#define TYPE %s\n", cek__gpu_type(r->type));
    cek__gpu_step_fill(cek__gpu_step_add(op, "reduce.cl", defines, columns ? "reduce_columns" : "reduce_chunks", items),
                       buffers, 3, &a, sizeof a);
    cek__gpu_step_fill(cek__gpu_step_add(op, "reduce.cl", defines, "reduce_finish", a.outputs), buffers, 3, &a,
                       sizeof a);
}

cek_status cek__gpu_lower_reduce(cek_op *op)
{
    const cek_reduce_desc *desc = &op->request.desc.reduce;
    cek__gpu_reduction r = { .from = { CEK_REDUCE_X, 0 },
                             .to = { CEK_REDUCE_Y, 0 },
                             .type = desc->x_type,
                             .function = desc->function,
                             .accumulate = cek__request_accumulates(&op->request, CEK_REDUCE_Y),
                             .rank = desc->rank,
                             .axes = desc->axes };
    memcpy(r.shape, desc->shape, sizeof r.shape);
    memcpy(r.strides, desc->x_strides, sizeof r.strides);
    cek__gpu_reduce_add(op, &r);
    return op->failure;
}
