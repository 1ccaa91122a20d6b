# declarations.sh - backends/cuda/driver.h says of every function what NVIDIA's headers say of that version of it.
. "$top_srcdir/tests/cli/lib.sh"
for folder in $(dirname "$(dirname "${NVCC:-/none/bin/nvcc}")")/include /usr/local/cuda/include /usr/include; do
    [ -f "$folder/cudaTypedefs.h" ] && break
done
[ -f "$folder/cudaTypedefs.h" ] || { echo "skipped: no cudaTypedefs.h"; exit 77; }
compiles() {
    checks=$((checks + 1))
    $CC -std=gnu11 -fsyntax-only -I"$folder" -I"$top_srcdir" -I"$top_srcdir/include" "$@" "$top_srcdir/tests/cuda/declarations.c" 2>"$scratch/log"
}
compiles || wrong "$(grep error "$scratch/log" | head -5)"
if compiles -DSPOIL; then wrong "a wrong declaration is not noticed"; fi
finish
