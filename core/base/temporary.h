/* temporary.h - the file that a save writes beside the place where it goes; what killed processes left of theirs.
 *
 * A temporary is named after its place, ".cekernels-HASH-NUMBER.tmp", and locked (flock) for as long as its writer
 * lives, however it dies. So one that can be locked has no writer: neither a process number that is given out again nor
 * a process of another host that shares the folder can be mistaken for it. A file system without locks keeps its
 * leftovers. */
#ifndef CEK_CORE_BASE_TEMPORARY_H
#define CEK_CORE_BASE_TEMPORARY_H

#include "core/base/status.h"

/* Creates and locks a file for what is to become directory/name, and removes what is left of such. *fd is -1 and errno
 * says why where that fails; *path is the caller's (free). CEK_OUT_OF_MEMORY, else CEK_OK. */
CEK__CHECKED cek_status cek__temporary_create(const char *directory, const char *name, char **path, int *fd);

#endif
