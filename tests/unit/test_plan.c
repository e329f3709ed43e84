/*
 * The plan of a frame: every buffer has its bytes, aligned and inside the slab; only buffers with disjoint lifetimes
 * share memory.
 */
#include "tests/support/test.h"

#include "cpu/schedule/frame_graph.h"
#include "cpu/schedule/ordered_results.h"
#include "cpu/schedule/fused_pass.h"
#include "cpu/schedule/stage_jobs.h"
#include "pipeline/context/options.h"
#include "pipeline/context/plan.h"
#include "stages/keypoint.h"

static plan_request request_of(int32_t width, int32_t height, hs_profile profile) {
  hs_options o;
  assert_int_equal(hs_options_init(&o, profile), HS_OK);
  return (plan_request){.width = width,
                        .height = height,
                        .rules = options_pyramid_rules(&o),
                        .descriptor_bytes = o.descriptor == HS_DESCRIPTOR_F32 ? 512 : 128,
                        .threads = 4,
                        .radius_max = 16,
                        .detect_work_bytes = detect_work_bytes};
}

static bool alive_together(const plan_entry *a, const plan_entry *b) {
  return a->space == b->space && a->first_step <= b->last_step && b->first_step <= a->last_step;
}

static void check_layout(const frame_plan *p) {
  size_t end = 0;
  for (int32_t i = 0; i < p->entry_count; i++) {
    const plan_entry *a = &p->entries[i];
    assert_int_equal(a->space, SPACE_HOST);
    assert_int_equal(a->offset % PLAN_ALIGNMENT, 0);
    assert_true(a->bytes > 0 && a->bytes % PLAN_ALIGNMENT == 0);
    assert_true(a->first_step <= a->last_step);
    assert_true(a->offset + a->bytes <= p->host_bytes);
    if (a->offset + a->bytes > end) end = a->offset + a->bytes;
    for (int32_t j = 0; j < i; j++) {
      const plan_entry *b = &p->entries[j];
      const bool overlap = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
      if (overlap && alive_together(a, b))
        fail_msg("%d x %d: %s of octave %d and %s of octave %d share bytes while both are in use", p->request.width,
                 p->request.height, plan_buffer_name(a->buffer), a->octave_index, plan_buffer_name(b->buffer),
                 b->octave_index);
    }
  }
  assert_int_equal(end, p->host_bytes); /* the slab ends with its last buffer */
  assert_int_equal(p->device_bytes, 0);
}

static void check_entry(const frame_plan *p, plan_buffer buffer, int32_t octave, uint64_t least, int32_t first,
                        int32_t last) {
  const plan_entry *e = plan_find(p, buffer, octave);
  if (!e) fail_msg("no %s of octave %d", plan_buffer_name(buffer), octave);
  assert_true(e->bytes >= least && e->bytes < least + PLAN_ALIGNMENT);
  assert_int_equal(e->first_step, first);
  assert_int_equal(e->last_step, last);
}

/* Checks the levels of an octave. Levels of the first octave are in two entries, which must form one array. */
static void check_levels(const frame_plan *p, int32_t o) {
  const plan_request *r = &p->request;
  const uint64_t level = p->level_floats[o] * 4, scales = (uint64_t)r->rules.scales, top = r->detect_reads_top ? 2 : 1;
  if (o > 0) {
    /* Keypoints of all octaves are described together. */
    check_entry(p, BUFFER_LEVELS, o, level * (scales + 1 + top), STEP_PYRAMID, STEP_DESCRIBE);
    return;
  }
  check_entry(p, BUFFER_LEVELS, 0, level * (scales + 1), STEP_FIRST_PYRAMID, STEP_DESCRIBE);
  check_entry(p, BUFFER_TOP_LEVELS, 0, level * top, STEP_FIRST_PYRAMID, STEP_FIRST_DETECT);
  const plan_entry *kept = plan_find(p, BUFFER_LEVELS, 0);
  assert_int_equal(plan_find(p, BUFFER_TOP_LEVELS, 0)->offset, kept->offset + level * (scales + 1));
}

