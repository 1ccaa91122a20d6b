/* amx.c - what follows of a machine for tile registers; see amx.h.
 *
 * Must not know: how a machine is asked (amx_here.c). */
#include "backends/cpu/amx.h"

#include <stdio.h>
#include <string.h>

enum {
    FEATURES = 1 << 22 | 1 << 24, /* AMX-BF16, AMX-TILE */
    STATES = 3 << 17,             /* the tiles' configuration, their data */
};

amx_state cek__amx_of(const amx_machine *machine, char reason[AMX_REASON])
{
    int error;

    reason[0] = '\0';
    if ((machine->features & FEATURES) != FEATURES)
        return AMX_ABSENT;
    if ((machine->enabled & STATES) != STATES) {
        snprintf(reason, AMX_REASON, "the operating system does not keep tile registers (XCR0 is %#llx)",
                 (unsigned long long)machine->enabled);
        return AMX_REFUSED;
    }
    error = machine->ask();
    if (error == 0)
        return AMX_READY;
    snprintf(reason, AMX_REASON, "the kernel gives this process no tile registers (ARCH_REQ_XCOMP_PERM: %s)",
             strerror(error));
    return AMX_REFUSED;
}
