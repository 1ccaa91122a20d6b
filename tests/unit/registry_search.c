/* registry_search.c - tests of which plugin files are found and trusted, and which devices a list names. */
#include <grp.h>

#include "fakes.h"

static char program_path[512];

/* ---- trust ---- */

START_TEST(a_file_or_folder_that_everyone_may_write_is_refused)
{
    const char *path = fake_install("a.so");
    cek_engine *engine;

    ck_assert_int_eq(chmod(path, 0666), 0);
    engine = engine_of(path);
    ck_assert_str_eq(load_entry(engine, 0).stage, "permissions");
    ck_assert_uint_eq(load_entry(engine, 0).status, CEK_BAD_PLUGIN);
    ck_assert_ptr_nonnull(strstr(load_entry(engine, 0).reason, "a.so may be written to by everyone"));
    cek_engine_free(engine);

    ck_assert_int_eq(chmod(path, 0664), 0); /* a group is trusted */
    engine = engine_of(path);
    ck_assert_uint_eq(load_entry(engine, 0).status, CEK_OK);
    cek_engine_free(engine);

    ck_assert_int_eq(chmod(scratch_dir, 0777), 0);
    engine = engine_of(path);
    ck_assert_str_eq(load_entry(engine, 0).stage, "permissions");
    ck_assert_ptr_nonnull(strstr(load_entry(engine, 0).reason, scratch_dir));
    cek_engine_free(engine);

    setenv("CEKERNELS_PLUGIN_PATH", scratch_dir, 1);
    engine = engine_found();
    ck_assert_str_eq(load_entry(engine, 0).path,
                     scratch_dir); /* a line for the folder, none of its files is looked at */
    ck_assert_str_eq(load_entry(engine, 0).stage, "permissions");
    cek_engine_free(engine);
    ck_assert_int_eq(chmod(scratch_dir, 0700), 0);
}
END_TEST

START_TEST(a_strangers_file_is_refused)
{
    const char *path = fake_install("a.so");
    cek_engine *engine;

    if (geteuid() != 0)
        return; /* nobody else can give files away */
    ck_assert_int_eq(chown(path, 12345, 0), 0);
    engine = engine_of(path);
    ck_assert_str_eq(load_entry(engine, 0).stage, "permissions");
    ck_assert_ptr_nonnull(strstr(load_entry(engine, 0).reason, "belongs to user 12345"));
    cek_engine_free(engine);
    ck_assert_int_eq(chown(path, 0, 0), 0);
    ck_assert_int_eq(chown(scratch_dir, 12345, 0), 0);
    engine = engine_of(path);
    ck_assert_ptr_nonnull(strstr(load_entry(engine, 0).reason, "belongs to user 12345"));
    cek_engine_free(engine);
    /* To that stranger the files are their own, and root's are trusted. */
    ck_assert_int_eq(setgroups(0, NULL), 0);
    ck_assert_int_eq(seteuid(12345), 0);
    engine = engine_of(path);
    ck_assert_msg(load_entry(engine, 0).status == CEK_OK, "%s", load_entry(engine, 0).reason);
    cek_engine_free(engine);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(chown(scratch_dir, 0, 0), 0);
}
END_TEST

/* ---- search ---- */

START_TEST(the_first_of_a_name_wins_and_folders_are_read_in_order)
{
    const char *named = fake_install("alpha-named.so");
    const char *relative = "some/where";
    char path[1024], sub[300];
    cek_engine *engine;
    cek_engine_options options = { .size = sizeof options, .plugin_files = (const char *const[]){ named, NULL } };

    fake_install("alpha.so");
    fake_install("beta.so");
    scratch_write("notes.txt", "x", 1);
    scratch_write(".hidden.so", "x", 1);
    snprintf(sub, sizeof sub, "%s/absent", scratch_dir);
    snprintf(path, sizeof path, "%s::%s:%s/:%s", relative, sub, scratch_dir, scratch_dir);
    setenv("CEKERNELS_PLUGIN_PATH", path, 1);
    assert_ok(cek_engine_create(&options, &engine));
    cek_engine_device_count(engine);
    /* the named file, two folders without use, the folder's three in order of their names, each folder once */
    ck_assert_str_eq(load_entry(engine, 0).path, named);
    ck_assert_str_eq(load_entry(engine, 0).stage, "loaded");
    ck_assert_str_eq(load_entry(engine, 1).path, relative);
    ck_assert_uint_eq(load_entry(engine, 1).status, CEK_BAD_PLUGIN);
    ck_assert_ptr_nonnull(strstr(load_entry(engine, 1).reason, "not an absolute path"));
    ck_assert_str_eq(load_entry(engine, 2).path, sub);
    ck_assert_uint_eq(load_entry(engine, 2).status, CEK_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(load_entry(engine, 3).path, "/alpha-named.so"));
    ck_assert_str_eq(load_entry(engine, 3).stage, "not started");
    ck_assert_uint_eq(load_entry(engine, 3).status, CEK_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(load_entry(engine, 3).reason, named));
    ck_assert_ptr_nonnull(strstr(load_entry(engine, 4).path, "/alpha.so"));
    ck_assert_ptr_nonnull(strstr(load_entry(engine, 4).reason, "a plugin of this name was loaded"));
    ck_assert_ptr_nonnull(strstr(load_entry(engine, 5).path, "/beta.so"));
    ck_assert_str_eq(load_entry(engine, 5).stage, "loaded");
    for (size_t i = 6; i < cek_engine_load_count(engine); i++)
        ck_assert_ptr_null(strstr(load_entry(engine, i).path, scratch_dir));
    cek_engine_free(engine);
}
END_TEST

