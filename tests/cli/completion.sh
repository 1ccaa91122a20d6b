# completion.sh - bash really completes the words of cekernels-bench with what `completion bash` prints; so does zsh
# where there is one.
. "$top_srcdir/tests/cli/lib.sh"
command -v bash >/dev/null || { echo "completion: no bash"; exit 77; }

run 0 completion bash
cp "$scratch/out" "$scratch/bash"
bash -n "$scratch/bash" || wrong "what is printed for bash is no script of bash"
run 0 completion zsh
cp "$scratch/out" "$scratch/zsh"
refused 2 'bash or zsh' completion
refused 2 'did you mean zsh?' completion zhs

# completed WORD... - what bash offers for the last word, a line each. A value behind = is three words, as bash has it.
completed() {
    bash --norc --noprofile -c 'source "$1"; shift; COMP_WORDS=(cekernels-bench "$@"); COMP_CWORD=$#
        _cekernels_bench 2>/dev/null; printf "%s\n" "${COMPREPLY[@]}"' - "$scratch/bash" "$@" >"$scratch/words"
}
offers() { # offers WORD WORDS... - WORD is offered where WORDS have been typed
    word=$1
    shift
    checks=$((checks + 1))
    completed "$@"
    grep -qx -e "$word" "$scratch/words" || wrong "$*: $word is not offered, but: $(tr '\n' ' ' <"$scratch/words")"
}
alone() { # alone WORD WORDS... - and nothing else is
    offers "$@"
    [ "$(wc -l <"$scratch/words")" -eq 1 ] || wrong "$*: more is offered: $(tr '\n' ' ' <"$scratch/words")"
}

# Every command and every option, out of help.
"$CEKERNELS_BENCH" help >"$scratch/help"
for command in $(sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' "$scratch/help"); do
    alone "$command" "$command"
    "$CEKERNELS_BENCH" help "$command" >"$scratch/page"
    completed "$command" --
    sed 's/=$//' "$scratch/words" | sort -u >"$scratch/offered"
    { sed -n 's/^  ...\? *\(--[a-z-]*\).*/\1/p' "$scratch/page" && echo --help; } | sort -u >"$scratch/has"
    cmp -s "$scratch/offered" "$scratch/has" ||
        wrong "options of $command: $(diff "$scratch/offered" "$scratch/has" | tr '\n' ' ')"
done
alone train tr
alone --epochs= train lenet5 --ep
alone --epochs= --ep
alone jsonl devices --output = jsonl
offers table devices -o ''
offers adamw train --optimizer ada
alone rmsprop -d cpu train --optimizer = rm
alone fastest gemm -d fast
offers lenet5 train le
offers resnet18 -d gpu --batch = 64 train res
alone softmax op soft
alone queue check gemm que
alone predict help pred
alone zsh completion z
cd "$scratch" || exit 99
touch weights.safetensors
alone weights.safetensors predict lenet5 --load = wei
alone weights.safetensors predict wei
touch 'two words * here.csv' # one file, which stays one
alone 'two words \* here.csv' train --csv = two
alone 'two words \* here.csv' predict lenet5 two

# The word that is typed, by a shell that is driven through a terminal of its own.
if command -v zsh >/dev/null; then
    mkdir "$scratch/functions"
    cp "$scratch/zsh" "$scratch/functions/_cekernels-bench"
    cat >"$scratch/drive" <<'DRIVE'
zmodload zsh/zpty || exit 77
zpty shell "zsh -f -i"
say() { zpty -w shell "$1"; }
say "PS1= PS2= ; unsetopt zle_bracketed_paste 2>/dev/null; stty -echo"
say "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D -d $1/dump; LISTMAX=0"
say "zstyle ':completion:*' insert-tab false"
sleep 1
zpty -w -n shell $'cekernels-bench '"$2"$'\t'
sleep 1
zpty -w -n shell $'\x01echo BEGIN-\x05-END\n'
sleep 0.5
while zpty -r -t shell line; do print -rn -- "$line"; done
zpty -d shell
DRIVE
    typed() { # typed WORDS EXPECTED - zsh makes one of the other
        checks=$((checks + 1))
        TERM=xterm zsh -f "$scratch/drive" "$scratch/functions" "$1" >"$scratch/typed" 2>&1
        tr -d '\r' <"$scratch/typed" | grep -qF -e "BEGIN-cekernels-bench $2" ||
            wrong "zsh: '$1' becomes something else than '$2': $(tail -3 "$scratch/typed" | od -c | tail -20)"
    }
    typed 'dev' 'devices'
    typed 'train --ep' 'train --epochs' # zsh takes its = away behind the word, for the next key
    typed 'train --optimizer=rm' 'train --optimizer=rmsprop'
    typed 'help pred' 'help predict'
else
    echo "completion: no zsh, its script was not run"
fi
finish
