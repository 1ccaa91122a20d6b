# tuner.sh - products are tried once per class of shapes; what was found out is kept, is not
# believed when it is damaged, and never decides what DETERMINISTIC operations do.
CEKERNELS_OPENCL_PROVIDERS=+clblast
export CEKERNELS_OPENCL_PROVIDERS
. "$top_srcdir/tests/opencl/lib.sh"
grep -q '; CLBlast' "$scratch/devices" || { echo "skipped: no CLBlast"; exit 77; }

# A trial says so in the log, once per candidate.
trials() {
    grep -c 'our own kernels' "$scratch/err" || :
}
product() {
    run 0 -v op gemm "$1" -d opencl:0 -w 1 -r 1 --json
    holds "$(value results.0.wrong) == 0"
}
product 256x256x256
holds "$(trials) == 1"
# Between two looks at the clock there are runs enough that the clock and the launches do not matter.
holds "$(sed -n 's/.*our own kernels \([0-9.]*\) us (of \([0-9]*\) runs).*/\1 * \2/p' "$scratch/err") >= 1999"
for kept in "$scratch"/cekernels/tuned-*; do [ -s "$kept" ] || wrong "nothing was kept"; done
product 300x300x300  # of the same class
holds "$(trials) == 0"
product 600x300x300
holds "$(trials) == 1"
product 64x64x64     # too small to matter
holds "$(trials) == 0"
product 256x256x256  # the first was not forgotten
holds "$(trials) == 0"

printf 'x' | dd of="$kept" bs=1 seek=40 conv=notrunc 2>/dev/null
product 256x256x256
holds "$(trials) == 1"
product 256x256x256
holds "$(trials) == 0"

# A processor's tiles are tried against a library on request alone.
rm -f "$kept"
unset CEKERNELS_OPENCL_PROVIDERS
product 256x256x256
holds "$(trials) == 0"
if [ -e "$kept" ]; then wrong "something was kept of no trial"; fi
finish
