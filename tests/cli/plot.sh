# plot.sh - `plot` and `train --plot`: what a file is told by its content, text on standard output, SVG and PNG files.
. "$top_srcdir/tests/cli/lib.sh"
unset COLUMNS
LC_ALL=C
export LC_ALL

awk 'BEGIN { srand(1); print "a,b,y"; for (i = 0; i < 200; i++) { a = rand(); b = rand(); print a "," b "," 2 * a - 3 * b + 1 } }' \
    >"$scratch/line.csv"
table="--csv=$scratch/line.csv --target=y -d cpu:0 --seed 1"

# is_svg FILE TEXT... - well-formed where a parser is at hand, in one piece, and with these texts.
is_svg() {
    svg=$1
    shift
    checks=$((checks + 1))
    ! command -v xmllint >/dev/null || xmllint --noout "$svg" || wrong "$svg is no XML"
    [ "$(head -c 4 "$svg")" = '<svg' ] && [ "$(tail -1 "$svg")" = '</svg>' ] || wrong "$svg is no whole SVG"
    ! grep -Eq 'nan|inf' "$svg" || wrong "$svg has numbers that are none"
    # Letters are half as wide as high, or nearly: what lies beside the paper so surely does.
    awk -F '[<>"]' '/^<svg/ { split($5, box, " ") } /^<text x=/ {
        width = length($11) * $7 * 0.45
        from = $3 - ($9 == "end" ? width : $9 == "middle" ? width / 2 : 0)
        if (from < 0 || from + width > box[3]) { print; beside = 1 }
    } END { exit beside }' "$svg" || wrong "$svg: texts lie beside the paper"
    for text in "$@"; do
        grep -q ">[^<]*$text[^<]*</t" "$svg" || wrong "no \"$text\" in $svg"
    done
}

run 0 train linear:1 $table --epochs 12 --batch 20 -o jsonl
cp "$scratch/out" "$scratch/train.jsonl"
run 0 train linear:1 $table --epochs 2 --batch 20 --log-every 1 --json
cp "$scratch/out" "$scratch/steps.json"
run 0 train linear:1 $table --steps 5 --batch 20 --trace="$scratch/trace.json"
run 0 gemm -d cpu:0,reference:0 -s 32x32x32,40x50x60 -r 2 -w 0 --json
cp "$scratch/out" "$scratch/gemm.json"
run 0 conv -d cpu:0 -s mb1ic3ih8oc4oh8kh3ph1 -r 2 -w 0 --json
cp "$scratch/out" "$scratch/conv.json"
run 0 op softmax 40x50 -d cpu:0 -r 2 -w 0 -o jsonl
cp "$scratch/out" "$scratch/op.jsonl"
run 0 copy -d cpu:0 --sizes=4K,1M -r 2 -w 0 --json
cp "$scratch/out" "$scratch/copy.json"
# A peak as this program writes one; to measure it takes long.
cat >"$scratch/peak.json" <<'EOT'
{"command":"peak","results":[
{"device":"cpu:0","peak":"product","type":"f32","flops":2e11,"side":1024},
{"device":"cpu:0","peak":"product","type":"bf16","flops":3e11,"side":1024},
{"device":"cpu:0","peak":"memory, read and written","type":"f32","median_ns":1e6,"bytes_per_second":2e10},
{"device":"cpu:0","peak":"launch and wait","type":"f32","median_ns":900},
{"device":"cpu:0","peak":"upload, pinned","type":"","median_ns":1e6,"bytes_per_second":1e10}]}
EOT

# Text: what a file holds decides, whatever it is called.
mv "$scratch/op.jsonl" "$scratch/picture.png"
for case in 'train.jsonl Loss' 'steps.json Loss' 'gemm.json Matrix' 'conv.json Convolutions' 'picture.png Operations' \
    'copy.json Copies' 'peak.json Peak' 'trace.json Time'; do
    run 0 plot "$scratch/${case% *}"
    grep -q "^${case#* }" "$scratch/out" || wrong "${case% *} shows: $(head -1 "$scratch/out")"
    ! grep -q '[^ -~]' "$scratch/out" || wrong "${case% *}: not ASCII"
    ! awk 'length($0) > 80' "$scratch/out" | grep . || wrong "${case% *}: wider than 80"
