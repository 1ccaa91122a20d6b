/* nulls.c - NULL in every place where a public function takes a pointer: refused with a text that names the argument,
 * or nothing happens; never a crash. The headers are read to find out whether a function was forgotten. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cekernels/parts.h"
#include "tests/suite.h"

static cek_engine *engine;
static cek_device *device;
static cek_memory *memory;
static cek_stream *stream;
static cek_marker *marker;
static cek_tensor *tensor;
static cek_model *model;
static cek_dataset *set;
static cek_loader *loader;
static cek_trainer *trainer;
static cek_predictor *predictor;
static _Alignas(64) char room[4096]; /* whatever else is pointed to; nothing looks at it when an argument is NULL */
static const int64_t few[8] = { 2, 2, 1, 1, 1, 1, 1, 1 };
static int64_t numbers[8];

static char called[32768]; /* the text of every call */

#define ok(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, cek_error_text())

static void note(const char *call)
{
    ck_assert_uint_lt(strlen(called) + strlen(call) + 2, sizeof called);
    strcat(strcat(called, " "), call);
}

static void refused(const char *argument, cek_status st, const char *call)
{
    char words[64];

    note(call);
    snprintf(words, sizeof words, "%s is NULL", argument);
    ck_assert_msg(st == CEK_INVALID, "%s: %s", call, cek_status_name(st));
    ck_assert_msg(strstr(cek_error_text(), words) != NULL, "%s: %s", call, cek_error_text());
}

#define REFUSED(argument, call) refused(argument, (call), #call)
#define EMPTY(condition) (note(#condition), ck_assert_msg((condition), "%s", #condition))
#define NOTHING(call) (note(#call), (call))

static void all_make(void)
{
    static float inputs[4][2] = { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } }, values[4] = { 1, 2, 3, 4 };
    cek_array_options a = { .size = sizeof a,
                            .input_type = CEK_F32,
                            .count = 4,
                            .rank = 1,
                            .shape = { 2 },
                            .inputs = inputs,
                            .values = values,
                            .columns = 1 };
    cek_trainer_options o = { .size = sizeof o, .loss = CEK_LOSS_MSE };

    memcpy(numbers, few, sizeof few);
    ok(cek_engine_create(NULL, &engine));
    ok(cek_engine_find(engine, "cpu:0", &device));
    ok(cek_memory_alloc(device, 64, 0, &memory));
    ok(cek_stream_create(device, &stream));
    ok(cek_marker_create(device, false, &marker));
    ok(cek_tensor_full(device, CEK_F32, 2, few, 1, &tensor));
    ok(cek_model_parse("linear:1", 1, (int64_t[]){ 2 }, &model));
    ok(cek_dataset_arrays(&a, &set));
    ok(cek_loader_create(set, NULL, &loader));
    ok(cek_trainer_create(model, &device, 1, &o, &trainer));
    ok(cek_predictor_create(model, &device, 1, NULL, &predictor));
}

static void all_free(void)
{
    cek_predictor_free(predictor);
    cek_trainer_free(trainer);
    cek_loader_free(loader);
    cek_dataset_free(set);
    cek_model_free(model);
    cek_tensor_free(tensor);
    cek_marker_free(marker);
    cek_stream_free(stream);
    cek_memory_free(memory);
    cek_engine_free(engine);
}

static void devices_call(void)
{
    REFUSED("out", cek_engine_create((void *)room, NULL));
    NOTHING(cek_engine_free(NULL));
    EMPTY(cek_engine_load_count(NULL) == 0);
    REFUSED("engine", cek_engine_load_entry(NULL, 0, (void *)room));
    REFUSED("out", cek_engine_load_entry(engine, 0, NULL));
    REFUSED("engine", cek_engine_load_report(NULL, (void *)room));
    REFUSED("out", cek_engine_load_report(engine, NULL));
    REFUSED("engine", cek_trace_start(NULL));
    REFUSED("engine", cek_trace_save(NULL, "x"));
    REFUSED("path", cek_trace_save(engine, NULL));
    REFUSED("engine", cek_engine_start(NULL));
    EMPTY(cek_engine_device_count(NULL) == 0);
    EMPTY(cek_engine_device(NULL, 0) == NULL);
    REFUSED("engine", cek_engine_select(NULL, "x", 1, (void *)room, (void *)room));
    REFUSED("out", cek_engine_select(engine, "x", 1, NULL, (void *)room));
    REFUSED("count", cek_engine_select(engine, "x", 1, (void *)room, NULL));
    REFUSED("engine", cek_engine_find(NULL, "x", (void *)room));
    REFUSED("out", cek_engine_find(engine, "x", NULL));
    EMPTY(cek_inside_plugin(NULL, (void *)room) == 0);
    REFUSED("device", cek_device_require(NULL, 1));
    EMPTY(cek_device_name(NULL)[0] == '\0');
    EMPTY(cek_device_engine(NULL) == NULL);
    REFUSED("device", cek_device_describe(NULL, (void *)room));
    REFUSED("out", cek_device_describe(device, NULL));
    REFUSED("device", cek_device_sync(NULL));
    REFUSED("device", cek_device_raw(NULL, (void *)room, (void *)room));
    REFUSED("plugin", cek_device_raw(device, NULL, (void *)room));
    REFUSED("dev", cek_device_raw(device, (void *)room, NULL));
    REFUSED("device", cek_device_memory_stats(NULL, (void *)room));
    REFUSED("out", cek_device_memory_stats(device, NULL));
    REFUSED("device", cek_device_read_times(NULL, (void *)room));
    REFUSED("out", cek_device_read_times(device, NULL));
    REFUSED("device", cek_device_read_sensors(NULL, (void *)room));
    REFUSED("out", cek_device_read_sensors(device, NULL));
    NOTHING(cek_device_reset_peak(NULL));
    REFUSED("device", cek_device_set_memory_limit(NULL, 8));
    NOTHING(cek_device_empty_cache(NULL));
    REFUSED("device", cek_memory_alloc(NULL, 8, 1, (void *)room));
    REFUSED("out", cek_memory_alloc(device, 8, 1, NULL));
    NOTHING(cek_memory_free(NULL));
    EMPTY(cek_memory_ref(NULL).mem == NULL);
    EMPTY(cek_memory_bytes(NULL) == 0);
    EMPTY(cek_memory_device(NULL) == NULL);
    REFUSED("device", cek_pinned_alloc(NULL, 8, (void *)room));
    REFUSED("out", cek_pinned_alloc(device, 8, NULL));
    NOTHING(cek_pinned_free(NULL, room));
    NOTHING(cek_pinned_free(device, NULL));
    NOTHING(cek_pinned_abandon(NULL, room));
    NOTHING(cek_pinned_abandon(device, NULL));
    REFUSED("device", cek_pinned_register(NULL, room, 8));
    REFUSED("ptr", cek_pinned_register(device, NULL, 8));
    NOTHING(cek_pinned_unregister(NULL, room));
    NOTHING(cek_pinned_unregister(device, NULL));
}

