/* shim.c - see shim.h: its state, what the environment says, objects that are made and released. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#include "tests/opencl/shim_inside.h"

EXPORT shim_state shim;

void *shim_real(const char *name)
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

/* For drivers that cannot stand two calls at a time. */
static bool serial;
static pthread_mutex_t serial_lock = PTHREAD_MUTEX_INITIALIZER;

void shim_serial_begin(void)
{
    if (serial)
        pthread_mutex_lock(&serial_lock);
}

void shim_serial_end(void)
{
    if (serial)
        pthread_mutex_unlock(&serial_lock);
}

cl_int shim_refuse(shim_call *call, cl_context context)
{
    atomic_fetch_add(&call->calls, 1);
    if (context && context == shim.dead) {
        atomic_fetch_add(&shim.dead_calls, 1);
        return CL_OUT_OF_RESOURCES; /* what NVIDIA's driver says then, and so does a healthy one that is full */
    }
    return call->error && atomic_fetch_sub(&call->after, 1) <= 0 ? call->error : CL_SUCCESS;
}

/* --- from the environment --------------------------------------------------------------------- */

EXPORT void shim_be_strict(void)
{
    shim.device = CL_DEVICE_TYPE_GPU;
    shim.no_svm = shim.quarter = shim.queued = shim.poisons = shim.slow_profiling = true;
    shim.kernel_group = 64;
    shim.parameters = 1024;
    shim.queue_ms = 5;
}

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

static void error_read(const char *name, cl_int *error, atomic_int *after)
{
    const char *text = getenv(name);
    int count;
    if (!text)
        return;
    if (sscanf(text, "%d,%d", error, &count) != 2)
        abort();
    *after = count;
}

/* Whether a variable is set, and to this. Another value is a mistake. */
static bool says(const char *name, const char *value)
{
    const char *text = getenv(name);
    if (text && strcmp(text, value))
        abort();
    return text != NULL;
}

static unsigned long number_read(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);
    return text ? strtoul(text, NULL, 0) : otherwise;
}

__attribute__((constructor)) static void environment_read(void)
{
    const char *text;
    if (says("SHIM_STRICT", "yes"))
        shim_be_strict();
    if ((text = getenv("SHIM_DEVICE")))
        shim.device = !strcmp(text, "gpu") ? CL_DEVICE_TYPE_GPU : CL_DEVICE_TYPE_CPU;
    shim.group = number_read("SHIM_GROUP", shim.group);
    shim.width = (cl_uint)number_read("SHIM_WIDTH", shim.width);
    shim.vendor = (cl_uint)number_read("SHIM_VENDOR", shim.vendor);
    shim.kernel_group = number_read("SHIM_KERNEL_GROUP", shim.kernel_group);
    shim.parameters = number_read("SHIM_PARAMETERS", shim.parameters);
    shim.memory = number_read("SHIM_MEMORY", shim.memory);
    shim.step = number_read("SHIM_STEP", shim.step);
    shim.queue_ms = (int)number_read("SHIM_QUEUE_MS", (unsigned long)shim.queue_ms);
    shim.no_svm |= says("SHIM_SVM", "no");
    shim.unsaid |= says("SHIM_UNSAID", "yes");
    shim.inexact |= says("SHIM_DIVISION", "inexact");
    shim.quarter |= says("SHIM_QUARTER", "yes");
    shim.old |= says("SHIM_VERSION", "OLD");
    shim.no_compiler |= says("SHIM_COMPILER", "no");
    shim.unavailable |= says("SHIM_AVAILABLE", "no");
    shim.queued |= says("SHIM_QUEUED", "yes");
    shim.poisons |= says("SHIM_POISON", "yes");
    shim.slow_profiling |= says("SHIM_PROFILING", "slow");
    shim.platform = getenv("SHIM_PLATFORM");
    serial = getenv("SHIM_SERIAL") != NULL;
    if ((text = getenv("SHIM_FAIL")))
        fail_read(text);
    error_read("SHIM_EVENTS", &shim.event_error, &shim.event_error_after);
    error_read("SHIM_FAULT", &shim.fault, &shim.fault_after);
}

EXPORT unsigned long getauxval(unsigned long type)
{
    static __typeof__(&getauxval) next;
    if (!next)
        next = (__typeof__(&getauxval))dlsym(RTLD_NEXT, "getauxval");
    return type == AT_SECURE && shim.secure ? 1 : next(type);
}

/* --- objects ---------------------------------------------------------------------------------- */

static cl_context program_context(cl_program program)
{
    cl_context context = NULL;
    REAL(clGetProgramInfo)(program, CL_PROGRAM_CONTEXT, sizeof context, &context, NULL);
    return context;
}

/* A handle, or an error in *error; `of` is the context that it is made in. */
#define MAKES(member, counter, type, name, of, parameters, arguments) \
    EXPORT type name parameters                                       \
    {                                                                 \
        cl_int refused = shim_refuse(&shim.member, of);               \
        if (refused) {                                                \
            *error = refused;                                         \
            return NULL;                                              \
        }                                                             \
        shim_serial_begin();                                          \
        type made = REAL(name) arguments;                             \
        shim_serial_end();                                            \
        atomic_fetch_add(&shim.counter, made != NULL);                \
        return made;                                                  \
    }
