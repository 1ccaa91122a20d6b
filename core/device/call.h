/* call.h - how a call into a plugin becomes a status and a text that name the device and the call.
 *
 *     CEK_TRY(CEK__CALL(device, mem_alloc, dev, &desc, &mem));
 *
 * A plugin tells its reason through host->fail on the calling thread (host.c); where it tells none, the status gets
 * its own sentence. A status that plugin.h does not define reads as CEK_INTERNAL. A device that this library has called
 * lost (wait.h) is not called any more. */
#ifndef CEK_CORE_DEVICE_CALL_H
#define CEK_CORE_DEVICE_CALL_H

#include "core/base/alloc.h" /* cek__abandon */
#include "core/base/status.h"

struct cek__gate;

/* `slot` is a function of the plugin's table that returns a status. */
#define CEK__CALL(device, slot, ...)                                                                        \
    (cek__call_enter((device), #slot) ? cek__call_end((device), #slot, (device)->plugin->slot(__VA_ARGS__)) \
                                      : CEK_DEVICE_LOST)

/* Gives a handle back by a function that returns nothing, such as queue_destroy: what it tells is no failure of
 * anybody's, and the text of one that is on its way up stays. A lost device keeps it for ever. */
#define CEK__RELEASE(device, slot, handle) CEK__RELEASE_(device, slot, handle, handle)
#define CEK__RELEASE_(device, slot, handle, ...)                                                    \
    (cek__release_enter((device), #slot) ? ((device)->plugin->slot(__VA_ARGS__), cek__call_leave()) \
                                         : cek__abandon(handle))

/* CEK_OK, or CEK_DEVICE_LOST once this library has called the device lost; the text says why. */
CEK__CHECKED cek_status cek__device_check(const cek_device *device);

/* This thread goes into a plugin's function; `who` stays valid until it comes out. What an earlier call may have told
 * is forgotten. */
void cek__call_begin(const char *who, const char *call);

/* The same for a function that returns nothing. */
void cek__release_begin(const char *who, const char *call);

/* The same for a device. False: the device is lost, and must not be called; after cek__call_enter the text says why. */
CEK__CHECKED bool cek__call_enter(const cek_device *device, const char *call);
CEK__CHECKED bool cek__release_enter(const cek_device *device, const char *call);

/* The same to ask for the reason of a failure: what was told so far stays. False: the device is lost. */
CEK__CHECKED bool cek__ask_enter(const cek_device *device, const char *call);

/* From now on this thread passes this gate at every call. */
void cek__call_pass(struct cek__gate *gate);

/* It has come out of one, and goes on only if it was not left there: the first thing that happens after a call. */
void cek__call_leave(void);

/* Ends a call on a device: the status as this library reads it, with the text "cpu:0: queue_sync: cause". */
CEK__CHECKED cek_status cek__call_end(const cek_device *device, const char *call, cek_status status);

/* The same for a call that belongs to no device; `who` is the plugin's name. */
CEK__CHECKED cek_status cek__call_end_of(const char *who, const char *call, cek_status status);

/* For host->fail: this thread's plugin has told its reason. */
void cek__call_told(cek_status status, const char *text);

#endif
