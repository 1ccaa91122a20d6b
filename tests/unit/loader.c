/* loader.c - tests of batches: order, threads, resuming, failures, shutting down while workers are busy. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "core/base/alloc.h"
#include "core/base/fault.h"
#include "nn/data/dataset.h"
#include "nn/data/loader.h"
#include "scratch.h"

enum { ROWS = 103, BATCH = 8, BATCHES = 13 /* the last has 7 */ };

/* A source whose sample i is { i, i + 0.5 } with target 10 i; slow or failing at one row if asked to. */
typedef struct numbers {
    _Atomic int64_t failing_row; /* -1: none */
    long nap_us;
    atomic_int reads, inside, most_inside;
    atomic_bool destroyed;
} numbers;

static cek_status numbers_read(void *user, const cek__data_draw *draw, const int64_t *rows, int64_t count, void *inputs,
                               void *targets)
{
    numbers *n = user;
    int inside = atomic_fetch_add(&n->inside, 1) + 1, most = atomic_load(&n->most_inside);
    cek_status st = CEK_OK;

    (void)draw;
    while (inside > most && !atomic_compare_exchange_weak(&n->most_inside, &most, inside))
        ;
    atomic_fetch_add(&n->reads, 1);
    if (n->nap_us > 0)
        nanosleep(&(struct timespec){ .tv_nsec = n->nap_us * 1000 }, NULL);
    for (int64_t i = 0; i < count; i++) {
        ((float *)inputs)[2 * i] = (float)rows[i];
        ((float *)inputs)[2 * i + 1] = (float)rows[i] + 0.5f;
        ((float *)targets)[i] = 10.0f * (float)rows[i];
        if (rows[i] == n->failing_row)
            st = cek__fail(CEK_IO, "row %d: the wire is cut", (int)rows[i]);
    }
    atomic_fetch_sub(&n->inside, 1);
    return st;
}

static void numbers_destroy(void *user)
{
    ((numbers *)user)->destroyed = true;
}

static cek_dataset *dataset_of(numbers *n, int64_t rows)
{
    cek__data_format format = {
        .input_type = CEK_F32, .input_rank = 1, .input_shape = { 2 }, .target_type = CEK_F32, .target_width = 1
    };
    cek__data_source source = { .user = n, .read = numbers_read, .destroy = numbers_destroy };
    cek_dataset *dataset;

    assert_ok(cek__dataset_from_source(&format, rows, &source, &dataset));
    return dataset;
}

static cek__loader_config config_of(uint32_t workers)
{
    return (
        cek__loader_config){ .batch = BATCH, .shuffle = true, .workers = workers, .prefetch = 3, .held = 1, .seed = 7 };
}

static void assert_batch(const cek__batch *b, int64_t number)
{
    const float *inputs = b->batch.inputs, *targets = b->batch.targets;

    ck_assert_int_eq(b->number, number);
    ck_assert_int_eq(b->base, number * BATCH);
    ck_assert(b->batch.input_type == CEK_F32 && b->batch.target_columns == 1);
    for (int64_t i = 0; i < b->batch.count; i++) {
        ck_assert_float_eq(inputs[2 * i], (float)b->batch.rows[i]);
        ck_assert_float_eq(inputs[2 * i + 1], (float)b->batch.rows[i] + 0.5f);
        ck_assert_float_eq(targets[i], 10.0f * (float)b->batch.rows[i]);
    }
}

/* Takes what is left of the epoch from batch `first`; the rows in order go to `rows`. Returns how many. */
static int64_t epoch_take(cek_loader *loader, int64_t first, int64_t *rows)
{
    const cek__batch *b;
    int64_t n = 0;

    for (int64_t number = first;; number++) {
        assert_ok(cek__loader_take(loader, &b));
        if (b == NULL)
            return n;
        assert_batch(b, number);
        memcpy(rows + n, b->batch.rows, (size_t)b->batch.count * sizeof *rows);
        n += b->batch.count;
        cek__loader_give_back(loader, b);
    }
}

static void assert_each_once(const int64_t *rows, int64_t count)
{
    char seen[ROWS] = { 0 };

    for (int64_t i = 0; i < count; i++)
        ck_assert(rows[i] >= 0 && rows[i] < ROWS && !seen[rows[i]]++);
}

