# strict.sh - networks train on the kernels for GPUs, under a driver that is as strict as any that there is, as they do on
# the processor: the shim makes that of PoCL. Budgets are what a step asks the driver for at most.
. "$top_srcdir/tests/opencl/lib.sh"
[ "$SANITIZERS" = no ] || { echo "skipped: a library cannot be preloaded before a sanitizer's"; exit 77; }

losses() { # FILE ARG...: ten of them
    to=$1
    shift
    checks=$((checks + 1))
    "$CEKERNELS_BENCH" train "$@" --steps=10 --log-every=1 --seed=3 -o csv >"$scratch/out" 2>"$scratch/err" </dev/null ||
        { wrong "train $*: exit $?"; head -3 "$scratch/err"; }
    awk -F, 'NR > 1 && $2 + 0 > 0 { print $2 }' "$scratch/out" | head -10 >"$to"
    [ "$(wc -l <"$to")" = 10 ] || { wrong "train $* shows no ten losses:"; cat "$scratch/out"; }
}
# Lines of counts are written before each upload of a batch, samples and labels in one, and at the end. From the fifth step on all is compiled, recorded
# and in its place, both of the two that are under way; with the last one comes what is done at the end.
per_step() { # COUNT: the most that one of five steps asked for
    awk -v of="$1" '{ for (i = 1; i < NF; i += 2) if ($i == of) now = $(i + 1) }
        NR > 5 && NR <= 10 && now - before > most { most = now - before }
        { before = now }
        END { print NR == 11 ? most + 0 : "not-ten-steps" }' "$scratch/counts"
}
budget() { # COMMANDS LAUNCHES
    echo "a step: $(per_step commands) commands, $(per_step launches) of them launches, $(per_step arguments) arguments," \
        "$(per_step flushes) flushes, $(per_step polls) polls"
    holds "$(per_step commands) <= $1 && $(per_step launches) <= $2 && $(per_step launches) > 0"
    holds "$(per_step arguments) == 0"
    holds "$(per_step queues) + $(per_step buffers) + $(per_step waits) == 0"
    # Four or five; six or seven where the host looks before all is enqueued, for then what comes later is flushed by itself.
    holds "$(per_step flushes) <= 7"
    # A wait asks without a pause for 0.1 ms, some fifty times, and then about every 2 ms.
    holds "$(per_step polls) <= 400 + 1000 * $(awk -F, 'NR > 1 && $4 > most { most = $4 } END { print most + 0 }' "$scratch/out")"
}
strict() { # GROUP NET BATCH COMMANDS LAUNCHES: the losses are those of the processor, and a step asks for no more than that
    losses "$scratch/cpu" "$2" --batch="$3" -d cpu
    rm -f "$scratch/kernels" "$scratch/counts"
    export LD_PRELOAD="$top_builddir/tests/opencl/.libs/shim.so" SHIM_STRICT=yes SHIM_KERNEL_GROUP="$1" \
        SHIM_KERNELS="$scratch/kernels" SHIM_COUNTS="$scratch/counts" SHIM_STEP=$(((28 * 28 * $3 + 255) / 256 * 256 + 4 * $3))
    losses "$scratch/gpu" "$2" --batch="$3" -d opencl:0
    unset LD_PRELOAD SHIM_STRICT SHIM_KERNEL_GROUP SHIM_KERNELS SHIM_COUNTS SHIM_STEP
    checks=$((checks + 1))
    paste "$scratch/cpu" "$scratch/gpu" |
        awk '{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > 1e-5) bad = 1 } END { exit bad || NR != 10 }' ||
        { wrong "$2 by groups of $1: the losses are not the processor's:"; paste "$scratch/cpu" "$scratch/gpu"; }
    checks=$((checks + 1))
    grep -qx product "$scratch/kernels" || wrong "$2: this was not the path of a GPU"
    if grep -q '^tile_' "$scratch/kernels"; then wrong "$2: this was the path of a processor"; fi
    budget "$4" "$5"
    # clFinish has no deadline; what waits for another queue's command must find it flushed; that a poll told that one has
    # ended orders nothing; nothing may die.
    holds "$(tail -n 1 "$scratch/counts" | awk '{ for (i = 1; i < NF; i += 2) n[$i] = $(i + 1) }
        END { print n["finishes"] + n["dead"] + n["unflushed"] + n["unordered"] + !n["commands"] }') == 0"
}
strict 64 lenet5 8 40 34
strict 128 lenet5 8 40 34
strict 128 'conv:4,3,s2 relu maxpool:2 dropout:0.2 flatten linear:16 tanh linear:10' 20 30 24
strict 64 mnist-cnn 4 43 37
# Much memory and arithmetic for a processor that runs kernels for GPUs; what differs are the groups.
if [ "${CEKERNELS_TEST_LONG-}" = 1 ]; then strict 128 mnist-cnn 8 43 37; fi

