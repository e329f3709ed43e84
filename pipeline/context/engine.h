/*
 * The engine of a context runs its frames and its matching. There are three engines: the CPU, a device, and both
 * together (hybrid); pipeline/lifetime/engines.c lists them. Callers use c->engine and never ask which engine it is. If
 * an engine cannot do something, its function pointer is null or its flag is false, and the host does it instead.
 *
 * Unless a comment says otherwise: pointers to results are host memory of the context, valid until its next call. Every
 * call is made by the thread that uses the context. A failure is recorded in the context (CONTEXT_FAIL), which stays
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
#include "stages/primitives.h"

/* ------------------------------------------------------------------ the buffers of a frame (workspace.c) */

typedef struct workspace {
  octave_view octaves[OCTAVES_MAX];
  plane_view blur_work[OCTAVES_MAX]; /* scratch of level steps: one memory for the first octave, one for all others */
  void *detect_work[2];              /* scratch of detection: [0] the first octave, [1] the others */
  keypoint_list keypoints;
  feature_list features;
  unsigned char *descriptors; /* descriptors; null: none are wanted */
  uint32_t *sources;          /* [keypoint]: index of its user keypoint; null without user keypoints */
  const uint32_t *order;      /* feature n is item order[n]; null: the list is in the defined order */
  affine_shape *shapes;       /* [keypoint]; null: keypoints are circles */
  void *graph;                /* graph of jobs; null: stages run one after another */
  float *warped;              /* scratch for finding and describing shapes */
} workspace;

/* Return views of the lists in their memory; the plan gives its size. */
keypoint_list workspace_keypoints(unsigned char *memory, uint32_t capacity, uint32_t *count);
feature_list workspace_features(unsigned char *memory, uint32_t capacity, uint32_t *count);

/* Sets the views of a frame's buffers and sets the counts to 0. A frame in tiles has only the lists. */
void workspace_view(const frame_plan *plan, unsigned char *slab, workspace *w);

/* Returns keypoint n of the list, with this orientation, in the form of the public interface. */
hs_keypoint workspace_keypoint(const keypoint_list *keypoints, uint32_t n, float orientation);

/* Returns the frame of feature n, in the order in which features are returned. Only with shapes. */
hs_frame workspace_frame(const workspace *w, uint32_t n);

/* The features of a frame's lists, in the form of the public interface. */

/* Copies the first `count` features in the defined order, with descriptors of descriptor_bytes each (0: none). Threads
   of the queue share long lists; queue null: no threads. */
void listed_features_copy(stage_queue *queue, const workspace *lists, uint32_t count, size_t descriptor_bytes,
                          hs_keypoint *keypoints, void *descriptors);

enum {
  FRAME_GROUP_MAX = 64, /* maximum number of images per call of run */
  RESULT_SETS = 2,      /* number of sets of results of a context on a device */
  TILE_SLOTS = 2,       /* tiles in flight: one is computed while the host lists the features of the other */
  JPEG_GROUP_MAX = FRAME_GROUP_MAX, /* maximum number of pictures per call of decode */
  JPEG_REASON_BYTES = 256,
  PAIR_BATCHES = 3, /* batches in flight, so that the device never waits for the host */
  PAIRS_PER_BATCH = 256
};

/* ------------------------------------------------------------------ frames */

/* User keypoints of a frame, which are described without detection. count 0: none, and the frame detects. */
typedef struct user_keypoints {
  uint32_t count, capacity; /* capacity: that of the lists from user_lists */
  bool oriented;   /* whether each keypoint has an orientation, and so one feature; false: orientations are computed */
  int32_t octaves; /* number of octaves to build */
} user_keypoints;

