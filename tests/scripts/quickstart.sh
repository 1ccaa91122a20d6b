# quickstart.sh - ./quickstart over a machine of stand-ins, of which apt-get's makes appear what a package would bring: what is
# installed, what is run, what is said where something is missing. No package is fetched, nothing is built.
. "$top_srcdir/tests/cli/lib.sh"
unset CC CEKERNELS_DEVICES CEKERNELS_PLUGINS
OCL_ICD_VENDORS=$scratch/vendors
LC_ALL=C
export OCL_ICD_VENDORS LC_ALL
needed="autoconf automake gcc libc6-dev libjansson-dev libtool make pkg-config zlib1g-dev"
opencl="clinfo ocl-icd-opencl-dev opencl-headers pocl-opencl-icd"

# stand_in FILE - a program from the rest of the input; in it, \$there is the folder with a file for each package.
stand_in() {
    { echo '#!/bin/sh'; echo "there=$scratch/there programs=$scratch/programs bin=$scratch/bin"; cat; } >"$1"
    chmod +x "$1"
}

# machine PACKAGE... - a fresh one: the tree unbuilt, these packages installed.
machine() {
    rm -rf "$scratch/bin" "$scratch/there" "$scratch/programs" "$scratch/tree" "$scratch/vendors"
    mkdir -p "$scratch/bin" "$scratch/there" "$scratch/programs" "$scratch/tree/build/tests" "$scratch/vendors" || exit 99
    for tool in sh awk cat chmod cp date dirname env getconf grep ls mkdir mktemp rm sed tail touch tr; do
        ln -s "$(command -v $tool)" "$scratch/bin/$tool" || exit 99
    done
    stand_in "$scratch/bin/id" <<'END'
echo 0
END
    stand_in "$scratch/bin/apt-get" <<'END'
echo "$*" >>"$there/../apt"
what=install packages=
for word; do
    case $word in --print-uris | --download-only | update) what=$word ;; -* | install) ;; *) packages="$packages $word" ;; esac
done
for package in $packages; do
    [ ! -f "$there/not-$package" ] || { echo "E: Unable to locate package $package" >&2; exit 100; }
    [ ! -f "$there/$package" ] || continue
    case $what in
        --print-uris) echo "'http://archive/$package.deb' $package.deb 1000000 SHA256:0" ;;
        install)
            touch "$there/$package"
            case $package in autoconf) program=autoreconf ;; libtool) program=libtoolize ;; *) program=$package ;; esac
            [ ! -f "$programs/$program" ] || cp "$programs/$program" "$bin/" ;;
    esac
done
END
    stand_in "$scratch/programs/gcc" <<'END'
test -f "$there/libc6-dev"
END
    stand_in "$scratch/programs/pkg-config" <<'END'
case $2 in jansson) test -f "$there/libjansson-dev" ;; zlib) test -f "$there/zlib1g-dev" ;;
    OpenCL) test -f "$there/ocl-icd-opencl-dev" ;; *) false ;; esac
END
    stand_in "$scratch/programs/clinfo" <<'END'
[ ! -f "$there/pocl-opencl-icd" ] && [ ! -f "$there/driver" ] || echo ' `-- Device #0: x'
END
    for program in make autoreconf automake libtoolize; do stand_in "$scratch/programs/$program" </dev/null; done
    cp "$top_srcdir/quickstart" "$scratch/tree/quickstart" || exit 99
    touch "$scratch/tree/Makefile.in"
    stand_in "$scratch/tree/configure" <<'END'
touch Makefile
if [ -f "$there/ocl-icd-opencl-dev" ]; then echo HAVE_OPENCL=yes; else echo HAVE_OPENCL=no; fi >tests/env.sh
END
    cp "$scratch/tree/configure" "$scratch/tree/build/config.status"
    stand_in "$scratch/tree/build/cekernels-bench" </dev/null
    # shellcheck disable=SC2086 # one word per package
    [ $# = 0 ] || PATH=$scratch/bin "$scratch/bin/apt-get" install "$@"
    rm -f "$scratch/apt"
}

# quickstart CODE ARG... - it ends with this code.
quickstart() {
    want=$1
    shift
    checks=$((checks + 1))
    PATH=$scratch/bin "$scratch/tree/quickstart" "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    [ "$got" -eq "$want" ] || wrong "quickstart $*: exit code $got, not $want: $(cat "$scratch/out" "$scratch/err")"
}
there_are() {
    checks=$((checks + 1))
    got=$(cd "$scratch/there" && echo *)
    [ "$got" = "$*" ] || wrong "installed: $got, not $*"
}
says() {
    checks=$((checks + 1))
    grep -q -e "$1" "$scratch/out" "$scratch/err" || wrong "no \"$1\" in: $(cat "$scratch/out" "$scratch/err")"
}
says_not() {
    checks=$((checks + 1))
    ! grep -q -e "$1" "$scratch/out" "$scratch/err" || wrong "\"$1\" in: $(cat "$scratch/out" "$scratch/err")"
}
no_apt() {
    checks=$((checks + 1))
    [ ! -e "$scratch/apt" ] || wrong "apt-get was called: $(cat "$scratch/apt")"
}
all_of() { echo $(printf '%s\n' "$@" | sort); }
on_two='^\$ build/cekernels-bench train .*--steps 20 .*-d cpu,opencl:0 --shares=equal$'
# shellcheck disable=SC2086 # one word per package, in all calls below
{
    # A bare machine gets what the build needs, and OpenCL with a driver; each part's time and bytes are told.
    machine
    quickstart 0
    there_are "$(all_of $needed $opencl)"
    says '^\$ build/cekernels-bench devices$'
    says '^\$ build/cekernels-bench predict lenet5'
    says "$on_two"
    says '^== [0-9]* s: 13 packages ([0-9]* s downloading 13 MB, [0-9]* s installing), [0-9]* s building, [0-9]* s running$'

    # A driver that has a device is enough; a driver's file that leads to none is not.
    machine $needed clinfo driver
    quickstart 0
    there_are "$(all_of $needed clinfo driver ocl-icd-opencl-dev opencl-headers)"
    says "$on_two"
    machine $needed
    touch "$scratch/vendors/gone.icd"
    quickstart 0
    there_are "$(all_of $needed $opencl)"

    # Nothing is missing: nothing is installed.
    machine $needed $opencl
    quickstart 0
    no_apt
    says '^== [0-9]* s: nothing installed, [0-9]* s building, [0-9]* s running$'

    # Without leave to install: what the build needs is named, what it can do without is left out aloud.
    machine
    quickstart 1 --no-install
    no_apt
    says "missing: gcc libc6-dev make"
    machine $needed
    quickstart 0 --no-install
    no_apt
    says 'no run on two devices: the OpenCL plugin is not built'
    says_not "$on_two"

    # A build folder from before OpenCL was there learns of it.
    quickstart 0
    says '^== configure again$'
    says "$on_two"

    # No such package here: said, and the rest goes on.
    machine $needed ocl-icd-opencl-dev opencl-headers
    touch "$scratch/there/not-pocl-opencl-icd"
    quickstart 0
    says 'Unable to locate package pocl-opencl-icd'
    says 'no run on two devices: no OpenCL driver'
}
finish
