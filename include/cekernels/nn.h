/* SPDX-License-Identifier: MIT
 *
 * nn.h - libcekernels-nn: models, data, and training and inference over all devices of a machine at
 * once.
 *
 *     cek_engine *engine;  cek_device **devices;  size_t n;
 *     cek_model *model;  cek_dataset *train, *test;  cek_trainer *trainer;
 *     cek_engine_create(NULL, &engine);
 *     cek_engine_select(engine, "cpu,cuda:0", CEK_PROFILE_TRAINING, &devices, &n); // device_ids
 *     cek_model_parse("mnist-cnn", 0, NULL, &model);
 *     cek_model_init(model, 1);
 *     cek_dataset_mnist("data/mnist", true, &train);
 *     cek_dataset_mnist("data/mnist", false, &test);
 *     cek_trainer_options options = { .size = sizeof options, .seed = 1 };
 *     cek_trainer_create(model, devices, n, &options, &trainer);
 *     cek_fit_options fit = { .size = sizeof fit, .epochs = 3, .test = test };
 *     cek_trainer_fit(trainer, train, &fit, NULL);
 *     cek_trainer_pull(trainer);                                   // weights back into `model`
 *     cek_model_save(model, "mnist.safetensors");
 *
 * (Every call returns a cek_status to look at; left out above.) The conventions of cekernels.h hold
 * here.
 *
 * Shapes. Users see PyTorch's shapes and names: images C,H,W, convolution weights O,I,H,W, linear
 * weights out,in, names "0.weight" by position in the sequence as in torch.nn.Sequential. Inside,
 * images are NHWC; loading and saving convert.
 */
#ifndef CEKERNELS_NN_H
#define CEKERNELS_NN_H

#include <cekernels/cekernels.h>
#include <cekernels/layers.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Models ---------------------------------------------------------------------------------- */

/* A model is a graph of layers without devices, and its parameters in host memory. A node is a
 * number; node 0 is the input of cek_model_create; a node may feed several others, their gradients are added. The last
 * node added is the output. */
typedef struct cek_model cek_model;

/* `shape`: of one sample of data, without the batch: {features}, {C,H,W}, or any other of up to 5 axes ({T,D}: a
 * sequence). Rank 0 (shape NULL): a model without an input yet, whose input is added with its type (cek_part_input in
 * parts.h: words of a text as whole numbers). */
CEK_API CEK_CHECKED cek_status cek_model_create(int rank, const int64_t *shape, cek_model **out);
CEK_API void cek_model_free(cek_model *model);

/* cek_model_parse - a built-in name or a text of words separated by blanks:
 *   conv:OUT,K[,sS][,pP][,gG][,dD]   convt:... (transposed, also mMORE)   linear:OUT
 *   relu gelu gelutanh tanh sigmoid silu relu6 hardswish hardsigmoid leakyrelu[:SLOPE] elu[:ALPHA] softplus[:BETA]
 *   clip:LOW,HIGH prelu[:SLOPES]
 *   maxpool:K[,sS][,pP]   avgpool:K[,sS][,pP]   maxpoolto:SIZE   avgpoolto:SIZE (adaptive)   gap (global average)
 *   batchnorm   layernorm[:AXES]   rmsnorm[:AXES]   groupnorm:GROUPS   instancenorm   dropout:P   flatten
 *   embedding:ROWS,WIDTH   lstm:STATE[,lLAYERS][,dDIRECTIONS]   gru:... (the same)
 * Each is the layer of that name in layers.h, with the same K, S, .. for each axis; what is left out is as there.
 * Convolutions and pools have as many axes as the input has behind its channels.
 * `shape` as above; NULL for the built-in's own shape. A linear layer after images needs flatten.
 * The names: "mnist-cnn", "lenet5", "boston-mlp"; "resnet18", "resnet50", "mobilenetv2" with torchvision's layers,
 * names of parameters and initialisation, 3x224x224 and 1000 classes where nothing else is said ("resnet18:10" has
 * ten); "gpt", a language model on bytes, of four layers ("gpt:12" of twelve) over 128 bytes, with its loss.
 * Errors: CEK_BAD_INPUT names the word, its position and the shapes. */
CEK_API CEK_CHECKED cek_status cek_model_parse(const char *text, int rank, const int64_t *shape, cek_model **out);

/* Layers are added by the functions of layers.h: cek_model_conv, cek_model_linear, cek_model_layer_norm, ... */

/* What is added is called by its position ("0", "1"), and its parameters after it ("0.weight"). cek_model_name gives
 * the next node another name; between enter and leave all names begin with that one and a dot, and positions count
 * anew, as in nested modules of PyTorch: a name "bn1" within "layer1" within that within "0" is "layer1.0.bn1".
 * Letters, digits, . _ and -; two parameters of one name are refused (CEK_INVALID) when the second is added. Up to 15
 * can be entered, one within the other. */
enum { CEK_NAME_MAX = 100 };
CEK_API CEK_CHECKED cek_status cek_model_name(cek_model *model, const char *name);
CEK_API CEK_CHECKED cek_status cek_model_enter(cek_model *model, const char *name);
CEK_API CEK_CHECKED cek_status cek_model_leave(cek_model *model);

/* What the first layer sees is x * scale + offset of what the data holds; done on the device.
 * (x/255 - 0.5)/0.5 is {2/255, -1}. Default 1, 0; "mnist-cnn" and "lenet5" set {2/255, -1}. */
CEK_API void cek_model_set_input_scale(cek_model *model, double scale, double offset);
/* Replaces the probability of every dropout layer. */
CEK_API CEK_CHECKED cek_status cek_model_set_dropout(cek_model *model, double p);

/* Inputs, in the order in which they were added. cek_model_input: CEK_INVALID: there is none of that index. */
typedef struct cek_input {
    uint32_t size;
    cek_dtype type;   /* CEK_F32: data; CEK_I32: whole numbers */
    const char *name; /* the model's */
    int32_t rank;     /* of one sample */
    uint32_t reserved;
    int64_t shape[CEK_RANK_MAX];
} cek_input;
CEK_API size_t cek_model_input_count(const cek_model *model);
CEK_API CEK_CHECKED cek_status cek_model_input(const cek_model *model, size_t index, cek_input *out);
/* Of the first input, of the output, for one sample; returns the rank. (cek_model_shape in parts.h: of any node.) */
CEK_API int cek_model_input_shape(const cek_model *model, int64_t shape[CEK_RANK_MAX]);
CEK_API int cek_model_output_shape(const cek_model *model, int64_t shape[CEK_RANK_MAX]);

/* Parameters, in the order of the layers, weight before bias. Host memory, f32, PyTorch's
 * shapes. */
typedef struct cek_parameter {
    const char *name; /* "0.weight" */
    int rank;
    uint32_t reserved;
    int64_t shape[CEK_RANK_MAX];
    int64_t count;
    float *data; /* the model's; may be written while no trainer is being
                                       * created from it */
} cek_parameter;
CEK_API size_t cek_model_parameter_count(const cek_model *model);
/* The index of the parameter of that name; CEK_NOT_FOUND. */
CEK_API CEK_CHECKED cek_status cek_model_find_parameter(const cek_model *model, const char *name, size_t *index);
CEK_API cek_status cek_model_parameter(const cek_model *model, size_t index, cek_parameter *out);

/* Buffers: what training keeps beside the parameters, without a gradient: "1.running_mean". As parameters are,
 * for the rest. */
CEK_API size_t cek_model_buffer_count(const cek_model *model);
CEK_API cek_status cek_model_buffer(const cek_model *model, size_t index, cek_parameter *out);

