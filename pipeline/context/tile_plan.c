/* Halos of tiles, and the slab of a tiled frame. */
#include "pipeline/context/tile_plan.h"

#include <math.h>
#include <string.h>

#include "cpu/schedule/stage_jobs.h"
#include "pipeline/base/memory.h"
#include "stages/affine.h"
#include "stages/detect.h"
#include "stages/refine.h"
#include "stages/pyramid.h"

_Static_assert(sizeof(escaped_candidate) == TILE_ESCAPED_BYTES, "room for escaped");

/* A keypoint's final sample is at most TILE_HALO samples from its tile; the keypoint is up to REFINE_OFFSET_MAX_VLFEAT
   (rounded up here) from that sample. */
enum { KEYPOINT_HALO = TILE_HALO + 3 };

static int32_t most(int32_t a, int32_t b) { return a > b ? a : b; }

static int32_t align_up(int32_t n) { return (n + TILE_ALIGNMENT - 1) & ~(TILE_ALIGNMENT - 1); }

/* Returns an upper bound on the sigma of a level's keypoints, in samples of the octave. The offset of a fit is below
   REFINE_OFFSET_MAX_VLFEAT, 3/2. */
static double largest_sigma(const sift_params *p, int32_t level) {
  return 1.001 * scalespace_level_sigma((double)p->sigma0, 2 * p->scales, 2 * level + 3);
}

/* Returns the halo around a keypoint for its orientation window and the gradients at the window's edge, in samples. */
static int32_t orient_halo(const sift_params *p, double sigma) {
  return orient_radius((float)sigma, p->orientation_rule) + 2;
}

static int32_t describe_halo(double sigma) { return describe_radius((float)sigma) + 2; }

/* Returns an upper bound on the quotient of a shape's axes. */
static double longest(void) { return 1.001 * sqrt((double)AFFINE_LONGEST); }

/* Returns the halo around a keypoint for the corners of a patch of its shape, in samples. distance: between the patch's
   samples, in sigma. */
static int32_t patch_halo(double sigma, int32_t side, double distance) {
  return (int32_t)(0.5 * side * distance * sigma * hypot(longest(), 1.0)) + 3;
}

/* Returns the halo around a keypoint for a descriptor of this scale, in samples. */
static int32_t window_halo(const plan_request *r, double sigma) {
  return r->affine ? patch_halo(sigma, AFFINE_DESCRIBE_SIDE, (double)AFFINE_DISTANCE) : describe_halo(sigma);
}

/* Widens the halos to those of the windows of a keypoint of `level`. */
static void widen_for_windows(const plan_request *r, int32_t level, int32_t octaves_left, tile_halos *m) {
  const sift_params *p = r->params;
  const domain_sizes *d = &p->domain;
  const double sigma = largest_sigma(p, level);
  int32_t *own = &m->other[0][level];
  *own = most(*own, KEYPOINT_HALO + orient_halo(p, sigma));
  if (r->affine) {
    const int32_t shape = patch_halo(sigma, AFFINE_SHAPE_SIDE, (double)AFFINE_SHAPE_DISTANCE);
    const int32_t orientation = patch_halo(sigma, AFFINE_ORIENT_SIDE, (double)AFFINE_DISTANCE);
    int32_t *finer = &m->other[0][affine_finer_level(level)];
    *finer = most(*finer, KEYPOINT_HALO + most(shape, orientation));
  }
  if (d->count == 0) *own = most(*own, KEYPOINT_HALO + window_halo(r, sigma));
  for (int32_t i = 0; i < d->count; i++) {
    int32_t index = 0, sampled = level;
    domain_level(d, i, p->scales, octaves_left, &index, &sampled);
    assert(index < m->octaves);
    const double size = (double)d->size[i] * sigma / (double)(1 << index);
    int32_t *halo = &m->other[index][sampled];
    *halo = most(*halo, (KEYPOINT_HALO >> index) + 2 + window_halo(r, size));
  }
}

/* Widens the halos to what the search and the fits need in their own octave. */
static void widen_for_detection(const plan_request *r, tile_halos *m) {
  const int32_t scales = r->params->scales, fits = TILE_HALO + 2;
  for (int32_t s = 0; s <= scales + 1; s++) m->other[0][s] = most(m->other[0][s], fits);
  if (r->detect_reads_top) m->other[0][scales + 2] = fits;
  /* the last level is computed on demand from the level below */
  m->other[0][scales + 1] = most(m->other[0][scales + 1], fits + 2 + r->step_filter[scales + 2].radius);
}