/* The library, copied with a plugin in the folder beside it, finds that one: this program shows it, run
 * with the copy. */
START_TEST(a_moved_installation_finds_the_plugins_beside_the_library)
{
    char folder[300], command[2048], report[8192] = "", *library;
    FILE *pipe;
    Dl_info info;

    ck_assert_int_ne(dladdr((void *)(uintptr_t)cek_engine_create, &info), 0);
    library = realpath(info.dli_fname, NULL);
    ck_assert_ptr_nonnull(library);
    snprintf(folder, sizeof folder, "%s/cekernels", scratch_dir);
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    ck_assert_int_eq(rename(fake_install("moved.so"), scratch_path("cekernels/moved.so")), 0);
    snprintf(command, sizeof command, "cp '%s' '%s/%s' && LD_LIBRARY_PATH='%s' '%s' --report", library, scratch_dir,
             strrchr(info.dli_fname, '/') + 1, scratch_dir, program_path);
    pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    ck_assert_uint_gt(fread(report, 1, sizeof report - 1, pipe), 0);
    ck_assert_int_eq(pclose(pipe), 0);
    ck_assert_msg(strstr(report, "/cekernels/moved.so: loaded, 2 devices") != NULL, "%s", report);
    ck_assert_ptr_nonnull(strstr(report, scratch_dir));
    unlink(scratch_path("cekernels/moved.so"));
    rmdir(folder);
    free(library);
}
END_TEST

START_TEST(plugins_are_left_out_or_taken_alone_by_name_without_opening_them)
{
    const char *alpha = fake_install("alpha.so");
    cek_engine *engine;

    fake_install("beta.so");
    setenv("CEKERNELS_PLUGIN_PATH", scratch_dir, 1);
    setenv("CEKERNELS_PLUGINS", "-alpha,-gamma", 1);
    engine = engine_found();
    ck_assert_str_eq(load_entry(engine, 0).stage, "search");
    ck_assert_str_eq(load_entry(engine, 0).reason, "left out by CEKERNELS_PLUGINS=-alpha,-gamma");
    ck_assert_uint_eq(load_entry(engine, 0).status, CEK_UNAVAILABLE);
    ck_assert_str_eq(load_entry(engine, 1).stage, "loaded");
    ck_assert_ptr_null(dlopen(alpha, RTLD_NOW | RTLD_NOLOAD));
    cek_engine_free(engine);

    setenv("CEKERNELS_PLUGINS", "=alpha", 1);
    engine = engine_found();
    ck_assert_str_eq(load_entry(engine, 0).stage, "loaded");
    ck_assert_str_eq(load_entry(engine, 1).stage, "search");
    cek_engine_free(engine);
}
END_TEST

START_TEST(a_malformed_filter_is_an_error)
{
    static const char *const malformed[] = { "alpha", "-", "=", "-a,b", "=a,", "=a,-b", "-A", "=a b" };
    cek_engine *engine = (cek_engine *)&engine;

    setenv("CEKERNELS_PLUGINS", malformed[_i], 1);
    assert_fails(cek_engine_create(NULL, &engine), CEK_INVALID, "CEKERNELS_PLUGINS", "'");
    ck_assert_ptr_null(engine);
}
END_TEST

