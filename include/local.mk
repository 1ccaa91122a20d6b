# The public headers, installed as <cekernels/NAME.h>.
pkginclude_HEADERS += \
    %D%/cekernels/cekernels.h \
    %D%/cekernels/data.h \
    %D%/cekernels/dlpack.h \
    %D%/cekernels/layers.h \
    %D%/cekernels/nn.h \
    %D%/cekernels/parts.h \
    %D%/cekernels/plugin.h
