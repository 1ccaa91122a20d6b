/* holds.h - whether a device can hold the parameters of a model as they are laid out.
 *
 * Must not know: activations (replica_memory.c cuts batches for them), what other devices hold. */
#ifndef CEK_NN_TRAIN_HOLDS_H
#define CEK_NN_TRAIN_HOLDS_H

#include "nn/model/layout.h"

/* CEK_OK, or `refusal`, with the parameter, its bytes, the device and what it gives, where one memory of the layout is
 * larger than any that the device gives. Allocates nothing. */
CEK__CHECKED cek_status cek__device_holds(cek_device *device, const cek_model *model, const cek__layout *layout,
                                          cek_status refusal);

#endif
