#!/bin/sh
# embed.sh FILE... - prints C with the text of each kernel source, for cek__gpu_source_text().
#
# Run in the top folder of the sources. Comments and indentation stay: a build log that quotes a line should show it. One
# string literal per line. What a source includes takes the place of that line, since devices' compilers have no files: a
# name alone stands beside the source, one with a folder is read from the top.
set -eu
echo '/* Made by kernels/embed.sh. */'
echo '#include "backends/gpu/gpu.h"'
echo 'const cek__gpu_source cek__gpu_sources[] = {'
for file; do
    echo "    { \"${file##*/}\","
    text=$(awk -v folder="${file%/*}" '
        /^#include "/ {
            split($0, part, "\"")
            path = index(part[2], "/") ? part[2] : folder "/" part[2]
            while ((got = (getline line < path)) > 0) print line
            if (got < 0) { print path " cannot be read" >"/dev/stderr"; exit 1 }
            next
        }
        { print }' "$file")
    printf '%s\n' "$text" | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/      "/' -e 's/$/\\n"/'
    echo '    },'
done
echo '    { NULL, NULL },'
echo '};'
