/*
 * A context: its options, tables computed from them, its engine, and its slab of memory.
 */
#ifndef HARTSIFT_CONTEXT_CONTEXT_H
#define HARTSIFT_CONTEXT_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "pipeline/context/plan.h"
#include "pipeline/include/hartsift.h"
#include "pipeline/include/hartsift_expert.h"
#include "stages/image.h"
#include "stages/ops.h"
#include "stages/refine.h"

/* ------------------------------------------------------------------ the request for a frame */

/* Functions that give the rows of a picture one after another, while its file is decoded. */
typedef struct row_feed {
  void *reader;
  hs_status (*rewind)(void *reader);             /* restarts at the first row */
  hs_status (*read)(void *reader, uint8_t *row); /* reads the next row of row_bytes bytes */
  size_t row_bytes;
  const char *reason; /* reason of the last call's failure */
  hs_status failure;  /* status of a call that failed during the frame, with which the frame then ends */
} row_feed;

typedef struct frame_request {
  source_view source;
  row_feed *feed; /* source of rows; only in tiles, and source.data is then not valid; null: the picture is in memory */
  position_filter filter;
  size_t descriptor_bytes;           /* bytes of one descriptor; 0: keypoints and orientations only */
  const hs_keypoint *user_keypoints; /* keypoints to describe, without detection; null: detect */
  uint32_t user_count;
  hs_status *user_statuses; /* [user_count], written; only with user_keypoints */
  int32_t skipped_octaves;  /* number of first octaves that the GPU computes before it hands over a level */
  /* the level that is handed over: level 0 of the next octave; unused if no octave is skipped */
  plane_view handed_over;
  bool may_tile; /* may be processed in tiles if the frame exceeds max_memory_bytes; only features are wanted */
  /* HS_OK, or why the device cannot process the frame untiled; the device then processes it in tiles */
  hs_status untiled_status;
  bool on_cpu;           /* the CPU runs the frame even if the context has a device */
  bool equalize;         /* the device equalises the source */
  bool is_repeated;      /* the frame is run again after an overflow; its progress has begun */
  bool source_on_device; /* source.data is device memory, written on the context's stream */
} frame_request;

/* ------------------------------------------------------------------ the context */

/* Uses of host memory that a context keeps between calls, besides its slab. The memory grows on demand. */

typedef enum scratch_use {
  SCRATCH_PICTURE, /* the equalised picture */
  SCRATCH_DECODED, /* pixels of pictures that came encoded */
  SCRATCH_HEADERS, /* headers of encoded pictures that the device decodes */
  SCRATCH_GRID,    /* features during their ranking in the cells of a grid */
  SCRATCH_PATCHES, /* positions of patches */
  SCRATCH_GRAY,    /* gray picture from which patches are sampled, and scratch for making it */
  /* For user keypoints on a device. ORIENTED: user keypoint of each listed keypoint that has an orientation. TO_ORIENT:
     user keypoint of each listed keypoint that has none. ORIENTATIONS: listed keypoint of each feature of TO_ORIENT.
     All are indices. */
  SCRATCH_ORIENTED,
  SCRATCH_TO_ORIENT,
  SCRATCH_ORIENTATIONS,
  SCRATCH_COUNT
} scratch_use;

typedef struct host_scratch {
  void *memory[SCRATCH_COUNT];
  size_t bytes[SCRATCH_COUNT];
} host_scratch;

/* Returns the bytes for ranking `features` features in the cells of a grid. */
size_t scratch_grid_bytes(uint32_t features);

enum { ERROR_TEXT_BYTES = 1024, ERROR_LOCATION_BYTES = 96, REPORT_BYTES = 2048 };

struct hs_context {
  /* options; options.allocator is the caller's: features outlive the context and free their memory with it */
  hs_options options;
  hs_expert_options expert; /* copy to which options.expert points, unless that is null */
  sift_params params;
  pyramid_rules rules;
  gaussian_filter base_filter;
  gaussian_filter step_filter[LEVELS_MAX]; /* [s]: filter from level s-1 to level s; [0] is unused */
  int32_t radius_max;                      /* maximum radius of the filters above */
  vote_scales scales;
  stage_ops ops;
  stage_queue *queue;
  const struct engine *engine; /* runs frames and matching (engine.h) */
  void *engine_state;          /* the engine's state of this context; null: none */
  void *engine_shared;         /* the engine's state of a context and its workers; null: none */
  unsigned char *match_memory; /* memory for matching; grows to the largest lists */
  size_t match_bytes;
  int64_t process; /* process that made the context; a forked child has neither its threads nor its device */
  bool is_worker;  /* the context belongs to a worker of images in flight */
  struct in_flight_ring *in_flight; /* images in flight; null before the first hs_submit */
  struct hs_pairs *pairs;           /* the run over pairs in progress, or null */