START_TEST(the_order_depends_on_seed_and_epoch_alone)
{
    numbers n = { .failing_row = -1 };
    cek_dataset *dataset = dataset_of(&n, ROWS);
    int64_t expected[2][ROWS], rows[ROWS];

    for (uint32_t workers = 0; workers <= 4; workers++) {
        cek__loader_config config = config_of(workers);
        cek_loader *loader;

        n.nap_us = workers > 1 ? 50 : 0; /* so that workers overtake each other */
        config.prefetch = 1 + workers * 2;
        assert_ok(cek__loader_create(dataset, &config, &loader));
        for (int64_t epoch = 0; epoch < 2; epoch++) {
            assert_ok(cek__loader_begin(loader, epoch, 0));
            ck_assert_int_eq(epoch_take(loader, 0, rows), ROWS);
            assert_each_once(rows, ROWS);
            if (workers == 0)
                memcpy(expected[epoch], rows, sizeof rows);
            ck_assert_mem_eq(rows, expected[epoch], sizeof rows);
        }
        cek_loader_free(loader);
    }
    ck_assert_mem_ne(expected[0], expected[1], sizeof rows);
    ck_assert_int_gt(n.most_inside, 1); /* workers did read at once */
    cek_dataset_free(dataset);
    ck_assert(n.destroyed);
}
END_TEST

START_TEST(a_thread_is_taken_for_what_takes_longer_than_handing_it_over)
{
    static uint8_t pixels[2][1000];
    const cek__data_format format = { .input_type = CEK_U8,
                                      .input_rank = 1,
                                      .input_shape = { 1000 },
                                      .target_type = CEK_I32,
                                      .target_width = 1,
                                      .class_count = 1 };
    const int32_t labels[2] = { 0, 0 };
    numbers n = { .failing_row = -1 };
    cek_dataset *source = dataset_of(&n, ROWS), *arrays, *view;
    const int64_t row = 1;

    assert_ok(cek__dataset_borrow(&format, 2, pixels, labels, &arrays));
    assert_ok(cek__dataset_view(arrays, &row, 1, &view));
    ck_assert_uint_eq(cek__loader_workers(arrays, 65), 0);
    ck_assert_uint_eq(cek__loader_workers(arrays, 66), 1); /* 66 x 1004 bytes are above 65536 */
    ck_assert_uint_eq(cek__loader_workers(view, 65), 0);
    ck_assert_uint_eq(cek__loader_workers(source, 1), 1); /* who knows what it does */
    cek_dataset_free(view);
    cek_dataset_free(arrays);
    cek_dataset_free(source);
}
END_TEST

START_TEST(options_change_what_they_say)
{
    numbers n = { .failing_row = -1 };
    cek_dataset *dataset = dataset_of(&n, ROWS);
    cek__loader_config config = config_of(2);
    cek_loader *loader;
    int64_t rows[ROWS], other[ROWS];

    config.shuffle = false;
    config.drop_last = true;
    assert_ok(cek__loader_create(dataset, &config, &loader));
    assert_ok(cek__loader_begin(loader, 0, 0));
    ck_assert_int_eq(epoch_take(loader, 0, rows), ROWS / BATCH * BATCH);
    for (int64_t i = 0; i < ROWS / BATCH * BATCH; i++)
        ck_assert_int_eq(rows[i], i);
    cek_loader_free(loader);

    config = config_of(2);
    assert_ok(cek__loader_create(dataset, &config, &loader));
    assert_ok(cek__loader_begin(loader, 4, 0));
    ck_assert_int_eq(epoch_take(loader, 0, rows), ROWS);
    assert_ok(cek__loader_begin(loader, 4, 5)); /* where a run is resumed */
    ck_assert_int_eq(epoch_take(loader, 5, other), ROWS - 5 * BATCH);
    ck_assert_mem_eq(other, rows + 5 * BATCH, (ROWS - 5 * BATCH) * sizeof *rows);
    assert_ok(cek__loader_begin(loader, 4, BATCHES));
    ck_assert_int_eq(epoch_take(loader, BATCHES, other), 0);
    assert_fails(cek__loader_begin(loader, 4, BATCHES + 1), CEK_INVALID, "batch 14", "there are 13");
    cek_loader_free(loader);

    config.seed++;
    assert_ok(cek__loader_create(dataset, &config, &loader));
    assert_ok(cek__loader_begin(loader, 4, 0));
    epoch_take(loader, 0, other);
    ck_assert_mem_ne(rows, other, sizeof rows);
    cek_loader_free(loader);
    cek_dataset_free(dataset);
}
END_TEST

