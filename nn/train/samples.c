/* samples.c - see samples.h. */
#include "nn/train/samples.h"

#include <stdio.h>
#include <string.h>

#include "core/base/status.h"

static void shape_text(int rank, const int64_t *shape, char *text, size_t size)
{
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < rank && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%lld", i ? "," : "", (long long)shape[i]);
}

cek_status cek__samples_fit(int rank, const int64_t *shape, const cek_dataset *dataset, const char *what)
{
    int64_t have[CEK_RANK_MAX];
    int have_rank = cek_dataset_shape(dataset, have);
    char want_text[128], have_text[128];
    if (rank == have_rank && memcmp(shape, have, (size_t)rank * sizeof *have) == 0)
        return CEK_OK;
    shape_text(rank, shape, want_text, sizeof want_text);
    shape_text(have_rank, have, have_text, sizeof have_text);
    return cek__fail(CEK_INVALID, "%s has samples of shape (%s), the model takes (%s)", what, have_text, want_text);
}

int64_t cek__samples_batch(const cek_dataset *dataset, int64_t batch)
{
    int64_t size = cek_dataset_size(dataset);
    return size > 0 && size < batch ? size : batch;
}
