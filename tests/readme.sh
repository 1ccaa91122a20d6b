# readme.sh - README.md's row of processors names every instruction set that has kernels, and calls none unproven that
# this machine runs.
set -u
failures=0
wrong() { echo "$*"; failures=$((failures + 1)); }

row=$(grep '^| processors:' "$top_srcdir/README.md") || { echo "README.md has no row of processors"; exit 1; }
case $row in
    *'Kernels that no machine has run: '*) unproven=${row##*Kernels that no machine has run: } ;;
    *) unproven= ;;
esac
sets=$(sed -n 's/^ *CEK_ISA(\[\([a-z0-9]*\)\].*/\1/p' "$top_srcdir/m4/cek.m4")
[ -n "$sets" ] || wrong "m4/cek.m4 has no instruction sets"
for isa in $sets; do
    case $isa in
        avx512bf16) word=VDPBF16PS ;;
        avx512) word=AVX-512 ;;
        *) word=$(printf %s "$isa" | tr a-z A-Z) ;;
    esac
    case $row in *$word*) ;; *) wrong "README.md does not say where the kernels of $isa have run: no $word" ;; esac
    # Whoever builds a release cannot mend its text.
    [ -e "$top_srcdir/.git" ] || continue
    case $unproven in *$word*) ;; *) continue ;; esac
    CEKERNELS_CPU_ISA=$isa "$CEKERNELS_BENCH" gemm -s 8x8x8 -r 1 -d cpu >/dev/null 2>&1 &&
        wrong "README.md says that no machine has run the kernels of $word, and this one does"
done
[ "$failures" = 0 ] && echo "README.md knows" $sets
exit $((failures > 0))
