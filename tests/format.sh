# format.sh - the C files are laid out as .clang-format says; skipped where that clang-format is not installed.
exec sh "$top_srcdir/scripts/check-format"
