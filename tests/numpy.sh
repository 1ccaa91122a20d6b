# numpy.sh - tensors against NumPy's arrays: their text, their files both ways, and shared memory. Skipped without a Python that has
# numpy 2.3 or later ($PYTHON, or python3).
set -u
"${PYTHON:-python3}" -c 'import numpy, sys; sys.exit(tuple(map(int, numpy.__version__.split(".")[:2])) < (2, 3))' 2>/dev/null || {
    echo "no Python with numpy 2.3 (PYTHON=...)"
    exit 77
}
"${PYTHON:-python3}" "$top_srcdir/scripts/compare-numpy" --build "$top_builddir" --arrays 150
