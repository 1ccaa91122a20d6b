/* SPDX-License-Identifier: MIT
 *
 * data.h - data as people have them: folders of images by class, CIFAR-10, arrays in files, a function of the
 * caller's; augmentation and normalisation, done by the loader's workers. A part of nn.h, which includes it.
 *
 *     cek_dataset *train, *test, *drawn, *ready, *test_ready;
 *     cek_image_options images = { .size = sizeof images, .height = 32, .width = 32 };
 *     cek_augment_options augment = { .size = sizeof augment, .crop = 4, .flip = true };
 *     double mean[3], deviation[3];
 *     cek_dataset_open("data/flowers", true, &images, &train);          // data/flowers/train/CLASS/FILE.png
 *     cek_dataset_open("data/flowers", false, &images, &test);          // data/flowers/test/CLASS/FILE.png
 *     cek_dataset_channel_statistics(train, mean, deviation);
 *     cek_dataset_augment(train, &augment, &drawn);
 *     cek_dataset_normalize(drawn, mean, deviation, &ready);            // f32, for training
 *     cek_dataset_normalize(test, mean, deviation, &test_ready);        // by the same numbers, not augmented
 *
 * A data set that is made from another one keeps what it needs of it: both are freed by themselves, in any order.
 * Samples are read, decoded and changed when a batch wants them, by the loader's workers, each by one of them; what a
 * batch holds does not depend on how many there are.
 *
 * Files stay what they were when a data set was opened: one that changes meanwhile is an error of the batch that meets
 * it (CEK_IO: it became shorter; CEK_BAD_INPUT), never a crash, since files are read and not mapped.
 */
#ifndef CEKERNELS_DATA_H
#define CEKERNELS_DATA_H

#include <cekernels/cekernels.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cek_model cek_model;
typedef struct cek_dataset cek_dataset;

/* ---- Images ---------------------------------------------------------------------------------- */

/* PNG, JPEG and PPM or PGM (P5, P6), told by their first bytes. PNG are read by libpng, JPEG by libturbojpeg, which are
 * opened when the first such file is: where one is missing, CEK_NOT_FOUND names the Debian package.
 *
 * What becomes of a pixel: 8 bits a channel, grey or RGB. 16 bits are scaled to 8; a palette is looked up; a grey level
 * is three equal ones; of RGB, grey is (19595 R + 38470 G + 7471 B) / 65536, as PIL has it. Alpha is left out: what is
 * transparent has the colour that the file has there. A PNG's gamma (gAMA) is taken into account. CMYK (of JPEG)
 * becomes R = C K / 255 of what the file keeps, which is inverted as Adobe writes it. Interlaced and progressive files
 * are like others. A JPEG that is marked as rotated (Exif) stays as it lies in the file, as torchvision's
 * folders have it.
 *
 * At most 2^27 pixels and 1 GiB of file; a header that promises more, or more than so short a file can hold, is refused
 * before memory is taken for it. Damaged and truncated files are CEK_BAD_INPUT with the file and the cause. */
typedef struct cek_image_options {
    uint32_t size;
    uint32_t channels; /* 1: grey, 3: RGB; 0: as the first file has */
    /* Of a sample; both or neither. An image of another size is scaled to cover it, what sticks out left out on both
     * sides alike: what PIL's ImageOps.fit gives with BILINEAR, to the byte, so antialiased where it shrinks. 0: the
     * first file's; then all have to be of that size. */
    int64_t height, width;
    /* Names of classes, in the order of their labels; a folder that is called otherwise is CEK_BAD_INPUT. NULL: the
     * folders that there are, in the order of their names' bytes. Copied. */
    const char *const *classes;
    uint64_t class_count;
} cek_image_options;

/* cek_dataset_folders - directory/CLASS/FILE for every folder CLASS: u8 images and a label. Files are those whose names
 * end in .png, .jpg, .jpeg, .ppm, .pgm or .pnm, in the order of their names; others, and whatever begins with a dot,
 * are passed over. The first image is decoded here, the others when a batch wants them. `options` may be NULL.
 * Errors: CEK_IO (it cannot be read), CEK_BAD_INPUT (no folders, a class without images, a folder within one, a damaged
 * first image), CEK_NOT_FOUND (a library), CEK_INVALID (options that cannot be, such as two classes of one name). */
