/* SPDX-License-Identifier: MIT
 *
 * command.h - what calls on devices, memory, queues and events accept, whatever the device: descriptors that come in,
 * ranges that commands touch.
 *
 * Owns no state. The texts name the call. Knows handles only through cek__mem_bytes_fn.
 */
#ifndef CEK_BACKENDS_COMMON_COMMAND_H
#define CEK_BACKENDS_COMMON_COMMAND_H

#include "backends/common/validate.h"

/* Descriptors: CEK_UNSUPPORTED for flags and bytes that 1.0 does not know, CEK_INVALID for a size below its. All but
 * the memory's may be NULL: nothing asked for. */
cek_status cek__device_options_in(const cek_host *host, const cek_device_options *given);
cek_status cek__mem_desc_in(const cek_host *host, const cek_mem_desc *given, uint64_t *bytes);
/* What mem_import is given, for a device that takes memory of `kind` from the place `ordinal`. */
cek_status cek__foreign_in(const cek_host *host, const cek_foreign *given, uint32_t kind, uint32_t ordinal,
                           cek_foreign *to);
cek_status cek__queue_desc_in(const cek_host *host, const cek_queue_desc *given, cek_queue_desc *to);
cek_status cek__event_desc_in(const cek_host *host, const cek_event_desc *given, bool *timing);

/* cek__cmd_in - command `index` of a command buffer's; CEK_INVALID too where it lacks what its kind needs. */
cek_status cek__cmd_in(const cek_host *host, const cek_cmd *cmds, uint32_t index, uint32_t cmd_size, cek_cmd *to);

#define CEK__UPDATE_MAX 4096 /* bytes of one update */

/* Commands of more than 0 bytes: CEK_INVALID where they break a rule of plugin.h. `dev` is the queue's device; a
 * transfer is an upload or a download. */
cek_status cek__transfer_check(const cek_host *host, const char *call, cek_ref ref, const void *host_memory,
                               uint64_t bytes, cek__mem_bytes_fn *mem_bytes, const cek_dev *dev);
cek_status cek__fill_check(const cek_host *host, cek_ref dst, uint32_t pattern_bytes, uint64_t bytes,
                           cek__mem_bytes_fn *mem_bytes, const cek_dev *dev);
cek_status cek__update_check(const cek_host *host, cek_ref dst, const void *src, uint64_t bytes,
                             cek__mem_bytes_fn *mem_bytes, const cek_dev *dev);
/* Within one instance; `src_dev` is the source's device. */
cek_status cek__copy_check(const cek_host *host, cek_ref dst, cek_ref src, uint64_t bytes, cek__mem_bytes_fn *mem_bytes,
                           const cek_dev *dev, const cek_dev *src_dev);

#endif
