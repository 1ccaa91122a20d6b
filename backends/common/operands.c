/* SPDX-License-Identifier: MIT
 *
 * operands.c - whether the operands of one run fit the request they were promised in.
 *
 * Runs before every command, so it allocates nothing and touches each operand a constant number of times.
 */
#include "backends/common/validate_inside.h"

#include <stdio.h>

static bool is_inside(cek_ref ref, uint64_t bytes, uint64_t size)
{
    return ref.offset <= size && bytes <= size - ref.offset;
}

cek_status cek__range_check(const cek_host *host, const char *what, cek_ref ref, uint64_t bytes,
                            cek__mem_bytes_fn *mem_bytes, const void *user)
{
    uint64_t size;
    if (!ref.mem)
        return cek__host_fail(host, CEK_INVALID, "%s: no memory", what);
    if (!mem_bytes(user, ref.mem, &size))
        return cek__host_fail(host, CEK_INVALID, "%s: the memory is of another device", what);
    if (!is_inside(ref, bytes, size))
        return cek__host_fail(host, CEK_INVALID, "%s: %llu bytes at offset %llu, but the memory has %llu", what,
                              (unsigned long long)bytes, (unsigned long long)ref.offset, (unsigned long long)size);
    return CEK_OK;
}

/* cek__range_check of something that has a name of two parts: only a refusal makes one text of it. */
static cek_status part_check(const cek__validation *check, const char *sort, const char *name, cek_ref ref,
                             uint64_t bytes, cek__mem_bytes_fn *mem_bytes, const void *user)
{
    uint64_t size;
    char what[CEK__TEXT_BYTES / 2];
    if (mem_bytes(user, ref.mem, &size) && is_inside(ref, bytes, size))
        return CEK_OK;
    snprintf(what, sizeof what, "%s: %s%s", check->kind, sort, name);
    return cek__range_check(check->host, what, ref, bytes, mem_bytes, user);
}

static cek_status operand_check(const cek__validation *check, uint32_t slot, cek_ref ref, cek__mem_bytes_fn *mem_bytes,
                                const void *user)
{
    const cek__slot *at = &check->request->slots[slot];
    if (!at->given)
        return ref.mem || ref.offset ? CEK__INVALID(check, "operand %u is given, but was not in the mask", slot)
                                     : CEK_OK;
    if (!ref.mem)
        return CEK__INVALID(check, "operand %s is missing", at->name);
    if (ref.offset & (at->align - 1))
        return CEK__INVALID(check, "operand %s: offset %llu is not a multiple of %u", at->name,
                            (unsigned long long)ref.offset, at->align);
    return part_check(check, "operand ", at->name, ref, at->bytes, mem_bytes, user);
}

static bool ranges_meet(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a_bytes && b_bytes && (a < b ? b - a < a_bytes : a - b < b_bytes);
}

/* Whether slot `w`, which is written, may lie where slot `o` lies. */
static cek_status overlap_check(const cek__validation *check, uint32_t w, uint32_t o, const cek_ref *operands)
{
    const cek__slot *written = &check->request->slots[w], *other = &check->request->slots[o];
    uint64_t at = operands[w].offset, to = operands[o].offset;
    if (operands[w].mem != operands[o].mem || !ranges_meet(at, written->bytes, to, other->bytes))
        return CEK_OK;
    if (at == to && written->aliases >> o & 1)
        return CEK_OK;
    if (at != to && !(written->dense && other->dense))
        return CEK_OK; /* the one may lie in the gaps of the other */
    return CEK__INVALID(check, "operand %s (%llu bytes at %llu) overlaps %s (%llu bytes at %llu)", written->name,
                        (unsigned long long)written->bytes, (unsigned long long)at, other->name,
                        (unsigned long long)other->bytes, (unsigned long long)to);
}

static cek_status workspace_check(const cek__validation *check, const cek_ref *operands, cek_ref workspace,
                                  uint64_t bytes, cek__mem_bytes_fn *mem_bytes, const void *user)
{
    const cek__request *request = check->request;
    if (!bytes)
        return CEK_OK;
    if (!workspace.mem)
        return CEK__INVALID(check, "its workspace of %llu bytes is missing", (unsigned long long)bytes);
    CEK__VALIDATE(part_check(check, "", "workspace", workspace, bytes, mem_bytes, user));
    if (workspace.offset % CEK_ALIGNMENT)
        return CEK__INVALID(check, "workspace: offset %llu is not a multiple of %u",
                            (unsigned long long)workspace.offset, CEK_ALIGNMENT);
    for (uint32_t i = 0; i < request->slot_count; i++)
        if (request->slots[i].given && operands[i].mem == workspace.mem &&
            ranges_meet(operands[i].offset, request->slots[i].bytes, workspace.offset, bytes))
            return CEK__INVALID(check, "operand %s overlaps the workspace", request->slots[i].name);
    return CEK_OK;
}

cek_status cek__request_operands(const cek_host *host, const cek__request *request, const cek_ref *operands,
                                 uint32_t count, cek_ref workspace, uint64_t workspace_bytes,
                                 cek__mem_bytes_fn *mem_bytes, const void *user)
{
    const cek__validation check = { host, (cek__request *)request, cek__kind_name(request->desc.op.kind) };
    uint64_t mask = request->desc.op.operands;
    if (!operands || count >= CEK_SLOT_MAX || mask >> count)
        return CEK__INVALID(&check, "%u operands do not cover the mask %#llx", operands ? count : 0,
                            (unsigned long long)mask);
    for (uint32_t i = 0; i < count; i++)
        if (i < request->slot_count)
            CEK__VALIDATE(operand_check(&check, i, operands[i], mem_bytes, user));
        else if (operands[i].mem || operands[i].offset)
            return CEK__INVALID(&check, "operand %u is given, but was not in the mask", i);
    for (uint32_t w = 0; w < request->slot_count; w++)
        for (uint32_t o = 0; request->slots[w].given && request->slots[w].written && o < request->slot_count; o++)
            if (o != w && request->slots[o].given)
                CEK__VALIDATE(overlap_check(&check, w, o, operands));
    return workspace_check(&check, operands, workspace, workspace_bytes, mem_bytes, user);
}
