/*
 * Memory: every allocation may fail, nothing leaks, contexts stay usable; frames of a known size allocate nothing; the
 * size query equals the memory that a context holds.
 */
#include "tests/support/test.h"

#include "pipeline/context/context.h"

/* An allocator that sums the allocated bytes. */
typedef struct byte_counter {
  size_t now, most, calls;
} byte_counter;

enum { HEAD_BYTES = 64 };

static void *counted_bytes_alloc(size_t bytes, void *user) {
  byte_counter *c = user;
  void *block = NULL;
  if (posix_memalign(&block, 64, bytes + HEAD_BYTES) != 0) return NULL;
  memcpy(block, &bytes, sizeof bytes);
  c->now += bytes;
  c->calls++;
  if (c->now > c->most) c->most = c->now;
  return (unsigned char *)block + HEAD_BYTES;
}

static void counted_bytes_release(void *pointer, void *user) {
  byte_counter *c = user;
  size_t bytes;
  if (!pointer) return;
  SCOPED_MEMORY void *block = (unsigned char *)pointer - HEAD_BYTES;
  memcpy(&bytes, block, sizeof bytes);
  c->now -= bytes;
}

static hs_allocator counting_bytes(byte_counter *c) {
  return (hs_allocator){counted_bytes_alloc, counted_bytes_release, c};
}

/* ------------------------------------------------------------------ failing allocations */

/* A unit of work that allocates. If it fails, it must have released everything. */
typedef hs_status (*failing_work)(hs_allocator *allocator);

/* Runs the work with the 1st, 2nd, ... allocation failing until no allocation fails. Returns the number of
 * allocations. */
static size_t fail_each(failing_work work) {
  for (size_t n = 1;; n++) {
    counted_allocator counter = {.fail_at = n, .fill = 0xa5};
    hs_allocator allocator = counted_allocator_make(&counter);
    const hs_status st = work(&allocator);
    assert_int_equal(counter.alive, 0);
    if (st == HS_OK) {
      assert_true(counter.made < n);
      return counter.made;
    }
    assert_int_equal(st, HS_ERR_MEMORY);
    assert_true(n < 200);
  }
}

static hs_status create_and_end(hs_allocator *allocator) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  scoped_context *c = (hs_context *)(void *)&o;
  char message[256];
  o.allocator = allocator;
  const hs_status st = hs_create_explained(&c, &o, message, sizeof message);
  if (st != HS_OK) {
    assert_null(c);
    assert_non_null(strstr(message, "memory"));
  }
  return st;
}

TEST(test_create) { assert_int_equal(fail_each(create_and_end), 2); /* allocations: the context and its pool */ }

/* Picture and features made with the C library's allocator, for comparison. */
static hs_image scene;
static hs_features expected;

/* After a failure, the same context extracts the right bytes. */
static hs_status extract_and_end(hs_allocator *allocator) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  hs_context *c = NULL;
  hs_features f = {0};
  o.allocator = allocator;
  hs_status st = hs_create(&c, &o);
  if (st != HS_OK) return st;
  st = hs_extract(c, &scene, NULL, &f);
  if (st != HS_OK) {
    assert_true(f.count == 0 && !f.keypoints && !f.descriptors);
    assert_non_null(strstr(hs_last_error_location(c), "HS_ERR_MEMORY at "));
    assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
  }
  assert_string_equal(hs_last_error(c), "");
  extraction_check_equal(&expected, &f, "after a failed allocation");
  hs_destroy(c);
  hs_features_free(&f); /* features outlive the context */
  return st;
}

TEST(test_extract) { assert_int_equal(fail_each(extract_and_end), 5); }

static hs_status describe_and_end(hs_allocator *allocator) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  hs_context *c = NULL;
  hs_features f = {0};
  o.allocator = allocator;
  hs_status st = hs_create(&c, &o);
  if (st != HS_OK) return st;
  st = hs_describe(c, &scene, expected.keypoints, expected.count, &f, NULL);
  if (st != HS_OK) assert_int_equal(hs_describe(c, &scene, expected.keypoints, expected.count, &f, NULL), HS_OK);
  extraction_check_equal(&expected, &f, "described after a failed allocation");
  hs_features_free(&f);
  hs_destroy(c);
  return st;
}

TEST(test_describe) {
  assert_int_equal(fail_each(describe_and_end), 7); /* allocations of the frame, and two lists of the call */
}

