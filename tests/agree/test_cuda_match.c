/*
 * Matching on a device equals match_ref byte for byte.
 *
 * Covers every variant, both directions and one, sizes around the tiles' edges, ties and copies everywhere, extreme
 * descriptors, non-finite floats, guides, and the kept pairs, also of collections.
 */

#include "tests/support/test.h"

#include "cpu/ref/stages_ref.h"

#if HARTSIFT_HAVE_CUDA
#  include "cuda/runtime/device.h"
#  include "cuda/match/match_cuda.h"

/* Content of a list of descriptors. */
typedef enum content {
  NOISE,    /* any values */
  FEW,      /* copies of seven descriptors: ties everywhere */
  CLUSTERS, /* near copies of eight descriptors; some lie next to each other in a tile */
  ZEROS,
  FULL,     /* all values 255 */
  EXTREMES, /* values 0 and 255 only */
  SKEWED,   /* a long list of zeros with a few entries 255 */
  CONTENTS
} content;

typedef struct test_list {
  uint32_t count;
  void *descriptors; /* host */
  hs_keypoint *keypoints;
} test_list;

/* A case on the host: lists, arguments, expected results. */
typedef struct test_case {
  match_type type;
  test_list first, second;
  match_guide guide;
  match_position *positions[2];
  match_nearest *forward, *backward;
} test_case;

/* Memory of a case on the device. */
typedef struct device_case {
  cuda_stream stream;
  void *blocks[16];
  size_t block_count;
  match_args args;
  cuda_match_work work;
  match_pair *pairs;
  uint32_t *pair_count;
} device_case;

static uint32_t random_state = 20261121u;

static uint32_t random_bits(void) {
  random_state = random_state * 1664525u + 1013904223u;
  return random_state >> 8;
}

static void *room(size_t bytes) {
  void *p = malloc(bytes ? bytes : 1);
  assert_non_null(p);
  return p;
}

#  define GPU_TEST(NAME) TEST_WHERE(device_count(NULL, 0) > 0, NEEDS_GPU, NAME)

/* ------------------------------------------------------------------ lists */

static uint32_t value_of(content what, uint32_t i, uint32_t k) {
  switch (what) {
  case NOISE:
    return random_bits() & 255u;
  case FEW:
    return (i * 2654435761u >> 20) % 7u * 31u + k % 3u;
  case CLUSTERS:
    return (i / 16u % 8u) * 29u + k % 5u + (random_bits() % 8u == 0 ? 1u : 0u);
  case ZEROS:
    return 0;
  case FULL:
    return 255;
  case EXTREMES:
    return random_bits() & 1u ? 255u : 0u;
  default:
    return i % 97u == 13u ? 255u : 0u;
  }
}

static test_list make_list(match_type type, content what, uint32_t count) {
  test_list l = {count, room((size_t)count * MATCH_LENGTH * (type == MATCH_F32 ? 4 : 1)),
                 room((size_t)count * sizeof(hs_keypoint))};
  memset(l.keypoints, 0, (size_t)count * sizeof(hs_keypoint));
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t k = 0; k < MATCH_LENGTH; k++) {
      const uint32_t v = value_of(what, i, k);
      const size_t at = (size_t)i * MATCH_LENGTH + k;
      if (type == MATCH_F32)
        ((float *)l.descriptors)[at] = (float)v * 0.00371f - 0.2f;
      else
        ((uint8_t *)l.descriptors)[at] = (uint8_t)v;
    }
    l.keypoints[i].x = (float)(random_bits() % 6400u) * 0.1f;
    l.keypoints[i].y = (float)(random_bits() % 4800u) * 0.1f;
  }
  return l;
}

static void free_list(test_list *l) {
  free(l->descriptors);
  free(l->keypoints);
}

