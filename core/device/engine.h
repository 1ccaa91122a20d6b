/* engine.h - what an engine holds. */
#ifndef CEK_CORE_DEVICE_ENGINE_H
#define CEK_CORE_DEVICE_ENGINE_H

#include "core/device/device.h"
#include "core/device/host.h"
#include "core/device/module.h"
#include "core/device/report.h"

struct cek_engine {
    cek__settings settings;
    cek__report report;
    cek__module **modules; /* started, in load order */
    size_t module_count;
    cek_device **devices; /* in plugin and index order */
    size_t device_count;
};

#endif
