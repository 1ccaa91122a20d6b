/* folders.h - images in files as samples: folders of them by class, or a list of them.
 *
 * An image is decoded when a batch wants it, by whoever fills the batch.
 * Must not know: forms of image files (nn/images), which folder is for what (kinds.h). */
#ifndef CEK_NN_DATA_FOLDERS_H
#define CEK_NN_DATA_FOLDERS_H

#include "core/base/status.h"
#include "nn/data/dataset.h"

/* The names in a folder, in the order of their bytes, without those that begin with a dot; *out is
 * freed by cek__names_free. */
typedef struct cek__names {
    char **names;
    int64_t count;
} cek__names;
CEK__CHECKED cek_status cek__names_read(const char *folder, cek__names *out);
void cek__names_free(cek__names *names); /* a zeroed one is accepted */

/* Whether a path is a folder; one that cannot be looked at is none. */
bool cek__is_folder(const char *path);
/* FOLDER/NAME is a folder. */
bool cek__has_folder(const char *folder, const char *name);

/* nn.h: cek_dataset_folders, cek_dataset_images. */
CEK__SHARED CEK__CHECKED cek_status cek__folders_dataset(const char *directory, const cek_image_options *options,
                                                         cek_dataset **out);
CEK__SHARED CEK__CHECKED cek_status cek__images_dataset(const char *const *paths, int64_t count,
                                                        const cek_image_options *options, cek_dataset **out);

#endif
