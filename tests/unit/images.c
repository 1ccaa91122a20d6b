/* images.c - tests of pictures in files: every kind of PNG, JPEG, PPM and PGM, other sizes, and files that lie. */
#include <dlfcn.h>

#include "core/base/random.h"
#include "image_files.h"
#include "jpegs.h"
#include "nn/images/image.h"

static void begin(void)
{
    scratch_make();
}

static void end(void)
{
    scratch_remove();
}

static cek__pixels read_ok(const char *path)
{
    cek__pixels image;

    assert_ok(cek__image_read(path, &image));
    return image;
}

static void assert_image(const char *path, int64_t height, int64_t width, uint32_t channels, const uint8_t *values)
{
    cek__pixels image = read_ok(path);

    ck_assert(image.height == height && image.width == width && image.channels == channels);
    ck_assert_mem_eq(image.values, values, (size_t)(height * width) * channels);
    cek__pixels_free(&image);
}

/* ---- PNG ---- */

enum { WIDTH = 5, HEIGHT = 9, PIXELS = WIDTH * HEIGHT };

static const char *png_of(const png_case *c)
{
    static bytes out;
    png_case full = *c;

    full.width = WIDTH;
    full.height = HEIGHT;
    png_make(&full, &out);
    return scratch_write("a.png", out.at, out.size);
}

START_TEST(png_of_8_bits_is_its_samples_interlaced_or_not)
{
    uint8_t samples[PIXELS * 4], colour[PIXELS * 3], grey[PIXELS];

    for (size_t i = 0; i < sizeof samples; i++)
        samples[i] = (uint8_t)(37 * i + i / 5);
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        png_case c = { .depth = 8, .colour = PNG_RGB, .interlaced = interlaced, .samples = samples };

        assert_image(png_of(&c), HEIGHT, WIDTH, 3, samples);
        c.colour = PNG_GREY;
        assert_image(png_of(&c), HEIGHT, WIDTH, 1, samples);
        c.colour = PNG_RGBA; /* alpha is left out, whatever it is */
        for (int i = 0; i < PIXELS * 3; i++)
            colour[i] = samples[i / 3 * 4 + i % 3];
        assert_image(png_of(&c), HEIGHT, WIDTH, 3, colour);
        c.colour = PNG_GREY_ALPHA;
        for (int i = 0; i < PIXELS; i++)
            grey[i] = samples[i * 2];
        assert_image(png_of(&c), HEIGHT, WIDTH, 1, grey);
    }
}
END_TEST

START_TEST(png_of_16_bits_is_scaled_and_one_of_few_bits_is_spread)
{
    uint8_t samples[PIXELS * 2], expected[PIXELS];

    for (int i = 0; i < PIXELS; i++) {
        const uint32_t value = (uint32_t)i * 65535 / (PIXELS - 1);

        samples[2 * i] = (uint8_t)(value >> 8);
        samples[2 * i + 1] = (uint8_t)value;
        expected[i] = (uint8_t)((value * 255 + 32767) / 65535);
    }
    assert_image(png_of(&(png_case){ .depth = 16, .colour = PNG_GREY, .samples = samples }), HEIGHT, WIDTH, 1,
                 expected);
    for (int depth = 1; depth < 8; depth *= 2) {
        const int most = (1 << depth) - 1;

        for (int i = 0; i < PIXELS; i++) {
            samples[i] = (uint8_t)(i % (most + 1));
            expected[i] = (uint8_t)(samples[i] * 255 / most);
        }
        assert_image(png_of(&(png_case){ .depth = depth, .colour = PNG_GREY, .samples = samples }), HEIGHT, WIDTH, 1,
                     expected);
    }
}
END_TEST

START_TEST(png_with_a_palette_has_its_colours)
{
    static const uint8_t palette[] = { 10, 20, 30, 250, 0, 5, 1, 2, 3 }, alpha[] = { 255, 0, 100 };
    uint8_t samples[PIXELS], expected[PIXELS * 3];

    for (int i = 0; i < PIXELS; i++) {
        samples[i] = (uint8_t)(i % 3);
        memcpy(expected + 3 * i, palette + 3 * samples[i], 3);
    }
    for (int with_alpha = 0; with_alpha < 2; with_alpha++)
        assert_image(png_of(&(png_case){ .depth = 8,
                                         .colour = PNG_PALETTE,
                                         .samples = samples,
                                         .palette = palette,
                                         .alpha = with_alpha ? alpha : NULL,
                                         .colours = 3 }),
                     HEIGHT, WIDTH, 3, expected);
}
END_TEST

