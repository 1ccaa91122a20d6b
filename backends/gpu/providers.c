/* SPDX-License-Identifier: MIT
 *
 * providers.c - the option that names providers, and what it leaves of a driver's list.
 *
 * That a library is found is the driver's business, that it is faster the tuner's.
 */
#include "backends/gpu/providers.h"

#include <stdio.h>
#include <string.h>

enum { MAY, MUST, MUST_NOT, MEASURE };

static bool is_none(const char *word, size_t length)
{
    return length == 4 && !strncmp(word, "none", 4);
}

/* What a word says of a provider; MAY where it is about another. */
static int word_says(const char *word, size_t length, const cek__gpu_provider *provider)
{
    if (is_none(word, length))
        return MUST_NOT;
    if (length != strlen(provider->name) + 1 || strncmp(word + 1, provider->name, length - 1))
        return MAY;
    return *word == '-' ? MUST_NOT : *word == '=' ? MUST : *word == '+' ? MEASURE : MAY;
}

/* The last word about it counts. */
static int option_says(const cek_host *host, const cek__gpu_driver *driver, const cek__gpu_provider *provider)
{
    const char *at = cek__host_option(host, driver->providers_option);
    int says = MAY;
    for (; at && *at; at += strcspn(at, ","), at += *at == ',') {
        int word = word_says(at, strcspn(at, ","), provider);
        says = word == MAY ? says : word;
    }
    return says;
}

static bool is_known(const cek__gpu_driver *driver, const char *word, size_t length)
{
    bool known = is_none(word, length);
    for (uint32_t i = 0; !known && driver->providers[i]; i++)
        known = word_says(word, length, driver->providers[i]) != MAY;
    return known;
}

cek_status cek__gpu_providers_check(const cek_host *host, const cek__gpu_driver *driver)
{
    char names[128] = "";
    for (uint32_t i = 0; driver->providers[i]; i++) {
        size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%s", i ? " or " : "", driver->providers[i]->name);
    }
    for (const char *at = cek__host_option(host, driver->providers_option); at;) {
        size_t length = strcspn(at, ",");
        if (!is_known(driver, at, length))
            return cek__host_fail(host, CEK_INVALID,
                                  "option %s: \"%.*s\" is neither none nor one of -, = and + before %s",
                                  driver->providers_option, length < 60 ? (int)length : 60, at, names);
        at = at[length] ? at + length + 1 : NULL;
    }
    return CEK_OK;
}

bool cek__gpu_provider_hidden(const cek_host *host, const cek__gpu_driver *driver, const cek__gpu_provider *provider)
{
    return option_says(host, driver, provider) == MUST_NOT;
}

bool cek__gpu_provider_asked(const cek_host *host, const cek__gpu_driver *driver, const cek__gpu_provider *provider)
{
    return option_says(host, driver, provider) == MEASURE;
}

uint32_t cek__gpu_candidates(const cek_op *op, const cek__gpu_provider *list[CEK__GPU_CANDIDATES], bool *decided)
{
    const cek__gpu_driver *driver = op->dev->driver;
    const cek_host *host = &op->dev->instance->host;
    const cek_op_desc *desc = &op->request.desc.op;
    uint32_t count = 0, forced = 0;
    *decided = driver->providers_first;
    if (desc->kind > CEK_OP_CONV_BACKWARD_WEIGHTS)
        return 0;
    for (uint32_t i = 0; driver->providers[i] && count < CEK__GPU_CANDIDATES; i++) {
        int says = option_says(host, driver, driver->providers[i]);
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
    for (uint32_t i = 0; driver->providers[i]; i++) {
        size_t at = strlen(text);
        const char *version = cek__gpu_provider_hidden(&instance->host, driver, driver->providers[i])
                                  ? ""
                                  : driver->providers[i]->version(instance);
        if (*version && at < cap)
            snprintf(text + at, cap - at, "; %s", version);
    }
}
