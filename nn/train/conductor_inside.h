/* conductor_inside.h - what the files of the conductor share: its state, and who calls whom.
 *
 *     conductor.c           steps in, results out, life
 *     conductor_threads.c   the threads of devices, and who waits for them
 *     conductor_act.c       one action carried out, one event taken in
 *
 * One lock over the order and what is known; it is never held across a call of a device. */
#ifndef CEK_NN_TRAIN_CONDUCTOR_INSIDE_H
#define CEK_NN_TRAIN_CONDUCTOR_INSIDE_H

#include <pthread.h>

#include "core/device/gate.h"
#include "nn/train/conductor.h"
#include "nn/train/station.h"

/* Something that the caller waits for. */
typedef bool cek__conductor_fact(const struct cek__conductor *conductor);

/* A thread of one device. */
typedef struct worker {
    struct cek__conductor *conductor;
    cek__station *station;
    bool computes, exchanges, started;
    bool acts;        /* carries out an action, which `busy` counts */
    pthread_t thread; /* of an inline device */
    cek__gate *gate;  /* of another: a thread that may be left there, and then is NULL */
    pthread_cond_t work;
} worker;

struct cek__conductor {
    cek__crew *crew;
    const cek__shards *shards;
    cek__exchange *exchange;
    cek__order *order;
    cek__station *stations; /* [devices] */
    worker *workers;
    size_t devices, worker_count;
    const cek__rules *rules;
    cek__running *running; /* NULL: the model has no buffers */
    cek__scaler *scaler;   /* NULL: gradients are not scaled */
    int64_t scaler_before; /* steps that it knows from before this conductor */
    bool *present;         /* [devices] of the step that is being submitted */
    int64_t submitted, collected;
    bool holds; /* the step that is submitted next */
    pthread_mutex_t lock;
    pthread_cond_t told;          /* the caller: what it waits for has come */
    cek__conductor_fact *awaited; /* that; NULL: it does not wait */
    bool closing;
    size_t busy; /* actions that are being carried out, which may be inside a device */
    cek_status failure;
    char failure_text[CEK__ERROR_TEXT_MAX];
};

/* ---- conductor_act.c; all under the lock, which is given up for calls of the device ---- */

/* After every event: whoever has something to do hears of it, and the caller where what it waits for is so.
 * Nobody else wakes. */
void cek__conductor_wake(cek__conductor *conductor);
/* The first failure stays; the text is this thread's. */
void cek__conductor_fail(cek__conductor *conductor, cek_status status);

/* Carry out the next action of a lane; true if there was one. */
bool cek__conductor_exchange_one(cek__conductor *conductor, cek__station *station);
bool cek__conductor_compute_one(cek__conductor *conductor, cek__station *station);
/* Look whether the oldest action of each track, or milestone, has ended; true if one has. */
bool cek__conductor_flights_land(cek__conductor *conductor, cek__station *station);
bool cek__conductor_milestones_pass(cek__conductor *conductor, cek__station *station);

/* ---- conductor_threads.c ---- */

CEK__CHECKED cek_status cek__conductor_threads_start(cek__conductor *conductor);
void cek__conductor_threads_stop(cek__conductor *conductor);

/* Under the lock: waits until `fact` is so. Meanwhile threads of devices that work beside the host are looked at: what
 * one does in a call that does not return ends here, with the loss of the device. */
void cek__conductor_await(cek__conductor *conductor, cek__conductor_fact *fact);
/* Under the lock: a lone device; everything that can be queued is. */
void cek__conductor_serve(cek__conductor *conductor);
/* Under the lock, which is given up: runs a job of a lone device on its thread. Nobody acts any more where
 * that was left. */
void cek__conductor_on_its_thread(cek__conductor *conductor, cek__crew_job job);

#endif
