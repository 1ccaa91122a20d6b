/* main.c - the entry of cekernels-bench. Owns: the usage text and the exit code of a wrong call. */

#include <stdio.h>

int main(void)
{
    fputs("usage: cekernels-bench [OPTION...] COMMAND [ARG...]\n", stderr);
    return 2;
}
