/*
 * The engine of a context: what runs its frames and its matching. There are three: the CPU, a device, and both together
 * (hybrid); pipeline/lifetime/engines.c lists them. Callers use c->engine and never ask which engine it is: what an
 * engine cannot do is a null pointer or a flag that is false, and the host does it instead.
 *
 * Unless a comment says otherwise: pointers to results are host memory of the context, valid until its next call; every
 * call is made by the thread that uses the context; a failure is recorded in the context (CONTEXT_FAIL), which stays
 * usable unless the status is HS_ERR_DEVICE.
 */
#ifndef HARTSIFT_CONTEXT_ENGINE_H
#define HARTSIFT_CONTEXT_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/features.h"
#include "pipeline/context/context.h"
#include "pipeline/context/plan.h"
#include "pipeline/include/hartsift.h"
#include "stages/affine.h"
#include "stages/detect.h"
#include "stages/image.h"
#include "stages/jpeg_scan.h"
#include "stages/keypoint.h"
#include "stages/match.h"
#include "stages/ops.h"

/* ------------------------------------------------------------------ the buffers of a frame (workspace.c) */

typedef struct workspace {
  octave_view octaves[OCTAVES_MAX];
  plane_view blur_work[OCTAVES_MAX]; /* one memory for the first octave, one for the others */
  void *detect_work[2];              /* likewise */
  keypoint_list keypoints;
  feature_list features;
  unsigned char *descriptors; /* null when none are wanted */
  uint32_t *sources;          /* [keypoint]: which user keypoint it is; null when none are given */
  const uint32_t *order;      /* null: features stand in the defined order; else the n-th is item order[n] */
  affine_shape *shapes;       /* [keypoint]; null: they are circles */
  void *graph;                /* of stages that run at the same time; null: they follow one another */
  float *warped;              /* what finding and describing shapes works in */
} workspace;

/* The lists in their memory (room as the plan gives it). */
keypoint_list workspace_keypoints(unsigned char *memory, uint32_t capacity, uint32_t *count);
feature_list workspace_features(unsigned char *memory, uint32_t capacity, uint32_t *count);

/* Sets the views; counts become 0. Of a frame in tiles there are the lists alone. */
void workspace_view(const frame_plan *plan, unsigned char *slab, workspace *w);

/* Keypoint n of the list, with an orientation, as the caller sees it. */
hs_keypoint workspace_keypoint(const keypoint_list *keypoints, uint32_t n, float orientation);

/* The frame of feature n in the order of those handed out; with shapes only. */
hs_frame workspace_frame(const workspace *w, uint32_t n);

/* The features in a frame's lists as the caller sees them. */

/* Copies the first `count` features in the defined order; descriptors of descriptor_bytes each (0: none). Threads of the
   queue (null: none) share long lists. */
void listed_features_copy(stage_queue *queue, const workspace *lists, uint32_t count, size_t descriptor_bytes,
                          hs_keypoint *keypoints, void *descriptors);

enum {
  FRAME_GROUP_MAX = 64, /* images of one call of run */
  RESULT_SETS = 2,      /* of a context on a device */
  TILE_SLOTS = 2,       /* tiles in flight: one is computed while the host lists the features of the other */
  JPEG_GROUP_MAX = FRAME_GROUP_MAX, /* pictures of one call of decode */
  JPEG_REASON_BYTES = 256,
  PAIR_BATCHES = 3, /* in flight, so that the device never waits for the host */
  PAIRS_PER_BATCH = 256
};

/* ------------------------------------------------------------------ frames */

/* User keypoints of a frame: it describes them and detects nothing. count 0: it detects. */
typedef struct user_keypoints {
  uint32_t count, capacity; /* of the list that user_lists gave */
  bool oriented;            /* each has its orientation and is one feature; else orientations are computed */
  int32_t octaves;          /* how many octaves are built */
} user_keypoints;

