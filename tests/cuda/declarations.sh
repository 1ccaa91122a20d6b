# declarations.sh - backends/cuda/driver.h, nvml.h, cublaslt.h and cudnn.h say what NVIDIA's headers say.
. "$top_srcdir/tests/cli/lib.sh"
for folder in $(dirname "$(dirname "${NVCC:-/none/bin/nvcc}")")/include /usr/local/cuda/include /usr/include; do
    [ -f "$folder/cudaTypedefs.h" ] && break
done
[ -f "$folder/cudaTypedefs.h" ] || { echo "skipped: no cudaTypedefs.h"; exit 77; }
compiles() {
    checks=$((checks + 1))
    source=$1
    shift
    $CC -std=gnu11 -fsyntax-only -I"$folder" -I"$top_srcdir" -I"$top_srcdir/include" "$@" "$top_srcdir/tests/cuda/$source" 2>"$scratch/log"
}
sources=declarations.c
[ -f "$folder/nvml.h" ] && sources="$sources nvml_declarations.c" || echo "no nvml.h: NVML is not looked at"
if [ -f "$folder/cublasLt.h" ] && [ -f "$folder/cudnn_graph.h" ]; then
    sources="$sources provider_declarations.c"
else
    echo "no cublasLt.h or no cudnn_graph.h: those of the libraries are not looked at"
fi
for source in $sources; do
    compiles "$source" || wrong "$(grep error "$scratch/log" | head -5)"
    if compiles "$source" -DSPOIL; then wrong "a wrong declaration is not noticed"; fi
done
finish
