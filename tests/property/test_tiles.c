/*
 * A frame in tiles gives the bytes of the untiled frame on the CPU, within the predicted memory.
 *
 * Covers every profile, first octaves doubled or not, tiles from the smallest up, and every option that changes a
 * frame. On the CPU and on a GPU.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/engine_tests.h"
#include "os/os_process.h"
#include "tests/support/extent.h"

enum { MIB = 1 << 20 };

/* large: for options with windows so wide that a small picture fits into one tile with its halo. A GPU needs larger
 * pictures for tiles. medium: in the short form, for windows that it divides. */
static hs_image scene, medium, large;

/* Returns a profile's options, with a different number of threads for each profile. */
static hs_options options_of(int profile) {
  static int32_t calls;
  hs_options o = engine_options((hs_profile)profile);
  o.threads = engine_is_gpu() ? 2 : 1 + calls++ % 4;
  return o;
}

/* Returns the memory of a frame and its context, on the device of the options. */
static uint64_t query(const hs_options *o, const hs_image *image) {
  uint64_t host, device;
  assert_int_equal(hs_workspace_query(o, image->width, image->height, &host, &device), HS_OK);
  if (!engine_is_gpu()) assert_int_equal(device, 0);
  return engine_is_gpu() ? device : host;
}

static uint64_t query_within(hs_options o, const hs_image *image, uint64_t most) {
  o.max_memory_bytes = most;
  return query(&o, image);
}

/* Returns the host memory of a context without a frame, which max_memory_bytes does not count. */
static uint64_t fixed_bytes(const hs_options *o) {
  scoped_context *c = extraction_context(o);
  const uint64_t bytes = statistics_of(c).workspace_bytes;
  return bytes;
}

/* Returns the memory of the untiled frame that max_memory_bytes counts. */
static uint64_t whole_bytes(const hs_options *o, const hs_image *image) {
  return query(o, image) - (engine_is_gpu() ? 0 : fixed_bytes(o));
}

/* Returns the memory of the smallest tiles. On a GPU the limit applies to the host too. */
static uint64_t least_bytes(const hs_options *o, const hs_image *image) {
  hs_options least = *o;
  uint64_t host, device;
  least.max_memory_bytes = 1;
  assert_int_equal(hs_workspace_query(&least, image->width, image->height, &host, &device), HS_OK);
  return !engine_is_gpu() ? host - fixed_bytes(o) : device > host ? device : host;
}

/* Returns a limit that makes tiles necessary: the smallest tiles, or larger ones on a GPU, where the smallest are
 * slow. */
static uint64_t tiling_bytes(const hs_options *o, const hs_image *image) {
  const uint64_t least = least_bytes(o, image), whole = whole_bytes(o, image);
  if (least >= whole)
    fail_msg("the smallest tiles take %llu bytes, the whole %llu", (unsigned long long)least,
             (unsigned long long)whole);
  return engine_is_gpu() ? least + (whole - least) / 2 : least;
}

/* Compares the statistics that do not depend on the device. */
static void check_statistics(const hs_context *a, const hs_context *b, uint64_t most) {
  const hs_statistics s = statistics_of(a), t = statistics_of(b);
  assert_int_equal(s.candidates, t.candidates);
  if (!engine_is_gpu()) assert_int_equal(s.keypoints, t.keypoints);
  assert_int_equal(s.features, t.features);
  assert_true(t.device_bytes <= most + MIB);
}

/* Compares a frame in tiles within `most` bytes with the untiled frame. Returns the number of features. */
static size_t check_within(const hs_options *untiled, const hs_image *image, const hs_image *mask, uint64_t most,
                           const char *what) {
  hs_options tiled = *untiled, on_cpu = *untiled;
  tiled.max_memory_bytes = most;
  on_cpu.device = HS_DEVICE_CPU;
  if (query(&tiled, image) >= query(untiled, image))
    fail_msg("%s: %d x %d within %llu bytes needs no tiles, %llu are enough", what, image->width, image->height,
             (unsigned long long)most, (unsigned long long)query(untiled, image));
  hs_context *a = extraction_context(&on_cpu), *b = extraction_context(&tiled);
  hs_features f = {0}, g = {0};
  assert_int_equal(hs_extract(a, image, mask, &f), HS_OK);
  const hs_status st = hs_extract(b, image, mask, &g);
  if (st != HS_OK) fail_msg("%s: %s", what, hs_last_error(b));
  extraction_check_equal(&f, &g, what);
  check_statistics(a, b, most);
  const size_t count = f.count;
  hs_features_free(&f);
  hs_features_free(&g);
  hs_destroy(a);
  hs_destroy(b);
  return count;
}

