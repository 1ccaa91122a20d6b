/* shapes.c - what each operation must refuse about its own fields: sizes, strides, references, sets
 * of operands.
 *
 * Each line takes the typical case of the kind and makes one thing of it impossible. */
#include <stdlib.h>

#include "spec/check.h"

/* The problem to change is `q`, a copy of `p` whose pointers still point at the original's arrays.
 */
#define TRY(want, what, change) (*q = *p, (change), spec_refused(s, &q->desc.op, want, what))
#define INVALID(what, change) TRY(CEK_INVALID, what, change)
#define UNKNOWN(what, change) TRY(CEK_UNSUPPORTED, what, change)

static void gemm_shapes(spec_state *s, const spec_problem *p, spec_problem *q)
{
    cek_gemm_desc *d = &q->desc.gemm;
    INVALID("m = 0", d->m = 0);
    INVALID("n = 0", d->n = 0);
    INVALID("batch = 0", d->batch = 0);
    INVALID("lda shorter than a row", d->lda = (int64_t)d->k - 1);
    INVALID("ldb shorter than a row", d->ldb = (int64_t)d->n - 1);
    INVALID("ldc shorter than a row", d->ldc = (int64_t)d->n - 1);
    INVALID("a negative stride", d->stride_a = -1);
    INVALID("a negative outer stride", d->outer_b = -1);
    INVALID("outer batches of C over each other", (d->outer = 2, d->outer_c = 1));
    INVALID("A_SUM of an outer batch", (d->outer = 2, d->outer_c = 1000, d->op.operands |= CEK_BIT(CEK_GEMM_A_SUM)));
    INVALID("batches of C over each other", (d->batch = 2, d->stride_c = 1));
    INVALID("sizes beyond 64 bits",
            (d->m = d->n = d->k = (uint64_t)1 << 40, d->lda = d->ldb = d->ldc = (int64_t)1 << 40));
    INVALID("PACKED without the flag", d->op.operands |= CEK_BIT(CEK_GEMM_PACKED));
    INVALID("ACT_REF without act_grad", d->op.operands |= CEK_BIT(CEK_GEMM_ACT_REF));
    INVALID("A_SUM of a batch", (d->batch = 2, d->stride_c = 1000, d->op.operands |= CEK_BIT(CEK_GEMM_A_SUM)));
    UNKNOWN("an unknown transposition", d->trans |= 1u << 31);
    UNKNOWN("an unknown type", d->a_type = 99);
}

static void conv_shapes(spec_state *s, const spec_problem *p, spec_problem *q)
{
    cek_conv_desc *d = &q->desc.conv;
    INVALID("batch = 0", d->batch = 0);
    INVALID("no input channels", d->in_channels = 0);
    INVALID("groups = 0", d->groups = 0);
    INVALID("groups that do not divide the channels", d->groups = 2);
    INVALID("stride 0", d->stride[0] = 0);
    INVALID("dilation 0", d->dilation[1] = 0);
    INVALID("kernel 0", d->kernel[0] = 0);
    INVALID("a kernel larger than the image", d->kernel[1] = 100);
    INVALID("a third dimension beyond spatial", d->in[2] = 5);
    INVALID("spatial = 0", d->spatial = 0);
    INVALID("sizes beyond 64 bits", d->in[0] = d->in[1] = (uint64_t)1 << 62);
    UNKNOWN("a reserved field", d->reserved = 1);
    UNKNOWN("an unknown type", d->w_type = 99);
}

