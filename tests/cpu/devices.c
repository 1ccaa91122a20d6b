/* devices.c - the cpu plugin's settings, its devices, numeric ids, and several queues and
 * devices at work at once. */
#include "harness.h"

#include <pthread.h>
#include <stdio.h>

START_TEST(settings_that_make_no_sense_are_refused)
{
    static const char *const bad[][3] = {
        { "cpu_isa", "z80", NULL },      { "cpu_devices", "0", NULL },  { "cpu_devices", "many", NULL },
        { "cpu_devices", "1000", NULL }, { "cpu_threads", "-1", NULL }, { "cpu_lend", "2", NULL },
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        backend b;

        ck_assert_uint_eq(backend_create(&b, "cpu", bad[i]), CEK_INVALID);
        ck_assert_ptr_null(b.instance);
        ck_assert_msg(strstr(b.failure, bad[i][0]), "\"%s\" does not name the setting", b.failure);
    }
}
END_TEST

START_TEST(the_machine_is_split_into_as_many_devices_as_asked)
{
    char count[8];
    const char *const settings[] = { "cpu_devices", count, "cpu_threads", "5", NULL };

    for (uint32_t n = 1; n <= 7; n++) {
        backend b;
        uint32_t units = 0;

        snprintf(count, sizeof count, "%u", n);
        ck_assert_uint_eq(backend_create(&b, "cpu", settings), CEK_OK);
        ck_assert_uint_eq(b.p.device_count(b.instance), n);
        for (uint32_t i = 0; i < n; i++) {
            cek_device_info info = { .size = sizeof info };

            ck_assert_uint_eq(b.p.device_info(b.instance, i, &info), CEK_OK);
            ck_assert_uint_eq(info.kind, CEK_KIND_CPU);
            ck_assert_uint_eq(info.flags, CEK_DEVICE_UNIFIED_MEMORY | CEK_DEVICE_INLINE);
            ck_assert_str_eq(info.processor, "cpu");
            ck_assert_uint_ge(info.compute_units, 1);
            ck_assert_uint_gt(strlen(info.name), 0);
            ck_assert(info.types >> CEK_F32 & 1);
            units += info.compute_units;
        }
        ck_assert_uint_eq(units, n < 5 ? 5 : n);
        cek_device_info none = { .size = sizeof none };
        ck_assert_uint_eq(b.p.device_info(b.instance, n, &none), CEK_INVALID);
        ck_assert_uint_eq(b.p.device_open(b.instance, n, NULL, &b.dev), CEK_INVALID);
        ck_assert_ptr_null(b.dev);
        backend_close(&b);
    }
}
END_TEST

/* Ids say which results are equal: not those of other instruction sets, but those of another
 * number of threads. */
START_TEST(numeric_ids_name_the_arithmetic)
{
    cek_softmax_desc d = {
        .op = { .size = sizeof d, .kind = CEK_OP_SOFTMAX, .operands = 3 }, .rows = 4, .columns = 5, .type = CEK_F32
    };
    uint64_t ids[16];

    forms_open();
    for (int f = 0; f < form_count(); f++) {
        cek_op_info info = { .size = sizeof info };
        cek_op *op;

        ck_assert_uint_eq(form(f)->p.op_create(form(f)->dev, &d.op, &info, &op), CEK_OK);
        form(f)->p.op_destroy(op);
        ids[f] = info.numeric_id;
        ck_assert_uint_ne(ids[f], 0);
        ck_assert_uint_gt(strlen(info.algorithm), 0);
        for (int g = 0; g < f; g++)
            ck_assert_int_eq(ids[f] == ids[g], f / 2 == g / 2);
    }
    forms_close();
}
END_TEST

/* --- at once ---------------------------------------------------------------------------------- */

enum { ROWS = 200, COLUMNS = 300, TURNS = 150 };

