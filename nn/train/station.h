/* station.h - one device under a conductor: its streams, what is under way on them, and how each action is
 * carried out there.
 *
 * Owns: streams for copies and sums beside the computing one, rings of markers, the owner's optimizers and reducer,
 * page-locked rings of batches and results.
 * Must not know: threads, other stations, whose turn it is. Each function from one thread at a time for each lane. */
#ifndef CEK_NN_TRAIN_STATION_H
#define CEK_NN_TRAIN_STATION_H

#include "nn/train/conductor.h"
#include "nn/train/meter.h"
#include "nn/train/norms.h"
#include "nn/train/optimizer.h"
#include "nn/train/reducer.h"

enum { CEK__FLIGHTS = 32 }; /* actions under way on one stream; more wait for their turn */

/* The streams beside the computing one: what leaves, what comes in, what is added and updated, shards in turn on each
 * of the reducer's sides. */
typedef enum cek__track {
    CEK__TRACK_OUT,
    CEK__TRACK_IN,
    CEK__TRACK_SUMS,
    CEK__TRACK_COUNT = CEK__TRACK_SUMS + CEK__REDUCER_SIDES
} cek__track;

/* What updates on one of the sides read. */
typedef struct cek__update_side {
    cek_memory *step_block; /* beside the computing one; NULL: that one is read */
    int64_t step;           /* whose step block lies there */
    cek_memory *update_block;
} cek__update_side;

/* An action that was enqueued and is not known to have ended. */
typedef struct cek__flight {
    cek__action action;
    cek_marker *marker;
} cek__flight;

typedef struct cek__flights {
    cek__flight ring[CEK__FLIGHTS];
    size_t first, count;
} cek__flights;

/* A point of the computation that others want to know of: gradients below `buckets` complete, or the result counted. */
typedef struct cek__milestone {
    int64_t step;
    size_t buckets;
    bool counted;
    cek_marker *marker;
} cek__milestone;

/* A step that is not collected, or whose shards are not all spread. */
typedef struct cek__step_job {
    cek__share share;
    cek_step_block block;
    unsigned char *tally; /* where the result is downloaded to */
    bool whole;           /* it goes through its lone device as one, updates and all */
    bool apart;           /* it must not: somebody wants to see its sums first */
    bool discarded;       /* and then did not want its updates */
    cek_marker *counted;
    double seconds,
        period; /* of computing, and since the end of the step before: once it is counted, where it is metered */
} cek__step_job;

typedef struct cek__station {
    size_t index, depth, devices;
    cek__replica *replica;
    cek_device *device;
    const cek__shards *shards;
    cek__exchange *exchange;
    const cek__rules *rules;
    cek__reducer *reducer;
    cek__norms *norms;  /* NULL: nothing is judged */
    size_t *first_norm; /* [shards + 1] of its own shards; with scaled parameters, theirs and their steps' in turn */
    double *squares;    /* [2 * parameters] of all shards together, where parameters are scaled */
    cek__meter *meter;  /* of the computing stream; NULL: nobody asks */
    cek__shard_optimizer **optimizers;     /* [shard]; NULL of other owners' */
    cek__update_operands *update_operands; /* [shard], of whole steps; NULL: there are none */
    bool at_once;                          /* what was enqueued counts as done: an inline or a lone device */
    cek_stream *tracks[CEK__TRACK_COUNT];
    cek__flights flights[CEK__TRACK_COUNT];
    cek__milestone *milestones; /* ring */
    size_t milestone_capacity, milestone_first, milestone_count;
    size_t sides; /* in use */
    bool skips;   /* updates of the step that was judged last */
    cek__update_side updates[CEK__REDUCER_SIDES];
    size_t announced;    /* steps whose samples may be uploaded, and that are not computed */
    cek__step_job *jobs; /* [step % job_count] */
    size_t job_count;
    unsigned char *batches, *tallies; /* [depth] shares, [job_count] results */
    uint64_t batch_bytes;
} cek__station;

/* Device bytes that it takes beside its replica. */
CEK__CHECKED cek_status cek__station_bytes(const cek__conductor_options *options, size_t index, uint64_t *out);
/* What one takes, with what its operations work in. */
CEK__CHECKED cek_status cek__station_room(const cek__station *station, uint64_t *out);

CEK__CHECKED cek_status cek__station_create(const cek__conductor_options *options, cek__exchange *exchange,
                                            size_t index, cek__station *out);
/* For a station that was zeroed, however far creation got. `idle`: nothing is under way. */
void cek__station_close(cek__station *station, bool idle);

static inline cek__step_job *cek__station_job(const cek__station *station, int64_t step)
{
    return &station->jobs[(size_t)step % station->job_count];
}

/* Keeps a step's share, copied unless it is lent. */
void cek__station_take_share(cek__station *station, int64_t step, const cek__share *share, const cek_step_block *block,
                             bool lent);

/* Carries out an action of the lane COMPUTE; `reached` is called when a segment of backward has been queued. */
typedef cek_status (*cek__reached_fn)(void *user, int64_t step, size_t buckets);
CEK__CHECKED cek_status cek__station_compute(cek__station *station, const cek__action *action, cek__reached_fn reached,
                                             void *user);
/* Takes a step's times from the meter, where there is one; when its result was counted, by a thread of the device. */
void cek__station_read_times(cek__station *station, int64_t step);
/* What VERDICT says: what gradients are multiplied by, or that the step changes nothing. */
typedef struct cek__verdict {
    double scale;
    bool skip;
} cek__verdict;

/* Carries out one of the lane EXCHANGE. `verdict`: for VERDICT. */
CEK__CHECKED cek_status cek__station_exchange(cek__station *station, const cek__action *action,
                                              const cek__verdict *verdict);
/* For the verdict: forgets what was heard; hears what an owner has measured of a shard, and returns the
 * sum of squares. */
void cek__station_forget(cek__station *station);
double cek__station_hear(cek__station *station, const cek__station *owner, size_t shard);
cek__track cek__station_track(const cek__station *station, const cek__action *action);
const char *cek__station_phase_name(cek__phase phase);

/* Waits for everything that was queued. */
CEK__CHECKED cek_status cek__station_drain(cek__station *station);

/* Something was enqueued whose end nobody has seen. */
bool cek__station_under_way(const cek__station *station);
/* Of that, what is under way for longest on one of the streams: it waits for nothing but its own device. */
cek_marker *cek__station_oldest(const cek__station *station);

#endif
