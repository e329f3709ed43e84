/*
 * CPU time of what stands around a frame: decoding a JPEG beside libjpeg alone, writing features to files and into a
 * database, their digest.
 *
 *   bench_files FOLDER [JPEG ...]
 *
 * FOLDER, best on a RAM disk, gets the outputs, which are removed again. Least of several rounds, in ms of one thread; in
 * each round one after the other, so that all see the same machine. Prints Markdown.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/formats/colmap/colmap_rows.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/formats/formats.h"

#if HARTSIFT_HAVE_JPEG
#  include <jpeglib.h>
#endif

enum { ROUNDS = 15, FEATURES = 20000, PATH_BYTES = 1024 };

static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void die(const char *what) {
  fprintf(stderr, "bench_files: %s\n", what);
  exit(1);
}

static double least(double a, double b) { return a < b ? a : b; }

/* ---- decoding */

static uint8_t *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END) != 0) die(path);
  *size = (size_t)ftell(file);
  uint8_t *bytes = malloc(*size + 1);
  rewind(file);
  if (!bytes || fread(bytes, 1, *size, file) != *size) die(path);
  fclose(file);
  return bytes;
}

/* The luma by libjpeg alone; returns its sum, so that nothing is left out. */
static uint64_t decode_plain(const uint8_t *bytes, size_t size) {
  uint64_t sum = 0;
#if HARTSIFT_HAVE_JPEG
  struct jpeg_decompress_struct jpeg;
  struct jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, bytes, (unsigned long)size);
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_GRAYSCALE;
  jpeg.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&jpeg);
  uint8_t *picture = malloc((size_t)jpeg.output_width * jpeg.output_height);
  if (!picture) die("no memory");
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = picture + (size_t)jpeg.output_scanline * jpeg.output_width;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  sum = picture[(size_t)jpeg.output_width * jpeg.output_height - 1];
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  free(picture);
#else
  (void)bytes;
  (void)size;
#endif
  return sum;
}

static void bench_decoding(const char *path) {
  size_t size = 0;
  uint8_t *bytes = read_file(path, &size);
  double plain = 1e9, own = 1e9;
  uint64_t sum = 0;
  for (int round = 0; round < ROUNDS; round++) {
    hs_image image;
    double start = cpu_ms();
    sum += decode_plain(bytes, size);
    plain = least(plain, cpu_ms() - start);
    start = cpu_ms();
    if (hs_load_image_memory(bytes, size, NULL, &image) != HS_OK) die(path);
    own = least(own, cpu_ms() - start);
    sum += (uint64_t)image.width;
    hs_image_free(&image);
  }
  printf("| %s | %.2f | %.2f | %.2f |\n", path, plain, own, own / plain);
  if (sum == 0) die("nothing was decoded");
  free(bytes);
}

/* ---- writing */

static hs_features make_features(void) {
  hs_features f = {.count = FEATURES, .image_width = 1920, .image_height = 1080};
  uint32_t state = 1;
  f.keypoints = calloc(FEATURES, sizeof *f.keypoints);
  uint8_t *descriptors = malloc((size_t)FEATURES * HS_DESCRIPTOR_LENGTH);
  if (!f.keypoints || !descriptors) die("no memory");
  for (size_t i = 0; i < (size_t)FEATURES * HS_DESCRIPTOR_LENGTH; i++) {
    state = state * 1664525u + 1013904223u;
    descriptors[i] = (uint8_t)(state >> 25);
  }
  for (int32_t i = 0; i < FEATURES; i++)
    f.keypoints[i] = (hs_keypoint){(float)(i % 1900), (float)(i / 19), 2.5f, (float)(i % 628) * 0.01f, 0.05f, 0, 1};
  f.descriptors = descriptors;
  return f;
}

