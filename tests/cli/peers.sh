# peers.sh - `compare` of bench/peers: its figures and its turns, over runners that say what they are told to, and its
# own runners where nobody else is needed. Skipped without a Python 3.9.
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || {
    echo "no Python 3.9"
    exit 77
}
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
. "$top_srcdir/tests/cli/lib.sh"

echo 'gemm gemm f32 8 8 8 nn' >"$scratch/one.txt"
mkdir "$scratch/pids"
export scratch

# runner NAME MS [SLOWER] - a fake that claims so many milliseconds a call; SLOWER: that many times its round's number.
# When it works it looks whether another one is awake, and writes down whose turn it is.
runner() {
    cat >"$scratch/$1" <<RUNNER
#!/bin/sh
echo \$\$ >"$scratch/pids/$1"
echo "ready fake"
turn=-3
while read -r word slot rest; do
    for pid in "$scratch"/pids/*; do
        [ "\$pid" = "$scratch/pids/$1" ] && continue
        state=\$(sed 's/.*) //; s/ .*//' "/proc/\$(cat "\$pid")/stat" 2>/dev/null) || continue
        [ "\$state" = T ] || echo "\${pid##*/} is \$state while $1 works" >>"$scratch/awake"
    done
    case \$word in
        run)
            turn=\$((turn + 1))
            [ "\$turn" -gt 0 ] && echo $1 >>"$scratch/order"
            ms=\$((rest * $2))
            [ -n "${3-}" ] && [ "\$turn" -gt 0 ] && ms=\$((ms * turn))
            printf 'took %d.%03d\n' \$((ms / 1000)) \$((ms % 1000)) ;;
        *) echo ok ;;
    esac
done
RUNNER
    chmod +x "$scratch/$1"
}

# odd NAME COMMAND - one that does this when it is asked to run.
odd() {
    cat >"$scratch/$1" <<RUNNER
#!/bin/sh
echo "ready fake"
while read -r word rest; do
    case \$word in
        run) $2 ;;
        *) echo ok ;;
    esac
done
RUNNER
    chmod +x "$scratch/$1"
}