/* PyTorch's default initialisation (uniform in +-1/sqrt(fan_in) for weights and biases of conv and
 * linear layers), from counter-based numbers: the same for every machine. A new model's parameters
 * are zero. */
CEK_API void cek_model_init(cek_model *model, uint64_t seed);

/* Other ways to fill parameters, as the functions of torch.nn.init that are named; numbers of their own, which depend
 * on the seed and on the parameter's place in the model. */
enum {
    CEK_INIT_CONSTANT = 1,         /* mean */
    CEK_INIT_UNIFORM = 2,          /* low to high */
    CEK_INIT_NORMAL = 3,           /* mean, deviation */
    CEK_INIT_TRUNCATED_NORMAL = 4, /* trunc_normal_: mean, deviation, drawn again outside low to high */
    CEK_INIT_KAIMING_UNIFORM = 5,  /* gain (0 = sqrt 2, for relu), fan_out; so for the normal one */
    CEK_INIT_KAIMING_NORMAL = 6,
    CEK_INIT_XAVIER_UNIFORM = 7, /* gain (0 = 1); so for the rest */
    CEK_INIT_XAVIER_NORMAL = 8,
    CEK_INIT_ORTHOGONAL =
        9 /* as a matrix of shape[0] rows; takes rows x columns x the smaller of them multiplications */
};
typedef struct cek_init {
    uint32_t size;
    uint32_t kind;
    uint64_t seed;
    double gain, mean, deviation, low, high;
    bool fan_out; /* KAIMING: deviations by the outputs that a value goes into, not by what an output sums up */
    uint8_t reserved[7];
} cek_init;
/* cek_model_init_parameters - fills all parameters whose name matches a pattern of glob(7) ("*.weight"). Errors:
 * CEK_NOT_FOUND (none does), CEK_INVALID (numbers that make no sense; KAIMING, XAVIER or ORTHOGONAL of a parameter of
 * rank 1, named): nothing was changed; CEK_OUT_OF_MEMORY (ORTHOGONAL): those before were filled. */
CEK_API CEK_CHECKED cek_status cek_model_init_parameters(cek_model *model, const char *names, const cek_init *init);
/* cek_model_set_init - how cek_model_init fills these parameters from now on, in place of PyTorch's default, with its
 * own seed for that of `init`. For who builds a network that is initialised otherwise. Errors: as above, before
 * anything was changed; CEK_INVALID of ORTHOGONAL, which needs memory. */
CEK_API CEK_CHECKED cek_status cek_model_set_init(cek_model *model, const char *names, const cek_init *init);

/* Saving: safetensors, atomically written; a state dict that PyTorch loads. Loading takes that, and the state dicts
 * that torch.save writes (.pt, .pth; since PyTorch 1.6): the file's dict, or the one dict within it that holds tensors,
 * which is logged. Nothing of such a file is executed, and what no state dict needs is CEK_BAD_INPUT, named. Values are
 * f32, f64, f16 or bf16; names (a leading "module." on all of them is accepted) and shapes are exactly the model's.
 * Integers called "....num_batches_tracked", which PyTorch's batch norm counts with, are passed over where the model
 * has no such name. So is what has no name in the model but the shape and the values, to the bit, of a parameter that
 * several nodes read (cek_part_shared): PyTorch has such a one under the names of all of them ("wte.weight" and
 * "lm_head.weight"). Nothing changes unless all of it is right. */
CEK_API CEK_CHECKED cek_status cek_model_save(const cek_model *model, const char *path);
CEK_API CEK_CHECKED cek_status cek_model_load(cek_model *model, const char *path);

typedef struct cek_onnx_options {
    uint32_t size;
    uint32_t reserved;
    const char *output; /* the output that the model gives; NULL: the file's first */
    const char *sizes;  /* of axes that the file has by name, but for the batch: "tokens=128,height=224" */
} cek_onnx_options;
/* cek_model_read_onnx - the model of an ONNX file (opset 13 and above; weights in it or beside it), to predict with and
 * to train on. Weights become parameters under their names in the file (what is not finite, running statistics and
 * Constants, buffers), also where it computes something of weights alone; small shapes and constants are computed now.
 * One number is a constant. Where the file says what the module trained (PyTorch's default exporter does), that counts:
 * buffers are none of the parameters, and one number may be one. What a file has once is one parameter for all who read
 * it: exporters write equal weights once, those of an untrained network too (PyTorch's with optimize=False does not).
 * `options` may be NULL. The batch is the axis of the input that has a name and no size in options->sizes, else the
 * first one, and whatever number it has there: where reshapes have that number among their sizes they are explained by
 * it. A file with numbers alone that cannot be explained so (it mixes samples) is a model whose one sample is the whole
 * batch, which is logged (CEK_LOG_WARN): it predicts, on one device at a time, and is not trained.
 * Inputs are those that the output depends on, in the file's order and under its names (cek_model_input), each a row
 * for each sample. Integers become i32: one that is too large is refused, and what is computed of those that come while
 * it runs is exact up to 2^24. Types: float, and weights in double, float16 and bfloat16.
 * Errors: CEK_BAD_INPUT (no such file as the ONNX library would take), CEK_UNSUPPORTED (an operator that there is not,
 * or not so: file, node and operator in the text), CEK_IO, CEK_OUT_OF_MEMORY. */
CEK_API CEK_CHECKED cek_status cek_model_read_onnx(const char *path, const cek_onnx_options *options, cek_model **out);
typedef struct cek_onnx_write_options {
    uint32_t size;
    uint32_t reserved;
    const char *batch; /* what the file calls the number of samples; NULL: "batch" */
} cek_onnx_write_options;
/* cek_model_write_onnx - the model as an ONNX file of opset 18, which runs at any batch and computes what a prediction
 * of the model's output does: parameters and buffers under their names, those that training does not move and arrays
 * (cek_part_array) as Constants, inputs (float or int32, images N,C,H,W) under theirs, what cek_model_set_input_scale
 * says as nodes, the output as "output"; a name that is taken already gets a line _ behind it. Atomically; `options`
 * may be NULL. What it writes, cek_model_read_onnx reads. An index outside of a table, which gives NaN here, is an
 * error there, or counts from the end.
 * Errors: CEK_UNSUPPORTED: what an ONNX file has nothing for (layer and part in the text), a model whose one sample is
 * a whole batch, more than 2 GiB; CEK_INVALID: a model without inputs or layers; CEK_IO, CEK_OUT_OF_MEMORY. */
CEK_API CEK_CHECKED cek_status cek_model_write_onnx(const cek_model *model, const char *path,
                                                    const cek_onnx_write_options *options);
/* Whether all parameters are numbers: CEK_NOT_FINITE, with the parameter and the place in the text, where one is NaN or
 * infinite, as the last update of a training whose losses were finite may leave it. */
CEK_API CEK_CHECKED cek_status cek_model_check_finite(const cek_model *model);
/* cek_model_fits - whether a device can hold the model's parameters for computing in `type` (CEK_F32, CEK_F64, CEK_BF16
 * or CEK_F16, for which they are f32; 0: CEK_F32): CEK_OK, or CEK_NO_DEVICE where what is laid out as one memory (small
 * parameters lie together, large weights of linear layers in pieces) is larger than the device gives at once: the text
 * has its largest parameter, the bytes, the device and its limit. Other errors: CEK_INVALID (NULL), CEK_UNSUPPORTED
 * (another type), CEK_OUT_OF_MEMORY (the host's). A trainer or predictor with such a device in its list is refused with
 * CEK_OUT_OF_MEMORY and the same text; who takes whatever devices join leaves it out. Says nothing of what is free. */
