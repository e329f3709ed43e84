/* Sizes, lifetimes and offsets of a frame's buffers. */
#include "pipeline/context/plan.h"

#include <string.h>

#include "cpu/schedule/fused_pass.h"
#include "cpu/schedule/stage_jobs.h"
#include "pipeline/base/memory.h"
#include "stages/affine.h"
#include "stages/image.h"
#include "stages/keypoint.h"

/* First capacity of the lists: one keypoint per SAMPLES_PER_KEYPOINT samples of the first octave, plus KEYPOINTS_MIN.
   This is twice the need of dense photographs. A frame that needs more is repeated once with the counts of the first
   run. */
enum { SAMPLES_PER_KEYPOINT = 192, KEYPOINTS_MIN = 1024 };

/* Rows begin on a cache line. A level has some more floats after its last row, because vector loads may read past
   it. */
enum { STRIDE_FLOATS = 16, LEVEL_SLACK_FLOATS = 64 };

const char *plan_buffer_name(plan_buffer buffer) {
  static const char *const names[PLAN_BUFFER_COUNT] = {
      "levels",   "blur work",     "detect work", "candidates",  "settled", "dog",     "top levels",
      "counts",   "keypoints",     "features",    "descriptors", "sources", "picture", "mask",
      "selected", "records",       "gray",        "histogram",   "scratch", "base",    "escaped",
      "order",    "feature order", "shapes",      "warped",      "graph",   "frames",  "rows"};
  return (unsigned)buffer < PLAN_BUFFER_COUNT ? names[buffer] : "?";
}

static bool align_up(size_t bytes, size_t alignment, size_t *out) {
  size_t padded;
  if (!hs_size_add(bytes, alignment - 1, &padded)) return false;
  *out = padded & ~(alignment - 1);
  return true;
}

/* Gives the entry the lowest offset at which it overlaps no entry of the same memory space whose lifetime intersects
   its own. False: the end does not fit size_t. */
static bool set_offset(frame_plan *plan, plan_entry *entry) {
  size_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t i = 0; i < plan->entry_count; i++) {
      const plan_entry *e = &plan->entries[i];
      if (e->space != entry->space || e->first_step > entry->last_step || e->last_step < entry->first_step) continue;
      if (e->offset >= offset + entry->bytes || offset >= e->offset + e->bytes) continue;
      offset = e->offset + e->bytes;
      moved = true;
    }
  }
  size_t end;
  if (!hs_size_add(offset, entry->bytes, &end)) return false;
  entry->offset = offset;
  size_t *total = entry->space == SPACE_HOST ? &plan->host_bytes : &plan->device_bytes;
  if (end > *total) *total = end;
  return true;
}

bool plan_add(frame_plan *plan, plan_entry e, size_t count, size_t item) {
  if (!hs_size_mul(count, item, &e.bytes) || !align_up(e.bytes, PLAN_ALIGNMENT, &e.bytes)) return false;
  if (e.bytes == 0) return true;
  assert(plan->entry_count < PLAN_ENTRIES_MAX);
  if (e.bytes > SIZE_MAX / 4 || !set_offset(plan, &e)) return false;
  plan->entries[plan->entry_count++] = e;
  return true;
}

/* Adds a host buffer. */
static bool add(frame_plan *plan, plan_buffer buffer, int32_t octave, size_t count, size_t item, int32_t first,
                int32_t last) {
  const plan_entry e = {
      .buffer = buffer, .space = SPACE_HOST, .octave_index = octave, .first_step = first, .last_step = last};
  return plan_add(plan, e, count, item);
}

/* Sets the octave's stride and the bytes of a level. Raises *work_floats to the scratch for its base and level
   steps. */