static const char *png_lying(uint32_t width, uint32_t height)
{
    static bytes out;
    uint8_t sample = 7;
    const uint32_t sizes[2] = { htonl(width), htonl(height) };
    uint32_t checksum;

    png_make(&(png_case){ .width = 1, .height = 1, .depth = 8, .colour = PNG_GREY, .samples = &sample }, &out);
    memcpy(out.at + 16, sizes, 8);
    checksum = htonl((uint32_t)crc32(0, out.at + 12, 17));
    memcpy(out.at + 29, &checksum, 4);
    return scratch_write("lies.png", out.at, out.size);
}

START_TEST(png_that_promises_too_much_is_refused_before_memory_is_taken)
{
    cek__pixels image;

    assert_fails(cek__image_read(png_lying(100000, 100000), &image), CEK_BAD_INPUT, "lies.png", "100000 x 100000");
    assert_fails(cek__image_read(png_lying(3000, 3000), &image), CEK_BAD_INPUT, "lies.png", "so short a file");
    assert_fails(cek__image_read(png_lying(20, 20), &image), CEK_BAD_INPUT, "lies.png", "damaged PNG");
    assert_fails(cek__image_read(png_lying(0, 4), &image), CEK_BAD_INPUT, "lies.png", "damaged PNG");
    ck_assert_ptr_null(image.values);
}
END_TEST

/* ---- JPEG ---- */

static void assert_near(const char *path, const jpeg_case *c, int off)
{
    cek__pixels image = read_ok(path);

    ck_assert(image.height == c->height && image.width == c->width && image.channels == c->channels);
    for (int i = 0; i < c->height * c->width * (int)c->channels; i++)
        ck_assert_msg(abs(image.values[i] - c->values[i]) <= off, "%s: value %d is %d, not %d", c->name, i,
                      image.values[i], c->values[i]);
    cek__pixels_free(&image);
}

/* What the fixture's maker decoded with another build of the library: an inverse transform may round otherwise. */
START_TEST(jpeg_of_each_kind_is_what_pil_makes_of_it)
{
    for (int i = 0; i < JPEG_CASES; i++)
        assert_near(scratch_write("a.jpg", jpegs[i].bytes, jpegs[i].size), &jpegs[i], 2);
}
END_TEST

START_TEST(jpeg_that_was_cut_short_is_refused_wherever_it_ends)
{
    cek__pixels image;

    for (int i = 0; i < JPEG_CASES; i++)
        for (size_t size = 3; size < jpegs[i].size - 2; size += 1 + size / 16)
            assert_fails(cek__image_read(scratch_write("cut.jpg", jpegs[i].bytes, size), &image), CEK_BAD_INPUT,
                         "cut.jpg", "damaged JPEG");
}
END_TEST

/* ---- PPM, PGM ---- */

START_TEST(ppm_and_pgm_are_their_values_scaled_to_255)
{
    static const char ppm[] = "P6 # a comment\n2 1\n255\n\x01\x02\x03\xff\x00\x10",
                      pgm[] = "P5\n3\t1\n15\n\x00\x0f\x07", wide[] = "P5 2 1 1000\n\x03\xe8\x01\xf4";

    assert_image(scratch_write("a.ppm", ppm, sizeof ppm - 1), 1, 2, 3, (const uint8_t *)"\x01\x02\x03\xff\x00\x10");
    assert_image(scratch_write("a.pgm", pgm, sizeof pgm - 1), 1, 3, 1, (const uint8_t *)"\x00\xff\x77");
    assert_image(scratch_write("w.pgm", wide, sizeof wide - 1), 1, 2, 1, (const uint8_t *)"\xff\x80");
}
END_TEST

