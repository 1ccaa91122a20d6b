/* memory.c - checks of memory: sizes, bounds, fills, copies, updates, how structs grow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/check.h"

typedef void (*check_fn)(spec_state *s);
typedef struct named_check {
    const char *name;
    check_fn run;
    bool optional;
} named_check;

/* A struct of a later version of this header: one field more. */
typedef struct grown_mem_desc {
    cek_mem_desc known;
    uint64_t later;
} grown_mem_desc;

/* A plugin need not count. */
static void device_times(spec_state *s)
{
    cek_device_times times = { .size = sizeof times }, unsized = { .compute_ns = 7 }, later = times;
    if (!s->plugin->device_times || s->plugin->device_times(s->dev, &times) == CEK_UNSUPPORTED)
        return;
    EXPECT_OK(s->plugin->device_times(s->dev, &times));
    REQUIRE(times.compute_ns <= times.now_ns && times.copy_ns <= times.now_ns && times.exposed_ns <= times.copy_ns,
            "no part is longer than the whole");
    EXPECT_OK(s->plugin->device_times(s->dev, &later));
    REQUIRE(later.now_ns >= times.now_ns && later.compute_ns >= times.compute_ns, "times do not run backwards");
    EXPECT(CEK_INVALID, s->plugin->device_times(s->dev, &unsized), "with a size of 0");
    REQUIRE(unsized.compute_ns == 7, "what fails leaves the times alone");
    EXPECT(CEK_INVALID, s->plugin->device_times(s->dev, NULL), "with NULL");
    EXPECT(CEK_INVALID, s->plugin->device_times(NULL, &later), "with NULL");
}

static void device_status(spec_state *s)
{
    char text[64];
    memset(text, 'x', sizeof text);
    EXPECT_OK(s->plugin->device_status(s->dev, text, sizeof text));
    REQUIRE(memchr(text, 0, sizeof text), "device_status writes a NUL-terminated text");
    uint64_t free_bytes = 0, total_bytes = 0;
    EXPECT_OK(s->plugin->device_memory(s->dev, &free_bytes, &total_bytes));
    REQUIRE(total_bytes > 0, "device_memory tells total_bytes, or CEK_UNKNOWN");
    REQUIRE(free_bytes == CEK_UNKNOWN || total_bytes == CEK_UNKNOWN || free_bytes <= total_bytes,
            "no more bytes are free than there are");
    spec_buffer b;
    if (spec_buffer_make(s, 32 << 20, 0, &b)) {
        EXPECT_OK(s->plugin->device_memory(s->dev, &free_bytes, &total_bytes));
        REQUIRE(total_bytes >= b.total, "device_memory counts bytes, of which there are those that were allocated");
    }
    spec_buffer_free(s, &b);
    device_times(s);
}

static void alloc_refusals(spec_state *s)
{
    cek_mem *mem = (cek_mem *)s;
    cek_mem_desc zero = { .size = sizeof zero }, unsized = { .bytes = 256 };
    cek_mem_desc flags = { .size = sizeof flags, .flags = 1u << 31, .bytes = 256 };
    const uint64_t huge[] = { (uint64_t)1 << 60, INT64_MAX, (uint64_t)1 << 63, UINT64_MAX };
    EXPECT(CEK_INVALID, s->plugin->mem_alloc(s->dev, &zero, &mem), "of 0 bytes");
    REQUIRE(!mem, "what fails leaves its output NULL");
    REQUIRE(!s->target->error_text || *s->target->error_text(s->target->user),
            "what fails calls host->fail with a text");
    mem = (cek_mem *)s;
    EXPECT(CEK_INVALID, s->plugin->mem_alloc(s->dev, &unsized, &mem), "with a size of 0");
    REQUIRE(!mem, "what fails leaves its output NULL");
    EXPECT(CEK_UNSUPPORTED, s->plugin->mem_alloc(s->dev, &flags, &mem), "with an unknown flag");
    REQUIRE(!mem, "what fails leaves its output NULL");
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        cek_mem_desc desc = { .size = sizeof desc, .bytes = huge[i] };
        mem = (cek_mem *)s;
        EXPECT(CEK_OUT_OF_MEMORY, s->plugin->mem_alloc(s->dev, &desc, &mem), "of %llu bytes",
               (unsigned long long)huge[i]);
        REQUIRE(!mem, "what fails leaves its output NULL");
    }
    EXPECT_OK(s->plugin->device_status(s->dev, NULL, 0));
}