CEK_API CEK_CHECKED cek_status cek_model_fits(const cek_model *model, cek_device *device, cek_dtype type);
/* SHA-256 over the tensors in the order of their names, f32 little-endian, as 64 hex digits and
 * NUL. */
CEK_API void cek_model_sha256(const cek_model *model, char hex[65]);

/* A table of layers with shapes and parameter counts, and the memory that training with this batch takes on `device`
 * (NULL: the table alone), with the operations of forward and backward and the time that it took to plan them, which is
 * longer the first time on devices that compile. *text is the caller's (free). */
CEK_API CEK_CHECKED cek_status cek_model_summary(const cek_model *model, cek_device *device, int64_t batch,
                                                 char **text);

/* Adam, each parameter's step as long as the parameter times the rate (You et al. 2020), whoever owns its parts. Weight
 * decay is a part of the step. Not with max_norm. Not an algorithm of plugin.h: made of Adam and SGD. */
enum { CEK_OPTIMIZER_LAMB = 100 };
typedef struct cek_optimizer {
    uint32_t size;
    uint32_t algorithm; /* CEK_OPTIMIZER_SGD, _ADAM, _RMSPROP, _ADAGRAD or _LAMB; 0 = Adam */
    uint32_t flags;     /* CEK_OPTIMIZER_NESTEROV, _DECOUPLED, _CENTERED: plugin.h */
    uint32_t reserved;
    double lr; /* 0 = 0.001 (Adam, LAMB) or 0.01 (the others) */
    double weight_decay;
    double momentum;     /* SGD, RMSprop */
    double dampening;    /* SGD */
    double beta1, beta2; /* Adam, LAMB; 0 = 0.9, 0.999 */
    double epsilon;      /* all but SGD; 0 = 1e-8, of Adagrad 1e-10, of LAMB 1e-6 */
    double alpha;        /* RMSprop: decay of its means; 0 = 0.99 */
    double lr_decay;     /* Adagrad */
    double initial_sum;  /* Adagrad: what its sums of squares begin with */
} cek_optimizer;

/* How learning rates change while training goes on: each as the scheduler of torch.optim.lr_scheduler that is named, by
 * a formula of the number of steps before (or, BY_EPOCH, of epochs that have ended), from the rate that a
 * parameter has otherwise. */
enum {
    CEK_SCHEDULE_NONE = 0,
    CEK_SCHEDULE_STEP = 1,       /* StepLR: x gamma every `period` */
    CEK_SCHEDULE_MULTI_STEP = 2, /* MultiStepLR: x gamma at each milestone */
    CEK_SCHEDULE_COSINE = 3,     /* CosineAnnealingLR: down to `floor` in `period`, and up again in another */
    CEK_SCHEDULE_ONE_CYCLE =
        4,                   /* OneCycleLR over `period` steps, whose largest rate is the parameter's; momentum stays */
    CEK_SCHEDULE_PLATEAU = 5 /* ReduceLROnPlateau: x gamma, not below `floor`, when more than `patience` epochs in a row
                                  * were no better than the best (cek_trainer_end_epoch) */
};
enum {
    CEK_SCHEDULE_BY_EPOCH = 1u << 0,         /* STEP, MULTI_STEP, COSINE: period and milestones are epochs, not steps */
    CEK_SCHEDULE_LINEAR = 1u << 1,           /* ONE_CYCLE: along straight lines, not cosines */
    CEK_SCHEDULE_THREE_PHASES = 1u << 2,     /* ONE_CYCLE: down to where it began before it goes down to the end */
    CEK_SCHEDULE_LARGER_IS_BETTER = 1u << 3, /* PLATEAU: an accuracy, not a loss */
    CEK_SCHEDULE_ABSOLUTE = 1u << 4          /* PLATEAU: better by `threshold` itself, not by that part of the best */
};
typedef struct cek_schedule {
    uint32_t size;
    uint32_t kind;
    uint32_t flags;
    uint32_t milestone_count;
    /* In front of any: as many steps during which the rate is multiplied by what rises from `warmup_start` (0 = 1/3) to
     * 1 along a line (LinearLR). What counts in steps begins behind it (SequentialLR), what counts in epochs
     * goes on meanwhile. */
    int64_t warmup;
    double warmup_start;
    int64_t period;            /* STEP, COSINE, ONE_CYCLE */
    const int64_t *milestones; /* MULTI_STEP: ascending; copied */
    double gamma;              /* STEP, MULTI_STEP, PLATEAU; 0 = 0.1 */
    double floor;              /* COSINE, PLATEAU: a rate */
    double rising_part;        /* ONE_CYCLE: of the period; 0 = 0.3 */
    double start_divisor;      /* ONE_CYCLE: the first rate is the largest one by this; 0 = 25 */
    double end_divisor;        /* ONE_CYCLE: the last rate is the first one by this; 0 = 1e4 */
    int64_t patience;          /* PLATEAU: 0 waits for none (PyTorch's own choice is 10) */
    int64_t cooldown;          /* PLATEAU: epochs behind a reduction that do not count */
    double threshold;          /* PLATEAU; 0 = 1e-4 */
} cek_schedule;

/* What a built-in model is usually trained with. Rates are such that the loss falls from the first steps on, with
 * `batch` samples each, from weights as cek_model_init makes them and without a warmup. */
typedef struct cek_preset {
    uint32_t size;
    cek_loss loss;
    const char *name, *text;        /* the model's words; NULL of a network that is more than a sequence */
    const cek_optimizer *optimizer; /* the library's */
    int64_t batch;
    int64_t classes; /* outputs of a network that has any number of them: its own or those of "NAME:CLASSES"; else 0 */
    int32_t rank;    /* of a sample as it is made for, */
    cek_dtype input_type;        /* CEK_I32: of whole numbers (cek_dataset_text); 0: of others */
    int64_t shape[CEK_RANK_MAX]; /* {C,H,W} or {features} */
} cek_preset;
/* CEK_NOT_FOUND lists the names, and tells which is nearest */
CEK_API CEK_CHECKED cek_status cek_preset_find(const char *name, cek_preset *out);
/* The names, counted from 0; NULL behind the last. */
CEK_API const char *cek_preset_name(size_t index);

/* ---- Data ------------------------------------------------------------------------------------ */

/* A dataset is a number of samples with random access: inputs (u8, f32 or i32) and targets: class labels,
 * or f32 values. Inputs of u8 or f32 with three axes are images and lie channels last, [H][W][C]; all others
 * lie in the order of their axes. Reading one is safe from several threads. Subsets share the
 * memory of the whole and keep it alive. */
typedef struct cek_dataset cek_dataset;
CEK_API void cek_dataset_free(cek_dataset *dataset);
CEK_API int64_t cek_dataset_size(const cek_dataset *dataset);
CEK_API cek_dtype cek_dataset_input_type(const cek_dataset *dataset); /* CEK_U8, CEK_F32 or CEK_I32 */
CEK_API int64_t cek_dataset_classes(const cek_dataset *dataset);      /* 0: targets are values */
/* Of one sample: {C,H,W}, {features}, ...; the rank */
CEK_API int cek_dataset_shape(const cek_dataset *dataset, int64_t shape[CEK_RANK_MAX]);
/* values or labels per sample */
CEK_API int64_t cek_dataset_target_columns(const cek_dataset *dataset);

/* IDX files, plain or .gz, as MNIST and its relatives are distributed. Plain images of more than 256 MiB stay in their
 * file, and are read when a batch wants them. */
CEK_API CEK_CHECKED cek_status cek_dataset_idx(const char *images, const char *labels, int64_t classes,
                                               cek_dataset **out);