START_TEST(the_report_and_errors_tell_what_happened)
{
    const char *files[] = { fake_install("alpha.so"), fake_install("b-unavailable.so"), fake_install("c-slot.so"),
                            NULL };
    cek_engine *engine = engine_of_files(files);
    cek_device *device = (cek_device *)&device;
    char *report;

    assert_ok(cek_engine_load_report(engine, &report));
    ck_assert_ptr_nonnull(strstr(report, "/alpha.so: loaded, 2 devices (alpha 0.1, ABI 1.1)\n"));
    ck_assert_ptr_nonnull(strstr(report, "/b-unavailable.so: create: no fake hardware in this machine\n"));
    ck_assert_ptr_nonnull(strstr(report, "/c-slot.so: query: the slot mem_alloc is empty"));
    free(report);
    assert_fails(cek_engine_find(engine, "cuda:0", &device), CEK_NO_DEVICE, "'cuda:0'", "alpha:0,alpha:1");
    ck_assert_ptr_null(device);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "c-slot.so: query: the slot mem_alloc is empty"));
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "no fake hardware"));
    cek_engine_free(engine);

    assert_ok(cek_engine_create(&(cek_engine_options){ .size = sizeof(cek_engine_options), .only_plugin_files = true },
                                &engine));
    assert_fails(cek_engine_find(engine, NULL, &device), CEK_NO_DEVICE, "devices: none", "no plugin was found");
    cek_engine_free(engine);
}
END_TEST

/* ---- selection ---- */

static void assert_selected_for(cek_engine *engine, uint32_t profile, const char *list, const char *expected)
{
    cek_device **devices;
    size_t count;
    char names[256] = "";

    assert_ok(cek_engine_select(engine, list, profile, &devices, &count));
    for (size_t i = 0; i < count; i++) {
        strcat(names, i > 0 ? "," : "");
        strcat(names, cek_device_name(devices[i]));
    }
    free(devices);
    ck_assert_str_eq(names, expected);
}

static void assert_selected(cek_engine *engine, const char *list, const char *expected)
{
    assert_selected_for(engine, CEK_PROFILE_INFERENCE, list, expected);
}

START_TEST(lists_ranges_and_defaults_name_devices)
{
    /* One card and one processor, each reached by two plugins; an oracle; a backend that cannot compute yet. */
    const char *files[] = { fake_install("grind-second.so"), fake_install("opencl-both.so"),
                            fake_install("cuda-card.so"),    fake_install("cpu-host.so"),
                            fake_install("oracle-named.so"), fake_install("young-memory.so"),
                            fake_install("other.so"),        NULL };
    cek_engine *engine = engine_of_files(files);
    cek_device *device;
    cek_device **devices;
    size_t count;

    ck_assert_uint_eq(cek_engine_device_count(engine), 13);
    assert_selected(engine, NULL, "grind:0,cuda:0,cpu:0,cpu:1,other:0,other:1");
    assert_selected(engine, "all", "grind:0,cuda:0,cpu:0,cpu:1,other:0,other:1");
    assert_selected(engine, "grind", "grind:0");
    assert_selected(engine, "grind:0-1,grind", "grind:0,grind:1");
    assert_selected(engine, "cpu", "cpu:0,cpu:1");
    assert_selected(engine, "opencl,cuda", "opencl:0,opencl:1,cuda:0");
    assert_selected(engine, "cpu:1,cuda:0,cpu", "cpu:1,cuda:0,cpu:0");
    assert_selected(engine, "cpu:0-1", "cpu:0,cpu:1");
    assert_selected_for(engine, CEK_PROFILE_MEMORY, "oracle:1,young", "oracle:1,young:0,young:1");
    setenv("CEKERNELS_DEVICES", "other:1", 1);
    assert_selected(engine, NULL, "other:1");
    assert_selected(engine, "cpu:0", "cpu:0");
    assert_ok(cek_engine_find(engine, NULL, &device));
    ck_assert_str_eq(cek_device_name(device), "other:1");
    unsetenv("CEKERNELS_DEVICES");
    assert_ok(cek_engine_find(engine, "cuda:1,nothing,cpu:1,cpu:0", &device));
    ck_assert_str_eq(cek_device_name(device), "cpu:1");
    assert_fails(cek_engine_select(engine, "cpu:0,cpu:1-2", CEK_PROFILE_MEMORY, &devices, &count), CEK_NO_DEVICE,
                 "'cpu:1-2'", "plugins: ");
    ck_assert_ptr_null(devices);
    ck_assert_uint_eq(count, 0);
    cek_engine_free(engine);
}
END_TEST

