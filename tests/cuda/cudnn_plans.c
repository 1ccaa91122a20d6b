/* cudnn_plans.c - the lowering of convolutions through the real cuDNN, where it is installed, as far as it goes
 * without a GPU: its heuristics and its plans for devices that are only described. Nothing is computed.
 *
 * What mixes types cuDNN compiles at run time, and for that it wants a driver: cudnn_plans.sh has it find
 * fake_loader.c, which loads anything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "backends/cuda/cuda.h"
#include "backends/cuda/cudnn.h"
#include "spec/spec.h"

#define NOTE(NAME) (UINT64_C(1) << CUDNN_NUMERICAL_NOTE_##NAME)
#define WINOGRAD_NOTES (NOTE(WINOGRAD) | NOTE(WINOGRAD_TILE_4x4) | NOTE(WINOGRAD_TILE_6x6) | NOTE(WINOGRAD_TILE_13x13))
enum { EVEN = CEK__GPU_DOES_EPILOGUE, RELU = CEK__GPU_DOES_EPILOGUE | CEK__GPU_DOES_ACTIVATION, SUMS = 0, NONE = 0xff };

static const struct device {
    int version, units, shared;
    const char *name;
} devices[] = {
    { 750, 40, 65536, "Tesla T4" },
    { 800, 108, 166912, "NVIDIA A100-SXM4-80GB" },
    { 890, 128, 101376, "NVIDIA GeForce RTX 4090" },
    { 900, 132, 232448, "NVIDIA H100 80GB HBM3" },
    { 1000, 148, 232448, "NVIDIA B200" },
};

static const char *const problems[] = {
    "mb64ic1ih28oc64oh28kh3ph1",      "mb64ic64ih28oc128oh28kh3ph1", /* mnist-cnn */
    "mb32ic3ih224oc64oh112kh7sh2ph3", "mb32ic64ih56oc64oh56kh3ph1",  /* resnet18 */
    "mb32ic64ih56oc128oh28kh1sh2ph0", "mb32ic512ih7oc512oh7kh3ph1",
    "mb16ic32ih28oc32oh28kh3ph1g32",  "mb16ic64ih14oc64oh14kh3ph1g4",      /* groups */
    "mb8ic16ih33oc24oh29kh3ph0dh1",   "mb2ic5ih7oc3oh7kh3ph1",             /* dilation; odd channels */
    "mb1ic4ih8oc3oh8kh4ph1",                                               /* more padding behind */
    "mb2ic3iw16oc5ow14kw3pw0",        "mb1ic4id3ih5oc4od4oh5kd3kh3pd1ph1", /* lines and volumes */
};
enum { DEVICES = sizeof devices / sizeof *devices, PROBLEMS = sizeof problems / sizeof *problems };

static cek__cudnn *dnn;
static unsigned made, tensor_cores;

