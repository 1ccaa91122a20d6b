# size.sh - what an application ships: libcekernels, libcekernels-nn and the CPU plugin with the kernels of every
# instruction set, stripped, stay within a bound. It holds where the figure was measured: gcc 12, x86-64, default flags.
set -u
most=1500000 # bytes of the three; they were 1,829,376 before anybody looked

[ "$SANITIZERS" = no ] || { echo "sanitized objects are larger"; exit 77; }
[ "$CFLAGS" = "-g -O2" ] || { echo "built with CFLAGS=$CFLAGS"; exit 77; }
[ "$ISA_NAMES" = "portable avx2 avx512 avx512bf16 amx" ] || { echo "built for other kernels: $ISA_NAMES"; exit 77; }
command -v strip >/dev/null || { echo "no strip"; exit 99; }
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

all=0
for library in core/.libs/libcekernels.so nn/.libs/libcekernels-nn.so plugins/.libs/cpu.so; do
    strip -o "$work/stripped" "$top_builddir/$library" || exit 99
    bytes=$(wc -c <"$work/stripped")
    echo "$library: $bytes"
    all=$((all + bytes))
done
echo "together: $all, at most $most"
case $("$CC" -dumpfullversion 2>/dev/null) in
    12.*) ;;
    *) echo "not gcc 12: no bound"; exit 77 ;;
esac
[ "$all" -le "$most" ]
