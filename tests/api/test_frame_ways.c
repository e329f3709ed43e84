/*
 * The statistics report the path of a frame. Each path of the CPU and of a GPU is requested and must be reported. Paths
 * of a GPU are skipped without one.
 */
#include "tests/support/test.h"

#include "pipeline/context/context.h"
#include "tests/support/rows_check.h"

enum { WIDTH = 640, HEIGHT = 480, LARGE_WIDTH = 1280, LARGE_HEIGHT = 960, SMALL = 96 };

static hs_image scene;

BEFORE_TESTS() { scene = extraction_scene(WIDTH, HEIGHT, 3, NULL); }

static void check_way(const hs_context *c, hs_frame_way way) {
  const hs_statistics s = statistics_of(c);
  assert_string_equal(hs_frame_way_name(s.way), hs_frame_way_name(way));
  assert_true(s.way_reason && s.way_reason[0]);
}

static void extract(hs_context *c, const hs_image *image) {
  scoped_features f = {0};
  if (hs_extract(c, image, NULL, &f) != HS_OK) fail_msg("%s", hs_last_error(c));
}

/* Extracts a PNG in memory. Returns false if this build does not read PNG. */
static bool extract_file(hs_context *c) {
  const png_spec spec = {.colour_type = 0, .depth = 8, .width = WIDTH, .height = HEIGHT};
  image_file file = png_spec_make(&spec);
  hs_features f = {0};
  if (!file.bytes) return false;
  if (hs_extract_encoded(c, file.bytes, file.size, NULL, NULL, &f) != HS_OK) fail_msg("%s", hs_last_error(c));
  hs_features_free(&f);
  image_file_free(&file);
  return true;
}

/* Describes features of the scene as user keypoints. */
static void describe(hs_context *c) {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  scoped_features found = extraction_once(&o, &scene), described = {0};
  assert_int_equal(hs_describe(c, &scene, found.keypoints, found.count, &described, NULL), HS_OK);
  assert_int_equal(described.count, found.count);
}

TEST(test_names) {
  assert_string_equal(hs_frame_way_name(HS_WAY_NONE), "none");
  assert_string_equal(hs_frame_way_name(HS_WAY_HYBRID), "hybrid");
  assert_null(hs_frame_way_name((hs_frame_way)(HS_WAY_HYBRID + 1)));
  for (int way = 1; way <= HS_WAY_HYBRID; way++)
    assert_string_not_equal(hs_frame_way_name((hs_frame_way)way), hs_frame_way_name((hs_frame_way)(way - 1)));
}

TEST(test_cpu) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.threads = 1;
  scoped_context *c = extraction_context(&o);
  assert_int_equal(statistics_of(c).way, HS_WAY_NONE);
  assert_null(statistics_of(c).way_reason);
  extract(c, &scene);
  check_way(c, HS_WAY_CPU_STAGES);
  describe(c);
  check_way(c, HS_WAY_CPU_USER_KEYPOINTS);
  assert_int_equal(hs_submit(c, &scene, NULL), HS_OK);
  const hs_features *view;
  assert_int_equal(hs_wait_view(c, &view), HS_OK);
  check_way(c, HS_WAY_CPU_STAGES);
  hs_destroy(c);
  o.threads = 4;
  c = extraction_context(&o);
  const bool has_jobs = c->ops.jobs[STAGE_BASE] != NULL;
  extract(c, &scene);
  check_way(c, has_jobs ? HS_WAY_CPU_JOBS : HS_WAY_CPU_STAGES);
}

TEST(test_cpu_passes) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.threads = 1;
  scoped_context *c = extraction_context(&o);
  scoped_image large = extraction_scene(LARGE_WIDTH, LARGE_HEIGHT, 3, NULL);
  extract(c, &large);
  check_way(c, c->ops.octave ? HS_WAY_CPU_FUSED_PASS : HS_WAY_CPU_STAGES);
}

TEST(test_cpu_tiles) {
  hs_options o = extraction_options(HS_PROFILE_VLFEAT);
  o.threads = 2;
  o.max_memory_bytes = rows_cap(o, WIDTH, HEIGHT);
  scoped_context *c = extraction_context(&o);
  extract(c, &scene);
  check_way(c, HS_WAY_CPU_TILES);
  if (extract_file(c)) check_way(c, HS_WAY_CPU_TILE_ROWS);
}

static hs_options gpu_options(hs_profile profile) {
  hs_options o = extraction_options(profile);
  o.device = HS_DEVICE_CUDA;
  o.threads = 2;
  return o;
}

#define NEED_GPU()                                                                                                     \
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU)

TEST(test_gpu) {
  NEED_GPU();
  const hs_options o = gpu_options(HS_PROFILE_LOWE);
  scoped_context *c = extraction_context(&o);
  extract(c, &scene);
  check_way(c, HS_WAY_GPU_KERNELS);
  extract(c, &scene);
  check_way(c, HS_WAY_GPU_GRAPH);
}

TEST(test_gpu_in_flight) {
  NEED_GPU();
  hs_options o = gpu_options(HS_PROFILE_LOWE);
  o.in_flight = 1;
  const hs_features *view;
  scoped_context *c = extraction_context(&o);
  assert_int_equal(hs_submit(c, &scene, NULL), HS_OK);
  assert_int_equal(hs_wait_view(c, &view), HS_OK);
  check_way(c, HS_WAY_GPU_LISTED);
  hs_destroy(c);
  /* The first of these images is taken alone; the images that wait after it form a group. */
  enum { IMAGES = 64 };
  o.in_flight = IMAGES;
  c = extraction_context(&o);
  hs_image small = scene;
  small.stride_bytes = WIDTH;
  small.width = small.height = SMALL;
  bool grouped = false;
  for (int round = 0; round < 50 && !grouped; round++) {
    for (int i = 0; i < IMAGES; i++) assert_int_equal(hs_submit(c, &small, NULL), HS_OK);
    for (int i = 0; i < IMAGES; i++) {
      assert_int_equal(hs_wait_view(c, &view), HS_OK);
      grouped = grouped || statistics_of(c).way == HS_WAY_GPU_GROUP;
    }
  }
  assert_true(grouped);
}

TEST(test_gpu_tiles) {
  NEED_GPU();
  hs_options o = gpu_options(HS_PROFILE_VLFEAT);
  o.max_memory_bytes = rows_cap(o, WIDTH, HEIGHT);
  scoped_context *c = extraction_context(&o);
  extract(c, &scene);
  check_way(c, HS_WAY_GPU_TILES);
  if (extract_file(c)) check_way(c, HS_WAY_GPU_TILE_ROWS);
}

TEST(test_hybrid) {
  NEED_GPU();
  hs_options o = gpu_options(HS_PROFILE_LOWE);
  o.device = HS_DEVICE_HYBRID;
  o.split = 1;
  scoped_context *c = extraction_context(&o);
  extract(c, &scene);
  check_way(c, HS_WAY_HYBRID);
}
