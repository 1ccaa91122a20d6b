/* pickle.h - what a pickle of state dicts builds, as data: an interpreter of the few opcodes that torch.save writes.
 *
 * Nothing is ever executed. A global is a number in a list of names that the caller knows, any other name is refused; a
 * call is kept as what was to be called with what. Opcodes beyond those of state dicts, and other protocols than 2, are
 * refused by name. No recursion, and memory in proportion to the bytes of the pickle: no opcode makes more than a few
 * values.
 * Must not know: torch, tensors, files. */
#ifndef CEK_NN_FORMATS_PICKLE_H
#define CEK_NN_FORMATS_PICKLE_H

#include "core/base/status.h"
#include "nn/formats/pickle_value.h"

/* The bytes must outlive *out, which is the caller's (cek__pickle_clear). Errors: CEK_BAD_INPUT names file, opcode and
 * place. */
CEK__CHECKED cek_status cek__pickle_read(const char *path, uint8_t *bytes, size_t size,
                                         const cek__pickle_global *globals, size_t global_count, cek__pickle *out);

#endif
