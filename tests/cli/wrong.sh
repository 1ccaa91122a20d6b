# wrong.sh - hundreds of wrong command lines: each is answered with the right exit code and one line that names what is
# wrong and, where a name was misspelt, the right one.
. "$top_srcdir/tests/cli/lib.sh"

"$CEKERNELS_BENCH" help >"$scratch/help"
commands=$(sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' "$scratch/help")

# Every option of every command, as "command name argument", out of the table by way of help.
for command in $commands; do
    case $command in help | completion) continue ;; esac
    "$CEKERNELS_BENCH" help "$command" |
        sed -n "s/^  ...\? *--\([a-z-]*\)=\([^ ]*\).*/$command \1 \2/p; s/^  ...\? *--\([a-z-]*\) .*/$command \1 -/p"
done | grep -v -e ' help ' -e ' version ' >"$scratch/options"

# Misspellings of the names of options and commands: a letter less, one more, two swapped, one changed, and two mistakes
# at once. None is the beginning of another option, which would be taken for it. "code<TAB>right name<TAB>arguments"
awk '
function add(wrong, right, i) {
    if (wrong == right) return
    for (i in all) if (index(i, wrong) == 1) return
    if (owner[right] == "") print "2\tdid you mean " right "?\t" wrong
    else print "2\t--" right "\t" owner[right] "\t--" wrong
}
function misspell(n, k) {
    k = length(n)
    if (k < 4) return
    add(substr(n, 1, 1) substr(n, 3), n)
    add(substr(n, 1, 2) substr(n, 2), n)
    add(substr(n, 1, 1) substr(n, 3, 1) substr(n, 2, 1) substr(n, 4), n)
    add(substr(n, 1, k - 1) "q", n)
    if (k >= 7) add(substr(n, 1, 1) substr(n, 3, 1) substr(n, 2, 1) substr(n, 4, k - 4) "q", n)
}
{ all[$2]; if (!($2 in owner)) owner[$2] = $1 }
END {
    for (n in all) misspell(n)
    delete all
    delete owner
    count = split(commands, names, " ")
    for (i = 1; i <= count; i++) misspell(names[i])
}' commands="$(echo $commands)" "$scratch/options" >"$scratch/lines"

# Values that are missing, superfluous or no value of their kind; options of other commands.
awk '
BEGIN { split("devices gemm conv op copy peak train predict check", commands, " ") }
{ takes[$1, $2]; argument[$2] = $3; owner[$2] = $1 }
END {
    for (n in argument) {
        c = owner[n]; a = argument[n]
        if (a == "-") print "2\t--" n " takes no value\t" c "\t--" n "=yes"
        else print "2\t--" n " needs a value: --" n "=\t" c "\t--" n
        if (a ~ /^(N|X|P|SECONDS|BYTES|NORM|DECAY)$/) {
            print "2\t--" n "=x: .* is wanted\t" c "\t--" n "=x"
            print "2\t--" n "=: .* is wanted\t" c "\t--" n "="
            print "2\t--" n "=1,5: .* is wanted\t" c "\t--" n "=1,5"
        }
        for (i in commands)
            if (!((commands[i], n) in takes)) {
                v = a == "-" ? "" : "=x"
                print "2\t" commands[i] " takes no option --" n "; it is for .*" c "\t" commands[i] "\t--" n v
                break
            }
    }
}' "$scratch/options" >>"$scratch/lines"

