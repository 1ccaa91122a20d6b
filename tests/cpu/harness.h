/* harness.h - plugins by bare dlopen, and one operation run on the reference and on every form
 * of the cpu plugin.
 *
 * Owns: the list of forms (instruction set, number of threads), guarded operands, the
 * comparison.
 * Must not know: any operation. */
#ifndef CEK_TESTS_CPU_HARNESS_H
#define CEK_TESTS_CPU_HARNESS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cekernels/plugin.h>

#include "tests/suite.h"

/* must - a ck_assert_msg for inner loops: libcheck writes a message to a file for each of its
 * own, also when it holds. */
#define must(condition, ...)           \
    do {                               \
        if (!(condition))              \
            ck_abort_msg(__VA_ARGS__); \
    } while (0)

/* A plugin opened with settings: its first device and a queue on it. */
typedef struct backend {
    void *so;
    cek_plugin p; /* this program's own copy of the table */
    cek_host host;
    const char *const *settings; /* key, value, ..., NULL */
    char failure[512];           /* the latest text that the plugin gave */
    cek_instance *instance;
    cek_dev *dev;
    cek_queue *queue;
} backend;

/* backend_create - loads plugins/NAME.so and creates an instance; the status is create's. */
cek_status backend_create(backend *b, const char *name, const char *const *settings);
/* backend_open - the same, and opens device 0 and a queue; anything that fails fails the test. */
void backend_open(backend *b, const char *name, const char *const *settings);
void backend_close(backend *b);

/* An operand as the test sees it: `bytes` at `data`, which after a run holds what the operation
 * left there. */
typedef struct operand {
    uint32_t slot;
    void *data;
    uint64_t bytes;
    enum {
        IN,
        OUT,
        IN_PLACE, /* an output in the memory of the operand before it */
        PACKED    /* as many bytes as the operation says: the operand before it, packed, after which that is NaNs */
    } use;
} operand;

/* run_op - creates, runs and destroys one operation; operands lie between guards, which must
 * survive. `shift` (0, or less than CEK_ALIGNMENT) moves them off alignment. The status is
 * op_create's. */
cek_status run_op(backend *b, const cek_op_desc *desc, operand *operands, int count, uint64_t shift);

/* How far the cpu's floats may be from the reference's: absolute + relative * |expected| (f32:
 * the reference sums in f64 and rounds once). */
typedef struct tolerance {
    double absolute, relative;
} tolerance;
static const tolerance exactly = { 0, 0 };

/* compare - runs the descriptor on the reference and on every form of the cpu, and compares all
 * outputs: floats within the tolerance, NaN with NaN, everything else exactly. All numbers of
 * threads must give the same bytes. `types` is the type of each operand, by position. */
void compare(const char *what, const cek_op_desc *desc, const operand *operands, const cek_dtype *types, int count,
             tolerance allowed);

/* Forms of the cpu plugin. form_settings(i) is NULL beyond the last; forms that do not run here
 * are left out. */
int form_count(void);
backend *form(int i);
backend *reference(void);
void forms_open(void);
void forms_close(void);

/* Numbers: reproducible, in [-1, 1), or small integers. */
void fill_uniform(float *to, int64_t n, uint64_t seed);
void fill_integers(float *to, int64_t n, int64_t low, int64_t high, uint64_t seed);
uint64_t next_random(uint64_t *state);

/* Element conversion for f16 and bf16 operands; n elements. */
void to_bf16(const float *from, uint16_t *to, int64_t n);
float from_bf16(uint16_t x);
float from_f16(uint16_t x);

/* Bytes of a type, and element i as a double. */
uint64_t type_bytes(cek_dtype type);
double element(const void *data, cek_dtype type, int64_t i);

/* Suites. */
void add_math(Suite *suite);
void add_tensors(Suite *suite);
void add_sums(Suite *suite);
void add_training(Suite *suite);
void add_products(Suite *suite);
void add_devices(Suite *suite);

#endif
