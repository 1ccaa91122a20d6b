/* model.h - the inside of cek_model: its graph of parts, the parameters that it reads, and the nodes that callers
 * know it by.
 *
 * Owns: what a model is, and its names. layer.h adds to it, compose.h makes the graph of a plan of it.
 * A node is what one call gave: a flow of the graph, the name of its layer, and how people see it. nn/train uses the
 * functions at the end, and layout.h and plan.h.
 * Must not know: devices, plans, what a layer computes. */
#ifndef CEK_NN_MODEL_MODEL_H
#define CEK_NN_MODEL_MODEL_H

#include "cekernels/nn.h"
#include "core/base/export.h"
#include "nn/graph/graph.h"

/* Elements of one sample, and of one parameter: random numbers are indexed by 34 bits (plugin.h, section 9). */
#define CEK__ELEMENTS_MAX ((int64_t)1 << 34)

enum { CEK__NODE_INPUTS = 8, CEK__NODE_NOTE = 72, CEK__INPUT_RANK_MAX = 5 /* of a sample */ };

typedef struct cek__node {
    int flow;         /* of the graph: what it gives */
    const char *kind; /* "conv" */
    char *name;       /* "0", "layer1.0.conv1": by position or as the user calls it; NULL of the input */
    bool named;       /* by the user */
    char *label;      /* in errors and traces: the kind, and the user's name */
    int inputs, input[CEK__NODE_INPUTS]; /* nodes */
    int state[2];                        /* flows, beside what it gives: cek_part_state; CEK__NOTHING */
    char note[CEK__NODE_NOTE];           /* "3x3, stride 2" */
} cek__node;

typedef struct cek__parameter {
    cek_parameter public; /* `name` and `data` belong to it */
    int node;
    int flow;
    double fan_in; /* PyTorch's default initialisation is uniform in +-1/sqrt(fan_in), for the bias too; 0: `value` */
    double value;
    cek_init init; /* in place of that default; kind 0: none */
    bool pads;     /* row `padding` begins with zeros, however the others do */
    int64_t padding;
} cek__parameter;

/* A buffer: running statistics. */
typedef struct cek__buffer {
    cek_parameter public; /* `name` and `data` belong to it */
    uint64_t at;          /* its element among those of all buffers, at a multiple of CEK_ALIGNMENT bytes */
    double value;         /* of a new model */
    double momentum;      /* the weight of what a run of training adds */
} cek__buffer;

/* Arrays that never change, one behind the other, each at a multiple of CEK_ALIGNMENT bytes in any type. */
typedef struct cek__constants {
    uint64_t count; /* elements, with what lies between */
    float *values;
} cek__constants;

/* What a sample counts for in the loss, by its label: what the sum is divided by. Without `classes`: 1. */
typedef struct cek__label_weights {
    int64_t classes;
    double *weight; /* [classes]; NULL: 1 each */
    bool ignores;   /* samples with the label `ignored` count for nothing */
    int32_t ignored;
} cek__label_weights;

/* What classes are called; none: count 0. */
typedef struct cek__class_names {
    int64_t count;
    char **names, *text; /* into the text */
} cek__class_names;
void cek__class_names_clear(cek__class_names *names);
/* "cat/dog", as files have them; and back (*out is freed by free). */
CEK__CHECKED cek_status cek__class_names_split(const char *text, cek__class_names *out);
CEK__CHECKED cek_status cek__class_names_join(const cek__class_names *names, char **out);

/* Names of what is added now begin with `prefix` ("layer1.0."; NULL: nothing); `position` nodes were added so far. */
enum { CEK__SCOPES = 16 };
typedef struct cek__scope {
    char *prefix;
    int position;
} cek__scope;