/* Memory space of a frame's picture and results. All 0: both are in host memory. */
typedef struct frame_placement {
  void *stream;          /* stream of the device on which the frame runs; null: the context's stream */
  bool source_on_device; /* picture and mask are in device memory */
  bool decoded; /* the picture is the output of decoder->decode; if that refused a picture, the results are undefined */
  bool resident;   /* results stay in device memory */
  int32_t group;   /* above 1: number of images of one size, type and layout, without masks; needs groups() */
  int32_t octaves; /* for split->begin only: number of first octaves to compute; 0: all */
  user_keypoints user_keypoints; /* needs picture and results in host memory */
} frame_placement;

/* Features of a frame: either records, or lists on the host. */
typedef struct frame_result {
  uint32_t count;
  const hs_keypoint *keypoints;
  const void *descriptors; /* descriptors; null: none are wanted */
  const hs_frame *frames;  /* affine shapes; null: none */
  workspace *lists; /* on entry, lists of the caller to fill; set to null if the result is records (the fields above) */
} frame_result;

/* ------------------------------------------------------------------ frames in tiles */

/* A tile, or the surroundings of an escaped candidate, to be processed on a device. */
typedef struct device_tile {
  int32_t octave; /* index of the octave in the picture's geometry; octaves are processed one after another */
  plane_region core;
  const escaped_candidate *seed; /* candidate to follow; null: search the tile */
  bool gives_base;               /* store the tile's samples of the next octave's level 0 */
  int32_t slot;                  /* 0..TILE_SLOTS-1 */
  source_view source; /* the picture; if it is read row by row, only the rows that rows() returns are valid */
} device_tile;

/* The features of a tile, valid until the next tile in its slot. Counts continue beyond the capacities. */
typedef struct device_tile_result {
  uint64_t candidates;
  uint32_t keypoints, features, escaped;
  keypoint_list keypoint_list;
  feature_list feature_list;  /* features; their keypoint indices refer to keypoint_list */
  const affine_shape *shapes; /* shapes of the keypoints; null without shapes */
  const unsigned char *descriptors;
  const escaped_candidate *escaped_list;
  bool complete; /* whether no count exceeds its capacity; if false, the lists are undefined */
} device_tile_result;

/* Runs a frame in tiles if it does not fit the device untiled; see pipeline/frame/TILES.md. */
typedef struct engine_tiles {
  /* Makes the plans (context->plan), the lists on the host and the memory on the device. untiled: status with which the
     untiled frame failed, HS_ERR_LIMIT or HS_ERR_MEMORY; it is returned if tiles do not help. Other statuses:
     HS_ERR_DEVICE. */
  hs_status (*prepare)(hs_context *context, const frame_request *request, hs_status untiled);
  /* If the picture is read row by row: finds the rows [*y0, *y1) that a tile of the first octave reads, including its
     parts and escaped candidates. They may be overwritten when the tile is finished. */
  void (*rows)(const hs_context *context, const plane_region *core, int32_t *y0, int32_t *y1);
  /* Starts a tile; tiles run in the order of their starts. The previous tile in the same slot must be finished.
     Statuses: HS_ERR_DEVICE, HS_ERR_MEMORY; after these, no tile is in flight. */
  hs_status (*begin)(hs_context *context, const frame_request *request, const device_tile *tile);
  /* Waits for a tile. Statuses: as begin. */
  hs_status (*finish)(hs_context *context, const device_tile *tile, device_tile_result *result);
  /* Waits until no tile reads the caller's picture; for tiles in flight that are no longer wanted. */
  void (*abandon)(hs_context *context);
  /* Returns whether a frame of this request is processed in tiles within max_memory_bytes. If so, sets its bytes on the
     device and on the host (lists, scratch, pinned memory). Call after engine.query. */
  bool (*query)(hs_context *context, const frame_request *request, uint64_t *device_bytes, uint64_t *host_bytes);
  /* Returns whether a frame of request->feed needs tiles and fits within max_memory_bytes with them. Only then may it
     be read row by row, with untiled_status HS_ERR_LIMIT. If so, sets *device_bytes and *host_bytes as query does. */
  bool (*query_rows)(hs_context *context, const frame_request *request, uint64_t *device_bytes, uint64_t *host_bytes);
} engine_tiles;

