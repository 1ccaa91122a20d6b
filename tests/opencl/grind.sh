# grind.sh - oclgrind runs every kernel and finds no access out of bounds, no race and no misused
# call: local-memory tiles in groups small and large as on GPUs, then the register tiles of CPU devices in
# every width, with oclgrind disguised as one. No kernel takes more arguments than what devices are asked for.
#
# Its check of uninitialised values is left out: it forgets what one kernel wrote when the next one reads it.
. "$top_srcdir/tests/cli/lib.sh"
[ "$HAVE_OPENCL" = yes ] || { echo "skipped: built without OpenCL"; exit 77; }
[ "$SANITIZERS" = no ] || { echo "skipped: a library cannot be preloaded before a sanitizer's"; exit 77; }
[ -x "$top_builddir/tests/opencl/every" ] || { echo "skipped: no libcheck"; exit 77; }
icd=$(find /usr/lib /usr/local/lib -name 'liboclgrind-rt-icd.so' 2>/dev/null | head -1)
[ -n "$icd" ] || { echo "skipped: no oclgrind"; exit 77; }
mkdir "$scratch/vendors"
echo "$icd" >"$scratch/vendors/oclgrind.icd"
: >"$scratch/kernels"
unset CEKERNELS_PLUGINS

grind() { # VARIABLE=VALUE...
    checks=$((checks + 1))
    env SHIM_PARAMETERS=624 LD_PRELOAD="$top_builddir/tests/opencl/.libs/shim.so" SHIM_KERNELS="$scratch/kernels" OCL_ICD_VENDORS="$scratch/vendors" \
        OCLGRIND_LOG="$scratch/log" OCLGRIND_CHECK_API=1 OCLGRIND_DATA_RACES=1 "$@" \
        timeout 300 "$top_builddir/tests/opencl/every" >"$scratch/out" 2>&1 ||
            { wrong "$*: exit $?"; cat "$scratch/out"; }
    [ -f "$scratch/log" ] || wrong "$*: oclgrind kept no log"
    if [ -s "$scratch/log" ]; then wrong "$*: oclgrind reports:"; head -20 "$scratch/log"; fi
    rm -f "$scratch/log"
}
grind OCLGRIND_MAX_WGSIZE=16
grind OCLGRIND_MAX_WGSIZE=256 OCLGRIND_LOCAL_MEM_SIZE=16384
for width in 4 8 16; do
    grind SHIM_DEVICE=cpu SHIM_PLATFORM=disguised SHIM_WIDTH=$width
done

sed -n 's/^KERNEL[^ ]*\( [A-Z_, ]*)\)\{0,1\} void \([a-z_0-9]*\)(.*/\2/p' "$top_srcdir"/kernels/gpu/*.cl "$top_srcdir"/kernels/opencl/*.cl "$top_srcdir"/kernels/opencl/*.h | sort -u >"$scratch/written"
sort -u "$scratch/kernels" >"$scratch/run"
holds "$(wc -l <"$scratch/written") >= 45"
checks=$((checks + 1))
diff "$scratch/written" "$scratch/run" >"$scratch/diff" ||
    { wrong "kernels in the sources (<) are not those that ran (>):"; cat "$scratch/diff"; }
finish
