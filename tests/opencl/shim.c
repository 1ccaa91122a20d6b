/* shim.c - see shim.h. */
#include "tests/opencl/shim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT shim_state shim;

static void *real(const char *name)
{
    static void *_Atomic loader;
    void *it = loader;
    if (!it)
        loader = it = dlopen("libOpenCL.so.1", RTLD_NOW);
    void *found = dlsym(it, name);
    if (!found)
        abort();
    return found;
}
#define REAL(name) ((__typeof__(&name))real(#name))

/* One call at a time, for drivers that cannot stand two. */
static bool serial;
static pthread_mutex_t serial_lock = PTHREAD_MUTEX_INITIALIZER;
static void serial_begin(void)
{
    if (serial)
        pthread_mutex_lock(&serial_lock);
}
static void serial_end(void)
{
    if (serial)
        pthread_mutex_unlock(&serial_lock);
}

static bool fails(shim_call *call)
{
    atomic_fetch_add(&call->calls, 1);
    return call->error && atomic_fetch_sub(&call->after, 1) <= 0;
}

/* --- from the environment --------------------------------------------------------------------- */

static const char *kernels_file;

static void fail_read(const char *text)
{
    static const struct {
        const char *name;
        shim_call *call;
    } all[] = {
#define SHIM_ROW(member) { #member, &shim.member },
        SHIM_CALLS(SHIM_ROW)
    };
    char name[16];
    int error, after;
    if (sscanf(text, "%15[^,],%d,%d", name, &error, &after) != 3)
        abort();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].name, name)) {
            all[i].call->error = error;
            all[i].call->after = after;
            return;
        }
    abort();
}

__attribute__((constructor)) static void environment_read(void)
{
    const char *text;
    int after;
    if ((text = getenv("SHIM_DEVICE")))
        shim.device = !strcmp(text, "gpu") ? CL_DEVICE_TYPE_GPU : CL_DEVICE_TYPE_CPU;
    if ((text = getenv("SHIM_GROUP")))
        shim.group = strtoul(text, NULL, 10);
    if ((text = getenv("SHIM_WIDTH")))
        shim.width = (cl_uint)strtoul(text, NULL, 10);
    shim.no_svm = (text = getenv("SHIM_SVM")) && !strcmp(text, "no");
    shim.platform = getenv("SHIM_PLATFORM");
    kernels_file = getenv("SHIM_KERNELS");
    serial = getenv("SHIM_SERIAL") != NULL;
    if ((text = getenv("SHIM_FAIL")))
        fail_read(text);
    if ((text = getenv("SHIM_EVENTS"))) {
        if (sscanf(text, "%d,%d", &shim.event_error, &after) != 2)
            abort();
        shim.event_error_after = after;
    }
}

/* --- what a device says ----------------------------------------------------------------------- */

EXPORT unsigned long getauxval(unsigned long type)
{
    static __typeof__(&getauxval) next;
    if (!next)
        next = (__typeof__(&getauxval))dlsym(RTLD_NEXT, "getauxval");
    return type == AT_SECURE && shim.secure ? 1 : next(type);
}

EXPORT cl_int clGetPlatformIDs(cl_uint room, cl_platform_id *platforms, cl_uint *count)
{
    atomic_fetch_add(&shim.probes, 1);
    return REAL(clGetPlatformIDs)(room, platforms, count);
}

EXPORT cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t bytes, void *value,
                                size_t *length)
{
    if (what != CL_PLATFORM_NAME || !shim.platform)
        return REAL(clGetPlatformInfo)(platform, what, bytes, value, length);
    if (length)
        *length = strlen(shim.platform) + 1;
    if (value)
        snprintf(value, bytes, "%s", shim.platform);
    return CL_SUCCESS;
}

EXPORT cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t bytes, void *value, size_t *length)
{
    cl_int error = REAL(clGetDeviceInfo)(device, what, bytes, value, length);
    if (what == CL_DEVICE_SVM_CAPABILITIES && shim.no_svm)
        return CL_INVALID_VALUE;
    if (error || !value)
        return error;
    if (what == CL_DEVICE_TYPE && shim.device)
        *(cl_device_type *)value = shim.device;
    if (what == CL_DEVICE_MAX_WORK_GROUP_SIZE && shim.group)
        *(size_t *)value = shim.group;
    if (what == CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT && shim.width)
        *(cl_uint *)value = shim.width;
    return error;
}

/* --- objects ---------------------------------------------------------------------------------- */

