#!/bin/sh
# embed.sh FILE... - prints C with the text of each kernel source, for cek__gpu_source_text().
#
# Comments and indentation stay: a build log that quotes a line should show it. One string literal per line.
set -eu
echo '/* Made by kernels/embed.sh. */'
echo '#include "backends/gpu/gpu.h"'
echo 'const cek__gpu_source cek__gpu_sources[] = {'
for file; do
    echo "    { \"${file##*/}\","
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/      "/' -e 's/$/\\n"/' "$file"
    echo '    },'
done
echo '    { NULL, NULL },'
echo '};'
