/* SPDX-License-Identifier: MIT
 *
 * clock.h - what time it is for the devices of an instance, and who waits for it.
 *
 * Two clocks over one timeline. The REAL one is the machine's: a command that takes 3 ms has ended 3 ms later. The
 * VIRTUAL one stands still while the host does anything (hosts.h), then goes on to the next mark that the host has
 * asked for, and stands still again: what the host does takes no time, what one of its threads hands to another arrives
 * at the instant at which it was learned, and the same program has the same times every time. Marks of one instant are
 * told one after the other.
 *
 * No thread of its own: whoever asks or waits moves the time.
 */
#ifndef CEK_BACKENDS_SIM_CLOCK_H
#define CEK_BACKENDS_SIM_CLOCK_H

#include <stddef.h>

#include <cekernels/plugin.h>

#include "backends/common/failure.h"
#include "backends/sim/timeline.h"

typedef struct cek__clock cek__clock;
typedef enum cek__clock_kind { CEK__CLOCK_VIRTUAL, CEK__CLOCK_REAL } cek__clock_kind;

/* Takes the timeline over if it is made; NULL: no memory. `quiet_ns`: see hosts.h. */
cek__clock *cek__clock_create(cek__clock_kind kind, uint64_t quiet_ns, cek__timeline *timeline);
void cek__clock_free(cek__clock *clock);

cek__line *cek__clock_open(cek__clock *clock, uint32_t device);
void cek__clock_close(cek__clock *clock, cek__line *line);

/* Commands of the same need, one after the other. False: no memory. */
bool cek__clock_spend(cek__clock *clock, cek__line *line, const cek__need *need, const uint64_t *costs_ns,
                      size_t count);

/* From there on the line's device computes at another speed (timeline.h). False: no memory. */
bool cek__clock_speed(cek__clock *clock, cek__line *line, uint64_t percent);

/* A task behind all that is in the line (timeline.h), to be ended with the clock's lock. False: no memory. */
bool cek__clock_task(cek__clock *clock, cek__line *line, cek__task *task);

/* A mark lies in a place of the caller's, which begins as NULL; the clock's lock is the place's too. */
bool cek__clock_mark(cek__clock *clock, cek__line *line, cek__mark **place);
void cek__clock_forget(cek__clock *clock, cek__mark **place);
bool cek__clock_wait(cek__clock *clock, cek__line *line, cek__mark *const *place);

/* Whether the latest mark has happened, and when. What is not there has. */
bool cek__clock_ask(cek__clock *clock, cek__mark *const *place, uint64_t *ns);
/* CEK_OK, CEK_TIMEOUT, or CEK_DEVICE_LOST without a text when `lost` is set; leaves what is left of the time-out. */
cek_status cek__clock_sync(cek__clock *clock, cek__mark *const *place, uint64_t *timeout_ns, const cek__latch *lost);
/* The same for all that is in a line; CEK_OUT_OF_MEMORY. */
cek_status cek__clock_drain(cek__clock *clock, cek__line *line, uint64_t *timeout_ns, const cek__latch *lost);

/* The time, and what a device has done up to it. */
uint64_t cek__clock_read(cek__clock *clock, uint32_t device, cek__busy *busy);

#endif