/* Operations that fill no reserve for this one: without RESERVE, of another kind, of another handle. */
static void forward_refused(spec_state *s, const spec_problem *p, spec_problem *q)
{
    const cek_plugin *plugin = s->plugin;
    cek_pool_desc bare = p->forward->desc.pool;
    cek_op *forward = NULL;
    cek_dev *other = NULL;
    bare.op.operands &= ~CEK_BIT(CEK_POOL_FORWARD_RESERVE);
    if (EXPECT_OK(plugin->op_create(s->dev, &bare.op, NULL, &forward))) {
        INVALID("a forward operation without RESERVE", q->desc.op.forward = forward);
        plugin->op_destroy(forward);
    }
    bare = p->forward->desc.pool;
    bare.type = CEK_F16;
    if (plugin->op_create(s->dev, &bare.op, NULL, &forward) == CEK_OK) { /* or it has no such type */
        INVALID("a forward operation of another type", q->desc.pool.type = CEK_F16);
        plugin->op_destroy(forward);
    }
    if (EXPECT_OK(plugin->op_create(s->dev, &p->desc.op, NULL, &forward))) {
        INVALID("a backward operation as forward", q->desc.op.forward = forward);
        plugin->op_destroy(forward);
    }
    if (EXPECT_OK(plugin->device_open(s->target->instance, s->target->index, NULL, &other)) &&
        EXPECT_OK(plugin->op_create(other, &p->forward->desc.op, NULL, &forward))) {
        INVALID("a forward operation of another handle", q->desc.op.forward = forward);
        plugin->op_destroy(forward);
    }
    plugin->device_close(other);
}

static void pool_shapes(spec_state *s, const spec_problem *p, spec_problem *q)
{
    cek_pool_desc *d = &q->desc.pool;
    INVALID("batch = 0", d->batch = 0);
    INVALID("no channels", d->channels = 0);
    INVALID("stride 0", d->stride[1] = 0);
    INVALID("kernel 0", d->kernel[0] = 0);
    INVALID("padding as large as the kernel", d->pad_lo[0] = d->kernel[0]);
    INVALID("padding beyond spatial", d->pad_hi[2] = 1);
    INVALID("sizes beyond 64 bits", d->in[0] = d->in[1] = (uint64_t)1 << 62);
    INVALID("a window wholly in the padding",
            (d->in[0] = 3, d->kernel[0] = 2, d->stride[0] = 4, d->pad_lo[0] = 0, d->pad_hi[0] = 3));
    INVALID("padding behind as large as the kernel", d->pad_hi[0] = d->kernel[0]);
    INVALID("padding that counts in maxima", (d->mode = CEK_POOL_MAX, d->flags |= CEK_POOL_COUNT_PAD));
    UNKNOWN("an unknown mode", d->mode = 99);
    UNKNOWN("an unknown flag of its own", d->flags |= 1u << 31);
    if (q->desc.op.kind == CEK_OP_POOL_FORWARD) {
        INVALID("a reserve of averages",
                (d->mode = CEK_POOL_AVERAGE, d->op.operands |= CEK_BIT(CEK_POOL_FORWARD_RESERVE)));
    } else {
        INVALID("a reserve of averages", (d->mode = CEK_POOL_AVERAGE, d->op.forward = NULL));
        INVALID("a forward operation of averages",
                (d->mode = CEK_POOL_AVERAGE, d->op.operands &= ~CEK_BIT(CEK_POOL_BACKWARD_RESERVE)));
        INVALID("no forward operation", d->op.forward = NULL);
        INVALID("a forward operation of another shape", d->channels += 1);
        forward_refused(s, p, q);
    }
}