START_TEST(bare_numbers_go_on_with_the_plugin_before)
{
    const char *files[] = { fake_install("cpu-host.so"), fake_install("other.so"), NULL };
    cek_engine *engine = engine_of_files(files);
    cek_device **devices;
    size_t count;

    assert_selected(engine, "other:1,0", "other:1,other:0");
    assert_selected(engine, "cpu:0,1,other:0-0,1,cpu", "cpu:0,cpu:1,other:0,other:1");
    assert_fails(cek_engine_select(engine, "cpu:0,7", CEK_PROFILE_MEMORY, &devices, &count), CEK_NO_DEVICE, "'7'",
                 "devices: cpu:0");
    assert_fails(cek_engine_select(engine, "cpu,1", CEK_PROFILE_MEMORY, &devices, &count), CEK_INVALID, "'1'",
                 "is not a device");
    assert_fails(cek_engine_select(engine, "0", CEK_PROFILE_MEMORY, &devices, &count), CEK_INVALID, "'0'",
                 "is not a device");
    cek_engine_free(engine);
}
END_TEST

START_TEST(devices_are_chosen_by_what_they_are)
{
    /* A card that two plugins reach, a processor that two reach, two cards of a third with 10 and 20 units, and one
     * that never joins by itself. */
    const char *files[] = { fake_install("opencl-both.so"),  fake_install("cuda-card.so"),
                            fake_install("cpu-host.so"),     fake_install("cards-gpus.so"),
                            fake_install("oracle-named.so"), NULL };
    cek_engine *engine = engine_of_files(files);
    cek_device **devices, *device;
    size_t count;

    assert_selected(engine, "gpu", "cuda:0,cards:0,cards:1");
    assert_selected(engine, "gpu:0", "cuda:0");
    assert_selected(engine, "gpu:1-2,0", "cards:0,cards:1,cuda:0");
    assert_selected(engine, "cpu", "cpu:0,cpu:1");
    assert_selected(engine, "fastest", "cards:1");
    assert_selected(engine, "fastest,gpu,all", "cards:1,cuda:0,cards:0,cpu:0,cpu:1");
    assert_ok(cek_engine_find(engine, "gpu,cpu", &device));
    ck_assert_str_eq(cek_device_name(device), "cuda:0");
    assert_fails(cek_engine_select(engine, "gpu:3", CEK_PROFILE_MEMORY, &devices, &count), CEK_NO_DEVICE, "'gpu:3'",
                 "devices: ");
    assert_fails(cek_engine_select(engine, "fastest:0", CEK_PROFILE_MEMORY, &devices, &count), CEK_INVALID, "fastest:0",
                 "is not a device");
    cek_engine_free(engine);

    engine = engine_of(files[2]);
    assert_selected(engine, "fastest", "cpu:0");
    assert_fails(cek_engine_select(engine, "gpu", CEK_PROFILE_MEMORY, &devices, &count), CEK_NO_DEVICE, "'gpu'",
                 "devices: cpu:0,cpu:1");
    assert_ok(cek_engine_find(engine, "gpu,cpu", &device));
    ck_assert_str_eq(cek_device_name(device), "cpu:0");
    cek_engine_free(engine);
}
END_TEST

START_TEST(a_name_that_is_not_there_is_told_with_the_nearest)
{
    static const struct {
        const char *list, *hint;
    } near[] = { { "cdua", "did you mean 'cuda'?" },    { "cuda1:0", "did you mean 'cuda'?" },
                 { "gpus", "did you mean 'gpu'?" },     { "fast", "did you mean 'fastest'?" },
                 { "CPU", "did you mean 'cpu'?" },      { "cpu:0,al", "did you mean 'all'?" },
                 { "otehr:1", "did you mean 'other'?" } };
    const char *files[] = { fake_install("cuda-card.so"), fake_install("cpu-host.so"), fake_install("other.so"), NULL };
    cek_engine *engine = engine_of_files(files);
    cek_device **devices;
    size_t count;

    assert_fails(cek_engine_select(engine, near[_i].list, CEK_PROFILE_MEMORY, &devices, &count),
                 strcmp(near[_i].list, "CPU") == 0 ? CEK_INVALID : CEK_NO_DEVICE, near[_i].hint, "");
    /* What is there, but has no such device, was meant. */
    assert_fails(cek_engine_select(engine, "cuda:7", CEK_PROFILE_MEMORY, &devices, &count), CEK_NO_DEVICE, "cuda:7",
                 "");
    ck_assert_ptr_null(strstr(cek_error_text(), "did you mean"));
    cek_engine_free(engine);
}
END_TEST

