/* cpu_amx.c - products by tile registers: the model of their instructions against what Intel's manual says of
 * them, every tile over it, and what becomes of a machine that has such registers or does not give them. */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cpu/amx.h"
#include "backends/cpu/device.h"
#include "kernels/cpu/amx_model.h"
#include "tests/unit/cpu_products.h"

/* ---- the model ---- */

enum { SIDE = 16, WHOLE = 64 };

static const amx_config whole = { .palette = 1,
                                  .row_bytes = { WHOLE, WHOLE, WHOLE, WHOLE, WHOLE, WHOLE, WHOLE, WHOLE },
                                  .rows = { SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE } };

static uint16_t bf16(double x)
{
    uint16_t h;
    type_store(CPU_BF16, &h, 0, x);
    return h;
}

/* One sum, of 32 products, onto `old`. */
static float sum_of(float old, const double *a, const double *b, int n)
{
    uint16_t left[SIDE][32] = { { 0 } }, right[SIDE][32] = { { 0 } };
    float c[SIDE][SIDE] = { { old } };

    for (int k = 0; k < n; k++) {
        left[0][k] = bf16(a[k]);
        right[k / 2][k % 2] = bf16(b[k]); /* column 0 */
    }
    amx_configure(&whole);
    amx_load(0, c, WHOLE);
    amx_load(1, left, WHOLE);
    amx_load(2, right, WHOLE);
    amx_multiply(0, 1, 2);
    amx_store(0, c, WHOLE);
    amx_release();
    return c[0][0];
}

START_TEST(earlier_and_later_halves_are_summed_apart_and_meet_last)
{
    /* 2^24 takes no 1, but 2: both ones must have met before */
    const double a[] = { 4096, 1, 0, 1 }, b[] = { 4096, 1, 0, 1 };
    ck_assert_float_eq(sum_of(0, a, b, 4), 0x1p24f + 2);
    /* the same four in another order: one of the ones is behind 2^24, and lost */
    const double c[] = { 4096, 1, 1, 0 };
    ck_assert_float_eq(sum_of(0, c, c, 4), 0x1p24f);
    /* what the tile held comes last */
    const double d[] = { 1, 1 };
    ck_assert_float_eq(sum_of(0x1p24f, d, d, 2), 0x1p24f + 2);
}
END_TEST

START_TEST(sums_are_rounded_to_nearest_even)
{
    const double one[] = { 1 }, three[] = { 3 };
    ck_assert_float_eq(sum_of(0x1p24f, one, one, 1), 0x1p24f);
    ck_assert_float_eq(sum_of(0x1p24f, three, one, 1), 0x1p24f + 4);
    ck_assert_float_eq(sum_of(0x1p24f + 2, one, one, 1), 0x1p24f + 4);
}
END_TEST

START_TEST(denormal_numbers_are_zeros)
{
    const double one[] = { 1 }, denormal[] = { 0x1p-130 }, large[] = { 0x1p100 }, small[] = { 0x1p-64 };
    ck_assert_float_eq(sum_of(0, denormal, large, 1), 0);
    ck_assert_float_eq(sum_of(0, large, denormal, 1), 0);
    ck_assert_float_eq(sum_of(0, small, small, 1), 0);
    ck_assert_float_eq(sum_of(0x1p-130f, one, one, 1), 1);
    ck_assert_float_eq(sum_of(0x1p-130f, denormal, one, 1), 0);
    ck_assert_float_eq(sum_of(0, small, one, 1), 0x1p-64f);
}
END_TEST

START_TEST(a_configuration_says_what_of_memory_is_read_and_written)
{
    const amx_config config = { .palette = 1, .row_bytes = { 8, WHOLE }, .rows = { 3, SIDE } };
    uint8_t from[SIDE][WHOLE], to[SIDE][WHOLE];

    memset(from, 7, sizeof from);
    memset(to, 1, sizeof to);
    amx_configure(&config);
    amx_load(0, from, WHOLE);
    amx_store(0, to, WHOLE);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < WHOLE; j++)
            EXPECT(to[i][j] == (i < 3 && j < 8 ? 7 : 1), "(%d, %d) is %d", i, j, to[i][j]);
    amx_load(1, from, WHOLE);
    amx_zero(1);
    amx_store(1, to, WHOLE);
    for (int i = 0; i < SIDE * WHOLE; i++)
        EXPECT(to[i / WHOLE][i % WHOLE] == 0, "byte %d", i);
    amx_release();
}
END_TEST

/* ---- what a processor faults at ---- */

static void configure(amx_config config)
{
    amx_configure(&config);
}

