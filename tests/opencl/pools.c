/* pools.c - whichever way a GPU computes a pool, it gives the same bits: windows that overlap, touch, leave gaps or
 * hang over an edge, in every type.
 *
 * The shim makes a strict GPU of PoCL. */
#include "tests/opencl/failures.h"

enum { ROOM = 1 << 16, WAYS = 4 };
static unsigned char numbers[4 * ROOM], given[4 * ROOM];

typedef struct results {
    unsigned char y[4 * ROOM], dx[4 * ROOM];
    uint32_t winners[ROOM];
    char forward[64], backward[64]; /* how they were computed */
} results;
static results first, other;

static const struct geometry {
    uint64_t channels, in[2], kernel[2], stride[2], lo[2], hi[2];
    uint32_t align;
    uint32_t ways; /* different ones that there are, forward and backward each */
} geometries[] = {
    { 8, { 16, 18 }, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 0, 0 }, 0, 4 },
    { 8, { 15, 17 }, { 2, 2 }, { 2, 2 }, { 1, 1 }, { 0, 0 }, 0, 4 },
    { 4, { 15, 14 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 }, 0, 4 },
    { 12, { 9, 11 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, 0, 4 },
    { 4, { 13, 14 }, { 5, 4 }, { 1, 3 }, { 2, 0 }, { 1, 3 }, 0, 4 },
    { 4, { 17, 19 }, { 2, 2 }, { 3, 4 }, { 0, 1 }, { 1, 1 }, 0, 4 }, /* positions that no window reads */
    { 3, { 15, 14 }, { 3, 2 }, { 2, 2 }, { 1, 0 }, { 1, 1 }, 0, 2 }, /* no fours of channels */
    { 1, { 2, 21 }, { 2, 7 }, { 1, 2 }, { 1, 3 }, { 0, 3 }, 0, 2 },
    { 8, { 8, 8 }, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 0, 0 }, 8, 2 }, /* no fours that lie as they should */
};
enum { GEOMETRIES = sizeof geometries / sizeof *geometries, BATCH = 2 };

static const uint32_t types[] = { CEK_F32, CEK_F16, CEK_BF16 };

static cek_pool_desc pool_of(const struct geometry *g, uint32_t mode, cek_dtype type)
{
    cek_pool_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_POOL_FORWARD, .align = g->align },
                           .mode = mode,
                           .spatial = 2,
                           .type = type,
                           .batch = BATCH,
                           .channels = g->channels };
    for (int i = 0; i < 2; i++) {
        desc.in[i] = g->in[i], desc.kernel[i] = g->kernel[i], desc.stride[i] = g->stride[i];
        desc.pad_lo[i] = g->lo[i], desc.pad_hi[i] = g->hi[i];
    }
    return desc;
}

static uint64_t results_of(const struct geometry *g)
{
    uint64_t count = BATCH * g->channels;
    for (int i = 0; i < 2; i++)
        count *= (g->in[i] + g->lo[i] + g->hi[i] - g->kernel[i]) / g->stride[i] + 1;
    return count;
}

/* Numbers of a type, with ties and zeros of both signs, and so many of 256 each below all and NaN; not of f16, of which
 * PoCL stores other bits from a vector than from a scalar. */
static void numbers_make(unsigned char *to, cek_dtype type, uint32_t noise, uint32_t each)
{
    static const uint16_t some[] = { 0x3c00, 0xbc00, 0x0000, 0x8000, 0x4000, 0x3555, 0xb800, 0x3eaa };
    const uint16_t nan = type == CEK_F16 ? 0x4400 : 0x7fc0, least = type == CEK_F16 ? 0xfc00 : 0xff80;
    for (int i = 0; i < 2 * ROOM; i++) {
        noise = noise * 1664525u + 1013904223u;
        ((uint16_t *)to)[i] = noise >> 24 < each ? nan : noise >> 24 < 2 * each ? least : some[noise >> 16 & 7];
    }
}

