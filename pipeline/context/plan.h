/*
 * The plan of a frame: its octaves, and the size, lifetime and offset of every buffer.
 *
 * The plan is pure arithmetic, tested without pictures or devices. The size query, the size of a context's slab and
 * every pointer of a frame follow from it. Buffers with disjoint lifetimes share memory. The levels of all octaves are
 * kept, because their keypoints are processed together. But on the host the first octave, three quarters of all
 * samples, is searched before the others are computed; these then reuse the memory of its levels that only the search
 * reads. If stages run at the same time (graph_bytes, passes), every other buffer has its own memory.
 */
#ifndef HARTSIFT_CONTEXT_PLAN_H
#define HARTSIFT_CONTEXT_PLAN_H

#include "pipeline/include/hartsift.h"
#include "stages/keypoint.h"
#include "stages/pyramid.h"

/* Steps of a frame. Lifetimes of buffers are ranges of steps. */
typedef enum plan_step {
  STEP_FIRST_PYRAMID, /* makes the levels of the first octave */
  STEP_FIRST_DETECT,
  STEP_PYRAMID, /* makes the levels of the other octaves; in tiles, of any octave */
  STEP_DETECT,
  STEP_DESCRIBE,
  STEP_COUNT
} plan_step;

typedef enum plan_space { SPACE_HOST, SPACE_DEVICE } plan_space;

/* Buffers. Those before PLAN_PER_OCTAVE exist for each octave. */
typedef enum plan_buffer {
  /* planes of an octave: S+3, or S+2 if detection does not read the last level. For the first octave on the host only
     levels up to S; BUFFER_TOP_LEVELS has the others */
  BUFFER_LEVELS,
  /* scratch of base and level steps: the size that the backend requests, else one plane. On the host [0] is for the
     first octave, [1] for the others */
  BUFFER_BLUR_WORK,
  /* host: scratch of detection, of the size that the backend requests; [0] for the first octave, [1] for the others */
  BUFFER_DETECT,
  BUFFER_CANDIDATES, /* device: one bit per sample of DoG levels 1..S */
  BUFFER_SETTLED,    /* device: bits as in BUFFER_CANDIDATES */
  BUFFER_DOG,        /* device: S+2 planes of differences, if the uber kernel stores them */
  PLAN_PER_OCTAVE,
  BUFFER_TOP_LEVELS =
      PLAN_PER_OCTAVE,  /* host: levels S+1 and above of the first octave, directly after its other levels */
  BUFFER_COUNTS,        /* uint32 counts of the lists */
  BUFFER_KEYPOINTS,     /* the arrays of a keypoint_list, one after another */
  BUFFER_FEATURES,      /* the arrays of a feature_list */
  BUFFER_DESCRIPTORS,   /* feature_capacity descriptors */
  BUFFER_SOURCES,       /* with user keypoints: for each listed keypoint the index of its user keypoint */
  BUFFER_PICTURE,       /* device: source picture in the caller's layout */
  BUFFER_MASK,          /* device: the caller's mask */
  BUFFER_SELECTED,      /* device: a second feature_list, which selection fills */
  BUFFER_RECORDS,       /* device: features as hs_keypoint, if results stay on the device */
  BUFFER_GRAY,          /* device: gray bytes of a colour picture that is equalised */
  BUFFER_HISTOGRAM,     /* device: 256 counts of a picture that is equalised */
  BUFFER_SCRATCH,       /* device: scratch of the keypoint stages */
  BUFFER_BASE,          /* host, tiled: level 0 of an octave after the first; [1] odd octaves, [0] even ones */
  BUFFER_ESCAPED,       /* host, tiled: candidates that leave a tile */
  BUFFER_ORDER,         /* host, tiled: scratch for ordering keypoints and features */
  BUFFER_FEATURE_ORDER, /* host, tiled: the order of the features */
  BUFFER_SHAPES,        /* affine shape of each keypoint */
  BUFFER_WARPED,        /* host: per thread, the patch of the current shape */
  BUFFER_GRAPH,         /* host: job graph of a frame whose stages run at the same time */
  BUFFER_FRAMES,        /* device: frames of the features as hs_frame, if results stay on the device */
  BUFFER_ROWS,          /* host, tiles on a device: rows of a picture that is read row by row */
  PLAN_BUFFER_COUNT
} plan_buffer;

