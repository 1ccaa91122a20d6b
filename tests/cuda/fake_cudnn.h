/* SPDX-License-Identifier: MIT
 *
 * fake_cudnn.h - what the parts of the fake cuDNN share: descriptors as they were set (fake_cudnn.c), what they say
 * (fake_cudnn_graph.c), and what comes out (fake_cudnn_math.c).
 */
#ifndef TESTS_CUDA_FAKE_CUDNN_H
#define TESTS_CUDA_FAKE_CUDNN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/cuda/cudnn.h"

#pragma GCC visibility push(hidden)

enum { WORKSPACE = 5000, ENGINES = 5, ATTRIBUTES = 12, ALIVE = 0x600d, DEAD = 0xdead };
enum { ENGINE_ROUNDS = 11, ENGINE_BROKEN, ENGINE_WINOGRAD, ENGINE_UNORDERED, ENGINE_RIGHT };

#define DIE(...)                                     \
    do {                                             \
        fprintf(stderr, "fake cuDNN: " __VA_ARGS__); \
        fputc('\n', stderr);                         \
        abort();                                     \
    } while (0)

typedef struct attribute {
    uint32_t name, type;
    int64_t count;
    void *values;
} attribute;

typedef struct object {
    uint32_t life, type;
    bool finished;
    uint32_t count;
    attribute attributes[ATTRIBUTES];
    struct object *graph; /* of configurations and engines */
    int engine;
    atomic_uint runs; /* of plans */
} object;

/* Always with three spatial dimensions: a missing first one is 1. */
typedef struct tensor {
    int64_t number, align, sizes[5], strides[5], elements;
    uint32_t type;
    bool is_virtual;
} tensor;

typedef struct window {
    int64_t stride[3], dilation[3], before[3], behind[3];
} window;

enum { IMAGE, WEIGHTS, OUT };
typedef struct convolution {
    window window;
    tensor tensors[3];
    int result;
    float alpha, beta;
} convolution;

typedef struct graph {
    convolution conv;
    int count; /* of pointwise operations behind it */
    struct {
        uint32_t mode;
        bool keeps_nan; /* a ReLU that was told to */
        tensor x, b, y;
    } after[3];
    tensor last;
} graph;

typedef struct job {
    object *plan;
    unsigned run; /* of this plan: 0, 1, ... */
    int64_t count, numbers[8];
    unsigned char *addresses[8];
    unsigned char *workspace;
    void (*spend)(double milliseconds); /* time that it takes the device */
} job;

/* Whether FAKE_CUDNN has the word. */
bool dnn_told(const char *word);

/* The descriptor if it is alive and of that kind; else the end. */
object *dnn_object_of(void *descriptor, uint32_t type);
/* An attribute that may be missing, and ones that may not. */
const attribute *dnn_attribute_find(const object *o, uint32_t name);
const attribute *dnn_attribute_of(const object *o, uint32_t name);
uint32_t dnn_number_of(const object *o, uint32_t name);
const int64_t *dnn_ints_of(const object *o, uint32_t name);
float dnn_float_of(const object *o, uint32_t name);
/* A descriptor that is an attribute, finished and of that kind. */
object *dnn_other_of(const object *o, uint32_t name, uint32_t type);

tensor dnn_tensor_read(const object *o);
window dnn_window_read(const object *o);
/* False: the descriptor is no convolution. */
bool dnn_convolution_read(const object *o, convolution *c);
graph dnn_graph_read(const object *o);

/* Where the variant pack has put the tensor. */
unsigned char *dnn_memory_of(const job *j, const tensor *t);
/* Runs a plan; `user` is the job. */
void dnn_job_run(void *user);

#pragma GCC visibility pop

#endif