static void streams_call(void)
{
    REFUSED("device", cek_stream_create(NULL, (void *)room));
    REFUSED("out", cek_stream_create(device, NULL));
    NOTHING(cek_stream_free(NULL));
    EMPTY(cek_stream_device(NULL) == NULL);
    EMPTY(cek_stream_raw(NULL) == NULL);
    NOTHING(cek_stream_set_name(NULL, "compute"));
    EMPTY(cek_device_trace(NULL) == NULL);
    REFUSED("stream", cek_stream_sync(NULL, 8));
    REFUSED("stream", cek_stream_upload(NULL, (cek_ref){ 0 }, room, 8));
    REFUSED("src", cek_stream_upload(stream, (cek_ref){ 0 }, NULL, 8));
    REFUSED("stream", cek_stream_download(NULL, room, (cek_ref){ 0 }, 8));
    REFUSED("dst", cek_stream_download(stream, NULL, (cek_ref){ 0 }, 8));
    REFUSED("stream", cek_stream_fill(NULL, (cek_ref){ 0 }, 1, 1, 8));
    REFUSED("stream", cek_stream_update(NULL, (cek_ref){ 0 }, room, 8));
    REFUSED("src", cek_stream_update(stream, (cek_ref){ 0 }, NULL, 8));
    REFUSED("to", cek_stream_pull(NULL, (cek_ref){ 0 }, memory, 0, 8));
    REFUSED("src", cek_stream_pull(stream, (cek_ref){ 0 }, NULL, 0, 8));
    EMPTY(cek_memory_host(NULL) == NULL);
    REFUSED("path", cek_plugin_file_check(NULL));
    REFUSED("to", cek_stream_copy(NULL, (cek_ref){ 0 }, stream, (cek_ref){ 0 }, 8));
    REFUSED("from", cek_stream_copy(stream, (cek_ref){ 0 }, NULL, (cek_ref){ 0 }, 8));
    REFUSED("device", cek_marker_create(NULL, false, (void *)room));
    REFUSED("out", cek_marker_create(device, false, NULL));
    NOTHING(cek_marker_free(NULL));
    REFUSED("marker", cek_marker_record(NULL, stream));
    REFUSED("stream", cek_marker_record(marker, NULL));
    REFUSED("marker", cek_marker_query(NULL));
    REFUSED("marker", cek_marker_sync(NULL, 8));
    REFUSED("start", cek_marker_elapsed(NULL, marker, (void *)room));
    REFUSED("end", cek_marker_elapsed(marker, NULL, (void *)room));
    REFUSED("ns", cek_marker_elapsed(marker, marker, NULL));
    REFUSED("stream", cek_stream_wait(NULL, marker));
    REFUSED("marker", cek_stream_wait(stream, NULL));
    REFUSED("device", cek_op_make(NULL, (const cek_op_desc *)room, (void *)room, (void *)room));
    REFUSED("desc", cek_op_make(device, NULL, (void *)room, (void *)room));
    REFUSED("out", cek_op_make(device, (const cek_op_desc *)room, (void *)room, NULL));
    NOTHING(cek_op_free(NULL, (cek_op *)room));
    NOTHING(cek_op_free(device, NULL));
    REFUSED("stream", cek_stream_run(NULL, (cek_op *)room, (const cek_ref *)room, 1, (cek_ref){ 0 }));
    REFUSED("op", cek_stream_run(stream, NULL, (const cek_ref *)room, 1, (cek_ref){ 0 }));
    REFUSED("operands", cek_stream_run(stream, (cek_op *)room, NULL, 1, (cek_ref){ 0 }));
    REFUSED("stream", cek_stream_prepack(NULL, (cek_op *)room, (const cek_ref *)room, 1, (cek_ref){ 0 }));
    REFUSED("op", cek_stream_prepack(stream, NULL, (const cek_ref *)room, 1, (cek_ref){ 0 }));
    REFUSED("operands", cek_stream_prepack(stream, (cek_op *)room, NULL, 1, (cek_ref){ 0 }));
    REFUSED("device", cek_commands_make(NULL, (const cek_cmd *)room, 1, (void *)room));
    REFUSED("commands", cek_commands_make(device, NULL, 1, (void *)room));
    REFUSED("out", cek_commands_make(device, (const cek_cmd *)room, 1, NULL));
    NOTHING(cek_commands_free(NULL, (cek_cmdbuf *)room));
    NOTHING(cek_commands_free(device, NULL));
    REFUSED("stream", cek_stream_run_commands(NULL, (cek_cmdbuf *)room));
    REFUSED("commands", cek_stream_run_commands(stream, NULL));
}

