/* onnx_write.h - an ONNX file being written: nodes one behind the other, the tensors and ends that they name,
 * then the file.
 *
 *     cek__onnx_out out = { 0 };
 *     cek__onnx_put_input(&out, "x", CEK__ONNX_FLOAT, 2, sizes, "batch");
 *     cek__onnx_put_tensor(&out, "w", CEK__ONNX_FLOAT, 2, shape, values, bytes);
 *     cek__onnx_put_node(&out, "MatMul", 2, (const char *[]){ "x", "w" }, "y", 0, NULL);
 *     cek__onnx_put_output(&out, "y", CEK__ONNX_FLOAT, 2, sizes, "batch");
 *     st = cek__onnx_write(&out, path, opset);
 *     cek__onnx_out_clear(&out);
 *
 * The first failure (memory) stays with `out`: what is put behind it does nothing, and cek__onnx_write gives it back.
 * Must not know: what an operator computes; parts, models. */
#ifndef CEK_NN_FORMATS_ONNX_WRITE_H
#define CEK_NN_FORMATS_ONNX_WRITE_H

#include "nn/formats/message.h"
#include "nn/formats/onnx.h"

/* TensorProto without its values, and these, which stay where they are until the file is written. */
typedef struct cek__onnx_weight {
    cek__message head;
    const void *data;
    uint64_t bytes;
} cek__onnx_weight;

typedef struct cek__onnx_out {
    cek_status st;
    cek__message nodes, ends; /* fields of GraphProto */
    CEK__ONNX_LIST(cek__onnx_weight, weights);
} cek__onnx_out;

/* An attribute of a node. */
typedef struct cek__onnx_setting {
    const char *name;
    cek__onnx_attribute_kind kind; /* FLOAT, INT or INTS */
    double number;
    int64_t integer;
    const int64_t *integers;
    int count;
} cek__onnx_setting;

/* A node of one output; an input "" is left out. */
void cek__onnx_put_node(cek__onnx_out *out, const char *op, int inputs, const char *const *input, const char *output,
                        int settings, const cek__onnx_setting *setting);
/* `data` is little-endian, as this machine is, and stays the caller's until the file is written. */
void cek__onnx_put_tensor(cek__onnx_out *out, const char *name, int type, int rank, const int64_t *shape,
                          const void *data, uint64_t bytes);
/* The same with a copy of a few values within. */
void cek__onnx_put_numbers(cek__onnx_out *out, const char *name, int type, int rank, const int64_t *shape,
                           const void *data, uint64_t bytes);
/* The same as a node, so that nobody takes it for a weight. */
void cek__onnx_put_constant(cek__onnx_out *out, const char *name, int type, int rank, const int64_t *shape,
                            const void *data, uint64_t bytes);
/* A size of 0 is the batch, by its name; one below 0 is not said. */
void cek__onnx_put_input(cek__onnx_out *out, const char *name, int type, int rank, const int64_t *size,
                         const char *batch);
void cek__onnx_put_output(cek__onnx_out *out, const char *name, int type, int rank, const int64_t *size,
                          const char *batch);

/* Atomically. Errors: what went wrong before; CEK_UNSUPPORTED: more than the 2 GiB that such a file
 * may have; CEK_IO. */
CEK__CHECKED cek_status cek__onnx_write(const cek__onnx_out *out, const char *path, int64_t opset);
void cek__onnx_out_clear(cek__onnx_out *out);

#endif
