/* views.h - plugins that drive the same silicon: which devices are the same processor, and whose plugin fits it best.
 *
 * Must not know: what anybody makes of that. Names alone: asks no device. */
#ifndef CEK_CORE_BASE_VIEWS_H
#define CEK_CORE_BASE_VIEWS_H

#include <stdbool.h>

#include "core/base/export.h"

/* A device: its name, "opencl:0", and the processor as its plugin calls it (cek_device_info.processor). */
typedef struct cek__view {
    const char *device, *processor;
} cek__view;

/* Both are the same processor, through two plugins: each reaches all of it. One plugin may split a processor into
 * several devices: those are different. False where a plugin does not tell. */
CEK__SHARED bool cek__views_of_one(cek__view a, cek__view b);
/* How well the plugin fits the processors that it drives: OpenCL reaches nearly everything, but others were made for
 * it. The greater, the better. */
CEK__SHARED int cek__view_fitness(cek__view view);

#endif