/* Bytes of one keypoint and of one feature in their lists. */
enum {
  KEYPOINT_BYTES = 4 * sizeof(float) + 2 * sizeof(int32_t) + 2 * sizeof(int16_t),
  FEATURE_BYTES = sizeof(uint32_t) + sizeof(float)
};

/* Maximum number of octaves of a tile: the tile's octave and those over which its descriptors are pooled, S + S log2 4
   levels. */
enum { TILE_OCTAVES_MAX = 4, TILE_ESCAPED_BYTES = 4 * sizeof(int32_t) };
/* Maximum number of candidates that may leave a tile on a device; if more leave it, the tile is divided. */
enum { TILE_DEVICE_ESCAPED = 4096 };

enum { PLAN_ALIGNMENT = 256, PLAN_ENTRIES_MAX = PLAN_PER_OCTAVE * OCTAVES_MAX + PLAN_BUFFER_COUNT };

typedef struct plan_entry {
  plan_buffer buffer;
  plan_space space;
  int32_t octave_index; /* 0..octave_count-1; 0 for buffers that all octaves share */
  size_t bytes, offset; /* bytes, and offset in the slab of its memory space: a multiple of PLAN_ALIGNMENT */
  int32_t first_step, last_step;
} plan_entry;

/* Inputs of a plan. */
typedef struct plan_request {
  int32_t width, height;
  pyramid_rules rules;
  int32_t skipped_octaves;                      /* number of first octaves that are made elsewhere */
  uint32_t keypoint_capacity, feature_capacity; /* 0: estimated from the number of samples */
  uint32_t source_capacity;                     /* number of user keypoints, 0: none */
  size_t descriptor_bytes;                      /* bytes of one descriptor; 0: none wanted */
  int32_t threads;                              /* number of CPU threads */
  int32_t radius_max;                           /* maximum radius of the filters */
  size_t row_bytes;     /* bytes of a row if the picture is read row by row; 0: the picture is in memory */
  bool affine;          /* keypoints have shapes */
  size_t warped_floats; /* floats of scratch in which the CPU finds and describes shapes; 0 without shapes */
  /* Sizes of scratch as in stage_ops. */
  size_t (*pyramid_work_floats)(int32_t width, int32_t height, int32_t radius_max, int32_t threads);
  bool pyramid_work_plane;
  size_t (*detect_work_bytes)(const pyramid_geometry *geometry, int32_t scales, uint32_t keypoint_capacity);
  bool detect_reads_top;
  size_t octave_floats;    /* floats of scratch of a fused pass over an octave; 0: no fused pass */
  size_t octave_bytes_min; /* minimum bytes of a level of the first octave for a fused pass; tests set less */
  /* Null: the stages of a frame run one after another. Otherwise threads run them at the same time, unless a fused pass
     makes the first octave; the function returns the bytes of the job graph. */
  size_t (*graph_bytes)(int32_t octave_count, int32_t scales);
  /* For a frame in tiles only; must stay valid while the plan is made and used. */
  const sift_params *params;
  const gaussian_filter *base_filter, *step_filter; /* step_filter[1..S+2] */
} plan_request;

