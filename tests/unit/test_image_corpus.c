/*
 * Image files in the repository, and collections outside it if HARTSIFT_DATA names their folder: valid files decode to
 * the size in their manifest, broken files fail with a reason.
 */
#include <dirent.h>
#include <unistd.h>

#include "tests/support/test.h"

enum { CORPUS_PATH_BYTES = 1024, CORPUS_MESSAGE_BYTES = 1200 };

static const char images_folder[] = HARTSIFT_SOURCE_DIR "/tests/data/images";

static void join(char path[CORPUS_PATH_BYTES], const char *folder, const char *name) {
  assert_true(snprintf(path, CORPUS_PATH_BYTES, "%s/%s", folder, name) < CORPUS_PATH_BYTES);
}

/* Finds a folder of the collections; skips the test if it is missing. */
static void find_collection(char path[CORPUS_PATH_BYTES], const char *name) {
  const char *data = getenv("HARTSIFT_DATA");
  join(path, data ? data : HARTSIFT_SOURCE_DIR "/../shared/data", name);
  if (access(path, R_OK) != 0) skip_because(NEEDS_PHOTOGRAPHS);
}

static hs_status load(const char *folder, const char *name, hs_load_options options, hs_image *image) {
  char path[CORPUS_PATH_BYTES], message[CORPUS_MESSAGE_BYTES];
  options.struct_size = sizeof options;
  options.message = message;
  options.message_bytes = sizeof message;
  join(path, folder, name);
  const hs_status status = hs_load_image(path, &options, image);
  if (status == HS_OK) {
    assert_string_equal(message, "");
    assert_non_null(image->data);
  } else {
    assert_non_null(strstr(message, name));
    assert_null(image->data);
  }
  return status;
}

/* Returns whether a failure only means that the build lacks the library. */
static int lacks_library(hs_status status) {
  return status == HS_ERR_UNSUPPORTED && !(HARTSIFT_HAVE_PNG && HARTSIFT_HAVE_JPEG);
}

static int same_pixels(const char *folder, const char *one, const char *two, int keep_colour) {
  const hs_load_options options = {.keep_colour = keep_colour};
  hs_image first, second;
  const hs_status status = load(folder, one, options, &first);
  if (lacks_library(status)) return 1;
  assert_int_equal(status, HS_OK);
  const hs_status other = load(folder, two, options, &second);
  int same = lacks_library(other);
  if (!same) {
    assert_int_equal(other, HS_OK);
    same = first.width == second.width && first.height == second.height && first.stride_bytes == second.stride_bytes &&
           memcmp(first.data, second.data, first.stride_bytes * (size_t)first.height) == 0;
  }
  hs_image_free(&first);
  hs_image_free(&second);
  return same;
}

/* No pixel may depend on earlier content of the memory, not even in damaged files that are accepted. */
static void check_repeatable(const char *folder, const char *name) {
  counted_allocator counters[2] = {{.fill = 0x00}, {.fill = 0xFF}};
  hs_allocator allocators[2];
  hs_image images[2];
  hs_status statuses[2];
  for (size_t i = 0; i < 2; i++) {
    allocators[i] = counted_allocator_make(&counters[i]);
    statuses[i] = load(folder, name, (hs_load_options){.allocator = &allocators[i], .keep_colour = 1}, &images[i]);
  }
  assert_int_equal(statuses[0], statuses[1]);
  if (statuses[0] == HS_OK)
    assert_memory_equal(images[0].data, images[1].data, images[0].stride_bytes * (size_t)images[0].height);
  for (size_t i = 0; i < 2; i++) {
    hs_image_free(&images[i]);
    assert_int_equal(counters[i].alive, 0);
  }
}

/* ---- manifests: file, class, width, height, note; separated by tabs */

static void check_line(const char *folder, const char *name, const char *class, int width, int height) {
  for (int keep_colour = 0; keep_colour < 2; keep_colour++) {
    /* The manifest lists stored sizes, before any rotation. */
    const hs_load_options options = {.ignore_exif = 1, .keep_colour = keep_colour};
    hs_image image;
    const hs_status status = load(folder, name, options, &image);
    if (strcmp(class, "malformed") == 0) {
      assert_int_not_equal(status, HS_OK);
      assert_true(status == HS_ERR_FORMAT || status == HS_ERR_LIMIT || status == HS_ERR_UNSUPPORTED);
      continue;
    }
    const int required = strcmp(class, "valid") == 0 || strcmp(class, "mislabelled") == 0;
    assert_true(required || strcmp(class, "lenient") == 0 || strcmp(class, "optional") == 0);
    if (required && !lacks_library(status)) assert_int_equal(status, HS_OK);
    if (status == HS_OK) {
      assert_int_equal(image.width, width);
      assert_int_equal(image.height, height);
      assert_true(image.layout == HS_GRAY || (keep_colour && image.layout == HS_RGB));
    }
    hs_image_free(&image);
  }
}

