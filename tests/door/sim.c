/* SPDX-License-Identifier: MIT
 *
 * sim.c - what the simulator is told to be: its settings, read strictly, the plugin inside, the
 * devices and their memory.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/door/door.h"

#define OK(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, d.text)

static door d;

static void with(const char *const *options)
{
    door_open(&d, "sim", options);
}

/* create() answers `status`, and says `text`. */
static void refused(const char *const *options, cek_status status, const char *text)
{
    void *so;
    const cek_plugin *table = door_table(&so, "sim");
    d = (door){ .options = options };
    d.host =
        (cek_host){ .size = sizeof d.host, .abi = CEK_ABI, .user = &d, .fail = door_failed, .option = door_option };
    cek_status st = table->create(&d.host, &d.instance);
    ck_assert_msg(st == status, "%s=%s: %u, not %u", options[2], options[3], st, status);
    ck_assert_ptr_null(d.instance);
    ck_assert_msg(strstr(d.text, text) != NULL, "%s=%s: %s", options[2], options[3], d.text);
}

START_TEST(wrong_settings_are_refused_by_name)
{
    static const char *const wrong[][2] = {
        { "sim_devices", "0" },        { "sim_devices", "65" },      { "sim_devices", "two" },
        { "sim_memory", "1g" },        { "sim_memory", "0" },        { "sim_memory", "1,2,3" },
        { "sim_memory", "1," },        { "sim_memory", ",1" },       { "sim_memory", "1 " },
        { "sim_memory", "99999999T" }, { "sim_memory", "G" },        { "sim_flops", "-1" },
        { "sim_flops", "0" },          { "sim_flops", "1e12" },      { "sim_bandwidth", "1GG" },
        { "sim_link", "0,1" },         { "sim_latency_ns", "1us" },  { "sim_launch_ns", "1.5" },
        { "sim_clock", "atomic" },     { "sim_work", "some" },       { "sim_work", "late" },
        { "sim_quiet_us", "0" },       { "sim_copy_engines", "0" },  { "sim_inline", "2" },
        { "sim_memory", "1/1" },       { "sim_flops", "1@" },        { "sim_watchdog_ms", "0" },
        { "sim_inner", "sub/cpu" },    { "sim_inner", "../cpu" },    { "sim_lacks", "gem" },
        { "sim_lacks", "gemm," },      { "sim_lacks", "gemm,,arg" }, { "sim_lacks", "gemm softmax" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *const options[] = { "sim_unread", "", wrong[i][0], wrong[i][1], NULL };
        refused(options, CEK_INVALID, wrong[i][1]);
        ck_assert_msg(strstr(d.text, wrong[i][0]) != NULL, "%s", d.text);
    }
}
END_TEST

START_TEST(wrong_faults_are_refused_where_they_go_wrong)
{
    static const char *const wrong[][2] = {
        { "broken@op_run", "no such effect, at \"broken@op_run\"" },
        { "internal", "followed by '@' and a call" },
        { "internal@", "followed by '@' and a call" },
        { "internal@op_running", "followed by '@' and a call" },
        { "internal@op_run#0", "from 1" },
        { "internal@op_run#", "from 1" },
        { "internal@op_run#9999999999999999999", "from 1" },
        { "internal@op_run/2", "index of a device" },
        { "internal@op_run/", "index of a device" },
        { "internal@op_run#1/0#2", "ends with" },
        { "internal@op_run ", "ends with" },
        { "internal@op_run,", "no such effect, at \"\"" },
        { "hang@op_run,later_internal@mem_alloc",
          "only calls that enqueue fail later, at \"later_internal@mem_alloc\"" },
        { "later_internal@any", "only calls that enqueue" },
        { "halve@fill", "where there is a clock, at \"halve@fill\"" },
        { "internal@op_run,internal@op_run,internal@op_run,internal@op_run,internal@op_run,internal@op_run,"
          "internal@op_run,internal@op_run,internal@op_run,internal@op_run,internal@op_run,internal@op_run,"
          "internal@op_run,internal@op_run,internal@op_run,internal@op_run,internal@fill",
          "more than 16" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *const options[] = { "sim_unread", "", "sim_faults", wrong[i][0], NULL };
        refused(options, CEK_INVALID, wrong[i][1]);
    }
}
END_TEST

START_TEST(an_inner_plugin_that_cannot_be_is_named)
{
    char folder[] = "/tmp/cekernels-sim-XXXXXX", path[64], sim[4200];
    const char *const absent[] = { "sim_unread", "", "sim_inner", "no_such_plugin", NULL };
    const char *const itself[] = { "sim_unread", "", "sim_inner", "sim", NULL };
    const char *const empty[] = { "sim_unread", "", "sim_inner", path, NULL };
    refused(absent, CEK_INVALID, "no_such_plugin.so: No such file");
    refused(itself, CEK_INVALID, "is sim itself");

    /* The rules of trust are those of the core. */
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x.so", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    ck_assert_int_eq(chmod(path, 0666), 0);
    refused(empty, CEK_INVALID, "may be written to by everyone");
    ck_assert_int_eq(chmod(path, 0644), 0);
    ck_assert_int_eq(chmod(folder, 0777), 0);
    refused(empty, CEK_INVALID, "may be written to by everyone");
    ck_assert_int_eq(chmod(folder, 0755), 0);
    refused(empty, CEK_UNAVAILABLE, path);
    if (!geteuid()) {
        ck_assert_int_eq(chown(path, 12345, 0), 0);
        refused(empty, CEK_INVALID, "belongs to user 12345");
    }
    unlink(path);
    rmdir(folder);

    /* An absolute path is as good as a name. */
    snprintf(sim, sizeof sim, "%s/reference.so", getenv("TEST_PLUGIN_DIR"));
    const char *const named[] = { "sim_inner", sim, NULL };
    with(named);
    door_close(&d);
}
END_TEST

START_TEST(there_are_as_many_devices_as_were_asked_for)
{
    static const char *const options[] = { "sim_inner", "reference", "sim_devices", "5", NULL };
    with(options);
    ck_assert_uint_eq(d.plugin.device_count(d.instance), 5);
    cek_dev *last, *none;
    OK(d.plugin.device_open(d.instance, 4, NULL, &last));
    ck_assert_uint_eq(d.plugin.device_open(d.instance, 5, NULL, &none), CEK_INVALID);
    ck_assert_ptr_null(none);
    d.plugin.device_close(last);
    door_close(&d);
}
END_TEST

START_TEST(sensors_are_those_of_the_device_inside_but_memory)
{
    static const char *const options[] = { "sim_inner", "cpu", "sim_memory", "1000", NULL };
    static const char *const without[] = { "sim_inner", "reference", NULL };
    cek_device_sensors told = { .size = sizeof told }, inside = told;
    with(options);
    cek_mem *mem = door_mem(&d, 600);
    OK(d.plugin.device_sensors(d.instance, 0, &told));
    ck_assert(told.known & CEK_SENSOR_MEMORY && told.used_bytes == 600 && told.total_bytes == 1000);
    ck_assert_uint_eq(d.plugin.device_sensors(d.instance, d.plugin.device_count(d.instance), &told), CEK_INVALID);
    d.plugin.mem_free(mem);
    const uint32_t others = told.known & ~(uint32_t)(CEK_SENSOR_MEMORY | CEK_SENSOR_UTILIZATION);
    door_close(&d);
    door_open(&d, "cpu", NULL);
    OK(d.plugin.device_sensors(d.instance, 0, &inside));
    ck_assert_uint_eq(inside.known & ~(uint32_t)(CEK_SENSOR_MEMORY | CEK_SENSOR_UTILIZATION), others);
    door_close(&d);
    with(without);
    ck_assert_uint_eq(d.plugin.device_sensors(d.instance, 0, &told), CEK_UNSUPPORTED);
    door_close(&d);
}
END_TEST

START_TEST(a_device_has_the_memory_that_it_was_given)
{
    static const char *const options[] = { "sim_inner", "reference", "sim_memory", "1000", NULL };
    with(options);
    cek_mem *a = door_mem(&d, 600), *b;
    uint64_t free_bytes, total_bytes;
    OK(d.plugin.device_memory(d.dev, &free_bytes, &total_bytes));
    ck_assert_uint_eq(free_bytes, 400);
    ck_assert_uint_eq(total_bytes, 1000);
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = 401 };
    ck_assert_uint_eq(d.plugin.mem_alloc(d.dev, &desc, &b), CEK_OUT_OF_MEMORY);
    ck_assert_ptr_null(b);
    ck_assert_str_eq(d.text, "mem_alloc: 401 bytes, but 400 of 1000 are free on sim:0");
    b = door_mem(&d, 400);
    d.plugin.mem_free(a);
    a = door_mem(&d, 600);

    /* Another handle of the same device shares its memory, another device does not. */
    cek_dev *same, *other;
    cek_mem *c;
    OK(d.plugin.device_open(d.instance, 0, NULL, &same));
    OK(d.plugin.device_open(d.instance, 1, NULL, &other));
    ck_assert_uint_eq(d.plugin.mem_alloc(same, &desc, &c), CEK_OUT_OF_MEMORY);
    OK(d.plugin.mem_alloc(other, &desc, &c));
    d.plugin.mem_free(a);
    d.plugin.mem_free(b);
    d.plugin.mem_free(c);
    cek_device_info info = { .size = sizeof info };
    OK(d.plugin.device_info(d.instance, 0, &info));
    ck_assert_uint_eq(info.total_bytes, 1000);
    ck_assert_uint_eq(info.free_bytes, 1000);
    d.plugin.device_close(same);
    d.plugin.device_close(other);
    door_close(&d);
}
END_TEST

START_TEST(each_device_has_its_own_memory)
{
    static const char *const options[] = {
        "sim_inner", "reference", "sim_devices", "3", "sim_memory", "1k,2k,3M", NULL
    };
    static const uint64_t want[] = { 1000, 2000, 3000000 };
    with(options);
    for (uint32_t i = 0; i < 3; i++) {
        cek_device_info info = { .size = sizeof info };
        OK(d.plugin.device_info(d.instance, i, &info));
        ck_assert_uint_eq(info.total_bytes, want[i]);
        ck_assert(info.flags & CEK_DEVICE_ONLY_WHEN_NAMED);
    }
    door_close(&d);
}
END_TEST

START_TEST(a_device_lacks_the_operations_that_were_named_and_no_others)
{
    static const char *const options[] = { "sim_inner", "reference", "sim_lacks", "softmax,dropout", NULL };
    cek_dropout_desc dropout = { .op = { .size = sizeof dropout, .kind = CEK_OP_DROPOUT, .operands = 7 },
                                 .rows = 4,
                                 .columns = 4,
                                 .rows_per_sample = 1,
                                 .scale = 1,
                                 .type = CEK_F32 };
    cek_reduce_desc sum = { .op = { .size = sizeof sum, .kind = CEK_OP_REDUCE, .operands = 3 },
                            .function = CEK_REDUCE_SUM,
                            .axes = 1,
                            .rank = 1,
                            .x_type = CEK_F32,
                            .shape = { 4 },
                            .x_strides = { 1 } };
    cek_op *op;

    with(options);
    ck_assert_uint_eq(d.plugin.op_create(d.dev, &dropout.op, NULL, &op), CEK_UNSUPPORTED);
    ck_assert_ptr_null(op);
    ck_assert_str_eq(d.text, "op_create: dropout is among sim_lacks");
    OK(d.plugin.op_create(d.dev, &sum.op, NULL, &op));
    d.plugin.op_destroy(op);
    door_close(&d);
    with((const char *const[]){ "sim_inner", "reference", NULL });
    OK(d.plugin.op_create(d.dev, &dropout.op, NULL, &op));
    d.plugin.op_destroy(op);
    door_close(&d);
}
END_TEST

START_TEST(memory_that_is_not_shared_is_reached_by_transfers_alone)
{
    cek_foreign foreign = { .size = sizeof foreign };
    cek_mem *other;
    void *lies;
    with((const char *const[]){ "sim_inner", "reference", "sim_shared", "0", NULL });
    cek_mem *mem = door_mem(&d, 16);
    ck_assert_ptr_null(d.plugin.mem_host_ptr(mem));
    ck_assert_uint_eq(d.plugin.mem_map(mem, CEK_MAP_READ, &lies), CEK_UNSUPPORTED);
    ck_assert_uint_eq(d.plugin.mem_import(d.dev, &foreign, &other), CEK_UNSUPPORTED);
    d.plugin.mem_free(mem);
    door_close(&d);
}
END_TEST

START_TEST(a_queue_that_does_not_end_in_time_is_lost_with_its_handle_alone)
{
    const cek_queue_desc soon = { .size = sizeof soon, .deadline_ns = 1000000 };
    cek_dev *second, *third;
    cek_queue *queue, *other;
    cek_mem *mem;
    with((const char *const[]){ "sim_inner", "reference", "sim_clock", "real", "sim_launch_ns", "100000000", NULL });
    OK(d.plugin.device_open(d.instance, 0, NULL, &second));
    OK(d.plugin.queue_create(second, &soon, &queue));
    OK(d.plugin.mem_alloc(second, &(cek_mem_desc){ .size = sizeof(cek_mem_desc), .bytes = 16 }, &mem));
    OK(d.plugin.fill(queue, (cek_ref){ mem, 0 }, 1, 1, 16));
    d.plugin.queue_destroy(queue);
    ck_assert_uint_eq(d.plugin.device_status(second, NULL, 0), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.queue_create(second, NULL, &other), CEK_DEVICE_LOST);
    OK(d.plugin.device_status(d.dev, NULL, 0));
    OK(d.plugin.device_open(d.instance, 0, NULL, &third));
    d.plugin.device_close(third);
    d.plugin.mem_free(mem);
    d.plugin.device_close(second);
    door_close(&d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim");
    TCase *cases = tcase_create("settings");
    tcase_add_test(cases, wrong_settings_are_refused_by_name);
    tcase_add_test(cases, wrong_faults_are_refused_where_they_go_wrong);
    tcase_add_test(cases, an_inner_plugin_that_cannot_be_is_named);
    tcase_add_test(cases, there_are_as_many_devices_as_were_asked_for);
    tcase_add_test(cases, sensors_are_those_of_the_device_inside_but_memory);
    tcase_add_test(cases, a_device_has_the_memory_that_it_was_given);
    tcase_add_test(cases, each_device_has_its_own_memory);
    tcase_add_test(cases, a_device_lacks_the_operations_that_were_named_and_no_others);
    tcase_add_test(cases, memory_that_is_not_shared_is_reached_by_transfers_alone);
    tcase_add_test(cases, a_queue_that_does_not_end_in_time_is_lost_with_its_handle_alone);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
