/*
 * An octave in one pass: how far each level is behind the one before, and what of it is at hand.
 *
 * A chunk is a strip of columns down the whole height. In each turn level 0 gets PASS_ROWS rows more, each level as many
 * rows as the level before allows, then the search takes what level S+1 allows, and candidates are followed as far behind
 * it as they may go. A level's rows lie in a ring as long as one of these reads them. Strips share no work: a level is made
 * so far beyond the strip, its halo, as the next ones need.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_FUSED_PASS_H
#define HARTSIFT_CPU_SCHEDULE_FUSED_PASS_H

#include "cpu/schedule/stage_jobs.h"
#include "stages/base.h"
#include "stages/detect.h"

enum {
  PASS_ROWS = 8,                   /* of a turn */
  ROW_BLOCK = 4,                   /* rows that never wrap in a ring: lags and lengths are multiples of it */
  PASS_STRIP = 768,                /* columns, at most */
  PASS_THREADS = 2,                /* more of them share bands (frame_graph.h) */
  PASS_SAMPLES_A_STRAY = 4096,     /* of an octave for each stray that there is room for */
  PASS_MOVES = REFINE_STEPS - 1,   /* samples that a candidate moves at most; OpenCV's may go on as strays */
  PASS_BYTES_LEAST = 16 << 20,     /* of a level: smaller ones stay in a cache, stage by stage */
  PASS_BYTES_LEAST_LATER = 1 << 20 /* of an octave behind one that is made so */
};

_Static_assert((int)PASS_STRIP >= (int)DETECT_STRIP, "rows of differences");
_Static_assert((int)PASS_ROWS <= (int)WORK_BLOCK_ROWS && (int)PASS_ROWS % (int)ROW_BLOCK == 0, "rows of a turn");

/* One level's part of a pass. */
typedef struct pass_level_size {
  int32_t lag;           /* rows behind level 0, a multiple of ROW_BLOCK */
  int32_t halo;          /* columns beyond the strip */
  int32_t rows;          /* at hand, a multiple of ROW_BLOCK */
  int32_t filtered_rows; /* of the level before, filtered along x */
} pass_level_size;

typedef struct octave_pass_size {
  pass_level_size levels[SCALES_MAX + 2];
  int32_t count;      /* S + 2 */
  int32_t reach;      /* rows and columns about a candidate that following it reads of level S+1 */
  int32_t beside;     /* columns of a ring at either side of a strip */
  size_t stride;      /* of the rings, floats */
  size_t line_floats; /* of the base's lines */
  size_t floats;      /* of a thread */
} octave_pass_size;

/* base: the base's filter; step[1..S+2]: those of the level steps. */
octave_pass_size octave_pass_size_of(const gaussian_filter *base, const gaussian_filter *step, int32_t scales);

/* Floats of octave_args.scratch for a frame on so many threads, without those of octave_stray_floats; 0: its octaves are
   made stage by stage, because threads share them otherwise or the filters reach so far that a pass does not pay. */
size_t octave_pass_floats(const stage_ops *ops, int32_t threads, const gaussian_filter *base,
                          const gaussian_filter *step, int32_t scales);

/* Those for an octave's strays. */
size_t octave_stray_floats(int32_t width, int32_t height);

/* The pass as chunks. */
typedef struct octave_job {
  stage_chunks run;
  octave_args args;
  int32_t strip; /* columns: a multiple of a cache line */
  octave_pass_size size;
  blur_job base;        /* which lines are read and how */
  detect_job detection; /* what is found, and how strips are searched */
  atomic_bool overrun;  /* more samples waited in a strip than it has room for */
  atomic_bool stopped;  /* the caller wants no more */
  atomic_int done;      /* columns whose strips have ended */
  int32_t told;         /* how many of them the caller was told of; only its own thread uses this */
  detect_stray *strays; /* behind the threads' scratch */
  uint32_t stray_capacity;
} octave_job;

/* For the instruction sets' beginnings: what does not depend on them. */
void octave_job_begin(octave_job *job, const octave_args *args, int32_t threads, queue_task task);

/* Runs the strips. Statuses: STAGE_CANCELLED. */
stage_status octave_job_run(stage_queue *queue, octave_job *job);

/* The rows of a level where they lie: in its plane, or those of a strip that are at hand in a ring. */

/* In a ring row y is row y % rows in memory. */
typedef struct level_rows {
  const float *data; /* sample `first` of row 0 */
  size_t stride;
  int32_t rows, first;
  uint64_t reciprocal; /* 2^40 / rows, rounded up: y below 2^22 is divided by a product. Rows in a plane: 0 */
} level_rows;

enum { ROWS_SHIFT = 40 };

static inline uint64_t rows_reciprocal(int32_t rows) { return (UINT64_C(1) << ROWS_SHIFT) / (uint64_t)rows + 1; }

static inline const float *level_at(const level_rows *l, int32_t x, int32_t y) {
  const uint64_t turns = (uint64_t)y * l->reciprocal >> ROWS_SHIFT;
  return l->data + ((uint64_t)y - turns * (uint64_t)l->rows) * l->stride + (ptrdiff_t)(x - l->first);
}

#endif