START_TEST(files_that_are_no_such_picture_are_refused_by_name)
{
    static const struct {
        const char *text, *cause;
    } cases[] = { { "", "empty" },
                  { "GIF89a", "no PNG" },
                  { "P3\n1 1\n255\n1 2 3\n", "P3" },
                  { "P6\n2", "no height" },
                  { "P6\n0 2\n255\n", "no width" },
                  { "P6\n2 2\n70000\n", "largest value" },
                  { "P6\n2 2\n255\n1234", "shorter" },
                  { "P6\n100000 100000\n255\n1234", "shorter" },
                  { "P6\n99999999999999999999 1\n255\n1", "no width" },
                  { "P5\n2 1\n7\n\x07\x08", "value 1 is 8" } };
    cek__pixels image;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(cek__image_read(scratch_write("b.ppm", cases[i].text, strlen(cases[i].text)), &image),
                     CEK_BAD_INPUT, "b.ppm", cases[i].cause);
    assert_fails(cek__image_read(scratch_path("none.png"), &image), CEK_IO, "none.png", "cannot be opened");
}
END_TEST

/* ---- other sizes ---- */

/* What PIL's ImageOps.fit(image, (width, height), BILINEAR) gives: fixtures/make-jpegs.py wrote it down. */
START_TEST(another_size_is_what_pil_makes_of_it_to_the_byte)
{
    for (int i = 0; i < FIT_CASES; i++) {
        const fit_case *c = &fits[i];
        cek__pixels image = { c->from_height, c->from_width, 3, NULL };
        uint8_t made[FIT_ROOM];

        image.values = malloc((size_t)(c->from_height * c->from_width) * 3);
        for (int k = 0; k < c->from_height * c->from_width * 3; k++)
            image.values[k] = (uint8_t)(k * k % 251);
        assert_ok(cek__image_fit(&image, c->height, c->width, c->channels, made));
        ck_assert_mem_eq(made, c->values, (size_t)(c->height * c->width) * c->channels);
        cek__pixels_free(&image);
    }
}
END_TEST

START_TEST(grey_is_of_colours_by_their_weights_and_colours_of_grey_are_equal)
{
    static const uint8_t rgb[] = { 255, 255, 255, 255, 0, 0, 0, 255, 0, 0, 0, 255 };
    cek__pixels image = { 1, 4, 3, (uint8_t *)(uintptr_t)rgb };
    uint8_t grey[4], back[12];

    assert_ok(cek__image_fit(&image, 1, 4, 1, grey));
    ck_assert_mem_eq(grey, "\xff\x4c\x96\x1d", 4);
    image = (cek__pixels){ 1, 4, 1, grey };
    assert_ok(cek__image_fit(&image, 1, 4, 3, back));
    for (int i = 0; i < 12; i++)
        ck_assert_uint_eq(back[i], grey[i / 3]);
}
END_TEST

/* ---- harm ---- */

/* No crash, no hang, one line that names the file; a picture that passes has the sizes that it says. */
static void assert_survives(const char *name, const uint8_t *bytes_of, size_t size)
{
    static uint8_t harmed[FILE_ROOM];
    cek__pixels image;

    ck_assert_uint_le(size, FILE_ROOM);
    for (uint64_t i = 0; i < 400; i++) {
        const size_t at = cek__random_u32(1, 9, 3 * i) % size;
        const size_t length = i % 4 == 0 ? at : size; /* every fourth is cut short too */
        cek_status st;

        memcpy(harmed, bytes_of, size);
        harmed[at] = (uint8_t)cek__random_u32(1, 9, 3 * i + 1);
        harmed[cek__random_u32(1, 9, 3 * i + 2) % size] ^= 0x80;
        st = cek__image_read(scratch_write(name, harmed, length), &image);
        if (st == CEK_OK) {
            ck_assert(image.height > 0 && image.width > 0 && (image.channels == 1 || image.channels == 3));
            cek__pixels_free(&image);
            continue;
        }
        ck_assert_msg(st == CEK_BAD_INPUT, "%s: %s", cek_status_name(st), cek_error_text());
        ck_assert_msg(strstr(cek_error_text(), name) != NULL, "'%s' does not name the file", cek_error_text());
        ck_assert_ptr_null(strchr(cek_error_text(), '\n'));
        ck_assert_ptr_null(image.values);
    }
}

