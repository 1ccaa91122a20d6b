# cudnn_plans.sh - the lowering to the real cuDNN (cudnn_plans.c): what is there ready-made, and, with a driver that
# loads anything, what cuDNN compiles.
. "$top_srcdir/tests/cli/lib.sh"
[ -x "$top_builddir/tests/cuda/cudnn_plans" ] || { echo "skipped: built without libcheck"; exit 77; }
cases() {
    CK_RUN_CASE=$1 "$top_builddir/tests/cuda/cudnn_plans" >"$scratch/out" 2>"$scratch/err" </dev/null
    got=$?
    cat "$scratch/out"
    [ "$got" -ne 77 ] || exit 77
    checks=$((checks + 1))
    [ "$got" -eq 0 ] && grep -q '^100%: Checks: [1-9]' "$scratch/out" || wrong "$1: $(tail -5 "$scratch/err")"
}
cases plans
mkdir "$scratch/driver" && ln -s "$top_builddir/tests/cuda/.libs/fake_loader.so" "$scratch/driver/libcuda.so.1" || exit 99
LD_LIBRARY_PATH=$scratch/driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
cases compiled
finish
