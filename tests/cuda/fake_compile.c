/* SPDX-License-Identifier: MIT
 *
 * fake_compile.c - the host's C++ compiler as a compiler of CUDA: what the dialect of kernels/gpu
 * uses of the language, no more.
 *
 * The preprocessed text gets the two conversions of half precision in place of their PTX, and
 * behind it a table of its kernels.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/fake.h"

/* What is not aligned as its type wants ends a context there, and the program here: by a signal. */
#define ALIGNED "-fsanitize=alignment -fsanitize-undefined-trap-on-error"

static const char prelude[] =
    "#include <math.h>\n"
    "#include <stdint.h>\n"
    "#include <string.h>\n"
    "#define __CUDACC__ 1\n"
    "#define __device__\n"
    "#define __forceinline__ inline\n"
    "#define __launch_bounds__(...)\n"
    "#define __shared__ static\n"
    "struct fake_uint3 { unsigned x, y, z; };\n"
    "extern \"C\" { __attribute__((visibility(\"default\"))) fake_uint3 threadIdx, blockIdx, blockDim, gridDim;\n"
    "               __attribute__((visibility(\"default\"))) void (*fake_barrier)(void); }\n"
    "#define __syncthreads() fake_barrier()\n"
    "#define __builtin_assume(x) ((void)0)\n"
    /* 32 bits that say where something of a group is, as on a device. */
    "static char fake_near;\n"
    "#define __cvta_generic_to_shared(p) ((const char *)(p) - &fake_near)\n"
    "#define __cvta_shared_to_generic(near) ((void *)(&fake_near + (int)(near)))\n"
    /* Words that are moved at once: where they are, they lie as a device wants them. */
    "template <class T> static T &fake_aligned(T *at)\n"
    "{\n"
    "    uintptr_t address = (uintptr_t)at;\n"
    "    __asm__(\"\" : \"+r\"(address)); /* or the compiler takes it for granted */\n"
    "    if (address % sizeof(T)) __builtin_trap();\n"
    "    return *at;\n"
    "}\n"
    "struct alignas(8) uint2 { unsigned x, y; uint2() {}\n"
    "    uint2(const uint2 &o) { *this = o; }\n"
    "    void operator=(const uint2 &o) { memcpy(&fake_aligned(this), &fake_aligned(&o), 8); } };\n"
    "struct alignas(16) uint4 { unsigned x, y, z, w; uint4() {}\n"
    "    uint4(const uint4 &o) { *this = o; }\n"
    "    void operator=(const uint4 &o) { memcpy(&fake_aligned(this), &fake_aligned(&o), 16); } };\n"
    "static inline unsigned __float_as_uint(float x) { unsigned u; memcpy(&u, &x, 4); return u; }\n"
    "static inline float __uint_as_float(unsigned u) { float x; memcpy(&x, &u, 4); return x; }\n"
    "static inline float __int_as_float(int u) { float x; memcpy(&x, &u, 4); return x; }\n"
    "static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }\n"
    "static inline float fake_to_f32(unsigned short h)\n"
    "{\n"
    "    unsigned sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31, rest = h & 0x3ffu;\n"
    "    if (exponent == 31) return __uint_as_float(sign | 0x7f800000u | rest << 13);\n"
    "    if (exponent) return __uint_as_float(sign | (exponent + 112) << 23 | rest << 13);\n"
    "    return (sign ? -1.0f : 1.0f) * (float)rest * 0x1p-24f;\n"
    "}\n"
    "static inline unsigned short fake_to_f16(float x)\n"
    "{\n"
    "    unsigned u = __float_as_uint(x), sign = u >> 16 & 0x8000u, mag = u & 0x7fffffffu;\n"
    "    if (mag > 0x7f800000u) return (unsigned short)(sign | 0x7fffu);\n"
    "    if (mag >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);\n"
    "    if (mag < 0x38800000u) return (unsigned short)(sign | (unsigned)rintf(__uint_as_float(mag) * 0x1p24f));\n"
    "    mag += 0xfffu + (mag >> 13 & 1u);\n"
    "    return (unsigned short)(sign | ((mag >> 13) - (112u << 10)));\n"
    "}\n";

static const char table[] =
    "\nnamespace fake {\n"
    "template <class F> struct signature;\n"
    "template <unsigned... I> struct numbers {};\n"
    "template <unsigned N, unsigned... I> struct count : count<N - 1, N - 1, I...> {};\n"
    "template <unsigned... I> struct count<0, I...> { typedef numbers<I...> type; };\n"
    "template <class T> struct is_pointer { static const bool value = false; };\n"
    "template <class T> struct is_pointer<T *> { static const bool value = true; };\n"
    "template <class... A> struct signature<void(A...)> {\n"
    "    static const uint64_t sizes[];\n"
    "    static const unsigned char pointers[];\n"
    "    template <void (*f)(A...), unsigned... I> static void call(void **p, numbers<I...>) { f(*(A *)p[I]...); }\n"
    "    template <void (*f)(A...)> static void item(void **p) { call<f>(p, typename count<sizeof...(A)>::type()); }\n"
    "    static unsigned number() { return sizeof...(A); }\n"
    "};\n"
    "template <class... A> const uint64_t signature<void(A...)>::sizes[] = { sizeof(A)... };\n"
    "template <class... A> const unsigned char signature<void(A...)>::pointers[] = { is_pointer<A>::value... };\n"
    "struct kernel { const char *name; unsigned number; const uint64_t *sizes; const unsigned char *pointers; void "
    "(*item)(void **); };\n"
    "}\n"
    "#define FAKE_KERNEL(K) { #K, fake::signature<decltype(K)>::number(), fake::signature<decltype(K)>::sizes, \\\n"
    "                        fake::signature<decltype(K)>::pointers, &fake::signature<decltype(K)>::item<K> },\n";

