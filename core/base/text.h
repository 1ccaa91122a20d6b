/* text.h - text of unknown origin: what file names, files and plugins say, before anybody prints it.
 *
 * cek_text_printable (cekernels.h) is the one place that decides what may reach a terminal; errors and the log pass
 * through it (status.c, log.c), so nobody who writes one has to think of it.
 * Must not know: where a text comes from or goes. Allocates nothing. */
#ifndef CEK_CORE_BASE_TEXT_H
#define CEK_CORE_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "cekernels/cekernels.h" /* cek_text_printable */
#include "core/base/export.h"

/* The character at `text` and its bytes; 0 where no valid UTF-8 begins (nor at the end of the text). */
CEK__SHARED size_t cek__utf8_next(const char *text, uint32_t *code);

/* Ends a text of `size` bytes in "...", at the latest in its last 4, between two characters. */
void cek__text_cut(char *text, size_t size);

#endif
