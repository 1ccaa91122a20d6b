/* fit.c - see fit.h. */
#include "bench/fit.h"

#include <stdlib.h>
#include <string.h>

static bool is_open_to_all(const bench_options *o)
{
    const char *list = o->devices ? o->devices : getenv("CEKERNELS_DEVICES");
    return !list || !*list || !strcmp(list, "all");
}

static void move_to(cek_device **devices, size_t from, size_t to)
{
    cek_device *one = devices[from];
    memmove(devices + to + 1, devices + to, (from - to) * sizeof *devices);
    devices[to] = one;
}

int fit_choose(const bench_options *o, const cek_model *model, cek_dtype type, cek_device **devices, size_t *count,
               size_t *left)
{
    size_t kept = 0;
    *left = 0;
    for (size_t i = 0; is_open_to_all(o) && i < *count; i++) {
        cek_status st = cek_model_fits(model, devices[i], type);
        if (!st)
            move_to(devices, i, kept++);
        else if (st != CEK_NO_DEVICE)
            return complain_status(st);
    }
    if (kept) {
        *left = *count - kept;
        *count = kept;
    }
    return EXIT_OK;
}

void fit_tell(output *out, const cek_model *model, cek_dtype type, cek_device *const *devices, size_t count,
              size_t left)
{
    json_t *list = json_array();
    for (size_t i = count; i < count + left; i++) {
        const char *reason = cek_model_fits(model, devices[i], type) ? cek_error_text() : "";
        output_note(out, "left out: %s", reason);
        json_array_append_new(list,
                              json_pack("{ss so}", "device", cek_device_name(devices[i]), "reason", text_json(reason)));
    }
    output_set(out, "left_out", list);
}
