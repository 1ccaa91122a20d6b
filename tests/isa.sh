# isa.sh - instruction set flags stay with the kernels of their set, and a user's CFLAGS do not undo them. It reads
# objects and runs none: of a cross build too, with its own objdump.
set -u
[ "$SANITIZERS" = no ] || { echo "sanitized objects look different"; exit 77; }
case $ISA_NAMES in portable) echo "no kernels but the portable ones are built here"; exit 77 ;; esac
command -v "$OBJDUMP" >/dev/null || { echo "no objdump"; exit 99; }
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failures=0
wrong() { echo "$*"; failures=$((failures + 1)); }

# uses PATTERN OBJECT... - some instruction of the objects matches.
uses() {
    pattern=$1
    shift
    "$OBJDUMP" -d --no-show-raw-insn "$@" | grep -Eq "$pattern"
}

# fuses ISA FUSED APART - kernels that only multiply and add do it by one instruction, and never by two.
fuses() {
    for kernel in gemm_f32 dots_f32 depthwise_f32; do
        uses "$2" $kernels/lib$1_la-$kernel.o || wrong "$kernel for $1 does not fuse what it multiplies and adds"
        uses "$3" $kernels/lib$1_la-$kernel.o && wrong "$kernel for $1 multiplies apart from adding"
    done
}

cd "$top_builddir" || exit 99
kernels=kernels/cpu/.libs
case $ISA_NAMES in
    *neon*) fuses neon 'fml[as].*v[0-9]+\.4s' 'fmul.*v[0-9]+\.4s' ;;
esac
case $ISA_NAMES in
    *avx2*) fuses avx2 'vfmadd.*%ymm' 'mulps'
        uses '%zmm' $kernels/libavx2_la-*.o && wrong "zmm registers in the AVX2 kernels" ;;
esac
case $ISA_NAMES in
    *avx512*) fuses avx512 'vfmadd.*%zmm' 'mulps' ;;
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
        find core nn backends plugins -name '*.o' | xargs "$OBJDUMP" -d --no-show-raw-insn |
            grep -E '%[yz]mm' >"$work/wide" &&
            wrong "ymm or zmm registers outside the kernels: $(head -n 1 "$work/wide")" ;;
esac

# One AVX2 kernel again, under a user's flags that would undo both its instruction set and its rounding.
build_again() {
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
}
case $ISA_NAMES in *avx2*) build_again ;; esac
[ "$failures" = 0 ] && echo "each instruction set where it belongs: $ISA_NAMES"
exit $((failures > 0))
