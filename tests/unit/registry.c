/* registry.c - tests of how plugins are loaded, negotiated and shared by engines. */
#include "core/base/fault.h"
#include "fakes.h"

/* ---- one plugin ---- */

START_TEST(a_sound_plugin_is_loaded_and_described)
{
    const char *path = fake_install("alpha.so");
    cek_engine *engine = engine_of(path);
    cek_load_entry e = load_entry(engine, 0);
    cek_device_info info = { .size = sizeof info };

    ck_assert_uint_eq(cek_engine_load_count(engine), 1);
    ck_assert_str_eq(e.path, path);
    ck_assert_str_eq(e.plugin, "alpha");
    ck_assert_str_eq(e.version, "0.1");
    ck_assert_str_eq(e.stage, "loaded");
    ck_assert_str_eq(e.reason, "");
    ck_assert_uint_eq(e.status, CEK_OK);
    ck_assert_uint_eq(e.profile, CEK_PROFILE_INFERENCE);
    ck_assert_uint_eq(e.device_count, 2);
    ck_assert_uint_eq(e.abi, CEK_ABI);
    ck_assert_uint_eq(cek_engine_device_count(engine), 2);
    ck_assert_str_eq(cek_device_name(cek_engine_device(engine, 1)), "alpha:1");
    ck_assert_ptr_null(cek_engine_device(engine, 2));
    assert_ok(cek_device_describe(cek_engine_device(engine, 1), &info));
    ck_assert_str_eq(info.name, "fake device 1");
    assert_fails(cek_engine_load_entry(engine, 1, &e), CEK_INVALID, "load entry 1", "there are 1");
    ck_assert_uint_eq(fake_steer(path)->host_size, sizeof(cek_host));
    ck_assert_uint_eq(fake_steer(path)->host_abi, CEK_ABI);
    cek_engine_free(engine);
    ck_assert_int_eq(fake_steer(path)->live, 0); /* still in the process: an instance was made */
}
END_TEST

/* What a peculiar plugin comes to: the stage and status where it stops, and what the reason says. */
static const struct oddity {
    const char *file;
    const char *stage;
    cek_status status;
    const char *reason;
} oddities[] = {
    { "a-null.so", "query", CEK_BAD_PLUGIN, "does not serve hosts of ABI 1.1" },
    { "a-major.so", "query", CEK_BAD_PLUGIN, "it speaks ABI 2.0" },
    { "a-short.so", "query", CEK_BAD_PLUGIN, "impossible size, 8 bytes" },
    { "a-odd.so", "query", CEK_BAD_PLUGIN, "impossible size" },
    { "a-huge.so", "query", CEK_BAD_PLUGIN, "impossible size, 4294967295 bytes" },
    { "a-cut.so", "query", CEK_BAD_PLUGIN, "the slot event_create is empty" },
    { "a-slot.so", "query", CEK_BAD_PLUGIN, "the slot mem_alloc is empty" },
    { "a-nocount.so", "query", CEK_BAD_PLUGIN, "the slot device_count is empty" },
    { "a-noclose.so", "query", CEK_BAD_PLUGIN, "the slot device_close is empty" },
    { "a-noops.so", "query", CEK_BAD_PLUGIN, "the slot op_create is empty, which its profile 2 requires" },
    { "a-half.so", "query", CEK_BAD_PLUGIN, "it has the slot host_free, but not host_alloc, which comes with it" },
    { "a-noname.so", "query", CEK_BAD_PLUGIN, "its name is NULL" },
    { "a-badname.so", "query", CEK_BAD_PLUGIN, "its name is not of the form" },
    { "a-longname.so", "query", CEK_BAD_PLUGIN, "its name is not of the form" },
    { "all.so", "query", CEK_BAD_PLUGIN, "or is 'all', 'gpu' or 'fastest'" },
    { "gpu.so", "query", CEK_BAD_PLUGIN, "or is 'all', 'gpu' or 'fastest'" },
    { "fastest.so", "query", CEK_BAD_PLUGIN, "or is 'all', 'gpu' or 'fastest'" },
    { "a-profile.so", "query", CEK_BAD_PLUGIN, "its profile is 9" },
    { "a-unavailable.so", "create", CEK_UNAVAILABLE, "no fake hardware in this machine" },
    { "a-failing.so", "create", CEK_INTERNAL, "a defect" },
    { "a-status.so", "create", CEK_INTERNAL, "unknown status 4711" },
    { "a-noinstance.so", "create", CEK_BAD_PLUGIN, "without an instance" },
    { "a-counts.so", "devices", CEK_BAD_PLUGIN, "reports 4294967295 devices" },
    { "a-infofail.so", "devices", CEK_INTERNAL, "a:0: device_info: the device does not answer" },
    { "a-unterminated.so", "devices", CEK_BAD_PLUGIN, "name has no end" },
    { "a-sizechange.so", "devices", CEK_BAD_PLUGIN, "changes the size" },
    { "a-overrun.so", "devices", CEK_BAD_PLUGIN, "writes beyond the size" },
};