static void fault(int which)
{
    amx_config c = whole;

    switch (which) {
    case 0: amx_zero(0); break; /* nobody configured */
    case 1: amx_configure(&whole), amx_release(), amx_zero(0); break;
    case 2: c.palette = 2, configure(c); break;
    case 3: c.rows[3] = 17, configure(c); break;
    case 4: c.row_bytes[3] = 65, configure(c); break;
    case 5: c.rows[3] = 0, configure(c); break;
    case 6: c.rows[8] = 1, c.row_bytes[8] = 4, configure(c); break;
    case 7: c.reserved[5] = 1, configure(c); break;
    case 8: c.rows[1] = 15, configure(c), amx_multiply(0, 1, 2); break;       /* A has not as many rows as C */
    case 9: c.row_bytes[2] = 60, configure(c), amx_multiply(0, 1, 2); break;  /* B not as many columns */
    case 10: c.row_bytes[1] = 60, configure(c), amx_multiply(0, 1, 2); break; /* A not as many words as B rows */
    case 11: configure(c), amx_multiply(0, 0, 2); break;
    case 12: configure(c), amx_multiply(0, 2, 2); break;
    case 13: c.rows[4] = 0, c.row_bytes[4] = 0, configure(c), amx_zero(4); break;
    }
}
enum { FAULTS = 14 };

