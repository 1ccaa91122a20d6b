/* harness.c - see harness.h. */
#include "harness.h"

#include <dlfcn.h>
#include <stdio.h>

enum { GUARD = 512 };

/* --- plugins ---------------------------------------------------------------------------------- */

static const char *setting(void *user, const char *key)
{
    const backend *b = user;

    for (const char *const *s = b->settings; s && *s; s += 2)
        if (!strcmp(s[0], key))
            return s[1];
    return NULL;
}

static void failed(void *user, cek_status status, const char *text)
{
    backend *b = user;

    snprintf(b->failure, sizeof b->failure, "%u: %s", status, text);
}

cek_status backend_create(backend *b, const char *name, const char *const *settings)
{
    const char *folder = getenv("TEST_PLUGIN_DIR");
    char path[4096];
    cek_plugin_query_fn query;
    const cek_plugin *p;

    memset(b, 0, sizeof *b);
    snprintf(path, sizeof path, "%s/%s.so", folder ? folder : "plugins/.libs", name);
    b->so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(b->so != NULL, "%s", b->so ? "" : dlerror());
    *(void **)&query = dlsym(b->so, CEK_PLUGIN_SYMBOL);
    ck_assert_ptr_nonnull(query);
    p = query(CEK_ABI);
    ck_assert_ptr_nonnull(p);
    memcpy(&b->p, p, p->size < sizeof b->p ? p->size : sizeof b->p);
    b->settings = settings;
    b->host = (cek_host){ .size = sizeof b->host, .abi = CEK_ABI, .user = b, .fail = failed, .option = setting };
    return b->p.create(&b->host, &b->instance);
}

void backend_open(backend *b, const char *name, const char *const *settings)
{
    ck_assert_uint_eq(backend_create(b, name, settings), CEK_OK);
    ck_assert_uint_eq(b->p.device_open(b->instance, 0, NULL, &b->dev), CEK_OK);
    ck_assert_uint_eq(b->p.queue_create(b->dev, NULL, &b->queue), CEK_OK);
}

void backend_close(backend *b)
{
    if (b->queue)
        b->p.queue_destroy(b->queue);
    if (b->dev)
        b->p.device_close(b->dev);
    if (b->instance)
        b->p.destroy(b->instance);
    memset(b, 0, sizeof *b);
}

/* --- forms ------------------------------------------------------------------------------------ */

/* Every instruction set alone, then with three threads, of which two share a core on a small
 * machine. */
static const char *const all_forms[][5] = {
    { "cpu_isa", "portable", "cpu_threads", "1", NULL },   { "cpu_isa", "portable", "cpu_threads", "3", NULL },
    { "cpu_isa", "neon", "cpu_threads", "1", NULL },       { "cpu_isa", "neon", "cpu_threads", "3", NULL },
    { "cpu_isa", "avx2", "cpu_threads", "1", NULL },       { "cpu_isa", "avx2", "cpu_threads", "3", NULL },
    { "cpu_isa", "avx512", "cpu_threads", "1", NULL },     { "cpu_isa", "avx512", "cpu_threads", "3", NULL },
    { "cpu_isa", "avx512bf16", "cpu_threads", "1", NULL }, { "cpu_isa", "avx512bf16", "cpu_threads", "3", NULL },
    { "cpu_isa", "amx", "cpu_threads", "1", NULL },        { "cpu_isa", "amx", "cpu_threads", "3", NULL },
    { "cpu_isa", "amx-model", "cpu_threads", "1", NULL },  { "cpu_isa", "amx-model", "cpu_threads", "3", NULL },
};
enum { ALL_FORMS = sizeof all_forms / sizeof all_forms[0] };

static backend forms[ALL_FORMS], the_reference;
static int forms_open_count;

void forms_open(void)
{
    backend_open(&the_reference, "reference", NULL);
    forms_open_count = 0;
    for (int i = 0; i < ALL_FORMS; i++) {
        backend b;
        const cek_status st = backend_create(&b, "cpu", all_forms[i]);

        ck_assert(st == CEK_OK || (st == CEK_INVALID && strcmp(all_forms[i][1], "portable")));
        if (st == CEK_OK) {
            backend_close(&b);
            backend_open(&forms[forms_open_count++], "cpu", all_forms[i]);
        }
    }
    ck_assert_int_ge(forms_open_count, 2);
}

