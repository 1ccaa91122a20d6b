# compare.sh - `compare`: rows that belong together, verdicts, exit codes, and files that hold something else.
. "$top_srcdir/tests/cli/lib.sh"

# document FILE FACTOR VERSION NAME - results of gemm: three shapes, of which the second takes FACTOR times as long; each of 9 runs
# that lie within 2 %.
document() {
    awk -v factor="$2" -v version="$3" -v name="$4" 'BEGIN {
        printf "{\"command\":\"gemm\",\"version\":\"%s\",", version
        printf "\"devices\":[{\"device\":\"cpu:0\",\"name\":\"%s\",\"driver\":\"d\"}],\"results\":[", name
        for (s = 1; s <= 3; s++) {
            printf "%s{\"device\":\"cpu:0\",\"shape\":\"%dx8x8\",\"type\":\"f32\",\"k\":8,", (s > 1 ? "," : ""), s
            printf "\"median_ns\":%g,\"runs_ns\":[", s * 1000
            for (i = 0; i < 9; i++)
                printf "%s%.3f", (i ? "," : ""), s * 1000 * (s == 2 ? factor : 1) * (1 + 0.0025 * i)
            printf "]}"
        }
        print "]}" }' >"$1"
}
document "$scratch/a.json" 1 0.1 X
for case in '1 0 same' '1.5 1 slower' '0.5 0 faster' '1.03 0 same' '1.0499 0 unclear' '1.08 1 slower'; do
    # shellcheck disable=SC2086 # words are wanted
    set -- $case
    document "$scratch/b.json" "$1" 0.1 X
    run "$2" compare "$scratch/a.json" "$scratch/b.json" --json
    [ "$(value results.1.verdict)" = "$3" ] || wrong "times $1: $(value results.1.verdict), not $3"
    holds "$(value results) == 3 && $(value results.1.ratio) / $1 > 0.99 && $(value results.1.ratio) / $1 < 1.01"
    holds "$(value results.1.low) < $(value results.1.ratio) && $(value results.1.high) > $(value results.1.ratio)"
    [ "$(value results.0.verdict)" = same ] || wrong "what did not change: $(value results.0.verdict)"
done
# The threshold decides, not only whether there is a difference at all.
document "$scratch/b.json" 1.5 0.1 X
run 0 compare "$scratch/a.json" "$scratch/b.json" --threshold=0.6
run 1 compare "$scratch/a.json" "$scratch/b.json" --threshold=0.4
run 1 compare "$scratch/a.json" "$scratch/b.json"
grep -q '^2x8x8 f32 .* slower$' "$scratch/out" || wrong "no line of the slower one: $(cat "$scratch/out")"
grep -q '3 compared: B is slower in 1, faster in 0, the same within 5 % in 2' "$scratch/out" || wrong "no sum: $(cat "$scratch/out")"
run 1 compare "$scratch/a.json" "$scratch/b.json" -o md
grep -q '| slower |$' "$scratch/out" || wrong "no Markdown: $(cat "$scratch/out")"
# Fewer runs than an interval needs: however far apart, nothing is sure.
sed 's/"runs_ns":\[\([^,]*,[^,]*,[^,]*\)[^]]*\]/"runs_ns":[\1]/g' "$scratch/a.json" >"$scratch/few.json"
document "$scratch/b.json" 3 0.1 X
sed 's/"runs_ns":\[\([^,]*,[^,]*,[^,]*\)[^]]*\]/"runs_ns":[\1]/g' "$scratch/b.json" >"$scratch/few-b.json"
run 0 compare "$scratch/few.json" "$scratch/few-b.json" --json
[ "$(value results.1.verdict)" = unclear ] || wrong "three runs are enough: $(cat "$scratch/out")"
[ "$(value results.1.low)" = null ] || wrong "an interval from three runs"

# Other machines and versions are told; so is what has no partner.
document "$scratch/b.json" 1 0.2 Y
run 0 compare "$scratch/a.json" "$scratch/b.json"
grep -q 'cpu:0 is another device: X in A, Y in B' "$scratch/out" || wrong "another device is not told"
grep -q 'A is of version 0.1, B of 0.2' "$scratch/out" || wrong "another version is not told"
sed 's/3x8x8/4x8x8/' "$scratch/a.json" >"$scratch/b.json"
run 0 compare "$scratch/a.json" "$scratch/b.json"
grep -q 'only in A: 3x8x8 f32 cpu:0' "$scratch/out" && grep -q 'only in B: 4x8x8' "$scratch/out" || wrong "what is missing is not told"
# One device each: they are compared with each other.
sed 's/cpu:0/cuda:0/g' "$scratch/a.json" >"$scratch/b.json"
run 0 compare "$scratch/a.json" "$scratch/b.json" --json
[ "$(value results.0.device)" = cpu:0/cuda:0 ] || wrong "two devices: $(value results.0.device)"

