/* pci.c - the domain of a card is the system's, where its driver tells bus, slot and function alone. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/opencl/pci.h"
#include "tests/suite.h"

static char folder[] = "/tmp/cekernels-pci-XXXXXX";

static void card(const char *address, const char *vendor)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, address);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/%s/vendor", folder, address);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(fprintf(file, "%s\n", vendor), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void cards_forget(void)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(a_domain_is_told_where_one_card_alone_can_be_meant)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    card("0000:03:00.0", "0x10de");
    card("0001:03:00.0", "0x1002");
    card("0002:0a:1f.7", "0x1002");
    card("10000:0b:00.0", "0x1002"); /* domains of more than four digits exist */
    card("0003:0c:00.0", "0x1002");
    card("0004:0c:00.0", "0x1002");
    ck_assert_int_eq(cek__pci_domain(folder, 3, 0, 0, 0x1002), 1);
    ck_assert_int_eq(cek__pci_domain(folder, 3, 0, 0, 0x10de), 0);
    ck_assert_int_eq(cek__pci_domain(folder, 10, 31, 7, 0x1002), 2);
    ck_assert_int_eq(cek__pci_domain(folder, 11, 0, 0, 0x1002), 0x10000);
    ck_assert_int_eq(cek__pci_domain(folder, 12, 0, 0, 0x1002), -1); /* either */
    ck_assert_int_eq(cek__pci_domain(folder, 3, 0, 1, 0x1002), -1);
    ck_assert_int_eq(cek__pci_domain(folder, 3, 0, 0, 0x8086), -1);
    cards_forget();
    ck_assert_int_eq(cek__pci_domain(folder, 3, 0, 0, 0x1002), -1); /* no such folder */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pci");
    TCase *tc = tcase_create("domains");
    tcase_add_test(tc, a_domain_is_told_where_one_card_alone_can_be_meant);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
