/* gradients.h - the gradient of the last step as a safetensors file, for comparison with other programs. */
#ifndef BENCH_GRADIENTS_H
#define BENCH_GRADIENTS_H

#include <cekernels/nn.h>

/* F64 tensors under the names and in the shapes of the parameters. 0 or an exit code, with everything said. */
int gradients_save(cek_trainer *trainer, const cek_model *model, const char *path);

#endif