static size_t check_manifest(const char *folder) {
  char path[CORPUS_PATH_BYTES], line[512];
  join(path, folder, "manifest.tsv");
  FILE *manifest = fopen(path, "r");
  assert_non_null(manifest);
  assert_non_null(fgets(line, sizeof line, manifest));
  size_t files = 0;
  while (fgets(line, sizeof line, manifest)) {
    char *rest = line;
    char *fields[4];
    for (size_t i = 0; i < 4; i++) {
      fields[i] = strtok_r(i == 0 ? line : NULL, "\t\n", &rest);
      assert_non_null(fields[i]);
    }
    check_line(folder, fields[0], fields[1], atoi(fields[2]), atoi(fields[3]));
    check_repeatable(folder, fields[0]);
    files++;
  }
  fclose(manifest);
  return files;
}

TEST(test_kept_images) { assert_true(check_manifest(images_folder) >= 130); }

TEST(test_kept_images_that_are_equal) {
  static const char *const pairs[][2] = {{"png_gray8.png", "pnm_p5.pgm"},
                                         {"png_gray8.png", "pnm_p2.pgm"},
                                         {"png_gray8.png", "pam_grayscale.pam"},
                                         {"png_gray8.png", "png_gamma.png"},
                                         {"png_gray8.png", "png_trailing.png"},
                                         {"png_gray8.png", "png_profile_bomb.png"},
                                         {"png_gray1.png", "pam_blackandwhite.pam"},
                                         {"pnm_p1.pbm", "pnm_p4.pbm"},
                                         {"png_gray2.png", "png_trns_gray2.png"},
                                         {"png_rgb8.png", "pnm_p6.ppm"},
                                         {"png_rgb8.png", "pnm_p3.ppm"},
                                         {"png_rgb8.png", "pam_rgb.pam"},
                                         {"png_rgb8.png", "png_rgba8.png"},
                                         {"png_rgb8.png", "png_trns_rgb8.png"},
                                         {"png_gray16.png", "pnm_p5_16.pgm"},
                                         {"png_gray16.png", "png_graya16.png"},
                                         {"png_rgb16.png", "pnm_p6_16.ppm"},
                                         {"png_rgb16.png", "pam_rgb_alpha.pam"},
                                         {"png_palette4.png", "png_trns_palette4.png"},
                                         {"jpeg_colour.jpg", "jpeg_progressive.jpg"},
                                         {"jpeg_colour.jpg", "jpeg_restart.jpg"},
                                         {"jpeg_progressive.jpg", "jpeg_progressive_no_eoi.jpg"},
                                         {"jpeg_gray.jpg", "jpeg_no_eoi.jpg"},
                                         {"jpeg_gray.jpg", "jpeg_trailing.jpg"},
                                         {"jpeg_exif1.jpg", "jpeg_exif_value9.jpg"},
                                         {"jpeg_exif6.jpg", "jpeg_exif_long.jpg"}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    assert_true(same_pixels(images_folder, pairs[i][0], pairs[i][1], 0));
    assert_true(same_pixels(images_folder, pairs[i][0], pairs[i][1], 1));
  }
#if HARTSIFT_HAVE_PNG
  assert_false(same_pixels(images_folder, "png_gray8.png", "png_rgb8.png", 0));
#endif
#if HARTSIFT_HAVE_JPEG
  assert_false(same_pixels(images_folder, "jpeg_exif1.jpg", "jpeg_exif3.jpg", 0));
#endif
}

TEST(test_generated_collection) {
  char folder[CORPUS_PATH_BYTES];
  find_collection(folder, "formats/generated");
  assert_true(check_manifest(folder) > 40);
  assert_true(same_pixels(folder, "png_gray8.png", "pnm_gray8.pgm", 0));
  assert_true(same_pixels(folder, "png_gray8.png", "png_interlaced.png", 0));
  assert_true(same_pixels(folder, "png_rgb8.png", "pnm_rgb8.ppm", 1));
  /* Luma does not depend on the sampling of chroma. */
  assert_true(same_pixels(folder, "jpeg_420.jpg", "jpeg_444.jpg", 0));
  assert_true(same_pixels(folder, "jpeg_420.jpg", "jpeg_progressive.jpg", 0));
}

/* ---- PngSuite: the file names encode the content */

#if HARTSIFT_HAVE_PNG

static void check_suite_file(const char *folder, const char *name) {
  hs_image image;
  const hs_status status = load(folder, name, (hs_load_options){0}, &image);
  if (name[0] == 'x') {
    assert_int_equal(status, HS_ERR_FORMAT);
    return;
  }
  check_repeatable(folder, name);
  assert_int_equal(status, HS_OK);
  assert_int_equal(image.type, strncmp(name + 6, "16", 2) == 0 ? HS_U16 : HS_U8);
  if (name[0] == 's') { /* names s01..s40 give the length of a side */
    const int side = (name[1] - '0') * 10 + (name[2] - '0');
    assert_int_equal(image.width, side);
    assert_int_equal(image.height, side);
  } else if (strncmp(name, "bas", 3) == 0) {
    assert_int_equal(image.width, 32);
    assert_int_equal(image.height, 32);
  }
  hs_image_free(&image);
  char twin[64]; /* the same picture, interlaced or not */
  snprintf(twin, sizeof twin, "%s", name);
  if (name[3] == 'i' && (name[0] == 's' || strncmp(name, "bas", 3) == 0)) {
    twin[3] = 'n';
    assert_true(same_pixels(folder, name, twin, 0));
    assert_true(same_pixels(folder, name, twin, 1));
  }
}

