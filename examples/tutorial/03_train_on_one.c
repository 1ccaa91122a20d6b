/* 03_train_on_one - one device learns y = 3 a - 2 b + 1 from points: PyTorch's nn.Linear, MSELoss and SGD, and its loop
 * of zero_grad, backward and step, which is one call here.
 *
 *     03_train_on_one [DEVICE]     default: "fastest"
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cekernels/nn.h>

enum { POINTS = 64, STEPS = 200 };

static void check(cek_status st)
{
    if (st == CEK_OK)
        return;
    fprintf(stderr, "03_train_on_one: %s\n", cek_error_text());
    exit(1);
}

int main(int argc, char **argv)
{
    static float x[POINTS][2], y[POINTS];
    const cek_optimizer sgd = { .size = sizeof sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = 0.1 };
    const cek_trainer_options options = {
        .size = sizeof options, .loss = CEK_LOSS_MSE, .batch = POINTS, .optimizer = &sgd
    };
    const cek_batch batch = {
        .size = sizeof batch, .count = POINTS, .inputs = x, .targets = y, .input_type = CEK_F32, .target_columns = 1
    };
    cek_step_result r = { .size = sizeof r };
    cek_parameter weight, bias;
    cek_engine *engine;
    cek_device **devices;
    size_t count;
    cek_model *model;
    cek_trainer *trainer;

    for (int i = 0; i < POINTS; i++) {
        x[i][0] = (float)(i % 8) / 4 - 1;
        x[i][1] = (float)(i / 8 % 8) / 4 - 1;
        y[i] = 3 * x[i][0] - 2 * x[i][1] + 1;
    }
    check(cek_engine_create(NULL, &engine));
    check(cek_engine_select(engine, argc > 1 ? argv[1] : "fastest", CEK_PROFILE_TRAINING, &devices, &count));

    check(cek_model_parse("linear:1", 1, (int64_t[]){ 2 }, &model)); /* nn.Linear(2, 1) */
    cek_model_init(model, 1);
    check(cek_trainer_create(model, devices, 1, &options, &trainer)); /* model.to(device) */
    for (int i = 0; i < STEPS; i++) {
        check(cek_trainer_step(trainer, &batch, &r));
        if (i % 50 == 0)
            printf("step %3d  loss %.6f\n", i + 1, r.loss);
    }
    check(cek_trainer_pull(trainer)); /* from the device into the model */
    check(cek_model_parameter(model, 0, &weight));
    check(cek_model_parameter(model, 1, &bias));
    printf("on %s: y = %.3f a %+.3f b %+.3f\n", cek_device_name(devices[0]), weight.data[0], weight.data[1],
           bias.data[0]);
    cek_trainer_free(trainer);
    const bool right = fabsf(weight.data[0] - 3) < 1e-3f && fabsf(weight.data[1] + 2) < 1e-3f &&
                       fabsf(bias.data[0] - 1) < 1e-3f;
    cek_model_free(model);
    free(devices);
    cek_engine_free(engine);
    return right ? 0 : 1;
}
