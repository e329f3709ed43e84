/*
 * What a context holds: its options, the tables made from them, the backend it chose, and its one slab of memory.
 */
#ifndef HARTSIFT_CONTEXT_CONTEXT_H
#define HARTSIFT_CONTEXT_CONTEXT_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pipeline/context/plan.h"
#include "pipeline/include/hartsift.h"
#include "pipeline/include/hartsift_expert.h"
#include "stages/image.h"
#include "stages/ops.h"
#include "stages/refine.h"

/* ------------------------------------------------------------------ the request for a frame */

/* A picture whose rows come one after another from a file that is decoded meanwhile. */
typedef struct row_feed {
  void *reader;
  hs_status (*rewind)(void *reader);             /* the next row is the first */
  hs_status (*read)(void *reader, uint8_t *row); /* the next row, `row_bytes` of it */
  size_t row_bytes;
  const char *reason; /* why the last call failed */
  hs_status failure;  /* of a call while the frame ran; the frame then ends with it */
} row_feed;

typedef struct frame_request {
  source_view source;
  row_feed *feed; /* null, or in tiles alone: where the rows of the source come from; source.data is not pixels then */
  place_filter filter;
  size_t descriptor_bytes;           /* of one; 0: keypoints and orientations only */
  const hs_keypoint *user_keypoints; /* describe these instead of detecting; null: detect */
  uint32_t user_count;
  hs_status *user_statuses; /* [user_count]; with user_keypoints only */
  int32_t skipped_octaves;  /* the first ones are computed by the GPU, which provides the level */
  plane_view handed_over;   /* level 0 of the next; unused when none is skipped */
  bool may_tile;            /* where the whole is too large for max_memory_bytes: features alone are wanted */
  hs_status untiled_status; /* HS_OK, or why the device cannot do the whole: its tiles are wanted */
  bool on_cpu;              /* whatever the context's device */
  bool equalize;            /* on a device: the source is to be equalised there */
  bool is_repeated;         /* the frame has failed once, and its progress has begun */
  bool source_on_device;    /* source.data is the device's memory, written on the context's stream */
} frame_request;

/* ------------------------------------------------------------------ the context */

/* Host memory that a context keeps between calls in addition to its slab; grows on demand. */

typedef enum scratch_use {
  SCRATCH_PICTURE, /* the equalised picture */
  SCRATCH_DECODED, /* pictures that were handed in encoded */
  SCRATCH_HEADERS, /* of those that the device decodes */
  SCRATCH_GRID,    /* features while they are ranked in the cells of a grid */
  SCRATCH_PATCHES, /* where patches lie */
  SCRATCH_GRAY,    /* the gray picture that patches are taken from, and what making it needs */
  /* Which user keypoint a listed one is, on a device: of those with their orientation and of the others; and of these
     others' features, whose keypoint they have. */
  SCRATCH_ORIENTED,
  SCRATCH_TO_ORIENT,
  SCRATCH_ORIENTATIONS,
  SCRATCH_COUNT
} scratch_use;

typedef struct host_scratch {
  void *memory[SCRATCH_COUNT];
  size_t bytes[SCRATCH_COUNT];
} host_scratch;

/* Bytes that ranking so many features in the cells of a grid takes. */
size_t scratch_grid_bytes(uint32_t features);

enum { ERROR_TEXT_BYTES = 1024, ERROR_LOCATION_BYTES = 96, REPORT_BYTES = 2048 };

/* The split of a frame's octaves that was measured for pictures of a size. */
typedef struct kept_split {
  int32_t width, height, split; /* split 0: none kept here yet */
} kept_split;

enum { SPLITS_KEPT = 16 };

/* The measured splits of a context and its workers: one of them measures, the others wait and use its result. */
typedef struct split_table {
  pthread_mutex_t lock;
  kept_split kept[SPLITS_KEPT];
  int32_t next; /* the one replaced next */
} split_table;

struct hs_context {
  hs_options options;       /* options.allocator is the caller's: features outlive the context and release through it */
  hs_expert_options expert; /* where options.expert points, if anywhere */
  sift_params params;
  pyramid_rules rules;
  gaussian_filter base_filter;
  gaussian_filter step_filter[LEVELS_MAX]; /* [s]: from level s-1 to s; [0] unused */
  int32_t radius_max;                      /* the largest of these filters' */
  vote_scales scales;
  stage_ops ops;
  stage_queue *queue;
  const struct engine *engine; /* that runs frames and matching (engine.h) */
  void *engine_state;          /* what it holds for this context; null: nothing */
  unsigned char *match_memory; /* of matching; grows to the largest lists */
  size_t match_bytes;
  pid_t process;                    /* that made it; in a forked child its threads and its device do not exist */
  bool is_worker;                   /* a worker of images in flight */
  struct in_flight_ring *in_flight; /* images in flight; null before the first hs_submit */
  struct hs_pairs *pairs;           /* the run over pairs that is under way */