/* Where a frame's picture is and where its results go; all 0: both in host memory. */
typedef struct frame_placement {
  void *stream;          /* the device's, in whose order the frame runs; null: the context's */
  bool source_on_device; /* picture and mask are device memory */
  bool decoded;          /* the picture is what decoder->decode left; where it refused one, the results are undefined */
  bool resident;         /* results stay in device memory */
  int32_t group;         /* > 1: images of one size, type and layout, without masks; only where groups() */
  int32_t octaves;       /* > 0, of split->begin alone: only the first so many are computed */
  user_keypoints user_keypoints; /* with picture and results in host memory only */
} frame_placement;

/* The features of a frame: records, or lists that the host made. */
typedef struct frame_result {
  uint32_t count;
  const hs_keypoint *keypoints;
  const void *descriptors; /* null: none wanted */
  const hs_frame *frames;  /* null without shapes */
  workspace *lists;        /* in: the caller's, to fill. Out: null where the result is records (the fields above) */
} frame_result;

/* ------------------------------------------------------------------ frames in tiles */

/* A tile, or the surroundings of an escaped candidate. */
typedef struct device_tile {
  int32_t octave; /* of the picture's geometry; octaves are processed one after another */
  plane_region core;
  const escaped_candidate *seed; /* null: the tile is searched */
  bool gives_base;               /* its samples of the next octave's level 0 are stored */
  int32_t slot;                  /* 0..TILE_SLOTS-1 */
  source_view source;            /* the picture; of one that comes in rows, only those that rows() names are valid */
} device_tile;

/* The features of a tile, valid until the slot's next tile. Counts continue past the capacities. */
typedef struct device_tile_result {
  uint64_t candidates;
  uint32_t keypoints, features, escaped;
  keypoint_list keypoint_list;
  feature_list feature_list;  /* indices of keypoints of the list above */
  const affine_shape *shapes; /* of the keypoints; null without shapes */
  const unsigned char *descriptors;
  const escaped_candidate *escaped_list;
  bool complete; /* no count exceeds its capacity; else the lists are undefined */
} device_tile_result;

/* A frame that does not fit the device as a whole; pipeline/frame/TILES.md. */
typedef struct engine_tiles {
  /* Makes the plans (context->plan), the lists on the host and the memory on the device. untiled: HS_ERR_LIMIT or
     HS_ERR_MEMORY, with which the whole frame failed; it is returned where tiles are no remedy. Also HS_ERR_DEVICE. */
  hs_status (*prepare)(hs_context *context, const frame_request *request, hs_status untiled);
  /* The rows [*y0, *y1) that a tile of the first octave, its parts and its escaped candidates read of a picture that
     comes in rows. They may be overwritten when the tile is finished. */
  void (*rows)(const hs_context *context, const plane_region *core, int32_t *y0, int32_t *y1);
  /* Starts a tile after those started before; its slot's previous tile is finished. Statuses: HS_ERR_DEVICE,
     HS_ERR_MEMORY; no tile is in flight then. */
  hs_status (*begin)(hs_context *context, const frame_request *request, const device_tile *tile);
  /* Waits for it. Statuses as begin. */
  hs_status (*finish)(hs_context *context, const device_tile *tile, device_tile_result *result);
  /* Waits until nothing reads the caller's picture, where tiles in flight are no longer wanted. */
  void (*abandon)(hs_context *context);
  /* After query: bytes on the device and on the host (lists, scratch, pinned memory) where such a frame is computed in
     tiles within max_memory_bytes; false, and nothing set, where it is not. */
  bool (*query)(hs_context *context, const frame_request *request, uint64_t *device_bytes, uint64_t *host_bytes);
  /* Whether a frame of request->feed needs tiles and fits in them within max_memory_bytes: only then may it come in
     rows, with untiled_status HS_ERR_LIMIT. Then *device_bytes and *host_bytes as above. */
  bool (*query_rows)(hs_context *context, const frame_request *request, uint64_t *device_bytes, uint64_t *host_bytes);
} engine_tiles;

/* ------------------------------------------------------------------ the first octaves only */

