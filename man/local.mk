# The manuals; `make check` lints them, and holds cekernels-plugin(7) against plugin.h and those of section 3 against the
# other headers, by scripts/manual-synopsis, which also writes their synopses.
dist_man_MANS += %D%/cekernels-bench.1 %D%/cekernels-plugin.7 \
    %D%/cekernels.3 %D%/cekernels-data.3 %D%/cekernels-devices.3 %D%/cekernels-inference.3 %D%/cekernels-layers.3 \
    %D%/cekernels-memory.3 %D%/cekernels-models.3 %D%/cekernels-parts.3 %D%/cekernels-tensors.3 %D%/cekernels-training.3
