/*
 * Division of a plane among threads for the vector backend's pyramid steps, and the scratch memory for it.
 *
 * A chunk is a strip of columns of a band of rows. Strips share no work; a band filters the rows above and below it
 * again, so the plane is divided into bands only if strips do not give every thread enough chunks. Each thread keeps
 * the row-filtered rows that its chunk's columns still need in a ring buffer, which stays in its L2: less than 1 MiB
 * for the usual radii.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_STAGE_JOBS_H
#define HARTSIFT_CPU_SCHEDULE_STAGE_JOBS_H

#include "cpu/schedule/ordered_results.h"
#include "cpu/schedule/threads.h"
#include "stages/base.h"
#include "stages/ops.h"
#include "stages/patch.h"

enum {
  WORK_STRIP_MAX = 4096, /* columns of a strip */
  WORK_STRIP_MIN = 256,
  WORK_BLOCK_ROWS = 16, /* rows that are finished at a time */
  WORK_BAND_MIN = 64,   /* rows of a band */
  WORK_BANDS_MAX = 64,  /* if steps run at the same time */
  WORK_OVERREAD = 64    /* floats beyond its samples that a line may be read, on either side */
};

typedef struct pyramid_work {
  int32_t strip, strips; /* columns of a strip; number of strips */
  int32_t band, bands;
  int32_t ring_rows;
  size_t ring_stride;   /* floats */
  size_t line_floats;   /* floats of one padded line of a strip */
  size_t thread_floats; /* scratch of a thread */
} pyramid_work;

/* width, height: of the output; plane_height: of its whole plane. */
pyramid_work pyramid_work_of(int32_t width, int32_t height, int32_t plane_height, int32_t radius, int32_t threads);

/* Floats of scratch for base and blur on planes of this size and radii up to radius_max; also for parts of planes up to
 * this size, if it is at least 2 radius_max + WORK_BLOCK_ROWS high. */
size_t pyramid_work_floats(int32_t width, int32_t height, int32_t radius_max, int32_t threads);

/* A whole plane for steps that run at the same time (frame_graph.h): flat bands, with strips as wide as two chunks a
 * thread allow, because the next step begins as soon as a band is complete and then finds it in a cache. */
pyramid_work pyramid_work_in_bands(int32_t width, int32_t height, int32_t radius, int32_t threads);
size_t pyramid_work_band_floats(int32_t width, int32_t height, int32_t radius_max, int32_t threads);

/* Chunks of the vector backends: a stage's job between its start and its last chunk.
 *
 * A separate stage starts a job, runs it and ends it; a whole frame runs the jobs of all stages at the same time
 * (frame_graph.h). A job holds its arguments. It must not be moved once it has started. Chunks run in any order and at
 * the same time, each once, when their inputs are made. */

/* The work: task(job, 0..chunks-1, worker). */
typedef struct stage_chunks {
  queue_task task;
  int32_t chunks;
} stage_chunks;

struct line_strip;

/* Line y of the blurred plane: a pointer to sample x0 with the samples of the strip around it and WORK_OVERREAD
 * readable floats beyond either end, or only around the ends if strip->inner is set. Each line is requested once, in
 * ascending order. */
typedef const float *(*line_reader)(const void *source, struct line_strip *strip, int32_t y);

/* Base or level step. Chunk c makes strip c % work.strips of band c / work.strips. */
typedef struct blur_job {
  stage_chunks run;
  base_args base;     /* for a base job */
  plane_view in;      /* for a level step: its input */
  const void *source; /* one of these */
  line_reader read;
  plane_view out;
  plane_region region; /* output region */
  float *scratch;
  size_t scratch_floats; /* scratch per thread: at least work.thread_floats */
  border_mode border;
  const gaussian_filter *filter;
  int32_t rows_ahead;
  bool stream; /* the output bypasses the caches */
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
  int32_t first_chunk[OCTAVES_MAX + 1]; /* number of each octave's first chunk */
  atomic_uint_fast64_t count;           /* number of extrema */
  atomic_uint escaped;
} detect_job;

/* The octave of a chunk and the rows that it searches, without border rows. */
int32_t detect_octave_of(const detect_job *job, int32_t chunk);
plane_region detect_region_of(const detect_job *job, int32_t octave_index, int32_t chunk);

/* Chunk c computes the orientations of the keypoints from first_keypoint + c * ORDERED_ITEMS on. */
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
  const atomic_uint *end; /* features before it are in the list; all_listed, or the counter of orientation */
  atomic_uint all_listed;
} describe_job;

/* Start functions of one instruction set's jobs. False: out of memory, and there is no job to end. */
typedef struct stage_jobs {
  void (*base)(blur_job *job, const base_args *args, int32_t threads);
  void (*blur)(blur_job *job, const blur_args *args, int32_t threads);
  void (*halve)(halve_job *job, const halve_args *args);
  void (*detect)(detect_job *job, const detect_args *args);
  bool (*orient)(orient_job *job, const orient_args *args);
  void (*describe)(describe_job *job, const describe_args *args);
} stage_jobs;

/* For the start functions of the instruction sets. */
void blur_job_divide(blur_job *job, int32_t threads);
void detect_job_begin(detect_job *job, const detect_args *args, queue_task task);
bool orient_job_begin(orient_job *job, const orient_args *args, queue_task task);
void describe_job_begin(describe_job *job, const describe_args *args, queue_task task);

/* Chunks of `items` items for the items from `first` to `end`. */
static inline int32_t chunks_of_items(uint32_t first, uint32_t end, uint32_t items) {
  return end > first ? (int32_t)((end - first - 1) / items + 1) : 0;
}

/* Writes the keypoints of a detection, after its last chunk. */
void detect_job_end(const detect_job *job);

/* ------------------------------------------------------------------ patches (patch_threads.c)

   Affine shapes with the orientations and descriptors in them, and the patches of hs_extract_patches. The patches of some
   keypoints are planes of work memory, the levels of one octave, so that orientation and descriptor are the stages of plain
   keypoints, on every instruction set. */

/* Floats of work memory for so many threads. */
size_t affine_work_floats(int32_t threads);

/* See affine_args; work: affine_work_floats(threads of the queue). */
stage_status affine_shape_run(stage_queue *queue, const stage_ops *ops, const affine_args *args);
stage_status affine_orient_run(stage_queue *queue, const stage_ops *ops, const affine_args *args, float *work);
stage_status affine_describe_run(stage_queue *queue, const stage_ops *ops, const affine_args *args, float *work);

/* Takes the patches; see patch_args. queue null: on the calling thread. */
void patch_run(stage_queue *queue, const patch_args *args);

#endif
