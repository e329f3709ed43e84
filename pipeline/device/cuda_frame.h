/*
 * A frame on a CUDA device: what a context holds there, and one frame from picture to features.
 *
 * One frame is one graph, recorded for the second frame of a geometry and then replayed. All device memory is one slab
 * laid out by pipeline/device/cuda_plan.c; results are written by the kernels straight into pinned host memory. In a
 * build without CUDA the same functions fail and say so.
 */
#ifndef HARTSIFT_DEVICE_CUDA_FRAME_H
#define HARTSIFT_DEVICE_CUDA_FRAME_H

#include "cuda/device/stream.h"
#include "pipeline/base/features.h"
#include "pipeline/context/context.h"

/* Opens device options.device_index for the context: context->cuda. On failure it stays null and message says why.
   Statuses: HS_ERR_NO_DEVICE, HS_ERR_OPTION (a variant's name), HS_ERR_MEMORY. */
hs_status cuda_frame_create(hs_context *context, const char *variant, char *message, size_t message_bytes);
/* The same as owner's device, with its variants. Statuses as above. */
hs_status cuda_frame_clone(hs_context *context, const hs_context *owner, char *message, size_t message_bytes);
void cuda_frame_destroy(hs_context *context);

/* Makes *features the owner of features that *found views in a set of results (hs_features_free gives the pinned memory
   back, see cuda_result_pool.h), or of a copy: of few features, where the caller has an allocator, where too much is lent
   already. Statuses: as features_reserve. */
hs_status cuda_frame_give(hs_context *context, int32_t set, const hs_features *found, hs_features *features);
/* Frames that follow leave their results in this set of pinned memory; those of the other set stay. */
enum { CUDA_RESULT_SETS = 2 };
void cuda_frame_use_results(hs_context *context, int32_t set);

/* Keypoints that a frame describes instead of detecting any; cuda_given.h has their lists. */
typedef struct cuda_given {
  uint32_t count, capacity; /* of the list; count 0: the frame detects */
  bool oriented;            /* each brings its one feature; else orientations are computed */
  int32_t octaves;          /* the first so many are built */
} cuda_given;

/* The stream a frame runs on (null: the context's), where its picture and mask lie, and where its results are to be. */
typedef struct cuda_frame_place {
  cuda_stream stream;
  bool source_on_device; /* picture and mask are there already; else in host memory */
  bool decoded;          /* there it is what cuda_jpeg_decode left: where that refused one, the results are nothing */
  bool resident;         /* results stay on the device */
  int32_t group; /* > 1: pictures of one size, type and layout, without masks, in the same launches, with results
                            on the host; only where cuda_frame_groups */
  int32_t
      octaves; /* > 0: only so many are computed, fewer than the image has; level 0 of the next one goes to the host */
  cuda_given given; /* in host memory alone, with results there too */
} cuda_frame_place;

/* The features of a frame, in memory of the context until its next frame: pinned host memory, or device memory where
   results were to stay. */
typedef struct cuda_frame_result {
  uint32_t count;
  const hs_keypoint *keypoints;
  const void *descriptors;
  const hs_frame *frames; /* null without shapes */
} cuda_frame_result;

enum { CUDA_GROUP_MAX = 64 };
/* Whether the context's options and variants have kernels for groups. */
bool cuda_frame_groups(const hs_context *context);

/* Runs a frame, or a group: then requests and results are arrays of place->group. */
hs_status cuda_frame_run(hs_context *context, const frame_request *request, const cuda_frame_place *place,
                         cuda_frame_result *result);

/* The same in two halves, with the host's own work between them. cuda_frame_begin starts the frame. With place->octaves,
   cuda_frame_handed_over waits for the level from which the CPU goes on; it stays in pinned memory until the next frame.
   After cuda_frame_begin the frame must be ended, even if something failed in between. *repeat: a list overflowed and has
   been grown, so the frame must be run again from the beginning. */
hs_status cuda_frame_begin(hs_context *context, const frame_request *request, const cuda_frame_place *place);
hs_status cuda_frame_handed_over(hs_context *context, plane_view *level);
hs_status cuda_frame_end(hs_context *context, const cuda_frame_place *place, cuda_frame_result *result, bool *repeat);

/* Room in the pinned results beyond the features of a frame's own lists, from the next frame on. */
void cuda_frame_want_room(hs_context *context, uint32_t features);
/* Features that the pinned results of the last frame have room for, and the results themselves to write to. */
uint32_t cuda_frame_room(const hs_context *context, feature_records *records);

/* How many frames of a size may have their memory on the device at once, so that half of it stays free; 1 or more. */
int32_t cuda_frame_lanes(hs_context *context, int32_t width, int32_t height);

/* One "stage: variant" a line. Returns the characters written, as snprintf. */
int cuda_frame_report(const hs_context *context, char *text, size_t bytes);

/* Bytes held on the device, and pinned on the host. */
void cuda_frame_memory(const hs_context *context, uint64_t *device_bytes, uint64_t *pinned_bytes);

/* The same for frames of a size, before any memory is taken: 8-bit gray without a mask, results on the host. */
hs_status cuda_frame_query(hs_context *context, int32_t width, int32_t height, uint64_t *device_bytes,
                           uint64_t *pinned_bytes);

#endif
