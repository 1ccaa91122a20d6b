/* elementwise.c - a chain of instructions, block by block; see elementwise.h. */
#include "backends/cpu/ops/elementwise.h"

#include "backends/common/extent.h"
#include "backends/cpu/ops/elements.h"
#include "backends/cpu/ops/parallel.h"

/* --- planning --------------------------------------------------------------------------------- */

static bool is_counts(const cpu_elementwise *e, int t)
{
    return e->counts && t == e->inputs - 1;
}

static bool is_direct(const cpu_elementwise *e, int t)
{
    return e->type[t] == CEK_F32 && !is_counts(e, t) && cek__space_period(&e->space, t) == e->elements;
}

/* The largest block that has room in which every operand that repeats with a fitting period repeats a whole
 * number of times: a multiple of the longest such period. */
static int64_t block_size(const cpu_elementwise *e)
{
    int64_t longest = 1;

    for (int t = 0; t < e->inputs - e->counts; t++) {
        const int64_t period = cek__space_period(&e->space, t);

        if (period > longest && period < e->elements && period <= e->room)
            longest = period;
    }
    return e->room / longest * longest;
}

static cpu_access access_of(const cpu_elementwise *e, int t)
{
    const int64_t period = cek__space_period(&e->space, t);

    if (is_counts(e, t))
        return CPU_COUNTED;
    if (period == e->elements)
        return is_direct(e, t) ? CPU_DIRECT : CPU_CONVERTED;
    return t < e->inputs && period > 0 && e->block % period == 0 ? CPU_REPEATED : CPU_GATHERED;
}

/* Whether the value is needed by instruction `from` or a later one, or is the result. */
static bool needed(const cpu_elementwise *e, int value, int from)
{
    for (int i = from; i < e->instructions; i++)
        if ((int)e->code[i].a == value || (int)e->code[i].b == value || (int)e->code[i].c == value)
            return true;
    return value == e->inputs + e->instructions - 1;
}

static int buffer_take(uint32_t *used)
{
    int b = 0;

    while (*used >> b & 1)
        b++;
    *used |= 1u << b;
    return b;
}

/* Inputs keep their buffers (a repeated one is fetched once); the result of an instruction takes
 * over the buffer of a result that is not needed any more. An unused `a`, `b` or `c` is 0, which at
 * worst keeps value 0 longer. Returns how many buffers there are. */
static int assign_buffers(cpu_elementwise *e)
{
    const int last = e->inputs + e->instructions - 1;
    const bool in_place = is_direct(e, e->inputs) && !e->accumulate;
    uint32_t inputs = 0, all;

    for (int t = 0; t < e->inputs; t++)
        e->buffer[t] = is_direct(e, t) ? -1 : (int8_t)buffer_take(&inputs);
    all = inputs;
    for (int i = 0; i < e->instructions; i++) {
        uint32_t used = inputs;

        for (int v = e->inputs; v < e->inputs + i; v++)
            if (needed(e, v, i))
                used |= 1u << e->buffer[v];
        e->buffer[e->inputs + i] = e->inputs + i == last && in_place ? -1 : (int8_t)buffer_take(&used);
        all |= used;
    }
    return __builtin_popcount(all);
}

static uint64_t cost(const cpu_elementwise *e)
{
    uint64_t ps = 0;

    for (int t = 0; t <= e->inputs; t++)
        ps += e->access[t] == CPU_REPEATED || e->access[t] == CPU_COUNTED ? 0
                                                                          : cek__type_bytes(e->type[t]) * CPU_PS_BYTE;
    for (int i = 0; i < e->instructions; i++)
        switch (e->code[i].code) {
        case CEK_PW_EXP:
        case CEK_PW_LOG:
        case CEK_PW_TANH:
        case CEK_PW_SIGMOID:
        case CEK_PW_GELU:
        case CEK_PW_GELU_GRAD: ps += CPU_PS_EXP; break;
        case CEK_PW_POW:
        case CEK_PW_ERF:
        case CEK_PW_LOG1P:
        case CEK_PW_EXPM1:
        case CEK_PW_SIN:
        case CEK_PW_COS: ps += CPU_PS_CALL; break;
        default: ps += CPU_PS_SIMPLE;
        }
    return ps;
}

void cek__elementwise_plan(cpu_elementwise *e)
{
    enum { VECTOR = 16 }; /* floats of 64 bytes: buffers begin at such an address */
    int buffers;

    e->room = CPU_BLOCK;
    e->space.tensors = e->inputs + 1;
    cek__space_simplify(&e->space, e->inputs);
    e->elements = cek__space_elements(&e->space);
    buffers = assign_buffers(e);
    if (buffers > CPU_SCRATCH / CPU_BLOCK)
        e->room = CPU_SCRATCH / buffers / VECTOR * VECTOR;
    e->block = block_size(e);
    for (int t = 0; t <= e->inputs; t++)
        e->access[t] = access_of(e, t);
    e->ps_element = cost(e);
}

/* --- running ---------------------------------------------------------------------------------- */

typedef struct job {
    const cpu_elementwise *e;
    const cpu_kernels *k;
    const void *const *at;
    int64_t counted; /* rows */
    void *out;
} job;

