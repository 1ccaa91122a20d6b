# tiles.sh - the kernels of products and pools on the fake driver, whose compiler is the host's: every shape of their tiles, every
# way.
. "$top_srcdir/tests/cuda/lib.sh"
with_compiler
. "$top_srcdir/tests/tiles.sh"
tiles cuda:0
pools cuda:0 CEKERNELS_CUDA_POOLS
finish
