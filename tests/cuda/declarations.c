/* declarations.c - compiled, never run: backends/cuda/driver.h against cuda.h and cudaTypedefs.h. */
#include <cuda.h>
#include <cudaTypedefs.h>
#if CUDA_VERSION < 13000 /* not in the headers of some 12.x */
#define CUDA_ERROR_CONTAINED 226
#endif

#include "backends/cuda/driver.h"

#ifdef SPOIL /* the test of this test */
#define SPOILED +1
#else
#define SPOILED
#endif

#define NUMBER(NAME, VALUE) _Static_assert((long)NAME == VALUE SPOILED, #NAME);
CEK__CUDA_NUMBERS(NUMBER)

/* The type that NVIDIA gives to this version of a function. */
#define FUNCTION(NAME, VERSION, PARAMETERS)          \
    typedef CUresult(*own_##NAME##_type) PARAMETERS; \
    _Static_assert(__builtin_types_compatible_p(own_##NAME##_type, PFN_##NAME##_v##VERSION), #NAME);
CEK__CUDA_FUNCTIONS(FUNCTION)
