/* crew.h - the threads on which devices are called: one per device, that do one job together, or one of them alone.
 *
 * A device that works beside the host has a thread that may be left inside it (core/device/gate.h), however many there
 * are: whoever waits for a job looks at that thread, and a job whose call does not return ends with the loss of the
 * device. What the job had in hand is then the thread's for ever. Inline devices have a thread where there are several
 * members; a lone one's jobs run on the caller's own (a hand-off costs more than a small model's step).
 * Must not know: what jobs do. One thread at a time gives jobs. */
#ifndef CEK_NN_TRAIN_CREW_H
#define CEK_NN_TRAIN_CREW_H

#include "cekernels/nn.h"
#include "core/base/export.h"

typedef struct cek__crew cek__crew;
typedef cek_status (*cek__crew_fn)(void *user, size_t member);

/* `devices`: [members], or NULL: as if all were inline. */
CEK__SHARED CEK__CHECKED cek_status cek__crew_create(cek_device *const *devices, size_t members, cek__crew **out);
CEK__SHARED void cek__crew_free(cek__crew *crew);

/* Runs fn(user, member) for every member at once and returns when all have returned or are left: CEK_OK, or one
 * member's failure with its text. CEK_CANCELLED (a member that gave up because another failed) is
 * returned only if nobody has a better reason. */
CEK__SHARED CEK__CHECKED cek_status cek__crew_run(cek__crew *crew, cek__crew_fn fn, void *user);

/* Runs fn(user) for a device of the crew: on its thread where it works beside the host, else here. What fn gives
 * through `user` is not there where the thread was left. */
typedef cek_status (*cek__crew_job)(void *user);
CEK__SHARED CEK__CHECKED cek_status cek__crew_call(cek__crew *crew, const cek_device *device, cek__crew_job fn,
                                                   void *user);
/* The same for a job that calls several devices. */
CEK__SHARED CEK__CHECKED cek_status cek__crew_call_any(cek__crew *crew, cek__crew_job fn, void *user);

/* Gives back something on a device of the crew, by fn(object). Where a thread was left inside any of them, or another
 * one is lost, which may still copy from this one, all of it is left to them: it is given up, with what hangs on it.
 * NULL: nothing. */
CEK__SHARED void cek__crew_release(cek__crew *crew, const cek_device *device, void (*fn)(void *object), void *object);
/* A device that the library has not called lost has said so itself. */
CEK__SHARED void cek__crew_lost(cek__crew *crew, const cek_device *device);

#endif