# asks ARG... - of `compare`, whose exit code is $got then; its report and results are in $scratch/peers.
asks() {
    checks=$((checks + 1))
    rm -f "$scratch/pids"/* "$scratch/order" "$scratch/awake"
    "$python" "$top_srcdir/bench/peers/compare" --build="$top_builddir" --output="$scratch/peers" \
        --problems="$scratch/one.txt" "$@" >"$scratch/log" 2>"$scratch/err" </dev/null
    got=$?
    [ ! -e "$scratch/peers/results.jsonl" ] || cp "$scratch/peers/results.jsonl" "$scratch/out"
}
# compares CODE ARG... - the same, and it ends with this code.
compares() {
    want=$1
    shift
    asks "$@"
    [ "$got" -eq "$want" ] || {
        wrong "compare $*: exit code $got, not $want"
        cat "$scratch/log" "$scratch/err"
    }
}
# tells PATTERN - the report does.
tells() {
    grep -q -e "$1" "$scratch/peers/report.md" || wrong "no \"$1\" in the report"
}
# says TEXT - on standard error, in the only line.
says() {
    grep -qF -e "$1" "$scratch/err" || wrong "no \"$1\" in: $(cat "$scratch/err")"
    [ "$(wc -l <"$scratch/err")" -eq 1 ] || wrong "not one line: $(cat "$scratch/err")"
}

# ---- figures ----

# One takes half of our time, one twice as much, one 0.2 s times the number of the round: ratios 1 to 15, whose median
# is 8, which lies between the fourth from either end with 96 %, and between the fifth with 88.
runner ours 200
runner half 100
runner twice 400
runner rising 200 slower
compares 0 --runner="ours=$scratch/ours" --runner="half=$scratch/half" --runner="twice=$scratch/twice" \
    --runner="rising=$scratch/rising"
holds "$(value peers.half.ratio) == 0.5 && $(value peers.half.low) == 0.5 && $(value peers.half.high) == 0.5"
holds "$(value peers.twice.ratio) == 2 && $(value ours.median) == 0.2"
holds "$(value peers.rising.ratio) == 8 && $(value peers.rising.low) == 4"
holds "$(value peers.rising.high) > 11.99 && $(value peers.rising.high) < 12.01"
holds "$(value peers.rising.median) > 1.59 && $(value peers.rising.median) < 1.61"
tells '^| gemm f32 | twice | 1 | 2.00 | 2.00 | gemm f32 8 8 8 nn |$'
tells '0.50 \[0.50, 0.50\]'
grep -q '1/1 gemm f32 8 8 8 nn: 200 ms, .*; half: 0.50 \[0.50, 0.50\]; twice: 2.00' "$scratch/log" ||
    wrong "no line: $(cat "$scratch/log")"

# The picture: a dot for each, in order, the middle one beyond the line of 1.
"$python" - "$scratch/peers/gemm.svg" <<'PYTHON' || wrong "the picture is wrong"
import sys
import xml.dom.minidom
found = xml.dom.minidom.parse(sys.argv[1])
dots = [float(c.getAttribute("cx")) for c in found.getElementsByTagName("circle") if c.getAttribute("r") == "3"]
lines = [x for x in found.getElementsByTagName("line") if x.getAttribute("stroke") != "#ddd"]
lines = [[float(x.getAttribute(k)) for k in ("x1", "x2")] for x in lines]
half, twice, rising = dots
one, least, most = lines[0][0], *lines[-1]
sys.exit(not (half < one < twice < least < rising < most))
PYTHON

# ---- turns ----

[ ! -e "$scratch/awake" ] || wrong "$(sort "$scratch/awake" | uniq -c)"
awk '{ round = int((NR - 1) / 4); if (seen[round, $1]++) print "twice in a round: " $1 }
     END { if (NR != 60) print NR " turns, not 60" }' "$scratch/order" >"$scratch/complaints"
[ ! -s "$scratch/complaints" ] || wrong "$(cat "$scratch/complaints")"
[ "$(awk 'NR % 4 == 1' "$scratch/order" | sort -u | wc -l)" -gt 1 ] ||
    wrong "every round begins with the same contender"
for seed in 1 1 2; do
    compares 0 --runner="ours=$scratch/ours" --runner="half=$scratch/half" --seed=$seed --rounds=20
    cp "$scratch/order" "$scratch/order$seed"
    [ -e "$scratch/before" ] || cp "$scratch/order" "$scratch/before"
done
cmp -s "$scratch/before" "$scratch/order1" || wrong "one seed, two orders"
! cmp -s "$scratch/order1" "$scratch/order2" || wrong "two seeds, one order"
# Ours takes 0.2 s: who takes 11 times as long has no turns, who takes 9 times has.
runner slow 2200
runner slowly 1800
compares 0 --runner="ours=$scratch/ours" --runner="slow=$scratch/slow" --runner="slowly=$scratch/slowly" --rounds=3
holds "$(value peers.slowly.ratio) == 9"
tells 'a call takes 2.2 s, 11 times ours'
! grep -q '^slow$' "$scratch/order" || wrong "slow had a turn"
# So it is of a step of training, of which ours may take any time.
echo 'train train f32 mlp 32' >"$scratch/one.txt"
runner ours 1200
runner slow 13000
compares 0 --runner="ours=$scratch/ours" --runner="slow=$scratch/slow" --runner="slowly=$scratch/slowly" --rounds=3
holds "$(value peers.slowly.ratio) == 1.5"
tells 'a call takes 13.0 s, 11 times ours'
echo 'gemm gemm f32 8 8 8 nn' >"$scratch/one.txt"
# A turn is as many calls as take 20 ms: of 3 ms seven or a few more.
runner ours 3
compares 0 --runner="ours=$scratch/ours" --rounds=3
holds "$(value contenders.ours.calls) >= 7 && $(value contenders.ours.calls) <= 14 && $(value ours.median) == 0.003"

# Of two ways of a peer the better one counts, and the other one leaves after a third of the rounds.
runner ours 200
compares 0 --runner="ours=$scratch/ours" --runner="way, slow=$scratch/twice" --runner="way, fast=$scratch/half" \
    --rounds=12
holds "$(value peers.way.ratio) == 0.5"
holds "$(value contenders.way,\ slow.seconds) == 4 && $(value contenders.way,\ fast.seconds) == 12"
[ "$(value peers.way.best)" = 'way, fast' ] || wrong "the best way is $(value peers.way.best)"
# Beside so many processes that keep a core busy: they run, or wait for a page. The runner's own shell may have started
# those who look, and not sleep yet.
odd counts "cat /proc/[0-9]*/stat 2>/dev/null | sed 's/ (.*) / /' | grep -v \"^\$\$ \" |
        grep -c \"^[0-9]* [RD] \$PPID \" >$scratch/busy
    echo took 0.2"
compares 0 --runner="ours=$scratch/counts" --rounds=1 --busy=2
[ "$(cat "$scratch/busy")" -eq 2 ] || wrong "$(cat "$scratch/busy") processes beside, not 2"
# On the cores of the runners, where these have not all: so they stand in their way.
odd looks "for status in /proc/[0-9]*/status; do
            ! grep -q \"^PPid:.\$PPID\$\" \$status || sed -n 's/^Cpus_allowed_list:.//p' \$status
        done 2>/dev/null | sort | uniq -c >$scratch/cores
    echo took 0.2"
compares 0 --runner="ours=$scratch/looks" --rounds=1 --busy=2 --threads=1
[ "$(awk '{ print $1 }' "$scratch/cores")" = 3 ] || wrong "one runner and two beside on other cores: $(cat "$scratch/cores")"

# ---- many peers ----

# Of nine peers the legend has each, within the picture, and the last two are told from the first by hollow dots.
many=
for n in 1 2 3 4 5 6 7 8 9; do many="$many --runner=contender-$n=$scratch/twice"; done
compares 0 --runner="ours=$scratch/ours" $many --rounds=3
"$python" - "$scratch/peers/gemm.svg" <<'PYTHON' || wrong "the picture of nine peers is wrong"
import sys
import xml.dom.minidom
found = xml.dom.minidom.parse(sys.argv[1])
dots = found.getElementsByTagName("circle")
looks = {r: [(d.getAttribute("fill"), d.getAttribute("stroke")) for d in dots if d.getAttribute("r") == r] for r in "43"}
places = [(float(d.getAttribute("cx")), float(d.getAttribute("cy"))) for d in dots if d.getAttribute("r") == "4"]
names = [t for t in found.getElementsByTagName("text") if t.firstChild.data.startswith("contender-")]
inside = all(float(t.getAttribute("x")) + 7 * len(t.firstChild.data) < 900 for t in names)
sys.exit(not (len(names) == 9 and inside and looks["4"] == looks["3"] and len(set(looks["4"])) == len(set(places)) == 9))
PYTHON

# ---- what goes wrong with one leaves the others ----

runner ours 200
odd dies 'kill -9 $$'
odd leaves 'exit 3'
odd rubbish 'echo hello world'
odd nothing 'echo took -1'
odd hangs 'sleep 100'
odd closes 'exec >&-; sleep 100'
odd instant 'echo took 0.000001'
printf '#!/bin/sh\necho "absent no library of that name"\n' >"$scratch/missing"
chmod +x "$scratch/missing"
# fails NAME TEXT [SECONDS...] - it does, with this text, beside two that are measured, and has been waited for so long at
# most: the first time that is enough for those two, whose answers take as long as the machine lets them.
fails() {
    name=$1 text=$2
    shift 2
    for patience in "${@:-600}"; do
        asks --runner="ours=$scratch/ours" --runner="half=$scratch/half" --runner="$name=$scratch/$name" \
            --patience="$patience"
        grep -q -e '^compare: ours: no answer' -e '^compare: half: no answer' "$scratch/err" || break
    done
    [ "$got" -eq 1 ] || wrong "$name: exit code $got, not 1: $(cat "$scratch/log" "$scratch/err")"
    says "compare: $name: $(printf "$text" "$patience")"
    holds "$(value peers.half.ratio) == 0.5"
    tells "^- $name: .*FAILED"
}
fails dies 'was ended by signal 9 (SIGKILL) when asked "run 0 1"'
fails leaves 'ended with exit code 3 when asked "run 0 1"'
fails rubbish 'answered "hello world" to "run 0 1"'
fails nothing 'answered "took -1" to "run 0 1"'
fails instant 'says that 1000000000 calls take 1e-06 s'
fails hangs 'no answer to "run 0 1" in %s s' 1 10 100
fails closes 'says no more, but has not ended, when asked "run 0 1"' 1 10 100
# What is not there is no failure, and is named.
compares 0 --runner="ours=$scratch/ours" --runner="missing=$scratch/missing" --runner="nowhere=$scratch/nowhere"
tells 'missing: not there: no library of that name'
tells 'nowhere: not there: .*No such file'
compares 3 --runner="ours=$scratch/missing" --runner="half=$scratch/half"
says 'compare: ours measured nothing: no library of that name'

# A group of several sorts has rows of one length: what has no speed has no GFLOP/s.
printf 'some gemm f32 8 8 8 nn\nsome train f32 mlp 4\n' >"$scratch/mixed.txt"
compares 0 --problems="$scratch/mixed.txt" --rounds=1 --runner="ours=$scratch/ours" --runner="half=$scratch/half"
tells '^| train f32 mlp 4 | 200 ms (200 ms to 200 ms) |  |  | 100 ms / 0.50 |$'

# ---- wrong usage ----

compares 2 --runner="half=$scratch/half"
grep -q 'one is called ours' "$scratch/err" || wrong "$(cat "$scratch/err")"
for given in "half" "half=" "half='" "=$scratch/half" "ours=$scratch/half"; do
    compares 2 --runner="ours=$scratch/ours" --runner="$given"
    grep -q -e 'error: --runner=.*: ' "$scratch/err" || wrong "--runner=$given: $(cat "$scratch/err")"
done
compares 2 --runner="ours=$scratch/ours" --output=/dev/null/peers
grep -q 'error: --output=/dev/null/peers: Not a directory' "$scratch/err" || wrong "$(cat "$scratch/err")"
compares 2 --only=cooking
grep -q 'cooking: no problem' "$scratch/err" || wrong "$(cat "$scratch/err")"
# refuses LINE TEXT - a table with such a line is refused with its number.
refuses() {
    printf '# a table\n\n%s\n' "$1" >"$scratch/bad.txt"
    compares 2 --problems="$scratch/bad.txt"
    grep -F "bad.txt:3: " "$scratch/err" | grep -qF -e "$2" || wrong "no \"$2\" in: $(cat "$scratch/err")"
}
refuses 'g gemm f32 8 8 nn' 'no problem: gemm f32 8 8 nn'
refuses 'g gemm f32 8 8 -8 nn' 'gemm f32 8 8 -8 nn: -8 is no number, or too small'
refuses 'g gemm f32 8 8 8 nx' 'gemm f32 8 8 8 nx: nx is none of nn tn nt tt'
refuses 'g conv f32 back 1 3 8 4 3 1 1 1' 'back is none of forward data weights'
refuses 'g conv f32 data 1 3 8 4 3 0 1 1' '0 is no number, or too small'
refuses 'g conv f32 data 1 3 2 4 5 1 1 1' 'the window is larger than the image'
refuses 'g train f32 mlp many' 'many is no number'
refuses 'a/b train f32 mlp 4' 'a group becomes the name of a file, and has no /: a/b'

# ---- ours, the limit of the machine, and libraries that are not there ----

cat >"$scratch/one.txt" <<'PROBLEMS'
gemm gemm f32,bf16 8 12 16 nn,tn,nt
conv conv f32 forward,data,weights 2 3 8 4 3 1 1 1
train train f32 mlp 4
infer infer f32 mlp 2
PROBLEMS
compares 0 --rounds=1 --threads=1 --python="$scratch/missing" --openblas=libnowhere.so --blis=libnowhere.so \
    --onednn=libnowhere.so --mkl=libnowhere.so
[ "$(wc -l <"$scratch/out")" -eq 11 ] || wrong "$(wc -l <"$scratch/out") results, not 11"
! grep -q 'not measured' "$scratch/log" || wrong "$(grep 'not measured' "$scratch/log")"
head -1 "$scratch/peers/results.jsonl" >"$scratch/out"
holds "$(value ours.median) > 0 && $(value flop) == 3072"
[ "$(uname -m)" != x86_64 ] || ! grep -q avx2 /proc/cpuinfo || holds "$(value peak_flops) > 1e9"
tells 'MKL: not there: libnowhere.so'
[ -s "$scratch/peers/gemm.svg" ] || wrong "no picture of the products"  # bf16 beside f32
[ -s "$scratch/peers/mlp.onnx" ] || wrong "no exported model"
finish
