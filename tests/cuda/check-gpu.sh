# check-gpu.sh - scripts/check-gpu on the fake driver: with and without its compiler, providers hidden, beside the CPU;
# a compiler that fails is told, and a library that is there and refuses everything.
. "$top_srcdir/tests/cuda/lib.sh"
PYTHON=false
unset CEKERNELS_OPENCL_PROVIDERS CEKERNELS_CUDA_PROVIDERS
export PYTHON
gpu() { # CODE ARG...
    want=$1
    shift
    checks=$((checks + 1))
    "$top_srcdir/scripts/check-gpu" --build="$top_builddir" --out="$scratch/logs" --quick --ops=softmax \
        --model='conv:4,3,s2 relu maxpool:2 flatten linear:10' --only=devices,check,train,gemm,sanitizer "$@" \
        >"$scratch/out" 2>"$scratch/err"
    got=$?
    [ "$got" -eq "$want" ] || {
        wrong "check-gpu $*: exit code $got, not $want"
        tail -n 20 "$scratch/out" "$scratch/err"
    }
}
says() { # SECTION VERDICT TEXT
    checks=$((checks + 1))
    grep -Eq "^$1 +$2 +[0-9]+ s  .*$3" "$scratch/logs/summary" ||
        wrong "no '$1 $2 ... $3' in: $(cat "$scratch/logs/summary")"
}
# All that there is goes under the sanitizer.
watched=$(tr '\n' ' ' <"$top_srcdir/scripts/check-gpu" | sed "s/.*types='' kinds='\([^']*\)'.*/\1/")
for kind in $(sed -n 's/.*SPEC_KIND("\([a-z_]*\)".*/\1/p' "$top_srcdir"/spec/*.c); do
    holds "$(echo "$watched" | grep -cw "$kind") == 1"
done
holds "$checks >= 18"
with_compiler
gpu 0
says devices passed 'cpu:0 cuda:0 cuda:1'
says check passed 'required ([1-9][0-9]) of \1 on each of 3 devices'
says train passed '[5-9] runs, losses within 1e-5 of train-cpu:0'
says gemm skipped 'no torch'
grep -q 'check-cuda-no-providers: cuda:1: passed' "$scratch/out" || wrong "no run with providers hidden"
grep -q 'check-cuda-nvrtc: cuda:0: passed' "$scratch/out" || wrong "no run without machine code"
grep -q 'check-cuda-machine-code: skipped: not among' "$scratch/out" ||
    wrong "no machine code, and not said: $(cat "$scratch/out")"
grep -q 'train-mixed: last loss' "$scratch/out" || wrong "no mixed training"
gpu 0 --only=graphs --time-limit=9000 # slow here, where a machine is shared
says graphs passed '100 steps twice on cuda:0'
gpu 0 --only=launches --time-limit=9000
says launches passed 'cuda:0: [1-9][0-9]* operations among [1-9][0-9]* commands a step'
# What NVIDIA's tool says of the same cards, in its own order, and of one that CUDA does not see.
mkdir "$scratch/bin" && cat >"$scratch/bin/nvidia-smi" <<'END'
#!/bin/sh
case $* in *uuid*) cat "$SMI_SAYS" ;; esac
END
chmod +x "$scratch/bin/nvidia-smi"
uuid() { printf 'GPU-%s' "$(printf "$1%.0s" 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 |
    sed 's/\(.\{8\}\)\(.\{4\}\)\(.\{4\}\)\(.\{4\}\)/\1-\2-\3-\4-/')"; }
smi() { # CELSIUS OF cuda:0
    printf '%s, 50, 300.00, 1000, 5\n%s, 30, 70.10, 345, [N/A]\n%s, %s, 601.00, 1740, 90\n' \
        "$(uuid 7f)" "$(uuid 41)" "$(uuid 40)" "$1" >"$SMI_SAYS"
}
SMI_SAYS=$scratch/smi
SMI_PATH=$PATH
export SMI_SAYS
PATH=$scratch/bin:$PATH
ln -s "$fake/fake_nvml.so" "$scratch/both/libnvidia-ml.so.1" || exit 99
smi 76
gpu 0 --only=devices
says devices passed 'cpu:0 cuda:0 cuda:1'
grep -q 'cuda:0: temperature_celsius 74, by nvidia-smi 76' "$scratch/out" || wrong "not compared: $(cat "$scratch/out")"
grep -q 'cuda:1: power_watts 68.25, by nvidia-smi 70.1' "$scratch/out" || wrong "cuda:1 is not compared"
holds "$(grep -c ', by nvidia-smi' "$scratch/out") == 7"
smi 40
gpu 1 --only=devices
says devices failed 'cuda:0: temperature_celsius is 74'
smi 76
FAKE_NVML=refuses gpu 1 --only=devices
says devices failed 'is not known, nvidia-smi says'
rm "$scratch/both/libnvidia-ml.so.1"
PATH=$SMI_PATH
gpu 0 --only=together
says together skipped 'no torch'
ln -s "$fake/fake_cublaslt.so" "$scratch/both/libcublasLt.so.13" || exit 99
ln -s "$fake/fake_cudnn.so" "$scratch/both/libcudnn.so.9" || exit 99
gpu 0 --only=providers --time-limit=9000
says providers passed '12 operations by libraries'
FAKE_CUDNN=none gpu 1 --only=providers --time-limit=9000
says providers failed 'cuDNN is there and does not do: conv'
rm "$scratch/both/libcublasLt.so.13" "$scratch/both/libcudnn.so.9"
CEKERNELS_CUDA_CACHE=off FAKE_CUDA_CXX='sh -c "echo no such compiler; exit 1" c++' gpu 1
says check failed 'check-cuda: exit status 1'
says train failed 'train-cuda:0: exit status'
grep -q 'check-cpu: cpu:0: passed' "$scratch/out" || wrong "the CPU was not checked any more"
finish
