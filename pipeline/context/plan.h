/*
 * The plan of a frame: its octaves, and for every buffer its size, when it is in use, and its offset.
 *
 * Pure arithmetic, tested without pictures or devices. From the table come the size query, the one slab a context holds
 * and every pointer of a frame. Buffers whose lifetimes are disjoint share space. The levels of all octaves are kept,
 * because their keypoints are processed together; but on the host the first octave, three quarters of all samples, is
 * searched before the others are computed; these then reuse the memory of the levels that only the search reads. If stages
 * run at the same time (graph_bytes, passes), every other buffer has its own memory.
 */
#ifndef HARTSIFT_CONTEXT_PLAN_H
#define HARTSIFT_CONTEXT_PLAN_H

#include "pipeline/include/hartsift.h"
#include "stages/keypoint.h"
#include "stages/pyramid.h"

/* Steps of a frame, the unit of lifetimes. */
typedef enum plan_step {
  STEP_FIRST_PYRAMID, /* the levels of the first octave */
  STEP_FIRST_DETECT,
  STEP_PYRAMID, /* of the other octaves; in tiles of any octave */
  STEP_DETECT,
  STEP_DESCRIBE,
  STEP_COUNT
} plan_step;

typedef enum plan_space { SPACE_HOST, SPACE_DEVICE } plan_space;

/* What a buffer holds; those up to PLAN_PER_OCTAVE exist once for each octave. */
typedef enum plan_buffer {
  BUFFER_LEVELS,     /* planes of an octave: S+3, or S+2 where detection does not read the last level; of the first
                        octave on the host those up to level S, the others being BUFFER_TOP_LEVELS */
  BUFFER_BLUR_WORK,  /* scratch of base and level step: what the backend asks for, else one plane; on the host [0] for
                        the first octave, [1] for the others */
  BUFFER_DETECT,     /* host: scratch of detection, what the backend asks for; likewise */
  BUFFER_CANDIDATES, /* device: a bit a sample of DoG levels 1..S */
  BUFFER_SETTLED,    /* the same */
  BUFFER_DOG,        /* device: S+2 planes of differences, where the uber kernel stores them */
  PLAN_PER_OCTAVE,
  BUFFER_TOP_LEVELS =
      PLAN_PER_OCTAVE,  /* host: levels S+1 and above of the first octave, directly after its other levels */
  BUFFER_COUNTS,        /* uint32 counts of the lists */
  BUFFER_KEYPOINTS,     /* the arrays of a keypoint_list, one after another */
  BUFFER_FEATURES,      /* the arrays of a feature_list */
  BUFFER_DESCRIPTORS,   /* feature_capacity descriptors */
  BUFFER_SOURCES,       /* describing user keypoints: which of them a listed one is */
  BUFFER_PICTURE,       /* device: the source as the caller laid it out */
  BUFFER_MASK,          /* device: the caller's mask */
  BUFFER_SELECTED,      /* device: a second feature_list, which selection fills */
  BUFFER_RECORDS,       /* device: the features as hs_keypoint, when results stay there */
  BUFFER_GRAY,          /* device: the gray bytes of a colour picture that is equalised */
  BUFFER_HISTOGRAM,     /* device: 256 counts, of a picture that is equalised */
  BUFFER_SCRATCH,       /* device: scratch of the keypoint stages */
  BUFFER_BASE,          /* host, tiled: level 0 of an odd octave, [1], and of an even one, [0] */
  BUFFER_ESCAPED,       /* host, tiled: candidates that leave a tile */
  BUFFER_ORDER,         /* host, tiled: scratch for putting keypoints and features in order */
  BUFFER_FEATURE_ORDER, /* host, tiled: the order of the features */
  BUFFER_SHAPES,        /* the affine shape of each keypoint */
  BUFFER_WARPED,        /* host: the patches of shapes that threads are at */
  BUFFER_GRAPH,         /* host: the jobs of a frame whose stages run at the same time */
  BUFFER_FRAMES,        /* device: their frames as hs_frame, when results stay there */
  BUFFER_ROWS,          /* host, tiles on a device: rows of a picture that is not held */
  PLAN_BUFFER_COUNT
} plan_buffer;

/* Bytes of one keypoint and one feature in their lists. */
enum {
  KEYPOINT_BYTES = 4 * sizeof(float) + 2 * sizeof(int32_t) + 2 * sizeof(int16_t),
  FEATURE_BYTES = sizeof(uint32_t) + sizeof(float)
};

/* A tile's own octave and those that its descriptors are pooled over: S + S log2 4 levels. */
enum { TILE_OCTAVES_MAX = 4, TILE_ESCAPED_BYTES = 4 * sizeof(int32_t) };
/* Candidates that may leave a tile on a device before it is divided. */
enum { TILE_DEVICE_ESCAPED = 4096 };

enum { PLAN_ALIGNMENT = 256, PLAN_ENTRIES_MAX = PLAN_PER_OCTAVE * OCTAVES_MAX + PLAN_BUFFER_COUNT };

typedef struct plan_entry {
  plan_buffer buffer;
  plan_space space;
  int32_t octave_index; /* 0..octave_count-1; 0 for buffers of the whole frame */
  size_t bytes, offset; /* in the slab of its space; offset a multiple of PLAN_ALIGNMENT */
  int32_t first_step, last_step;
} plan_entry;

