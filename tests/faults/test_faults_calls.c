/*
 * Every public call that allocates, with each allocation failing alone, and with it and all later ones failing:
 * allocations of this library, the codecs and SQLite. Each time the call returns HS_ERR_MEMORY or its usual result,
 * everything is freed, and the same call then succeeds.
 *
 * HARTSIFT_FAULTS_CALLS=0 or HARTSIFT_TESTS=whole fails every allocation; else the first ones of a call and a part of
 * the others.
 */
#include <unistd.h>

#include "tests/support/test.h"

#include "pipeline/include/hartsift_batch.h"
#include "pipeline/include/hartsift_colmap.h"
#include "pipeline/include/hartsift_geometry.h"
#include "pipeline/include/hartsift_match.h"
#include "pipeline/include/hartsift_pairs.h"
#include "pipeline/include/hartsift_primitives.h"
#include "pipeline/include/hartsift_retrieval.h"
#include "tests/faults/failing_memory.h"

enum { WIDTH = 90, HEIGHT = 70, ALL_UP_TO = 12, STEPS = 10 };

static scratch_folder folder;
static hs_image scenes[2];
static hs_features features[2];
static hs_matches matches;
static char picture_path[SCRATCH_PATH_BYTES], file_path[SCRATCH_PATH_BYTES];

/* ------------------------------------------------------------------ works: each frees its results */

/* Creates a context with this number of threads. */
static hs_status begin(hs_context **context, int32_t threads) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.threads = threads;
  return hs_create(context, &o);
}

static uint64_t digest_of(const hs_features *f) {
  uint64_t digest = 0;
  return hs_digest_features(f, &digest) == HS_OK ? digest : 0;
}

static hs_status extract_all_ways(uint64_t *result) {
  scoped_context *c = NULL;
  scoped_features f = {0}, g = {0}, h = {0};
  const hs_features *view;
  hs_status st = begin(&c, 2);
  if (st == HS_OK) st = hs_extract(c, &scenes[0], NULL, &f);
  if (st == HS_OK) st = hs_extract_view(c, &scenes[1], NULL, &view);
  if (st == HS_OK) st = hs_detect(c, &scenes[1], NULL, &g);
  if (st == HS_OK) st = hs_describe(c, &scenes[0], f.keypoints, f.count, &h, NULL);
  if (st == HS_OK) *result = digest_of(&f) ^ (digest_of(&h) << 1) ^ g.count;
  return st;
}

static hs_status keep_in_flight(uint64_t *result) {
  scoped_context *c = NULL;
  scoped_features f = {0};
  hs_status st = begin(&c, 2);
  for (int i = 0; i < 3 && st == HS_OK; i++) st = hs_submit(c, &scenes[i % 2], NULL);
  while (c && hs_count_in_flight(c) > 0) {
    const hs_status one = hs_wait(c, &f);
    if (st == HS_OK) st = one;
    *result = *result * 31 + digest_of(&f);
  }
  return st;
}

static hs_status load_picture(uint64_t *result) {
  scoped_image image = {0};
  const hs_status st = hs_load_image(picture_path, NULL, &image);
  if (st == HS_OK) *result = (uint64_t)image.width * (uint64_t)image.height;
  return st;
}

/* Decodes a file before its frame, in one call and in flight. */
static hs_status extract_file(uint64_t *result) {
  scoped_context *c = NULL;
  scoped_features f = {0}, g = {0};
  const hs_source source = hs_source_file(picture_path);
  hs_status st = begin(&c, 1);
  if (st == HS_OK) st = hs_extract_source(c, &source, &f);
  if (st == HS_OK) st = hs_submit_source(c, &source);
  if (st == HS_OK) st = hs_wait(c, &g);
  if (st == HS_OK) *result = digest_of(&f) * 31 + digest_of(&g);
  return st;
}

static int32_t count_path(void *user, const char *path) {
  (void)path;
  ++*(uint64_t *)user;
  return 1;
}

static hs_status find_images(uint64_t *result) {
  static const char list[] = "a.png\nb.png\n";
  static hs_image_findings findings;
  const hs_image_search search = {.take = count_path, .user = result};
  hs_status st = hs_find_images(HARTSIFT_SOURCE_DIR "/tests/data/images", &search, &findings);
  /* the folder could not be read, because opendir had no memory */
  if (st == HS_OK && findings.unreadable > 0) st = HS_ERR_IO;
  return st == HS_OK ? hs_read_image_list(list, sizeof list - 1, "list", 0, &search, NULL, 0) : st;
}

