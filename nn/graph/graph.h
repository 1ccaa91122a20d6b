/* graph.h - a network as a graph of differentiable parts.
 *
 * Owns: flows (what a part gives and others read), parts (a small closed set, parts.h), the sequence in which they run,
 * and the passes' notes on them. Passes take a graph to a graph: simplify.h, differentiate.h, common.h, physical.h,
 * types.h, fuse.h with fold.h and join.h; lower.h makes a device's program of it. Every part that reads a flow comes
 * behind the one that gives it.
 * Axes are logical and PyTorch's: N,C,H,W. An axis may count samples of the batch, whose number is known when the graph
 * is lowered and not before.
 * Must not know: layers, devices, where parameters lie. */
#ifndef CEK_NN_GRAPH_GRAPH_H
#define CEK_NN_GRAPH_GRAPH_H

#include "core/base/export.h"
#include "core/base/status.h"

enum { CEK__PART_INPUTS = 8, CEK__PART_OUTPUTS = 3, CEK__NOTHING = 0 /* no flow, no part */ };

typedef struct cek__dims {
    int rank;
    uint32_t samples; /* bit i: axis i has size[i] for each sample */
    int64_t outside;  /* of that size, what counts outside the samples: [T,N] as one axis has T; 0: nothing does */
    int64_t size[CEK_RANK_MAX];
} cek__dims;

/* The last channels * pixels elements, [channels][pixels] by their axes, lie [pixels][channels]: images on devices,
 * what is flattened from them, weights that read either. Zeros: in the order of the axes. */
typedef struct cek__image {
    int64_t channels, pixels;
} cek__image;

typedef struct cek__flow {
    cek__dims dims;
    cek_dtype type;   /* CEK_DTYPE_NONE: the type that is computed in */
    int part;         /* that gives it */
    cek__image image; /* physical.h decides */
    bool open;        /* of a parameter: nobody has decided yet */
    bool strided;     /* lies within what its part reads or adds to, at strides that follow from that (strides.h) */
    int readers;      /* cek__graph_count_readers */
    bool needs_gradient;
} cek__flow;

typedef enum cek__part_kind {
    CEK__PART_NONE,
    CEK__PART_INPUT,         /* the samples -> x */
    CEK__PART_TARGET,        /* labels or values -> target */
    CEK__PART_PARAMETER,     /* -> w */
    CEK__PART_PRODUCT,       /* a, b[, bias] -> c[, sum of a] */
    CEK__PART_CONV,          /* x, w[, bias] -> y */
    CEK__PART_CONV_DATA,     /* dy, w -> dx */
    CEK__PART_CONV_WEIGHTS,  /* x, dy -> dw[, sum of dy] */
    CEK__PART_POOL,          /* x -> y, reserve */
    CEK__PART_POOL_BACK,     /* dy[, reserve] -> dx */
    CEK__PART_CHAIN,         /* x... -> y, element by element */
    CEK__PART_REDUCE,        /* x -> y without the axes */
    CEK__PART_VIEW,          /* x -> the same elements by other axes */
    CEK__PART_REORDER,       /* x -> x, lying otherwise */
    CEK__PART_PERMUTE,       /* x -> x, its axes in another order */
    CEK__PART_PAD,           /* x -> y, more or fewer elements at the ends of axes */
    CEK__PART_CONCAT,        /* x... -> y, one behind the other along an axis */
    CEK__PART_GATHER,        /* table, index -> the rows that it names */
    CEK__PART_SCATTER_ADD,   /* rows, index -> a table of their sums */
    CEK__PART_ARG,           /* x -> where along an axis its extreme lies */
    CEK__PART_DROPOUT,       /* x -> y; backward is the same part */
    CEK__PART_RANDOM,        /* -> x, for each sample its own */
    CEK__PART_SOFTMAX,       /* x -> y over the last axis */
    CEK__PART_CROSS_ENTROPY, /* logits, target -> dlogits */
    CEK__PART_SQUARED_ERROR, /* prediction, target -> dprediction */
    CEK__PART_BUFFER,        /* -> b */
    CEK__PART_CONTRIBUTE,    /* v -> nothing: what training adds to a buffer */
    CEK__PART_PHASE,         /* x, y -> x where it is trained, y where it is not (simplify.h) */
    CEK__PART_LOSS,          /* v -> dv: the loss is the sum of v */
    CEK__PART_HITS,          /* scores, target -> nothing: how many targets have the largest score */
    CEK__PART_COUNT
} cek__part_kind;