/* Widens the halos to those of the filters: each level is made from the level below, and level 0 of an octave from
   level S of the finer octave. */
static void widen_for_steps(const plan_request *r, tile_halos *m) {
  for (int32_t i = m->octaves - 1; i >= 0; i--) {
    for (int32_t s = m->levels[i] - 1; s >= 0; s--) {
      int32_t *other = &m->other[i][s], *left = &m->left[i][s];
      const int32_t radius = s + 1 < m->levels[i] ? r->step_filter[s + 1].radius : 0;
      if (s + 1 < m->levels[i]) {
        *other = most(*other, m->other[i][s + 1] + radius);
        *left = m->left[i][s + 1] + radius;
      }
      *left = most(*left, *other);
      if (i == 0) *left = align_up(*left); /* tiles begin on cache lines only in their own octave */
    }
    if (i == 0) return;
    int32_t *finer = &m->other[i - 1][r->params->scales];
    *finer = most(*finer, 2 * most(m->left[i][0], m->other[i][0]) + 2);
  }
}

tile_halos tile_halos_of(const plan_request *r, int32_t octaves_left) {
  const sift_params *p = r->params;
  tile_halos m = {.octaves = 1 + domain_octaves(&p->domain, p->scales)};
  if (m.octaves > octaves_left) m.octaves = octaves_left;
  for (int32_t i = 0; i < m.octaves; i++) m.levels[i] = p->scales + 1;
  m.levels[0] = p->scales + (r->detect_reads_top ? 3 : 2);
  for (int32_t level = 1; level <= p->scales; level++) widen_for_windows(r, level, octaves_left, &m);
  widen_for_detection(r, &m);
  widen_for_steps(r, &m);
  return m;
}

/* Returns the tile in samples of a coarser octave. */
static plane_region core_in(const plane_region *core, int32_t index) {
  const int32_t up = (1 << index) - 1;
  return (plane_region){core->x0 >> index, core->y0 >> index, (core->x1 + up) >> index, (core->y1 + up) >> index};
}

static int32_t clamp(int32_t v, int32_t end) { return v < 0 ? 0 : (v < end ? v : end); }

plane_region tile_region(const tile_halos *m, const pyramid_geometry *g, int32_t octave, const plane_region *core,
                         int32_t index, int32_t level) {
  const int32_t width = g->width[octave + index], height = g->height[octave + index];
  const int32_t left = m->left[index][level], other = m->other[index][level];
  const plane_region c = core_in(core, index);
  return (plane_region){clamp(c.x0 - left, width), clamp(c.y0 - other, height), clamp(c.x1 + other, width),
                        clamp(c.y1 + other, height)};
}

/* Finds the origin of the tile's memory. The memory also holds the samples from which the first octave's base is made,
   including the filter's halo. */
void tile_origin(const tile_halos *m, const plan_request *r, const pyramid_geometry *g, int32_t octave,
                 const plane_region *core, int32_t index, int32_t *x, int32_t *y) {
  const plane_region region = tile_region(m, g, octave, core, index, 0);
  const int32_t radius = r->base_filter->radius;
  *x = (region.x0 > radius ? region.x0 - radius : 0) & ~(TILE_ALIGNMENT - 1);
  *y = region.y0 > radius ? region.y0 - radius : 0;
}

static int32_t least(int64_t a, int32_t b) { return a < b ? (int32_t)a : b; }

/* Finds the rows [*first, *end) of the picture for sample rows [y0, y1) of the first octave, plus one on each side if
   the picture is doubled. */
static void rows_of_samples(int32_t first_octave, int64_t y0, int64_t y1, int32_t height, int32_t *first,
                            int32_t *end) {
  const int64_t from = first_octave < 0 ? y0 / 2 - 1 : y0 << first_octave;
  const int64_t to = first_octave < 0 ? (y1 + 1) / 2 + 1 : ((y1 - 1) << first_octave) + 1;
  *first = from > 0 ? least(from, height) : 0;
  *end = least(to, height);
}

void tile_rows(const tile_halos *m, const plan_request *r, const pyramid_geometry *g, const plane_region *core,
               int32_t *y0, int32_t *y1) {
  const int32_t about = m->other[0][0] + r->base_filter->radius + REFINE_STEPS;
  const int64_t first = core->y0 > about ? core->y0 - about : 0, end = least((int64_t)core->y1 + about, g->height[0]);
  rows_of_samples(g->first_octave, first, end, r->height, y0, y1);
}

