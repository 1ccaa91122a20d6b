# libcekernels-nn: models, data, training, on top of libcekernels.
lib_LTLIBRARIES += %D%/libcekernels-nn.la

%C%_libcekernels_nn_la_SOURCES = \
    %D%/model/graph.c \
    %D%/model/graph.h \
    %D%/model/init.c \
    %D%/model/layers.c \
    %D%/model/layers.h \
    %D%/model/layout.h \
    %D%/model/plan.h \
    %D%/model/spec.c \
    %D%/version.c

%C%_libcekernels_nn_la_CPPFLAGS = $(AM_CPPFLAGS) $(ZLIB_CFLAGS) $(JANSSON_CFLAGS)
%C%_libcekernels_nn_la_LDFLAGS = $(lib_ldflags) -version-info $(NN_VERSION_INFO) \
    -Wl,--version-script=$(srcdir)/%D%/libcekernels-nn.map
%C%_libcekernels_nn_la_LIBADD = core/libcekernels.la $(JANSSON_LIBS) $(ZLIB_LIBS) $(PTHREAD_LIBS) $(MATH_LIBS)
%C%_libcekernels_nn_la_DEPENDENCIES = core/libcekernels.la $(srcdir)/%D%/libcekernels-nn.map
EXTRA_DIST += %D%/libcekernels-nn.map
