# train.sh - fake CUDA devices train as the CPU does, alone, two together, and beside the CPU; the
# machine code as NVRTC's.
. "$top_srcdir/tests/cuda/lib.sh"
losses() { # NAME DEVICES
    run 0 train 'conv:4,3,s2 relu maxpool:2 dropout:0.2 flatten linear:16 tanh linear:10' --steps 10 --log-every 1 --batch 20 -o csv -d "$2"
    awk -F, 'NR > 1 && $2 + 0 > 0 { print $2 }' "$scratch/out" >"$scratch/$1"
    holds "$(wc -l <"$scratch/$1") == 10"
}
same() { # NAME
    checks=$((checks + 1))
    paste "$scratch/alone" "$scratch/$1" | awk '{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > 1e-5) bad = 1 } END { exit bad || NR != 10 }' ||
        wrong "losses of $1 are not those of the CPU alone: $(paste "$scratch/alone" "$scratch/$1")"
}
with_compiler
losses alone cpu:0
losses compiled cuda:0
same compiled
losses two cuda:0,cuda:1
same two
losses mixed cpu:0,cuda:0
same mixed
if [ -n "$NVCC" ]; then
    with_images
    losses embedded cuda:0
    same embedded
fi
finish
