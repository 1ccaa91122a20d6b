# types.sh - `train` and `predict` with --dtype: what comes of 16 bits, beside f32.
. "$top_srcdir/tests/cli/lib.sh"

# A table that a small network fits, with numbers of order 1: targets have a variance of 1/36.
awk 'function below1() { return (state = state * 16807 % 2147483647) / 2147483647 }
    BEGIN { state = 3; print "a,b,y"; for (i = 0; i < 200; i++) { a = below1(); b = below1(); print a "," b "," a * b - b / 2 } }' \
    >"$scratch/table.csv"
table="-d cpu:0 --csv=$scratch/table.csv --target=y"
net='linear:16 tanh linear:1'

# prediction FILE ARG... - the predictions, one a line.
prediction() {
    file=$1
    shift
    run 0 predict "$net" $table --load="$scratch/f32.safetensors" --rows=40 -o csv "$@"
    cp "$scratch/out" "$file"
}

run 0 train "$net" $table --epochs=40 --batch=20 --lr=0.02 --json --save="$scratch/f32.safetensors"
wide=$(value test_mse)
! grep -q skipped_steps "$scratch/out" || wrong "f32 tells of skipped steps"
prediction "$scratch/wide"
prediction "$scratch/same" --dtype=f32
cmp -s "$scratch/wide" "$scratch/same" || wrong "--dtype=f32 predicts otherwise than nothing said"

# Of numbers of order 1 twelve roundings change no more than 12 units; with equal weights they change something.
for type in 'bf16 256' 'f16 2048'; do
    unit=${type#* } type=${type% *}
    prediction "$scratch/low" --dtype=$type
    paste -d, "$scratch/wide" "$scratch/low" | awk -F, -v unit="$unit" '
        NR > 1 { off = $2 - $5; off = off < 0 ? -off : off; most = off > most ? off : most; rows++ }
        END { exit !(rows == 40 && most > 0 && most <= 12 / unit) }' || wrong "predictions in $type are not those of f32, rounded"
    run 0 train "$net" $table --epochs=40 --batch=20 --lr=0.02 --json --dtype=$type
    holds "$(value test_mse) < $wide + 12 / $unit && $(value test_mse) < 1 / 144 && $(value test_mse) != $wide"
    [ $type = bf16 ] || holds "$(value skipped_steps) >= 0"
done
run 0 train "$net" $table --epochs=1 --batch=20 --json --dtype=f16 --loss-scale=1e12
holds "$(value skipped_steps) >= 1"
refused 2 'f32, f16, bf16' predict "$net" $table --load="$scratch/f32.safetensors" --dtype=f8
finish