static void alloc_grown(spec_state *s)
{
    cek_mem *mem = NULL;
    grown_mem_desc desc = { .known = { .size = sizeof desc, .bytes = 4096 }, .later = 0 };
    if (EXPECT_OK(s->plugin->mem_alloc(s->dev, &desc.known, &mem)))
        s->plugin->mem_free(mem);
    desc.later = 1;
    EXPECT(CEK_UNSUPPORTED, s->plugin->mem_alloc(s->dev, &desc.known, &mem), "with a non-zero byte beyond the struct");
    REQUIRE(!mem, "what fails leaves its output NULL");
}

static void free_null(spec_state *s)
{
    s->plugin->mem_free(NULL);
    s->plugin->queue_destroy(NULL);
    s->plugin->event_destroy(NULL);
    s->plugin->device_close(NULL);
    s->plugin->destroy(NULL);
    if (s->plugin->op_destroy)
        s->plugin->op_destroy(NULL);
    if (s->plugin->cmdbuf_destroy)
        s->plugin->cmdbuf_destroy(NULL);
}

/* Any byte offset and size; what lies around stays. */
static void round_trips(spec_state *s)
{
    static const uint64_t sizes[] = { 1, 3, 255, 256, 257, 4099, 70001 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        spec_buffer b;
        uint64_t n = sizes[i];
        uint8_t *data = spec_calloc(s, 2, n), *back = data ? data + n : NULL;
        bool ok = data && spec_buffer_make(s, n, 1, &b);
        for (uint64_t k = 0; ok && k < n; k++)
            data[k] = (uint8_t)(k * 7 + i);
        if (ok && spec_buffer_upload(s, &b, s->queue) &&
            EXPECT_OK(s->plugin->upload(s->queue, spec_buffer_ref(&b), data, n)) &&
            EXPECT_OK(s->plugin->download(s->queue, back, spec_buffer_ref(&b), n)) &&
            spec_buffer_download(s, &b, s->queue) && spec_sync(s, s->queue)) {
            REQUIRE(!memcmp(back, data, n), "download gives back what upload was given");
            REQUIRE(!memcmp(spec_buffer_contents(&b), data, n), "memory holds what was uploaded");
            spec_buffer_guards(s, &b, "upload");
        }
        if (data)
            spec_buffer_free(s, &b);
        free(data);
    }
}

/* Ranges that leave their memory, in every way; afterwards the queue works. */
static void bounds(spec_state *s)
{
    const cek_plugin *p = s->plugin;
    cek_queue *q = s->queue;
    spec_buffer b;
    uint8_t data[64] = { 0 };
    if (spec_buffer_make(s, 512, 0, &b)) {
        cek_ref end = { b.mem, b.total - 4 }, outside = { b.mem, b.total + 256 }, wrap = { b.mem, UINT64_MAX - 3 },
                none = { NULL, 0 };
        cek_ref start = { b.mem, 0 };
        EXPECT(CEK_INVALID, p->upload(q, end, data, 8), "to a range that ends behind its memory");
        EXPECT(CEK_INVALID, p->upload(q, outside, data, 4), "to a range behind its memory");
        EXPECT(CEK_INVALID, p->upload(q, wrap, data, 8), "to a range that wraps around");
        EXPECT(CEK_INVALID, p->upload(q, none, data, 8), "without memory");
        EXPECT(CEK_INVALID, p->download(q, data, end, 8), "from a range that ends behind its memory");
        EXPECT(CEK_INVALID, p->download(q, data, wrap, 8), "from a range that wraps around");
        EXPECT(CEK_INVALID, p->download(q, data, none, 8), "without memory");
        EXPECT(CEK_INVALID, p->fill(q, end, 0, 4, 8), "of a range that ends behind its memory");
        EXPECT(CEK_INVALID, p->fill(q, wrap, 0, 1, 8), "of a range that wraps around");
        EXPECT(CEK_INVALID, p->copy(q, end, start, 8), "to a range that ends behind its memory");
        EXPECT(CEK_INVALID, p->copy(q, start, end, 8), "from a range that ends behind its memory");
        EXPECT(CEK_INVALID, p->update(q, end, data, 8), "of a range that ends behind its memory");
        EXPECT(CEK_INVALID, p->update(q, none, data, 8), "without memory");
        EXPECT_OK(p->queue_status(q, NULL, 0));
        if (spec_buffer_upload(s, &b, q) && spec_buffer_download(s, &b, q) && spec_sync(s, q))
            REQUIRE(!memcmp(b.image, b.before, b.total), "a refused command has touched nothing");
    }
    spec_buffer_free(s, &b);
}

