/* check.h - what the files that talk to a device share: the state of a run, verdicts, guarded
 * memory.
 *
 * A check begins, may be found wrong any number of times (the first counts), and ends; the report
 * is written here alone. Knows the device through spec_target. */
#ifndef SPEC_CHECK_H
#define SPEC_CHECK_H

#include "spec/problem.h"

typedef struct spec_state {
    const spec_target *target;
    const cek_plugin *plugin; /* a copy of the target's with what it lacks as NULL */
    cek_dev *dev;
    spec_options options;
    spec_report *report;
    cek_queue *queue; /* for everything that does not test queues */
    uint64_t timeout_ns;
    cek_status broken; /* not CEK_OK: the run breaks off */
    bool abandoned;    /* the device may still work: nothing that it was given is freed, no more calls are made */
    bool flushes;      /* the device says that denormal numbers may count as 0 */

    char name[SPEC_TEXT_MAX]; /* of the check in hand */
    const char *group;
    cek_dtype type;
    bool required, wrong, unsupported;
    bool starved; /* there was no memory for it: it has no verdict, whatever else comes */
} spec_state;

/* False: not selected by the options; the check is skipped. `type` 0: none. */
bool spec_check_begin(spec_state *s, const char *group, cek_dtype type, bool required, const char *fmt, ...)
    __attribute__((__format__(__printf__, 5, 6)));
void spec_check_wrong(spec_state *s, const char *fmt, ...) __attribute__((__format__(__printf__, 2, 3)));
/* The same for a wrong value. */
void spec_check_wrong_value(spec_state *s, const char *operand, uint64_t index, uint64_t wrong, double got,
                            double expected, double tolerance);
/* Memory ran out under the check, here or on the device. */
void spec_check_starved(spec_state *s, const char *fmt, ...) __attribute__((__format__(__printf__, 2, 3)));
/* Zeroed memory for a check, which is starved where there is none (NULL). */
void *spec_calloc(spec_state *s, uint64_t count, size_t size);
/* The check's problem could not be built: it is starved, or wrong in itself. */
void spec_check_unbuilt(spec_state *s, const spec_problem *p);
void spec_check_end(spec_state *s);

/* Finds the check wrong unless a call answered `want`, or starved where there was no memory for it;
 * remembers a lost device. Returns whether it did. `call` is the
 * call's name, or its text in C, of which the name is told; the format and what follows say of what it was called:
 * "of 0 bytes". */
bool spec_expect(spec_state *s, const char *call, cek_status got, cek_status want, const char *fmt, ...)
    __attribute__((__format__(__printf__, 5, 6)));
#define EXPECT(want, call, ...) spec_expect(s, #call, (call), (want), __VA_ARGS__)
#define EXPECT_OK(call) spec_expect(s, #call, (call), CEK_OK, "%s", "")
/* The same for a condition: the rule of plugin.h that it stands for is told. */
#define REQUIRE(condition, rule) ((condition) ? true : (spec_check_wrong(s, "it does not hold that %s", rule), false))
const char *spec_status_name(cek_status status);
/* What device_info says: CEK_DEVICE_FLUSHES_DENORMALS. */
bool spec_device_flushes(const spec_state *s);

/* Device memory between guards of 0xff (NaN in every floating-point type), with an image in host
 * memory. */
enum { SPEC_GUARD = 256 };
typedef struct spec_buffer {
    cek_mem *mem;
    uint64_t offset, bytes, total;
    uint8_t *image;  /* total bytes: guard, contents, guard */
    uint8_t *before; /* a copy of it as uploaded */
} spec_buffer;

/* `shift`: bytes behind a multiple of 256 at which the contents begin. Contents start as 0xff. */
bool spec_buffer_make(spec_state *s, uint64_t bytes, uint64_t shift, spec_buffer *b);
void spec_buffer_free(spec_state *s, spec_buffer *b);
static inline uint8_t *spec_buffer_contents(const spec_buffer *b)
{
    return b->image + b->offset;
}
static inline cek_ref spec_buffer_ref(const spec_buffer *b)
{
    return (cek_ref){ b->mem, b->offset };
}
bool spec_buffer_upload(spec_state *s, spec_buffer *b, cek_queue *queue);
bool spec_buffer_download(spec_state *s, spec_buffer *b, cek_queue *queue); /* enqueues; sync before looking */
/* Waits; what failed once must stay failed. */
bool spec_sync(spec_state *s, cek_queue *queue);
bool spec_buffer_guards(spec_state *s, const spec_buffer *b, const char *what); /* after a download */

/* A problem on the device. */
typedef struct spec_job {
    spec_problem *problem;
    cek_op *op;
    cek_op_info info;
    spec_buffer buffer[SPEC_OPERANDS_MAX]; /* by position in problem->operand; those that share a
                                              place: empty */
    spec_buffer workspace;
    cek_ref refs[CEK_SLOT_MAX];
    uint32_t ref_count;
    struct spec_job *forward;
    cek_status created; /* what op_create answered, here or for `forward` */
} spec_job;

/* Creates the operation and the memory. False: found wrong, or s->unsupported, or *inexact is set:
 * build again with it. */
bool spec_job_make(spec_state *s, spec_problem *p, spec_job *job, bool *inexact);
void spec_job_free(spec_state *s, spec_job *job);
/* What op_run takes: all but what op_prepack alone does. */
void spec_job_operands(const spec_job *job, cek_ref refs[CEK_SLOT_MAX]);
/* Writes contents, runs, reads back, waits. */
bool spec_job_run(spec_state *s, spec_job *job, cek_queue *queue);
/* Compares everything: outputs, inputs, guards. */
bool spec_job_verify(spec_state *s, spec_job *job);

/* The other files' checks. */
void spec_check_device(spec_state *s);
void spec_check_memory(spec_state *s);
void spec_check_queues(spec_state *s);
/* That queue_sync waits: all other checks rest on it, so without it the run is over. Run whatever the options select,
 * and reported only when selected or wrong. */
void spec_check_ground(spec_state *s);
/* Last: it leaves work behind on a handle of its own. */
void spec_check_progress(spec_state *s);
/* Behind all but that: a plugin that looks at what is NULL crashes in it. */
void spec_check_nulls(spec_state *s);
void spec_check_misuse(spec_state *s, const spec_kind *kind, bool required);
void spec_check_threads(spec_state *s);
/* Finds the check wrong unless op_create answers `want` and gives no operation; `what` describes
 * the descriptor. */
void spec_refused(spec_state *s, const cek_op_desc *desc, cek_status want, const char *what);
/* Tries what the kind of `p`, which is valid, must refuse. */
void spec_shapes_refused(spec_state *s, const spec_problem *p);

#endif
