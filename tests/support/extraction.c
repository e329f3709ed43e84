/* Makes contexts and pictures and compares features, for tests of whole frames. */
#include "tests/support/extraction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#define PI 3.14159265358979323846

hs_options extraction_options(hs_profile profile) {
  hs_options options;
  assert_int_equal(hs_options_init(&options, profile), HS_OK);
  options.device = HS_DEVICE_CPU;
  options.threads = 2;
  return options;
}

hs_expert_options extraction_expert(hs_profile profile, const char *variant) {
  hs_expert_options expert;
  assert_int_equal(hs_expert_options_init(&expert, profile), HS_OK);
  expert.variant = variant;
  return expert;
}

hs_context *extraction_context(const hs_options *options) {
  hs_context *context = NULL;
  char message[256];
  const hs_status st = hs_create_explained(&context, options, message, sizeof message);
  if (st != HS_OK) fail_msg("hs_create: %s: %s", hs_status_name(st), message);
  return context;
}

hs_context *extraction_context_of(hs_profile profile) {
  const hs_options o = extraction_options(profile);
  return extraction_context(&o);
}

hs_statistics statistics_of(const hs_context *context) {
  hs_statistics s = {.struct_size = sizeof s};
  assert_int_equal(hs_get_statistics(context, &s), HS_OK);
  return s;
}

bool extraction_has_gpu(void) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  hs_context *c = NULL;
  o.device = HS_DEVICE_CUDA;
  const hs_status st = hs_create(&c, &o);
  hs_destroy(c);
  assert_true(st == HS_OK || st == HS_ERR_NO_DEVICE);
  return st == HS_OK;
}

bool extraction_is_fake(void) { return getenv("HARTSIFT_FAKE_DEVICE") != NULL; }

hs_image extraction_scene(int32_t width, int32_t height, uint32_t seed, const double *homography) {
  hs_image image;
  assert_int_equal(hs_render_scene(width, height, seed, homography, NULL, &image), HS_OK);
  return image;
}

hs_image extraction_spots(int32_t period, int32_t width, int32_t height) {
  uint8_t *bytes = malloc((size_t)width * (size_t)height);
  uint32_t seed = 1;
  assert_non_null(bytes);
  for (int32_t y = 0; y < height; y++)
    for (int32_t x = 0; x < width; x++) {
      const int32_t across = abs(2 * (x % period) - period) * 16 / period - 8;
      const int32_t along = abs(2 * (y % period) - period) * 16 / period - 8;
      seed = seed * 1664525u + 1013904223u;
      bytes[(size_t)y * (size_t)width + (size_t)x] = (uint8_t)(128 + across * along + (int32_t)(seed >> 27));
    }
  return (hs_image){.data = bytes, .width = width, .height = height, .memory = bytes};
}

hs_image extraction_blank(int32_t width, int32_t height) {
  float *samples = calloc((size_t)width * (size_t)height, sizeof *samples);
  assert_non_null(samples);
  return (hs_image){.data = samples, .width = width, .height = height, .type = HS_F32, .memory = samples};
}

float *extraction_floats(const hs_image *image) {
  assert_int_equal(image->type, HS_F32);
  return (float *)(uintptr_t)image->data;
}

hs_image extraction_as_floats(const hs_image *bytes) {
  hs_image image = extraction_blank(bytes->width, bytes->height);
  const uint8_t *from = bytes->data;
  float *to = extraction_floats(&image);
  const size_t stride = bytes->stride_bytes ? bytes->stride_bytes : (size_t)bytes->width;
  for (int32_t y = 0; y < bytes->height; y++)
    for (int32_t x = 0; x < bytes->width; x++) *to++ = (float)from[(size_t)y * stride + (size_t)x];
  image.range_high = 255.0f;
  return image;
}

hs_features extraction_run(hs_context *context, const hs_image *image) {
  hs_features features = {0};
  const hs_status st = hs_extract(context, image, NULL, &features);
  if (st != HS_OK) fail_msg("hs_extract: %s", hs_last_error(context));
  return features;
}

hs_features extraction_once(const hs_options *options, const hs_image *image) {
  scoped_context *context = extraction_context(options);
  const hs_features features = extraction_run(context, image);
  return features;
}

size_t extraction_descriptor_bytes(const hs_features *features) {
  if (features->descriptor_type == HS_DESCRIPTOR_NONE) return 0;
  return HS_DESCRIPTOR_LENGTH * (features->descriptor_type == HS_DESCRIPTOR_F32 ? sizeof(float) : 1);
}

const void *extraction_descriptor(const hs_features *features, size_t i) {
  return (const unsigned char *)features->descriptors + i * extraction_descriptor_bytes(features);
}

static double entry(const hs_features *features, size_t i, size_t bin) {
  const void *d = extraction_descriptor(features, i);
  return features->descriptor_type == HS_DESCRIPTOR_F32 ? (double)((const float *)d)[bin]
                                                        : (double)((const uint8_t *)d)[bin];
}

