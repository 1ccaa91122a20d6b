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
group cpu optimizer 57

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

# Groups of cases that are no operation.
for name in device memory queue null; do
    run 0 check --json -d reference $name
    [ "$(value results.0.group)" = $name ] || wrong "$name is not what was run"
    holds "$(value results.0.required) >= 3 && $(value results.0.required_passed) == $(value required)"
done

# A table that the loader refuses is refused here, in the same words, before anything of the plugin is called.
odd() {
    cp "$top_builddir/tests/plugins/.libs/fake.so" "$scratch/a-$1.so" || exit 99
    refused 8 "a-$1.so: $2" check --plugin="$scratch/a-$1.so"
}
odd null 'it does not serve hosts'
odd major 'it speaks ABI 2.0'
odd short 'its table has an impossible size, 8 bytes'
odd odd 'its table has an impossible size'
odd cut 'the slot event_create is empty'
odd nocount 'the slot device_count is empty'
odd noclose 'the slot device_close is empty'
odd noops 'the slot op_create is empty'
odd half 'it has the slot host_free, but not host_alloc'
odd noname 'its name is NULL'
odd badname 'its name is not of the form'
odd profile 'its profile is 9'
odd noinstance 'create succeeds without an instance'
odd counts 'it reports 4294967295 devices'

# Devices by name: two of them, each checked.
CEKERNELS_CPU_DEVICES=2
export CEKERNELS_CPU_DEVICES
run 0 check -d cpu softmax --match=3x10 --json
[ "$(grep -c '"device": "cpu:[01]"' "$scratch/out")" -ge 2 ] || wrong "not both devices were checked"
unset CEKERNELS_CPU_DEVICES

# A case that there was no memory for has no verdict: the others do, and the exit code is that of memory.
CEKERNELS_SIM_FAULTS=out_of_memory@mem_alloc#9 run 6 check -d sim:0 softmax --match=f32 --json
grep -q 'sim:0: there was no memory for 1 of the cases; softmax f32 .*mem_alloc answered OUT_OF_MEMORY: ' "$scratch/err" ||
    wrong "not explained: $(cat "$scratch/err")"
holds "$(value required) >= 10 && $(value required_passed) == $(value required)"
[ "$(value passed)" = false ] && [ "$(value failures)" = 0 ] || wrong "what had no memory failed, or passed"

# A device that is lost in the middle of a run: said, and exit code 4. What it might still use is not freed.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export ASAN_OPTIONS
CEKERNELS_SIM_FAULTS=device_lost@any#300
export CEKERNELS_SIM_FAULTS
run 4 check -d sim gemm
# A file that dlopen() would die of, or wait for: refused before.
head -c 20000 "$TEST_PLUGIN_DIR/cpu.so" >"$scratch/cut.so"
refused 8 "cut.so: cut off" check --plugin="$scratch/cut.so"
mkfifo "$scratch/fifo.so"
refused 8 "fifo.so is not a regular file" check --plugin="$scratch/fifo.so"
finish
