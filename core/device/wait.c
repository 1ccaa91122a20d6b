/* wait.c - slices, silence, and the latch (see wait.h). */
#include "core/device/wait.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/log.h"
#include "core/base/options.h"
#include "core/base/thread.h"
#include "core/device/call.h"
#include "core/device/probe.h"

/* A command is an operation, a copy, or a command buffer with a pass over a batch: seconds at the very most. */
#define DEFAULT_NS 600000000000u
#define MAKING_TIMES \
    10 /* the time-out: tuning a convolution runs many candidates, a cold driver compiles for minutes */
#define SECOND 1e9
#define SLICE_MAX ((uint64_t)1000000000)
#define NAP_NS 1000000
enum { SLICES = 8 }; /* of a time-out: how often the device is looked at before it is called lost */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static cek_status resolve(const char *variable, uint64_t given_ns, uint64_t default_ns, uint64_t *out_ns)
{
    cek_status st = CEK_OK;
    const char *text = cek__env(variable);
    double seconds;

    *out_ns = given_ns != 0 ? given_ns : default_ns;
    if (given_ns == 0 && text != NULL) {
        CEK_TRY(cek__parse_double(variable, text, 0.001, 1e9, &seconds));
        *out_ns = (uint64_t)(seconds * SECOND);
    }
out:
    return st;
}

cek_status cek__timeout_resolve(uint64_t given_ns, uint64_t *out_ns)
{
    return resolve("CEKERNELS_TIMEOUT", given_ns, DEFAULT_NS, out_ns);
}

cek_status cek__making_timeout_resolve(uint64_t given_ns, uint64_t timeout_ns, uint64_t *out_ns)
{
    uint64_t default_ns = timeout_ns < UINT64_MAX / MAKING_TIMES ? MAKING_TIMES * timeout_ns : UINT64_MAX;

    return resolve("CEKERNELS_MAKING_TIMEOUT", given_ns, default_ns, out_ns);
}

/* ---- the latch ---- */

void cek__device_lose(cek_device *device, const char *call, const char *what, uint64_t ns)
{
    bool first;

    pthread_mutex_lock(&device->lock);
    first = !device->lost;
    if (first) {
        snprintf(device->lost_text, sizeof device->lost_text, "%s: %s for %g s", call, what, (double)ns / SECOND);
        device->lost = true;
        pthread_cond_broadcast(&device->changed);
    }
    pthread_mutex_unlock(&device->lock);
    if (first)
        cek__log(CEK_LOG_INFO, "%s: %s", device->name, device->lost_text);
}

bool cek__call_makes(const char *call)
{
    static const char *const making[] = { "device_open", "op_create", "cmdbuf_create" };

    for (size_t i = 0; i < sizeof making / sizeof *making; i++)
        if (strcmp(call, making[i]) == 0)
            return true;
    return false;
}

/* ---- slices ---- */

cek__wait cek__wait_begin(cek_device *device, uint64_t timeout_ns)
{
    return (cek__wait){
        .device = device, .left_ns = timeout_ns, .limit_ns = device->timeout_ns, .finished = device->finished
    };
}

cek__wait cek__wait_begin_thread(cek_device *device)
{
    cek__wait wait = cek__wait_begin(device, CEK_FOREVER);

    wait.for_thread = true;
    return wait;
}

cek__wait cek__wait_begin_making(cek_device *device)
{
    cek__wait wait = cek__wait_begin(device, CEK_FOREVER);

    wait.limit_ns = device->making_timeout_ns;
    return wait;
}

uint64_t cek__wait_slice(cek__wait *wait)
{
    wait->slice_ns = least(wait->left_ns, cek__device_slice(wait->device));
    wait->before_ns = cek__now_ns();
    return wait->slice_ns;
}

uint64_t cek__device_slice(const cek_device *device)
{
    return least(device->timeout_ns / SLICES + 1, SLICE_MAX);
}

bool cek__wait_changed(cek__wait *wait, const char *call, cek_status *st)
{
    cek_device *device = wait->device;
    bool goes_on = true;

    if (!cek__cond_wait(&device->changed, &device->lock, cek__wait_slice(wait))) {
        pthread_mutex_unlock(&device->lock);
        goes_on = cek__wait_goes_on(wait, call, st);
        pthread_mutex_lock(&device->lock);
    }
    return goes_on;
}

/* A plugin that gives up before its time is not asked again at once. */
static void nap(uint64_t slept_ns, uint64_t slice_ns)
{
    if (slept_ns < slice_ns / 2)
        nanosleep(&(struct timespec){ .tv_nsec = (long)least(slice_ns - slept_ns, NAP_NS) }, NULL);
}

bool cek__wait_goes_on(cek__wait *wait, const char *call, cek_status *st)
{
    cek_device *device = wait->device;
    uint64_t passed, finished;

    if (cek__device_is_lost(device)) {
        *st = cek__device_check(device);
        return false;
    }
    nap(cek__now_ns() - wait->before_ns, wait->slice_ns);
    passed = cek__now_ns() - wait->before_ns;
    cek__probes_look(device);
    finished = device->finished;
    wait->silent_ns = finished != wait->finished ? 0 : wait->silent_ns + least(passed, wait->slice_ns);
    wait->finished = finished;
    if (wait->silent_ns >= wait->limit_ns && wait->for_thread) {
        *st = cek__fail(CEK_TIMEOUT, "%s: %s: another thread has had it for %g s", device->name, call,
                        (double)wait->limit_ns / SECOND);
        return false;
    }
    if (wait->silent_ns >= wait->limit_ns) {
        cek__device_lose(device, call, "no command finished", wait->limit_ns);
        *st = cek__device_check(device);
        return false;
    }
    if (wait->left_ns == CEK_FOREVER)
        return true;
    wait->left_ns -= least(passed, wait->left_ns);
    return wait->left_ns > 0;
}
