/* event_log.h - what the files of an event log share: events, and values of summaries in them.
 *
 * Owns: the records of one log (records.h). Field numbers are those of TensorBoard's event.proto,
 * summary.proto and tensor.proto.
 * Must not know: what is trained. Threads: one at a time. */
#ifndef CEK_NN_REPORT_EVENT_LOG_H
#define CEK_NN_REPORT_EVENT_LOG_H

#include "cekernels/nn.h"
#include "nn/formats/records.h"

struct cek_event_log {
    cek__records records;
};

/* Fields of Event, Summary.Value and the messages in them that more than one file writes. */
enum {
    CEK__EVENT_WALL_TIME = 1,
    CEK__EVENT_STEP = 2,
    CEK__EVENT_VERSION = 3,
    CEK__EVENT_GRAPH = 4,
    CEK__EVENT_SUMMARY = 5,
    CEK__SUMMARY_VALUE = 1,
    CEK__VALUE_TAG = 1,
    CEK__VALUE_SCALAR = 2,
    CEK__VALUE_IMAGE = 4,
    CEK__VALUE_HISTOGRAM = 5,
    CEK__VALUE_TENSOR = 8,
    CEK__VALUE_METADATA = 9
};

double cek__event_now(void); /* seconds since 1970 */

/* A text that is not NULL and UTF-8. CEK_INVALID says "`what` `text`: ...". A name is not empty besides. */
CEK__CHECKED cek_status cek__event_text_check(const char *what, const char *text);
CEK__CHECKED cek_status cek__event_name_check(const char *what, const char *name);

/* begin - an event with time and step, to which the caller adds what it tells; cek__records_add ends it. */
CEK__CHECKED cek_status cek__event_begin(cek_event_log *log, int64_t step, cek__message **out);
/* An event of a summary, or of one value, which is empty afterwards. */
CEK__CHECKED cek_status cek__event_summary(cek_event_log *log, int64_t step, cek__message *summary);
CEK__CHECKED cek_status cek__event_value(cek_event_log *log, int64_t step, cek__message *value);
/* SummaryMetadata, of a value: which plugin of TensorBoard's shows it, and what that is told. */
CEK__CHECKED cek_status cek__event_plugin(cek__message *value, const char *plugin, cek__message *content);

#endif
