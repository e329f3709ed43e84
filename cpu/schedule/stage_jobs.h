/*
 * What the vector backends run as chunks: a stage's job as it stands between its beginning and its last chunk. A stage
 * on its own begins a job, runs it and ends it; a whole frame runs the jobs of all stages at the same time (frame_graph.h).
 *
 * A job holds its arguments. It must not be moved once it has begun. Chunks run in any order and at the same time, each
 * once, when what it reads is there.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_STAGE_JOBS_H
#define HARTSIFT_CPU_SCHEDULE_STAGE_JOBS_H

#include "cpu/schedule/keypoint_order.h"
#include "cpu/schedule/ordered.h"
#include "cpu/schedule/pyramid_work.h"
#include "cpu/schedule/threads.h"
#include "stages/ops.h"

/* What is run: task(job, 0..chunks-1, worker). */
typedef struct stage_chunks {
  queue_task task;
  int32_t chunks;
} stage_chunks;

struct line_strip;

/* Line y of the plane that is blurred: a pointer to sample x0 with the samples of the strip about it and WORK_OVERREAD
   readable floats beyond either end, or only about the ends where strip->inner is set. Each line is requested once, in
   ascending order. */
typedef const float *(*line_reader)(const void *source, struct line_strip *strip, int32_t y);

/* Base or level step. Chunk c makes strip c % work.strips of band c / work.strips. */
typedef struct blur_job {
  stage_chunks run;
  base_args base;     /* of the base */
  plane_view in;      /* of the level step */
  const void *source; /* one of these */
  line_reader read;
  plane_view out;
  plane_region region; /* of out */
  float *scratch;
  size_t scratch_floats; /* of a thread: at least work.thread_floats */
  border_mode border;
  const gaussian_filter *filter;
  int32_t rows_ahead;
  bool stream; /* the output goes past the caches */
  pyramid_work work;
} blur_job;

/* Chunk c makes the rows from region.y0 + c * rows on. */
typedef struct halve_job {
  stage_chunks run;
  halve_args args;
  plane_region region;
  int32_t rows;
} halve_job;

/* A chunk of detection is a strip of columns of a band of rows. */
enum { DETECT_STRIP = 512, DETECT_BAND = 64 /* rows: their pages stay in the TLB from strip to strip */ };

typedef struct detect_job {
  stage_chunks run;
  detect_args args;
  keypoint_records records;
  int32_t first_chunk[OCTAVES_MAX + 1]; /* of an octave */
  atomic_uint_fast64_t count;           /* of extrema */
  atomic_uint strays;
} detect_job;

/* The octave of a chunk; the rows that it searches, less what the border rules out. */
int32_t detect_octave_of(const detect_job *job, int32_t chunk);
plane_region detect_region_of(const detect_job *job, int32_t octave_index, int32_t chunk);

/* Chunk c gives the keypoints from first_keypoint + c * ORDERED_ITEMS on their orientations. */
typedef struct orient_job {
  stage_chunks run;
  orient_args args;
  atomic_uint end; /* keypoints before it are in the list */
  ordered_list list;
} orient_job;

enum { DESCRIBE_ITEMS = 8 /* features of a chunk */ };

/* Chunk c describes the features from first_feature + c * DESCRIBE_ITEMS on. */
typedef struct describe_job {
  stage_chunks run;
  describe_args args;
  const atomic_uint *end; /* features before it are in the list; all_listed, or where orientation counts them */
  atomic_uint all_listed;
} describe_job;

/* How the jobs of one instruction set begin. False: out of memory, and there is nothing to end. */
typedef struct stage_jobs {
  void (*base)(blur_job *job, const base_args *args, int32_t threads);
  void (*blur)(blur_job *job, const blur_args *args, int32_t threads);
  void (*halve)(halve_job *job, const halve_args *args);
  void (*detect)(detect_job *job, const detect_args *args);
  bool (*orient)(orient_job *job, const orient_args *args);
  void (*describe)(describe_job *job, const describe_args *args);
} stage_jobs;

/* For the instruction sets' beginnings. */
void blur_job_divide(blur_job *job, int32_t threads);
void detect_job_begin(detect_job *job, const detect_args *args, queue_task task);
bool orient_job_begin(orient_job *job, const orient_args *args, queue_task task);
void describe_job_begin(describe_job *job, const describe_args *args, queue_task task);

/* Chunks of `items` items each for those from `first` to `end`. */
static inline int32_t chunks_of_items(uint32_t first, uint32_t end, uint32_t items) {
  return end > first ? (int32_t)((end - first - 1) / items + 1) : 0;
}

/* Writes what a detection found, after its last chunk. */
void detect_job_end(const detect_job *job);

#endif