static void zero_bytes(spec_state *s)
{
    cek_ref none = { NULL, 0 };
    EXPECT_OK(s->plugin->upload(s->queue, none, NULL, 0));
    EXPECT_OK(s->plugin->download(s->queue, NULL, none, 0));
    EXPECT_OK(s->plugin->copy(s->queue, none, none, 0));
    EXPECT_OK(s->plugin->fill(s->queue, none, 0, 4, 0));
    EXPECT_OK(s->plugin->update(s->queue, none, NULL, 0));
    spec_buffer b;
    if (spec_buffer_make(s, 16, 0, &b)) {
        const cek_ref end = { b.mem, b.total };
        EXPECT_OK(s->plugin->upload(s->queue, end, NULL, 0));
        EXPECT_OK(s->plugin->download(s->queue, NULL, end, 0));
        EXPECT_OK(s->plugin->copy(s->queue, end, end, 0));
        EXPECT_OK(s->plugin->fill(s->queue, end, 0, 4, 0));
        EXPECT_OK(s->plugin->update(s->queue, end, NULL, 0));
    }
    spec_sync(s, s->queue);
    spec_buffer_free(s, &b);
}

static void fills(spec_state *s)
{
    spec_buffer b;
    if (spec_buffer_make(s, 1024, 0, &b) && spec_buffer_upload(s, &b, s->queue)) {
        cek_ref at = spec_buffer_ref(&b);
        uint32_t word = 0;
        uint16_t half = 0;
        EXPECT_OK(s->plugin->fill(s->queue, at, 0xa1b2c3d4u, 4, 400));
        EXPECT_OK(s->plugin->fill(s->queue, (cek_ref){ at.mem, at.offset + 402 }, 0x99995566u, 2, 6));
        EXPECT_OK(s->plugin->fill(s->queue, (cek_ref){ at.mem, at.offset + 409 }, 0x99999977u, 1, 3));
        EXPECT(CEK_INVALID, s->plugin->fill(s->queue, at, 0, 3, 6), "with a pattern of 3 bytes");
        EXPECT(CEK_INVALID, s->plugin->fill(s->queue, at, 0, 8, 8), "with a pattern of 8 bytes");
        EXPECT(CEK_INVALID, s->plugin->fill(s->queue, at, 0, 2, 3), "of 3 bytes with a pattern of 2");
        EXPECT(CEK_INVALID, s->plugin->fill(s->queue, (cek_ref){ at.mem, at.offset + 1 }, 0, 2, 4),
               "at an odd offset with a pattern of 2");
        EXPECT(CEK_INVALID, s->plugin->fill(s->queue, at, 0, 4, 6), "of 6 bytes with a pattern of 4");
        EXPECT(CEK_INVALID, s->plugin->fill(s->queue, (cek_ref){ at.mem, at.offset + 2 }, 0, 4, 8),
               "at an offset that is no multiple of the pattern");
        if (spec_buffer_download(s, &b, s->queue) && spec_sync(s, s->queue)) {
            const uint8_t *bytes = spec_buffer_contents(&b);
            for (uint32_t i = 0; i < 400; i += 4)
                REQUIRE((memcpy(&word, bytes + i, 4), word == 0xa1b2c3d4u), "fill repeats a pattern of 4 bytes");
            for (uint32_t i = 402; i < 408; i += 2)
                REQUIRE((memcpy(&half, bytes + i, 2), half == 0x5566), "fill repeats the low 2 bytes");
            for (uint32_t i = 409; i < 412; i++)
                REQUIRE(bytes[i] == 0x77, "fill repeats the low byte");
            REQUIRE(bytes[400] == 0xff && bytes[401] == 0xff && bytes[408] == 0xff && bytes[412] == 0xff &&
                        bytes[1023] == 0xff,
                    "fill writes its range alone");
            spec_buffer_guards(s, &b, "fill");
        }
    }
    spec_buffer_free(s, &b);
}