static bool measure_octave(frame_plan *plan, int32_t o, size_t *level_bytes, size_t *work_floats) {
  const pyramid_geometry *g = &plan->geometry;
  const plan_request *r = &plan->request;
  size_t floats;
  plan->stride[o] = ((size_t)g->width[o] + STRIDE_FLOATS - 1) & ~(size_t)(STRIDE_FLOATS - 1);
  if (!hs_size_mul(plan->stride[o], (size_t)g->height[o], &floats) ||
      !hs_size_add(floats, LEVEL_SLACK_FLOATS, &floats) || !align_up(floats, PLAN_ALIGNMENT / sizeof(float), &floats))
    return false;
  plan->level_floats[o] = floats;
  size_t work = floats;
  if (r->pyramid_work_floats) {
    const size_t scratch = r->pyramid_work_floats(g->width[o], g->height[o], r->radius_max, r->threads);
    if (!r->pyramid_work_plane || scratch > floats) work = scratch;
    const size_t banded =
        r->graph_bytes ? pyramid_work_band_floats(g->width[o], g->height[o], r->radius_max, r->threads) : 0;
    if (banded > work) work = banded;
  }
  if (o < plan->passes) {
    const size_t pass = r->octave_floats + fused_pass_escaped_floats(g->width[o], g->height[o]);
    if (pass > work) work = pass;
  }
  if (work > *work_floats) *work_floats = work;
  return hs_size_mul(floats, sizeof(float), level_bytes);
}

/* Adds the scratch of detection: for the first octave (which: 0) or for the others (1). */
static bool add_detect_work(frame_plan *plan, int32_t which, int32_t first_step, int32_t last_step) {
  const plan_request *r = &plan->request;
  pyramid_geometry octaves = plan->geometry;
  pyramid_geometry_skip(&octaves, which);
  const size_t bytes = r->detect_work_bytes(&octaves, r->rules.scales, r->keypoint_capacity);
  return add(plan, BUFFER_DETECT, which, bytes, 1, first_step, last_step);
}

/* Adds the scratch of the pyramid's steps: for the first octave (which: 0) or for the others (1). */
static bool add_work(frame_plan *plan, int32_t which, size_t floats, int32_t pyramid_step) {
  const int32_t detect_step = pyramid_step + 1;
  if (plan->request.graph_bytes)
    return add(plan, BUFFER_BLUR_WORK, which, floats, sizeof(float), pyramid_step, detect_step);
  if (plan->passes > which)
    return add(plan, BUFFER_BLUR_WORK, which, floats, sizeof(float), pyramid_step, detect_step) &&
           add_detect_work(plan, which, pyramid_step, detect_step);
  return add(plan, BUFFER_BLUR_WORK, which, floats, sizeof(float), pyramid_step, pyramid_step) &&
         add_detect_work(plan, which, detect_step, detect_step);
}

/* Returns whether a level of octave o has at least `bytes` bytes. */
static bool has_bytes(const pyramid_geometry *g, int32_t o, size_t bytes) {
  return (uint64_t)g->width[o] * (uint64_t)g->height[o] >= bytes / sizeof(float);
}

/* Returns how many octaves are made by a fused pass each: those whose levels would not stay in the caches until the
   next stage reads them. */
static int32_t passes_of(const frame_plan *plan) {
  const plan_request *r = &plan->request;
  const pyramid_geometry *g = &plan->geometry;
  if (g->octave_count == 0 || r->octave_floats == 0 || r->skipped_octaves > 0 || !has_bytes(g, 0, r->octave_bytes_min))
    return 0;
  int32_t passes = 1;
  while (passes < g->octave_count && has_bytes(g, passes, PASS_BYTES_MIN_LATER)) passes++;
  return passes;
}

/* Adds buffers for stages that run at the same time: octaves are searched while they are made, and the keypoints of the
   first octave are listed while the others are made. They are added before the levels, to get lower offsets (see
   add_first_octave). */