static cek__cudnn_target describe(const struct device *d, cek__cudnn_set *set)
{
    char text[1024];
    int length = snprintf(
        text, sizeof text,
        "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
        "\"multiProcessorCount\":%d,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
        "\"maxSharedMemoryPerBlockOptin\":%d,"
        "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
        "\"maxThreadsPerBlock\":1024,"
        "\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"smClockRateKHz\":"
        "1700000,"
        "\"memClockRateKHz\":2600000,\"l2CacheSize\":50000000,\"totalGlobalMem\":85899345920,\"cudaDeviceId\":0,"
        "\"deviceVer\":%d,\"driverVer\":13000,\"deviceName\":\"%s\"}",
        d->units, d->shared, d->version, d->name);
    *set = (cek__cudnn_set){ .dnn = dnn };
    cudnnBackendDescriptor_t device = cek__cudnn_make(set, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    cek__cudnn_tell(set, device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, length, text);
    cek__cudnn_finish(set, device);
    ck_assert_msg(!set->error, "sm_%d cannot be described: %s (%u)", d->version / 10, dnn->GetErrorString(set->error),
                  set->error);
    return (cek__cudnn_target){ .described = device };
}

typedef struct ask {
    uint32_t kind, math, flags;
    cek_dtype type;
    uint64_t operands, accumulate;
    cek_activation activation, act_grad;
    uint32_t leave;
} ask;

/* What becomes of a convolution on every described device from `first` on. NONE: it is refused; EVEN, RELU, SUMS:
 * what the call does. */
static void lowers(const char *problem, const ask *a, unsigned first, uint32_t want)
{
    cek_conv_desc desc;
    const char *rest;
    char error[256];
    cek__request request;
    const cek_epilogue epilogue = { .size = sizeof epilogue, .activation = a->activation, .act_grad = a->act_grad };
    ck_assert_msg(spec_conv_read(problem, &desc, &rest, error, sizeof error), "%s", error);
    desc.op.kind = a->kind;
    desc.op.math = a->math;
    desc.op.flags = a->flags;
    desc.op.operands = 7 | a->operands;
    desc.op.accumulate = a->accumulate;
    desc.op.epilogue = a->activation || a->act_grad ? &epilogue : NULL;
    desc.x_type = desc.w_type = desc.y_type = a->type;
    ck_assert_uint_eq(cek__request_init(&(cek_host){ .size = 0 }, &desc.op, &request), CEK_OK);
    for (unsigned i = first; i < DEVICES; i++) {
        cek__cudnn_set set;
        cek__cudnn_target target = describe(&devices[i], &set);
        cek__cudnn_plan plan, again;
        cek__cudnn_place place = { 0 };
        cek_status st = cek__cudnn_plan_next(dnn, &target, &request, a->leave, &place, &plan);
        ck_assert_msg(st == (want == NONE ? CEK_UNSUPPORTED : CEK_OK),
                      "%s, kind %u, type %u, math %u on sm_%d: status %u", problem, a->kind, a->type, a->math,
                      devices[i].version / 10, st);
        if (!st) {
            const bool f32 = a->type == CEK_F32, narrow = a->math == CEK_MATH_TF32 || a->math == CEK_MATH_FAST;
            ck_assert_msg(plan.does == want, "%s, kind %u on sm_%d: does %u, not %u", problem, a->kind,
                          devices[i].version / 10, plan.does, want);
            ck_assert_msg(!(f32 && !narrow && plan.notes & NOTE(TENSOR_CORE)), "%s: f32 becomes TF32", problem);
            ck_assert_msg(!(plan.notes & (NOTE(DOWN_CONVERT_INPUTS) | NOTE(REDUCED_PRECISION_REDUCTION))),
                          "%s: loses precision", problem);
            ck_assert_msg(!((a->math == CEK_MATH_STRICT || !f32) && plan.notes & WINOGRAD_NOTES), "%s: a transform",
                          problem);
            ck_assert_msg(!(a->flags & CEK_OP_DETERMINISTIC && plan.notes & NOTE(NONDETERMINISTIC)), "%s: in any order",
                          problem);
            ck_assert_uint_le(plan.workspace_bytes, UINT64_C(512) << 20);
            place = (cek__cudnn_place){ 0 };
            ck_assert_uint_eq(cek__cudnn_plan_next(dnn, &target, &request, a->leave, &place, &again), CEK_OK);
            ck_assert_msg(plan.choice == again.choice && plan.choice, "%s: another choice the second time", problem);
            made++;
            tensor_cores += plan.notes & NOTE(TENSOR_CORE) ? 1 : 0;
            cek__cudnn_set_free(&again.set);
            cek__cudnn_set_free(&plan.set);
        }
        cek__cudnn_set_free(&set);
    }
    cek__request_free(&request);
}

/* Another cuDNN than the system's may be looked at. */
static const char *option(void *user, const char *key)
{
    (void)user;
    return strcmp(key, "cuda_path") ? NULL : getenv("CEKERNELS_CUDA_PATH");
}

static const uint32_t kinds[] = { CEK_OP_CONV_FORWARD, CEK_OP_CONV_BACKWARD_DATA, CEK_OP_CONV_BACKWARD_WEIGHTS };

START_TEST(every_convolution_of_f32_has_a_plan_in_every_direction)
{
    for (unsigned p = 0; p < PROBLEMS; p++)
        for (unsigned k = 0; k < 3; k++) {
            lowers(problems[p], &(ask){ .kind = kinds[k], .type = CEK_F32 }, 0, EVEN);
            lowers(problems[p],
                   &(ask){ .kind = kinds[k], .type = CEK_F32, .math = CEK_MATH_STRICT, .flags = CEK_OP_DETERMINISTIC },
                   0, EVEN);
            lowers(problems[p], &(ask){ .kind = kinds[k], .type = CEK_F32, .math = CEK_MATH_TF32 }, 0, EVEN);
        }
}
END_TEST

START_TEST(bias_and_relu_are_fused)
{
    const uint64_t bias = CEK_BIT(CEK_CONV_FORWARD_BIAS);
    for (unsigned p = 0; p < PROBLEMS; p++) {
        lowers(problems[p], &(ask){ .kind = CEK_OP_CONV_FORWARD, .operands = bias, .type = CEK_F32 }, 0, EVEN);
        lowers(problems[p],
               &(ask){ .kind = CEK_OP_CONV_FORWARD, .operands = bias, .type = CEK_F32, .activation = CEK_ACT_RELU }, 0,
               RELU);
    }
    /* The rest is ours: a ReLU that loses NaN, other activations, derivatives. */
    lowers(problems[1],
           &(ask){ .kind = CEK_OP_CONV_FORWARD,
                   .operands = bias,
                   .type = CEK_F32,
                   .activation = CEK_ACT_RELU,
                   .leave = CEK__GPU_DOES_ACTIVATION },
           0, SUMS);
    lowers(problems[1],
           &(ask){ .kind = CEK_OP_CONV_FORWARD, .operands = bias, .type = CEK_F32, .activation = CEK_ACT_GELU }, 0,
           SUMS);
    lowers(problems[1],
           &(ask){ .kind = CEK_OP_CONV_BACKWARD_DATA,
                   .operands = CEK_BIT(CEK_CONV_BACKWARD_DATA_ACT_REF),
                   .type = CEK_F32,
                   .act_grad = CEK_ACT_RELU },
           0, SUMS);
}
END_TEST

START_TEST(results_are_added_to_what_is_there)
{
    for (unsigned p = 0; p < PROBLEMS; p++)
        for (unsigned k = 1; k < 3; k++)
            lowers(problems[p], &(ask){ .kind = kinds[k], .type = CEK_F32, .accumulate = CEK_BIT(2) }, 0, EVEN);
}
END_TEST

/* bf16 needs sm_80. */
START_TEST(narrow_types_use_tensor_cores)
{
    for (unsigned p = 0; p < PROBLEMS; p++)
        for (unsigned k = 0; k < 2; k++) {
            unsigned before = made, cores = tensor_cores;
            lowers(problems[p], &(ask){ .kind = kinds[k], .type = CEK_F16 }, 0, EVEN);
            lowers(problems[p], &(ask){ .kind = kinds[k], .type = CEK_BF16 }, 1, EVEN);
            if (p == 1 || p == 3)
                ck_assert_msg(tensor_cores - cores == made - before, "%s: %u of %u", problems[p], tensor_cores - cores,
                              made - before);
        }
}
END_TEST

START_TEST(tensor_cores_are_for_those_who_allow_them)
{
    unsigned before = made, cores = tensor_cores;
    for (unsigned k = 0; k < 3; k++)
        lowers(problems[1], &(ask){ .kind = kinds[k], .type = CEK_F32, .math = CEK_MATH_TF32 }, 1,
               EVEN); /* sm_75 has no TF32 */
    ck_assert_uint_eq(tensor_cores - cores, made - before);
    cores = tensor_cores;
    for (unsigned k = 0; k < 3; k++)
        lowers(problems[1], &(ask){ .kind = kinds[k], .type = CEK_F32 }, 1, EVEN);
    ck_assert_uint_eq(tensor_cores, cores);
}
END_TEST

/* Biases and the gradients of weights are f32 whatever the operands are; so are sums that our own kernels finish. */
START_TEST(narrow_types_are_fused_and_summed_in_f32)
{
    static const char *const names[] = { "libnvrtc.so.13", "libnvrtc.so.12", NULL };
    const uint64_t bias = CEK_BIT(CEK_CONV_FORWARD_BIAS), ref = CEK_BIT(CEK_CONV_BACKWARD_DATA_ACT_REF),
                   added = CEK_BIT(2);
    char path[4096];
    const cek_host host = { .size = sizeof host, .abi = CEK_ABI, .option = option };
    if (!cek__cuda_library_open(&host, names, path, sizeof path)) {
        puts("no NVRTC: what cuDNN compiles is not looked at");
        return;
    }
    lowers(problems[1], &(ask){ .kind = CEK_OP_CONV_FORWARD, .operands = bias, .type = CEK_BF16 }, 3, EVEN);
    lowers(problems[1],
           &(ask){ .kind = CEK_OP_CONV_FORWARD, .operands = bias, .type = CEK_F16, .activation = CEK_ACT_RELU }, 3,
           RELU);
    lowers(problems[1], &(ask){ .kind = CEK_OP_CONV_FORWARD, .type = CEK_BF16, .activation = CEK_ACT_GELU }, 3, SUMS);
    lowers(problems[1],
           &(ask){ .kind = CEK_OP_CONV_BACKWARD_DATA, .operands = ref, .type = CEK_F16, .act_grad = CEK_ACT_RELU }, 3,
           SUMS);
    lowers(problems[1], &(ask){ .kind = CEK_OP_CONV_BACKWARD_WEIGHTS, .type = CEK_BF16 }, 3, EVEN);
    lowers(problems[1], &(ask){ .kind = CEK_OP_CONV_BACKWARD_WEIGHTS, .type = CEK_F16, .accumulate = added }, 3, SUMS);
}
END_TEST

START_TEST(what_is_too_large_is_refused)
{
    lowers("mb2048ic64ih128oc64oh128kh3ph1", &(ask){ .kind = CEK_OP_CONV_FORWARD, .type = CEK_F16 }, 0,
           NONE); /* 2^31 elements */
}
END_TEST

int main(void)
{
    const char *sanitizers = getenv("SANITIZERS");
    if (sanitizers && strcmp(sanitizers, "no")) {
        puts("skipped: the sanitizers do not know cuDNN");
        return 77;
    }
    const cek_host host = { .size = sizeof host, .abi = CEK_ABI, .option = option };
    dnn = cek__cudnn_load(&host);
    if (!dnn) {
        puts("skipped: no cuDNN 9");
        return 77;
    }
    if (dnn->GetVersion() < 90800) {
        printf("skipped: %s cannot plan for a device that is not there\n", dnn->version);
        return 77;
    }
    puts(dnn->version);
    TCase *cases = tcase_create("plans");
    tcase_set_timeout(cases, 300);
    tcase_add_test(cases, every_convolution_of_f32_has_a_plan_in_every_direction);
    tcase_add_test(cases, bias_and_relu_are_fused);
    tcase_add_test(cases, results_are_added_to_what_is_there);
    tcase_add_test(cases, narrow_types_use_tensor_cores);
    tcase_add_test(cases, tensor_cores_are_for_those_who_allow_them);
    tcase_add_test(cases, what_is_too_large_is_refused);
    TCase *narrow = tcase_create("compiled");
    tcase_set_timeout(narrow, 300);
    tcase_add_test(narrow, narrow_types_are_fused_and_summed_in_f32);
    Suite *suite = suite_create("cudnn_plans");
    suite_add_tcase(suite, cases);
    suite_add_tcase(suite, narrow);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    cek__cudnn_free(dnn);
    return failed ? 1 : 0;
}