/* train-images-idx3-ubyte[.gz] etc. or t10k-... in a directory; 10 classes. */
CEK_API CEK_CHECKED cek_status cek_dataset_mnist(const char *directory, bool train, cek_dataset **out);
/* Drawn digits, 28 x 28, u8: 20,000 for training or 10,000 others for testing. The same for a seed
 * on every machine. */
CEK_API CEK_CHECKED cek_status cek_dataset_digits(uint64_t seed, bool train, cek_dataset **out);
/* The same digits in colour on coloured pages, 3 x 32 x 32, u8: 10,000 and 2,000. */
CEK_API CEK_CHECKED cek_status cek_dataset_coloured_digits(uint64_t seed, bool train, cek_dataset **out);
/* Any file as a text: samples are windows of `context` bytes (CEK_I32, 0 to 255) of its first nine tenths, or for
 * testing of the last one, one from each byte on; targets the byte behind each of theirs, 256 classes. CEK_BAD_INPUT:
 * it is too short. */
CEK_API CEK_CHECKED cek_status cek_dataset_text(const char *path, int64_t context, bool train, cek_dataset **out);
/* A table of numbers with a header line. `target`: the name of a column, or its number from 0; the
 * others are features. */
CEK_API CEK_CHECKED cek_status cek_dataset_csv(const char *path, const char *target, cek_dataset **out);

typedef struct cek_array_options {
    uint32_t size;
    cek_dtype input_type; /* CEK_U8, CEK_F32 or CEK_I32 */
    int64_t count;
    int rank;    /* 1 to 5 */
    bool nhwc;   /* images (u8, f32 of rank 3) are stored H,W,C; default C,H,W (converted while
                                       * copying) */
    bool borrow; /* keep the pointers (they outlive the dataset) instead of
                                       * copying; not for C,H,W with C > 1 */
    uint8_t reserved[2];
    int64_t shape[CEK_RANK_MAX]; /* of one sample, {C,H,W}, {features}, ... */
    const void *inputs;
    const int32_t *labels; /* with classes > 0: count x columns, each below classes */
    int64_t classes;
    const float *values; /* with classes = 0: count x columns */
    int64_t columns;     /* 0 with labels = 1 */
} cek_array_options;
CEK_API CEK_CHECKED cek_status cek_dataset_arrays(const cek_array_options *options, cek_dataset **out);

/* The first `count` of a permutation by seed go to *second, the others to *first; each keeps the
 * file's order. */
CEK_API CEK_CHECKED cek_status cek_dataset_split(const cek_dataset *whole, int64_t count, uint64_t seed,
                                                 cek_dataset **first, cek_dataset **second);
/* `rows` (distinct row numbers from 0) go to *second, the others to *first. */
CEK_API CEK_CHECKED cek_status cek_dataset_split_rows(const cek_dataset *whole, const int64_t *rows, int64_t count,
                                                      cek_dataset **first, cek_dataset **second);
/* The same with the row numbers in a text file, separated by blanks, commas or line ends; some, and
 * not all. CEK_BAD_INPUT names file and line. */
CEK_API CEK_CHECKED cek_status cek_dataset_split_file(const cek_dataset *whole, const char *path, cek_dataset **first,
                                                      cek_dataset **second);
/* Brings every feature of `dataset` to mean 0 and deviation 1 by the statistics of `by` (which may
 * be the same; standardise the test set first). f32 features only; constant columns are only
 * centred. */
CEK_API CEK_CHECKED cek_status cek_dataset_standardize(cek_dataset *dataset, const cek_dataset *by);

/* One thread; none where a batch is copied from memory in less time than it is handed over (64 KiB). */
#define CEK_WORKERS_AUTO UINT32_MAX
typedef struct cek_loader_options {
    uint32_t size;
    uint32_t workers; /* threads that fill batches; 0: the caller's own; CEK_WORKERS_AUTO */
    int64_t batch;    /* 0 = 64 */
    uint64_t seed;    /* of the order */
    bool shuffle;
    bool drop_last;
    uint8_t reserved[2];
    uint32_t prefetch;   /* batches ready ahead; 0 = 2 */
    cek_device *pin_for; /* batches lie in memory from which this device copies
                                       * fastest; NULL: ordinary memory */
} cek_loader_options;
enum { CEK_INPUTS_MOST = 8 };
/* A batch. Memory belongs to the loader until the batch is given back. */
typedef struct cek_batch {
    uint32_t size;
    cek_dtype input_type;
    int64_t count;           /* samples */
    const void *inputs;      /* count rows, as the dataset stores them (images [H][W][C]) */
    const void *targets;     /* int32_t labels or float values: [count][columns] */
    const int64_t *rows;     /* row numbers in the dataset; NULL: 0 to count - 1 */
    uint32_t target_columns; /* of a sample; 0: one label */
    cek_dtype target_type;   /* CEK_I32 or CEK_F32; 0: of 0 columns labels, of more values */
    /* Of a model with several inputs, in place of `inputs`: the rows of each, in the order in which they were added;
     * those of data in input_type (CEK_I32 where none is), whole numbers as int32_t. */
    const void *const *arrays;
    uint32_t array_count; /* at most CEK_INPUTS_MOST */
    uint32_t reserved;
} cek_batch;
typedef struct cek_loader cek_loader;
CEK_API CEK_CHECKED cek_status cek_loader_create(const cek_dataset *dataset, const cek_loader_options *options,
                                                 cek_loader **out);
CEK_API void cek_loader_free(cek_loader *loader); /* also while workers are busy */
/* Starts epoch `epoch` (its order depends on seed and epoch alone). */
CEK_API CEK_CHECKED cek_status cek_loader_start(cek_loader *loader, int64_t epoch);
/* The next batch, in order; *batch NULL at the end of the epoch. Valid until the next call for this
 * loader. */
CEK_API CEK_CHECKED cek_status cek_loader_next(cek_loader *loader, const cek_batch **batch);

/* ---- Arrays ---------------------------------------------------------------------------------- */

/* An array of a NumPy file (.npy), in the order of its axes, the last one fastest. */
typedef struct cek_npy {
    uint32_t size;
    cek_dtype type; /* CEK_F32, CEK_I32 or CEK_U8 */
    int32_t rank;   /* 0: a single number */
    uint32_t reserved;
    int64_t shape[CEK_RANK_MAX];
    int64_t count; /* of elements */
    void *data;
} cek_npy;
/* cek_npy_read - *out (its size must be set) gets the file's array; out->data is the caller's (free).
 * The file: version 1 to 3, either order of axes (Fortran's is turned into C's), either order of bytes; float16 to
 * float64, whole numbers of 8 to 64 bits, bool. `type` is what its elements become: CEK_F32 (float64 is rounded),
 * CEK_I32 or CEK_U8 (of whole numbers alone); CEK_DTYPE_NONE: CEK_F32, CEK_I32 or, of uint8 and bool, CEK_U8,
 * whichever is nearest. What is true, any byte of bool but 0, becomes 1.
 * Errors: CEK_BAD_INPUT: another format, a size that is not its header's, an element that the type does not hold;
 * CEK_IO: a file that cannot be read; CEK_INVALID: a size without room for `data`; CEK_OUT_OF_MEMORY. *out
 * is unchanged then. */
CEK_API CEK_CHECKED cek_status cek_npy_read(const char *path, cek_dtype type, cek_npy *out);
/* Atomically, as version 1. Errors: CEK_INVALID (count is not the shape's), CEK_IO, CEK_OUT_OF_MEMORY. */
CEK_API CEK_CHECKED cek_status cek_npy_write(const char *path, const cek_npy *array);

