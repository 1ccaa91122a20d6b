/* host.h - what a plugin sees of this library: the callbacks of cek_host, and the settings behind host->option.
 *
 * Must not know: which plugins there are, or what a setting means. */
#ifndef CEK_CORE_DEVICE_HOST_H
#define CEK_CORE_DEVICE_HOST_H

#include <pthread.h>
#include <stdbool.h>

#include "core/base/status.h"

/* Answers already given: they stay as they were first read, however the environment changes. */
typedef struct cek__settings {
    pthread_mutex_t lock;
    struct cek__setting *first;
    bool starved; /* an answer could not be given for want of memory */
} cek__settings;

void cek__settings_init(cek__settings *settings);
void cek__settings_clear(cek__settings *settings);

/* CEKERNELS_<KEY IN UPPER CASE>, or NULL if it is unset, empty, or `key` is no name.
 * Threads: any. */
const char *cek__settings_get(cek__settings *settings, const char *key);
/* True if an answer was NULL because memory ran out, since this was last asked. */
bool cek__settings_starved(cek__settings *settings);

/* The user pointer of a plugin's callbacks. */
typedef struct cek__host_user {
    cek__settings *settings;
    char name[32]; /* of the plugin, for the log */
} cek__host_user;

/* Fills in the callbacks; `user` lives until the plugin's instance has been destroyed. */
void cek__host_fill(cek_host *host, cek__host_user *user);

#endif