typedef struct piece {
    float scratch[CPU_SCRATCH] __attribute__((aligned(64)));
    uint32_t raw[CPU_BLOCK] __attribute__((aligned(64)));
    const float *value[CPU_VALUES];
} piece;

/* n elements from number `first` on of the tensor whose offset is the row, a run along the innermost axis at a time. */
static void counts_make(const cpu_space *space, int t, int64_t counted, int64_t first, int64_t n, float *to)
{
    const int inner = space->rank - 1;
    cpu_place place;

    cek__place_of(space, first, &place);
    for (int64_t i = 0, run; i < n; i += run) {
        const int64_t left = counted - cek__place_offset(space, &place, t);
        int64_t count;

        run = space->shape[inner] - place.at[inner];
        run = run < n - i ? run : n - i;
        count = left <= 0 ? 0 : space->stride[t][inner] == 0 || left > run ? run : left;
        for (int64_t k = 0; k < count; k++)
            to[i + k] = 1;
        for (int64_t k = count; k < run; k++)
            to[i + k] = 0;
        cek__place_advance(space, &place, run);
    }
}

static void fetch(const job *j, piece *p, int t, int64_t first, int64_t n)
{
    const cpu_elementwise *e = j->e;
    const uint32_t bytes = cek__type_bytes(e->type[t]);
    const void *from = j->at[t];
    float *to = e->buffer[t] >= 0 ? p->scratch + e->buffer[t] * e->room : NULL;

    switch (e->access[t]) {
    case CPU_DIRECT: p->value[t] = (const float *)from + first; return;
    case CPU_CONVERTED: cek__cpu_load(j->k, e->type[t], n, (const char *)from + first * bytes, to); break;
    case CPU_REPEATED:
    case CPU_GATHERED:
        cek__elements_gather(&e->space, t, bytes, from, first, n, e->type[t] == CEK_F32 ? (void *)to : p->raw);
        if (e->type[t] != CEK_F32)
            cek__cpu_load(j->k, e->type[t], n, p->raw, to);
        break;
    case CPU_COUNTED: counts_make(&e->space, t, j->counted, first, n, to); break;
    }
    p->value[t] = to;
}

static void compute(const job *j, piece *p, int64_t n, float *direct)
{
    const cpu_elementwise *e = j->e;

    for (int i = 0; i < e->instructions; i++) {
        const cek_pointwise_instruction *c = &e->code[i];
        const int v = e->inputs + i;
        float *to = e->buffer[v] >= 0 ? p->scratch + e->buffer[v] * e->room : direct;

        j->k->ops->pointwise->run(c->code, n, p->value[c->a], p->value[c->b], p->value[c->c], (float)c->imm, to);
        p->value[v] = to;
    }
}

static void emit(const job *j, piece *p, int64_t first, int64_t n)
{
    const cpu_elementwise *e = j->e;
    const int t = e->inputs;
    const uint32_t bytes = cek__type_bytes(e->type[t]);
    const bool dense = e->access[t] != CPU_GATHERED;
    unsigned char *place = (unsigned char *)j->out + (dense ? first * bytes : 0);
    const float *v = p->value[e->inputs + e->instructions - 1];
    float old[CPU_BLOCK];

    if (e->accumulate) {
        const void *from = place;

        if (!dense) {
            cek__elements_gather(&e->space, t, bytes, j->out, first, n, p->raw);
            from = p->raw;
        }
        cek__cpu_load(j->k, e->type[t], n, from, old);
        j->k->add(n, v, old, old);
        v = old;
    }
    if (v == (const float *)place) /* computed where it belongs */
        return;
    if (dense) {
        cek__cpu_store(j->k, e->type[t], n, v, place);
    } else if (e->type[t] == CEK_F32) {
        cek__elements_scatter(&e->space, t, bytes, v, first, n, place);
    } else {
        cek__cpu_store(j->k, e->type[t], n, v, p->raw);
        cek__elements_scatter(&e->space, t, bytes, p->raw, first, n, place);
    }
}

/* The blocks from begin to behind end. */
static void run_blocks(void *arg, int64_t begin, int64_t end, int worker)
{
    const job *j = arg;
    const cpu_elementwise *e = j->e;
    piece p;

    (void)worker;
    memset(p.value, 0, sizeof p.value);
    for (int t = 0; t < e->inputs; t++)
        if (e->access[t] == CPU_REPEATED)
            fetch(j, &p, t, 0, e->block < e->elements ? e->block : e->elements);
    for (int64_t b = begin; b < end; b++) {
        const int64_t first = b * e->block, left = e->elements - first, n = left < e->block ? left : e->block;

        for (int t = 0; t < e->inputs; t++)
            if (e->access[t] != CPU_REPEATED)
                fetch(j, &p, t, first, n);
        compute(j, &p, n, (float *)j->out + (e->access[e->inputs] == CPU_DIRECT ? first : 0));
        emit(j, &p, first, n);
    }
}

void cek__elementwise_run(const cpu_elementwise *e, const cpu_dev *dev, const void *const *at, int64_t counted,
                          void *out)
{
    job j = { .e = e, .k = dev->config->kernels, .at = at, .counted = counted, .out = out };

    cek__cpu_for(dev, (e->elements + e->block - 1) / e->block, 1, e->ps_element * (uint64_t)e->block, run_blocks, &j);
}