START_TEST(no_samples_are_no_batches)
{
    numbers n = { .failing_row = -1 };
    cek_dataset *dataset = dataset_of(&n, 0);
    cek__loader_config config = config_of(2);
    const cek__batch *b;
    cek_loader *loader;

    assert_ok(cek__loader_create(dataset, &config, &loader));
    assert_ok(cek__loader_take(loader, &b)); /* before any epoch */
    ck_assert_ptr_null(b);
    assert_ok(cek__loader_begin(loader, 0, 0));
    assert_ok(cek__loader_take(loader, &b));
    ck_assert_ptr_null(b);
    cek_loader_free(loader);
    cek_dataset_free(dataset);
}
END_TEST

START_TEST(batches_of_more_bytes_than_there_can_be_are_refused)
{
    const struct {
        int64_t input, target, batch;
    } cases[] = { { 1, (int64_t)1 << 31, (int64_t)1 << 31 },
                  { (int64_t)1 << 31, 1, (int64_t)1 << 32 },
                  { 1, 1, INT64_MAX },
                  { 1, 1, -1 } };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cek__data_format format = { .input_type = CEK_U8,
                                    .input_rank = 1,
                                    .input_shape = { cases[i].input },
                                    .target_type = CEK_F32,
                                    .target_width = cases[i].target };
        numbers n = { .failing_row = -1 };
        const cek__data_source source = { .user = &n, .read = numbers_read, .destroy = numbers_destroy };
        cek__loader_config config = config_of(0);
        cek_dataset *dataset;
        cek_loader *loader;

        assert_ok(cek__dataset_from_source(&format, 1, &source, &dataset));
        config.batch = cases[i].batch;
        assert_fails(cek__loader_create(dataset, &config, &loader), CEK_INVALID, "loader", "batches of");
        ck_assert_ptr_null(loader);
        cek_dataset_free(dataset);
    }
}
END_TEST

START_TEST(several_batches_are_held_and_given_back_in_any_order)
{
    numbers n = { .failing_row = -1, .nap_us = 20 };
    cek_dataset *dataset = dataset_of(&n, ROWS);

    for (uint32_t workers = 0; workers <= 3; workers++) {
        cek__loader_config config = config_of(workers);
        const cek__batch *held[4], *one;
        cek_loader *loader;

        config.held = 3;
        config.prefetch = 1;
        assert_ok(cek__loader_create(dataset, &config, &loader));
        assert_ok(cek__loader_begin(loader, 0, 0));
        for (int64_t i = 0; i < 3; i++)
            assert_ok(cek__loader_take(loader, &held[i]));
        assert_fails(cek__loader_begin(loader, 1, 0), CEK_INVALID, "epoch", "in use");
        for (int64_t i = 3; i < BATCHES; i++) {
            int64_t k = 2 - i % 3; /* neither the oldest nor the latest */

            cek__loader_give_back(loader, held[k]);
            assert_ok(cek__loader_take(loader, &held[k]));
            assert_batch(held[k], i);
        }
        for (int i = 0; i < 3; i++) /* nobody wrote into those that were held */
            assert_batch(held[i], held[i]->number);
        assert_ok(cek__loader_take(loader, &one));
        ck_assert_ptr_null(one);
        cek__loader_give_back_all(loader);
        assert_ok(cek__loader_begin(loader, 1, 0));
        for (uint32_t i = 0; i < config.held + (workers > 0); i++)
            assert_ok(cek__loader_take(loader, &one));
        assert_fails(cek__loader_take(loader, &one), CEK_INVALID, "loader", "batches are in use");
        ck_assert_ptr_null(one);
        cek_loader_free(loader);
    }
    cek_dataset_free(dataset);
}
END_TEST

START_TEST(a_failing_read_comes_in_the_place_of_its_batch)
{
    numbers n = { .failing_row = 50 };
    cek_dataset *dataset = dataset_of(&n, ROWS);

    for (uint32_t workers = 0; workers <= 3; workers++) {
        cek__loader_config config = config_of(workers);
        int64_t rows[ROWS];
        const cek__batch *b;
        cek_loader *loader;

        config.shuffle = false;
        n.failing_row = 50;
        assert_ok(cek__loader_create(dataset, &config, &loader));
        assert_ok(cek__loader_begin(loader, 0, 0));
        for (int64_t number = 0; number < 50 / BATCH; number++) {
            assert_ok(cek__loader_take(loader, &b));
            assert_batch(b, number);
            cek__loader_give_back(loader, b);
        }
        for (int again = 0; again < 3; again++) {
            cek__fail(CEK_INTERNAL, "something else of this thread");
            assert_fails(cek__loader_take(loader, &b), CEK_IO, "row 50", "the wire is cut");
            ck_assert_ptr_null(b);
        }
        n.failing_row = -1;
        assert_ok(cek__loader_begin(loader, 1, 0)); /* another epoch, another chance */
        ck_assert_int_eq(epoch_take(loader, 0, rows), ROWS);
        cek_loader_free(loader);
    }
    cek_dataset_free(dataset);
}
END_TEST

