/* The public calls for pictures or results in device memory. */
#include "pipeline/include/hartsift_cuda.h"

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/features.h"
#include "pipeline/context/engine.h"
#include "pipeline/context/image_view.h"
#include "pipeline/context/options.h"
#include "pipeline/frame/run_frame.h"

/* Checks and runs a frame whose picture is in device memory. */
static hs_status run(hs_context *c, const hs_image *image, const hs_image *mask, const frame_placement *placement,
                     frame_result *result) {
  if (!c->engine->offloads) return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, "the context works on the CPU");
  frame_request request = {.descriptor_bytes = features_descriptor_bytes(c->options.descriptor),
                           .equalize = c->options.equalize != 0};
  hs_status st = image_view_source(c, image, &request.source);
  if (st == HS_OK) st = image_view_filter(c, image, mask, &request.filter);
  if (st != HS_OK) return st;
  if (placement->resident && options_use_grid(&c->options) && options_device_cells(&c->options) == 0)
    return CONTEXT_FAIL(
        c, HS_ERR_UNSUPPORTED,
        "options.grid_columns x grid_rows is %d x %d; results that stay on the device allow at most %d cells",
        c->options.grid_columns, c->options.grid_rows, OPTIONS_DEVICE_CELLS_MAX);
  st = c->engine->run(c, &request, placement, result);
  if (st == HS_OK && !placement->resident) st = grid_choice_result(c, &request, result);
  return st;
}

hs_status hs_cuda_extract_resident(hs_context *c, const hs_image *image, const hs_image *mask, void *stream,
                                   hs_cuda_features *features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!image || !features) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "image or features is null");
  const frame_placement placement = {.stream = stream, .source_on_device = true, .resident = true};
  frame_result result = {0};
  const hs_status st = run(c, image, mask, &placement, &result);
  if (st != HS_OK) return st;
  *features = (hs_cuda_features){.count = result.count,
                                 .keypoints = result.keypoints,
                                 .descriptors = result.descriptors,
                                 .frames = result.frames,
                                 .descriptor_type = c->options.descriptor,
                                 .image_width = image->width,
                                 .image_height = image->height,
                                 .origin = context_origin(c, image)};
  return HS_OK;
}

hs_status hs_cuda_extract(hs_context *c, const hs_image *image, const hs_image *mask, void *stream,
                          hs_features *features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!image || !features) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "image or features is null");
  const frame_placement placement = {.stream = stream, .source_on_device = true};
  frame_result result = {0};
  hs_status st = run(c, image, mask, &placement, &result);
  if (st != HS_OK) return st;
  const hs_features found = {.count = result.count,
                             .keypoints = (hs_keypoint *)(uintptr_t)result.keypoints,
                             .descriptors = (void *)(uintptr_t)result.descriptors,
                             .frames = (hs_frame *)(uintptr_t)result.frames,
                             .descriptor_type = c->options.descriptor,
                             .image_width = image->width,
                             .image_height = image->height,
                             .origin = context_origin(c, image)};
  st = c->engine->give(c, 0, &found, features);
  return st == HS_OK ? st : CONTEXT_FAIL(c, st, "out of memory for %u features", result.count);
}