void forms_close(void)
{
    for (int i = 0; i < forms_open_count; i++)
        backend_close(&forms[i]);
    backend_close(&the_reference);
}

/* clang-format off */
int form_count(void) { return forms_open_count; }
backend *form(int i) { return &forms[i]; }
backend *reference(void) { return &the_reference; }
/* clang-format on */

/* --- running ---------------------------------------------------------------------------------- */

static cek_ref place(backend *b, const void *data, uint64_t bytes, uint64_t shift)
{
    const cek_mem_desc want = { .size = sizeof want, .bytes = bytes + 2 * GUARD + CEK_ALIGNMENT };
    cek_mem *mem;
    unsigned char *at;

    ck_assert_uint_eq(b->p.mem_alloc(b->dev, &want, &mem), CEK_OK);
    at = b->p.mem_host_ptr(mem);
    memset(at, 0xa5, want.bytes);
    if (data)
        memcpy(at + GUARD + shift, data, bytes);
    return (cek_ref){ mem, GUARD + shift };
}

static void take_back(backend *b, cek_ref ref, void *data, uint64_t bytes)
{
    const unsigned char *at = b->p.mem_host_ptr(ref.mem);

    for (uint64_t i = 0; i < ref.offset; i++)
        must(at[i] == 0xa5, "written %d bytes before the operand", (int)(ref.offset - i));
    for (uint64_t i = ref.offset + bytes; i < bytes + 2 * GUARD + CEK_ALIGNMENT; i++)
        must(at[i] == 0xa5, "written %d bytes behind the operand", (int)(i - ref.offset - bytes));
    if (data)
        memcpy(data, at + ref.offset, bytes);
    b->p.mem_free(ref.mem);
}

/* Of packed weights nothing else is left to be read. */
static void prepack(backend *b, const cek_op *op, const cek_ref *refs, uint32_t slots, const operand *plain,
                    const operand *packed)
{
    const cek_ref from = refs[plain->slot];
    const cek_status st = b->p.op_prepack(b->queue, op, refs, slots, refs[packed->slot]);

    ck_assert_msg(st == CEK_OK, "%s", b->failure);
    ck_assert_uint_eq(b->p.queue_sync(b->queue, CEK_FOREVER), CEK_OK);
    memset((unsigned char *)b->p.mem_host_ptr(from.mem) + from.offset, 0xff, plain->bytes);
}

cek_status run_op(backend *b, const cek_op_desc *desc, operand *operands, int count, uint64_t shift)
{
    cek_op_info info = { .size = sizeof info };
    cek_ref refs[16] = { { NULL, 0 } }, workspace = { NULL, 0 };
    uint32_t slots = 0;
    cek_op *op;
    cek_status st = b->p.op_create(b->dev, desc, &info, &op);

    if (st != CEK_OK)
        return st;
    for (int i = 0; i < count; i++) {
        slots = operands[i].slot >= slots ? operands[i].slot + 1 : slots;
        if (operands[i].use == PACKED)
            operands[i].bytes = info.prepack_bytes;
        refs[operands[i].slot] = operands[i].use == IN_PLACE ? refs[operands[i - 1].slot]
                                                             : place(b, operands[i].data, operands[i].bytes, shift);
    }
    for (int i = 0; i < count; i++)
        if (operands[i].use == PACKED)
            prepack(b, op, refs, slots, &operands[i - 1], &operands[i]);
    if (info.workspace_bytes)
        workspace = place(b, NULL, info.workspace_bytes, 0);
    st = b->p.op_run(b->queue, op, refs, slots, workspace);
    ck_assert_msg(st == CEK_OK, "%s", b->failure);
    ck_assert_uint_eq(b->p.queue_sync(b->queue, CEK_FOREVER), CEK_OK);
    if (workspace.mem)
        take_back(b, workspace, NULL, info.workspace_bytes);
    for (int i = 0; i < count; i++)
        if (!(i + 1 < count && operands[i + 1].use == IN_PLACE))
            take_back(b, refs[operands[i].slot], operands[i].use ? operands[i].data : NULL, operands[i].bytes);
    b->p.op_destroy(op);
    return CEK_OK;
}

/* --- comparing -------------------------------------------------------------------------------- */

