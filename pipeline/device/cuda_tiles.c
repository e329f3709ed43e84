/* Memory of a tiled frame on its device: bounded by the options and by the device's free memory. */
#include "pipeline/device/cuda_engine.h"

#include <string.h>

#include "pipeline/context/tile_plan.h"
#include "pipeline/device/cuda_state.h"

/* A frame in tiles leaves 1 / FREE_LEFT of the device's free memory to others. */
enum { FREE_LEFT = 8 };

/* Memory that a frame in tiles may take (..._max) and takes (..._bytes). */
typedef struct tiled_memory {
  uint64_t device_max, host_max;
  uint64_t device_bytes, host_bytes;
  frame_plan lists, device;
} tiled_memory;

static size_t scratch_bytes(uint32_t mask_words, uint32_t keypoints, uint32_t features) {
  cuda_keypoint_scratch scratch;
  const cuda_keypoint_capacity capacity = cuda_list_capacity(mask_words, keypoints, features, 0);
  return cuda_keypoint_scratch_layout(&capacity, NULL, &scratch);
}

static plan_request request_of(const hs_context *c, const frame_request *r) {
  return (plan_request){.width = r->source.width,
                        .height = r->source.height,
                        .rules = c->rules,
                        .descriptor_bytes = r->descriptor_bytes,
                        .radius_max = c->radius_max,
                        .affine = c->options.affine != 0,
                        .detect_reads_top = true,
                        .params = &c->params,
                        .base_filter = &c->base_filter,
                        .step_filter = c->step_filter};
}

/* Returns the pinned bytes through which a crop in pageable memory is staged. */
static size_t staging_bytes(const frame_plan *device, const source_view *source) {
  source_view crop = *source;
  crop.width = (int32_t)(cuda_tile_pitch(device, 1));
  return cuda_staging_bytes(&crop);
}

static bool plan_side(const hs_context *c, const frame_request *r, int32_t side, tiled_memory *needed) {
  const cuda_tile_needs needs = {source_pixel_bytes(r->source.type, r->source.layout), cuda_wants_blur_work(c),
                                 scratch_bytes};
  const plan_request request = request_of(c, r);
  plan_request lists = request;
  size_t band_bytes = 0;
  lists.keypoint_capacity = c->keypoint_capacity;
  lists.feature_capacity = c->feature_capacity;
  if (!cuda_tile_plan_make(&request, &needs, side, &needed->device)) return false;
  if (r->feed && !cuda_tile_band_bytes(&needed->device, r->feed->row_bytes, &band_bytes)) return false;
  if (plan_make_tile_lists(&lists, band_bytes, &needed->lists) != HS_OK) return false;
  needed->device_bytes = needed->device.device_bytes;
  needed->host_bytes = needed->lists.host_bytes + context_scratch_bytes(&c->options, &needed->lists) +
                       TILE_SLOTS * cuda_tile_result_bytes(&needed->device) +
                       staging_bytes(&needed->device, &r->source);
  return true;
}

/* Plans the largest tiles that fit, or the smallest if none do. False: a size overflows its type. */
static bool plan_tiles(const hs_context *c, const frame_request *r, tiled_memory *needed) {
  for (int32_t side = TILE_SIDE_MAX; side >= TILE_SIDE_MIN; side = plan_smaller_tile(side))
    if (plan_side(c, r, side, needed) && needed->device_bytes <= needed->device_max &&
        needed->host_bytes <= needed->host_max)
      return true;
  return plan_side(c, r, TILE_SIDE_MIN, needed);
}

/* Returns the device bytes that the frame may take. If the device's free memory is the limit, the context's slab counts
   as free. */
static uint64_t device_max(hs_context *c, hs_status status) {
  const uint64_t limit = c->options.max_memory_bytes > 0 ? c->options.max_memory_bytes : UINT64_MAX;
  size_t free_bytes = 0, all = 0;
  if (status != HS_ERR_MEMORY || device_memory(&free_bytes, &all) != STAGE_OK) return limit;
  const uint64_t most = (uint64_t)(free_bytes - free_bytes / FREE_LEFT) + cuda_of(c)->slab_bytes;
  return most < limit ? most : limit;
}

