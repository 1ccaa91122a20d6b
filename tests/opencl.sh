# opencl.sh - OpenCL devices compute what plugin.h says, and train together with the CPU as if there were one device.
# Skipped where the plugin was not built or no driver has a device.
[ -f "$TEST_PLUGIN_DIR/opencl.so" ] || { echo "opencl: the plugin was not built"; exit 77; }
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
unset CEKERNELS_PLUGINS # which keeps OpenCL out of the other tests
failures=0
wrong() { echo "opencl: $*" >&2; failures=$((failures + 1)); }

"$CEKERNELS_BENCH" devices -o jsonl >"$work/devices" 2>"$work/err"
grep -q '"opencl:0"' "$work/devices" ||
    { echo "opencl: no device: $(grep opencl.so "$work/err" "$work/devices")"; exit 77; }

# Required cases of kinds whose kernels compile quickly; the whole suite takes minutes of compilation on a cold cache:
# cekernels-bench check -d opencl:0
timeout 120 "$CEKERNELS_BENCH" check -d opencl:0 softmax dropout pool_forward >"$work/check" 2>&1 ||
    wrong "check -d opencl:0 exits $?"
awk '/^required / { split($2, n, "[/,]"); ok = n[1] == n[2] && n[1] >= 150 }
     END { exit !ok }' "$work/check" || { wrong "required cases:"; tail -n 20 "$work/check" >&2; }

losses() {
    timeout 120 "$CEKERNELS_BENCH" train 'conv:4,3,s2 relu maxpool:2 dropout:0.2 flatten linear:16 tanh linear:10' --steps 10 --log-every 1 \
        --batch 20 -o csv -d "$1" ${3-} >"$work/$2" 2>"$work/err" || { wrong "train -d $1:"; cat "$work/err" >&2; }
    awk -F, 'NR > 1 && $2 + 0 > 0 { print $2 }' "$work/$2" >"$work/$2.losses"
    [ "$(wc -l <"$work/$2.losses")" = 10 ] || { wrong "train -d $1 shows no ten losses:"; cat "$work/$2" >&2; }
}
losses cpu:0 alone
losses opencl:0 opencl
losses cpu:0,opencl:0 mixed
for run in opencl mixed; do
    paste "$work/alone.losses" "$work/$run.losses" |
        awk '{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > 1e-5) bad = 1 } END { exit bad || NR != 10 }' ||
        { wrong "losses of $run are not those of cpu:0:"; paste "$work/alone.losses" "$work/$run.losses" >&2; }
done

# 16 bits: rounded alike, of sums that differ in their last bits, so by a unit of what is rounded here and there.
for type in bf16 f16; do
    losses cpu:0 "alone-$type" "--dtype=$type"
    losses opencl:0 "opencl-$type" "--dtype=$type"
    paste "$work/alone-$type.losses" "$work/opencl-$type.losses" |
        awk -v unit="$([ $type = bf16 ] && echo 0.00390625 || echo 0.00048828125)" \
            '{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > unit) bad = 1 } END { exit bad || NR != 10 }' ||
        { wrong "losses in $type are not those of cpu:0:"; paste "$work"/*-$type.losses >&2; }
    cmp -s "$work/alone.losses" "$work/alone-$type.losses" && wrong "losses in $type are those of f32"
done
exit $((failures > 0))