/* An operand of a product as matrices: axes before `batch` count matrices, those before `split` rows,
 * the rest columns. */
typedef struct cek__matrix {
    int batch, split;
    bool transposed;
} cek__matrix;

/* Windows over the axes behind N,C. */
typedef struct cek__windows {
    int64_t kernel[CEK_SPATIAL_MAX], stride[CEK_SPATIAL_MAX], dilation[CEK_SPATIAL_MAX];
    int64_t pad_lo[CEK_SPATIAL_MAX], pad_hi[CEK_SPATIAL_MAX];
} cek__windows;

typedef struct cek__part {
    cek__part_kind kind;
    int inputs, outputs;
    int input[CEK__PART_INPUTS], output[CEK__PART_OUTPUTS]; /* flows; CEK__NOTHING among them: left out */
    cek__dims dims;                                         /* of output 0, where the inputs do not tell */
    cek_dtype type;                                         /* of output 0, where the inputs do not tell */
    int node; /* of the model, and its layer's name: for errors and traces */
    const char *name;
    bool backward;
    bool known;   /* it depends on no sample, and comes first (fold.h) */
    bool gone;    /* removed or pruned: what it gives is given no more */
    int follower; /* a chain of one instruction that is computed within, if the device can (fuse.h) */
    int base;     /* a flow that output 0 is added to, in its place */
    int place;    /* in the sequence, as cek__graph_number found it */
    union {
        size_t parameter;
        struct {
            uint64_t at;     /* element in the buffers' memory; `constant`: in that of what never changes */
            double momentum; /* of CONTRIBUTE */
            bool constant;
        } buffer;
        struct {
            cek__matrix a, b;
        } product;
        struct {
            cek__windows windows;
            int64_t groups;
        } conv;
        struct {
            cek__windows windows;
            uint32_t mode; /* CEK_POOL_... */
            bool count_pad;
            int forward; /* of POOL_BACK: the POOL */
        } pool;
        struct {
            uint32_t count;
            cek_pointwise_instruction code[CEK_POINTWISE_INSTRUCTIONS];
            bool normalises; /* input 0, by statistics of it: its gradient is theirs too (normalise.h) */
        } chain;
        struct {
            uint32_t function; /* CEK_REDUCE_... */
            uint32_t axes;     /* bit i: axis i falls away */
            bool masked;       /* over samples: padding counts for nothing (masked.c) */
            bool second;       /* terms are multiplied by input 1's elements, ... */
            bool centre;       /* ... less what the last input has for each result before */
        } reduce;
        int order[CEK_RANK_MAX]; /* of PERMUTE: axis i was order[i] */
        struct {
            int64_t lo[CEK_RANK_MAX], hi[CEK_RANK_MAX]; /* below 0: so many are left out */
            double value;
        } pad;
        int axis; /* of CONCAT */
        struct {
            bool log; /* its logarithm */
        } softmax;
        struct {
            int batch; /* so many axes count tables */
            bool pads; /* row `padding` gets no gradient of what it gives */
            int32_t padding;
        } gather;
        struct {
            uint32_t function; /* CEK_ARG_... */
            int axis;
        } arg;
        struct {
            double p;
            uint32_t stream;
            int like; /* of the way back: the flow whose mask it is; elements are numbered as that lies */
        } dropout;
        struct {
            double a, b;           /* low and high, or mean and standard deviation */
            uint32_t distribution; /* CEK_RANDOM_... */
            uint32_t stream;
        } random;
    };
} cek__part;

