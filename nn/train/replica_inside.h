/* replica_inside.h - the inside of a replica, for replica*.c alone. */
#ifndef CEK_NN_TRAIN_REPLICA_INSIDE_H
#define CEK_NN_TRAIN_REPLICA_INSIDE_H

#include "nn/train/replica.h"
#include "nn/train/room.h"

enum {
    SLOTS = CEK__PLAN_BINDINGS, /* micro-batches alternate between them: the next upload runs beside the computation */
    PADDING_ROW = 0             /* rows beyond the share repeat this one */
};

typedef struct sized_plan {
    int64_t rows;
    cek__plan *plan;
} sized_plan;

/* Where one micro-batch's samples lie on the device, and who may touch them next. Plans are bound once to each. */
typedef struct slot {
    cek_memory *samples; /* rows of input, then from target_at on of targets */
    cek_marker *uploaded, *computed;
    bool used, ran; /* uploaded is recorded, computed is: samples may have gone there that nothing was computed from */
} slot;

/* A micro-batch that is on the device before its turn, as a plan of so many rows wants it: another may be
 * there by then. */
typedef struct ahead {
    bool set;
    size_t slot;
    int64_t rows;
} ahead;

/* The first micro-batch of a share, from its forward to its backward. */
typedef struct begun {
    sized_plan plan;
    size_t slot;
} begun;

/* What a prediction has memory for beside its weights. */
typedef enum kept {
    KEPT_PACKED, /* what follows from them, and packed ones */
    KEPT_PLAIN,  /* the first alone */
    KEPT_NOTHING /* all is computed with every run; so in training */
} kept;

struct cek__replica {
    const cek__layout *layout;
    const cek_model *model;
    cek_device *device;
    cek__replica_options options;
    int64_t micro_batch;
    cek__row row;              /* in the caller's memory */
    uint64_t target_row_bytes; /* on the device */
    uint64_t outputs;
    uint64_t arena_piece; /* the most that the device gives at once; 0: it does not say */
    bool is_inline;
    cek_stream *compute, *upload;                    /* the same where the device works inline */
    cek_memory **parameters, **rounded, **gradients; /* [bucket_count] */
    cek_ref *parameter_refs, *rounded_refs, *gradient_refs;
    cek_memory *blocks; /* of the step, then of the batch */
    cek_step_block step;
    bool step_is_new; /* goes to the device with the next batch block */
    cek_memory *output;
    cek_memory *tally;   /* of what runs; behind it that of the whole step before */
    cek_memory *buffers; /* of the model, for evaluation */
    cek_memory *constants;
    cek_memory *arena[CEK__ARENA_PIECES], *workspace;
    cek__fallback fallback; /* where what is left to another device runs: */
    cek_memory *left;       /* there */
    size_t most_left;       /* operations of a plan, of those that were told of */
    cek__plan_needs room;   /* what the memory above was made for */
    sized_plan train[CEK__REPLICA_PLANS];
    size_t train_count;
    sized_plan evaluate; /* also prediction: */
    kept kept;
    bool is_prepared; /* with what follows from the weights that are there */
    slot slots[SLOTS];
    size_t slot_count, next_slot;
    ahead ahead;
    begun begun;
    cek__tail updates;      /* of whole steps, then the tally set aside and cleared; its commands are ours */
    bool whole_refused;     /* the device does not take a step as one call */
    unsigned char *staging; /* one micro-batch of padded or converted rows, and of targets behind them */
    uint64_t staging_bytes;
    unsigned char *tally_host; /* behind it: where the tally is read to */
};

static inline bool cek__replica_in_f64(const cek__replica *r)
{
    return r->layout->type == CEK_F64; /* then losses and targets are too */
}

static inline cek_ref cek__ref_of(const cek_memory *memory)
{
    return memory ? cek_memory_ref(memory) : (cek_ref){ NULL, 0 };
}

/* Where inputs, and targets behind so many rows of all of them, lie on the device and in what is ours on the host: one
 * upload takes everything. */
static inline uint64_t cek__input_at(const cek__replica *r, size_t input, int64_t rows)
{
    uint64_t at = 0; /* as cek__graph_input_at has it */
    for (size_t i = 0; i < input; i++)
        at += cek__aligned((uint64_t)rows * r->row.input[i]);
    return at;
}

static inline uint64_t cek__target_at(const cek__replica *r, int64_t rows)
{
    return cek__input_at(r, r->row.inputs, rows);
}

/* Where the batch block lies behind the step block. */
static inline uint64_t cek__batch_block_at(void)
{
    return cek__aligned(sizeof(cek_step_block));
}

static inline cek_ref cek__ref_behind(const cek_memory *memory, uint64_t offset)
{
    cek_ref ref = cek__ref_of(memory);
    ref.offset += memory ? offset : 0;
    return ref;
}

/* 100 samples of which 64 fit are two micro-batches of 50. */
static inline int64_t cek__replica_even(int64_t rows, int64_t most)
{
    int64_t parts = (rows + most - 1) / most;
    return (rows + parts - 1) / parts;
}

static inline uint64_t cek__larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* How many samples a run has of a share of so many. */
static inline int64_t cek__replica_piece(const cek__replica *r, int64_t rows)
{
    if (r->options.group == 0)
        return cek__replica_even(rows, r->micro_batch);
    return rows < r->options.group ? rows : r->options.group;
}

/* ---- replica_memory.c: what lies on the device, and how large a micro-batch may be ---- */

CEK__CHECKED cek_status cek__replica_memory_make(cek__replica *r, uint64_t bytes, cek_memory **out); /* 0 bytes: NULL */
CEK__CHECKED cek_status cek__replica_buckets_make(cek__replica *r);
CEK__CHECKED cek_status cek__replica_choose_micro_batch(cek__replica *r);
void cek__replica_memory_close(cek__replica *r);
uint64_t cek__replica_rooms_bytes(const cek__replica *r); /* of activations, workspace and samples */

/* ---- replica_left.c: what is left to another device ---- */

/* Room for it, where there is anything. drop - while nothing is under way; close - with the replica, also after a
 * failure. */
CEK__CHECKED cek_status cek__replica_left_make(cek__replica *r, const cek__plan_needs *need);
bool cek__replica_left_fits(const cek__replica *r, const cek__plan_needs *need);
void cek__replica_left_drop(cek__replica *r);
void cek__replica_left_close(cek__replica *r, bool drained);
/* Logs which operations of a plan are left; as a warning where these are more than before. */
void cek__replica_left_tell(cek__replica *r, const sized_plan *plan, const char *purpose);

/* ---- plans ---- */

/* The plan for `rows` samples: the one of that size, a new one while there is room for one, else the next larger. */
CEK__CHECKED cek_status cek__replica_plan_for(cek__replica *r, int64_t rows, sized_plan *out);

#endif
