/* program.h - a list of instructions for one device: op objects, and values that they read and write.
 *
 * Values are all the device's. An operation that it cannot do may be left to another (fallback.h runs such); operations
 * that share a reserve, which is their device's own, are left together. A value is written once, apart from
 * instructions that accumulate onto it. Values of the arena get their memory when the list is complete: by lifetimes,
 * and in the place of an input that dies where the operand tables of plugin.h allow it.
 * Must not know: layers, gradients, what an instruction is for; whose memory it gets and how it runs (binding.h). */
#ifndef CEK_NN_PROGRAM_PROGRAM_H
#define CEK_NN_PROGRAM_PROGRAM_H

#include "nn/program/forms.h"

/* Where a value lies. All but ARENA are the binder's memory. */
typedef enum cek__place {
    CEK__PLACE_ARENA,
    CEK__PLACE_INPUT,
    CEK__PLACE_TARGET,
    CEK__PLACE_OUTPUT,
    CEK__PLACE_STEP,
    CEK__PLACE_BATCH,
    CEK__PLACE_LOSS,
    CEK__PLACE_CORRECT,
    CEK__PLACE_BUFFERS,                       /* what a network keeps beside its parameters */
    CEK__PLACE_STATISTICS,                    /* what training adds to that */
    CEK__PLACE_CONSTANTS,                     /* arrays that never change */
    CEK__PLACE_SINGLE,                        /* how many places are one reference each */
    CEK__PLACE_PARAMETER = CEK__PLACE_SINGLE, /* one reference for each bucket */
    CEK__PLACE_ROUNDED,                       /* of some parameters the copy in 16 bits */
    CEK__PLACE_GRADIENT
} cek__place;

typedef struct cek__value {
    cek__place place;
    size_t bucket;   /* PARAMETER, ROUNDED, GRADIENT */
    uint64_t offset; /* bytes from the place's beginning; of ARENA: given by finish */
    uint64_t bytes;
    int pieces;  /* 0; or in how many it lies: the values behind it, each of whole rows. Weights of products alone */
    int storage; /* the value whose memory this one uses: itself, or an input that it replaces */
    int of;      /* 0; or the value within which this one lies, from byte `at` on */
    uint64_t at;
    int first, last; /* instructions between which the storage is in use */
} cek__value;

/* What an operation takes its weights for: kind, type, sizes, strides. */
enum { CEK__WEIGHTS_WORDS = 8 };

/* Weights that an instruction reads in a form that its operation makes of them ahead. */
typedef struct cek__packing {
    int instruction;
    int weights, packed;               /* values */
    uint64_t read[CEK__WEIGHTS_WORDS]; /* as this */
} cek__packing;

enum { CEK__SLOTS = 10 }; /* operands of any op that a model uses: CEK_POINTWISE_BATCH is the highest */
enum { CEK__NO_VALUE = 0 };

typedef struct cek__instruction {
    char what[48]; /* "node 3 (conv)": for who looks on */
    uint32_t kind; /* CEK_OP_... */
    uint32_t slots;
    cek__forms forms;
    cek_pool_desc filler; /* what fills a reserve, as it was described: its reader may be left to another device */
    uint64_t accumulate;  /* outputs that are always added to */
    uint64_t apart;       /* inputs whose place no output may take */
    int operand[CEK__SLOTS];
    uint64_t shift[CEK__SLOTS]; /* bytes from the operand's beginning: of a product with one piece of its weights */
} cek__instruction;

typedef struct cek__program {
    cek_device *device;   /* NULL: on paper, where every op is accepted and none exists (estimate.c) */
    cek_device *fallback; /* makes what that does not support; NULL: nobody does */
    uint32_t math;        /* of products and convolutions */
    char where[64];       /* what is being emitted, "node 3 (conv)": for errors */
    int value_count, value_capacity;
    cek__value *values; /* [0] is no value */
    int count, capacity;
    cek__instruction *instructions;
    int ahead;     /* so many come first and run once: what they give, and others read, is kept */
    bool is_ahead; /* what is emitted now is among them */
    bool packs;    /* weights that are there before the others run are packed behind them, where the device can */
    int packing_count, packing_capacity;
    cek__packing *packings;
    uint64_t arena_bytes, arena_piece; /* in memories of at most arena_piece bytes each */
    uint64_t workspace_bytes;
    uint64_t left_bytes, left_workspace_bytes; /* there: operands and workspace of one instruction at a time */
} cek__program;

static inline bool cek__program_left(const cek__program *program, const cek__instruction *instruction)
{
    return instruction->forms.device != program->device;
}

/* From an operand's place on: bytes that belong to it. */
static inline uint64_t cek__operand_bytes(const cek__program *program, const cek__instruction *instruction,
                                          uint32_t slot)
{
    return program->values[instruction->operand[slot]].bytes - instruction->shift[slot];
}
/* Where the next operand lies behind one. */
static inline uint64_t cek__operand_room(const cek__program *program, const cek__instruction *instruction,
                                         uint32_t slot)
{
    return (cek__operand_bytes(program, instruction, slot) + CEK_ALIGNMENT - 1) / CEK_ALIGNMENT * CEK_ALIGNMENT;
}
/* The operation writes it. */
bool cek__operand_is_output(const cek__instruction *instruction, uint32_t slot);

CEK__SHARED cek_status cek__program_init(cek__program *program, cek_device *device, uint32_t math);
CEK__SHARED void cek__program_clear(cek__program *program); /* destroys the ops; a zeroed program is accepted */

CEK__SHARED cek_status cek__program_value(cek__program *program, cek__value value, int *out);

/* Part of another value, from byte `at` of that on. */
cek_status cek__program_within(cek__program *program, int of, uint64_t at, int *out);

/* The slot in which such an operation has its weights, and that of their packed form. False: it has none. */
bool cek__weights_slots(uint32_t kind, uint32_t *plain, uint32_t *packed);

/* emit - creates an op and appends its instruction. `operands`: values by slot; the descriptor's
 * mask, alignment and math are filled in here. A product with weights, or their gradient, in pieces becomes one for
 * each; no other operation reads such.
 * `twice`: outputs that a second form of the op adds to. A reserve's size is taken from the op.
 * CEK_UNSUPPORTED (names what is emitted, the operation and who cannot do it) adds nothing to the program. What has an
 * activation or a derivative within is not left to another device for that. */
cek_status cek__program_emit(cek__program *program, cek_op_desc *desc, const int operands[CEK__SLOTS], uint64_t twice);

/* finish - gives the arena's values their memory. No emit afterwards. */
CEK__SHARED cek_status cek__program_finish(cek__program *program);

#endif