static void copies(spec_state *s)
{
    spec_buffer a, b = { 0 };
    if (spec_buffer_make(s, 5000, 3, &a) && spec_buffer_make(s, 6000, 0, &b)) {
        for (uint32_t i = 0; i < 5000; i++)
            spec_buffer_contents(&a)[i] = (uint8_t)(i % 251);
        cek_ref src = spec_buffer_ref(&a), dst = { b.mem, b.offset + 1 };
        if (spec_buffer_upload(s, &a, s->queue) && spec_buffer_upload(s, &b, s->queue) &&
            EXPECT_OK(s->plugin->copy(s->queue, dst, src, 5000)) &&
            EXPECT_OK(s->plugin->copy(s->queue, (cek_ref){ b.mem, b.offset + 5500 }, (cek_ref){ b.mem, b.offset + 1 },
                                      100)) &&
            EXPECT(CEK_INVALID,
                   s->plugin->copy(s->queue, (cek_ref){ b.mem, b.offset + 50 }, (cek_ref){ b.mem, b.offset }, 100),
                   "of ranges that overlap") &&
            EXPECT(CEK_INVALID,
                   s->plugin->copy(s->queue, (cek_ref){ b.mem, b.offset }, (cek_ref){ b.mem, b.offset + 50 }, 100),
                   "of ranges that overlap, the source behind") &&
            EXPECT(CEK_INVALID, s->plugin->copy(s->queue, dst, dst, 100), "to where the source lies") &&
            EXPECT_OK(s->plugin->copy(s->queue, (cek_ref){ b.mem, b.offset + 5600 },
                                      (cek_ref){ b.mem, b.offset + 5500 }, 100)) && /* side by side */
            spec_buffer_download(s, &b, s->queue) &&
            spec_sync(s, s->queue)) {
            REQUIRE(!memcmp(spec_buffer_contents(&b) + 1, a.before + a.offset, 5000), "copy copies, at any offset");
            REQUIRE(!memcmp(spec_buffer_contents(&b) + 5500, a.before + a.offset, 100),
                    "copy copies within one memory");
            REQUIRE(spec_buffer_contents(&b)[0] == 0xff && spec_buffer_contents(&b)[5001] == 0xff,
                    "copy writes its range alone");
            spec_buffer_guards(s, &b, "copy");
        }
    }
    spec_buffer_free(s, &a);
    spec_buffer_free(s, &b);
}

static void updates(spec_state *s)
{
    spec_buffer b;
    uint32_t data[1025];
    for (uint32_t i = 0; i < 1025; i++)
        data[i] = i * 2654435761u;
    if (spec_buffer_make(s, 8192, 0, &b) && spec_buffer_upload(s, &b, s->queue)) {
        cek_ref at = spec_buffer_ref(&b);
        EXPECT_OK(s->plugin->update(s->queue, at, data, 4096));
        memset(data, 0, sizeof data); /* it was copied before the call returned */
        data[0] = 77;
        EXPECT_OK(s->plugin->update(s->queue, (cek_ref){ at.mem, at.offset + 4100 }, data, 4));
        EXPECT(CEK_INVALID, s->plugin->update(s->queue, at, data, 4100), "of 4100 bytes");
        EXPECT(CEK_INVALID, s->plugin->update(s->queue, at, data, 6), "of 6 bytes");
        EXPECT(CEK_INVALID, s->plugin->update(s->queue, (cek_ref){ at.mem, at.offset + 2 }, data, 8),
               "at an offset of 2");
        if (spec_buffer_download(s, &b, s->queue) && spec_sync(s, s->queue)) {
            uint32_t word;
            for (uint32_t i = 0; i < 1024; i++)
                REQUIRE((memcpy(&word, spec_buffer_contents(&b) + 4 * i, 4), word == i * 2654435761u),
                        "update copies its source before it returns");
            REQUIRE((memcpy(&word, spec_buffer_contents(&b) + 4100, 4), word == 77),
                    "update writes where it was told to");
            REQUIRE(spec_buffer_contents(&b)[4096] == 0xff && spec_buffer_contents(&b)[4104] == 0xff,
                    "update writes its range alone");
            spec_buffer_guards(s, &b, "update");
        }
    }
    spec_buffer_free(s, &b);
}

/* An address of the host's, where there is one, shows what the queue wrote and the other way round.
 */
