/* Frames of several images at once, on a GPU. */
#include "pipeline/batch_frame.h"

#include "cpu/float_environment.h"
#include "pipeline/cuda_frame.h"
#include "pipeline/features.h"
#include "pipeline/image_view.h"

/* A batch is chosen so large that its first octaves together have this many samples: from there on launches are no longer
   what its time goes to. */
enum { BATCH_SAMPLES = 4 << 20, BATCH_CHOSEN_MAX = 32 };

int32_t batch_frame_most(const hs_context *c, const hs_image *image) {
  const hs_options *o = &c->options;
  if (!c->cuda || o->device == HS_DEVICE_HYBRID || o->max_memory_bytes > 0 || o->equalize || o->grid_columns > 0 ||
      !cuda_frame_batches(c))
    return 1;
  const int32_t doubling = o->first_octave < 0 ? 1 : 0;
  const int64_t samples =
      (((int64_t)image->width * image->height) << (2 * doubling)) >> (o->first_octave > 0 ? 2 * o->first_octave : 0);
  int32_t wanted = o->batch, most = 1;
  if (wanted == 0)
    wanted = samples * BATCH_CHOSEN_MAX <= BATCH_SAMPLES ? BATCH_CHOSEN_MAX : (int32_t)(BATCH_SAMPLES / (samples + 1));
  while (2 * most <= wanted && 2 * most <= CUDA_BATCH_MAX) most *= 2;
  return most;
}

bool batch_frame_alike(const hs_image *a, const hs_image *b) {
  return a->width == b->width && a->height == b->height && a->type == b->type && a->layout == b->layout &&
         a->range_low == b->range_low && a->range_high == b->range_high;
}

hs_status batch_frame_run(hs_context *c, const hs_image *const *images, int32_t count, hs_features *views) {
  frame_request requests[CUDA_BATCH_MAX];
  cuda_frame_result results[CUDA_BATCH_MAX];
  const cuda_frame_place place = {.batch = count};
  assert(count >= 1 && count <= CUDA_BATCH_MAX);
  c->error[0] = '\0';
  for (int32_t i = 0; i < count; i++) {
    requests[i] = (frame_request){.descriptor_bytes = features_descriptor_bytes(c->options.descriptor)};
    hs_status st = image_view_source(c, images[i], &requests[i].source);
    if (st == HS_OK) st = image_view_filter(c, images[i], NULL, &requests[i].filter);
    if (st != HS_OK) return st;
  }
  float_environment saved;
  float_environment_enter(&saved);
  const hs_status st = cuda_frame_run(c, requests, &place, results);
  float_environment_leave(&saved);
  for (int32_t i = 0; i < count && st == HS_OK; i++)
    views[i] = (hs_features){.count = results[i].count,
                             .keypoints = (hs_keypoint *)(uintptr_t)results[i].keypoints,
                             .descriptors = (void *)(uintptr_t)results[i].descriptors,
                             .descriptor_type = c->options.descriptor,
                             .image_width = images[i]->width,
                             .image_height = images[i]->height};
  return st;
}
