# lib.sh - read by the tests of the cuda plugin: a folder with the fake driver and the fake
# compiler, and none of the machine's own.
. "$top_srcdir/tests/cli/lib.sh"
[ "$SANITIZERS" = no ] || { echo "skipped: the sanitizers do not know the fake driver's fibers"; exit 77; }
fake=$top_builddir/tests/cuda/.libs
mkdir "$scratch/driver" "$scratch/both" || exit 99
for folder in driver both; do ln -s "$fake/fake_cuda.so" "$scratch/$folder/libcuda.so.1" || exit 99; done
ln -s "$fake/fake_nvrtc.so" "$scratch/both/libnvrtc.so.13" || exit 99
ln -s "$fake/fake_builtins.so" "$scratch/both/libnvrtc-builtins.so.13.0" || exit 99
FAKE_CUDA_CXX=${FAKE_CUDA_CXX-$(command -v c++ || command -v g++ || command -v clang++)}
[ -n "$FAKE_CUDA_CXX" ] || { echo "skipped: no C++ compiler, which stands for the device's"; exit 77; }
FAKE_CUDA_STRICT=1
FAKE_CUDA_SOURCES=$top_srcdir
CEKERNELS_PLUGINS==cuda,cpu
CEKERNELS_CUDA_CACHE=$scratch/cache
export FAKE_CUDA_CXX FAKE_CUDA_STRICT FAKE_CUDA_SOURCES CEKERNELS_PLUGINS CEKERNELS_CUDA_CACHE CEKERNELS_CUDA_PATH
unset CEKERNELS_CUDA_NVRTC CEKERNELS_CUDA_IMAGES

# with_compiler - driver and NVRTC, no machine code; with_images - the driver alone, and what nvcc made.
with_compiler() {
    CEKERNELS_CUDA_PATH=$scratch/both
    unset FAKE_CUDA_KERNELS CEKERNELS_CUDA_NVRTC
}
with_images() {
    CEKERNELS_CUDA_PATH=$scratch/driver
    CEKERNELS_CUDA_NVRTC=off  # the machine may have a real one
    FAKE_CUDA_KERNELS=$top_builddir/kernels/cuda
    export CEKERNELS_CUDA_NVRTC FAKE_CUDA_KERNELS
}