START_TEST(a_plugin_that_breaks_the_abi_is_reported_and_never_used)
{
    const struct oddity *odd = &oddities[_i];
    const char *path = fake_install(odd->file);
    cek_engine *engine = engine_of(path);
    cek_load_entry e = load_entry(engine, 0);

    ck_assert_msg(strcmp(e.stage, odd->stage) == 0 && e.status == odd->status && strstr(e.reason, odd->reason) != NULL,
                  "%s: stopped at %s with %s: %s", odd->file, e.stage, cek_status_name(e.status), e.reason);
    ck_assert_uint_eq(cek_engine_device_count(engine), 0);
    ck_assert_uint_eq(e.device_count, 0);
    ck_assert_uint_eq(e.profile, 0);
    cek_engine_free(engine);
    if (strcmp(odd->stage, "devices") == 0 || strcmp(odd->stage, "create") == 0)
        ck_assert_int_eq(fake_steer(path)->live, 0); /* in the process for good, its instance destroyed */
    else
        ck_assert_ptr_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD)); /* gone again */
}
END_TEST

START_TEST(a_newer_minor_is_used_as_far_as_it_is_known)
{
    cek_engine *engine = engine_of(fake_install("a-newer.so"));

    ck_assert_uint_eq(load_entry(engine, 0).status, CEK_OK);
    ck_assert_uint_eq(load_entry(engine, 0).abi, CEK_ABI + 7);
    ck_assert_uint_eq(load_entry(engine, 0).profile, CEK_PROFILE_TRAINING);
    cek_engine_free(engine);
}
END_TEST

START_TEST(slots_that_an_older_minor_lacks_answer_unsupported)
{
    static const char *const files[] = { "a-older.so", "a-memory.so" };
    cek_engine *engine = engine_of(fake_install(files[_i]));
    const cek_plugin *table;
    cek_dev *dev;
    cek_cmdbuf *cmdbuf;
    cek_op *op;
    void *pinned;
    cek_op_desc desc = { .size = sizeof desc };

    assert_ok(cek_device_raw(cek_engine_device(engine, 0), &table, &dev));
    ck_assert_uint_eq(table->size, sizeof *table);
    ck_assert_uint_eq(table->cmdbuf_create(dev, NULL, 0, sizeof(cek_cmd), &cmdbuf), CEK_UNSUPPORTED);
    ck_assert_str_eq(cek_error_text(), "the plugin has no cmdbuf_create");
    ck_assert_uint_eq(table->mem_map(NULL, CEK_MAP_READ, &pinned), CEK_UNSUPPORTED);
    ck_assert_uint_eq(table->cmdbuf_run(NULL, NULL), CEK_UNSUPPORTED);
    table->cmdbuf_destroy(NULL);
    if (_i == 1)
        ck_assert_uint_eq(table->op_create(dev, &desc, NULL, &op), CEK_UNSUPPORTED);
    cek_engine_free(engine);
}
END_TEST

START_TEST(a_plugin_of_the_first_abi_registers_no_memory)
{
    cek_engine *engine = engine_of(fake_install("a-first.so"));
    const cek_plugin *table;
    cek_dev *dev;
    char room[8];

    ck_assert_uint_eq(load_entry(engine, 0).abi, 1u << 16);
    assert_ok(cek_device_raw(cek_engine_device(engine, 0), &table, &dev));
    ck_assert_uint_eq(table->host_register(dev, room, sizeof room), CEK_UNSUPPORTED);
    ck_assert_str_eq(cek_error_text(), "the plugin has no host_register");
    table->host_unregister(dev, room);
    cek_engine_free(engine);
}
END_TEST

