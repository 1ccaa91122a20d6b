/* object.h - whether a file is a whole shared object for this machine.
 *
 * Must not know: what a plugin is. */
#ifndef CEK_CORE_DEVICE_OBJECT_H
#define CEK_CORE_DEVICE_OBJECT_H

#include "core/base/status.h"

/* CEK_BAD_PLUGIN says what is wrong with it, without naming the file. */
CEK__CHECKED cek_status cek__object_check(const char *path);

#endif
