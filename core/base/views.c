/* views.c - see views.h. */
#include "core/base/views.h"

#include <string.h>

/* Of "opencl:0" as of "opencl". */
static bool is_of_plugin(cek__view v, const char *name, size_t length)
{
    return strcspn(v.device, ":") == length && memcmp(v.device, name, length) == 0;
}

bool cek__views_of_one(cek__view a, cek__view b)
{
    return a.processor[0] != '\0' && strcmp(a.processor, b.processor) == 0 &&
           !is_of_plugin(a, b.device, strcspn(b.device, ":"));
}

int cek__view_fitness(cek__view v)
{
    if (is_of_plugin(v, "opencl", 6))
        return 0;
    return is_of_plugin(v, "cuda", 4) || is_of_plugin(v, "cpu", 3) ? 2 : 1;
}