static void host_pointer(spec_state *s)
{
    cek_device_info info = { .size = sizeof info };
    s->plugin->device_info(s->target->instance, s->target->index, &info);
    spec_buffer b;
    if (spec_buffer_make(s, 4096, 0, &b) && spec_buffer_upload(s, &b, s->queue) && spec_sync(s, s->queue)) {
        uint8_t *address = s->plugin->mem_host_ptr(b.mem);
        if (!address) {
            REQUIRE(!(info.flags & CEK_DEVICE_UNIFIED_MEMORY),
                    "CEK_DEVICE_UNIFIED_MEMORY says that mem_host_ptr works");
            s->unsupported = !(info.flags & CEK_DEVICE_UNIFIED_MEMORY);
        } else {
            REQUIRE((uintptr_t)address % CEK_ALIGNMENT == 0, "memory begins at a multiple of 256 bytes");
            REQUIRE(!memcmp(address, b.before, b.total), "mem_host_ptr shows what the queue wrote");
            address[b.offset + 5] = 0x5a;
            if (spec_buffer_download(s, &b, s->queue) && spec_sync(s, s->queue))
                REQUIRE(spec_buffer_contents(&b)[5] == 0x5a, "the queue sees what the host wrote through mem_host_ptr");
        }
    }
    spec_buffer_free(s, &b);
}

static void mapping(spec_state *s)
{
    if (!s->plugin->mem_map || !s->plugin->mem_unmap) {
        s->unsupported = true;
        return;
    }
    spec_buffer b;
    void *address = NULL;
    if (spec_buffer_make(s, 4096, 0, &b) && spec_buffer_upload(s, &b, s->queue) && spec_sync(s, s->queue)) {
        cek_status st = s->plugin->mem_map(b.mem, CEK_MAP_READ | CEK_MAP_WRITE, &address);
        s->unsupported = st == CEK_UNSUPPORTED;
        if (!s->unsupported && spec_expect(s, "mem_map", st, CEK_OK, "%s", "")) {
            void *again = address;
            EXPECT(CEK_INVALID, s->plugin->mem_map(b.mem, CEK_MAP_READ, &again), "of memory that is mapped already");
            REQUIRE(!again, "what fails leaves its output NULL");
            REQUIRE(!memcmp(address, b.before, b.total), "mem_map shows what the queue wrote");
            ((uint8_t *)address)[b.offset] = 0x11;
            EXPECT_OK(s->plugin->mem_unmap(b.mem));
            EXPECT(CEK_INVALID, s->plugin->mem_unmap(b.mem), "of memory that is not mapped");
            if (spec_buffer_download(s, &b, s->queue) && spec_sync(s, s->queue))
                REQUIRE(spec_buffer_contents(&b)[0] == 0x11, "the queue sees what the host wrote through mem_map");
            EXPECT(CEK_UNSUPPORTED, s->plugin->mem_map(b.mem, 1u << 31, &address), "with an unknown flag");
        }
    }
    spec_buffer_free(s, &b);
}

static void pinned(spec_state *s)
{
    void *host = NULL;
    if (!s->plugin->host_alloc || !s->plugin->host_free) {
        s->unsupported = true;
        return;
    }
    cek_status st = s->plugin->host_alloc(s->dev, 5000, &host);
    s->unsupported = st == CEK_UNSUPPORTED;
    if (s->unsupported || !spec_expect(s, "host_alloc", st, CEK_OK, "%s", ""))
        return;
    REQUIRE((uintptr_t)host % 256 == 0, "host_alloc is aligned to 256 bytes");
    spec_buffer b;
    memset(host, 0x3c, 5000);
    if (spec_buffer_make(s, 5000, 0, &b) && spec_buffer_upload(s, &b, s->queue) &&
        EXPECT_OK(s->plugin->upload(s->queue, spec_buffer_ref(&b), host, 5000)) &&
        spec_buffer_download(s, &b, s->queue) && spec_sync(s, s->queue))
        REQUIRE(!memcmp(spec_buffer_contents(&b), host, 5000), "upload from host_alloc's memory writes what is there");
    spec_buffer_free(s, &b);
    s->plugin->host_free(s->dev, host);
    s->plugin->host_free(s->dev, NULL);
}

/* Memory in the middle of pages, which is registered twice in turn; what is written into it meanwhile is
 * what comes over. */