typedef struct worker {
    backend *b;
    cek_dev *dev;
    cek_op *const *ops;    /* softmax, sum of all, dropout: shared by the device's queues */
    const float *x, *want; /* want: softmax, dropout, then the sum */
    int wrong;
} worker;

static cek_mem *memory(backend *b, cek_dev *dev, uint64_t bytes)
{
    const cek_mem_desc want = { .size = sizeof want, .bytes = bytes };
    cek_mem *mem;

    return b->p.mem_alloc(dev, &want, &mem) == CEK_OK ? mem : NULL;
}

static void one_turn(worker *w, cek_queue *queue, cek_mem *const mem[5], float *got)
{
    const cek_plugin *p = &w->b->p;
    const uint64_t n = ROWS * COLUMNS;
    const cek_ref x = { mem[0], 0 }, soft = { mem[1], 0 }, dropped = { mem[2], 0 }, sum = { mem[3], 0 },
                  work = { mem[4], 0 };
    const cek_ref step = { mem[3], 256 };
    const cek_ref softmax[2] = { x, soft }, dropout[3] = { x, dropped, step }, reduce[2] = { x, sum };

    w->wrong += p->op_run(queue, w->ops[0], softmax, 2, (cek_ref){ NULL, 0 }) != CEK_OK;
    w->wrong += p->op_run(queue, w->ops[1], reduce, 2, work) != CEK_OK;
    w->wrong += p->op_run(queue, w->ops[2], dropout, 3, (cek_ref){ NULL, 0 }) != CEK_OK;
    w->wrong += p->download(queue, got, soft, n * 4) != CEK_OK ||
                p->download(queue, got + n, dropped, n * 4) != CEK_OK ||
                p->download(queue, got + 2 * n, sum, 4) != CEK_OK || p->queue_sync(queue, CEK_FOREVER) != CEK_OK;
    w->wrong += memcmp(got, w->want, (2 * n + 1) * 4) != 0;
}

static void *work(void *arg)
{
    worker *w = arg;
    const cek_plugin *p = &w->b->p;
    const uint64_t n = ROWS * COLUMNS;
    const cek_step_block step = { .random_key = 99 };
    float *got = malloc((2 * n + 1) * 4);
    cek_queue *queue;
    cek_mem *mem[5];

    if (p->queue_create(w->dev, NULL, &queue) != CEK_OK)
        return NULL;
    for (int i = 0; i < 5; i++)
        mem[i] = memory(w->b, w->dev, n * 4);
    p->upload(queue, (cek_ref){ mem[0], 0 }, w->x, n * 4);
    p->upload(queue, (cek_ref){ mem[3], 256 }, &step, sizeof step);
    for (int t = 0; t < TURNS && !w->wrong; t++)
        one_turn(w, queue, mem, got);
    for (int i = 0; i < 5; i++)
        p->mem_free(mem[i]);
    p->queue_destroy(queue);
    free(got);
    return arg;
}

static void make_ops(backend *b, cek_dev *dev, cek_op *ops[3])
{
    cek_softmax_desc s = { .op = { .size = sizeof s, .kind = CEK_OP_SOFTMAX, .operands = 3 },
                           .rows = ROWS,
                           .columns = COLUMNS,
                           .type = CEK_F32 };
    cek_reduce_desc r = { .op = { .size = sizeof r, .kind = CEK_OP_REDUCE, .operands = 3 },
                          .function = CEK_REDUCE_SUM,
                          .axes = 1,
                          .rank = 1,
                          .x_type = CEK_F32,
                          .shape = { ROWS * COLUMNS },
                          .x_strides = { 1 } };
    cek_dropout_desc d = { .op = { .size = sizeof d, .kind = CEK_OP_DROPOUT, .operands = 7 },
                           .rows = ROWS,
                           .columns = COLUMNS,
                           .rows_per_sample = 1,
                           .scale = 2,
                           .threshold = 1u << 31,
                           .type = CEK_F32 };

    ck_assert_uint_eq(b->p.op_create(dev, &s.op, NULL, &ops[0]), CEK_OK);
    ck_assert_uint_eq(b->p.op_create(dev, &r.op, NULL, &ops[1]), CEK_OK);
    ck_assert_uint_eq(b->p.op_create(dev, &d.op, NULL, &ops[2]), CEK_OK);
}

