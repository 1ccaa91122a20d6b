# usage.sh - what cekernels-bench says of wrong calls, and with which exit codes; the pages of help.
. "$top_srcdir/tests/cli/lib.sh"

run 0 --help
grep -q '^usage: cekernels-bench' "$scratch/out" || wrong "--help prints no usage"
! grep -q -e '--epochs' "$scratch/out" || wrong "--help tells options of one command"
[ "$(wc -l <"$scratch/out")" -le 40 ] || wrong "--help is longer than a screen"
run 0 help
cp "$scratch/out" "$scratch/help"
commands=$(sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' "$scratch/help")
for command in devices peak gemm conv op copy train predict check help; do
    case " $(echo $commands) " in *" $command "*) ;; *) wrong "--help does not name $command" ;; esac
done
# A page for each command: its options, those of every command, two examples that keep to them.
for command in $commands; do
    run 0 help "$command"
    cp "$scratch/out" "$scratch/page"
    cat "$scratch/page" >>"$scratch/help"
    grep -q "^usage: cekernels-bench .* $command" "$scratch/page" || wrong "help $command is of another command"
    [ "$(grep -c "^  cekernels-bench $command" "$scratch/page")" -eq 2 ] || wrong "help $command has not two examples"
    sed -n "s/^  cekernels-bench $command//p" "$scratch/page" | grep -oE -e ' --?[a-z-]+' | while read -r option; do
        grep -qE -e "^  (-[a-z],|   ) $option[ =]|^  $option," "$scratch/page" || echo "$option"
    done >"$scratch/alien"
    [ ! -s "$scratch/alien" ] || wrong "examples of $command have options that it has not: $(cat "$scratch/alien")"
    run 0 "$command" --help
    cmp -s "$scratch/out" "$scratch/page" || wrong "$command --help is not help $command"
done
run 0 train --epochs=none --no-such-option --help
grep -q '^usage: .*train' "$scratch/out" || wrong "help is not given behind a mistake"
run 0 help train
! grep -q -e '--peer' "$scratch/out" || wrong "help train tells options of gemm"
# The manual has every option, and no other.
grep -o -e '--[a-z][a-z-]*' "$scratch/help" | sort -u >"$scratch/options"
grep -o -e 'Fl -[a-z][a-z-]*' "$top_srcdir/man/cekernels-bench.1" | sed 's/Fl /-/' | sort -u >"$scratch/manual"
cmp -s "$scratch/options" "$scratch/manual" ||
    wrong "help and manual differ: $(diff "$scratch/options" "$scratch/manual" | tr '\n' ' ')"
run 0 --version
grep -q '^cekernels-bench [0-9]' "$scratch/out" || wrong "--version prints no version"

run 2
[ ! -s "$scratch/out" ] || wrong "without a command it prints to standard output"
refused 2 'help takes one command' help train check
refused 2 'did you mean train?' help trian
refused 2 '--no-such-option: no option is called that' --no-such-option devices
refused 2 'several options begin like that: .*--shape --.*--seed' gemm --s=3
refused 2 'no option is called -z' devices -z
refused 2 '--output needs a value: --output=FORMAT' devices --output
refused 2 '--output needs a value' devices -o
refused 2 '--json takes no value' devices --json=yes
refused 2 '--dtype=f8: f32, f16, bf16, f64, u8 or i32 is wanted' gemm -t f8
refused 2 'no command is called nonsense; try --help' nonsense
refused 2 'takes no argument' devices cpu
refused 2 'devices takes no option --epochs; it is for train' devices --epochs=3
refused 2 'gemm takes no option --save' --save=x gemm
refused 2 'devices takes no option --epochs; it is for train' --epochs=3 -- devices
refused 2 'table, json, jsonl, csv or md is wanted' devices -o xml
refused 2 '--runs=0: a whole number from 1' gemm --runs=0
refused 2 '--runs=3x: a whole number' gemm -r 3x
refused 2 '--warmup=-1: a whole number from 0' gemm --warmup=-1
refused 2 'not a product MxNxK' gemm -s 512x512
refused 2 'M and N must not be 0' gemm -s 0x5x5
refused 2 'not a product' gemm -s ''
refused 2 'not a product' gemm -s ,8x8x8
refused 2 'needs ic' conv -s ''
refused 2 'more elements than there can be' conv -s mb2000000000ic2000000000ih2000000000oc1kh1
refused 2 'no convolution has "zz"' conv -s mb1ic3zz4
refused 2 'no output of that size' conv -s mb1ic3ih3oc3kh5
refused 2 'forward, data or weights is wanted' conv --pass=sideways
refused 2 'which MODEL' train
refused 2 'one MODEL' train lenet5 mnist-cnn
refused 2 'needs --load' predict lenet5
refused 2 'cannot both be' train lenet5 --data=/nowhere --csv=/nowhere --target=x
refused 2 'reads a table: --csv=FILE' train boston-mlp
refused 2 'needs --target' train boston-mlp --csv=/nowhere
# No device is asked before.
refused 2 'needs --target' train boston-mlp --csv=/nowhere -d nowhere
refused 2 'reads a table: --csv=FILE' train boston-mlp -d nowhere
refused 5 'unknown; the words are' train nope -d nowhere
refused 5 'flatten' train linear:10 -d nowhere
refused 3 '--dtype=u8: networks compute in' train lenet5 -t u8 -d nowhere
refused 2 'cannot both be' predict lenet5 --load=/nowhere --data=/nowhere --csv=/nowhere --target=x -d nowhere
for option in --target=medv --split=/nowhere --test-fraction=0.5 --standardize=no; do
    refused 2 "${option%=*} is for --csv" train boston-mlp $option
done
refused 2 'cannot both choose the test set' train boston-mlp --csv=/nowhere --target=y --split=/nowhere --test-fraction=0.5
refused 2 '--lr=nan: a number' train lenet5 --lr=nan
refused 2 '--dropout=1: a number' train lenet5 --dropout=1
refused 2 'a size such as 512M' train lenet5 --limit-memory=lots
refused 2 'yes is wanted' train lenet5 --shuffle=perhaps
refused 2 'no cases are called add' check add
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
