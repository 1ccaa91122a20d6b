/* SPDX-License-Identifier: MIT
 *
 * providers.c - the option `providers`, and what it leaves of a driver's list.
 *
 * That a library is found is the driver's business, that it is faster the tuner's.
 */
#include "backends/gpu/providers.h"

#include <stdio.h>
#include <string.h>

/* What the option says of a provider: words between commas. "-clblast" forbids it, "=clblast" takes
 * it wherever it can, "+clblast" measures it wherever it can, "none" forbids all. */
enum { MAY, MUST, MUST_NOT, MEASURE };
static int option_says(const cek_host *host, const char *name)
{
    const char *at = cek__host_option(host, "providers");
    int says = MAY;
    for (; at && *at; at += strcspn(at, ","), at += *at == ',') {
        size_t length = strcspn(at, ",");
        if (length == 4 && !strncmp(at, "none", 4))
            says = MUST_NOT;
        else if (length == strlen(name) + 1 && !strncmp(at + 1, name, length - 1))
            says = *at == '-' ? MUST_NOT : *at == '=' ? MUST : *at == '+' ? MEASURE : says;
    }
    return says;
}

/* All that any plugin has: each sees the words that are meant for another. */
static bool is_provider(const char *name, size_t length)
{
    static const char *const names[] = { "clblast", "cublaslt", "cudnn" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && !strncmp(names[i], name, length))
            return true;
    return false;
}

cek_status cek__gpu_providers_check(const cek_host *host)
{
    for (const char *at = cek__host_option(host, "providers"); at;) {
        size_t length = strcspn(at, ",");
        bool none = length == 4 && !strncmp(at, "none", 4);
        if (!none && !(length > 1 && strchr("-=+", *at) && is_provider(at + 1, length - 1)))
            return cek__host_fail(host, CEK_INVALID,
                                  "option providers: \"%.*s\" is neither none nor one of -, = and + "
                                  "before clblast, cublaslt or cudnn",
                                  length < 60 ? (int)length : 60, at);
        at = at[length] ? at + length + 1 : NULL;
    }
    return CEK_OK;
}

bool cek__gpu_provider_hidden(const cek_host *host, const char *name)
{
    return option_says(host, name) == MUST_NOT;
}

bool cek__gpu_provider_asked(const cek_host *host, const char *name)
{
    return option_says(host, name) == MEASURE;
}

uint32_t cek__gpu_candidates(const cek_op *op, const cek__gpu_provider *list[CEK__GPU_CANDIDATES], bool *decided)
{
    const cek__gpu_driver *driver = op->dev->driver;
    const cek_host *host = &op->dev->instance->host;
    const cek_op_desc *desc = &op->request.desc.op;
    uint32_t count = 0, forced = 0;
    *decided = driver->providers_first;
    if (desc->kind > CEK_OP_CONV_BACKWARD_WEIGHTS || !driver->providers)
        return 0;
    for (uint32_t i = 0; driver->providers[i] && count < CEK__GPU_CANDIDATES; i++) {
        int says = option_says(host, driver->providers[i]->name);
        if (says == MUST_NOT)
            continue;
        if (says == MUST) { /* before all that only may */
            memmove(list + forced + 1, list + forced, (count - forced) * sizeof *list);
            list[forced++] = driver->providers[i];
            count++;
        } else {
            list[count++] = driver->providers[i];
        }
    }
    if (forced) {
        *decided = true;
        return driver->providers_first ? count : forced;
    }
    return count;
}

void cek__gpu_versions(cek_instance *instance, const cek__gpu_driver *driver, char *text, uint64_t cap)
{
    for (uint32_t i = 0; driver->providers && driver->providers[i]; i++) {
        size_t at = strlen(text);
        const char *version = cek__gpu_provider_hidden(&instance->host, driver->providers[i]->name)
                                  ? ""
                                  : driver->providers[i]->version(instance);
        if (*version && at < cap)
            snprintf(text + at, cap - at, "; %s", version);
    }
}