/* A handle, or an error in *error. */
#define MAKES(member, counter, type, name, parameters, arguments) \
    EXPORT type name parameters                                   \
    {                                                             \
        if (fails(&shim.member)) {                                \
            *error = shim.member.error;                           \
            return NULL;                                          \
        }                                                         \
        serial_begin();                                           \
        type made = REAL(name) arguments;                         \
        serial_end();                                             \
        atomic_fetch_add(&shim.counter, made != NULL);            \
        return made;                                              \
    }
/* The plugin retains none of these, so the first release is the last. */
#define RELEASES(counter, type, name)       \
    EXPORT cl_int name(type object)         \
    {                                       \
        atomic_fetch_sub(&shim.counter, 1); \
        serial_begin();                     \
        cl_int error = REAL(name)(object);  \
        serial_end();                       \
        return error;                       \
    }

MAKES(context, contexts, cl_context, clCreateContext,
      (const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
       void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *error),
      (properties, count, devices, notify, user, error))
MAKES(queue, queues, cl_command_queue, clCreateCommandQueue,
      (cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int *error),
      (context, device, properties, error))
MAKES(buffer, buffers, cl_mem, clCreateBuffer,
      (cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *error),
      (context, flags, bytes, host, error))
MAKES(source, programs, cl_program, clCreateProgramWithSource,
      (cl_context context, cl_uint count, const char **texts, const size_t *lengths, cl_int *error),
      (context, shim.text ? 1 : count, shim.text ? &shim.text : texts, lengths, error))
MAKES(binary, programs, cl_program, clCreateProgramWithBinary,
      (cl_context context, cl_uint count, const cl_device_id *devices, const size_t *lengths,
       const unsigned char **binaries, cl_int *status, cl_int *error),
      (context, count, devices, lengths, binaries, status, error))
MAKES(kernel, kernels, cl_kernel, clCreateKernel, (cl_program program, const char *name, cl_int *error),
      (program, name, error))
RELEASES(contexts, cl_context, clReleaseContext)
RELEASES(queues, cl_command_queue, clReleaseCommandQueue)
RELEASES(buffers, cl_mem, clReleaseMemObject)
RELEASES(programs, cl_program, clReleaseProgram)
RELEASES(kernels, cl_kernel, clReleaseKernel)

EXPORT void *clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint alignment)
{
    void *made = fails(&shim.svm) ? NULL : REAL(clSVMAlloc)(context, flags, bytes, alignment);
    atomic_fetch_add(&shim.blocks, made != NULL);
    return made;
}

EXPORT void clSVMFree(cl_context context, void *block)
{
    atomic_fetch_sub(&shim.blocks, 1);
    REAL(clSVMFree)(context, block);
}

/* --- calls that return their error ------------------------------------------------------------ */

#define ANSWERS(member, name, parameters, arguments) \
    EXPORT cl_int name parameters                    \
    {                                                \
        if (fails(&shim.member))                     \
            return shim.member.error;                \
        serial_begin();                              \
        cl_int answer = REAL(name) arguments;        \
        serial_end();                                \
        return answer;                               \
    }

ANSWERS(build, clBuildProgram,
        (cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
         void(CL_CALLBACK *notify)(cl_program, void *), void *user),
        (program, count, devices, options, notify, user))
ANSWERS(flush, clFlush, (cl_command_queue queue), (queue))
ANSWERS(profiling, clGetEventProfilingInfo,
        (cl_event event, cl_profiling_info what, size_t bytes, void *value, size_t *length),
        (event, what, bytes, value, length))

EXPORT cl_int clFinish(cl_command_queue queue)
{
    atomic_fetch_add(&shim.finishes, 1);
    return REAL(clFinish)(queue);
}

EXPORT cl_int clWaitForEvents(cl_uint count, const cl_event *events)
{
    atomic_fetch_add(&shim.waits, 1);
    return REAL(clWaitForEvents)(count, events);
}

static void blocking_note(cl_bool blocking)
{
    atomic_fetch_add(&shim.waits, blocking ? 1 : 0);
}

/* --- commands --------------------------------------------------------------------------------- */

/* Whether the numbers that were set last on this thread were all zero: a launch that warms up. */
static _Thread_local bool idle;

EXPORT cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
    static const unsigned char zeros[1024];
    if (fails(&shim.argument))
        return shim.argument.error;
    if (value && bytes > sizeof(cl_mem))
        idle = bytes <= sizeof zeros && !memcmp(value, zeros, bytes);
    return REAL(clSetKernelArg)(kernel, index, bytes, value);
}

static void kernel_note(cl_kernel kernel)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char seen[128][64];
    static int count;
    char name[64] = "";
    REAL(clGetKernelInfo)(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < count && strcmp(seen[i], name))
        i++;
    if (i == count && count < 128) {
        strcpy(seen[count++], name);
        FILE *file = fopen(kernels_file, "a");
        if (!file || fprintf(file, "%s\n", name) < 0 || fclose(file))
            abort();
    }
    pthread_mutex_unlock(&lock);
}

