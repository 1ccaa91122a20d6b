# absent.sh - a machine without CUDA: the plugin is built, links nothing of NVIDIA's, and says in
# one line what is missing.
. "$top_srcdir/tests/cuda/lib.sh"
needed=$(readelf -dW "$TEST_PLUGIN_DIR/cuda.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for library in $needed; do
    case $library in
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | ld-linux*) ;;
    *) wrong "cuda.so needs $library" ;;
    esac
done
holds "$(readelf -dW "$TEST_PLUGIN_DIR/cuda.so" | grep -c NEEDED) >= 1"

# report TEXT - the one line of the load report has it, and the CPU works.
report() {
    run 0 devices -v
    lines=$(grep 'cuda\.so:' "$scratch/out")
    [ "$(printf '%s\n' "$lines" | wc -l)" = 1 ] || wrong "not one line: $lines"
    case $lines in *"$1"*) ;; *) wrong "no \"$1\" in: $lines" ;; esac
    run 0 check -d cpu:0 softmax --json
}
mkdir "$scratch/nothing"
CEKERNELS_CUDA_PATH=$scratch/nothing
if ldconfig -p 2>/dev/null | grep -q libcuda.so.1; then
    echo "this machine has a driver: its absence is not looked at"
else
    report "libcuda.so.1: cannot open shared object file"
fi
: >"$scratch/nothing/libcuda.so.1"
report "libcuda.so.1: file too short"
with_compiler
FAKE_CUDA_DEVICES=0
export FAKE_CUDA_DEVICES
report "cuInit: CUDA_ERROR_NO_DEVICE (100)"
finish
