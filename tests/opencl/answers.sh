# answers.sh - what a driver says of its device changes what is asked of it: a device that does not round quotients and
# square roots correctly is not asked to, and keeps the bounds of plugin.h; what it does not say is printed as no number.
. "$top_srcdir/tests/opencl/lib.sh"
[ "$SANITIZERS" = no ] || { echo "skipped: a library cannot be preloaded before a sanitizer's"; exit 77; }
CEKERNELS_BENCH_ITSELF=$CEKERNELS_BENCH
bench_shimmed() { LD_PRELOAD="$top_builddir/tests/opencl/.libs/shim.so" "$CEKERNELS_BENCH_ITSELF" "$@"; }
CEKERNELS_BENCH=bench_shimmed

export SHIM_DIVISION=inexact
for what in x1,div x0,sqrt; do
    run 0 check -t f32 -d opencl:0 pointwise --match="$what" --json
    holds "$(value required_passed) == $(value required) && $(value required) >= 2"
done
unset SHIM_DIVISION

# unknown CODE ARG... - it ends so, and "unknown" is nowhere the number that stands for it.
unknown() {
    run "$@"
    ! grep -E '18446744073709551615|17179869184(\.0)? GiB' "$scratch/out" "$scratch/err" ||
        wrong "cekernels-bench $*: it prints what it does not know"
}
export SHIM_DEVICE=gpu SHIM_UNSAID=yes
unknown 0 devices -v
unknown 0 devices --json
grep -q '"max_alloc_bytes": null' "$scratch/out" || wrong "no null for what a buffer may have: $(cat "$scratch/out")"
unknown 0 train "flatten linear:10" --steps=1 --batch=8 -v -d opencl:0
finish
