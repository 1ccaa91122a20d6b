/* images.h - what options say of images and of what the loader's workers do with them:
 * --image-size, --augment, --normalize. */
#ifndef BENCH_IMAGES_H
#define BENCH_IMAGES_H

#include <cekernels/nn.h>

#include "bench/bench.h"

/* "32x32". False: complained, as of option --`name`. */
bool image_size_parse(const char *name, const char *text, int64_t *height, int64_t *width);
/* "crop:4,flip,rotate:10,colour:0.2" */
bool augment_parse(const char *name, const char *text, cek_augment_options *out);
/* "measured" leaves *count 0; "M,M,M:D,D,D" are as many means as deviations. */
bool normalize_parse(const char *name, const char *text, double *mean, double *deviation, int64_t *count);

/* The data sets as --augment (of training alone) and --normalize want them, in place of those that were opened; `test`
 * may point to NULL. `measured`: by the training set's numbers. 0 or an exit code. */
int images_prepare(const bench_options *o, cek_dataset **train, cek_dataset **test);

#endif
