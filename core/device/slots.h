/* slots.h - the plugin's table, copied and completed.
 *
 * Must not know: files, dlopen, devices. */
#ifndef CEK_CORE_DEVICE_SLOTS_H
#define CEK_CORE_DEVICE_SLOTS_H

#include "core/base/status.h"

/* Copies what both sides know of `theirs` into *out and checks it: ABI, size, name, profile, the slots that this
 * profile requires. Slots that may be absent and are get a function that answers CEK_UNSUPPORTED, so that nobody
 * calls NULL. Texts still belong to the plugin. CEK_BAD_PLUGIN says what is wrong, without naming the file. */
CEK__CHECKED cek_status cek__slots_negotiate(const cek_plugin *theirs, cek_plugin *out);

#endif
