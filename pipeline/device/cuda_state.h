/*
 * What cuda_frame.c and cuda_record.c share: a context's state on its device.
 */
#ifndef HARTSIFT_DEVICE_CUDA_STATE_H
#define HARTSIFT_DEVICE_CUDA_STATE_H

#include <stdatomic.h>

#include "cuda/keypoints/keypoints_cuda.h"
#include "cuda/primitives/primitives_cuda.h"
#include "cuda/pyramid/pyramid_cuda.h"
#include "cuda/runtime/device.h"
#include "pipeline/base/memory.h"
#include "pipeline/context/context.h"
#include "pipeline/context/tile_plan.h"
#include "pipeline/device/cuda_engine.h"
#include "pipeline/device/cuda_graph_cache.h"
#include "pipeline/device/cuda_result_pool.h"
#include "stages/image.h"

/* ------------------------------------------------------------------ memory of the primitives (cuda_primitives.c)

   Words that are zero between calls, scratch memory that grows to the largest call, and the order of calls on different
   streams, which share both. */

typedef struct cuda_primitives {
  unsigned char *zeros; /* device; null before the first call */
  unsigned char *slab;  /* device */
  size_t slab_bytes;
  cuda_event done; /* the last call's work */
  double *taps;    /* host, as they are uploaded */
  size_t tap_capacity;
} cuda_primitives;

/* The device is the current one. */
void cuda_primitives_free(cuda_primitives *primitives, const hs_allocator *allocator);

/* Bytes held on the device. */
size_t cuda_primitives_bytes(const cuda_primitives *primitives);

/* ------------------------------------------------------------------ the state */

/* How the paper's mechanisms are set; the first of each is the default. */
typedef enum pyramid_variant { PYRAMID_SPLIT, PYRAMID_UBER } pyramid_variant;

typedef struct cuda_variants {
  pyramid_variant pyramid;
  cuda_refine_variant refine;
  cuda_orient_variant orient;
  cuda_describe_variant describe;
} cuda_variants;

/* Side streams: one for each octave's work that remains when the next octave has begun; the smallest octaves share the
   last. */
enum { SIDE_STREAMS = 8, UPLOAD_BANDS_MAX = 8, STAGING_SLOTS = 2 };

/* The results of a frame: a block of the pool for so many records, followed by frames and descriptors. */
typedef struct result_set {
  cuda_result_block *block; /* null: none yet */
  hs_keypoint *records;
  hs_frame *frames;           /* null: there are no shapes */
  unsigned char *descriptors; /* null: none wanted */
  uint32_t features;
} result_set;

/* Where the candidates' masks of a frame lie. Octaves begin on multiples of four words; the search writes none of those
   between. */
typedef struct mask_layout {
  size_t first_byte, picture_bytes; /* in the slab; from one picture of a group to the next */
  int32_t group;
  int32_t octaves_searched; /* the masks of the others stay clear */
  uint32_t words, offset[OCTAVES_MAX];
} mask_layout;

/* Words between a frame and the host: counts read back, and addresses of results. */
typedef struct frame_readback {
  cuda_frame_counts counts[FRAME_GROUP_MAX]; /* of each picture */
  cuda_tile_counts tile_counts[TILE_SLOTS];  /* of the tiles under way */
  cuda_outputs outputs;                      /* written by the host: where the frame's results go */
  uint32_t handed_over;                      /* 1: the level is there; the host clears it */
  cuda_outputs tile_outputs[TILE_SLOTS];     /* written by the host */
  uint32_t refused[JPEG_GROUP_MAX];          /* of each picture decoded: 0, or libjpeg is to decide */
} frame_readback;

/* What a context and its workers know of decoding JPEGs. */
typedef struct cuda_jpeg {
  decoder_state state;
  char reason[JPEG_REASON_BYTES];
  atomic_size_t packed_max, decoded_max; /* bytes that any of them has wanted */
} cuda_jpeg;

/* What a context holds on its device for matching. */
typedef struct cuda_match_state {
  unsigned char *slab; /* device */
  size_t slab_bytes;
  void *pinned, *d_pinned; /* host memory, and its address on the device */
  size_t pinned_bytes;
  bool prepared;
} cuda_match_state;