double extraction_distance(const hs_features *a, size_t i, const hs_features *b, size_t j) {
  double squares = 0.0, norm = 0.0;
  assert_int_equal(a->descriptor_type, b->descriptor_type);
  for (size_t bin = 0; bin < HS_DESCRIPTOR_LENGTH; bin++) {
    const double d = entry(a, i, bin) - entry(b, j, bin);
    squares += d * d;
    norm += entry(a, i, bin) * entry(a, i, bin);
  }
  /* Floats have unit norm; integers have a norm of 512. */
  return sqrt(squares) / (norm > 4.0 ? 512.0 : 1.0);
}

static void check_feature(const hs_features *a, size_t i, const hs_features *b, size_t j, const char *what) {
  const hs_keypoint *p = &a->keypoints[i], *q = &b->keypoints[j];
  const size_t bytes = extraction_descriptor_bytes(a);
  if (memcmp(p, q, sizeof *p) != 0)
    fail_msg("%s: feature %zu is (%a, %a) sigma %a angle %a response %a at %d/%d, expected (%a, %a) sigma %a angle %a "
             "response %a at %d/%d",
             what, j, (double)q->x, (double)q->y, (double)q->sigma, (double)q->orientation, (double)q->response,
             q->octave, q->level, (double)p->x, (double)p->y, (double)p->sigma, (double)p->orientation,
             (double)p->response, p->octave, p->level);
  if (bytes > 0 && memcmp(extraction_descriptor(a, i), extraction_descriptor(b, j), bytes) != 0)
    fail_msg("%s: descriptor %zu at (%g, %g) sigma %g differs", what, j, (double)q->x, (double)q->y, (double)q->sigma);
  if (!a->frames != !b->frames) fail_msg("%s: frames are %s", what, a->frames ? "missing" : "there");
  if (a->frames && memcmp(&a->frames[i], &b->frames[j], sizeof a->frames[i]) != 0)
    fail_msg("%s: frame %zu at (%g, %g) sigma %g differs", what, j, (double)q->x, (double)q->y, (double)q->sigma);
}

void extraction_check_equal(const hs_features *expected, const hs_features *got, const char *what) {
  if (expected->count != got->count) fail_msg("%s: %zu features, expected %zu", what, got->count, expected->count);
  assert_int_equal(expected->descriptor_type, got->descriptor_type);
  for (size_t i = 0; i < got->count; i++) check_feature(expected, i, got, i, what);
}

void extraction_check_filtered(const hs_features *full, const bool *keep, const hs_features *got, const char *what) {
  size_t n = 0;
  for (size_t i = 0; i < full->count; i++) {
    if (!keep[i]) continue;
    if (n < got->count) check_feature(full, i, got, n, what);
    n++;
  }
  if (n != got->count) fail_msg("%s: %zu features, expected %zu", what, got->count, n);
}

double extraction_angle_between(double a, double b) {
  const double d = fabs(a - b) - 2.0 * PI * floor(fabs(a - b) / (2.0 * PI));
  return d > PI ? 2.0 * PI - d : d;
}

static bool is_near(const hs_keypoint *wanted, const hs_keypoint *k, const extraction_tolerance *t) {
  const double room = t->place * (double)(wanted->sigma > 1.0f ? wanted->sigma : 1.0f);
  return fabs((double)wanted->x - (double)k->x) <= room && fabs((double)wanted->y - (double)k->y) <= room &&
         fabs(log2((double)k->sigma / (double)wanted->sigma)) <= t->sigma_ratio &&
         extraction_angle_between((double)wanted->orientation, (double)k->orientation) <= t->angle_rad;
}

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

extraction_share extraction_match(const hs_features *from, extraction_map map, const void *data, const hs_features *to,
                                  const extraction_tolerance *tolerance) {
  extraction_share s = {0};
  double *distances = malloc(sizeof *distances * (from->count + 1));
  assert_non_null(distances);
  for (size_t i = 0; i < from->count; i++) {
    hs_keypoint wanted = from->keypoints[i];
    if (!map(&wanted, data)) continue;
    s.asked++;
    double nearest = -1.0;
    for (size_t j = 0; j < to->count; j++) {
      if (!is_near(&wanted, &to->keypoints[j], tolerance)) continue;
      const double d = from->descriptors && to->descriptors ? extraction_distance(from, i, to, j) : 0.0;
      if (nearest < 0.0 || d < nearest) nearest = d;
    }
    if (nearest >= 0.0) distances[s.found++] = nearest;
  }
  s.share = s.asked > 0 ? (double)s.found / (double)s.asked : 0.0;
  qsort(distances, s.found, sizeof *distances, compare_doubles);
  s.median_distance = s.found > 0 ? distances[s.found / 2] : 0.0;
  free(distances);
  return s;
}
