/* SPDX-License-Identifier: MIT
 *
 * breakers.c - the conformance suite finds each plugin that breaks a rule of progress or growth (late.c), in the check
 * that is about the rule, and passes the one that breaks none.
 *
 * Each runs in a process of its own: what was abandoned stays so.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spec/spec.h"

static const struct breaker {
    const char *rule, *group; /* what it breaks, and where that shows; "" breaks nothing */
    const char *check, *what; /* of the failure that tells */
    cek_status ends;          /* what spec_run answers */
} breakers[] = {
    { "", "queue", NULL, NULL, CEK_OK },
    { "", "memory", NULL, NULL, CEK_OK },
    { "early", "queue", "sync waits", "queue_sync answered OK before", CEK_INTERNAL },
    { "early", "gemm", "sync waits", "queue_sync answered OK before", CEK_INTERNAL }, /* whatever is selected */
    { "deaf", "queue", "time-outs", "queue_sync with a time-out of 0 waited", CEK_OK },
    { "deaf_event", "queue", "time-outs", "event_sync with a time-out of 0 waited", CEK_OK },
    { "blocking", "queue", "enqueuing", "op_run waited", CEK_OK },
    { "idle", "queue", "work starts by itself", "without a call", CEK_OK },
    { "patient", "queue", "a deadline that passes", "queue_destroy with a deadline of 1 ns waited", CEK_OK },
    { "forgets", "queue", "a deadline that passes", "of a lost device answered OK, not DEVICE_LOST", CEK_OK },
    { "amnesia", "queue", NULL, "and then OK: a failure stays with its queue", CEK_OK },
    { "elements", "pointwise", "refused shapes", "inputs of 8 bytes", CEK_OK },
    { "", "gemm", NULL, NULL, CEK_OK },
    { "outer", "gemm", "bare", "op_create", CEK_OK },
    { "together", "gemm", "acc", "", CEK_OK },
    { "lenient", "softmax", "refused descriptors", "an unknown flag", CEK_OK },
    { "planar", "pool_forward", "iw9", "", CEK_OK },
    { "", "device", NULL, NULL, CEK_OK },
    { "feverish", "device", "sensors", "utilization is 0 to 1", CEK_OK },
    { "mumbling", "device", "sensors", "watts are what a device draws", CEK_OK },
};

static const char *option(void *user, const char *key)
{
    const struct breaker *b = user;
    return !strcmp(key, "late_breaks") && *b->rule ? b->rule : NULL;
}

static const cek_plugin *table(void)
{
    char path[4096];
    const char *folder = getenv("TEST_MUTANT_DIR"), *build = getenv("top_builddir");
    snprintf(path, sizeof path, "%s%s/late.so", folder ? folder : build ? build : ".", folder ? "" : "/tests/.libs");
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!so) {
        fprintf(stderr, "%s\n", dlerror());
        exit(99);
    }
    cek_plugin_query_fn query = (cek_plugin_query_fn)dlsym(so, CEK_PLUGIN_SYMBOL);
    return query(CEK_ABI);
}

/* Why the report is not what it should be, or NULL. */
static const char *judge(const struct breaker *b, cek_status st, const spec_report *r)
{
    if (st != b->ends)
        return "the run did not end as it should";
    if (r->abandoned != (b->ends != CEK_OK))
        return "what may still be at work was not left alone, or a sound device was";
    if (!b->what)
        return r->ok ? NULL : "a sound plugin fails";
    if (r->ok || !r->failure_count)
        return "it was not found";
    for (uint32_t i = 0; i < r->failure_count && i < SPEC_FAILURES_MAX; i++)
        if ((!b->check || strstr(r->failure[i].name, b->check)) && strstr(r->failure[i].what, b->what))
            return NULL;
    return "it was found elsewhere, or the text does not say what is wrong";
}

static int child(const cek_plugin *plugin, const struct breaker *b)
{
    static spec_report r;
    cek_host host = { .size = sizeof host, .abi = CEK_ABI, .user = (void *)(uintptr_t)b, .option = option };
    spec_target target = { .plugin = plugin, .host = &host };
    const spec_options options = { .group = b->group, .timeout_ns = 5000000000u };
    if (plugin->create(&host, &target.instance) || plugin->device_open(target.instance, 0, NULL, &target.dev))
        return 1;
    cek_status st = spec_run(&target, &options, &r);
    const char *wrong = judge(b, st, &r);
    if (wrong)
        printf("late_breaks=%s, %s: %s\n", b->rule, b->group, wrong);
    for (uint32_t i = 0; wrong && i < r.failure_count && i < SPEC_FAILURES_MAX; i++)
        printf("    %s: %s\n", r.failure[i].name, r.failure[i].what);
    fflush(stdout);
    return wrong != NULL;
}

int main(void)
{
    const cek_plugin *plugin = table();
    const size_t count = sizeof breakers / sizeof *breakers;
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        int status;
        fflush(stdout); /* the child has a copy of what is not */
        pid_t pid = fork();
        if (pid == 0)
            _exit(child(plugin, &breakers[i]));
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
            printf("breaker %zu (%s) was not found as it should be\n", i, breakers[i].rule);
            wrong++;
        }
    }
    printf("breakers: %zu of %zu as they should be\n", count - wrong, count);
    return wrong != 0;
}