/* Computes the bytes of the rows that are in memory at once. */
static bool band_bytes(const frame_plan *plan, size_t *bytes) {
  const plan_request *r = &plan->request;
  const pyramid_geometry *g = &plan->geometry;
  const tile_halos m = tile_halos_of(r, g->octave_count);
  const int32_t about = m.other[0][0] + r->base_filter->radius + REFINE_STEPS, samples = plan->tile_side + 2 * about;
  int32_t first, end;
  /* one sample and one row more than any tile needs */
  rows_of_samples(g->first_octave, 2, (int64_t)samples + 3, r->height, &first, &end);
  return hs_size_mul((size_t)(end + 1 < r->height ? end + 1 : r->height), r->row_bytes, bytes);
}

/* Finds the size of the memory of a tile's levels, which must suffice for tiles of each octave of the picture. */
static void tile_sides(const plan_request *r, const pyramid_geometry *g, int32_t side, int32_t index, int32_t *width,
                       int32_t *height) {
  *width = *height = 0;
  for (int32_t o = 0; o + index < g->octave_count; o++) {
    const tile_halos m = tile_halos_of(r, g->octave_count - o);
    if (index >= m.octaves) continue;
    const int32_t core = (side >> index) + 2, about = core + 2 * (m.other[index][0] + r->base_filter->radius);
    const int32_t columns = align_up(about + m.left[index][0] - m.other[index][0] + TILE_ALIGNMENT);
    const int32_t all = align_up(g->width[o + index]);
    *width = most(*width, columns < all ? columns : all);
    *height = most(*height, about < g->height[o + index] ? about : g->height[o + index]);
  }
}

static bool add(frame_plan *plan, plan_buffer buffer, int32_t octave, size_t count, size_t item, int32_t first,
                int32_t last) {
  const plan_entry e = {
      .buffer = buffer, .space = SPACE_HOST, .octave_index = octave, .first_step = first, .last_step = last};
  return plan_add(plan, e, count, item);
}

/* Returns the floats of scratch for the steps of a tile's levels. */
static size_t work_floats(const plan_request *r, const frame_plan *plan, int32_t width, int32_t height) {
  size_t work = 0;
  const int32_t rows = most(height, 2 * r->radius_max + WORK_BLOCK_ROWS);
  if (r->pyramid_work_floats) work = r->pyramid_work_floats(width, rows, r->radius_max, r->threads);
  const size_t plane = plan->level_floats[0];
  return (!r->pyramid_work_floats || r->pyramid_work_plane) && work < plane ? plane : work;
}

/* Adds the levels of a tile and the scratch for making them. */
static bool add_tile(frame_plan *plan) {
  const plan_request *r = &plan->request;
  const pyramid_geometry *g = &plan->geometry;
  const int32_t octaves = tile_halos_of(r, g->octave_count).octaves;
  size_t work = 0;
  for (int32_t i = 0; i < octaves; i++) {
    int32_t width, height;
    size_t floats;
    tile_sides(r, g, plan->tile_side, i, &width, &height);
    const size_t levels = (size_t)r->rules.scales + (i > 0 ? 1 : (r->detect_reads_top ? 3 : 2));
    plan->stride[i] = (size_t)width;
    if (!hs_size_mul((size_t)width, (size_t)height, &floats)) return false;
    plan->level_floats[i] = floats + TILE_SLACK_FLOATS;
    if (i == 0) work = work_floats(r, plan, width, height);
    if (!hs_size_mul(plan->level_floats[i], levels, &floats) ||
        !add(plan, BUFFER_LEVELS, i, floats + 2 * TILE_SLACK_FLOATS, sizeof(float), STEP_PYRAMID, STEP_DESCRIBE))
      return false;
  }
  return add(plan, BUFFER_BLUR_WORK, 0, work, sizeof(float), STEP_PYRAMID, STEP_PYRAMID);
}

/* Adds the scratch of detection in a tile, with capacity for one keypoint per 64 samples. A tile with more keypoints is
   divided. */
