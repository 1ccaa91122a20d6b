/* SPDX-License-Identifier: MIT
 * lower_gather.c - gather and scatter_add. */
#include "backends/gpu/lower.h"

/* The bits of what gather writes where the index names no row. */
static const char *nothing_of(cek_dtype type)
{
    return type == CEK_F32 ? "0x7fc00000u" : type == CEK_F16 ? "0x7e00u" : type == CEK_BF16 ? "0x7fc0u" : "0u";
}

static cek_k_gather gather_args(const cek_gather_desc *desc)
{
    return (cek_k_gather){ .rows = desc->rows,
                           .count = desc->count,
                           .columns = desc->columns,
                           .index_batch = desc->flags & CEK_GATHER_SHARED ? 0 : desc->count };
}

cek_status cek__gpu_lower_gather(cek_op *op)
{
    const cek_gather_desc *desc = &op->request.desc.gather;
    const uint32_t bytes = cek__type_bytes(desc->type);
    const cek__gpu_place buffers[] = { { CEK_GATHER_TABLE, 0 }, { CEK_GATHER_INDEX, 0 }, { CEK_GATHER_Y, 0 } };
    cek_k_gather a = gather_args(desc);
    char defines[CEK__GPU_DEFINES];
    a.elements = desc->batch * desc->count * desc->columns;
    cek__gpu_defines(op->dev, defines, "#define GATHER_AS %s\n#define NOTHING %s\n",
                     bytes == 1   ? "cek_u8"
                     : bytes == 2 ? "cek_u16"
                                  : "cek_u32",
                     nothing_of(desc->type));
    cek__gpu_step_fill(cek__gpu_step_add(op, "gather.cl", defines, "gather", cek__gpu_items(op->dev, a.elements)),
                       buffers, 3, &a, sizeof a);
    return op->failure;
}

enum { FEW = 64 }; /* elements, that look for each other sooner than one walks along them all */

/* Who names the same row as who. On a processor one work-item walks along a batch, since to look for each other takes a
 * time with the square of `count`; on a GPU all do that at once, as many as a watchdog allows. */
static void links_add(cek_op *op, cek_k_gather a, cek__gpu_place links, const char *defines)
{
    const cek__gpu_place index = { CEK_SCATTER_ADD_INDEX, 0 };
    const uint64_t all = op->request.slots[CEK_SCATTER_ADD_INDEX].bytes / sizeof(int32_t);
    const uint64_t work = op->dev->traits.launch_work, most = work ? work / a.count + 1 : all;

    if (op->dev->traits.vector_width && a.count > FEW) {
        a.elements = all / a.count;
        const cek__gpu_place latest = cek__gpu_workspace(op, a.elements * a.rows * sizeof(int32_t));
        cek__gpu_step_fill(cek__gpu_step_add(op, "gather.cl", defines, "scatter_walk", a.elements),
                           (const cek__gpu_place[]){ index, links, latest }, 3, &a, sizeof a);
        return;
    }
    for (a.first = 0; a.first < all; a.first += most) {
        a.elements = all - a.first < most ? all - a.first : most;
        cek__gpu_step_fill(cek__gpu_step_add(op, "gather.cl", defines, "scatter_links", a.elements),
                           (const cek__gpu_place[]){ index, links }, 2, &a, sizeof a);
    }
}

cek_status cek__gpu_lower_scatter_add(cek_op *op)
{
    const cek_gather_desc *desc = &op->request.desc.gather;
    const cek__gpu_place index = { CEK_SCATTER_ADD_INDEX, 0 }, table = { CEK_SCATTER_ADD_DTABLE, 0 };
    cek_k_gather a = gather_args(desc);
    char defines[CEK__GPU_DEFINES];
    if (desc->count > INT32_MAX)
        return cek__host_fail(&op->dev->instance->host, CEK_UNSUPPORTED,
                              "scatter_add: an index of more than 2^31 elements");
    cek__gpu_defines(op->dev, defines, "#define TYPE %s\n", cek__gpu_type(desc->type));

    const cek__gpu_place links = cek__gpu_workspace(op, op->request.slots[CEK_SCATTER_ADD_INDEX].bytes * 2);
    links_add(op, a, links, defines);
    if (!cek__request_accumulates(&op->request, CEK_SCATTER_ADD_DTABLE)) {
        a.elements = desc->batch * desc->rows * desc->columns;
        cek__gpu_step_fill(cek__gpu_step_add(op, "gather.cl", defines, "scatter_zero",
                                             cek__gpu_items(op->dev, a.elements)),
                           &table, 1, &a, sizeof a);
    }
    a.elements = desc->batch * desc->count * desc->columns;
    cek__gpu_step_fill(cek__gpu_step_add(op, "gather.cl", defines, "scatter_add", cek__gpu_items(op->dev, a.elements)),
                       (const cek__gpu_place[]){ { CEK_SCATTER_ADD_DY, 0 }, index, links, table }, 4, &a, sizeof a);
    return op->failure;
}
