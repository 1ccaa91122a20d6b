/* 04_train_on_all - a small network learns the exclusive or on every device of the machine at once: nn.DataParallel,
 * but that the devices may differ. Each gets a share of every batch, the gradients are added up, and all have the same
 * weights afterwards, to the byte.
 *
 *     04_train_on_all [DEVICES]     default: "all"; or "gpu", "cpu:0,cpu:1", "cuda:0,2-3"
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cekernels/nn.h>

enum { POINTS = 64, STEPS = 300, LARGEST = 32 };

static void check(cek_status st)
{
    if (st == CEK_OK)
        return;
    fprintf(stderr, "04_train_on_all: %s\n", cek_error_text());
    exit(1);
}

/* Whether all devices have the same bytes of every parameter. */
static bool replicas_agree(cek_trainer *trainer, const cek_model *model)
{
    for (size_t p = 0; p < cek_model_parameter_count(model); p++) {
        float first[LARGEST], other[LARGEST];
        cek_parameter parameter;

        check(cek_model_parameter(model, p, &parameter));
        const uint64_t bytes = (uint64_t)parameter.count * sizeof *first;
        if (bytes > sizeof first)
            return false;
        check(cek_trainer_read_replica(trainer, 0, p, first, bytes));
        for (size_t d = 1; d < cek_trainer_device_count(trainer); d++) {
            check(cek_trainer_read_replica(trainer, d, p, other, bytes));
            if (memcmp(first, other, (size_t)bytes) != 0)
                return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static float x[POINTS][2];
    static int32_t label[POINTS];
    const cek_optimizer adam = { .size = sizeof adam, .algorithm = CEK_OPTIMIZER_ADAM, .lr = 0.02 };
    const cek_trainer_options options = {
        .size = sizeof options, .batch = POINTS, .optimizer = &adam, .shares = CEK_SHARES_EQUAL
    };
    const cek_batch batch = {
        .size = sizeof batch, .count = POINTS, .inputs = x, .targets = label, .input_type = CEK_F32
    };
    cek_step_result r = { .size = sizeof r };
    cek_engine *engine;
    cek_device **devices;
    size_t count;
    cek_model *model;
    cek_trainer *trainer;

    for (int i = 0; i < POINTS; i++) {
        x[i][0] = i & 1 ? 1 : -1;
        x[i][1] = i & 2 ? 1 : -1;
        label[i] = (i & 1) != (i >> 1 & 1);
    }
    check(cek_engine_create(NULL, &engine));
    check(cek_engine_select(engine, argc > 1 ? argv[1] : "all", CEK_PROFILE_TRAINING, &devices, &count));
    check(cek_model_parse("linear:8 tanh linear:2", 1, (int64_t[]){ 2 }, &model));
    cek_model_init(model, 1);

    check(cek_trainer_create(model, devices, count, &options, &trainer)); /* DataParallel(model, device_ids) */
    for (int i = 0; i < STEPS; i++)
        check(cek_trainer_step(trainer, &batch, &r));
    for (size_t i = 0; i < count; i++)
        printf("%s: %lld of %lld samples\n", cek_device_name(devices[i]), (long long)cek_trainer_share(trainer, i),
               (long long)r.samples);
    const bool agree = replicas_agree(trainer, model), learnt = r.correct == POINTS && r.loss < 0.1;
    printf("after %lld steps: loss %.4f, %lld of %lld right; the weights are %s\n", (long long)r.step, r.loss,
           (long long)r.correct, (long long)r.labels, agree ? "the same everywhere" : "DIFFERENT");
    cek_trainer_free(trainer);
    cek_model_free(model);
    free(devices);
    cek_engine_free(engine);
    return agree && learnt ? 0 : 1;
}
