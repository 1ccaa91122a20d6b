# tiles.sh - the kernels of products on the fake driver, whose compiler is the host's: every shape of their tiles.
. "$top_srcdir/tests/cuda/lib.sh"
with_compiler
. "$top_srcdir/tests/tiles.sh"
tiles cuda:0
finish