/* Checks the smallest tiles, larger ones, and tiles just below the whole picture; on a GPU, two of these three. The
 * short form leaves out the second or the third, in turn. */
static size_t check_sizes(const hs_options *o, const hs_image *image, const hs_image *mask, const char *what) {
  const uint64_t least = least_bytes(o, image), whole = whole_bytes(o, image), part = (whole - least) / 16;
  assert_true(least < whole);
  const uint64_t cpu[] = {least, least + 4 * part, whole - 2 * part}, gpu[] = {least + part, least + 8 * part};
  size_t count = 0;
  for (int i = 0; i < (engine_is_gpu() ? 2 : 3); i++) {
    if (!engine_is_gpu() && i > 0 && !extent_pairs((size_t)o->profile, (size_t)i - 1, 2)) continue;
    if (engine_is_gpu() && i == 0 && o->profile != HS_PROFILE_LOWE) continue;
    const uint64_t most = engine_is_gpu() ? gpu[i] : cpu[i];
    if (query_within(*o, image, most) < query(o, image)) count = check_within(o, image, mask, most, what);
  }
  return count;
}

ENGINE_TEST(ON_ALL, test_profiles) {
  static const char *const names[EXTRACTION_PROFILES] = {"lowe", "opencv", "vlfeat", "colmap"};
  for (int profile = 0; profile < EXTRACTION_PROFILES; profile++)
    for (int32_t first = -1; first <= 1; first++) {
      if (engine_is_gpu() ? first != profile % 2 - 1 : !extent_pairs((size_t)profile, (size_t)(first + 1), 3)) continue;
      hs_options o = options_of(profile);
      o.first_octave = first;
      if (first > 0) o.threads = 1; /* with several threads, scratch would exceed the levels, which are small */
      assert_true(check_sizes(&o, engine_is_gpu() && first == 0 ? &large : &scene, NULL, names[profile]) > 20);
    }
}

ENGINE_TEST(ON_CPU, test_odd_sizes) {
  static const int32_t sizes[][2] = {{1, 400}, {401, 3}, {37, 301}, {299, 41}, {129, 97}, {128, 96}, {65, 64}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    scoped_image part = extraction_scene(sizes[i][0], sizes[i][1], 9, NULL);
    for (int profile = 0; profile < EXTRACTION_PROFILES; profile++) {
      if (!extent_pairs(i, (size_t)profile, EXTRACTION_PROFILES)) continue;
      hs_options o = options_of(profile);
      o.contrast = 0.005f;
      o.first_octave = -(int32_t)(i % 2);
      const uint64_t least = least_bytes(&o, &part);
      if (query_within(o, &part, least) < query(&o, &part)) check_within(&o, &part, NULL, least, "odd size");
    }
  }
}

/* Tiles are extracted by the plain C stages, and by mixtures of plain and vector stages. */
ENGINE_TEST(ON_CPU, test_variants) {
  static const char *const variants[] = {"base=ref,blur=ref,halve=ref,detect=ref,orient=ref,describe=ref", "base=ref",
                                         "blur=ref", "detect=ref", "halve=ref,describe=ref"};
  scoped_image small = extraction_scene(137, 97, 3, NULL);
  for (int profile = 0; profile < EXTRACTION_PROFILES; profile += 2)
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
      for (int32_t first = -1; first <= 0; first++) {
        if (!extent_pairs(i + (size_t)profile / 2, (size_t)(first + 1), 2)) continue;
        if (!extent_pairs(i / 2, (size_t)profile / 2, 2)) continue;
        hs_options o = options_of(profile);
        const hs_expert_options expert = extraction_expert((hs_profile)profile, variants[i]);
        o.expert = &expert;
        o.contrast = 0.01f;
        o.first_octave = first;
        /* pictures with about the same number of samples in octave 0 */
        const hs_image *image = first < 0 ? &small : &scene;
        check_within(&o, image, NULL, least_bytes(&o, image), variants[i]);
      }
}

