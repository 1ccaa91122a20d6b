# nets.sh - built-in networks over the command line: trained, saved, read again, on images in colour.
. "$top_srcdir/tests/cli/lib.sh"

# Twenty images of 32x32x3 with labels 0 to 9: waves, shorter for a larger label.
data=$scratch/images
mkdir "$data"
for part in train t10k; do
    { printf '\000\000\010\004\000\000\000\024\000\000\000\040\000\000\000\040\000\000\000\003'
      LC_ALL=C awk 'BEGIN { for (i = 0; i < 20; i++) for (k = 0; k < 3072; k++) printf "%c", 1 + (k * (i % 10 + 1) + 7 * i) % 120 }'
    } >"$data/$part-images-idx3-ubyte"
    { printf '\000\000\010\001\000\000\000\024'
      printf '\000\001\002\003\004\005\006\007\010\011\000\001\002\003\004\005\006\007\010\011'
    } >"$data/$part-labels-idx1-ubyte"
done

# What is learnt by heart in training shows in evaluation too, if more slowly, as running statistics follow; and there again from
# what was saved.
run 0 train resnet18 --data "$data" --epochs 20 --batch 20 -d cpu:0 --save "$scratch/w.safetensors" --json
accuracy=$(value epochs.19.test_accuracy)
holds "$(value epochs.19.train_accuracy) == 1 && $(value epochs.19.test_loss) < 0.95 * $(value epochs.0.test_loss)"
run 0 predict resnet18 --data "$data" --load "$scratch/w.safetensors" -d cpu:0 --json
holds "$(value results) == 20 && $(value test_accuracy) == $accuracy"
refused 5 'no tensor "features.0.0.weight"' predict mobilenetv2 --data "$data" --load "$scratch/w.safetensors" -d cpu:0
refused 5 'fc.weight' predict resnet18:11 --data "$data" --load "$scratch/w.safetensors" -d cpu:0
refused 5 'classes' train resnet18:none --data "$data"

# learns MODEL STEPS LAST LOSS ARG... - by the rate that is its own; of so many last steps the mean loss is below this.
learns() {
    model=$1 last=$3 most=$4
    run 0 train "$model" --steps "$2" --log-every 1 -d cpu:0 -o jsonl -q ${5-}
    told=$(sed -n 's/.*"loss":\([^,}]*\).*"seconds".*/\1/p' "$scratch/out" | tail -n "$last" |
        awk -v last="$last" -v most="$most" '{ sum += $1 } END { print sum / last; exit !(NR == last && sum / last < most) }') ||
        wrong "$model: a loss of $told, not below $most"
}
# Digits in colour; who guesses has ln 10, and a rate of 0.05 more than 3.
learns resnet18 50 10 1.8
learns mobilenetv2 200 20 2.2
learns resnet50 30 5 0.1 "--data=$data --batch=20"

# Without files: digits in colour. Ten classes, so the first loss is near ln 10.
run 0 train mobilenetv2 --steps 1 --log-every 1 --batch 8 -d cpu:0 -o jsonl --export "$scratch/m.onnx"
holds "$(sed -n 1p "$scratch/out" | "$json" loss) > 2.2 && $(sed -n 1p "$scratch/out" | "$json" loss) < 2.4"
run 0 train "$scratch/m.onnx" --steps 1 --batch 8 -d cpu:0

# A language model on the bytes of a file that never changes: before it has learnt, each of 256 is as likely as another, and then
# some are not.
LC_ALL=C awk 'BEGIN { for (i = 0; i < 40000; i++) { s = (s * 1103 + 12345) % 65536; printf "%c", 97 + int(s / 256) % 16 } }' >"$scratch/text"
run 0 train gpt:1 --data "$scratch/text" --steps 12 --log-every 1 --batch 4 -d cpu:0 -o jsonl --save "$scratch/gpt" --export "$scratch/gpt.onnx"
holds "$(sed -n 1p "$scratch/out" | "$json" loss) > 5.4 && $(sed -n 1p "$scratch/out" | "$json" loss) < 5.7"
holds "$(sed -n 12p "$scratch/out" | "$json" loss) < 5"
refused 2 'data=FILE' train gpt
head -c 200 "$scratch/text" >"$scratch/short"
refused 5 'no window' train gpt --data "$scratch/short"
refused 2 'no rows' predict gpt:1 --data "$scratch/text" --load "$scratch/gpt" -d cpu:0

# As an ONNX file it reads texts too, and goes on from where it stood.
run 0 train "$scratch/gpt.onnx" --data "$scratch/text" --steps 1 --log-every 1 --batch 4 -d cpu:0 -o jsonl
holds "$(sed -n 1p "$scratch/out" | "$json" loss) < 4.5"
refused 2 'gpt.onnx reads whole numbers, the bytes of a text: --data=FILE is wanted' train "$scratch/gpt.onnx"
refused 2 'no rows' predict "$scratch/gpt.onnx" --data "$scratch/text" -d cpu:0
finish
