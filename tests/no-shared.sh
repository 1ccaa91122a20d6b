# no-shared.sh - `configure --disable-shared` is refused, and says why.
set -u
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
if "$top_srcdir/configure" -q --disable-shared >out 2>&1; then
    echo "configure --disable-shared was accepted"
    exit 1
fi
cat out
grep -q 'disable-shared.*plugins' out
