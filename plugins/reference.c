/* reference.c - the door of the reference plugin. Answers no host until its backend stands. */

#include <stddef.h>
#include <stdint.h>

const void *cek_plugin_query(uint32_t host_abi);

__attribute__((visibility("default"))) const void *cek_plugin_query(uint32_t host_abi)
{
    (void)host_abi;
    return NULL;
}