uint64_t type_bytes(cek_dtype type)
{
    static const uint64_t bytes[] = { 1, 4, 2, 2, 8, 1, 4 }; /* CEK_DTYPE_NONE: blocks, compared byte by byte */

    return bytes[type];
}

static float bits_float(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

void to_bf16(const float *from, uint16_t *to, int64_t n)
{
    uint32_t bits;

    for (int64_t i = 0; i < n; i++) {
        memcpy(&bits, from + i, sizeof bits);
        to[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}

float from_bf16(uint16_t x)
{
    return bits_float((uint32_t)x << 16);
}

float from_f16(uint16_t x)
{
    const int exponent = x >> 10 & 31;
    const float fraction = (float)(x & 0x3ff), sign = x & 0x8000 ? -1.0f : 1.0f;

    if (exponent == 31)
        return fraction != 0 ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexpf(1024 + fraction, exponent - 25) : ldexpf(fraction, -24));
}

double element(const void *data, cek_dtype type, int64_t i)
{
    switch (type) {
    case CEK_F32: return ((const float *)data)[i];
    case CEK_F64: return ((const double *)data)[i];
    case CEK_BF16: return from_bf16(((const uint16_t *)data)[i]);
    case CEK_F16: return from_f16(((const uint16_t *)data)[i]);
    case CEK_I32: return ((const int32_t *)data)[i];
    default: return ((const uint8_t *)data)[i];
    }
}

static void compare_operand(const char *what, int f, const operand *want, const operand *got, cek_dtype type,
                            tolerance t)
{
    const bool real = type == CEK_F32 || type == CEK_F64 || type == CEK_F16 || type == CEK_BF16;

    for (int64_t i = 0; i < (int64_t)(want->bytes / type_bytes(type)); i++) {
        const double w = element(want->data, type, i), g = element(got->data, type, i);
        const double allowed = real ? t.absolute + t.relative * fabs(w) : 0;
        const bool same = w == g || (isnan(w) && isnan(g)) || fabs(w - g) <= allowed;

        must(same, "%s on %s with %s threads: slot %u element %lld is %.9g, not %.9g (allowed: %.3g)", what,
             forms[f].settings[1], forms[f].settings[3], want->slot, (long long)i, g, w, allowed);
    }
}

static void copy_operands(operand *to, const operand *from, int count)
{
    for (int i = 0; i < count; i++) {
        to[i] = from[i];
        to[i].data = malloc(from[i].bytes + 1);
        ck_assert_ptr_nonnull(to[i].data);
        memcpy(to[i].data, from[i].data, from[i].bytes);
    }
}

static void free_operands(operand *operands, int count)
{
    for (int i = 0; i < count; i++)
        free(operands[i].data);
}

void compare(const char *what, const cek_op_desc *desc, const operand *operands, const cek_dtype *types, int count,
             tolerance allowed)
{
    operand want[16], got[16], alone[16] = { { 0 } };
    cek_status st;

    copy_operands(want, operands, count);
    st = run_op(&the_reference, desc, want, count, 0);
    ck_assert_msg(st == CEK_OK, "%s on the reference: %s", what, the_reference.failure);
    for (int f = 0; f < forms_open_count; f++) {
        copy_operands(got, operands, count);
        st = run_op(&forms[f], desc, got, count, 0);
        ck_assert_msg(st == CEK_OK, "%s on %s: %s", what, forms[f].settings[1], forms[f].failure);
        for (int i = 0; i < count; i++) {
            if (operands[i].use)
                compare_operand(what, f, &want[i], &got[i], types[i], allowed);
            if (f % 2 && operands[i].use)
                ck_assert_msg(!memcmp(alone[i].data, got[i].data, got[i].bytes),
                              "%s on %s: slot %u depends on the number of threads", what, forms[f].settings[1],
                              operands[i].slot);
        }
        if (f % 2)
            free_operands(alone, count);
        memcpy(alone, got, sizeof got);
        if (f % 2)
            free_operands(got, count);
    }
    free_operands(want, count);
}

/* --- numbers ---------------------------------------------------------------------------------- */

uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15; /* splitmix64 */

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

void fill_uniform(float *to, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)(next_random(&seed) >> 40) * 0x1p-23f - 1.0f;
}

void fill_integers(float *to, int64_t n, int64_t low, int64_t high, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)(low + (int64_t)(next_random(&seed) % (uint64_t)(high - low + 1)));
}