/* There are so many keypoints that lists and tiles overflow, and candidates move far. */
ENGINE_TEST(ON_ALL, test_spots) {
  for (int profile = 0; profile < EXTRACTION_PROFILES; profile++)
    for (int32_t fine = 0; fine <= 1; fine++) {
      if (engine_is_gpu() ? profile > HS_PROFILE_OPENCV || fine == profile
                          : !extent_pairs((size_t)profile, (size_t)fine, 2))
        continue;
      hs_options o = options_of(profile);
      const int32_t width = engine_is_gpu() ? 613 : extent_is_short() ? 331 : 413, height = width - 62;
      scoped_image image = extraction_spots(fine ? 8 : 16, width, height);
      o.contrast = 0.0f;
      o.edge = 1000.0f;
      o.first_octave = 0;
      if (fine) o.sigma = 0.8f;
      o.descriptor = fine ? HS_DESCRIPTOR_NONE : HS_DESCRIPTOR_U8;
      o.max_features = 0;
      /* The lists grow beyond the capacity that the query assumes. */
      const uint64_t most = engine_is_gpu() ? tiling_bytes(&o, &image) : whole_bytes(&o, &image) - 1;
      assert_true(check_within(&o, &image, NULL, most, "spots") > 100);
    }
}

/* ------------------------------------------------------------------ other options of a frame */

typedef void (*change)(hs_options *o);

static void take_strongest(hs_options *o) { o->max_features = 40; }
static void take_largest(hs_options *o) {
  o->max_features = 25;
  o->selection = HS_SELECT_SCALE;
}
static void take_levels(hs_options *o) {
  o->max_features = 25;
  o->selection = HS_SELECT_LEVELS;
}
static void take_grid(hs_options *o) {
  o->max_features = 60;
  o->grid_columns = 5;
  o->grid_rows = 4;
}
static void take_region(hs_options *o) {
  o->region_x = 31;
  o->region_y = 17;
  o->region_width = 140;
  o->region_height = 90;
}
static void equalize(hs_options *o) { o->equalize = 1; }
static void pool(hs_options *o) { o->dsp = 1; }
static void pool_widely(hs_options *o) {
  o->dsp = 1;
  o->dsp_sizes = 7;
  o->dsp_smallest = 0.125f;
  o->dsp_largest = 4.0f;
}
static void pool_few_scales(hs_options *o) {
  pool_widely(o);
  o->scales = 1;
}
static void floats(hs_options *o) { o->descriptor = HS_DESCRIPTOR_F32; }
static void no_descriptors(hs_options *o) { o->descriptor = HS_DESCRIPTOR_NONE; }
static void root_upright(hs_options *o) {
  o->upright = 1;
  o->norm = HS_NORM_ROOT;
}
static void few_octaves(hs_options *o) { o->octaves = 2; }
static void one_octave(hs_options *o) {
  o->octaves = 1;
  o->first_octave = -1;
}
static void wide_filters(hs_options *o) {
  o->sigma = 4.0f;
  o->scales = 2;
}
static void two_scales(hs_options *o) { o->scales = 2; }
static void split(hs_options *o) {
  o->device = HS_DEVICE_HYBRID;
  o->split = 2;
}