/* What a plan is made for. */
typedef struct plan_request {
  int32_t width, height;
  pyramid_rules rules;
  int32_t skipped_octaves;                      /* the first ones, which are made elsewhere */
  uint32_t keypoint_capacity, feature_capacity; /* 0: estimated from the number of samples */
  uint32_t source_capacity;                     /* user keypoints, 0 when none are */
  size_t descriptor_bytes;                      /* of one; 0: none wanted */
  int32_t threads;                              /* of the CPU */
  int32_t radius_max;                           /* of the filters */
  size_t row_bytes;                             /* of a picture that comes in rows; 0: it is in memory */
  bool affine;                                  /* keypoints have shapes */
  size_t warped_floats;                         /* that the CPU works on them in; else 0 */
  /* as in stage_ops */
  size_t (*pyramid_work_floats)(int32_t width, int32_t height, int32_t radius_max, int32_t threads);
  bool pyramid_work_plane;
  size_t (*detect_work_bytes)(const pyramid_geometry *geometry, int32_t scales, uint32_t keypoint_capacity);
  bool detect_reads_top;
  size_t octave_floats;    /* scratch of an octave in one pass, where that pays; 0: it never does */
  size_t octave_bytes_min; /* of one of the first octave's levels, where that pays; tests have it smaller */
  /* Null: the stages of a frame follow one another. Else threads run them at the same time, unless the first octave is
     made in one pass, and this gives the bytes which that takes. */
  size_t (*graph_bytes)(int32_t octave_count, int32_t scales);
  /* For a frame in tiles; read while the plan is made and while it is used. */
  const sift_params *params;
  const gaussian_filter *base_filter, *step_filter; /* step_filter[1..S+2] */
} plan_request;

typedef struct frame_plan {
  plan_request request; /* with the capacities decided */
  pyramid_geometry geometry;
  size_t stride[OCTAVES_MAX]; /* floats from row to row of a level */
  size_t level_floats[OCTAVES_MAX];
  int32_t entry_count;
  plan_entry entries[PLAN_ENTRIES_MAX];
  size_t host_bytes, device_bytes; /* size of each slab */
  int32_t passes;                  /* octaves, from the first on, that are made and searched in one pass each */
  /* A frame in tiles (tile_plan.h): stride and level_floats are of a tile's levels, indexed from the tile's octave. */
  int32_t tile_side;       /* samples; 0: not tiled */
  uint32_t tile_keypoints; /* that may be found in a tile, or leave it, before it is divided */
} frame_plan;

/* Makes the plan. HS_ERR_LIMIT: a size does not fit the address space. */
hs_status plan_make(const plan_request *request, frame_plan *plan);

/* Bytes of BUFFER_COUNTS on a device: 4 counts, and at DEVICE_OUTPUTS_AT where the results go. */
enum { DEVICE_OUTPUTS_AT = 16, DEVICE_COUNTS_BYTES = 64 };

/* What a device frame needs besides. */
typedef struct device_request {
  size_t picture_bytes, mask_bytes;
  bool equalize;
  size_t gray_bytes; /* of its equalised picture, where that does not take the picture's own place */
  bool blur_work;    /* some filter wants a work plane */
  bool dog;          /* differences are stored */
  bool selection;
  bool resident;       /* results stay on the device */
  bool affine;         /* keypoints have shapes */
  uint32_t grid_cells; /* over which features are selected there, 0: none */
  size_t (*scratch_bytes)(uint32_t mask_words, uint32_t keypoints, uint32_t features, uint32_t grid_cells);
} device_request;

/* The plan of a frame on a device: all octaves are kept, because their keypoints are processed together.
   Candidate and settled masks of all octaves follow one another, each beginning at mask_offset words. */
hs_status plan_make_device(const plan_request *request, const device_request *device, frame_plan *plan,
                           uint32_t mask_offset[OCTAVES_MAX], uint32_t *mask_words);

/* What the way of a frame depends on. */
typedef struct way_request {
  bool on_device; /* the device computes it, or the first octaves of it */
  bool tiled;     /* the whole exceeds the memory */
  bool rows;      /* the picture comes in rows; tiled only */
  bool user_keypoints;
  /* of the CPU */
  int32_t octaves, skipped_octaves;
  int32_t passes; /* frame_plan.passes */
  bool has_jobs;  /* the plan has memory for a graph of jobs */
  /* of a device */
  bool split;     /* the CPU computes the last octaves */
  int32_t group;  /* images */
  bool seen;      /* a frame of this kind was run before: its graph is worth recording */
  bool is_worker; /* others launch at the same time */
} way_request;

typedef struct way_choice {
  hs_frame_way way;
  bool jobs;          /* on the CPU: levels and stages are jobs (HS_WAY_CPU_JOBS, and user keypoints with threads) */
  const char *reason; /* a static string */
} way_choice;

/* The way of a frame: the only place that chooses one. pipeline/frame/WAYS.md draws them. */
way_choice plan_choose_way(const way_request *request);

/* For the plan's own files: adds an entry of count * item bytes (none when 0) at the lowest free offset; false when a
   size does not fit. */
bool plan_add(frame_plan *plan, plan_entry entry, size_t count, size_t item);
/* Likewise: the lists of keypoints and features. */
bool plan_add_lists(frame_plan *plan);
/* Likewise: first capacities of the lists where none are asked for, rounded to whole cache lines of every array. */
void plan_decide_capacities(frame_plan *plan);

/* The entry of a buffer, or null when the plan has none. */
const plan_entry *plan_find(const frame_plan *plan, plan_buffer buffer, int32_t octave_index);

const char *plan_buffer_name(plan_buffer buffer);

#endif
