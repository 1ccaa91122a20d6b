/* cpu_root.h - a made-up machine: files of /proc and /sys below a temporary folder, for what reads them. */
#ifndef CEK_TESTS_UNIT_CPU_ROOT_H
#define CEK_TESTS_UNIT_CPU_ROOT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/suite.h"

static char root[64];

static void root_make(void)
{
    snprintf(root, sizeof root, "/tmp/cek-root-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void root_remove(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
}

static void root_write(const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        mkdir(full, 0700);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

#endif