/* A frame whose first octaves the device computes while the host computes the others. */
typedef struct engine_split {
  size_t (*report)(const hs_context *context, char *text, size_t bytes); /* of the device; as engine.report */
  /* The whole frame on the device. */
  hs_status (*run)(hs_context *context, const frame_request *request, const frame_placement *placement,
                   frame_result *result);
  /* Starts a frame of placement->octaves octaves. It must be finished, even if something failed in between. */
  hs_status (*begin)(hs_context *context, const frame_request *request, const frame_placement *placement);
  /* Waits for level 0 of the octave after the last, in pinned memory until the next frame. */
  hs_status (*level)(hs_context *context, plane_view *level);
  /* *repeat: a list overflowed and was grown, so the frame must be run again from the beginning. */
  hs_status (*finish)(hs_context *context, const frame_placement *placement, frame_result *result, bool *repeat);
  /* Capacity of the results beyond the features of the device's own lists, from the next frame on. */
  void (*want_capacity)(hs_context *context, uint32_t features);
  /* The results of the last frame, to write to; returns their capacity in features. */
  uint32_t (*records)(const hs_context *context, feature_records *records);
} engine_split;

/* ------------------------------------------------------------------ matching */

/* A checked request for matching, the same for CPU and GPU. */

/* One list as it came: host or device memory. */
typedef struct match_list {
  const hs_keypoint *keypoints; /* may be null without a guide */
  const void *descriptors;
  uint32_t count;
} match_list;

/* What a matching call asks for, checked. */
typedef struct match_request {
  match_type type;
  match_list first, second;
  match_guide guide; /* MATCH_UNGUIDED too where the tolerance is infinite */
  match_limits limits;
  bool mutual;
} match_request;

/* Where the lists are, and the stream in whose order they are complete (null: the context's). */
typedef struct match_placement {
  void *stream;
  bool on_device; /* keypoints and descriptors of the request are device memory */
} match_placement;

/* Gives the host memory for the neighbours of the next rows: counts[rows] of them. */
typedef hs_status (*neighbours_take)(hs_context *context, void *user, uint32_t first_row, uint32_t rows,
                                     const uint32_t *counts, match_neighbour **found);

/* Matching on a device; all calls block. Statuses: HS_ERR_LIMIT, HS_ERR_MEMORY, HS_ERR_DEVICE. */
typedef struct engine_matching {
  /* Fills forward [first.count] and, unless null, backward [second.count] in host memory. Either list may be empty. */
  hs_status (*nearest)(hs_context *context, const match_request *request, const match_placement *placement,
                       match_nearest *forward, match_nearest *backward);
  /* The matches of a request, selected on the device; *pairs: valid until the context's next matching. */
  hs_status (*pairs)(hs_context *context, const match_request *request, const match_placement *placement,
                     const match_pair **pairs, size_t *count);
  /* The k nearest below the bound of each feature of the first list (one or more): nearest [first.count * k], host. */
  hs_status (*k_nearest)(hs_context *context, const match_request *request, float bound, uint32_t k,
                         match_neighbour *nearest);
  /* All below the bound, by index and with squared distances, written where take says, which is called for every row in
     order. Statuses: also take's. */
  hs_status (*within)(hs_context *context, const match_request *request, float bound, neighbours_take take, void *user);
} engine_matching;

/* ------------------------------------------------------------------ pairs of a collection */

typedef struct pair_matcher pair_matcher;             /* the engine's */
typedef struct device_descriptors device_descriptors; /* of an image, on the device; null: it has none */

typedef struct descriptor_pair {
  const device_descriptors *first, *second;
} descriptor_pair;

/* Many pairs of images: descriptors that stay on the device, and batches of pairs in turn. At most two threads call: one
   uploads and drops images, one runs batches; each puts its calls between enter and leave. error_text: what failed last
   on the calling thread. */
