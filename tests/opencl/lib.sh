# lib.sh - read by the tests of the opencl plugin: skips where there is no device, and keeps
# compiled kernels out of the home.
. "$top_srcdir/tests/cli/lib.sh"
[ "$HAVE_OPENCL" = yes ] || { echo "skipped: built without OpenCL"; exit 77; }
CEKERNELS_PLUGINS==opencl,cpu
XDG_CACHE_HOME=$scratch
POCL_CACHE_DIR=$scratch/pocl
export CEKERNELS_PLUGINS XDG_CACHE_HOME POCL_CACHE_DIR
"$CEKERNELS_BENCH" devices --json >"$scratch/devices" 2>/dev/null
grep -q '"opencl:0"' "$scratch/devices" || { echo "skipped: no OpenCL device"; exit 77; }
