/* Crops of tiles, and the slab of a tiled frame on a device. */
#include "pipeline/device/cuda_state.h"

#include <string.h>

#include "cuda/pyramid/pyramid_cuda.h"
#include "pipeline/base/memory.h"
#include "pipeline/device/cuda_engine.h"
#include "stages/affine.h"
#include "stages/detect.h"
#include "stages/refine.h"

/* Crops begin at the alignment of planes. They begin and end on even samples of every octave that a tile has. */
enum { CROP_COLUMNS = PLANE_ALIGNMENT_FLOATS, CROP_ROWS = 16, PICTURE_ALIGNMENT = 128 };
_Static_assert(CROP_ROWS % (2 << (TILE_OCTAVES_MAX - 1)) == 0, "coarser octaves begin on whole samples");

/* Returns how many samples around a tile's level 0 the first octave's base needs: the filter's radius, and one pixel
   for the doubling. */
static int32_t base_halo(const plan_request *r, int32_t octave) { return octave == 0 ? r->base_filter->radius + 2 : 0; }

static int32_t align_down(int32_t n, int32_t to) { return n / to * to; }

/* Rounds n up to a multiple of `to`, or to `end` if that is less than `to` away. */
static int32_t align_within(int32_t n, int32_t to, int32_t end) {
  return n >= end || end - n < to ? end : (n + to - 1) / to * to;
}

plane_region cuda_tile_crop(const plan_request *r, const pyramid_geometry *g, int32_t octave,
                            const plane_region *core) {
  const tile_halos m = tile_halos_of(r, g->octave_count - octave);
  const int32_t halo = m.other[0][0] + base_halo(r, octave);
  const plane_region c = {core->x0 - halo, core->y0 - halo, core->x1 + halo, core->y1 + halo};
  return (plane_region){c.x0 > 0 ? align_down(c.x0, CROP_COLUMNS) : 0, c.y0 > 0 ? align_down(c.y0, CROP_ROWS) : 0,
                        align_within(c.x1, CROP_ROWS, g->width[octave]),
                        align_within(c.y1, CROP_ROWS, g->height[octave])};
}

plane_region cuda_tile_pixels(const plan_request *r, const pyramid_geometry *g, const plane_region *crop) {
  const int32_t first = g->first_octave;
  if (first < 0) return (plane_region){crop->x0 / 2, crop->y0 / 2, crop->x1 / 2, crop->y1 / 2};
  return (plane_region){crop->x0 << first, crop->y0 << first, crop->x1 == g->width[0] ? r->width : crop->x1 << first,
                        crop->y1 == g->height[0] ? r->height : crop->y1 << first};
}

void cuda_tile_rows(const plan_request *r, const pyramid_geometry *g, const plane_region *core, int32_t *y0,
                    int32_t *y1) {
  const bool from_top = core->y0 < REFINE_STEPS, to_end = g->height[0] - core->y1 < REFINE_STEPS;
  const plane_region about = {core->x0, from_top ? 0 : core->y0 - REFINE_STEPS, core->x1,
                              to_end ? g->height[0] : core->y1 + REFINE_STEPS};
  const plane_region crop = cuda_tile_crop(r, g, 0, &about), pixels = cuda_tile_pixels(r, g, &crop);
  *y0 = pixels.y0;
  *y1 = pixels.y1;
}

bool cuda_tile_band_bytes(const frame_plan *plan, size_t row_bytes, size_t *bytes) {
  const plan_request *r = &plan->request;
  const pyramid_geometry *g = &plan->geometry;
  const int32_t halo = tile_halos_of(r, g->octave_count).other[0][0] + base_halo(r, 0) + REFINE_STEPS;
  const size_t samples = (size_t)plan->tile_side + 2 * ((size_t)halo + CROP_ROWS), all = (size_t)r->height;
  const size_t rows = g->first_octave < 0 ? samples / 2 + 1 : (samples + 1) << g->first_octave;
  return hs_size_mul(rows < all ? rows : all, row_bytes, bytes);
}

static int32_t most(int32_t a, int32_t b) { return a > b ? a : b; }

/* Finds the sides of the largest crop. */
static void crop_sides(const frame_plan *plan, int32_t *width, int32_t *height) {
  const pyramid_geometry *g = &plan->geometry;
  *width = *height = 0;
  for (int32_t o = 0; o < g->octave_count; o++) {
    const tile_halos m = tile_halos_of(&plan->request, g->octave_count - o);
    const int32_t about = plan->tile_side + 2 * (m.other[0][0] + base_halo(&plan->request, o)) + CROP_ROWS;
    const int32_t columns = about + CROP_COLUMNS, rows = about + CROP_ROWS;
    *width = most(*width, columns < g->width[o] ? columns : g->width[o]);
    *height = most(*height, rows < g->height[o] ? rows : g->height[o]);
  }
}

static bool add(frame_plan *plan, plan_buffer buffer, int32_t octave, size_t count, size_t item) {
  const plan_entry e = {
      .buffer = buffer, .space = SPACE_DEVICE, .octave_index = octave, .first_step = 0, .last_step = STEP_COUNT};
  return plan_add(plan, e, count, item);
}

/* Adds the levels of a crop and of the coarser octaves over which descriptors are pooled. */
static bool add_levels(frame_plan *plan, const cuda_tile_needs *needs, int32_t width, int32_t height) {
  const plan_request *r = &plan->request;
  const int32_t octaves = tile_halos_of(r, plan->geometry.octave_count).octaves;
  bool ok = true;
  for (int32_t i = 0; i < octaves && ok; i++) {
    const size_t columns = ((size_t)width >> i) + 1, rows = ((size_t)height >> i) + 1;
    plan->stride[i] = PLANE_ROUND_UP(columns, PLANE_STRIDE_FLOATS);
    plan->level_floats[i] = PLANE_ROUND_UP(plan->stride[i] * rows + PLANE_SLACK_FLOATS, PLANE_ALIGNMENT_FLOATS);
    ok = add(plan, BUFFER_LEVELS, i, (size_t)r->rules.scales + 3, plan->level_floats[i] * sizeof(float)) &&
         add(plan, BUFFER_BLUR_WORK, i, needs->blur_work ? 1 : 0, plan->level_floats[i] * sizeof(float));
  }
  return ok;
}

