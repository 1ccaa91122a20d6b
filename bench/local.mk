# cekernels-bench, a client of the public API. The build tree's ./cekernels-bench runs it with the build tree's plugins.
bin_PROGRAMS += %D%/cekernels-bench
noinst_SCRIPTS = cekernels-bench
%C%_cekernels_bench_SOURCES = \
    %D%/main.c
%C%_cekernels_bench_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_cekernels_bench_LDADD = spec/libspec.la nn/libcekernels-nn.la core/libcekernels.la \
    $(JANSSON_LIBS) $(DL_LIBS) $(PTHREAD_LIBS) $(MATH_LIBS)