/* The plugin retains none of these, so the first release is the last. */
#define RELEASES(counter, type, name)       \
    EXPORT cl_int name(type object)         \
    {                                       \
        atomic_fetch_sub(&shim.counter, 1); \
        shim_serial_begin();                \
        cl_int error = REAL(name)(object);  \
        shim_serial_end();                  \
        return error;                       \
    }

EXPORT cl_context clCreateContext(const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
                                  void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user,
                                  cl_int *error)
{
    cl_int refused = shim_refuse(&shim.context, NULL);
    if (!refused && shim.unavailable)
        refused = CL_DEVICE_NOT_AVAILABLE;
    if (refused) {
        *error = refused;
        return NULL;
    }
    shim_serial_begin();
    cl_context made = REAL(clCreateContext)(properties, count, devices, notify, user, error);
    shim_serial_end();
    atomic_fetch_add(&shim.contexts, made != NULL);
    if (made && made == shim.dead) /* another one, where the dead one was */
        shim.dead = NULL;
    return made;
}

EXPORT cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                             cl_command_queue_properties properties, cl_int *error)
{
    cl_int refused = shim_refuse(&shim.queue, context);
    if (refused) {
        *error = refused;
        return NULL;
    }
    nanosleep(&(struct timespec){ 0, shim.queue_ms * 1000000L }, NULL);
    shim_serial_begin();
    cl_command_queue made = REAL(clCreateCommandQueue)(context, device, properties, error);
    shim_serial_end();
    atomic_fetch_add(&shim.queues, made != NULL);
    if (made)
        shim_queue_made(made, properties);
    return made;
}

EXPORT cl_int clReleaseCommandQueue(cl_command_queue queue)
{
    atomic_fetch_sub(&shim.queues, 1);
    shim_serial_begin();
    shim_queue_flushed(queue);
    shim_order_released(queue);
    cl_int error = REAL(clReleaseCommandQueue)(queue);
    shim_serial_end();
    return error;
}

EXPORT cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *error)
{
    cl_int refused = shim_refuse(&shim.buffer, context);
    if (!refused)
        refused = shim_memory_check(context, bytes);
    if (refused) {
        *error = refused;
        return NULL;
    }
    shim_serial_begin();
    cl_mem made = REAL(clCreateBuffer)(context, flags, bytes, host, error);
    shim_serial_end();
    atomic_fetch_add(&shim.buffers, made != NULL);
    if (!made)
        shim_memory_freed(bytes);
    return made;
}

EXPORT cl_int clReleaseMemObject(cl_mem memory)
{
    size_t bytes = 0;
    cl_mem parent = NULL;
    REAL(clGetMemObjectInfo)(memory, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL);
    if (!parent) { /* a part of another has no memory of its own, nor was it counted */
        REAL(clGetMemObjectInfo)(memory, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
        shim_memory_freed(bytes);
        atomic_fetch_sub(&shim.buffers, 1);
    }
    shim_serial_begin();
    cl_int error = REAL(clReleaseMemObject)(memory);
    shim_serial_end();
    return error;
}

EXPORT cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *error)
{
    cl_int refused = shim_refuse(&shim.kernel, program_context(program));
    if (refused) {
        *error = refused;
        return NULL;
    }
    shim_serial_begin();
    cl_kernel made = REAL(clCreateKernel)(program, name, error);
    shim_serial_end();
    atomic_fetch_add(&shim.kernels, made != NULL);
    return made;
}

EXPORT cl_int clReleaseKernel(cl_kernel kernel)
{
    atomic_fetch_sub(&shim.kernels, 1);
    shim_serial_begin();
    shim_kernel_released(kernel); /* before another gets its address */
    cl_int error = REAL(clReleaseKernel)(kernel);
    shim_serial_end();
    return error;
}

MAKES(source, programs, cl_program, clCreateProgramWithSource, context,
      (cl_context context, cl_uint count, const char **texts, const size_t *lengths, cl_int *error),
      (context, shim.text ? 1 : count, shim.text ? &shim.text : texts, lengths, error))
MAKES(binary, programs, cl_program, clCreateProgramWithBinary, context,
      (cl_context context, cl_uint count, const cl_device_id *devices, const size_t *lengths,
       const unsigned char **binaries, cl_int *status, cl_int *error),
      (context, count, devices, lengths, binaries, status, error))
RELEASES(contexts, cl_context, clReleaseContext)
RELEASES(programs, cl_program, clReleaseProgram)

EXPORT void *clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint alignment)
{
    void *made = shim_refuse(&shim.svm, context) ? NULL : REAL(clSVMAlloc)(context, flags, bytes, alignment);
    atomic_fetch_add(&shim.blocks, made != NULL);
    return made;
}

EXPORT void clSVMFree(cl_context context, void *block)
{
    atomic_fetch_sub(&shim.blocks, 1);
    REAL(clSVMFree)(context, block);
}

EXPORT cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                             void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    cl_int error = shim_refuse(&shim.build, program_context(program));
    if (!error)
        error = shim_build_check(options);
    if (error)
        return error;
    shim_serial_begin();
    error = REAL(clBuildProgram)(program, count, devices, options, notify, user);
    shim_serial_end();
    return error;
}
