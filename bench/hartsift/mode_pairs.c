/*
 * Rate of matching and verification over all pairs of a generated collection in memory, without a database.
 *
 * usage: bench_hartsift pairs [IMAGES [FEATURES [cpu|cuda [THREADS [verify|match]]]]]   (64 2000 cpu 0 verify)
 *
 * Images come in groups of 16. Images of a group share half of their features, under one fundamental matrix of a camera
 * that moves sideways. Prints pairs a second and a digest of all results, which must not depend on device or threads.
 */
#include <inttypes.h>

#include "bench/hartsift/bench_modes.h"

enum { GROUP = 16 };

static void require(int condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "pairs: %s\n", what);
  exit(1);
}

static uint64_t next_number(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static double unit(uint64_t *state) { return (double)(next_number(state) >> 11) * 0x1p-53; }

/* Makes one feature. `own` is the seed of its descriptor and position, `state` of its noise. */
static void make_feature(uint64_t own, double camera_x, hs_keypoint *k, uint8_t *descriptor, uint64_t *state) {
  const double x = 8.0 * unit(&own) - 3.0, y = 3.0 * unit(&own) - 1.5, z = 4.0 + 3.0 * unit(&own);
  *k = (hs_keypoint){.x = (float)(500.0 * (x - camera_x) / z + 512.0 + 0.5 * unit(state)),
                     .y = (float)(500.0 * y / z + 384.0 + 0.5 * unit(state)),
                     .sigma = 2.0f,
                     .level = 1};
  for (int i = 0; i < HS_DESCRIPTOR_LENGTH; i += 8) {
    const uint64_t look = next_number(&own), noise = next_number(state);
    for (int b = 0; b < 8; b++)
      descriptor[i + b] =
          (uint8_t)((look >> (8 * b) & 127u) * (look >> (8 * b) & 127u) / 128u + (noise >> (8 * b) & 7u));
  }
}

static void make_image(size_t image, size_t count, hs_features *f) {
  uint64_t state = 1000003u * (image + 1);
  f->count = count;
  f->keypoints = malloc(count * sizeof *f->keypoints);
  f->descriptors = malloc(count * HS_DESCRIPTOR_LENGTH);
  f->descriptor_type = HS_DESCRIPTOR_U8;
  require(f->keypoints && f->descriptors, "no memory for the collection");
  for (size_t i = 0; i < count; i++) {
    /* owner: seed that the group shares, or that only this image has */
    const size_t owner = i % 2 == 0 ? image / GROUP : 1000000 + image;
    make_feature(owner * 7919u * 65537u + i, 0.05 * (double)(image % GROUP), &f->keypoints[i],
                 (uint8_t *)f->descriptors + i * HS_DESCRIPTOR_LENGTH, &state);
  }
}

static uint64_t digest_add(uint64_t digest, const void *bytes, size_t count) {
  const unsigned char *b = bytes;
  for (size_t i = 0; i < count; i++) digest = (digest ^ b[i]) * 0x100000001b3u;
  return digest;
}

typedef struct outcome {
  double first_s, all_s;
  uint64_t matches, verified, digest;
} outcome;

static outcome run(hs_context *context, const hs_collection *collection, const hs_image_pair *pairs, size_t count,
                   const hs_pairs_options *options) {
  outcome o = {.digest = 0xcbf29ce484222325u};
  hs_pairs *all;
  const double start = bench_ms();
  require(hs_pairs_start(&all, context, collection, pairs, count, options) == HS_OK, hs_last_error(context));
  for (size_t i = 0; i < count; i++) {
    const hs_pair_result *r;
    require(hs_pairs_next(all, -1, &r) == HS_OK, hs_pairs_last_error(all));
    require(r && r->status == HS_OK, r ? r->message : "a pair is missing");
    if (i == 0) o.first_s = 1e-3 * (bench_ms() - start);
    o.matches += r->match_count;
    o.digest = digest_add(o.digest, r->matches, r->match_count * sizeof *r->matches);
    if (!r->geometry) continue;
    o.verified += r->geometry->found != 0;
    o.digest = digest_add(o.digest, r->geometry, sizeof *r->geometry);
    o.digest = digest_add(o.digest, r->inliers, r->match_count);
  }
  o.all_s = 1e-3 * (bench_ms() - start);
  hs_pairs_end(all);
  return o;
}

int mode_pairs(int argc, char **argv) {
  const size_t images = argc > 1 ? strtoul(argv[1], NULL, 10) : 64,
               features = argc > 2 ? strtoul(argv[2], NULL, 10) : 2000;
  const int on_gpu = argc > 3 && strcmp(argv[3], "cuda") == 0, verifies = argc <= 5 || strcmp(argv[5], "verify") == 0;
  const size_t count = images * (images - 1) / 2;
  hs_options o;
  hs_context *context;
  hs_verify_options verify;
  hs_collection_image *list = calloc(images + 1, sizeof *list);
  hs_features *made = calloc(images + 1, sizeof *made);
  hs_image_pair *pairs = malloc((count + 1) * sizeof *pairs);
  require(list && made && pairs, "no memory for the collection");
  for (size_t i = 0; i < images; i++) {
    make_image(i, features, &made[i]);
    list[i].features = &made[i];
  }
  for (uint32_t i = 0, at = 0; i < images; i++)
    for (uint32_t k = i + 1; k < images; k++) pairs[at++] = (hs_image_pair){i, k};
  require(hs_options_init(&o, HS_PROFILE_COLMAP) == HS_OK, "options");
  o.device = on_gpu ? HS_DEVICE_CUDA : HS_DEVICE_CPU;
  o.threads = argc > 4 ? atoi(argv[4]) : 0;
  require(hs_create(&context, &o) == HS_OK, "no context");
  require(hs_verify_options_init(&verify, HS_FUNDAMENTAL) == HS_OK, "options");
  verify.tolerance = 4.0;
  const hs_pairs_options options = {
      .struct_size = sizeof options, .verify = verifies ? &verify : NULL, .find_plane = verifies};
  const hs_collection collection = {.images = list, .image_count = images};
  const outcome r = run(context, &collection, pairs, count, &options);
  printf("%zu images of %zu features, %s, %d threads, %s: %zu pairs in %.3f s, %.0f a second, first after %.3f s; "
         "%" PRIu64 " matches, %" PRIu64 " verified, digest %016" PRIx64 "\n",
         images, features, on_gpu ? "cuda" : "cpu", (int)o.threads, verifies ? "verified" : "matched", count, r.all_s,
         (double)count / r.all_s, r.first_s, r.matches, r.verified, r.digest);
  hs_destroy(context);
  for (size_t i = 0; i < images; i++) {
    free(made[i].keypoints);
    free(made[i].descriptors);
  }
  free(made);
  free(list);
  free(pairs);
  return 0;
}
