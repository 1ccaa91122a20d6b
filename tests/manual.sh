# manual.sh - the manuals are correct mdoc.
set -u
[ "$MANDOC" != no ] || { echo "no mandoc"; exit 77; }
set -- "$top_srcdir"/man/*.[1-8]
[ -f "$1" ] || { echo "no manual in $top_srcdir/man"; exit 1; }
"$MANDOC" -T lint -W warning "$@"
