/* onnx_run.c - says what a device computes of ONNX files: onnx_run DEVICE MATH FILE..., MATH strict or f32; of each
 * FILE.onnx and the inputs in FILE.in (floats, as the file has them, of one sample or several) the outputs go to
 * FILE.out, and FILE|SIZES of a sample, or FILE|refused: why. For scripts that hold it against others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cekernels/nn.h"
#include "core/base/alloc.h"
#include "core/base/status.h"

typedef struct values {
    float *data;
    size_t count;
} values;

static cek_status values_read(const char *name, values *out)
{
    cek_status st = CEK_OK;
    char path[4096];
    long bytes;
    FILE *file;

    snprintf(path, sizeof path, "%s.in", name);
    file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) || (bytes = ftell(file)) < 0 || fseek(file, 0, SEEK_SET))
        CEK_FAIL(CEK_IO, "%s", path);
    out->count = (size_t)bytes / sizeof *out->data;
    CEK_TRY(cek__alloc_array(out->count + 1, sizeof *out->data, &out->data));
    if (fread(out->data, sizeof *out->data, out->count, file) != out->count)
        st = cek__fail(CEK_IO, "%s", path);
out:
    if (file)
        fclose(file);
    return st;
}

static cek_status values_write(const char *name, const values *v)
{
    char path[4096];
    FILE *file;
    bool whole;

    snprintf(path, sizeof path, "%s.out", name);
    file = fopen(path, "wb");
    if (!file)
        return cek__fail(CEK_IO, "%s", path);
    whole = fwrite(v->data, sizeof *v->data, v->count, file) == v->count;
    return fclose(file) == 0 && whole ? CEK_OK : cek__fail(CEK_IO, "%s", path);
}

/* Images as predictors take them: their channels last. */
static cek_status channels_last(int64_t samples, const int64_t shape[3], values *in)
{
    cek_status st;
    const int64_t pixels = shape[1] * shape[2], channels = shape[0];
    float *moved;

    CEK_TRY(cek__alloc_array(in->count + 1, sizeof *moved, &moved));
    for (int64_t n = 0; n < samples; n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t p = 0; p < pixels; p++)
                moved[(n * pixels + p) * channels + c] = in->data[(n * channels + c) * pixels + p];
    free(in->data);
    in->data = moved;
out:
    return st;
}

static int64_t elements(int rank, const int64_t *shape)
{
    int64_t count = 1;

    for (int i = 0; i < rank; i++)
        count *= shape[i];
    return count;
}

static cek_status run(cek_device *device, uint32_t math, const char *name)
{
    cek_status st;
    cek_model *model = NULL;
    cek_predictor *predictor = NULL;
    const cek_predictor_options options = { .size = sizeof options, .batch = 8, .math = math };
    int64_t shape[CEK_RANK_MAX], samples, each;
    values in = { 0 }, out = { 0 };
    char path[4096];
    int rank;

    snprintf(path, sizeof path, "%s.onnx", name);
    CEK_TRY(cek_model_read_onnx(path, NULL, &model));
    CEK_TRY(values_read(name, &in));
    rank = cek_model_input_shape(model, shape);
    samples = (int64_t)in.count / elements(rank, shape);
    if (rank == 3)
        CEK_TRY(channels_last(samples, shape, &in));
    rank = cek_model_output_shape(model, shape);
    each = elements(rank, shape);
    out.count = (size_t)(samples * each);
    CEK_TRY(cek__alloc_array(out.count + 1, sizeof *out.data, &out.data));
    CEK_TRY(cek_predictor_create(model, &device, 1, &options, &predictor));
    CEK_TRY(cek_predictor_run(predictor, in.data, samples, out.data));
    CEK_TRY(values_write(name, &out));
    printf("%s|", name);
    for (int i = 0; i < rank; i++)
        printf("%lld ", (long long)shape[i]);
    putchar('\n');
out:
    if (st != CEK_OK)
        printf("%s|refused: %s: %s\n", name, cek_status_name(st), cek_error_text());
    cek_predictor_free(predictor);
    cek_model_free(model);
    free(in.data);
    free(out.data);
    return st;
}

static void remark(void *user, int level, const char *text)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", text);
}

int main(int count, char **args)
{
    cek_engine *engine = NULL;
    cek_device **devices = NULL;
    size_t n = 0;
    uint32_t math = CEK_MATH_F32;
    cek_status st;

    if (count < 3 || (strcmp(args[2], "strict") != 0 && strcmp(args[2], "f32") != 0)) {
        fprintf(stderr, "usage: onnx_run DEVICE strict|f32 FILE...\n");
        return 2;
    }
    if (strcmp(args[2], "strict") == 0)
        math = CEK_MATH_STRICT;
    cek_log_set(remark, NULL, CEK_LOG_WARN);
    st = cek_engine_create(NULL, &engine);

    if (st == CEK_OK)
        st = cek_engine_select(engine, args[1], CEK_PROFILE_INFERENCE, &devices, &n);
    if (st != CEK_OK || n == 0) {
        fprintf(stderr, "onnx_run: %s\n", st != CEK_OK ? cek_error_text() : "no device");
        return 1;
    }
    for (int i = 3; i < count; i++) {
        st = run(devices[0], math, args[i]);
        fflush(stdout);
    }
    free(devices);
    cek_engine_free(engine);
    return 0;
}
