/* 02_tensors - create, move, compute, read back; and what happens when tensors on two devices meet.
 *
 *     02_tensors [DEVICE [OTHER]]     default: the first device, and the reference
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cekernels/cekernels.h>

#define TRY(call)                                                  \
    do {                                                           \
        if ((call) != CEK_OK) {                                    \
            fprintf(stderr, "02_tensors: %s\n", cek_error_text()); \
            goto out;                                              \
        }                                                          \
    } while (0)

int main(int argc, char **argv)
{
    cek_engine *engine = NULL;
    cek_device *device, *other;
    cek_tensor *a = NULL, *b = NULL, *product = NULL, *bias = NULL, *sum = NULL, *moved = NULL, *mixed = NULL;
    cek_tensor *image = NULL, *kernel = NULL, *edges = NULL;
    cek_tensor *grid = NULL, *column = NULL, *large = NULL, *zero = NULL, *kept = NULL, *best = NULL;
    char *text = NULL;
    const float left[6] = { 1, 2, 3, 4, 5, 6 }, right[6] = { 1, 0, 0, 1, 1, 1 }, row[2] = { 10, 20 };
    const float want[4] = { 14, 25, 20, 31 };
    float got[4], pixels[16], response[4];
    int failed = 1;

    TRY(cek_engine_create(NULL, &engine));
    TRY(cek_engine_find(engine, argc > 1 ? argv[1] : NULL, &device));
    TRY(cek_engine_find(engine, argc > 2 ? argv[2] : "reference:0", &other));

    /* (2,3) x (3,2), then a row that is broadcast over both rows of the product. */
    TRY(cek_tensor_from_host(device, CEK_F32, 2, (int64_t[]){ 2, 3 }, left, &a));
    TRY(cek_tensor_from_host(device, CEK_F32, 2, (int64_t[]){ 3, 2 }, right, &b));
    TRY(cek_tensor_from_host(device, CEK_F32, 1, (int64_t[]){ 2 }, row, &bias));
    TRY(cek_matmul(a, b, &product));
    TRY(cek_add(product, bias, &sum));
    TRY(cek_tensor_read(sum, got, sizeof got));
    printf("on %s: [[%g, %g], [%g, %g]]\n", cek_device_name(device), got[0], got[1], got[2], got[3]);
    for (int i = 0; i < 4; i++)
        if (fabsf(got[i] - want[i]) > 1e-6f) {
            fprintf(stderr, "02_tensors: element %d is %g, not %g\n", i, got[i], want[i]);
            goto out;
        }

    /* A 3x3 sum over a 4x4 image of one channel: NHWC, weights [out][kh][kw][in]. */
    for (int i = 0; i < 16; i++)
        pixels[i] = (float)i;
    TRY(cek_tensor_from_host(device, CEK_F32, 4, (int64_t[]){ 1, 4, 4, 1 }, pixels, &image));
    TRY(cek_tensor_full(device, CEK_F32, 4, (int64_t[]){ 1, 3, 3, 1 }, 1.0, &kernel));
    TRY(cek_conv2d(image, kernel, NULL, NULL, &edges));
    TRY(cek_tensor_read(edges, response, sizeof response));
    printf("convolution: %g %g %g %g\n", response[0], response[1], response[2], response[3]);
    if (response[0] != 45 || response[3] != 90) {
        fprintf(stderr, "02_tensors: the convolution is wrong\n");
        goto out;
    }

    /* A view shows another tensor's memory: what is written to the last column is in the whole. Then 0 where a number
     * is not above 60, and where each row has its largest. */
    TRY(cek_tensor_reshape(edges, 2, (int64_t[]){ 2, 2 }, &grid));
    TRY(cek_tensor_select(grid, 1, -1, &column)); /* grid[:, -1] */
    TRY(cek_tensor_assign(column, bias));
    TRY(cek_tensor_full(device, CEK_F32, 0, NULL, 60, &zero));
    TRY(cek_gt(grid, zero, &large));
    TRY(cek_tensor_write(zero, (float[]){ 0 }, sizeof(float)));
    TRY(cek_where(large, grid, zero, &kept));
    TRY(cek_argmax(kept, 1, &best));
    TRY(cek_tensor_text(kept, NULL, &text)); /* as NumPy writes it */
    printf("%s\n", text);
    TRY(cek_tensor_read(kept, response, sizeof response));
    if (response[0] != 0 || response[2] != 81) {
        fprintf(stderr, "tensors: the choice is wrong\n");
        goto out;
    }

    /* tensor.to(device) */
    TRY(cek_tensor_to(sum, other, &moved));
    TRY(cek_tensor_read(moved, got, sizeof got));
    printf("moved to %s: [[%g, %g], [%g, %g]]\n", cek_device_name(cek_tensor_device(moved)), got[0], got[1], got[2],
           got[3]);

    /* Tensors on two devices are never mixed silently. */
    if (other != device) {
        if (cek_add(sum, moved, &mixed) == CEK_OK) {
            fprintf(stderr, "02_tensors: %s and %s were mixed\n", cek_device_name(device), cek_device_name(other));
            goto out;
        }
        printf("as it should be: %s\n", cek_error_text());
    }
    failed = 0;
out:
    cek_tensor_free(mixed);
    cek_tensor_free(moved);
    free(text);
    cek_tensor_free(best);
    cek_tensor_free(kept);
    cek_tensor_free(zero);
    cek_tensor_free(large);
    cek_tensor_free(column);
    cek_tensor_free(grid);
    cek_tensor_free(edges);
    cek_tensor_free(kernel);
    cek_tensor_free(image);
    cek_tensor_free(sum);
    cek_tensor_free(product);
    cek_tensor_free(bias);
    cek_tensor_free(b);
    cek_tensor_free(a);
    cek_engine_free(engine);
    return failed;
}
