# drivers.sh - a driver that ends every process which asks for its devices ends none of ours: the load report says what
# became of the one that tried. What went well is remembered for as long as the drivers are the same.
. "$top_srcdir/tests/opencl/lib.sh"
[ "$SANITIZERS" = no ] || { echo "skipped: a driver that ends its process leaks"; exit 77; }
[ -z "${OCL_ICD_VENDORS-}" ] || { echo "skipped: the drivers are chosen by OCL_ICD_VENDORS"; exit 77; }
mkdir "$scratch/vendors"
cp /etc/OpenCL/vendors/*.icd "$scratch/vendors" || exit 99
echo "$top_builddir/tests/opencl/.libs/icd.so" >"$scratch/vendors/fake.icd"
OCL_ICD_VENDORS=$scratch/vendors
FAKE_ICD_LOG=$scratch/loads
export OCL_ICD_VENDORS FAKE_ICD_LOG

loads() {
    [ -f "$scratch/loads" ] && wc -l <"$scratch/loads" || echo 0
}
ended() { # WHEN TEXT: the report has it; the processor computes all the same, and no driver is loaded for it
    FAKE_ICD=$1
    export FAKE_ICD
    run 0 devices --json
    if grep -q '"opencl:0"' "$scratch/out"; then wrong "$1: there are OpenCL devices"; fi
    run 0 devices
    grep -q "^.*opencl.so: create: to ask all installed OpenCL drivers for their devices $2" "$scratch/out" ||
        wrong "$1: the report does not say so: $(grep opencl.so "$scratch/out")"
    run 0 train 'flatten linear:10' --steps=2 --json
    before=$(loads)
    run 0 train 'flatten linear:10' --steps=2 -d cpu --json
    holds "$(loads) == $before"
    run 3 train 'flatten linear:10' --steps=2 -d opencl
}
ended load 'ends the process by signal 6 (Aborted): LLVM ERROR: inconsistency'
ended devices 'ends the process by signal 6 (Aborted): LLVM ERROR: inconsistency'
ended exit 'ends the process'

# Another process looks, then this one; the second time nobody has to look.
FAKE_ICD=none
rm -f "$scratch/loads"
run 0 devices --json
grep -q '"opencl:0"' "$scratch/out" || wrong "a driver without devices takes those of the others away"
holds "$(loads) == 2"
run 0 devices --json
holds "$(loads) == 3"
touch -d 2001-01-01 "$scratch/vendors/fake.icd"  # another driver, as far as anybody can tell
run 0 devices --json
holds "$(loads) == 5"
CEKERNELS_OPENCL_CACHE=off run 0 devices --json
holds "$(loads) == 7"
FAKE_ICD=load run 0 train 'flatten linear:10' --steps=2 -d cpu --json
holds "$(loads) == 7"
finish
