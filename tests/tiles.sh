# tiles.sh - read by the tests of devices that run kernels/gpu: every shape of a tile, on products large enough for it and on
# none that it divides.
# tile ROWSxCOLUMNS OPERATION PROBLEM. Of convolutions the rule's: a DETERMINISTIC one is never tried.
tile() {
    run 0 op "$2" "$3" -d "$device" -w 0 -r 1 --json
    holds "$(value results.0.wrong) == 0"
    grep -q "tiles of $1 in local memory" "$scratch/out" || wrong "$2 $3 is not done in tiles of $1"
}
# pools DEVICE VARIABLE - every way to pool, which the variable names by its number, is right on every case that there is of them;
# what is large goes another way than what is small.
pools() {
    for way in 1 2 3 4; do
        export "$2=$way"
        run 0 check -t f32 -d "$1" pool_forward pool_backward --json
        [ "$(value passed)" = true ] || wrong "pools by way $way"
        holds "$(value required_passed) >= 60"
    done
    unset "$2"
    device=$1
    pool '4 channels of 1 result a' pool_forward mb2c8ih32kh2sh2:max:res:det
    pool '4 channels of 4 results a' pool_forward mb4c128ih96kh3sh2ph1:max:res:det
    pool '4 channels of 4 results a' pool_backward mb4c128ih92kh3sh2ph1:max:det
    pool '1 channel of 4 results a' pool_backward mb4c31ih96kh2sh2:avg:det
    pool '1 channel of 1 result a' pool_forward mb4c31ih16kh2sh2:avg:det
}
pool() { # WORDS OPERATION PROBLEM
    run 0 op "$2" "$3" -d "$device" -w 0 -r 1 --json
    holds "$(value results.0.wrong) == 0"
    grep -q "$1 work-item" "$scratch/out" || wrong "$2 $3 is not done by $1 work-item: $(value results.0.algorithm)"
}
tiles() { # DEVICE
    device=$1
    tile 128x128 gemm 2047x2050x9
    tile 128x128 gemm 2050x2047x17:ta:tb
    tile 64x64 gemm 60x61x300
    tile 128x32 gemm 300x10x70:tb
    tile 32x128 gemm 10x300x70:ta
    tile 128x128 conv_forward mb8ic3ih64oc128oh64kh3ph1:det
    tile 64x64 conv_forward mb1ic5ih8oc60oh8kh3ph1:det
    tile 128x32 conv_forward mb2ic9ih16oc30oh16kh3ph1:det
    tile 128x128 conv_backward_data mb8ic128ih64oc3oh32kh3sh2ph1:det
    tile 128x32 conv_backward_data mb2ic30ih16oc9oh16kh3ph1:det
    tile 64x64 conv_backward_weights mb2ic16ih8oc60oh8kh3ph1:det
    tile 32x128 conv_backward_weights mb2ic13ih8oc20oh8kh3ph1:det
    tile 128x128 conv_backward_weights mb1ic512ih4oc1024oh4kh3ph1:det
}
