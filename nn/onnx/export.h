/* export.h - what the files of exporting share: a model's graph on its way into the nodes of an ONNX file.
 *
 * Owns: the values of the file and their names. A value is a number; what gives one returns it, or -1 once something
 * has failed, which stays with the export, so that what a part becomes is written as an expression and looked at once.
 * Must not know: how a file is written. */
#ifndef CEK_NN_ONNX_EXPORT_H
#define CEK_NN_ONNX_EXPORT_H

#include "nn/formats/onnx_write.h"
#include "nn/model/model.h"

enum { CEK__EXPORT_OPSET = 18 };

typedef struct cek__export {
    const cek_model *model;
    const cek__graph *graph;
    const char *batch; /* what the axis of samples is called */
    cek__onnx_out out;
    cek_status st;
    int count, room;
    char **names; /* of values */
    int *values;  /* of each flow; -1: none */
    bool *needed; /* of each flow: the output depends on it */
    char *prefix; /* of names that nobody gave; no tensor's and no input's begins so */
    int first;    /* the first input as the file has it, */
    int samples;  /* and how many it has, as a list of one; -1: nobody has asked */
} cek__export;

bool cek__export_goes_on(const cek__export *e);
/* What the file cannot express: CEK_UNSUPPORTED with the cause; the part's layer is put before it. Returns -1. */
int cek__export_refuse(cek__export *e, const char *fmt, ...) CEK__PRINTF(2, 3);
/* A value of this name; NULL: one of its own. */
int cek__export_value(cek__export *e, const char *name);

int cek__export_node(cek__export *e, const char *op, int inputs, const int *input, int settings,
                     const cek__onnx_setting *setting);
int cek__export_one(cek__export *e, const char *op, int x);
int cek__export_two(cek__export *e, const char *op, int a, int b);
int cek__export_number(cek__export *e, double value);
int cek__export_list(cek__export *e, const int64_t *list, int count);
int cek__export_cast(cek__export *e, int x, cek__onnx_type to);
/* The same elements by these axes. */
int cek__export_reshape(cek__export *e, int x, const cek__dims *to);
/* x, whose axes are `from`, broadcast to `to`. */
int cek__export_spread(cek__export *e, int x, const cek__dims *from, const cek__dims *to);

/* export_parts.c: the flows that what a part gives in evaluation is made of (how many), and the value. */
int cek__export_reads(const cek__export *e, const cek__part *part, int flows[CEK__PART_INPUTS]);
int cek__export_part(cek__export *e, const cek__part *part);
/* export_chain.c */
int cek__export_chain(cek__export *e, const cek__part *part);

#endif
