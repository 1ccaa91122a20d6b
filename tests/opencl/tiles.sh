# tiles.sh - the kernels that GPUs multiply with, on an OpenCL device that is told to be one: conformance of what they
# compute, and every shape of their tiles on products large enough for it.
. "$top_srcdir/tests/opencl/lib.sh"
[ "$SANITIZERS" = no ] || { echo "skipped: a library cannot be preloaded before a sanitizer's"; exit 77; }
SHIM_DEVICE=gpu
export SHIM_DEVICE
CEKERNELS_BENCH_ITSELF=$CEKERNELS_BENCH
bench_shimmed() { LD_PRELOAD="$top_builddir/tests/opencl/.libs/shim.so" "$CEKERNELS_BENCH_ITSELF" "$@"; }
CEKERNELS_BENCH=bench_shimmed

run 0 check -t f32 -d opencl:0 gemm conv_forward conv_backward_data conv_backward_weights --json
[ "$(value passed)" = true ] || wrong "the tiles of GPUs did not pass"
holds "$(value required_passed) >= 200"

. "$top_srcdir/tests/tiles.sh"
tiles opencl:0
pools opencl:0 CEKERNELS_OPENCL_POOLS
finish