static void pointwise_shapes(spec_state *s, const spec_problem *p, spec_problem *q)
{
    cek_pointwise_desc *d = &q->desc.pointwise;
    INVALID("rank 0", d->rank = 0);
    INVALID("rank 9", d->rank = CEK_RANK_MAX + 1);
    INVALID("a size beyond rank", d->shape[CEK_RANK_MAX - 1] = 1);
    INVALID("a stride of OUT beyond rank", d->out_strides[CEK_RANK_MAX - 1] = 1);
    INVALID("a stride of an input beyond rank", (q->inputs[0].strides[CEK_RANK_MAX - 1] = 1, d->inputs = q->inputs));
    INVALID("sizes beyond 64 bits", d->shape[0] = (uint64_t)1 << 62);
    INVALID("2^63 bytes", d->shape[0] = (uint64_t)1 << 61);
    INVALID("a dimension of 0", d->shape[0] = 0);
    INVALID("elements of OUT in one place", d->out_strides[0] = 0);
    INVALID("a negative stride", d->out_strides[0] = -1);
    UNKNOWN("a reserved field of an input", (q->inputs[0].reserved = 1, d->inputs = q->inputs));
    INVALID("no value", (d->input_count = d->instruction_count = 0, d->op.operands = CEK_BIT(CEK_POINTWISE_OUT)));
    INVALID("an input without its operand", d->op.operands &= ~CEK_BIT(1));
    INVALID("an operand without its input", d->op.operands |= CEK_BIT(2));
    INVALID("no instructions behind the pointer", d->instructions = NULL);
    INVALID("inputs of 8 bytes, without strides", d->input_size = 8);
    INVALID("inputs one byte short", d->input_size -= 1);
    INVALID("instructions of 8 bytes", d->instruction_size = 8);
    INVALID("instructions without imm", d->instruction_size -= sizeof(double));
    INVALID("instructions of no size", d->instruction_size = 0);
    UNKNOWN("an unknown instruction", (q->instructions[0].code = 999, d->instructions = q->instructions));
    INVALID("a value that comes later", (q->instructions[0].a = 7, d->instructions = q->instructions));
    INVALID("its own value", (q->instructions[0].a = d->input_count, d->instructions = q->instructions));
    INVALID("a third value where two are read", (q->instructions[0].c = 1, d->instructions = q->instructions));
    INVALID("a third value that comes later",
            (q->instructions[0].code = CEK_PW_SELECT, q->instructions[0].c = 7, d->instructions = q->instructions));
    INVALID("samples in a chain without VALID", d->rows_per_sample = 1);
    INVALID("BATCH in a chain without VALID", d->op.operands |= CEK_BIT(CEK_POINTWISE_BATCH));
    INVALID("VALID in samples of no rows",
            (q->instructions[0].code = CEK_PW_VALID, q->instructions[0].b = 0, d->instructions = q->instructions));
    cek_op *whole = NULL;
    *q = *p;
    d->out_type = CEK_I32;
    if (s->plugin->op_create(s->dev, &d->op, NULL, &whole) == CEK_OK) {
        s->plugin->op_destroy(whole);
        INVALID("integers that accumulate", (d->out_type = CEK_I32, d->op.accumulate = CEK_BIT(CEK_POINTWISE_OUT)));
    }
    INVALID("a negative stride of an input", (q->inputs[0].strides[0] = -1, d->inputs = q->inputs));
}

static void reduce_shapes(spec_state *s, const spec_problem *p, spec_problem *q)
{
    cek_reduce_desc *d = &q->desc.reduce;
    INVALID("rank 0", d->rank = 0);
    INVALID("a dimension of 0", d->shape[1] = 0);
    INVALID("an axis that is not there", d->axes |= 1u << 5);
    INVALID("a size beyond rank", d->shape[CEK_RANK_MAX - 1] = 1);
    INVALID("a stride beyond rank", d->x_strides[CEK_RANK_MAX - 1] = 1);
    INVALID("a negative stride", d->x_strides[0] = -1);
    UNKNOWN("an unknown function", d->function = 99);
    INVALID("strides of an X2 that is not there", d->x2_strides[0] = 1);
    INVALID("rows_per_sample without BATCH", d->rows_per_sample = 1);
    INVALID("BATCH without rows_per_sample", d->op.operands |= CEK_BIT(CEK_REDUCE_BATCH));
    INVALID("a negative stride of X2", (d->x2_strides[0] = -1, d->op.operands |= CEK_BIT(CEK_REDUCE_X2)));
    INVALID("a maximum that accumulates", (d->function = CEK_REDUCE_MAX, d->op.accumulate = CEK_BIT(CEK_REDUCE_Y)));
}

static void arg_shapes(spec_state *s, const spec_problem *p, spec_problem *q)
{
    cek_arg_desc *d = &q->desc.arg;
    INVALID("rank 0", d->rank = 0);
    INVALID("a dimension of 0", d->shape[0] = 0);
    INVALID("an axis beyond rank", d->axis = d->rank);
    INVALID("a stride beyond rank", d->x_strides[CEK_RANK_MAX - 1] = 1);
    INVALID("a negative stride", d->x_strides[0] = -1);
    INVALID("more elements than i32 numbers", (d->shape[d->axis] = (uint64_t)1 << 32, d->x_strides[d->axis] = 0));
    UNKNOWN("an unknown function", d->function = 99);
    UNKNOWN("an unknown type", d->type = 99);
}

