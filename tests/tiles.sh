# tiles.sh - read by the tests of devices that run kernels/gpu: every shape of a tile, on products large enough for it and on
# none that it divides.
# tile ROWSxCOLUMNS OPERATION PROBLEM. Of convolutions the rule's: a DETERMINISTIC one is never tried.
tile() {
    run 0 op "$2" "$3" -d "$device" -w 0 -r 1 --json
    holds "$(value results.0.wrong) == 0"
    grep -q "tiles of $1 in local memory" "$scratch/out" || wrong "$2 $3 is not done in tiles of $1"
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
