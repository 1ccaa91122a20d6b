/* window.h - what convolutions and pools say about their windows, one entry for each axis behind N,C.
 *
 * Texts are for errors and summaries. */
#ifndef CEK_NN_LAYERS_WINDOW_H
#define CEK_NN_LAYERS_WINDOW_H

#include "nn/model/layer.h"

/* How many axes the first input has behind N,C: CEK_INVALID where they are not `axes`, or not 1 to 3 (`axes` 0). */
CEK__CHECKED cek_status cek__image_wanted(const cek__layer *layer, int axes, int *out);
/* The output's size, or 0 if the window does not fit. */
int64_t cek__window_count(const cek__windows *windows, int axis, int64_t in);
/* "3x3"; returns `text`. */
enum { CEK__AXES_TEXT = 64 };
char *cek__axes_text(int axes, const int64_t *values, char text[CEK__AXES_TEXT]);
/* "1x1"; "0x0 to 1x1" where the two ends differ. */
enum { CEK__PADDING_TEXT = 2 * CEK__AXES_TEXT + 8 };
char *cek__padding_text(int axes, const cek__windows *windows, char text[CEK__PADDING_TEXT]);
/* ", stride 2" or ", stride 2x1"; nothing where all are the usual value. */
void cek__note_axes(cek__layer *layer, const char *name, int axes, const int64_t *values, int64_t usual);
void cek__note_padding(cek__layer *layer, int axes, const cek__windows *windows);

#endif
