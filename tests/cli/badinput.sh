# badinput.sh - what users and their files get wrong: one line that names the object and the cause,
# the documented exit code, the checkpoint that was there intact, no temporary file left.
. "$top_srcdir/tests/cli/lib.sh"

awk 'BEGIN { print "a,b,y"; for (i = 0; i < 60; i++) print i % 7 "," i % 5 "," i % 3 }' >"$scratch/t.csv"
table="--csv=$scratch/t.csv --target=y --steps 1 --batch 8"

# ---- Words of a model: the position, the word, what is possible ----
for word in conv:0,3 conv:4 linear:0 linear:99999999999 linear:-1 linear:1e3 linear: linear:1,2 nonsense LINEAR:1 dropout:1 \
    dropout:nan maxpool:9 linear:18446744073709551617; do
    refused 5 "word 2, \"$word\" at column 6: " train "relu $word" $table
done
for word in conv:4,99 conv:4,3,s0 conv:4,3,g2 conv:4,3,g0 conv:4,3,d100 conv:4,3,x1 conv:4,3,p1,p2 conv:2147483647,3 maxpool:29 \
    maxpool:0 maxpool:2,p2 conv:4,3,p2147483647 linear:10; do
    refused 5 "word 1, \"$word\" at column 1: " train "$word flatten linear:10" --steps 1
done
refused 5 'no words' train ' ' $table
refused 5 'elements' train 'linear:1000000 linear:1000000 linear:1' $table
refused 2 '(8,2) against targets (8,1)' train linear:2 $table
refused 2 'flatten' train conv:4,3 --steps 1

# ---- Numbers, lists, devices ----
for wrong in --batch=0 --batch=-1 --batch=2147483648 --steps=0 --epochs=0 --log-every=0 --lr=0 --lr=-1 --lr=inf --momentum=2 \
    --seed=-1 --seed=x --test-fraction=1 --limit-memory=0 --limit-memory=-5 --limit-memory=nan --limit-memory=1e30; do
    refused 2 "^cekernels-bench: $wrong: .* is wanted" train linear:1 $table $wrong
done
for list in '' ',' cpu, ,cpu cpu: :0 cpu:-1 cpu:0- cpu:9-2 cpu:x 'cpu 0' cpu:99999999999999999999; do
    refused 2 'is not a device such as' train linear:1 $table -d "$list"
done
refused 3 "no device for 'cpu:999'" train linear:1 $table -d cpu:999
run 0 train linear:1 $table -d cpu:0,cpu:0 --json
holds "$(value devices) == 1"
CEKERNELS_CPU_DEVICES=3
export CEKERNELS_CPU_DEVICES
for list in 1 1,1,1,1 1,1,1, ,1,1 1,,1 nan,1,1 inf,1,1 -1,1,1 0,0,0 1e308,1e308,1e308 some ''; do
    refused 2 '3 numbers >= 0' train linear:1 $table -d cpu "--shares=$list"
done
for count in abc 0 -1 3x 1000000; do
    CEKERNELS_CPU_DEVICES=$count
    run 3 train linear:1 $table -d cpu
    grep -q "cpu_devices=\"$count\"" "$scratch/err" ||
        wrong "CEKERNELS_CPU_DEVICES=$count is not named: $(cat "$scratch/err")"
done
unset CEKERNELS_CPU_DEVICES
refused 3 'f32, bf16 and f16, train in f64, too' train linear:1 $table -t u8

