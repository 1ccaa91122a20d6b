/* train_line.c - see train_line.h. */
#include "bench/train_line.h"

#include <stdio.h>

#include "bench/progress.h"
#include "bench/progress_line.h"

enum { LOSS, ACCURACY, SPEED, DEVICES, DEVICES_SHOWN = PROGRESS_FACTS - DEVICES }; /* places of facts */

static void epoch_tell(const train_line *l)
{
    const int digits = l->epochs < 1000 ? snprintf(NULL, 0, "%lld", (long long)l->epochs) : 0; /* no wide gaps */
    if (!l->epochs)
        progress_label("epoch %lld", (long long)l->epoch);
    else if (l->epoch <= l->epochs)
        progress_label("epoch %*lld/%lld", digits, (long long)l->epoch, (long long)l->epochs);
}

/* The last batch of an epoch may be a part of one. */
void train_line_begin(train_line *l, const bench_options *o, const cek_trainer *trainer, cek_device *const *devices,
                      size_t device_count, int64_t samples, int64_t batch)
{
    *l = (train_line){ .trainer = trainer,
                       .devices = devices,
                       .device_count = device_count,
                       .epochs = o->epochs || o->steps ? o->epochs : 1,
                       .epoch = 1 };
    const int64_t each = (samples + batch - 1) / batch;
    const bool few = o->steps && (!l->epochs || o->steps / each < l->epochs);
    progress_begin(few ? o->steps : l->epochs * each, "epoch 1");
    epoch_tell(l);
}

/* Memory that the device lends and its share of the batch. */
static void device_tell(const train_line *l, size_t index, double shares)
{
    cek_memory_stats memory = { .size = sizeof memory };
    char share[8] = "";
    if (cek_device_memory_stats(l->devices[index], &memory))
        return;
    if (l->device_count > 1 && shares > 0)
        snprintf(share, sizeof share, " %3.0f%%", 100 * (double)cek_trainer_share(l->trainer, index) / shares);
    progress_fact(DEVICES + (int)index, "%s%s %4.0f MiB", cek_device_name(l->devices[index]), share,
                  (double)memory.used_bytes * 0x1p-20);
}

static void facts_tell(const train_line *l, int64_t step)
{
    double shares = 0;
    const double loss = l->loss / (double)l->epoch_samples;
    if (loss >= 0.01 && loss < 1000)
        progress_fact(LOSS, "loss %-7.4f", loss);
    else
        progress_fact(LOSS, "loss %-7.1e", loss);
    if (l->labels)
        progress_fact(ACCURACY, "accuracy %.4f", (double)l->correct / (double)l->labels);
    if (progress_per_second() > 0)
        progress_fact(SPEED, "%6.0f samples/s", progress_per_second() * (double)l->samples / (double)step);
    for (size_t i = 0; i < l->device_count; i++)
        shares += (double)cek_trainer_share(l->trainer, i);
    for (size_t i = 0; i < l->device_count && i < DEVICES_SHOWN; i++)
        device_tell(l, i, shares);
}

void train_line_step(train_line *l, const cek_step_result *r)
{
    l->samples += r->samples;
    l->epoch_samples += r->samples;
    l->loss += r->loss * (double)r->samples;
    l->labels += r->labels;
    l->correct += r->correct;
    progress_done(r->step);
    if (progress_wants_facts())
        facts_tell(l, r->step);
}

void train_line_epoch(train_line *l)
{
    l->epoch++;
    l->epoch_samples = l->labels = l->correct = 0;
    l->loss = 0;
    epoch_tell(l);
}
