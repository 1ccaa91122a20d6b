# kernels.sh - every kernel compiles in both dialects, where a compiler is there that can tell:
# clang for OpenCL C 1.2, nvcc for CUDA.
. "$top_srcdir/tests/cli/lib.sh"
NVCC=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
CLANG=${CLANG-$(command -v clang)}
cd "$top_srcdir/kernels/gpu" || exit 99
compiled=0

opencl() { # FILE DEFINE...
    "$CLANG" -x cl -cl-std=CL1.2 -target spir64 -fsyntax-only -Xclang -finclude-default-header -Wall -Werror -Wno-unused-function \
        -include dialect.h -include args.h "$@" 2>"$scratch/log" || wrong "OpenCL C: $*: $(head -5 "$scratch/log")"
}
cuda() {
    "$NVCC" -x cu -arch=compute_80 -Werror all-warnings -ptx -o "$scratch/ptx" -include dialect.h -include args.h "$@" >"$scratch/log" 2>&1 ||
        wrong "CUDA: $*: $(head -5 "$scratch/log")"
}
both() {
    checks=$((checks + 1))
    if [ -n "$CLANG" ]; then opencl "$@"; opencl -DCEK_CPU=1 "$@"; compiled=1; fi
    if [ -x "$NVCC" ]; then cuda "$@"; compiled=1; fi
}
for type in f32 f16 bf16; do
    both -DTYPE=$type pool.cl
    both -DTYPE=$type rows.cl
    both -DTYPE=$type random.cl
    both -DTYPE=$type reduce.cl
    both -DX_TYPE=u8 -DY_TYPE=$type copy.cl
done
both -DCOPY_AS=cek_u16 -DFLAT=1 copy.cl
both -DX_TYPE=f32 -DY_TYPE=i32 -DFLAT=1 copy.cl
both -DTYPE=f32 optimizer.cl
both -DTYPE=f32 -DLOW_TYPE=bf16 optimizer.cl
echo '#define CHAIN value = pw_max(IN(0), grad_gelu(IN(1), IN(2)));' >"$scratch/chain.h"
both -include "$scratch/chain.h" -DTYPE_0=f32 -DTYPE_1=u8 -DTYPE_2=i32 -DOUT_TYPE=f16 -DACCUMULATE=1 pointwise.cl
both -DINTERPRET=1 pointwise.cl
for mode in 0 1 2 3; do
    both -DMODE=$mode -DA_TYPE=f32 -DB_TYPE=bf16 -DC_TYPE=f32 product.cl
    both -DMODE=$mode -DA_TYPE=f16 -DB_TYPE=f16 -DC_TYPE=f16 -DSPLIT=1 -DSIDE=4 product.cl
    both -DMODE=$mode -DA_TYPE=f32 -DB_TYPE=f32 -DC_TYPE=f16 -DWHOLE=1 product.cl
done
if [ -n "$CLANG" ]; then
    for size in '-DVW=16 -DMR=14' '-DVW=8 -DMR=6' '-DVW=4 -DMR=6'; do
        checks=$((checks + 1))
        opencl $size ../opencl/tile.cl
    done
fi
cd "$top_builddir" || exit 99
[ $compiled = 1 ] || { echo "skipped: neither clang nor nvcc"; exit 77; }
finish