done
grep -q 'linear\|update\|gemm' "$scratch/out" || wrong "a trace without its phases: $(cat "$scratch/out")"
# A trace that names its devices last takes no longer than one that begins with them: half a second, not two minutes.
awk 'BEGIN {
    span = "{\"ph\":\"X\",\"pid\":%d,\"tid\":1,\"dur\":1,\"name\":\"%s shard 1\",\"args\":{\"step\":1}},\n"
    name = "{\"ph\":\"M\",\"pid\":%d,\"tid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"dev:%d\"}}%s\n"
    print "["
    for (i = 0; i < 40000; i++)
        printf span, 2 + i % 2, i % 4 < 2 ? "add" : "update"
    printf name name "]", 2, 2, ",", 3, 3, ""
}' >"$scratch/late.json"
(ulimit -t 30 && "$CEKERNELS_BENCH" plot "$scratch/late.json") >"$scratch/out" || wrong "a long trace: exit code $?"
grep -q '^dev:2 .* 20$' "$scratch/out" && grep -q '^dev:3 .* 20$' "$scratch/out" || wrong "a long trace: $(cat "$scratch/out")"
# Steps are counted where their numbers begin anew, each once, however many updates it is of.
for step in 1 2 2 3 1 2; do
    printf '{"ph":"X","pid":2,"tid":1,"dur":500,"name":"update shard 0","args":{"step":%d}},' $step
done >"$scratch/steps"
printf '[%s{"ph":"M","pid":2,"tid":1,"name":"process_name","args":{"name":"dev:2"}}]' "$(cat "$scratch/steps")" \
    >"$scratch/anew.json"
run 0 plot "$scratch/anew.json"
grep -q '(mean of 5)$' "$scratch/out" && grep -q '^dev:2 .* 0.6$' "$scratch/out" || wrong "five steps: $(cat "$scratch/out")"
run 0 plot "$scratch/gemm.json"
grep -q '^ *32x32x32 f32 =* *[0-9.]*  cpu:0$' "$scratch/out" || wrong "no bar of a product: $(cat "$scratch/out")"
LC_ALL=C.UTF-8 COLUMNS=50 "$CEKERNELS_BENCH" plot "$scratch/train.jsonl" >"$scratch/out" || wrong "UTF-8: exit code $?"
grep -q '│' "$scratch/out" || wrong "UTF-8, and no characters of it"

