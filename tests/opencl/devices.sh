# devices.sh - the devices are those of clinfo, in its order, with its numbers; sub-devices; one processor is used once.
. "$top_srcdir/tests/opencl/lib.sh"

# The values of a property in clinfo's order, one a line.
listed() {
    clinfo --raw | sed -n "s/^\[[^]*]*\/[0-9]*\] *$1  *//p" | sed 's/ *$//'
}
if command -v clinfo >/dev/null; then
    count=$(listed CL_DEVICE_NAME | wc -l)
    holds "$(grep -c '"device": "opencl:' "$scratch/devices") == $count"
    i=0
    while [ $i -lt "$count" ]; do
        run 0 devices --json
        line=$((i + 1))
        at=0
        while [ "$("$json" devices.$at.device <"$scratch/out")" != "opencl:$i" ]; do at=$((at + 1)); done
        [ "$(value devices.$at.name)" = "$(listed CL_DEVICE_NAME | sed -n ${line}p)" ] || wrong "opencl:$i has another name"
        [ "$(value devices.$at.vendor)" = "$(listed CL_DEVICE_VENDOR | sed -n ${line}p)" ] || wrong "opencl:$i has another vendor"
        holds "$(value devices.$at.compute_units) == $(listed CL_DEVICE_MAX_COMPUTE_UNITS | sed -n ${line}p)"
        holds "$(value devices.$at.total_bytes) == $(listed CL_DEVICE_GLOBAL_MEM_SIZE | sed -n ${line}p)"
        holds "$(value devices.$at.max_alloc_bytes) == $(listed CL_DEVICE_MAX_MEM_ALLOC_SIZE | sed -n ${line}p)"
        i=$line
    done
else
    echo "no clinfo: names and numbers are not compared"
fi

# The CPU plugin wins over OpenCL for a CPU, unless both are named.
if grep -q '"processor": "cpu"' "$scratch/devices"; then
    run 0 train lenet5 --steps=2 --json
    if grep -q '"opencl:' "$scratch/out"; then wrong "the processor was used twice"; fi
    run 0 train lenet5 --steps=2 -d cpu,opencl:0 --json
    grep -q '"opencl:0' "$scratch/out" || wrong "opencl:0 was named, but not used"
fi

# Sub-devices. PoCL says how many units there are to share.
POCL_MAX_PTHREAD_COUNT=3
export POCL_MAX_PTHREAD_COUNT
for parts in 2 3; do
    CEKERNELS_OPENCL_SPLIT=$parts
    export CEKERNELS_OPENCL_SPLIT
    run 0 devices --json
    grep -q "\"opencl:$((parts - 1))\"" "$scratch/out" || wrong "no opencl:$((parts - 1)) with $parts parts"
done
CEKERNELS_OPENCL_SPLIT=60 "$CEKERNELS_BENCH" devices >"$scratch/out" 2>&1
grep -q 'opencl_split=60' "$scratch/out" || wrong "a split that cannot be made is not explained"
CEKERNELS_OPENCL_SPLIT=none "$CEKERNELS_BENCH" devices >"$scratch/out" 2>&1
grep -q 'opencl_split' "$scratch/out" || wrong "a split that is no number is not explained"
finish
