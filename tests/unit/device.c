/* device.c - tests of devices: opening, memory, streams, markers, copies. */
#include "fakes.h"

int main(void)
{
    return 0;
}
