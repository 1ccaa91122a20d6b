# The public headers, installed as <cekernels/NAME.h>: plugin.h, cekernels.h, nn.h as they appear.
pkginclude_HEADERS +=
