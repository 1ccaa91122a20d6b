/* plugin_file.h - one plugin, opened by hand: what `check` needs beyond the engine, namely the
 * instance. */
#ifndef BENCH_PLUGIN_FILE_H
#define BENCH_PLUGIN_FILE_H

#include "bench/bench.h"

typedef struct plugin_file {
    void *so;
    cek_plugin plugin; /* its table as it may be called: it keeps the rules */
    cek_host host;
    cek_instance *instance;
    bool abandoned; /* a device of it may still be at work: it is not closed */
} plugin_file;

/* 0 or an exit code, with everything said. */
int plugin_file_open(const char *path, plugin_file *file);
void plugin_file_close(plugin_file *file);
const char *plugin_file_error(void *file); /* for spec_target */

#endif
