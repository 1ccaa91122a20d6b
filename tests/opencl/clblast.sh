# clblast.sh - products by CLBlast: where it is asked for it does them, all that is required comes
# out right, and where it is forbidden it is neither used nor named.
unset CEKERNELS_OPENCL_PROVIDERS
. "$top_srcdir/tests/opencl/lib.sh"
grep -q '; CLBlast' "$scratch/devices" || { echo "skipped: no CLBlast"; exit 77; }

CEKERNELS_OPENCL_PROVIDERS==clblast
export CEKERNELS_OPENCL_PROVIDERS
run 0 gemm -d opencl:0 -s 130x70x90 --json
grep -q '"algorithm": "CLBlast' "$scratch/out" || wrong "CLBlast was asked for, but not used"
run 0 check -t f32 -d opencl:0 gemm --json
holds "$(value required_passed) == $(value required) && $(value required) >= 90"
passed=$(value optional_passed)
run 0 train lenet5 --steps=3 -d opencl:0 --json

for none in none -clblast; do
    CEKERNELS_OPENCL_PROVIDERS=$none
    run 0 devices --json
    if grep -q CLBlast "$scratch/out"; then wrong "CEKERNELS_OPENCL_PROVIDERS=$none, but CLBlast is named"; fi
    run 0 gemm -d opencl:0 -s 130x70x90 --json
    if grep -q CLBlast "$scratch/out"; then wrong "CEKERNELS_OPENCL_PROVIDERS=$none, but CLBlast is used"; fi
done
run 0 check -t f32 -d opencl:0 gemm --json
holds "$(value optional_passed) == $passed"
for word in clblast foo -clblas = - , none, -clblast,, ++clblast -cudnn; do
    CEKERNELS_OPENCL_PROVIDERS=$word
    run 3 gemm -d opencl:0 -s 8x8x8
    grep -q 'option opencl_providers: ".*" is neither none nor one of -, = and + before clblast$' "$scratch/err" || wrong "CEKERNELS_OPENCL_PROVIDERS=$word: $(cat "$scratch/err")"
done
CEKERNELS_OPENCL_PROVIDERS=-clblast,none CEKERNELS_CUDA_PROVIDERS=foo run 0 gemm -d opencl:0 -s 8x8x8
finish