/* cek_tensor_load - the array of a .npy file as a tensor: np.load.
 *
 * Versions 1 to 3, either order of axes (Fortran's is turned into C's), either order of bytes. float32, float64,
 * float16, int32 and uint8 stay what they are, bool is u8 of 0 and 1, and int8, int16, int64, uint16, uint32 and
 * uint64 become i32 where every element fits. Errors: CEK_BAD_INPUT (another type, a size that is not the header's, an
 * element that 32 bits do not hold, no element; the file is named), CEK_IO, CEK_UNSUPPORTED (the device does not store
 * the type), CEK_OUT_OF_MEMORY, CEK_DEVICE_LOST. */
CEK_API CEK_CHECKED cek_status cek_tensor_load(cek_device *device, const char *path, cek_tensor **out);
/* As version 1, atomically: np.save. bf16, which NumPy lacks, is CEK_UNSUPPORTED. Errors: CEK_IO, CEK_OUT_OF_MEMORY,
 * CEK_DEVICE_LOST. */
CEK_API CEK_CHECKED cek_status cek_tensor_save(const cek_tensor *tensor, const char *path);

/* An archive of arrays (.npz), as np.savez and np.savez_compressed write it; read whole into memory. One may be read
 * from several threads at once. */
typedef struct cek_npz cek_npz;
/* Errors: CEK_BAD_INPUT (no archive, a damaged one, one that is encrypted or compressed otherwise than by deflate),
 * CEK_IO, CEK_OUT_OF_MEMORY. */
CEK_API CEK_CHECKED cek_status cek_npz_open(const char *path, cek_npz **out);
CEK_API void cek_npz_close(cek_npz *npz);
/* Its arrays without ".npy", in the order of the names with it; texts are the archive's, NULL beyond the last. */
CEK_API size_t cek_npz_count(const cek_npz *npz);
CEK_API const char *cek_npz_name(const cek_npz *npz, size_t index);
/* One array as cek_tensor_load reads it. Errors as there, and CEK_NOT_FOUND. */
CEK_API CEK_CHECKED cek_status cek_npz_tensor(const cek_npz *npz, const char *name, cek_device *device,
                                              cek_tensor **out);
/* cek_npz_save - `count` tensors of any devices under their names, atomically; equal ones make equal files. Errors: as
 * cek_tensor_save; CEK_INVALID (an empty name, one of more than 1,000 bytes, two that are equal), CEK_UNSUPPORTED
 * (more than 4 GiB in all or 2 GiB in one: save files then). */
CEK_API CEK_CHECKED cek_status cek_npz_save(const char *path, size_t count, const char *const *names,
                                            const cek_tensor *const *tensors, bool compress);

/* ---- Training -------------------------------------------------------------------------------- */

/* A trainer replicates a model over devices and trains it in synchronous steps: the batch is split
 * over the devices, each computes its gradients, one owner per shard of the parameters adds them up
 * and updates, and every replica gets the same bytes. The gradient is that of the whole batch,
 * however it is split. One thread at a time.
 *
 * Devices that work beside the host are called on threads of the trainer, and so are a predictor's, and see copies of
 * the caller's memory alone. Where a call into one does not return, or its work does not end, within the engine's
 * time-out, that device is lost: whatever waits answers CEK_DEVICE_LOST with the device, the call and the time, within
 * twice the time-out, and freeing returns within another. The thread stays inside for ever, with all that it may still
 * touch: that memory is not given back before the process ends, which it can. Calls into inline devices are
 * computations on the caller's thread or one of the trainer's, and are waited for. */
typedef struct cek_trainer cek_trainer;

/* How a batch is split over several devices. AUTO: by measurement. The first steps have equal and then deliberately
 * unequal shares, and where devices of one plugin share a processor some have it for themselves; what they take,
 * with links and memory that were measured when the trainer was made, gives shares and the devices that take part.
 * Of several plugins that drive one processor a step uses one: at first that which was made for it (CUDA before
 * OpenCL for a GPU, the CPU plugin before OpenCL for a CPU), then the fastest. A device that does not help is left
 * out: it owns no parameters, gets none, and is asked now and then how fast it is, with samples of a batch. Shares
 * follow changes of speed. What is decided, and why, is logged (CEK_LOG_INFO), as a list that can be given. Sums of
 * gradients depend on the split, so two runs need not give equal bits; with EQUAL and GIVEN they do. */
enum { CEK_SHARES_AUTO = 0, CEK_SHARES_EQUAL = 1, CEK_SHARES_GIVEN = 2 };
/* Parameters with a rate or a weight decay of their own, or that stay as they are: those whose names match and that no
 * group before has. Groups count from 1; group 0 is what is in none. */
enum {
    CEK_GROUP_FROZEN = 1u << 0,      /* never updated, and not a part of the norm that gradients are clipped by */
    CEK_GROUP_WEIGHT_DECAY = 1u << 1 /* weight_decay counts, 0 as well; else it is the optimizer's */
};
typedef struct cek_parameter_group {
    uint32_t size;
    uint32_t flags;
    const char *names; /* patterns of glob(7), separated by commas: "*.bias,0.*" */
    double lr;         /* 0: the optimizer's */
    double weight_decay;
} cek_parameter_group;

typedef struct cek_trainer_options {
    uint32_t size;
    cek_loss
        loss; /* 0: the model's own (cek_model_loss, cek_part_loss), else cross-entropy; with one, no other is taken */
    const cek_optimizer *optimizer; /* copied; NULL: Adam as it usually is */
    int64_t batch;                  /* largest batch of a step; 0 = 64 */
    uint64_t seed;                  /* of dropout */
    uint32_t shares;                /* CEK_SHARES_AUTO; CEK_SHARES_EQUAL: sizes differ by at most
                                       * one, the earlier devices the larger */
    cek_dtype type;                 /* CEK_F32 (default); CEK_F64 (where the devices compute in it);
                                       * CEK_BF16, CEK_F16: below */
    const double *share_weights;    /* CEK_SHARES_GIVEN: one number >= 0 per device, in
                                       * proportion; not all 0 */
    uint64_t memory_limit;          /* bytes per device; a share that does not fit is run as
                                       * micro-batches; 0: what is free */
    cek_dtype input_type;           /* type of the batches' inputs: CEK_U8 or CEK_F32 (default), converted
                                       * on the device; of an input of whole numbers CEK_I32 (default) */
    uint32_t target_columns;        /* MSE: values per sample; 0 = the model's outputs. Anything
                                       * else than those is refused */
    double max_norm;                /* the gradient of all parameters together is scaled down to this
                                       * Euclidean norm where it is larger (clipping); 0: it is not */
    uint32_t depth;                 /* steps that may be submitted and not collected; 0 = 2 */
    uint32_t reserved;
    const cek_schedule *schedule;      /* copied; NULL: rates stay as they are */
    const cek_parameter_group *groups; /* copied; at most CEK_GROUPS_MOST, all of the first one's size */
    uint32_t group_count;
    uint32_t accumulate; /* a step takes up to so many times `batch` samples, in the memory of `batch`: gradients of the
                          * parts are added up, and one update is made, as of the whole; 0 = 1 */
    double
        max_value;  /* every element of the summed gradient is brought between -max_value and max_value, before its norm
                          * is looked at; 0: it is not */
    double average; /* owners keep an average of the parameters, which begins as they do and follows each update:
                          * average += (1 - this) * (parameter - average); 0: none (cek_trainer_use_average) */
    int64_t norm_group; /* of a model that normalises over samples (batch norm): over so many consecutive ones at
                                       * a time, on any number of devices, whose shares are whole groups (not with
                                       * CEK_SHARES_AUTO). 0: over the batch, on one device. There are no other
                                       * micro-batches then: what does not fit is CEK_OUT_OF_MEMORY */
    double loss_scale;  /* CEK_F16 alone: what the loss is multiplied by at first; 0 = 2^16 */
    uint32_t
        loss_scale_steps; /* CEK_F16 alone: so many steps in a row whose gradients were finite double it; 0 = 2000 */
    uint32_t reserved_2;
    /* Does what another device answers CEK_UNSUPPORTED to; NULL: that is an error, which names layer, operation and
     * device. An inline device (CEK_DEVICE_INLINE, such as cpu:0; another is CEK_UNSUPPORTED), which may be one of the
     * trainer's. It outlives the trainer. */
    cek_device *fallback;
    uint32_t math; /* of products and convolutions, CEK_MATH_...: below */
    uint32_t reserved_3;
} cek_trainer_options;
enum { CEK_DEPTH_DEFAULT = 2, CEK_DEPTH_MOST = 16, CEK_GROUPS_MOST = 30 };