/* Computes the reference's results. */
static void expect(test_case *t) {
  const test_list *lists[2] = {&t->first, &t->second};
  t->forward = room(t->first.count * sizeof *t->forward);
  t->backward = room(t->second.count * sizeof *t->backward);
  for (int s = 0; s < 2; s++) {
    t->positions[s] = room(lists[s]->count * sizeof *t->positions[s]);
    for (uint32_t i = 0; i < lists[s]->count; i++) {
      const hs_keypoint *k = &lists[s]->keypoints[i];
      t->positions[s][i] =
          s ? match_position_second(&t->guide, k->x, k->y) : match_position_first(&t->guide, k->x, k->y);
    }
  }
  const match_args args = {.type = t->type,
                           .first = {t->first.descriptors, t->positions[0], t->first.count},
                           .second = {t->second.descriptors, t->positions[1], t->second.count},
                           .guide = t->guide.kind,
                           .tolerance_squared = t->guide.tolerance_squared,
                           .forward = t->forward,
                           .backward = t->backward};
  assert_int_equal(match_ref(NULL, &args), STAGE_OK);
}

static void free_case(test_case *t) {
  free_list(&t->first);
  free_list(&t->second);
  free(t->positions[0]);
  free(t->positions[1]);
  free(t->forward);
  free(t->backward);
}

/* ------------------------------------------------------------------ device */

/* Allocates device memory with the given content, or with garbage if it is null. */
static void *take(device_case *d, size_t bytes, const void *content_bytes) {
  void *block = NULL, *garbage = NULL;
  assert_true(d->block_count < sizeof d->blocks / sizeof d->blocks[0]);
  assert_int_equal(device_alloc(&block, bytes ? bytes : 16), STAGE_OK);
  d->blocks[d->block_count++] = block;
  if (!content_bytes) {
    garbage = room(bytes);
    memset(garbage, 0x5a, bytes);
  }
  assert_int_equal(device_copy_to(block, content_bytes ? content_bytes : garbage, bytes, d->stream), STAGE_OK);
  assert_int_equal(device_stream_wait(d->stream), STAGE_OK);
  free(garbage);
  return block;
}

static void device_make(device_case *d, const test_case *t, bool both) {
  const size_t value = t->type == MATCH_F32 ? 4 : 1;
  const bool guided = t->guide.kind != MATCH_UNGUIDED;
  memset(d, 0, sizeof *d);
  assert_int_equal(device_stream_create(&d->stream), STAGE_OK);
  const size_t bytes = cuda_match_work_layout(t->first.count, t->second.count, guided, NULL, &d->work);
  void *base = take(d, bytes, NULL);
  assert_int_equal(cuda_match_work_layout(t->first.count, t->second.count, guided, base, &d->work), bytes);
  d->args.type = t->type;
  d->args.guide = t->guide.kind;
  d->args.tolerance_squared = t->guide.tolerance_squared;
  d->args.first.count = t->first.count;
  d->args.first.descriptors = take(d, t->first.count * MATCH_LENGTH * value, t->first.descriptors);
  d->args.first.positions = d->work.first_positions;
  d->args.second.count = t->second.count;
  d->args.second.descriptors = take(d, t->second.count * MATCH_LENGTH * value, t->second.descriptors);
  d->args.second.positions = d->work.second_positions;
  d->args.forward = take(d, t->first.count * sizeof(match_nearest), NULL);
  if (both) d->args.backward = take(d, t->second.count * sizeof(match_nearest), NULL);
  d->pairs = take(d, t->first.count * sizeof(match_pair), NULL);
  d->pair_count = take(d, sizeof(uint32_t), NULL);
  if (!guided) return;
  const void *first = take(d, t->first.count * sizeof(hs_keypoint), t->first.keypoints);
  const void *second = take(d, t->second.count * sizeof(hs_keypoint), t->second.keypoints);
  assert_int_equal(
      cuda_match_positions_launch(&t->guide, false, first, t->first.count, d->work.first_positions, d->stream),
      STAGE_OK);
  assert_int_equal(
      cuda_match_positions_launch(&t->guide, true, second, t->second.count, d->work.second_positions, d->stream),
      STAGE_OK);
}

static void device_drop(device_case *d) {
  for (size_t i = 0; i < d->block_count; i++) device_free(d->blocks[i]);
  device_stream_destroy(d->stream);
}

static void *fetch(device_case *d, const void *device, size_t bytes) {
  void *host = room(bytes);
  assert_int_equal(device_copy_from(host, device, bytes, d->stream), STAGE_OK);
  const stage_status st = device_stream_wait(d->stream);
  if (st != STAGE_OK) print_error("%s\n", device_error_text());
  assert_int_equal(st, STAGE_OK);
  return host;
}

