/* histogram.h - how often values fall between TensorBoard's bucket limits: 0, and from 1e-12 on by 10 % each up to
 * 1e20, both ways, with everything beyond in the outermost.
 *
 * Must not know: files, tags. */
#ifndef CEK_NN_REPORT_HISTOGRAM_H
#define CEK_NN_REPORT_HISTOGRAM_H

#include "nn/formats/message.h"

enum { CEK__HISTOGRAM_SIDE = 775 /* 1e-12, 1.1e-12, ... below 1e20: 774; the largest double */ };
enum { CEK__HISTOGRAM_BUCKETS = 2 * CEK__HISTOGRAM_SIDE + 1 };

typedef struct cek__histogram {
    double limit[CEK__HISTOGRAM_BUCKETS];   /* ascending */
    uint64_t count[CEK__HISTOGRAM_BUCKETS]; /* [i]: limit[i - 1] <= value < limit[i] */
    double low, high, sum, squares;         /* of the values counted */
    uint64_t counted;
} cek__histogram;

/* Of the values that are finite. */
CEK__SHARED void cek__histogram_of(const float *values, int64_t count, cek__histogram *out);

/* As HistogramProto; a run of empty buckets becomes one. */
CEK__CHECKED cek_status cek__histogram_write(const cek__histogram *h, cek__message *out);

#endif
