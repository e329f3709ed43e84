/*
 * A context's state on its device, which cuda_frame.c and cuda_record.c share.
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

   Words that are zero between calls, and scratch memory that grows to the largest call. Calls on different streams
   share both, so an event orders them. */

typedef struct cuda_primitives {
  unsigned char *zeros; /* device; null before the first call */
  unsigned char *slab;  /* device */
  size_t slab_bytes;
  cuda_event done; /* recorded after the last call's work */
  double *taps;    /* host: the taps to upload */
  size_t tap_capacity;
} cuda_primitives;

/* Frees the memory; the device must be the current one. */
void cuda_primitives_free(cuda_primitives *primitives, const hs_allocator *allocator);

/* Bytes held on the device. */
size_t cuda_primitives_bytes(const cuda_primitives *primitives);

/* ------------------------------------------------------------------ the state */

/* Variants of the paper's mechanisms. The first value of each is the default. Of the pyramid, SPLIT and UBER_CHAINS
   make small octaves by chains, which store no DoG; the others have a launch for each level. */
typedef enum pyramid_variant {
  PYRAMID_SPLIT,
  PYRAMID_LEVELS, /* no DoG is stored */
  PYRAMID_DOG,    /* a separate kernel stores each DoG */
  PYRAMID_UBER,
  PYRAMID_UBER_CHAINS
} pyramid_variant;

typedef struct cuda_variants {
  pyramid_variant pyramid;
  cuda_refine_variant refine;
  cuda_orient_variant orient;
  cuda_describe_variant describe;
} cuda_variants;

/* Side streams: each octave's stream runs its work that remains when the next octave has begun. The smallest octaves
   share the last stream. */
enum { SIDE_STREAMS = 8, UPLOAD_BANDS_MAX = 8, STAGING_SLOTS = 2 };

/* The results of a frame, in one block of the pool: `features` records, followed by frames and descriptors. */
typedef struct result_set {
  cuda_result_block *block; /* null: none yet */
  hs_keypoint *records;
  hs_frame *frames;           /* null: keypoints have no shapes */
  unsigned char *descriptors; /* null: no descriptors are wanted */
  uint32_t features;
} result_set;

/* Layout of the candidate masks of a frame. Each octave's masks begin on a multiple of four words. The search does not
   write the words between two octaves. */
typedef struct mask_layout {
  /* first_byte: in the slab; picture_bytes: from one picture of a group to the next */
  size_t first_byte, picture_bytes;
  int32_t group;
  int32_t octaves_searched; /* masks of later octaves stay clear */
  uint32_t words, offset[OCTAVES_MAX];
} mask_layout;

/* Pinned words that a frame and the host exchange: counts for the host, addresses of results for the kernels. */
typedef struct frame_readback {
  cuda_frame_counts counts[FRAME_GROUP_MAX]; /* of each picture of the group */
  cuda_tile_counts tile_counts[TILE_SLOTS];  /* of the tile in each slot */
  cuda_outputs outputs;                      /* addresses of the frame's results, written by the host */
  uint32_t handed_over;                      /* 1: the handed-over level is complete; cleared by the host */
  cuda_outputs tile_outputs[TILE_SLOTS];     /* addresses of each tile's results, written by the host */
  uint32_t refused[JPEG_GROUP_MAX];          /* for each decoded picture; not 0: libjpeg must decode it */
} frame_readback;

/* State of JPEG decoding, shared by a context and its workers. */
typedef struct cuda_jpeg {
  decoder_state state;
  char reason[JPEG_REASON_BYTES];
  atomic_size_t packed_max, decoded_max; /* largest request of a context that shares this, bytes */
} cuda_jpeg;

/* Memory of a context for matching on its device. */
typedef struct cuda_match_state {
  unsigned char *slab; /* device */
  size_t slab_bytes;
  void *pinned, *d_pinned; /* its addresses on the host and on the device */
  size_t pinned_bytes;
} cuda_match_state;