static void check_nearest(device_case *d, const match_nearest *device, const match_nearest *expected, uint32_t count,
                          const char *what) {
  match_nearest *got = fetch(d, device, count * sizeof *got);
  for (uint32_t i = 0; i < count; i++) {
    const match_nearest *a = &got[i], *b = &expected[i];
    if (memcmp(a, b, sizeof *a) == 0) continue;
    print_error("%s, feature %u: %u at %g and %u at %g, expected %u at %g and %u at %g\n", what, i, a->nearest,
                (double)a->nearest_squared, a->second, (double)a->second_squared, b->nearest,
                (double)b->nearest_squared, b->second, (double)b->second_squared);
    fail();
  }
  free(got);
}

/* Compares pairs on the device with those that the reference's nearest give. */
static void compare_pairs(device_case *d, const test_case *t, bool both, const match_limits *limits,
                          const match_pair *found, const uint32_t *found_count, const char *what) {
  uint32_t *count = fetch(d, found_count, sizeof *count), expected = 0;
  SCOPED_MEMORY match_pair *pairs = fetch(d, found, t->first.count * sizeof *pairs);
  for (uint32_t i = 0; i < t->first.count; i++) {
    if (!match_keeps(limits, t->forward, both ? t->backward : NULL, i)) continue;
    const match_pair p = match_pair_of(i, &t->forward[i]);
    if (expected >= *count || memcmp(&pairs[expected], &p, sizeof p) != 0) {
      print_error("%s, %u x %u, %s: pair %u of %u is not %u, %u at %g, next %g\n", what, t->first.count,
                  t->second.count, both ? "mutual" : "one way", expected, *count, p.first, p.second, (double)p.distance,
                  (double)p.next_distance);
      fail();
    }
    expected++;
  }
  assert_int_equal(*count, expected);
  free(count);
}

static void check_pairs(device_case *d, const test_case *t, bool both, const match_limits *limits) {
  const cuda_match_pairs_args args = {*limits,  d->args.forward, d->args.backward, t->first.count, d->work.tile_counts,
                                      d->pairs, d->pair_count};
  assert_int_equal(cuda_match_pairs_launch(&args, d->stream), STAGE_OK);
  compare_pairs(d, t, both, limits, d->pairs, d->pair_count, "pairs");
}

static const match_limits limit_sets[] = {{0.0, 0.0}, {0.64, 0.0}, {1.0, 0.0}, {0.0, 90000.0}, {0.9025, 2.0e6}};

/* Compares one variant with the expected results of one case. */
static void check_variant(const test_case *t, cuda_match_variant variant, bool both, bool captured, const char *what) {
  device_case d;
  device_make(&d, t, both);
  cuda_graph graph = NULL;
  if (captured) assert_int_equal(device_capture_begin(d.stream), STAGE_OK);
  assert_int_equal(cuda_match_nearest_launch(&d.args, &d.work, variant, d.stream), STAGE_OK);
  if (captured) {
    assert_int_equal(device_capture_end(d.stream, &graph), STAGE_OK);
    assert_int_equal(device_graph_launch(graph, d.stream), STAGE_OK);
    /* replay must not rely on results of the first run */
    assert_int_equal(device_graph_launch(graph, d.stream), STAGE_OK);
  }
  check_nearest(&d, d.args.forward, t->forward, t->first.count, what);
  if (both) check_nearest(&d, d.args.backward, t->backward, t->second.count, what);
  for (size_t i = 0; i < sizeof limit_sets / sizeof limit_sets[0]; i++) check_pairs(&d, t, both, &limit_sets[i]);
  device_graph_destroy(graph);
  device_drop(&d);
}

/* Checks all variants of a type, in both directions and in one. */
static void check_case(test_case *t, const char *name) {
  const int variants = t->type == MATCH_U8 && t->guide.kind == MATCH_UNGUIDED ? 3 : 1;
  char what[128];
  expect(t);
  for (int v = 0; v < variants; v++)
    for (int both = 0; both < 2; both++) {
      snprintf(what, sizeof what, "%s, %u x %u, variant %d, %s", name, t->first.count, t->second.count, v,
               both ? "both ways" : "one way");
      check_variant(t, (cuda_match_variant)v, both != 0, false, what);
    }
  free_case(t);
}