/* ------------------------------------------------------------------ the first octaves only */

/* Runs a frame whose first octaves the device computes, while the host computes the others. */
typedef struct engine_split {
  /* As engine.open and engine.close, of the device alone. */
  hs_status (*open)(hs_context *context, const hs_context *owner, const char *variant, char *message,
                    size_t message_bytes);
  void (*close)(hs_context *context);
  size_t (*report)(const hs_context *context, char *text, size_t bytes); /* reports on the device, as engine.report */
  /* Runs all octaves of a frame on the device. */
  hs_status (*run)(hs_context *context, const frame_request *request, const frame_placement *placement,
                   frame_result *result);
  /* Starts a frame of placement->octaves octaves. finish must be called afterwards, even if another call fails in
     between. */
  hs_status (*begin)(hs_context *context, const frame_request *request, const frame_placement *placement);
  /* Waits for level 0 of the octave after the device's last one. It is in pinned memory, valid until the next frame. */
  hs_status (*level)(hs_context *context, plane_view *level);
  /* Ends the frame. *repeat: a list overflowed and was grown, so the frame must be run again from the beginning. */
  hs_status (*finish)(hs_context *context, const frame_placement *placement, frame_result *result, bool *repeat);
  /* Reserves capacity in the results for `features` features in addition to the device's lists, from the next frame
     on. */
  void (*want_capacity)(hs_context *context, uint32_t features);
  /* Returns the results of the last frame for writing. The return value is their capacity in features. */
  uint32_t (*records)(const hs_context *context, feature_records *records);
} engine_split;

/* ------------------------------------------------------------------ matching */

/* A checked request for matching, the same for CPU and GPU. */

/* One list as the caller gave it, in host or device memory. */
typedef struct match_list {
  const hs_keypoint *keypoints; /* positions; may be null if there is no guide */
  const void *descriptors;
  uint32_t count;
} match_list;

/* Lists and options of a call of matching, checked. */
typedef struct match_request {
  match_type type;
  match_list first, second;
  match_guide guide; /* kind MATCH_UNGUIDED also if the tolerance is infinite */
  match_limits limits;
  bool mutual;
} match_request;

/* Memory space of the lists, and the stream in whose order they are complete (null: the context's stream). */
typedef struct match_placement {
  void *stream;
  bool on_device; /* keypoints and descriptors are in device memory */
} match_placement;

/* Callback that returns host memory for the neighbours of the next rows. counts[rows]: number of neighbours of each
   row. */
typedef hs_status (*neighbours_take)(hs_context *context, void *user, uint32_t first_row, uint32_t rows,
                                     const uint32_t *counts, match_neighbour **found);

/* Matching on a device. All calls block. Statuses: HS_ERR_LIMIT, HS_ERR_MEMORY, HS_ERR_DEVICE. */
typedef struct engine_matching {
  /* Fills forward [first.count] and, unless null, backward [second.count] in host memory. Either list may be empty. */
  hs_status (*nearest)(hs_context *context, const match_request *request, const match_placement *placement,
                       match_nearest *forward, match_nearest *backward);
  /* Finds the matches of a request and selects them on the device. *pairs is valid until the context's next
     matching. */
  hs_status (*pairs)(hs_context *context, const match_request *request, const match_placement *placement,
                     const match_pair **pairs, size_t *count);
  /* Finds for each feature of the first list the k nearest neighbours (k >= 1) below the bound, in nearest[first.count
   * k] in host memory. */
  hs_status (*k_nearest)(hs_context *context, const match_request *request, float bound, uint32_t k,
                         match_neighbour *nearest);
  /* Finds for each feature all neighbours below the bound, ordered by index, with squared distances. Writes them to the
     memory that `take` returns; `take` is called for all rows in order. Further statuses: those of `take`. */
  hs_status (*within)(hs_context *context, const match_request *request, float bound, neighbours_take take, void *user);
} engine_matching;

