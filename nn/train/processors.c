/* processors.c - see processors.h. */
#include "nn/train/processors.h"

#include <string.h>

/* The first device of a view's plugin on its processor. */
static size_t view_first(const cek__view *views, size_t index)
{
    size_t i = 0;

    while (strcmp(views[i].processor, views[index].processor) != 0 || cek__views_of_one(views[i], views[index]))
        i++;
    return i;
}

void cek__processors_number(const cek__view *views, size_t count, cek__costs_device *devices)
{
    for (size_t i = 0; i < count; i++) {
        const size_t first = view_first(views, i);
        size_t on_it = i;
        bool shared = strcmp(views[i].processor, "cpu") == 0;
        for (size_t k = 0; k < count; k++) {
            const int better = cek__view_fitness(views[k]) - cek__view_fitness(views[i]);
            if (k < on_it && strcmp(views[k].processor, views[i].processor) == 0)
                on_it = k;
            if (!cek__views_of_one(views[k], views[i]))
                continue;
            shared = true;
            if (view_first(views, k) == k && (better > 0 || (better == 0 && k < first)))
                devices[i].view++;
        }
        devices[i].processor = shared ? 1 + on_it : 0;
    }
}
