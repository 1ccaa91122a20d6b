/* starve.c - loaded in front of the C library (LD_PRELOAD): makes one allocation of cekernels-bench fail, once.
 *
 *     STARVE_NTH=N       the N-th allocation from the start of the program on; 0 or nothing: none
 *     STARVE_COUNT=FILE  how many there were goes there in the end
 *
 * Every allocation counts, also those of the C library, of the loader of plugins and of jansson. Other programs that
 * are started on the way there, such as shells, are left alone. With another C library than glibc it does nothing. */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GLIBC__

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static bool counting;
static long nth;
static atomic_long count;

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("STARVE_NTH"), *name = strrchr(program_invocation_name, '/');
    nth = text ? atol(text) : 0;
    name = name ? name + 1 : program_invocation_name;
    counting = !strcmp(name, "cekernels-bench") || !strcmp(name, "lt-cekernels-bench");
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("STARVE_COUNT");
    const bool wanted = counting && path;
    counting = false;
    FILE *file = wanted ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%ld\n", atomic_load(&count));
        fclose(file);
    }
}

static bool refused(void)
{
    if (!counting || atomic_fetch_add(&count, 1) + 1 != nth)
        return false;
    errno = ENOMEM;
    return true;
}

/* What the program is to find in place of the C library's. */
#pragma GCC visibility push(default)

void *malloc(size_t bytes)
{
    return refused() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t items, size_t bytes)
{
    return refused() ? NULL : __libc_calloc(items, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return refused() ? NULL : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return refused() ? NULL : __libc_memalign(alignment, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    return refused() ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *block = refused() ? NULL : __libc_memalign(alignment, bytes);
    if (block)
        *out = block;
    return block ? 0 : ENOMEM;
}

#pragma GCC visibility pop

#endif
