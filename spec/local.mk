# The specification of every op: cases, FLOPs, tolerances. Linked by cekernels-bench and by the tests.
noinst_LTLIBRARIES += %D%/libspec.la
%C%_libspec_la_SOURCES = \
    %D%/arg.c \
    %D%/check.c %D%/check.h \
    %D%/conv.c \
    %D%/conv_text.c \
    %D%/copy.c \
    %D%/device.c \
    %D%/edge.c \
    %D%/gather.c \
    %D%/gemm.c \
    %D%/gradient.c \
    %D%/job.c \
    %D%/measure.c \
    %D%/memory.c \
    %D%/misuse.c \
    %D%/nulls.c \
    %D%/number.c %D%/number.h \
    %D%/optimizer.c \
    %D%/pointwise.c \
    %D%/pool.c \
    %D%/problem.c %D%/problem.h \
    %D%/progress.c \
    %D%/queue.c \
    %D%/random.c \
    %D%/reduce.c \
    %D%/rows.c \
    %D%/run.c \
    %D%/shapes.c \
    %D%/spec.h \
    %D%/threads.c
%C%_libspec_la_LIBADD = core/libtable.la
