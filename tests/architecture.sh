#!/bin/sh
# architecture.sh [TREE] - prints which folder includes which, and fails on an arrow that the house does not allow.
#
# Owns: the table of allowed arrows below. Reads every C, header and OpenCL file of the tree (tests
# excepted: they may look at anything). Fails on an arrow outside the table, on a folder that the
# table does not name, on an include that cannot be found, on a circle between folders or between
# the files of one, on a door that needs more than <stddef.h> and <stdint.h>, and on a folder of
# sources that ARCHITECTURE.md (where the tree has one) does not tell of, or a folder or source that
# it tells of and the tree lacks.
set -u
tree=${1:-${top_srcdir:-$(dirname "$0")/..}}
cd "$tree" || exit 99

# folder: what it may include beside itself. "door" is include/cekernels/plugin.h, "api" the other
# public headers, "gate" core/device/gate.h. A folder is its own files alone, one with /* has its subfolders too.
table='
door:
api:                 door
core/table:          door
core/base:           door api
gate:                api core/base
core/device:         door api core/table core/base gate
core/tensor:         door api core/base core/device
nn/program:          door api core/base
nn/graph:            door api core/base nn/program
nn/formats:          door api core/base
nn/model:            door api core/base nn/program nn/graph nn/formats
nn/layers:           door api core/base nn/graph nn/model
nn/nets:             api core/base nn/layers
nn/onnx:             door api core/base nn/formats nn/graph nn/model nn/layers
nn/images:           door api core/base
nn/data:             door api core/base nn/formats nn/images
nn/report:           api core/base nn/formats nn/model
nn/train:            door api core/base nn/formats nn/model nn/program gate
nn:                  api
kernels/cpu:         door
backends/common:     door
backends/host:       door backends/common
backends/reference:  door backends/common backends/host
backends/sim:        door backends/common
backends/cpu:        door backends/common backends/host kernels/cpu
backends/cpu/product: backends/cpu kernels/cpu
backends/cpu/conv:   backends/cpu backends/cpu/product kernels/cpu
backends/cpu/ops:    door backends/common backends/host backends/cpu backends/cpu/product backends/cpu/conv kernels/cpu
kernels/gpu:
kernels/opencl:      kernels/cpu
backends/gpu:        door backends/common kernels/gpu
backends/opencl:     door backends/common backends/host backends/gpu
backends/cuda:       door backends/common backends/host backends/gpu
plugins/*:           door backends/common backends/reference backends/sim backends/cpu/ops backends/opencl backends/cuda
spec/*:              door core/table
bench/chart:         api
bench/*:             api spec bench/chart
examples/*:          door api
'

# The folder in which a source may include the header of a source that includes its own: everywhere else
# a source and the header of its name count as one, so that what calls what has a direction.
entangled='core/device'

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
find . \( -name '.?*' -o -name 'build*' -o -name '_build' -o -path ./tests \) -prune -o \
    -type f \( -name '*.[ch]' -o -name '*.cl' -o -name '*.inc' \) -print | sed 's,^\./,,' | LC_ALL=C sort >"$work/files"
if ! [ -s "$work/files" ]; then
    echo "architecture: $tree has no sources"
    exit 1
fi

printf '%s' "$table" | LC_ALL=C awk -v files="$work/files" -v edges="$work/edges" \
    -v within="$work/within" -v entangled="$entangled" '
function folder_of(path,    dir) {
    if (path == "include/cekernels/plugin.h") return "door"
    if (path ~ /^include\/cekernels\//) return "api"
    if (path == "core/device/gate.h") return "gate"
    dir = path
    sub(/\/[^\/]*$/, "", dir)
    if (dir in named) return dir
    do if (dir in deep) return dir
    while (sub(/\/[^\/]*$/, "", dir))
    return ""
}
function normal(path,    n, i, m, part, out) {
    n = split(path, part, "/"); m = 0
    for (i = 1; i <= n; i++) {
        if (part[i] == "." || part[i] == "") continue
        if (part[i] == ".." && m > 0) { m--; continue }
        kept[++m] = part[i]
    }
    for (i = 1; i <= m; i++) out = out (i > 1 ? "/" : "") kept[i]
    return out
}
# Where the compiler would find it: beside the file, then from the top, then among the public headers.
function resolve(from, name, quoted,    dir, path) {
    dir = from; sub(/\/[^\/]*$/, "", dir)
    if (quoted && (path = normal(dir "/" name)) in exists) return path
    if ((path = normal(name)) in exists) return path
    if ((path = normal("include/" name)) in exists) return path
    return ""
}
# An arrow between two files of one folder: as they stand, and source and header of one name as one.
function inside(from, to, here,    a, b) {
    print from, to > within
    a = from; b = to
    sub(/\.[^.]*$/, "", a); sub(/\.[^.]*$/, "", b)
    if (from ~ /\.c$/ && to ~ /\.h$/ && a != b && (b ".c") in exists && !(here in loose)) print a, b > within
}
function bad(text) { print "architecture: " text; wrong++ }

NF { name = $1; sub(/:$/, "", name); if (sub(/\/\*$/, "", name)) deep[name] = 1; named[name] = 1; order[++count] = name
     for (i = 2; i <= NF; i++) allowed[name, $i] = 1 }
END {
    for (i = split(entangled, part, " "); i > 0; i--) loose[part[i]] = 1
    while ((getline path < files) > 0) { list[++total] = path; exists[path] = 1 }
    for (f = 1; f <= total; f++) {
        from = list[f]; here = folder_of(from); line = 0
        if (here == "") { bad(from ": its folder has no place in the house; add one to the table"); continue }
        while ((getline text < from) > 0) {
            line++
            if (text !~ /^[ \t]*#[ \t]*include[ \t]*[<"]/) continue
            quoted = text ~ /include[ \t]*"/
            name = text; sub(/^[^<"]*[<"]/, "", name); sub(/[>"].*$/, "", name)
            to = resolve(from, name, quoted)
            if (to == "" && here == "door" && name != "stddef.h" && name != "stdint.h")
                bad(from ":" line ": " name ": the door needs <stddef.h> and <stdint.h> alone")
            if (to == "" && quoted && name != "config.h")
                bad(from ":" line ": " name ": no such file")
            if (to == "") continue
            there = folder_of(to)
            if (there == here) inside(from, to, here)
            if (there == here || there == "") continue
            arrows[here, there]++
            if (!((here, there) in allowed)) bad(from ":" line ": " here " may not include " there " (" name ")")
        }
        close(from)
    }
    for (i = 1; i <= count; i++)
        for (j = 1; j <= count; j++)
            if ((order[i], order[j]) in arrows) {
                printf "%-20s -> %-20s %4d\n", order[i], order[j], arrows[order[i], order[j]]
                print order[i], order[j] > edges
            }
    printf "%d files, %d violations\n", total, wrong
    exit wrong > 0
}'
status=$?

# no_circle EDGES WHAT - fails where the arrows have no order.
no_circle() {
    if [ -s "$1" ] && ! tsort "$1" >/dev/null 2>"$work/cycle"; then
        echo "architecture: $2 include each other in a circle:"
        sed 's/^tsort: *//' "$work/cycle"
        status=1
    fi
}
no_circle "$work/edges" folders
no_circle "$work/within" "files of one folder"

if [ -f ARCHITECTURE.md ]; then
    sed 's,/[^/]*$,,' "$work/files" | sort -u | while read -r folder; do
        case $folder in nn) continue ;; esac  # one file, the library's version
        grep -qF "\`$folder/\`" ARCHITECTURE.md || echo "architecture: ARCHITECTURE.md does not tell of $folder/"
    done >"$work/untold"
    grep -oE '(core|nn|backends|kernels|plugins|spec|bench|examples|tests|include)/[a-z0-9_/.-]*' ARCHITECTURE.md |
        sed 's/[.]*$//' | sort -u | while read -r path; do
        [ -e "$path" ] || echo "architecture: ARCHITECTURE.md tells of $path, which is not there"
    done >>"$work/untold"
    cat "$work/untold"
    [ -s "$work/untold" ] && status=1
fi
exit $status
