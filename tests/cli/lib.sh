# lib.sh - read by the tests of cekernels-bench: run it, and hold exit code, output and JSON against
# what they should be. A test ends with `finish`.
set -u
json=$top_builddir/tests/cli/json
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
failures=0
checks=0

wrong() {
    failures=$((failures + 1))
    echo "WRONG: $*"
}

# run CODE ARG... - cekernels-bench ends with this code; output in $scratch/out and $scratch/err.
run() {
    want=$1
    shift
    checks=$((checks + 1))
    "$CEKERNELS_BENCH" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    got=$?
    [ "$got" -eq "$want" ] || {
        wrong "cekernels-bench $*: exit code $got, not $want"
        head -5 "$scratch/err"
    }
}

# refused CODE TEXT ARG... - it ends with this code, one printable line on stderr that has TEXT, and nothing on stdout.
refused() {
    want=$1 text=$2
    shift 2
    run "$want" "$@"
    grep -q -e "$text" "$scratch/err" || wrong "cekernels-bench $*: no \"$text\" in: $(cat "$scratch/err")"
    [ ! -s "$scratch/out" ] || wrong "cekernels-bench $*: it printed results"
    ! LC_ALL=C grep -q '[^ -~]' "$scratch/err" || wrong "cekernels-bench $*: not printable: $(od -c "$scratch/err")"
    [ "$(grep -c '^cekernels-bench: ' "$scratch/err")" -eq 1 ] ||
        wrong "cekernels-bench $*: not one line: $(cat "$scratch/err")"
}

# value PATH - of the JSON document in $scratch/out.
value() {
    "$json" "$1" <"$scratch/out" || wrong "no $1 in the output"
}

# holds WORDS... - an expression of awk is true.
holds() {
    checks=$((checks + 1))
    awk "BEGIN { exit !($*) }" || wrong "$* does not hold"
}

finish() {
    echo "$checks checks, $failures failures"
    [ "$failures" -eq 0 ]
    exit $?
}
