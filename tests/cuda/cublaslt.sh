# cublaslt.sh - products by cuBLASLt: the fake one computes what our descriptors really say, so
# conformance through it proves their layouts, transposes, epilogues, accumulation and types; and
# that a ReLU which loses NaN is noticed.
. "$top_srcdir/tests/cuda/lib.sh"
ln -s "$fake/fake_cublaslt.so" "$scratch/both/libcublasLt.so.13" || exit 99
with_compiler
CEKERNELS_CUDA_PROVIDERS=-cudnn
export CEKERNELS_CUDA_PROVIDERS

run 0 gemm -d cuda:0 -s 130x70x90 --json -v
grep -q 'libcublasLt.so.13: cuBLASLt 13.0.2' "$scratch/err" || wrong "cuBLASLt is not named"
grep -q '"algorithm": "cuBLASLt 13.0.2, algorithm 3' "$scratch/out" || wrong "another algorithm: $(grep algorithm "$scratch/out")"
run 0 gemm -d cuda:0 -s 130x70x90 --math=tf32 --json
grep -q '"algorithm": "cuBLASLt 13.0.2, algorithm 1' "$scratch/out" || wrong "tf32: $(grep algorithm "$scratch/out")"

for relu in keeps max; do
    FAKE_CUBLASLT_RELU=$relu
    export FAKE_CUBLASLT_RELU
    run 0 check -d cuda:0 gemm --json
    [ "$(value passed)" = true ] || wrong "ReLU that $relu NaN: did not pass: $(tail -3 "$scratch/err")"
    holds "$(value required_passed) == $(value required) && $(value required) >= 90 && $(value optional_passed) >= 60"
done
run 0 train lenet5 --steps=3 -d cuda:0 --json
run 0 train lenet5 --steps=3 -d cpu,cuda:0 --json

CEKERNELS_CUDA_PROVIDERS=none
run 0 gemm -d cuda:0 -s 130x70x90 --json -v
if grep -q cuBLASLt "$scratch/out" "$scratch/err"; then wrong "cuBLASLt is used, though it is forbidden"; fi
finish
