/* processors.h - which devices of a team compute on one processor, and through which plugins.
 *
 * Pure: names go in, numbers come out. */
#ifndef CEK_NN_TRAIN_PROCESSORS_H
#define CEK_NN_TRAIN_PROCESSORS_H

#include "core/base/views.h"
#include "nn/train/costs.h"

/* Sets `processor` and `view` of devices[count]. On one processor are devices of several plugins, each of which is a
 * view of it, and those that a plugin makes of the host's own. Views are counted from the one that fits it best on, of
 * equals the first. */
CEK__SHARED void cek__processors_number(const cek__view *views, size_t count, cek__costs_device *devices);

#endif
