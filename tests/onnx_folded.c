/* onnx_folded.c - says what cek__fold computes of ONNX files: FILE|TYPE|SIZES|VALUES of the first output, or FILE|not
 * known, or FILE|refused: why. For onnx.sh, which holds it against ONNX's own cases. */
#include <inttypes.h>
#include <stdio.h>

#include "nn/formats/onnx_fold.h"

static void print(const cek__fold_value *v)
{
    printf("%d|", v->type);
    for (uint32_t i = 0; i < v->rank; i++)
        printf("%" PRId64 " ", v->shape[i]);
    putchar('|');
    for (uint64_t i = 0; i < v->count; i++)
        if (v->type == CEK__ONNX_FLOAT)
            printf("%.9g ", v->numbers[i].real);
        else
            printf("%" PRId64 " ", v->numbers[i].constant);
    putchar('\n');
}

static cek_status compute(const char *path, cek__onnx **onnx, cek__fold *fold)
{
    bool known;
    cek_status st;

    CEK_TRY(cek__onnx_read(path, onnx));
    CEK_TRY(cek__fold_begin(*onnx, fold));
    for (size_t n = 0; n < (*onnx)->nodes_count; n++)
        CEK_TRY(cek__fold_node(fold, n, &known));
out:
    return st;
}

int main(int count, char **paths)
{
    for (int i = 1; i < count; i++) {
        cek__onnx *onnx = NULL;
        cek__fold fold = { 0 };
        cek_status st = compute(paths[i], &onnx, &fold);
        const cek__fold_value *v = st == CEK_OK ? cek__fold_known(&fold, onnx->outputs[0].value) : NULL;

        printf("%s|", paths[i]);
        if (v != NULL)
            print(v);
        else if (st == CEK_OK)
            puts("not known");
        else
            printf("refused: %s\n", cek_error_text());
        cek__fold_end(&fold);
        cek__onnx_free(onnx);
    }
    return 0;
}
