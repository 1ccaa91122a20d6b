/* shim_inside.h - what the files of the shim share.
 *
 *   shim.c         the state, the environment, objects that are made and released
 *   shim_limits.c  what devices say of themselves, and what they hold programs to
 *   shim_queue.c   commands: in which order they were enqueued, flushed, seen to end; the context that died
 *   shim_order.c   which of them were waited for, and not only seen to have ended
 *   shim_count.c   what was called how often
 */
#ifndef CEK_TESTS_OPENCL_SHIM_INSIDE_H
#define CEK_TESTS_OPENCL_SHIM_INSIDE_H

#include <stdint.h>

#include "tests/opencl/shim.h"

#define EXPORT __attribute__((visibility("default")))

/* The loader's function of that name. */
void *shim_real(const char *name);
#define REAL(name) ((__typeof__(&name))shim_real(#name))

/* One call at a time, where that was asked for. */
void shim_serial_begin(void);
void shim_serial_end(void);

/* shim_refuse - counts a call on a context (NULL: on none yet): the error that it is to give, or CL_SUCCESS. */
cl_int shim_refuse(shim_call *call, cl_context context);

/* --- shim_limits.c ---------------------------------------------------------------------------- */

/* Whether memory of a context, arguments of a kernel or a launch is within what the device allows; else the error. */
cl_int shim_memory_check(cl_context context, size_t bytes);
void shim_memory_freed(size_t bytes);
/* Host memory that the driver gave, from when it is mapped until it is unmapped: whether bytes lie in it. */
void shim_mapped(cl_mem memory, const void *at, size_t bytes);
void shim_unmapped(const void *at);
bool shim_is_pinned(const void *at, size_t bytes);
cl_int shim_argument_check(cl_kernel kernel, cl_uint index, size_t bytes, const void *value);
/* Whether the numbers that this kernel will be launched with are all zero: the launch warms up. */
bool shim_kernel_idle(cl_kernel kernel);
void shim_kernel_released(cl_kernel kernel);
cl_int shim_launch_check(cl_uint dims, const size_t *local);
cl_int shim_build_check(const char *options);

/* --- shim_count.c ----------------------------------------------------------------------------- */

/* A line of counts. */
void shim_counts_write(void);

/* --- shim_queue.c ----------------------------------------------------------------------------- */

void shim_queue_made(cl_command_queue queue, cl_command_queue_properties properties);
/* Releasing a queue flushes it. */
void shim_queue_flushed(cl_command_queue queue);
cl_context shim_queue_context(cl_command_queue queue);

/* --- shim_order.c ----------------------------------------------------------------------------- */

/* `number` counts commands over all queues: of the last one when a queue was made; of one that a poll told to have
 * ended; of one that was waited for, and with it whatever is before it in its queue. */
void shim_order_made(cl_command_queue queue, uint64_t number);
void shim_order_told(cl_command_queue queue, uint64_t number);
void shim_order_waited(cl_command_queue queue, uint64_t number);
/* Counts a command that may build on what was only told. */
void shim_order_enqueued(cl_command_queue queue);
void shim_order_released(cl_command_queue queue);

#endif
