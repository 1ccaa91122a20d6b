# progress.sh - the progress line on terminals of several widths, and what stands in its place where there is none.
. "$top_srcdir/tests/cli/lib.sh"
pty=$top_builddir/tests/cli/pty

awk 'BEGIN { srand(1); print "a,b,y"; for (i = 0; i < 2000; i++) { a = rand(); b = rand(); print a "," b "," 2 * a - 3 * b + 1 } }' \
    >"$scratch/line.csv"
train="--csv=$scratch/line.csv --target=y --batch 20 -d cpu:0 --seed 1"
TERM=xterm LC_ALL=C.UTF-8
export TERM LC_ALL
unset NO_COLOR COLUMNS

# shown COLUMNS WORDS... - the command on such a terminal; its screen in $scratch/screen, redraws in $scratch/drawn.
shown() {
    checks=$((checks + 1))
    "$pty" "$@" >"$scratch/screen" 2>"$scratch/err" </dev/null || wrong "pty $*: exit code $?: $(tail -3 "$scratch/screen")"
    ! grep '^!' "$scratch/screen" || wrong "pty $*: see above"
    sed -n 's/^~ \(.*\)|[0-9]*$/\1/p' "$scratch/screen" >"$scratch/drawn"
}

# holds_all TEXT... - a redraw has all of these.
holds_all() {
    cp "$scratch/drawn" "$scratch/left"
    for text in "$@"; do
        checks=$((checks + 1))
        grep -e "$text" "$scratch/left" >"$scratch/fewer" || {
            wrong "no redraw with \"$text\" among: $(head -3 "$scratch/drawn")"
            return
        }
        mv "$scratch/fewer" "$scratch/left"
    done
}

# A model whose 30 epochs take longer than a second, however fast the machine is: lines are drawn after 0.3 s.
width=150
took=0
while [ "$took" -lt 1000 ] && [ "$width" -lt 5000 ]; do
    width=$((width * 2))
    model="linear:$width relu linear:$width relu linear:1"
    took=$(date +%s%N)
    run 0 train "$model" $train --epochs 30 -q
    took=$((($(date +%s%N) - took) / 1000000))
done

# Where there is no terminal: lines, the first after two seconds, none of them longer than it must be; and none with -q.
"$CEKERNELS_BENCH" train "$model" $train --epochs 100000000 >"$scratch/out" 2>"$scratch/err" </dev/null &
pid=$!
until grep -q . "$scratch/err" || ! kill -0 $pid 2>/dev/null; do
    sleep 0.1
done
kill $pid
wait $pid
grep -Eq '^epoch [0-9]+/100000000, [0-9]+/[0-9]+ \([0-9]+%\), [^,]* left, loss [^,]*, [0-9]+ samples/s, cpu:0 [0-9]+ MiB$' \
    "$scratch/err" || wrong "no plain line: $(cat "$scratch/err")"
LC_ALL=C grep -q '[^ -~]' "$scratch/err" && wrong "escapes where there is no terminal"
checks=$((checks + 1))
timeout 3 "$CEKERNELS_BENCH" train "$model" $train --epochs 100000000 -q >"$scratch/out" 2>"$scratch/err" </dev/null
[ ! -s "$scratch/err" ] || wrong "-q, and $(head -1 "$scratch/err")"

# The rest is of terminals.
"$pty" 80 true >"$scratch/screen"
[ $? != 77 ] || { echo "no pseudo-terminals here: only lines were looked at"; [ "$failures" -gt 0 ] || exit 77; finish; }

shown 120 "$CEKERNELS_BENCH" train "$model" $train --epochs 30
holds_all 'epoch *[0-9]*/30' '━' '[0-9]%' '[0-9]/2400' '[0-9:]* left' 'loss [0-9]' 'samples/s' 'cpu:0 *[0-9]* MiB'
grep -q '^# 0$' "$scratch/screen" && wrong "no colours on a terminal that has them"
# What is left is what was printed: the table, and nothing of the line.
grep '^= ' "$scratch/screen" | sed 's/^= //' >"$scratch/table"
grep -q 'left' "$scratch/table" && wrong "something of the line is left: $(grep left "$scratch/table")"
holds "$(wc -l <"$scratch/table") == 32"
grep -q '^weights [0-9a-f]*$' "$scratch/table" || wrong "the table is torn: $(tail -2 "$scratch/table")"
# No more than ten redraws in any second.
sed -n 's/^~ .*|\([0-9]*\)$/\1/p' "$scratch/screen" | awk '
    { at[NR] = $1; if (NR > 10 && $1 - at[NR - 10] < 900) fast++ } END { exit fast > 0 }' || wrong "more than ten redraws a second"

for columns in 80 40; do
    shown $columns "$CEKERNELS_BENCH" train "$model" $train --epochs 30
    holds_all 'epoch *[0-9]*/30' '[0-9]%'
done
# A window that is dragged to another width: two seconds later the line fits.
shown 120:50 "$CEKERNELS_BENCH" train "$model" $train --epochs 120
holds_all 'epoch'

# Standard output elsewhere: the same line, and the same results as without one.
shown 100 -o "$scratch/rows" "$CEKERNELS_BENCH" train "$model" $train --epochs 30 -o jsonl
holds_all 'epoch *[0-9]*/30'
"$json" -l weights_sha256 <"$scratch/rows" >"$scratch/with" || wrong "no document in the file"
run 0 train "$model" $train --epochs 30 -o jsonl -q
"$json" -l weights_sha256 <"$scratch/out" | cmp -s - "$scratch/with" || wrong "other weights with a progress line"

# None where it is not wanted; no colours; no other characters than ASCII.
for without in -q --no-progress; do
    shown 80 "$CEKERNELS_BENCH" train "$model" $train --epochs 30 $without
    [ ! -s "$scratch/drawn" ] || wrong "$without, and a line: $(head -1 "$scratch/drawn")"
done
shown 80 env NO_COLOR=1 "$CEKERNELS_BENCH" train "$model" $train --epochs 30
holds_all 'left'
grep -q '^# 0$' "$scratch/screen" || wrong "NO_COLOR, and colours"
shown 80 env LC_ALL=C "$CEKERNELS_BENCH" train "$model" $train --epochs 30
holds_all '=\.'
LC_ALL=C grep -q '[^ -~]' "$scratch/drawn" && wrong "no UTF-8, and characters of it"
shown 80 env TERM=dumb "$CEKERNELS_BENCH" train "$model" $train --epochs 30
[ ! -s "$scratch/drawn" ] || wrong "TERM=dumb, and a line is drawn over"

# Messages that come meanwhile stand on lines of their own.
shown 100 "$CEKERNELS_BENCH" train "$model" $train --epochs 30 -v
grep '^= ' "$scratch/screen" | grep 'info' | grep -v '^= cekernels-bench: info: ' && wrong "messages are torn"

# Tables and checks; reading.
shown 100 "$CEKERNELS_BENCH" gemm -d cpu:0 -s 64x64x64,512x512x512,600x600x600 -r 30
holds_all 'gemm cpu:0' '/3' 'x[0-9]'
shown 100 "$CEKERNELS_BENCH" check -d reference:0 gemm conv_forward
holds_all 'check reference:0' '━' '[0-9]%' '[0-9]/[0-9]'

finish
