# stack.sh - training, prediction and conformance in a stack of 64 KiB: the program's own frames are small, and the
# threads of the libraries have the stack that they need, whatever the process is given.
. "$top_srcdir/tests/cli/lib.sh"
[ "$SANITIZERS" = no ] || { echo "sanitizers make frames larger"; exit 77; }
ulimit -S -s 64 || { echo "ulimit -s is not possible here"; exit 77; }

CEKERNELS_CPU_DEVICES=2 CEKERNELS_CPU_THREADS=2
export CEKERNELS_CPU_DEVICES CEKERNELS_CPU_THREADS
run 0 train lenet5 --steps 2 --save="$scratch/w"
run 0 train lenet5 --steps 2 -d cpu,reference:0 --shares=equal
run 0 predict lenet5 --load="$scratch/w" -d cpu
run 0 check -d cpu:0
finish