ENGINE_TEST(ON_ALL, test_changes) {
  enum { PLAIN = 0, LARGE = 1, CPU_ONLY = 2, GPU_ONLY = 4 };
  static const struct {
    change make;
    const char *what;
    int kind;
  } changes[] = {{take_strongest, "strongest", PLAIN},
                 {take_largest, "largest", CPU_ONLY},
                 {take_levels, "levels", PLAIN},
                 {take_grid, "grid", PLAIN},
                 {take_region, "region", PLAIN},
                 {equalize, "equalize", PLAIN},
                 {pool, "dsp", LARGE | CPU_ONLY},
                 {pool_widely, "dsp, widely", LARGE},
                 {pool_few_scales, "dsp, one scale", LARGE | CPU_ONLY},
                 {floats, "floats", PLAIN},
                 {no_descriptors, "no descriptors", PLAIN},
                 {root_upright, "root, upright", PLAIN},
                 {few_octaves, "two octaves", PLAIN},
                 {one_octave, "one octave", CPU_ONLY},
                 {wide_filters, "sigma 4", CPU_ONLY},
                 {two_scales, "two scales", GPU_ONLY},
                 {split, "split with the CPU", GPU_ONLY}};
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
    for (int profile = 0; profile < EXTRACTION_PROFILES; profile++) {
      const bool is_large = changes[i].kind & LARGE;
      if (changes[i].kind & (engine_is_gpu() ? CPU_ONLY : GPU_ONLY)) continue;
      if (engine_is_gpu() ? profile != (is_large ? HS_PROFILE_LOWE : (int)i % EXTRACTION_PROFILES) : profile % 3 > 0)
        continue;
      if (!engine_is_gpu() && !extent_pairs(i / 2, (size_t)profile / 3, 2)) continue;
      hs_options o = options_of(profile);
      o.contrast = is_large && (engine_is_gpu() || extent_is_short()) ? 0.02f : 0.01f;
      o.first_octave = is_large || engine_is_gpu() ? -1 : (int32_t)(i % 2) - 1;
      changes[i].make(&o);
      const bool is_medium = extent_is_short() && !engine_is_gpu() && changes[i].make != pool_few_scales;
      const hs_image *image = !is_large ? &scene : is_medium ? &medium : &large;
      const uint64_t most = is_large && !engine_is_gpu() ? whole_bytes(&o, image) - 1 : tiling_bytes(&o, image);
      assert_true(check_within(&o, image, NULL, most, changes[i].what) > 0);
    }
}

ENGINE_TEST(ON_ALL, test_mask) {
  SCOPED_MEMORY uint8_t *bytes = malloc((size_t)scene.width * (size_t)scene.height);
  assert_non_null(bytes);
  for (int32_t y = 0; y < scene.height; y++)
    for (int32_t x = 0; x < scene.width; x++) bytes[y * scene.width + x] = (x / 23 + y / 17) % 3 != 0;
  const hs_image mask = {.data = bytes, .width = scene.width, .height = scene.height};
  for (int profile = 0; profile < (engine_is_gpu() ? 1 : EXTRACTION_PROFILES); profile++) {
    hs_options o = options_of(profile);
    assert_true(check_within(&o, &scene, &mask, tiling_bytes(&o, &scene), "mask") > 20);
  }
}

/* Covers float samples, colour with unaligned rows, and decimated pictures. */
ENGINE_TEST(ON_ALL, test_other_samples) {
  scoped_image values = extraction_as_floats(&scene), wide = {0};
  if (engine_is_gpu()) wide = extraction_scene(1801, 1403, 5, NULL);
  hs_options o = options_of(HS_PROFILE_LOWE);
  assert_true(check_within(&o, &values, NULL, tiling_bytes(&o, &values), "floats") > 20);
  o.first_octave = 0;
  const hs_image *from = engine_is_gpu() ? &wide : &scene;
  const hs_image colour = {.data = from->data,
                           .width = from->width / 3 - 1,
                           .height = from->height,
                           .stride_bytes = (size_t)from->width,
                           .layout = HS_RGB};
  (void)check_within(&o, &colour, NULL, tiling_bytes(&o, &colour), "colour");
  o.first_octave = 1;
  if (engine_is_gpu()) assert_true(check_within(&o, &wide, NULL, tiling_bytes(&o, &wide), "thinned") > 100);
}