void fake_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("fake CUDA: ", stderr);
    vfprintf(stderr, format, args);
    fputs("\n", stderr);
    va_end(args);
    abort();
}

static char *file_read(const char *path, uint64_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *data = NULL;
    size_t used = 0, got;
    if (!file)
        return NULL;
    do {
        data = realloc(data, used + 65537);
        got = fread(data + used, 1, 65536, file);
        used += got;
    } while (got);
    fclose(file);
    data[used] = 0;
    if (bytes)
        *bytes = used;
    return data;
}

/* asm("cvt.f32.f16 %0, %1;" : "=f"(OUT) : "h"(IN)); becomes (OUT) = fake_to_f32(IN); likewise the other way. */
static const char *conversion(const char *at, FILE *to)
{
    bool widen = !strncmp(at, "asm(\"cvt.f32.f16 ", 17);
    const char *out = strchr(strchr(at, ':'), '('), *end = out;
    int depth = 0;
    do
        depth += (*end == '(') - (*end == ')');
    while (*end++ && depth);
    const char *in = strchr(strchr(end, ':'), '('), *last = in;
    do
        depth += (*last == '(') - (*last == ')');
    while (*last++ && depth);
    fprintf(to, "%.*s = %s%.*s", (int)(end - out), out, widen ? "fake_to_f32" : "fake_to_f16", (int)(last - in), in);
    return last + 1; /* the closing bracket of asm( */
}

/* The text as the host compiles it, then the table. */
static void text_write(const char *text, FILE *to)
{
    char names[512][96];
    unsigned count = 0;
    for (const char *at = text; *at;) {
        if (!strncmp(at, "asm(\"cvt.", 9)) {
            at = conversion(at, to);
        } else if (!strncmp(at, "__global__ void ", 16)) {
            size_t length = strcspn(at + 16, "( ");
            if (count == 512 || length >= sizeof *names)
                fake_die("too many kernels in one source, or too long a name");
            snprintf(names[count++], sizeof *names, "%.*s", (int)length, at + 16);
            at += 11;
        } else {
            fputc(*at++, to);
        }
    }
    fputs(table, to);
    /* Kernels are extern "C" inside namespaces: named there. */
    for (unsigned i = 0; i < count; i++) {
        const char *mark = names[i][0] == 'v' ? strchr(names[i], '_') : NULL;
        if (mark && isdigit((unsigned char)names[i][1]))
            fprintf(to, "using %.*s::%s;\n", (int)(mark - names[i]), names[i], names[i]);
    }
    fputs("extern \"C\" __attribute__((visibility(\"default\"))) const fake::kernel fake_kernels[] = {\n", to);
    for (unsigned i = 0; i < count; i++)
        fprintf(to, "    FAKE_KERNEL(%s)\n", names[i]);
    fputs("    { 0, 0, 0, 0, 0 },\n};\n", to);
}

static bool shell(const char *log, const char *format, ...)
{
    char command[4096];
    va_list args;
    va_start(args, format);
    int used = vsnprintf(command, sizeof command, format, args);
    va_end(args);
    snprintf(command + used, sizeof command - (size_t)used, " >>%s 2>&1", log);
    return system(command) == 0;
}

void *fake_compile(const char *text, const char *include, uint64_t *bytes, char *log, size_t cap)
{
    char folder[] = "/tmp/fake-cuda-XXXXXX", log_path[64], path[64];
    const char *compiler = getenv("FAKE_CUDA_CXX");
    if (!mkdtemp(folder))
        fake_die("no temporary folder");
    snprintf(log_path, sizeof log_path, "%s/log", folder);
    snprintf(path, sizeof path, "%s/source.cc", folder);
    FILE *to = fopen(path, "w");
    fputs(prelude, to);
    fputs(text, to);
    fclose(to);
    compiler = compiler && *compiler ? compiler : "c++";
    void *object = NULL;
    if (shell(log_path, "%s -E -P -std=gnu++14 %s%s %s/source.cc -o %s/plain.ii", compiler, *include ? "-I" : "",
              include, folder, folder)) {
        snprintf(path, sizeof path, "%s/plain.ii", folder);
        char *plain = file_read(path, NULL);
        snprintf(path, sizeof path, "%s/host.cc", folder);
        to = fopen(path, "w");
        text_write(plain, to);
        fclose(to);
        free(plain);
        if (shell(log_path,
                  "%s -O1 -w -std=gnu++14 -ffp-contract=off -fPIC -shared -fvisibility=hidden " ALIGNED
                  " %s/host.cc -o %s/object.so",
                  compiler, folder, folder)) {
            snprintf(path, sizeof path, "%s/object.so", folder);
            object = file_read(path, bytes);
        }
    }
    char *words = file_read(log_path, NULL);
    snprintf(log, cap, "%s", words ? words : "");
    free(words);
    if (!getenv("FAKE_CUDA_KEEP") && !shell("/dev/null", "rm -rf %s", folder))
        fake_die("%s cannot be removed", folder);
    return object;
}