/* ------------------------------------------------------------------ pairs of a collection */

typedef struct pair_matcher pair_matcher;             /* state of the engine for matching pairs */
typedef struct device_descriptors device_descriptors; /* descriptors of an image on the device; null: it has none */

typedef struct descriptor_pair {
  const device_descriptors *first, *second;
} descriptor_pair;

/* Matches many pairs of images: descriptors stay on the device, and batches of pairs run in turn. At most two threads
   call: one uploads and frees images, the other runs batches. Each thread makes its calls between push and pop.
   error_text: reason of the last failure on the calling thread. */
typedef struct engine_pairs {
  /* Returns how much device memory each of `sharing` runs on the context's device may now use for images and pairs: its
     share of half of the free memory, less what batches need besides. 0: unknown, or too little. */
  uint64_t (*free_bytes)(const hs_context *context, uint64_t sharing);
  /* Return the bytes on the device: for an image, and for a pair in a batch. */
  uint64_t (*image_bytes)(size_t count);
  uint64_t (*pair_bytes)(size_t first_count, size_t second_count);
  /* Opens a matcher. batch_bytes: device memory of each batch; half as much is pinned on the host. message: reason of a
     failure. Statuses: HS_ERR_MEMORY, HS_ERR_DEVICE. */
  hs_status (*open)(hs_context *context, uint64_t batch_bytes, pair_matcher **matcher, char *message,
                    size_t message_bytes);
  void (*close)(pair_matcher *matcher); /* closes a matcher; null is allowed */
  /* push makes the device the calling thread's current one; pop restores the previous one. */
  stage_status (*push)(const pair_matcher *matcher, int32_t *previous);
  void (*pop)(int32_t previous);
  /* Copies 8-bit descriptors to the device and waits for the copy. */
  stage_status (*upload)(pair_matcher *matcher, const void *descriptors, uint32_t count, device_descriptors **image);
  void (*free_image)(pair_matcher *matcher, device_descriptors *image);
  /* Starts to match `count` pairs (1..PAIRS_PER_BATCH) as batch number `batch`, which must not be in flight. Together
     the pairs need at most batch_bytes. */
  stage_status (*begin)(pair_matcher *matcher, int32_t batch, const descriptor_pair *pairs, uint32_t count,
                        const match_limits *limits, bool mutual);
  stage_status (*finish)(pair_matcher *matcher, int32_t batch); /* waits for the batch */
  /* Returns the matches of a pair of a finished batch, valid until the batch begins again. */
  const match_pair *(*result)(const pair_matcher *matcher, int32_t batch, uint32_t pair, uint32_t *count);
  const char *(*error_text)(void);
} engine_pairs;

/* ------------------------------------------------------------------ JPEG */

typedef enum decoder_state {
  DECODER_UNKNOWN, /* open has not been called yet */
  DECODER_OPEN,    /* the device can decode, but its pixels have not been compared with libjpeg's */
  DECODER_READY,
  DECODER_WRONG, /* the device's pixels differ from libjpeg's, so it must not decode */
  DECODER_OFF    /* there is no decoder */
} decoder_state;

/* A packed picture (image_io/jpeg/jpeg_stream.h), and the destination of its pixels. Pixel (x, y) as stored becomes
   pixel start + x * step_x + y * step_y of the displayed picture, whose rows have no gaps. */
typedef struct packed_jpeg {
  jpeg_shape shape;
  const void *packed;    /* pointer into packed_memory */
  int32_t width, height; /* size as displayed */
  int64_t start, step_x, step_y;
} packed_jpeg;

/* Rows of a decoded picture, in device memory of the context. Valid until the context decodes again. */
typedef struct decoded_rows {
  const unsigned char *data;
  size_t stride_bytes;
} decoded_rows;

/* Decodes JPEGs on the device, before the frame that uses them. A context and its workers share the decoder's state.
   The decoder is used only after source/jpeg_on_gpu.c found its pixels equal to libjpeg's. */
