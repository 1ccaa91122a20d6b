/* unit.h - what image networks are made of: a convolution without bias and the batch norm behind it. */
#ifndef CEK_NN_NETS_UNIT_H
#define CEK_NN_NETS_UNIT_H

#include "cekernels/nn.h"
#include "core/base/status.h"

/* The kernel is kernel x kernel, padded by half of it. */
typedef struct cek__unit {
    const char *conv, *norm; /* names: "conv1", "bn1" */
    int64_t out;
    uint32_t kernel, stride, groups; /* 0 = 1 */
} cek__unit;
/* The convolution begins as torch.nn.init.kaiming_normal_ has it by outputs. Reads node *x, and *x becomes
 * what it gives. */
CEK__CHECKED cek_status cek__unit_add(cek_model *model, const cek__unit *unit, int *x);
/* The mean of each channel, dropout where p is not 0, and a linear layer of this name with so many outputs. */
CEK__CHECKED cek_status cek__head_add(cek_model *model, int x, double p, const char *name, int64_t classes);

#endif