START_TEST(an_epoch_begins_and_a_loader_ends_while_workers_are_busy)
{
    numbers n = { .failing_row = -1, .nap_us = 3000 };
    cek_dataset *dataset = dataset_of(&n, ROWS);
    cek__loader_config config = config_of(4);
    int64_t rows[ROWS], expected[ROWS];
    const cek__batch *b;
    cek_loader *loader;

    config.prefetch = 8;
    for (int round = 0; round < 6; round++) {
        int before = n.reads;

        assert_ok(cek__loader_create(dataset, &config, &loader));
        assert_ok(cek__loader_begin(loader, 0, 0));
        for (int i = 0; i < round; i++) {
            assert_ok(cek__loader_take(loader, &b));
            cek__loader_give_back(loader, b);
        }
        if (round % 2 == 0) {
            assert_ok(cek__loader_begin(loader, 1, 0));
            epoch_take(loader, 0, round == 0 ? expected : rows);
            ck_assert(round == 0 || memcmp(rows, expected, sizeof rows) == 0);
            assert_ok(cek__loader_begin(loader, 2, 0));
        }
        while (n.reads == before)
            nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
        cek_loader_free(loader);
        ck_assert_int_eq(n.inside, 0);
    }
    cek_dataset_free(dataset);
}
END_TEST

/* ---- memory ---- */

typedef struct counter {
    int allocated, freed, fail_at;
} counter;

static cek_status counted_alloc(void *user, uint64_t size, void **out)
{
    counter *c = user;

    if (++c->allocated == c->fail_at)
        return cek__fail(CEK_OUT_OF_MEMORY, "no pinned memory");
    *out = malloc(size);
    return CEK_OK;
}

static void counted_free(void *user, void *memory)
{
    ((counter *)user)->freed++;
    free(memory);
}

START_TEST(batches_lie_in_the_callers_memory)
{
    numbers n = { .failing_row = -1 };
    cek_dataset *dataset = dataset_of(&n, ROWS);
    counter c = { 0 };
    cek__loader_config config = config_of(2);
    int64_t rows[ROWS];
    cek_loader *loader;

    config.memory_alloc = counted_alloc;
    config.memory_free = counted_free;
    config.memory_user = &c;
    assert_ok(cek__loader_create(dataset, &config, &loader));
    ck_assert_int_eq(c.allocated, 2 * (3 + 1)); /* inputs and targets of each slot */
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        assert_ok(cek__loader_begin(loader, epoch, 0));
        epoch_take(loader, 0, rows);
    }
    ck_assert_int_eq(c.allocated, 8); /* none while running */
    cek_loader_free(loader);
    ck_assert_int_eq(c.freed, 8);
    c = (counter){ .fail_at = 6 };
    assert_fails(cek__loader_create(dataset, &config, &loader), CEK_OUT_OF_MEMORY, "no pinned", "memory");
    ck_assert_ptr_null(loader);
    ck_assert_int_eq(c.freed, 5);
    cek_dataset_free(dataset);
}
END_TEST

START_TEST(a_failing_allocation_leaves_nothing_behind)
{
    numbers n = { .failing_row = -1 };
    cek_dataset *dataset = dataset_of(&n, ROWS);
    cek__loader_config config = config_of(2);
    long nth = 1;

    for (;; nth++) {
        cek_loader *loader;
        cek_status st;
        bool done;

        cek__fault_set(CEK__FAULT_ALLOC, nth);
        st = cek__loader_create(dataset, &config, &loader);
        done = cek__fault_pending(CEK__FAULT_ALLOC);
        ck_assert_uint_eq(st, done ? CEK_OK : CEK_OUT_OF_MEMORY);
        ck_assert(done == (loader != NULL));
        cek_loader_free(loader);
        if (done)
            break;
    }
    cek__fault_set(CEK__FAULT_ALLOC, 0);
    ck_assert_int_ge(nth, 3 * 4 + 4); /* each slot's three, and what is there once */
    cek_dataset_free(dataset);
    ck_assert(n.destroyed);
}
END_TEST

