/* transfer.c - bytes from any device to any other.
 *
 * Owns: the choice of the way, and the bounce buffer of copies that neither side can reach. Ways, best first:
 *   same device          a copy on its queues, ordered by an event; nothing blocks
 *   a link               a copy by the plugin that has both; the calling thread waits for the source's work
 *   host memory          upload from, or download into, memory that one side has in the host's reach, where the other
 *                        is the host's processor too or the copy is small
 *   staging              two halves of a page-locked buffer, one being filled while the other is emptied: a card copies
 *                        to and from other memory in small pieces, while the caller waits inside its driver
 * Devices cannot wait for each other's events, so across devices the calling thread waits for the source's stream. */
#include <string.h>

#include "core/base/log.h"
#include "core/device/call.h"
#include "core/device/stream.h"

/* Half of the bounce buffer: long enough to hide what a copy costs at its start (some 10 us, worth 0.2 MB on a fast
 * link). */
enum { STAGE_BYTES = 4 << 20 };

/* What a driver takes over at once, wherever it lies. */
enum { SMALL_BYTES = 64 << 10 };

static uint8_t *host_reach(const cek_device *device, cek_ref ref)
{
    uint8_t *base = cek__mem_host(device, ref.mem);

    return base != NULL ? base + ref.offset : NULL;
}

/* ---- staging ---- */

/* One end of a copy; `reach`: where the host has its bytes. */
typedef struct side {
    cek_stream *stream;
    cek_ref ref;
    uint8_t *reach;
} side;

static cek_ref further(cek_ref ref, uint64_t bytes)
{
    return (cek_ref){ ref.mem, ref.offset + bytes };
}

/* The chunk is there when it returns. */
static cek_status chunk_fetch(const side *from, uint64_t done, uint64_t n, uint8_t *half)
{
    cek_status st;

    if (from->reach != NULL) {
        memcpy(half, from->reach + done, n);
        return CEK_OK;
    }
    CEK_TRY(cek_stream_download(from->stream, half, further(from->ref, done), n));
    return cek_stream_sync(from->stream, CEK_FOREVER);
out:
    return st;
}

static cek_status chunk_store(const side *to, uint64_t done, uint64_t n, const uint8_t *half, cek_marker *emptied)
{
    cek_status st;

    if (to->reach != NULL) {
        memcpy(to->reach + done, half, n);
        return CEK_OK;
    }
    CEK_TRY(cek_stream_upload(to->stream, further(to->ref, done), half, n));
    return cek_marker_record(emptied, to->stream);
out:
    return st;
}

static cek_status staged_chunks(const side *to, const side *from, uint64_t bytes, uint8_t *staging,
                                cek_marker *const *emptied)
{
    cek_status st = CEK_OK;

    for (uint64_t done = 0, turn = 0; done < bytes; turn++) {
        uint64_t n = bytes - done < STAGE_BYTES ? bytes - done : STAGE_BYTES;
        uint8_t *half = staging + (turn & 1) * STAGE_BYTES;

        if (turn >= 2 && to->reach == NULL)
            CEK_TRY(cek_marker_sync(emptied[turn & 1], CEK_FOREVER));
        CEK_TRY(chunk_fetch(from, done, n, half));
        CEK_TRY(chunk_store(to, done, n, half, emptied[turn & 1]));
        done += n;
    }
out:
    return st;
}

/* The device's buffer, or another where a copy has that one. */
static cek_status staging_take(cek_device *device, void **out)
{
    pthread_mutex_lock(&device->lock);
    *out = device->staging;
    device->staging = NULL;
    pthread_mutex_unlock(&device->lock);
    return *out != NULL ? CEK_OK : cek__pinned_alloc(device, 2 * (uint64_t)STAGE_BYTES, out);
}

static void staging_give(cek_device *device, void *staging)
{
    pthread_mutex_lock(&device->lock);
    if (device->staging == NULL) {
        device->staging = staging;
        staging = NULL;
    }
    pthread_mutex_unlock(&device->lock);
    cek__pinned_free(device, staging);
}

