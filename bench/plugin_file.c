/* plugin_file.c - dlopen, query, create; see plugin_file.h. A plugin that was created stays loaded,
 * as plugin.h asks. */
#include "bench/plugin_file.h"
#include "spec/spec.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Texts of one thread at a time would need a lock; a text torn between two failing threads is still
 * only a text. */
static __thread char latest[256];

static void host_fail(void *user, cek_status status, const char *text)
{
    (void)user, (void)status;
    snprintf(latest, sizeof latest, "%s", text ? text : "");
}

static const char *host_option(void *user, const char *key)
{
    char name[80] = "CEKERNELS_";
    size_t n = strlen(name);
    (void)user;
    for (; *key && n + 1 < sizeof name; key++)
        name[n++] = *key >= 'a' && *key <= 'z' ? (char)(*key - 'a' + 'A') : *key;
    name[n] = 0;
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

const char *plugin_file_error(void *file)
{
    static __thread char taken[sizeof latest];
    (void)file;
    memcpy(taken, latest, sizeof taken); /* told once: a failure without a text has no other one's */
    *latest = 0;
    return taken;
}

int plugin_file_open(const char *path, plugin_file *file)
{
    *file = (plugin_file){ .so = NULL };
    char slashed[4096];
    snprintf(slashed, sizeof slashed, "%s%s", strchr(path, '/') ? "" : "./",
             path); /* dlopen searches names without a slash */
    cek_status st = cek_plugin_file_check(slashed);
    if (st)
        return complain(exit_code_of(st), "%s", cek_error_text());
    if (!(file->so = dlopen(slashed, RTLD_NOW | RTLD_LOCAL)))
        return complain(EXIT_PLUGIN, "%s", dlerror());
    cek_plugin_query_fn query = (cek_plugin_query_fn)dlsym(file->so, CEK_PLUGIN_SYMBOL);
    if (!query)
        return complain(EXIT_PLUGIN, "%s: no symbol %s", path, CEK_PLUGIN_SYMBOL);
    const cek_plugin *theirs = query(CEK_ABI);
    char error[SPEC_TEXT_MAX];
    if (!theirs)
        return complain(EXIT_PLUGIN, "%s: it does not serve hosts of ABI %u.%u", path, CEK_ABI_MAJOR, CEK_ABI_MINOR);
    if (!spec_table_take(theirs, &file->plugin, error, sizeof error))
        return complain(EXIT_PLUGIN, "%s: %s", path, error);
    file->host = (cek_host){ .size = sizeof file->host, .abi = CEK_ABI, .fail = host_fail, .option = host_option };
    *latest = 0;
    st = file->plugin.create(&file->host, &file->instance);
    if (st)
        return complain(st == CEK_UNAVAILABLE     ? EXIT_NO_DEVICE
                        : st == CEK_OUT_OF_MEMORY ? EXIT_MEMORY
                                                  : EXIT_PLUGIN,
                        "%s: create: %s: %s", path, cek_status_name(st), latest);
    if (!file->instance)
        return complain(EXIT_PLUGIN, "%s: create succeeds without an instance", path);
    return EXIT_OK;
}

void plugin_file_close(plugin_file *file)
{
    if (file->instance)
        file->plugin.destroy(file->instance);
    else if (file->so)
        dlclose(file->so);
    *file = (plugin_file){ .so = NULL };
}