  split_table own_splits, *splits; /* HS_DEVICE_HYBRID; a worker's splits are its owner's */

  frame_plan plan; /* of the last frame */
  unsigned char *slab;
  size_t slab_bytes;
  host_scratch scratch;
  uint32_t keypoint_capacity, feature_capacity; /* grown so far; 0: as planned */

  hs_progress_function progress; /* the caller's; null: none */
  void *progress_user;
  uint64_t progress_done; /* told so far in this call */

  hs_features view;        /* of hs_extract_view on the CPU */
  hs_features pinned_view; /* of hs_extract_view on a device: points to its pinned results */
  hs_statistics statistics;
  char no_device[ERROR_TEXT_BYTES]; /* why HS_DEVICE_AUTO chose the CPU, for all or for some images; "" when it did not
                                       have to */
  bool device_shown;                /* a device that was asked for is there, usable or not */
  char error[ERROR_TEXT_BYTES];
  char error_location[ERROR_LOCATION_BYTES];
  char report[REPORT_BYTES];
};

/* Whether images in flight are scheduled for the rate of a collection, not for each result soon. */
static inline bool context_for_throughput(const hs_context *c) { return c->options.workload == HS_WORKLOAD_THROUGHPUT; }

/* Notes the way of a frame in the statistics. */
static inline void context_note_way(hs_context *context, const way_choice *choice) {
  context->statistics.way = choice->way;
  context->statistics.way_reason = choice->reason;
}

/* Forgets the failure of the call before, and how far it was. */
void context_clear_error(hs_context *context);

/* Tells the caller's progress function how far the call is; HS_ERR_CANCELLED when that asks for the end. On the caller's
   thread alone. */
hs_status context_progress(hs_context *context, uint64_t done, uint64_t total);

/* What this context's descriptors of an image are. */
hs_origin context_origin(const hs_context *context, const hs_image *image);

/* Records a failure and where it was seen, and returns the status. */
hs_status context_fail(hs_context *context, hs_status status, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
#define CONTEXT_FAIL(context, status, ...) context_fail((context), (status), __FILE__, __LINE__, __VA_ARGS__)

/* Makes plan and slab fit a frame on the host; nothing is allocated when the slab is large enough. Statuses:
   HS_ERR_LIMIT, HS_ERR_MEMORY, HS_ERR_THREAD. */
hs_status context_prepare(hs_context *context, const frame_request *request);

/* Whether these options allow an image in tiles to come row by row. Not with equalisation, which reads the pixels twice, and
   not if candidates may move beyond a band of rows. */
bool context_may_take_rows(const hs_options *options, const sift_params *params);

/* Whether the CPU processes a frame of request->feed in tiles within max_memory_bytes: only then may the image come row by
   row. */
bool context_fits_in_rows(const hs_context *context, const frame_request *request);

/* Makes the slab large enough for the plan. advice: end of the message of HS_ERR_MEMORY. */
hs_status context_make_slab(hs_context *context, const char *advice);

/* The plan of a frame that these options allow: untiled, else in tiles where the request has what those need, else (with
   *wanted above max_memory_bytes) the one that comes nearest. *wanted: bytes of its workspace. Statuses: HS_ERR_LIMIT: a
   size does not fit the address space. */
hs_status context_plan(const hs_options *options, const plan_request *request, frame_plan *plan, uint64_t *wanted);

/* True when the counts of a frame's lists exceed its capacities; they are then raised for the next attempt. */
bool context_grow_lists(hs_context *context, uint32_t keypoints, uint32_t features, uint32_t keypoint_capacity,
                        uint32_t feature_capacity);

/* Bytes of scratch that a frame of this plan uses besides the slab. */
uint64_t context_scratch_bytes(const hs_options *options, const frame_plan *plan);

/* At least count * item bytes of scratch, kept until more is needed; their content is undefined. Statuses:
   HS_ERR_MEMORY, HS_ERR_LIMIT. */
hs_status context_scratch(hs_context *context, scratch_use use, size_t count, size_t item, void **memory);

/* After a frame that did not fit: resets the capacities of the lists, so that the next, smaller frame does not need as
   much. Returns the status given. */
hs_status context_reset_capacities(hs_context *context, hs_status status);

/* The number of CPU threads that the options ask for, 1 or more. */
int32_t context_threads(const hs_context *context);

/* The threads that the host's stages run on, started when they are first wanted: a GPU context seldom wants them.
   Statuses: HS_ERR_MEMORY, HS_ERR_THREAD. The second writes the reason to message, for a context that is not made yet. */
hs_status context_start_queue(hs_context *context);
hs_status context_start_queue_explained(hs_context *context, char *message, size_t message_bytes);

/* Bytes of a context itself and of its threads; 0 threads: none have been started. */
uint64_t context_fixed_bytes(int32_t threads);

#endif