EXPORT cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem to, cl_bool blocking, size_t offset, size_t bytes,
                                   const void *from, cl_uint waits, const cl_event *list, cl_event *event)
{
    if (fails(&shim.write))
        return shim.write.error;
    blocking_note(blocking);
    if (bytes == shim.watched)
        atomic_fetch_add(&shim.watched_writes, 1);
    if (shim.running)
        shim.unread = from;
    serial_begin();
    cl_int error = REAL(clEnqueueWriteBuffer)(queue, to, blocking, offset, bytes, from, waits, list, event);
    serial_end();
    if (!error && event)
        shim.latest = *event;
    return error;
}

#define ENQUEUES(member, name, parameters, arguments) \
    EXPORT cl_int name parameters                     \
    {                                                 \
        if (fails(&shim.member))                      \
            return shim.member.error;                 \
        serial_begin();                               \
        cl_int error = REAL(name) arguments;          \
        serial_end();                                 \
        if (!error && event)                          \
            shim.latest = *event;                     \
        return error;                                 \
    }

EXPORT cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                                     const size_t *global, const size_t *local, cl_uint waits, const cl_event *list,
                                     cl_event *event)
{
    if (fails(&shim.launch))
        return shim.launch.error;
    serial_begin();
    cl_int error = REAL(clEnqueueNDRangeKernel)(queue, kernel, dims, offset, global, local, waits, list, event);
    serial_end();
    if (!error && kernels_file && !idle)
        kernel_note(kernel);
    if (!error && event)
        shim.latest = *event;
    return error;
}
EXPORT cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem from, cl_bool blocking, size_t offset, size_t bytes,
                                  void *to, cl_uint waits, const cl_event *list, cl_event *event)
{
    if (fails(&shim.read))
        return shim.read.error;
    blocking_note(blocking);
    serial_begin();
    cl_int error = REAL(clEnqueueReadBuffer)(queue, from, blocking, offset, bytes, to, waits, list, event);
    serial_end();
    if (!error && event)
        shim.latest = *event;
    return error;
}
ENQUEUES(copy, clEnqueueCopyBuffer,
         (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t bytes,
          cl_uint waits, const cl_event *list, cl_event *event),
         (queue, from, to, from_offset, to_offset, bytes, waits, list, event))
ENQUEUES(fill, clEnqueueFillBuffer,
         (cl_command_queue queue, cl_mem to, const void *pattern, size_t pattern_bytes, size_t offset, size_t bytes,
          cl_uint waits, const cl_event *list, cl_event *event),
         (queue, to, pattern, pattern_bytes, offset, bytes, waits, list, event))
ENQUEUES(unmap, clEnqueueUnmapMemObject,
         (cl_command_queue queue, cl_mem mem, void *mapped, cl_uint waits, const cl_event *list, cl_event *event),
         (queue, mem, mapped, waits, list, event))
ENQUEUES(marker, clEnqueueMarkerWithWaitList,
         (cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event), (queue, waits, list, event))
ENQUEUES(barrier, clEnqueueBarrierWithWaitList,
         (cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event), (queue, waits, list, event))

EXPORT void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking, cl_map_flags flags, size_t offset,
                                size_t bytes, cl_uint waits, const cl_event *list, cl_event *event, cl_int *error)
{
    if (fails(&shim.map)) {
        *error = shim.map.error;
        return NULL;
    }
    blocking_note(blocking);
    return REAL(clEnqueueMapBuffer)(queue, mem, blocking, flags, offset, bytes, waits, list, event, error);
}

EXPORT cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t bytes, void *value, size_t *length)
{
    if (fails(&shim.event_info))
        return shim.event_info.error;
    serial_begin();
    cl_int error = REAL(clGetEventInfo)(event, what, bytes, value, length), *status = value;
    serial_end();
    if (error || what != CL_EVENT_COMMAND_EXECUTION_STATUS)
        return error;
    if (shim.victim == event) /* no sooner than the command has left the memory that will be freed now */
        *status = *status <= CL_COMPLETE ? shim.victim_error : CL_RUNNING;
    else if (shim.victim)
        *status = shim.running ? CL_RUNNING : *status;
    else if (shim.running)
        *status = CL_RUNNING;
    else if (shim.event_error && *status <= CL_COMPLETE && atomic_fetch_sub(&shim.event_error_after, 1) <= 0)
        *status = shim.event_error;
    return error;
}