START_TEST(impossible_configurations_are_refused)
{
    numbers n = { .failing_row = -1 };
    cek_dataset *dataset = dataset_of(&n, ROWS);
    cek__loader_config config;
    cek_loader *loader;

    config = config_of(0), config.batch = 0;
    assert_fails(cek__loader_create(dataset, &config, &loader), CEK_INVALID, "loader", "0 samples");
    config = config_of(0), config.batch = INT64_MAX;
    assert_fails(cek__loader_create(dataset, &config, &loader), CEK_INVALID, "loader", "samples");
    config = config_of(100000);
    assert_fails(cek__loader_create(dataset, &config, &loader), CEK_INVALID, "loader", "100000 workers");
    config = config_of(1), config.prefetch = 0;
    assert_fails(cek__loader_create(dataset, &config, &loader), CEK_INVALID, "loader", "0 batches ahead");
    cek_dataset_free(dataset);
}
END_TEST

/* ---- nn.h ---- */

START_TEST(the_public_loader_fills_a_devices_memory)
{
    cek_loader_options options = { .size = sizeof options, .workers = 2, .batch = BATCH, .shuffle = true };
    numbers n = { .failing_row = -1 };
    cek_dataset *dataset = dataset_of(&n, ROWS);
    cek_engine *engine;
    const cek_batch *batch;
    cek_loader *loader;

    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_find(engine, "cpu:0", &options.pin_for));
    assert_ok(cek_loader_create(dataset, &options, &loader));
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int64_t taken = 0, rows[ROWS];

        assert_ok(cek_loader_start(loader, epoch));
        for (;;) {
            assert_ok(cek_loader_next(loader, &batch));
            if (batch == NULL || (epoch == 1 && taken > 20)) /* the second is left in the middle */
                break;
            ck_assert_uint_eq((uintptr_t)batch->inputs % 64, 0);
            for (int64_t i = 0; i < batch->count; i++)
                ck_assert_float_eq(((const float *)batch->inputs)[2 * i], (float)(rows[taken++] = batch->rows[i]));
        }
        assert_each_once(rows, taken);
        ck_assert_int_eq(taken, epoch == 1 ? 24 : ROWS);
    }
    cek_loader_free(loader);
    options.size = 0;
    assert_fails(cek_loader_create(dataset, &options, &loader), CEK_INVALID, "cek_loader_create", "size");
    struct {
        cek_loader_options known;
        uint64_t later;
    } newer = { .known = { .size = sizeof newer }, .later = 1 };
    assert_fails(cek_loader_create(dataset, &newer.known, &loader), CEK_UNSUPPORTED, "cek_loader_create",
                 "later version");
    newer.later = 0;
    assert_ok(cek_loader_create(dataset, &newer.known, &loader));
    cek_loader_free(loader);
    assert_ok(cek_loader_create(dataset, NULL, &loader)); /* all defaults: in order, 64 at a time */
    assert_ok(cek_loader_start(loader, 0));
    assert_ok(cek_loader_next(loader, &batch));
    ck_assert(batch->count == 64 && batch->rows[63] == 63);
    cek_loader_free(loader);
    cek_engine_free(engine);
    cek_dataset_free(dataset);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("loader");
    TCase *all = tcase_create("all");

    tcase_add_test(all, the_order_depends_on_seed_and_epoch_alone);
    tcase_add_test(all, a_thread_is_taken_for_what_takes_longer_than_handing_it_over);
    tcase_add_test(all, options_change_what_they_say);
    tcase_add_test(all, no_samples_are_no_batches);
    tcase_add_test(all, batches_of_more_bytes_than_there_can_be_are_refused);
    tcase_add_test(all, several_batches_are_held_and_given_back_in_any_order);
    tcase_add_test(all, a_failing_read_comes_in_the_place_of_its_batch);
    tcase_add_test(all, an_epoch_begins_and_a_loader_ends_while_workers_are_busy);
    tcase_add_test(all, batches_lie_in_the_callers_memory);
    tcase_add_test(all, a_failing_allocation_leaves_nothing_behind);
    tcase_add_test(all, impossible_configurations_are_refused);
    tcase_add_test(all, the_public_loader_fills_a_devices_memory);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