static bool add_graph(frame_plan *plan) {
  const plan_request *r = &plan->request;
  const int32_t octaves = plan->geometry.octave_count;
  if (!r->graph_bytes) return true;
  return add(plan, BUFFER_GRAPH, 0, r->graph_bytes(octaves, r->rules.scales), 1, 0, STEP_COUNT) &&
         add_detect_work(plan, 0, STEP_FIRST_PYRAMID, STEP_DETECT) &&
         (octaves == 1 || add_detect_work(plan, 1, STEP_FIRST_PYRAMID, STEP_DETECT));
}

/* Adds the first octave. Buffers in use at the same time fill the offsets below it without gaps, so its top levels
   directly follow its other levels. */
static bool add_first_octave(frame_plan *plan) {
  const plan_request *r = &plan->request;
  const size_t kept = (size_t)r->rules.scales + 1, top = r->detect_reads_top ? 2 : 1;
  size_t level_bytes, work_floats = 0;
  if (!measure_octave(plan, 0, &level_bytes, &work_floats) ||
      !add(plan, BUFFER_LEVELS, 0, kept, level_bytes, STEP_FIRST_PYRAMID, STEP_DESCRIBE) ||
      !add(plan, BUFFER_TOP_LEVELS, 0, top, level_bytes, STEP_FIRST_PYRAMID, STEP_FIRST_DETECT))
    return false;
  const plan_entry *levels = &plan->entries[plan->entry_count - 2];
  assert(levels[1].offset == levels[0].offset + levels[0].bytes);
  (void)levels;
  return add_work(plan, 0, work_floats, STEP_FIRST_PYRAMID);
}

static bool add_octaves(frame_plan *plan) {
  const plan_request *r = &plan->request;
  const size_t levels = (size_t)r->rules.scales + (r->detect_reads_top ? 3 : 2);
  size_t level_bytes, work_floats = 0;
  if (plan->geometry.octave_count == 0) return true;
  if (!add_graph(plan) || !add_first_octave(plan)) return false;
  for (int32_t o = 1; o < plan->geometry.octave_count; o++)
    if (!measure_octave(plan, o, &level_bytes, &work_floats) ||
        !add(plan, BUFFER_LEVELS, o, levels, level_bytes, STEP_PYRAMID, STEP_DESCRIBE))
      return false;
  return plan->geometry.octave_count == 1 || add_work(plan, 1, work_floats, STEP_PYRAMID);
}

bool plan_add_lists(frame_plan *plan) {
  const plan_request *r = &plan->request;
  return add(plan, BUFFER_COUNTS, 0, 4, sizeof(uint32_t), 0, STEP_COUNT) &&
         add(plan, BUFFER_KEYPOINTS, 0, r->keypoint_capacity, KEYPOINT_BYTES, 0, STEP_COUNT) &&
         add(plan, BUFFER_FEATURES, 0, r->feature_capacity, FEATURE_BYTES, 0, STEP_COUNT) &&
         add(plan, BUFFER_DESCRIPTORS, 0, r->feature_capacity, r->descriptor_bytes, 0, STEP_COUNT) &&
         add(plan, BUFFER_SOURCES, 0, r->source_capacity, sizeof(uint32_t), 0, STEP_COUNT) &&
         add(plan, BUFFER_SHAPES, 0, r->affine ? r->keypoint_capacity : 0, sizeof(affine_shape), 0, STEP_COUNT) &&
         add(plan, BUFFER_WARPED, 0, r->warped_floats, sizeof(float), 0, STEP_COUNT);
}

void plan_decide_capacities(frame_plan *plan) {
  const pyramid_geometry *g = &plan->geometry;
  plan_request *r = &plan->request;
  uint64_t keypoints = KEYPOINTS_MIN;
  if (g->octave_count > 0) keypoints += (uint64_t)g->width[0] * (uint64_t)g->height[0] / SAMPLES_PER_KEYPOINT;
  if (keypoints > (uint64_t)1 << 28) keypoints = (uint64_t)1 << 28;
  if (r->keypoint_capacity == 0) r->keypoint_capacity = (uint32_t)keypoints;
  if (r->keypoint_capacity < r->source_capacity) r->keypoint_capacity = r->source_capacity;
  if (r->feature_capacity == 0) r->feature_capacity = r->keypoint_capacity + r->keypoint_capacity / 2;
  r->keypoint_capacity = (r->keypoint_capacity + 31u) & ~31u;
  r->feature_capacity = (r->feature_capacity + 31u) & ~31u;
}