/* In CEK_BF16 and CEK_F16 products and convolutions read and give 16 bits, and so do activations and their gradients;
 * they add up in f32. Parameters, their gradients, what the optimizer keeps, normalisation statistics, softmax and
 * losses are f32, which is also what is saved. Of a parameter that nothing but products and convolutions read, devices
 * have a rounded copy and send each other that; the owner of its part keeps all digits. In CEK_F16 the loss is
 * multiplied by a factor, which is taken off before an update: a step with a gradient that is not finite changes no
 * parameter on any device and halves the factor (cek_trainer_skipped). LAMB and max_value are refused there
 * (CEK_UNSUPPORTED). A device that lacks an operation in 16 bits is refused with its name, the layer's and the
 * operation's, where there is no `fallback` that does it. */

/* What products and convolutions may make of numbers in f32, on every device and in the fallback: CEK_MATH_F32
 * (default) keeps all their digits and may transform them, so that a convolution rounds more often, within what
 * plugin.h says of such; STRICT only multiplies and adds, in any order; TF32 and FAST may round them to 10 and 7 bits
 * of fraction before they are multiplied, which devices without such units do not. Everything else is computed in f32
 * whatever this says: statistics, softmax, losses, sums over devices, updates. It is of this trainer, and a predictor
 * has its own: weights, files and states know nothing of it, so what was trained with one may be trained on, and used,
 * with any other, to within what these round. Another value is CEK_INVALID. */

/* An operation of the model that a device has not (16 bits, a shape: whatever its profile does not require) is left to
 * `fallback`: its operands go there through page-locked memory of the host, its results come back, in the order of all
 * else that the device computes. The device has nothing to do meanwhile, and submitting a step to a lone device
 * waits for what comes before its last such operation; so a warning in the log counts such operations, and at
 * CEK_LOG_INFO each is named with its layer. Gradients are those of the device, but for the digits that `fallback`
 * rounds otherwise. A part of a step with such an operation is no command buffer. What they take on `fallback` counts
 * for the device that leaves them, in options.memory_limit and cek_trainer_planned_bytes. Additions of gradients and
 * updates are not left: a device that owns parameters needs those. The operation runs on a thread of the trainer's for
 * the device that leaves it; where it does not return within the engine's time-out, `fallback` is the device that is
 * lost. */

/* Copies the model's parameters to the devices (the model must outlive the trainer and not be added to meanwhile; its
 * parameters are not written before cek_trainer_pull). Plans and allocates everything: a step allocates no
 * device memory; a smaller batch of a size not seen before may compile another plan, at most four
 * per device, beyond which rows are padded. With CEK_SHARES_AUTO and several devices, submit and step
 * may wait for what is under way, compile plans and allocate when shares change: optimizer states and
 * inboxes where others take part than before, page-locked samples where a share grows beyond twice
 * what it was. Where there is no memory for that, the devices that take part stay, with a warning in
 * the log. A share larger than twice an equal one runs as micro-batches.
 * Where a device reads from another one that lives in the host's memory, cpu:0 say, parameters and
 * gradients there are page-locked as long as the trainer exists (cek_pinned_register): the system
 * cannot take those pages away. Copies are slower where it refuses to, which the log says.
 * Errors: CEK_NO_DEVICE (a device of a lower profile than the job needs, named), CEK_OUT_OF_MEMORY
 * (with the numbers), CEK_INVALID (a shape that does not fit the loss),
 * CEK_UNSUPPORTED (names device and layer). */
CEK_API CEK_CHECKED cek_status cek_trainer_create(cek_model *model, cek_device *const *devices, size_t count,
                                                  const cek_trainer_options *options, cek_trainer **out);
CEK_API void cek_trainer_free(cek_trainer *trainer);

typedef struct cek_step_result {
    uint32_t size;
    uint32_t reserved;
    int64_t step; /* from 1 */
    int64_t samples;
    double loss;     /* mean over the batch, before the update */
    int64_t correct; /* labels of the batch whose class has the largest output; of a loss without classes 0 */
    double seconds;
    double loss_scale; /* what gradients were multiplied by on their way; 1 but of CEK_F16 */
    int64_t labels;    /* of which `correct` are: all but those that the loss ignores */
    double rate;       /* the learning rate of group 0 (cek_trainer_rate) */
} cek_step_result;
/* cek_trainer_submit - begins a step over a batch of at most options.batch samples and returns while it runs; the batch
 * is copied and may change at once. On an inline device that is alone, the step has run when this returns. Errors:
 * CEK_NOT_READY while options.depth steps are not collected, CEK_INVALID (batch of another form), CEK_BAD_INPUT (a
 * label out of range): nothing was done. CEK_DEVICE_LOST and others: as below. */
CEK_API CEK_CHECKED cek_status cek_trainer_submit(cek_trainer *trainer, const cek_batch *batch);
/* cek_trainer_collect - waits for the oldest step that is not collected. *result (may be NULL) is its. Errors:
 * CEK_INVALID (no step is submitted); CEK_NOT_FINITE: the parameters have been updated, by the steps submitted since as
 * well; anything else (CEK_DEVICE_LOST): the replicas may differ, every later call but free returns
 * the same failure. */
CEK_API CEK_CHECKED cek_status cek_trainer_collect(cek_trainer *trainer, cek_step_result *result);
/* Steps that are submitted and not collected. */
CEK_API size_t cek_trainer_uncollected(const cek_trainer *trainer);
/* cek_trainer_step - submit and collect in one, without copying the batch for inline devices. CEK_INVALID while other
 * steps are not collected. */
CEK_API CEK_CHECKED cek_status cek_trainer_step(cek_trainer *trainer, const cek_batch *batch, cek_step_result *result);

/* A step in two parts, with whatever the caller does between them (hooks are that):
 *     cek_trainer_backward(trainer, &batch, &result);     // loss; gradients of the whole batch, and nothing is updated
 *     cek_trainer_read_gradient(trainer, p, values, n);   // of any parameters (cek_model_find_parameter)
 *     cek_trainer_write_gradient(trainer, p, values, n);  // others in their place
 *     cek_trainer_update(trainer);                        // clipping, optimizer, average; or cek_trainer_discard
 * Exact: backward and update behind it are cek_trainer_step, bit for bit, on any devices whose shares are the same
 * (CEK_SHARES_EQUAL and _GIVEN), also with gradients that were read and written back. Between them parameters are those
 * of the step before, and evaluation, pull and read_replica see them; other steps, cek_trainer_fit and _use_average are
 * refused (CEK_INVALID). backward - as cek_trainer_step; CEK_NOT_FINITE: the loss is not finite, and its gradients wait
 * all the same. update - begins the update and returns; its failures come with a later call. discard - parameters,
 * optimizer and average stay as they are; schedules count the step, and the loss scale of f16 follows its gradients as
 * after any step. Both: CEK_INVALID where no gradients wait. */
