/* cpu_sensors.c - load, temperature and memory of the processor, from files of /proc and /sys below a made-up root. */
#include <stdio.h>
#include <string.h>

#include "backends/cpu/sensors.h"
#include "tests/suite.h"
#include "tests/unit/cpu_root.h"

#define MS UINT64_C(1000000)

static cpu_load load;
static const cpu_slice slice = { .workers = 2, .n_cpus = 2, .cpus = { 1, 3 } };

static void machine_make(void)
{
    root_make();
    memset(&load, 0, sizeof load);
}

static cek_device_sensors read_at(uint64_t now_ns)
{
    cek_device_sensors told = { .size = sizeof told };
    cek__sensors_read(root, &slice, now_ns, &load, &told);
    return told;
}

/* Cores 1 and 3 have done so much, of so much; 0 and 2 something else, and so has all of it together. */
static void stat_write(unsigned busy_1, unsigned idle_1, unsigned busy_3, unsigned idle_3)
{
    char text[512];
    snprintf(text, sizeof text,
             "cpu  9999 9 9 999999 9 9 9 9 5 5\ncpu0 77 0 0 1 0 0 0 0 0 0\n"
             "cpu1 %u 0 0 %u 0 0 0 0 0 0\ncpu2 5 5 5 5 5 5 5 5 0 0\ncpu3 0 %u 0 0 %u 0 0 0 0 0\n"
             "intr 1 2 3\ncpu1 1 1 1 1 1 1 1 1 1 1\n",
             busy_1, idle_1, busy_3, idle_3);
    root_write("/proc/stat", text);
}

START_TEST(a_machine_that_tells_nothing_has_no_sensors)
{
    ck_assert_uint_eq(read_at(1).known, 0);
    root_write("/proc/stat", "nonsense\n");
    root_write("/proc/meminfo", "MemTotal: 10 kB\n");
    root_write("/sys/class/hwmon/hwmon0/name", "coretemp\n");
    root_write("/sys/class/hwmon/hwmon0/temp1_input", "warm\n");
    ck_assert_uint_eq(read_at(100 * MS).known, 0);
    ck_assert_uint_eq(read_at(200 * MS).known, 0);
}
END_TEST

START_TEST(load_is_that_of_the_slice_since_the_reading_before)
{
    cek_device_sensors told;
    stat_write(100, 100, 0, 300);
    ck_assert_uint_eq(read_at(1000 * MS).known, 0); /* since when? */
    stat_write(130, 170, 20, 380);                  /* 30 of 100 and 20 of 100 */
    told = read_at(2000 * MS);
    ck_assert_uint_eq(told.known, CEK_SENSOR_UTILIZATION);
    ck_assert(told.utilization == 0.25);
    ck_assert_uint_eq(told.interval_ns, 1000 * MS);
    stat_write(131, 170, 21, 380); /* so soon that it says nothing */
    told = read_at(2010 * MS);
    ck_assert(told.utilization == 0.25 && told.interval_ns == 1000 * MS);
    stat_write(140, 170, 30, 380);
    told = read_at(2100 * MS);
    ck_assert(told.utilization == 1 && told.interval_ns == 100 * MS);
}
END_TEST

START_TEST(counts_that_run_back_make_no_load_that_cannot_be)
{
    stat_write(100, 100, 0, 300);
    ck_assert_uint_eq(read_at(1000 * MS).known, 0);
    stat_write(90, 170, 0, 380);
    ck_assert(read_at(2000 * MS).utilization == 0);
    stat_write(190, 130, 0, 380); /* more was worked than time passed */
    ck_assert(read_at(3000 * MS).utilization == 1);
    stat_write(10, 10, 10, 10); /* cores that went and came back */
    ck_assert(read_at(4000 * MS).utilization == 1);
    stat_write(20, 20, 20, 20);
    ck_assert(read_at(5000 * MS).utilization == 0.5);
}
END_TEST

START_TEST(temperature_is_that_of_the_hottest_package)
{
    root_write("/sys/class/hwmon/hwmon0/name", "nvme\n");
    root_write("/sys/class/hwmon/hwmon0/temp1_input", "99000\n");
    ck_assert_uint_eq(read_at(1).known, 0);
    root_write("/sys/class/hwmon/hwmon3/name", "coretemp\n"); /* numbers have gaps */
    root_write("/sys/class/hwmon/hwmon3/temp1_input", "41500\n");
    root_write("/sys/class/hwmon/hwmon7/name", "coretemp\n");
    root_write("/sys/class/hwmon/hwmon7/temp1_input", "63000\n");
    root_write("/sys/class/hwmon/hwmon8/name", "coretemp\n");
    root_write("/sys/class/hwmon/hwmon8/temp1_input", "-5000\n");
    cek_device_sensors told = read_at(2);
    ck_assert_uint_eq(told.known, CEK_SENSOR_TEMPERATURE);
    ck_assert(told.celsius == 63);
}
END_TEST

START_TEST(what_fans_are_driven_by_is_no_temperature_where_there_is_a_better_one)
{
    root_write("/sys/class/hwmon/hwmon0/name", "k10temp\n");
    root_write("/sys/class/hwmon/hwmon0/temp1_input", "80000\n");
    ck_assert(read_at(1).celsius == 80);
    root_write("/sys/class/hwmon/hwmon0/temp2_label", "Tdie\n");
    root_write("/sys/class/hwmon/hwmon0/temp2_input", "53000\n");
    ck_assert(read_at(2).celsius == 53);
}
END_TEST

START_TEST(memory_that_the_system_would_give_up_is_not_in_use)
{
    root_write("/proc/meminfo", "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    700 kB\n");
    cek_device_sensors told = read_at(1);
    ck_assert_uint_eq(told.known, CEK_SENSOR_MEMORY);
    ck_assert_uint_eq(told.used_bytes, 300 << 10);
    ck_assert_uint_eq(told.total_bytes, 1000 << 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_sensors");
    TCase *tc = tcase_create("cpu_sensors");

    tcase_add_checked_fixture(tc, machine_make, root_remove);
    tcase_add_test(tc, a_machine_that_tells_nothing_has_no_sensors);
    tcase_add_test(tc, load_is_that_of_the_slice_since_the_reading_before);
    tcase_add_test(tc, counts_that_run_back_make_no_load_that_cannot_be);
    tcase_add_test(tc, temperature_is_that_of_the_hottest_package);
    tcase_add_test(tc, what_fans_are_driven_by_is_no_temperature_where_there_is_a_better_one);
    tcase_add_test(tc, memory_that_the_system_would_give_up_is_not_in_use);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
