# check.sh - conformance of the whole plugin on the fake driver: with NVRTC, and with nothing but
# the driver and the machine code that nvcc made; what is on disk may be damaged; a compiler may be
# older than the device, or miss.
. "$top_srcdir/tests/cuda/lib.sh"
run 0 check -t f32 -d cpu --json
required=$(value required)

# whole WHAT ARG... - all required cases pass, as many as on the CPU.
whole() {
    what=$1
    shift
    run 0 check -d cuda:0 --json "$@"
    [ "$(value passed)" = true ] || wrong "$what: cuda:0 did not pass: $(tail -3 "$scratch/err")"
    holds "$(value required_passed) == $(value required) && $(value required) >= $required && $required >= 1000"
    echo "$what: required $(value required_passed)/$(value required), optional $(value optional_passed)/$(value optional)"
}
with_compiler
compiler=$FAKE_CUDA_CXX
cat >"$scratch/telling" <<END  # which sources are compiled, behind which definitions
#!/bin/sh
for word; do
    [ -f "\$word" ] && awk '/^\/\* SPDX/ && !seen++ { kept = text }
        /^#define / { text = text " " \$2 "=" \$3; next }
        / \* [a-z_]+\.cl - / { print \$2 kept; exit }
        { text = "" }' "\$word" >>"$scratch/variants"
done
exec $compiler "\$@"
END
chmod +x "$scratch/telling"
FAKE_CUDA_CXX=$scratch/telling
if [ "${CEKERNELS_TEST_LONG-}" = 1 ]; then whole "NVRTC"; else whole "NVRTC, f32" -t f32; fi
FAKE_CUDA_CXX=$compiler
optional_f32=$(value optional_passed)
holds "$optional_f32 >= 100"
# All that was compiled, but for chains and f64, nvcc is given too, whether it is here or not: in the same order.
sort -u "$scratch/variants" | grep -v -e '^pointwise' -e f64 >"$scratch/wanted"
holds "$(wc -l <"$scratch/wanted") >= 40"
while read -r source definitions; do
    (cd "$top_srcdir" && sh kernels/images.sh variants "$source") | tr -s ' ' | grep -qxF -e "$definitions" ||
        wrong "$source is not among what nvcc compiles: $definitions"
done <"$scratch/wanted"
if [ -n "$NVCC" ]; then
    with_images
    whole "machine code" device memory gemm conv_forward conv_backward_data conv_backward_weights pool_forward \
        pool_backward pointwise reduce softmax cross_entropy squared_error dropout random optimizer copy arg gather scatter_add command_buffer
    holds "$(value optional_passed) >= 2000"  # f16 and bf16: no variant of a kernel is missing
    unset FAKE_CUDA_STRICT  # a queue is destroyed with work in it: that is left to the driver
    run 0 check -d cuda:0 queue --json
    holds "$(value required_passed) == $(value required) && $(value required) >= 14"
    FAKE_CUDA_STRICT=1
    export FAKE_CUDA_STRICT
    FAKE_CUDA_SM=60
    export FAKE_CUDA_SM
    run 1 check -t f32 -d cuda:0 softmax --match=1x1
    grep -q 'not among the machine code of this build' "$scratch/out" "$scratch/err" || wrong "not explained: $(tail -3 "$scratch/err")"
    unset FAKE_CUDA_SM
    # A compiler that finds no builtins is none: chains of instructions are interpreted.
    CEKERNELS_CUDA_PATH=$scratch/half
    unset CEKERNELS_CUDA_NVRTC
    mkdir "$scratch/half" && ln -s "$fake/fake_cuda.so" "$scratch/half/libcuda.so.1" &&
        ln -s "$fake/fake_nvrtc.so" "$scratch/half/libnvrtc.so.13" || exit 99
    run 0 check -t f32 -d cuda:0 --json pointwise softmax
    holds "$(value required_passed) == $(value required) && $(value required) >= 100"
    run 0 op softmax 4x4 -d cuda:0 -w 0 -r 1
    grep -q 'no NVRTC: it compiles nothing: .*failed to open libnvrtc-builtins.so.13.0.*/half/libnvrtc.so.13' "$scratch/err" ||
        wrong "not explained: $(tail -3 "$scratch/err")"