typedef struct cuda_state {
  int32_t device;
  device_info info;
  cuda_variants variants;
  cuda_stream stream, side[SIDE_STREAMS], keypoint; /* keypoint: for the stages after the search */
  cuda_event begun, forked[OCTAVES_MAX], searched, listed, described, joined[SIDE_STREAMS];
  cuda_event equalizing;
  cuda_event ended;   /* recorded at a frame's end, until which workers sleep */
  cuda_event crossed; /* orders a caller's stream and the context's */
  cuda_stream upload; /* for bands of a picture, while the base of earlier bands is computed */
  cuda_event uploaded[UPLOAD_BANDS_MAX];

  vote_scales *scales; /* device */
  unsigned char *slab; /* device */
  size_t slab_bytes;
  frame_readback *readback, *d_readback; /* pinned */
  float *handover, *d_handover;          /* pinned: level 0 of the first octave that the host computes */
  size_t handover_floats;
  unsigned char *slots; /* pinned, STAGING_SLOTS slots: parts of pageable pictures on their way to the device */
  size_t slot_bytes;
  cuda_event slot_copied[STAGING_SLOTS];
  bool staged;               /* the frame's pictures are uploaded through the slots */
  stage_queue *copiers;      /* threads that copy pictures into the slots; null: the caller does */
  unsigned char *user_lists; /* pinned: lists of user keypoints */
  uint32_t user_capacity;
  uint32_t user_overflow;  /* features of the last user-keypoint frame if they exceeded its list; 0: they did not */
  uint32_t extra_capacity; /* capacity of the results in features, beyond the capacity of a frame's lists */
  cuda_result_pool *pool;  /* shared by a context and its workers */
  result_set results[RESULT_SETS];
  int32_t set; /* index of the set in use */
  uint64_t memory_generation;
  cuda_event tile_ended[TILE_SLOTS];
  cuda_jpeg *jpeg;       /* shared by a context and its workers */
  unsigned char *packed; /* pinned: encoded pictures, packed for decoding */
  size_t packed_bytes;
  unsigned char *decoded; /* device: decoded pictures and the decoder's scratch */
  size_t decoded_bytes;
  int32_t decoded_count; /* pictures in `decoded` */
  bool decoding;         /* the stream may still be reading `packed` */
  unsigned char *zeros; /* device: histogram words, zero before and after each use; null until a picture is equalised */

  frame_plan plan;           /* of the frame being prepared */
  size_t untiled_bytes;      /* slab bytes of the last frame without tiles; SIZE_MAX: too large for the type */
  uint32_t kept_capacity;    /* features of each picture that the results have room for */
  uint64_t expected_samples; /* samples of the first octave, which decided kept_capacity; 0: the options did */
  uint32_t mask_offset[OCTAVES_MAX], mask_words;
  mask_layout cleared_masks; /* layout for which the words between octaves are zero */
  size_t picture_pitch, mask_pitch;
  int32_t octaves_searched; /* octaves of the plan that are searched; pooled descriptors also read later ones */
  graph_cache graphs;
  launch_list *launches; /* of a frame met for the first time; null until needed */

  cuda_primitives primitives;
  cuda_match_state *matching; /* null until the first matching */
} cuda_state;

/* Returns a context's state; null if the context works on the CPU. */
static inline cuda_state *cuda_of(const hs_context *c) { return c->engine_state; }

/* Returns the capacities of a frame's lists: the same for its plan and its recording. */
static inline cuda_keypoint_capacity cuda_list_capacity(uint32_t mask_words, uint32_t keypoints, uint32_t features,
                                                        uint32_t grid_cells) {
  return (cuda_keypoint_capacity){mask_words, keypoints, features, grid_cells};
}

/* Device addresses that a recorded frame reads and writes. */
typedef struct record_target {
  source_view source, base;           /* source: the uploaded picture; base: the same or its equalised gray */
  cuda_outputs outputs;               /* not recorded: a recorded frame reads them from the readback */
  bool base_apart;                    /* the base is computed during the upload, outside the graph */
  int32_t group;                      /* number of pictures, 1 or more; each has its part of the slab */
  const cuda_frame_view *group_views; /* device memory; null for a single picture */
  plane_view handover; /* level 0 of the octave after the last, in mapped memory; data null: not wanted */
  user_keypoints user_keypoints;
} record_target;

/* Returns a buffer of the plan in the slab; null if the plan has none. */
static inline unsigned char *cuda_slab_buffer(const cuda_state *state, plan_buffer which) {
  const plan_entry *entry = plan_find(&state->plan, which, 0);
  return entry ? state->slab + entry->offset : NULL;
}

/* Frees state->matching. */
void cuda_match_destroy(hs_context *context);

/* Frees the memory for packed and for decoded pictures; waits for the device. */
void cuda_jpeg_drop(cuda_state *state);
/* Frees the memory for decoded pictures only. */
void cuda_jpeg_drop_decoded(cuda_state *state);