size_t cuda_tile_base_stride(const frame_plan *plan, int32_t octave) {
  return PLANE_ROUND_UP((size_t)plan->geometry.width[octave], PLANE_STRIDE_FLOATS);
}

/* Adds level 0 of the octaves after the first. Two are in memory at a time: the present octave's and the next one's. */
static bool add_bases(frame_plan *plan) {
  const pyramid_geometry *g = &plan->geometry;
  bool ok = true;
  for (int32_t o = 1; o < g->octave_count && o <= 2 && ok; o++) {
    size_t floats;
    ok = hs_size_mul(cuda_tile_base_stride(plan, o), (size_t)g->height[o], &floats) &&
         add(plan, BUFFER_BASE, o & 1, floats, sizeof(float));
  }
  return ok;
}

/* Decides the capacities of a tile's lists: one keypoint per 64 samples. A tile with more is divided. */
static void decide_capacities(frame_plan *plan) {
  const pyramid_geometry *g = &plan->geometry;
  const int32_t side = plan->tile_side + 2 * TILE_HALO;
  const int64_t width = side < g->width[0] ? side : g->width[0], height = side < g->height[0] ? side : g->height[0];
  plan->tile_keypoints = (uint32_t)((width * height / 64 + 128 + 31) & ~(int64_t)31);
  plan->request.keypoint_capacity = plan->tile_keypoints;
  plan->request.feature_capacity = (plan->tile_keypoints + plan->tile_keypoints / 2 + 31u) & ~31u;
}

static bool add_keypoints(frame_plan *plan, const cuda_tile_needs *needs, int32_t width, int32_t height) {
  const plan_request *r = &plan->request;
  const size_t words = (size_t)mask_words_per_row(width) * (size_t)height * (size_t)r->rules.scales + 3;
  const uint32_t keypoints = r->keypoint_capacity, features = r->feature_capacity;
  if (words > UINT32_MAX - 64) return false;
  return add(plan, BUFFER_COUNTS, 0, 1, DEVICE_COUNTS_BYTES) &&
         add(plan, BUFFER_KEYPOINTS, 0, keypoints, KEYPOINT_BYTES) &&
         add(plan, BUFFER_SHAPES, 0, r->affine ? keypoints : 0, sizeof(affine_shape)) &&
         add(plan, BUFFER_FEATURES, 0, features, FEATURE_BYTES) &&
         add(plan, BUFFER_SCRATCH, 0, 1, needs->scratch_bytes((uint32_t)words, keypoints, features)) &&
         add(plan, BUFFER_ESCAPED, 0, TILE_DEVICE_ESCAPED, TILE_ESCAPED_BYTES) &&
         add(plan, BUFFER_CANDIDATES, 0, words, sizeof(uint32_t)) &&
         add(plan, BUFFER_SETTLED, 0, words, sizeof(uint32_t));
}

size_t cuda_tile_pitch(const frame_plan *plan, size_t pixel_bytes) {
  const int32_t first = plan->geometry.first_octave;
  const size_t columns = first < 0 ? plan->stride[0] / 2 : plan->stride[0] << first;
  const size_t row = columns < (size_t)plan->request.width ? columns : (size_t)plan->request.width;
  return (row * pixel_bytes + PICTURE_ALIGNMENT - 1) / PICTURE_ALIGNMENT * PICTURE_ALIGNMENT;
}

static bool add_picture(frame_plan *plan, const cuda_tile_needs *needs, int32_t height) {
  const int32_t first = plan->geometry.first_octave;
  const size_t rows = first < 0 ? (size_t)height / 2 + 1 : ((size_t)height + 1) << first;
  const size_t all = (size_t)plan->request.height;
  bool ok = true;
  for (int32_t slot = 0; slot < TILE_SLOTS && ok; slot++)
    ok = add(plan, BUFFER_PICTURE, slot, rows < all ? rows : all, cuda_tile_pitch(plan, needs->pixel_bytes));
  return ok;
}

bool cuda_tile_plan_make(const plan_request *request, const cuda_tile_needs *needs, int32_t side, frame_plan *plan) {
  int32_t width, height;
  memset(plan, 0, sizeof *plan);
  plan->request = *request;
  plan->tile_side = side;
  if (pyramid_geometry_of(request->width, request->height, &request->rules, &plan->geometry) != STAGE_OK ||
      plan->geometry.octave_count == 0)
    return false;
  decide_capacities(plan);
  crop_sides(plan, &width, &height);
  return add_bases(plan) && add_levels(plan, needs, width, height) && add_picture(plan, needs, height) &&
         add_keypoints(plan, needs, width, height);
}

size_t cuda_tile_result_bytes(const frame_plan *plan) {
  const plan_request *r = &plan->request;
  const size_t bytes = (size_t)r->keypoint_capacity * (KEYPOINT_BYTES + (r->affine ? sizeof(affine_shape) : 0)) +
                       (size_t)r->feature_capacity * (FEATURE_BYTES + r->descriptor_bytes) +
                       (size_t)TILE_DEVICE_ESCAPED * TILE_ESCAPED_BYTES;
  return (bytes + PLAN_ALIGNMENT - 1) / PLAN_ALIGNMENT * PLAN_ALIGNMENT;
}
