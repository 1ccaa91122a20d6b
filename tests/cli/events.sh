# events.sh - train --log-dir: what is told, as often as it should be, in whole records, and the run is what it is without.
. "$top_srcdir/tests/cli/lib.sh"
events=$top_builddir/tests/cli/events

# told FOLDER - what the one file in it tells, in $scratch/told.
told() {
    checks=$((checks + 1))
    set -- "$1"/events.out.tfevents.*
    [ $# -eq 1 ] || wrong "not one file: $*"
    "$events" "$1" >"$scratch/told" || wrong "$1: $(tail -1 "$scratch/told")"
}

# many NUMBER PATTERN - so many of the values told are like that.
many() {
    checks=$((checks + 1))
    found=$(grep -c -e "$2" "$scratch/told")
    [ "$found" -eq "$1" ] || wrong "$found values are like $2, not $1"
}

net='conv:4,3,s4 relu flatten linear:10'
options="--batch 1000 --epochs 2 --seed 3 -d cpu:0"
run 0 train "$net" $options --json --save="$scratch/plain.safetensors"
run 0 train "$net" $options --log-dir="$scratch/new/1" --json --save="$scratch/logged.safetensors"
cmp "$scratch/plain.safetensors" "$scratch/logged.safetensors" || wrong "other weights with --log-dir"
told "$scratch/new/1"
head -1 "$scratch/told" | grep -qx '0 version - brain.Event:2' || wrong "begins with $(head -1 "$scratch/told")"
many 1 '^0 graph - input 0-conv 1-relu 2-flatten 3-linear$'
many 3 '^0 hparams _hparams_/'
tail -1 "$scratch/told" | grep -q session_end_info || wrong "ends with $(tail -1 "$scratch/told")"
for curve in loss accuracy learning_rate samples_per_second; do
    many 40 "^[0-9]* scalar step/$curve "
done
many 40 ' scalar memory_MiB/cpu:0 '
many 0 ' scalar share/' # of one device
for curve in train_loss train_accuracy test_loss test_accuracy samples_per_second seconds; do
    many 1 "^20 scalar epoch/$curve "
    many 1 "^40 scalar epoch/$curve "
done
for name in 0.weight 0.bias 3.weight 3.bias; do
    many 2 " histogram weights/$name "
    many 2 " histogram gradients/$name "
done
many 2 ' histogram weights/3.weight 1960 '
many 2 ' image samples/predictions 412 356 3$' # four by four of 28 x 28, each three times as large
many 1 ' text run/layers'
many 40 ' scalar step/learning_rate 0.00100000005$'
# The numbers are those that are printed.
for epoch in 0 1; do
    loss=$(value epochs.$epoch.test_loss) step=$(value epochs.$epoch.step)
    seen=$(sed -n "s,^$step scalar epoch/test_loss ,,p" "$scratch/told")
    holds "$seen > $loss * (1 - 1e-7) && $seen < $loss * (1 + 1e-7)"
done

# A second run in the same folder has a file of its own; each is whole.
run 0 train "$net" $options --log-dir="$scratch/new/1" --steps 2
set -- "$scratch"/new/1/*
[ $# -eq 2 ] || wrong "two runs, $# files"
for file in "$@"; do
    "$events" "$file" >/dev/null || wrong "$file is broken"
done

# Lines as often as was asked for; the rate that each step has; shares of several devices, and the weights of a run without.
run 0 train "$net" $options --schedule=step:15,g0.5 --steps 30 --log-every=5 --log-dir="$scratch/steps" -o jsonl
told "$scratch/steps"
many 6 ' scalar step/loss '
many 3 ' scalar step/learning_rate 0.00100000005$'
many 3 ' scalar step/learning_rate 0.000500000024$'
CEKERNELS_CPU_DEVICES=3
export CEKERNELS_CPU_DEVICES
run 0 train "$net" --batch 100 --steps 5 -d cpu --shares=2,1,1 --ahead=3 --schedule=step:2,g0.1 \
    --log-dir="$scratch/shares" --json
logged=$(value weights_sha256)
run 0 train "$net" --batch 100 --steps 5 -d cpu --shares=2,1,1 --ahead=3 --schedule=step:2,g0.1 --json
[ "$(value weights_sha256)" = "$logged" ] || wrong "three devices: other weights with --log-dir"
told "$scratch/shares"
many 5 ' scalar share/cpu:0 0.5$'
many 10 ' scalar share/cpu:[12] 0.25$'
for step in '1 0.00100000005' '2 0.00100000005' '3 9.99999975e-05' '5 9.99999975e-06'; do
    many 1 "^${step% *} scalar step/learning_rate ${step#* }\$"
done
unset CEKERNELS_CPU_DEVICES

# A table: no accuracy, no images. Steps thin out: of 2,500 the first 1,000, then every second, then every fourth.
awk 'BEGIN { srand(1); print "a,b,y"; for (i = 0; i < 20; i++) { a = rand(); b = rand(); print a "," b "," 2 * a - 3 * b + 1 } }' \
    >"$scratch/line.csv"
table="--csv=$scratch/line.csv --target=y"
run 0 train linear:1 $table --steps 2500 --batch 20 --epochs 2500 --log-dir="$scratch/many" -q
told "$scratch/many"
many 1625 ' scalar step/loss '
many 0 'accuracy'
many 0 ' image '

# Whatever ends a run, the file is whole: a signal, a kill.
for signal in INT KILL; do
    env --default-signal=INT "$CEKERNELS_BENCH" train linear:1 $table --epochs 100000000 --batch 20 -q \
        --log-dir="$scratch/$signal" >/dev/null 2>&1 &
    pid=$!
    until grep -q step/loss "$scratch/$signal"/events.* 2>/dev/null; do
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
    kill -s $signal $pid
    wait $pid 2>/dev/null
    told "$scratch/$signal"
    [ "$(grep -c ' scalar step/loss ' "$scratch/told")" -gt 0 ] || wrong "SIG$signal: nothing was told"
done
many 0 session_end_info # killed
told "$scratch/INT"
many 1 session_end_info

# A folder that cannot be: one line, before anything is trained. A disk that is full: the run ends well, and says what is missing.
: >"$scratch/file"
refused 5 'file/in/it.*Not a directory' train linear:1 $table --epochs 100000000 --log-dir="$scratch/file/in/it"
refused 5 'not a folder' train linear:1 $table --epochs 100000000 --log-dir="$scratch/file"
(
    ulimit -f 12 # 6 or 12 KiB, by the shell
    trap '' XFSZ
    exec "$CEKERNELS_BENCH" train linear:1 $table --steps 50 --batch 20 --no-progress -o csv --log-dir="$scratch/full" >"$scratch/out" \
        2>"$scratch/err"
)
code=$?
checks=$((checks + 1))
[ $code -eq 5 ] || wrong "a full disk: exit code $code"
grep -q '^cekernels-bench: the log ends here, the run goes on: .*events.out.tfevents.*: write failed: File too large$' \
    "$scratch/err" || wrong "a full disk: $(cat "$scratch/err")"
[ "$(wc -l <"$scratch/err")" -eq 1 ] || wrong "a full disk is told of more than once"
told "$scratch/full"
holds "$(tail -1 "$scratch/out" | cut -d, -f2) == 50"

# A device that is full: samples are left out, once for all, and the curves go on.
CEKERNELS_SIM_DEVICES=1 CEKERNELS_SIM_MEMORY=2400k
export CEKERNELS_SIM_DEVICES CEKERNELS_SIM_MEMORY
run 6 train 'flatten linear:300 linear:10' --optimizer=sgd --batch 10000 --epochs 2 -d sim:0 --no-progress \
    --log-dir="$scratch/crowded" -o csv
grep -q '^cekernels-bench: samples are logged no more, all else is: sim:0: out of memory: ' "$scratch/err" ||
    wrong "a full device: $(cat "$scratch/err")"
[ "$(wc -l <"$scratch/err")" -eq 1 ] || wrong "a full device is told of more than once"
told "$scratch/crowded"
many 0 ' image '
many 2 ' histogram weights/1.weight '
many 2 ' scalar epoch/test_loss '
many 1 session_end_info
unset CEKERNELS_SIM_DEVICES CEKERNELS_SIM_MEMORY

# An allocation that fails, whichever it is: the run is what it is without, or ends with 6; the file is whole.
starve=$top_builddir/tests/cli/.libs/starve.so
[ "$SANITIZERS" != no ] || for nth in 0 $(awk "BEGIN { srand(5); for (i = 0; i < 24; i++) print 1 + int(1100 * rand()) }"); do
    checks=$((checks + 1))
    STARVE_NTH=$nth STARVE_COUNT=$scratch/count LD_PRELOAD=$starve CEKERNELS_PLUGINS==cpu "$CEKERNELS_BENCH" train linear:1 \
        $table --steps 4 --epochs 4 --batch 20 -d cpu:0 --log-dir="$scratch/starved/$nth" >"$scratch/out" 2>"$scratch/err" </dev/null
    code=$?
    [ $code -eq 0 ] || [ $code -eq 6 ] || wrong "allocation $nth fails: exit code $code: $(cat "$scratch/err")"
    [ $code -eq 0 ] || [ -s "$scratch/err" ] || wrong "allocation $nth fails, and nothing is said"
    [ ! -d "$scratch/starved/$nth" ] || for file in "$scratch/starved/$nth"/events.*; do
        [ ! -e "$file" ] || "$events" "$file" >"$scratch/told" || wrong "allocation $nth fails: $(tail -1 "$scratch/told")"
    done
    [ $code -ne 0 ] || [ "$(grep -c . "$scratch/told")" -eq "${whole=$(grep -c . "$scratch/told")}" ] ||
        wrong "allocation $nth fails: exit code 0, and values are missing"
done
finish
