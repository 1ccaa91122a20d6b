# installed.sh - called by `make installcheck`: the installed program, headers, libraries and manual
# work from where they are, with nothing of the build tree. With DESTDIR, from inside the staging
# folder.
set -u
[ "$SANITIZERS" = no ] || { echo "installcheck: a sanitized build is not for installing"; exit 1; }
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
srcdir=$(cd "$srcdir" && pwd)
unset CEKERNELS_PLUGIN_PATH CEKERNELS_PLUGINS CEKERNELS_DEVICES
failures=0
wrong() { echo "installcheck: $*" >&2; failures=$((failures + 1)); }

bench=$DESTDIR$bindir/cekernels-bench
PKG_CONFIG_PATH=$DESTDIR$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
if [ -n "$DESTDIR" ]; then
    LD_LIBRARY_PATH=$DESTDIR$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    PKG_CONFIG_SYSROOT_DIR=$DESTDIR
    export LD_LIBRARY_PATH PKG_CONFIG_SYSROOT_DIR
fi

# The program finds its libraries, and the library its plugins, where they were installed.
if "$bench" devices >"$work/devices" 2>&1; then
    grep -qF "$DESTDIR$libdir/cekernels/cpu.so" "$work/devices" || wrong "devices does not show the installed cpu.so"
else
    wrong "cekernels-bench devices failed"
fi
[ "$failures" = 0 ] || cat "$work/devices" >&2
if ! "$bench" check -d cpu gemm >"$work/check" 2>&1; then
    wrong "cekernels-bench check failed"
    tail -n 20 "$work/check" >&2
fi

# Each public header stands alone, in C and, where there is a compiler, in C++.
for header in plugin cekernels nn; do
    printf '#include <cekernels/%s.h>\nint main(void) { return 0; }\n' $header >"$work/$header.c"
    $CC -std=c11 -Wall -Wextra -pedantic -Werror -fsyntax-only -I"$DESTDIR$includedir" "$work/$header.c" ||
        wrong "<cekernels/$header.h> does not compile by itself as C11"
    if command -v c++ >/dev/null; then
        c++ -x c++ -Wall -Wextra -Werror -fsyntax-only -I"$DESTDIR$includedir" "$work/$header.c" ||
            wrong "<cekernels/$header.h> does not compile by itself as C++"
    fi
done

# A stranger's program, by pkg-config.
if flags=$($PKG_CONFIG --cflags --libs cekernels-nn cekernels); then
    # shellcheck disable=SC2086 # CC and flags are words
    $CC -std=gnu11 -o "$work/program" "$srcdir/examples/tutorial/01_devices.c" $flags -Wl,-rpath,"$DESTDIR$libdir" ||
        wrong "01_devices.c does not build by pkg-config"
    "$work/program" >"$work/program.out" 2>&1 || { wrong "01_devices.c fails"; cat "$work/program.out" >&2; }
else
    wrong "pkg-config does not find cekernels-nn"
fi

# The same by CMake, from where the installation is and from where it has been moved to.
by_cmake() { # by_cmake PREFIX - with the libraries below it
    rm -rf "$work/cmake"
    mkdir "$work/cmake"
    cat >"$work/cmake/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.10)
project(stranger C)
find_package(cekernels $version REQUIRED COMPONENTS nn)
foreach(wrong 0.0 99.0)
    find_package(cekernels \${wrong} QUIET CONFIG)
    if(cekernels_FOUND)
        message(FATAL_ERROR "version \${wrong} is found")
    endif()
endforeach()
find_package(cekernels $version QUIET COMPONENTS nothing)
if(cekernels_FOUND)
    message(FATAL_ERROR "the component 'nothing' is found")
endif()
add_executable(devices "$srcdir/examples/tutorial/01_devices.c")
target_link_libraries(devices PRIVATE cekernels::cekernels)
add_executable(train "$srcdir/examples/tutorial/04_train_on_all.c")
target_link_libraries(train PRIVATE cekernels::nn m)
END
    cmake -S "$work/cmake" -B "$work/cmake/build" -DCMAKE_C_COMPILER="${CC%% *}" -DCMAKE_PREFIX_PATH="$1" \
        >"$work/cmake.out" 2>&1 && cmake --build "$work/cmake/build" >>"$work/cmake.out" 2>&1 ||
        { wrong "a program does not build by CMake from $1"; tail -n 20 "$work/cmake.out" >&2; return; }
    for program in devices train; do
        "$work/cmake/build/$program" >"$work/program.out" 2>&1 ||
            { wrong "$program, built by CMake from $1, fails"; cat "$work/program.out" >&2; }
    done
}
if command -v cmake >/dev/null; then
    version=$($PKG_CONFIG --modversion cekernels)
    prefix=${libdir%/lib*}
    by_cmake "$DESTDIR$prefix"
    mkdir "$work/moved"
    cp -R "$DESTDIR$libdir" "$DESTDIR$includedir" "$work/moved" && by_cmake "$work/moved"
else
    echo "installcheck: no cmake: find_package(cekernels) was not tried"
fi

# A plugin of one's own: the installed examples, built out of tree by pkg-config, loaded, named, held against the
# conformance suite. own NAME PROFILE CASES...: the plugin of examples/NAME.
examples=$DESTDIR$docdir/examples
[ "$DESTDIR$($PKG_CONFIG --variable=examplesdir cekernels)" = "$examples" ] || [ -n "$DESTDIR" ] ||
    wrong "pkg-config does not know where the examples are"
own() {
    name=$1 profile=$2
    shift 2
    cp -R "$examples/$name" "$work/$name" || { wrong "no $examples/$name"; return; }
    chmod -R u+w "$work/$name"
    make -s -C "$work/$name" CC="$CC" PKG_CONFIG="$PKG_CONFIG" || { wrong "examples/$name does not build by pkg-config"; return; }
    "$bench" check --plugin="$(ls "$work/$name"/*.so)" "$@" >"$work/check" 2>&1 ||
        { wrong "the plugin of examples/$name fails its check"; cat "$work/check" >&2; }
    grep -q "profile $profile" "$work/check" || { wrong "check does not name the profile of $name"; cat "$work/check" >&2; }
    grep -Eq 'required ([1-9][0-9]*)/\1' "$work/check" || { wrong "check ran no required case on $name"; cat "$work/check" >&2; }
}
own plugin memory
own reference training device memory queue gemm softmax optimizer

# Nothing installed tells of a file of the sources that is not there.
for told in $(grep -ohE '(^|[^<a-z/.])(backends|bench|core|examples|kernels|nn|plugins|scripts|spec|tests)/[a-z_][a-z_./]*' \
    "$DESTDIR$includedir"/cekernels/*.h "$DESTDIR$mandir"/man[17]/cekernels* $(find "$examples" -type f) | grep -oE '[a-z].*' | sed 's/[.]*$//' | sort -u); do
    [ -e "$DESTDIR$docdir/$told" ] || [ -e "$examples/reference/$told" ] || wrong "what is installed tells of $told, which is not"
done

for page in man1/cekernels-bench.1 man3/cekernels.3 man3/cekernels-training.3 man7/cekernels-plugin.7; do
    [ -f "$DESTDIR$mandir/$page" ] || wrong "no manual $DESTDIR$mandir/$page"
done
[ "$failures" = 0 ] && echo "installcheck: programs, headers, libraries and manual work from $DESTDIR$libdir"
exit $((failures > 0))
