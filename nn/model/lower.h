/* lower.h - from stages to a program: which op of plugin.h computes what, forward, loss and backward.
 *
 * For plan.c. Each stage may leave behind what its backward needs (the op that fills a reserve, whether the activation was
 * fused). Must not know: the binder's memory, who runs the program. */
#ifndef CEK_NN_MODEL_LOWER_H
#define CEK_NN_MODEL_LOWER_H

#include "nn/model/graph.h"
#include "nn/model/layout.h"
#include "nn/model/plan.h"
#include "nn/model/program.h"
#include "nn/model/stages.h"

/* A gradient on its way back through the stages. */
typedef struct cek__gradient {
    int value;      /* 0: nobody has contributed yet */
    bool activated; /* it has been multiplied by the derivative of the activation that made the tensor */
} cek__gradient;

typedef struct cek__lowering {
    const cek_model *model;
    const cek__layout *layout;
    const cek__plan_options *options;
    const cek__stages *stages;
    cek__program *program;
    uint64_t rows;
    int *value;                  /* by tensor */
    int *input_of;               /* by stage: the value an unfused GELU read, for its gradient */
    int *reserve;                /* by stage: pool */
    const cek_op **forward;      /* by stage: pool */
    cek__gradient *gradient;     /* by tensor */
    int step, batch;             /* values of the blocks */
} cek__lowering;

cek_status cek__lower_open(cek__lowering *lowering);
void cek__lower_close(cek__lowering *lowering); /* a zeroed one is accepted */

/* The input's conversion and all stages; without a loss also the output. */
cek_status cek__lower_forward(cek__lowering *lowering);
/* The loss; when training also the gradient of the output. */
cek_status cek__lower_loss(cek__lowering *lowering);
/* The backward of one stage: gradients of its parameters, then of its inputs. */
cek_status cek__lower_backward(cek__lowering *lowering, int stage);

/* ---- shared by the files of the lowering ---- */

/* A new value of the arena: rows x `elements` of the layout's type. */
cek_status cek__lower_arena(cek__lowering *lowering, int64_t elements, int *out);
cek_status cek__lower_parameter(cek__lowering *lowering, int parameter, bool gradient, int *out);

/* out[i] = code(a[i] [, b[i]]) over rows x elements; b 0: one operand. */
cek_status cek__lower_pointwise(cek__lowering *lowering, uint32_t code, int a, int b, int out, int64_t elements);

/* The geometry of a convolution node, all but the head. */
cek_conv_desc cek__lower_conv_desc(const cek__lowering *lowering, const cek__stage *stage, uint32_t kind);
cek_pool_desc cek__lower_pool_desc(const cek__lowering *lowering, const cek__stage *stage, uint32_t kind);
cek_dropout_desc cek__lower_dropout_desc(const cek__lowering *lowering, const cek__stage *stage);

/* Device order H,W,C to PyTorch's C,H,W of `rows` images, or back. */
cek_copy_desc cek__reorder_desc(const cek__shape *image, uint64_t rows, cek_dtype type, bool back);

/* Names the stage in the program's errors. */
void cek__lower_at(cek__lowering *lowering, int node);

#endif