static hs_status patches_and_end(hs_allocator *allocator) {
  enum { PATCHES = 3, SIDE = 32 };
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  hs_context *c = NULL;
  hs_keypoint k[PATCHES];
  uint8_t patches[PATCHES * SIDE * SIDE], again[sizeof patches];
  memcpy(k, expected.keypoints, sizeof k);
  k[1].sigma = 9.0f; /* sigma of a level that the pyramid must make */
  o.allocator = allocator;
  hs_status st = hs_create(&c, &o);
  if (st != HS_OK) return st;
  st = hs_extract_patches(c, &scene, k, NULL, PATCHES, NULL, patches, NULL);
  if (st != HS_OK) assert_int_equal(hs_extract_patches(c, &scene, k, NULL, PATCHES, NULL, patches, NULL), HS_OK);
  assert_int_equal(hs_extract_patches(c, &scene, k, NULL, PATCHES, NULL, again, NULL), HS_OK);
  assert_memory_equal(patches, again, sizeof patches);
  hs_destroy(c);
  return st;
}

TEST(test_patches) {
  assert_int_equal(fail_each(patches_and_end), 5); /* allocations: positions, levels and the gray picture */
}

static hs_status view_and_end(hs_allocator *allocator) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  hs_context *c = NULL;
  const hs_features *f;
  o.allocator = allocator;
  hs_status st = hs_create(&c, &o);
  if (st != HS_OK) return st;
  st = hs_extract_view(c, &scene, NULL, &f);
  if (st != HS_OK)
    assert_null(f);
  else
    extraction_check_equal(&expected, f, "view");
  hs_destroy(c);
  return st;
}

TEST(test_view) { (void)fail_each(view_and_end); }

/* The frame is repeated because its lists overflow, so the second slab may fail too. */
static hs_status regrow_and_end(hs_allocator *allocator) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  hs_context *c = NULL;
  hs_features f = {0};
  o.allocator = allocator;
  hs_status st = hs_create(&c, &o);
  if (st != HS_OK) return st;
  c->keypoint_capacity = c->feature_capacity = 1;
  st = hs_extract(c, &scene, NULL, &f);
  if (st != HS_OK) assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
  extraction_check_equal(&expected, &f, "after a failed repetition");
  hs_features_free(&f);
  hs_destroy(c);
  return st;
}

TEST(test_regrown_frame) { assert_true(fail_each(regrow_and_end) >= 6); }

static hs_status render_and_free(hs_allocator *allocator) {
  hs_image image;
  const hs_status st = hs_render_scene(40, 30, 3, NULL, allocator, &image);
  if (st == HS_OK) hs_image_free(&image);
  return st;
}

static hs_status load_scene_and_free(hs_allocator *allocator) {
  hs_image image = {0};
  char message[256];
  const hs_load_options o = {
      .struct_size = sizeof o, .allocator = allocator, .message = message, .message_bytes = sizeof message};
  const hs_status st = hs_load_image("@scene:40x30:3", &o, &image);
  if (st == HS_OK) hs_image_free(&image);
  return st;
}

TEST(test_render_and_load) {
  (void)fail_each(render_and_free);
  (void)fail_each(load_scene_and_free);
}

/* ------------------------------------------------------------------ frames without allocations */

TEST(test_known_size_allocates_nothing) {
  for (int profile = 0; profile < EXTRACTION_PROFILES; profile++) {
    byte_counter bytes = {0};
    const hs_allocator allocator = counting_bytes(&bytes);
    hs_options o = extraction_options((hs_profile)profile);
    o.allocator = &allocator;
    hs_context *c = extraction_context(&o);
    hs_features f = extraction_run(c, &scene), g = {0};
    const size_t calls = bytes.calls;
    for (int i = 0; i < 3; i++) assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
    hs_image part = scene; /* a smaller picture fits into the memory of the larger one */
    part.width -= 30;
    part.height -= 21;
    assert_int_equal(hs_extract(c, &part, NULL, &f), HS_OK);
    assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
    assert_int_equal(bytes.calls, calls);
    hs_keypoint keypoints[4];
    size_t count;
    assert_int_equal(hs_extract_into(c, &scene, NULL, keypoints, NULL, 4, &count), HS_ERR_CAPACITY);
    assert_int_equal(bytes.calls, calls);
    assert_int_equal(hs_detect(c, &scene, NULL, &g), HS_OK);
    assert_int_equal(bytes.calls, calls + 1); /* one allocation: hs_detect returns keypoints without descriptors */
    hs_features_free(&f);
    hs_features_free(&g);
    hs_destroy(c);
    assert_int_equal(bytes.now, 0);
  }
}

