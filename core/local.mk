# libcekernels: the engine. Links libc, libdl and pthread, nothing else.
lib_LTLIBRARIES += %D%/libcekernels.la

%C%_libcekernels_la_SOURCES = \
    %D%/base/export.h \
    %D%/base/fault.c \
    %D%/base/fault.h \
    %D%/base/log.c \
    %D%/base/log.h

%C%_libcekernels_la_CPPFLAGS = $(AM_CPPFLAGS) -DCEK__PLUGIN_DIR='"$(pkglibdir)"'
%C%_libcekernels_la_LDFLAGS = $(lib_ldflags) -version-info $(CORE_VERSION_INFO) \
    -Wl,--version-script=$(srcdir)/%D%/libcekernels.map
%C%_libcekernels_la_LIBADD = $(DL_LIBS) $(PTHREAD_LIBS)
%C%_libcekernels_la_DEPENDENCIES = $(srcdir)/%D%/libcekernels.map
EXTRA_DIST += %D%/libcekernels.map