CEK_API CEK_CHECKED cek_status cek_trainer_backward(cek_trainer *trainer, const cek_batch *batch,
                                                    cek_step_result *result);
/* As cek_trainer_read_gradient gives them; rounded to the trainer's type. CEK_INVALID where no gradients wait. Where a
 * device fails some elements may be the new ones and some the old: write again, or discard. */
CEK_API CEK_CHECKED cek_status cek_trainer_write_gradient(cek_trainer *trainer, size_t parameter, const double *src,
                                                          int64_t count);
CEK_API CEK_CHECKED cek_status cek_trainer_update(cek_trainer *trainer);
CEK_API CEK_CHECKED cek_status cek_trainer_discard(cek_trainer *trainer);

/* The learning rate of a group (0: of parameters in none) in the step that is submitted next, as the schedule has it; 0
 * of a group that is not there. set_rate: the rate that the schedule starts from (0 to FLT_MAX, beyond which no
 * schedule brings a rate), from the next submitted step on. end_epoch: moves schedules that count epochs on; of a
 * plateau, `metric` is the number that it watches. cek_trainer_fit calls it behind every epoch, with the test set's
 * loss (accuracy, where larger is better), without a test set with that of training. */
CEK_API double cek_trainer_rate(const cek_trainer *trainer, uint32_t group);
CEK_API CEK_CHECKED cek_status cek_trainer_set_rate(cek_trainer *trainer, uint32_t group, double rate);
CEK_API CEK_CHECKED cek_status cek_trainer_end_epoch(cek_trainer *trainer, double metric);
/* cek_trainer_use_average - from now on evaluate, pull and read_replica see the average of the parameters in their
 * place, or (false) the parameters again, to the bit. Waits for the steps that are submitted. CEK_INVALID: the trainer
 * keeps none. Steps are refused (CEK_INVALID) while the average is in use; cek_trainer_fit begins with the parameters.
 * CEK_OUT_OF_MEMORY before anything has changed leaves the trainer as it was; a later failure breaks it. */
CEK_API CEK_CHECKED cek_status cek_trainer_use_average(cek_trainer *trainer, bool use);

typedef struct cek_metrics {
    uint32_t size;
    uint32_t reserved;
    int64_t samples;
    double loss;     /* mean */
    double accuracy; /* of the labels that the loss does not ignore; of a loss without classes 0 */
} cek_metrics;
/* Loss and accuracy over a dataset in evaluation mode (no dropout), on all the trainer's devices. CEK_INVALID: samples
 * of another shape or type than the model and the trainer take, or targets that its loss does not compare. */
CEK_API CEK_CHECKED cek_status cek_trainer_evaluate(cek_trainer *trainer, const cek_dataset *dataset, cek_metrics *out);

typedef struct cek_epoch_result {
    uint32_t size;
    uint32_t reserved;
    int64_t epoch; /* from 1 */
    int64_t step;  /* steps so far */
    /* The trainer's, until its next epoch ends. */
    const cek_metrics *train; /* while training (with dropout) */
    const cek_metrics *test;  /* of the average, where the trainer keeps one; NULL without a test set */
    double seconds;           /* of training, without the test */
    double samples_per_second;
    uint64_t skipped; /* of the steps so far, those that changed nothing: cek_trainer_skipped */
} cek_epoch_result;
enum { CEK_PIN_AUTO = 0, CEK_PIN_YES = 1, CEK_PIN_NO = 2 };
typedef struct cek_fit_options {
    uint32_t size;
    uint32_t workers;        /* of the loaders, for training and the test; 0 = CEK_WORKERS_AUTO */
    int64_t epochs;          /* 0 = 1 */
    int64_t max_steps;       /* 0: no limit */
    const cek_dataset *test; /* or NULL */
    uint64_t seed;           /* of the order of samples */
    bool no_shuffle;
    bool drop_last; /* leave out a last batch that is not full, also where it is the only one */
    uint8_t reserved[6];
    /* Called on the calling thread; each may be NULL. */
    void (*on_step)(void *user, const cek_step_result *result);
    void (*on_epoch)(void *user, const cek_epoch_result *result);
    void *user;
    uint32_t prefetch; /* batches of the loader ready ahead; 0 = 2 */
    uint32_t pin; /* CEK_PIN_AUTO: batches lie in memory from which the device copies fastest where it reads them there
                                       * (a lone inline one); YES: always, the first device's; NO: in ordinary memory */
} cek_fit_options;
/* Trains over epochs. *last (may be NULL; its size must be set) is the result of the last epoch that ended, also where
 * a later one fails; 0 where none did. A request to stop ends it
 * between two steps: CEK_CANCELLED. CEK_INVALID, before the first step: what evaluation refuses of either set; training
 * samples that give no batch; steps that are not collected, or gradients that wait. Others: as cek_trainer_collect. */
CEK_API CEK_CHECKED cek_status cek_trainer_fit(cek_trainer *trainer, const cek_dataset *train,
                                               const cek_fit_options *options, cek_epoch_result *last);
/* Safe from any thread and from signal handlers; holds until the next fit begins. */
CEK_API void cek_trainer_request_stop(cek_trainer *trainer);

/* Copies the parameters from the devices into the model. This and what follows waits for the steps that are submitted,
 * which stay to be collected. */
CEK_API CEK_CHECKED cek_status cek_trainer_pull(cek_trainer *trainer);
/* Steps so far that changed no parameter because a gradient was not finite: of CEK_F16, whose loss scale such a step
 * halves. Waits for the steps that are submitted, which it counts too. */
CEK_API CEK_CHECKED cek_status cek_trainer_skipped(cek_trainer *trainer, uint64_t *count);
/* The devices, in the order in which they were given (NULL behind the last), and the samples that each had in the last
 * step; 0 of one that was left out. */
CEK_API size_t cek_trainer_device_count(const cek_trainer *trainer);
CEK_API cek_device *cek_trainer_device(const cek_trainer *trainer, size_t index);
CEK_API int64_t cek_trainer_share(const cek_trainer *trainer, size_t index);
/* The share, 0 to 1, of the time of the collected steps in which device `index` computed nothing, by the devices'
 * clocks. NAN where it is not measured: one device, equal or given shares, or no step yet. */
CEK_API double cek_trainer_idle(const cek_trainer *trainer, size_t index);
/* Bytes that the trainer has of device `index`, counted as cek_memory_stats does, with what is left to the fallback
 * there, and its micro-batch. */
CEK_API uint64_t cek_trainer_planned_bytes(const cek_trainer *trainer, size_t index);
CEK_API int64_t cek_trainer_micro_batch(const cek_trainer *trainer, size_t index);
/* The raw bytes of parameter `parameter` on device `index` (the device's own layout and the
 * trainer's type; f32 of CEK_BF16 and CEK_F16, of parameters with a rounded copy that), to compare replicas; `bytes` =
 * count x size of the type. What the owners have is pulled. */
CEK_API CEK_CHECKED cek_status cek_trainer_read_replica(cek_trainer *trainer, size_t index, size_t parameter, void *dst,
                                                        uint64_t bytes);
/* The whole batch's gradient of the last step, summed over the devices and not clipped by
 * its norm (by value it is), PyTorch's
 * shape, as doubles [count]. */
