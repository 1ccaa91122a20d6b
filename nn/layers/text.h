/* text.h - models as text: words, each of which adds a layer behind the last node. */
#ifndef CEK_NN_LAYERS_TEXT_H
#define CEK_NN_LAYERS_TEXT_H

#include "cekernels/nn.h"
#include "core/base/status.h"

/* Errors: CEK_BAD_INPUT names the word, its number and the column where it starts. */
CEK__CHECKED cek_status cek__model_add_text(cek_model *model, const char *text);

#endif