typedef struct cuda_state {
  int32_t device;
  device_info info;
  cuda_variants variants;
  cuda_stream stream, side[SIDE_STREAMS], keypoint; /* keypoint: what follows the search */
  cuda_event begun, forked[OCTAVES_MAX], searched, listed, described, joined[SIDE_STREAMS];
  cuda_event equalizing;
  cuda_event ended;   /* of a frame, for workers that sleep until then */
  cuda_event crossed; /* between a caller's stream and the context's */
  cuda_stream upload; /* bands of the picture, while the base of those that came is made */
  cuda_event uploaded[UPLOAD_BANDS_MAX];

  vote_scales *scales; /* device */
  unsigned char *slab; /* device */
  size_t slab_bytes;
  frame_readback *readback, *d_readback; /* pinned */
  float *handover, *d_handover;          /* pinned: level 0 of the first octave that the host works on */
  size_t handover_floats;
  unsigned char *slots; /* pinned, STAGING_SLOTS: parts of pictures in ordinary memory on their way to the device */
  size_t slot_bytes;
  cuda_event slot_copied[STAGING_SLOTS];
  bool staged;               /* the frame's pictures go that way */
  stage_queue *copiers;      /* that copy them there; null: the caller does */
  unsigned char *user_lists; /* pinned: lists of user keypoints */
  uint32_t user_capacity;
  uint32_t user_overflow;  /* overflow of the last user-keypoint frame; 0: none */
  uint32_t extra_capacity; /* extra result capacity */
  cuda_result_pool *pool;  /* a worker's is its owner's */
  result_set results[RESULT_SETS];
  int32_t set; /* the one in use */
  uint64_t memory_generation;
  cuda_event tile_ended[TILE_SLOTS];
  cuda_jpeg *jpeg;       /* a worker's is its owner's */
  unsigned char *packed; /* pinned: pictures on their way to be decoded */
  size_t packed_bytes;
  unsigned char *decoded; /* device: the pictures, and what they are decoded with */
  size_t decoded_bytes;
  int32_t decoded_count; /* pictures there */
  bool decoding;         /* the stream may still be reading the packed ones */
  unsigned char *zeros;  /* device: what histograms find zero and leave zero; null until a picture is equalised */

  frame_plan plan;           /* of the frame being prepared */
  size_t untiled_bytes;      /* that the last frame wanted of the device, in tiles or not */
  uint32_t kept_capacity;    /* features that the results have room for, of each of its pictures */
  uint64_t expected_samples; /* kept_capacity follows from what pictures of so many samples had; 0: from the options */
  uint32_t mask_offset[OCTAVES_MAX], mask_words;
  mask_layout cleared_masks; /* the words between octaves are zero there */
  size_t picture_pitch, mask_pitch;
  int32_t octaves_searched; /* of the plan's; windows of pooled descriptors reach into the others */
  graph_cache graphs;
  launch_list *launches; /* of a frame met first; null until there is one */

  cuda_primitives primitives;
  cuda_match_state *matching; /* null: nothing was matched yet */
} cuda_state;

/* A context's state; null: it works on the CPU. */
static inline cuda_state *cuda_of(const hs_context *c) { return c->engine_state; }

/* Room for a frame's lists, as its plan counts and its recording uses it. */
static inline cuda_keypoint_capacity cuda_list_capacity(uint32_t mask_words, uint32_t keypoints, uint32_t features,
                                                        uint32_t grid_cells) {
  return (cuda_keypoint_capacity){mask_words, keypoints, features, grid_cells};
}

/* What a recorded frame reads and writes, as addresses of the device. */
typedef struct record_target {
  source_view source, base; /* the picture as it was uploaded, and what the base is made of: its equalised gray */
  cuda_outputs outputs;     /* not recorded: a recorded frame takes them from the readback */
  bool base_apart;          /* the base is computed outside the graph, during the upload */
  int32_t group;            /* pictures, 1 or more, each with its part of the slab */
  const cuda_frame_view *group_views; /* device memory; null for one */
  plane_view handover; /* level 0 of the octave after the last, in mapped memory; null data: not wanted */
  user_keypoints user_keypoints;
} record_target;

