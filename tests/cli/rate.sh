# rate.sh - `gemm` and `conv`: results are verified, whatever the speed; a peer is timed in turn.
. "$top_srcdir/tests/cli/lib.sh"

run 0 gemm -s 33x17x65,64x64x64:ta,31x29x100:tb -r 2 -w 0 --json
holds "$(value results) == 3"
for i in 0 1 2; do
    holds "$(value results.$i.wrong) == 0 && $(value results.$i.compared) > 64 && $(value results.$i.flops) > 0"
    holds "$(value results.$i.max_error) < 0.001 && $(value results.$i.median_ns) > 0"
done
run 0 gemm -s 40x40x40 -r 1 -w 0 -d cpu:0,reference:0 -o csv
[ "$(wc -l <"$scratch/out")" -eq 3 ] || wrong "two devices make not two rows"
run 0 gemm -s 40x40x40 -r 1 -w 0 --math=strict -o md
holds "$(grep -c '| % peak |' "$scratch/out") == 1"
for type in f32 f16 bf16; do
    run 0 gemm -t $type -s 33x70x65,64x64x64:ta -r 2 -w 0 --json
    for i in 0 1; do
        [ "$(value results.$i.type)" = $type ] || wrong "not of type $type"
        holds "$(value results.$i.wrong) == 0 && $(value results.$i.compared) > 64"
        holds "$(value results.$i.of_peak) > 0 && $(value results.$i.of_peak) <= 1"
    done
done
refused 2 'f32, f16 or bf16, not f64' gemm -t f64
refused 2 'f32, f16 or bf16, not u8' conv -t u8
refused 2 'multiplies f32, not f16' gemm -t f16 --peer=libopenblas.so.0

for pass in forward data weights; do
    for type in bf16 f16; do
        run 0 conv -t $type -s mb2ic5ih7oc3oh7kh3ph1 --pass=$pass -r 1 -w 0 --json
        [ "$(value results.0.type)" = $type ] || wrong "not of type $type"
        holds "$(value results.0.wrong) == 0 && $(value results.0.compared) > 64"
    done
    run 0 conv -s mb2ic5ih7oc3oh7kh3ph1,mb1ic4ih9oc4oh5kh3sh2ph1g4 --pass=$pass -r 1 -w 0 --json
    holds "$(value results) == 2 && $(value results.0.wrong) == 0 && $(value results.1.wrong) == 0"
    holds "$(value results.0.of_peak) > 0 && $(value results.0.of_peak) <= 1"
    [ "$(value results.0.pass)" = $pass ] || wrong "not the pass $pass"
done

refused 5 'cannot open' gemm --peer=libthatisnothere.so -s 8x8x8
refused 5 'has no cblas_sgemm' gemm --peer=libm.so.6 -s 8x8x8
# The peer may be faster here: exit codes 0 and 1 are both right, and there is a ratio.
"$CEKERNELS_BENCH" gemm -s 128x128x128 -r 2 -w 1 --peer=libopenblas.so.0 --json >"$scratch/out" 2>"$scratch/err"
code=$?
if grep -q 'cannot open' "$scratch/err"; then
    echo "no libopenblas.so.0: the peer is left out"
else
    [ $code -le 1 ] || wrong "with a peer: exit code $code: $(cat "$scratch/err")"
    holds "$(value geometric_mean) > 0 && $(value results.0.ratio) > 0 && $(value results.0.peer_median_ns) > 0"
fi
finish
