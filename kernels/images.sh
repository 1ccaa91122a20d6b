#!/bin/sh
# images.sh - which variants of kernels/gpu become machine code when the plugin is built with nvcc.
#
#   images.sh unit SOURCE.cl [RE]    prints one CUDA file with all variants of a source (run in the top folder of the sources)
#   images.sh variants SOURCE.cl [RE] prints the variants, one a line; with RE those that match it alone
#   images.sh table [SOURCE.cl...]   prints C: the table of variants, with FOLDER/SOURCE.fatbin beside each
#
# A variant is the definitions that the lowering (backends/gpu/lower_*.c) puts in front of a source, in its order: what is not
# found here is compiled at run time, or refused where no compiler is. Chains of pointwise instructions have no end of
# variants, so one kernel that reads the chain as numbers stands for all.
set -eu
here=kernels/gpu

# One line per variant, the definitions as NAME=VALUE.
variants() { all_of "$1" | sed 's/ *$//' | grep -E -e "${2:-.}"; }
all_of() {
    case $1 in
    copy.cl)
        for flat in '' FLAT=1; do
            for size in 8 16 32; do echo "COPY_AS=cek_u$size $flat WIDE=$((128 / size))"; done
            for from in f32 f16 bf16 u8 i32; do
                for to in f32 f16 bf16 u8 i32; do
                    case $from$to in *32*) wide=4 ;; *) wide=8 ;; esac
                    [ $from = $to ] || echo "X_TYPE=$from Y_TYPE=$to $flat WIDE=$wide"
                done
            done
        done ;;
    gather.cl)
        for size in 8:0u 16:0x7e00u 16:0x7fc0u 32:0u 32:0x7fc00000u; do
            echo "GATHER_AS=cek_u${size%:*} NOTHING=${size#*:}"
        done
        for type in f32 f16 bf16; do echo "TYPE=$type"; done ;;
    optimizer.cl)
        for low in '' LOW_TYPE=f16 LOW_TYPE=bf16; do echo "TYPE=f32 $low"; done ;;
    pointwise.cl)
        echo INTERPRET=1 ;;
    pool.cl)
        for type in f32 f16 bf16; do
            for spatial in 2 3; do
                for average in '' AVERAGE=1; do
                    for channels in 4 1; do
                        echo "TYPE=$type SPATIAL=$spatial $average CHANNELS=$channels"
                        [ $spatial = 3 ] || echo "TYPE=$type SPATIAL=$spatial $average CHANNELS=$channels MANY=1"
                    done
                done
            done
        done ;;
    random.cl | rows.cl)
        for type in f32 f16 bf16; do echo "TYPE=$type"; done ;;
    product.cl)
        for mode in 0 1 2 3; do
            for type in f32 f16 bf16; do
                if [ $mode = 3 ]; then result=f32; else result=$type; fi
                products "MODE=$mode A_TYPE=$type B_TYPE=$type C_TYPE=$result" $mode $type
                [ $mode != 0 ] || products "MODE=0 OUTER=1 A_TYPE=$type B_TYPE=$type C_TYPE=$type" 0 $type
            done
        done
        for type in f16 bf16; do
            products "MODE=0 A_TYPE=$type B_TYPE=$type C_TYPE=f32" 0 $type
            products "MODE=0 OUTER=1 A_TYPE=$type B_TYPE=$type C_TYPE=f32" 0 $type
        done ;;
    reduce.cl)
        for type in f32 f16 bf16 u8 i32; do
            for function in 1 3 4 5 6; do echo "TYPE=$type FUNCTION=$function"; done
            for function in 1 2; do echo "TYPE=$type ARG=$function"; done
        done
        for type in f32 f16 bf16; do
            for function in 1 3 4 5 6; do echo "TYPE=$type FUNCTION=$function TERMS=1"; done
        done ;;
    *) echo "images.sh: no variants of $1" >&2; exit 1 ;;
    esac
}

# products DEFINES MODE TYPE - the shapes of a product's groups, as shape_fits in lower_product.c has them, and its end alone.
products() {
    shapes='16:16 8:8'
    if [ "$3" = f32 ]; then
        case $2 in
        0) shapes="$shapes 4:16 16:4" ;;
        3) shapes="$shapes 16:4" ;;
        *) shapes="$shapes 4:16" ;;
        esac
    fi
    for shape in $shapes; do echo "$1 SIDE_X=${shape%:*} SIDE_Y=${shape#*:}"; done
    echo "$1 WHOLE=1"
}

# Each variant in a namespace of its own, its kernels under names of their own.
unit() {
    kernels=$(sed -n 's/^KERNEL[^ ]*\( [A-Z_, ]*)\)\{0,1\} void \([a-z_0-9]*\)(.*/\2/p' "$here/$1")
    beside=$(sed -n "s|^#include \"\(.*\)\"|$here/\1|p" "$here/$1")
    macros=$(sed -n 's/^# *define \([A-Za-z_0-9]*\).*/\1/p' "$here/$1" $beside | LC_ALL=C sort -u)
    echo "/* Made by kernels/images.sh. */"
    echo "#include \"$here/dialect.h\""
    echo "#include \"$here/args.h\""
    number=0
    variants "$@" | while read -r defines; do
        echo "namespace v$number {"
        for define in $defines; do echo "#define ${define%%=*} ${define#*=}"; done
        for kernel in $kernels; do echo "#define $kernel v${number}_$kernel"; done
        echo "#include \"$here/$1\""
        for define in $defines; do echo "#undef ${define%%=*}"; done
        for name in $kernels $macros; do echo "#undef $name"; done
        echo "}"
        number=$((number + 1))
    done
}

table() {
    echo "/* Made by kernels/images.sh. */"
    echo "#include \"backends/cuda/cuda.h\""
    for source; do
        echo "__asm__(\".section .rodata\\n.balign 64\\ncek__image_${source%.cl}: .incbin \\\"kernels/cuda/${source%.cl}.fatbin\\\"\\n.previous\");"
        echo "extern const char cek__image_${source%.cl}[] __attribute__((visibility(\"hidden\")));"
    done
    echo "const cek__cuda_image cek__cuda_images[] = {"
    for source; do
        number=0
        variants "$source" | while read -r defines; do
            text=
            for define in $defines; do text="$text#define ${define%%=*} ${define#*=}\\n"; done
            echo "    { \"$source\", \"$text\", \"v${number}_\", cek__image_${source%.cl} },"
            number=$((number + 1))
        done
    done
    echo "    { NULL, NULL, NULL, NULL },"
    echo "};"
}

command=$1
shift
"$command" "$@"
