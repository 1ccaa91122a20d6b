/* holds.c - see holds.h. */
#include "nn/train/holds.h"

#include "core/base/status.h"

/* The parameter of which a bucket holds most. */
static size_t largest_in(const cek__layout *layout, size_t bucket)
{
    const cek__placement *found = NULL;
    for (size_t i = 0; i < layout->piece_of[layout->parameter_count]; i++) {
        const cek__placement *p = &layout->placement[i];
        if (p->bucket == bucket && (!found || p->count > found->count))
            found = p;
    }
    return found->parameter;
}

cek_status cek__device_holds(cek_device *device, const cek_model *model, const cek__layout *layout, cek_status refusal)
{
    cek_status st;
    cek_device_info info = { .size = sizeof info };
    cek_parameter p;
    CEK_TRY(cek_device_describe(device, &info));
    for (size_t b = 0; b < layout->bucket_count; b++) {
        uint64_t bytes = cek__layout_bucket_bytes(layout, b);
        if (bytes <= info.max_alloc_bytes)
            continue;
        CEK_TRY(cek_model_parameter(model, largest_in(layout, b), &p));
        CEK_FAIL(refusal,
                 "%s: parameter %s has %llu bytes, in one piece of %llu with what lies beside it, and the device gives "
                 "%llu at once",
                 cek_device_name(device), p.name, (unsigned long long)p.count * cek_dtype_bytes(layout->type),
                 (unsigned long long)bytes, (unsigned long long)info.max_alloc_bytes);
    }
    st = CEK_OK;
out:
    return st;
}

cek_status cek_model_fits(const cek_model *model, cek_device *device, cek_dtype type)
{
    cek_status st;
    cek__layout *layout = NULL;
    CEK__NOT_NULL(model);
    CEK__NOT_NULL(device);
    CEK_TRY(cek__layout_create(model, type ? type : CEK_F32, &layout));
    st = cek__device_holds(device, model, layout, CEK_NO_DEVICE);
out:
    cek__layout_free(layout);
    return st;
}
