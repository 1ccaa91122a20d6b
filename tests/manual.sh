# manual.sh - the manuals are correct mdoc, refer to pages that exist, and tell of every slot,
# status and profile of plugin.h; those of section 3 have every function of the headers, each in one page, as declared.
set -u
set -- "$top_srcdir"/man/*.[1-8]
[ -f "$1" ] || { echo "no manual in $top_srcdir/man"; exit 1; }
header=$top_srcdir/include/cekernels/plugin.h
page=$top_srcdir/man/cekernels-plugin.7
failures=0
wrong() { echo "manual: $*"; failures=$((failures + 1)); }

# told MACRO NAME... - the page marks up each of these names.
told() {
    macro=$1
    shift
    [ $# -ge 4 ] || wrong "plugin.h was not understood: only $# for $macro"
    for name in "$@"; do
        grep -Eq "^\.(It )?$macro $name( |\$)" "$page" || wrong "cekernels-plugin(7) does not tell of $name"
    done
}
# shellcheck disable=SC2046 # words are wanted
told Fn $(sed -n '/^typedef struct cek_plugin {/,/^} cek_plugin;/s/.*(\*\([a-z_]*\))(.*/\1/p' "$header")
# shellcheck disable=SC2046
told Dv $(sed -n '/^typedef uint32_t cek_status;/,/^};/s/^ *\(CEK_[A-Z_]*\) = .*/\1/p' "$header") \
    $(sed -n 's/^ *\(CEK_PROFILE_[A-Z]*\) = .*/\1/p' "$header")

for reference in $(sed -n 's/^\.Xr \(cekernels[a-z-]*\) \([1-8]\).*/\1.\2/p' "$@" | sort -u); do
    [ -f "$top_srcdir/man/$reference" ] || wrong "no page $reference, which others refer to"
done
"$top_srcdir/scripts/manual-synopsis" check || failures=$((failures + 1))
[ "$failures" -eq 0 ] || exit 1
[ "$MANDOC" != no ] || { echo "no mandoc: the pages' form was not looked at"; exit 77; }
"$MANDOC" -T lint -W warning "$@"