/* Uploads user keypoints to the lists of the frame being prepared. */
stage_status cuda_user_keypoints_upload(const cuda_state *state, const user_keypoints *user, cuda_stream stream);
/* Returns the pinned bytes held for user keypoints. */
size_t cuda_user_keypoints_bytes(const cuda_state *state);

/* Returns the arguments for making the first octave's base from a picture on the device. */
base_args cuda_base_args(const hs_context *context, const source_view *source);

/* Returns the number of bands in which a picture is uploaded to `source`, on the device, while its base is made. 1: the
   picture is uploaded at once, and its base is part of the graph. */
int32_t cuda_upload_bands(const hs_context *context, const frame_placement *placement, const source_view *source);
/* Returns the pinned bytes through which such a picture is staged. */
size_t cuda_staging_bytes(const source_view *source);
/* Allocates the pinned memory through which pictures in pageable memory are uploaded. */
stage_status cuda_upload_memory(hs_context *context, const frame_request *request, const frame_placement *placement);
/* Uploads picture and mask on `stream`. With bands > 1, also makes the base of octave 0. */
stage_status cuda_upload(const hs_context *context, const frame_request *request, const record_target *target,
                         int32_t bands, cuda_stream stream);

/* Fills views[target->group], one for each picture of a group; their group_views stay unset. */
void cuda_record_views(const hs_context *context, const frame_request *request, const record_target *target,
                       cuda_frame_view *views);

/* Enqueues a frame of at least one octave on state->stream and its side streams, which it joins. May be captured. */
stage_status cuda_record_frame(const hs_context *context, const frame_request *request, const record_target *target);

/* Finds or makes the graph of a frame; null: launch the frame kernel by kernel. Sets target->group_views. */
hs_status cuda_graph_of(hs_context *context, const frame_request *request, const frame_placement *placement,
                        record_target *target, cuda_graph *graph);
/* Launches the frame in the order of `stream`: its graph, or kernel by kernel if that is null. After a failure, work
   may still be running on all streams of the state. */
stage_status cuda_launch_frame(const hs_context *context, const frame_request *request, const record_target *target,
                               cuda_graph graph, cuda_stream stream);
/* cuda_graphs_drop: before memory that graphs address is reallocated. cuda_graphs_free: at the end. */
void cuda_graphs_drop(cuda_state *state);
void cuda_graphs_free(cuda_state *state);

/* ------------------------------------------------------------------ */

/* Names of the CUDA backend's variants: each of HartSift's mechanisms and its alternative. */

/* Reads "stage=name,..."; stages not named keep the defaults, as all do if text is null. False: a name is unknown, and
   message lists the known ones. */
bool cuda_variants_parse(cuda_variants *variants, const char *text, char *message, size_t message_bytes);

/* Writes one line "stage: name" per stage. Returns the characters written, as snprintf. */
int cuda_variants_report(const cuda_variants *variants, char *text, size_t bytes);

/* ------------------------------------------------------------------ */

/* Memory for a frame on a device: one slab laid out by a plan, and pinned memory for results and for the level from
   which the CPU continues (hybrid). Graphs with addresses of reallocated memory are dropped. */

/* Returns the number of pictures that share the frame's launches. */
static inline size_t cuda_group_of(const frame_placement *placement) {
  return placement->group > 1 ? (size_t)placement->group : 1;
}

/* Returns whether any filter of the options needs a work plane. */
bool cuda_wants_blur_work(const hs_context *context);

/* Makes the slab at least `bytes` large. */
hs_status cuda_make_slab(hs_context *context, size_t bytes);
/* Makes the plan of a frame: sets state->plan and untiled_bytes, the bytes of its slab. Statuses: HS_ERR_LIMIT: a size
   does not fit; untiled_bytes is then SIZE_MAX. */
hs_status cuda_plan_memory(hs_context *context, const frame_request *request, const frame_placement *placement);
/* Makes plan and slab for a frame. */
hs_status cuda_make_memory(hs_context *context, const frame_request *request, const frame_placement *placement);
/* Allocates pinned memory for the results of `group` pictures and of extra_capacity further features. */
hs_status cuda_make_result_memory(hs_context *context, size_t group, size_t descriptor_bytes);
/* Returns whether a picture of the last frame has more features than its results have room for. If so, notes the count,
   so that the next frame has the room. */
