# isa.sh - instruction set flags stay with the kernels of their set, and a user's CFLAGS do not undo them.
set -u
[ "$SANITIZERS" = no ] || { echo "sanitized objects look different"; exit 77; }
case $ISA_NAMES in *avx2*) ;; *) echo "no AVX2 kernels are built here"; exit 77 ;; esac
command -v objdump >/dev/null || { echo "no objdump"; exit 99; }
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failures=0
wrong() { echo "$*"; failures=$((failures + 1)); }

# uses PATTERN OBJECT... - some instruction of the objects matches.
uses() {
    pattern=$1
    shift
    objdump -d --no-show-raw-insn "$@" | grep -Eq "$pattern"
}

cd "$top_builddir" || exit 99
kernels=kernels/cpu/.libs
uses 'vfmadd.*%ymm' $kernels/libavx2_la-*.o || wrong "no fused multiply-add on ymm registers in the AVX2 kernels"
uses '%zmm' $kernels/libavx2_la-*.o && wrong "zmm registers in the AVX2 kernels"
case $ISA_NAMES in
    *avx512*) uses 'vfmadd.*%zmm' $kernels/libavx512_la-*.o ||
        wrong "no fused multiply-add on zmm registers in the AVX-512 kernels" ;;
esac
case $ISA_NAMES in
    *avx512bf16*) uses 'vdpbf16ps.*%zmm' $kernels/libavx512bf16_la-gemm_bf16.o ||
        wrong "no products of bf16 in the kernels for them"
        uses 'vdpbf16ps' $kernels/libavx512_la-*.o && wrong "products of bf16 in the AVX-512 kernels" ;;
esac
case $ISA_NAMES in
    *amx*)
        for word in ldtilecfg tilerelease tilezero tileloadd tilestored tdpbf16ps; do
            uses $word $kernels/libamx_la-gemm_amx.o || wrong "no $word in the kernels for AMX"
            uses $word $kernels/libavx512*_la-*.o $kernels/libamxmodel_la-*.o && wrong "$word in kernels for processors without"
        done ;;
esac
# What the user asks for by -march goes everywhere; without it, everything but those kernels runs on every processor.
case " $CFLAGS " in
    *' -m'*) ;;
    *)  uses '%[yz]mm' $kernels/libportable_la-*.o $kernels/libamxmodel_la-*.o && wrong "ymm or zmm registers in the portable kernels"
        find core nn backends plugins -name '*.o' | xargs objdump -d --no-show-raw-insn |
            grep -E '%[yz]mm' >"$work/wide" &&
            wrong "ymm or zmm registers outside the kernels: $(head -n 1 "$work/wide")" ;;
esac

# One AVX2 kernel again, under a user's flags that would undo both its instruction set and its rounding.
object=kernels/cpu/libavx2_la-gemm_f32.lo
cd "$work" || exit 99
if "$top_srcdir/configure" -q CFLAGS="-O2 -march=x86-64 -ffp-contract=off" >out 2>&1 &&
    make -s V=1 $object >out 2>&1; then
    uses 'vfmadd.*%ymm' kernels/cpu/.libs/libavx2_la-gemm_f32.o ||
        wrong "-march=x86-64 takes AVX2 from the AVX2 kernels"
    grep -q -- '-ffp-contract=off.*-ffp-contract=fast' out || wrong "-ffp-contract of a user stands"
else
    tail -n 20 out
    wrong "no build with a user's -march"
fi
[ "$failures" = 0 ] && echo "each instruction set where it belongs: $ISA_NAMES"
exit $((failures > 0))
