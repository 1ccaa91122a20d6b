# cudnn.sh - convolutions by cuDNN: the fake one computes what our descriptors really say, so conformance through it
# proves layouts, windows, groups, what is fused, accumulation and types; and that a cuDNN that refuses or is broken is
# only slower.
. "$top_srcdir/tests/cuda/lib.sh"
ln -s "$fake/fake_cudnn.so" "$scratch/both/libcudnn.so.9" || exit 99
with_compiler
CEKERNELS_CUDA_PROVIDERS=-cublaslt
export CEKERNELS_CUDA_PROVIDERS

# engine NUMBER ARG... - cuDNN's engine that a convolution gets; "none": not cuDNN.
engine() {
    engine=$1
    shift
    run 0 conv -d cuda:0 -s mb2ic5ih7oc3oh7kh3ph1 --json "$@"
    checks=$((checks + 1))
    got=$(sed -n 's/.*"algorithm": "cuDNN 9.19.0, engine \([0-9]*\).*/\1/p' "$scratch/out")
    [ "${got:-none}" = "$engine" ] || wrong "$*: engine ${got:-none}, not $engine: $(grep algorithm "$scratch/out")"
}
engine 13 -v             # Winograd may be used for f32, tensor cores may not
grep -q 'libcudnn.so.9: cuDNN 9.19.0' "$scratch/err" || wrong "cuDNN is not named"
engine 14 --math=strict  # no transform; the order of sums may differ
engine 11 --math=tf32
# The fastest of those that may be used, whatever the heuristics think of them.
export FAKE_CUDNN=reversed
engine 14
engine 14 --math=strict
engine 14 --math=tf32
FAKE_CUDNN=

# conforms WHAT ARG... - the required cases pass.
conforms() {
    what=$1
    shift
    run 0 check -d cuda:0 --json "$@"
    [ "$(value passed)" = true ] || wrong "$what: did not pass: $(tail -3 "$scratch/err")"
    holds "$(value required_passed) == $(value required) && $(value required) >= 70 && $(value optional_passed) >= 10"
    echo "$what: required $(value required_passed)/$(value required), optional $(value optional_passed)/$(value optional)"
}
conforms "cuDNN" conv_forward conv_backward_data conv_backward_weights
holds "$(value required) >= 200 && $(value optional_passed) >= 500"
FAKE_CUDNN=norelunan
conforms "cuDNN whose ReLU loses NaN" -t f32 conv_forward
FAKE_CUDNN=nofuse
conforms "cuDNN that fuses nothing" -t f32 conv_forward
FAKE_CUDNN=wrong
for kind in conv_forward conv_backward_data conv_backward_weights; do  # it is what is looked at, nearly everywhere
    run 1 check -t f32 -d cuda:0 --json $kind
    holds "$(value required_passed) <= 12 && $(value required) >= 70"
done
FAKE_CUDNN=
run 0 train lenet5 --steps=3 -d cuda:0 --json
run 0 train lenet5 --steps=3 -d cpu,cuda:0 --json

# A cuDNN that refuses, fails or is not what it seems: our own kernels, and one line that says why.
own() { # LINE ARG...
    line=$1
    shift
    engine none -v
    checks=$((checks + 1))
    [ -z "$line" ] || [ "$(grep -c -e "$line" "$scratch/err")" = 1 ] || wrong "not one line \"$line\": $(cat "$scratch/err")"
}
FAKE_CUDNN=none
own ""
conforms "cuDNN that has no engine" -t f32 conv_forward
FAKE_CUDNN=nostart
own 'cuDNN 9.19.0 does not start on device 0'
FAKE_CUDNN=noexecute
own 'conv_forward: cudnn failed'
FAKE_CUDNN=old
own 'says that it is version 8907 of cuDNN, not one of 9, and is left alone'
FAKE_CUDNN=
ln -sf "$fake/fake_nvrtc.so" "$scratch/both/libcudnn.so.9"
own 'libcudnn.so.9 has no cudnn.* and is left alone'
ln -sf "$fake/fake_cudnn.so" "$scratch/both/libcudnn.so.9"

CEKERNELS_CUDA_PROVIDERS==cudnn
engine 13
for providers in none -cudnn,-cublaslt; do
    CEKERNELS_CUDA_PROVIDERS=$providers
    engine none -v
    if grep -q cuDNN "$scratch/out" "$scratch/err"; then wrong "cuDNN is named, though it is forbidden"; fi
done
CEKERNELS_CUDA_PROVIDERS==clblast run 3 gemm -d cuda:0 -s 8x8x8
grep -q 'option cuda_providers: "=clblast" is neither none nor one of -, = and + before cublaslt or cudnn$' \
    "$scratch/err" || wrong "a word that is OpenCL's: $(cat "$scratch/err")"
finish
