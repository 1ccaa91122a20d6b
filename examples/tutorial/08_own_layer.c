/* 08_own_layer - a layer and a loss of one's own, from the public headers alone.
 *
 *     08_own_layer [DEVICES]
 *
 * The layer is squeeze and excitation (Hu et al. 2018): each channel is multiplied by what two small linear layers make
 * of the means of all of them. The loss is focal (Lin et al. 2017), -(1 - p)^2 ln p of the right class's probability p:
 * what is right already counts little. Neither has a gradient here: it follows from the parts. The program holds it
 * against differences in double, on the reference, then trains over DEVICES ("cpu"). */
#include <cekernels/parts.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHANNELS = 3, SIDE = 8, PIXELS = CHANNELS * SIDE * SIDE, CLASSES = 4, BATCH = 32, STEPS = 60 };

static void check(cek_status st)
{
    if (st == CEK_OK)
        return;
    fprintf(stderr, "08_own_layer: %s\n", cek_error_text());
    exit(1);
}

/* ---- the layer ---- */

/* x [N,channels,H,W] to the same. Its parameters are NAME.down.weight, NAME.down.bias, NAME.up.weight, NAME.up.bias. */
static int squeeze_excitation(cek_model *m, const char *name, int x, int64_t channels, int64_t squeezed)
{
    int s = cek_part_reduce(m, x, CEK_REDUCE_MEAN, 1 << 2 | 1 << 3, false); /* [N,channels] */

    check(cek_model_enter(m, name));
    check(cek_model_name(m, "down"));
    check(cek_model_linear(m, s, squeezed, true, &s));
    check(cek_model_activation(m, s, CEK_ACT_SILU, &s));
    check(cek_model_name(m, "up"));
    check(cek_model_linear(m, s, channels, true, &s));
    check(cek_model_leave(m));
    s = cek_part_apply(m, CEK_PW_SIGMOID, s, -1);
    s = cek_part_reshape(m, s, 4, (int64_t[]){ CEK_SAMPLES, channels, 1, 1 });
    return cek_part_apply(m, CEK_PW_MUL, x, s);
}

/* ---- the loss ---- */

static void focal_loss(cek_model *m, int logits)
{
    int label = cek_part_target(m, CEK_I32, 0, NULL);                             /* [N] */
    int ln_p = cek_part_gather(m, cek_part_log_softmax(m, logits, -1), label, 1); /* of [N,classes], for each sample */
    int rest = cek_part_scale(m, cek_part_apply(m, CEK_PW_EXP, ln_p, -1), -1, 1); /* 1 - p */
    int v = cek_part_apply(m, CEK_PW_MUL, cek_part_apply(m, CEK_PW_MUL, rest, rest), ln_p);

    cek_part_loss(m, cek_part_scale(m, v, -1, 0), -1);
}

static cek_model *network(void)
{
    const cek_conv_layer conv = { .size = sizeof conv, .out_channels = 8, .kernel = { 3, 3 }, .same = true };
    cek_model *m;
    int x;

    check(cek_model_create(3, (int64_t[]){ CHANNELS, SIDE, SIDE }, &m));
    check(cek_model_conv(m, 0, &conv, &x));
    x = squeeze_excitation(m, "se", cek_part_apply(m, CEK_PW_TANH, x, -1), 8, 4);
    check(cek_model_pool_to(m, x, CEK_POOL_AVERAGE, (int64_t[]){ 2, 2 }, &x));
    check(cek_model_flatten(m, x, &x));
    check(cek_model_linear(m, x, CLASSES, true, &x));
    check(cek_model_set_output(m, x));
    focal_loss(m, x);
    check(cek_model_status(m)); /* of all parts */
    cek_model_init(m, 1);
    return m;
}

/* ---- data: noise, brighter in the quarter of the image that the label names ---- */

static float images[BATCH * PIXELS];
static int32_t labels[BATCH];

