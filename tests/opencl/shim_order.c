/* shim_order.c - a poll that finds a command complete is no synchronisation point: who then enqueues in another queue,
 * and has waited for nothing, may read what was there before. Such commands are counted.
 *
 * The wait may come directly behind the poll, so others are held to what a thread was told only when that thread goes
 * on to enqueue something. A wait by a command of one queue counts for all. */
#include <pthread.h>
#include <stdlib.h>

#include "tests/opencl/shim_inside.h"

enum { QUEUES = 256, TOLD = 16 };

/* Numbers of commands: the last that a poll told of, the last that was waited for. */
static struct {
    cl_command_queue queue;
    uint64_t told, waited;
} queues[QUEUES];
static int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of both */

/* What this thread was told and has not waited for. */
static _Thread_local struct {
    cl_command_queue queue;
    uint64_t number;
} own[TOLD];
static _Thread_local int own_count;

static int queue_find(cl_command_queue queue)
{
    int i = 0;
    while (i < count && queues[i].queue != queue)
        i++;
    return i;
}

void shim_order_made(cl_command_queue queue, uint64_t number)
{
    pthread_mutex_lock(&lock);
    if (count == QUEUES)
        abort();
    queues[count].queue = queue;
    queues[count].told = queues[count].waited = number;
    count++;
    pthread_mutex_unlock(&lock);
}

void shim_order_released(cl_command_queue queue)
{
    pthread_mutex_lock(&lock);
    int at = queue_find(queue);
    if (at < count)
        queues[at] = queues[--count];
    pthread_mutex_unlock(&lock);
}

void shim_order_told(cl_command_queue queue, uint64_t number)
{
    int i = 0;
    while (i < own_count && own[i].queue != queue)
        i++;
    if (i == TOLD)
        abort();
    own_count += i == own_count;
    own[i].queue = queue;
    own[i].number = number;
}

void shim_order_waited(cl_command_queue queue, uint64_t number)
{
    pthread_mutex_lock(&lock);
    int at = queue_find(queue);
    if (at < count && queues[at].waited < number)
        queues[at].waited = number;
    pthread_mutex_unlock(&lock);
}

void shim_order_enqueued(cl_command_queue queue)
{
    bool unordered = false;
    pthread_mutex_lock(&lock);
    for (; own_count; own_count--) {
        int at = queue_find(own[own_count - 1].queue);
        if (at < count && queues[at].told < own[own_count - 1].number)
            queues[at].told = own[own_count - 1].number;
    }
    for (int i = 0; i < count; i++)
        unordered |= queues[i].queue != queue && queues[i].told > queues[i].waited &&
                     shim_queue_context(queues[i].queue) == shim_queue_context(queue);
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&shim.unordered, unordered);
}
