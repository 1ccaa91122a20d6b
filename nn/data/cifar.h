/* cifar.h - CIFAR-10 in its binary version (https://www.cs.toronto.edu/~kriz/cifar.html): records of a label and 3 x 32
 * x 32 bytes.
 *
 * The images stay in their files (stored.h). */
#ifndef CEK_NN_DATA_CIFAR_H
#define CEK_NN_DATA_CIFAR_H

#include "nn/data/dataset.h"

/* nn.h: cek_dataset_cifar10. */
CEK__SHARED CEK__CHECKED cek_status cek__cifar_dataset(const char *directory, bool train, cek_dataset **out);

#endif
