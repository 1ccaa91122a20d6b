# format.sh - the C files are laid out as .clang-format says, skipped where that clang-format is not installed, and no
# line is too long, in comments either.
long=$PWD/format-long.c
trap 'rm -f "$long"' EXIT
printf '/* %0115d */\n' 0 >"$long"
if said=$(sh "$top_srcdir/scripts/check-format" "$long") || [ "${said%%"
"*}" != "$long:1: 121 columns" ]; then
    echo "a comment of 121 columns is not found: $said"
    exit 1
fi
sh "$top_srcdir/scripts/check-format"
