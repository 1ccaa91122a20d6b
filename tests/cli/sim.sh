# sim.sh - `check` over simulated devices: conformance with another plugin inside is that plugin's own, count for count.
. "$top_srcdir/tests/cli/lib.sh"

CEKERNELS_SIM_DEVICES=1
export CEKERNELS_SIM_DEVICES

# same INNER OP...: INNER and sim with INNER inside give the same counts, all required cases among them.
same() {
    inner=$1
    shift
    CEKERNELS_SIM_INNER=$inner
    export CEKERNELS_SIM_INNER
    run 0 check --json -d "$inner:0" "$@"
    direct="$(value required) $(value required_passed) $(value optional) $(value optional_passed)"
    run 0 check --json -d sim:0 "$@"
    inside="$(value required) $(value required_passed) $(value optional) $(value optional_passed)"
    [ "$direct" = "$inside" ] || wrong "sim over $inner: $inside, but $inner itself: $direct"
    holds "$(value required) > 0 && $(value required_passed) == $(value required)"
}
same reference gemm conv_forward pool_forward pool_backward optimizer softmax cross_entropy copy
same cpu
# So it is where commands take time, beside the host: queues, events and deadlines are those of a device that works on its own.
for CEKERNELS_SIM_CLOCK in virtual real; do
    export CEKERNELS_SIM_CLOCK
    same reference softmax copy
done
unset CEKERNELS_SIM_CLOCK
# All of it, in two devices.
CEKERNELS_SIM_DEVICES=2
run 0 check --json -d sim softmax
holds "$(value required_passed) == $(value required)"
CEKERNELS_SIM_DEVICES=1

# What a device has done is in the results, on its own clock.
CEKERNELS_SIM_INNER=cpu
CEKERNELS_SIM_DEVICES=2
CEKERNELS_SIM_WORK=none
CEKERNELS_SIM_FLOPS=1T
export CEKERNELS_SIM_WORK CEKERNELS_SIM_FLOPS
run 0 train 'conv:4,3,s2 relu flatten linear:10' -d sim --steps 6 --json
holds "$(value devices.1.device_seconds) > 0 && $(value devices.1.compute_seconds) < $(value devices.1.device_seconds)"
holds "$(value devices.1.idle_share) > 0 && $(value devices.1.idle_share) < 1"
holds "$(value devices.0.exposed_seconds) < $(value devices.0.device_seconds)"
unset CEKERNELS_SIM_WORK CEKERNELS_SIM_FLOPS
CEKERNELS_SIM_DEVICES=1

# OpenCL inside, where there is a device: its work really runs beside the host. Small: drivers compile each kernel.
skipped=
if [ "$HAVE_OPENCL" = yes ]; then
    CEKERNELS_PLUGINS==opencl,sim
    CEKERNELS_OPENCL_CACHE=$scratch/cache
    POCL_CACHE_DIR=$scratch/pocl
    export CEKERNELS_OPENCL_CACHE POCL_CACHE_DIR
    run 0 devices --json
    if grep -q '"opencl:0"' "$scratch/out"; then
        same opencl softmax
    else
        skipped="no OpenCL device"
    fi
else
    skipped="built without OpenCL"
fi
[ -z "$skipped" ] || echo "sim over opencl: skipped, $skipped"
finish