static void check_content(match_type type, content what, uint32_t rows, uint32_t columns, const char *name) {
  test_case t = {.type = type, .first = make_list(type, what, rows), .second = make_list(type, what, columns)};
  check_case(&t, name);
}

/* ------------------------------------------------------------------ tests */

static const uint32_t sizes[] = {0, 1, 2, 3, 31, 63, 64, 65, 127, 128, 129, 257, 1000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

GPU_TEST(test_sizes) {
  for (size_t i = 0; i < SIZES; i++)
    for (size_t j = 0; j < SIZES; j++) {
      check_content(MATCH_U8, FEW, sizes[i], sizes[j], "copies");
      check_content(MATCH_U8, NOISE, sizes[i], sizes[j], "noise");
    }
}

GPU_TEST(test_contents) {
  static const uint32_t shapes[][2] = {{129, 1000}, {1000, 129}, {700, 1300}, {2, 513}};
  for (int what = 0; what < CONTENTS; what++)
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
      char name[32];
      snprintf(name, sizeof name, "content %d", what);
      check_content(MATCH_U8, (content)what, shapes[i][0], shapes[i][1], name);
      check_content(MATCH_F32, (content)what, shapes[i][0], shapes[i][1], name);
    }
}

/* Covers the largest possible squared distance, and two lists of unlike content. */
GPU_TEST(test_far_apart) {
  static const content pairs[][2] = {{ZEROS, FULL}, {FULL, ZEROS}, {SKEWED, FULL}, {NOISE, EXTREMES}, {ZEROS, SKEWED}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    test_case t = {.type = MATCH_U8,
                   .first = make_list(MATCH_U8, pairs[i][0], 300),
                   .second = make_list(MATCH_U8, pairs[i][1], 650)};
    check_case(&t, "unlike lists");
  }
}

GPU_TEST(test_long_lists) {
  static const uint32_t shapes[][2] = {{4097, 4097}, {1, 4097}, {4097, 1}, {129, 4097}, {4097, 3}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    check_content(MATCH_U8, CLUSTERS, shapes[i][0], shapes[i][1], "long lists of near copies");
    check_content(MATCH_U8, NOISE, shapes[i][0], shapes[i][1], "long lists of noise");
  }
  check_content(MATCH_F32, NOISE, 129, 4097, "long lists of floats");
}

GPU_TEST(test_float_sizes) {
  for (size_t i = 0; i < SIZES; i++)
    for (size_t j = i % 2; j < SIZES; j += 2) check_content(MATCH_F32, NOISE, sizes[i], sizes[j], "floats");
}

/* Descriptors whose squared norm is infinite or NaN are no candidates; those with a tiny norm are. */
GPU_TEST(test_floats_not_finite) {
  test_case t = {
      .type = MATCH_F32, .first = make_list(MATCH_F32, NOISE, 300), .second = make_list(MATCH_F32, NOISE, 200)};
  float *a = t.first.descriptors, *b = t.second.descriptors;
  for (uint32_t k = 0; k < MATCH_LENGTH; k++) {
    a[5 * MATCH_LENGTH + k] = NAN;
    a[7 * MATCH_LENGTH + k] = INFINITY;
    b[3 * MATCH_LENGTH + k] = -INFINITY;
    b[4 * MATCH_LENGTH + k] = 3e38f;
    a[9 * MATCH_LENGTH + k] = 0.0f;
    b[11 * MATCH_LENGTH + k] = k == 40 ? 1e-22f : 0.0f; /* the square is denormal */
  }
  b[17 * MATCH_LENGTH + 100] = NAN;
  check_case(&t, "floats that are not finite");
}