typedef struct engine_pairs {
  /* Device memory that may be allocated now: half of what is free. 0: unknown. */
  uint64_t (*free_bytes)(const hs_context *context);
  /* Bytes on the device of an image, and of one pair in a batch. */
  uint64_t (*image_bytes)(size_t count);
  uint64_t (*pair_bytes)(size_t first_count, size_t second_count);
  /* batch_bytes: device memory of each batch; half as much is pinned on the host. message: why it failed. Statuses:
     HS_ERR_MEMORY, HS_ERR_DEVICE. */
  hs_status (*open)(hs_context *context, uint64_t batch_bytes, pair_matcher **matcher, char *message,
                    size_t message_bytes);
  void (*close)(pair_matcher *matcher); /* null is allowed */
  /* The device becomes the calling thread's current one; leave restores the previous one. */
  stage_status (*push)(const pair_matcher *matcher, int32_t *previous);
  void (*pop)(int32_t previous);
  /* Copies 8-bit descriptors to the device and waits for them. */
  stage_status (*upload)(pair_matcher *matcher, const void *descriptors, uint32_t count, device_descriptors **image);
  void (*free_image)(pair_matcher *matcher, device_descriptors *image);
  /* Starts to match count pairs (1..PAIRS_PER_BATCH), together at most batch_bytes, as batch number `batch`, which must
     not be in flight. */
  stage_status (*begin)(pair_matcher *matcher, int32_t batch, const descriptor_pair *pairs, uint32_t count,
                        const match_limits *limits, bool mutual);
  stage_status (*finish)(pair_matcher *matcher, int32_t batch); /* waits for it */
  /* The matches of one of its pairs, valid until the batch begins again. */
  const match_pair *(*result)(const pair_matcher *matcher, int32_t batch, uint32_t pair, uint32_t *count);
  const char *(*error_text)(void);
} engine_pairs;

/* ------------------------------------------------------------------ JPEG */

typedef enum decoder_state {
  DECODER_UNKNOWN, /* not asked yet */
  DECODER_OPEN,    /* it decodes, but has not been compared with libjpeg */
  DECODER_READY,
  DECODER_WRONG, /* it was compared, and must not be used */
  DECODER_OFF    /* there is none */
} decoder_state;

/* A packed picture (image_io/jpeg/jpeg_stream.h), and where its pixels go: pixel (x, y) as stored to pixel
   start + x * step_x + y * step_y of the picture as displayed, whose rows have no gaps. */
typedef struct packed_jpeg {
  jpeg_shape shape;
  const void *packed;    /* within packed_memory */
  int32_t width, height; /* displayed */
  int64_t start, step_x, step_y;
} packed_jpeg;

/* Rows of a decoded picture, in device memory of the context until it decodes again. */
typedef struct decoded_rows {
  const unsigned char *data;
  size_t stride_bytes;
} decoded_rows;

/* JPEGs decoded on the device, in front of the frame that takes them. A context and its workers share the state; the
   decoder is used only after source/jpeg_on_gpu.c found its pixels equal to libjpeg's. */
typedef struct engine_decoder {
  decoder_state (*open)(hs_context *context);
  /* The result of the comparison; reason: against it, null: it is equal. */
  void (*judge)(hs_context *context, const char *reason);
  /* *reason: why it is off, else what decodes. */
  decoder_state (*state)(const hs_context *context, const char **reason);
  /* Pinned memory for packed pictures, until the next call; waits for what was decoded before. Null: so much cannot be
     allocated, or is more than a device should be given. */
  void *(*packed_memory)(hs_context *context, size_t bytes);
  /* Enqueues the decoding of 1..JPEG_GROUP_MAX packed pictures on the context's stream, without waiting. False: there is
     no memory for it, within max_memory_bytes or at all, or it failed, and the rows are undefined. */
  bool (*decode)(hs_context *context, const packed_jpeg *pictures, int32_t count, decoded_rows *rows);
  /* After the frame: the first picture of the last decode that libjpeg must decode instead, -1: none. */
  int32_t (*refused)(const hs_context *context);
  /* Waits for the stream, and copies rows of `width` bytes to host memory, without gaps. */
  hs_status (*fetch)(hs_context *context, const decoded_rows *rows, int32_t width, int32_t height, unsigned char *to);
} engine_decoder;

/* ------------------------------------------------------------------ the engine */