static void tensors_call(void)
{
    REFUSED("device", cek_tensor_create(NULL, CEK_F32, 1, numbers, (void *)room));
    REFUSED("shape", cek_tensor_create(device, CEK_F32, 1, NULL, (void *)room));
    REFUSED("out", cek_tensor_create(device, CEK_F32, 1, numbers, NULL));
    REFUSED("device", cek_tensor_from_host(NULL, CEK_F32, 1, numbers, room, (void *)room));
    REFUSED("shape", cek_tensor_from_host(device, CEK_F32, 1, NULL, room, (void *)room));
    REFUSED("data", cek_tensor_from_host(device, CEK_F32, 1, numbers, NULL, (void *)room));
    REFUSED("out", cek_tensor_from_host(device, CEK_F32, 1, numbers, room, NULL));
    REFUSED("device", cek_tensor_full(NULL, CEK_F32, 1, numbers, 0.5, (void *)room));
    REFUSED("shape", cek_tensor_full(device, CEK_F32, 1, NULL, 0.5, (void *)room));
    REFUSED("out", cek_tensor_full(device, CEK_F32, 1, numbers, 0.5, NULL));
    NOTHING(cek_tensor_free(NULL));
    EMPTY(cek_tensor_device(NULL) == NULL);
    EMPTY(cek_tensor_type(NULL) == 0);
    EMPTY(cek_tensor_rank(NULL) == 0);
    EMPTY(cek_tensor_shape(NULL) == NULL);
    EMPTY(cek_tensor_count(NULL) == 0);
    EMPTY(cek_tensor_bytes(NULL) == 0);
    EMPTY(cek_tensor_ref(NULL).mem == NULL);
    REFUSED("src", cek_tensor_to(NULL, device, (void *)room));
    REFUSED("device", cek_tensor_to(tensor, NULL, (void *)room));
    REFUSED("out", cek_tensor_to(tensor, device, NULL));
    REFUSED("tensor", cek_tensor_read(NULL, room, 8));
    REFUSED("dst", cek_tensor_read(tensor, NULL, 8));
    REFUSED("tensor", cek_tensor_write(NULL, room, 8));
    REFUSED("src", cek_tensor_write(tensor, NULL, 8));
    REFUSED("x", cek_tensor_cast(NULL, CEK_F32, (void *)room));
    REFUSED("out", cek_tensor_cast(tensor, CEK_F32, NULL));
    REFUSED("x", cek_tensor_reshape(NULL, 1, numbers, (void *)room));
    REFUSED("shape", cek_tensor_reshape(tensor, 1, NULL, (void *)room));
    REFUSED("out", cek_tensor_reshape(tensor, 1, numbers, NULL));
    REFUSED("x", cek_tensor_permute(NULL, (int *)room, (void *)room));
    REFUSED("axes", cek_tensor_permute(tensor, NULL, (void *)room));
    REFUSED("out", cek_tensor_permute(tensor, (int *)room, NULL));
    REFUSED("a", cek_add(NULL, tensor, (void *)room));
    REFUSED("b", cek_add(tensor, NULL, (void *)room));
    REFUSED("out", cek_add(tensor, tensor, NULL));
    REFUSED("a", cek_sub(NULL, tensor, (void *)room));
    REFUSED("b", cek_sub(tensor, NULL, (void *)room));
    REFUSED("out", cek_sub(tensor, tensor, NULL));
    REFUSED("a", cek_mul(NULL, tensor, (void *)room));
    REFUSED("b", cek_mul(tensor, NULL, (void *)room));
    REFUSED("out", cek_mul(tensor, tensor, NULL));
    REFUSED("a", cek_div(NULL, tensor, (void *)room));
    REFUSED("b", cek_div(tensor, NULL, (void *)room));
    REFUSED("out", cek_div(tensor, tensor, NULL));
    REFUSED("x", cek_scale(NULL, 0.5, 0.5, (void *)room));
    REFUSED("out", cek_scale(tensor, 0.5, 0.5, NULL));
    REFUSED("x", cek_neg(NULL, (void *)room));
    REFUSED("out", cek_neg(tensor, NULL));
    REFUSED("x", cek_exp(NULL, (void *)room));
    REFUSED("out", cek_exp(tensor, NULL));
    REFUSED("x", cek_log(NULL, (void *)room));
    REFUSED("out", cek_log(tensor, NULL));
    REFUSED("x", cek_sqrt(NULL, (void *)room));
    REFUSED("out", cek_sqrt(tensor, NULL));
    REFUSED("x", cek_relu(NULL, (void *)room));
    REFUSED("out", cek_relu(tensor, NULL));
    REFUSED("x", cek_tanh(NULL, (void *)room));
    REFUSED("out", cek_tanh(tensor, NULL));
    REFUSED("x", cek_sigmoid(NULL, (void *)room));
    REFUSED("out", cek_sigmoid(tensor, NULL));
    REFUSED("x", cek_gelu(NULL, (void *)room));
    REFUSED("out", cek_gelu(tensor, NULL));
    REFUSED("x", cek_sum(NULL, 1, (int *)room, (void *)room));
    REFUSED("out", cek_sum(tensor, 1, (int *)room, NULL));
    REFUSED("x", cek_mean(NULL, 1, (int *)room, (void *)room));
    REFUSED("out", cek_mean(tensor, 1, (int *)room, NULL));
    REFUSED("x", cek_max(NULL, 1, (int *)room, (void *)room));
    REFUSED("out", cek_max(tensor, 1, (int *)room, NULL));
    REFUSED("x", cek_softmax(NULL, (void *)room));
    REFUSED("out", cek_softmax(tensor, NULL));
    REFUSED("a", cek_eq(NULL, tensor, (void *)room));
    REFUSED("b", cek_eq(tensor, NULL, (void *)room));
    REFUSED("out", cek_eq(tensor, tensor, NULL));
    REFUSED("a", cek_ne(NULL, tensor, (void *)room));
    REFUSED("b", cek_ne(tensor, NULL, (void *)room));
    REFUSED("out", cek_ne(tensor, tensor, NULL));
    REFUSED("a", cek_lt(NULL, tensor, (void *)room));
    REFUSED("b", cek_lt(tensor, NULL, (void *)room));
    REFUSED("out", cek_lt(tensor, tensor, NULL));
    REFUSED("a", cek_le(NULL, tensor, (void *)room));
    REFUSED("b", cek_le(tensor, NULL, (void *)room));
    REFUSED("out", cek_le(tensor, tensor, NULL));
    REFUSED("a", cek_gt(NULL, tensor, (void *)room));
    REFUSED("b", cek_gt(tensor, NULL, (void *)room));
    REFUSED("out", cek_gt(tensor, tensor, NULL));
    REFUSED("a", cek_ge(NULL, tensor, (void *)room));
    REFUSED("b", cek_ge(tensor, NULL, (void *)room));
    REFUSED("out", cek_ge(tensor, tensor, NULL));
    REFUSED("a", cek_matmul(NULL, tensor, (void *)room));
    REFUSED("b", cek_matmul(tensor, NULL, (void *)room));
    REFUSED("out", cek_matmul(tensor, tensor, NULL));
    REFUSED("x", cek_conv2d(NULL, tensor, tensor, (void *)room, (void *)room));
    REFUSED("weight", cek_conv2d(tensor, NULL, tensor, (void *)room, (void *)room));
    REFUSED("out", cek_conv2d(tensor, tensor, tensor, (void *)room, NULL));
    REFUSED("device", cek_tensor_uniform(NULL, 1, numbers, 0.5, 0.5, 8, 1, (void *)room));
    REFUSED("shape", cek_tensor_uniform(device, 1, NULL, 0.5, 0.5, 8, 1, (void *)room));
    REFUSED("out", cek_tensor_uniform(device, 1, numbers, 0.5, 0.5, 8, 1, NULL));
    REFUSED("device", cek_tensor_normal(NULL, 1, numbers, 0.5, 0.5, 8, 1, (void *)room));
    REFUSED("shape", cek_tensor_normal(device, 1, NULL, 0.5, 0.5, 8, 1, (void *)room));
    REFUSED("out", cek_tensor_normal(device, 1, numbers, 0.5, 0.5, 8, 1, NULL));
    REFUSED("device", cek_tensor_randint(NULL, 1, numbers, 0, 1, 8, 1, (void *)room));
    REFUSED("shape", cek_tensor_randint(device, 1, NULL, 0, 1, 8, 1, (void *)room));
    REFUSED("out", cek_tensor_randint(device, 1, numbers, 0, 1, 8, 1, NULL));
    EMPTY(cek_tensor_strides(NULL) == NULL);
    EMPTY(cek_tensor_is_contiguous(NULL) == false);
    REFUSED("x", cek_min(NULL, 1, (int *)room, (void *)room));
    REFUSED("axes", cek_min(tensor, 1, NULL, (void *)room));
    REFUSED("out", cek_min(tensor, 1, (int *)room, NULL));
    REFUSED("x", cek_argmax(NULL, 0, (void *)room));
    REFUSED("out", cek_argmax(tensor, 0, NULL));
    REFUSED("x", cek_argmin(NULL, 0, (void *)room));
    REFUSED("out", cek_argmin(tensor, 0, NULL));
    REFUSED("condition", cek_where(NULL, tensor, tensor, (void *)room));
    REFUSED("a", cek_where(tensor, NULL, tensor, (void *)room));
    REFUSED("b", cek_where(tensor, tensor, NULL, (void *)room));
    REFUSED("out", cek_where(tensor, tensor, tensor, NULL));
    REFUSED("x", cek_tensor_slice(NULL, 0, 0, 1, 1, (void *)room));
    REFUSED("out", cek_tensor_slice(tensor, 0, 0, 1, 1, NULL));
    REFUSED("x", cek_tensor_narrow(NULL, 0, 0, 1, (void *)room));
    REFUSED("out", cek_tensor_narrow(tensor, 0, 0, 1, NULL));
    REFUSED("x", cek_tensor_select(NULL, 0, 0, (void *)room));
    REFUSED("out", cek_tensor_select(tensor, 0, 0, NULL));
    REFUSED("x", cek_tensor_squeeze(NULL, 0, (void *)room));
    REFUSED("out", cek_tensor_squeeze(tensor, 0, NULL));
    REFUSED("x", cek_tensor_unsqueeze(NULL, 0, (void *)room));
    REFUSED("out", cek_tensor_unsqueeze(tensor, 0, NULL));
    REFUSED("x", cek_tensor_transpose(NULL, 0, 1, (void *)room));
    REFUSED("out", cek_tensor_transpose(tensor, 0, 1, NULL));
    REFUSED("x", cek_tensor_contiguous(NULL, (void *)room));
    REFUSED("out", cek_tensor_contiguous(tensor, NULL));
    REFUSED("dst", cek_tensor_assign(NULL, tensor));
    REFUSED("src", cek_tensor_assign(tensor, NULL));
    REFUSED("parts", cek_tensor_cat(1, NULL, 0, (void *)room));
    REFUSED("out", cek_tensor_cat(1, (void *)room, 0, NULL));
    REFUSED("parts", cek_tensor_stack(1, NULL, 0, (void *)room));
    REFUSED("out", cek_tensor_stack(1, (void *)room, 0, NULL));
    REFUSED("tensor", cek_tensor_item(NULL, (void *)room));
    REFUSED("out", cek_tensor_item(tensor, NULL));
    REFUSED("device", cek_tensor_arange(NULL, CEK_F32, 0, 1, 1, (void *)room));
    REFUSED("out", cek_tensor_arange(device, CEK_F32, 0, 1, 1, NULL));
    REFUSED("device", cek_tensor_eye(NULL, CEK_F32, 1, 1, (void *)room));
    REFUSED("out", cek_tensor_eye(device, CEK_F32, 1, 1, NULL));
    REFUSED("tensor", cek_tensor_text(NULL, NULL, (void *)room));
    REFUSED("out", cek_tensor_text(tensor, NULL, NULL));
    REFUSED("x", cek_tensor_to_dlpack(NULL, 0, (void *)room));
    REFUSED("out", cek_tensor_to_dlpack(tensor, 0, NULL));
    REFUSED("x", cek_tensor_to_dlpack_unversioned(NULL, (void *)room));
    REFUSED("out", cek_tensor_to_dlpack_unversioned(tensor, NULL));
    REFUSED("device", cek_tensor_from_dlpack(NULL, (void *)room, (void *)room));
    REFUSED("managed", cek_tensor_from_dlpack(device, NULL, (void *)room));
    REFUSED("out", cek_tensor_from_dlpack(device, (void *)room, NULL));
    REFUSED("device", cek_tensor_from_dlpack_unversioned(NULL, (void *)room, (void *)room));
    REFUSED("managed", cek_tensor_from_dlpack_unversioned(device, NULL, (void *)room));
    REFUSED("out", cek_tensor_from_dlpack_unversioned(device, (void *)room, NULL));
}

