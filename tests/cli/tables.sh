# tables.sh - tables on terminals of several widths: as wide as what they hold, and where that is too wide, which columns
# are left out; and all of them where there is no terminal.
. "$top_srcdir/tests/cli/lib.sh"
TERM=xterm LC_ALL=C
export TERM LC_ALL
unset COLUMNS

# shown COLUMNS WORDS... - of the command on such a terminal, the lines that are left; none of a table is wider than that.
shown() {
    checks=$((checks + 1))
    columns=$1
    shift
    "$top_builddir/tests/cli/pty" "$columns" "$CEKERNELS_BENCH" "$@" >"$scratch/screen" 2>"$scratch/err" </dev/null ||
        wrong "$* in $columns columns: exit code $?: $(tail -3 "$scratch/screen")"
    ! grep '^+' "$scratch/screen" | grep -v '^+ [0-9]* compared: ' || wrong "$* in $columns columns: see above"
    sed -n 's/^= //p' "$scratch/screen" >"$scratch/table"
}

# heads WORDS - the heading is these, and nothing else.
heads() {
    head -1 "$scratch/table" | tr -s ' ' | grep -qx "$1" || wrong "the heading is: $(head -1 "$scratch/table")"
}

# No terminal: no column is left out, whatever the environment says.
few='-d cpu:0 -r 3 -w 0'
COLUMNS=60 run 0 gemm $few -s 32x32x32
head -1 "$scratch/out" | grep -q 'spread.*algorithm$' || wrong "a file lacks columns: $(head -1 "$scratch/out")"
[ "$failures" -eq 0 ] || finish # no skip that hides it

"$top_builddir/tests/cli/pty" 80 true >"$scratch/screen"
[ $? != 77 ] || { echo "no pseudo-terminals here, and nowhere else are tables cut"; exit 77; }

awk 'BEGIN { print "a,y"; for (i = 0; i < 100; i++) print i "," 2 * i }' >"$scratch/line.csv"
run 0 gemm $few -s 32x32x32,12544x16x16 --json
cp "$scratch/out" "$scratch/gemm.json"

shown 80 gemm $few -s 32x32x32,12544x16x16
heads 'device shape ms spread % GFLOP/s % peak max error wrong'
grep -qx '80 columns have no room for algorithm' "$scratch/table" || wrong "it is not told"
shown 60 gemm $few -s 32x32x32
heads 'device shape ms GFLOP/s % peak wrong'
grep -qx '60 columns have no room for spread %, max error, algorithm' "$scratch/table" || wrong "they are not told: $(tail -1 "$scratch/table")"
shown 120 gemm $few -s 32x32x32
heads 'device shape ms spread % GFLOP/s % peak max error wrong algorithm'
! grep 'no room' "$scratch/table" || wrong "120 columns have no room"

# The columns of texts have their length, the one of a larger one at that: what stands behind lies below its heading.
shown 110 gemm -d cpu:0,reference:0 -r 2 -w 0 -s 8x8x8,12544x16x16
awk '{ at = NR == 1 ? index($0, " ms") + 3 : at } NR <= 5 && substr($0, at - 4, 4) !~ /(ms|[0-9])$/ { exit 1 }' "$scratch/table" ||
    wrong "the columns are not below each other: $(cat "$scratch/table")"

shown 80 conv $few -s mb64ic1ih8oc64oh8kh3ph1
shown 80 op softmax 40x50 64x1000 $few
shown 80 op conv_forward mb64ic1ih8oc64oh8kh3ph1 $few
shown 80 copy -d cpu:0,reference:0 --sizes=4K -r 2 -w 0
# How long the names are is the machine's: five columns fit, one of them no more, and then no longer the longest name.
shown 200 devices -q
heads 'device kind name units GiB free types joins'
fits=$(awk 'NR == 1 { print index($0, "kind") - 1 + index($0, "units") - index($0, "name") + 8 + 2 + 8 + 2 + 5 }' "$scratch/table")
shown "$fits" devices -q
heads 'device name GiB free joins'
shown $((fits - 1)) devices -q
heads 'device name GiB joins'
shown $((fits - 13)) devices -q
heads 'device name GiB joins'
grep -q '^sim:0 .*\.\.\.  ' "$scratch/table" || wrong "no name is cut: $(cat "$scratch/table")"
shown 80 check softmax -d cpu:0
shown 80 compare "$scratch/gemm.json" "$scratch/gemm.json"
grep -q '^12544x16x16 f32  cpu:0 .* 1.000 ' "$scratch/table" || wrong "no comparison: $(cat "$scratch/table")"
shown 80 train linear:1 --csv="$scratch/line.csv" --target=y --epochs 2 -d cpu:0,reference:0
heads 'epoch step loss test loss seconds samples/s shares'
finish
