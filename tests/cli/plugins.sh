# plugins.sh - the command line among plugins that are broken, cut off, or crash: who is called, and who is named.
. "$top_srcdir/tests/cli/lib.sh"

fake=$top_builddir/tests/plugins/.libs/fake.so
mkdir -m 700 "$scratch/path"
CEKERNELS_PLUGIN_PATH=$scratch/path
export CEKERNELS_PLUGIN_PATH

# The user's folder comes before the build tree's own, and does not take its place.
cp "$fake" "$scratch/path/alpha.so"
run 0 devices --json
[ "$(value devices.0.device)" = alpha:0 ] || wrong "the user's plugin is not the first"
grep -q '"cpu:0"' "$scratch/out" || wrong "the user's folder hides the plugins of the build tree"

# What a device says of denormal numbers is told, where it says it.
cp "$fake" "$scratch/path/gamma-flush.so"
run 0 devices --json
[ "$(value devices.0.flushes_denormals)" = false ] && [ "$(value devices.2.flushes_denormals)" = true ] ||
    wrong "JSON does not tell which device flushes denormal numbers"
run 0 devices
[ "$(grep -c '^    denormals  may count as 0$' "$scratch/out")" -eq 2 ] || wrong "the details do not tell either"
rm "$scratch/path/gamma-flush.so"

# A plugin that crashes while it is started takes those along that ask for it, and no others.
cp "$fake" "$scratch/path/beta-crash.so"
run 0 gemm -d cpu -s 8x8x8
CEKERNELS_DEVICES=cpu
export CEKERNELS_DEVICES
run 0 gemm -s 8x8x8
unset CEKERNELS_DEVICES
crash=139
[ "$SANITIZERS" = no ] || crash=1 # the sanitizer's own report ends the process
run $crash gemm -d beta -s 8x8x8
grep -q '^cekernels-bench: SIGSEGV in the plugin: beta: create$' "$scratch/err" ||
    wrong "the crash does not name its plugin: $(cat "$scratch/err")"
run $crash devices -v
grep -q 'beta-crash.so: plugin beta is started$' "$scratch/err" || wrong "-v does not say whose turn it is"
rm "$scratch/path/beta-crash.so"

# One that looks at a NULL crashes where that is tried, which is told; a sanitizer ends it before that.
run $crash check null --plugin="$fake"
grep -q -e '^cekernels-bench: SIGSEGV in the check: fake:0: null [a-z_]* without ' \
    -e 'fake.c:.* runtime error: .* null pointer' "$scratch/err" ||
    wrong "the crash does not name the case: $(cat "$scratch/err")"

# A file that was cut off, or is none, is refused before anything of it is mapped.
head -c 20000 "$fake" >"$scratch/path/cut.so"
run 0 devices
grep -q 'cut.so: open: cut off: ' "$scratch/out" || wrong "the report does not say that a file was cut off"
run 3 gemm -d cut -s 8x8x8
grep -q 'cut.so: open: cut off: ' "$scratch/err" || wrong "the error does not say that a file was cut off"
rm "$scratch/path/cut.so"
mkfifo "$scratch/fifo.so"
run 3 devices --plugin="$scratch/fifo.so"

# Training takes those devices that can train; one that is named and cannot is named in the error.
run 0 train 'conv:2,5,s4 relu flatten linear:10' --steps 1 --json
grep -q '"alpha:0"' "$scratch/out" && wrong "a plugin of profile inference joined training"
refused 3 'alpha:1: its plugin is of profile inference, and this needs profile training' \
    train 'conv:2,5,s4 relu flatten linear:10' --steps 1 -d cpu,alpha:1

# No line about folders that need not exist; one about a folder that the user named.
run 0 devices
sed -n '/^load report/,$p' "$scratch/out" | grep '^/' | grep -v '\.so: ' && wrong "the report speaks of folders"
CEKERNELS_PLUGIN_PATH=$scratch/path:$scratch/absent
run 0 devices
grep -q "^$scratch/absent: search: folder $scratch/absent: No such file or directory" "$scratch/out" ||
    wrong "no line about a folder that was named and is not there"
finish