# By hand: "code|what the line says|arguments", the latter as a shell reads them.
awk 'BEGIN { print "alpha,beta,price"; for (i = 0; i < 60; i++) print i % 7 "," i % 5 "," i % 3 }' >"$scratch/houses.csv"
cd "$scratch" || exit 99
mkdir samples
cat >by-hand <<'LIST'
2|did you mean train?|Train
2|did you mean devices?|device
2|did you mean completion?|completions
2|no command is called x; try --help|x
2|did you mean train?|help tran
2|did you mean adam?|train lenet5 --optimizer=adm
2|did you mean adamw?|train lenet5 --optimizer=adawm
2|did you mean sgd?|train lenet5 --optimizer=SGD
2|did you mean rmsprop?|train lenet5 --optimizer=rmspropp
2|did you mean adagrad?|train lenet5 --optimizer=adgrad
2|did you mean lamb?|train lenet5 --optimizer=lmab
2|did you mean cross-entropy?|train lenet5 --loss=crossentropy
2|did you mean cross-entropy?|train lenet5 --loss=cross_entropy
2|did you mean mse?|train lenet5 --loss=MSE
2|did you mean bf16?|train lenet5 --dtype=fb16
2|did you mean f32?|gemm -t f3
2|did you mean json?|devices -o jsn
2|did you mean table?|devices -o tabel
2|did you mean csv?|devices -o cvs
2|did you mean weights?|conv --pass=weihgts
2|did you mean forward?|conv --pass=foward
2|did you mean strict?|gemm --math=strikt
2|did you mean fast?|train lenet5 --math=fats
2|f32, strict, tf32 or fast|predict lenet5 --load=x --math=f16
2|did you mean yes?|train lenet5 --shuffle=yess
2|did you mean cosine?|train lenet5 --schedule=cosin
2|did you mean multistep?|train lenet5 --schedule=multi_step:3,5
2|did you mean plateau?|train lenet5 --schedule=platau
2|did you mean onecycle?|train lenet5 --schedule=one-cycle
2|did you mean step?|train lenet5 --schedule=stpe:2
2|did you mean softmax?|op sotfmax
2|did you mean gemm?|op gemmm
2|did you mean pool_forward?|op pool_foward
2|did you mean optimizer?|check optimiser
2|did you mean memory?|check memroy
2|did you mean command_buffer?|check command-buffer
2|no operation is called nonsense$|op nonsense
5|did you mean 'mnist-cnn'?|train mnist-cn --steps 1
5|did you mean 'mnist-cnn'?|train mnist_cnn --steps 1
5|did you mean 'lenet5'?|train lenet --steps 1
5|did you mean 'lenet5'?|train LeNet5 --steps 1
5|did you mean 'resnet18'?|train resnet81 --steps 1
5|did you mean 'resnet50'?|train resnet-50 --steps 1
5|did you mean 'mobilenetv2'?|train mobilenet_v2 --steps 1
5|did you mean 'boston-mlp'?|train boston-mpl --csv=houses.csv --target=price
5|did you mean 'conv'?|train 'cnov:4,3 relu flatten linear:10' --steps 1
5|did you mean 'relu'?|train 'conv:4,3 rleu flatten linear:10' --steps 1
5|did you mean 'flatten'?|train 'conv:4,3 relu flaten linear:10' --steps 1
5|did you mean 'linear'?|train 'conv:4,3 relu flatten liner:10' --steps 1
5|did you mean 'maxpool'?|train 'conv:4,3 maxpol:2 flatten linear:10' --steps 1
5|did you mean 'dropout'?|train 'conv:4,3 dropuot:0.5 flatten linear:10' --steps 1
5|did you mean 'batchnorm'?|train 'conv:4,3 batch_norm flatten linear:10' --steps 1
5|did you mean 'leakyrelu'?|train 'flatten leaky_relu linear:10' --steps 1
5|did you mean 'price'?|train linear:1 --csv=houses.csv --target=prcie
5|did you mean 'alpha'?|train linear:1 --csv=houses.csv --target=Alpha
5|did you mean 'houses.csv'?|train linear:1 --csv=hosues.csv --target=price
5|did you mean 'houses.csv'?|train linear:1 --csv=./house.csv --target=price
2|--csv needs --target=COLUMN|train linear:1 --csv=houses.csv
5|did you mean 'houses.csv'?|predict linear:1 --csv=houses.csv --target=price --load=houses.cvs
3|did you mean 'cpu'?|train lenet5 -d cpuu
3|did you mean 'cpu'?|train lenet5 -d cp
3|did you mean 'gpu'?|train lenet5 -d gpus
3|did you mean 'fastest'?|gemm -d fastst
3|did you mean 'reference'?|gemm -d refrence:0
3|did you mean 'reference'?|gemm -d cpu,refernce
2|did you mean 'cpu'?|gemm -d CPU
2|is not a device such as|gemm -d 0
2|is not a device such as|gemm -d cpu,1
3|no device for 'cpu:77'|gemm -d cpu:77
3|no device for '77'|gemm -d cpu:0,77
3|did you mean 'cpu'?|train lenet5 --fallback=cpo:0
3|no device for 'gpu:9'|gemm -d gpu:9
6|a larger --limit-memory|train lenet5 --limit-memory=1K -d cpu:0 --steps 1
5|did you mean 'cpu.so'?|check --plugin=$TEST_PLUGIN_DIR/cup.so
5|did you mean 'samples'?|train lenet5 --data=sampels
5|layers: 0 is out of range|train gpt:0 --data=houses.csv
2|image-size is for images|train gpt:1 --data=houses.csv --image-size=8x8
2|test-fraction: houses.csv has its last tenth for testing|train gpt:1 --data=houses.csv --test-fraction=0.5
5|at least 0 and below 1|train 'dropout:2 flatten linear:10' --steps 1
2|to 0.9999999 is wanted|train lenet5 --average=1
LIST
while IFS='|' read -r code text line; do
    eval "refused $code \"\$text\" $line"
done <by-hand

while IFS="$(printf '\t')" read -r code text command option; do
    refused "$code" "$text" "$command" ${option:+"$option"}
done <lines
lines=$(cat lines by-hand | wc -l)
[ "$lines" -ge 300 ] || wrong "only $lines wrong lines"

# What the failure of a device would want.
CEKERNELS_SIM_LACKS=conv_forward refused 3 '--fallback=cpu:0' train lenet5 -d sim:0 --steps 1
CEKERNELS_SIM_FAULTS=hang@op_run refused 4 '--timeout=SECONDS' train lenet5 -d sim:0 --steps 3 --timeout=0.3
CEKERNELS_PLUGINS==nothing refused 3 'no device' gemm
echo "$lines wrong lines"
finish
