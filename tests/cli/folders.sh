# folders.sh - data as people have them: folders of images by class, what --data says that it took, options of images, predictions by
# class names, files that are broken.
. "$top_srcdir/tests/cli/lib.sh"

# image FILE VALUE [SIZE] - a grey picture of one level.
image() {
    { printf 'P5\n%s %s\n255\n' "${3-8}" "${3-8}" && head -c $((${3-8} * ${3-8})) /dev/zero | tr '\0' "\\$(printf %03o "$2")"; } >"$1"
}
data=$scratch/data
mkdir -p "$data/dark" "$data/light"
for i in 0 1 2 3 4 5 6 7 8 9; do
    image "$data/dark/$i.pgm" $((10 + i))
    image "$data/light/$i.pgm" $((200 + i))
done
net='flatten linear:2'

# ---- Classes, split, names ----
run 0 train "$net" --data="$data" --epochs 20 --batch 4 --save="$scratch/w" --json
grep -q "data: class folders: 20 samples of 2 classes, 1 x 8 x 8" "$scratch/err" || wrong "what was taken is not told: $(cat "$scratch/err")"
holds "$(value test_accuracy) == 1"
grep -q 'cekernels.classes":"dark/light' "$scratch/w" || wrong "the weights have no names of classes"
run 0 train "$net" --data="$data" --steps 1 --batch 4 -q --json
[ ! -s "$scratch/err" ] || wrong "-q tells what was taken"
run 0 predict "$net" --data="$data" --load="$scratch/w" --test-fraction=0
grep -Eq '^ +0 +dark +[01]\.[0-9]+ +dark' "$scratch/out" || wrong "no names in: $(cat "$scratch/out")"
run 0 predict "$net" --data="$data/light/3.pgm" --load="$scratch/w"
grep -Eq '3\.pgm +1 +light' "$scratch/out" || wrong "no name for one image: $(cat "$scratch/out")"
run 0 predict "$net" --data="$data/dark" --load="$scratch/w" --json
holds "$(value samples) == 10"
grep -q '"class": "dark"' "$scratch/out" || wrong "no class in JSON"
! grep -q accuracy "$scratch/out" || wrong "an accuracy of images without classes"
mv "$data/light" "$data/bright"
refused 5 'class 0 is "bright".*"dark" to the weights' predict "$net" --data="$data" --load="$scratch/w" -q
mv "$data/bright" "$data/light"

# ---- A part for testing ----
mkdir -p "$scratch/two/train" "$scratch/two/test/light"
cp -r "$data/dark" "$data/light" "$scratch/two/train"
image "$scratch/two/test/light/a.pgm" 205
run 0 train "$net" --data="$scratch/two" --epochs 20 --batch 4 --json
holds "$(value test_accuracy) == 1"
refused 2 'has its test set' train "$net" --data="$scratch/two" --test-fraction=0.5 --steps 1 -q
mkdir "$scratch/two/test/dim"
image "$scratch/two/test/dim/a.pgm" 5
refused 5 'no class is called "dim"' train "$net" --data="$scratch/two" --steps 1 -q

# a_worker_fails TEXT ARG... - one line that has TEXT, whatever was printed before.
a_worker_fails() {
    said=$1
    shift
    run 5 train "$net" --data="$data" --test-fraction=0 -q "$@"
    grep -q -e "$said" "$scratch/err" || wrong "no \"$said\" in: $(cat "$scratch/err")"
    [ "$(wc -l <"$scratch/err")" -eq 1 ] || wrong "not one line: $(cat "$scratch/err")"
}

# ---- Sizes, changes by chance, numbers ----
image "$data/dark/large.pgm" 15 40
a_worker_fails 'large.pgm: 40 x 40 pixels.* brought to; --image-size=HxW gives them$'
run 0 train "$net" --data="$data" --image-size=6x4 --epochs 2 --json
grep -q '1 x 6 x 4' "$scratch/err" || wrong "another size is not told"
change="--augment=crop:1,flip,rotate:10,colour:0.2 --normalize=measured --image-size=8x8 --epochs 4 --batch 3 --json"
run 0 train "$net" --data="$data" $change --workers=1 --prefetch=1 --pin=no
one=$(value weights_sha256)
grep -q -e '--normalize=0\.[0-9]*:0\.[0-9]* was measured' "$scratch/err" || wrong "what was measured is not told"
run 0 train "$net" --data="$data" $change --workers=4 --prefetch=5 --pin=yes
[ "$one" = "$(value weights_sha256)" ] || wrong "weights depend on workers"
run 0 train "$net" --data="$data" $change --workers=2 -d cpu:0 --shares=equal
[ "$one" = "$(value weights_sha256)" ] || wrong "weights depend on how batches are filled"
run 0 train "$net" --data="$data" --image-size=8x8 --epochs 4 --batch 3 --normalize=0.4:0.3 --save="$scratch/n"
run 0 predict "$net" --data="$data/light/1.pgm" --load="$scratch/n" --normalize=0.4:0.3
grep -q light "$scratch/out" || wrong "a normalised image is not recognised"

