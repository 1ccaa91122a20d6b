# examples.sh - the examples beside the tutorial run and do what they say, from the build tree.
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
examples=$top_builddir/examples
failures=0
wrong() { echo "examples: $*" >&2; failures=$((failures + 1)); }
run() { "$@" >"$work/out" 2>&1 || { wrong "$* failed:"; cat "$work/out" >&2; }; }
says() { grep -qE "$1" "$work/out" || { wrong "expected \"$1\" in:"; cat "$work/out" >&2; }; }
cd "$work" || exit 99

for plugin in cpu reference; do
    run "$examples/host_app" "$TEST_PLUGIN_DIR/$plugin.so"
    says '^2x3 times 3x2: right'
    says '^convolution: right'
done
if "$examples/host_app" /nowhere.so >out 2>&1; then wrong "host_app /nowhere.so succeeds"; else says 'nowhere.so'; fi
"$examples/host_app" "$TEST_PLUGIN_DIR/cpu.so" x >out 2>&1
[ $? = 2 ] && says '^usage: host_app' || wrong "host_app cpu.so x is no wrong call"
# A plugin that does what the profile of memory asks for, and has nothing else.
cp "$top_builddir/tests/plugins/.libs/fake.so" fake-memory.so || exit 99
"$examples/host_app" ./fake-memory.so >out 2>&1
[ $? = 1 ] && says 'fake-memory.so has no operations' || wrong "host_app fake-memory.so does not end as a failure"
exit $((failures > 0))
