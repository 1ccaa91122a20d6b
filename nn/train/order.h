/* order.h - in which order a step's phases run on which device: a pure state machine.
 *
 * Events go in (a batch was submitted, gradients are complete, a copy has ended), actions come out (compute, move, add,
 * update). Knows no thread, no clock, no plugin, no memory: whoever carries the actions out says so, and may be threads
 * or a loop in a test. One caller at a time.
 *
 * A step n on devices r, with shards s (shards.h), each of one owner o:
 *
 *   UPLOAD(n, r)      r's part of the batch                             lane COMPUTE, as soon as n is submitted
 *   FORWARD(n, r, i)  segment i of the forward pass                     lane COMPUTE
 *   BACKWARD(n, r)    all of backward; gradients complete bucket by bucket, which is the event `ready`
 *   FETCH(n, s, r)    r's contribution leaves r for its taker p         lane EXCHANGE of r; not where p
 *                     reaches r's memory
 *   ADD(n, s, r)      p adds r's contribution to its own                lane EXCHANGE of p
 *   MEASURE(n, s)     o looks at the summed gradient                    only where updates wait for a verdict
 *   VERDICT(n)        what all measures together mean, to each owner likewise
 *   UPDATE(n, s)      o computes the new parameters
 *   SEND(n, s)        they leave o for the others                       not where the others reach o's memory
 *   RECEIVE(n, s, r)  r takes them                                      lane EXCHANGE of r
 *
 * A contribution is what a device adds up: its own gradients and the contributions of those who give to it
 * (branches.h). The owner gives to nobody; that of a large shard takes from all others. Parameters of a branched shard
 * go the same way back where all devices reach each other's memory, from one to the next.
 *
 * A shard goes through GATHERING (fetches, adds) -> HELD, where somebody wants to see the sums first -> MEASURING ->
 * UPDATING -> SPREADING (send, receives) and on to the next step. Actions of one lane of one device come out in the
 * order in which they must be queued; what one device's queue orders by itself (its adds before its update) is
 * therefore not waited for, everything that another device did is. Among shards there is no such order: of those that
 * may go, that goes first which forward reads first, which is the one of the bucket that backward finished last.
 *
 * What holds, at every action (the numbers are those of ARCHITECTURE.md; tests/unit/order.c checks each by itself):
 *    5  FETCH, ADD of another's gradients, RECEIVE: only what the other device was seen to have finished
 *    7  FETCH and ADD(n, s, r): r's gradients of s's bucket in step n are ready
 *    8  FETCH and ADD(n, s, r), UPDATE(n, s): all contributions to r, or the owner, were given out as ADD, in the order
 *       in which devices stand in the ring behind it; of r's, they were seen to have ended; and the VERDICT
 *    9  UPDATE(n + 1, s): every spread of (n, s) has ended, those to devices without samples included
 *   10  FORWARD(n + 1, r, i): every shard that segments 0 .. i read has arrived on r in version n
 *   11  BACKWARD(n + 1, r): every FETCH and ADD that reads r's gradients of step n has ended
 *   12  a device without samples contributes what others gave to it, and receives everything; a shard of
 *       nobody is complete
 *   15  no more FETCHes are under way between two devices than there are places for them, nor SENDs of one owner; nor
 *       more RECEIVEs of one device out of others' memory
 *   18  results come in the order of steps; after a failure there is no further action
 *   19  parameters are readable where all shards have the version of the last step that was submitted
 *   20  MEASURE and UPDATE(n, s): n is not held */
#ifndef CEK_NN_TRAIN_ORDER_H
#define CEK_NN_TRAIN_ORDER_H

#include "nn/train/shards.h"

typedef enum cek__phase {
    CEK__UPLOAD,
    CEK__FORWARD,
    CEK__BACKWARD,
    CEK__FETCH,
    CEK__ADD,
    CEK__MEASURE,
    CEK__VERDICT,
    CEK__UPDATE,
    CEK__SEND,
    CEK__RECEIVE,
    CEK__PHASE_COUNT
} cek__phase;

