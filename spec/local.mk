# The specification of every op: cases, FLOPs, tolerances. Linked by cekernels-bench and by the tests.
noinst_LTLIBRARIES += %D%/libspec.la
%C%_libspec_la_SOURCES =