START_TEST(what_is_unknown_reads_as_the_header_says)
{
    cek_engine *engine = engine_of(fake_install("a-kinds.so"));
    cek_device_info info = { .size = sizeof info };

    assert_ok(cek_device_describe(cek_engine_device(engine, 0), &info));
    ck_assert_uint_eq(info.kind, CEK_KIND_ACCELERATOR);
    ck_assert_uint_eq(info.flags, CEK_DEVICE_INLINE | CEK_DEVICE_UNIFIED_MEMORY);
    cek_engine_free(engine);
    engine = engine_of(fake_install("a-noversion.so"));
    ck_assert_str_eq(load_entry(engine, 0).version, "");
    cek_engine_free(engine);
}
END_TEST

START_TEST(what_a_plugin_and_its_path_say_is_printable)
{
    const char *path = fake_install_patched("a-\x1b[2J\xff.so", "fake device %u",
                                            "fake\x1b"
                                            "devi\xc2\x9b %u");
    cek_engine *engine = engine_of(path);
    cek_device_info info = { .size = sizeof info };
    char *report;

    assert_ok(cek_device_describe(cek_engine_device(engine, 0), &info));
    ck_assert_str_eq(info.name, "fake?devi? 0");
    ck_assert_str_eq(load_entry(engine, 0).path, path);
    assert_ok(cek_engine_load_report(engine, &report));
    ck_assert_ptr_nonnull(strstr(report, "/a-?[2J?.so: loaded"));
    free(report);
    cek_engine_free(engine);
    path = fake_install_patched("a-infofail.so", "the device does not answer",
                                "the device \x1b\x7f\xc2\x85s not \xe2\x80\xae"
                                "er");
    engine = engine_of(path);
    ck_assert_str_eq(load_entry(engine, 0).reason, "a:0: device_info: the device ?? s not ?er");
    cek_engine_free(engine);
}
END_TEST

START_TEST(a_struct_shorter_than_known_is_filled_as_far_as_it_goes)
{
    cek_engine *engine = engine_of(fake_install("a.so"));
    union {
        cek_device_info info;
        uint8_t bytes[sizeof(cek_device_info)];
    } u;
    cek_memory_stats stats = { .size = 2 };

    memset(&u, 0x77, sizeof u);
    u.info.size = 12; /* size, kind, flags */
    assert_ok(cek_device_describe(cek_engine_device(engine, 0), &u.info));
    ck_assert_uint_eq(u.info.size, 12);
    ck_assert_uint_eq(u.info.kind, CEK_KIND_CPU);
    for (size_t i = 12; i < sizeof u; i++)
        ck_assert_uint_eq(u.bytes[i], 0x77);
    assert_fails(cek_device_memory_stats(cek_engine_device(engine, 0), &stats), CEK_INVALID, "a:0",
                 "size (2) was not set");
    cek_engine_free(engine);
}
END_TEST

START_TEST(a_file_that_is_no_plugin_says_why)
{
    const char *files[] = { scratch_write("text.so", "hello", 5),
                            fake_install_patched("nosymbol.so", "cek_plugin_query", "cek_plugin_quary"),
                            fake_install_patched("nolib.so", "libc.so.6", "libq.so.6"), scratch_path("absent.so"),
                            NULL };
    cek_engine *engine = engine_of_files(files);

    ck_assert_uint_eq(cek_engine_load_count(engine), 4);
    ck_assert_str_eq(load_entry(engine, 0).stage, "open");
    ck_assert_uint_eq(load_entry(engine, 0).status, CEK_BAD_PLUGIN);
    ck_assert_str_eq(load_entry(engine, 1).stage, "query");
    ck_assert_uint_eq(load_entry(engine, 1).status, CEK_BAD_PLUGIN);
    ck_assert_ptr_nonnull(strstr(load_entry(engine, 1).reason, "no symbol cek_plugin_query"));
    ck_assert_str_eq(load_entry(engine, 2).stage, "open");
    ck_assert_uint_eq(load_entry(engine, 2).status, CEK_UNAVAILABLE); /* quiet: what it needs is not here */
    ck_assert_str_eq(load_entry(engine, 2).reason,
                     "libq.so.6: cannot open shared object file: No such file or directory: install the package that "
                     "has this library");
    ck_assert_str_eq(load_entry(engine, 3).stage, "search");
    ck_assert_uint_eq(load_entry(engine, 3).status, CEK_NOT_FOUND);
    cek_engine_free(engine);
}
END_TEST

