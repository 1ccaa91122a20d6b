/* SPDX-License-Identifier: MIT
 *
 * validate.c - descriptors: the head, the masks against the operand tables, and the order in which checks run.
 *
 * What a kind's own fields may be is in check_*.c, what a run's operands may be in operands.c.
 */
#include "backends/common/validate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/validate_inside.h"
#include "backends/common/growth.h"

/* --- the operand tables, as data ---------------------------------------------------------------------------------- */

enum { PRESENCE_optional, PRESENCE_required, PRESENCE_weights };
enum { DIRECTION_in = 0, DIRECTION_out = 1, DIRECTION_inout = 1 };
enum { ACCUMULATE_acc = 1, ACCUMULATE_no = 0 };

typedef struct table_row {
    const char *name;
    uint64_t aliases;
    uint8_t kind, slot, presence;
    bool written, accumulates;
} table_row;

#define ROW(KIND, SLOT, NUMBER, DIRECTION, PRESENCE, ACCUMULATE, ALIASES, SHAPE) \
    { #SLOT, ALIASES, CEK_OP_##KIND, NUMBER, PRESENCE_##PRESENCE, DIRECTION_##DIRECTION, ACCUMULATE_##ACCUMULATE },
static const table_row table[] = { CEK_ALL_OPERANDS(ROW) };

#define NEEDED(KIND, SLOT, NUMBER, ...) _Static_assert(NUMBER < CEK__SLOTS, "CEK__SLOTS is too small for " #KIND);
CEK_ALL_OPERANDS(NEEDED)

static const struct {
    const char *name;
    uint32_t bytes; /* of the descriptor */
} kinds[] = {
    [CEK_OP_GEMM] = { "gemm", sizeof(cek_gemm_desc) },
    [CEK_OP_CONV_FORWARD] = { "conv_forward", sizeof(cek_conv_desc) },
    [CEK_OP_CONV_BACKWARD_DATA] = { "conv_backward_data", sizeof(cek_conv_desc) },
    [CEK_OP_CONV_BACKWARD_WEIGHTS] = { "conv_backward_weights", sizeof(cek_conv_desc) },
    [CEK_OP_POOL_FORWARD] = { "pool_forward", sizeof(cek_pool_desc) },
    [CEK_OP_POOL_BACKWARD] = { "pool_backward", sizeof(cek_pool_desc) },
    [CEK_OP_POINTWISE] = { "pointwise", sizeof(cek_pointwise_desc) },
    [CEK_OP_REDUCE] = { "reduce", sizeof(cek_reduce_desc) },
    [CEK_OP_SOFTMAX] = { "softmax", sizeof(cek_softmax_desc) },
    [CEK_OP_CROSS_ENTROPY] = { "cross_entropy", sizeof(cek_cross_entropy_desc) },
    [CEK_OP_SQUARED_ERROR] = { "squared_error", sizeof(cek_squared_error_desc) },
    [CEK_OP_DROPOUT] = { "dropout", sizeof(cek_dropout_desc) },
    [CEK_OP_RANDOM] = { "random", sizeof(cek_random_desc) },
    [CEK_OP_OPTIMIZER] = { "optimizer", sizeof(cek_optimizer_desc) },
    [CEK_OP_COPY] = { "copy", sizeof(cek_copy_desc) },
    [CEK_OP_GATHER] = { "gather", sizeof(cek_gather_desc) },
    [CEK_OP_SCATTER_ADD] = { "scatter_add", sizeof(cek_gather_desc) },
    [CEK_OP_ARG] = { "arg", sizeof(cek_arg_desc) },
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

const char *cek__kind_name(uint32_t kind)
{
    return kind < KIND_COUNT && kinds[kind].name ? kinds[kind].name : "unknown operation";
}

/* --- checks that the kinds share ---------------------------------------------------------------------------------- */

cek_status cek__validate_fail(const cek__validation *check, cek_status status, const char *format, ...)
{
    if (!check->host || !check->host->fail)
        return status;
    char text[CEK__TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return cek__host_fail(check->host, status, "%s: %s", check->kind, text);
}

cek_status cek__validate_type(const cek__validation *check, const char *field, cek_dtype type, uint32_t allowed)
{
    if (type == CEK_DTYPE_NONE)
        return CEK__INVALID(check, "%s is not set", field);
    if (type > CEK_I32 || !(allowed >> type & 1))
        return CEK__UNSUPPORTED(check, "%s is %s (%u)", field, cek__type_name(type), type);
    return CEK_OK;
}

cek_status cek__validate_reserved(const cek__validation *check, uint32_t value)
{
    return value ? CEK__UNSUPPORTED(check, "reserved field is %#x", value) : CEK_OK;
}

cek_status cek__validate_positive(const cek__validation *check, const char *field, uint64_t value)
{
    return value ? CEK_OK : CEK__INVALID(check, "%s is 0", field);
}

cek_status cek__validate_flags(const cek__validation *check, const char *field, uint64_t value, uint64_t known)
{
    return value & ~known
               ? CEK__UNSUPPORTED(check, "%s has unknown bits %#llx", field, (unsigned long long)(value & ~known))
               : CEK_OK;
}

cek_status cek__validate_enum(const cek__validation *check, const char *field, uint32_t value, uint32_t first,
                              uint32_t last)
{
    return value < first || value > last ? CEK__UNSUPPORTED(check, "%s %u is unknown", field, value) : CEK_OK;
}

cek_status cek__validate_finite(const cek__validation *check, const char *field, double value, double low)
{
    return value >= low && value <= 1.7976931348623157e308
               ? CEK_OK
               : CEK__INVALID(check, "%s is %g: not finite, or below %g", field, value, low);
}

cek_status cek__validate_presence(const cek__validation *check, uint32_t slot, bool needed, const char *why)
{
    if (cek__request_given(check->request, slot) == needed)
        return CEK_OK;
    return CEK__INVALID(check, "operand %s is %s, but it is given exactly %s", check->request->slots[slot].name,
                        needed ? "missing from the mask" : "in the mask", why);
}

cek_status cek__slot_size(const cek__validation *check, uint32_t slot, cek_dtype type, const uint64_t *factors,
                          uint32_t count)
{
    cek__slot *at = &check->request->slots[slot];
    at->element = cek__type_bytes(type);
    at->dense = true;
    if (!cek__product(factors, count, &at->bytes) || !cek__mul(at->bytes, at->element, &at->bytes))
        return CEK__INVALID(check, "the size of operand %s overflows", at->name);
    return CEK_OK;
}

cek_status cek__slot_strided(const cek__validation *check, uint32_t slot, cek_dtype type, uint32_t rank,
                             const uint64_t *shape, const int64_t *strides)
{
    cek__slot *at = &check->request->slots[slot];
    uint64_t elements, extent;
    for (uint32_t i = 0; i < CEK_RANK_MAX; i++)
        if (strides[i] < 0 || (i >= rank && strides[i]))
            return CEK__INVALID(check, "operand %s: stride %u is %lld", at->name, i, (long long)strides[i]);
    at->element = cek__type_bytes(type);
    if (!cek__strided_extent(rank, shape, strides, &extent) || !cek__mul(extent, at->element, &at->bytes))
        return CEK__INVALID(check, "the extent of operand %s overflows", at->name);
    uint32_t places = cek__strided_places(rank, shape, strides);
    at->dense = places == CEK__PLACES_OWN && cek__product(shape, rank, &elements) && elements == extent;
    if (at->written && places == CEK__PLACES_SHARED)
        return CEK__INVALID(check, "operand %s: its strides give two elements one place", at->name);
    if (at->written && places == CEK__PLACES_UNKNOWN)
        return CEK__UNSUPPORTED(check, "operand %s: its strides interlock", at->name);
    return CEK_OK;
}

static void slot_block(cek__slot *slot, uint64_t bytes)
{
    slot->bytes = bytes;
    slot->element = 1;
    slot->align = CEK_ALIGNMENT;
    slot->dense = true;
}

void cek__slot_block(const cek__validation *check, uint32_t slot, uint64_t bytes)
{
    slot_block(&check->request->slots[slot], bytes);
}

cek_status cek__validate_shape(const cek__validation *check, uint32_t rank, const uint64_t *shape)
{
    uint64_t elements;
    if (!rank || rank > CEK_RANK_MAX)
        return CEK__INVALID(check, "rank is %u, not 1 to %u", rank, CEK_RANK_MAX);
    for (uint32_t i = 0; i < CEK_RANK_MAX; i++)
        if ((i < rank) == !shape[i])
            return CEK__INVALID(check, "rank is %u and size %u is %llu", rank, i, (unsigned long long)shape[i]);
    if (!cek__product(shape, rank, &elements))
        return CEK__INVALID(check, "the number of elements overflows");
    return CEK_OK;
}

/* --- the head ----------------------------------------------------------------------------------------------------- */

static cek_status slots_fill(const cek__validation *check)
{
    cek__request *request = check->request;
    uint64_t required = 0, weights = 0, known = 0, accumulates = 0;
    for (uint32_t i = 0; i < sizeof table / sizeof *table; i++) {
        const table_row *row = &table[i];
        if (row->kind != request->desc.op.kind)
            continue;
        request->slots[row->slot] = (cek__slot){
            .name = row->name,
            .aliases = row->aliases,
            .element = 1,
            .written = row->written,
            .given = cek__request_given(request, row->slot),
            .accumulated = cek__request_accumulates(request, row->slot),
        };
        if (row->slot >= request->slot_count)
            request->slot_count = row->slot + 1;
        known |= CEK_BIT(row->slot);
        required |= row->presence == PRESENCE_required ? CEK_BIT(row->slot) : 0;
        weights |= row->presence == PRESENCE_weights ? CEK_BIT(row->slot) : 0;
        accumulates |= row->accumulates ? CEK_BIT(row->slot) : 0;
    }
    /* Packed weights stand in for plain ones. */
    bool prepacked = request->desc.op.flags & CEK_OP_PREPACKED;
    if (prepacked && !weights)
        return CEK__INVALID(check, "has no weights that could be packed");
    required |= prepacked ? 0 : weights;

    uint64_t given = request->desc.op.operands;
    CEK__VALIDATE(cek__validate_flags(check, "operand mask", given, known));
    if (required & ~given)
        return CEK__INVALID(check, "operand %s is missing from the mask",
                            request->slots[__builtin_ctzll(required & ~given)].name);
    CEK__VALIDATE(cek__validate_flags(check, "accumulate mask", request->desc.op.accumulate, known));
    uint64_t wrong = request->desc.op.accumulate & ~(given & accumulates);
    if (wrong)
        return CEK__INVALID(check, "operand %s cannot be accumulated, or is not given",
                            request->slots[__builtin_ctzll(wrong)].name);
    return CEK_OK;
}

static cek_status head_check(const cek__validation *check)
{
    cek__request *request = check->request;
    const cek_op_desc *op = &request->desc.op;
    CEK__VALIDATE(cek__validate_flags(check, "flags", op->flags, CEK_OP_DETERMINISTIC | CEK_OP_PREPACKED));
    CEK__VALIDATE(cek__validate_enum(check, "math", op->math, CEK_MATH_F32, CEK_MATH_FAST));
    CEK__VALIDATE(cek__validate_reserved(check, op->reserved));
    request->align = op->align ? op->align : CEK_ALIGNMENT;
    if (request->align & (request->align - 1) || request->align > CEK_ALIGNMENT)
        return CEK__INVALID(check, "align is %u: not a power of two up to %u", op->align, CEK_ALIGNMENT);
    if (op->extra)
        return CEK__UNSUPPORTED(check, "extra is not NULL");
    if (op->forward && op->kind != CEK_OP_POOL_BACKWARD)
        return CEK__INVALID(check, "forward is set, but no reserve is read");
    if (!op->epilogue)
        return CEK_OK;
    if (op->kind > CEK_OP_CONV_BACKWARD_WEIGHTS)
        return CEK__INVALID(check, "has no epilogue");
    CEK__VALIDATE(cek__struct_in(check->host, "epilogue", op->epilogue, &request->epilogue, sizeof request->epilogue));
    CEK__VALIDATE(cek__validate_enum(check, "activation", request->epilogue.activation, CEK_ACT_NONE, CEK_ACT_GELU));
    CEK__VALIDATE(cek__validate_enum(check, "act_grad", request->epilogue.act_grad, CEK_ACT_NONE, CEK_ACT_GELU));
    CEK__VALIDATE(cek__validate_reserved(check, request->epilogue.reserved));
    request->desc.op.epilogue = &request->epilogue;
    return CEK_OK;
}

static cek_status kind_check(const cek__validation *check)
{
    switch (check->request->desc.op.kind) {
    case CEK_OP_GEMM: return cek__validate_gemm(check);
    case CEK_OP_CONV_FORWARD:
    case CEK_OP_CONV_BACKWARD_DATA:
    case CEK_OP_CONV_BACKWARD_WEIGHTS: return cek__validate_conv(check);
    case CEK_OP_POOL_FORWARD:
    case CEK_OP_POOL_BACKWARD: return cek__validate_pool(check);
    case CEK_OP_POINTWISE: return cek__validate_pointwise(check);
    case CEK_OP_REDUCE: return cek__validate_reduce(check);
    case CEK_OP_SOFTMAX: return cek__validate_softmax(check);
    case CEK_OP_CROSS_ENTROPY: return cek__validate_cross_entropy(check);
    case CEK_OP_SQUARED_ERROR: return cek__validate_squared_error(check);
    case CEK_OP_DROPOUT: return cek__validate_dropout(check);
    case CEK_OP_RANDOM: return cek__validate_random(check);
    case CEK_OP_OPTIMIZER: return cek__validate_optimizer(check);
    case CEK_OP_COPY: return cek__validate_copy(check);
    case CEK_OP_GATHER:
    case CEK_OP_SCATTER_ADD: return cek__validate_gather(check);
    default: return cek__validate_arg(check);
    }
}

/* What is said of all operands, and no operand's elements lie across their own size. */
static void aligns_resolve(cek__request *request)
{
    for (uint32_t i = 0; i < request->slot_count; i++) {
        cek__slot *slot = &request->slots[i];
        if (!slot->align)
            slot->align = request->align > slot->element ? request->align : slot->element;
    }
}

cek_status cek__request_init(const cek_host *host, const cek_op_desc *desc, cek__request *to)
{
    memset(to, 0, sizeof *to);
    if (!desc)
        return cek__host_fail(host, CEK_INVALID, "op_create: no descriptor");
    if (desc->size < sizeof *desc)
        return cek__host_fail(host, CEK_INVALID, "op_create: descriptor of %u bytes, the head alone has %zu",
                              desc->size, sizeof *desc);
    if (desc->kind >= KIND_COUNT || !kinds[desc->kind].name)
        return cek__host_fail(host, CEK_UNSUPPORTED, "op_create: operation %u is unknown", desc->kind);

    const cek__validation check = { host, to, kinds[desc->kind].name };
    cek_status st = cek__struct_in(host, check.kind, desc, &to->desc, kinds[desc->kind].bytes);
    for (int i = 0; i < CEK_SPATIAL_MAX; i++)
        to->out[i] = 1;
    if (!st)
        st = head_check(&check);
    if (!st)
        st = slots_fill(&check);
    if (!st)
        st = kind_check(&check);
    if (!st)
        aligns_resolve(to);
    else
        cek__request_free(to);
    return st;
}

void cek__request_free(cek__request *request)
{
    free(request->ranges);
    memset(request, 0, sizeof *request);
}

void cek__request_reserve(cek__request *request, uint32_t slot, uint64_t bytes)
{
    slot_block(&request->slots[slot], bytes);
}