static void models_call(void)
{
    REFUSED("shape", cek_model_create(1, NULL, (void *)room));
    REFUSED("out", cek_model_create(1, numbers, NULL));
    NOTHING(cek_model_free(NULL));
    REFUSED("text", cek_model_parse(NULL, 1, numbers, (void *)room));
    REFUSED("out", cek_model_parse("x", 1, numbers, NULL));
    REFUSED("model", cek_model_conv2d(NULL, 1, (void *)room, (int *)room));
    REFUSED("layer", cek_model_conv2d(model, 1, NULL, (int *)room));
    REFUSED("model", cek_model_linear(NULL, 1, 1, false, (int *)room));
    REFUSED("model", cek_model_activation(NULL, 1, CEK_ACT_RELU, (int *)room));
    REFUSED("model", cek_model_pool2d(NULL, 1, (void *)room, (int *)room));
    REFUSED("layer", cek_model_pool2d(model, 1, NULL, (int *)room));
    REFUSED("model", cek_model_dropout(NULL, 1, 0.5, (int *)room));
    REFUSED("model", cek_model_conv(NULL, 1, (void *)room, (int *)room));
    REFUSED("layer", cek_model_conv(model, 1, NULL, (int *)room));
    REFUSED("model", cek_model_conv_transposed(NULL, 1, (void *)room, (int *)room));
    REFUSED("layer", cek_model_conv_transposed(model, 1, NULL, (int *)room));
    REFUSED("model", cek_model_pool(NULL, 1, (void *)room, (int *)room));
    REFUSED("layer", cek_model_pool(model, 1, NULL, (int *)room));
    REFUSED("model", cek_model_pool_to(NULL, 1, CEK_POOL_MAX, numbers, (int *)room));
    REFUSED("size", cek_model_pool_to(model, 1, CEK_POOL_MAX, NULL, (int *)room));
    REFUSED("model", cek_model_activation_with(NULL, 1, (void *)room, (int *)room));
    REFUSED("layer", cek_model_activation_with(model, 1, NULL, (int *)room));
    REFUSED("model", cek_model_prelu(NULL, 1, 1, (int *)room));
    REFUSED("model", cek_model_softmax(NULL, 1, 1, (int *)room));
    REFUSED("model", cek_model_log_softmax(NULL, 1, 1, (int *)room));
    REFUSED("model", cek_model_layer_norm(NULL, 1, (void *)room, (int *)room));
    REFUSED("layer", cek_model_layer_norm(model, 1, NULL, (int *)room));
    REFUSED("model", cek_model_rms_norm(NULL, 1, (void *)room, (int *)room));
    REFUSED("layer", cek_model_rms_norm(model, 1, NULL, (int *)room));
    REFUSED("model", cek_model_group_norm(NULL, 1, (void *)room, (int *)room));
    REFUSED("layer", cek_model_group_norm(model, 1, NULL, (int *)room));
    REFUSED("model", cek_model_instance_norm(NULL, 1, (void *)room, (int *)room));
    REFUSED("layer", cek_model_instance_norm(model, 1, NULL, (int *)room));
    REFUSED("model", cek_model_embedding(NULL, 1, 2, 2, (int *)room));
    REFUSED("model", cek_model_embedding_with(NULL, 1, (void *)room, (int *)room));
    REFUSED("layer", cek_model_embedding_with(model, 1, NULL, (int *)room));
    REFUSED("model", cek_model_attention(NULL, 1, 1, 1, -1, (void *)room, (int *)room));
    REFUSED("layer", cek_model_attention(model, 1, 1, 1, -1, NULL, (int *)room));
    REFUSED("model", cek_model_lstm(NULL, 1, (void *)room, (int *)room));
    REFUSED("layer", cek_model_lstm(model, 1, NULL, (int *)room));
    REFUSED("model", cek_model_gru(NULL, 1, (void *)room, (int *)room));
    REFUSED("layer", cek_model_gru(model, 1, NULL, (int *)room));
    REFUSED("model", cek_model_loss(NULL, 1, (void *)room, (int *)room));
    REFUSED("options", cek_model_loss(model, 1, NULL, (int *)room));
    REFUSED("model", cek_model_flatten(NULL, 1, (int *)room));
    REFUSED("model", cek_model_add(NULL, 1, 1, (int *)room));
    NOTHING(cek_model_set_input_scale(NULL, 0.5, 0.5));
    REFUSED("model", cek_model_set_dropout(NULL, 0.5));
    REFUSED("model", cek_model_batch_norm(NULL, 0, (void *)room, NULL));
    REFUSED("layer", cek_model_batch_norm(model, 0, NULL, NULL));
    REFUSED("model", cek_model_buffer(NULL, 0, (void *)room));
    REFUSED("out", cek_model_buffer(model, 0, NULL));
    EMPTY(cek_model_buffer_count(NULL) == 0);
    REFUSED("model", cek_model_name(NULL, "a"));
    REFUSED("name", cek_model_name(model, NULL));
    REFUSED("model", cek_model_enter(NULL, "a"));
    REFUSED("name", cek_model_enter(model, NULL));
    REFUSED("model", cek_model_leave(NULL));
    EMPTY(cek_model_input_count(NULL) == 0);
    REFUSED("model", cek_model_input(NULL, 0, (void *)room));
    REFUSED("out", cek_model_input(model, 0, NULL));
    EMPTY(cek_model_input_shape(NULL, numbers) == 0);
    EMPTY(cek_model_input_shape(model, NULL) > 0);
    EMPTY(cek_model_output_shape(NULL, numbers) == 0);
    EMPTY(cek_model_output_shape(model, NULL) > 0);
    EMPTY(cek_model_parameter_count(NULL) == 0);
    REFUSED("model", cek_model_parameter(NULL, 0, (void *)room));
    REFUSED("out", cek_model_parameter(model, 0, NULL));
    NOTHING(cek_model_init(NULL, 8));
    REFUSED("model", cek_model_init_parameters(NULL, "x", (void *)room));
    REFUSED("names", cek_model_init_parameters(model, NULL, (void *)room));
    REFUSED("init", cek_model_init_parameters(model, "x", NULL));
    REFUSED("model", cek_model_set_init(NULL, "x", (void *)room));
    REFUSED("names", cek_model_set_init(model, NULL, (void *)room));
    REFUSED("init", cek_model_set_init(model, "x", NULL));
    REFUSED("model", cek_model_save(NULL, "x"));
    REFUSED("path", cek_model_save(model, NULL));
    REFUSED("path", cek_npy_read(NULL, CEK_F32, (void *)room));
    REFUSED("out", cek_npy_read("x", CEK_F32, NULL));
    REFUSED("path", cek_npy_write(NULL, (void *)room));
    REFUSED("array", cek_npy_write("x", NULL));
    REFUSED("device", cek_tensor_load(NULL, "x", (void *)room));
    REFUSED("path", cek_tensor_load(device, NULL, (void *)room));
    REFUSED("out", cek_tensor_load(device, "x", NULL));
    REFUSED("tensor", cek_tensor_save(NULL, "x"));
    REFUSED("path", cek_tensor_save(tensor, NULL));
    REFUSED("path", cek_npz_open(NULL, (void *)room));
    REFUSED("out", cek_npz_open("x", NULL));
    NOTHING(cek_npz_close(NULL));
    EMPTY(cek_npz_count(NULL) == 0);
    EMPTY(cek_npz_name(NULL, 0) == NULL);
    REFUSED("npz", cek_npz_tensor(NULL, "x", device, (void *)room));
    REFUSED("name", cek_npz_tensor((void *)room, NULL, device, (void *)room));
    REFUSED("device", cek_npz_tensor((void *)room, "x", NULL, (void *)room));
    REFUSED("out", cek_npz_tensor((void *)room, "x", device, NULL));
    REFUSED("path", cek_npz_save(NULL, 1, (void *)room, (void *)room, false));
    REFUSED("names", cek_npz_save("x", 1, NULL, (void *)room, false));
    REFUSED("tensors", cek_npz_save("x", 1, (void *)room, NULL, false));
    REFUSED("model", cek_model_write_onnx(NULL, "x", NULL));
    REFUSED("path", cek_model_write_onnx(model, NULL, NULL));
    REFUSED("path", cek_model_read_onnx(NULL, NULL, (cek_model **)room));
    REFUSED("out", cek_model_read_onnx("x", NULL, NULL));
    REFUSED("model", cek_model_load(NULL, "x"));
    REFUSED("path", cek_model_load(model, NULL));
    REFUSED("model", cek_model_check_finite(NULL));
    REFUSED("model", cek_model_fits(NULL, device, CEK_F32));
    REFUSED("device", cek_model_fits(model, NULL, CEK_F32));
    NOTHING(cek_model_sha256(NULL, (char *)room));
    NOTHING(cek_model_sha256(model, NULL));
    REFUSED("model", cek_model_summary(NULL, device, 1, (void *)room));
    REFUSED("text", cek_model_summary(model, device, 1, NULL));
    REFUSED("name", cek_preset_find(NULL, (void *)room));
    REFUSED("out", cek_preset_find("x", NULL));
}

