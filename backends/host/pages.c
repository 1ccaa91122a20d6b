/* SPDX-License-Identifier: MIT
 * pages.c - pages that are present before anyone relies on them. */
#include "backends/host/pages.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

void cek__pages_touch(unsigned char *base, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (uint64_t i = 0; i < bytes; i += page)
        ((volatile unsigned char *)base)[i] = 0;
    ((volatile unsigned char *)base)[bytes - 1] = 0;
}

unsigned char *cek__pages_map(uint64_t bytes)
{
    unsigned char *start = mmap(NULL, bytes + CEK__HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                                -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    uint64_t lead = -(uintptr_t)start % CEK__HUGE_PAGE_BYTES;
    unsigned char *base = start + lead;
    if (lead)
        munmap(start, lead);
    if (CEK__HUGE_PAGE_BYTES - lead)
        munmap(base + bytes, CEK__HUGE_PAGE_BYTES - lead);
    (void)madvise(base, bytes, MADV_HUGEPAGE); /* a wish */
    if (!madvise(base, bytes, MADV_POPULATE_WRITE))
        return base;
    if (errno == EINVAL) { /* an older kernel */
        cek__pages_touch(base, bytes);
        return base;
    }
    munmap(base, bytes);
    return NULL;
}