# The roof of a device wants its peak and operations: products above, and those alone that lie under it.
run 0 plot "$scratch/peak.json" "$scratch/gemm.json" "$scratch/conv.json" -o "$scratch/roof.svg"
is_svg "$scratch/roof.svg" 'Roof of cpu:0' '32x32x32 f32' 'mb1ic3ih8oc4oh8kh3ph1' 'bf16: 300 GFLOP/s, 20 GB/s'
# Each device once, wherever its peaks stand.
sed 's/cpu:0/reference:0/' "$scratch/peak.json" >"$scratch/peak2.json"
run 0 plot "$scratch/peak.json" "$scratch/peak2.json" "$scratch/peak.json" "$scratch/gemm.json"
[ "$(grep '^Roof of' "$scratch/out")" = "Roof of cpu:0, and operations under it
Roof of reference:0, and operations under it" ] || wrong "two devices have the roofs: $(grep '^Roof' "$scratch/out")"
run 0 plot "$scratch/gemm.json" "$scratch/conv.json" -o "$scratch/none.svg"
is_svg "$scratch/none.svg" 'Matrix products' 'Convolutions'
! grep -q Roof "$scratch/none.svg" || wrong "a roof without a peak"

# Files, and training that draws as it goes: as many points as steps, the losses of the log.
run 0 plot "$scratch/train.jsonl" "$scratch/steps.json" --output="$scratch/two.svg"
is_svg "$scratch/two.svg" 'train.jsonl: training' 'steps.json: training' 'train.jsonl: test'
run 0 train linear:1 $table --epochs 3 --batch 20 --plot="$scratch/curve.svg"
is_svg "$scratch/curve.svg" 'Loss of linear:1' training test step
awk '/<path/ && /#0072b2/ { n = gsub(/,/, ",") } END { exit n != 24 }' "$scratch/curve.svg" || wrong "not 24 steps in the curve"
deep='linear:9 relu linear:9 relu linear:9 relu linear:9 relu linear:9 relu linear:9 relu linear:9 relu linear:1'
run 0 train "$deep" $table --epochs 2 --plot="$scratch/deep.svg"
is_svg "$scratch/deep.svg" 'Loss of linear:9 relu linear:9'
run 0 train lenet5 --steps 3 -d cpu:0 --plot="$scratch/digits.svg"
is_svg "$scratch/digits.svg" 'Loss of lenet5' 'Accuracy of lenet5'
# The same weights with it.
run 0 train linear:1 $table --epochs 3 --batch 20 -q
grep weights "$scratch/out" >"$scratch/plain"
run 0 train linear:1 $table --epochs 3 --batch 20 -q --plot="$scratch/curve.svg"
grep weights "$scratch/out" | cmp -s - "$scratch/plain" || wrong "other weights with --plot"

if command -v gnuplot >/dev/null; then
    run 0 plot "$scratch/peak.json" "$scratch/gemm.json" "$scratch/train.jsonl" "$scratch/trace.json" -o "$scratch/all.png"
    [ "$(head -c 4 "$scratch/all.png" | tail -c 3)" = PNG ] || wrong "all.png is no PNG"
    run 0 train linear:1 $table --epochs 3 --plot="$scratch/curve.png"
    [ "$(head -c 4 "$scratch/curve.png" | tail -c 3)" = PNG ] || wrong "curve.png is no PNG"
else
    echo "no gnuplot: PNG files are left out"
fi
# Without gnuplot: one line that says what to install, before anything is trained; SVG needs none.
mkdir "$scratch/bin"
ln -s /usr/bin/* "$scratch/bin/"
rm -f "$scratch"/bin/gnuplot*
path=$PATH
PATH=$scratch/bin
refused 5 'install gnuplot' plot "$scratch/gemm.json" -o "$scratch/x.png"
refused 5 'install gnuplot' train linear:1 $table --epochs 100000000 --plot="$scratch/x.png"
run 0 plot "$scratch/gemm.json" -o "$scratch/x.svg"
PATH=$path

# Texts of a file are texts: no command of gnuplot's, of a terminal, nor what XML cannot hold.
printf '{"results":[{"device":"a\\u0001\\u001b[31m","shape":"x\\n!touch %s/mark\\nsystem \\"touch %s/mark\\"\\n#","k":1,"median_ns":1,"flops":1},
{"device":"b","shape":"y","k":1,"median_ns":1,"flops":-2}]}' "$scratch" "$scratch" >"$scratch/hostile.json"
if command -v gnuplot >/dev/null; then
    run 0 plot "$scratch/hostile.json" -o "$scratch/hostile.png"
    [ ! -e "$scratch/mark" ] || wrong "a name is executed by gnuplot"
fi
run 0 plot "$scratch/hostile.json" -o "$scratch/hostile.svg"
is_svg "$scratch/hostile.svg" 'a??\[31m'
! grep -q 'width="-' "$scratch/hostile.svg" || wrong "a rectangle of a width below 0"
LC_ALL=C.UTF-8 "$CEKERNELS_BENCH" plot "$scratch/hostile.json" >"$scratch/out" || wrong "hostile: exit code $?"
! grep -q "$(printf '[\001\033]')" "$scratch/out" || wrong "a name commands the terminal"
# Names longer than there is room for leave bars.
long=of-a-run-that-somebody-has-given-a-long-name-to
for i in 1 2; do
    sed 's/"x[^,]*"/"mb256ic64ih56iw56oc64oh56ow56kh3kw3ph1pw1"/' "$scratch/hostile.json" >"$scratch/$long$i.json"
done
run 0 plot "$scratch/${long}1.json" "$scratch/${long}2.json"
grep -q '^ *=======* 1e-09  .*to2.json: a' "$scratch/out" || wrong "long names leave no bar: $(cat "$scratch/out")"
! awk 'length($0) > 80' "$scratch/out" | grep . || wrong "long names: wider than 80"
run 0 plot "$scratch/${long}1.json" "$scratch/${long}2.json" -o "$scratch/long.svg"
is_svg "$scratch/long.svg" 'mb256ic64ih56iw56oc64oh56ow56kh3kw3ph1pw1'

refused 2 'which LOG' plot
refused 2 'plot takes no option --json' plot "$scratch/gemm.json" --json
refused 2 'gives no' plot "$scratch/gemm.json" -o "$scratch/x.npy"
refused 2 'gives no such file; FILE.svg or FILE.png is wanted' plot "$scratch/gemm.json" -o "$scratch/x.gif"
refused 2 'plot=' train linear:1 $table --plot="$scratch/x.gif"
refused 5 'nowhere' plot "$scratch/gemm.json" -o /nowhere/x.svg
# A disk that fills up, or a gnuplot that draws a part: the picture that was there stays, and nothing lies beside it.
mkdir -p "$scratch/place" "$scratch/half"
# shellcheck disable=SC2016
printf '#!/bin/sh\ncat >/dev/null; echo half; exit 1\n' >"$scratch/half/gnuplot"
chmod +x "$scratch/half/gnuplot"
for form in svg png; do
    echo before >"$scratch/place/x.$form"
    (
        [ $form = png ] || ulimit -f 1 # 512 bytes or 1 KiB, by the shell
        trap '' XFSZ
        PATH=$scratch/half:$PATH exec "$CEKERNELS_BENCH" plot "$scratch/gemm.json" -o "$scratch/place/x.$form" 2>"$scratch/err"
    )
    code=$?
    checks=$((checks + 1))
    [ $code -eq 5 ] || wrong "half a picture: exit code $code"
    grep -q "place/x.$form" "$scratch/err" && [ "$(cat "$scratch/place/x.$form")" = before ] || wrong "half a picture: $(cat "$scratch/err")"
    [ "$(ls "$scratch/place" | wc -l)" -eq 1 ] || wrong "beside it there is $(ls "$scratch/place")"
    rm "$scratch/place/x.$form"
done
# The mode is that of the file that was there, or what umask leaves; links are followed.
(umask 027 && "$CEKERNELS_BENCH" plot "$scratch/gemm.json" -o "$scratch/place/x.svg")
[ "$(stat -c %a "$scratch/place/x.svg")" = 640 ] || wrong "the mode is $(stat -c %a "$scratch/place/x.svg")"
ln -s x.svg "$scratch/place/link.svg"
chmod 604 "$scratch/place/x.svg"
run 0 plot "$scratch/gemm.json" -o "$scratch/place/link.svg"
[ -L "$scratch/place/link.svg" ] && [ "$(stat -c %a "$scratch/place/x.svg")" = 604 ] || wrong "a link was replaced, or the mode"
refused 5 'nowhere' train linear:1 $table --epochs 100000000 --plot=/nowhere/x.svg
refused 5 'none.json: cannot be opened' plot "$scratch/none.json"
refused 5 'line.csv: no JSON' plot "$scratch/line.csv"
echo '{"a": 1}' >"$scratch/alien.json"
refused 5 'alien.json: nothing that this program measures' plot "$scratch/gemm.json" "$scratch/alien.json"
echo '[{"ph":"M","pid":1,"tid":1}]' >"$scratch/alien.json"
refused 5 'nothing in it can be drawn' plot "$scratch/alien.json"
finish
