# tiles.sh - the kernels of products and pools on the fake driver, whose compiler is the host's: every shape of their tiles, every
# way.
. "$top_srcdir/tests/cuda/lib.sh"
with_compiler
. "$top_srcdir/tests/tiles.sh"
tiles cuda:0
pools cuda:0 CEKERNELS_CUDA_POOLS
# What a trial found out is kept beside the compiled kernels.
for trials in 3 0; do
    run 0 -v op pool_forward mb4c64ih64kh2sh2:max -d cuda:0 -w 0 -r 1 --json
    holds "$(grep -c 'cuda: pool_forward, 4 images: .* by rule' "$scratch/err" || :) == $trials"
done
finish