static void data_sets_call(void)
{
    NOTHING(cek_dataset_free(NULL));
    EMPTY(cek_dataset_size(NULL) == 0);
    EMPTY(cek_dataset_input_type(NULL) == 0);
    EMPTY(cek_dataset_classes(NULL) == 0);
    EMPTY(cek_dataset_shape(NULL, numbers) == 0);
    EMPTY(cek_dataset_shape(set, NULL) > 0);
    EMPTY(cek_dataset_target_columns(NULL) == 0);
    REFUSED("images", cek_dataset_idx(NULL, "x", 1, (void *)room));
    REFUSED("labels", cek_dataset_idx("x", NULL, 1, (void *)room));
    REFUSED("out", cek_dataset_idx("x", "x", 1, NULL));
    REFUSED("directory", cek_dataset_mnist(NULL, false, (void *)room));
    REFUSED("out", cek_dataset_mnist("x", false, NULL));
    REFUSED("out", cek_dataset_digits(8, false, NULL));
    REFUSED("out", cek_dataset_coloured_digits(8, false, NULL));
    REFUSED("path", cek_dataset_text(NULL, 8, false, (void *)room));
    REFUSED("out", cek_dataset_text("x", 8, false, NULL));
    REFUSED("path", cek_dataset_csv(NULL, "x", (void *)room));
    REFUSED("target", cek_dataset_csv("x", NULL, (void *)room));
    REFUSED("out", cek_dataset_csv("x", "x", NULL));
    REFUSED("options", cek_dataset_arrays(NULL, (void *)room));
    REFUSED("out", cek_dataset_arrays((void *)room, NULL));
    REFUSED("whole", cek_dataset_split(NULL, 1, 8, (void *)room, (void *)room));
    REFUSED("first", cek_dataset_split(set, 1, 8, NULL, (void *)room));
    REFUSED("second", cek_dataset_split(set, 1, 8, (void *)room, NULL));
    REFUSED("whole", cek_dataset_split_rows(NULL, numbers, 1, (void *)room, (void *)room));
    REFUSED("rows", cek_dataset_split_rows(set, NULL, 1, (void *)room, (void *)room));
    REFUSED("first", cek_dataset_split_rows(set, numbers, 1, NULL, (void *)room));
    REFUSED("second", cek_dataset_split_rows(set, numbers, 1, (void *)room, NULL));
    REFUSED("whole", cek_dataset_split_file(NULL, "x", (void *)room, (void *)room));
    REFUSED("path", cek_dataset_split_file(set, NULL, (void *)room, (void *)room));
    REFUSED("first", cek_dataset_split_file(set, "x", NULL, (void *)room));
    REFUSED("second", cek_dataset_split_file(set, "x", (void *)room, NULL));
    REFUSED("dataset", cek_dataset_standardize(NULL, set));
    REFUSED("by", cek_dataset_standardize(set, NULL));
    REFUSED("dataset", cek_loader_create(NULL, (void *)room, (void *)room));
    REFUSED("out", cek_loader_create(set, (void *)room, NULL));
    NOTHING(cek_loader_free(NULL));
    REFUSED("loader", cek_loader_start(NULL, 1));
    REFUSED("loader", cek_loader_next(NULL, (void *)room));
    REFUSED("batch", cek_loader_next(loader, NULL));
}

