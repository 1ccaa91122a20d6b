# joins.sh - a device that cannot do the work, or is there twice, joins only when it is named, and the list of devices says
# why. The shim makes a GPU of the processor: it joins where nothing is wrong with it.
. "$top_srcdir/tests/opencl/lib.sh"
[ "$SANITIZERS" = no ] || { echo "skipped: a library cannot be preloaded before a sanitizer's"; exit 77; }
LD_PRELOAD=$top_builddir/tests/opencl/.libs/shim.so
SHIM_DEVICE=gpu
export LD_PRELOAD SHIM_DEVICE

# device N KEY - of opencl:N in the list.
device() {
    at=0
    while [ "$(value devices.$at.device)" != "opencl:$1" ] && [ $at -lt 20 ]; do at=$((at + 1)); done
    value "devices.$at.$2"
}
joins() { # WHAT N true|false TEXT
    checks=$((checks + 1))
    [ "$(device "$2" joins)" = "$3" ] || wrong "$1: opencl:$2 joins: $(device "$2" joins)"
    case $(device "$2" reason) in
        *"$4"*) ;;
        *) wrong "$1: the reason is \"$(device "$2" reason)\"" ;;
    esac
}
run 0 devices --json
joins "as it is" 0 true ''
[ -z "$(device 0 reason)" ] || wrong "there is a reason for what is not so"
run 0 train 'flatten linear:10' --steps=2 --json
grep -q '"opencl:0"' "$scratch/out" || wrong "a sound GPU does not join"

lacks() { # SETTING TEXT: what plain training does without, and what becomes of who insists
    export "${1?}"
    run 0 devices --json
    joins "$1" 0 false "$2"
    run 0 devices
    grep -q "^    joins  *only when named: .*$2" "$scratch/out" || wrong "$1: the report does not say why"
    run 0 train 'flatten linear:10' --steps=2 --json
    if grep -q '"opencl:0"' "$scratch/out"; then wrong "$1: it was not named, but used"; fi
    checks=$((checks + 1))
    "$CEKERNELS_BENCH" train 'flatten linear:10' --steps=2 -d opencl:0 >"$scratch/out" 2>"$scratch/err"
    [ $? -ne 0 ] && grep -q "$3" "$scratch/err" || wrong "$1: named, it says $(cat "$scratch/err")"
    unset "${1%%=*}"
}
lacks SHIM_COMPILER=no 'its driver has no compiler' CL_COMPILER_NOT_AVAILABLE
lacks SHIM_AVAILABLE=no 'not available' CL_DEVICE_NOT_AVAILABLE
lacks SHIM_VERSION=OLD 'it knows OpenCL 1.1 and OpenCL C 1.1, and 1.2 is needed' 'CL_INVALID'

# Only what takes long lists of arguments fails on such a device, so small networks may do.
SHIM_PARAMETERS=256 run 0 devices --json
joins "an embedded device" 0 false 'a kernel takes 256 bytes of arguments, and 624 are needed'
SHIM_PARAMETERS=624 run 0 devices --json
joins "just enough" 0 true ''

# A parameter that is larger than what the device gives at once, 800,000 bytes: it is left out where it joined by itself, and
# an error where it was named, alone or beside one that could.
net='flatten linear:512 relu linear:10'
says="opencl:0: parameter 1.weight has 1605632 bytes, .* and the device gives 800000 at once"
export SHIM_MEMORY=3200000
run 0 devices --json
joins "a device with little memory" 0 true ''
run 0 train "$net" --steps=2 --json
[ "$(value devices.0.device)" = cpu:0 ] && ! grep -q '"device": "opencl:0", "share"' "$scratch/out" ||
    wrong "who cannot hold a parameter was not left out: $(value devices)"
[ "$(value left_out.0.device)" = opencl:0 ] || wrong "who was left out is not told"
value left_out.0.reason | grep -q "$says" || wrong "left out because: $(value left_out.0.reason)"
run 0 train "$net" --steps=2 --devices=all --save="$scratch/saved"
grep -q "^left out: $says" "$scratch/out" || wrong "the table does not tell who was left out"
run 0 predict "$net" --load="$scratch/saved" --rows=1
grep -q "^left out: $says" "$scratch/out" || wrong "the prediction does not tell who was left out"
refused 6 "$says" train "$net" --steps=2 -d cpu,opencl:0
refused 6 "$says" train "$net" --steps=2 -d opencl:0
refused 6 "$says" predict "$net" --load="$scratch/saved" -d opencl:0
CEKERNELS_PLUGINS==opencl refused 6 "$says" train "$net" --steps=2
run 0 train 'flatten linear:10' --steps=2 --json
[ "$(value devices.1.device)" = opencl:0 ] || wrong "who can hold a smaller network was left out"
unset SHIM_MEMORY

# Two drivers for one device. oclgrind is the second one, disguised.
icd=$(find /usr/lib /usr/local/lib -name 'liboclgrind-rt-icd.so' 2>/dev/null | head -1)
if [ -n "$icd" ] && [ -z "${OCL_ICD_VENDORS-}" ]; then
    mkdir "$scratch/vendors"
    cp /etc/OpenCL/vendors/pocl.icd "$scratch/vendors/1.icd" || finish
    echo "$icd" >"$scratch/vendors/2.icd"
    OCL_ICD_VENDORS=$scratch/vendors SHIM_PLATFORM=disguised
    export OCL_ICD_VENDORS SHIM_PLATFORM
    run 0 devices --json
    joins "cards of two vendors" 0 true ''
    joins "cards of two vendors" 1 true ''
    SHIM_VENDOR=0x1002 run 0 devices --json
    first=0 second=1
    [ "$(device 0 joins)" = true ] || first=1 second=0
    joins "a card with two drivers" $first true ''
    joins "a card with two drivers" $second false "opencl:$first is the same, through another driver"
    SHIM_DEVICE=cpu run 0 devices --json
    joins "a processor with two drivers" 0 true ''
    joins "a processor with two drivers" 1 false 'opencl:0 is the same, through another driver'
    SHIM_DEVICE=cpu CEKERNELS_PLUGINS==opencl run 0 train 'flatten linear:10' --steps=2 --json
    if grep -q '"opencl:1"' "$scratch/out"; then wrong "the processor was used through both of its drivers"; fi
else
    echo "no oclgrind: second drivers are not tested"
fi
finish
