# op.sh - `op`, `copy` and `peak`: every operation by name, results verified; every way that bytes
# can take; what a device can do.
. "$top_srcdir/tests/cli/lib.sh"

operations='gemm conv_forward conv_backward_data conv_backward_weights pool_forward pool_backward pointwise reduce softmax
    cross_entropy squared_error dropout random optimizer copy arg gather scatter_add'
for operation in $operations; do
    run 0 op $operation -d cpu -w 0 -r 2 --json
    [ "$(value results.0.op)" = $operation ] || wrong "$operation is not named"
    holds "$(value results) == 1 && $(value results.0.wrong) == 0 && $(value results.0.compared) > 0"
    holds "$(value results.0.median_ns) > 0 && $(value results.0.bytes_per_second) > 0"
done
run 0 op gemm 17x33x65 64x64x64 -t bf16 -d cpu,reference -w 0 -r 1 --json
holds "$(value results) == 4 && $(value results.3.flops) > 0"
[ "$(value results.3.problem)" = 64x64x64 ] || wrong "problems are not in order"
[ "$(value results.3.type)" = bf16 ] || wrong "not of type bf16"
run 0 op gather 1x7x20x5:out -d cpu,reference -w 0 -r 1 --json  # rows of NaN where they are expected
holds "$(value results.0.compared) == 100 && $(value results.0.wrong) == 0 && $(value results.1.wrong) == 0"
run 0 op conv_forward mb1ic16ih9oc20oh9kh3ph1:bias:packed -d cpu -w 0 -r 2 --json  # weights that were packed before
holds "$(value results.0.compared) == 1620 && $(value results.0.wrong) == 0"
run 0 op softmax 7x130 -w 0 -r 1
grep -q '7x130' "$scratch/out" || wrong "the table does not name the problem"

refused 2 'takes the name of an operation' op
refused 2 'no operation is called add' op add
run 2 op gemm 3x4
grep -q 'gemm 3x4: .*not a product' "$scratch/err" || wrong "not explained: $(cat "$scratch/err")"
# A problem that no device could have is the caller's mistake, not the plugin's.
for problem in mb1c1ih4kh2sh0:max mb1c1ih4kh0sh1:max mb1c1ih4kh9sh2:max mb64c32ih28kh99sh2:max mb0c1ih4kh2:max \
    mb1073741824c1073741824ih4096kh1:max; do
    run 2 op pool_forward $problem -d cpu -w 0 -r 1
    run 2 op pool_backward $problem -d cpu -w 0 -r 1
done
for problem in 'softmax 0x5' 'reduce 5:a7:sum' 'reduce 1073741824x1073741824x1073741824:a0:sum' 'optimizer 0:adam' \
    'pointwise 0/x0' 'copy 5' 'optimizer 5:adam:ranges'; do
    run 2 op $problem -d cpu -w 0 -r 1
done
run 3 op gemm -t f64 -d cpu
grep -q 'cpu:0: gemm .* f64 is not supported' "$scratch/err" || wrong "not explained: $(cat "$scratch/err")"

# From the host to each device and back, on each, and between the two in both directions: twice five, and two.
CEKERNELS_CPU_DEVICES=2
export CEKERNELS_CPU_DEVICES
run 0 copy -d cpu --sizes=1,3K,1M -w 0 -r 2 --json
holds "$(value results) == 36"
i=0
while [ $i -lt 36 ]; do
    holds "$(value results.$i.wrong) == 0 && $(value results.$i.bytes_per_second) > 0"
    i=$((i + 1))
done
[ "$(value results.35.from)" = cpu:1 ] && [ "$(value results.35.to)" = cpu:0 ] ||
    wrong "not from cpu:1 to cpu:0 at last"
holds "$(value results.0.bytes) == 1 && $(value results.35.bytes) == 1048576"
unset CEKERNELS_CPU_DEVICES
refused 2 'takes no argument' copy here
refused 2 '--sizes=x: a size' copy --sizes=4K,x
refused 2 '--sizes=: a size' copy --sizes=4K,
if [ "$SANITIZERS" = no ]; then # sanitizers end a program that asks for so much
    run 6 op gemm 3000000x3000000x1 -d cpu -w 0 -r 1
    run 6 copy -d cpu --sizes=900000G
    grep -q 'no host memory for 966367641600000 bytes' "$scratch/err" || wrong "not explained: $(cat "$scratch/err")"
fi
# A device that has no memory for it is not faulty.
CEKERNELS_SIM_MEMORY=1M run 6 op softmax 1000x1000 -d sim:0 -w 0 -r 1
grep -q 'sim:0: softmax 1000x1000: .*mem_alloc answered OUT_OF_MEMORY: ' "$scratch/err" ||
    wrong "not explained: $(cat "$scratch/err")"
CEKERNELS_SIM_FAULTS=internal@mem_alloc run 8 op softmax 3x5 -d sim:0 -w 0 -r 1
CEKERNELS_SIM_MEMORY=1M run 6 copy -d sim:0 --sizes=4M
grep -q 'sim:0' "$scratch/err" || wrong "the device is not named: $(cat "$scratch/err")"

run 0 peak -d cpu -r 2 --json
holds "$(value results) >= 7"
"$CEKERNELS_BENCH" peak -d cpu -r 2 -o csv >"$scratch/out"
for what in product '"product, tf32"' '"memory, read and written"' 'launch and wait' '"launch, many at once"' '"upload, pinned"' \
    '"download, pinned"'; do
    grep -q "^cpu:0,$what," "$scratch/out" || wrong "no $what among the peaks"
done
refused 2 'takes no argument' peak cpu
finish