START_TEST(devices_join_a_job_that_they_can_do)
{
    /* Of the card's two plugins the better one cannot train. */
    const char *files[] = { fake_install("cuda-card.so"), fake_install("young-memory.so"), fake_install("other.so"),
                            fake_install("able-training.so"), NULL };
    cek_engine *engine = engine_of_files(files);
    cek_device **devices, *device;
    size_t count;

    assert_selected_for(engine, CEK_PROFILE_TRAINING, NULL, "able:0,able:1");
    assert_selected_for(engine, CEK_PROFILE_TRAINING, "all", "able:0,able:1");
    assert_selected_for(engine, CEK_PROFILE_INFERENCE, NULL, "cuda:0,other:0,other:1,able:0,able:1");
    assert_selected_for(engine, CEK_PROFILE_MEMORY, NULL, "cuda:0,young:0,young:1,other:0,other:1,able:0,able:1");
    assert_fails(cek_engine_select(engine, "able:0,other:1", CEK_PROFILE_TRAINING, &devices, &count), CEK_NO_DEVICE,
                 "other:1: its plugin is of profile inference", "needs profile training");
    ck_assert_ptr_null(devices);
    assert_ok(cek_engine_find(engine, "young:0,other:1", &device));
    ck_assert_str_eq(cek_device_name(device), "young:0");
    assert_ok(cek_engine_find(engine, NULL, &device));
    ck_assert_str_eq(cek_device_name(device), "cuda:0");
    assert_fails(cek_engine_select(engine, "able", 4, &devices, &count), CEK_INVALID, "cek_engine_select",
                 "4 is no profile");
    cek_engine_free(engine);
    engine = engine_of(files[2]);
    assert_fails(cek_engine_select(engine, NULL, CEK_PROFILE_TRAINING, &devices, &count), CEK_NO_DEVICE,
                 "of profile training", "other:0");
    cek_engine_free(engine);
}
END_TEST

START_TEST(a_malformed_list_is_refused_on_every_machine)
{
    static const char *const malformed[] = { "",     ",",     "a,",   "a:", "a:x",   "a:1-",
                                             "a:-1", "a:2-1", "a:0 ", "A",  "a:1:2", "a:9999999999" };
    cek_engine *engine = engine_of(fake_install("a.so"));
    cek_device **devices = (cek_device **)&devices, *device;
    size_t count = 7;

    assert_fails(cek_engine_select(engine, malformed[_i], CEK_PROFILE_MEMORY, &devices, &count), CEK_INVALID,
                 "device list", "is not a device");
    ck_assert_ptr_null(devices);
    ck_assert_uint_eq(count, 0);
    if (malformed[_i][0] != '\0') {
        char list[64];

        snprintf(list, sizeof list, "a:0,%s", malformed[_i]);
        assert_fails(cek_engine_find(engine, list, &device), CEK_INVALID, "device list", "is not a device");
    }
    cek_engine_free(engine);
}
END_TEST

static int report_print(void)
{
    cek_engine *engine;
    char *report;

    if (cek_engine_create(NULL, &engine) != CEK_OK || cek_engine_device_count(engine) == 0 ||
        cek_engine_load_report(engine, &report) != CEK_OK)
        return EXIT_FAILURE;
    fputs(report, stdout);
    free(report);
    cek_engine_free(engine);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--report") == 0)
        return report_print();
    if (readlink("/proc/self/exe", program_path, sizeof program_path - 1) <= 0)
        return EXIT_FAILURE;

    Suite *suite = suite_create("registry search");
    TCase *tc = tcase_create("registry search");

    tcase_add_checked_fixture(tc, fakes_setup, scratch_remove);
    tcase_add_test(tc, a_file_or_folder_that_everyone_may_write_is_refused);
    tcase_add_test(tc, a_strangers_file_is_refused);
    tcase_add_test(tc, the_first_of_a_name_wins_and_folders_are_read_in_order);
    tcase_add_test(tc, a_moved_installation_finds_the_plugins_beside_the_library);
    tcase_add_test(tc, plugins_are_left_out_or_taken_alone_by_name_without_opening_them);
    tcase_add_loop_test(tc, a_malformed_filter_is_an_error, 0, 8);
    tcase_add_test(tc, the_report_and_errors_tell_what_happened);
    tcase_add_test(tc, lists_ranges_and_defaults_name_devices);
    tcase_add_test(tc, bare_numbers_go_on_with_the_plugin_before);
    tcase_add_test(tc, devices_are_chosen_by_what_they_are);
    tcase_add_loop_test(tc, a_name_that_is_not_there_is_told_with_the_nearest, 0, 7);
    tcase_add_test(tc, devices_join_a_job_that_they_can_do);
    tcase_add_loop_test(tc, a_malformed_list_is_refused_on_every_machine, 0, 12);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