typedef struct engine {
  const char *name;       /* as HARTSIFT_DEVICE has it */
  bool offloads;          /* frames run on another processor: workers mostly wait, files are decoded by other threads */
  bool reports_progress;  /* run reports progress; else its caller does, before it */
  bool equalizes;         /* run equalizes the picture (request->equalize); else it must have been equalized */
  const char *no_decoder; /* why decoder is null */

  /* How many devices are usable; 0: reason says why. Null: the engine needs none. */
  int32_t (*devices)(char *reason, size_t reason_bytes);
  /* Opens what the engine holds for a context: context->engine_state. owner: null, or the context whose worker this is;
     then variant is null. On failure nothing stays open and message says why. Statuses: HS_ERR_NO_DEVICE, HS_ERR_OPTION
     (the name of a variant), HS_ERR_MEMORY, HS_ERR_THREAD. */
  hs_status (*open)(hs_context *context, const hs_context *owner, const char *variant, char *message,
                    size_t message_bytes);
  void (*close)(hs_context *context); /* also after a failure of open */
  /* "stage: variant" lines. Returns the characters written. */
  size_t (*report)(const hs_context *context, char *text, size_t bytes);
  /* Bytes that it holds on the device, and pinned on the host. Null: none. */
  void (*memory)(const hs_context *context, uint64_t *device_bytes, uint64_t *pinned_bytes);
  /* The same for frames of a size, before anything is allocated: 8-bit gray without a mask, results on the host. Null:
     frames need the host's plan alone. */
  hs_status (*query)(hs_context *context, int32_t width, int32_t height, uint64_t *device_bytes,
                     uint64_t *pinned_bytes);

  /* Runs a frame, or placement->group of them: requests and results are arrays then. A list that overflowed is grown and
     the frame repeated. Statuses: as hs_extract. */
  hs_status (*run)(hs_context *context, const frame_request *request, const frame_placement *placement,
                   frame_result *result);
  /* Whether the context's options have kernels for groups. Null: one frame a call. */
  bool (*groups)(const hs_context *context);
  /* How many frames of a size may have their memory on the device at once, so that half of it stays free; 1 or more.
     With offloads only. */
  int32_t (*frames_in_memory)(hs_context *context, int32_t width, int32_t height);

  /* Of records: the set of pinned results (0..RESULT_SETS-1) that frames from now on write to; those in the other stay.
     Null: results are lists. */
  void (*use_results)(hs_context *context, int32_t set);
  /* Makes *features the owner of records of a set (without a copy where that pays), or of a copy. Statuses: as
     features_reserve. */
  hs_status (*give)(hs_context *context, int32_t set, const hs_features *found, hs_features *features);

  /* Pinned lists for given->count user keypoints, both empty, for the caller to fill; sets given->capacity. Valid until
     the next call of this. Null: run takes request->user_keypoints itself. Statuses: HS_ERR_MEMORY, HS_ERR_DEVICE. */
  hs_status (*user_lists)(hs_context *context, user_keypoints *user, keypoint_list *keypoints, feature_list *features);
  /* The index of the user keypoint of each of the last frame's features [count], where orientations were computed. */
  hs_status (*user_keypoints_of)(hs_context *context, uint32_t count, const uint32_t **keypoint);

  const engine_tiles *tiles;       /* null: run makes tiles itself where the whole does not fit */
  const engine_split *split;       /* null: it computes whole frames only */
  const engine_matching *matching; /* null: the host matches */
  const engine_pairs *pairs;       /* null: the host's workers match */
  const engine_decoder *decoder;   /* null: libjpeg decodes */
} engine;

/* A context and its engine: the report, falling back to the CPU, workers with the same engine, statistics. */

/* Writes context->report. */
void backend_report(hs_context *context);
/* engine.report of the CPU. */
size_t backend_report_cpu(const hs_context *context, char *text, size_t bytes);

/* For HS_DEVICE_AUTO on a device: whether the CPU should run a frame that failed with this status, because the device's
   memory is full. */
bool backend_falls_back(const hs_context *context, hs_status status);
/* Notes in the report that it is, with the reason; the first of a context stays. */
void backend_note_fallback(hs_context *context, const char *reason);

/* A context that works as `owner` does, with `threads` of the CPU: for the work in flight. On failure the reason is the
   owner's last error. */
hs_status backend_clone(hs_context *owner, int32_t threads, hs_context **clone);

/* Frees a context that has nothing in flight. */
void backend_release(hs_context *context);

/* Statistics of the context itself, without its workers; struct_size is not changed. */
void backend_statistics(const hs_context *context, hs_statistics *statistics);

#endif