CEK_API CEK_CHECKED cek_status cek_dataset_folders(const char *directory, const cek_image_options *options,
                                                   cek_dataset **out);
/* cek_dataset_images - the same of these files, which have no classes: targets are one 0 each (f32),
 * cek_dataset_classes is 0. */
CEK_API CEK_CHECKED cek_status cek_dataset_images(const char *const *paths, int64_t count,
                                                  const cek_image_options *options, cek_dataset **out);

/* ---- Files ----------------------------------------------------------------------------------- */

/* CIFAR-10's binary version: data_batch_*.bin (all that there are, in the order of their names), or test_batch.bin, in
 * a directory: 3 x 32 x 32, u8, 10 classes, with the names of batches.meta.txt where it is there. They are read from
 * the files when a batch wants them. Errors: CEK_IO, CEK_BAD_INPUT (a size that is no multiple of 3073). */
CEK_API CEK_CHECKED cek_status cek_dataset_cifar10(const char *directory, bool train, cek_dataset **out);

/* cek_dataset_npy - arrays in two .npy files (an element type and order that cek_npy_read takes): x has a sample for
 * each place of its first axis, y what they should become.
 *   x  of four axes, or u8 of three (grey): images, channels first; last, where the last axis has 1, 3 or 4 places and
 *      the second has not;
 *   y  whole numbers from 0 are labels, of as many classes as the largest says; floats are values. One for each sample,
 *      or a row.
 * An x of more than 256 MiB stays in its file, and is read when a batch wants it, where it is little-endian float32 or
 * int32, or uint8.
 * Errors: CEK_IO, CEK_BAD_INPUT (files that do not fit each other, labels below 0, a value that is
 * not finite), CEK_OUT_OF_MEMORY. */
CEK_API CEK_CHECKED cek_status cek_dataset_npy(const char *x, const char *y, cek_dataset **out);

/* Samples of a function of the caller's. */
typedef struct cek_source_options {
    uint32_t size;
    cek_dtype input_type; /* CEK_U8, CEK_F32 or CEK_I32 */
    int64_t count;        /* samples */
    int rank;             /* of a sample, 1 to 5 */
    uint32_t reserved;
    int64_t shape[CEK_RANK_MAX]; /* {C,H,W}, {features}, ... */
    int64_t classes;             /* targets are int32_t labels below; 0: they are floats */
    int64_t columns;             /* labels or values of a sample; 0 = 1 */
    /* Sample `row`, 0 to count - 1, into `input`, images [H][W][C], and `target`: all of both. Called by the loader's
     * workers, several at once for different rows, and for a row once in each epoch and whenever a set is tested or
     * measured; it gives the same each time. A status that is not CEK_OK ends the epoch with it: the error text is
     * `text`, of which it may write text_size bytes with the final 0, or what the status means. It calls no function of
     * this library for this data set. */
    cek_status (*read)(void *user, int64_t row, void *input, void *target, char *text, size_t text_size);
    void (*destroy)(void *user); /* when nothing reads any more, by whoever frees the last data set; may be NULL */
    void *user;
} cek_source_options;
/* Errors: CEK_INVALID (`destroy` is not called then); of a label that is no class and a value that is not finite,
 * CEK_BAD_INPUT when it is read. */
CEK_API CEK_CHECKED cek_status cek_dataset_source(const cek_source_options *options, cek_dataset **out);

