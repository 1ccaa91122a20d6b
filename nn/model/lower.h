/* lower.h - from stages to a program: which ops compute a stage, and which its gradients.
 *
 * What lower_forward.c, lower_loss.c and lower_backward.c share. Must not know: who owns the
 * memory, when the program runs. */
#ifndef CEK_NN_MODEL_LOWER_H
#define CEK_NN_MODEL_LOWER_H

#include "nn/model/plan.h"
#include "nn/model/program.h"
#include "nn/model/stages.h"

/* What is known about a tensor (cek__flow) while the program is made. */
typedef struct cek__lowered {
    int value;                 /* its elements */
    cek_activation activation; /* that it is the result of */
    int activation_ref;        /* the value that this activation's backward reads */
    int gradient;              /* so far; CEK__NO_VALUE before its first reader has given one */
    bool gradient_owned;       /* nobody else reads that value: it may be accumulated onto */
    bool gradient_inside;      /* it is the gradient before the activation: the derivative is multiplied in */
    int reserve, pool;         /* of a max-pool's output: the reserve, and the instruction that fills it */
} cek__lowered;

typedef struct cek__lowering {
    const cek_model *model;
    const cek__layout *layout;
    const cek__plan_options *options;
    const cek__stages *stages;
    cek__program *program;
    cek__lowered *tensor;
    int *parameter, *gradient; /* values by parameter; gradient: when training */
    int step, batch;           /* values of the blocks */
} cek__lowering;

cek_status cek__lower_forward(cek__lowering *l); /* conversion of the input, all stages, the output of a prediction */
cek_status cek__lower_loss(cek__lowering *l);
cek_status cek__lower_backward(cek__lowering *l); /* from the loss's gradient to all parameters' */

/* ---- shared, in lower.c ---- */

/* Names the stage in errors of what is emitted next. */
void cek__lower_at(cek__lowering *l, const cek__stage *stage, const char *pass);

/* A new value of rows x `elements` of the layout's type, in the arena. */
cek_status cek__lower_value(cek__lowering *l, int64_t elements, int *out);

/* One elementwise instruction over rows x `elements`, of one or two inputs of the layout's type: OUT = code(a[, b]). */
cek_status cek__lower_pointwise(cek__lowering *l, uint32_t code, int a, int b, int64_t elements, int out);

/* The order of images: [rows][H][W][C] to [rows][C][H][W], or back. */
cek_status cek__lower_reorder(cek__lowering *l, const cek__shape *image, bool back, int from, int to);

void cek__lower_conv_desc(const cek__lowering *l, const cek__stage *stage, uint32_t kind, cek_conv_desc *out);
void cek__lower_pool_desc(const cek__lowering *l, const cek__stage *stage, uint32_t kind, cek_pool_desc *out);
cek_status cek__lower_dropout(cek__lowering *l, const cek__stage *stage, int from, int to);

#endif