/* `queues` threads, each with a queue of its own, on each of `devices` devices of `threads`
 * threads in all. */
static void many_at_once(const char *devices, const char *threads, int queues)
{
    const char *const settings[] = { "cpu_devices", devices, "cpu_threads", threads, NULL };
    const int n_devices = atoi(devices), n = n_devices * queues;
    static float x[ROWS * COLUMNS], want[2 * ROWS * COLUMNS + 1];
    cek_op *ops[8][3];
    cek_dev *devs[8];
    worker workers[32], first;
    pthread_t thread[32];
    backend b;

    fill_uniform(x, ROWS * COLUMNS, 1);
    ck_assert_uint_eq(backend_create(&b, "cpu", settings), CEK_OK);
    for (int i = 0; i < n_devices; i++) {
        ck_assert_uint_eq(b.p.device_open(b.instance, (uint32_t)i, NULL, &devs[i]), CEK_OK);
        make_ops(&b, devs[i], ops[i]);
    }
    /* what all must give, from one turn alone */
    cek_mem *mem[5];
    const cek_step_block step = { .random_key = 99 };
    cek_queue *queue;

    first = (worker){ .b = &b, .dev = devs[0], .ops = ops[0], .x = x, .want = want };
    ck_assert_uint_eq(b.p.queue_create(devs[0], NULL, &queue), CEK_OK);
    for (int i = 0; i < 5; i++)
        ck_assert_ptr_nonnull(mem[i] = memory(&b, devs[0], sizeof x));
    ck_assert_uint_eq(b.p.upload(queue, (cek_ref){ mem[0], 0 }, x, sizeof x), CEK_OK);
    ck_assert_uint_eq(b.p.upload(queue, (cek_ref){ mem[3], 256 }, &step, sizeof step), CEK_OK);
    one_turn(&first, queue, mem, want);
    ck_assert(isfinite(want[0]) && isfinite(want[2 * ROWS * COLUMNS]));
    first.wrong = 0;

    for (int i = 0; i < n; i++) {
        workers[i] = (worker){ .b = &b, .dev = devs[i % n_devices], .ops = ops[i % n_devices], .x = x, .want = want };
        ck_assert_int_eq(pthread_create(&thread[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        void *done;

        pthread_join(thread[i], &done);
        ck_assert_ptr_nonnull(done);
        ck_assert_int_eq(workers[i].wrong, 0);
    }
    for (int i = 0; i < 5; i++)
        b.p.mem_free(mem[i]);
    b.p.queue_destroy(queue);
    for (int i = 0; i < n_devices; i++) {
        for (int k = 0; k < 3; k++)
            b.p.op_destroy(ops[i][k]);
        b.p.device_close(devs[i]);
    }
    backend_close(&b);
}

START_TEST(two_queues_share_a_device_and_its_operations)
{
    many_at_once("1", "3", 2);
    many_at_once("1", "1", 3);
}
END_TEST

START_TEST(devices_work_side_by_side)
{
    many_at_once("3", "2", 1);
    many_at_once("2", "5", 2);
}
END_TEST

void add_devices(Suite *suite)
{
    TCase *cases = tcase_create("devices");

    tcase_add_test(cases, settings_that_make_no_sense_are_refused);
    tcase_add_test(cases, the_machine_is_split_into_as_many_devices_as_asked);
    tcase_add_test(cases, numeric_ids_name_the_arithmetic);
    tcase_add_test(cases, two_queues_share_a_device_and_its_operations);
    tcase_add_test(cases, devices_work_side_by_side);
    suite_add_tcase(suite, cases);
}
