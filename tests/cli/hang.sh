# hang.sh - a training run whose device hangs ends by itself, with the device, the call and the time in one line and exit
# code 4; and a signal that comes meanwhile ends it no later.
. "$top_srcdir/tests/cli/lib.sh"

awk 'BEGIN { print "x,y"; for (i = 0; i < 200; i++) print i / 100 "," i / 50 }' >"$scratch/line.csv"
table="--csv=$scratch/line.csv --target=y"
CEKERNELS_SIM_WATCHDOG_MS=3600000
export CEKERNELS_SIM_WATCHDOG_MS

# hangs FAULT DEVICES - it ends with code 4 and says so.
hangs() {
    CEKERNELS_SIM_FAULTS=$1 refused 4 'sim:1: .* for 0.3 s' train linear:1 $table -d "$2" --timeout=0.3 -q --epochs 100
}

for devices in sim:1 sim:0,sim:1; do
    hangs block@op_run#3/1 $devices
    hangs block@queue_sync#2/1 $devices
    hangs hang@upload#5/1 $devices
done

# interrupted SIGNAL DEVICES - a run that hangs is sent a signal before its deadline.
interrupted() {
    checks=$((checks + 1))
    env --default-signal="$1" CEKERNELS_SIM_FAULTS=block@cmdbuf_run#20/1 "$CEKERNELS_BENCH" train linear:1 $table \
        -d "$2" --timeout=2 -q --epochs 100000000 --log-every 1 -o jsonl --save="$scratch/lost.safetensors" \
        >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    until [ "$(wc -l <"$scratch/out")" -ge 3 ] || ! kill -0 $pid 2>/dev/null; do
        sleep 0.1
    done
    sleep 0.5
    kill -s "$1" $pid
    wait $pid
    code=$?
    [ $code -eq 4 ] || wrong "hung, then SIG$1: exit code $code: $(cat "$scratch/err")"
    [ ! -e "$scratch/lost.safetensors" ] || wrong "hung, then SIG$1: weights were saved"
}

interrupted INT sim:1
interrupted TERM sim:0,sim:1
finish
