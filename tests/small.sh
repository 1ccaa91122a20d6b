# small.sh - a name in a list of what is compiled for size that is no source ends make, which says it.
set -u

for list in core_small nn_small backends_small kernels_cpu_small; do
    said=$("${MAKE:-make}" -C "$top_builddir" -n "$list=gone/nowhere" all-am 2>&1)
    [ $? -ne 0 ] || { echo "$list: make took a name that is no source"; exit 1; }
    case $said in
        *nowhere.c\ is\ to\ be\ compiled\ for\ size*) ;;
        *) echo "$list: make failed otherwise: $said"; exit 1 ;;
    esac
done