static void registered(spec_state *s)
{
    enum { BYTES = 70000, BEFORE = 1000 };
    unsigned char *host = s->plugin->host_register ? malloc(BEFORE + BYTES) : NULL;
    if (!host) {
        s->unsupported = true;
        return;
    }
    spec_buffer b;
    const bool made = spec_buffer_make(s, BYTES, 0, &b);
    for (int turn = 0; made && turn < 2 && !s->unsupported; turn++) {
        cek_status st = s->plugin->host_register(s->dev, host + BEFORE, BYTES);
        s->unsupported = st == CEK_UNSUPPORTED || st == CEK_OUT_OF_MEMORY;
        if (s->unsupported || !spec_expect(s, "host_register", st, CEK_OK, "%s", ""))
            break;
        memset(host + BEFORE, 0x51 + turn, BYTES);
        if (EXPECT_OK(s->plugin->upload(s->queue, spec_buffer_ref(&b), host + BEFORE, BYTES)) &&
            spec_sync(s, s->queue)) {
            memset(host + BEFORE, 0, BYTES);
            if (EXPECT_OK(s->plugin->download(s->queue, host + BEFORE, spec_buffer_ref(&b), BYTES)) &&
                spec_sync(s, s->queue))
                REQUIRE(host[BEFORE] == 0x51 + turn && !memcmp(host + BEFORE, host + BEFORE + 1, BYTES - 1),
                        "registered memory goes to the device and comes back");
        }
        s->plugin->host_unregister(s->dev, host + BEFORE);
    }
    if (!s->unsupported)
        EXPECT(CEK_INVALID, s->plugin->host_register(s->dev, host, 0), "0 bytes");
    spec_buffer_free(s, &b);
    free(host);
}

/* Memory of our own under its other name: what is written through one is read through the other. */
static void foreign(spec_state *s)
{
    enum { BYTES = 5000 };
    const cek_plugin *p = s->plugin;
    unsigned char out[BYTES], back[BYTES];
    spec_buffer b;
    cek_mem *again = NULL;
    cek_foreign place = { .size = sizeof place, .kind = CEK_FOREIGN_HOST };
    s->unsupported = !p->mem_import;
    if (s->unsupported || !spec_buffer_make(s, BYTES, 0, &b))
        return;
    const cek_ref ref = spec_buffer_ref(&b);
    place.address = (uint64_t)(uintptr_t)p->mem_host_ptr(ref.mem);
    cek_status st = place.address ? CEK_OK : p->mem_export ? p->mem_export(ref.mem, &place) : CEK_UNSUPPORTED;
    place.bytes = ref.offset + BYTES;
    if (!st)
        st = p->mem_import(s->dev, &place, &again);
    s->unsupported = st == CEK_UNSUPPORTED;
    for (int turn = 0; !s->unsupported && turn < 2; turn++) {
        const cek_ref other = { again, ref.offset }, from = turn ? other : ref, to = turn ? ref : other;
        memset(out, 0x35 + turn, BYTES);
        if (spec_expect(s, "mem_import", st, CEK_OK, "%s", "") && EXPECT_OK(p->upload(s->queue, from, out, BYTES)) &&
            spec_sync(s, s->queue) && EXPECT_OK(p->download(s->queue, back, to, BYTES)) && spec_sync(s, s->queue))
            REQUIRE(!memcmp(out, back, BYTES), "both names are of the same memory");
    }
    p->mem_free(again);
    if (!s->unsupported && EXPECT_OK(p->download(s->queue, back, ref, BYTES)) && spec_sync(s, s->queue))
        REQUIRE(!memcmp(out, back, BYTES), "memory stays its owner's behind mem_free");
    cek_foreign none = place, odd = place, strange = place;
    none.bytes = 0;
    odd.address += 1;
    strange.kind = 99;
    if (!s->unsupported) {
        EXPECT(CEK_INVALID, p->mem_import(s->dev, &none, &again), "0 bytes");
        EXPECT(CEK_INVALID, p->mem_import(s->dev, &odd, &again), "an odd address");
        EXPECT(CEK_UNSUPPORTED, p->mem_import(s->dev, &strange, &again), "an unknown kind of memory");
        strange = place;
        strange.reserved = 1;
        EXPECT(CEK_UNSUPPORTED, p->mem_import(s->dev, &strange, &again), "a reserved field");
    }
    spec_buffer_free(s, &b);
}

void spec_check_memory(spec_state *s)
{
    static const named_check checks[] = {
        { "device status", device_status, false },
        { "alloc refusals", alloc_refusals, false },
        { "alloc with a newer descriptor", alloc_grown, false },
        { "free of NULL", free_null, false },
        { "round trips", round_trips, false },
        { "bounds", bounds, false },
        { "zero bytes", zero_bytes, false },
        { "fills", fills, false },
        { "copies", copies, false },
        { "updates", updates, false },
        { "host pointer", host_pointer, true },
        { "map", mapping, true },
        { "pinned host memory", pinned, true },
        { "registered host memory", registered, true },
        { "foreign memory", foreign, true },
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (spec_check_begin(s, "memory", 0, !checks[i].optional, "%s", checks[i].name)) {
            checks[i].run(s);
            spec_check_end(s);
        }
    }
}
