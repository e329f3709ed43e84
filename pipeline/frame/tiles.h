/*
 * The parts of a frame in tiles: order of keypoints and features, pruning, the levels of a tile, tiles on a device.
 */
#ifndef HARTSIFT_FRAME_TILES_H
#define HARTSIFT_FRAME_TILES_H

#include "pipeline/context/context.h"
#include "pipeline/context/engine.h"
#include "pipeline/context/tile_plan.h"
#include "stages/ops.h"

/* The octave's part of the lists: from first_keypoint and first_feature to their ends. */
typedef struct tile_order {
  workspace *lists;
  stage_queue *queue; /* null: no threads */
  uint32_t first_keypoint, first_feature;
  int32_t height, scales;      /* of the octave */
  size_t descriptor_bytes;     /* of one */
  uint32_t *scratch;           /* BUFFER_ORDER */
  uint32_t *features;          /* BUFFER_FEATURE_ORDER: not in place, the items of the list in the defined order */
  bool in_place;               /* everything moves to its place; else only the order is told */
  uint32_t ordered, keypoints; /* not in place, of all octaves so far: features, and keypoints that they are of */
} tile_order;

/* Orders that part by level, row and column, each sample once: a keypoint that two tiles found is in the lists twice. */
void tile_order_octave(tile_order *order);

/* The order of an octave's keypoints and features as its tiles left them: indices alone, threads share the work. */

enum { TILE_SORT_CHUNKS = 64 };

/* What is sorted, and in which memory. Numbers are indices of the lists, less first_keypoint or first_feature. */
typedef struct tile_sort {
  const keypoint_list *keypoint_list;
  const feature_list *feature_list;
  stage_queue *queue; /* null: no threads */
  uint32_t first_keypoint, first_feature;
  uint32_t keypoints, features;
  int32_t height, scales;                /* of the octave */
  uint32_t *spare, *sorted, *start;      /* [keypoints] each */
  uint32_t *source;                      /* [features] */
  uint32_t *counters;                    /* [height * scales] */
  int32_t chunks;                        /* set by tile_sort_keypoints */
  uint32_t once;                         /* likewise: keypoints without those that stand there a second time */
  uint32_t before[TILE_SORT_CHUNKS + 1]; /* items of the chunks before each */
} tile_sort;

/* Sets `sorted`, the keypoints by level, row and column, duplicates after all others, and `once`, the number without
   duplicates. */
void tile_sort_keypoints(tile_sort *sort);

/* After tile_sort_keypoints: sets `start`, each keypoint's first feature, and `source`, the features in the order of the
   sorted keypoints. Returns the number of features of the first `once` keypoints. */
uint32_t tile_sort_features(tile_sort *sort);

/* Leaving out, before they are described, features of a tile that max_features will drop whatever the other tiles have.

   Features that are certainly different ones are counted by their key. Once more than max_features have at least some key,
   a feature below it cannot stay. Keys are counted in classes, so a few that will be dropped are described. */

enum { PRUNE_SHIFT = 19, PRUNE_CLASSES = 1 << (32 - PRUNE_SHIFT) };

typedef struct tile_prune {
  uint32_t most; /* features; 0: all stay */
  select_rule rule;
  uint32_t least; /* features with smaller keys are left out */
  uint32_t counts[PRUNE_CLASSES];
} tile_prune;

/* For a frame with these options. Over a grid nothing is left out: what stays of a cell depends on the others. */
void tile_prune_begin(tile_prune *prune, const hs_options *options);

/* Counts the features from item `first` on and removes those that cannot stay, with their descriptors of descriptor_bytes
   (0: they have none yet). core: null, or where the keypoints lie that no other tile finds too. */
void tile_prune_features(tile_prune *prune, const workspace *lists, size_t descriptor_bytes, uint32_t first,
                         const plane_region *core);

/* ------------------------------------------------------------------ levels of a tile (tile_levels.c) */

/* The memory of a tile, and its position in the picture. */
typedef struct tile_levels {
  hs_context *context;
  const source_view *source;
  int32_t octave; /* of the plan's geometry */
  tile_halos halos;
  plane_region core; /* the tile, in samples of that octave */
  /* Of the octaves from that one on: whole octaves, of which only the tile is in memory. */
  octave_view views[TILE_OCTAVES_MAX];
} tile_levels;

/* Sets everything but the core for the tiles of an octave. */
void tile_levels_begin(tile_levels *tile, hs_context *context, const source_view *source, int32_t octave);

/* Makes the levels about a tile. */
stage_status tile_levels_make(tile_levels *tile, const plane_region *core);

/* Takes the samples of the next octave's base that lie in the tile, if there is a next octave. */
stage_status tile_levels_give_base(const tile_levels *tile);

/* The rows of a picture that the tiles of its first octave want next, where the whole is not in memory: a band that
   goes down the picture as its file is decoded. */

typedef struct row_band {
  row_feed *feed;  /* null: the picture is in memory */
  uint8_t *memory; /* capacity rows of feed->row_bytes */
  int32_t capacity, height;
  int32_t first, end; /* the rows that are there */
} row_band;

/* Begins at the top of the picture. memory: `bytes` of it. False: feed->failure says why. */
bool row_band_begin(row_band *band, row_feed *feed, int32_t height, void *memory, size_t bytes);

/* Has rows [y0, y1), of which y0 was never smaller in a call before; those above it are forgotten. source->data becomes the
   place where row 0 would be. False: feed->failure says why. */
bool row_band_hold(row_band *band, int32_t y0, int32_t y1, source_view *source);

/* Reads what is left, for what is wrong there. False: feed->failure says what. */
bool row_band_finish(row_band *band);

/* ------------------------------------------------------------------ tiles on a device (tile_on_device.c) */

/* engine_tiles.begin and finish. The context's error says why where they are not STAGE_OK. */
stage_status tile_on_device_begin(hs_context *context, const frame_request *request, const device_tile *tile);
stage_status tile_on_device_finish(hs_context *context, const device_tile *tile, device_tile_result *result);

/* Appends the keypoints that the filter keeps, with their features; threads of the queue share the copies. The lists' counts
   go on where there is no room, and what stands in them is of no use then. Returns how many keypoints were kept. */
uint32_t tile_on_device_append(stage_queue *queue, const device_tile_result *result, const place_filter *filter,
                               size_t descriptor_bytes, workspace *lists);

#endif
