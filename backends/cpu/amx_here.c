/* amx_here.c - asks this machine, once per process, for tile registers; see amx.h.
 *
 * Owns: cpuid, XCR0, the request to the kernel, its answer. Must not know: what follows of it (amx.c). */
#include "backends/cpu/amx.h"

#include <pthread.h>
#include <stddef.h>

#if defined __x86_64__ && defined __linux__
#include <cpuid.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static int kernel_ask(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 }; /* in asm/prctl.h since Linux 5.16 only */

    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 ? 0 : errno;
}

static void machine_read(amx_machine *out)
{
    unsigned a, b, c, d;

    *out = (amx_machine){ .ask = kernel_ask };
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
        out->features = d;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE)) {
        __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
        out->enabled = (uint64_t)d << 32 | a;
    }
}
#else
static void machine_read(amx_machine *out)
{
    *out = (amx_machine){ 0 };
}
#endif

static pthread_once_t asked = PTHREAD_ONCE_INIT;
static amx_state state_here;
static char reason_here[AMX_REASON];

static void here_read(void)
{
    amx_machine machine;

    machine_read(&machine);
    state_here = cek__amx_of(&machine, reason_here);
}

amx_state cek__amx(const char **reason)
{
    pthread_once(&asked, here_read);
    *reason = reason_here;
    return state_here;
}
