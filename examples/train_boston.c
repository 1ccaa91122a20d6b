/* train_boston - regression on a table, split over the devices: 128 samples on two are 64 and 64,
 * the last 20 are 10 and 10.
 *
 *     train_boston [-d DEVICES] [-e EPOCHS] FILE.csv TARGET
 *
 * A fifth of the rows is kept for the test; features are standardised by the training rows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cekernels/nn.h>

#define TRY(call)                                                    \
    do {                                                             \
        if ((call) != CEK_OK) {                                      \
            fprintf(stderr, "train_boston: %s\n", cek_error_text()); \
            goto out;                                                \
        }                                                            \
    } while (0)

typedef struct watch {
    cek_trainer *trainer;
    cek_device **devices;
    size_t count;
    long long steps_shown;
} watch;

/* The shares of the first epoch's batches. */
static void print_shares(void *user, const cek_step_result *r)
{
    watch *w = user;
    if (r->step > w->steps_shown)
        return;
    printf("step %lld: %lld samples =", (long long)r->step, (long long)r->samples);
    for (size_t i = 0; i < w->count; i++)
        printf("%s %s %lld", i ? "," : "", cek_device_name(w->devices[i]), (long long)cek_trainer_share(w->trainer, i));
    printf("\n");
}

int main(int argc, char **argv)
{
    const char *list = NULL;
    int64_t shape[CEK_RANK_MAX];
    cek_engine *engine = NULL;
    cek_model *model = NULL;
    cek_dataset *all = NULL, *train = NULL, *test = NULL;
    watch w = { 0 };
    cek_fit_options fit = { .size = sizeof fit, .epochs = 100, .seed = 1, .on_step = print_shares, .user = &w };
    cek_epoch_result last = { .size = sizeof last };
    cek_optimizer optimizer = { .size = sizeof optimizer, .algorithm = CEK_OPTIMIZER_ADAM, .lr = 0.01 };
    cek_trainer_options options = {
        .size = sizeof options, .loss = CEK_LOSS_MSE, .batch = 128, .seed = 1, .optimizer = &optimizer
    };
    int option, rank, failed = 1;

    while ((option = getopt(argc, argv, "d:e:")) != -1) {
        if (option == 'd')
            list = optarg;
        else if (option == 'e')
            fit.epochs = atoll(optarg);
        else
            return 2;
    }
    if (argc - optind != 2) {
        fprintf(stderr, "usage: train_boston [-d DEVICES] [-e EPOCHS] FILE.csv TARGET\n");
        return 2;
    }

    TRY(cek_engine_create(NULL, &engine));
    TRY(cek_engine_select(engine, list, CEK_PROFILE_TRAINING, &w.devices, &w.count));
    TRY(cek_dataset_csv(argv[optind], argv[optind + 1], &all));
    TRY(cek_dataset_split(all, (cek_dataset_size(all) + 4) / 5, 1, &train, &test));
    TRY(cek_dataset_standardize(test, train));
    TRY(cek_dataset_standardize(train, train));

    rank = cek_dataset_shape(train, shape);
    TRY(cek_model_parse("linear:16 relu linear:32 relu linear:1", rank, shape, &model));
    cek_model_init(model, 1);
    TRY(cek_trainer_create(model, w.devices, w.count, &options, &w.trainer));
    w.steps_shown = (cek_dataset_size(train) + options.batch - 1) / options.batch;
    fit.test = test;
    TRY(cek_trainer_fit(w.trainer, train, &fit, &last));
    printf("after %lld epochs: training error %.3f, test error %.3f (mean squared)\n", (long long)last.epoch,
           last.train->loss, last.test->loss);
    failed = 0;
out:
    cek_trainer_free(w.trainer);
    cek_model_free(model);
    cek_dataset_free(test);
    cek_dataset_free(train);
    cek_dataset_free(all);
    free(w.devices);
    cek_engine_free(engine);
    return failed;
}
