#!/bin/sh
# recipe.sh - cekernels-bench train: how the rate changes and what else is said of updates.
. "$top_srcdir/tests/cli/lib.sh"
awk 'BEGIN { print "a,y"; for (i = 0; i < 200; i++) print i % 17 "," 3 * (i % 17) + i % 3 }' >"$scratch/line.csv"
plain="linear:1 --csv=$scratch/line.csv --target=y --batch=40 --epochs=2 --optimizer=sgd --lr=0.01 -d cpu --json"

# weights OPTION... - their hash in $sum after a training that must not fail
weights() {
    run 0 train $plain "$@"
    sum=$(value weights_sha256)
}

# Schedules: half the rate in the second of two epochs, however that is said; and no other words.
weights
bare=$sum
weights --schedule=step:1,g0.5
halved=$sum
[ "$halved" != "$bare" ] || wrong "--schedule changes nothing"
for schedule in multistep:1,g0.5 cosine cosine:2,m1e-30; do
    weights --schedule=$schedule
    [ "$sum" = "$halved" ] || wrong "--schedule=$schedule is not --schedule=step:1,g0.5"
done
weights --schedule=onecycle --warmup=3
weights --schedule=plateau:2,g0.1
weights --warmup=3
[ "$sum" != "$bare" ] || wrong "--warmup changes nothing"
weights --schedule=cosine,m1e-30
[ "$sum" = "$halved" ] || wrong "--schedule=cosine,m1e-30 is not --schedule=cosine:2,m1e-30"
weights --schedule=plateau,g0.5
for schedule in step cosin plateau:x step:5,h3 step:0 onecycle:3,g0.1 step:1,2 step,1 step:1, step:1,m0.1 cosine:2,g0.5 cosine:; do
    refused 2 "$schedule" train $plain --schedule=$schedule
done
! grep -q 'did you mean' "$scratch/err" || wrong "the schedule was called by its name: $(cat "$scratch/err")"
# The whole training is what there will be of it: ten steps.
weights --schedule=onecycle
cycle=$sum
weights --schedule=onecycle --steps=100000
[ "$sum" = "$cycle" ] || wrong "a cycle of steps that are never made"
refused 2 "one cycle of 1" train $plain --schedule=onecycle --steps=1
# Other optimizers, which are not the first one.
for optimizer in rmsprop adagrad adamw lamb; do
    weights --optimizer=$optimizer
    [ "$sum" != "$bare" ] || wrong "--optimizer=$optimizer is sgd"
done
weights --optimizer=rmsprop --momentum=0.5
# The model's own optimizer, called by its name, keeps the model's numbers.
net="boston-mlp --csv=$scratch/line.csv --target=y --batch=40 --epochs=1 -d cpu --json"
run 0 train $net
own=$(value weights_sha256)
run 0 train $net --optimizer=adam
[ "$(value weights_sha256)" = "$own" ] || wrong "--optimizer=adam is not boston-mlp's adam"
run 0 train $net --optimizer=adamw
[ "$(value weights_sha256)" != "$own" ] || wrong "--optimizer=adamw is adam"
# Groups: frozen, the weight keeps what it was; without decay, a decay changes nothing.
weights --freeze='*'
run 0 train $plain --freeze='*' --epochs=1
[ "$(value weights_sha256)" = "$sum" ] || wrong "frozen weights move"
weights --no-decay='0.*' --weight-decay=0.5
[ "$sum" = "$bare" ] || wrong "--no-decay decays"
weights --weight-decay=0.5
[ "$sum" != "$bare" ] || wrong "--weight-decay does nothing"
refused 2 'no parameter is called 7.weight' train $plain --freeze=7.weight
refused 2 'no max_norm' train $plain --optimizer=lamb --clip=1

# Clipping by value, accumulation, averages.
weights --clip-value=1e9
[ "$sum" = "$bare" ] || wrong "--clip-value clips what is smaller"
weights --clip-value=0.01
[ "$sum" != "$bare" ] || wrong "--clip-value does nothing"
weights --batch=10 --accumulate=4
holds "$(value batch) == 10 && $(value epochs.0.step) == 4"
weights --average=0.5
[ "$sum" != "$bare" ] || wrong "--average saves the last weights"

# Batch normalisation: groups give the same on any number of devices, up to the order of sums.
normed="linear:8 batchnorm relu linear:1"
losses=
for devices in 1 2 3; do
    export CEKERNELS_CPU_DEVICES=$devices
    # shellcheck disable=SC2086
    run 0 train "$normed" ${plain#* } --norm-group=8 --shares=equal --steps=4
    losses="$losses $(value epochs.0.train_loss)"
done
echo "$losses" | awk '{ exit !(NF == 3 && $1 > 0 && ($1 - $2) ^ 2 < 1e-10 * $1 ^ 2 && ($1 - $3) ^ 2 < 1e-10 * $1 ^ 2) }' ||
    wrong "losses in groups differ:$losses"
# shellcheck disable=SC2086
refused 2 'norm_group' train "$normed" ${plain#* } --shares=equal
unset CEKERNELS_CPU_DEVICES
refused 2 "momentum is SGD's and RMSprop's" train $plain --optimizer=adagrad --momentum=0.5
finish
