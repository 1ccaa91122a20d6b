/* model.h - the inside of cek_model: nodes in the order in which they were added, and the parameters they own.
 *
 * For the files of nn/model. nn/train uses the functions at the end, and layout.h and plan.h.
 * Shapes here are PyTorch's, of one sample: C,H,W or features.
 * Must not know: devices, layouts, plans. */
#ifndef CEK_NN_MODEL_MODEL_H
#define CEK_NN_MODEL_MODEL_H

#include "cekernels/nn.h"
#include "core/base/export.h"

/* Elements of one sample, and of one parameter: random numbers are indexed by 34 bits (plugin.h, section 9). */
#define CEK__ELEMENTS_MAX ((int64_t)1 << 34)

typedef enum cek__layer {
    CEK__LAYER_INPUT,
    CEK__LAYER_CONV,
    CEK__LAYER_LINEAR,
    CEK__LAYER_ACTIVATION,
    CEK__LAYER_POOL,
    CEK__LAYER_DROPOUT,
    CEK__LAYER_FLATTEN,
    CEK__LAYER_ADD,
    CEK__LAYER_COUNT
} cek__layer;

typedef struct cek__shape {
    int rank; /* 1 or 3; 0 = none */
    int64_t dim[3];
} cek__shape;

typedef struct cek__node {
    cek__layer layer;
    int inputs; /* how many of `input` are used */
    int input[2];
    cek__shape shape; /* of the output */
    int weight, bias; /* parameters, -1 without */
    union {
        cek_conv2d_layer conv; /* zeros replaced by what they stand for; so in pool */
        cek_pool2d_layer pool;
        struct {
            int64_t out;
            bool bias;
        } linear;
        cek_activation activation;
        double dropout;
    };
} cek__node;

typedef struct cek__parameter {
    cek_parameter public; /* `name` and `data` belong to it */
    int node;
    double fan_in;
} cek__parameter;

struct cek_model {
    int node_count, node_capacity;
    cek__node *nodes;
    size_t parameter_count;
    cek__parameter *parameters;
    double scale, offset; /* of the input */
};

int64_t cek__shape_elements(const cek__shape *shape);
bool cek__shape_equal(const cek__shape *a, const cek__shape *b);

/* "128x14x14"; returns `text`. */
enum { CEK__SHAPE_TEXT = 72 };
char *cek__shape_text(const cek__shape *shape, char text[CEK__SHAPE_TEXT]);

/* ---- for nn/train as well ---- */

/* Elements of one sample. */
CEK__SHARED int64_t cek__model_inputs(const cek_model *model);
CEK__SHARED int64_t cek__model_outputs(const cek_model *model);

#endif
