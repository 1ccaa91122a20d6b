# trace.sh - every file of --trace is what the Trace Event format wants; and the judge of that finds what is wrong.
. "$top_srcdir/tests/cli/lib.sh"
trace=$top_builddir/tests/cli/trace

# broken TEXT SED - the small trace, edited so, is refused with that text.
broken() {
    checks=$((checks + 1))
    sed "$2" "$scratch/good.json" >"$scratch/broken.json"
    ! cmp -s "$scratch/good.json" "$scratch/broken.json" || wrong "nothing was broken: $2"
    ! "$trace" "$scratch/broken.json" >"$scratch/said" || wrong "this is taken for a trace: $2"
    grep -q -e "$1" "$scratch/said" || wrong "$2: no \"$1\" in: $(cat "$scratch/said")"
}

cat >"$scratch/good.json" <<'END'
{"displayTimeUnit":"ms","otherData":{"not_recorded":0},"traceEvents":[
{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"host"}},
{"ph":"M","name":"thread_name","pid":1,"tid":0,"args":{"name":"a thread"}},
{"ph":"M","name":"process_name","pid":2,"tid":1,"args":{"name":"cpu:0"}},
{"ph":"M","name":"thread_name","pid":2,"tid":1,"args":{"name":"a stream"}},
{"ph":"X","pid":1,"tid":0,"ts":1.000,"dur":9.000,"name":"outer","args":{}},
{"ph":"X","pid":1,"tid":0,"ts":2.000,"dur":3.000,"name":"inner","args":{}},
{"ph":"X","pid":1,"tid":0,"ts":5.000,"dur":5.000,"name":"neighbour","args":{}},
{"ph":"X","pid":2,"tid":1,"ts":0.500,"dur":4.000,"name":"command","args":{}},
{"ph":"s","bp":"e","cat":"shard","name":"shard","id":7,"pid":1,"tid":0,"ts":3.500,"args":{}},
{"ph":"t","bp":"e","cat":"shard","name":"shard","id":7,"pid":2,"tid":1,"ts":2.500,"args":{}},
{"ph":"f","bp":"e","cat":"shard","name":"shard","id":7,"pid":1,"tid":0,"ts":7.500,"args":{}}
]}
END
sed -e '1s/.*/[/' -e '$s/.*/]/' "$scratch/good.json" >"$scratch/array.json"
checks=$((checks + 1))
"$trace" "$scratch/good.json" "$scratch/array.json" || wrong "a good trace is refused, as an object or an array"

broken 'near end of file' '$d'
broken 'neither an array' 's/traceEvents/events/'
broken 'events are missing' 's/"not_recorded":0/"not_recorded":3/'
broken "has the phase 'Y'" '/"inner"/s/"X"/"Y"/'
broken 'without a name' '/"inner"/s/"name":"inner",//'
broken 'without process or thread' '/"inner"/s/"tid":0,//'
broken 'no begin or no length' '/"inner"/s/"dur":3.000,//'
broken 'lasts -3 us' '/"inner"/s/"dur":3/"dur":-3/'
broken 'begins before' '/"neighbour"/s/5.000/1.500/'
broken 'ends behind the one' '/"neighbour"/s/"dur":5.000/"dur":5.001/'
broken 'ends behind the one' '/"inner"/s/"dur":3.000/"dur":3.001/;/"neighbour"/s/"dur":5/"dur":4/'
broken 'process 2 has spans, and no name' '/thread_name.*"pid":2/d'
broken 'process 2 has spans, and no name' '/process_name.*"pid":2/d'
broken 'a thread_name without a name' 's/"a stream"/""/'
broken 'arrow 7 has no end' '/"ph":"f"/d;/"ph":"t"/s/,$//'
broken 'arrow 7 has no begin' '/"ph":"s"/d'
broken 'arrow 7 begins twice' '/"ph":"t"/s/"t"/"s"/'
broken 'arrow 7 goes on behind its end' '/"ph":"t"/s/"t"/"f"/'
broken 'arrow 7 is at no span' '/"ph":"f"/s/7.500/10.500/'
broken 'tied to the next span' '/"ph":"f"/s/"bp":"e",//'
broken 'no spans' '/"ph":"[Xstf]"/d;s/\("a stream"}}\),/\1/'

# traced ARG... - the file of this run is one.
traced() {
    rm -f "$scratch/trace.json"
    run 0 "$@" --trace="$scratch/trace.json"
    "$trace" "$scratch/trace.json" || wrong "cekernels-bench $*"
}

awk 'BEGIN { srand(1); print "a,b,y"; for (i = 0; i < 200; i++) { a = rand(); b = rand(); print a "," b "," 2 * a - 3 * b + 1 } }' \
    >"$scratch/line.csv"
table="--csv=$scratch/line.csv --target=y --batch=20"
net='conv:4,3,s2 relu maxpool:2 batchnorm flatten linear:10'
CEKERNELS_CPU_DEVICES=2 CEKERNELS_SIM_DEVICES=2
export CEKERNELS_CPU_DEVICES CEKERNELS_SIM_DEVICES
traced train linear:1 $table --steps 4 -d cpu:0 --save="$scratch/line.safetensors"
traced train 'linear:8 relu linear:1' $table --steps 4 -d cpu --shares=equal --clip=0.1
traced train 'linear:8 relu linear:1' $table --steps 4 -d sim --shares=3,1 --ahead=4 --optimizer=lamb
traced train "$net" --steps 3 --batch 32 -d cpu:0,sim:0 --shares=equal --norm-group=8 --accumulate=2
traced train "$net" --steps 60 --batch 8 -d sim:0
traced train 'linear:8 relu linear:1' $table --epochs 2 -d cpu,sim
traced predict linear:1 $table --load="$scratch/line.safetensors" -d cpu,sim
CEKERNELS_SIM_CLOCK=real CEKERNELS_SIM_LACKS=pool_backward
export CEKERNELS_SIM_CLOCK CEKERNELS_SIM_LACKS
traced train "$net" --steps 3 --batch 32 -d sim:0 --fallback=cpu:0
finish