struct cek_model {
    cek__graph graph; /* forward, as it was built; parameters are its own parts, one each */
    int node_count, node_capacity;
    cek__node *nodes; /* of cek_model_create [0] is the input */
    size_t parameter_count;
    cek__parameter *parameters;
    size_t buffer_count;
    cek__buffer *buffers;
    uint64_t buffer_elements; /* of all, with what lies between */
    cek__constants constants;
    cek__label_weights labels;
    cek__class_names class_names;
    double scale, offset; /* of the input */
    bool whole;           /* no axis counts samples: what it computes is one, and a prediction runs it one by one */
    int output;           /* a node; -1: the last one */
    size_t input_count;
    int inputs[CEK_INPUTS_MOST]; /* nodes, in the order in which batches have them */
    int target, loss, hits;      /* a flow, two parts: of a loss of its own; 0: none */
    cek_status failed;           /* a part that could not be added; CEK_OK */
    char *failure;               /* what was wrong with it; before, with the last layer that failed */
    cek__scope scopes[CEK__SCOPES];
    int depth;       /* the innermost; 0: the model itself */
    char *next_name; /* of the node that is added next; NULL: by its position */
};

/* The node that the model gives. */
CEK__SHARED int cek__model_output(const cek_model *model);
/* What a batch has for the targets of a loss: `columns` values or labels for each sample, of the first type that is i32
 * or f32. cek__model_own_targets: those of the model's own loss; false: it has none. */
typedef struct cek__targets {
    cek_dtype type;
    uint32_t columns;
} cek__targets;
CEK__SHARED bool cek__model_own_targets(const cek_model *model, cek__targets *out);

/* What a batch's targets amount to. */
typedef struct cek__amount {
    double weight;  /* what the sum of losses is divided by */
    int64_t labels; /* of which answers can be right; 0: of a loss without classes */
} cek__amount;
/* That of the labels of so many samples, for a loss of the model's own. Errors: CEK_BAD_INPUT: a label that
 * is no class, with its sample, of these rows of a data set (NULL: counted from 0). */
CEK__SHARED CEK__CHECKED cek_status cek__model_weigh(const cek_model *model, const int32_t *labels, const int64_t *rows,
                                                     int64_t samples, cek__amount *out);

/* "input" of that of cek_model_create. */
const char *cek__node_name(const cek_model *model, int node);
/* What a node gives. */
/* Errors: that `node` is none (CEK_INVALID); of -1 what kept it from being. */
CEK__CHECKED cek_status cek__node_check(const cek_model *model, int node, const char *what);
CEK__SHARED const cek__dims *cek__node_dims(const cek_model *model, int node);

/* The axes of one sample, and how many they are; NULL: 0. `shape` may be NULL. */
int cek__dims_sample(const cek__dims *dims, int64_t shape[CEK_RANK_MAX]);
/* "128x14x14": without the samples; returns `text`. */
enum { CEK__SHAPE_TEXT = 168 };
char *cek__dims_text(const cek__dims *dims, char text[CEK__SHAPE_TEXT]);

void cek__tensor_clear(cek_parameter *tensor);

/* The inputs of a model that has nothing else yet become one sample as they are, in the order of their elements. */
void cek__model_make_whole(cek_model *model);

/* 1 to CEK_NAME_MAX letters, digits, . _ and -. */
CEK__CHECKED cek_status cek__name_check(const char *name);

/* Dimensions are at least 1 and the product is within CEK__ELEMENTS_MAX. */
CEK__CHECKED cek_status cek__shape_check(const char *what, int rank, const int64_t *dim);

/* What a state dict has: parameters, then buffers; those of the parameter before. */
size_t cek__model_tensor_count(const cek_model *model);
const cek_parameter *cek__model_tensor(const cek_model *model, size_t index);

/* ---- for nn/train as well ---- */

/* Whether training computes with several samples at once, as batch norm does: their groups matter. */
CEK__SHARED bool cek__model_mixes_samples(const cek_model *model);

/* The type of samples in host memory that a caller asks for (0: whatever is usual), held against what the model takes:
 * u8 or f32 where any of its inputs is data, i32 where all are whole numbers. */
CEK__SHARED CEK__CHECKED cek_status cek__model_take_input_type(const cek_model *model, cek_dtype asked, cek_dtype *out);
/* Elements of one sample. */
CEK__SHARED int64_t cek__model_inputs(const cek_model *model, size_t input);
CEK__SHARED int64_t cek__model_outputs(const cek_model *model);
int64_t cek__node_elements(const cek_model *model, int node);
/* The node of that name, the later of two; -1: none. */
int cek__model_find(const cek_model *model, const char *name);

#endif
