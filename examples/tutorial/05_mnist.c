/* 05_mnist - the tutorial's convolutional network, on every device named, in one synchronous step.
 *
 *     05_mnist [-d DEVICES] [-m MODEL] [-e EPOCHS] [-n STEPS] [DIRECTORY]
 *
 * DIRECTORY holds the four IDX files of MNIST (plain or .gz); without one, digits are drawn.
 * DEVICES: "cpu", "cpu:0,cuda:0". Writes the weights to mnist.safetensors, which
 * torch.nn.Sequential.load_state_dict takes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cekernels/nn.h>

#define TRY(call)                                                \
    do {                                                         \
        if ((call) != CEK_OK) {                                  \
            fprintf(stderr, "05_mnist: %s\n", cek_error_text()); \
            goto out;                                            \
        }                                                        \
    } while (0)

static void print_epoch(void *user, const cek_epoch_result *r)
{
    (void)user;
    printf("epoch %lld  train loss %.4f accuracy %.4f  test loss %.4f accuracy %.4f  %.0f samples/s\n",
           (long long)r->epoch, r->train->loss, r->train->accuracy, r->test->loss, r->test->accuracy,
           r->samples_per_second);
}

/* A whole number from 1. */
static bool number_read(const char *text, int64_t *out)
{
    char *end;
    *out = strtoll(text, &end, 10);
    return end != text && !*end && *out >= 1 && *out <= INT32_MAX;
}

int main(int argc, char **argv)
{
    const char *list = NULL, *name = "lenet5", *directory;
    cek_engine *engine = NULL;
    cek_device **devices = NULL;
    cek_model *model = NULL;
    cek_dataset *train = NULL, *test = NULL;
    cek_trainer *trainer = NULL;
    cek_fit_options fit = { .size = sizeof fit, .epochs = 2, .seed = 1, .on_epoch = print_epoch };
    cek_trainer_options options = {
        .size = sizeof options, .loss = CEK_LOSS_CROSS_ENTROPY, .batch = 64, .seed = 1, .input_type = CEK_U8
    }; /* Adam with its defaults */
    int64_t shape[CEK_RANK_MAX];
    size_t count;
    char *summary = NULL;
    bool well = true;
    int option, rank, failed = 1;

    while ((option = getopt(argc, argv, "d:m:e:n:")) != -1) {
        if (option == 'd')
            list = optarg;
        else if (option == 'm')
            name = optarg;
        else if (option == 'e')
            well &= number_read(optarg, &fit.epochs);
        else if (option == 'n')
            well &= number_read(optarg, &fit.max_steps);
        else
            well = false;
    }
    if (!well || argc - optind > 1) {
        fprintf(stderr, "usage: 05_mnist [-d DEVICES] [-m MODEL] [-e EPOCHS] [-n STEPS] [DIRECTORY]\n");
        return 2;
    }
    directory = argv[optind];

    TRY(cek_engine_create(NULL, &engine));
    TRY(cek_engine_select(engine, list, CEK_PROFILE_TRAINING, &devices, &count));
    TRY(directory ? cek_dataset_mnist(directory, true, &train) : cek_dataset_digits(1, true, &train));
    TRY(directory ? cek_dataset_mnist(directory, false, &test) : cek_dataset_digits(1, false, &test));
    rank = cek_dataset_shape(train, shape);
    TRY(cek_model_parse(name, rank, shape, &model));
    cek_model_set_input_scale(model, 2.0 / 255, -1); /* (x/255 - 0.5) / 0.5, on the device */
    cek_model_init(model, 1);
    TRY(cek_model_summary(model, devices[0], options.batch, &summary));
    fputs(summary, stdout);

    TRY(cek_trainer_create(model, devices, count, &options, &trainer));
    fit.test = test;
    TRY(cek_trainer_fit(trainer, train, &fit, NULL));
    for (size_t i = 0; i < count; i++)
        printf("%s: %lld samples of the last step\n", cek_device_name(devices[i]),
               (long long)cek_trainer_share(trainer, i));
    TRY(cek_trainer_pull(trainer));
    TRY(cek_model_save(model, "mnist.safetensors"));
    printf("weights: mnist.safetensors\n");
    failed = 0;
out:
    free(summary);
    cek_trainer_free(trainer);
    cek_dataset_free(test);
    cek_dataset_free(train);
    cek_model_free(model);
    free(devices);
    cek_engine_free(engine);
    return failed;
}
