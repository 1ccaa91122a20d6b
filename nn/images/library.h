/* library.h - a library of the system that is opened when it is first needed, and never linked.
 *
 * Owns: the handle, for as long as the process lives. Threads: any number may ask at once; it is opened by the first. A
 * library that is not there is asked for again the next time, so that it can be installed meanwhile.
 * Must not know: what a library does. */
#ifndef CEK_NN_IMAGES_LIBRARY_H
#define CEK_NN_IMAGES_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>

#include "core/base/status.h"

typedef struct cek__library {
    const char *soname, *package, *wants; /* "libpng16.so.16", "libpng16-16", "PNG" */
    const char *const *symbols;           /* NULL-terminated, */
    void **addresses;                     /* and where each goes */
    pthread_mutex_t lock;
    bool open;
} cek__library;

/* CEK_NOT_FOUND names what wants it, the library and the Debian package that has it. */
CEK__CHECKED cek_status cek__library_open(cek__library *library);

#endif
