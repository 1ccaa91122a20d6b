/* event_hparams.c - what a run was asked for, and what became of it, as TensorBoard's table of runs reads them.
 *
 * Three values without a step, under names that the plugin knows; what they tell is in its metadata (its
 * plugin_data.proto and api.proto). */
#include <stdlib.h>
#include <string.h>

#include "nn/report/event_log.h"

enum { OF_EXPERIMENT = 2, OF_START = 3, OF_END = 4 };    /* fields of HParamsPluginData */
enum { TYPE_TEXT = 1, TYPE_NUMBER = 3 };                 /* DataType */
enum { ENDED_WELL = 1, ENDED_BADLY = 2 };                /* Status */
enum { DT_FLOAT = 1, VALUE_NUMBER = 2, VALUE_TEXT = 3 }; /* DataType of tensors; fields of google.protobuf.Value */

/* One of the three, into a summary; what it tells is empty afterwards. */
static cek_status told(cek__message *summary, const char *name, uint32_t field, cek__message *what)
{
    cek_status st;
    cek__message value = { 0 }, content = { 0 }, size = { 0 }, shape = { 0 }, tensor = { 0 };
    const float nothing = 0;

    CEK_TRY(cek__message_text(&value, CEK__VALUE_TAG, name));
    CEK_TRY(cek__message_within(&content, field, what));
    CEK_TRY(cek__event_plugin(&value, "hparams", &content));
    /* The table leaves out values that hold nothing: one number, which says nothing. */
    CEK_TRY(cek__message_integer(&size, 1, 1));
    CEK_TRY(cek__message_within(&shape, 2, &size));
    CEK_TRY(cek__message_integer(&tensor, 1, DT_FLOAT));
    CEK_TRY(cek__message_within(&tensor, 2, &shape));
    CEK_TRY(cek__message_field(&tensor, 5, &nothing, sizeof nothing));
    CEK_TRY(cek__message_within(&value, CEK__VALUE_TENSOR, &tensor));
    st = cek__message_within(summary, CEK__SUMMARY_VALUE, &value);
out:
    free(value.at);
    free(content.at);
    free(size.at);
    free(shape.at);
    free(tensor.at);
    return st;
}

/* What parameters and results there are. */
static cek_status experiment_tell(cek__message *summary, const cek_hparam *hparams, size_t count,
                                  const char *const *metrics, size_t metric_count)
{
    cek_status st;
    cek__message experiment = { 0 }, info = { 0 }, name = { 0 };

    CEK_TRY(cek__message_double(&experiment, 3, cek__event_now()));
    for (size_t i = 0; i < count; i++) {
        CEK_TRY(cek__message_text(&info, 1, hparams[i].name));
        CEK_TRY(cek__message_integer(&info, 4, hparams[i].text != NULL ? TYPE_TEXT : TYPE_NUMBER));
        CEK_TRY(cek__message_within(&experiment, 4, &info));
    }
    for (size_t i = 0; i < metric_count; i++) {
        CEK_TRY(cek__message_text(&name, 2, metrics[i]));
        CEK_TRY(cek__message_within(&info, 1, &name));
        CEK_TRY(cek__message_within(&experiment, 5, &info));
    }
    st = told(summary, "_hparams_/experiment", OF_EXPERIMENT, &experiment);
out:
    free(experiment.at);
    free(info.at);
    free(name.at);
    return st;
}

/* What this run has for each. */
static cek_status start_tell(cek__message *summary, const cek_hparam *hparams, size_t count)
{
    cek_status st;
    cek__message start = { 0 }, entry = { 0 }, value = { 0 };

    for (size_t i = 0; i < count; i++) {
        CEK_TRY(cek__message_text(&entry, 1, hparams[i].name));
        if (hparams[i].text != NULL)
            CEK_TRY(cek__message_text(&value, VALUE_TEXT, hparams[i].text));
        else
            CEK_TRY(cek__message_double(&value, VALUE_NUMBER, hparams[i].number));
        CEK_TRY(cek__message_within(&entry, 2, &value));
        CEK_TRY(cek__message_within(&start, 1, &entry));
    }
    CEK_TRY(cek__message_double(&start, 5, cek__event_now()));
    st = told(summary, "_hparams_/session_start_info", OF_START, &start);
out:
    free(start.at);
    free(entry.at);
    free(value.at);
    return st;
}

cek_status cek_event_log_hparams(cek_event_log *log, const cek_hparam *hparams, size_t count,
                                 const char *const *metrics, size_t metric_count)
{
    cek_status st;
    cek__message summary = { 0 }; /* of both, so that a record has both or there is none */

    CEK__NOT_NULL(log);
    CEK__NOT_NULL(hparams);
    CEK__NOT_NULL(metrics);
    for (size_t i = 0; i < count; i++) {
        CEK_TRY(cek__event_name_check("hyperparameter's name", hparams[i].name));
        if (hparams[i].text != NULL)
            CEK_TRY(cek__event_text_check("hyperparameter", hparams[i].text));
        for (size_t k = 0; k < i; k++)
            if (strcmp(hparams[i].name, hparams[k].name) == 0)
                CEK_FAIL(CEK_INVALID, "two hyperparameters are called %s", hparams[i].name);
    }
    for (size_t i = 0; i < metric_count; i++)
        CEK_TRY(cek__event_name_check("metric's tag", metrics[i]));
    CEK_TRY(experiment_tell(&summary, hparams, count, metrics, metric_count));
    CEK_TRY(start_tell(&summary, hparams, count));
    st = cek__event_summary(log, 0, &summary);
out:
    free(summary.at);
    return st;
}

cek_status cek_event_log_outcome(cek_event_log *log, bool well)
{
    cek_status st;
    cek__message summary = { 0 }, end = { 0 };

    CEK__NOT_NULL(log);
    CEK_TRY(cek__message_integer(&end, 1, well ? ENDED_WELL : ENDED_BADLY));
    CEK_TRY(cek__message_double(&end, 2, cek__event_now()));
    CEK_TRY(told(&summary, "_hparams_/session_end_info", OF_END, &end));
    st = cek__event_summary(log, 0, &summary);
out:
    free(summary.at);
    free(end.at);
    return st;
}
