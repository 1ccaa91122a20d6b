/* simplify.c - see simplify.h.
 *
 * ReLU before max-pooling changes places with it when training. The two commute exactly: ReLU is monotone, so the
 * maximum of its results is its result for the maximum, NaN included. Gradients agree too: where the maximum is
 * positive, the first place that attains it is the same before and after ReLU; where it is not, both orders send zero.
 * After the pool there are fewer elements (a quarter, for 2x2), the convolution's output need not be kept, and ReLU's
 * gradient can ride in the epilogue of the next layer's. In evaluation it stays where it is: within the convolution
 * it costs nothing. */
#include "nn/graph/simplify.h"

#include "nn/graph/parts.h"

static void dropout_remove(cek__graph *graph, bool training)
{
    for (int i = 0; i < graph->length; i++) {
        const cek__part *part = cek__graph_at(graph, i);

        if (part->kind != CEK__PART_DROPOUT || (training && part->dropout.p > 0))
            continue;
        cek__graph_redirect(graph, i, part->output[0], part->input[0]);
        cek__graph_remove(graph, i--);
    }
}

static void effects_remove(cek__graph *graph)
{
    for (int i = graph->length; i-- > 0;)
        if (cek__part_class_of(cek__graph_at(graph, i)->kind)->effect)
            cek__graph_remove(graph, i);
}

/* What a flow is in this phase. */
static int chosen(const cek__graph *graph, int flow, bool training)
{
    const cek__part *giver = cek__graph_giver(graph, flow);

    for (; giver->kind == CEK__PART_PHASE; giver = cek__graph_giver(graph, flow))
        flow = giver->input[training ? 0 : 1];
    return flow;
}

static void phases_choose(cek__graph *graph, bool training)
{
    int kept = 0;

    for (int i = 0; i < graph->length; i++) {
        cek__part *part = cek__graph_at(graph, i);

        part->gone = part->kind == CEK__PART_PHASE;
        if (part->gone)
            continue;
        for (int k = 0; k < part->inputs; k++)
            part->input[k] = chosen(graph, part->input[k], training);
        graph->sequence[kept++] = graph->sequence[i];
    }
    graph->length = kept;
    graph->result = chosen(graph, graph->result, training);
}

static bool is_relu(const cek__part *part)
{
    return part->kind == CEK__PART_CHAIN && part->inputs == 1 && part->chain.count == 1 &&
           part->chain.code[0].code == CEK_PW_RELU;
}

/* x -> relu -> pool becomes x -> pool -> relu: each reads and gives what the other did. */
static void relu_delay(cek__graph *graph)
{
    cek__graph_count_readers(graph);
    for (int i = 0; i + 1 < graph->length; i++) {
        cek__part *relu = cek__graph_at(graph, i), *pool = cek__graph_at(graph, i + 1);
        cek__flow *between = &graph->flows[relu->output[0]], *end = &graph->flows[pool->output[0]];
        int64_t before = cek__dims_elements(&between->dims, 0, between->dims.rank, 1);
        int first = relu->output[0], last = pool->output[0], swapped = graph->sequence[i];

        if (!is_relu(relu) || pool->kind != CEK__PART_POOL || pool->pool.mode != CEK_POOL_MAX ||
            pool->input[0] != first || between->readers != 1 ||
            cek__dims_elements(&end->dims, 0, end->dims.rank, 1) >= before)
            continue;
        pool->input[0] = relu->input[0];
        relu->input[0] = first;
        pool->output[0] = first;
        relu->output[0] = last;
        between->dims = end->dims;
        between->part = graph->sequence[i + 1];
        end->part = graph->sequence[i];
        graph->sequence[i] = graph->sequence[i + 1];
        graph->sequence[i + 1] = swapped;
    }
}

void cek__simplify(cek__graph *graph, bool training)
{
    if (!training)
        effects_remove(graph);
    phases_choose(graph, training);
    dropout_remove(graph, training);
    if (training)
        relu_delay(graph);
    cek__graph_prune(graph);
}
