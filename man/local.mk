# The manuals; `make check` lints them, and holds cekernels-plugin(7) against plugin.h.
dist_man_MANS += %D%/cekernels-bench.1 %D%/cekernels-plugin.7
