# devices.sh - the devices are those of clinfo, in its order, with its properties; simulators join
# only when named; sub-devices; one processor is used once; drivers are not asked where that is not
# wanted.
. "$top_srcdir/tests/opencl/lib.sh"

# The values of a property in clinfo's order, one a line.
listed() {
    sed -n "s/^\[[^]*]*\/[0-9]*\] *$1  *//p" "$scratch/clinfo" | sed 's/ *$//'
}
nth() { # PROPERTY NUMBER
    listed "$1" | sed -n "$2p"
}
same() { # WHAT OURS THEIRS
    checks=$((checks + 1))
    [ "$2" = "$3" ] || wrong "$1: \"$2\", but clinfo says \"$3\""
}
agrees() {
    clinfo --raw >"$scratch/clinfo" 2>/dev/null
    run 0 devices --json
    count=$(listed CL_DEVICE_NAME | wc -l)
    holds "$(grep -c '"device": "opencl:' "$scratch/out") == $count && $count >= $1"
    line=1
    while [ $line -le "$count" ]; do
        name=opencl:$((line - 1)) at=0
        while [ "$("$json" devices.$at.device <"$scratch/out")" != $name ]; do at=$((at + 1)); done
        device=devices.$at
        same "$name, name" "$(value $device.name)" "$(nth CL_DEVICE_NAME $line)"
        same "$name, vendor" "$(value $device.vendor)" "$(nth CL_DEVICE_VENDOR $line)"
        same "$name, compute units" "$(value $device.compute_units)" "$(nth CL_DEVICE_MAX_COMPUTE_UNITS $line)"
        same "$name, memory" "$(value $device.total_bytes)" "$(nth CL_DEVICE_GLOBAL_MEM_SIZE $line)"
        same "$name, largest memory" "$(value $device.max_alloc_bytes)" "$(nth CL_DEVICE_MAX_MEM_ALLOC_SIZE $line)"
        case $(nth CL_DEVICE_TYPE $line) in
            *GPU*) kind=gpu ;;
            *CPU*) kind=cpu ;;
            *) kind=accelerator ;;
        esac
        same "$name, kind" "$(value $device.kind)" $kind
        version="$(nth CL_DRIVER_VERSION $line), $(nth CL_DEVICE_VERSION $line | cut -c1-24)"
        same "$name, versions" "$(value $device.driver | cut -c1-${#version})" "$version"
        line=$((line + 1))
    done
}
if command -v clinfo >/dev/null; then
    agrees 1
    # Beside every driver of this machine a simulator, which is a platform of its own.
    icd=$(find /usr/lib /usr/local/lib -name 'liboclgrind-rt-icd.so' 2>/dev/null | head -1)
    if [ -n "$icd" ] && [ -z "${OCL_ICD_VENDORS-}" ]; then
        mkdir "$scratch/vendors"
        cp /etc/OpenCL/vendors/*.icd "$scratch/vendors"
        echo "$icd" >"$scratch/vendors/oclgrind.icd"
        (
            OCL_ICD_VENDORS=$scratch/vendors
            export OCL_ICD_VENDORS
            agrees 2
            at=0
            while [ "$(value devices.$at.processor)" != simulated ]; do at=$((at + 1)); done
            same "the simulator joins" "$(value devices.$at.joins)" false
            simulator=$(value devices.$at.device)
            run 0 train 'flatten linear:10' --steps=1 -d opencl --json
            if grep -q "\"$simulator\"" "$scratch/out"; then wrong "the simulator was not named, but used"; fi
            run 0 check -d "$simulator" -t f32 softmax --json
            same "the simulator" "$(value passed)" true
            echo "$checks $failures" >"$scratch/counts"
        )
        read -r checks failures <"$scratch/counts" || wrong "the two platforms were not compared"
    fi
else
    echo "no clinfo: names and numbers are not compared"
fi

# The CPU plugin wins over OpenCL for a CPU, unless both are named.
if grep -q '"processor": "cpu"' "$scratch/devices"; then
    run 0 train 'flatten linear:10' --steps=2 --json
    if grep -q '"opencl:' "$scratch/out"; then wrong "the processor was used twice"; fi
    run 0 train 'flatten linear:10' --steps=2 -d cpu,opencl:0 --json
    grep -q '"opencl:0' "$scratch/out" || wrong "opencl:0 was named, but not used"
fi

# Sub-devices. PoCL says how many units there are to share.
POCL_MAX_PTHREAD_COUNT=3
export POCL_MAX_PTHREAD_COUNT
for parts in 1 2 3; do
    CEKERNELS_OPENCL_SPLIT=$parts
    export CEKERNELS_OPENCL_SPLIT
    run 0 devices --json
    grep -q "\"opencl:$((parts - 1))\"" "$scratch/out" || wrong "no opencl:$((parts - 1)) with $parts parts"
    if grep -q "\"opencl:$parts\"" "$scratch/out"; then wrong "there is opencl:$parts with $parts parts"; fi
done
# Launches of one kernel over grids of many sizes on three devices at once: what PoCL keeps of
# kernels must not get mixed up.
run 0 train mnist-cnn -d opencl --shares=5,4,3 --steps=3 --json
holds "$(value devices) == 3"
unset CEKERNELS_OPENCL_SPLIT
explained() { # VARIABLE VALUE TEXT: the plugin is not there, and the report says why
    checks=$((checks + 1))
    env "$1=$2" "$CEKERNELS_BENCH" devices >"$scratch/out" 2>&1
    grep -q -e "$3" "$scratch/out" || wrong "$1=$2 is not explained"
    if grep -q '^opencl:' "$scratch/out"; then wrong "$1=$2, but there are devices"; fi
}
explained CEKERNELS_OPENCL_SPLIT 60 opencl_split=60
explained CEKERNELS_OPENCL_SPLIT none opencl_split
explained CEKERNELS_OPENCL_CACHE here 'opencl_cache="here"'
explained CEKERNELS_PLUGINS -opencl 'left out by CEKERNELS_PLUGINS=-opencl'
mkdir "$scratch/nobody"
explained OCL_ICD_VENDORS "$scratch/nobody" 'no OpenCL platform'
finish
