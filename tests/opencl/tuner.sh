# tuner.sh - products, convolutions and pools are tried once per class of shapes; what was found out is kept, is not believed
# when it is damaged, and never decides what DETERMINISTIC operations do.
CEKERNELS_OPENCL_PROVIDERS=+clblast
export CEKERNELS_OPENCL_PROVIDERS
. "$top_srcdir/tests/opencl/lib.sh"

# Convolutions, on what looks like a GPU: the tiles of our own kernels.
tiles() { # PROBLEM TRIALS: how many there are
    LD_PRELOAD="$top_builddir/tests/opencl/.libs/shim.so" SHIM_STRICT=yes SHIM_GROUP=64 \
        run 0 -v op "$kind" "$1" -d opencl:0 -w 0 -r 1 --json
    holds "$(value results.0.wrong) == 0"
    holds "$(grep -c "opencl: $kind, .* by rule" "$scratch/err" || :) == $2"
    taken=$(value results.0.algorithm)
}
if [ "$SANITIZERS" = no ]; then
    for kind in conv_forward conv_backward_data conv_backward_weights; do
        tiles mb2ic32ih24oc64oh22kh3 1
        # What was faster by more than chance is taken, the rule's tile otherwise; both were timed long enough.
        line=$(sed -n "s/.*opencl: $kind, 2 images: //p" "$scratch/err")
        other=${line%% in local memory *}
        rule=${line#*runs), } rule=${rule%% in local memory*}
        us='s/.* memory \([0-9.]*\) us (of \([0-9]*\) runs).* by rule \([0-9.]*\) us (of \([0-9]*\) runs).*'
        holds "$(echo "$line" | sed "$us/\\1 * \\2/") >= 1999 && $(echo "$line" | sed "$us/\\3 * \\4/") >= 1999"
        want=$rule
        if awk "BEGIN { exit !($(echo "$line" | sed "$us/\\1 < 0.95 * \\3/")) }"; then want=$other; fi
        [ "$taken" = "$want in local memory" ] || wrong "$kind: $taken was taken, not $want: $line"
        before=$taken
        tiles mb3ic32ih24oc64oh22kh3 0  # of the same class
        [ "$taken" = "$before" ] || wrong "$kind: three images by $taken, two by $before"
    done
    tiles mb1ic8ih24oc8oh22kh3 0        # too small to matter
    for kept in "$scratch"/cekernels/tuned-*; do
        printf 'x' | dd of="$kept" bs=1 seek=30 conv=notrunc 2>/dev/null
    done
    tiles mb2ic32ih24oc64oh22kh3 1
    tiles mb2ic32ih24oc64oh22kh3 0
    rm -f "$scratch"/cekernels/tuned-*

    # Pools: the fastest of all ways, if it is faster by more than chance, else the rule's.
    for kind in pool_forward pool_backward; do
        tiles mb4c64ih64kh2sh2:max 3
        sed -n "s/.*opencl: $kind, 4 images: \(.*\) a work-item \([0-9.]*\) us (of \([0-9]*\) runs), \(.*\) a work-item by rule \([0-9.]*\) us (of \([0-9]*\) runs).*/\1;\2;\3;\4;\5;\6/p" \
            "$scratch/err" >"$scratch/ways"
        want=$(awk -F';' 'NR == 1 { least = 0.95 * $5; want = $4 } $2 * $3 < 1999 && $2 < 2 * $5 || $5 * $6 < 1999 { want = "short" }
            $2 < least { least = $2; want = $1 } END { print want }' "$scratch/ways")
        [ "$taken" = "$want a work-item" ] || wrong "$kind: $taken was taken, not $want: $(cat "$scratch/ways")"
        before=$taken
        tiles mb5c64ih64kh2sh2:max 0     # of the same class
        [ "$taken" = "$before" ] || wrong "$kind: five images by $taken, four by $before"
        tiles mb4c64ih64kh2sh2:max:det 0
        [ "$taken" = "4 channels of 1 result a work-item" ] || [ "$taken" = "4 channels of 4 results a work-item" ] ||
            wrong "$kind: $taken was taken by rule"
    done
    tiles mb1c64ih32kh2sh2:max 0         # too small to matter
    export CEKERNELS_OPENCL_POOLS=3
    tiles mb8c64ih64kh2sh2:max 0         # the user's
    [ "$taken" = "1 channel of 1 result a work-item" ] || wrong "$taken was taken, not what the user wants"
    unset CEKERNELS_OPENCL_POOLS
    rm -f "$scratch"/cekernels/tuned-*
fi
grep -q '; CLBlast' "$scratch/devices" || { echo "no CLBlast: products have one way"; finish; }

# A trial says so in the log, once per candidate.
trials() {
    grep -c 'our own kernels' "$scratch/err" || :
}
product() {
    run 0 -v op gemm "$1" -d opencl:0 -w 1 -r 1 --json
    holds "$(value results.0.wrong) == 0"
}
product 256x256x256
holds "$(trials) == 1"
# Between two looks at the clock there are runs enough that the clock and the launches do not matter.
holds "$(sed -n 's/.*our own kernels \([0-9.]*\) us (of \([0-9]*\) runs).*/\1 * \2/p' "$scratch/err") >= 1999"
for kept in "$scratch"/cekernels/tuned-*; do [ -s "$kept" ] || wrong "nothing was kept"; done
product 300x300x300  # of the same class
holds "$(trials) == 0"
product 600x300x300
holds "$(trials) == 1"
product 64x64x64     # too small to matter
holds "$(trials) == 0"
product 256x256x256  # the first was not forgotten
holds "$(trials) == 0"

printf 'x' | dd of="$kept" bs=1 seek=40 conv=notrunc 2>/dev/null
product 256x256x256
holds "$(trials) == 1"
product 256x256x256
holds "$(trials) == 0"

# A processor's tiles are tried against a library on request alone.
rm -f "$kept"
unset CEKERNELS_OPENCL_PROVIDERS
product 256x256x256
holds "$(trials) == 0"
if [ -e "$kept" ]; then wrong "something was kept of no trial"; fi
finish
