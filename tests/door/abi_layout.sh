# abi_layout.sh - plugin.h has the layout of version 1.0, no padding, and nothing that a strict compiler minds, as C11 and as C++.
set -eu
layout=$top_srcdir/tests/door/abi_layout.c
strict="-I$top_srcdir/include -Wall -Wextra -Wpedantic -Wpadded -Werror -Wno-unused -fsyntax-only"

check() # LANGUAGE FLAGS...
{
    # shellcheck disable=SC2086 # words on purpose
    $CC $strict "$@" "$layout" || { echo "$*: the layout of plugin.h has changed"; exit 1; }
    # shellcheck disable=SC2086
    if $CC $strict "$@" -DABI_LAYOUT_MUST_FAIL "$layout" 2>/dev/null; then
        echo "$*: a wrong line passes, so nothing was checked"
        exit 1
    fi
    echo "$*: ok"
}

check -x c -std=c11
if echo 'int main() { return 0; }' | $CC -x c++ -fsyntax-only - 2>/dev/null; then
    check -x c++ -std=c++11
else
    echo "C++: $CC has no C++ front end, not checked"
fi