typedef struct frame_plan {
  plan_request request; /* the request, with the capacities that were chosen */
  pyramid_geometry geometry;
  size_t stride[OCTAVES_MAX]; /* floats from row to row of a level */
  size_t level_floats[OCTAVES_MAX];
  int32_t entry_count;
  plan_entry entries[PLAN_ENTRIES_MAX];
  size_t host_bytes, device_bytes; /* sizes of the two slabs */
  int32_t passes;                  /* number of first octaves that are made and searched by a fused pass each */
  /* For a frame in tiles (tile_plan.h): stride and level_floats are those of a tile's levels; index 0 is the tile's
     octave. */
  int32_t tile_side; /* side of a tile in samples; 0: not tiled */
  /* maximum number of keypoints found in a tile, and of candidates that leave it; a tile with more is divided */
  uint32_t tile_keypoints;
} frame_plan;

/* Makes the plan. HS_ERR_LIMIT: a size does not fit the address space. */
hs_status plan_make(const plan_request *request, frame_plan *plan);

/* Bytes of BUFFER_COUNTS on a device: 4 counts, and at DEVICE_OUTPUTS_AT the addresses of the results. */
enum { DEVICE_OUTPUTS_AT = 16, DEVICE_COUNTS_BYTES = 64 };

/* Further inputs of the plan of a device frame. */
typedef struct device_request {
  size_t picture_bytes, mask_bytes;
  bool equalize;
  size_t gray_bytes; /* bytes of the equalised gray; 0: it overwrites the picture */
  bool blur_work;    /* some filter needs a work plane */
  bool dog;          /* differences of Gaussians are stored */
  bool selection;
  bool resident;       /* results stay on the device */
  bool affine;         /* keypoints have shapes */
  uint32_t grid_cells; /* number of cells over which the device selects features, 0: none */
  size_t (*scratch_bytes)(uint32_t mask_words, uint32_t keypoints, uint32_t features, uint32_t grid_cells);
} device_request;

/* Makes the plan of a frame on a device. All octaves are kept, because their keypoints are processed together. The
   candidate and settled masks of all octaves are consecutive; those of octave o begin at word mask_offset[o]. */
hs_status plan_make_device(const plan_request *request, const device_request *device, frame_plan *plan,
                           uint32_t mask_offset[OCTAVES_MAX], uint32_t *mask_words);

/* Inputs of the choice of a frame's way. */
typedef struct way_request {
  bool on_device; /* the device computes the frame, or its first octaves */
  bool tiled;     /* the untiled frame exceeds the memory */
  bool rows;      /* the picture is read row by row; only with tiled */
  bool user_keypoints;
  /* number of octaves, and of those that the CPU skips */
  int32_t octaves, skipped_octaves;
  int32_t passes; /* frame_plan.passes */
  bool has_jobs;  /* the plan has memory for a graph of jobs */
  /* For a device: */
  bool split;     /* the CPU computes the last octaves */
  int32_t group;  /* number of images in the launches */
  bool seen;      /* a frame of this size and these options has run before, so recording its graph is worthwhile */
  bool is_worker; /* whether other workers launch kernels at the same time */
} way_request;

typedef struct way_choice {
  hs_frame_way way;
  /* whether a graph of jobs on the CPU makes levels and runs later stages (HS_WAY_CPU_JOBS, and user keypoints with
     threads) */
  bool jobs;
  const char *reason; /* a static string */
} way_choice;

/* Chooses the way of a frame; it is the only function that does. pipeline/frame/WAYS.md draws the ways. */
way_choice plan_choose_way(const way_request *request);

/* For plan*.c only: adds an entry of count * item bytes (none if 0) at the lowest free offset. False: a size does not
   fit. */
bool plan_add(frame_plan *plan, plan_entry entry, size_t count, size_t item);
/* For plan*.c only: adds the lists of keypoints and features. */
bool plan_add_lists(frame_plan *plan);
/* For plan*.c only: if the request has no capacities, chooses first capacities of the lists, rounded to full cache
   lines of every array. */
void plan_decide_capacities(frame_plan *plan);

/* Returns the entry of a buffer, or null if the plan has none. */
const plan_entry *plan_find(const frame_plan *plan, plan_buffer buffer, int32_t octave_index);

const char *plan_buffer_name(plan_buffer buffer);

#endif