/* A parameter's gradient is the sum of the flows that are listed for it. */
typedef struct cek__gradient {
    size_t parameter;
    int of; /* the flow that the parameter is */
    int flow;
} cek__gradient;

typedef struct cek__graph {
    int flow_count, flow_capacity;
    cek__flow *flows; /* [0] is no flow */
    int part_count, part_capacity;
    cek__part *parts; /* [0] is no part */
    int length, length_capacity;
    int *sequence;  /* [length] parts in the order in which they run */
    int result;     /* a flow: what the network gives; 0 where a loss takes it */
    int loss, hits; /* parts; 0: none */
    size_t gradient_count;
    cek__gradient *gradients;
    /* What is added next belongs to this. */
    int node;
    const char *name;
    bool backward;
} cek__graph;

CEK__SHARED CEK__CHECKED cek_status cek__graph_init(cek__graph *graph);
CEK__SHARED void cek__graph_clear(cek__graph *graph); /* a zeroed one is accepted */
/* A graph of its own with the same numbers; names are shared. Cleared by the caller, whatever came of it. */
CEK__CHECKED cek_status cek__graph_copy(const cek__graph *graph, cek__graph *out);

/* How far a graph had come: what was added since is taken back, as long as no pass has run. */
typedef struct cek__graph_mark {
    int flows, parts, length;
} cek__graph_mark;
cek__graph_mark cek__graph_mark_of(const cek__graph *graph);
void cek__graph_rewind(cek__graph *graph, cek__graph_mark mark);

/* add - appends a part, whose kind, inputs and options are filled in, and makes its outputs; *out is output 0.
 * Errors: CEK_INVALID: shapes that do not fit, named; CEK_OUT_OF_MEMORY. */
CEK__SHARED CEK__CHECKED cek_status cek__graph_add(cek__graph *graph, const cek__part *part, int *out);
CEK__CHECKED cek_status cek__graph_append(cek__graph *graph, int part); /* at the sequence's end, once more */
void cek__graph_remove(cek__graph *graph, int at);                      /* what stands there in the sequence */
/* What stands there. Counted by thread: tests hold the passes to a number of looks that grows as the graph
 * does, no faster. */
cek__part *cek__graph_at(const cek__graph *graph, int at);
CEK__SHARED uint64_t cek__graph_looks(void);
/* Every part learns its place; -1: it is not in the sequence. Their order stays told when some are removed. */
void cek__graph_number(cek__graph *graph);
/* From `first` on, whoever reads `from` reads `to`. */
void cek__graph_redirect(cek__graph *graph, int first, int from, int to);
void cek__graph_count_readers(cek__graph *graph);
/* Takes the parts out of the sequence that give nothing that is read. */
void cek__graph_prune(cek__graph *graph);
/* One part a line, for people and tests; *text is the caller's. */
CEK__SHARED CEK__CHECKED cek_status cek__graph_text(const cek__graph *graph, char **text);

const cek__flow *cek__graph_flow(const cek__graph *graph, int flow);
/* The part that gives a flow. */
cek__part *cek__graph_giver(const cek__graph *graph, int flow);

/* ---- dims ---- */

CEK__SHARED bool cek__dims_equal(const cek__dims *a, const cek__dims *b);
/* Elements of the axes from `first` to before `end`, with so many samples. */
CEK__SHARED int64_t cek__dims_elements(const cek__dims *dims, int first, int end, int64_t samples);
CEK__SHARED bool cek__image_equal(cek__image a, cek__image b);
/* Nothing where both orders are one. */
CEK__SHARED cek__image cek__image_of(int64_t channels, int64_t pixels);
/* Without the axes whose bits are set; [1] where none is left. */
void cek__dims_without(const cek__dims *dims, uint32_t axes, cek__dims *out);
/* [N,C,...] as an image. */
cek__image cek__dims_image(const cek__dims *dims);

#endif