static void softmax_shapes(spec_state *s, const spec_problem *p, spec_problem *q)
{
    cek_softmax_desc *d = &q->desc.softmax;
    INVALID("no rows", d->rows = 0);
    INVALID("no columns", d->columns = 0);
    INVALID("sizes beyond 64 bits", d->rows = d->columns = (uint64_t)1 << 40);
    UNKNOWN("an unknown flag of its own", d->flags |= 1u << 31);
    UNKNOWN("an unknown type", d->type = 99);
}

static void cross_entropy_shapes(spec_state *s, const spec_problem *p, spec_problem *q)
{
    cek_cross_entropy_desc *d = &q->desc.cross_entropy;
    INVALID("no rows", d->rows = 0);
    INVALID("no classes", d->classes = 0);
    INVALID("rows_per_sample = 0", d->rows_per_sample = 0);
    UNKNOWN("a reserved field", d->reserved = 1);
    INVALID("a gradient without STEP", d->op.operands &= ~CEK_BIT(CEK_CROSS_ENTROPY_STEP));
    INVALID("no output", d->op.operands &= ~(CEK_BIT(CEK_CROSS_ENTROPY_DLOGITS) | CEK_BIT(CEK_CROSS_ENTROPY_LOSS) |
                                             CEK_BIT(CEK_CROSS_ENTROPY_CORRECT)));
}

static void squared_error_shapes(spec_state *s, const spec_problem *p, spec_problem *q)
{
    cek_squared_error_desc *d = &q->desc.squared_error;
    INVALID("no rows", d->rows = 0);
    INVALID("no columns", d->columns = 0);
    INVALID("rows_per_sample = 0", d->rows_per_sample = 0);
    UNKNOWN("a reserved field", d->reserved = 1);
    INVALID("a gradient without STEP", d->op.operands &= ~CEK_BIT(CEK_SQUARED_ERROR_STEP));
}

static void random_shapes(spec_state *s, const spec_problem *p, spec_problem *q)
{
    if (p->desc.op.kind == CEK_OP_DROPOUT) {
        cek_dropout_desc *d = &q->desc.dropout;
        INVALID("no rows", d->rows = 0);
        INVALID("rows_per_sample = 0", d->rows_per_sample = 0);
        UNKNOWN("a reserved field", d->reserved = 1);
    } else {
        cek_random_desc *d = &q->desc.random;
        INVALID("no columns", d->columns = 0);
        INVALID("rows_per_sample = 0", d->rows_per_sample = 0);
        UNKNOWN("a reserved field", d->reserved = 1);
        UNKNOWN("an unknown distribution", d->distribution = 99);
    }
}

static void optimizer_shapes(spec_state *s, const spec_problem *p, spec_problem *q)
{
    cek_optimizer_desc *d = &q->desc.optimizer;
    INVALID("no parameters", d->count = 0);
    INVALID("no ranges behind the pointer", d->ranges = NULL);
    INVALID("ranges of 8 bytes, without an end", d->range_size = 8);
    INVALID("ranges of no size", d->range_size = 0);
    INVALID("a range beyond the parameters", (q->ranges[0].end = d->count + 1, d->ranges = q->ranges));
    INVALID("a range that ends before it begins",
            (q->ranges[0].begin = 9, q->ranges[0].end = 8, d->ranges = q->ranges));
    INVALID("a group that is not there", (q->ranges[0].group = CEK_PARAM_GROUPS, d->ranges = q->ranges));
    INVALID("ranges over each other",
            (q->ranges[0].end = 20, q->ranges[1] = (cek_param_range){ .begin = 10, .end = 30 }, d->range_count = 2,
             d->ranges = q->ranges));
    UNKNOWN("a reserved field of a range", (q->ranges[0].reserved = 1, d->ranges = q->ranges));
    INVALID("momentum of Adam", d->momentum = 0.9);
    INVALID("decay of Adam", d->decay = 0.9);
    INVALID("Nesterov without momentum",
            (d->algorithm = CEK_OPTIMIZER_SGD, d->op.operands &= ~(CEK_BIT(CEK_OPTIMIZER_M) | CEK_BIT(CEK_OPTIMIZER_V)),
             d->epsilon = 0, d->flags = CEK_OPTIMIZER_NESTEROV));
    INVALID("epsilon of SGD",
            (d->algorithm = CEK_OPTIMIZER_SGD, d->op.operands &= ~(CEK_BIT(CEK_OPTIMIZER_M) | CEK_BIT(CEK_OPTIMIZER_V)),
             d->epsilon = 1e-8));
    INVALID("Adam without V", d->op.operands &= ~CEK_BIT(CEK_OPTIMIZER_V));
    UNKNOWN("an unknown algorithm", d->algorithm = 99);
    UNKNOWN("an unknown flag of its own", d->flags |= 1u << 31);
}

