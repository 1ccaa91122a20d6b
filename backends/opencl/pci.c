/* SPDX-License-Identifier: MIT
 * pci.c - see pci.h. */
#include "backends/opencl/pci.h"

#include <dirent.h>
#include <stdio.h>

/* The number in a file of one line. 0: there is none. */
static uint32_t number_read(const char *folder, const char *entry, const char *name)
{
    char path[512];
    unsigned number = 0;
    snprintf(path, sizeof path, "%s/%s/%s", folder, entry, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%x", &number) != 1)
        number = 0;
    fclose(file);
    return number;
}

int cek__pci_domain(const char *folder, uint32_t bus, uint32_t slot, uint32_t function, uint32_t vendor)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    int found = -1, count = 0;
    if (!dir)
        return -1;
    while ((entry = readdir(dir))) {
        unsigned at[4];
        if (sscanf(entry->d_name, "%x:%x:%x.%x", &at[0], &at[1], &at[2], &at[3]) != 4 || at[1] != bus ||
            at[2] != slot || at[3] != function || number_read(folder, entry->d_name, "vendor") != vendor)
            continue;
        found = (int)at[0];
        count++;
    }
    closedir(dir);
    return count == 1 ? found : -1;
}
