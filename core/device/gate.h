/* gate.h - threads of these libraries that call devices and may be left there.
 *
 *     CEK_TRY(cek__gate_start(device, run, arg, &gate));
 *     while (!done(arg))
 *         if (!cek__cond_wait(&changed, &lock, cek__gate_slice(device)) && cek__gate_watch(gate))
 *             return CEK_DEVICE_LOST;          the thread is inside a call that does not return
 *     cek__gate_join(gate);
 *
 * A call into a driver may never return, and no thread can be taken out of one. So calls into devices that work beside
 * the host are made by threads that pass a gate: going in, and coming out (call.h). Who waits for such a thread looks
 * at it, and sends another one to ask what the device has finished. Where it stays inside one call for the device's
 * time-out (the longer one where the call makes something) while no command of the device is seen to finish, the device
 * is latched as lost and the thread is left: should the call ever return, it stops at the gate for good. Hence:
 *
 * 1. Only a thread that is inside a call is left, and it never goes on in our code.
 * 2. It holds no lock of ours, since none is held across a call.
 * 3. What it may still touch is never freed: its stack and what hangs on that go on existing with it; owners
 * of what else
 *    the call was given, which is everything of theirs on a device that is `occupied`, give it up (cek__abandon).
 * 4. A lost device is not called any more, and its plugin's instance is not destroyed.
 * 5. A look counts an eighth of the time-out and a second at most: a process that was stopped has not waited.
 *
 * Other threads pay a test of a thread's own variable for each call. Must not know: what the threads do. */
#ifndef CEK_CORE_DEVICE_GATE_H
#define CEK_CORE_DEVICE_GATE_H

#include <stdbool.h>

#include "cekernels/cekernels.h"
#include "core/base/export.h"

typedef struct cek__gate cek__gate;

/* Calls into an inline device compute on the thread that makes them: they need no gate. */
CEK__SHARED bool cek__gate_is_needed(const cek_device *device);

/* A thread was left inside the device. */
CEK__SHARED bool cek__gate_is_occupied(const cek_device *device);

/* This library has called the device lost. */
CEK__SHARED bool cek__gate_is_lost(const cek_device *device);

/* CEK_OK, or the loss of the device with its reason. */
CEK__SHARED CEK__CHECKED cek_status cek__gate_check(const cek_device *device);

/* This thread passes a gate. */
CEK__SHARED bool cek__gate_is_here(void);

/* Between two looks at a thread that calls mostly this device. */
CEK__SHARED uint64_t cek__gate_slice(const cek_device *device);

/* Starts run(arg) on a thread that passes a gate. */
CEK__SHARED CEK__CHECKED cek_status cek__gate_start(cek_device *device, void (*run)(void *arg), void *arg,
                                                    cek__gate **out);

/* Looks at the thread; from one thread at a time. True: it is left, the text says where, and `gate` is not the caller's
 * any more. */
CEK__SHARED CEK__CHECKED bool cek__gate_watch(cek__gate *gate);

/* Waits until run() has returned, and frees the gate. False: the thread is left. */
CEK__SHARED bool cek__gate_join(cek__gate *gate);

/* ---- for call.c ---- */

void cek__gate_in(cek__gate *gate, const cek_device *device, const char *call);
void cek__gate_out(cek__gate *gate);

#endif