GPU_TEST(test_guides) {
  static const double homography[9] = {0.98, 0.03, 4.0, -0.02, 1.01, -3.0, 1e-5, -2e-5, 1.0};
  static const double fundamental[9] = {1e-7, 3e-6, -0.004, -2e-6, 2e-7, 0.011, 0.003, -0.012, 0.9};
  static const double degenerate[9] = {0, 0, 1, 0, 0, 1, 1, 0, -320}; /* projects some points to w = 0 */
  static const double tolerances[] = {0.5, 30.0, 1e4};
  static const uint32_t shapes[][2] = {{0, 5}, {5, 0}, {1, 1}, {33, 300}, {700, 900}};
  for (int kind = 0; kind < 3; kind++)
    for (size_t i = 0; i < sizeof tolerances / sizeof tolerances[0]; i++)
      for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
        for (int type = 0; type < 2; type++) {
          test_case t = {.type = (match_type)type,
                         .first = make_list((match_type)type, FEW, shapes[k][0]),
                         .second = make_list((match_type)type, CLUSTERS, shapes[k][1])};
          t.guide.kind = kind == 1 ? MATCH_FUNDAMENTAL : MATCH_HOMOGRAPHY;
          t.guide.tolerance_squared = tolerances[i] * tolerances[i];
          memcpy(t.guide.matrix, kind == 0 ? homography : kind == 1 ? fundamental : degenerate, sizeof t.guide.matrix);
          check_case(&t, kind == 1 ? "fundamental matrix" : "homography");
        }
}

GPU_TEST(test_captured) {
  for (int type = 0; type < 2; type++) {
    test_case t = {.type = (match_type)type,
                   .first = make_list((match_type)type, NOISE, 500),
                   .second = make_list((match_type)type, NOISE, 300)};
    expect(&t);
    for (int v = 0; v < 3; v++) check_variant(&t, (cuda_match_variant)v, true, true, "in a graph");
    free_case(&t);
  }
}

/* ------------------------------------------------------------------ pairs alone */

/* Makes every third descriptor of a list a near copy of one of another list, so that there are matches. */
static void copy_some(const test_list *from, test_list *to) {
  for (uint32_t i = 0; i < to->count && from->count > 0; i += 3) {
    uint8_t *at = (uint8_t *)to->descriptors + (size_t)i * MATCH_LENGTH;
    memcpy(at, (const uint8_t *)from->descriptors + (size_t)(i * 7919u % from->count) * MATCH_LENGTH, MATCH_LENGTH);
    for (uint32_t k = i % 5u; k < MATCH_LENGTH; k += 5) at[k] ^= (uint8_t)(random_bits() & 7u);
  }
}

static test_case make_views(content what, uint32_t rows, uint32_t columns) {
  test_case t = {
      .type = MATCH_U8, .first = make_list(MATCH_U8, what, rows), .second = make_list(MATCH_U8, what, columns)};
  copy_some(&t.first, &t.second);
  expect(&t);
  return t;
}

static void check_kept(const test_case *t, bool both, const match_limits *limits, bool captured) {
  device_case d;
  cuda_graph graph = NULL;
  device_make(&d, t, both);
  d.args.limits = limits;
  const size_t bytes = cuda_match_rows_layout(&d.args, NULL, &d.work);
  assert_int_equal(cuda_match_rows_layout(&d.args, bytes ? take(&d, bytes, NULL) : NULL, &d.work), bytes);
  if (captured) assert_int_equal(device_capture_begin(d.stream), STAGE_OK);
  assert_int_equal(cuda_match_kept_launch(&d.args, &d.work, d.pairs, d.pair_count, d.stream), STAGE_OK);
  if (captured) {
    assert_int_equal(device_capture_end(d.stream, &graph), STAGE_OK);
    for (int i = 0; i < 2; i++) assert_int_equal(device_graph_launch(graph, d.stream), STAGE_OK);
  }
  compare_pairs(&d, t, both, limits, d.pairs, d.pair_count, "pairs alone");
  device_graph_destroy(graph);
  device_drop(&d);
}

