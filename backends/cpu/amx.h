/* amx.h - whether this process may use tile registers (AMX), and why not.
 *
 * Owns: what processor, operating system and kernel have to say about it. Must not know: kernels, configurations.
 * Linux (5.16 and later) gives a process the registers' 8 KiB only on request, since they enlarge what a signal's frame
 * holds; it refuses where some thread's signal stack is too small for that. */
#ifndef CEK_BACKENDS_CPU_AMX_H
#define CEK_BACKENDS_CPU_AMX_H

#include <stdint.h>

typedef enum { AMX_ABSENT, AMX_REFUSED, AMX_READY } amx_state;

/* What there is to know. */
typedef struct amx_machine {
    uint32_t features; /* edx of cpuid leaf 7 */
    uint64_t enabled;  /* XCR0; 0 where the operating system does not use it */
    int (*ask)(void);  /* asks the kernel for the registers: 0, or errno */
} amx_machine;

enum { AMX_REASON = 160 };

/* cek__amx_of - what follows of it; `reason` is "" but where AMX_REFUSED. Asks the kernel only where processor and
 * operating system have tiles. */
amx_state cek__amx_of(const amx_machine *machine, char reason[AMX_REASON]);

/* cek__amx - of this machine; the kernel is asked once per process, by whoever comes first. *reason as above, static.
 * Threads: any. */
amx_state cek__amx(const char **reason);

#endif
