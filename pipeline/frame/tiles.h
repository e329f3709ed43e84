/*
 * Parts of a frame in tiles: order of keypoints and features, pruning, levels of a tile, tiles on a device.
 */
#ifndef HARTSIFT_FRAME_TILES_H
#define HARTSIFT_FRAME_TILES_H

#include "pipeline/context/context.h"
#include "pipeline/context/engine.h"
#include "pipeline/context/tile_plan.h"
#include "stages/ops.h"

/* Order of the part of the lists that belongs to an octave: it begins at first_keypoint and first_feature and ends with
   the lists. */
typedef struct tile_order {
  workspace *lists;
  stage_queue *queue; /* threads for the work; null: only this thread */
  uint32_t first_keypoint, first_feature;
  int32_t height, scales;      /* rows of the octave, and S */
  size_t descriptor_bytes;     /* bytes of one descriptor */
  uint32_t *scratch;           /* BUFFER_ORDER */
  uint32_t *features;          /* BUFFER_FEATURE_ORDER; unless in_place: indices of the features in the defined order */
  bool in_place;               /* items move to their positions; else only `features` is set */
  uint32_t ordered, keypoints; /* unless in_place: number of features of all octaves so far, and of their keypoints */
} tile_order;

/* Orders that part by level, row and column. A keypoint that two tiles found is in the lists twice; one of the two is
   dropped. */
void tile_order_octave(tile_order *order);

/* Sorts an octave's keypoints and features, which are in the order of its tiles. Only indices are sorted; threads share
   the work. */

enum { TILE_SORT_CHUNKS = 64 };

/* Input and memory of a sort. Indices are relative to first_keypoint or first_feature. */
typedef struct tile_sort {
  const keypoint_list *keypoint_list;
  const feature_list *feature_list;
  stage_queue *queue; /* threads for the work; null: only this thread */
  uint32_t first_keypoint, first_feature;
  uint32_t keypoints, features;
  int32_t height, scales;                /* rows of the octave, and S */
  uint32_t *spare, *sorted, *start;      /* [keypoints] for each array */
  uint32_t *source;                      /* [features] */
  uint32_t *counters;                    /* [height * scales] */
  int32_t chunks;                        /* number of chunks; set by tile_sort_keypoints */
  uint32_t once;                         /* number of keypoints without duplicates; set by tile_sort_keypoints */
  uint32_t before[TILE_SORT_CHUNKS + 1]; /* [i]: number of items in the chunks before chunk i */
} tile_sort;

/* Sets `sorted`: the keypoints by level, row and column, with duplicates after all others. Sets `once`: the number
   without duplicates. */
void tile_sort_keypoints(tile_sort *sort);

/* Sets `start`: each keypoint's first feature. Sets `source`: the features in the order of the sorted keypoints. Call
   after tile_sort_keypoints. Returns the number of features of the first `once` keypoints. */
uint32_t tile_sort_features(tile_sort *sort);

/* Pruning: removes features of a tile, before they are described, that max_features will certainly drop.

   Features that are certainly distinct are counted by their key. As soon as more than max_features features have at
   least some key, features below that key cannot stay. Keys are counted in classes, so a few features are described
   although they will be dropped. */

enum { PRUNE_SHIFT = 19, PRUNE_CLASSES = 1 << (32 - PRUNE_SHIFT) };

typedef struct tile_prune {
  uint32_t most; /* maximum number of features; 0: all */
  select_rule rule;
  uint32_t least; /* features with smaller keys are removed */
  uint32_t counts[PRUNE_CLASSES];
} tile_prune;

/* Starts pruning for a frame with these options. With a grid nothing is pruned, because which features of a cell stay
   depends on other tiles. */
void tile_prune_begin(tile_prune *prune, const hs_options *options);

/* Counts the features from item `first` on and removes those that cannot stay, with their descriptors of
   descriptor_bytes each (0: no descriptors yet). core: region in which no other tile finds keypoints; only keypoints
   inside count. Null: none count. */
void tile_prune_features(tile_prune *prune, const workspace *lists, size_t descriptor_bytes, uint32_t first,
                         const plane_region *core);

/* ------------------------------------------------------------------ levels of a tile (tile_levels.c) */

/* Levels of a tile, and the tile's position in the picture. */
typedef struct tile_levels {
  hs_context *context;
  const source_view *source;
  int32_t octave; /* index of the octave in the plan's geometry */
  tile_halos halos;
  plane_region core; /* the tile, in samples of that octave */
  /* Octaves from that octave on: views of complete octaves, of which only the tile and its halo are in memory. */
  octave_view views[TILE_OCTAVES_MAX];
} tile_levels;

/* Prepares for the tiles of an octave: sets all fields except the core. */
void tile_levels_begin(tile_levels *tile, hs_context *context, const source_view *source, int32_t octave);

/* Makes the levels around a tile. */
stage_status tile_levels_make(tile_levels *tile, const plane_region *core);

/* Stores the tile's samples of the next octave's base, if there is a next octave. */
stage_status tile_levels_give_base(const tile_levels *tile);

/* Rows of a picture that is read row by row: a band that moves down the picture while its file is decoded, and holds
   the rows for the next tiles of the first octave. */

typedef struct row_band {
  row_feed *feed;  /* rows of the picture; null: the picture is in memory */
  uint8_t *memory; /* memory for `capacity` rows of feed->row_bytes each */
  int32_t capacity, height;
  int32_t first, end; /* rows [first, end) are in memory */
} row_band;

/* Begins at the top of the picture. memory: `bytes` bytes for the rows. False: feed->failure says why. */
bool row_band_begin(row_band *band, row_feed *feed, int32_t height, void *memory, size_t bytes);

/* Makes the band hold rows [y0, y1) and drops those above y0. y0 never decreases from call to call. source->data
   becomes the address that row 0 would have. False: feed->failure says why. */
bool row_band_hold(row_band *band, int32_t y0, int32_t y1, source_view *source);

/* Reads the remaining rows, to detect errors in them. False: feed->failure has the status. */
bool row_band_finish(row_band *band);

/* ------------------------------------------------------------------ tiles on a device (tile_on_device.c) */

/* Run engine_tiles.begin and finish. If the status is not STAGE_OK, the context's error has the reason. */
stage_status tile_on_device_begin(hs_context *context, const frame_request *request, const device_tile *tile);
stage_status tile_on_device_finish(hs_context *context, const device_tile *tile, device_tile_result *result);

/* Appends the keypoints that the filter keeps, with their features; threads of the queue share the copies. Returns the
   number of keypoints kept. The counts continue past the capacity of the lists; the items of the lists are then
   undefined. */
uint32_t tile_on_device_append(stage_queue *queue, const device_tile_result *result, const position_filter *filter,
                               size_t descriptor_bytes, workspace *lists);

#endif
