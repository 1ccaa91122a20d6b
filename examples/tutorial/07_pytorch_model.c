/* 07_pytorch_model - a network that was trained in PyTorch (flowers.py) predicts here: from its state dict, or from the
 * ONNX file that holds the network too.
 *
 *     07_pytorch_model FILE.pt|FILE.onnx [DEVICES]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cekernels/nn.h>

enum { FLOWERS = 3, FEATURES = 4, KINDS = 3 };

static void check(cek_status st)
{
    if (st == CEK_OK)
        return;
    fprintf(stderr, "07_pytorch_model: %s\n", cek_error_text());
    exit(1);
}

int main(int argc, char **argv)
{
    const float flowers[FLOWERS][FEATURES] = { { 5.1f, 3.5f, 1.4f, 0.2f },
                                               { 6.0f, 2.8f, 4.4f, 1.3f },
                                               { 6.6f, 3.0f, 5.6f, 2.1f } };
    const cek_predictor_options options = { .size = sizeof options, .batch = FLOWERS, .softmax = true };
    const char *path = argc > 1 ? argv[1] : "";
    const size_t length = strlen(path);
    float probabilities[FLOWERS][KINDS];
    cek_engine *engine;
    cek_device **devices;
    size_t count;
    cek_model *model;
    cek_predictor *predictor;

    if (argc < 2) {
        fprintf(stderr, "usage: 07_pytorch_model FILE.pt|FILE.onnx [DEVICES]\n");
        return 2;
    }
    check(cek_engine_create(NULL, &engine));
    check(cek_engine_select(engine, argc > 2 ? argv[2] : "cpu", CEK_PROFILE_INFERENCE, &devices, &count));
    if (length > 5 && !strcmp(path + length - 5, ".onnx")) {
        check(cek_model_read_onnx(path, NULL, &model));
    } else { /* nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)) */
        check(cek_model_parse("linear:8 relu linear:3", 1, (int64_t[]){ FEATURES }, &model));
        check(cek_model_load(model, path)); /* model.load_state_dict(torch.load(path)) */
    }
    check(cek_predictor_create(model, devices, count, &options, &predictor)); /* model.eval() */
    check(cek_predictor_run(predictor, flowers, FLOWERS, probabilities[0]));
    for (int i = 0; i < FLOWERS; i++)
        printf("%.4f %.4f %.4f\n", probabilities[i][0], probabilities[i][1], probabilities[i][2]);
    cek_predictor_free(predictor);
    cek_model_free(model);
    free(devices);
    cek_engine_free(engine);
    return 0;
}
