/* engine.h - what an engine holds. */
#ifndef CEK_CORE_DEVICE_ENGINE_H
#define CEK_CORE_DEVICE_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/device/device.h"
#include "core/device/host.h"
#include "core/device/module.h"
#include "core/device/report.h"

/* One line of the report, and the plugin behind it: see start.c. */
typedef struct cek__candidate {
    cek__report_line *line;
    enum { CEK__WAITING, CEK__BUSY, CEK__DONE } state;
    bool started;
    cek__module *module;  /* opened; NULL where it is not, or not any more */
    cek_device **devices; /* of a started one: module->device_count */
} cek__candidate;

struct cek_engine {
    atomic_size_t references; /* its maker's, and one for each object that needs it (cek__engine_take) */
    cek__settings settings;
    pthread_mutex_t lock; /* over what follows; their number is that of the report's lines, and fixed */
    pthread_cond_t changed;
    cek__report report;
    cek__candidate *candidates;
    uint64_t timeout_ns, making_timeout_ns; /* of the devices (wait.h) */
    _Atomic(cek_trace *) trace;             /* what runs is recorded there; NULL: nobody looks */
    bool left;                              /* a lost device still runs: what plugins may ask for stays */
};

/* Every device of every started plugin, in the order of lines and indices; under the lock.
 *
 *     for (cek__walk w = { 0 }; (device = cek__walk_next(engine, &w)) != NULL;) */
typedef struct cek__walk {
    size_t candidate;
    uint32_t index;
} cek__walk;
cek_device *cek__walk_next(const cek_engine *engine, cek__walk *walk);

#endif
