# train.sh - `train` and `predict` over the command line: keys, files, bad input, signals.
. "$top_srcdir/tests/cli/lib.sh"

# A table that a line fits: y = 2a - 3b + 1.
awk 'BEGIN { srand(1); print "a,b,y"; for (i = 0; i < 200; i++) { a = rand(); b = rand(); print a "," b "," 2 * a - 3 * b + 1 } }' \
    >"$scratch/line.csv"
table="--csv=$scratch/line.csv --target=y"

run 0 train linear:1 $table --epochs 60 --batch 20 --lr 0.05 --json --save "$scratch/line.safetensors"
holds "$(value test_mse) < 0.001 && $(value samples_per_second) > 0 && $(value epochs) == 60"
holds "$(value epochs.0.train_loss) > $(value epochs.59.train_loss)"
[ "$(value devices.0.device)" = cpu:0 ] || wrong "no devices in the document"
sum=$(value weights_sha256)
[ ${#sum} -eq 64 ] || wrong "weights_sha256 is $sum"
mse=$(value test_mse)

# The same again: the same weights. From the saved ones: the error that training ended with.
run 0 train linear:1 $table --epochs 60 --batch 20 --lr 0.05 --json
[ "$(value weights_sha256)" = "$sum" ] || wrong "the same run gives other weights"
run 0 predict linear:1 $table --load "$scratch/line.safetensors" --json
holds "$(value results) == 40 && $(value test_mse) < $mse * 1.001 + 1e-9 && $(value test_mse) > $mse * 0.999 - 1e-9"
run 0 predict linear:1 $table --load "$scratch/line.safetensors" --rows 3 -o csv
[ "$(wc -l <"$scratch/out")" -eq 4 ] || wrong "--rows=3 gives not three rows"

# Lines per step; shares as asked for, also unequal ones.
CEKERNELS_CPU_DEVICES=3
export CEKERNELS_CPU_DEVICES
run 0 train linear:1 $table --steps 4 --log-every 2 --batch 20 -d cpu --shares=equal -o jsonl
holds "$(wc -l <"$scratch/out") == 3"
head -1 "$scratch/out" | "$json" step loss shares.0 shares.1 shares.2 >"$scratch/first" || wrong "no shares in the line"
[ "$(sed -n '1p;3,5p' "$scratch/first" | tr '\n' ' ')" = "2 7 7 6 " ] ||
    wrong "shares of 20 over 3 are $(cat "$scratch/first")"
run 0 train linear:1 $table --steps 1 --log-every 1 --batch 20 -d cpu --shares=2,1,1 -o jsonl
[ "$(head -1 "$scratch/out" | "$json" shares.0 shares.1 shares.2 | tr '\n' ' ')" = "10 5 5 " ] ||
    wrong "shares 2,1,1 are $(cat "$scratch/out")"
refused 2 'numbers >= 0' train linear:1 $table -d cpu --shares=1,2
refused 2 'not all 0' train linear:1 $table -d cpu --shares=0,0,0
refused 2 'auto, equal, or 3 numbers' train linear:1 $table -d cpu --shares=automatic
unset CEKERNELS_CPU_DEVICES

# Shares by measurement: what is left out, and why; the list gives the same shares again.
CEKERNELS_SIM_DEVICES=3 CEKERNELS_SIM_FLOPS=100M,100M,100k
export CEKERNELS_SIM_DEVICES CEKERNELS_SIM_FLOPS
run 0 train linear:1 $table --epochs 20 --batch 20 -d sim -v --json
grep -q 'shares: sim:2 takes no part: of [0-9]* samples/s, it would help from [0-9]* on' "$scratch/err" ||
    wrong "not said why sim:2 is left out: $(cat "$scratch/err")"
grep -q 'ms a step measured, .* predicted' "$scratch/err" || wrong "not said what was measured: $(cat "$scratch/err")"
list=$(sed -n 's/.* shares: \([0-9,]*\) after .*/\1/p' "$scratch/err" | tail -1)
holds "$(value epochs.19.shares.2) == 0 && $(value epochs.19.shares.0) + $(value epochs.19.shares.1) == 20"
holds "$(value epochs.19.idle_shares.0) >= 0 && $(value epochs.19.idle_shares.0) < 1 && $(value epochs.19.idle_shares.2) > 0.5"
[ "$(value epochs.19.shares.0),$(value epochs.19.shares.1),0" = "$list" ] || wrong "said $list: $(cat "$scratch/out")"
run 0 train linear:1 $table --epochs 1 --batch 20 -d sim --shares="$list" --json
[ "$(value epochs.0.shares.0),$(value epochs.0.shares.1),0" = "$list" ] || wrong "given $list: $(cat "$scratch/out")"
unset CEKERNELS_SIM_DEVICES CEKERNELS_SIM_FLOPS

# A part of the rows, rounded up: 0.201 of 200 is 41, and 0.07 of 200 is 14, although the product is a little more.
for part in '0.201 41' '0.07 14' '0.5 100'; do
    run 0 predict linear:1 $table --test-fraction="${part% *}" --load "$scratch/line.safetensors" --json
    holds "$(value results) == ${part#* }"
done

# Rows of the test set from a file.
printf '0\n5, 7\n199\n' >"$scratch/split"
run 0 predict linear:1 $table --split="$scratch/split" --load "$scratch/line.safetensors" --json
holds "$(value results) == 4"
echo '1 two' >"$scratch/split"
refused 5 'is not a row number' train linear:1 $table --split="$scratch/split"
echo '400' >"$scratch/split"
run 5 train linear:1 $table --split="$scratch/split"

# Bad input: one line that names the object, exit code 5, and files that were there stay.
refused 5 "$scratch/none.csv" train linear:1 --csv="$scratch/none.csv" --target=y
refused 5 'column' train linear:1 --csv="$scratch/line.csv" --target=zz
refused 5 'nonsense' train 'linear:1 nonsense' $table
refused 5 'none.safetensors' predict linear:1 $table --load="$scratch/none.safetensors"
refused 5 'channels and 1 to 3 axes' train 'conv:3,3 linear:1' $table
cp "$scratch/line.safetensors" "$scratch/kept.safetensors"
head -c 40 "$scratch/line.safetensors" >"$scratch/short.safetensors"
refused 5 'short.safetensors' train linear:1 $table --load="$scratch/short.safetensors" --save="$scratch/kept.safetensors"
refused 5 'line.safetensors' predict linear:2 $table --load="$scratch/line.safetensors"
run 5 train linear:1 $table --steps 2 --save=/nowhere/at/all.safetensors
refused 5 "$scratch" train lenet5 --data="$scratch"
cmp -s "$scratch/line.safetensors" "$scratch/kept.safetensors" || wrong "a failed run changed the file that was there"

# A loss that is not finite: exit code 7, nothing saved.
run 7 train linear:1 $table --optimizer sgd --lr 1e6 --epochs 50 --save="$scratch/kept.safetensors"
cmp -s "$scratch/line.safetensors" "$scratch/kept.safetensors" || wrong "weights that are not finite were saved"
# Nor is what the last update spoilt, behind a loss that was finite.
awk 'BEGIN { print "a,y"; for (i = 1; i < 9; i++) print i "e15," i "e17" }' >"$scratch/steep.csv"
steep="--csv=$scratch/steep.csv --target=y --optimizer=sgd --lr=1e6 --batch=4 --steps=1 --log-every=1 --standardize=no"
cp "$scratch/kept.safetensors" "$scratch/steep.safetensors"
run 7 train linear:1 $steep --save="$scratch/steep.safetensors" --json
holds "$(value steps.0.loss) < 1e38"
grep -q 'parameter [a-z0-9.]*: element 0 of 1 is -*\(inf\|nan\)' "$scratch/err" ||
    wrong "the weight that is not finite is not named: $(cat "$scratch/err")"
cmp -s "$scratch/steep.safetensors" "$scratch/kept.safetensors" || wrong "weights that are not finite were saved"
run 7 train linear:1 $steep
refused 6 'needs' train mnist-cnn --limit-memory=1M --steps 1

# endless SIGNALS... - a run without end in the background, with these options of env for its signals: a shell without job
# control lets its children ignore SIGINT.
endless() {
    rm -f "$scratch/stopped.safetensors" "$scratch/out"
    env "$@" "$CEKERNELS_BENCH" train linear:1 $table --epochs 100000000 --batch 20 -q --log-every 100 -o jsonl \
        --save="$scratch/stopped.safetensors" >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    lines_wait 1
}

# lines_wait N - until the run has printed so many lines, or has ended.
lines_wait() {
    until [ -f "$scratch/out" ] && [ "$(wc -l <"$scratch/out")" -ge "$1" ]; do
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
}

# ended SIGNAL NUMBER - the run is ended by it: the step is finished, the weights are saved, 128 and the number.
ended() {
    checks=$((checks + 1))
    kill -s "$1" $pid
    wait $pid
    code=$?
    [ $code -eq $((128 + $2)) ] || wrong "after SIG$1: exit code $code"
    [ -s "$scratch/stopped.safetensors" ] || wrong "after SIG$1: nothing was saved"
    "$json" -l weights_sha256 <"$scratch/out" >/dev/null || wrong "after SIG$1: no document at the end"
}

for signal in 'INT 2' 'TERM 15' 'HUP 1'; do
    endless --default-signal="${signal% *}"
    ended $signal
done
# One that was ignored from the start, as by nohup, is none: steps are made as before, until another one comes.
for signal in INT HUP; do
    endless --ignore-signal=$signal --default-signal=TERM
    kill -s $signal $pid
    lines_wait $(($(wc -l <"$scratch/out") + 5))
    kill -0 $pid 2>/dev/null || wrong "SIG$signal was ignored from the start, and ended the run"
    ended TERM 15
done

# A reader that goes away, before the first line even: what is to be saved is saved all the same, from the whole run.
run 0 train linear:1 $table --steps 50 --log-every 1 --batch 20 --save="$scratch/read.safetensors"
{
    until [ -e "$scratch/gone" ]; do
        sleep 0.1
    done
    env --default-signal=PIPE "$CEKERNELS_BENCH" train linear:1 $table --steps 50 --log-every 1 --batch 20 \
        --save="$scratch/unread.safetensors" 2>"$scratch/err"
    echo $? >"$scratch/code"
} | {
    exec <&-
    : >"$scratch/gone"
}
checks=$((checks + 1))
[ "$(cat "$scratch/code")" -eq 5 ] || wrong "a reader that went away: exit code $(cat "$scratch/code")"
grep -q 'standard output: Broken pipe' "$scratch/err" || wrong "a reader that went away: $(cat "$scratch/err")"
cmp -s "$scratch/read.safetensors" "$scratch/unread.safetensors" || wrong "a reader that went away: other weights, or none"

# Weights that are no numbers: predict says so as train does, and invents no class.
{
    head -c -4 "$scratch/line.safetensors"
    printf '\0\0\300\177'
} >"$scratch/nan.safetensors"
run 7 predict linear:1 $table --load "$scratch/nan.safetensors" --json
grep -q 'row 0: an output is -*nan; 40 of 40 rows' "$scratch/err" || wrong "of NaN outputs: $(cat "$scratch/err")"
[ "$(value results.0.predicted)" = null ] && [ "$(value test_mse)" = null ] || wrong "NaN is predicted as a number"
holds "$(value results) == 40"

# A device that hangs, and no driver that notices: the time-out ends it, alone and beside another.
CEKERNELS_SIM_WATCHDOG_MS=3600000
CEKERNELS_SIM_FAULTS=hang@op_run#5/1
export CEKERNELS_SIM_WATCHDOG_MS CEKERNELS_SIM_FAULTS
for devices in sim:1 cpu:0,sim:1; do
    refused 4 'sim:1: .*: no command finished for 0.2 s' train 'conv:4,3,s2 relu flatten linear:10' -d $devices --steps 9 --timeout=0.2
done
unset CEKERNELS_SIM_WATCHDOG_MS CEKERNELS_SIM_FAULTS

# Clipping: a norm above the gradient's changes nothing, one below changes the weights; how many steps are under way changes nothing.
run 0 train linear:1 $table --steps 9 --batch 20 --optimizer sgd -d cpu,sim:0 --shares=equal --json --ahead=1
plain=$(value weights_sha256)
run 0 train linear:1 $table --steps 9 --batch 20 --optimizer sgd -d cpu,sim:0 --shares=equal --json --ahead=4 --clip=1e9
[ "$(value weights_sha256)" = "$plain" ] || wrong "steps ahead, or a norm that is never reached, change the weights"
run 0 train linear:1 $table --steps 9 --batch 20 --optimizer sgd -d cpu,sim:0 --shares=equal --json --clip=0.01
[ "$(value weights_sha256)" != "$plain" ] || wrong "clipping does nothing"
refused 2 'clip' train linear:1 $table --clip=0
refused 2 'ahead' train linear:1 $table --ahead=17

# A trace: the layers and both threads of a device that works beside the host; refused before hours of work.
run 0 train linear:1 $table --steps 3 --batch 20 -d cpu,sim:0 --shares=equal --trace="$scratch/trace.json"
for name in 'node 1 (linear) backward' 'sim:0: feeder' 'sim:0: porter' 'update shard 0'; do
    grep -q "\"name\":\"$name\"" "$scratch/trace.json" || wrong "no $name in the trace"
done
"$json" otherData.not_recorded <"$scratch/trace.json" | grep -qx 0 || wrong "a trace that is no JSON, or not whole"
refused 5 'nowhere' train linear:1 $table --epochs 100000000 --trace="$scratch/nowhere/trace.json"

# Digits: a small network on drawn ones learns something in a few steps, and a label comes with a probability.
run 0 train 'conv:4,3,s2 relu flatten linear:10' --steps 150 --log-every 75 --batch 32 -o jsonl --save "$scratch/digits.safetensors"
run 0 predict 'conv:4,3,s2 relu flatten linear:10' --load "$scratch/digits.safetensors" --json --rows=5
holds "$(value results) == 5 && $(value test_accuracy) > 0.5 && $(value samples) == 10000"
holds "$(value results.0.probability) > 0.1 && $(value results.0.probability) <= 1.0001"
{
    head -c -4 "$scratch/digits.safetensors"
    printf '\0\0\200\177'
} >"$scratch/infinite.safetensors"
run 7 predict 'conv:4,3,s2 relu flatten linear:10' --load "$scratch/infinite.safetensors" --json --rows=5
[ "$(value results.4.predicted)" = null ] && [ "$(value results.4.probability)" = null ] || wrong "a class out of nothing"
holds "$(value results) == 5 && $(value test_accuracy) == 0"
run 7 predict 'conv:4,3,s2 relu flatten linear:10' --load "$scratch/infinite.safetensors" --rows=1
grep -q '^ *0  *-  *-  *[0-9]$' "$scratch/out" || wrong "a row without a class: $(cat "$scratch/out")"
finish