/* The other calls that extract a frame work in tiles. A small picture among them needs no tiles. */
ENGINE_TEST(ON_ALL, test_calls) {
  hs_options o = options_of(HS_PROFILE_LOWE);
  scoped_image small = extraction_scene(90, 70, 1, NULL);
  scoped_features expected = engine_expected(&o, &scene, NULL), few = engine_expected(&o, &small, NULL), got = {0};
  o.max_memory_bytes = tiling_bytes(&o, &scene);
  scoped_context *c = extraction_context(&o);
  for (int i = 0; i < 5; i++) assert_int_equal(hs_submit(c, i % 2 ? &small : &scene, NULL), HS_OK);
  for (int i = 0; i < 5; i++) {
    assert_int_equal(hs_wait(c, &got), HS_OK);
    extraction_check_equal(i % 2 ? &few : &expected, &got, "in flight");
  }
  for (int i = 0; i < 3; i++) {
    const hs_features *view;
    assert_int_equal(hs_extract_view(c, i == 1 ? &small : &scene, NULL, &view), HS_OK);
    extraction_check_equal(i == 1 ? &few : &expected, view, "view");
  }
  assert_int_equal(hs_detect(c, &scene, NULL, &got), HS_OK);
  assert_int_equal(got.count, expected.count);
  assert_memory_equal(got.keypoints, expected.keypoints, expected.count * sizeof *got.keypoints);
  /* User keypoints are not described in tiles. */
  assert_int_equal(hs_describe(c, &scene, expected.keypoints, expected.count, &got, NULL), HS_ERR_LIMIT);
}

static int32_t stop_later(void *user, uint64_t done, uint64_t total) {
  uint64_t *last = user;
  assert_true(done <= total && done >= *last);
  *last = done;
  return 2 * done > total;
}

ENGINE_TEST(ON_CPU, test_progress) {
  hs_options o = options_of(HS_PROFILE_LOWE);
  scoped_features expected = extraction_once(&o, &scene), got = {0};
  o.max_memory_bytes = least_bytes(&o, &scene);
  scoped_context *c = extraction_context(&o);
  uint64_t last = 0;
  assert_int_equal(hs_set_progress(c, stop_later, &last), HS_OK);
  assert_int_equal(hs_extract(c, &scene, NULL, &got), HS_ERR_CANCELLED);
  assert_true(last > 0);
  assert_int_equal(hs_set_progress(c, NULL, NULL), HS_OK);
  assert_int_equal(hs_extract(c, &scene, NULL, &got), HS_OK);
  extraction_check_equal(&expected, &got, "after the end that was asked for");
}

/* ------------------------------------------------------------------ memory */

/* Counts allocated bytes and their peak. */
typedef struct memory_meter {
  size_t now, most;
} memory_meter;

enum { HEAD_BYTES = 64 };

static void *metered_alloc(size_t bytes, void *user) {
  memory_meter *m = user;
  unsigned char *p = os_memory_alloc(bytes + HEAD_BYTES, HEAD_BYTES, false);
  if (!p) return NULL;
  memcpy(p, &bytes, sizeof bytes);
  m->now += bytes;
  if (m->now > m->most) m->most = m->now;
  return p + HEAD_BYTES;
}

static void metered_release(void *pointer, void *user) {
  memory_meter *m = user;
  size_t bytes;
  if (!pointer) return;
  unsigned char *p = (unsigned char *)pointer - HEAD_BYTES;
  memcpy(&bytes, p, sizeof bytes);
  m->now -= bytes;
  os_memory_free(p);
}

/* The queried bytes, without the context itself, are within the limit and equal the held memory. */
ENGINE_TEST(ON_CPU, test_memory) {
  hs_options o = options_of(HS_PROFILE_LOWE);
  o.contrast = 0.05f; /* gives so few features that the lists keep their initial size */
  const uint64_t whole = whole_bytes(&o, &scene), least = least_bytes(&o, &scene);
  uint64_t before = 0;
  for (uint64_t most = least; most < whole; most += (whole - least) / (extent_is_short() ? 3 : 9)) {
    memory_meter meter = {0};
    const hs_allocator allocator = {metered_alloc, metered_release, &meter};
    hs_options within = o;
    within.max_memory_bytes = most;
    within.allocator = &allocator;
    const uint64_t promised = query(&within, &scene);
    hs_context *c = extraction_context(&within);
    const size_t fixed = meter.now;
    hs_features f = extraction_run(c, &scene);
    const size_t results = f.capacity * (sizeof *f.keypoints + extraction_descriptor_bytes(&f));
    hs_statistics s = statistics_of(c);
    assert_int_equal(s.regrown_frames, 0);
    assert_int_equal(s.workspace_bytes, promised);
    assert_true(promised >= before && promised - fixed <= most);
    assert_int_equal(meter.now, promised + results);
    assert_int_equal(meter.most, promised + results);
    before = promised;
    hs_features_free(&f);
    hs_destroy(c);
    assert_int_equal(meter.now, 0);
  }
}

