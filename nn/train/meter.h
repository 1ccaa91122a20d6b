/* meter.h - how long a device computed for each step, by its own clock.
 *
 * Owns: pairs of markers around what is enqueued for a step. Nobody waits for them: they are read when the step's
 * result is there, which comes behind them.
 * Must not know: what is enqueued. start and stop from the stream's thread, read when the step has been counted. */
#ifndef CEK_NN_TRAIN_METER_H
#define CEK_NN_TRAIN_METER_H

#include "cekernels/cekernels.h"
#include "core/base/export.h"

typedef struct cek__meter cek__meter;

/* Remembers `steps` steps, each of at most `spans` pieces of work on the stream. */
CEK__CHECKED cek_status cek__meter_create(cek_device *device, cek_stream *stream, size_t steps, size_t spans,
                                          cek__meter **out);
void cek__meter_free(cek__meter *meter);

/* Around a piece of work of `step`, from 1 upwards; more pieces than were announced are counted as parts of the last.
 * NULL: does nothing. */
CEK__CHECKED cek_status cek__meter_start(cek__meter *meter, int64_t step);
CEK__CHECKED cek_status cek__meter_stop(cek__meter *meter, int64_t step);

/* Seconds that the step's work took, and seconds from the end of the work of the step before to its own. 0: not known,
 * since there was none, or the device cannot tell. */
void cek__meter_read(const cek__meter *meter, int64_t step, double *busy, double *period);

#endif
