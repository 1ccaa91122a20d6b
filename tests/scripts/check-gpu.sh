# check-gpu.sh - scripts/check-gpu on what every machine has: two CPU devices pass, what is missing is skipped and why,
# and a section that fails or hangs is told, stops no other, and makes the exit status 1.
. "$top_srcdir/tests/cli/lib.sh"
[ "$SANITIZERS" = no ] || { echo "skipped: what it runs is tested under the sanitizers elsewhere"; exit 77; }
CEKERNELS_PLUGINS==cpu
CEKERNELS_CPU_DEVICES=2
PYTHON=false  # no torch, wherever this runs
unset CEKERNELS_PLUGIN_PATH
export CEKERNELS_PLUGINS CEKERNELS_CPU_DEVICES PYTHON

# gpu CODE ARG... - check-gpu ends with this code.
gpu() {
    want=$1
    shift
    checks=$((checks + 1))
    rm -rf "$scratch/logs"
    "$top_srcdir/scripts/check-gpu" --quick --out="$scratch/logs" --ops=softmax,reduce \
        --model='conv:4,3,s2 relu maxpool:2 dropout:0.2 flatten linear:10' "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    [ "$got" -eq "$want" ] || {
        wrong "check-gpu $*: exit code $got, not $want"
        tail -n 20 "$scratch/out" "$scratch/err"
    }
}
# says SECTION VERDICT TEXT - a line of the summary.
says() {
    checks=$((checks + 1))
    grep -Eq "^$1 +$2 +[0-9]+ s  .*$3" "$scratch/logs/summary" ||
        wrong "no '$1 $2 ... $3' in: $(cat "$scratch/logs/summary")"
}

gpu 0 --build "$top_builddir" --only=devices,check,train,providers,graphs,memory,limits,tiles,gemm,conv,step,sanitizer
says devices passed 'cpu:0 cpu:1 \(no GPU is among them\)'
says check passed 'required ([1-9][0-9]{2}) of \1 on each of 2 devices'
says train passed '3 runs, losses within 1e-5 of train-cpu:0'
says gemm skipped 'no cuda:0'
says providers skipped 'no cuda device'
for section in graphs memory limits tiles; do says $section skipped 'no GPU'; done
says sanitizer skipped 'no cuda device'
holds "$(wc -l <"$scratch/logs/summary") == 12 && $(wc -l <"$scratch/logs/train-all-cpu.losses") == 10"
gpu 0 --build="$top_builddir" --only gemm --cpu-peer
says gemm skipped 'no torch'
gpu 2 --only nonsense
gpu 2 --build="$scratch"

# A tree of its own, elsewhere: the real program but for one command, which fails, lies or hangs.
mkdir -p "$scratch/tree/bench/.libs" || exit 99
for part in core nn plugins; do ln -s "$top_builddir/$part" "$scratch/tree/$part" || exit 99; done
program() { # PATTERN COMMANDS... - what happens where the arguments match
    cat >"$scratch/tree/bench/.libs/cekernels-bench" <<END
#!/bin/sh
case "\$*" in $1) $2 ;; esac
exec "$top_builddir/bench/.libs/cekernels-bench" "\$@"
END
    chmod +x "$scratch/tree/bench/.libs/cekernels-bench"
}
program 'check*' 'echo "cpu:0: FAILED: a case"; exit 1'
gpu 1 --build="$scratch/tree" --only=check,train
says check failed 'check-cpu: exit status 1 .*cpu:0: FAILED: a case'
says train passed '3 runs'
program 'train*cpu:1*' 'echo step,loss; for i in 1 2 3 4 5 6 7 8 9 10; do echo $i,2.5; done; exit 0'
gpu 1 --build="$scratch/tree" --only=train,devices
says train failed 'train-cpu:1: losses differ from train-cpu:0'
says devices passed cpu:0
# A device whose sums come in another order each time is held against itself; one that is wrong in the same way is not.
shifted() { # BY - the losses of the real program, times 1 + BY; n counts the runs
    echo "\"$top_builddir/bench/.libs/cekernels-bench\" \"\$@\" | awk -F, -v OFS=, -v n=\$(echo >>$scratch/runs; wc -l <$scratch/runs) 'NR > 1 { \$2 *= 1 + $1 } 1'; exit 0"
}
program 'train*cpu:1*' "$(shifted '2e-5 * n')"
gpu 0 --build="$scratch/tree" --only=train
says train passed 'train-cpu:1 within ten times its own noise'
program 'train*cpu:1*' "$(shifted 2e-5)"
gpu 1 --build="$scratch/tree" --only=train
says train failed 'train-cpu:1: losses differ from train-cpu:0: 2'
program 'train*cpu:1*' 'echo step,loss; exit 0'
gpu 1 --build="$scratch/tree" --only=train
says train failed 'lines are missing'
program 'train*' 'sleep 60'
gpu 1 --build="$scratch/tree" --only=train,devices --time-limit=15
says train failed 'the time limit of 5 s was reached'
says devices passed cpu:0
program 'devices*' 'exit 3'
gpu 1 --build="$scratch/tree" --only=devices,check,train
says devices failed 'exit status 3'
says check skipped 'no device'
finish