static hs_status prepare(hs_context *c, const frame_request *r, hs_status status) {
  cuda_state *s = cuda_of(c);
  tiled_memory needed = {.host_max = c->options.max_memory_bytes > 0 ? c->options.max_memory_bytes : UINT64_MAX};
  needed.device_max = device_max(c, status);
  if (s->untiled_bytes <= needed.device_max || !plan_tiles(c, r, &needed)) return status;
  const bool fits = needed.device_bytes <= needed.device_max && needed.host_bytes <= needed.host_max;
  if (!fits && status == HS_ERR_MEMORY) return status;
  if (!fits)
    return CONTEXT_FAIL(c, HS_ERR_LIMIT,
                        "a %d x %d image needs at least %llu bytes on the device and %llu on the host even in the "
                        "smallest tiles, max_memory_bytes is %llu",
                        r->source.width, r->source.height, (unsigned long long)needed.device_bytes,
                        (unsigned long long)needed.host_bytes, (unsigned long long)c->options.max_memory_bytes);
  context_clear_error(c);
  hs_status st = cuda_make_slab(c, needed.device_bytes);
  if (st != HS_OK) return st;
  s->plan = needed.device;
  s->kept_capacity = 0;
  s->expected_samples = 0;
  memset(&s->cleared_masks, 0, sizeof s->cleared_masks); /* tiles lay out other masks there */
  const stage_status held =
      cuda_result_pool_hold(s->pool, TILE_SLOTS * cuda_tile_result_bytes(&s->plan), &s->results[s->set].block);
  if (held != STAGE_OK) {
    s->results[s->set] = (result_set){0};
    return cuda_failure(c, held, "pinned memory for the results of a tile");
  }
  c->plan = needed.lists;
  c->plan.tile_side = needed.device.tile_side;
  c->plan.tile_keypoints = needed.device.tile_keypoints;
  st = context_start_queue(c);
  return st == HS_OK ? context_make_slab(c, "") : st;
}

hs_status cuda_tiles_prepare(hs_context *c, const frame_request *r, hs_status status) {
  int32_t previous;
  if (device_enter(cuda_of(c)->device, &previous) != STAGE_OK)
    return cuda_failure(c, STAGE_DEVICE, "entering the device");
  const hs_status st = prepare(c, r, status);
  device_leave(previous);
  return st == HS_OK ? st : context_reset_capacities(c, st);
}

void cuda_tiles_rows(const hs_context *c, const plane_region *core, int32_t *y0, int32_t *y1) {
  const frame_plan *plan = &cuda_of(c)->plan;
  cuda_tile_rows(&plan->request, &plan->geometry, core, y0, y1);
}

/* Returns all bytes that a frame with this memory holds on the device and on the host. */
static void bytes_of(const hs_context *c, const tiled_memory *needed, uint64_t *device_bytes, uint64_t *host_bytes) {
  *device_bytes = needed->device_bytes + sizeof(vote_scales);
  *host_bytes = needed->host_bytes + sizeof *cuda_of(c)->readback;
}

bool cuda_tiles_query(hs_context *c, const frame_request *r, uint64_t *device_bytes, uint64_t *host_bytes) {
  const uint64_t limit = c->options.max_memory_bytes, untiled_bytes = cuda_of(c)->plan.device_bytes;
  tiled_memory needed = {.device_max = limit, .host_max = limit};
  if (limit == 0 || untiled_bytes <= limit || !plan_tiles(c, r, &needed) || needed.device_bytes >= untiled_bytes)
    return false;
  bytes_of(c, &needed, device_bytes, host_bytes);
  return true;
}

bool cuda_tiles_query_rows(hs_context *c, const frame_request *r, uint64_t *device_bytes, uint64_t *host_bytes) {
  const uint64_t limit = c->options.max_memory_bytes;
  const frame_placement whole = {.octaves = c->options.device == HS_DEVICE_HYBRID ? c->options.split : 0};
  tiled_memory needed = {.device_max = limit, .host_max = limit};
  (void)cuda_plan_memory(c, r, &whole); /* a frame without any plan needs tiles */
  if (cuda_of(c)->untiled_bytes <= limit || !plan_tiles(c, r, &needed) || needed.device_bytes > limit ||
      needed.host_bytes > limit)
    return false;
  bytes_of(c, &needed, device_bytes, host_bytes);
  return true;
}
