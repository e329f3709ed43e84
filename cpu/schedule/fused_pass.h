/*
 * Fused pass over an octave: each level's row lag and the size of its ring buffer.
 *
 * A chunk is a strip of columns over the full height. It is processed in steps. In each step level 0 gets PASS_ROWS
 * more rows, and each other level as many as the level before it allows. Then the rows that level S+1 allows are
 * searched, and candidates are followed in the rows before them. A ring buffer holds the rows of a level that a later
 * part of the pass still reads. Strips share no work: each makes its levels with a halo, the columns beyond the strip
 * that the next levels read.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_FUSED_PASS_H
#define HARTSIFT_CPU_SCHEDULE_FUSED_PASS_H

#include "cpu/schedule/stage_jobs.h"
#include "stages/base.h"
#include "stages/detect.h"

enum {
  PASS_ROWS = 8,    /* number of rows made in a step */
  ROW_BLOCK = 4,    /* lags and ring sizes are multiples of it, so a block of this many rows never wraps around */
  PASS_STRIP = 768, /* maximum width of a strip, columns */
  PASS_THREADS = 2, /* maximum number of threads; more threads use frame_graph.h instead */
  PASS_SAMPLES_AN_ESCAPED = 4096, /* capacity for escaped candidates = samples of the octave / this */
  /* maximum distance in samples that a candidate moves; OpenCV's may move farther and escape */
  PASS_MOVES = REFINE_STEPS - 1,
  /* minimum size of a level, bytes: smaller levels stay in a cache between separate stages */
  PASS_BYTES_MIN = 16 << 20,
  PASS_BYTES_MIN_LATER = 1 << 20 /* minimum size of a level if the octave before is made by a fused pass, bytes */
};

_Static_assert((int)PASS_STRIP >= (int)DETECT_STRIP, "rows of differences");
_Static_assert((int)PASS_ROWS <= (int)WORK_BLOCK_ROWS && (int)PASS_ROWS % (int)ROW_BLOCK == 0, "rows of a step");

/* Sizes of one level in a fused pass. */
typedef struct pass_level_size {
  int32_t lag;           /* number of rows by which this level follows level 0, a multiple of ROW_BLOCK */
  int32_t halo;          /* number of columns beyond the strip */
  int32_t rows;          /* capacity of the level's ring in rows, a multiple of ROW_BLOCK */
  int32_t filtered_rows; /* capacity of the ring with the previous level's rows, filtered along x */
} pass_level_size;

typedef struct fused_pass_size {
  pass_level_size levels[SCALES_MAX + 2];
  int32_t count;       /* number of levels above level 0: S + 2 */
  int32_t follow_halo; /* radius in rows and columns of level S+1 that is read around a followed candidate */
  int32_t margin;      /* number of columns of a ring on either side of a strip */
  size_t stride;       /* floats between rows of a ring */
  size_t line_floats;  /* floats of one line of the base */
  size_t floats;       /* floats of scratch of one thread */
} fused_pass_size;

/* Computes the sizes. base: filter of the base. step[1..S+2]: filters of the level steps. */
fused_pass_size fused_pass_size_of(const gaussian_filter *base, const gaussian_filter *step, int32_t scales);

/* Returns the number of floats of octave_args.scratch for a frame on this many threads; fused_pass_escaped_floats come
 * on top. 0: octaves are made stage by stage, because there are too many threads, or because the
 * filters are so large that a fused pass saves no time. */
size_t fused_pass_floats(const stage_ops *ops, int32_t threads, const gaussian_filter *base,
                         const gaussian_filter *step, int32_t scales);

/* Returns the floats of octave_args.scratch for the escaped candidates of an octave. */
size_t fused_pass_escaped_floats(int32_t width, int32_t height);

/* A fused pass as a job of chunks. */
typedef struct fused_pass_job {
  stage_chunks run;
  octave_args args;
  int32_t strip; /* columns of a strip: a multiple of a cache line */
  fused_pass_size size;
  blur_job base;              /* describes the source lines from which level 0 is made */
  detect_job detection;       /* arguments of detection, and how strips are searched */
  atomic_bool overrun;        /* whether more samples of a strip were waiting than its capacity */
  atomic_bool stopped;        /* the caller cancelled */
  atomic_int done;            /* number of columns of finished strips */
  int32_t reported;           /* columns already reported; only the caller's thread uses this */
  escaped_candidate *escaped; /* [escaped capacity]; stored after the threads' scratch */
  uint32_t escaped_capacity;
} fused_pass_job;

/* Begins a job: the part of a start function that is the same for all instruction sets. */
void fused_pass_job_begin(fused_pass_job *job, const octave_args *args, int32_t threads, queue_task task);

/* Runs the strips. Can return STAGE_CANCELLED. */
stage_status fused_pass_job_run(stage_queue *queue, fused_pass_job *job);

/* Access to the rows of a level: in its plane, or in a strip's ring, which holds some of them. */

/* Rows of a level. In a ring, row y is stored at row y % rows. */
typedef struct level_rows {
  const float *data; /* sample in column `first` of row 0 */
  size_t stride;
  int32_t rows, first;
  /* 2^40 / rows, rounded up: divides y below 2^22 by one multiplication; 0: the rows are in a plane */
  uint64_t reciprocal;
} level_rows;

enum { ROWS_SHIFT = 40 };

static inline uint64_t rows_reciprocal(int32_t rows) { return (UINT64_C(1) << ROWS_SHIFT) / (uint64_t)rows + 1; }

static inline const float *level_at(const level_rows *l, int32_t x, int32_t y) {
  const uint64_t rounds = (uint64_t)y * l->reciprocal >> ROWS_SHIFT;
  return l->data + ((uint64_t)y - rounds * (uint64_t)l->rows) * l->stride + (ptrdiff_t)(x - l->first);
}

#endif