else
    echo "built without nvcc: machine code is not looked at"
fi

# What is on disk.
with_compiler
for file in "$scratch"/cache/cuda-*; do
    [ -s "$file" ] || wrong "no compiled kernel was kept"
    printf 'x' | dd of="$file" bs=1 seek=100 conv=notrunc 2>/dev/null
done
run 0 check -d cuda:0 softmax dropout --json
holds "$(value required_passed) == $(value required)"
cat >"$scratch/counting" <<END  # from disk: but for the trial of the compiler nothing is compiled
#!/bin/sh
echo >>"$scratch/compiled"
exec $FAKE_CUDA_CXX "\$@"
END
chmod +x "$scratch/counting"
FAKE_CUDA_CXX=$scratch/counting run 0 check -t f32 -d cuda:0 softmax dropout --json
holds "$(value required_passed) == $(value required) && $(wc -l <"$scratch/compiled") == 2"
rm -rf "$scratch/cache"
: >"$scratch/cache"  # not a folder: slow, not wrong
run 0 check -t f32 -d cuda:0 softmax --match=3x10 --json
holds "$(value required_passed) == $(value required) && $(value required) >= 5"

# An older compiler makes PTX; one that knows nothing as old as the device is of no use, nor one that fails.
CEKERNELS_CUDA_CACHE=off
FAKE_NVRTC_ARCHS="75 80"
export FAKE_NVRTC_ARCHS
run 0 check -t f32 -d cuda:0 softmax --match=3x10 --json
holds "$(value required_passed) == $(value required) && $(value required) >= 5"
FAKE_NVRTC_ARCHS=100
run 1 check -t f32 -d cuda:0 softmax
grep -q 'does not know sm_90' "$scratch/out" "$scratch/err" || wrong "not explained: $(tail -3 "$scratch/err")"
unset FAKE_NVRTC_ARCHS
# What is newer than the driver is left alone, whether its name says how new it is or not.
FAKE_CUDA_VERSION=12040
export FAKE_CUDA_VERSION
named() { # LINE - what is said of the compiler; without machine code for these kernels the check itself fails
    checks=$((checks + 1))
    "$CEKERNELS_BENCH" check -v -t f32 -d cuda:0 softmax --match=1x1 >"$scratch/out" 2>"$scratch/err"
    grep -Eq "$1" "$scratch/out" "$scratch/err" || wrong "not one line \"$1\": $(tail -3 "$scratch/err")"
}
named 'no NVRTC: |: NVRTC 12'
ln -s "$fake/fake_nvrtc.so" "$scratch/both/libnvrtc.so"
named 'no NVRTC: 13.0 is too|: NVRTC 12'
rm "$scratch/both/libnvrtc.so"
unset FAKE_CUDA_VERSION
# What compiles nothing is told once, what does not compile with its log.
FAKE_CUDA_CXX='sh -c "echo no such compiler; exit 1" c++' run 3 gemm -d cuda:0 -s 8x8x8
grep -q 'no NVRTC: it compiles nothing: no such compiler' "$scratch/err" || wrong "no reason: $(tail -3 "$scratch/err")"
cat >"$scratch/picky" <<'END'
#!/bin/sh
for word; do
    if [ -f "$word" ] && grep -q 'KERNEL void' "$word"; then echo "kernels are beyond me"; exit 1; fi
done
exec c++ "$@"
END
chmod +x "$scratch/picky"
FAKE_CUDA_CXX=$scratch/picky run 1 check -t f32 -d cuda:0 softmax
grep -q 'rows.cl does not compile: .*kernels are beyond me' "$scratch/out" "$scratch/err" || wrong "no build log: $(tail -3 "$scratch/err")"
finish
