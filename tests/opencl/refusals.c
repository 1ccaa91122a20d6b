/* refusals.c - devices, memory and operations of the opencl plugin that cannot be had: the
 * documented status, a text that names the cause, and nothing left behind. The shim makes OpenCL's
 * functions fail. */
#include "tests/opencl/failures.h"

START_TEST(more_than_the_driver_gives_at_once_says_how_much_that_is)
{
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = (uint64_t)1 << 62 };
    cek_mem *mem = (cek_mem *)&d;
    open_door();
    ck_assert_uint_eq(d.plugin.mem_alloc(d.dev, &desc, &mem), CEK_OUT_OF_MEMORY);
    ck_assert_ptr_null(mem);
    ck_assert_msg(strstr(d.text, "at once") && !strstr(d.text, "18446744073709551615"), "%s", d.text);
    shut_door(0);
}
END_TEST

START_TEST(what_the_driver_does_not_say_limits_nothing)
{
    cek_device_info info = { .size = sizeof info };
    shim.unsaid = true;
    open_door(); /* which has memory */
    ck_assert_uint_eq(d.plugin.device_info(d.instance, 0, &info), CEK_OK);
    ck_assert(info.max_alloc_bytes == CEK_UNKNOWN && info.total_bytes == CEK_UNKNOWN);
    shut_door(0);
}
END_TEST

/* As a GPU the device shares nothing with the host: other ways to allocate, map and copy. */
START_TEST(an_allocation_that_fails_is_out_of_memory_and_leaves_nothing)
{
    shim_call *const calls[] = { &shim.buffer, _i ? &shim.fill : &shim.svm };
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = 4 * BYTES };
    shim.device = _i ? CL_DEVICE_TYPE_GPU : 0;
    open_door();
    const int buffers = shim.buffers;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        cek_mem *mem = (cek_mem *)&d;
        calls[i]->error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
        ck_assert_uint_eq(d.plugin.mem_alloc(d.dev, &desc, &mem), CEK_OUT_OF_MEMORY);
        ck_assert_ptr_null(mem);
        ck_assert_int_eq(shim.buffers, buffers);
        calls[i]->error = 0;
        d.plugin.mem_free(door_mem(&d, 4 * BYTES));
    }
    shut_door(0);
}
END_TEST

START_TEST(mapping_and_pinning_that_fail_leave_the_memory_as_it_was)
{
    void *at = &d;
    shim.device = CL_DEVICE_TYPE_GPU;
    open_door();
    ck_assert_ptr_null(d.plugin.mem_host_ptr(a.mem));
    shim.map.error = CL_MAP_FAILURE;
    ck_assert_uint_eq(d.plugin.mem_map(a.mem, CEK_MAP_READ, &at), CEK_INTERNAL);
    ck_assert_ptr_null(at);
    ck_assert_uint_eq(d.plugin.host_alloc(d.dev, BYTES, &at), CEK_INTERNAL);
    ck_assert_ptr_null(at);
    shim.map.error = 0;
    ck_assert_uint_eq(fill(), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OK);
    ck_assert_uint_eq(d.plugin.mem_map(a.mem, CEK_MAP_READ | CEK_MAP_WRITE, &at), CEK_OK);
    ck_assert_uint_eq(((uint32_t *)at)[BYTES / 4 - 1], 7);
    shim.unmap.error = CL_OUT_OF_HOST_MEMORY;
    ck_assert_uint_eq(d.plugin.mem_unmap(a.mem), CEK_OUT_OF_MEMORY);
    shim.unmap.error = 0;
    ck_assert_uint_eq(d.plugin.mem_unmap(a.mem), CEK_OK);
    shim.buffer.error = CL_OUT_OF_HOST_MEMORY;
    ck_assert_uint_eq(d.plugin.host_alloc(d.dev, BYTES, &at), CEK_OUT_OF_MEMORY);
    shim.buffer.error = 0;
    ck_assert_uint_eq(d.plugin.host_alloc(d.dev, BYTES, &at), CEK_OK);
    ck_assert_uint_eq((uintptr_t)at % CEK_ALIGNMENT, 0);
    memset(at, 1, BYTES);
    d.plugin.host_free(d.dev, at);
    ck_assert_uint_eq(d.plugin.host_alloc(d.dev, BYTES, &at), CEK_OK); /* given back when the device is closed */
    shut_door(0);
}
END_TEST

