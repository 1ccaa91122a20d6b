/* version.c - which release of libcekernels-nn this is. */

#include "config.h"

const char *cek_nn_version(void);

__attribute__((visibility("default"))) const char *cek_nn_version(void)
{
    return PACKAGE_VERSION;
}
