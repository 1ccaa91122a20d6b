/* SPDX-License-Identifier: MIT
 *
 * library.c - where NVIDIA's libraries lie: folders that the host names, the loader's own search,
 * the toolkit, Python wheels.
 *
 * Knows names of folders, nothing of what is in the libraries.
 */
#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda.h"

#define PATH_BYTES 4096
#define ABSENT "cannot open shared object file"

/* After the loader's own search. Wheels: one folder per library until CUDA 12, one for all from 13 on. */
static const char *const folders[] = {
    "/usr/local/cuda/lib64",
    "/usr/local/cuda-*/lib64",
    "/opt/cuda/lib64",
    "/usr/local/lib/python3*/*-packages/nvidia/*/lib",
    "/usr/lib/python3*/*-packages/nvidia/*/lib",
};

/* Tries one file. `why` keeps the first reason that says more than that there is no such file. */
static void *library_try(const char *file, char *path, uint64_t cap, char *why, size_t why_cap)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const char *error = library ? NULL : dlerror();
    if (library)
        snprintf(path, cap, "%s", file);
    else if (error && (!*why || (strstr(why, ABSENT) && !strstr(error, ABSENT))))
        snprintf(why, why_cap, "%s", error);
    return library;
}

/* Every folder that a pattern stands for. */
static void *pattern_try(const char *pattern, const char *name, char *path, uint64_t cap, char *why, size_t why_cap)
{
    glob_t found;
    void *library = NULL;
    char full[PATH_BYTES];
    snprintf(full, sizeof full, "%s/%s", pattern, name);
    if (!glob(full, GLOB_NOSORT, NULL, &found))
        for (size_t i = 0; !library && i < found.gl_pathc; i++)
            library = library_try(found.gl_pathv[i], path, cap, why, why_cap);
    globfree(&found);
    return library;
}

/* The folders that the host names: each itself, what a toolkit has below it, and what an environment of Python has. */
static void *named_try(const char *list, const char *name, char *path, uint64_t cap, char *why, size_t why_cap)
{
    static const char *const below[] = { "", "/lib64", "/lib", "/nvidia/*/lib",
                                         "/lib/python3*/site-packages/nvidia/*/lib" };
    char pattern[PATH_BYTES];
    for (const char *at = list; *at; at += strcspn(at, ":"), at += *at == ':') {
        int length = (int)strcspn(at, ":");
        if (*at != '/') /* never the working directory */
            continue;
        for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
            snprintf(pattern, sizeof pattern, "%.*s%s", length, at, below[i]);
            void *library = pattern_try(pattern, name, path, cap, why, why_cap);
            if (library)
                return library;
        }
    }
    return NULL;
}

const char *const *cek__cuda_library_names(const char *const *names, int version)
{
    for (; *names; names++) {
        const char *major = strstr(*names, ".so.");
        if (!major || atoi(major + 4) <= version / 1000)
            return names;
    }
    return names;
}

void *cek__cuda_library_open(const cek_host *host, const char *const *names, char *path, uint64_t cap)
{
    const char *named = cek__host_option(host, "cuda_path");
    char why[256] = "";
    void *library = NULL;
    if (!*names)
        snprintf(why, sizeof why, "the driver is older than all that are supported");
    for (size_t i = 0; named && !library && names[i]; i++)
        library = named_try(named, names[i], path, cap, why, sizeof why);
    for (size_t i = 0; !library && names[i]; i++)
        library = library_try(names[i], path, cap, why, sizeof why);
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++)
        for (size_t i = 0; !library && names[i]; i++)
            library = pattern_try(folders[f], names[i], path, cap, why, sizeof why);
    if (!library)
        snprintf(path, cap, "%s", why);
    return library;
}

/* From the folder that `path` is in. */
static bool sibling_open(const char *path, const char *name)
{
    char file[PATH_BYTES];
    const char *slash = strrchr(path, '/');
    int length = slash ? snprintf(file, sizeof file, "%.*s/%s", (int)(slash - path), path, name) : -1;
    return length > 0 && (size_t)length < sizeof file && dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

void cek__cuda_library_beside(void *library, const char *name)
{
    struct link_map *map = NULL;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) || !map || sibling_open(map->l_name, name))
        return;
    char *real = realpath(map->l_name, NULL); /* what is loaded may be a link to a folder that has both */
    if (real)
        (void)sibling_open(real, name);
    free(real);
}