typedef struct engine_decoder {
  decoder_state (*open)(hs_context *context);
  /* Records the result of the comparison. reason: why the decoder must not be used; null: the pixels are equal. */
  void (*judge)(hs_context *context, const char *reason);
  /* Returns the state. *reason: why the decoder is off, otherwise the decoder's name. */
  decoder_state (*state)(const hs_context *context, const char **reason);
  /* Returns pinned memory for packed pictures, valid until the next call. Waits for earlier decoding. Null: `bytes`
     cannot be allocated, or exceed the size that a device should decode. */
  void *(*packed_memory)(hs_context *context, size_t bytes);
  /* Enqueues the decoding of 1..JPEG_GROUP_MAX packed pictures on the context's stream, without waiting. False: it
     failed, or memory is not sufficient or exceeds max_memory_bytes; the rows are then undefined. */
  bool (*decode)(hs_context *context, const packed_jpeg *pictures, int32_t count, decoded_rows *rows);
  /* Call after the frame. Returns the first picture of the last decode that the device refused and libjpeg must decode;
     -1: none. */
  int32_t (*refused)(const hs_context *context);
  /* Waits for the stream and copies rows of `width` bytes to host memory, without gaps. */
  hs_status (*fetch)(hs_context *context, const decoded_rows *rows, int32_t width, int32_t height, unsigned char *to);
} engine_decoder;

/* ------------------------------------------------------------------ primitives */

/* The functions of hartsift_cuda.h for arrays that the device reads; arguments, order and statuses as there. */
typedef struct engine_primitives {
  hs_status (*alloc_host)(hs_context *context, size_t bytes, void **memory);
  void (*free_host)(hs_context *context, void *memory);
  hs_status (*finish)(hs_context *context);
  /* first: the sum, the mean or the minimum; second: the maximum. Of a range either may be null. */
  hs_status (*reduce)(hs_context *context, const hs_array *array, void *stream, reduce_kind kind, double *first,
                      double *second);
  hs_status (*tile_stats)(hs_context *context, const hs_array *array, const hs_tiling *tiling, void *stream,
                          hs_tile *tiles, size_t capacity, size_t *count);
  hs_status (*histogram256)(hs_context *context, const hs_array *array, const hs_array *mask, void *stream,
                            uint64_t *counts);
  hs_status (*equalize)(hs_context *context, const hs_array *picture, void *stream, uint8_t *out,
                        size_t out_stride_bytes);
  hs_status (*convolve1d)(hs_context *context, const hs_array *signal, const double *taps, size_t tap_count,
                          hs_ends ends, void *stream, void *out, size_t out_stride_bytes);
} engine_primitives;

/* ------------------------------------------------------------------ the engine */

