/* icd.c - an OpenCL driver that misbehaves as FAKE_ICD says: it ends the process when it is loaded ("load"), when it is
 * asked for its devices ("devices"), or there quietly ("exit"); otherwise it has none. FAKE_ICD_LOG=FILE gets a line
 * for each time that it is loaded. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#define EXPORT __attribute__((visibility("default")))

/* What LLVM says when there are two of it. */
static void end(void)
{
    fprintf(stderr, "CommandLine Error: Option 'fake' registered more than once!\nLLVM ERROR: inconsistency\n");
    abort();
}

static bool is(const char *what)
{
    const char *wanted = getenv("FAKE_ICD");
    return wanted && !strcmp(wanted, what);
}

static cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info what, size_t bytes, void *value,
                                        size_t *length)
{
    const char *text = what == CL_PLATFORM_EXTENSIONS ? "cl_khr_icd"
                       : what == CL_PLATFORM_VERSION  ? "OpenCL 1.2 fake"
                                                      : "FAKE";
    (void)platform;
    if (length)
        *length = strlen(text) + 1;
    if (value)
        snprintf(value, bytes, "%s", text);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL device_ids(cl_platform_id platform, cl_device_type type, cl_uint room, cl_device_id *devices,
                                     cl_uint *count)
{
    (void)platform, (void)type, (void)room, (void)devices;
    if (is("devices"))
        end();
    if (is("exit"))
        exit(0);
    if (count)
        *count = 0;
    return CL_DEVICE_NOT_FOUND;
}

/* The table that the loader calls through: the first entries of those of every driver. */
static cl_int CL_API_CALL platform_ids(cl_uint room, cl_platform_id *platforms, cl_uint *count);
static void (*table[256])(void) = { (void (*)(void))platform_ids, (void (*)(void))platform_info,
                                    (void (*)(void))device_ids };
static struct {
    void (**table)(void);
} platform = { table };

static cl_int CL_API_CALL platform_ids(cl_uint room, cl_platform_id *platforms, cl_uint *count)
{
    if (platforms && room)
        *platforms = (cl_platform_id)&platform;
    if (count)
        *count = 1;
    return CL_SUCCESS;
}

EXPORT void *clGetExtensionFunctionAddress(const char *name)
{
    void (*found)(void) = !strcmp(name, "clIcdGetPlatformIDsKHR") ? (void (*)(void))platform_ids
                          : !strcmp(name, "clGetPlatformInfo")    ? (void (*)(void))platform_info
                                                                  : NULL;
    return *(void **)&found;
}

EXPORT cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id of, cl_platform_info what, size_t bytes, void *value,
                                            size_t *length)
{
    return platform_info(of, what, bytes, value, length);
}

__attribute__((constructor)) static void loaded(void)
{
    const char *path = getenv("FAKE_ICD_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (path && (!file || fprintf(file, "loaded\n") < 0 || fclose(file)))
        abort();
    if (is("load"))
        end();
}
