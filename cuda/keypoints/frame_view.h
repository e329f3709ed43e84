/*
 * Device memory of one frame's keypoint stages: octaves, masks, lists and scratch.
 *
 * One view is passed by value to every kernel from refinement to results. Counts stay on the device: each stage reads
 * the count that the one before it wrote, and counts past a capacity without writing there. The order of launches
 * (the functions end in _launch) is
 *
 *   cuda_keypoint_reset, (extrema), cuda_refine, cuda_locate, [cuda_affine_shape], cuda_orient, [cuda_select],
 *   cuda_describe, cuda_results
 *
 * on one stream, or on several with events between them. All of it may be captured into a graph.
 * Drawings of the streams and of a frame's timeline: cuda/KERNELS.md.
 *
 * To add a kernel (tests/api/check_places.py names what was forgotten):
 *   1. the kernel in a .cu of its subject, with its description: Does, Launch, Shared, Reads, Writes, Barriers, Limits,
 *      Order, Cost;
 *   2. its entry in the table of the subject's kernels (keypoints_kernels.h), and one launcher in the subject's header,
 *      which asserts the launch conditions of the description;
 *   3. its node in a frame's graph (pipeline/device/cuda_record.c), its buffers in pipeline/device/cuda_plan.c, and a
 *      variant's name in pipeline/device/cuda_state.c if there is a choice;
 *   4. its agreement with the reference, byte for byte: tests/agree/test_cuda_*.c (tests/prim for a primitive);
 *   5. its time in bench/NOTES.md, with its bound.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_FRAME_VIEW_H
#define HARTSIFT_CUDA_KEYPOINTS_FRAME_VIEW_H

#include "cuda/runtime/device.h"
#include "stages/affine.h"
#include "stages/describe.h"
#include "stages/detect.h"
#include "stages/refine.h"
#include "stages/select.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  MASK_TILE_WORDS = 1024, /* smallest tile of the masks, in mask words; settled samples are counted per tile */
  MASK_TILES_MAX = 2048,  /* maximum number of such tiles; tiles are larger if there would be more */
  LIST_TILE = 256,        /* keypoints or features in a tile of a list; they are counted per tile */
  WORK_BINS = 256,        /* bins of window radii that order the descriptor work; the last bin takes all larger radii */
  SELECT_DIGIT_BITS = 11,
  SELECT_DIGITS = 1 << SELECT_DIGIT_BITS,
  SELECT_PASSES = 3,          /* passes over a 32-bit key, of 11 + 11 + 10 bits */
  GRID_DEVICE_CELLS = 1 << 16 /* maximum number of cells of a grid over which a device selects */
};

/* Counters from which warps and blocks draw their next item, and the length of a list stored in `histograms`. */
typedef enum cuda_ticket {
  TICKET_ORIENT,     /* the next keypoint to orient */
  TICKET_DESCRIBE,   /* the next feature to describe */
  TICKET_SHAPE,      /* the next keypoint whose shape starts */
  TICKET_LONG_SHAPE, /* the next keypoint whose shape continues */
  COUNT_LONG_SHAPES, /* number of keypoints whose shape continues */
  TICKETS
} cuda_ticket;

/* Capacities of one frame's lists. */
typedef struct cuda_keypoint_capacity {
  uint32_t mask_words; /* as in cuda_frame_view */
  uint32_t keypoints;
  uint32_t features; /* capacity of each feature list; the larger one if they differ */
  uint32_t cells;    /* cells of the selection grid; 0: no grid */
} cuda_keypoint_capacity;

/* Scratch of the keypoint stages. The first counter_bytes bytes from `counters` on are zero at the start of a
 * frame. */
typedef struct cuda_keypoint_scratch {
  void *counters;
  size_t counter_bytes;
  uint32_t *candidate_count;             /* number of candidates of the frame */
  uint32_t *tickets;                     /* [TICKETS] */
  uint32_t *settled_tiles;               /* [MASK_TILES_MAX] number of settled samples in each tile of the masks */
  uint32_t *work_counts;                 /* [2][WORK_BINS] number of features by window radius; [0] oriented, [1]
                                          * selected */
  uint32_t *work_cursors;                /* [2][WORK_BINS] number of those features that have a position in `order` */
  uint32_t *select_digits;               /* [SELECT_PASSES][SELECT_DIGITS] */
  uint32_t *grid_counts, *grid_cursors;  /* [cell] number of its features; number of those in grid_list */
  uint32_t *peak_tiles;                  /* number of features in each tile of keypoints */
  uint32_t *select_above, *select_equal; /* number of features above, and at, the threshold in each tile of features */
  uint8_t *peak_counts;                  /* [keypoint] number of features */
  int32_t *histograms;                   /* [keypoint][ORIENT_BINS]; earlier: the list of keypoints whose shape
                                          * continues */
  float *peak_angles;                    /* [keypoint][ORIENT_PEAKS_MAX] */
  uint32_t *select_keys;
  uint32_t *grid_first, *grid_ranks;            /* [cell] start of its list; number of ranks of which all features
                                                 * are kept */
  uint32_t *grid_cells, *grid_list, *grid_keys; /* [feature] cell; the features ordered by cell, and their keys */
  uint32_t *order; /* features in order of work, the largest descriptor window first; results do not depend on it */
} cuda_keypoint_scratch;

