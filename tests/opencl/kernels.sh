# kernels.sh - every kernel compiles in both dialects, where a compiler is there that can tell: clang for OpenCL C 1.2, as GPUs get
# it and as processors do, nvcc for CUDA. What the build has had nvcc compile already it is not given again.
. "$top_srcdir/tests/cli/lib.sh"
builds=${NVCC-}
NVCC=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
CLANG=${CLANG-$(command -v clang)}
cd "$top_srcdir/kernels/gpu" || exit 99
compiled=0
: >"$scratch/built"
[ -z "$builds" ] || for source in *.cl; do
    (cd "$top_srcdir" && sh kernels/images.sh variants "$source") >"$scratch/variants"
    while read -r variant; do
        # shellcheck disable=SC2086 # a word per definition
        printf '%s\n' "$source" $variant | sort | tr '\n' ' '
        echo
    done <"$scratch/variants"
done >"$scratch/built"

opencl() { # DEFINE... FILE
    "$CLANG" -x cl -cl-std=CL1.2 -target spir64 -fsyntax-only -Xclang -finclude-default-header -Wall -Werror -Wno-unused-function \
        -I "$top_srcdir" -include dialect.h -include args.h "$@" 2>"$scratch/log" || wrong "OpenCL C: $*: $(head -5 "$scratch/log")"
}
cuda() { # DEFINE... FILE
    printf '%s\n' "$@" | sed 's/^-D//' | sort | tr '\n' ' ' >"$scratch/words"
    grep -qxF -f "$scratch/words" "$scratch/built" && return
    "$NVCC" -x cu -arch=compute_80 -Werror all-warnings -ptx -o "$scratch/ptx" -include dialect.h -include args.h "$@" >"$scratch/log" 2>&1 ||
        wrong "CUDA: $*: $(head -5 "$scratch/log")"
}
both() { # DEFINE... FILE
    checks=$((checks + 1))
    if [ -n "$CLANG" ]; then opencl "$@"; opencl -DCEK_CPU=1 "$@"; compiled=1; fi
    if [ -x "$NVCC" ]; then cuda "$@"; compiled=1; fi
}
wide() { # BLOCK DEFINE... FILE
    block=$1
    shift
    checks=$((checks + 1))
    if [ -n "$CLANG" ]; then opencl -DWIDE="$block" "$@"; opencl -DCEK_CPU=1 -DWIDE=16 "$@"; compiled=1; fi
    if [ -x "$NVCC" ]; then cuda -DWIDE="$block" "$@"; compiled=1; fi
}
for type in f32 f16 bf16; do
    for channels in 4 1; do
        for more in '' -DAVERAGE=1; do
            both -DTYPE=$type -DSPATIAL=2 -DCHANNELS=$channels $more pool.cl
            both -DTYPE=$type -DSPATIAL=2 -DCHANNELS=$channels -DMANY=1 $more pool.cl
            both -DTYPE=$type -DSPATIAL=3 -DCHANNELS=$channels $more pool.cl
        done
    done
    both -DTYPE=$type rows.cl
    both -DTYPE=$type gather.cl
    both -DTYPE=$type random.cl
    for function in 1 3 4 5 6; do
        both -DTYPE=$type -DFUNCTION=$function reduce.cl
        both -DTYPE=$type -DFUNCTION=$function -DTERMS=1 reduce.cl
    done
    for function in 1 2; do both -DTYPE=$type -DARG=$function reduce.cl; done
    wide 4 -DX_TYPE=u8 -DY_TYPE=$type copy.cl
done
wide 8 -DX_TYPE=u8 -DY_TYPE=f16 -DFLAT=1 copy.cl
wide 8 -DCOPY_AS=cek_u16 -DFLAT=1 copy.cl
wide 16 -DCOPY_AS=cek_u8 copy.cl
wide 4 -DX_TYPE=f32 -DY_TYPE=i32 -DFLAT=1 copy.cl
both -DGATHER_AS=cek_u16 -DNOTHING=0x7e00u gather.cl
both -DTYPE=f32 optimizer.cl
both -DTYPE=f32 -DLOW_TYPE=bf16 optimizer.cl
echo '#define CHAIN value = pw_max(IN(0), grad_gelu(IN(1), IN(2)));' >"$scratch/chain.h"
echo '#define INPUTS(X) X(0) X(1) X(2)' >>"$scratch/chain.h"
for layout in -DSTRIDED=1 -DFLAT=1; do
    wide 4 -include "$scratch/chain.h" -DTYPE_0=f32 -DTYPE_1=u8 -DTYPE_2=i32 -DOUT_TYPE=f16 -DACCUMULATE=1 $layout pointwise.cl
    wide 8 -include "$scratch/chain.h" -DTYPE_0=f16 -DTYPE_1=u8 -DTYPE_2=bf16 -DOUT_TYPE=f16 $layout pointwise.cl
done
both -DINTERPRET=1 pointwise.cl
both -DMODE=0 -DOUTER=1 -DA_TYPE=f32 -DB_TYPE=f32 -DC_TYPE=f32 product.cl
both -DMODE=0 -DOUTER=1 -DA_TYPE=f32 -DB_TYPE=f32 -DC_TYPE=f32 -DWHOLE=1 product.cl
for mode in 0 1 2 3; do
    both -DMODE=$mode -DA_TYPE=f32 -DB_TYPE=bf16 -DC_TYPE=f32 product.cl
    both -DMODE=$mode -DA_TYPE=f16 -DB_TYPE=f16 -DC_TYPE=f16 -DSIDE_X=2 -DSIDE_Y=2 product.cl
    both -DMODE=$mode -DA_TYPE=f32 -DB_TYPE=f32 -DC_TYPE=f32 -DSIDE_X=4 -DSIDE_Y=16 product.cl
    both -DMODE=$mode -DA_TYPE=f32 -DB_TYPE=f32 -DC_TYPE=f16 -DWHOLE=1 product.cl
done
if [ -n "$CLANG" ]; then
    for size in '-DVW=16 -DMR=14' '-DVW=8 -DMR=6' '-DVW=4 -DMR=6'; do
        checks=$((checks + 1))
        opencl $size ../opencl/tile.cl
        opencl $size ../opencl/winograd.cl
    done
fi
cd "$top_builddir" || exit 99
[ $compiled = 1 ] || { echo "skipped: neither clang nor nvcc"; exit 77; }
finish
