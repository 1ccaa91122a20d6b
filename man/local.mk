# The manual; `make check` lints it.
dist_man_MANS += %D%/cekernels-bench.1