START_TEST(an_operation_that_cannot_be_compiled_says_why)
{
    cek_op *other = (cek_op *)&d;
    cek_softmax_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_SOFTMAX, .operands = 3 }, .rows = 4, .columns = 4, .type = CEK_BF16
    };
    open_door();
    int kernels = shim.kernels, programs = shim.programs;
    const struct {
        shim_call *call;
        const char *text;
    } failing[] = {
        { &shim.source, "clCreateProgramWithSource" },
        { &shim.build, "rows.cl" },
        { &shim.kernel, "clCreateKernel" },
        { &shim.argument, "clSetKernelArg" },
        { &shim.launch, "clEnqueueNDRangeKernel" },
    };
    for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) {
        failing[i].call->error = CL_OUT_OF_HOST_MEMORY;
        ck_assert_uint_eq(d.plugin.op_create(d.dev, &desc.op, NULL, &other), CEK_OUT_OF_MEMORY);
        ck_assert_ptr_null(other);
        ck_assert_msg(strstr(d.text, failing[i].text) && strstr(d.text, "CL_OUT_OF_HOST_MEMORY"), "%s", d.text);
        failing[i].call->error = 0;
        ck_assert_int_eq(shim.kernels, kernels);
    }
    ck_assert_int_le(shim.programs, programs + 1); /* what was compiled is kept for the next attempt */
    shim.event_error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    ck_assert_uint_eq(d.plugin.op_create(d.dev, &desc.op, NULL, &other), CEK_OUT_OF_MEMORY);
    shim.event_error = 0;
    ck_assert_uint_eq(d.plugin.op_create(d.dev, &desc.op, NULL, &other), CEK_OK);
    d.plugin.op_destroy(other);
    shut_door(1);
}
END_TEST

START_TEST(an_error_of_the_compiler_reaches_the_caller)
{
    cek_op *other = (cek_op *)&d;
    cek_softmax_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_SOFTMAX, .operands = 3 }, .rows = 4, .columns = 4, .type = CEK_BF16
    };
    open_door();
    shim.text = "__kernel void softmax(__global float *x)\n{\n    x[0] = no_such_function_of_ours(1.0f);\n}\n";
    ck_assert_uint_eq(d.plugin.op_create(d.dev, &desc.op, NULL, &other), CEK_INTERNAL);
    ck_assert_ptr_null(other);
    ck_assert_msg(strstr(d.text, "rows.cl") && strstr(d.text, "CL_BUILD_PROGRAM_FAILURE"), "%s", d.text);
    ck_assert_msg(strstr(d.text, "no_such_function_of_ours") && !strchr(d.text, '\n'), "%s", d.text);
    shim.text = NULL;
    ck_assert_uint_eq(d.plugin.op_create(d.dev, &desc.op, NULL, &other), CEK_OK);
    d.plugin.op_destroy(other);
    shut_door(0);
}
END_TEST

/* CLBlast keeps what it compiled for all devices together. */
START_TEST(what_clblast_compiled_for_a_device_outlives_another_device)
{
    static const char *const with_clblast[] = { "opencl_cache", "off", "opencl_providers", "=clblast", NULL };
    cek_gemm_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_GEMM },
                           .m = 64,
                           .n = 64,
                           .k = 64,
                           .lda = 64,
                           .ldb = 64,
                           .ldc = 64,
                           .batch = 1,
                           .a_type = CEK_F32,
                           .b_type = CEK_F32,
                           .c_type = CEK_F32 };
    static float matrix[64 * 64];
    const array arrays[] = { IN(matrix, sizeof matrix), IN(matrix, sizeof matrix), OUT(matrix, sizeof matrix) };
    static door one, other;
    cek_op_info info;
    door_open(&one, "opencl", with_clblast);
    cek_op *first = door_op(&one, &desc.op, arrays, 3, &info);
    one.plugin.op_destroy(first);
    if (!strstr(info.algorithm, "CLBlast")) { /* it is not installed */
        door_close(&one);
        return;
    }
    door_open(&other, "opencl", with_clblast);
    other.plugin.op_destroy(door_op(&other, &desc.op, arrays, 3, &info));
    int builds = shim.build.calls;
    ck_assert_int_gt(builds, 0);
    other.plugin.op_destroy(door_op(&other, &desc.op, arrays, 3, &info));
    ck_assert_int_eq(shim.build.calls, builds);
    door_close(&one);
    other.plugin.op_destroy(door_op(&other, &desc.op, arrays, 3, &info));
    ck_assert_int_eq(shim.build.calls, builds);
    door_close(&other);
}
END_TEST

