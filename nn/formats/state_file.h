/* state_file.h - a state dict from a file, whatever its form. */
#ifndef CEK_NN_FORMATS_STATE_FILE_H
#define CEK_NN_FORMATS_STATE_FILE_H

#include "nn/formats/tensors.h"

/* By the file's first bytes: an archive of torch.save, or else safetensors. Errors: theirs; CEK_BAD_INPUT for the form
 * in which torch.save wrote before version 1.6. */
CEK__SHARED CEK__CHECKED cek_status cek__st_read(const char *path, cek__st_file **out);

#endif