typedef struct engine {
  const char *name;       /* name of the engine in HARTSIFT_DEVICE */
  bool offloads;          /* frames run on another processor, so threads of the host are free to decode files */
  bool reports_progress;  /* run reports progress; false: the caller of run reports it before */
  bool equalizes;         /* run equalizes the picture (request->equalize); false: the caller of run does so before */
  const char *no_decoder; /* reason for which `decoder` is null */

  /* Returns the number of usable devices; 0: reason says why. Null: the engine needs no device. */
  int32_t (*devices)(char *reason, size_t reason_bytes);
  /* Lets a program that uses only this device start without the others, if the machine seems to have it. The device
     keeps its number. Does nothing once a device was used or counted. Null: the engine needs no device. */
  void (*show_only)(int32_t index);
  /* Opens the engine's state for a context: context->engine_state. owner: null, or the context whose worker this is;
     variant is then null. After a failure nothing stays open, and message has the reason. Statuses: HS_ERR_NO_DEVICE,
     HS_ERR_OPTION (the name of a variant), HS_ERR_MEMORY, HS_ERR_THREAD. */
  hs_status (*open)(hs_context *context, const hs_context *owner, const char *variant, char *message,
                    size_t message_bytes);
  void (*close)(hs_context *context); /* may be called after a failure of open */
  /* Writes "stage: variant" lines. Returns the number of characters written. */
  size_t (*report)(const hs_context *context, char *text, size_t bytes);
  /* Returns the bytes held on the device and pinned on the host. Null: the engine holds none. */
  void (*memory)(const hs_context *context, uint64_t *device_bytes, uint64_t *pinned_bytes);
  /* Returns the bytes that a frame of this size needs, before any allocation: 8-bit gray without a mask, results on the
     host. Null: frames need only the host's plan. */
  hs_status (*query)(hs_context *context, int32_t width, int32_t height, uint64_t *device_bytes,
                     uint64_t *pinned_bytes);

  /* Runs a frame, or placement->group frames, for which requests and results are arrays. If a list overflows, it is
     grown and the frame is repeated. Statuses: as hs_extract. */
  hs_status (*run)(hs_context *context, const frame_request *request, const frame_placement *placement,
                   frame_result *result);
  /* Returns whether groups of frames can run with the context's options. Null: one frame per call. */
  bool (*groups)(const hs_context *context);
  /* Returns the number of frames of this size (1 or more) whose memory may be on the device at once while half of it
     stays free. Only if offloads is true. */
  int32_t (*frames_in_memory)(hs_context *context, int32_t width, int32_t height);

  /* Selects the set of pinned results (0..RESULT_SETS-1) to which later frames write; the other set keeps its results.
     Null: results are lists. */
  void (*use_results)(hs_context *context, int32_t set);
  /* Passes a set's records to *features: without a copy if that is worthwhile, otherwise as a copy. Statuses: as
     features_reserve. */
  hs_status (*give)(hs_context *context, int32_t set, const hs_features *found, hs_features *features);

  /* Makes pinned, empty lists for user->count user keypoints, which the caller fills, and sets user->capacity. Valid
     until the next call of this function. Null: run reads request->user_keypoints itself. Statuses: HS_ERR_MEMORY,
     HS_ERR_DEVICE. */
  hs_status (*user_lists)(hs_context *context, user_keypoints *user, keypoint_list *keypoints, feature_list *features);
  /* Returns the index of the listed user keypoint for each of the last frame's features [count], if orientations were
     computed. */
  hs_status (*user_keypoints_of)(hs_context *context, uint32_t count, const uint32_t **keypoint);

  const engine_tiles *tiles;       /* frames in tiles; null: run itself makes tiles if the untiled frame does not fit */
  const engine_split *split;       /* frames split with the CPU; null: the engine computes only complete frames */
  const engine_matching *matching; /* matching of two lists; null: the host matches */
  const engine_pairs *pairs;       /* matching of many pairs; null: the host's workers match */
  const engine_decoder *decoder;   /* decoder of JPEGs; null: libjpeg decodes */
  const engine_primitives *primitives; /* primitives; null: arrays in device memory are refused */
} engine;

/* Use of a context's engine: the report, fallback to the CPU, workers with the same engine, statistics. */

/* Writes context->report. */
void backend_report(hs_context *context);
/* engine.report of the CPU. */
size_t backend_report_cpu(const hs_context *context, char *text, size_t bytes);

/* Returns whether the CPU should run a frame that failed with this status because the device's memory is full. Only
   with HS_DEVICE_AUTO on a device. */
bool backend_falls_back(const hs_context *context, hs_status status);
/* Records a fallback to the CPU and its reason for the report. Only the first fallback of a context is kept. */
void backend_note_fallback(hs_context *context, const char *reason);

/* Makes a context that works as `owner` does, with `threads` CPU threads, for images in flight. On failure the reason
   is in the owner's last error. */
hs_status backend_clone(hs_context *owner, int32_t threads, hs_context **clone);

/* Frees a context without images in flight. */
void backend_release(hs_context *context);

/* Sets the statistics of the context itself, without its workers. Does not change struct_size. */
void backend_statistics(const hs_context *context, hs_statistics *statistics);

#endif