# Activations that are more than the driver gives at once lie in several memories, and the batch stays whole, bit for bit.
# Only where one of them alone is too large (the first layer's: 602,112 bytes of 32 samples) is it cut, which rounds
# otherwise.
limited() { # MEMORY: the weights after two steps on a device of so many bytes
    checks=$((checks + 1))
    LD_PRELOAD="$top_builddir/tests/opencl/.libs/shim.so" SHIM_STRICT=yes SHIM_MEMORY="$1" \
        "$CEKERNELS_BENCH" train lenet5 --batch=32 --steps=2 --seed=3 -d opencl:0 --json >"$scratch/out" 2>"$scratch/err" \
            </dev/null || wrong "a device of $1 bytes: exit $?: $(cat "$scratch/err")"
    weights=$(value weights_sha256)
}
limited 0
whole=$weights
limited 3200000
[ "$weights" = "$whole" ] || wrong "in two memories the weights are $weights, not $whole"
limited 2000000
[ "$weights" != "$whole" ] || wrong "a batch cut in two leaves the same bits: this test says nothing"

# Weights of 141 MB lie in two memories everywhere, and so on a device that gives 110 MB at once: with the same bits, and what
# the processor computes. On the kernels for processors: those for GPUs would take minutes here.
large='flatten linear:45000 relu linear:10'
pieces() { # FILE DEVICE: three losses, and the weights, of plain descent
    checks=$((checks + 1))
    "$CEKERNELS_BENCH" train "$large" --optimizer=sgd --batch=8 --steps=3 --log-every=1 --seed=3 -d "$2" --json >"$scratch/out" \
        2>"$scratch/err" </dev/null || wrong "$large on $2: exit $?: $(cat "$scratch/err")"
    weights=$(value weights_sha256)
    for step in 0 1 2; do value "steps.$step.loss"; done >"$1"
}
pieces "$scratch/cpu" cpu:0
pieces "$scratch/gpu" opencl:0
whole=$weights
export LD_PRELOAD="$top_builddir/tests/opencl/.libs/shim.so" SHIM_MEMORY=440000000
pieces "$scratch/gpu" opencl:0
unset LD_PRELOAD SHIM_MEMORY
[ "$weights" = "$whole" ] || wrong "where 110 MB are given at once the weights are $weights, not $whole"
checks=$((checks + 1))
paste "$scratch/cpu" "$scratch/gpu" |
    awk '{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > 1e-5) bad = 1 } END { exit bad || NR != 3 }' ||
    { wrong "$large: the losses are not the processor's:"; paste "$scratch/cpu" "$scratch/gpu"; }

# A launch that faults takes its context with it: the device is lost, and nobody tries again with less.
checks=$((checks + 1))
LD_PRELOAD="$top_builddir/tests/opencl/.libs/shim.so" SHIM_STRICT=yes SHIM_FAULT=-5,200 SHIM_COUNTS="$scratch/counts" \
    "$CEKERNELS_BENCH" train lenet5 --batch=8 --steps=10 -d opencl:0 >"$scratch/out" 2>"$scratch/err" </dev/null
got=$?
[ $got = 4 ] || wrong "a fault on the device: exit code $got, not 4: $(cat "$scratch/err")"
finish