static void bench_format(const char *folder, const hs_features *features, hs_format id) {
  char path[PATH_BYTES];
  double time = 1e9;
  snprintf(path, sizeof path, "%s/bench_files%s", folder, format_by_id(id)->endings[0]);
  for (int round = 0; round < ROUNDS; round++) {
    const hs_file_options options = {.struct_size = sizeof options, .format = id};
    digest_state written;
    const double start = cpu_ms();
    digest_start(&written);
    if (features_save(path, features, &options, false, &written) != HS_OK) die(path);
    (void)digest_end(&written);
    time = least(time, cpu_ms() - start);
    unlink(path);
  }
  printf("| write `%s` | %.2f |\n", format_by_id(id)->name, time);
}

static void bench_database(const char *folder, const hs_features *features) {
  char path[PATH_BYTES];
  double time = 1e9;
  snprintf(path, sizeof path, "%s/bench_files.db", folder);
  hs_colmap_database *database = NULL;
  if (hs_colmap_open(&database, path, NULL) != HS_OK) {
    printf("| add to a database | not built in |\n");
    return;
  }
  for (int round = 0; round < ROUNDS; round++) {
    char name[32];
    snprintf(name, sizeof name, "%d.jpg", round);
    const double start = cpu_ms();
    if (hs_colmap_add_image(database, name, NULL, features, NULL) != HS_OK) die(hs_colmap_last_error(database));
    time = least(time, cpu_ms() - start);
  }
  hs_colmap_close(database);
  unlink(path);
  printf("| add to a database | %.2f |\n", time);
}

/* What the one thread that fills a batch's database does: rows that others made, and the commit at the end. behind: a second
   thread writes the file, and its time is not in this figure. */
static void bench_rows(const char *folder, const hs_features *features, bool behind) {
  enum { IMAGES = 100 };
  char path[PATH_BYTES];
  const feature_target target = {.path = "rows", .features = features, .layout = HS_LAYOUT_UBC};
  colmap_rows rows;
  hs_colmap_database *database = NULL;
  snprintf(path, sizeof path, "%s/bench_files.db", folder);
  if (colmap_rows_make(&target, &rows) != HS_OK) die("no rows");
  double best = 1e9;
  for (int round = 0; round < 5; round++) {
    const double start = cpu_ms();
    if ((behind ? colmap_open_behind : hs_colmap_open)(&database, path, NULL) != HS_OK) return;
    for (int i = 0; i < IMAGES; i++) {
      char name[32];
      snprintf(name, sizeof name, "%d.jpg", i);
      if (colmap_add_rows(database, name, NULL, &rows, NULL) != HS_OK) die(hs_colmap_last_error(database));
    }
    if (hs_colmap_commit(database) != HS_OK) die(hs_colmap_last_error(database));
    hs_colmap_close(database);
    best = least(best, (cpu_ms() - start) / IMAGES);
    unlink(path);
  }
  colmap_rows_free(&rows);
  printf("| add rows to a database, commit included%s | %.2f |\n", behind ? ", another thread writing" : "", best);
}

int main(int count, char **arguments) {
  if (count < 2) die("usage: bench_files FOLDER [JPEG ...]");
  hs_features features = make_features();
  double digest = 1e9;
  uint64_t sum = 0;
  printf("| %d features | ms |\n|---|--:|\n", FEATURES);
  bench_format(arguments[1], &features, HS_FORMAT_BIN);
  bench_format(arguments[1], &features, HS_FORMAT_NPZ);
  bench_database(arguments[1], &features);
  bench_rows(arguments[1], &features, false);
  bench_rows(arguments[1], &features, true);
  for (int round = 0; round < ROUNDS; round++) {
    const double start = cpu_ms();
    sum += digest_features(&features);
    digest = least(digest, cpu_ms() - start);
  }
  printf("| digest | %.2f |\n", digest);
  if (count > 2) printf("\n| JPEG | libjpeg's luma, ms | hartsift, ms | ratio |\n|---|--:|--:|--:|\n");
  for (int i = 2; i < count; i++) bench_decoding(arguments[i]);
  free(features.keypoints);
  free(features.descriptors);
  return sum == 0;
}
