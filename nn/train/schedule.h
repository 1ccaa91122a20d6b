/* schedule.h - who takes part in a step, and with how many samples: measurements of steps go in, shares come out.
 *
 * Pure arithmetic: knows no device, no clock, no memory. What steps cost is costs.h.
 *
 * It begins by looking: EQUAL shares, without second views of a processor; then devices that share a processor without
 * the others there (SOLO), the fastest first, which may be all that it takes; then TILTED shares, which tell f, what a
 * step costs whatever the samples. From then on (SETTLED) it follows `row`, smoothed, and changes shares when a step
 * would become faster by more than what measurements waver by. A device of which the first step tells that nobody
 * should wait for it is out with that step.
 *
 * Devices that are no members, second views of a processor among them, are asked now and then how fast they are
 * (probes), which takes a hundredth of the time at most, shared equally among them, and each the seldomer the longer it
 * answers what was known. That holds for the first question to a second view too: it makes plans and touches memory
 * that no step needed, and a short run, to which it could not pay, is over before it. A question is put when all that
 * is under way has ended: what that costs besides, since the next step has nothing to run beside, is seen in that step
 * and counts. */
#ifndef CEK_NN_TRAIN_SCHEDULE_H
#define CEK_NN_TRAIN_SCHEDULE_H

#include "nn/train/costs.h"

typedef struct cek__schedule cek__schedule;

/* members[count]: who takes part at first, all but second views of a processor. */
CEK__SHARED void cek__schedule_first(const cek__costs_device *devices, size_t count, bool *members);

CEK__SHARED CEK__CHECKED cek_status cek__schedule_create(const cek__costs_options *options, cek__schedule **out);
CEK__SHARED void cek__schedule_free(cek__schedule *schedule);

/* A step that has ended: the samples that each device had, the seconds that it computed them, and the seconds from the
 * end of the step before to its own. Values <= 0 or not finite are unknown. True if shares or members are others
 * from now on. */
CEK__SHARED bool cek__schedule_note(cek__schedule *schedule, const int64_t *rows, const double *seconds, double period);

/* [count] for a whole batch; they add up to it. */
CEK__SHARED const int64_t *cek__schedule_rows(const cek__schedule *schedule);
/* [count]: is it a member, which owns shards and receives parameters? One without samples may be, while
 * others are tried. */
CEK__SHARED const bool *cek__schedule_members(const cek__schedule *schedule);
/* Members that could not be had, for want of memory: those of the time before stay, and these are not
 * asked for again. */
CEK__SHARED void cek__schedule_refuse(cek__schedule *schedule, const bool *before);

/* A device outside that should be asked how fast it is: *rows samples. False if none is due. */
CEK__SHARED bool cek__schedule_probe(cek__schedule *schedule, size_t *index, int64_t *rows);
/* Its answer, which the next step's note takes into account, and the seconds that the device was busy with it. */
CEK__SHARED void cek__schedule_probed(cek__schedule *schedule, size_t index, int64_t rows, double seconds, double all);
/* The period of the first step that was submitted after the answer: the question lies in it. */
CEK__SHARED void cek__schedule_resumed(cek__schedule *schedule, size_t index, double period);

/* ---- Explanations ---- */

/* Looking is over. */
CEK__SHARED bool cek__schedule_settled(const cek__schedule *schedule);
/* Seconds of a step with the present shares: predicted; as seen lately, 0 if never; of the best
 * device alone, predicted. */
CEK__SHARED void cek__schedule_times(const cek__schedule *schedule, double *predicted, double *seen, double *alone);
/* Samples a second of a device with its present share, or an equal one. */
CEK__SHARED double cek__schedule_speed(const cek__schedule *schedule, size_t index);
/* How many times faster than it is a device outside would have to be to help; INFINITY: its links are too slow. */
CEK__SHARED double cek__schedule_break_even(const cek__schedule *schedule, size_t index);

#endif
