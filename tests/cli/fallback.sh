# fallback.sh - `train` and `predict` with --fallback: what a device lacks is done by another, and said to be.
. "$top_srcdir/tests/cli/lib.sh"

CEKERNELS_SIM_DEVICES=2
export CEKERNELS_SIM_DEVICES

# A simulator computes through the plugin cpu, so that what it leaves to cpu:0 has the same bits.
lenet='lenet5 --batch=32 --steps=4 --shares=equal'
run 0 train $lenet -d sim:0 --json --save="$scratch/whole.safetensors"
whole=$(value weights_sha256)
run 0 predict lenet5 -d sim:0 --load="$scratch/whole.safetensors" --rows=20 -o csv
cp "$scratch/out" "$scratch/predicted"

# left LACKS SHA256 TEXT ARG... - training without these operations ends with those weights, and says TEXT.
left() {
    CEKERNELS_SIM_LACKS=$1 weights=$2 text=$3
    export CEKERNELS_SIM_LACKS
    shift 3
    run 0 train $lenet --fallback=cpu:0 --json "$@"
    [ "$(value weights_sha256)" = "$weights" ] || wrong "without $CEKERNELS_SIM_LACKS: other weights"
    grep -q "warning: $text" "$scratch/err" || wrong "without $CEKERNELS_SIM_LACKS: $(cat "$scratch/err")"
}
left conv_backward_data "$whole" 'sim:0 leaves 1 operation of training to cpu:0 .* (conv) backward, conv_backward_data$' -d sim:0
left conv_backward_weights "$whole" 'sim:0 leaves 2 operations' -d sim:0
left pool_backward "$whole" 'sim:0 leaves 4 operations' -d sim:0
left cross_entropy "$whole" 'sim:0 leaves 1 operation' -d sim:0
run 0 train $lenet -d sim:0 --fallback=cpu:0 --json -v
grep -q 'info: sim:0: .*, cross_entropy: left to cpu:0$' "$scratch/err" || wrong "-v does not name it"

CEKERNELS_SIM_LACKS=
run 0 train $lenet -d cpu:0,sim:0,sim:1 --json
team=$(value weights_sha256)
left pool_backward,conv_backward_data "$team" 'sim:1 leaves 5 operations' -d cpu:0,sim:0,sim:1
CEKERNELS_SIM_CLOCK=virtual CEKERNELS_SIM_WORK=late
export CEKERNELS_SIM_CLOCK CEKERNELS_SIM_WORK
left cross_entropy,conv_backward_weights "$team" 'sim:1 leaves 3 operations' -d cpu:0,sim:0,sim:1
unset CEKERNELS_SIM_CLOCK CEKERNELS_SIM_WORK

# Both devices' queues are in the record, each command with the layer that it is for.
left pool_backward "$whole" 'sim:0 leaves' -d sim:0 --trace="$scratch/trace.json"
grep -q 'left to it' "$scratch/trace.json" || wrong "the other device has no line in the trace"

CEKERNELS_SIM_LACKS=conv_forward
run 0 predict lenet5 -d sim:0 --fallback=cpu:0 --load="$scratch/whole.safetensors" --rows=20 -o csv
cmp -s "$scratch/out" "$scratch/predicted" || wrong "other predictions without conv_forward"
grep -q 'sim:0 leaves 2 operations of prediction to cpu:0' "$scratch/err" || wrong "predict does not say it"
run 0 train 'flatten linear:10' -d sim:0 --fallback=cpu:0 --steps=1
! grep -q ' leaves ' "$scratch/err" || wrong "what has no convolution leaves something"

refused 3 'node 1 (conv), conv_forward: sim:0: op_create: conv_forward is among sim_lacks' train $lenet -d sim:0
refused 3 'fallback sim:1 works beside the host' train $lenet -d sim:0 --fallback=sim:1
refused 2 '--fallback=sim are 2 devices' train $lenet -d sim:0 --fallback=sim
refused 3 'nodevice' train $lenet -d sim:0 --fallback=nodevice:0
refused 2 'fallback' gemm --fallback=cpu:0
finish