  frame_plan plan; /* plan of the last frame */
  unsigned char *slab;
  size_t slab_bytes;
  host_scratch scratch;
  uint32_t keypoint_capacity, feature_capacity; /* minimum capacities, which earlier frames needed; 0: as planned */

  hs_progress_function progress; /* progress function of the caller; null: none */
  void *progress_user;
  uint64_t progress_done; /* progress reported so far in this call */

  hs_features view;        /* features returned by hs_extract_view on the CPU */
  hs_features pinned_view; /* features returned by hs_extract_view on a device: pointers to pinned results */
  hs_statistics statistics;
  /* reason why HS_DEVICE_AUTO used the CPU for some or all images; "": it did not */
  char no_device[ERROR_TEXT_BYTES];
  bool device_shown; /* the requested device exists, whether usable or not */
  char error[ERROR_TEXT_BYTES];
  char error_location[ERROR_LOCATION_BYTES];
  char report[REPORT_BYTES];
};

/* Returns whether images in flight are scheduled for the throughput of a collection, not for the latency of each
   image. */
static inline bool context_for_throughput(const hs_context *c) { return c->options.workload == HS_WORKLOAD_THROUGHPUT; }

/* Records the way of a frame in the statistics. */
static inline void context_note_way(hs_context *context, const way_choice *choice) {
  context->statistics.way = choice->way;
  context->statistics.way_reason = choice->reason;
}

/* Clears the previous call's failure and progress. */
void context_clear_error(hs_context *context);

/* Calls the caller's progress function. HS_ERR_CANCELLED: the function asks to end the call. Only on the caller's
   thread. */
hs_status context_progress(hs_context *context, uint64_t done, uint64_t total);
#define CONTEXT_CANCELLED "cancelled by the caller's progress function"

/* Returns the origin of this context's descriptors of an image. */
hs_origin context_origin(const hs_context *context, const hs_image *image);

/* Records a failure with the line of its source, and returns the status. */
hs_status context_fail(hs_context *context, hs_status status, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
#define CONTEXT_FAIL(context, status, ...) context_fail((context), (status), __FILE__, __LINE__, __VA_ARGS__)

/* Makes plan and slab for a frame on the host. Allocates nothing if the slab is large enough. Statuses: HS_ERR_LIMIT,
   HS_ERR_MEMORY, HS_ERR_THREAD. */
hs_status context_prepare(hs_context *context, const frame_request *request);

/* Returns whether these options allow a tiled frame to read its picture row by row. They do not with equalisation,
   which reads the pixels twice, or if candidates may move beyond a band of rows. */
bool context_may_take_rows(const hs_options *options, const sift_params *params);

/* Returns whether the CPU processes a frame of request->feed in tiles within max_memory_bytes. Only then may the
   picture be read row by row. */
bool context_fits_in_rows(const hs_context *context, const frame_request *request);

/* Makes the slab large enough for the plan. advice: end of the message for HS_ERR_MEMORY. */
hs_status context_make_slab(hs_context *context, const char *advice);

/* Makes the plan of a frame with these options: untiled if it fits, else in tiles if the request allows tiles. If
   neither fits, makes the plan with the smallest workspace, and *wanted exceeds max_memory_bytes. *wanted: bytes of the
   plan's workspace. Status HS_ERR_LIMIT: a size does not fit the address space. */
hs_status context_plan(const hs_options *options, const plan_request *request, frame_plan *plan, uint64_t *wanted);

/* Returns true if the counts of a frame's lists exceed their capacities, and raises the context's capacities for the
   next attempt. */
bool context_grow_lists(hs_context *context, uint32_t keypoints, uint32_t features, uint32_t keypoint_capacity,
                        uint32_t feature_capacity);

/* Returns the bytes of scratch that a frame of this plan uses besides the slab. */
uint64_t context_scratch_bytes(const hs_options *options, const frame_plan *plan);

/* Sets *memory to at least count * item bytes of scratch. The memory is kept until more is needed; its content is
   undefined. Statuses: HS_ERR_MEMORY, HS_ERR_LIMIT. */
hs_status context_scratch(hs_context *context, scratch_use use, size_t count, size_t item, void **memory);

/* After a frame that did not fit, resets the capacities of the lists, so that the next, smaller frame needs less
   memory. Returns `status`. */
hs_status context_reset_capacities(hs_context *context, hs_status status);

/* Returns the number of CPU threads that the options request, 1 or more. */
int32_t context_threads(const hs_context *context);

/* Start the threads for the CPU's stages when they are first needed; a context on a GPU seldom needs them. Statuses:
   HS_ERR_MEMORY, HS_ERR_THREAD. The second function writes the reason to message, for a context that is not complete
   yet. */
hs_status context_start_queue(hs_context *context);
hs_status context_start_queue_explained(hs_context *context, char *message, size_t message_bytes);

/* Returns the bytes of a context itself and of its threads. threads 0: no threads were started. */
uint64_t context_fixed_bytes(int32_t threads);

#endif
