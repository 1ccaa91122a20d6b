# devices.sh - `devices` in every format, and the load report.
. "$top_srcdir/tests/cli/lib.sh"

run 0 devices
grep -q '^cpu:0 ' "$scratch/out" || wrong "no cpu:0 in the table"
grep -q '^reference:0 .* no' "$scratch/out" || wrong "the reference joins by itself"
grep -q 'load report' "$scratch/out" || wrong "no load report"
grep -q '^    memory  *at most' "$scratch/out" || wrong "no details"
grep -Eq '^    now        .*[0-9.]+ of [0-9.]+ GiB in use' "$scratch/out" || wrong "not what sensors say"
# Some containers show no ticks of single cores: the load is unknown then.
ticks=$(grep '^cpu[0-9].* [1-9]' /proc/stat || :)
[ -z "$ticks" ] || grep -Eq '^    now        [0-9]+% busy, ' "$scratch/out" || wrong "how busy it is is not told"
# Of the project's own plugins one that was left out has a line, and no other has.
if [ "$HAVE_OPENCL" = yes ]; then
    ! grep -q ': not built: ' "$scratch/out" || wrong "a plugin that was built is told as left out"
else
    grep -q '^opencl: not built: .*configure' "$scratch/out" || wrong "it is not told why there is no opencl"
fi
run 0 devices -q
if grep -q '^    ' "$scratch/out"; then wrong "details, although quiet"; fi

run 0 devices --json
holds "$(value devices) >= 2 && $(value plugins) >= 2"
[ "$(value devices.0.device)" = cpu:0 ] || wrong "the first device is not cpu:0"
holds "$(value devices.0.compute_units) >= 1 && $(value devices.0.total_bytes) > 1000000"
holds "length(\"$(value devices.0.numeric_id)\") == 16 && $(value devices.0.copy_engines) >= 0"
[ "$(value devices.0.processor)" = cpu ] || wrong "the processor is not the host's own"
[ "$(value plugins.0.stage)" = loaded ] || wrong "the first plugin was not loaded"

# What is known now: each a number in range, or null where it is not told.
holds "$(value devices.0.used_bytes) > 1000000"
[ -z "$ticks" ] || holds "$(value devices.0.utilization) >= 0 && $(value devices.0.utilization) <= 1"
for key in temperature_celsius power_watts clock_hertz; do
    now=$(value devices.0.$key)
    [ "$now" = null ] || holds "$now >= -50"
done

run 0 devices -o jsonl
"$json" -l plugins <"$scratch/out" >/dev/null || wrong "JSON lines are none"
run 0 devices -o csv
head -1 "$scratch/out" | grep -q '^device,kind,name,' || wrong "CSV has no heading"
awk -F'"' '{ n = 0; for (i = 1; i <= NF; i += 2) n += gsub(",", ",", $i); if (n != 7) exit 1 }' "$scratch/out" ||
    wrong "CSV lines differ in their number of columns"
run 0 devices -o md
sed -n 2p "$scratch/out" | grep -q '^|---' || wrong "Markdown has no rule"

CEKERNELS_CPU_DEVICES=3
export CEKERNELS_CPU_DEVICES
run 0 devices --json
holds "$(value devices) >= 4"
unset CEKERNELS_CPU_DEVICES

# No plugin at all: no device, exit code 3, and the report says where was looked.
CEKERNELS_PLUGINS==nothing
export CEKERNELS_PLUGINS
run 3 gemm
unset CEKERNELS_PLUGINS

# One file alone, and files that are no plugins.
run 0 devices --json --plugin="$TEST_PLUGIN_DIR/reference.so"
holds "$(value devices) == 1"
[ "$(value devices.0.device)" = reference:0 ] || wrong "--plugin loads something else"
for key in utilization temperature_celsius power_watts clock_hertz used_bytes throttled; do
    [ "$(value devices.0.$key)" = null ] || wrong "the reference tells $key: $(value devices.0.$key)"
done
echo 'this is no plugin' >"$scratch/text.so"
run 3 devices --plugin="$scratch/text.so"
run 8 check --plugin="$scratch/text.so"
run 5 check --plugin=/nowhere/nothing.so
here=$PWD
cd "$TEST_PLUGIN_DIR" && run 0 devices --plugin=reference.so
cd "$here" || exit 99

# Results that cannot be written are no success.
[ ! -w /dev/full ] || {
    "$CEKERNELS_BENCH" devices >/dev/full 2>"$scratch/err"
    [ $? -eq 5 ] || wrong "a full disk was not noticed"
}
finish