static const char *truncated(const char *name, size_t parts, size_t part)
{
    size_t size;
    char *bytes = fake_bytes(&size);
    const char *path = scratch_write(name, bytes, size / parts * part);

    ck_assert_int_eq(chmod(path, 0644), 0);
    free(bytes);
    return path;
}

/* dlopen() would map what is missing, and the process die of SIGBUS. */
START_TEST(a_truncated_file_is_refused_unmapped)
{
    const char *path = truncated("a.so", 16, (size_t)_i);
    cek_engine *engine = engine_of(path);
    cek_load_entry e = load_entry(engine, 0);

    ck_assert_str_eq(e.stage, "open");
    ck_assert_uint_eq(e.status, CEK_BAD_PLUGIN);
    ck_assert_msg(strstr(e.reason, "cut off: ") != NULL, "%s", e.reason);
    cek_engine_free(engine);
}
END_TEST

START_TEST(a_file_for_another_machine_or_none_at_all_is_refused)
{
    size_t size;
    char *bytes = fake_bytes(&size);
    const char *path;
    cek_engine *engine;

    bytes[18] ^= 1; /* e_machine */
    path = scratch_write("a.so", bytes, size);
    free(bytes);
    ck_assert_int_eq(chmod(path, 0644), 0);
    engine = engine_of(path);
    ck_assert_ptr_nonnull(strstr(load_entry(engine, 0).reason, "built for another machine"));
    cek_engine_free(engine);
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    engine = engine_of(path);
    ck_assert_str_eq(load_entry(engine, 0).stage, "permissions");
    ck_assert_ptr_nonnull(strstr(load_entry(engine, 0).reason, "not a regular file"));
    cek_engine_free(engine);
    unlink(path);
}
END_TEST

/* ---- engines ---- */

START_TEST(two_engines_share_a_plugin_and_nothing_else)
{
    const char *path = fake_install("a.so");
    cek_engine *one = engine_of(path), *two = engine_of(path);
    cek_memory *memory;
    fake_control *control = fake_steer(path);

    ck_assert_int_eq(control->instances, 2);
    ck_assert_ptr_ne(cek_engine_device(one, 0), cek_engine_device(two, 0));
    assert_ok(cek_memory_alloc(cek_engine_device(two, 0), 1000, 0, &memory));
    cek_engine_free(one);
    ck_assert_int_eq(control->instances, 1);
    ck_assert_uint_ge(control->bytes, 1000);
    cek_memory_free(memory);
    cek_engine_free(two);
    ck_assert_int_eq(control->live, 0);
}
END_TEST

START_TEST(options_reach_plugins_from_the_environment)
{
    const char *path = fake_install("a.so");
    cek_engine *engine;

    setenv("CEKERNELS_FAKE_OPTION", "value 7", 1);
    engine = engine_of(path);
    ck_assert_str_eq(fake_steer(path)->option, "value 7");
    cek_engine_free(engine);
    unsetenv("CEKERNELS_FAKE_OPTION");
    engine = engine_of(path);
    ck_assert_str_eq(fake_steer(path)->option, "(unset)");
    cek_engine_free(engine);
}
END_TEST

static char logged[4096];

static void log_keep(void *user, int level, const char *text)
{
    size_t used = strlen(logged);

    (void)user;
    snprintf(logged + used, sizeof logged - used, "%d %s|", level, text);
}

START_TEST(plugins_and_loading_speak_through_the_log)
{
    const char *path = fake_install("a.so");
    char expected[1024];

    cek_log_set(log_keep, NULL, CEK_LOG_INFO);
    cek_engine_free(engine_of(path));
    cek_log_set(NULL, NULL, 0);
    snprintf(expected, sizeof expected, "3 %s: is opened|3 %s: plugin a is started|3 a: created and well|", path, path);
    ck_assert_ptr_nonnull(strstr(logged, expected)); /* said before the plugin gets its turn */
    ck_assert_ptr_nonnull(strstr(logged, "plugin a 0.1, 2 devices|"));
}
END_TEST

