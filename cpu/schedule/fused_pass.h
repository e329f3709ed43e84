/*
 * Fused pass over an octave: row lag and ring-buffer size of each level.
 *
 * A chunk is a strip of columns of the whole height. In each step level 0 gets PASS_ROWS more rows and each level as many
 * as the level before allows. The search then takes the rows that level S+1 allows, and candidates are followed in the
 * rows before them. A ring buffer keeps a level's rows as long as one of these reads them. Strips share no work: each
 * makes its levels with a halo, the columns beyond the strip that the next levels read.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_FUSED_PASS_H
#define HARTSIFT_CPU_SCHEDULE_FUSED_PASS_H

#include "cpu/schedule/stage_jobs.h"
#include "stages/base.h"
#include "stages/detect.h"

enum {
  PASS_ROWS = 8,                  /* rows of a step */
  ROW_BLOCK = 4,                  /* rows that never wrap in a ring: lags and lengths are multiples of it */
  PASS_STRIP = 768,               /* columns, at most */
  PASS_THREADS = 2,               /* with more threads, they share bands (frame_graph.h) */
  PASS_SAMPLES_AN_ESCAPED = 4096, /* samples of an octave per escaped candidate of the capacity */
  PASS_MOVES = REFINE_STEPS - 1,  /* maximum move of a candidate in samples; OpenCV's may escape further */
  PASS_BYTES_MIN = 16 << 20,      /* bytes of a level: smaller ones stay in a cache, stage by stage */
  PASS_BYTES_MIN_LATER = 1 << 20  /* the same for an octave after one that takes a fused pass */
};

_Static_assert((int)PASS_STRIP >= (int)DETECT_STRIP, "rows of differences");
_Static_assert((int)PASS_ROWS <= (int)WORK_BLOCK_ROWS && (int)PASS_ROWS % (int)ROW_BLOCK == 0, "rows of a step");

/* One level's part of a fused pass. */
typedef struct pass_level_size {
  int32_t lag;           /* lag: rows after level 0, a multiple of ROW_BLOCK */
  int32_t halo;          /* halo: columns beyond the strip */
  int32_t rows;          /* ring capacity, a multiple of ROW_BLOCK */
  int32_t filtered_rows; /* ring of the previous level's rows filtered along x */
} pass_level_size;

typedef struct fused_pass_size {
  pass_level_size levels[SCALES_MAX + 2];
  int32_t count;      /* S + 2 */
  int32_t reach;      /* rows and columns of level S+1 that following a candidate reads around it */
  int32_t beside;     /* columns of a ring on either side of a strip */
  size_t stride;      /* floats between the rings' rows */
  size_t line_floats; /* floats of a line of the base */
  size_t floats;      /* scratch of a thread */
} fused_pass_size;

/* base: the base's filter; step[1..S+2]: the filters of the level steps. */
fused_pass_size fused_pass_size_of(const gaussian_filter *base, const gaussian_filter *step, int32_t scales);

/* Floats of octave_args.scratch for a frame on so many threads, without fused_pass_escaped_floats. 0: octaves are made
 * stage by stage, because more threads share them, or because the filters are too large for a fused pass to save
 * time. */
size_t fused_pass_floats(const stage_ops *ops, int32_t threads, const gaussian_filter *base,
                         const gaussian_filter *step, int32_t scales);

/* Floats of octave_args.scratch for an octave's escaped candidates. */
size_t fused_pass_escaped_floats(int32_t width, int32_t height);

/* A fused pass as chunks. */
typedef struct fused_pass_job {
  stage_chunks run;
  octave_args args;
  int32_t strip; /* columns: a multiple of a cache line */
  fused_pass_size size;
  blur_job base;              /* form of the source lines */
  detect_job detection;       /* the detection, and how strips are searched */
  atomic_bool overrun;        /* a strip had more waiting samples than its capacity */
  atomic_bool stopped;        /* the caller cancelled */
  atomic_int done;            /* columns of finished strips */
  int32_t told;               /* columns already reported; only the caller's thread uses this */
  escaped_candidate *escaped; /* stored after the threads' scratch */
  uint32_t escaped_capacity;
} fused_pass_job;

/* For the start functions of the instruction sets: the parts that do not depend on them. */
void fused_pass_job_begin(fused_pass_job *job, const octave_args *args, int32_t threads, queue_task task);

/* Runs the strips. Statuses: STAGE_CANCELLED. */
stage_status fused_pass_job_run(stage_queue *queue, fused_pass_job *job);

/* The rows of a level: in its plane, or the rows of a strip that a ring holds. */

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