/* ------------------------------------------------------------------ sizes */

/* The query equals the bytes that the context holds without results. */
TEST(test_query_is_what_is_held) {
  for (int profile = 0; profile < EXTRACTION_PROFILES; profile++) {
    byte_counter bytes = {0};
    const hs_allocator allocator = counting_bytes(&bytes);
    hs_options o = extraction_options((hs_profile)profile);
    o.allocator = &allocator;
    o.contrast = 0.05f; /* gives so few features that the lists keep their initial size */
    o.threads = 1 + profile;
    uint64_t host, device;
    assert_int_equal(hs_workspace_query(&o, scene.width, scene.height, &host, &device), HS_OK);
    assert_int_equal(bytes.calls, 0);
    assert_int_equal(device, 0);
    hs_context *c = extraction_context(&o);
    const hs_features *view;
    assert_int_equal(hs_extract_view(c, &scene, NULL, &view), HS_OK);
    const size_t results = view->count * (sizeof(hs_keypoint) + extraction_descriptor_bytes(view));
    hs_statistics s = statistics_of(c);
    assert_int_equal(s.regrown_frames, 0);
    assert_int_equal(bytes.now, host + results);
    assert_int_equal(s.workspace_bytes, host);
    hs_destroy(c);
    assert_int_equal(bytes.now, 0);
  }
}

TEST(test_query_arguments) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  uint64_t host = 7, device = 7, larger;
  assert_int_equal(hs_workspace_query(NULL, 10, 10, &host, &device), HS_ERR_ARGUMENT);
  assert_int_equal(hs_workspace_query(&o, 0, 10, &host, &device), HS_ERR_ARGUMENT);
  assert_int_equal(hs_workspace_query(&o, 10, -1, &host, &device), HS_ERR_ARGUMENT);
  assert_int_equal(hs_workspace_query(&o, 10, 10, NULL, &device), HS_ERR_ARGUMENT);
  assert_int_equal(hs_workspace_query(&o, 10, 10, &host, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_workspace_query(&o, INT32_MAX, INT32_MAX, &host, &device), HS_ERR_LIMIT);
  assert_int_equal(hs_workspace_query_rows(NULL, 10, 10, HS_U8, &host, &device), HS_ERR_ARGUMENT);
  assert_int_equal(hs_workspace_query_rows(&o, 10, 10, HS_F32, &host, &device), HS_ERR_ARGUMENT);
  assert_int_equal(hs_workspace_query_rows(&o, INT32_MAX, INT32_MAX, HS_U16, &host, &device), HS_ERR_LIMIT);
  assert_true(host == 7 && device == 7);
  assert_int_equal(hs_workspace_query(&o, 100, 100, &host, &device), HS_OK);
  assert_int_equal(hs_workspace_query(&o, 400, 400, &larger, &device), HS_OK);
  assert_true(larger > host);
}

/* ------------------------------------------------------------------ feature files */

static const char *file_path;

static hs_status save_and_load(hs_allocator *allocator) {
  scoped_features f = {0};
  const hs_file_options o = {.struct_size = sizeof o, .allocator = allocator};
  hs_status st = hs_save_features(file_path, &expected, &o);
  if (st == HS_OK) st = hs_load_features(file_path, &f, &o);
  if (st == HS_OK)
    assert_int_equal(f.count, expected.count);
  else
    assert_null(f.keypoints);
  return st;
}

TEST(test_save_and_load) {
  const char *endings[] = {".txt", ".npz", ".csv", ".json", ".key", ".sift", ".yml", ".feat", ".hsf"};
  static scratch_folder folder;
  static char path[SCRATCH_PATH_BYTES];
  scratch_folder_make(&folder);
  for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
    char name[32];
    snprintf(name, sizeof name, "f%s", endings[i]);
    file_path = scratch_folder_path(&folder, name, path);
    (void)fail_each(save_and_load);
  }
  scratch_folder_remove(&folder);
}

BEFORE_TESTS() {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  scene = extraction_scene(121, 90, 4, NULL);
  expected = extraction_once(&o, &scene);
  assert_true(expected.count > 20);
}
