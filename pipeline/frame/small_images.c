/* Groups of small images: frames of several images with common launches on a GPU. */
#include "pipeline/frame/in_flight.h"

#include "pipeline/base/features.h"
#include "pipeline/context/engine.h"
#include "pipeline/context/image_view.h"
#include "pipeline/context/options.h"

/* GROUP_SAMPLES: maximum number of samples of a group's first octaves; in larger groups the cost of launches no longer
   matters. Each picture of a group has its own lists. So capacities that grew for a larger picture are reduced to one
   keypoint per SAMPLES_PER_KEYPOINT_MIN samples plus KEYPOINTS_BESIDES, which is more than pictures have. */
enum { GROUP_SAMPLES = 4 << 20, GROUP_CHOSEN_MAX = 32, SAMPLES_PER_KEYPOINT_MIN = 32, KEYPOINTS_BESIDES = 1024 };

/* Returns the samples of the first octave. */
static int64_t samples_of(const hs_options *o, const hs_image *image) {
  const int64_t pixels = (int64_t)image->width * image->height;
  return o->first_octave < 0 ? 4 * pixels : pixels >> (2 * o->first_octave);
}

int32_t small_images_max(const hs_context *c, const hs_image *image) {
  const hs_options *o = &c->options;
  if (!c->engine->groups || o->max_memory_bytes > 0 || (options_use_grid(o) && options_device_cells(o) == 0) ||
      !c->engine->groups(c))
    return 1;
  const int64_t samples = samples_of(o, image);
  int32_t wanted = o->images_per_launch, chosen = 1;
  if (wanted == 0)
    wanted = samples * GROUP_CHOSEN_MAX <= GROUP_SAMPLES ? GROUP_CHOSEN_MAX : (int32_t)(GROUP_SAMPLES / (samples + 1));
  while (2 * chosen <= wanted && 2 * chosen <= FRAME_GROUP_MAX) chosen *= 2;
  return chosen;
}

bool small_images_alike(const hs_source *first, const hs_source *second) {
  const hs_image *a = &first->image, *b = &second->image;
  return first->kind == second->kind && a->width == b->width && a->height == b->height && a->type == b->type &&
         a->layout == b->layout && a->range_low == b->range_low && a->range_high == b->range_high;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t most(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* Runs the frame with list capacities for a group. Afterwards the context's capacities are the maximum of old and new
   ones. */
static hs_status run(hs_context *c, const hs_image *image, const frame_request *requests,
                     const frame_placement *placement, frame_result *results) {
  const uint32_t keypoints = c->keypoint_capacity, features = c->feature_capacity;
  const int64_t wanted = samples_of(&c->options, image) / SAMPLES_PER_KEYPOINT_MIN + KEYPOINTS_BESIDES;
  const uint32_t enough = wanted < (1 << 28) ? (uint32_t)wanted : 1u << 28;
  c->keypoint_capacity = least(keypoints, enough);
  c->feature_capacity = least(features, enough + enough / 2);
  const hs_status st = c->engine->run(c, requests, placement, results);
  if (st != HS_OK) return st;
  c->keypoint_capacity = most(c->keypoint_capacity, keypoints);
  c->feature_capacity = most(c->feature_capacity, features);
  return HS_OK;
}

/* Prepares the pictures (pixels, or JPEGs that are decoded) and runs their frame. */
static hs_status run_from(hs_context *c, const hs_source *const *pictures, bool on_device, int32_t count,
                          frame_request *requests, frame_result *results) {
  hs_status st = picture_sources(c, pictures, count, on_device, requests);
  for (int32_t i = 0; i < count && st == HS_OK; i++)
    st = image_view_filter(c, &pictures[i]->image, NULL, &requests[i].filter);
  if (st != HS_OK) return st;
  const bool decoded = requests[0].source_on_device;
  const frame_placement placement = {.group = count, .source_on_device = decoded, .decoded = decoded};
  st = run(c, &pictures[0]->image, requests, &placement, results);
  if (!decoded || st != HS_OK || c->engine->decoder->refused(c) < 0) return st;
  return run_from(c, pictures, false, count, requests, results);
}

hs_status small_images_run(hs_context *c, const hs_source *const *pictures, int32_t count, hs_features *views) {
  frame_request requests[FRAME_GROUP_MAX];
  frame_result results[FRAME_GROUP_MAX];
  assert(count >= 1 && count <= FRAME_GROUP_MAX);
  context_clear_error(c);
  for (int32_t i = 0; i < count; i++)
    requests[i] = (frame_request){.descriptor_bytes = features_descriptor_bytes(c->options.descriptor),
                                  .equalize = c->options.equalize != 0};
  const hs_status st = run_from(c, pictures, true, count, requests, results);
  for (int32_t i = 0; i < count && st == HS_OK; i++)
    views[i] = (hs_features){.count = results[i].count,
                             .keypoints = (hs_keypoint *)(uintptr_t)results[i].keypoints,
                             .descriptors = (void *)(uintptr_t)results[i].descriptors,
                             .frames = (hs_frame *)(uintptr_t)results[i].frames,
                             .descriptor_type = c->options.descriptor,
                             .image_width = pictures[i]->image.width,
                             .image_height = pictures[i]->image.height,
                             .origin = context_origin(c, &pictures[i]->image)};
  return st;
}
