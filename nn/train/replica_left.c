/* replica_left.c - what a replica's device leaves to another: the room there, and what is said of it. */
#include "core/base/alloc.h"
#include "core/base/log.h"
#include "core/device/gate.h"
#include "nn/train/replica_inside.h"

cek_status cek__replica_left_make(cek__replica *r, const cek__plan_needs *need)
{
    cek_status st;
    if (need->left_bytes == 0)
        return CEK_OK;
    if (!r->fallback.stream) {
        CEK_TRY(cek_stream_create(r->options.fallback, &r->fallback.stream));
        cek_stream_set_name(r->fallback.stream, "left to it");
    }
    CEK_TRY(cek_memory_alloc(r->options.fallback, need->left_bytes + need->left_workspace_bytes, CEK_MEMORY_ALONE,
                             &r->left));
    CEK_TRY(cek_pinned_alloc(r->device, need->left_bytes, (void **)&r->fallback.host));
    r->fallback.room = cek__ref_of(r->left);
out:
    return st;
}

/* A plan's workspace begins where its operands end: of fewer samples these leave more. */
bool cek__replica_left_fits(const cek__replica *r, const cek__plan_needs *need)
{
    return need->left_bytes <= r->room.left_bytes &&
           need->left_bytes + need->left_workspace_bytes <= r->room.left_bytes + r->room.left_workspace_bytes;
}

void cek__replica_left_drop(cek__replica *r)
{
    cek_pinned_free(r->device, r->fallback.host);
    cek_memory_free(r->left);
    r->left = NULL;
    r->fallback = (cek__fallback){ .stream = r->fallback.stream };
}

void cek__replica_left_close(cek__replica *r, bool drained)
{
    /* A thread was left there: it has what the call was given, operands on its own stack besides. */
    const bool occupied = r->fallback.stream && cek__gate_is_occupied(r->options.fallback);
    if (!drained || occupied) {
        cek_pinned_abandon(r->device, r->fallback.host);
        r->fallback.host = NULL;
    }
    cek__replica_left_drop(r);
    if (occupied)
        cek__abandon(r->fallback.stream);
    else
        cek_stream_free(r->fallback.stream);
    r->fallback.stream = NULL;
}

void cek__replica_left_tell(cek__replica *r, const sized_plan *p, const char *purpose)
{
    const char *device = cek_device_name(r->device), *other = cek_device_name(r->options.fallback);
    cek__left left = { 0 };
    size_t count = 0;
    for (int at = 0; cek__plan_next_left(p->plan, &at, &left); count++)
        cek__log(CEK_LOG_INFO, "%s: %s, %s: left to %s", device, left.node, left.operation, other);
    if (count > r->most_left)
        cek__log(CEK_LOG_WARN, "%s leaves %zu operation%s of %s to %s and waits for each, the last of them %s, %s",
                 device, count, count > 1 ? "s" : "", purpose, other, left.node, left.operation);
    r->most_left = count > r->most_left ? count : r->most_left;
}