/* What cek_dataset_open can open. */
typedef enum cek_data_kind {
    CEK_DATA_IDX = 1, /* a directory with MNIST's files */
    CEK_DATA_CIFAR10, /* a directory with data_batch_1.bin */
    CEK_DATA_FOLDERS, /* a directory of classes: of folders of images */
    CEK_DATA_SPLIT,   /* a directory with train/ and test/ (or val/), each a directory of classes */
    CEK_DATA_IMAGES,  /* a directory of images; one image: without classes, CEK_DATA_IMAGE */
    CEK_DATA_IMAGE,
    CEK_DATA_ARRAYS /* a .npz or .safetensors file, or a directory of .npy files: arrays x and y, or x_train, y_train,
                     * x_test and y_test */
} cek_data_kind;
/* In a few words, "class folders"; NULL for other numbers. */
CEK_API const char *cek_data_kind_name(cek_data_kind kind);
/* By what is there, nothing is decoded. Errors: CEK_IO (nothing is there), CEK_BAD_INPUT (nothing that is known). */
CEK_API CEK_CHECKED cek_status cek_data_recognize(const char *path, cek_data_kind *out);
/* cek_dataset_open - whatever cek_data_recognize says it is. `images` may be NULL; it is for images in files alone. The
 * classes of a test set are those of its training set. Errors: those of cek_data_recognize and of the kind's own
 * function; CEK_NOT_FOUND: it has no test set, as FOLDERS, IMAGES, IMAGE, and ARRAYS without x_test (cek_dataset_split
 * makes one). */
CEK_API CEK_CHECKED cek_status cek_dataset_open(const char *path, bool train, const cek_image_options *images,
                                                cek_dataset **out);

/* The name of a label, or of a row (the path of its image); NULL where there is none. They live as long as any data set
 * that was made of the one that was opened. */
CEK_API const char *cek_dataset_class_name(const cek_dataset *dataset, int64_t label);
CEK_API const char *cek_dataset_row_name(const cek_dataset *dataset, int64_t row);

/* cek_model_set_class_names - what the classes of a model are called, by label: copied, kept in the file of
 * cek_model_save, and taken from one by cek_model_load. CEK_INVALID: a name that is empty or has a '/'.
 * cek_model_class_name: NULL where a label has none. */
CEK_API CEK_CHECKED cek_status cek_model_set_class_names(cek_model *model, const char *const *names, int64_t count);
CEK_API const char *cek_model_class_name(const cek_model *model, int64_t label);

/* ---- On the workers -------------------------------------------------------------------------- */

/* What is changed at random in each sample, each epoch otherwise: a function of the loader's seed, the epoch and the
 * row alone, so the same on any number of workers and devices. In this order: rotated, cropped, flipped,
 * then the colours. */
typedef struct cek_augment_options {
    uint32_t size;
    uint32_t crop; /* pixels of zeros around the image, of which a window of its own size is taken */
    double rotate; /* degrees: turned about the middle by -rotate to rotate, bilinear, zeros around; 0 to 180 */
    double colour; /* brightness, contrast and (of RGB) saturation times 1 - colour to 1 + colour; 0 to 1 */
    bool flip;     /* left and right, every second time */
    uint8_t reserved[7];
} cek_augment_options;
/* cek_dataset_augment - *out has `dataset`'s samples, changed wherever a loader reads them, also for evaluation: that
 * wants the data set as it was. Images of u8. Errors: CEK_INVALID. */
CEK_API CEK_CHECKED cek_status cek_dataset_augment(const cek_dataset *dataset, const cek_augment_options *options,
                                                   cek_dataset **out);

/* Mean and deviation of each channel over all samples as they are (not augmented), of u8 from 0 to 1: x / 255. One
 * number each for the channels of images, else for the columns of the last axis. A channel that is constant has the
 * deviation 1 (of u8 1 / 255), by which dividing is possible. Reads all samples, on the calling thread. Errors:
 * CEK_INVALID (of CEK_I32; no samples), and those of reading. */
CEK_API CEK_CHECKED cek_status cek_dataset_channel_statistics(const cek_dataset *dataset, double *mean,
                                                              double *deviation);
/* cek_dataset_normalize - *out has f32 samples (x - mean) / deviation by channel, x of u8 divided by 255, when they are
 * read. mean and deviation: as many numbers as cek_dataset_channel_statistics gives. Errors: CEK_INVALID (of CEK_I32; a
 * deviation that is not positive, or with which a u8 becomes no finite f32); of an f32 that becomes none, CEK_BAD_INPUT
 * when it is read. */
CEK_API CEK_CHECKED cek_status cek_dataset_normalize(const cek_dataset *dataset, const double *mean,
                                                     const double *deviation, cek_dataset **out);

#ifdef __cplusplus
}
#endif

#endif /* CEKERNELS_DATA_H */