/* Runs a batch of a file and pixels. Returns the first failure of an image or of the batch. */
static hs_status run_batch(uint64_t *result) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  const hs_options *const devices[] = {&o};
  const hs_batch_image images[] = {{.source = hs_source_file(picture_path)},
                                   {.source = hs_source_pixels(&scenes[0])},
                                   {.source = hs_source_pixels(&scenes[1])}};
  hs_batch_options b;
  hs_batch *batch = NULL;
  const hs_batch_result *r = NULL;
  o.threads = 1;
  (void)hs_batch_options_init(&b);
  b.devices = devices;
  b.device_count = b.readers = b.held = b.in_order = 1;
  hs_status st = hs_batch_open(&batch, &b, NULL, 0);
  for (size_t i = 0; i < sizeof images / sizeof images[0] && st == HS_OK; i++) st = hs_batch_add(batch, &images[i]);
  if (st == HS_OK) st = hs_batch_end(batch);
  while (st == HS_OK && (st = hs_batch_next(batch, -1, &r)) == HS_OK && r) {
    st = r->status;
    if (r->features) *result = *result * 31 + digest_of(r->features);
    (void)hs_batch_release(batch, r);
  }
  hs_batch_destroy(batch);
  return st;
}

static hs_status render(uint64_t *result) {
  scoped_image image = {0};
  const hs_status st = hs_render_scene(WIDTH, HEIGHT, 7, NULL, NULL, &image);
  *result = (uint64_t)image.width;
  return st;
}

static hs_status save_and_load(uint64_t *result) {
  scoped_features f = {0};
  hs_status st = hs_save_features(file_path, &features[0], NULL);
  if (st == HS_OK) st = hs_load_features(file_path, &f, NULL);
  *result = f.count;
  return st;
}

static hs_status match_all_ways(uint64_t *result) {
  scoped_context *c = NULL;
  scoped_matches m = {0};
  scoped_lists lists = {0};
  static hs_nearest nearest[4096];
  static hs_neighbour neighbours[3 * 4096];
  hs_status st = begin(&c, 2);
  if (st == HS_OK) st = hs_match(c, &features[0], &features[1], NULL, &m);
  if (st == HS_OK) st = hs_find_nearest(c, &features[0], &features[1], NULL, nearest);
  if (st == HS_OK) st = hs_find_k_nearest(c, &features[0], &features[1], NULL, 3, neighbours);
  if (st == HS_OK) st = hs_find_within(c, &features[0], &features[1], NULL, 250.0, &lists);
  if (st == HS_OK) *result = m.count * 31 + lists.starts[features[0].count];
  return st;
}

static hs_status verify(uint64_t *result) {
  static uint8_t inliers[4096];
  hs_geometry geometry;
  hs_status st = HS_OK;
  for (int model = HS_HOMOGRAPHY; model <= HS_ESSENTIAL && st == HS_OK; model++) {
    hs_verify_options o;
    st = hs_verify_options_init(&o, (hs_geometry_model)model);
    o.camera_a = o.camera_b = (hs_camera){100.0, 100.0, WIDTH / 2.0, HEIGHT / 2.0};
    if (st == HS_OK)
      st = hs_verify(&features[0], &features[1], matches.pairs, sizeof *matches.pairs, matches.count, &o, inliers,
                     &geometry);
    if (st == HS_OK) *result = *result * 31 + geometry.inlier_count;
  }
  return st;
}

static hs_status match_pairs(uint64_t *result) {
  const hs_collection_image images[2] = {{.features = &features[0]}, {.features = &features[1]}};
  const hs_collection collection = {.images = images, .image_count = 2};
  const hs_image_pair pair = {0, 1};
  hs_verify_options v;
  (void)hs_verify_options_init(&v, HS_FUNDAMENTAL);
  const hs_pairs_options o = {.struct_size = sizeof o, .verify = &v, .guided = 1, .find_plane = 1};
  scoped_context *c = NULL;
  scoped_run *run = NULL;
  const hs_pair_result *found = NULL;
  hs_status st = begin(&c, 1);
  if (st == HS_OK) st = hs_pairs_start(&run, c, &collection, &pair, 1, &o);
  if (st == HS_OK) st = hs_pairs_next(run, -1, &found);
  if (st == HS_OK && found) st = found->status;
  if (st == HS_OK && found) *result = found->match_count;
  return st;
}

