# tutorial.sh - the tutorial's commands, in the order and the words of its text, succeed; what it says that they print
# they print; every function that it names there is.
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
text=$top_srcdir/examples/tutorial/README.md
failures=0
wrong() { echo "tutorial: $*" >&2; failures=$((failures + 1)); }
# The text's build/ within the sources, and no other variable than it sets.
mkdir "$work/build" && cd "$work/build" || exit 99
ln -s "$top_srcdir/examples" "$top_srcdir/include" ..
ln -s "$top_builddir/examples" "$top_builddir/plugins" "$top_builddir/cekernels-bench" .
unset CEKERNELS_PLUGIN_PATH

sed -n 's/^    \$ //p' "$text" >commands
[ "$(wc -l <commands)" -ge 15 ] || wrong "the text was not understood: $(wc -l <commands) commands"
export CFLAGS='-O1 -Wall -Wextra -Werror'
while read -r command <&3; do
    case $command in
    export*) eval "$command" ;;
    *) eval "$command" >out 2>&1 </dev/null || { wrong "$command: exit code $?"; cat out >&2; } ;;
    esac
    case $command in
    *01_devices) grep -q 'reference.so: loaded' out || wrong "no load report: $(cat out)" ;;
    *'01_devices gpu,cpu') grep -q '^[a-z]*:0 ' out || wrong "no device: $(cat out)" ;;
    *02_tensors*) grep -q 'tensors on different devices' out || wrong "tensors of two devices: $(cat out)" ;;
    *03_train_on_one*) grep -q 'y = 3.000 a -2.000 b +1.000' out || wrong "not learnt: $(cat out)" ;;
    *'04_train_on_all cpu:0,1') # 64 samples on two
        [ "$(grep -c '^cpu:[01]: 32 of 64 samples' out)" = 2 ] || wrong "other shares: $(cat out)"
        grep -q 'the same everywhere' out || wrong "replicas differ: $(cat out)" ;;
    *05_mnist*all*) # shares are measured: whatever they are, they are the batch
        grep -q '^cpu:1: [0-9]* samples' out || wrong "one device: $(cat out)"
        [ "$(awk '/ samples of the last step$/ { n += $2 } END { print n }' out)" = 64 ] ||
            wrong "shares that are no batch: $(cat out)"
        [ -s mnist.safetensors ] || wrong "05_mnist wrote no weights" ;;
    *06_boston*)
        grep -q '^step 1: 128 samples = cpu:0 64, cpu:1 64$' out || wrong "other shares: $(cat out)"
        awk '/^after/ { sub(",", "", $6); sub(",", "", $9); ok = $9 < 10 } END { exit !ok }' out || wrong "it does not learn: $(cat out)"
        [ "$(wc -l <curve.csv)" = 301 ] || wrong "no curve" ;;
    *07_pytorch_model*)
        sed -n 's/^    \([01]\.[0-9]* [01]\.[0-9]* [01]\.[0-9]*\)$/\1/p' "$text" >told
        [ "$(wc -l <told)" = 3 ] || wrong "PyTorch's answer was not found in the text"
        paste -d ' ' told out | awk '{ for (i = 1; i <= 3; i++) { d = $i - $(i + 3); if (d > 1e-4 || d < -1e-4) bad = 1 } if (NF != 6) bad = 1 }
            END { exit bad }' || wrong "not what PyTorch says: $(cat out)" ;;
    *08_own_layer*)
        grep -q '^gradients: right' out || wrong "gradients: $(cat out)"
        grep -q '^loss: .* steps on 2 devices ' out || wrong "one device: $(cat out)" ;;
    *01_devices*example*) grep -q '^example:0 ' out || wrong "no device of one's own: $(cat out)" ;;
    esac
done 3<commands

for name in $(grep -o 'cek_[a-z_]*' "$text" | sort -u); do
    grep -qw "$name" "$top_srcdir"/include/cekernels/*.h || wrong "there is no $name"
done
# What goes wrong is said.
if examples/tutorial/01_devices nothing:7 >out 2>&1; then wrong "01_devices nothing:7 succeeds"; else
    grep -q 'nothing:7' out || wrong "01_devices: $(cat out)"
fi
if examples/tutorial/06_boston ../examples/tutorial/houses.csv prize >out 2>&1; then wrong "a target that is not there is accepted"; else
    grep -q "did you mean 'price'" out || wrong "06_boston: $(cat out)"
fi
for call in '05_mnist -n x' '05_mnist -e 0' '06_boston -e x ../examples/tutorial/houses.csv price' \
    '06_boston -e 0 ../examples/tutorial/houses.csv price'; do
    eval "examples/tutorial/$call" >out 2>&1
    [ $? = 2 ] && grep -q "^usage: ${call%% *}" out || wrong "$call is no wrong call: $(cat out)"
done
exit $((failures > 0))
