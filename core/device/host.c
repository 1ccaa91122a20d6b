/* host.c - the callbacks that plugins get, and their settings.
 *
 * Owns: copies of the settings that plugins have asked for, since a value must stay valid until destroy() and the
 * environment may change under it. Whatever a plugin hands over here is text of unknown origin: NULL, many lines. */
#include "core/device/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/log.h"
#include "core/base/options.h"
#include "core/device/call.h"

struct cek__setting {
    struct cek__setting *next;
    char *value; /* NULL: unset */
    char key[64];
};

void cek__settings_init(cek__settings *settings)
{
    pthread_mutex_init(&settings->lock, NULL);
    settings->first = NULL;
    settings->starved = false;
}

void cek__settings_clear(cek__settings *settings)
{
    struct cek__setting *next;

    for (struct cek__setting *s = settings->first; s != NULL; s = next) {
        next = s->next;
        free(s->value);
        free(s);
    }
    pthread_mutex_destroy(&settings->lock);
}

static struct cek__setting *setting_read(const char *key)
{
    char variable[80] = "CEKERNELS_";
    size_t prefix = strlen(variable);
    struct cek__setting *setting;
    const char *value;

    for (size_t i = 0; key[i] != '\0'; i++)
        variable[prefix + i] = key[i] >= 'a' && key[i] <= 'z' ? (char)(key[i] - 'a' + 'A') : key[i]; /* in any locale */
    value = cek__env(variable);
    if (cek__calloc(1, sizeof *setting, &setting) != CEK_OK)
        return NULL;
    strcpy(setting->key, key);
    if (value != NULL && cek__strdup(value, &setting->value) != CEK_OK) {
        free(setting);
        return NULL;
    }
    return setting;
}

static bool key_is_name(const char *key)
{
    size_t length = key != NULL ? strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_") : 0;

    return length > 0 && length < sizeof((struct cek__setting *)0)->key && key[length] == '\0';
}

const char *cek__settings_get(cek__settings *settings, const char *key)
{
    struct cek__setting *s;

    if (!key_is_name(key))
        return NULL;
    pthread_mutex_lock(&settings->lock);
    for (s = settings->first; s != NULL && strcmp(s->key, key) != 0; s = s->next)
        ;
    if (s == NULL && (s = setting_read(key)) != NULL) {
        s->next = settings->first;
        settings->first = s;
    }
    settings->starved |= s == NULL;
    pthread_mutex_unlock(&settings->lock);
    if (s == NULL)
        cek__log(CEK_LOG_ERROR, "out of memory: a plugin goes without its setting '%s'", key);
    return s != NULL ? s->value : NULL;
}

bool cek__settings_starved(cek__settings *settings)
{
    bool starved;

    pthread_mutex_lock(&settings->lock);
    starved = settings->starved;
    settings->starved = false;
    pthread_mutex_unlock(&settings->lock);
    return starved;
}

static void host_fail(void *user, cek_status status, const char *text)
{
    (void)user;
    cek__call_told(status, text != NULL && *text != '\0' ? text : cek__status_text(status));
}

static void host_log(void *user, uint32_t level, const char *text)
{
    cek__host_user *host = user;

    /* A level of a later minor is finer than all that are known, an unset one coarser. */
    cek__log(level < CEK_LOG_ERROR   ? CEK_LOG_ERROR
             : level > CEK_LOG_DEBUG ? CEK_LOG_DEBUG
                                     : (int)level,
             "%s: %s", host->name, text != NULL ? text : "");
}

static const char *host_option(void *user, const char *key)
{
    return cek__settings_get(((cek__host_user *)user)->settings, key);
}

void cek__host_fill(cek_host *host, cek__host_user *user)
{
    *host = (cek_host){
        .size = sizeof *host, .abi = CEK_ABI, .user = user, .fail = host_fail, .log = host_log, .option = host_option
    };
}