static hs_status choose_pairs(uint64_t *result) {
  static const char *const names[] = {"a1", "a10", "a2", "b"};
  static const double places[4][3] = {{0, 0, 0}, {1, 0, 0}, {0, 2, 0}, {9, 9, 9}};
  hs_retrieval_options o;
  (void)hs_retrieval_options_init(&o);
  o.centres = 4;
  o.components = 8;
  hs_retrieval *r = NULL;
  hs_image_pairs pairs = {0};
  static int8_t vectors[2][32], blended[2][32];
  hs_status st = hs_pair_sequence(names, 4, 1, 1, &pairs);
  if (st == HS_OK) st = hs_pair_nearby(&places[0][0], 4, 3.0, 2, &pairs);
  if (st == HS_OK) st = hs_retrieval_create(&r, &o);
  for (int i = 0; i < 2 && st == HS_OK; i++) st = hs_retrieval_sample(r, &features[i], 100);
  if (st == HS_OK) st = hs_retrieval_train(r, NULL);
  for (int i = 0; i < 2 && st == HS_OK; i++) st = hs_retrieval_describe(r, NULL, &features[i], vectors[i]);
  const hs_collection_image images[2] = {{.features = &features[0]}, {.features = &features[1]}};
  const hs_collection both = {.images = images, .image_count = 2};
  if (st == HS_OK) st = hs_retrieval_describe_all(r, NULL, &both, blended[0]);
  if (st == HS_OK) assert_memory_equal(blended, vectors, sizeof vectors);
  const size_t length = hs_retrieval_length(r);
  if (st == HS_OK) st = hs_blend_similar(NULL, vectors[0], 1, length, 1, blended[0]);
  if (st == HS_OK) st = hs_pair_similar(NULL, vectors[0], 1, length, 1, &pairs);
  *result = st == HS_OK ? (uint64_t)(unsigned char)vectors[0][0] + 1 : 0;
  hs_image_pairs_free(&pairs);
  hs_retrieval_destroy(r);
  return st;
}

static hs_status fill_database(uint64_t *result) {
  scoped_database *d = NULL;
  scoped_features f = {0};
  uint32_t id[2];
  unlink(file_path);
  hs_status st = hs_colmap_open(&d, file_path, NULL);
  if (st == HS_OK) st = hs_colmap_add_image(d, "a.png", NULL, &features[0], &id[0]);
  if (st == HS_OK) st = hs_colmap_add_image(d, "b.png", NULL, &features[1], &id[1]);
  const hs_colmap_matches m = {
      .pairs = matches.pairs, .pair_stride_bytes = sizeof *matches.pairs, .count = matches.count};
  if (st == HS_OK) st = hs_colmap_add_matches(d, id[0], id[1], &m);
  const hs_colmap_position place = {.found = 1, .coordinates = {48.0, 11.0, 500.0}};
  if (st == HS_OK) st = hs_colmap_set_position(d, id[0], &place);
  if (st == HS_OK) st = hs_colmap_commit(d);
  if (st == HS_OK) st = hs_colmap_read_features(d, id[0], &f);
  *result = f.count;
  return st;
}

static hs_status compute_primitives(uint64_t *result) {
  static uint8_t out[WIDTH * HEIGHT];
  static hs_tile tiles[64];
  const hs_array a = {scenes[0].data, WIDTH, HEIGHT, (size_t)scenes[0].stride_bytes, HS_ELEMENT_U8};
  const hs_tiling tiling = {16, 16, 100.0};
  const double taps[3] = {0.25, 0.5, 0.25};
  static double signal[WIDTH], convolved[WIDTH];
  const hs_array row = {signal, WIDTH, 1, 0, HS_ELEMENT_F64};
  uint64_t counts[256];
  double sum = 0.0;
  size_t count;
  scoped_context *c = NULL;
  hs_status st = begin(&c, 2);
  if (st == HS_OK) st = hs_reduce_sum(c, &a, &sum);
  if (st == HS_OK) st = hs_tile_stats(c, &a, &tiling, tiles, 64, &count);
  if (st == HS_OK) st = hs_histogram256(c, &a, NULL, counts);
  if (st == HS_OK) st = hs_equalize(c, &a, out, WIDTH);
  if (st == HS_OK) st = hs_convolve1d(c, &row, taps, 3, HS_ENDS_ZERO, convolved, 0);
  *result = (uint64_t)sum;
  return st;
}

/* ------------------------------------------------------------------ the sweep */

static long faults;

static bool all_are_wanted(void) {
  const char *calls = getenv("HARTSIFT_FAULTS_CALLS"), *tests = getenv("HARTSIFT_TESTS");
  return calls ? strcmp(calls, "0") == 0 : tests && strcmp(tests, "whole") == 0;
}

/* Returns the number of the next allocation to fail. */
static long after(long at) { return at < ALL_UP_TO || all_are_wanted() ? at + 1 : at + 1 + at / STEPS; }

static hs_status run_failing(hs_status (*work)(uint64_t *result), long at, bool goes_on, uint64_t *result) {
  failing_memory *m = &failing_memory_state;
  *result = 0;
  m->made = 0;
  m->fail_at = at;
  m->goes_on = goes_on;
  m->counts = true;
  const hs_status st = work(result);
  m->counts = false;
  return st;
}