/* A buffer of the plan in the slab, null where the plan has none. */
static inline unsigned char *cuda_slab_buffer(const cuda_state *state, plan_buffer which) {
  const plan_entry *entry = plan_find(&state->plan, which, 0);
  return entry ? state->slab + entry->offset : NULL;
}

/* Frees state->matching. */
void cuda_match_destroy(hs_context *context);

/* Frees the memory for packed and for decoded pictures; waits for the device. */
void cuda_jpeg_drop(cuda_state *state);
/* Pictures alone. */
void cuda_jpeg_drop_decoded(cuda_state *state);

/* User keypoints to the lists of the frame being prepared. */
stage_status cuda_user_keypoints_upload(const cuda_state *state, const user_keypoints *user, cuda_stream stream);
/* Pinned bytes held for them. */
size_t cuda_user_keypoints_bytes(const cuda_state *state);

/* The first octave's base from a picture on the device. */
base_args cuda_base_args(const hs_context *context, const source_view *source);

/* Bands in which a picture is uploaded to `source`, on the device, while its base is made: 1 where the base is part of
   the graph instead. */
int32_t cuda_upload_bands(const hs_context *context, const frame_placement *placement, const source_view *source);
/* Bytes that pictures need to be staged in. */
size_t cuda_staging_bytes(const source_view *source);
/* Pinned memory through which a picture in pageable memory is uploaded. */
stage_status cuda_upload_memory(hs_context *context, const frame_request *request, const frame_placement *placement);
/* Picture and mask to the device on `stream`, with the base of octave 0 when bands > 1. */
stage_status cuda_upload(const hs_context *context, const frame_request *request, const record_target *target,
                         int32_t bands, cuda_stream stream);

/* The views of the pictures of a group, [target->group], without group_views. */
void cuda_record_views(const hs_context *context, const frame_request *request, const record_target *target,
                       cuda_frame_view *views);

/* Enqueues a frame of at least one octave on state->stream (and its side streams, which it joins); may be captured. */
stage_status cuda_record_frame(const hs_context *context, const frame_request *request, const record_target *target);

/* The graph of a frame; null where it is to be launched kernel by kernel. Sets target->group_views. */
hs_status cuda_graph_of(hs_context *context, const frame_request *request, const frame_placement *placement,
                        record_target *target, cuda_graph *graph);
/* Launches the frame in the order of `stream`: the graph, or without one kernel by kernel. After a failure work may
   still be running on all streams of the state. */
stage_status cuda_launch_frame(const hs_context *context, const frame_request *request, const record_target *target,
                               cuda_graph graph, cuda_stream stream);
/* Before memory that frames use moves; at the end. */
void cuda_graphs_drop(cuda_state *state);
void cuda_graphs_free(cuda_state *state);

/* ------------------------------------------------------------------ */

/* Names of the CUDA backend's variants: the mechanisms of HartSift, each against its alternative. */

/* "stage=name,..." over the defaults; null: the defaults. False: a name is unknown, and message lists the known ones. */
bool cuda_variants_parse(cuda_variants *variants, const char *text, char *message, size_t message_bytes);

/* One "stage: name" a line. Returns the characters written, as snprintf. */
int cuda_variants_report(const cuda_variants *variants, char *text, size_t bytes);

/* ------------------------------------------------------------------ */

/* Memory for a frame on a device: one slab laid out by a plan, and pinned memory for results and for the level from
   which the CPU continues (hybrid). Graphs with addresses of reallocated memory are dropped. */

/* Pictures that share the frame's launches. */
static inline size_t cuda_group_of(const frame_placement *placement) {
  return placement->group > 1 ? (size_t)placement->group : 1;
}

/* Whether any filter of the options needs a work plane. */
bool cuda_wants_blur_work(const hs_context *context);

/* A slab of at least so many bytes. */
hs_status cuda_make_slab(hs_context *context, size_t bytes);
/* The plan of a frame: state->plan, and untiled_bytes, what its slab takes. Statuses: HS_ERR_LIMIT: a size does not fit, and
   untiled_bytes is SIZE_MAX. */
