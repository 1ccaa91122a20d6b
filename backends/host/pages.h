/* SPDX-License-Identifier: MIT
 *
 * pages.h - memory of the host that is really there, for every backend whose devices live in it.
 *
 * Knows no device.
 */
#ifndef CEK_BACKENDS_HOST_PAGES_H
#define CEK_BACKENDS_HOST_PAGES_H

#include <cekernels/plugin.h>

/* A 32nd of all memory stays free: page tables, stacks, the host application's own allocations. */
#define CEK__HOST_RESERVE_SHARE 32

/* From this size on memory is mapped, aligned for huge pages: fewer faults now, fewer TLB misses in every kernel. */
#define CEK__HUGE_PAGE_BYTES ((uint64_t)2 << 20)

/* cek__host_memory - how much memory this process may still take (available memory and the headroom
 * of its control groups, less a reserve) and how much there is at all. CEK_UNKNOWN where the system
 * does not say. */
void cek__host_memory(uint64_t *free_bytes, uint64_t *total_bytes);

/* cek__host_room_check - CEK_INVALID for 0 bytes, CEK_OUT_OF_MEMORY where fewer are left; `call` asks for them. */
cek_status cek__host_room_check(const cek_host *host, const char *call, uint64_t bytes);

/* cek__pages_touch - every page of [base, base + bytes) is present afterwards; contents become undefined. */
void cek__pages_touch(unsigned char *base, uint64_t bytes);

/* cek__pages_map - maps `bytes` (a multiple of CEK__HUGE_PAGE_BYTES), aligned to that, every page
 * present. NULL where the system has none. munmap() gives it back. */
unsigned char *cek__pages_map(uint64_t bytes);

#endif
