/* nvml_declarations.c - compiled, never run: backends/cuda/nvml.h against NVIDIA's nvml.h. */
#include <stdbool.h>

#include <nvml.h>

#include "backends/cuda/nvml.h"

#ifdef SPOIL /* the test of this test */
#define SPOILED +1
#else
#define SPOILED
#endif

#define NUMBER(NAME, VALUE) _Static_assert((long)NAME == VALUE SPOILED, #NAME);
CEK__NVML_NUMBERS(NUMBER)

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* they stay in the library */
#define FUNCTION(NAME, NEEDED, PARAMETERS)               \
    typedef nvmlReturn_t(*own_##NAME##_type) PARAMETERS; \
    _Static_assert(__builtin_types_compatible_p(own_##NAME##_type, __typeof__(&nvml##NAME)), #NAME);
CEK__NVML_FUNCTIONS(FUNCTION)