/* Forward and backward, the given way. */
static void pool_run(const struct geometry *g, uint32_t mode, cek_dtype type, const char *way, results *to)
{
    const char *const named[] = { "opencl_cache", "off", "opencl_pools", way, NULL };
    const uint64_t element = type == CEK_F32 ? 4 : 2, in = BATCH * g->channels * g->in[0] * g->in[1] * element,
                   out = results_of(g) * element;
    const bool maximum = mode == CEK_POOL_MAX;
    cek_pool_desc desc = pool_of(g, mode, type);
    cek_op_info info, back;
    array forward[] = { IN(numbers, in), OUT(to->y, out), OUT(to->winners, results_of(g) * 4) };
    array backward[] = { IN(given, out), OUT(to->dx, in), IN(to->winners, results_of(g) * 4) };
    ck_assert_uint_le(in, sizeof to->dx);
    memset(to, 0xa5, sizeof *to);
    numbers_make(numbers, type, 1, maximum ? 3 : 0); /* sums of NaN have what bits they like */
    numbers_make(given, type, 2, 0);
    shim_be_strict();
    door_open(&d, "opencl", named);
    cek_op *made = door_op(&d, &desc.op, forward, maximum ? 3 : 2, &info);
    door_op_run(&d, made, &info, forward, maximum ? 3 : 2);
    cek_pool_desc behind = desc;
    behind.op.kind = CEK_OP_POOL_BACKWARD;
    behind.op.forward = maximum ? made : NULL;
    cek_op *reverse = door_op(&d, &behind.op, backward, maximum ? 3 : 2, &back);
    door_op_run(&d, reverse, &back, backward, maximum ? 3 : 2);
    snprintf(to->forward, sizeof to->forward, "%s", info.algorithm);
    snprintf(to->backward, sizeof to->backward, "%s", back.algorithm);
    d.plugin.op_destroy(reverse);
    d.plugin.op_destroy(made);
    door_close(&d);
}

START_TEST(every_way_gives_the_same_bits)
{
    const struct geometry *g = &geometries[_i];
    for (uint32_t t = 0; t < sizeof types / sizeof *types; t++)
        for (uint32_t mode = CEK_POOL_MAX; mode <= CEK_POOL_AVERAGE; mode++) {
            uint32_t ways[2] = { 1, 1 };
            pool_run(g, mode, types[t], "3", &first); /* one channel of one result */
            ck_assert_str_eq(first.forward, "1 channel of 1 result a work-item");
            for (int way = 1; way <= WAYS; way++) {
                const char number[] = { (char)('0' + way), 0 };
                if (way == 3)
                    continue;
                pool_run(g, mode, types[t], number, &other);
                ck_assert_msg(!memcmp(first.y, other.y, sizeof first.y), "type %u, mode %u: y by way %d", t, mode, way);
                ck_assert_msg(!memcmp(first.dx, other.dx, sizeof first.dx), "type %u, mode %u: dx by way %d", t, mode,
                              way);
                ck_assert_msg(!memcmp(first.winners, other.winners, sizeof first.winners), "type %u: winners by way %d",
                              t, way);
                ways[0] += strcmp(first.forward, other.forward) != 0;
                ways[1] += strcmp(first.backward, other.backward) != 0;
            }
            /* What does not fit goes by the rule, which here are fours of one result, or single ones. */
            ck_assert_msg(ways[0] == g->ways && ways[1] == g->ways, "%u and %u ways, not %u", ways[0], ways[1],
                          g->ways);
        }
}
END_TEST

START_TEST(a_way_that_is_none_is_refused)
{
    static const char *const bad[] = { "0", "5", "all" };
    for (int i = 0; i < 3; i++) {
        const char *const named[] = { "opencl_cache", "off", "opencl_pools", bad[i], NULL };
        cek_pool_desc desc = pool_of(&geometries[0], CEK_POOL_AVERAGE, CEK_F32);
        cek_op_info info = { .size = sizeof info };
        cek_op *made;
        shim_be_strict();
        door_open(&d, "opencl", named);
        desc.op.operands = 3;
        ck_assert_uint_eq(d.plugin.op_create(d.dev, &desc.op, &info, &made), CEK_INVALID);
        ck_assert_msg(strstr(d.text, "opencl_pools") && strstr(d.text, bad[i]), "%s", d.text);
        door_close(&d);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("opencl pools");
    TCase *tc = tcase_create("ways");
    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, every_way_gives_the_same_bits, 0, GEOMETRIES);
    tcase_add_test(tc, a_way_that_is_none_is_refused);
    suite_add_tcase(suite, tc);
    return failures_run(suite);
}