typedef enum cek__lane { CEK__LANE_COMPUTE, CEK__LANE_EXCHANGE, CEK__LANE_COUNT } cek__lane;

typedef struct cek__action {
    cek__phase phase;
    bool first;     /* ADD: there is nothing yet to add to, so the contribution replaces what lies there */
    size_t device;  /* that acts */
    size_t peer;    /* FETCH: who takes; ADD: who gives; RECEIVE: where it reads */
    size_t shard;   /* FETCH and later; not of VERDICT */
    size_t segment; /* FORWARD */
    int64_t step;   /* from 1 */
} cek__action;

typedef struct cek__order cek__order;

/* Shards are in the last step that was collected or at most so many before it: one whose spread a device without
 * samples has not received, the next, which waits for that, and the one that is being collected. */
enum { CEK__ORDER_LAG = 3 };

typedef struct cek__order_options {
    const cek__shards *shards; /* outlives the order */
    size_t depth;              /* steps that may be submitted and not collected, >= 1 */
    /* FETCHes under way from one device to another, SENDs of one, its RECEIVEs out of others' memory, >= 1. */
    size_t credits;
    size_t segments;     /* of the forward pass, >= 1 */
    const size_t *reads; /* [segments]: segment i reads no bucket below reads[i]; falling. NULL: segment 0 reads all */
    const bool *reaches; /* [a * devices + b]: a reads b's memory without a FETCH or SEND. NULL: none does */
    bool verdict;        /* updates wait until all gradients of the step were measured */
} cek__order_options;

CEK__SHARED CEK__CHECKED cek_status cek__order_create(const cek__order_options *options, cek__order **out);
CEK__SHARED void cek__order_free(cek__order *order);

/* ---- Events ---- */

/* The next step: present[r] says whether device r has samples of it; one has at least. False, and nothing has happened,
 * while `depth` steps are not collected. */
CEK__SHARED bool cek__order_submit(cek__order *order, const bool *present);
/* Device r's gradients of the first `buckets` buckets in `step` are complete, and their parameters will not be read
 * again by that step. */
CEK__SHARED void cek__order_ready(cek__order *order, size_t device, int64_t step, size_t buckets);
/* What the action began has ended. For actions from FETCH on, each once; VERDICT needs none. */
CEK__SHARED void cek__order_done(cek__order *order, const cek__action *action);
/* Device r's part of the step's result is there. */
CEK__SHARED void cek__order_counted(cek__order *order, size_t device, int64_t step);
/* Steps that are submitted from now on wait with their sums; until they are let go. */
CEK__SHARED void cek__order_hold(cek__order *order);
CEK__SHARED void cek__order_release(cek__order *order);
/* Something failed: no further action comes out. */
CEK__SHARED void cek__order_fail(cek__order *order);

/* ---- Answers ---- */

/* The next action of a lane; false if there is none for now. */
CEK__SHARED bool cek__order_next(cek__order *order, size_t device, cek__lane lane, cek__action *out);
bool cek__order_has(const cek__order *order, size_t device, cek__lane lane);
/* All devices' parts of the oldest uncollected step's result are there. */
CEK__SHARED bool cek__order_has_result(const cek__order *order);
/* It counts as collected from now on; false, and nothing has happened, where it has no result yet. */
CEK__SHARED bool cek__order_collect(cek__order *order);
/* Steps submitted and not collected. */
CEK__SHARED size_t cek__order_uncollected(const cek__order *order);
/* All sums of a step that is held are complete where their owners have them, and nothing of it is under way. */
CEK__SHARED bool cek__order_holds(const cek__order *order);
/* All devices have all parameters of the last submitted step, and no action is under way. */
CEK__SHARED bool cek__order_settled(const cek__order *order);

#endif
