# nvrtc.sh - NVIDIA's own compiler library, which needs no device, takes every variant of every
# kernel, and a chain of instructions: what it refuses is seen here, not on the first machine that
# has no machine code.
. "$top_srcdir/tests/cli/lib.sh"
library=
for file in "$(dirname "$(dirname "${NVCC:-/none/bin/nvcc}")")"/lib*/libnvrtc.so.1[2-9] /usr/local/cuda/lib64/libnvrtc.so.1[2-9]; do
    [ -z "$library" ] && [ -f "$file" ] && library=$file
done
[ -n "$library" ] || { echo "skipped: no NVRTC"; exit 77; }
for source in "$top_srcdir"/kernels/gpu/*.cl; do
    source=${source##*/}
    (cd "$top_srcdir" && sh kernels/images.sh variants "$source") >"$scratch/all" || echo "$source" >>"$scratch/lacking"
    sed "s/^/$source /" "$scratch/all"
done >"$scratch/variants"
[ ! -f "$scratch/lacking" ] || wrong "no variants of $(cat "$scratch/lacking")"
# What a chain of two inputs is compiled as when one is met; nvrtc.c has the chain.
echo 'pointwise.cl TYPE_0=bf16 TYPE_1=f32 OUT_TYPE=f16 VALID=1 FLAT=1 WIDE=4 ACCUMULATE=1' >>"$scratch/variants"
echo 'pointwise.cl TYPE_0=u8 TYPE_1=i32 OUT_TYPE=f32 VALID=1 WIDE=4' >>"$scratch/variants"
# Operands of two types are never in machine code.
for mode in 0 1 2 3; do
    echo "product.cl MODE=$mode A_TYPE=f32 B_TYPE=bf16 C_TYPE=f32 SIDE_X=16 SIDE_Y=16"
    echo "product.cl MODE=$mode A_TYPE=f32 B_TYPE=f32 C_TYPE=f16 WHOLE=1"
done >>"$scratch/variants"
if [ -n "$NVCC" ]; then arch=compute_90; else arch=sm_90; fi
"$top_builddir/tests/cuda/nvrtc" "$library" $arch <"$scratch/variants" >"$scratch/out" || wrong "$(tail -20 "$scratch/out")"
tail -1 "$scratch/out"
checks=$((checks + $(grep -c . "$scratch/variants")))
grep -q "^$(grep -c . "$scratch/variants") of " "$scratch/out" || wrong "not all were compiled"
for arch in 75 90 120; do  # machine code of one of each kind, for the oldest and the newest, too
    sed -n '/^pointwise/p; /^random.cl TYPE=f16/p; /^product.cl MODE=1 A_TYPE=f16/p' "$scratch/variants" |
        "$top_builddir/tests/cuda/nvrtc" "$library" sm_$arch >"$scratch/out" || wrong "sm_$arch: $(tail -20 "$scratch/out")"
done
# Windows of a pool that overlap: a compiler that takes these loops for one round is wrong, and was.
grep '^pool.cl TYPE=f32' "$scratch/variants" >"$scratch/pools"
[ "$(grep -c . "$scratch/pools")" -ge 12 ] || wrong "variants of pools: $(cat "$scratch/pools")"
while read -r variant; do
    checks=$((checks + 1))
    echo "$variant" | "$top_builddir/tests/cuda/nvrtc" "$library" compute_90 loops >"$scratch/out"
    loops=$(sed -n 's/^pool_backward //p' "$scratch/out") spatial=${variant#*SPATIAL=}
    [ "${loops:-0}" -ge "${spatial%% *}" ] || wrong "$variant: pool_backward has ${loops:-no} loops"
done <"$scratch/pools"
if echo 'rows.cl TYPE=none' | "$top_builddir/tests/cuda/nvrtc" "$library" compute_90 >"$scratch/out"; then wrong "an error is not noticed"; fi
finish
