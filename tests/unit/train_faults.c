/* train_faults.c - every allocation of host memory fails once, from a trainer's creation to a
 * prediction: a clean status with a text each time, and a leak checker finds nothing. */
#include "core/base/fault.h"
#include "train_place.h"

static cek_device *fallback; /* does what the devices lack; NULL: they lack nothing */

/* After a failed fit: a step either works, or says again what broke the trainer. */
static void trainer_is_usable_or_broken(cek_trainer *t, cek_status failure)
{
    cek_batch batch = { .size = sizeof batch, .count = 5, .inputs = images, .targets = labels, .input_type = CEK_F32 };
    cek_status st = cek_trainer_step(t, &batch, NULL);
    ck_assert_msg(st == CEK_OK || st == failure, "%s after %s", cek_status_name(st), cek_status_name(failure));
    ck_assert_uint_eq(cek_trainer_pull(t), st);
}

static cek_status train(place *p)
{
    cek_trainer *t = NULL;
    cek_trainer_options o = {
        .size = sizeof o, .batch = 8, .shares = CEK_SHARES_EQUAL, .average = 0.5, .fallback = fallback
    };
    cek_fit_options f = { .size = sizeof f, .epochs = 2, .test = p->set, .workers = 2 };
    cek_epoch_result last = { .size = sizeof last };
    cek_status st = cek_trainer_create(p->model, p->devices, p->count, &o, &t);
    if (st != CEK_OK) {
        ck_assert_ptr_null(t);
        return st;
    }
    st = cek_trainer_fit(t, p->set, &f, &last);
    if (st == CEK_OK)
        st = cek_trainer_pull(t);
    if (st != CEK_OK)
        trainer_is_usable_or_broken(t, st);
    cek_trainer_free(t);
    return st;
}

static cek_status predict(place *p)
{
    cek_predictor *q = NULL;
    cek_predictor_options o = { .size = sizeof o, .batch = 6, .fallback = fallback };
    float outputs[SAMPLES * CLASSES];
    cek_status st = cek_predictor_create(p->model, p->devices, p->count, &o, &q);
    if (st != CEK_OK) {
        ck_assert_ptr_null(q);
        return st;
    }
    st = cek_predictor_run_dataset(q, p->set, outputs);
    if (st != CEK_OK) /* nothing is broken: the same again works */
        ok(cek_predictor_run_dataset(q, p->set, outputs));
    cek_predictor_free(q);
    return st;
}

static long every_site(place *p, cek_status (*work)(place *))
{
    long site = 1;
    ok(work(p)); /* what devices allocate when they are first used is not what is tested */
    for (;; site++) {
        cek_status st;
        bool pending;
        cek__fault_set(CEK__FAULT_ALLOC, site);
        st = work(p);
        pending = cek__fault_pending(CEK__FAULT_ALLOC);
        cek__fault_set(CEK__FAULT_ALLOC, 0);
        if (pending)
            break;
        ck_assert_msg(st == CEK_OK || st == CEK_OUT_OF_MEMORY, "site %ld: %s: %s", site, cek_status_name(st),
                      cek_error_text());
        ck_assert_msg(st == CEK_OK || cek_error_text()[0] != 0, "site %ld: no text", site);
    }
    return site - 1;
}

static void everywhere(const char *list, const char *with)
{
    place p;
    setenv("CEKERNELS_CPU_DEVICES", "2", 1);
    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    place_open(&p, list);
    ck_assert_uint_eq(p.count, 2);
    fallback = NULL;
    if (with)
        ok(cek_engine_find(p.engine, with, &fallback));
    ck_assert_int_gt(every_site(&p, train), 100);
    ck_assert_int_gt(every_site(&p, predict), 30);
    ok(train(&p));
    place_close(&p);
}

START_TEST(no_allocation_that_fails_leaks_or_crashes)
{
    everywhere("cpu", NULL);
}
END_TEST

START_TEST(nor_on_devices_that_work_beside_the_host)
{
    everywhere("sim", NULL);
}
END_TEST

START_TEST(nor_where_operations_are_left_to_another_device)
{
    setenv("CEKERNELS_SIM_LACKS", "conv_forward,pool_backward,cross_entropy", 1);
    everywhere("sim", "cpu:0");
}
END_TEST

/* Nothing has changed yet where memory for it runs out: the same again works, and the next step. */
START_TEST(no_memory_for_the_average_breaks_no_trainer)
{
    place p;
    cek_trainer *t;
    cek_trainer_options o = { .size = sizeof o, .batch = 8, .average = 0.5 };
    cek_batch batch = { .size = sizeof batch, .count = 5, .inputs = images, .targets = labels, .input_type = CEK_F32 };
    long site = 1;
    place_open(&p, "cpu");
    ok(cek_trainer_create(p.model, p.devices, p.count, &o, &t));
    ok(cek_trainer_step(t, &batch, NULL));
    for (bool pending = false; !pending; site++) {
        cek__fault_set(CEK__FAULT_ALLOC, site);
        const cek_status st = cek_trainer_use_average(t, true);
        pending = cek__fault_pending(CEK__FAULT_ALLOC);
        cek__fault_set(CEK__FAULT_ALLOC, 0);
        ck_assert_msg(st == (pending ? CEK_OK : CEK_OUT_OF_MEMORY), "site %ld: %s", site, cek_status_name(st));
        ok(cek_trainer_use_average(t, true));
        ok(cek_trainer_use_average(t, false));
        ok(cek_trainer_step(t, &batch, NULL));
    }
    ck_assert_int_gt(site, 3);
    cek_trainer_free(t);
    place_close(&p);
}
END_TEST

static double second_loss(const char *fault)
{
    const cek_trainer_options o = { .size = sizeof o, .batch = 8, .shares = CEK_SHARES_EQUAL };
    const cek_batch batch = {
        .size = sizeof batch, .count = 8, .inputs = images, .targets = labels, .input_type = CEK_F32
    };
    cek_step_result r = { .size = sizeof r };
    cek_metrics m = { .size = sizeof m };
    cek_trainer *t;
    place p;

    setenv("CEKERNELS_SIM_FAULTS", fault, 1);
    place_open(&p, "sim:0");
    cek_model_init(p.model, 5);
    ok(cek_trainer_create(p.model, p.devices, p.count, &o, &t));
    ok(cek_trainer_step(t, &batch, &r));
    ck_assert_uint_eq(cek_trainer_evaluate(t, p.set, &m), *fault ? CEK_OUT_OF_MEMORY : CEK_OK);
    ok(cek_trainer_step(t, &batch, &r));
    cek_trainer_free(t);
    place_close(&p);
    return r.loss;
}

START_TEST(a_failed_evaluation_is_no_part_of_the_next_step)
{
    ck_assert_double_eq(second_loss("out_of_memory@download#2"), second_loss(""));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_faults");
    TCase *c = tcase_create("train_faults");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, no_allocation_that_fails_leaks_or_crashes);
    tcase_add_test(c, nor_on_devices_that_work_beside_the_host);
    tcase_add_test(c, no_memory_for_the_average_breaks_no_trainer);
    tcase_add_test(c, a_failed_evaluation_is_no_part_of_the_next_step);
    tcase_add_test(c, nor_where_operations_are_left_to_another_device);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
