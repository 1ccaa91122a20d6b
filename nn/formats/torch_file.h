/* torch_file.h - state dicts as torch.save writes them since version 1.6 (.pt, .pth).
 *
 * A zip archive: PREFIX/data.pkl, a pickle in which tensors say which storage they look at, and how; PREFIX/data/KEY,
 * the bytes of each storage. The dict is the file's, or that of the one entry of the file's dict that holds tensors, as
 * {"model": state_dict, "epoch": 3} has it; which is logged (CEK_LOG_INFO).
 * Nothing of the pickle is executed (pickle.h).
 * Must not know: models, what a name means. */
#ifndef CEK_NN_FORMATS_TORCH_FILE_H
#define CEK_NN_FORMATS_TORCH_FILE_H

#include "nn/formats/tensors.h"

/* CEK_BAD_INPUT names the file, the tensor where there is one, and the cause: archive (zip.h), pickle (pickle.h), a
 * tensor that does not lie within its storage, a storage of another size, a value that is no tensor, two entries that
 * hold tensors, a type that is not read. Strides stay what they are: no tensor takes memory of its own. */
CEK__SHARED CEK__CHECKED cek_status cek__torch_read(const char *path, cek__st_file **out);

#endif