# ---- Arrays ----
array() { printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': ($1,), }"; }
mkdir "$scratch/arrays"
{ array 20,8,8 && for i in 0 1 2 3 4 5 6 7 8 9; do
    tail -c 64 "$data/dark/$i.pgm"
    tail -c 64 "$data/light/$i.pgm"
done; } >"$scratch/arrays/x.npy"
{ array 20 && printf '\000\001\000\001\000\001\000\001\000\001\000\001\000\001\000\001\000\001\000\001'; } >"$scratch/arrays/y.npy"
run 0 train "$net" --data="$scratch/arrays" --epochs 20 --batch 4 --augment=crop:1,flip --normalize=measured --json
grep -q "arrays: arrays: 20 samples of 2 classes, 1 x 8 x 8" "$scratch/err" || wrong "arrays are not told: $(cat "$scratch/err")"
holds "$(value test_accuracy) == 1"
head -c 1000 "$scratch/arrays/x.npy" >"$scratch/x.npy" && mv "$scratch/x.npy" "$scratch/arrays"
refused 5 'x.npy: its header promises' train "$net" --data="$scratch/arrays" --steps 1 -q
rm "$scratch/arrays/y.npy"
refused 5 'there is x and no y' train "$net" --data="$scratch/arrays" --steps 1 -q
echo hello >"$scratch/a.npz"
refused 5 'a.npz: damaged zip' train "$net" --data="$scratch/a.npz" --steps 1 -q

# ---- What is wrong ----
for text in crop crop:x crop:-1 crop:1.5 flip:1 rotate:200 colour:2 '' flip, ,flip swirl; do
    refused 2 "^cekernels-bench: --augment=$text: .* is wanted" train "$net" --data="$data" --augment="$text"
done
for text in '' 1 1:0 1,2:1 x:1 1:-1 1:1,; do
    refused 2 "^cekernels-bench: --normalize=$text: .* wanted" train "$net" --data="$data" --normalize="$text"
done
for text in 8 8x 0x8 8x8x8 -1x8 axb; do
    refused 2 "^cekernels-bench: --image-size=$text: .* is wanted" train "$net" --data="$data" --image-size="$text"
done
refused 2 'pin=maybe: no or yes' train "$net" --data="$data" --pin=maybe
refused 2 'workers=0' train "$net" --data="$data" --workers=0
refused 2 'image-size is for --data' train "$net" --image-size=8x8
refused 2 'augment is for images' train linear:1 --csv="$scratch/none" --target=y --augment=flip
refused 2 'channel 0: (0 - 0.4) / 1e-300 is not finite' train "$net" --data="$data" --image-size=8x8 --normalize=0.4:1e-300 -q
refused 2 '3 channels\|1 channels' train "$net" --data="$data" --image-size=8x8 --normalize=1,2,3:1,1,1 -q
refused 5 'nothing can be learnt' train "$net" --data="$data/dark" --image-size=8x8 --steps 1 -q
refused 5 'none: cannot be read' train "$net" --data="$scratch/none"
mkdir "$scratch/empty"
refused 5 'neither train-images' train "$net" --data="$scratch/empty"
mkdir "$data/void"
refused 5 'void: a class without images' train "$net" --data="$data"
rmdir "$data/void"
broken() { # broken TEXT CONTENT... - as the first image, which is decoded at once, and as the last, which a worker decodes.
    cause=$1
    shift
    for file in "$data/dark/!.png" "$data/light/z.png"; do
        printf "$@" >"$file"
        a_worker_fails "${file##*/}: .*$cause" --image-size=8x8
        rm "$file"
    done
}
broken 'the file is empty' ''
broken 'no PNG' 'hello'
broken 'shorter' 'P5\n100000 100000\n255\nx'
broken '100000 x 100000' '\211PNG\r\n\032\n\000\000\000\rIHDR\000\001\206\240\000\001\206\240\010\000\000\000\000\215\071\124\024\000\000\000\001IDATx'
broken 'damaged PNG' '\211PNG\r\n\032\nxx'
finish
