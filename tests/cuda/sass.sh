# sass.sh - what nvcc makes of the kernels for today's cards: no spills, products whose loops are FFMA before all, nothing
# divided in loops, accesses of 128 bits, loads under way. All architectures where long tests are asked for.
. "$top_srcdir/tests/cli/lib.sh"
[ -n "$NVCC" ] || { echo "skipped: built without nvcc"; exit 77; }
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
export NVCC
look() { # STATUS ARG...
    checks=$((checks + 1))
    want=$1
    shift
    "$top_srcdir/scripts/check-sass" "$@" >"$scratch/out" 2>&1
    got=$?
    [ $got != 77 ] || { cat "$scratch/out"; exit 77; }
    cat "$scratch/out"
    [ $got = "$want" ] || wrong "check-sass $*: exit $got, not $want"
}
if [ "${CEKERNELS_TEST_LONG-}" = 1 ]; then look 0; else look 0 --arch sm_90; fi
look 2 nothing.cl
finish
