# usage.sh - what cekernels-bench says of wrong calls, and with which exit codes.
. "$top_srcdir/tests/cli/lib.sh"

run 0 --help
grep -q '^usage: cekernels-bench' "$scratch/out" || wrong "--help prints no usage"
for command in devices peak gemm conv op copy train predict check; do
    grep -q "^  $command " "$scratch/out" || wrong "--help does not name $command"
done
# The manual has every option, and no other.
"$CEKERNELS_BENCH" --help | grep -o -e '--[a-z][a-z-]*' | sort -u >"$scratch/help"
grep -o -e 'Fl -[a-z][a-z-]*' "$top_srcdir/man/cekernels-bench.1" | sed 's/Fl /-/' | sort -u >"$scratch/manual"
cmp -s "$scratch/help" "$scratch/manual" ||
    wrong "help and manual differ: $(diff "$scratch/help" "$scratch/manual" | tr '\n' ' ')"
run 0 --version
grep -q '^cekernels-bench [0-9]' "$scratch/out" || wrong "--version prints no version"
run 0 train --help

run 2
run 2 --no-such-option devices
run 2 devices --output
refused 2 'no command is called nonsense' nonsense
refused 2 'takes no argument' devices cpu
refused 2 'devices takes no option --epochs' devices --epochs=3
refused 2 'gemm takes no option --save' --save=x gemm
refused 2 'table, json, jsonl, csv or md is wanted' devices -o xml
refused 2 '--runs=0: a whole number from 1' gemm --runs=0
refused 2 '--runs=3x: a whole number' gemm -r 3x
refused 2 '--warmup=-1: a whole number from 0' gemm --warmup=-1
refused 2 'not a product MxNxK' gemm -s 512x512
refused 2 'M and N must not be 0' gemm -s 0x5x5
refused 2 'no convolution has "zz"' conv -s mb1ic3zz4
refused 2 'no output of that size' conv -s mb1ic3ih3oc3kh5
refused 2 'forward, data or weights is wanted' conv --pass=sideways
refused 2 'which MODEL' train
refused 2 'one MODEL' train lenet5 mnist-cnn
refused 2 'needs --load' predict lenet5
refused 2 'cannot both be' train lenet5 --data=/nowhere --csv=/nowhere --target=x
refused 2 'needs --target' train boston-mlp --csv=/nowhere
refused 2 'are for --csv' train boston-mlp --target=medv
refused 2 '--lr=nan: a number' train lenet5 --lr=nan
refused 2 '--dropout=1: a number' train lenet5 --dropout=1
refused 2 'a size such as 512M' train lenet5 --limit-memory=lots
refused 2 'yes is wanted' train lenet5 --shuffle=perhaps
refused 2 'no operation is called add' check add
refused 2 'no case fits' check reduce --match=nothing-has-this-name

refused 3 'nodevice:7' gemm -d nodevice:7
refused 3 'nodevice' train lenet5 -d nodevice
refused 3 'nodevice' check -d nodevice gemm

# Options stand before or after the command, short or long, with = or not.
run 0 -o json devices
run 0 devices --output json
run 0 devices -ojson
run 0 --json devices
finish