/* Lists long enough for rows alone, and short ones. */
GPU_TEST(test_kept_pairs) {
  static const uint32_t shapes[][2] = {{0, 7},        {7, 0},        {33, 200},    {7001, 7013},
                                       {400, 125001}, {125001, 400}, {50001, 1001}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    for (int what = NOISE; what <= CLUSTERS; what++) {
      test_case t = make_views((content)what, shapes[i][0], shapes[i][1]);
      for (size_t l = 0; l < sizeof limit_sets / sizeof limit_sets[0]; l++)
        for (int both = 0; both < 2; both++) check_kept(&t, both != 0, &limit_sets[l], l == 1);
      free_case(&t);
    }
}

/* The largest products and distances, which rows alone hold in 32 bits, and nothing but ties. */
GPU_TEST(test_kept_extremes) {
  static const content pairs[][2] = {{FULL, FULL}, {ZEROS, FULL}, {FULL, ZEROS}, {EXTREMES, FULL}, {SKEWED, EXTREMES}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    test_case t = {.type = MATCH_U8,
                   .first = make_list(MATCH_U8, pairs[i][0], 7001),
                   .second = make_list(MATCH_U8, pairs[i][1], 7013)};
    expect(&t);
    for (size_t l = 0; l < sizeof limit_sets / sizeof limit_sets[0]; l++)
      for (int both = 0; both < 2; both++) check_kept(&t, both != 0, &limit_sets[l], false);
    free_case(&t);
  }
}

/* More rows than ROWS_TILES_MAX blocks of 256 confirm. */
GPU_TEST(test_kept_many_rows) {
  test_case t = make_views(NOISE, 300001, 170);
  for (int both = 0; both < 2; both++) check_kept(&t, both != 0, &limit_sets[1], false);
  free_case(&t);
}

/* Lays out the tasks of a collection and its images from the addresses on; returns the bytes of the images. */
static size_t lay_out_collection(const test_case *cases, uint32_t count, bool mutual, cuda_match_task *tasks,
                                 unsigned char *images, void *keys, size_t *key_bytes, void *nearest,
                                 size_t *nearest_bytes) {
  size_t bytes = 0;
  *key_bytes = *nearest_bytes = 0;
  for (uint32_t i = 0; i < count; i++) {
    cuda_match_task *t = &tasks[i];
    bytes += cuda_match_image_layout(cases[i].first.count, images ? images + bytes : NULL, &t->first);
    bytes += cuda_match_image_layout(cases[i].second.count, images ? images + bytes : NULL, &t->second);
    cuda_match_task_layout(t, mutual, keys, key_bytes, nearest, nearest_bytes);
  }
  return bytes;
}

static void upload_image(device_case *d, const test_list *list, const cuda_match_image *image) {
  const size_t bytes = (size_t)list->count * MATCH_LENGTH;
  assert_int_equal(device_copy_to(image->descriptors, list->descriptors, bytes, d->stream), STAGE_OK);
  assert_int_equal(cuda_match_image_launch(image, d->stream), STAGE_OK);
}

static void check_collection(const test_case *cases, uint32_t count, const match_limits *limits, bool mutual,
                             const char *what) {
  device_case d = {0};
  size_t key_bytes, nearest_bytes, pairs = 0;
  cuda_match_many_args args = {.count = count, .limits = *limits, .mutual = mutual};
  SCOPED_MEMORY cuda_match_task *tasks = room(count * sizeof *tasks);
  memset(tasks, 0, count * sizeof *tasks);
  assert_int_equal(device_stream_create(&d.stream), STAGE_OK);
  const size_t images = lay_out_collection(cases, count, mutual, tasks, NULL, NULL, &key_bytes, NULL, &nearest_bytes);
  unsigned char *image_memory = take(&d, images, NULL);
  args.keys = take(&d, key_bytes, NULL);
  void *nearest = take(&d, nearest_bytes, NULL);
  (void)lay_out_collection(cases, count, mutual, tasks, image_memory, args.keys, &args.key_bytes, nearest,
                           &nearest_bytes);
  for (uint32_t i = 0; i < count; i++) pairs += cases[i].first.count;
  match_pair *found = take(&d, pairs * sizeof *found, NULL);
  uint32_t *counts = take(&d, count * sizeof *counts, NULL);
  for (uint32_t i = 0; i < count; i++) {
    tasks[i].pairs = found;
    tasks[i].pair_count = &counts[i];
    found += cases[i].first.count;
    upload_image(&d, &cases[i].first, &tasks[i].first);
    upload_image(&d, &cases[i].second, &tasks[i].second);
    if (cases[i].first.count > args.rows_most) args.rows_most = cases[i].first.count;
    if (cases[i].second.count > args.columns_most) args.columns_most = cases[i].second.count;
  }
  args.tasks = take(&d, count * sizeof *tasks, tasks);
  for (int i = 0; i < 2; i++) assert_int_equal(cuda_match_many_launch(&args, d.stream), STAGE_OK);
  for (uint32_t i = 0; i < count; i++)
    compare_pairs(&d, &cases[i], mutual, limits, tasks[i].pairs, tasks[i].pair_count, what);
  device_drop(&d);
}

/* Pairs of images of all sizes at once; more tasks than a warp has lanes. */
GPU_TEST(test_collections) {
  static const char *const names[] = {"collection of noise", "collection of copies", "collection of near copies"};
  enum { COUNT = SIZES * SIZES };
  for (int what = NOISE; what <= CLUSTERS; what++) {
    SCOPED_MEMORY test_case *cases = room(COUNT * sizeof *cases);
    for (uint32_t i = 0; i < COUNT; i++) cases[i] = make_views((content)what, sizes[i / SIZES], sizes[i % SIZES]);
    for (size_t l = 0; l < sizeof limit_sets / sizeof limit_sets[0]; l++)
      for (int mutual = 0; mutual < 2; mutual++)
        check_collection(cases, COUNT, &limit_sets[l], mutual != 0, names[what]);
    check_collection(cases, 1, &limit_sets[1], true, "a pair without features");
    for (uint32_t i = 0; i < COUNT; i++) free_case(&cases[i]);
  }
}

/* A collection small enough for compute-sanitizer. */
GPU_TEST(test_one_collection) {
  static const uint32_t shapes[][2] = {{700, 900}, {0, 5}, {300, 129}, {129, 1}};
  enum { COUNT = sizeof shapes / sizeof shapes[0] };
  test_case cases[COUNT];
  for (uint32_t i = 0; i < COUNT; i++) cases[i] = make_views(NOISE, shapes[i][0], shapes[i][1]);
  for (size_t l = 0; l < sizeof limit_sets / sizeof limit_sets[0]; l++)
    for (uint32_t count = 1; count <= COUNT; count += COUNT - 1)
      check_collection(cases, count, &limit_sets[l], l != 2, "a small collection");
  for (uint32_t i = 0; i < COUNT; i++) free_case(&cases[i]);
}

/* There are more features than the pair tiles hold at their smallest size. */
GPU_TEST(test_many_pairs) {
  const uint32_t count = 1024u * 1024u + 77u;
  test_case t = {.type = MATCH_U8, .first = {.count = count}, .second = {.count = count}};
  device_case d;
  t.forward = room(count * sizeof *t.forward);
  t.backward = room(count * sizeof *t.backward);
  for (uint32_t i = 0; i < count; i++) {
    t.forward[i] = (match_nearest){i ^ (random_bits() % 3u), 0, (float)(random_bits() % 1000u), 1000.0f};
    if (t.forward[i].nearest >= count) t.forward[i] = match_nearest_none();
    t.backward[i] = (match_nearest){i, 0, (float)(random_bits() % 1000u), 1000.0f};
  }
  memset(&d, 0, sizeof d);
  assert_int_equal(device_stream_create(&d.stream), STAGE_OK);
  (void)cuda_match_work_layout(0, 0, false, take(&d, cuda_match_work_layout(0, 0, false, NULL, &d.work), NULL),
                               &d.work);
  d.args.forward = take(&d, count * sizeof *t.forward, t.forward);
  d.args.backward = take(&d, count * sizeof *t.backward, t.backward);
  d.pairs = take(&d, count * sizeof(match_pair), NULL);
  d.pair_count = take(&d, sizeof(uint32_t), NULL);
  check_pairs(&d, &t, true, &limit_sets[1]);
  d.args.backward = NULL;
  check_pairs(&d, &t, false, &limit_sets[0]);
  device_drop(&d);
  free(t.forward);
  free(t.backward);
}

#else

SKIPPED_PROGRAM(NEEDS_GPU)

#endif
