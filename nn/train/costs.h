/* costs.h - what a step costs on a set of devices, and which set and shares cost least.
 *
 *   a device computes m samples in        row x ((1 - f) x m + f x batch / devices)
 *   the member of n that owns 1/n of P bytes of parameters adds and updates in its memory, and moves 2 (n - 1) / n x P
 *   bytes each way; beside its computation, but not before its forward pass has ended; an inline device in turn with it
 *   a step takes as long as the slowest member, and what steps of several devices were seen to take beyond that
 *
 * Members are chosen greedily, best first: a device that makes a step faster by less than a twentieth of an equal share
 * is left out. Plugins that drive the same processor are views of it, of which a step uses one: each reaches all of it.
 *
 * Pure arithmetic. Must not know: how its numbers were measured, or when shares may change. */
#ifndef CEK_NN_TRAIN_COSTS_H
#define CEK_NN_TRAIN_COSTS_H

#include "cekernels/nn.h"
#include "core/base/export.h"

/* What is known of a device before the first step. */
typedef struct cek__costs_device {
    double link_bytes; /* a second, to and from other devices, the slower of the two; INFINITY: nothing to wait for */
    double latency;    /* seconds that each transfer takes besides */
    double own_bytes;  /* a second, of its own memory */
    bool in_turn;      /* it moves bytes or computes, but not both at once */
    size_t processor;  /* devices of one number compute on the same processor; 0: on its own */
    size_t view;       /* devices of one processor and one number are parts of it; 0: the view that fits it best */
} cek__costs_device;

typedef struct cek__costs_options {
    size_t count;
    const cek__costs_device *devices; /* [count] */
    int64_t batch;
    uint64_t parameter_bytes; /* of one replica */
    uint64_t update_bytes;    /* of memory that updating all parameters reads and writes */
    size_t transfers;         /* that the parameters are sent in, once each way */
} cek__costs_options;

/* How fast a device computes. */
typedef struct cek__speed {
    double row;    /* seconds of a sample when it has an equal share; INFINITY: not known */
    double fixed;  /* the part of that which is for the step, whatever the samples */
    double crowd;  /* how many times longer it takes while another computes on its processor */
    bool excluded; /* never a member */
} cek__speed;

typedef struct cek__costs {
    cek__costs_options of;
    cek__costs_device *devices; /* [count] */
    cek__speed *speeds;         /* [count] */
    bool *scratch;
    double excess; /* seconds that a step of several members takes beyond the model */
} cek__costs;

CEK__CHECKED cek_status cek__costs_create(const cek__costs_options *options, cek__costs *out);
void cek__costs_close(cek__costs *costs);

/* Samples of the size that shares are made of: fine enough to lose 1.6% at most, coarse enough for plans
 * to stay few. */
int64_t cek__costs_quantum(const cek__costs *costs);
/* Two views of one processor, which are never members together. */
bool cek__costs_exclude(const cek__costs *costs, size_t a, size_t b);
/* Another member computes on the processor of `index`. */
bool cek__costs_crowded(const cek__costs *costs, const bool *members, size_t index);
/* Seconds that a device computes. */
double cek__costs_compute(const cek__costs *costs, size_t index, double rows, bool crowded);

/* The `row` that explains a measurement. */
double cek__costs_row(const cek__costs *costs, size_t index, double rows, double seconds, bool crowded);
/* From the seconds of two sizes: what of them is the step's, unless they are too close to tell. */
void cek__costs_learn_fixed(cek__costs *costs, size_t index, const double *rows, const double *seconds);

/* Seconds of a step of `members` with these shares. */
double cek__costs_step(const cek__costs *costs, const bool *members, const int64_t *rows);
/* The best shares of a batch among `members`, and the seconds of a step with them; rows may be NULL. */
double cek__costs_share(const cek__costs *costs, const bool *members, int64_t *rows);
/* Moves shares, so that members have in turn more and fewer samples than they should. */
void cek__costs_tilt(const cek__costs *costs, const bool *members, int64_t *rows);
/* Some device was so much slower than another that no further step should wait for it. */
bool cek__costs_hopeless(const cek__costs *costs, const int64_t *rows, const double *seconds);

/* The members that cost least; the seconds. */
double cek__costs_choose(cek__costs *costs, bool *members);
/* The best single device; count where none is known. */
size_t cek__costs_best(const cek__costs *costs, double *seconds);
/* A step becomes shorter by enough when `index` joins `members`, or takes the place of other views of its processor;
 * they are put back as they were. */
bool cek__costs_helps(const cek__costs *costs, bool *members, size_t index);
/* How many times faster than it is `index` would have to be to help; INFINITY: its links are too slow, or
 * nothing is known. */
double cek__costs_break_even(const cek__costs *costs, bool *members, size_t index);

#endif