static void data_make(void)
{
    uint32_t state = 1;

    for (int i = 0; i < BATCH; i++) {
        labels[i] = i % CLASSES;
        for (int p = 0; p < PIXELS; p++) { /* [H][W][C] */
            int y = p / CHANNELS / SIDE, x = p / CHANNELS % SIDE, quarter = y / (SIDE / 2) * 2 + x / (SIDE / 2);

            state = state * 1664525u + 1013904223u;
            images[i * PIXELS + p] = (float)(state >> 8) / (1 << 23) - 1 + (quarter == labels[i] ? 0.5f : 0);
        }
    }
}

/* ---- training, and the gradient of a step ---- */

static cek_trainer *trainer_of(cek_model *m, cek_device *const *devices, size_t count, cek_dtype type, double rate)
{
    const cek_optimizer adam = { .size = sizeof adam, .lr = rate };
    const cek_trainer_options o = { .size = sizeof o, .batch = BATCH, .type = type, .optimizer = &adam };
    cek_trainer *t;

    check(cek_trainer_create(m, devices, count, &o, &t));
    return t;
}

static double step(cek_trainer *t)
{
    const cek_batch batch = {
        .size = sizeof batch, .count = BATCH, .inputs = images, .targets = labels, .input_type = CEK_F32
    };
    cek_step_result r = { .size = sizeof r };

    check(cek_trainer_step(t, &batch, &r));
    return r.loss;
}

static double loss_of(cek_model *m, cek_device *const *devices)
{
    cek_trainer *t = trainer_of(m, devices, 1, CEK_F64, 1e-30);
    double loss = step(t);

    cek_trainer_free(t);
    return loss;
}

/* At two places of each parameter: the largest difference, by the gradient's size. */
static double gradients_differ(cek_model *m, cek_device *const *devices)
{
    cek_trainer *t = trainer_of(m, devices, 1, CEK_F64, 1e-30);
    double most = 0;

    step(t);
    for (size_t i = 0; i < cek_model_parameter_count(m); i++) {
        cek_parameter p;
        double *gradient;

        check(cek_model_parameter(m, i, &p));
        gradient = malloc((size_t)p.count * sizeof *gradient);
        if (!gradient)
            exit(1);
        check(cek_trainer_read_gradient(t, i, gradient, p.count));
        for (int64_t k = 0; k < p.count; k += 1 + p.count / 2) {
            float at = p.data[k], up = at + 0x1p-8f, down = at - 0x1p-8f;
            double more, less;

            p.data[k] = up;
            more = loss_of(m, devices);
            p.data[k] = down;
            less = loss_of(m, devices);
            p.data[k] = at;
            most = fmax(most, fabs((more - less) / ((double)up - (double)down) - gradient[k]));
        }
        free(gradient);
    }
    cek_trainer_free(t);
    return most;
}

int main(int argc, char **argv)
{
    cek_engine *engine;
    cek_device **devices;
    size_t count;
    cek_model *m = network();
    cek_trainer *t;
    double most, first = 0, last = 0;

    data_make();
    check(cek_engine_create(NULL, &engine));
    check(cek_engine_select(engine, "reference:0", CEK_PROFILE_TRAINING, &devices, &count));
    most = gradients_differ(m, devices);
    free(devices);
    /* A difference over 2^-7 is wrong by a third derivative, below 1 here, times 2^-16 / 6. */
    printf("gradients: %s from differences by %.1e\n", most <= 0x1p-16 / 6 ? "right," : "WRONG,", most);

    check(cek_engine_select(engine, argc > 1 ? argv[1] : "cpu", CEK_PROFILE_TRAINING, &devices, &count));
    t = trainer_of(m, devices, count, CEK_F32, 0.01);
    for (int i = 0; i < STEPS; i++) {
        last = step(t);
        if (i == 0)
            first = last;
    }
    printf("loss: %.4f, after %d steps on %zu device%s %.4f\n", first, STEPS, count, count == 1 ? "" : "s", last);
    cek_trainer_free(t);
    free(devices);
    cek_engine_free(engine);
    cek_model_free(m);
    return most <= 0x1p-16 / 6 && last < first / 2 ? 0 : 1;
}