/* Checks sizes and lifetimes against an independent computation. */
static void check_sizes(const frame_plan *p) {
  const plan_request *r = &p->request;
  const int32_t scales = r->rules.scales, end = STEP_COUNT;
  uint64_t work[2] = {0, 0};
  for (int32_t o = 0; o < p->geometry.octave_count; o++) {
    const uint64_t width = (uint64_t)p->geometry.width[o], height = (uint64_t)p->geometry.height[o];
    assert_true(p->stride[o] >= width && p->stride[o] < width + 16 && p->stride[o] % 16 == 0);
    assert_true(p->level_floats[o] >= p->stride[o] * height + 64);
    uint64_t own = p->level_floats[o];
    if (r->pyramid_work_floats) {
      const uint64_t scratch = r->pyramid_work_floats((int32_t)width, (int32_t)height, r->radius_max, r->threads);
      /* if stages of several variants are mixed, the larger scratch is needed */
      own = r->pyramid_work_plane && own > scratch ? own : scratch;
      const uint64_t banded =
          r->graph_bytes ? pyramid_work_band_floats((int32_t)width, (int32_t)height, r->radius_max, r->threads) : 0;
      if (banded > own) own = banded;
    }
    if (o < p->passes) {
      const uint64_t pass = r->octave_floats + fused_pass_escaped_floats((int32_t)width, (int32_t)height);
      if (pass > own) own = pass;
    }
    if (own > work[o > 0]) work[o > 0] = own;
    check_levels(p, o);
  }
  for (int32_t others = 0; others < 2 && others < p->geometry.octave_count; others++) {
    const int32_t step = others ? STEP_PYRAMID : STEP_FIRST_PYRAMID;
    pyramid_geometry octaves = p->geometry;
    pyramid_geometry_skip(&octaves, others);
    /* Stages that run at the same time share no memory. */
    const bool graph = r->graph_bytes != NULL, pass = p->passes > others;
    check_entry(p, BUFFER_BLUR_WORK, others, work[others] * 4, step, graph || pass ? step + 1 : step);
    check_entry(p, BUFFER_DETECT, others, r->detect_work_bytes(&octaves, scales, r->keypoint_capacity),
                graph ? STEP_FIRST_PYRAMID : (pass ? step : step + 1), graph ? STEP_DETECT : step + 1);
  }
  if (r->graph_bytes && p->geometry.octave_count > 0)
    check_entry(p, BUFFER_GRAPH, 0, r->graph_bytes(p->geometry.octave_count, scales), 0, end);
  else
    assert_null(plan_find(p, BUFFER_GRAPH, 0));
  check_entry(p, BUFFER_COUNTS, 0, 16, 0, end);
  check_entry(p, BUFFER_KEYPOINTS, 0, (uint64_t)r->keypoint_capacity * 28, 0, end);
  check_entry(p, BUFFER_FEATURES, 0, (uint64_t)r->feature_capacity * 8, 0, end);
  if (r->descriptor_bytes > 0) check_entry(p, BUFFER_DESCRIPTORS, 0, r->feature_capacity * r->descriptor_bytes, 0, end);
  if (r->source_capacity > 0)
    check_entry(p, BUFFER_SOURCES, 0, r->source_capacity * 4u, 0, end);
  else
    assert_null(plan_find(p, BUFFER_SOURCES, 0));
  assert_true(r->keypoint_capacity >= r->source_capacity && r->keypoint_capacity % 32 == 0 &&
              r->feature_capacity % 32 == 0);
}

static const int32_t sides[] = {1, 2, 5, 6, 11, 17, 31, 33, 64, 100, 257, 640, 1023, 4000};
enum { SIDES = sizeof sides / sizeof sides[0] };

TEST(test_layout_for_many_sizes) {
  static frame_plan p;
  for (size_t i = 0; i < SIDES; i++)
    for (size_t j = 0; j < SIDES; j++) {
      plan_request r = request_of(sides[i], sides[j], (hs_profile)((i + j) % 4));
      r.rules.first_octave = (int32_t)((i + 2 * j) % 5) - 1;
      r.rules.scales = 1 + (int32_t)((3 * i + j) % SCALES_MAX);
      r.descriptor_bytes = (size_t)((i + j) % 3) * 256;
      r.source_capacity = (uint32_t)(i % 3 * 777);
      r.keypoint_capacity = j % 4 == 0 ? (uint32_t)i * 5 : 0;
      if (j % 2) r.pyramid_work_floats = pyramid_work_floats;
      r.pyramid_work_plane = i % 2 == 1;
      r.detect_reads_top = (i + j) % 3 == 0;
      if (i % 3 != 0) r.graph_bytes = frame_graph_bytes;
      if (i % 4 != 3) r.octave_floats = 1000 * (i + 1);
      r.octave_bytes_min = (size_t)(j + 1) << 20;
      r.skipped_octaves = i % 5 == 4 && sides[i] > 256 && sides[j] > 256;
      assert_int_equal(plan_make(&r, &p), HS_OK);
      check_layout(&p);
      check_sizes(&p);
    }
}