# ---- Tables ----
csv() { # csv CODE TEXT CONTENT...
    code=$1 text=$2
    shift 2
    printf "$@" >"$scratch/bad.csv"
    refused "$code" "bad.csv.*$text" train linear:1 --csv="$scratch/bad.csv" --target=y --steps 1
}
csv 5 'empty' ''
csv 5 'no data rows' 'a,y\n'
csv 5 'line 3' 'a,y\n1,2\n3\n'
csv 5 'line 3' 'a,y\n1,2\n3,4,5\n'
csv 5 "line 3, column 'a'" 'a,y\n1,2\nx,3\n'
csv 5 "line 3, column 'y'.*missing" 'a,y\n1,2\n3,'
csv 5 "line 3, column 'a'" 'a,y\n1,2\nnan,3\n'
csv 5 'never closed' 'a,y\n1,2\n"3,4\n5,6\n'
csv 5 'zero byte' 'a,y\n1,2\n3\0,4\n'
csv 5 'zero byte' 'a,"y\0"\n1,2\n'
csv 5 'two columns' 'y,y\n1,2\n3,4\n'
csv 5 "no column 'y'" 'a,b\n1,2\n3,4\n'
csv 5 'too few' 'a,y\n1,2\n'
csv 5 "column 'a?\[2J'" 'a\033[2J,y\n,2\n3,4\n'
csv 5 "'1?\[2J?? ?' is not" 'a,y\n1\033[2J\177\302\233\302\205\377,2\n3,4\n'
for rows in 99 '1 1' -1 99999999999999999999999 1.5 '' "$(seq -s ' ' 0 59)"; do
    echo "$rows" >"$scratch/rows"
    refused 5 rows train linear:1 $table --split="$scratch/rows"
done

# ---- Digits in IDX ----
digits=$scratch/digits
mkdir "$digits"
octal() { printf "$(printf '\\%03o' "$@")"; }
images() { octal 0 0 8 3 0 0 0 "$1" 0 0 0 2 0 0 0 2; }
labels() { octal 0 0 8 1 0 0 0 "$1"; }
for set in train t10k; do
    { images 3 && octal 1 2 3 4 5 6 7 8 9 10 11 12; } >"$digits/$set-images-idx3-ubyte"
    { labels 3 && octal 0 1 9; } >"$digits/$set-labels-idx1-ubyte"
done
digits_are() { # digits_are TEXT
    refused 5 "$1" train 'flatten linear:10' --data="$digits" --steps 1 --batch 2
}
run 0 train 'flatten linear:10' --data="$digits" --steps 1 --batch 2
mkdir "$scratch/floats"
for set in train t10k; do # 3 images of 2 x 1 floats: 1 and -1
    { octal 0 0 13 3 0 0 0 3 0 0 0 2 0 0 0 1 && for i in 1 2 3; do octal 63 128 0 0 191 128 0 0; done; } \
        >"$scratch/floats/$set-images-idx3-ubyte"
    cp "$digits/$set-labels-idx1-ubyte" "$scratch/floats"
done
run 0 train 'flatten linear:10' --data="$scratch/floats" --batch 2 --save="$scratch/floats/w"
run 0 predict 'flatten linear:10' --data="$scratch/floats" --load="$scratch/floats/w"
cp "$digits/train-images-idx3-ubyte" "$scratch/images"
cp "$digits/train-labels-idx1-ubyte" "$scratch/labels"
head -c 27 "$scratch/images" >"$digits/train-images-idx3-ubyte"
digits_are 'train-images-idx3-ubyte: its header promises 12 bytes'
{ cat "$scratch/images" && octal 1; } >"$digits/train-images-idx3-ubyte"
digits_are 'train-images-idx3-ubyte: is longer'
{ octal 0 0 8 3 255 255 255 255 255 255 255 255 255 255 255 255 && octal 1; } >"$digits/train-images-idx3-ubyte"
digits_are 'train-images-idx3-ubyte: its header promises more'
echo text >"$digits/train-images-idx3-ubyte"
digits_are 'train-images-idx3-ubyte: not an IDX file'
rm "$digits/train-images-idx3-ubyte"
gzip -c "$scratch/images" >"$scratch/images.gz"
head -c 30 "$scratch/images.gz" >"$digits/train-images-idx3-ubyte.gz"
digits_are 'train-images-idx3-ubyte.gz: the gzip data ends in the middle'
rm "$digits/train-images-idx3-ubyte.gz"
mkfifo "$digits/train-images-idx3-ubyte"
digits_are 'train-images-idx3-ubyte: not a regular file'
rm "$digits/train-images-idx3-ubyte"
digits_are 'neither train-images-idx3-ubyte nor'
cp "$scratch/images" "$digits/train-images-idx3-ubyte"
{ labels 3 && octal 0 1 10; } >"$digits/train-labels-idx1-ubyte"
digits_are 'train-labels-idx1-ubyte: label 10 at row 2'
{ labels 2 && octal 0 1; } >"$digits/train-labels-idx1-ubyte"
digits_are 'has 2 labels'