/* One feature in the library's output. Layout as hs_keypoint, 24 bytes. */
typedef struct cuda_feature_record {
  float x, y, sigma, orientation, response;
  int16_t octave, level;
} cuda_feature_record;

/* A feature's frame. Layout as hs_frame. */
typedef struct cuda_feature_frame {
  float a[4];
} cuda_feature_frame;

/* Destinations of a frame's results, as device addresses. Kernels read this struct from device memory, so a
 * recorded frame can be replayed with other destinations. */
typedef struct cuda_outputs {
  cuda_feature_record *records; /* 16-byte aligned */
  void *descriptors;            /* 128-byte aligned */
  cuda_feature_frame *frames;   /* if the view has shapes */
} cuda_outputs;

/* The tile of a picture that this frame covers (pipeline/frame/TILES.md). The view has the sizes of the complete
 * octaves, and data pointers to the address that sample (0, 0) would have. The masks cover a region of the first
 * octave only. */
typedef struct cuda_tile_part {
  bool tiled;                 /* false: there is no part, and the fields below are not read */
  plane_region masked;        /* region of the masks; x0 a multiple of 32 */
  plane_region search;        /* region in which candidates are kept */
  plane_region follow;        /* region in which candidates are followed */
  escaped_candidate seed;     /* if its level is above 0: only this candidate, the sample of `search`, is followed */
  escaped_candidate *escaped; /* receives candidates that leave `follow`, in any order */
  uint32_t escaped_capacity;
  uint32_t *escaped_count; /* number of escaped candidates; continues past the capacity; 0 before */
} cuda_tile_part;

/* Every pointer is device memory. */
typedef struct cuda_frame_view {
  octave_view octaves[OCTAVES_MAX];
  int32_t octave_count, first_octave;        /* first_octave equals octaves[0].octave */
  uint32_t mask_offset[OCTAVES_MAX];         /* first mask word of each octave: ascending, multiples of 4 */
  uint32_t mask_words;                       /* words of all octaves, a multiple of 4; words between octaves are
                                              * ignored */
  uint32_t *candidate_words, *settled_words; /* 16-byte aligned; each octave's words as mask_view */
  sift_params params;
  position_filter filter; /* mask: device memory or null */
  bool filtered;          /* false: the filter keeps every position, and is not read */
  keypoint_list keypoints;
  affine_shape *shapes;  /* [keypoint]; null: shapes are circles, and there are no frames */
  feature_list oriented; /* output of orientation */
  feature_list features; /* input of description: `oriented`, or the list that selection fills */
  uint32_t max_features; /* 0: no selection */
  select_rule selection;
  grid_shape grid; /* columns 0: selection ignores positions */
  const vote_scales *scales;
  cuda_keypoint_scratch scratch;
  cuda_tile_part part;
  /* Several pictures of one size in the same launches. group_views: views of all of them, in device memory; this
   * view is the first. Their counters are group_stride_bytes apart. group 0 or 1: only this picture. */
  int32_t group;
  const struct cuda_frame_view *group_views;
  size_t group_stride_bytes;
} cuda_frame_view;

/* The view for a kernel's block. GROUP: the kernel's compile-time constant. */
#define CUDA_VIEW_OF_BLOCK(GROUP, one) ((GROUP) ? (one).group_views[blockIdx.z] : (one))

/* The first returns the number of pictures in a launch; each has a grid. The second returns the blocks of each
 * grid: if blocks loop over a list, a group uses fewer for each picture. */
static inline uint32_t cuda_group_count(const cuda_frame_view *view) {
  return view->group > 1 ? (uint32_t)view->group : 1u;
}
static inline uint32_t cuda_group_share(const cuda_frame_view *view, uint32_t blocks) {
  const uint32_t share = blocks / cuda_group_count(view);
  return share > 0 ? share : 1u;
}

/* Lays out the scratch for these capacities at `base` (256-byte aligned device memory). Returns its bytes. base
 * null: only this size is valid. */
size_t cuda_keypoint_scratch_layout(const cuda_keypoint_capacity *capacity, void *base, cuda_keypoint_scratch *scratch);

/* Clears the counters of the scratch and, if there are masks, settled_words. Once per frame, before its other
 * launches. */
stage_status cuda_keypoint_reset_launch(const cuda_frame_view *view, cuda_stream stream);

/* Returns the number of words of one octave's masks: S * height rows. */
static inline size_t cuda_mask_words(const octave_view *octave, int32_t scales) {
  return (size_t)scales * (size_t)octave->height * (size_t)mask_words_per_row(octave->width);
}

/* Returns the number of mask words of a part. */
static inline size_t cuda_part_words(const cuda_tile_part *part, int32_t scales) {
  const plane_region *r = &part->masked;
  return (size_t)scales * (size_t)(r->y1 - r->y0) * (size_t)mask_words_per_row(r->x1 - r->x0);
}

/* Returns log2 of (words of a mask tile / MASK_TILE_WORDS). */
HS_INLINE uint32_t cuda_mask_tile_shift(uint32_t mask_words) {
  uint32_t shift = 0;
  while (((uint64_t)MASK_TILE_WORDS * MASK_TILES_MAX << shift) < mask_words) shift++;
  return shift;
}

#ifdef __cplusplus
}
#endif
#endif
