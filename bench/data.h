/* data.h - the data sets and the model that `train` and `predict` were asked for. */
#ifndef BENCH_DATA_H
#define BENCH_DATA_H

#include <cekernels/nn.h>

#include "bench/bench.h"

typedef struct bench_data {
    cek_dataset *train, *test;            /* test may be empty, and is then NULL */
    cek_dtype input_type;                 /* u8 images, f32 images or rows of a table */
    int rank;                             /* of a sample */
    int64_t shape[CEK_RANK_MAX], classes; /* 0: targets are values, or there are none */
    cek_npy arrays[INPUTS_MOST];          /* of --input, in place of the sets; as their files have them */
    size_t array_count;
    bool unlabelled;  /* images without classes: a prediction has nothing to be held against */
    cek_model *model; /* an ONNX file's, until model_open hands it on: what it reads says what the data are */
    char source[256]; /* for people: "generated digits" */
} bench_data;

/* Whether the options that name data go together, and with a built-in model, and what can be said of --dtype and, where
 * the shape of the data is known without them, of MODEL: before a device is opened. 0 or an exit code. */
int data_check(const bench_options *o);
/* Arrays, a folder or a file of images, a table, the bytes of a text (for who reads whole numbers) or generated digits;
 * a table, and folders of images without a part for testing, are split, a table standardised by its training rows. 0 or
 * an exit code. */
int data_open(const bench_options *o, bench_data *data);
void data_close(bench_data *data);

/* The model named on the command line, with parameters from --load or by --seed, or the network of an ONNX file, which
 * sees data as they are. *preset is that of a built-in name, else what fits the data. 0 or an exit code. */
int model_open(const bench_options *o, bench_data *data, cek_model **model, cek_preset *preset);
/* Of training: classes are called in the model, and so in its file, as in the data. Of a prediction: they have to be
 * called the same in both, where both know. 0 or an exit code. */
int classes_name(const bench_data *data, cek_model *model);
int classes_agree(const bench_options *o, const bench_data *data, const cek_model *model);
/* Of --export: the model as an ONNX file. 0 or an exit code. */
int model_export(const bench_options *o, const cek_model *model);
/* Whether MODEL is an ONNX file, by its name: its weights are in it. */
bool model_is_file(const bench_options *o);

#endif