START_TEST(png_with_wrong_bytes_is_refused_or_read_and_nothing_else)
{
    static bytes png;
    uint8_t samples[PIXELS * 3];

    for (size_t i = 0; i < sizeof samples; i++)
        samples[i] = (uint8_t)(i * 89);
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        png_make(&(png_case){ .width = WIDTH,
                              .height = HEIGHT,
                              .depth = 8,
                              .colour = PNG_RGB,
                              .interlaced = interlaced,
                              .samples = samples },
                 &png);
        assert_survives("h.png", png.at, png.size);
    }
}
END_TEST

START_TEST(ppm_with_wrong_bytes_is_refused_or_read_and_nothing_else)
{
    char ppm[PIXELS * 3 + 16];
    const int head = snprintf(ppm, sizeof ppm, "P6\n%d %d\n255\n", WIDTH, HEIGHT);

    for (int i = 0; i < PIXELS * 3; i++)
        ppm[head + i] = (char)(i * 89);
    assert_survives("h.ppm", (const uint8_t *)ppm, (size_t)head + PIXELS * 3);
}
END_TEST

START_TEST(jpeg_with_wrong_bytes_is_refused_or_read_and_nothing_else)
{
    for (int i = 0; i < JPEG_CASES; i++)
        assert_survives("h.jpg", jpegs[i].bytes, jpegs[i].size);
}
END_TEST

/* ---- a library that is not there ---- */

static bool hidden;

/* In the place of libc's, for the library under test too. */
__attribute__((visibility("default"))) void *dlopen(const char *file, int mode)
{
    static void *(*real)(const char *, int);

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "dlopen");
    return hidden && file != NULL && (strstr(file, "png") != NULL || strstr(file, "jpeg") != NULL) ? NULL
                                                                                                   : real(file, mode);
}

START_TEST(a_library_that_is_missing_is_named_with_its_package_and_asked_for_again)
{
    static const uint8_t one = 9;
    cek__pixels image;
    const char *path = png_write("a.png", 1, 1, 1, &one);

    hidden = true;
    assert_fails(cek__image_read(path, &image), CEK_NOT_FOUND, "a.png", "libpng16-16");
    assert_fails(cek__image_read(scratch_write("a.jpg", jpegs[0].bytes, jpegs[0].size), &image), CEK_NOT_FOUND, "a.jpg",
                 "libturbojpeg0");
    hidden = false;
    assert_image(path, 1, 1, 1, &one);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("images");
    TCase *t = tcase_create("files");
    const bool png = library_there("libpng16.so.16", "tests of PNG files");
    const bool jpeg = library_there("libturbojpeg.so.0", "tests of JPEG files");
    int code;

    tcase_add_checked_fixture(t, begin, end);
    if (png) {
        tcase_add_test(t, a_library_that_is_missing_is_named_with_its_package_and_asked_for_again); /* first */
        tcase_add_test(t, png_of_8_bits_is_its_samples_interlaced_or_not);
        tcase_add_test(t, png_of_16_bits_is_scaled_and_one_of_few_bits_is_spread);
        tcase_add_test(t, png_with_a_palette_has_its_colours);
        tcase_add_test(t, png_that_promises_too_much_is_refused_before_memory_is_taken);
        tcase_add_test(t, png_with_wrong_bytes_is_refused_or_read_and_nothing_else);
    }
    if (jpeg) {
        tcase_add_test(t, jpeg_of_each_kind_is_what_pil_makes_of_it);
        tcase_add_test(t, jpeg_that_was_cut_short_is_refused_wherever_it_ends);
        tcase_add_test(t, jpeg_with_wrong_bytes_is_refused_or_read_and_nothing_else);
    }
    tcase_add_test(t, ppm_and_pgm_are_their_values_scaled_to_255);
    tcase_add_test(t, ppm_with_wrong_bytes_is_refused_or_read_and_nothing_else);
    tcase_add_test(t, files_that_are_no_such_picture_are_refused_by_name);
    tcase_add_test(t, another_size_is_what_pil_makes_of_it_to_the_byte);
    tcase_add_test(t, grey_is_of_colours_by_their_weights_and_colours_of_grey_are_equal);
    suite_add_tcase(s, t);
    code = suite_run(s);
    return code == EXIT_SUCCESS && !(png && jpeg) ? 77 : code;
}
