# examples.sh - every example runs and does what it says, from the build tree. The example plugin is
# built by its own Makefile.
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
examples=$top_builddir/examples
failures=0
wrong() { echo "examples: $*" >&2; failures=$((failures + 1)); }
run() { "$@" >"$work/out" 2>&1 || { wrong "$* failed:"; cat "$work/out" >&2; }; }
says() { grep -qE "$1" "$work/out" || { wrong "expected \"$1\" in:"; cat "$work/out" >&2; }; }
cd "$work" || exit 99

run "$examples/devices"
says '^cpu:0 '
says 'reference.so: loaded'
if "$examples/devices" nothing:7 >out 2>&1; then wrong "devices nothing:7 succeeds"; else says 'nothing:7'; fi

run "$examples/tensors"
says 'tensors on different devices'

for plugin in cpu reference; do
    run "$examples/host_app" "$TEST_PLUGIN_DIR/$plugin.so"
    says '^2x3 times 3x2: right'
    says '^convolution: right'
done
if "$examples/host_app" /nowhere.so >out 2>&1; then wrong "host_app /nowhere.so succeeds"; else says 'nowhere.so'; fi

CEKERNELS_CPU_DEVICES=2 run "$examples/own_layer"
says '^gradients: right'
says '^loss: .* steps on 2 devices '

CEKERNELS_CPU_DEVICES=2 run "$examples/train_mnist" -m 'conv:4,5,s2 relu flatten linear:10' -e 1 -n 60
says '^epoch 1 '
# Shares are measured: whatever they are, they are the batch.
says '^cpu:1: [0-9]* samples'
[ "$(awk '/ samples of the last step$/ { n += $2 } END { print n }' out)" = 64 ] || wrong "shares that are no batch: $(cat out)"
[ -s mnist.safetensors ] || wrong "train_mnist wrote no weights"

# A table whose target is a sum of its features, 160 rows: 128 for training are one batch of 64 and 64.
awk 'BEGIN { print "a,b,target"; for (i = 0; i < 160; i++) { a = (i * 37 % 101) / 10; b = (i * 53 % 89) / 10; print a "," b "," a + 2 * b } }' >table.csv
CEKERNELS_CPU_DEVICES=2 run "$examples/train_boston" -e 150 table.csv target
says '^step 1: 128 samples = cpu:0 64, cpu:1 64$'
says '^after 150 epochs'
awk '/^after/ { sub(",", "", $6); exit !($6 < 2) }' "$work/out" ||
    { wrong "train_boston does not learn:"; cat "$work/out" >&2; }
if "$examples/train_boston" table.csv nothing >out 2>&1; then wrong "a target that is not there is accepted"; else says 'nothing'; fi

# The plugin: through pkg-config's answer for the header alone.
cp "$top_srcdir/examples/plugin/Makefile" "$top_srcdir/examples/plugin/example.c" .
run make CC="$CC" CEK_CFLAGS="-I$top_srcdir/include" CFLAGS='-O1 -Wall -Wextra -Werror' LDFLAGS= example.so
CEKERNELS_PLUGIN_PATH=$work run "$examples/devices" example:0
says '^example:0 '

exit $((failures > 0))
