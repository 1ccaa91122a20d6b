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
 * reaching the plugin, and what the device may still use is left to it (CEK__RELEASE). Calls that make or compile may
 * take longer than others: a wait for one has the longer time-out.
 * Must not know: what is waited for. */
#ifndef CEK_CORE_DEVICE_WAIT_H
#define CEK_CORE_DEVICE_WAIT_H

#include "core/device/device.h"

typedef struct cek__wait {
    cek_device *device;
    bool for_thread;              /* not for the device, which is not to blame */
    uint64_t left_ns;             /* of the caller's time-out; CEK_FOREVER: none */
    uint64_t limit_ns, silent_ns; /* how long no command may be seen to finish, how long none was */
    uint64_t slice_ns, before_ns; /* of the slice that runs: its length, its beginning */
    uint64_t finished;            /* as the device counted when it was looked at last */
} cek__wait;

cek__wait cek__wait_begin(cek_device *device, uint64_t timeout_ns);
/* For another thread that makes something, such as device_open. */
cek__wait cek__wait_begin_making(cek_device *device);
/* For another thread, which may be inside another device: CEK_TIMEOUT rather than a loss. */
cek__wait cek__wait_begin_thread(cek_device *device);

/* The next slice's time-out, from now on. */
uint64_t cek__wait_slice(cek__wait *wait);

/* After a slice that timed out. False: it was the last, and *st says why: CEK_TIMEOUT at the caller's deadline, whose
 * text is left as it is, or CEK_DEVICE_LOST with the text "cpu:0: CALL: no command finished for 600 s". */
bool cek__wait_goes_on(cek__wait *wait, const char *call, cek_status *st);

/* Waits for device->changed, whose lock is held: for what another thread does in `call`. False: no longer, and *st says
 * why. To be called while what is waited for is not there. */
CEK__CHECKED bool cek__wait_changed(cek__wait *wait, const char *call, cek_status *st);

/* Calls the device lost because of `call`, in which nothing has happened for so long; the first reason stays. */
void cek__device_lose(cek_device *device, const char *call, const char *what, uint64_t ns);

/* How often a thread that waits looks at the device: an eighth of its time-out, a second at most. */
uint64_t cek__device_slice(const cek_device *device);

/* Whether `call` makes or compiles something. */
bool cek__call_makes(const char *call);

/* The time-out of an engine's devices: as given, else as CEKERNELS_TIMEOUT says, else the default. That of making:
 * as given, else as CEKERNELS_MAKING_TIMEOUT says, else ten times the other. */
CEK__CHECKED cek_status cek__timeout_resolve(uint64_t given_ns, uint64_t *out_ns);
CEK__CHECKED cek_status cek__making_timeout_resolve(uint64_t given_ns, uint64_t timeout_ns, uint64_t *out_ns);

#endif
