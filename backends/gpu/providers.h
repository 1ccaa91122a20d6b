/* SPDX-License-Identifier: MIT
 *
 * providers.h - the libraries that may do an operation: those of the driver that the user leaves.
 */
#ifndef CEK_BACKENDS_GPU_PROVIDERS_H
#define CEK_BACKENDS_GPU_PROVIDERS_H

#include "backends/gpu/gpu.h"

/* A driver's option is words between commas. "-clblast" forbids that provider, "=clblast" takes it
 * wherever it can, "+clblast" measures it wherever it can, "none" forbids all. */

/* cek__gpu_candidates - the providers that may do this operation, best first, at most
 * CEK__GPU_CANDIDATES: those that the option leaves. *decided: the first of them that
 * takes the request is to be used, nothing is to be measured. */
#define CEK__GPU_CANDIDATES 4
uint32_t cek__gpu_candidates(const cek_op *op, const cek__gpu_provider *list[CEK__GPU_CANDIDATES], bool *decided);
/* cek__gpu_providers_check - CEK_INVALID where the option has a word that names none of the driver's. */
cek_status cek__gpu_providers_check(const cek_host *host, const cek__gpu_driver *driver);
/* cek__gpu_provider_hidden - whether the option forbids it. */
bool cek__gpu_provider_hidden(const cek_host *host, const cek__gpu_driver *driver, const cek__gpu_provider *provider);
/* cek__gpu_provider_asked - whether it wants it measured even where we expect nothing of it. */
bool cek__gpu_provider_asked(const cek_host *host, const cek__gpu_driver *driver, const cek__gpu_provider *provider);
/* cek__gpu_versions - appends "; CLBlast 1.5.3" for every provider that is there to a text of `cap` bytes. */
void cek__gpu_versions(cek_instance *instance, const cek__gpu_driver *driver, char *text, uint64_t cap);

#endif
