# arrays.sh - networks of ONNX files and arrays of NumPy's: train and predict take them, and what is wrong with them is named.
. "$top_srcdir/tests/cli/lib.sh"

octal() { printf "$(printf '\\%03o' "$@")"; }
# network OPERATOR - an ONNX file with y = x OPERATOR w, for samples x of two numbers and w = (1, 2)
network() {
    octal 8 8 58 $((61 + ${#1}))
    octal 10 $((11 + ${#1})) 10 1 && printf x && octal 10 1 && printf w && octal 18 1 && printf y && octal 34 ${#1} && printf %s "$1"
    octal 42 19 8 2 8 1 16 1 66 1 && printf w && octal 74 8 0 0 128 63 0 0 0 64
    octal 90 20 10 1 && printf x && octal 18 15 10 13 8 1 18 9 10 3 18 1 && printf N && octal 10 2 8 2
    octal 98 3 10 1 && printf y
    octal 66 4 10 0 16 18
}
# array TYPE SHAPE OCTETS... - a .npy file of version 1
array() {
    dictionary="{'descr': '$1', 'fortran_order': False, 'shape': ($2), }"
    shift 2
    octal 147 && printf NUMPY && octal 1 0 ${#dictionary} 0 && printf %s "$dictionary" && octal "$@"
}
one='0 0 128 63' two='0 0 0 64' nan='0 0 192 127'
net=$scratch/net.onnx x=$scratch/x.npy y=$scratch/y.npy
network MatMul >"$net"
array '<f4' '3, 2' $one $one $two $one $two $two >"$x"

# ---- Arrays through a network of a file: 1 + 2, 2 + 2, 2 + 4 ----
run 0 predict "$net" -d cpu:0 --input "$x" --output "$y" --json
holds "$(value results.0.value) == 3 && $(value results.1.value) == 4 && $(value results.2.value) == 6"
holds "$(value samples) == 3"
array '<f4' '3, 1' 0 0 64 64 0 0 128 64 0 0 192 64 | tail -c 12 >"$scratch/expected"
[ "$(wc -c <"$y")" -eq 140 ] || wrong "y.npy has $(wc -c <"$y") bytes"
tail -c 12 "$y" | cmp -s - "$scratch/expected" || wrong "y.npy holds other numbers"
head -c 128 "$y" | grep -q "'shape': (3, 1)" || wrong "y.npy has another shape"
run 0 predict "$net" -d cpu:0 --input "$x" --rows 1
[ "$(grep -c '^ *[0-9]* *[0-9]*\.[0-9]*$' "$scratch/out")" -eq 1 ] || wrong "not one row of a table: $(cat "$scratch/out")"
# Other types, and one sample that comes alone.
array '|u1' '1, 2' 3 5 >"$scratch/bytes.npy"
run 0 predict "$net" -d cpu:0 --input "$scratch/bytes.npy" --json
holds "$(value results.0.value) == 13"
array '<i8' '2,' 3 0 0 0 0 0 0 0 255 255 255 255 255 255 255 255 >"$scratch/wide.npy"
run 0 predict "$net" -d cpu:0 --input "$scratch/wide.npy" --json
holds "$(value results.0.value) == 1 && $(value samples) == 1"
# A sample alone, of a network that is known by its name, or of words.
digits="train lenet5 --steps 1 --batch 4 -d cpu:0 --save=$scratch/lenet5.safetensors"
run 0 $digits
for shape in '1, 28, 28' '1, 1, 28, 28'; do
    array '|u1' "$shape" $(seq 784 | awk '{ print $1 % 251 }') >"$scratch/digit.npy"
    run 0 predict lenet5 -d cpu:0 --load="$scratch/lenet5.safetensors" --input "$scratch/digit.npy" --json
    holds "$(value samples) == 1"
done
printf 'a,b,y\n1,2,3\n2,1,3\n3,1,4\n4,2,6\n' >"$scratch/four.csv"
run 0 train linear:1 --csv="$scratch/four.csv" --target=y --steps 1 -d cpu:0 --save="$scratch/linear.safetensors"
run 0 predict linear:1 -d cpu:0 --load="$scratch/linear.safetensors" --input "$scratch/wide.npy" --json
holds "$(value samples) == 1"
# Outputs that are no numbers: all is there, and the exit code says so.
array '<f4' '2, 2' $one $one $nan $one >"$scratch/nan.npy"
run 7 predict "$net" -d cpu:0 --input "$scratch/nan.npy" --output "$y" --json
grep -q 'row 1: an output is not finite' "$scratch/err" || wrong "no row 1 in: $(cat "$scratch/err")"
holds "$(value results.0.value) == 3"

# ---- A network of a file, trained; its weights under their name ----
awk 'BEGIN { print "a,b,y"; for (i = 0; i < 60; i++) print i % 7 "," i % 5 "," (i % 7 - 2 * (i % 5)) }' >"$scratch/t.csv"
table="--csv=$scratch/t.csv --target=y --standardize=no"
run 0 train "$net" -d cpu:0 $table --optimizer sgd --lr 0.02 --epochs 30 --batch 8 --save "$scratch/w.safetensors" --json
holds "$(value test_mse) < 0.01"
grep -aq '"w":{"dtype":"F32","shape":\[2,1\]' "$scratch/w.safetensors" || wrong "the weights are not saved as w"
run 0 predict "$net" -d cpu:0 --load "$scratch/w.safetensors" --input "$x" --json
holds "$(value results.1.value) < 0.3 && $(value results.1.value) > -0.3"
run 0 predict "$net" -d cpu:0 $table --json
holds "$(value test_mse) > 1"

# ---- Words with weights, over an array ----
run 0 train 'linear:1' -d cpu:0 $table --steps 1 --batch 8 --save "$scratch/l.safetensors"
run 0 predict 'linear:1' -d cpu:0 --load "$scratch/l.safetensors" --input "$x" --json
holds "$(value samples) == 3"

# ---- Exported: the file gives what the words do, and can be trained on ----
run 0 train 'linear:4 tanh linear:1' -d cpu:0 $table --steps 3 --batch 8 --save "$scratch/e.safetensors" --export "$scratch/e.onnx"
run 0 predict 'linear:4 tanh linear:1' -d cpu:0 --load "$scratch/e.safetensors" --input "$x" --output "$scratch/words.npy" \
    --export "$scratch/again.onnx" --json
words=$(value results.2.value)
cmp -s "$scratch/e.onnx" "$scratch/again.onnx" || wrong "train and predict export other files of the same weights"
run 0 predict "$scratch/e.onnx" -d cpu:0 --input "$x" --output "$y" --json
off="($(value results.2.value) - $words)"
holds "$off * $off < 1e-10 * (1 + $words * $words)"
[ "$(wc -c <"$y")" -eq "$(wc -c <"$scratch/words.npy")" ] || wrong "the exported network gives another array"
run 0 train "$scratch/e.onnx" -d cpu:0 $table --steps 1 --batch 8 --save "$scratch/f.safetensors"
run 0 predict 'linear:4 tanh linear:1' -d cpu:0 --load "$scratch/f.safetensors" --input "$x"
# Pixels are scaled within the file.
run 0 train 'flatten linear:10' -d cpu:0 --steps 1 --batch 8 --save "$scratch/p.safetensors" --export "$scratch/p.onnx"
run 0 predict 'flatten linear:10' -d cpu:0 --load "$scratch/p.safetensors" --json
one=$(value test_accuracy)
run 0 predict "$scratch/p.onnx" -d cpu:0 --json
off="($one - $(value test_accuracy))"
holds "$off * $off < 0.0003 * 0.0003" # of 10000, where two classes are as likely

# ---- What is wrong ----
refused 2 '--save and --export cannot both be' train linear:1 -d cpu:0 $table --save "$scratch/q" --export "$scratch/q"
refused 2 '--output and --export cannot both be' predict "$net" -d cpu:0 --input "$x" --output "$y" --export "$y"
refused 2 "--save=$scratch/t.csv would replace what is read" train linear:1 -d cpu:0 $table --save "$scratch/t.csv"
refused 2 '--save and --trace cannot both be' train linear:1 -d cpu:0 $table --save "$scratch/q" --trace "$scratch/q"
refused 2 '--output and --trace cannot both be' predict "$net" -d cpu:0 --input "$x" --output "$y" --trace "$y"
refused 2 '--export and --trace cannot both be' predict "$net" -d cpu:0 --input "$x" --export "$y" --trace "$y"
long=$scratch/$(printf '%05000d' 0)
refused 5 'cannot be written' predict "$net" -d cpu:0 --input "$x" --output "$long.npy" --export "$long"
refused 5 'nowhere' train linear:1 -d cpu:0 $table --export "$scratch/nowhere/q.onnx"
refused 5 'nowhere' predict "$net" -d cpu:0 --input "$x" --export "$scratch/nowhere/q.onnx"
one='0 0 128 63'
refused 2 'predict needs --load' predict linear:1 --input "$x"
refused 2 'y.npy is for --input' predict "$net" --output "$y"
refused 2 'y.npy: train gives no array' train "$net" $table --output "$y"
refused 2 '--input and --csv cannot both be' predict "$net" $table --input "$x"
refused 2 '2 arrays for a model of 1 inputs' predict "$net" -d cpu:0 --input "$x" --input "$x"
refused 5 'nowhere' predict "$net" -d cpu:0 --input "$x" --output "$scratch/nowhere/y.npy"
refused 5 'none.npy' predict "$net" -d cpu:0 --input "$scratch/none.npy"
refused 5 'none.onnx' predict "$scratch/none.onnx" -d cpu:0 --input "$x"
refused 5 'none.onnx' train "$scratch/none.onnx" -d cpu:0 $table
array '<f4' '2, 3' $one $one $one $one $one $one >"$scratch/wrong.npy"
refused 5 'wrong.npy: an array \[2,3\] for the input x, which takes \[samples,2\]' predict "$net" -d cpu:0 --input "$scratch/wrong.npy"
array '<f4' '2, 2' $one $one $one >"$scratch/wrong.npy"
refused 5 'wrong.npy: its header promises 16 bytes of elements, there are 12' predict "$net" -d cpu:0 --input "$scratch/wrong.npy"
array '<c4' '1, 2' $one $one >"$scratch/wrong.npy"
refused 5 "wrong.npy: elements of type '<c4'" predict "$net" -d cpu:0 --input "$scratch/wrong.npy"
head -c 20 "$x" >"$scratch/wrong.npy"
refused 5 'wrong.npy: it ends within its header' predict "$net" -d cpu:0 --input "$scratch/wrong.npy"
# Targets are told by their own file; a test set of another type would be read as what it is not.
mkdir "$scratch/sets"
array '<f4' '2, 2' $one $one $one $one >"$scratch/sets/x_train.npy"
array '<f4' '2,' $one $nan >"$scratch/sets/y_train.npy"
refused 5 'y_train.npy: element 1 is not finite' train linear:1 -d cpu:0 --data="$scratch/sets" --steps 1
array '<f4' '2,' $one $one >"$scratch/sets/y_train.npy"
array '|u1' '2, 2' 1 2 3 4 >"$scratch/sets/x_test.npy"
array '<f4' '2,' $one $one >"$scratch/sets/y_test.npy"
refused 5 'samples for testing have another shape or type' train linear:1 -d cpu:0 -q --data="$scratch/sets" --epochs 1
array '<f4' '2, 2' $one $one $one $one >"$scratch/sets/x_test.npy"
array '<f4' '2, 2' $one $one $one $one >"$scratch/sets/y_test.npy"
refused 5 'samples for testing have other targets' train linear:1 -d cpu:0 -q --data="$scratch/sets" --epochs 1
array '<i4' '2,' 1 0 0 0 0 0 0 0 >"$scratch/sets/y_test.npy"
refused 5 'samples for testing have other targets' train linear:1 -d cpu:0 -q --data="$scratch/sets" --epochs 1
# Of one row nothing is left beside what is tested with.
rm "$scratch"/sets/*
array '<f4' '1, 2' $one $one >"$scratch/sets/x.npy"
array '<f4' '1,' $one >"$scratch/sets/y.npy"
refused 5 'none is left to train on' train linear:1 -d cpu:0 -q --data="$scratch/sets" --steps 2 --epochs 2
head -c 40 "$net" >"$scratch/wrong.onnx"
refused 5 'wrong.onnx' predict "$scratch/wrong.onnx" -d cpu:0 --input "$x"
network NoSuchOp >"$scratch/wrong.onnx"
refused 5 'wrong.onnx: node 0 .* no operator NoSuchOp' predict "$scratch/wrong.onnx" -d cpu:0 --input "$x"
refused 2 'inputs' predict "$net" -d cpu:0 --input a --input b --input c --input d --input e --input f --input g --input h --input i
finish