START_TEST(what_a_processor_faults_at_ends_the_model_too)
{
    for (int i = -1; i < FAULTS; i++) {
        int status;
        const pid_t child = fork();

        ck_assert_int_ge(child, 0);
        if (child == 0) {
            fault(i);
            amx_configure(&whole); /* -1: none */
            amx_multiply(0, 1, 2);
            _exit(0);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        EXPECT((status == 0) == (i < 0), "fault %d: status %#x", i, (unsigned)status);
    }
}
END_TEST

/* ---- tiles ---- */

enum { DEPTH = 48, LD = 40 }; /* words; floats from one row of C to the next */

/* Each number of rows and columns, stored, added and streamed: exact on integers, and nothing beyond is written. */
START_TEST(a_tile_has_the_rows_and_columns_that_it_is_asked_for)
{
    const cpu_words *w = cek__config_select("amx-model")->bf16;
    static uint16_t a[32][2 * DEPTH], b[DEPTH][32][2];
    static float c[33 * LD] __attribute__((aligned(64)));
    const float *panel = (const float *)(const void *)b;
    int32_t a_offset[DEPTH], b_offset[DEPTH];
    uint32_t state = 1;

    ck_assert_int_eq(w->mr, 32);
    ck_assert_int_eq(w->nr, 32);
    for (int k = 0; k < DEPTH; k++) {
        a_offset[k] = k;
        b_offset[k] = k * 32;
        for (int i = 0; i < 64; i++) {
            a[i / 2][2 * k + i % 2] = bf16(next_value(&state, 1));
            b[k][i / 2][i % 2] = bf16(next_value(&state, 1));
        }
    }
    w->begin();
    for (int rows = 1; rows <= 32; rows++)
        for (int which = 0; which < 3 * 32; which++) {
            const int64_t columns = which / 3 + 1;
            const cpu_store store = (cpu_store)(which % 3);
            for (int i = 0; i < 33 * LD; i++)
                c[i] = (float)i;
            const int64_t ld = store == CPU_STREAM ? 32 : LD; /* rows aligned to 64 bytes */
            if (columns == 32)
                w->gemm[rows](&(cpu_tiles){ .count = 1 }, DEPTH, (const float *)(const void *)a, DEPTH, a_offset,
                              &panel, b_offset, c, ld, store, NULL, 0, rows);
            else
                w->edge[rows](columns, DEPTH, (const float *)(const void *)a, DEPTH, a_offset,
                              (const float *)(const void *)b, b_offset, c, ld, store, NULL, 0, rows);
            for (int64_t i = 0; i < 33 * LD; i++) {
                const int64_t row = i / ld, column = i % ld;
                double want = row < rows && column < columns && store != CPU_ADD ? 0 : (double)i;
                for (int k = 0; k < 2 * DEPTH && row < rows && column < columns; k++)
                    want += (double)bf16_to_f32(a[row][k]) * (double)bf16_to_f32(b[k / 2][column][k % 2]);
                EXPECT(c[i] == want, "%d rows, %d columns, store %d: (%d, %d) is %g, not %g", rows, (int)columns,
                       (int)store, (int)row, (int)column, c[i], want);
            }
        }
    w->end();
}
END_TEST

/* Threads that did not configure theirs have no tiles: whoever runs a tile must have begun. */
START_TEST(a_tile_without_a_begin_faults)
{
    const cpu_words *w = cek__config_select("amx-model")->bf16;
    float zeros[32 * 16] = { 0 }, c[32 * 32];
    const float *panel = zeros;
    int32_t offset[16] = { 0 };
    int status;
    const pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        w->gemm[1](&(cpu_tiles){ .count = 1 }, 16, zeros, 16, offset, &panel, offset, c, 32, CPU_STORE, NULL, 0, 1);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_ne(status, 0);
}
END_TEST

/* ---- machines ---- */

enum { BF16 = 1 << 22, TILE = 1 << 24, STATES = 3 << 17 };
static int asked, answer;

static int ask(void)
{
    asked++;
    return answer;
}

START_TEST(the_kernel_is_asked_only_where_there_are_tiles)
{
    static const struct {
        uint32_t features;
        uint64_t enabled;
        int answer, asked;
        amx_state state;
        const char *reason;
    } cases[] = {
        { BF16 | TILE, STATES | 7, 0, 1, AMX_READY, "" },
        { BF16 | TILE | 1, STATES, 0, 1, AMX_READY, "" },
        { BF16 | TILE, STATES, EINVAL, 1, AMX_REFUSED, "Invalid argument" }, /* a kernel before 5.16 */
        { BF16 | TILE, STATES, ENOSPC, 1, AMX_REFUSED, "ARCH_REQ_XCOMP_PERM: No space left" }, /* signal stacks */
        { BF16 | TILE, 1 << 17 | 7, 0, 0, AMX_REFUSED, "XCR0 is 0x20007" },
        { BF16 | TILE, 1 << 18 | 7, 0, 0, AMX_REFUSED, "XCR0 is 0x40007" },
        { BF16 | TILE, 0, 0, 0, AMX_REFUSED, "XCR0 is 0" },
        { BF16, STATES, 0, 0, AMX_ABSENT, "" },
        { TILE, STATES, 0, 0, AMX_ABSENT, "" }, /* of integers only */
        { 0, 0, 0, 0, AMX_ABSENT, "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const amx_machine machine = { cases[i].features, cases[i].enabled, ask };
        char reason[AMX_REASON];

        asked = 0;
        answer = cases[i].answer;
        ck_assert_int_eq(cek__amx_of(&machine, reason), cases[i].state);
        ck_assert_int_eq(asked, cases[i].asked);
        EXPECT(cases[i].reason[0] ? strstr(reason, cases[i].reason) != NULL : reason[0] == '\0', "case %d: \"%s\"",
               (int)i, reason);
    }
}
END_TEST

/* Stands in for amx_here.c. */
static amx_state state_here;

amx_state cek__amx(const char **reason)
{
    asked++;
    *reason = state_here == AMX_REFUSED ? "because it is so" : "";
    return state_here;
}

typedef struct setting {
    const char *isa;
    char failed[300], logged[300];
} setting;

static const char *option(void *user, const char *key)
{
    return strcmp(key, "cpu_isa") == 0 ? ((setting *)user)->isa : NULL;
}
static void fail_note(void *user, cek_status status, const char *text)
{
    (void)status;
    snprintf(((setting *)user)->failed, 300, "%s", text);
}
static void log_note(void *user, uint32_t level, const char *text)
{
    ck_assert_uint_eq(level, CEK_LOG_WARN);
    snprintf(((setting *)user)->logged, 300, "%s", text);
}

static cek_status created(setting *s)
{
    const cek_host host = { sizeof host, CEK_ABI, s, fail_note, log_note, option };
    cek_instance *in;
    const cek_status st = cek__cpu_create(&host, &in);

    cek__cpu_destroy(in);
    return st;
}

START_TEST(tiles_that_are_refused_are_said_to_be)
{
    setting any = { NULL, "", "" }, named = { "amx", "", "" }, other = { "portable", "", "" };
    const int built = strstr(cek__cpu_build, " amx;") != NULL;

    state_here = AMX_REFUSED;
    ck_assert_uint_eq(created(&any), CEK_OK);
    ck_assert_uint_eq(created(&named), CEK_INVALID);
    if (built) {
        ck_assert_msg(strstr(any.logged, " instead of amx: because it is so") != NULL, "\"%s\"", any.logged);
        ck_assert_str_eq(named.failed, "cpu_isa: \"amx\": because it is so");
    } else {
        ck_assert_str_eq(any.logged, "");
        ck_assert_msg(strstr(named.failed, "was not built") != NULL, "\"%s\"", named.failed);
    }
    asked = 0; /* a process that names other kernels does not ask for larger frames */
    ck_assert_uint_eq(created(&other), CEK_OK);
    ck_assert_int_eq(asked, 0);
    ck_assert_str_eq(other.logged, "");

    state_here = AMX_ABSENT;
    any.logged[0] = '\0';
    ck_assert_uint_eq(created(&any), CEK_OK);
    ck_assert_str_eq(any.logged, "");
    ck_assert_uint_eq(created(&named), CEK_INVALID);
    ck_assert_msg(strstr(named.failed, "does not run here") != NULL, "\"%s\"", named.failed);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_amx");
    TCase *model = tcase_create("model"), *tiles = tcase_create("tiles"), *machines = tcase_create("machines");

    tcase_add_test(model, earlier_and_later_halves_are_summed_apart_and_meet_last);
    tcase_add_test(model, sums_are_rounded_to_nearest_even);
    tcase_add_test(model, denormal_numbers_are_zeros);
    tcase_add_test(model, a_configuration_says_what_of_memory_is_read_and_written);
    tcase_add_test(model, what_a_processor_faults_at_ends_the_model_too);
    suite_add_tcase(suite, model);
    tcase_add_test(tiles, a_tile_has_the_rows_and_columns_that_it_is_asked_for);
    tcase_add_test(tiles, a_tile_without_a_begin_faults);
    suite_add_tcase(suite, tiles);
    tcase_add_test(machines, the_kernel_is_asked_only_where_there_are_tiles);
    tcase_add_test(machines, tiles_that_are_refused_are_said_to_be);
    suite_add_tcase(suite, machines);
    return suite_run(suite);
}
