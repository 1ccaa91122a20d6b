/* SPDX-License-Identifier: MIT
 *
 * fake_builtins.c - the library that NVRTC opens while it works, beside the fake one. That it is loaded is all that it
 * is for.
 */
#include "tests/cuda/fake.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* of functions that are found by name alone */

FAKE_API int getArchBuiltins(void)
{
    return 0;
}