/* The buffer is page-locked for the side that is out of the host's reach, the source where both are. */
static cek_status copy_staged(const side *to, const side *from, uint64_t bytes)
{
    cek_status st;
    cek_device *device = from->reach != NULL ? to->stream->device : from->stream->device;
    cek_marker *emptied[2] = { NULL, NULL };
    void *staging = NULL;

    CEK_TRY(staging_take(device, &staging));
    CEK_TRY(cek_marker_create(to->stream->device, false, &emptied[0]));
    CEK_TRY(cek_marker_create(to->stream->device, false, &emptied[1]));
    st = staged_chunks(to, from, bytes, staging, emptied);
    if (st == CEK_OK)
        st = cek_stream_sync(to->stream, CEK_FOREVER);
out:
    if (st != CEK_OK && !(cek__stream_quiesce(from->stream) & cek__stream_quiesce(to->stream))) {
        cek__log(CEK_LOG_WARN, "%s: a copy to %s was lost with a device; so is its buffer", from->stream->device->name,
                 to->stream->device->name);
        cek__abandon(staging);
        staging = NULL;
    }
    staging_give(device, staging);
    cek_marker_free(emptied[0]);
    cek_marker_free(emptied[1]);
    return st;
}

/* ---- the ways ---- */

static cek_status copy_on_device(cek_stream *to, cek_ref dst, cek_stream *from, cek_ref src, uint64_t bytes)
{
    cek_status st;

    CEK_TRY(cek__stream_after(to, from));
    CEK_TRY(CEK__STREAM_COMMAND(to, copy, dst, src, bytes));
out:
    return st;
}

/* Whether a device should rather not be handed memory that is not page-locked. */
static bool wants_page_locked(const cek_device *device, uint64_t bytes)
{
    return bytes > SMALL_BYTES && device->plugin->host_alloc != NULL &&
           !(device->info.flags & (CEK_DEVICE_INLINE | CEK_DEVICE_UNIFIED_MEMORY));
}

static cek_status copy_across(cek_stream *to, cek_ref dst, cek_stream *from, cek_ref src, uint64_t bytes)
{
    cek_status st;
    side source = { from, src, NULL }, target = { to, dst, NULL };

    CEK_TRY(cek_stream_sync(from, CEK_FOREVER));
    if (to->device->module == from->device->module) {
        st = CEK__STREAM_COMMAND(to, copy, dst, src, bytes);
        if (st != CEK_UNSUPPORTED)
            return st;
    }
    if ((source.reach = host_reach(from->device, src)) != NULL) {
        if (!wants_page_locked(to->device, bytes))
            return cek_stream_upload(to, dst, source.reach, bytes);
    } else if ((target.reach = host_reach(to->device, dst)) != NULL) {
        CEK_TRY(cek_stream_sync(to, CEK_FOREVER)); /* the destination must be idle to be written from here */
        if (!wants_page_locked(from->device, bytes)) {
            CEK_TRY(cek_stream_download(from, target.reach, src, bytes));
            return cek_stream_sync(from, CEK_FOREVER);
        }
    }
    return copy_staged(&target, &source, bytes);
out:
    return st;
}

cek_status cek_stream_copy(cek_stream *to, cek_ref dst, cek_stream *from, cek_ref src, uint64_t bytes)
{
    cek_status st;

    CEK__NOT_NULL(to);
    CEK__NOT_NULL(from);
    if (bytes == 0)
        return CEK_OK;
    CEK_TRY(cek__memory_check(to->device, "copy", dst, bytes));
    CEK_TRY(cek__memory_check(from->device, "copy", src, bytes));
    if (to->device == from->device)
        return copy_on_device(to, dst, from, src, bytes);
    return copy_across(to, dst, from, src, bytes);
out:
    return st;
}

cek_status cek_stream_pull(cek_stream *to, cek_ref dst, const cek_memory *src, uint64_t offset, uint64_t bytes)
{
    cek_status st;
    cek_device *from;
    cek_ref ref;

    CEK__NOT_NULL(to);
    CEK__NOT_NULL(src);
    from = cek_memory_device(src);
    ref = cek_memory_ref(src);
    if (to->device->module != from->module)
        return cek__fail(CEK_UNSUPPORTED, "copy from %s to %s: no plugin drives both", from->name, to->device->name);
    if (offset > cek_memory_bytes(src) || bytes > cek_memory_bytes(src) - offset)
        return cek__fail(CEK_INVALID, "copy from %s to %s: %llu bytes at %llu of %llu", from->name, to->device->name,
                         (unsigned long long)bytes, (unsigned long long)offset,
                         (unsigned long long)cek_memory_bytes(src));
    ref.offset += offset;
    if (bytes == 0)
        return CEK_OK;
    CEK_TRY(cek__memory_check(to->device, "copy", dst, bytes));
    return CEK__STREAM_COMMAND(to, copy, dst, ref, bytes);
out:
    return st;
}