cp "$scratch/labels" "$digits/train-labels-idx1-ubyte"
{ octal 0 0 8 3 0 0 0 3 0 0 0 2 0 0 0 1 && octal 1 2 3 4 5 6; } >"$digits/t10k-images-idx3-ubyte"
digits_are 'samples for testing have another shape'
refused 5 'samples for testing have another shape' predict 'flatten linear:10' --data="$digits" --load="$scratch/floats/w"

# ---- Weights ----
good=$scratch/good.safetensors
run 0 train linear:1 $table --save="$good"
cp "$good" "$scratch/kept"
weights() { # weights TEXT FILE
    refused 5 "$1" predict linear:1 --csv="$scratch/t.csv" --target=y --load="$2"
}
size=$(wc -c <"$good")
for length in 0 7 8 40 $((size - 1)); do
    head -c "$length" "$good" >"$scratch/cut.safetensors"
    weights cut.safetensors "$scratch/cut.safetensors"
done
{ cat "$good" && octal 0; } >"$scratch/long.safetensors"
weights 'long.safetensors: nothing describes the last 1 bytes' "$scratch/long.safetensors"
entry() { # entry NAME DTYPE - a file of one value; both as in JSON
    header="{\"$1\":{\"dtype\":\"$2\",\"shape\":[1],\"data_offsets\":[0,4]}}"
    { octal ${#header} 0 0 0 0 0 0 0 && printf '%s' "$header" && octal 0 0 0 0; } >"$scratch/forged.safetensors"
}
entry a '\u001b[2J\nx'
weights "'a': dtype ?\[2J x is not read" "$scratch/forged.safetensors"
entry 'a\u001b[2J\u007f\u009b\u0085b' F32
weights 'no tensor "0.weight"' "$scratch/forged.safetensors"
entry 'a",\033' F32
weights "forged.safetensors: the header is not valid JSON" "$scratch/forged.safetensors"
escape=$(octal 27)
weights '/?\[2J: cannot be opened' "$scratch/$escape[2J"
weights '/? ?x: cannot be opened' "$scratch/$(octal 194 155 10 255)x"
refused 5 '"?\[2J" at column 1' train "$escape[2J" $table
refused 2 '\-\-none?' train linear:1 $table "--none$escape"
weights 'zero: not a regular file' /dev/zero
weights 'not a regular file' "$scratch"

# ---- Where weights cannot go is said before hours of training ----
for place in /dev/full "$scratch" "$scratch/" '' "$scratch/none/x" "$scratch/t.csv/x"; do
    refused 5 . train linear:1 $table --epochs 100000000 --save="$place"
    refused 5 . train linear:1 $table --epochs 100000000 --save-gradients="$place"
done
refused 5 'File name too long' train linear:1 $table --epochs 100000000 --save="$scratch/$(printf '%0300d' 0)"
ln -s "$scratch/none/x" "$scratch/dangling"
refused 5 'nothing can be written to' train linear:1 $table --epochs 100000000 --save="$scratch/dangling"
rm "$scratch/dangling"
ln -s both "$scratch/dangling"
refused 2 'cannot both be' train linear:1 $table --epochs 100000000 --save="$scratch/both" --save-gradients="$scratch/dangling"
run 0 train linear:1 $table --save="$scratch/dangling"
cmp -s "$scratch/both" "$good" || wrong "a link to nothing did not get its target"
[ -L "$scratch/dangling" ] || wrong "a link to nothing was replaced"
rm "$scratch/dangling" "$scratch/both"
ln -s . "$scratch/link"
for other in "$scratch/both" "$scratch/./both" "$scratch/link/both"; do
    refused 2 'cannot both be' train linear:1 $table --epochs 100000000 --save="$scratch/both" --save-gradients="$other"
done
run 0 train linear:1 $table --save="$scratch/both" --save-gradients="$scratch/other"
refused 2 'cannot both be' train linear:1 $table --save="$scratch/both" --save-gradients="$scratch/link/both"
rm "$scratch/link"
(
    ulimit -f 1 # 512 bytes or 1 KiB: a disk that is full
    exec "$CEKERNELS_BENCH" train 'linear:3000 linear:1' $table --save="$good" >"$scratch/out" 2>"$scratch/err"
)
code=$?
[ $code -eq 5 ] || wrong "a file that may not grow: exit code $code"
grep -q 'good.safetensors: write failed' "$scratch/err" || wrong "a file that may not grow: $(cat "$scratch/err")"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$scratch"
    as_other="setpriv --reuid=65534 --regid=65534 --clear-groups"
    if $as_other "$CEKERNELS_BENCH" --version >/dev/null 2>&1; then
        $as_other "$CEKERNELS_BENCH" train linear:1 $table --epochs 100000000 --save="$good" >"$scratch/out" 2>"$scratch/err"
        [ $? -eq 5 ] || wrong "a folder of someone else: not exit code 5"
        grep -q 'nothing can be written to' "$scratch/err" || wrong "a folder of someone else: $(cat "$scratch/err")"
        chmod 000 "$scratch/cut.safetensors"
        $as_other "$CEKERNELS_BENCH" predict linear:1 --csv="$scratch/t.csv" --target=y --load="$scratch/cut.safetensors" \
            >"$scratch/out" 2>"$scratch/err"
        [ $? -eq 5 ] || wrong "a file of someone else: not exit code 5"
        grep -q 'Permission denied' "$scratch/err" || wrong "a file of someone else: $(cat "$scratch/err")"
    fi
fi
cmp -s "$good" "$scratch/kept" || wrong "a checkpoint that was there has changed"
[ -z "$(find "$scratch" -name '.cekernels-*')" ] || wrong "temporary files are left: $(find "$scratch" -name '.cekernels-*')"

# ---- Memory ----
refused 6 'cpu:0: .* of 1024' train linear:1 $table --limit-memory=1K

if [ "$SANITIZERS" = no ]; then # which want much room for themselves
    ( # the machine has the memory, the process may not have it
        ulimit -v 1000000 # KiB: the weights fit twice, not with gradients and Adam's moments
        exec "$CEKERNELS_BENCH" train 'linear:30000 linear:2000 linear:1' $table -d cpu:0 >"$scratch/out" 2>"$scratch/err"
    )
    code=$?
    [ $code -eq 6 ] || wrong "a limit of the process: exit code $code: $(cat "$scratch/err")"
    grep -q 'this process is not given more' "$scratch/err" || wrong "a limit of the process: $(cat "$scratch/err")"
fi

# ---- Standard streams ----
"$CEKERNELS_BENCH" train linear:1 $table --save="$scratch/closed.safetensors" >&- 2>"$scratch/err"
[ $? -eq 5 ] || wrong "a closed standard output is a success"
grep -q 'standard output' "$scratch/err" || wrong "a closed standard output: $(cat "$scratch/err")"
cmp -s "$scratch/closed.safetensors" "$scratch/kept" || wrong "what is printed went into the weights"
"$CEKERNELS_BENCH" train linear:1 $table --save="$scratch/closed.safetensors" >&- 2>&- <&-
cmp -s "$scratch/closed.safetensors" "$scratch/kept" || wrong "without any stream, the weights are others"
[ ! -w /dev/full ] || {
    "$CEKERNELS_BENCH" --help >/dev/full 2>"$scratch/err"
    [ $? -eq 5 ] || wrong "--help on a full disk is a success"
    "$CEKERNELS_BENCH" devices -o csv >/dev/full 2>"$scratch/err"
    [ $? -eq 5 ] || wrong "a list on a full disk is a success"
    grep -q 'standard output: No space left' "$scratch/err" || wrong "a full disk: $(cat "$scratch/err")"
}
finish
