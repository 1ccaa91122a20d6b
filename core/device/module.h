/* module.h - one plugin in this process: opened, negotiated, started.
 *
 * Must not know: why this file, which other plugins there are, or what its devices are used for. */
#ifndef CEK_CORE_DEVICE_MODULE_H
#define CEK_CORE_DEVICE_MODULE_H

#include "core/base/status.h"
#include "core/device/host.h"
#include "core/device/report.h"

typedef struct cek__module {
    cek_plugin table; /* our copy, every slot callable, its texts our own */
    cek_instance *instance;
    cek_device_info *infos; /* of its device_count devices, checked */
    uint32_t device_count;
    bool pinned; /* create() was called: never unloaded from then on */
    bool left;   /* a lost device still runs in it: never destroyed, never freed */
    void *handle;
    char *version, *build;
    cek__host_user user;
    cek_host host;
} cek__module;

/* Opens a file and reads its table. A file that cannot be used is no failure: *out is NULL and `line` says why.
 * Fails with CEK_OUT_OF_MEMORY for want of host memory alone. */
CEK__CHECKED cek_status cek__module_open(const char *path, cek__settings *settings, cek__report_line *line,
                                         cek__module **out);

/* Creates the instance and reads its devices; `line` says how far that came, CEK_OK at the stage "loaded". */
CEK__CHECKED cek_status cek__module_start(cek__module *module, cek__report_line *line);

/* What the plugin says of a device now, checked. */
CEK__CHECKED cek_status cek__module_device_info(const cek__module *module, uint32_t index, cek_device_info *out);

void cek__module_free(cek__module *module);

#endif
