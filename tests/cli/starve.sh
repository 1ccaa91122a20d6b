# starve.sh - where memory runs out, cekernels-bench never ends with 0 and other results than it should have printed: it
# carries on without, or ends with 6 and says so.
#
# One allocation of the whole process fails (starve.c), whichever it is: of the libraries, the plugins, the loader, of
# what is printed. A sample of them, half from the end, where printing is; with CEKERNELS_TEST_LONG all of them, or of
# very many the last 1000 and as many others.
. "$top_srcdir/tests/cli/lib.sh"

[ "$SANITIZERS" = no ] || {
    echo "the sanitizers have an allocator of their own"
    exit 77
}
starve=$top_builddir/tests/cli/.libs/starve.so
[ -f "$starve" ] || {
    echo "no $starve"
    exit 99
}
# The plugins that every machine has. That of CUDA looks for its driver with glob, which glibc itself breaks when memory
# runs out.
CEKERNELS_PLUGINS==cpu,reference
CEKERNELS_CPU_DEVICES=2
export CEKERNELS_PLUGINS CEKERNELS_CPU_DEVICES
seed=${STARVE_SEED-1}
echo "seed $seed"

# starved N ARG... - with the N-th allocation failing; 0: none.
starved() {
    nth=$1
    shift
    STARVE_NTH=$nth STARVE_COUNT=$scratch/count LD_PRELOAD=$starve "$CEKERNELS_BENCH" "$@" </dev/null
}

# numbers_of N COUNT - which of N allocations are to fail: COUNT, or in a long run many more.
numbers_of() {
    count=$2
    [ -z "${CEKERNELS_TEST_LONG-}" ] || count=2000
    awk -v n="$1" -v k="$count" -v seed=$((seed + checks)) 'BEGIN {
        srand(seed)
        last = k > 1000 ? 1000 : 200
        if (n <= k)
            for (i = 1; i <= n; i++) print i
        else
            for (i = 0; i < k; i++) print ((i % 2 && last < n) ? n - int(last * rand()) : 1 + int(n * rand()))
    }' | sort -nu
}

# survey COUNT TIMED ARG... - TIMED is what of the output differs from run to run, as a script of sed.
survey() {
    points=$1 timed=$2
    shift 2
    starved 0 "$@" >"$scratch/out" 2>"$scratch/err" || wrong "$*: $(cat "$scratch/err")"
    sed -E "$timed" "$scratch/out" >"$scratch/want"
    [ -s "$scratch/want" ] || wrong "$*: prints nothing"
    for nth in $(numbers_of "$(cat "$scratch/count")" "$points"); do
        checks=$((checks + 1))
        starved "$nth" "$@" >"$scratch/out" 2>"$scratch/err"
        code=$?
        if [ $code -eq 0 ]; then
            sed -E "$timed" "$scratch/out" | cmp -s - "$scratch/want" ||
                wrong "$*: allocation $nth fails: exit code 0, and other output: $(sed -E "$timed" "$scratch/out" |
                    diff "$scratch/want" - | head -3)"
        elif [ $code -ne 6 ] || [ ! -s "$scratch/err" ]; then
            wrong "$*: allocation $nth fails: exit code $code: $(cat "$scratch/err")"
        fi
    done
}

awk 'BEGIN { srand(1); print "a,b,y"; for (i = 0; i < 40; i++) { a = rand(); b = rand(); print a "," b "," 2 * a - 3 * b } }' \
    >"$scratch/line.csv"
table="--csv=$scratch/line.csv --target=y"
run 0 train linear:1 $table --steps 2 -q --save "$scratch/line.safetensors"
run 0 gemm -s 4x4x4,8x8x8 -d cpu:0 -w 0 -r 5 -o jsonl && cp "$scratch/out" "$scratch/gemm.jsonl"

starved 0 --version >"$scratch/out"
[ -s "$scratch/count" ] || {
    echo "this C library's allocations cannot be made to fail"
    exit 77
}

all='s/-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?/#/g; s/ +#/ #/g'
for format in table json jsonl csv md; do
    survey 12 "$all" devices -o $format
    survey 12 "$all" train linear:1 $table --steps 3 --log-every 1 --batch 8 -o $format
    survey 6 "$all" train linear:1 $table --epochs 2 --batch 8 -o $format
    survey 12 's/("samples_per_second":) *[0-9.e+-]+/\1 #/' predict linear:1 $table --load "$scratch/line.safetensors" -o $format
    survey 6 "$all" op softmax 3x5 -d reference -w 0 -r 1 -o $format
    survey 2 '' check softmax --match='f32 1x1' -d reference -o $format
    survey 2 "$all" gemm -s 4x4x4 -d cpu:0 -w 0 -r 1 -o $format
    survey 8 '' compare "$scratch/gemm.jsonl" "$scratch/gemm.jsonl" -o $format
done
survey 100 '' plot "$scratch/gemm.jsonl"
echo '[{"ph":"X","pid":2,"tid":1,"dur":5,"name":"update shard 0","args":{"step":1}},
{"ph":"M","pid":2,"tid":1,"name":"process_name","args":{"name":"dev:2"}}]' >"$scratch/trace.json"
survey 100 '' plot "$scratch/trace.json"
finish