hs_status cuda_plan_memory(hs_context *context, const frame_request *request, const frame_placement *placement);
/* Plan and slab for a frame. */
hs_status cuda_make_memory(hs_context *context, const frame_request *request, const frame_placement *placement);
/* Pinned memory for the results of `group` pictures, and for those beyond a frame's own. */
hs_status cuda_make_result_memory(hs_context *context, size_t group, size_t descriptor_bytes);
/* Whether a picture of the frame that ended has more features than the results have room for; then the next will have it. */
bool cuda_outgrows_results(hs_context *context, uint32_t features);
/* Pinned memory for level 0 of the octave after the last of the plan. */
hs_status cuda_make_handover_memory(hs_context *context);

/* That level, at an address of the host's or the device's. */
plane_view cuda_handover_plane(const cuda_state *state, float *data);

/* ------------------------------------------------------------------ */

/* options.equalize on a device: between the upload and the base of a frame. */

/* Bytes from row to row of a picture's equalised gray; 0 where that takes the picture's own place. */
size_t cuda_equalized_pitch(const source_view *source);

/* Device memory of histograms, zero before and after each; one for each that runs at the same time. */
enum { CUDA_EQUALIZE_BYTES = SIDE_STREAMS * (int)sizeof(histogram_scratch) };
stage_status cuda_equalize_memory(cuda_state *state);

/* Enqueues the equalisation of target->source into target->base on state->stream and, for groups, the side streams, which
   it joins; may be captured. */
stage_status cuda_record_equalize(const hs_context *context, const record_target *target);

/* ------------------------------------------------------------------ */

/* The message for a failed call of a context's device: the step that failed, and CUDA's reason or, where the device's
   memory is full, how much was needed and how much is free. */

struct cuda_state;

/* Records the failure and returns its status: HS_ERR_MEMORY, HS_ERR_DEVICE or, for STAGE_OVERFLOW, HS_ERR_LIMIT. */
hs_status cuda_failure(hs_context *context, stage_status status, const char *what);

/* The same where `needed` bytes of device memory were asked for, for `what`. */
hs_status cuda_memory_failure(hs_context *context, stage_status status, const char *what, size_t needed);

/* That the device's memory is full, as device_reason_memory has it. */
void cuda_memory_reason(const struct cuda_state *state, const char *what, size_t needed, char *reason, size_t bytes);

/* ------------------------------------------------------------------ the plan of a frame in tiles (cuda_tile_plan.c)

   A tile's levels are made on a crop of the picture, as if that were all there is: what is wrong about the crop's inner
   edges, where the border rule must not hold, stays within the margins of tile_plan.h. */

/* What the plan depends on besides. */
typedef struct cuda_tile_needs {
  size_t pixel_bytes; /* of the picture */
  bool blur_work;     /* some filter wants a work plane */
  size_t (*scratch_bytes)(uint32_t mask_words, uint32_t keypoints, uint32_t features);
} cuda_tile_needs;

/* Makes the plan with tiles of `side` samples: request with params and filters, and detect_reads_top. plan->request has the
   capacities of a tile's lists. False: a size does not fit. */
bool cuda_tile_plan_make(const plan_request *request, const cuda_tile_needs *needs, int32_t side, frame_plan *plan);

/* The crop for a tile of an octave, in its samples: x0 a multiple of 64, the others of 16, but for the octave's own ends. */
plane_region cuda_tile_crop(const plan_request *request, const pyramid_geometry *geometry, int32_t octave,
                            const plane_region *core);

/* The pixels that a crop of the first octave is made of. */
plane_region cuda_tile_pixels(const plan_request *request, const pyramid_geometry *geometry, const plane_region *crop);

/* The rows [*y0, *y1) of the picture for the tile `core` of the first octave, for its parts, and for the samples where
   candidates from it may end that move by one sample a step. */
void cuda_tile_rows(const plan_request *request, const pyramid_geometry *geometry, const plane_region *core,
                    int32_t *y0, int32_t *y1);

/* Bytes of the most of such rows, of row_bytes each. False: a size does not fit. */
bool cuda_tile_band_bytes(const frame_plan *plan, size_t row_bytes, size_t *bytes);

/* Bytes from row to row of a crop of the picture, and from row to row of the base of an octave but the first, in floats. */
size_t cuda_tile_pitch(const frame_plan *plan, size_t pixel_bytes);
size_t cuda_tile_base_stride(const frame_plan *plan, int32_t octave);

/* Pinned bytes of one tile's results. */
size_t cuda_tile_result_bytes(const frame_plan *plan);

#endif