TEST(test_png_suite) {
  char folder[CORPUS_PATH_BYTES];
  find_collection(folder, "formats/pngsuite");
  DIR *directory = opendir(folder);
  assert_non_null(directory);
  size_t files = 0;
  for (const struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
    const size_t length = strlen(entry->d_name);
    if (length == 12 && strcmp(entry->d_name + 8, ".png") == 0) {
      check_suite_file(folder, entry->d_name);
      files++;
    }
  }
  closedir(directory);
  assert_true(files > 100);
  /* One picture is stored in one, two, four and many chunks, and at all compression levels. */
  assert_true(same_pixels(folder, "oi1n2c16.png", "oi2n2c16.png", 1));
  assert_true(same_pixels(folder, "oi1n2c16.png", "oi4n2c16.png", 1));
  assert_true(same_pixels(folder, "oi1n2c16.png", "oi9n2c16.png", 1));
  assert_true(same_pixels(folder, "z00n2c08.png", "z09n2c08.png", 1));
}

#endif

/* ---- JPEG collections */

#if HARTSIFT_HAVE_JPEG

TEST(test_jpeg_reference) {
  char folder[CORPUS_PATH_BYTES];
  find_collection(folder, "formats/jpeg_reference");
  hs_image image;
  assert_int_equal(load(folder, "testorig.jpg", (hs_load_options){0}, &image), HS_OK);
  assert_int_equal(image.width, 227);
  assert_int_equal(image.height, 149);
  hs_image_free(&image);
  assert_int_equal(load(folder, "testorig12.jpg", (hs_load_options){0}, &image), HS_ERR_UNSUPPORTED);
  const hs_status arithmetic = load(folder, "testimgari.jpg", (hs_load_options){0}, &image);
  hs_image_free(&image);
  if (arithmetic == HS_OK)
    assert_true(same_pixels(folder, "testimgari.jpg", "testimgint.jpg", 1));
  else
    assert_int_equal(arithmetic, HS_ERR_UNSUPPORTED);
}

enum { THUMB_WIDTH = 45, THUMB_HEIGHT = 30, THUMB_STEP = 40 };

/* Computes means of 40 x 40 pixels. */
static void make_thumbnail(const char *folder, const char *name, double thumb[THUMB_WIDTH * THUMB_HEIGHT]) {
  scoped_image image;
  assert_int_equal(load(folder, name, (hs_load_options){0}, &image), HS_OK);
  assert_int_equal(image.width, THUMB_WIDTH * THUMB_STEP);
  assert_int_equal(image.height, THUMB_HEIGHT * THUMB_STEP);
  memset(thumb, 0, sizeof *thumb * THUMB_WIDTH * THUMB_HEIGHT);
  for (size_t y = 0; y < (size_t)image.height; y++) {
    const uint8_t *row = (const uint8_t *)image.data + y * image.stride_bytes;
    for (size_t x = 0; x < (size_t)image.width; x++)
      thumb[y / THUMB_STEP * THUMB_WIDTH + x / THUMB_STEP] += row[x] / (double)(THUMB_STEP * THUMB_STEP);
  }
}

/* Four stored orientations of one photograph decode alike. */
TEST(test_exif_collection) {
  static double upright[THUMB_WIDTH * THUMB_HEIGHT], turned[THUMB_WIDTH * THUMB_HEIGHT];
  static const char *const names[] = {"Landscape_3.jpg", "Landscape_6.jpg", "Landscape_8.jpg"};
  char folder[CORPUS_PATH_BYTES];
  find_collection(folder, "formats/exif");
  make_thumbnail(folder, "Landscape_1.jpg", upright);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    make_thumbnail(folder, names[i], turned);
    double difference = 0, mirrored = 0;
    for (size_t k = 0; k < THUMB_WIDTH * THUMB_HEIGHT; k++) {
      const double other = turned[k] - upright[k], back = turned[k] - upright[THUMB_WIDTH * THUMB_HEIGHT - 1 - k];
      difference += (other < 0 ? -other : other) / (THUMB_WIDTH * THUMB_HEIGHT);
      mirrored += (back < 0 ? -back : back) / (THUMB_WIDTH * THUMB_HEIGHT);
    }
    assert_true(difference < 2.0); /* mean difference in units of 255; the files were encoded separately */
    assert_true(mirrored > 10.0);  /* the photograph itself is not symmetric, so a mirrored one differs */
  }
}

#endif