static void logs_call(void)
{
    REFUSED("folder", cek_event_log_create(NULL, (void *)room));
    REFUSED("out", cek_event_log_create("x", NULL));
    NOTHING(cek_event_log_free(NULL));
    REFUSED("log", cek_event_log_flush(NULL));
    REFUSED("log", cek_event_log_scalar(NULL, "x", 1, 0.5));
    REFUSED("tag", cek_event_log_scalar((void *)room, NULL, 1, 0.5));
    REFUSED("log", cek_event_log_scalars(NULL, 1, (void *)room, 1));
    REFUSED("scalars", cek_event_log_scalars((void *)room, 1, NULL, 1));
    REFUSED("log", cek_event_log_histogram(NULL, "x", 1, (float *)room, 1));
    REFUSED("tag", cek_event_log_histogram((void *)room, NULL, 1, (float *)room, 1));
    REFUSED("values", cek_event_log_histogram((void *)room, "x", 1, NULL, 1));
    REFUSED("log", cek_event_log_image(NULL, "x", 1, (uint8_t *)room, 1, 1, 1));
    REFUSED("tag", cek_event_log_image((void *)room, NULL, 1, (uint8_t *)room, 1, 1, 1));
    REFUSED("pixels", cek_event_log_image((void *)room, "x", 1, NULL, 1, 1, 1));
    REFUSED("log", cek_event_log_text(NULL, "x", 1, "x"));
    REFUSED("tag", cek_event_log_text((void *)room, NULL, 1, "x"));
    REFUSED("text", cek_event_log_text((void *)room, "x", 1, NULL));
    REFUSED("log", cek_event_log_graph(NULL, model));
    REFUSED("model", cek_event_log_graph((void *)room, NULL));
    REFUSED("log", cek_event_log_hparams(NULL, (void *)room, 1, (void *)room, 1));
    REFUSED("hparams", cek_event_log_hparams((void *)room, NULL, 1, (void *)room, 1));
    REFUSED("metrics", cek_event_log_hparams((void *)room, (void *)room, 1, NULL, 1));
    REFUSED("log", cek_event_log_outcome(NULL, true));
}

