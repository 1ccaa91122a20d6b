/* 01_devices - what this machine can compute on: PyTorch's torch.cuda.device_count() and friends.
 *
 *     01_devices              every device, and why a plugin is not there
 *     01_devices cuda:0,cpu:0 the first of these that exists (falls back from left to right)
 */
#include <stdio.h>
#include <stdlib.h>

#include <cekernels/cekernels.h>

static const char *kind_name(uint32_t kind)
{
    return kind == CEK_KIND_CPU ? "cpu" : kind == CEK_KIND_GPU ? "gpu" : "accelerator";
}

static int show(cek_device *device)
{
    cek_device_info info = { .size = sizeof info };
    if (cek_device_describe(device, &info) != CEK_OK) {
        fprintf(stderr, "%s: %s\n", cek_device_name(device), cek_error_text());
        return 1;
    }
    printf("%-12s %-12s %3u units  ", cek_device_name(device), kind_name(info.kind), info.compute_units);
    if (info.total_bytes != CEK_UNKNOWN)
        printf("%6.1f GiB  ", (double)info.total_bytes / (1u << 30));
    printf("%s%s\n", info.name, info.flags & CEK_DEVICE_ONLY_WHEN_NAMED ? "  (only when named)" : "");
    return 0;
}

int main(int argc, char **argv)
{
    cek_engine *engine = NULL;
    cek_device *device = NULL;
    char *report = NULL;
    int failed = 1;
    if (cek_engine_create(NULL, &engine) != CEK_OK)
        goto out;
    if (argc > 1) {
        if (cek_engine_find(engine, argv[1], &device) != CEK_OK)
            goto out;
        failed = show(device);
        goto out;
    }
    if (cek_engine_start(engine) != CEK_OK)
        goto out;
    failed = 0;
    for (size_t i = 0; i < cek_engine_device_count(engine); i++)
        failed |= show(cek_engine_device(engine, i));
    if (cek_engine_load_report(engine, &report) == CEK_OK)
        printf("\n%s", report);
out:
    if (failed)
        fprintf(stderr, "01_devices: %s\n", cek_error_text());
    free(report);
    cek_engine_free(engine);
    return failed;
}
