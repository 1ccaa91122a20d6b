/* call.h - how a call into a plugin becomes a status and a text that name the device and the call.
 *
 *     CEK_TRY(CEK__CALL(device, plugin, queue_sync, queue, CEK_FOREVER));
 *
 * A plugin tells its reason through host->fail on the calling thread (host.c); where it tells none, the status gets
 * its own sentence. A status that plugin.h does not define reads as CEK_INTERNAL. */
#ifndef CEK_CORE_DEVICE_CALL_H
#define CEK_CORE_DEVICE_CALL_H

#include "core/base/status.h"

/* `table` is the plugin's, from cek_device_raw; `slot` one of its functions that return a status. */
#define CEK__CALL(device, table, slot, ...) \
    (cek__call_begin((device)->name, #slot), cek__call_end((device), #slot, (table)->slot(__VA_ARGS__)))

/* The same for a function that returns nothing, such as queue_destroy: what it tells is no failure of anybody's, and
 * the text of one that is on its way up stays. */
#define CEK__RELEASE(device, slot, ...) \
    (cek__release_begin((device)->name, #slot), (device)->plugin->slot(__VA_ARGS__), cek__call_leave())

/* This thread goes into a plugin's function; `who` stays valid until it comes out. What an earlier call may have told
 * is forgotten. */
void cek__call_begin(const char *who, const char *call);

/* The same for a function that returns nothing. */
void cek__release_begin(const char *who, const char *call);

/* It has come out of one that cannot fail. */
void cek__call_leave(void);

/* Ends a call on a device: the status as this library reads it, with the text "cpu:0: queue_sync: cause". */
CEK__CHECKED cek_status cek__call_end(const cek_device *device, const char *call, cek_status status);

/* The same for a call that belongs to no device; `who` is the plugin's name. */
CEK__CHECKED cek_status cek__call_end_of(const char *who, const char *call, cek_status status);

/* For host->fail: this thread's plugin has told its reason. */
void cek__call_told(cek_status status, const char *text);

#endif