START_TEST(an_extent_beyond_32_bits_is_refused_and_never_cut)
{
    const uint64_t whole = (uint64_t)1 << 32;
    cek_conv_desc conv = { .op = { .size = sizeof conv, .kind = CEK_OP_CONV_FORWARD, .operands = 7 },
                           .spatial = 1,
                           .groups = 1,
                           .batch = 1,
                           .in_channels = 1,
                           .out_channels = 1,
                           .in = { 8 },
                           .kernel = { 1 },
                           .stride = { 1 },
                           .dilation = { 1 },
                           .x_type = CEK_F32,
                           .w_type = CEK_F32,
                           .y_type = CEK_F32 };
    cek_pool_desc pool = { .op = { .size = sizeof pool, .kind = CEK_OP_POOL_FORWARD, .operands = 3 },
                           .mode = CEK_POOL_AVERAGE,
                           .spatial = 1,
                           .type = CEK_F32,
                           .batch = 1,
                           .channels = 1,
                           .in = { 8 },
                           .kernel = { 1 },
                           .stride = { 1 } };
    uint64_t *const fields[] = { &conv.in[0],     &conv.stride[0],   &conv.dilation[0],  &conv.pad_hi[0],
                                 &conv.batch,     &conv.in_channels, &conv.out_channels, &pool.in[0],
                                 &pool.stride[0], &pool.batch,       &pool.channels };
    open_door();
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        cek_op *other = (cek_op *)&d;
        uint64_t before = *fields[i];
        *fields[i] = whole + 8;
        ck_assert_uint_eq(d.plugin.op_create(d.dev, i < 7 ? &conv.op : &pool.op, NULL, &other), CEK_UNSUPPORTED);
        ck_assert_msg(strstr(d.text, "beyond 32 bits") != NULL, "%zu: %s", i, d.text);
        ck_assert_ptr_null(other);
        *fields[i] = before;
    }
    shut_door(0);
}
END_TEST

START_TEST(a_device_or_a_queue_that_cannot_be_had_is_an_error)
{
    cek_dev *dev = (cek_dev *)&d;
    cek_queue *queue = (cek_queue *)&d;
    open_door();
    shim.context.error = CL_OUT_OF_HOST_MEMORY;
    ck_assert_uint_eq(d.plugin.device_open(d.instance, 0, NULL, &dev), CEK_OUT_OF_MEMORY);
    ck_assert_ptr_null(dev);
    shim.context.error = CL_DEVICE_NOT_AVAILABLE;
    ck_assert_uint_eq(d.plugin.device_open(d.instance, 0, NULL, &dev), CEK_DEVICE_LOST);
    shim.context.error = 0;
    shim.queue.error = CL_OUT_OF_HOST_MEMORY;
    ck_assert_uint_eq(d.plugin.queue_create(d.dev, NULL, &queue), CEK_OUT_OF_MEMORY);
    ck_assert_ptr_null(queue);
    shim.queue.error = 0;
    shut_door(0);
}
END_TEST

START_TEST(a_process_with_raised_privileges_asks_no_driver)
{
    cek_instance *instance = (cek_instance *)&d;
    const cek_plugin *table = door_table(&d.so, "opencl");
    const cek_host host = {
        .size = sizeof host, .abi = CEK_ABI, .user = &d, .fail = door_failed, .option = door_option
    };
    shim.secure = true;
    ck_assert_uint_eq(table->create(&host, &instance), CEK_UNAVAILABLE);
    ck_assert_ptr_null(instance);
    ck_assert_msg(strstr(d.text, "privileges") != NULL, "%s", d.text);
    ck_assert_int_eq(shim.probes, 0);
    shim.secure = false;
    ck_assert_uint_eq(table->create(&host, &instance), CEK_OK);
    ck_assert_int_ge(shim.probes, 1);
    table->destroy(instance);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("opencl refusals");
    TCase *tc = tcase_create("objects");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, more_than_the_driver_gives_at_once_says_how_much_that_is);
    tcase_add_test(tc, what_the_driver_does_not_say_limits_nothing);
    tcase_add_loop_test(tc, an_allocation_that_fails_is_out_of_memory_and_leaves_nothing, 0, 2);
    tcase_add_test(tc, mapping_and_pinning_that_fail_leave_the_memory_as_it_was);
    tcase_add_test(tc, an_operation_that_cannot_be_compiled_says_why);
    tcase_add_test(tc, an_error_of_the_compiler_reaches_the_caller);
    tcase_add_test(tc, what_clblast_compiled_for_a_device_outlives_another_device);
    tcase_add_test(tc, an_extent_beyond_32_bits_is_refused_and_never_cut);
    tcase_add_test(tc, a_device_or_a_queue_that_cannot_be_had_is_an_error);
    tcase_add_test(tc, a_process_with_raised_privileges_asks_no_driver);
    suite_add_tcase(suite, tc);
    return failures_run(suite);
}
