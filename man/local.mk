# The manual, such as dist_man_MANS += %D%/cekernels-bench.1; `make check` lints what is listed.
dist_man_MANS += %D%/cekernels-bench.1
