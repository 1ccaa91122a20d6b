/* shim_count.c - what was called how often, and the lines about it: at the end of a process, and before each step. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/opencl/shim_inside.h"

EXPORT shim_counts shim_count(void)
{
    return (shim_counts){
        .commands = shim.launch.calls + shim.write.calls + shim.read.calls + shim.copy.calls + shim.fill.calls +
                    shim.map.calls + shim.unmap.calls + shim.marker.calls + shim.barrier.calls,
        .launches = shim.launch.calls,
        .arguments = shim.argument.calls,
        .flushes = shim.flush.calls,
        .finishes = shim.finishes,
        .waits = shim.waits,
        .queues = shim.queue.calls,
        .buffers = shim.buffer.calls,
        .polls = shim.event_info.calls,
        .pageable = shim.pageable,
    };
}

__attribute__((destructor)) void shim_counts_write(void)
{
    const char *path = getenv("SHIM_COUNTS");
    if (!path || !shim.context.calls) /* compilers that a driver starts inherit all of this, and call nothing */
        return;
    const shim_counts c = shim_count();
    FILE *file = fopen(path, "a");
    if (!file ||
        fprintf(file,
                "commands %d launches %d arguments %d flushes %d finishes %d waits %d queues %d buffers %d polls "
                "%d dead %d unflushed %d unordered %d\n",
                c.commands, c.launches, c.arguments, c.flushes, c.finishes, c.waits, c.queues, c.buffers, c.polls,
                (int)shim.dead_calls, (int)shim.unflushed, (int)shim.unordered) < 0 ||
        fclose(file))
        abort();
}