static void training_call(void)
{
    REFUSED("model", cek_trainer_create(NULL, (void *)room, 0, (void *)room, (void *)room));
    REFUSED("out", cek_trainer_create(model, (void *)room, 0, (void *)room, NULL));
    NOTHING(cek_trainer_free(NULL));
    REFUSED("trainer", cek_trainer_step(NULL, (const cek_batch *)room, (void *)room));
    REFUSED("batch", cek_trainer_step(trainer, NULL, (void *)room));
    REFUSED("trainer", cek_trainer_evaluate(NULL, set, (void *)room));
    REFUSED("dataset", cek_trainer_evaluate(trainer, NULL, (void *)room));
    REFUSED("out", cek_trainer_evaluate(trainer, set, NULL));
    REFUSED("trainer", cek_trainer_fit(NULL, set, (void *)room, (void *)room));
    REFUSED("train", cek_trainer_fit(trainer, NULL, (void *)room, (void *)room));
    NOTHING(cek_trainer_request_stop(NULL));
    REFUSED("trainer", cek_trainer_pull(NULL));
    REFUSED("trainer", cek_trainer_skipped(NULL, (uint64_t *)room));
    REFUSED("count", cek_trainer_skipped(trainer, NULL));
    EMPTY(cek_trainer_rate(NULL, 0) == 0);
    REFUSED("trainer", cek_trainer_set_rate(NULL, 0, 1));
    REFUSED("trainer", cek_trainer_end_epoch(NULL, 1));
    REFUSED("trainer", cek_trainer_use_average(NULL, true));
    EMPTY(cek_trainer_share(NULL, 0) == 0);
    EMPTY(cek_trainer_idle(NULL, 0) != 0); /* not a number */
    EMPTY(cek_trainer_planned_bytes(NULL, 0) == 0);
    EMPTY(cek_trainer_micro_batch(NULL, 0) == 0);
    REFUSED("trainer", cek_trainer_read_replica(NULL, 0, 0, room, 8));
    REFUSED("dst", cek_trainer_read_replica(trainer, 0, 0, NULL, 8));
    REFUSED("trainer", cek_trainer_submit(NULL, (const cek_batch *)room));
    REFUSED("batch", cek_trainer_submit(trainer, NULL));
    REFUSED("trainer", cek_trainer_collect(NULL, (void *)room));
    EMPTY(cek_trainer_uncollected(NULL) == 0);
    REFUSED("trainer", cek_trainer_read_gradient(NULL, 0, (double *)room, 1));
    REFUSED("dst", cek_trainer_read_gradient(trainer, 0, NULL, 1));
    REFUSED("trainer", cek_trainer_save_gradients(NULL, "x"));
    REFUSED("path", cek_trainer_save_gradients(trainer, NULL));
    REFUSED("model", cek_predictor_create(NULL, (void *)room, 0, (void *)room, (void *)room));
    REFUSED("out", cek_predictor_create(model, (void *)room, 0, (void *)room, NULL));
    NOTHING(cek_predictor_free(NULL));
    REFUSED("predictor", cek_predictor_run(NULL, room, 1, (float *)room));
    REFUSED("inputs", cek_predictor_run(predictor, NULL, 1, (float *)room));
    REFUSED("outputs", cek_predictor_run(predictor, room, 1, NULL));
    REFUSED("trainer", cek_trainer_backward(NULL, (void *)room, NULL));
    REFUSED("batch", cek_trainer_backward(trainer, NULL, NULL));
    REFUSED("trainer", cek_trainer_update(NULL));
    REFUSED("trainer", cek_trainer_discard(NULL));
    REFUSED("trainer", cek_trainer_write_gradient(NULL, 0, (double *)room, 1));
    REFUSED("src", cek_trainer_write_gradient(trainer, 0, NULL, 1));
    EMPTY(cek_trainer_device_count(NULL) == 0);
    EMPTY(cek_trainer_device(NULL, 0) == NULL);
    REFUSED("index", cek_model_find_parameter(model, "0.weight", NULL));
    REFUSED("model", cek_model_find_parameter(NULL, "0.weight", (size_t *)room));
    REFUSED("name", cek_model_find_parameter(model, NULL, (size_t *)room));
    REFUSED("predictor", cek_predictor_run_arrays(NULL, (void *)room, 1, (void *)room));
    REFUSED("inputs", cek_predictor_run_arrays(predictor, NULL, 1, (void *)room));
    REFUSED("outputs", cek_predictor_run_arrays(predictor, (void *)room, 1, NULL));
    EMPTY(cek_predictor_output_count(NULL) == 0);
    EMPTY(cek_predictor_output_shape(NULL, 0, numbers) == 0);
    EMPTY(cek_predictor_output_shape(predictor, 0, NULL) == 1);
    REFUSED("predictor", cek_predictor_run_dataset(NULL, set, (float *)room));
    REFUSED("dataset", cek_predictor_run_dataset(predictor, NULL, (float *)room));
    REFUSED("outputs", cek_predictor_run_dataset(predictor, set, NULL));
    REFUSED("devices", cek_trainer_create(model, NULL, 1, NULL, (void *)room));
    REFUSED("devices", cek_predictor_create(model, NULL, 1, NULL, (void *)room));
}

/* What a part is not given it says in the model's failure. */
static void parts_call(void)
{
    cek_model *m;
    const cek_windows w = { .size = sizeof w };

    REFUSED("model", cek_model_status(NULL));
    REFUSED("model", cek_model_set_output(NULL, 0));
    EMPTY(cek_model_output(NULL) == -1);
    EMPTY(cek_model_shape(NULL, 0, numbers) == 0);
    EMPTY(cek_model_shape(model, 0, NULL) == 2);
    ok(cek_model_create(1, few, &m));
    EMPTY(cek_part_input(NULL, "a", CEK_F32, 1, few) == -1);
    EMPTY(cek_part_input(m, NULL, CEK_F32, 1, few) == -1);
    EMPTY(cek_part_input(m, "a", CEK_F32, 1, NULL) == -1);
    EMPTY(cek_part_shared(NULL, "a") == -1);
    EMPTY(cek_part_state(NULL, 0, CEK_STATE_HIDDEN) == -1);
    EMPTY(cek_part_shared(m, NULL) == -1);
    EMPTY(cek_part_parameter(NULL, "a", NULL) == -1);
    EMPTY(cek_part_parameter(m, NULL, NULL) == -1);
    EMPTY(cek_part_parameter(m, "a", NULL) == -1);
    EMPTY(cek_part_target(NULL, CEK_F32, 1, few) == -1);
    EMPTY(cek_part_target(m, CEK_F32, 1, NULL) == -1);
    EMPTY(cek_part_constant(NULL, 1) == -1);
    EMPTY(cek_part_apply(NULL, CEK_PW_EXP, 0, -1) == -1);
    EMPTY(cek_part_scale(NULL, 0, 1, 1) == -1);
    EMPTY(cek_part_chain(m, 1, NULL, 1, (void *)room) == -1);
    EMPTY(cek_part_chain(m, 1, (int[]){ 0 }, 1, NULL) == -1);
    EMPTY(cek_part_cast(NULL, 0, CEK_I32) == -1);
    EMPTY(cek_part_reshape(m, 0, 2, NULL) == -1);
    EMPTY(cek_part_permute(m, 0, NULL) == -1);
    EMPTY(cek_part_slice(NULL, 0, 1, 0, 1) == -1);
    EMPTY(cek_part_pad(m, 0, NULL, few, 0) == -1);
    EMPTY(cek_part_pad(m, 0, few, NULL, 0) == -1);
    EMPTY(cek_part_concat(m, 1, NULL, 1) == -1);
    EMPTY(cek_part_reduce(NULL, 0, CEK_REDUCE_SUM, 2, false) == -1);
    EMPTY(cek_part_softmax(NULL, 0, 0) == -1);
    EMPTY(cek_part_log_softmax(NULL, 0, 0) == -1);
    EMPTY(cek_part_normalise(NULL, 0, 1, 1) == -1);
    EMPTY(cek_part_attention(NULL, 0, 0, 0, NULL) == -1);
    EMPTY(cek_part_array(NULL, 1, few, (float *)room) == -1);
    EMPTY(cek_part_random(NULL, 1, few, CEK_RANDOM_UNIFORM, 0, 1) == -1);
    EMPTY(cek_part_gather(NULL, 0, 0, 0) == -1);
    EMPTY(cek_part_arg(NULL, 0, CEK_ARG_MAX, 0) == -1);
    EMPTY(cek_part_expand(NULL, 0, 1, few) == -1);
    EMPTY(cek_part_matmul(NULL, 0, 0, false) == -1);
    EMPTY(cek_part_conv(NULL, 0, 0, &w) == -1);
    EMPTY(cek_part_pool(m, 0, CEK_POOL_MAX, false, NULL) == -1);
    EMPTY(cek_part_dropout(NULL, 0, 0.5) == -1);
    EMPTY(cek_part_phase(NULL, 0, 0) == -1);
    EMPTY(cek_part_loss(NULL, 0, -1) == -1);
    cek_model_free(m);
}