static void sweep(const char *name, hs_status (*work)(uint64_t *result)) {
  uint64_t expected, result;
  /* the first runs fill caches */
  for (int i = 0; i < 2; i++) assert_int_equal(run_failing(work, 0, false, &expected), HS_OK);
  const long alive = failing_memory_state.alive, made = failing_memory_state.made;
  long refused = 0;
  for (long at = 1; at <= made; at = after(at))
    for (int goes_on = 0; goes_on < 2; goes_on++) {
      const hs_status st = run_failing(work, at, goes_on, &result);
      if (st != HS_OK && st != HS_ERR_MEMORY && st != HS_ERR_IO && st != HS_ERR_THREAD)
        fail_msg("%s, allocation %ld: %s", name, at, hs_status_name(st));
      if (st == HS_OK && result != expected) fail_msg("%s, allocation %ld: another result", name, at);
      if (failing_memory_state.alive > alive)
        fail_msg("%s, allocation %ld: %ld blocks not freed", name, at, failing_memory_state.alive - alive);
      refused += st != HS_OK;
      faults++;
      assert_int_equal(run_failing(work, 0, false, &result), HS_OK);
      assert_true(result == expected);
    }
  print_message("%s: %ld allocations, ended with a status after %ld faults\n", name, made, refused);
}

/* ------------------------------------------------------------------ tests */

TEST(test_frames) {
  sweep("frames", extract_all_ways);
  sweep("frames in flight", keep_in_flight);
  sweep("scenes", render);
}

TEST(test_pictures) {
  static const char *const names[] = {"bmp_24.bmp", "jpeg_colour.jpg", "jpeg_progressive.jpg", "pam_rgb.pam",
                                      "png_gray16_adam7.png"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    uint64_t size;
    snprintf(picture_path, sizeof picture_path, HARTSIFT_SOURCE_DIR "/tests/data/images/%s", names[i]);
    /* the build may lack the library of this format */
    if (load_picture(&size) != HS_ERR_UNSUPPORTED) sweep(names[i], load_picture);
  }
}

TEST(test_batch) {
  snprintf(picture_path, sizeof picture_path, HARTSIFT_SOURCE_DIR "/tests/data/images/bmp_24.bmp");
  sweep("files extracted", extract_file);
  sweep("images found", find_images);
  sweep("batch", run_batch);
}

/* libtiff 4.5 and libwebp 1.2 crash if some of their own allocations fail, so only this library's allocations fail
 * here. */
TEST(test_pictures_of_other_libraries) {
  static const char *const names[] = {"tiff_lzw.tif", "tiff_tiled_planes8.tif", "webp_alpha.webp", "webp_lossy.webp"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    snprintf(picture_path, sizeof picture_path, HARTSIFT_SOURCE_DIR "/tests/data/images/%s", names[i]);
    hs_status st = HS_ERR_MEMORY;
    for (size_t at = 1; st == HS_ERR_MEMORY; at++) {
      counted_allocator counter = {.fail_at = at, .fill = 0xa5};
      const hs_allocator allocator = counted_allocator_make(&counter);
      const hs_load_options o = {.struct_size = sizeof o, .allocator = &allocator};
      hs_image image = {0};
      st = hs_load_image(picture_path, &o, &image);
      hs_image_free(&image);
      assert_int_equal(counter.alive, 0);
      faults += st != HS_OK;
    }
    assert_true(st == HS_OK || st == HS_ERR_UNSUPPORTED); /* the build may lack the library of this format */
  }
}

TEST(test_files) {
  static const char *const names[] = {"f.txt",  "f.npz", "f.csv",  "f.json", "f.key",
                                      "f.sift", "f.yml", "f.feat", "f.hsf"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    scratch_folder_path(&folder, names[i], file_path);
    sweep(names[i], save_and_load);
    unlink(file_path);
  }
}

TEST(test_matching) {
  sweep("matching", match_all_ways);
  sweep("verification", verify);
  sweep("pairs", match_pairs);
  sweep("choice of pairs", choose_pairs);
}

TEST(test_database) {
  uint64_t count;
  scratch_folder_path(&folder, "d.db", file_path);
  if (fill_database(&count) == HS_ERR_UNSUPPORTED) return; /* this build has no SQLite */
  sweep("database", fill_database);
}

TEST(test_primitives) { sweep("primitives", compute_primitives); }

BEFORE_TESTS() {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  scratch_folder_make(&folder);
  for (int i = 0; i < 2; i++) {
    scenes[i] = extraction_scene(WIDTH, HEIGHT, 5, NULL);
    features[i] = extraction_once(&o, &scenes[i]);
  }
  hs_context *c = extraction_context(&o);
  const hs_status st = hs_match(c, &features[0], &features[1], NULL, &matches);
  hs_destroy(c);
  assert_true(st == HS_OK && matches.count > 20);
}

AFTER_TESTS() {
  for (int i = 0; i < 2; i++) {
    hs_features_free(&features[i]);
    hs_image_free(&scenes[i]);
  }
  hs_matches_free(&matches);
  scratch_folder_remove(&folder);
  print_message("%ld faults\n", faults);
}