/* The queried bytes on the device and on the host, without the context itself, are within the limit and equal the held
 * memory. */
ENGINE_TEST(ON_GPU, test_device_memory) {
  hs_options o = options_of(HS_PROFILE_LOWE);
  o.contrast = 0.05f; /* gives so few features that the lists keep their initial size */
  const uint64_t least = least_bytes(&o, &scene), whole = whole_bytes(&o, &scene);
  for (int i = 1; i < 3; i++) {
    uint64_t host, device;
    scoped_features f = {0};
    o.max_memory_bytes = least + (whole - least) * (uint64_t)i / 3;
    scoped_context *c = extraction_context(&o);
    assert_int_equal(hs_workspace_query(&o, scene.width, scene.height, &host, &device), HS_OK);
    assert_true(device < whole && device <= o.max_memory_bytes + MIB && host <= o.max_memory_bytes + MIB);
    for (int frame = 0; frame < 2; frame++) {
      assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
      assert_int_equal(statistics_of(c).device_bytes, device);
      assert_int_equal(statistics_of(c).workspace_bytes, host);
    }
    assert_int_equal(statistics_of(c).regrown_frames, 0);
  }
  o.max_memory_bytes = MIB;
  scoped_context *c = extraction_context(&o);
  hs_features f = {0};
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_ERR_LIMIT);
  assert_non_null(strstr(hs_last_error(c), "even in the smallest tiles"));
}

/* If even the smallest tiles do not fit, the message gives a sufficient limit. */
ENGINE_TEST(ON_CPU, test_too_little) {
  hs_options o = options_of(HS_PROFILE_LOWE);
  o.max_memory_bytes = 100000;
  scoped_context *c = extraction_context(&o);
  hs_features f = {0};
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_ERR_LIMIT);
  const char *needs = strstr(hs_last_error(c), "at least ");
  assert_non_null(needs);
  assert_non_null(strstr(needs, "even in the smallest tiles"));
  o.max_memory_bytes = strtoull(needs + strlen("at least "), NULL, 10);
  hs_destroy(c);
  c = extraction_context(&o);
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
  hs_features_free(&f);
  hs_destroy(c);
  o.max_memory_bytes--;
  c = extraction_context(&o);
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_ERR_LIMIT);
}

/* A limit that suffices for a new context also suffices for a context whose lists an earlier frame enlarged. */
ENGINE_TEST(ON_CPU, test_after_long_lists) {
  hs_options o = options_of(HS_PROFILE_LOWE);
  const bool is_short = extent_is_short();
  scoped_image dense = is_short ? extraction_spots(16, 331, 269) : extraction_spots(16, 413, 351);
  scoped_image wide = is_short ? extraction_scene(520, 420, 3, NULL) : extraction_scene(700, 600, 3, NULL);
  scoped_features f = {0};
  scoped_context *c = NULL;
  o.contrast = 0.0f;
  o.edge = 1000.0f;
  o.first_octave = 0;
  o.max_memory_bytes = 1000000;
  for (;;) {
    c = extraction_context(&o);
    const hs_status st = hs_extract(c, &dense, NULL, &f);
    if (st == HS_OK) break;
    const char *needs = strstr(hs_last_error(c), "at least ");
    assert_int_equal(st, HS_ERR_LIMIT);
    assert_non_null(needs);
    o.max_memory_bytes = strtoull(needs + strlen("at least "), NULL, 10);
    hs_destroy(c);
  }
  scoped_features expected = extraction_once(&o, &wide);
  hs_statistics s = statistics_of(c);
  assert_true(s.regrown_frames > 0);
  assert_int_equal(hs_extract(c, &wide, NULL, &f), HS_OK);
  extraction_check_equal(&expected, &f, "after long lists");
}

BEFORE_TESTS() {
  scene = engine_is_gpu() ? extraction_scene(437, 353, 7, NULL) : extraction_scene(263, 187, 7, NULL);
  medium = extraction_scene(560, 400, 4, NULL);
  large = extraction_scene(811, 587, 4, NULL);
}