static bool add_detection(frame_plan *plan) {
  const plan_request *r = &plan->request;
  const pyramid_geometry *g = &plan->geometry;
  const int32_t side = plan->tile_side + 2 * TILE_HALO;
  pyramid_geometry part = {.first_octave = g->first_octave, .octave_count = 1};
  part.width[0] = side < g->width[0] ? side : g->width[0];
  part.height[0] = side < g->height[0] ? side : g->height[0];
  plan->tile_keypoints = (uint32_t)((int64_t)part.width[0] * part.height[0] / 64 + 64);
  const size_t bytes = r->detect_work_bytes(&part, r->rules.scales, plan->tile_keypoints);
  return add(plan, BUFFER_DETECT, 0, bytes, 1, STEP_DETECT, STEP_DETECT) &&
         add(plan, BUFFER_ESCAPED, 0, plan->tile_keypoints, TILE_ESCAPED_BYTES, STEP_PYRAMID, STEP_DESCRIBE);
}

/* Adds level 0 of the octaves after the first; two are in memory at a time. The base of the third octave is written
   after the first octave is done; until then its memory holds rows of the picture. */
static bool add_bases(frame_plan *plan) {
  const pyramid_geometry *g = &plan->geometry;
  for (int32_t o = 1; o <= 2; o++) {
    size_t floats = 0, bytes = 0;
    const bool is_there = o < g->octave_count, has_rows = o == 2 && plan->request.row_bytes > 0;
    if (is_there && !hs_size_mul((size_t)align_up(g->width[o]), (size_t)g->height[o], &floats)) return false;
    if (has_rows && !band_bytes(plan, &bytes)) return false;
    if (bytes / sizeof(float) + 1 > floats && has_rows) floats = bytes / sizeof(float) + 1;
    if (floats > 0 && !add(plan, BUFFER_BASE, o & 1, floats + TILE_SLACK_FLOATS, sizeof(float), 0, STEP_COUNT))
      return false;
  }
  return true;
}

/* Adds the scratch for ordering an octave's keypoints: three numbers per keypoint, and a counter per row of every
   level. Also adds the order of the features, which is needed until they are returned. */
static bool add_order(frame_plan *plan) {
  const plan_request *r = &plan->request;
  const size_t counters = (size_t)plan->geometry.height[0] * (size_t)r->rules.scales + 1;
  return add(plan, BUFFER_FEATURE_ORDER, 0, r->feature_capacity, sizeof(uint32_t), 0, STEP_COUNT) &&
         add(plan, BUFFER_ORDER, 0, 3 * (size_t)r->keypoint_capacity + counters, sizeof(uint32_t), STEP_COUNT,
             STEP_COUNT);
}

static bool make(const plan_request *request, int32_t side, frame_plan *plan) {
  memset(plan, 0, sizeof *plan);
  plan->request = *request;
  plan->tile_side = side;
  if (pyramid_geometry_of(request->width, request->height, &request->rules, &plan->geometry) != STAGE_OK) return false;
  plan_decide_capacities(plan);
  return plan_add_lists(plan) && add_bases(plan) && add_tile(plan) && add_detection(plan) && add_order(plan);
}

/* A side is a power of two, or three quarters of one if that is a multiple of a cache line. */
int32_t plan_smaller_tile(int32_t side) {
  const bool is_power = (side & (side - 1)) == 0;
  if (!is_power) return side / 3 * 2;
  return side / 4 * 3 % TILE_ALIGNMENT == 0 ? side / 4 * 3 : side / 2;
}

hs_status plan_make_tiled(const plan_request *request, uint64_t bytes, frame_plan *plan) {
  for (int32_t side = TILE_SIDE_MAX; side >= TILE_SIDE_MIN; side = plan_smaller_tile(side))
    if (make(request, side, plan) && plan->host_bytes <= bytes) return HS_OK;
  return make(request, TILE_SIDE_MIN, plan) ? HS_OK : HS_ERR_LIMIT;
}

hs_status plan_make_tile_lists(const plan_request *request, size_t band_bytes, frame_plan *plan) {
  memset(plan, 0, sizeof *plan);
  plan->request = *request;
  if (pyramid_geometry_of(request->width, request->height, &request->rules, &plan->geometry) != STAGE_OK)
    return HS_ERR_LIMIT;
  plan_decide_capacities(plan);
  const bool ok = plan_add_lists(plan) && add_order(plan) &&
                  add(plan, BUFFER_ESCAPED, 0, TILE_DEVICE_ESCAPED, TILE_ESCAPED_BYTES, STEP_PYRAMID, STEP_DESCRIBE) &&
                  add(plan, BUFFER_ROWS, 0, band_bytes, 1, STEP_PYRAMID, STEP_DESCRIBE);
  return ok ? HS_OK : HS_ERR_LIMIT;
}
