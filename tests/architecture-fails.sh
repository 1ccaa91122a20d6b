# architecture-fails.sh - architecture.sh must fail on each kind of wrong arrow, and pass on the
# tree beside it without one.
set -u
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failures=0

fresh_tree() {
    rm -rf "$work/tree"
    for folder in include/cekernels core/base core/device core/tensor nn/model nn/train backends/cpu backends/gpu \
        kernels/cpu spec bench; do
        mkdir -p "$work/tree/$folder"
    done
    echo '#include <stdint.h>' >"$work/tree/include/cekernels/plugin.h"
    echo '#include <cekernels/plugin.h>' >"$work/tree/include/cekernels/cekernels.h"
    echo '#include "cekernels/plugin.h"' >"$work/tree/core/base/status.h"
    echo '#include "../base/status.h"' >"$work/tree/core/device/device.h"
    echo '#include "core/device/device.h"' >"$work/tree/core/tensor/tensor.h"
    echo '#include "core/base/status.h"' >"$work/tree/nn/model/model.h"
    echo '#include "nn/model/model.h"' >"$work/tree/nn/train/trainer.h"
    echo '#include <cekernels/plugin.h>' >"$work/tree/kernels/cpu/gemm.h"
    echo '#include "kernels/cpu/gemm.h"' >"$work/tree/backends/cpu/gemm.c"
    echo '#include <cekernels/plugin.h>' >"$work/tree/spec/gemm.h"
    echo '#include <cekernels/cekernels.h>' >"$work/tree/bench/main.c"
    # create.c calls tuner.c, which calls op.c; inside.h is what sources of op.c's kind share.
    echo '#include <cekernels/plugin.h>' | tee "$work/tree/backends/gpu/create.h" >"$work/tree/backends/gpu/op.h"
    echo '#include "backends/gpu/op.h"' | tee "$work/tree/backends/gpu/tuner.h" "$work/tree/backends/gpu/inside.h" \
        >"$work/tree/backends/gpu/tuner.c"
    echo '#include "backends/gpu/tuner.h"' >"$work/tree/backends/gpu/create.c"
    echo '#include "backends/gpu/inside.h"' >"$work/tree/backends/gpu/op.c"
}

# refused FILE LINE TEXT - with LINE added to FILE, the check fails and says TEXT.
refused() {
    fresh_tree
    mkdir -p "$(dirname "$work/tree/$1")"
    echo "$2" >>"$work/tree/$1"
    if "$SHELL" "$srcdir/tests/architecture.sh" "$work/tree" >"$work/out"; then
        echo "accepted: $2 in $1"
        failures=$((failures + 1))
    elif ! grep -qF "$3" "$work/out"; then
        echo "refused $2 in $1, but not with \"$3\":"
        cat "$work/out"
        failures=$((failures + 1))
    fi
}

SHELL=${SHELL:-/bin/sh}
fresh_tree
if ! "$SHELL" "$srcdir/tests/architecture.sh" "$work/tree" >"$work/out"; then
    echo "a correct tree is refused:"
    cat "$work/out"
    failures=1
fi
grep -q '^core/tensor *-> core/device *1$' "$work/out" || { echo "an arrow is not printed"; failures=1; }

refused core/base/log.c '#include "core/device/device.h"' 'core/base may not include core/device'
refused core/device/device.c '#include "../tensor/tensor.h"' 'core/device may not include core/tensor'
refused core/tensor/ops.c '#include "nn/model/model.h"' 'core/tensor may not include nn/model'
refused core/tensor/ops.c '#  include "backends/cpu/gemm.c"' 'core/tensor may not include backends/cpu'
refused nn/model/plan.c '#include "../train/trainer.h"' 'nn/model may not include nn/train'
refused nn/train/replica.c '#include "core/device/device.h"' 'nn/train may not include core/device'
refused backends/cpu/device.c '#include "core/base/status.h"' 'backends/cpu may not include core/base'
refused backends/cpu/device.c '#include <cekernels/cekernels.h>' 'backends/cpu may not include api'
refused backends/cpu/device.c '#include <core/base/status.h>' 'backends/cpu may not include core/base'
refused kernels/cpu/gemm.c '#include "backends/cpu/gemm.c"' 'kernels/cpu may not include backends/cpu'
refused bench/train.c '#include "nn/train/trainer.h"' 'bench may not include nn/train'
refused bench/chart/draw.c '#include "bench/main.c"' 'bench/chart may not include bench'
refused bench/chart/draw.c '#include "spec/gemm.h"' 'bench/chart may not include spec'
refused core/device/device.c '#include "misspelt.h"' 'misspelt.h: no such file'
refused core/extra/thing.c '#include <stdio.h>' 'has no place in the house'
refused elsewhere/thing.c '#include <stdio.h>' 'has no place in the house'
refused include/cekernels/plugin.h '#include <stdio.h>' 'the door needs'
refused include/cekernels/plugin.h '#include "cekernels/cekernels.h"' 'in a circle'
refused backends/gpu/op.h '#include "inside.h"' 'files of one folder include each other in a circle'
refused backends/gpu/op.c '#include "backends/gpu/tuner.h"' 'files of one folder include each other in a circle'
refused backends/gpu/op.c '#include "backends/gpu/create.h"' 'files of one folder include each other in a circle'
rm -rf "$work/tree" && mkdir "$work/tree"
"$SHELL" "$srcdir/tests/architecture.sh" "$work/tree" >/dev/null && { echo "an empty tree is accepted"; failures=1; }
[ "$failures" = 0 ] && echo "every wrong arrow was refused"
exit $((failures > 0))
