# Scripts for people and for the project's own checks; none is installed.
EXTRA_DIST += \
    .clang-format \
    .ci/run \
    quickstart \
    %D%/check-aarch64 \
    %D%/check-avx512 \
    %D%/check-format \
    %D%/check-gpu \
    %D%/check-gpu-peer.py \
    %D%/check-gpu-together.py \
    %D%/check-onnx-nodes \
    %D%/check-random \
    %D%/check-reproducible \
    %D%/check-sanitizers \
    %D%/check-sass \
    %D%/check-tensorboard \
    %D%/compare-devices \
    %D%/compare-numpy \
    %D%/compare-onnx \
    %D%/compare-pytorch \
    %D%/compare-pytorch-gpt \
    %D%/compare-pytorch-layers \
    %D%/compare-pytorch-nets \
    %D%/compare-folders \
    %D%/compare-types \
    %D%/compare_peer.py \
    %D%/compare_relus.py \
    %D%/glyphs-difficulty \
    %D%/leaks-of-others \
    %D%/manual-synopsis \
    %D%/measure-overlap \
    %D%/plots
