/* nearest.h - which of the words that there are somebody meant who wrote another: "did you mean".
 *
 * One measure for options, layers, devices, columns and files (cek_text_nearest in cekernels.h is the same for
 * programs): letters left out, put in, changed, or two neighbours in the wrong order, at most two of these and fewer
 * in short words; capitals count as small letters; the beginning of a word means it. Must not know: what words are
 * for. */
#ifndef CEK_CORE_BASE_NEAREST_H
#define CEK_CORE_BASE_NEAREST_H

#include <stddef.h>

#include "cekernels/cekernels.h" /* cek_text_nearest */
#include "core/base/export.h"

enum { CEK__WORD_MAX = 64 /* bytes; longer words are near to none */ };

/* The nearest word so far. */
typedef struct cek__nearest {
    char text[CEK__WORD_MAX], word[CEK__WORD_MAX];
    unsigned score; /* of `word`, the lower the nearer */
    char hint[CEK__WORD_MAX + 32];
} cek__nearest;

/* For `length` bytes of `text`. */
CEK__SHARED void cek__nearest_begin(cek__nearest *n, const char *text, size_t length);
/* Of words equally near the first stays. */
CEK__SHARED void cek__nearest_try(cek__nearest *n, const char *word);
/* The hint for a path that is not there, of what lies beside the first part of it that is not. */
CEK__SHARED const char *cek__nearest_file(cek__nearest *n, const char *path);
/* "; did you mean 'word'?", or "" where none is near: the end of an error text. Lives in *n. */
CEK__SHARED const char *cek__nearest_hint(cek__nearest *n);

#endif