hs_status plan_make(const plan_request *request, frame_plan *plan) {
  memset(plan, 0, sizeof *plan);
  plan->request = *request;
  if (pyramid_geometry_of(request->width, request->height, &request->rules, &plan->geometry) != STAGE_OK)
    return HS_ERR_LIMIT;
  pyramid_geometry_skip(&plan->geometry, request->skipped_octaves);
  plan->passes = passes_of(plan);
  if (plan->passes > 0) plan->request.graph_bytes = NULL;
  plan_decide_capacities(plan);
  return plan_add_lists(plan) && add_octaves(plan) ? HS_OK : HS_ERR_LIMIT;
}

const plan_entry *plan_find(const frame_plan *plan, plan_buffer buffer, int32_t octave_index) {
  for (int32_t i = 0; i < plan->entry_count; i++)
    if (plan->entries[i].buffer == buffer && plan->entries[i].octave_index == octave_index) return &plan->entries[i];
  return NULL;
}

static way_choice choose_tiles(const way_request *r) {
  if (r->on_device)
    return r->rows
               ? (way_choice){HS_WAY_GPU_TILE_ROWS, false, "the picture exceeds the memory: it is decoded row by row"}
               : (way_choice){HS_WAY_GPU_TILES, false, "the whole frame does not fit the device's memory"};
  return r->rows ? (way_choice){HS_WAY_CPU_TILE_ROWS, false, "the picture exceeds the memory: it is decoded row by row"}
                 : (way_choice){HS_WAY_CPU_TILES, false, "the whole frame exceeds max_memory_bytes"};
}

static way_choice choose_on_device(const way_request *r) {
  if (r->split) return (way_choice){HS_WAY_HYBRID, false, "options.split, or its measurement, divides the octaves"};
  if (r->group > 1) return (way_choice){HS_WAY_GPU_GROUP, false, "one launch for several small images"};
  if (r->seen) return (way_choice){HS_WAY_GPU_GRAPH, false, "a frame of this kind was run before"};
  if (r->is_worker)
    return (way_choice){HS_WAY_GPU_LISTED, false, "the first frame of its kind, next to others that launch"};
  return (way_choice){HS_WAY_GPU_KERNELS, false, "the first frame of its kind"};
}

way_choice plan_choose_way(const way_request *r) {
  const bool jobs = r->has_jobs && r->octaves > 0 && r->skipped_octaves == 0;
  if (r->tiled) return choose_tiles(r);
  if (r->on_device) return choose_on_device(r);
  if (r->user_keypoints) return (way_choice){HS_WAY_CPU_USER_KEYPOINTS, jobs, "the keypoints are the caller's"};
  if (r->passes > 0)
    return (way_choice){HS_WAY_CPU_FUSED_PASS, false, "few threads, and levels that are larger than the caches"};
  if (jobs) return (way_choice){HS_WAY_CPU_JOBS, true, "several threads"};
  if (r->skipped_octaves > 0) return (way_choice){HS_WAY_CPU_STAGES, false, "the device computed the first octaves"};
  return (way_choice){HS_WAY_CPU_STAGES, false, "one thread, or variants without jobs"};
}

const char *hs_frame_way_name(hs_frame_way way) {
  static const char *const names[] = {
      "none",        "cpu-stages", "cpu-jobs",  "cpu-fused-pass", "cpu-tiles", "cpu-tile-rows", "cpu-user-keypoints",
      "gpu-kernels", "gpu-listed", "gpu-graph", "gpu-group",      "gpu-tiles", "gpu-tile-rows", "hybrid"};
  return (unsigned)way < sizeof names / sizeof names[0] ? names[way] : NULL;
}
