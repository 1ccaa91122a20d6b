# cache.sh - compiled kernels on disk: what is damaged in any way is compiled again and replaced,
# what cannot be written is only slow, and several processes at once do not get in each other's way.
. "$top_srcdir/tests/opencl/lib.sh"
unset CEKERNELS_OPENCL_CACHE
XDG_CACHE_HOME=$scratch/home
POCL_KERNEL_CACHE=0  # or PoCL keeps what it compiled, and we do not
export XDG_CACHE_HOME POCL_KERNEL_CACHE
cache=$scratch/home/cekernels
ALL=copy

good() { # WHAT: conformance passes
    run 0 check -d opencl:0 -t f32 $ALL --json
    holds "$(value required_passed) == $(value required) && $(value required) >= 39" || wrong "$1"
}
# What is there, by name and bytes.
sums() {
    (cd "$cache" && find . -name 'opencl-*' -type f -size +0 | sort | xargs cksum)
}
# A file is as long as it says: bytes 8 to 15 of its head of 24 have the length of what follows.
whole() { # FILE
    [ "$(stat -c %s "$1")" = "$(($(od -An -tu8 -j8 -N8 "$1" || :) + 24))" ]
}
good "the first time"
[ "$(ls "$cache" | grep -c '^opencl-[0-9a-f]*$')" -ge 2 ] || { wrong "no compiled kernel was kept"; finish; }
[ "$(stat -c %a "$cache")" = 700 ] || wrong "others may look into a cache that we made"
sums >"$scratch/first"
for file in "$cache"/*; do
    whole "$file" || wrong "$file is not as long as it says"
done

# Read, not written again: what is there keeps its time.
find "$cache" -name 'opencl-*' -exec touch -d '2001-01-01' {} +
good "from the disk"
[ -z "$(find "$cache" -name 'opencl-*' -newermt 2002-01-01)" ] || wrong "sound files were written again"

damaged() { # WHAT COMMAND: every file is damaged by it, noticed and replaced
    checks=$((checks + 1))
    for file in "$cache"/opencl-*; do
        eval "$2"
    done
    good "$1"
    for file in "$cache"/opencl-*; do
        [ -n "$(find "$file" -newermt 2002-01-01)" ] || wrong "$1: $file was believed"
    done
    find "$cache" -name 'opencl-*' -exec touch -d '2001-01-01' {} +
}
# A byte becomes another, whatever it was.
flip() { # FILE AT
    printf "\\$(printf %o $((255 - $(od -An -tu1 -j"$2" -N1 "$1"))))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
old='touch -d 2001-01-01 "$file"'
damaged "cut short" 'truncate -s 200 "$file"; '"$old"
damaged "empty" ': >"$file"; '"$old"
damaged "a byte in the middle" 'flip "$file" $(($(stat -c %s "$file") / 2)); '"$old"
damaged "its last byte" 'flip "$file" $(($(stat -c %s "$file") - 1)); '"$old"
damaged "another version" 'printf "cekcl00" | dd of="$file" bs=1 conv=notrunc 2>/dev/null; '"$old"
damaged "a length of 2^60" 'printf "\20" | dd of="$file" bs=1 seek=15 conv=notrunc 2>/dev/null; '"$old"
damaged "written to by others" 'chmod g+w "$file"; '"$old"
set -- "$cache"/opencl-*
if cmp -s "$1" "$2"; then wrong "two kernels are alike"; fi
cp "$2" "$1"  # sound, but of another kernel
touch -d 2001-01-01 "$1"
good "exchanged"
if cmp -s "$1" "$2"; then wrong "another kernel was believed to be this one"; fi
sums >"$scratch/last"
[ "$(cut -d' ' -f3 "$scratch/first")" = "$(cut -d' ' -f3 "$scratch/last")" ] || wrong "there are other files now"

# What stands in the way.
set -- "$cache"/opencl-*
rm "$1" && mkdir "$1"
good "a folder in the way"
rmdir "$1" && mkfifo "$1"
good "a pipe in the way"
rm -f "$1"
ln -s /dev/zero "$1"
good "a device in the way"
rm -rf "$cache"
: >"$cache"
good "a file where the folder should be"
for place in "$cache" "$cache/below" /proc/none; do # one that is named is not left out in silence
    CEKERNELS_OPENCL_CACHE=$place run 0 op softmax 4x4 -d opencl:0 -w 0 -r 1
    grep -q "opencl_cache=$place: .*; no kernel is kept" "$scratch/err" || wrong "$place: $(cat "$scratch/err")"
done
rm "$cache"
if [ -c /dev/full ]; then
    mkdir "$cache"
    if mount -t tmpfs -o size=4k tmpfs "$cache" 2>/dev/null; then
        good "a full disk"
        for file in "$cache"/*; do  # what fits is there; nothing else may be
            [ ! -e "$file" ] || whole "$file" || wrong "half a file was left on a full disk: $(ls -l "$cache")"
        done
        umount "$cache"
    fi
    rmdir "$cache"
fi
if [ "$(id -u)" != 0 ]; then
    mkdir "$cache" && chmod 500 "$cache"
    good "a folder that may not be written to"
    chmod 700 "$cache" && rmdir "$cache"
fi

# Four processes compile the same at once. Each has a folder of its own for what PoCL keeps: it removes it when it ends.
for i in 1 2 3 4; do
    POCL_CACHE_DIR=$scratch/pocl$i "$CEKERNELS_BENCH" check -d opencl:0 -t f32 $ALL --json -q >"$scratch/out$i" 2>&1 &
done
wait
for i in 1 2 3 4; do
    checks=$((checks + 1))
    [ "$("$json" passed <"$scratch/out$i")" = true ] || wrong "process $i of four: $(head -3 "$scratch/out$i")"
done
[ -z "$(ls "$cache" | grep -v '^opencl-[0-9a-f]*$')" ] || wrong "something was left: $(ls "$cache")"
finish
