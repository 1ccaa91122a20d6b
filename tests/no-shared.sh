# no-shared.sh - `configure --disable-shared` is refused, and says why; so are folders that libtool cannot install into.
set -u
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
refused() {
    if "$top_srcdir/configure" -q "$2" >out 2>&1; then
        echo "configure $2 was accepted"
        exit 1
    fi
    cat out
    grep -q "$1" out || exit 1
}
refused 'disable-shared.*plugins' --disable-shared
refused '/no such: .* blanks' --prefix='/no such'
refused '/no such/lib: .* blanks' --libdir='/no such/lib'
