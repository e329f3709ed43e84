/* The public calls that match lists in device memory. */
#include "cpu/schedule/float_environment.h"
#include "pipeline/base/adopt.h"
#include "pipeline/include/hartsift_cuda.h"
#include "pipeline/matching/match_call.h"

/* Returns a list in device memory as hs_features, for the checks of the host's calls, which do not read the arrays. */
static hs_features device_list(const hs_cuda_features *f) {
  return (hs_features){.count = f->count,
                       .keypoints = (hs_keypoint *)(uintptr_t)f->keypoints,
                       .descriptors = (void *)(uintptr_t)f->descriptors,
                       .descriptor_type = f->descriptor_type,
                       .origin = f->origin};
}

static hs_status match_resident(hs_context *c, const hs_cuda_features *first, const hs_cuda_features *second,
                                const hs_match_options *options, void *stream, hs_matches *matches,
                                hs_nearest *nearest) {
  const match_placement device = {stream, true};
  match_request request;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!first || !second || (!matches && !nearest && first->count > 0))
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "a list of features or the result is null");
  if (!c->engine->matching) return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, "the context works on the CPU");
  if (!RESERVED_IS_CLEAR(first->reserved) || !RESERVED_IS_CLEAR(second->reserved))
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "features.reserved is set: start with {0}, or use a later library");
  const hs_features a = device_list(first), b = device_list(second);
  const hs_status st = match_check(c, &a, &b, options, &request);
  return st == HS_OK ? match_run(c, &request, &device, matches, nearest) : st;
}

hs_status hs_cuda_match(hs_context *c, const hs_cuda_features *first, const hs_cuda_features *second,
                        const hs_match_options *options, void *stream, hs_matches *matches) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (c && !matches) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "matches is null");
  return match_resident(c, first, second, options, stream, matches, NULL);
}

hs_status hs_cuda_find_nearest(hs_context *c, const hs_cuda_features *first, const hs_cuda_features *second,
                               const hs_match_options *options, void *stream, hs_nearest *nearest) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return match_resident(c, first, second, options, stream, NULL, nearest);
}
