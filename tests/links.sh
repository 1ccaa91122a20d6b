# links.sh - what the built objects need and show: the core and the CPU plugin need libc and libm
# alone, a plugin exports its door alone and needs no symbol of ours, and everything is linked as
# hardened as configure promised; and what runs load.
set -u
[ "$SANITIZERS" = no ] || { echo "a sanitizer's run time is linked"; exit 77; }
command -v readelf >/dev/null || { echo "no readelf"; exit 99; }
failures=0
wrong() { echo "$*"; failures=$((failures + 1)); }

# needs FILE NAME... - FILE's direct dependencies are among NAMEs (threads and dlopen have libraries
# of their own in old libcs).
needs() {
    file=$1
    shift
    readelf -hW "$file" >/dev/null 2>&1 || { wrong "$file: not built"; return; }
    for need in $(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\.so.*\]/\1/p'); do
        case " $* libpthread libdl ld-linux-x86-64 ld-linux-aarch64 " in
            *" $need "*) ;;
            *) wrong "$file: needs $need" ;;
        esac
    done
}

# A thread that was left inside a device would return to their code.
for library in core/.libs/libcekernels.so nn/.libs/libcekernels-nn.so; do
    readelf -dW "$top_builddir/$library" | grep -q NODELETE || wrong "$library: dlclose would take it away"
done

needs "$top_builddir/core/.libs/libcekernels.so" libc libm
needs "$top_builddir/nn/.libs/libcekernels-nn.so" libc libm libz libcekernels
for plugin in cpu reference sim; do
    object=$TEST_PLUGIN_DIR/$plugin.so
    needs "$object" libc libm
    exported=$(readelf --dyn-syms -W "$object" | awk '$7 != "UND" && $5 != "LOCAL" && $8 != "" && $1 ~ /^[0-9]+:$/ { print $8 }')
    [ "$exported" = cek_plugin_query ] || wrong "$object: exports $(echo $exported)"
    missing=$(readelf --dyn-syms -W "$object" | awk '$7 == "UND" && $8 ~ /^cek_/ { print $8 }')
    [ -z "$missing" ] || wrong "$object: expects $(echo $missing) of its host"
done

for object in core/.libs/libcekernels.so nn/.libs/libcekernels-nn.so plugins/.libs/cpu.so bench/.libs/cekernels-bench; do
    for name in $(readelf --dyn-syms -W "$top_builddir/$object" | awk '$7 != "UND" && $5 == "GLOBAL" && $4 == "FUNC" { sub(/@.*/, "", $8); print $8 }'); do
        case $name in cek_* | _init | _fini | _start | main) ;; *) wrong "$object: exports $name" ;; esac
    done
    readelf -lW "$top_builddir/$object" | grep -q GNU_RELRO || wrong "$object: no RELRO"
    readelf -dW "$top_builddir/$object" | grep -Eq 'BIND_NOW|FLAGS.* NOW' || wrong "$object: symbols are bound lazily"
    readelf -lW "$top_builddir/$object" | grep GNU_STACK | grep -q RWE && wrong "$object: executable stack"
    # The object that -ffast-math links in switches the whole process to flush-to-zero when it is loaded.
    readelf -sW "$top_builddir/$object" | grep -qw set_fast_math && wrong "$object: linked with fast-math"
done
# loads PLUGIN COMMAND... - by the dynamic linker's own account nothing is loaded beside our libraries and theirs but this
# plugin ('': none), though nobody keeps the others away.
loads() {
    plugin=$1
    shift
    found=$(LD_LIBRARY_PATH=$top_builddir/core/.libs:$top_builddir/nn/.libs LD_DEBUG=files CEKERNELS_PLUGINS= \
        "$top_builddir/bench/.libs/cekernels-bench" "$@" 2>&1 >/dev/null | sed -n 's,.*calling init: .*/\([^/]*\)$,\1,p' |
        grep -v -E '^(libcekernels(-nn)?|libc|libm|libz|libjansson|libpthread|libdl|ld-linux-.*)\.so')
    [ "$found" = "$plugin" ] || wrong "cekernels-bench $*: loads" $found
}
if LD_DEBUG=help "$top_builddir/bench/.libs/cekernels-bench" 2>&1 | grep -q '^ *files '; then
    loads '' help
    loads '' train --help
    loads cpu.so train lenet5 --steps 1 -d cpu
    loads reference.so gemm -s 8x8x8 -d reference
else
    echo "this linker gives no account of what it loads"
fi

[ "$failures" = 0 ] && echo "libc and libm alone; one exported symbol per plugin; hardened; no driver that was not asked for"
exit $((failures > 0))