CEK_API CEK_CHECKED cek_status cek_trainer_read_gradient(cek_trainer *trainer, size_t parameter, double *dst,
                                                         int64_t count);
/* All of them as a safetensors file of f64 tensors under the parameters' names, atomically
 * written. */
CEK_API CEK_CHECKED cek_status cek_trainer_save_gradients(cek_trainer *trainer, const char *path);

/* ---- Event log ------------------------------------------------------------------------------- */

/* A log that TensorBoard shows: a file "events.out.tfevents..." of its own in a folder, which is made, with those above
 * it, where it is missing. A run is a folder: `tensorboard --logdir` of the one above has a curve of each.
 *     cek_event_log_create("runs/1", &log);
 *     cek_event_log_graph(log, model);
 *     cek_event_log_scalar(log, "step/loss", result->step, result->loss);        // again and again
 *     cek_event_log_free(log);
 * What a call tells is in the file when it returns, whole; where it fails, nothing of it is, and other calls may
 * follow. So who reads meanwhile sees whole records, and so does who reads what a process left that died: all but the
 * one that it was writing. Tags and texts are UTF-8, what stands before a tag's first / is the group that it is shown
 * in. `step` is any number from 0 on; of one tag they rise. Everything is copied. Threads: one at a time for each log.
 * Errors: CEK_INVALID (NULL, an empty tag, what is no UTF-8, a step below 0), CEK_IO (path
 * and cause), CEK_OUT_OF_MEMORY. */
typedef struct cek_event_log cek_event_log;
CEK_API CEK_CHECKED cek_status cek_event_log_create(const char *folder, cek_event_log **out);
CEK_API void cek_event_log_free(cek_event_log *log);
/* What was told so far outlives the machine's power too: waits for the disk. */
CEK_API CEK_CHECKED cek_status cek_event_log_flush(cek_event_log *log);

/* Numbers over steps, as f32. cek_event_log_scalars: all of one step in one record. */
typedef struct cek_event_scalar {
    const char *tag;
    double value;
} cek_event_scalar;
CEK_API CEK_CHECKED cek_status cek_event_log_scalar(cek_event_log *log, const char *tag, int64_t step, double value);
CEK_API CEK_CHECKED cek_status cek_event_log_scalars(cek_event_log *log, int64_t step, const cek_event_scalar *scalars,
                                                     size_t count);
/* How `count` values are distributed: what is not finite is not counted. Between limits that are 10 % apart, as
 * TensorFlow has them. */
CEK_API CEK_CHECKED cek_status cek_event_log_histogram(cek_event_log *log, const char *tag, int64_t step,
                                                       const float *values, int64_t count);
/* `pixels`: [height][width][channels], of 1 (grey), 2 (grey, opacity), 3 (RGB) or 4 channels (RGB, opacity), up to 256
 * MiB (CEK_INVALID beyond); kept as PNG. */
CEK_API CEK_CHECKED cek_status cek_event_log_image(cek_event_log *log, const char *tag, int64_t step,
                                                   const uint8_t *pixels, int64_t height, int64_t width,
                                                   int64_t channels);
/* Shown as Markdown. */
CEK_API CEK_CHECKED cek_status cek_event_log_text(cek_event_log *log, const char *tag, int64_t step, const char *text);
/* The layers, under their names, and the shapes between them; once. */
CEK_API CEK_CHECKED cek_status cek_event_log_graph(cek_event_log *log, const cek_model *model);

/* What a run was asked for, so that runs can be compared in a table: hparams are each a name with a number, or (not
 * NULL) a text; `metrics` are the tags of the scalars that say how well it went, whose last values count. Once, at the
 * beginning. cek_event_log_outcome: at the end, whether the run did what it should. CEK_INVALID: a name or tag that is
 * empty, two of one name. */
typedef struct cek_hparam {
    const char *name, *text;
    double number; /* where `text` is NULL */
} cek_hparam;
CEK_API CEK_CHECKED cek_status cek_event_log_hparams(cek_event_log *log, const cek_hparam *hparams, size_t count,
                                                     const char *const *metrics, size_t metric_count);
CEK_API CEK_CHECKED cek_status cek_event_log_outcome(cek_event_log *log, bool well);

/* ---- Inference ------------------------------------------------------------------------------- */

/* Runs a model in evaluation mode over devices; the batch is split, outputs come back in the order
 * of the inputs. */
typedef struct cek_predictor cek_predictor;
typedef struct cek_predictor_options {
    uint32_t size;
    cek_dtype input_type; /* CEK_U8 or CEK_F32 (default); of an input of whole numbers CEK_I32 (default) */
    int64_t batch;        /* samples at a time over all devices; 0 = 256 */
    bool softmax;         /* probabilities instead of logits; of the model's output alone */
    uint8_t reserved[3];
    uint32_t output_count;
    cek_dtype type; /* CEK_F32 (default), CEK_BF16 or CEK_F16, as in cek_trainer_options; outputs are f32 */
    uint32_t reserved_2;
    /* Bytes per device; 0: what is free. Where that does not suffice, weights are not packed; then shares are computed
     * in parts; at last nothing that follows from weights alone is kept. */
    uint64_t memory_limit;
    /* Names of the nodes to be read (cek_model_name with what was entered before; what was never called, by its
     * position), each of which has a row of numbers for each sample; NULL: the model's output. */
    const char *const *outputs;
    cek_device *fallback; /* as in cek_trainer_options */
    /* Likewise: CEK_MATH_... But for STRICT, a batch norm of f32 goes into the weights of the layer before it, where
     * nothing else reads that layer and memory suffices: as near to the true numbers, and not the same bits. */
    uint32_t math;
    uint32_t reserved_3;
} cek_predictor_options;
enum { CEK_OUTPUTS_MOST = 64 };
CEK_API CEK_CHECKED cek_status cek_predictor_create(const cek_model *model, cek_device *const *devices, size_t count,
                                                    const cek_predictor_options *options, cek_predictor **out);
CEK_API void cek_predictor_free(cek_predictor *predictor);
/* inputs: `count` samples of the declared type as data sets hold them, an image as [H][W][C] (for all
 * that cek_model_input_shape says C, H, W), others in the order of their axes. outputs: for each sample the values of
 * cek_model_output_shape in that order, f32: of a model that ends in an image [C][H][W], as PyTorch
 * has it. Any count >= 0. */
CEK_API CEK_CHECKED cek_status cek_predictor_run(cek_predictor *predictor, const void *inputs, int64_t count,
                                                 float *outputs);
/* Of a model with any number of inputs, any outputs: inputs[i] are the rows of input i, in the order in which they were
 * added; outputs[i] those of the options' outputs[i] (of one, the model's). Values are f32, those of
 * whole numbers too. */
CEK_API CEK_CHECKED cek_status cek_predictor_run_arrays(cek_predictor *predictor, const void *const *inputs,
                                                        int64_t count, float *const *outputs);
/* Outputs, and the shape of one sample of output `index`; its rank, 0 where there is none (`shape` may be NULL). */
CEK_API size_t cek_predictor_output_count(const cek_predictor *predictor);
CEK_API int cek_predictor_output_shape(const cek_predictor *predictor, size_t index, int64_t shape[CEK_RANK_MAX]);
/* The same over a dataset's rows in order; of a model with one input, and one output. */
CEK_API CEK_CHECKED cek_status cek_predictor_run_dataset(cek_predictor *predictor, const cek_dataset *dataset,
                                                         float *outputs);

#ifdef __cplusplus
}
#endif

#include <cekernels/data.h>

#endif /* CEKERNELS_NN_H */