static void copy_shapes(spec_state *s, const spec_problem *p, spec_problem *q)
{
    cek_copy_desc *d = &q->desc.copy;
    INVALID("rank 0", d->rank = 0);
    INVALID("a dimension of 0", d->shape[0] = 0);
    UNKNOWN("a reserved field", d->reserved = 1);
    INVALID("elements of Y in one place", d->y_strides[1] = 0);
    INVALID("a size beyond rank", d->shape[CEK_RANK_MAX - 1] = 1);
    INVALID("a stride of X beyond rank", d->x_strides[CEK_RANK_MAX - 1] = 1);
    INVALID("a stride of Y beyond rank", d->y_strides[CEK_RANK_MAX - 1] = 1);
    INVALID("a negative stride", d->x_strides[0] = -1);
    INVALID("sizes beyond 64 bits", d->shape[0] = d->shape[1] = (uint64_t)1 << 40);
    UNKNOWN("an unknown type", d->x_type = 99);
}

static void gather_shapes(spec_state *s, const spec_problem *p, spec_problem *q)
{
    cek_gather_desc *d = &q->desc.gather;
    INVALID("batch = 0", d->batch = 0);
    INVALID("no rows", d->rows = 0);
    INVALID("no index", d->count = 0);
    INVALID("no columns", d->columns = 0);
    INVALID("sizes beyond 64 bits", d->rows = d->columns = (uint64_t)1 << 40);
    UNKNOWN("an unknown flag of its own", d->flags |= 1u << 31);
    UNKNOWN("an unknown type", d->type = 99);
}

void spec_shapes_refused(spec_state *s, const spec_problem *p)
{
    static void (*const by_kind[])(spec_state *, const spec_problem *, spec_problem *) = {
        [CEK_OP_GEMM] = gemm_shapes,
        [CEK_OP_CONV_FORWARD] = conv_shapes,
        [CEK_OP_CONV_BACKWARD_DATA] = conv_shapes,
        [CEK_OP_CONV_BACKWARD_WEIGHTS] = conv_shapes,
        [CEK_OP_POOL_FORWARD] = pool_shapes,
        [CEK_OP_POOL_BACKWARD] = pool_shapes,
        [CEK_OP_POINTWISE] = pointwise_shapes,
        [CEK_OP_REDUCE] = reduce_shapes,
        [CEK_OP_SOFTMAX] = softmax_shapes,
        [CEK_OP_CROSS_ENTROPY] = cross_entropy_shapes,
        [CEK_OP_SQUARED_ERROR] = squared_error_shapes,
        [CEK_OP_DROPOUT] = random_shapes,
        [CEK_OP_RANDOM] = random_shapes,
        [CEK_OP_OPTIMIZER] = optimizer_shapes,
        [CEK_OP_COPY] = copy_shapes,
        [CEK_OP_GATHER] = gather_shapes,
        [CEK_OP_SCATTER_ADD] = gather_shapes,
        [CEK_OP_ARG] = arg_shapes,
    };
    spec_problem *q = spec_calloc(s, 1, sizeof *q);
    if (q)
        by_kind[p->desc.op.kind](s, p, q);
    free(q);
}
