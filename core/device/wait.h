/* wait.h - waits for a device: every one ends.
 *
 *     cek__wait wait = cek__wait_begin(device, timeout_ns);
 *     do
 *         st = CEK__CALL(device, queue_sync, queue, cek__wait_slice(&wait));
 *     while (st == CEK_TIMEOUT && cek__wait_goes_on(&wait, "queue_sync", &st));
 *
 * A wait is made of slices. Between them it counts the time in which no command of the device has finished, as far as
 * anybody can see (probe.h); a slice counts for what it was to last at most, so a process that was stopped has not
 * waited. Past the device's time-out the device is latched as lost: every later call answers CEK_DEVICE_LOST without
 * reaching the plugin, and what the device may still use is left to it (CEK__RELEASE).
 * Must not know: what is waited for. */
#ifndef CEK_CORE_DEVICE_WAIT_H
#define CEK_CORE_DEVICE_WAIT_H

#include "core/device/device.h"

typedef struct cek__wait {
    cek_device *device;
    uint64_t left_ns;             /* of the caller's time-out; CEK_FOREVER: none */
    uint64_t silent_ns;           /* in which no command was seen to finish */
    uint64_t slice_ns, before_ns; /* of the slice that runs: its length, its beginning */
    uint64_t finished;            /* as the device counted when it was looked at last */
} cek__wait;

cek__wait cek__wait_begin(cek_device *device, uint64_t timeout_ns);

/* The next slice's time-out, from now on. */
uint64_t cek__wait_slice(cek__wait *wait);

/* After a slice that timed out. False: it was the last, and *st says why: CEK_TIMEOUT at the caller's deadline, whose
 * text is left as it is, or CEK_DEVICE_LOST with the text "cpu:0: CALL: no command finished for 600 s". */
bool cek__wait_goes_on(cek__wait *wait, const char *call, cek_status *st);

/* A slice on a condition variable of cek__cond_init, whose lock is held. False: it is over; before cek__wait_goes_on the
 * lock is given up. */
bool cek__wait_cond(cek__wait *wait, pthread_cond_t *cond, pthread_mutex_t *lock);

/* The time-out of an engine's devices: as given, else as CEKERNELS_TIMEOUT says, else the default. */
CEK__CHECKED cek_status cek__timeout_resolve(uint64_t given_ns, uint64_t *out_ns);

#endif