/* data.h */
static void people_call(void)
{
    static const char *const nothing[1], *const paths[] = { "x" };
    double mean[2] = { 0 }, deviation[2] = { 1, 1 };

    REFUSED("directory", cek_dataset_folders(NULL, NULL, (void *)room));
    REFUSED("out", cek_dataset_folders("x", NULL, NULL));
    REFUSED("paths", cek_dataset_images(NULL, 1, NULL, (void *)room));
    REFUSED("paths[i]", cek_dataset_images(nothing, 1, NULL, (void *)room));
    REFUSED("out", cek_dataset_images(paths, 1, NULL, NULL));
    REFUSED("directory", cek_dataset_cifar10(NULL, true, (void *)room));
    REFUSED("out", cek_dataset_cifar10("x", true, NULL));
    REFUSED("x", cek_dataset_npy(NULL, "x", (void *)room));
    REFUSED("y", cek_dataset_npy("x", NULL, (void *)room));
    REFUSED("out", cek_dataset_npy("x", "x", NULL));
    REFUSED("options", cek_dataset_source(NULL, (void *)room));
    REFUSED("out", cek_dataset_source((void *)room, NULL));
    REFUSED("path", cek_data_recognize(NULL, (void *)room));
    REFUSED("out", cek_data_recognize("x", NULL));
    REFUSED("path", cek_dataset_open(NULL, true, NULL, (void *)room));
    REFUSED("out", cek_dataset_open("x", true, NULL, NULL));
    EMPTY(cek_dataset_class_name(NULL, 0) == NULL);
    EMPTY(cek_dataset_row_name(NULL, 0) == NULL);
    REFUSED("model", cek_model_set_class_names(NULL, paths, 1));
    REFUSED("names", cek_model_set_class_names(model, NULL, 1));
    EMPTY(cek_model_class_name(NULL, 0) == NULL);
    REFUSED("dataset", cek_dataset_augment(NULL, (void *)room, (void *)room));
    REFUSED("options", cek_dataset_augment(set, NULL, (void *)room));
    REFUSED("out", cek_dataset_augment(set, (void *)room, NULL));
    REFUSED("dataset", cek_dataset_channel_statistics(NULL, mean, deviation));
    REFUSED("mean", cek_dataset_channel_statistics(set, NULL, deviation));
    REFUSED("deviation", cek_dataset_channel_statistics(set, mean, NULL));
    REFUSED("dataset", cek_dataset_normalize(NULL, mean, deviation, (void *)room));
    REFUSED("mean", cek_dataset_normalize(set, NULL, deviation, (void *)room));
    REFUSED("deviation", cek_dataset_normalize(set, mean, NULL, (void *)room));
    REFUSED("out", cek_dataset_normalize(set, mean, deviation, NULL));
}

/* Every function of a header that takes a pointer is among the calls. */
static void header_check(const char *name, int least)
{
    static char text[200000];
    char path[512];
    const char *top = getenv("top_srcdir");
    int functions = 0;
    size_t size;
    FILE *file;

    snprintf(path, sizeof path, "%s/include/cekernels/%s", top != NULL ? top : ".", name);
    file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s: run this through `make check`, or after `. tests/env.sh`", path);
    size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    fclose(file);
    for (char *at = text; (at = strstr(at, "\nCEK_API ")) != NULL; at++) {
        char *open = strchr(at, '('), *close = strchr(at, ';'), *begin = open, word[80];

        while (isalnum((unsigned char)begin[-1]) || begin[-1] == '_')
            begin--;
        if (memchr(open, '*', (size_t)(close - open)) == NULL)
            continue;
        snprintf(word, sizeof word, " %.*s(", (int)(open - begin), begin);
        ck_assert_msg(strstr(called, word) != NULL, "%.*s is called with NULL nowhere here", (int)(open - begin),
                      begin);
        functions++;
    }
    ck_assert_int_ge(functions, least);
}

START_TEST(null_is_refused_by_name_and_never_a_crash)
{
    all_make();
    devices_call();
    streams_call();
    tensors_call();
    models_call();
    data_sets_call();
    people_call();
    training_call();
    logs_call();
    parts_call();
    NOTHING(cek_log_set(NULL, NULL, 0));
    NOTHING(cek_text_printable(NULL));
    EMPTY(cek_text_nearest(NULL, (const char *const[]){ "a", NULL }) == NULL);
    EMPTY(cek_text_nearest("a", NULL) == NULL);
    header_check("cekernels.h", 40);
    header_check("nn.h", 40);
    header_check("data.h", 13);
    header_check("layers.h", 20);
    header_check("parts.h", 20);
    all_free();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nulls");
    TCase *tc = tcase_create("nulls");

    tcase_add_test(tc, null_is_refused_by_name_and_never_a_crash);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