START_TEST(every_failing_allocation_of_an_engine_is_reported_and_leaves_nothing)
{
    const char *files[] = { fake_install("alpha.so"), fake_install("b-unavailable.so"), fake_install("c-slot.so"),
                            NULL };
    cek_engine_options options = { .size = sizeof options, .plugin_files = files };
    cek_engine *engine = NULL;
    cek_device **devices;
    size_t count;
    long site;

    setenv("CEKERNELS_PLUGIN_PATH", scratch_dir, 1);
    for (site = 1;; site++) {
        cek_status st;

        cek__fault_set(CEK__FAULT_ALLOC, site);
        st = cek_engine_create(&options, &engine);
        if (st == CEK_OK)
            st = cek_engine_select(engine, NULL, CEK_PROFILE_INFERENCE, &devices, &count);
        if (cek__fault_pending(CEK__FAULT_ALLOC)) {
            cek__fault_set(CEK__FAULT_ALLOC, 0);
            ck_assert_uint_eq(st, CEK_OK);
            free(devices);
            break;
        }
        /* A setting that a plugin could not be told is the one thing that is gone without. */
        ck_assert(st == CEK_OUT_OF_MEMORY || (st == CEK_OK && engine != NULL));
        if (st != CEK_OK)
            ck_assert_ptr_nonnull(strstr(cek_error_text(), "out of host memory"));
        if (st != CEK_OK && engine != NULL) /* memory is there again: so is every plugin */
            assert_ok(cek_engine_select(engine, NULL, CEK_PROFILE_INFERENCE, &devices, &count));
        if (engine != NULL) {
            ck_assert_uint_eq(count, 2);
            free(devices);
        }
        cek_engine_free(engine);
        engine = NULL;
        if (dlopen(files[0], RTLD_NOW | RTLD_NOLOAD) != NULL)
            ck_assert_int_eq(fake_steer(files[0])->live, 0);
    }
    ck_assert_int_gt(site, 20);
    cek_engine_free(engine);
    ck_assert_int_eq(fake_steer(files[0])->live, 0);
}
END_TEST

START_TEST(options_of_a_later_version_are_refused)
{
    struct {
        cek_engine_options known;
        uint64_t later;
    } options = { .known = { .size = sizeof options, .only_plugin_files = true } };
    cek_engine *engine;

    assert_ok(cek_engine_create(&options.known, &engine));
    cek_engine_free(engine);
    options.later = 1;
    assert_fails(cek_engine_create(&options.known, &engine), CEK_UNSUPPORTED, "cek_engine_create", "later version");
    options.known.size = 3;
    assert_fails(cek_engine_create(&options.known, &engine), CEK_INVALID, "cek_engine_create", "was not set");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("registry");
    TCase *tc = tcase_create("registry");

    tcase_add_checked_fixture(tc, fakes_setup, scratch_remove);
    tcase_add_test(tc, a_sound_plugin_is_loaded_and_described);
    tcase_add_loop_test(tc, a_plugin_that_breaks_the_abi_is_reported_and_never_used, 0,
                        sizeof oddities / sizeof *oddities);
    tcase_add_test(tc, a_newer_minor_is_used_as_far_as_it_is_known);
    tcase_add_loop_test(tc, slots_that_an_older_minor_lacks_answer_unsupported, 0, 2);
    tcase_add_test(tc, a_plugin_of_the_first_abi_registers_no_memory);
    tcase_add_test(tc, what_is_unknown_reads_as_the_header_says);
    tcase_add_test(tc, what_a_plugin_and_its_path_say_is_printable);
    tcase_add_test(tc, a_struct_shorter_than_known_is_filled_as_far_as_it_goes);
    tcase_add_test(tc, a_file_that_is_no_plugin_says_why);
    tcase_add_loop_test(tc, a_truncated_file_is_refused_unmapped, 0, 15);
    tcase_add_test(tc, a_file_for_another_machine_or_none_at_all_is_refused);
    tcase_add_test(tc, two_engines_share_a_plugin_and_nothing_else);
    tcase_add_test(tc, options_reach_plugins_from_the_environment);
    tcase_add_test(tc, plugins_and_loading_speak_through_the_log);
    tcase_add_test(tc, every_failing_allocation_of_an_engine_is_reported_and_leaves_nothing);
    tcase_add_test(tc, options_of_a_later_version_are_refused);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
