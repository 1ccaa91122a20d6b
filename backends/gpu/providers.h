/* SPDX-License-Identifier: MIT
 *
 * providers.h - the libraries that may do an operation: those of the driver that the user leaves.
 */
#ifndef CEK_BACKENDS_GPU_PROVIDERS_H
#define CEK_BACKENDS_GPU_PROVIDERS_H

#include "backends/gpu/gpu.h"

/* cek__gpu_candidates - the providers that may do this operation, best first, at most
 * CEK__GPU_CANDIDATES: those that the option `providers` leaves. *decided: the first of them that
 * takes the request is to be used, nothing is to be measured. */
#define CEK__GPU_CANDIDATES 4
uint32_t cek__gpu_candidates(const cek_op *op, const cek__gpu_provider *list[CEK__GPU_CANDIDATES], bool *decided);
/* cek__gpu_providers_check - CEK_INVALID where the option `providers` has a word that no plugin knows. */
cek_status cek__gpu_providers_check(const cek_host *host);
/* cek__gpu_provider_hidden - whether the option `providers` forbids it. */
bool cek__gpu_provider_hidden(const cek_host *host, const char *name);
/* cek__gpu_provider_asked - whether it wants it measured even where we expect nothing of it. */
bool cek__gpu_provider_asked(const cek_host *host, const char *name);
/* cek__gpu_versions - appends "; CLBlast 1.5.3" for every provider that is there to a text of `cap` bytes. */
void cek__gpu_versions(cek_instance *instance, const cek__gpu_driver *driver, char *text, uint64_t cap);

#endif
