# The examples: installed nowhere, built and run by `make check`. One program per file, against the public headers alone, such as
#   check_PROGRAMS += %D%/devices
#   %C%_devices_SOURCES = %D%/devices.c
#   %C%_devices_CPPFLAGS = $(example_cppflags)
#   %C%_devices_LDFLAGS = $(check_ldflags)
#   %C%_devices_LDADD = $(example_libs)
#   TESTS += %D%/devices
example_cppflags = -I$(srcdir)/include
example_libs = nn/libcekernels-nn.la core/libcekernels.la $(MATH_LIBS)
