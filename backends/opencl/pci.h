/* SPDX-License-Identifier: MIT
 *
 * pci.h - addresses of cards as the system lists them.
 */
#ifndef CEK_BACKENDS_OPENCL_PCI_H
#define CEK_BACKENDS_OPENCL_PCI_H

#include <stdint.h>

/* cek__pci_domain - the domain of the one card of that vendor at bus:slot.function, among the entries of `folder`
 * ("0000:03:00.0/vendor"). -1: there is none, or one in each of several domains. */
int cek__pci_domain(const char *folder, uint32_t bus, uint32_t slot, uint32_t function, uint32_t vendor);

#endif
