/* wait.c - slices, silence, and the latch (see wait.h). */
#include "core/device/wait.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "core/base/log.h"
#include "core/base/options.h"
#include "core/device/call.h"
#include "core/device/probe.h"

/* A command is an operation, a copy, or a command buffer with a pass over a batch: seconds at the very most. */
#define DEFAULT_NS 600000000000u
#define SECOND 1e9
#define SLICE_MAX ((uint64_t)1000000000)
#define NAP_NS 1000000
enum { SLICES = 8 }; /* of a time-out: how often the device is looked at before it is called lost */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

cek_status cek__timeout_resolve(uint64_t given_ns, uint64_t *out_ns)
{
    cek_status st = CEK_OK;
    const char *text = cek__env("CEKERNELS_TIMEOUT");
    double seconds;

    *out_ns = given_ns != 0 ? given_ns : DEFAULT_NS;
    if (given_ns == 0 && text != NULL) {
        CEK_TRY(cek__parse_double("CEKERNELS_TIMEOUT", text, 0.001, 1e9, &seconds));
        *out_ns = (uint64_t)(seconds * SECOND);
    }
out:
    return st;
}

/* ---- the latch ---- */

static void device_lose(cek_device *device, const char *call)
{
    pthread_mutex_lock(&device->lock);
    if (!device->lost) {
        snprintf(device->lost_text, sizeof device->lost_text, "%s: no command finished for %g s", call,
                 (double)device->timeout_ns / SECOND);
        device->lost = true;
    }
    pthread_mutex_unlock(&device->lock);
    cek__log(CEK_LOG_INFO, "%s: %s", device->name, device->lost_text);
}

/* ---- slices ---- */

cek__wait cek__wait_begin(cek_device *device, uint64_t timeout_ns)
{
    return (cek__wait){ .device = device, .left_ns = timeout_ns, .finished = device->finished };
}

uint64_t cek__wait_slice(cek__wait *wait)
{
    wait->slice_ns = least(wait->left_ns, least(wait->device->timeout_ns / SLICES + 1, SLICE_MAX));
    wait->before_ns = now_ns();
    return wait->slice_ns;
}

bool cek__wait_cond(cek__wait *wait, pthread_cond_t *cond, pthread_mutex_t *lock)
{
    uint64_t until = cek__wait_slice(wait);
    struct timespec t;

    until += wait->before_ns;
    t = (struct timespec){ .tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u) };
    return pthread_cond_timedwait(cond, lock, &t) != ETIMEDOUT;
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

    nap(now_ns() - wait->before_ns, wait->slice_ns);
    passed = now_ns() - wait->before_ns;
    cek__probes_look(device);
    finished = device->finished;
    wait->silent_ns = finished != wait->finished ? 0 : wait->silent_ns + least(passed, wait->slice_ns);
    wait->finished = finished;
    if (wait->silent_ns >= device->timeout_ns) {
        device_lose(device, call);
        *st = cek__device_check(device);
        return false;
    }
    if (wait->left_ns == CEK_FOREVER)
        return true;
    wait->left_ns -= least(passed, wait->left_ns);
    return wait->left_ns > 0;
}
