# check.sh - `check` over the command line: counts, filters, failures. The full counts are asserted by tests/unit/spec.
. "$top_srcdir/tests/cli/lib.sh"

# plugin GROUP REQUIRED: all required cases of the group pass, and there are at least as many as when this was written.
group() {
    run 0 check --json --plugin="$TEST_PLUGIN_DIR/$1.so" "$2"
    holds "$(value required) >= $3 && $(value required_passed) == $(value required)"
    [ "$(value passed)" = true ] || wrong "$1 $2 did not pass"
    [ "$(value results.0.group)" = "$2" ] || wrong "$2 is not what was run"
}
group reference gemm 97
group cpu gemm 97
group cpu conv_forward 72
group cpu conv_backward_data 71
group cpu conv_backward_weights 77
group cpu optimizer 42

run 0 check softmax -d reference
tail -1 "$scratch/out" | grep -Eq '^required [1-9][0-9]*/[1-9][0-9]*, optional' ||
    wrong "no counts at the end: $(tail -1 "$scratch/out")"
run 0 check --match='3x10:log' -d cpu softmax --json
holds "$(value required) == 3"
run 0 check -t f64 -d reference reduce --json
holds "$(value required) == 0 && $(value optional_passed) >= 100"
run 0 check gemm copy --json
holds "$(value results) > 2"
holds "$(value gradients) >= 25 && $(value gradients) == $(value gradients_passed)"

# Devices by name: two of them, each checked.
CEKERNELS_CPU_DEVICES=2
export CEKERNELS_CPU_DEVICES
run 0 check -d cpu softmax --match=3x10 --json
[ "$(grep -c '"device": "cpu:[01]"' "$scratch/out")" -ge 2 ] || wrong "not both devices were checked"
unset CEKERNELS_CPU_DEVICES

# A device that is lost in the middle of a run: said, and exit code 4. What it might still use is not freed.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export ASAN_OPTIONS
CEKERNELS_SIM_FAULTS=device_lost@any#300
export CEKERNELS_SIM_FAULTS
run 4 check -d sim gemm
finish