/* Octaves whose levels exceed the caches are made in fused passes, and then there is no work graph. */
TEST(test_passes) {
  static frame_plan p;
  plan_request r = request_of(1400, 1200, HS_PROFILE_LOWE);
  r.graph_bytes = frame_graph_bytes;
  r.octave_floats = 5000;
  r.octave_bytes_min = sizeof(float) * 2800 * 2400;
  assert_int_equal(plan_make(&r, &p), HS_OK);
  assert_true(p.passes == 3 && !p.request.graph_bytes); /* levels have 27, 7 and 2 MB */
  check_layout(&p);
  check_sizes(&p);
  r.octave_floats = 0;
  assert_int_equal(plan_make(&r, &p), HS_OK);
  assert_true(p.passes == 0 && p.request.graph_bytes);
  r.octave_floats = 5000;
  r.width--;
  assert_int_equal(plan_make(&r, &p), HS_OK);
  assert_true(p.passes == 0 && p.request.graph_bytes);
  /* Of the later octaves, those with levels of at least a megabyte are made in passes. */
  static const int32_t heights[2] = {512, 511};
  for (int i = 0; i < 2; i++) {
    r.width = 512;
    r.height = heights[i];
    r.rules.first_octave = 0;
    r.octave_bytes_min = 1;
    assert_int_equal(plan_make(&r, &p), HS_OK);
    assert_int_equal(p.passes, 1);
    r.rules.first_octave = -1;
    assert_int_equal(plan_make(&r, &p), HS_OK);
    assert_true(p.passes == 2 - i && p.geometry.octave_count > 3);
    check_layout(&p);
    check_sizes(&p);
  }
  r.height = 1200;
  r.width = 4000;
  r.skipped_octaves = 1;
  assert_int_equal(plan_make(&r, &p), HS_OK);
  assert_int_equal(p.passes, 0);
}

/* A larger picture never needs less memory. */
TEST(test_monotone) {
  static frame_plan p;
  for (int profile = 0; profile < 4; profile++) {
    size_t before = 0;
    for (int32_t side = 1; side < 700; side++) {
      const plan_request r = request_of(side, side, (hs_profile)profile);
      assert_int_equal(plan_make(&r, &p), HS_OK);
      assert_true(p.host_bytes >= before);
      before = p.host_bytes;
    }
  }
}

/* Level S+2 is not stored. The first octave's level S+1 shares memory with the later octaves, which together need five
 * thirds of a level. Scratch is shared. */
TEST(test_levels_and_little_else) {
  static frame_plan p;
  plan_request r = request_of(1500, 1100, HS_PROFILE_LOWE);
  r.descriptor_bytes = 0;
  r.pyramid_work_floats = pyramid_work_floats;
  assert_int_equal(plan_make(&r, &p), HS_OK);
  const size_t level = p.level_floats[0] * sizeof(float);
  assert_true(p.geometry.octave_count > 5 && r.rules.scales == 3);
  assert_true(p.host_bytes > 4 * level + 5 * level / 3 && p.host_bytes < 6 * level + level / 3);
}

TEST(test_capacities) {
  static frame_plan p;
  plan_request r = request_of(640, 480, HS_PROFILE_LOWE);
  assert_int_equal(plan_make(&r, &p), HS_OK);
  /* one keypoint for each 192 samples of 1280 x 960, plus 1024 */
  assert_int_equal(p.request.keypoint_capacity, 7424);
  assert_int_equal(p.request.feature_capacity, 11136);
  r.keypoint_capacity = 33;
  r.feature_capacity = 1;
  assert_int_equal(plan_make(&r, &p), HS_OK);
  assert_int_equal(p.request.keypoint_capacity, 64);
  assert_int_equal(p.request.feature_capacity, 32);
  r.source_capacity = 1000;
  assert_int_equal(plan_make(&r, &p), HS_OK);
  assert_int_equal(p.request.keypoint_capacity, 1024);
}

/* Sizes beyond the address space are refused, not wrapped. */
TEST(test_huge_sizes) {
  static frame_plan p;
  for (int profile = 0; profile < 4; profile++) {
    plan_request r = request_of(INT32_MAX, INT32_MAX, (hs_profile)profile);
    assert_int_equal(plan_make(&r, &p), HS_ERR_LIMIT);
    r = request_of(INT32_MAX / 4, INT32_MAX / 4, (hs_profile)profile);
    r.rules.scales = SCALES_MAX;
    assert_int_equal(plan_make(&r, &p), HS_ERR_LIMIT);
    r = request_of(INT32_MAX, INT32_MAX, (hs_profile)profile);
    r.rules.first_octave = 0;
    assert_int_equal(plan_make(&r, &p), HS_ERR_LIMIT);
    r = request_of(100, 100, (hs_profile)profile);
    r.descriptor_bytes = SIZE_MAX / 1024;
    assert_int_equal(plan_make(&r, &p), HS_ERR_LIMIT);
  }
}

TEST(test_names) {
  for (int b = 0; b < PLAN_BUFFER_COUNT; b++) {
    assert_string_not_equal(plan_buffer_name((plan_buffer)b), "?");
    for (int c = 0; c < b; c++)
      assert_string_not_equal(plan_buffer_name((plan_buffer)b), plan_buffer_name((plan_buffer)c));
  }
  assert_string_equal(plan_buffer_name(PLAN_BUFFER_COUNT), "?");
}
