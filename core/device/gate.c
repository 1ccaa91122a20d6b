/* gate.c - see gate.h.
 *
 * `at` is the whole state: even, the thread is outside; odd, it is inside its (at / 2)th call; LEFT, for good. Going in
 * is a store, coming out and leaving the thread race for one exchange. */
#include "core/device/gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/device/call.h"
#include "core/device/device.h"
#include "core/device/probe.h"
#include "core/device/wait.h"

#define LEFT UINT64_MAX
enum { GRACE = 2 }; /* slices for a thread to come out of a device that is lost already: waits last one at most */

struct cek__gate {
    cek_device *home;
    void (*run)(void *arg);
    void *arg;
    pthread_t thread;
    _Atomic(uint64_t) at;
    _Atomic(const cek_device *) device; /* of the call that it is in or was in last */
    _Atomic(const char *) call;
    /* The last look. */
    uint64_t looked_ns, seen_at, finished, silent_ns;
    cek__gate *scout; /* asks meanwhile what has finished; NULL: nobody does */
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool ended; /* run() has returned */
};

bool cek__gate_is_needed(const cek_device *device)
{
    return !cek__device_is_inline(device);
}

bool cek__gate_is_occupied(const cek_device *device)
{
    return device->occupied;
}

bool cek__gate_is_lost(const cek_device *device)
{
    return cek__device_is_lost(device);
}

cek_status cek__gate_check(const cek_device *device)
{
    return cek__device_check(device);
}

uint64_t cek__gate_slice(const cek_device *device)
{
    return cek__device_slice(device);
}

/* ---- the thread ---- */

void cek__gate_in(cek__gate *gate, const cek_device *device, const char *call)
{
    atomic_store_explicit(&gate->device, device, memory_order_relaxed);
    atomic_store_explicit(&gate->call, call, memory_order_relaxed);
    atomic_fetch_add_explicit(&gate->at, 1, memory_order_release);
}

void cek__gate_out(cek__gate *gate)
{
    uint64_t at = atomic_load_explicit(&gate->at, memory_order_relaxed);

    if (at % 2 == 0)
        return;
    if (at != LEFT && atomic_compare_exchange_strong(&gate->at, &at, at + 1))
        return;
    for (;;) /* it is deaf to signals */
        pause();
}

static void *gate_main(void *arg)
{
    cek__gate *gate = arg;

    cek__call_pass(gate);
    gate->run(gate->arg);
    pthread_mutex_lock(&gate->lock);
    gate->ended = true;
    pthread_cond_signal(&gate->over);
    pthread_mutex_unlock(&gate->lock);
    return NULL;
}

static void gate_free(cek__gate *gate)
{
    if (gate->scout != NULL)
        cek__gate_join(gate->scout);
    pthread_cond_destroy(&gate->over);
    pthread_mutex_destroy(&gate->lock);
    free(gate);
}

cek_status cek__gate_start(cek_device *device, void (*run)(void *arg), void *arg, cek__gate **out)
{
    cek_status st;
    cek__gate *gate = NULL;
    int error;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *gate, &gate));
    gate->home = device;
    gate->run = run;
    gate->arg = arg;
    pthread_mutex_init(&gate->lock, NULL);
    cek__cond_init(&gate->over);
    error = cek__thread_start(&gate->thread, gate_main, gate);
    if (error != 0) {
        gate_free(gate);
        return cek__fail_errno(CEK_OUT_OF_MEMORY, error, "%s: thread of the device", device->name);
    }
    *out = gate;
out:
    return st;
}

/* ---- who watches ---- */

/* Nothing has happened since the last look. */
static bool is_still(cek__gate *gate, uint64_t at, const cek_device *device)
{
    uint64_t finished = device->finished;
    bool still = at == gate->seen_at && finished == gate->finished;

    gate->seen_at = at;
    gate->finished = finished;
    return still;
}

static void scout_run(void *device)
{
    cek__probes_look(device);
}

static bool has_ended(cek__gate *gate)
{
    bool ended;

    pthread_mutex_lock(&gate->lock);
    ended = gate->ended;
    pthread_mutex_unlock(&gate->lock);
    return ended;
}

/* While a thread is inside a call, perhaps nobody else asks its device what has finished. Who waits must not, since
 * that call may not return either: so another thread with a gate does, and the next look sees what it has counted. */
static void scout_send(cek__gate *gate, cek_device *device)
{
    if (gate->run == scout_run || (gate->scout != NULL && !has_ended(gate->scout)))
        return;
    if (gate->scout != NULL)
        cek__gate_join(gate->scout);
    gate->scout = NULL;
    if (cek__gate_start(device, scout_run, device, &gate->scout) != CEK_OK)
        cek__log(CEK_LOG_WARN, "%s", cek_error_text());
}

/* Its device is lost: it goes into no other call, and is left where it is. */
static void scout_call_off(cek__gate *scout)
{
    uint64_t at;

    if (scout == NULL)
        return;
    at = atomic_load(&scout->at);
    if (at % 2 == 0 || !atomic_compare_exchange_strong(&scout->at, &at, LEFT)) {
        cek__gate_join(scout);
        return;
    }
    pthread_detach(scout->thread);
    cek__abandon(scout);
}

static uint64_t limit_of(const cek_device *device, const char *call)
{
    if (cek__device_is_lost(device))
        return GRACE * cek__device_slice(device);
    return cek__call_makes(call) ? device->making_timeout_ns : device->timeout_ns;
}

static void leave(cek__gate *gate, cek_device *device, const char *call, uint64_t limit)
{
    device->occupied = true;
    cek__device_lose(device, call, "it has not returned", limit);
    scout_call_off(gate->scout);
    pthread_detach(gate->thread);
    cek__abandon(gate);
}

bool cek__gate_watch(cek__gate *gate)
{
    uint64_t at = atomic_load_explicit(&gate->at, memory_order_acquire), now = cek__now_ns(), passed, slice, limit;
    const cek_device *device = atomic_load_explicit(&gate->device, memory_order_relaxed);
    const char *call = atomic_load_explicit(&gate->call, memory_order_relaxed);

    passed = now - gate->looked_ns;
    gate->looked_ns = now;
    if (at % 2 == 0 || !is_still(gate, at, device)) {
        gate->silent_ns = 0;
        return false;
    }
    slice = cek__device_slice(device);
    limit = limit_of(device, call);
    gate->silent_ns += passed < slice ? passed : slice;
    if (gate->silent_ns < limit && !cek__device_is_lost(device))
        scout_send(gate, (cek_device *)device);
    if (gate->silent_ns < limit || !atomic_compare_exchange_strong(&gate->at, &at, LEFT))
        return false;
    leave(gate, (cek_device *)device, call, limit);
    return cek__device_check(device) != CEK_OK;
}

bool cek__gate_join(cek__gate *gate)
{
    bool left = false;

    pthread_mutex_lock(&gate->lock);
    while (!gate->ended && !left)
        if (!cek__cond_wait(&gate->over, &gate->lock, cek__device_slice(gate->home))) {
            pthread_mutex_unlock(&gate->lock);
            left = cek__gate_watch(gate);
            pthread_mutex_lock(&gate->lock);
        }
    pthread_mutex_unlock(&gate->lock);
    if (left)
        return false;
    pthread_join(gate->thread, NULL);
    gate_free(gate);
    return true;
}