# What this program measures here, as JSON and as lines: the same as itself, and of other commands.
run 0 gemm -d cpu:0 -s 32x32x32,40x40x40 -r 5 -w 0 --json
cp "$scratch/out" "$scratch/gemm.json"
holds "$(value results.0.runs_ns) == 5"
run 0 compare "$scratch/gemm.json" "$scratch/gemm.json" --json
holds "$(value results) == 2 && $(value results.0.ratio) == 1"
run 0 gemm -d cpu:0 -s 32x32x32,40x40x40 -r 5 -w 0 -o jsonl
cp "$scratch/out" "$scratch/gemm.jsonl"
run 0 compare "$scratch/gemm.jsonl" "$scratch/gemm.jsonl"
run 0 op softmax 40x50 -d cpu:0 -r 5 -w 0 --json
cp "$scratch/out" "$scratch/op.json"
run 0 compare "$scratch/op.json" "$scratch/op.json"
run 0 copy -d cpu:0 --sizes=4K -r 5 -w 0 --json
cp "$scratch/out" "$scratch/copy.json"
run 0 compare "$scratch/copy.json" "$scratch/copy.json" --json
holds "$(value results) == 5"
awk 'BEGIN { srand(1); print "a,y"; for (i = 0; i < 100; i++) { a = rand(); print a "," 2 * a } }' >"$scratch/line.csv"
run 0 train linear:1 --csv="$scratch/line.csv" --target=y --epochs 6 -d cpu:0 -o jsonl
cp "$scratch/out" "$scratch/train.jsonl"
run 0 compare "$scratch/train.jsonl" "$scratch/train.jsonl" --json
holds "$(value results) == 1 && $(value results.0.ratio) == 1"
[ "$(value results.0.what)" = 'train linear:1, batch 64, a sample' ] || wrong "of a training: $(value results.0.what)"

# Of more runs than ratios are made of, the median is that of all.
awk 'BEGIN { for (i = 1; i <= 2001; i++) printf "{\"step\":%d,\"loss\":1,\"samples\":1,\"seconds\":%d}\n", i, i }' >"$scratch/many.jsonl"
run 0 compare "$scratch/many.jsonl" "$scratch/many.jsonl" --json
holds "$(value results.0.a_ns) == 1001e9 && $(value results.0.b_ns) == 1001e9"

# Files that hold something else: one line each, which names the file.
refused 2 'two files' compare "$scratch/a.json"
refused 2 'two files' compare "$scratch/a.json" "$scratch/a.json" "$scratch/a.json"
refused 2 'threshold' compare "$scratch/a.json" "$scratch/a.json" --threshold=x
refused 5 'none.json: cannot be opened' compare "$scratch/none.json" "$scratch/a.json"
refused 5 'is a folder' compare "$scratch/a.json" "$scratch"
refused 5 'gemm.json holds results of gemm, .*op.json results of op: two of a kind' compare "$scratch/gemm.json" "$scratch/op.json"
refused 5 'train.jsonl holds epochs of train, .*many.jsonl steps of train (--log-every)' \
    compare "$scratch/train.jsonl" "$scratch/many.jsonl"
refused 5 'nothing in common' compare "$scratch/gemm.json" "$scratch/a.json"
: >"$scratch/empty.json"
refused 5 'empty.json: nothing that this program measures' compare "$scratch/empty.json" "$scratch/a.json"
head -c 300 "$scratch/a.json" >"$scratch/cut.json"
refused 5 'cut.json: .*no JSON' compare "$scratch/a.json" "$scratch/cut.json"
i=0
for text in '[]' '{}' '{"results":3}' '{"results":[]}' '{"results":[3]}' '{"results":[{"device":"cpu:0"}]}' 'nan' '{"a":1}{"b":2}' \
    '"text"' '[[[[' '{"results":[{"shape":"x","k":1,"median_ns":1},{"epoch":1}]}' '{"results":[{"shape":1,"k":"a","median_ns":null}]}' \
    '{"results":[{"shape":"x","k":1,"median_ns":-5,"runs_ns":["a",null,-1,0]}]}'; do
    i=$((i + 1))
    printf '%s\n' "$text" >"$scratch/alien$i.json"
    refused 5 "alien$i.json" compare "$scratch/alien$i.json" "$scratch/alien$i.json"
done
cat "$scratch/gemm.json" "$scratch/gemm.json" >"$scratch/twice.json"
refused 5 'several runs' compare "$scratch/twice.json" "$scratch/a.json"
finish