bool cuda_outgrows_results(hs_context *context, uint32_t features);
/* Allocates pinned memory for the handed-over level: level 0 of the octave after the plan's last. */
hs_status cuda_make_handover_memory(hs_context *context);

/* Returns the handed-over level at `data`, an address of the host or of the device. */
plane_view cuda_handover_plane(const cuda_state *state, float *data);

/* ------------------------------------------------------------------ */

/* Equalisation on a device (options.equalize), between the upload and the base of a frame. */

/* Returns the bytes from row to row of a picture's equalised gray; 0 if the gray overwrites the picture. */
size_t cuda_equalized_pitch(const source_view *source);

/* Device memory of histograms: one for each that runs at the same time, zero before and after each use. */
enum { CUDA_EQUALIZE_BYTES = SIDE_STREAMS * (int)sizeof(histogram_scratch) };
stage_status cuda_equalize_memory(cuda_state *state);

/* Enqueues the equalisation of target->source into target->base on state->stream. A group also uses the side streams,
   which this joins. May be captured. */
stage_status cuda_record_equalize(const hs_context *context, const record_target *target);

/* ------------------------------------------------------------------ */

/* Messages for failed calls of a context's device: the step that failed and CUDA's reason or, if the device's memory is
   full, how much was needed and how much is free. */

struct cuda_state;

/* Records the failure and returns its status: HS_ERR_MEMORY, HS_ERR_DEVICE or, for STAGE_OVERFLOW, HS_ERR_LIMIT. */
hs_status cuda_failure(hs_context *context, stage_status status, const char *what);

/* Like cuda_failure, after a request for `needed` bytes of device memory for `what`. */
hs_status cuda_memory_failure(hs_context *context, stage_status status, const char *what, size_t needed);

/* Refuses a stream of another CUDA context: HS_ERR_ARGUMENT. stream: may be null. The device must be entered. */
hs_status cuda_check_stream(hs_context *context, cuda_stream stream);

/* Writes that the device's memory is full, in the words of device_reason_memory. */
void cuda_memory_reason(const struct cuda_state *state, const char *what, size_t needed, char *reason, size_t bytes);

/* ------------------------------------------------------------------ the plan of a frame in tiles (cuda_tile_plan.c)

   A tile's levels are made on a crop of the picture as if the crop were the picture. The border rule is wrong at
   the crop's inner edges; these errors stay within the margins of tile_plan.h. */

/* Further inputs of a tiled plan. */
typedef struct cuda_tile_needs {
  size_t pixel_bytes; /* of the picture */
  bool blur_work;     /* some filter needs a work plane */
  size_t (*scratch_bytes)(uint32_t mask_words, uint32_t keypoints, uint32_t features);
} cuda_tile_needs;

/* Makes the plan with tiles of `side` samples. request has params, filters and detect_reads_top. plan->request gets the
   capacities of a tile's lists. False: a size does not fit. */
bool cuda_tile_plan_make(const plan_request *request, const cuda_tile_needs *needs, int32_t side, frame_plan *plan);

/* Returns the crop for a tile of an octave, in samples of that octave. Except at the octave's ends, x0 is a multiple of
   64 and the other edges are multiples of 16. */
plane_region cuda_tile_crop(const plan_request *request, const pyramid_geometry *geometry, int32_t octave,
                            const plane_region *core);

/* Returns the pixels from which a crop of the first octave is made. */
plane_region cuda_tile_pixels(const plan_request *request, const pyramid_geometry *geometry, const plane_region *crop);

/* Finds the rows [*y0, *y1) of the picture for the tile `core` of the first octave. They also suffice for the tile's
   parts and for candidates that leave it, which move by one sample per step. */
void cuda_tile_rows(const plan_request *request, const pyramid_geometry *geometry, const plane_region *core,
                    int32_t *y0, int32_t *y1);

/* Sets *bytes to the most that the rows of cuda_tile_rows take, at row_bytes each. False: a size does not fit. */
bool cuda_tile_band_bytes(const frame_plan *plan, size_t row_bytes, size_t *bytes);

/* cuda_tile_pitch: bytes from row to row of a crop of the picture. cuda_tile_base_stride: floats from row to row of the
   base of an octave after the first. */
size_t cuda_tile_pitch(const frame_plan *plan, size_t pixel_bytes);
size_t cuda_tile_base_stride(const frame_plan *plan, int32_t octave);

/* Returns the pinned bytes of one tile's results. */
size_t cuda_tile_result_bytes(const frame_plan *plan);

#endif
