/* 06_boston - regression on a table, with a loader and a curve: PyTorch's DataLoader and the loop around it. The
 * batches are split over the devices: 128 samples on two are 64 and 64, the last 20 of an epoch 10 and 10.
 *
 *     06_boston [-d DEVICES] [-e EPOCHS] FILE.csv TARGET
 *
 * A fifth of the rows is kept for the test; features are standardised by the training rows. The curve is printed, and
 * written to curve.csv.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cekernels/nn.h>

#define TRY(call)                                                 \
    do {                                                          \
        if ((call) != CEK_OK) {                                   \
            fprintf(stderr, "06_boston: %s\n", cek_error_text()); \
            goto out;                                             \
        }                                                         \
    } while (0)

enum { BATCH = 128, LINES = 15 };

/* for x, y in loader: ... The mean loss of the epoch's samples in *loss. */
static cek_status epoch_run(cek_trainer *trainer, cek_loader *loader, int64_t epoch, double *loss)
{
    const cek_batch *batch;
    cek_step_result r = { .size = sizeof r };
    int64_t samples = 0;
    cek_status st = cek_loader_start(loader, epoch);

    for (*loss = 0; !st && !(st = cek_loader_next(loader, &batch)) && batch;) {
        st = cek_trainer_step(trainer, batch, &r);
        *loss += r.loss * (double)r.samples;
        samples += r.samples;
        if (epoch > 1 || st)
            continue;
        printf("step %lld: %lld samples =", (long long)r.step, (long long)r.samples);
        for (size_t i = 0; i < cek_trainer_device_count(trainer); i++)
            printf("%s %s %lld", i ? "," : "", cek_device_name(cek_trainer_device(trainer, i)),
                   (long long)cek_trainer_share(trainer, i));
        printf("\n");
    }
    *loss /= samples ? (double)samples : 1;
    return st;
}

/* A bar as long as the test error is large, up to that behind the first epoch. */
static void curve_line(int64_t epoch, double train, double test, double first)
{
    static const char bar[] = "########################################";
    const int length = test < first ? (int)(40 * test / first) : 40;
    printf("epoch %4lld  train %8.3f  test %8.3f  %.*s\n", (long long)epoch, train, test, length, bar);
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
    const char *list = NULL;
    int64_t shape[CEK_RANK_MAX], epochs = 100;
    cek_engine *engine = NULL;
    cek_device **devices = NULL;
    size_t count = 0;
    cek_model *model = NULL;
    cek_dataset *all = NULL, *train = NULL, *test = NULL;
    cek_loader *loader = NULL;
    cek_trainer *trainer = NULL;
    FILE *curve = NULL;
    double loss = 0, first = 0;
    cek_metrics tested = { .size = sizeof tested };
    const cek_optimizer optimizer = { .size = sizeof optimizer, .algorithm = CEK_OPTIMIZER_ADAM, .lr = 0.01 };
    const cek_trainer_options options = {
        .size = sizeof options, .loss = CEK_LOSS_MSE, .batch = BATCH, .seed = 1, .optimizer = &optimizer
    };
    /* DataLoader(train, batch_size=128, shuffle=True, num_workers=1, prefetch_factor=2) */
    const cek_loader_options loading = {
        .size = sizeof loading, .batch = BATCH, .shuffle = true, .seed = 1, .workers = 1, .prefetch = 2
    };
    bool well = true;
    int option, rank, failed = 1;

    while ((option = getopt(argc, argv, "d:e:")) != -1) {
        if (option == 'd')
            list = optarg;
        else if (option == 'e')
            well &= number_read(optarg, &epochs);
        else
            well = false;
    }
    if (!well || argc - optind != 2) {
        fprintf(stderr, "usage: 06_boston [-d DEVICES] [-e EPOCHS] FILE.csv TARGET\n");
        return 2;
    }

    TRY(cek_engine_create(NULL, &engine));
    TRY(cek_engine_select(engine, list, CEK_PROFILE_TRAINING, &devices, &count));
    TRY(cek_dataset_csv(argv[optind], argv[optind + 1], &all));
    TRY(cek_dataset_split(all, (cek_dataset_size(all) + 4) / 5, 1, &train, &test));
    TRY(cek_dataset_standardize(test, train));
    TRY(cek_dataset_standardize(train, train));

    rank = cek_dataset_shape(train, shape);
    TRY(cek_model_parse("linear:16 relu linear:32 relu linear:1", rank, shape, &model));
    cek_model_init(model, 1);
    TRY(cek_trainer_create(model, devices, count, &options, &trainer));
    TRY(cek_loader_create(train, &loading, &loader));
    if (!(curve = fopen("curve.csv", "w"))) {
        perror("06_boston: curve.csv");
        goto out;
    }
    fprintf(curve, "epoch,train,test\n");
    for (int64_t epoch = 1; epoch <= epochs; epoch++) {
        TRY(epoch_run(trainer, loader, epoch, &loss));
        TRY(cek_trainer_evaluate(trainer, test, &tested)); /* model.eval(), torch.no_grad() */
        first = epoch == 1 ? tested.loss : first;
        fprintf(curve, "%lld,%g,%g\n", (long long)epoch, loss, tested.loss);
        if (epoch * LINES / epochs != (epoch - 1) * LINES / epochs)
            curve_line(epoch, loss, tested.loss, first);
    }
    printf("after %lld epochs: training error %.3f, test error %.3f (mean squared)\n", (long long)epochs, loss,
           tested.loss);
    failed = 0;
out:
    if (curve && fclose(curve))
        failed = 1;
    cek_loader_free(loader);
    cek_trainer_free(trainer);
    cek_model_free(model);
    cek_dataset_free(test);
    cek_dataset_free(train);
    cek_dataset_free(all);
    free(devices);
    cek_engine_free(engine);
    return failed;
}
