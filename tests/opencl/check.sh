# check.sh - conformance of OpenCL device 0: the same required cases as the CPU's, all of them
# passed. Then again with what the first run left on disk, after every file of it was damaged.
. "$top_srcdir/tests/opencl/lib.sh"
# All of f32: compiling what the other types need takes a driver minutes the first time.
run 0 check -t f32 -d cpu --json
required=$(value required)
run 0 check -t f32 -d opencl:0 --json
[ "$(value passed)" = true ] || wrong "opencl:0 did not pass"
holds "$(value required) == $required && $(value required_passed) == $required && $required >= 1000"
if [ "${CEKERNELS_TEST_LONG-}" = 1 ]; then
    run 0 check -d opencl:0 --json
    holds "$(value optional_passed) >= 2000"
fi

# Results that are written past the caches: rows that begin at vectors, and at none.
for columns in 4112 4100; do
    run 0 gemm -d opencl:0 -s 2100x${columns}x24 -w 0 -r 1 --json
    holds "$(value results.0.wrong) == 0 && $(value results.0.compared) >= 65536"
done

# Some drivers keep compiled kernels themselves: ours are kept on request.
CEKERNELS_OPENCL_CACHE=$scratch/cache
export CEKERNELS_OPENCL_CACHE
run 0 check -d opencl:0 softmax --json
for file in "$scratch"/cache/opencl-*; do
    [ -s "$file" ] || wrong "no compiled kernel was kept"
    break
done
for file in "$scratch"/cache/opencl-*; do
    printf 'x' | dd of="$file" bs=1 seek=100 conv=notrunc 2>/dev/null
done
run 0 check -d opencl:0 softmax dropout --json
holds "$(value required_passed) == $(value required)"
rm -rf "$scratch/cache"
: >"$scratch/cache"  # not a folder: slow, not wrong
run 0 check -d opencl:0 softmax --json
holds "$(value required_passed) == $(value required)"
finish
