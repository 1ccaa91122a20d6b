/* main.c - tests of the cpu plugin through its door: every instruction set, one thread and
 * several, against the reference. */
#include "harness.h"

int main(void)
{
    Suite *suite = suite_create("cpu");

    add_devices(suite);
    add_math(suite);
    add_tensors(suite);
    add_sums(suite);
    add_training(suite);
    add_products(suite);
    return suite_run(suite);
}
