/*
 * Division of a plane among threads for the vector backend's pyramid steps, and the scratch memory for it.
 *
 * A chunk is the intersection of a strip of columns and a band of rows. Strips do not repeat each other's work, but a
 * band filters rows above and below it again. So the plane is divided into bands only if strips do not give every
 * thread enough chunks. Each thread holds rows filtered along x in a ring buffer until its chunk's filter along y no
 * longer needs them. The ring stays in the L2 cache: it has less than 1 MiB for the usual radii.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_STAGE_JOBS_H
#define HARTSIFT_CPU_SCHEDULE_STAGE_JOBS_H

#include "cpu/schedule/ordered_results.h"
#include "cpu/schedule/threads.h"
#include "stages/base.h"
#include "stages/ops.h"
#include "stages/patch.h"

enum {
  WORK_STRIP_MAX = 4096, /* maximum width of a strip, columns */
  WORK_STRIP_MIN = 256,
  WORK_BLOCK_ROWS = 16, /* number of rows that a step finishes together */
  WORK_BAND_MIN = 64,   /* minimum height of a band, rows */
  WORK_BANDS_MAX = 64,  /* maximum number of bands if steps run at the same time */
  WORK_OVERREAD = 64    /* number of floats that may be read beyond either end of a line */
};

typedef struct pyramid_work {
  int32_t strip, strips; /* width of a strip in columns, and number of strips */
  int32_t band, bands;
  int32_t ring_rows;
  size_t ring_stride;   /* floats between rows of the ring */
  size_t line_floats;   /* floats of one padded line of a strip */
  size_t thread_floats; /* floats of scratch of one thread */
} pyramid_work;

/* Divides a plane. width, height: size of the output. plane_height: height of the complete plane. */
pyramid_work pyramid_work_of(int32_t width, int32_t height, int32_t plane_height, int32_t radius, int32_t threads);

/* Returns the floats of scratch for base and blur on planes of this size, with radii up to radius_max. It also
 * suffices for parts of planes up to this size if the size is at least 2 radius_max + WORK_BLOCK_ROWS rows high. */
size_t pyramid_work_floats(int32_t width, int32_t height, int32_t radius_max, int32_t threads);

/* Divides a complete plane for steps that run at the same time (frame_graph.h). Bands are flat, because the next
 * step begins as soon as a band is complete and then finds it in a cache. Strips are as wide as two chunks for each
 * thread allow. */
pyramid_work pyramid_work_in_bands(int32_t width, int32_t height, int32_t radius, int32_t threads);
size_t pyramid_work_band_floats(int32_t width, int32_t height, int32_t radius_max, int32_t threads);

/* Jobs of the vector backends.
 *
 * A stage by itself starts a job, runs its chunks and ends it; a frame runs the jobs of all stages at the same time
 * (frame_graph.h). A job holds its arguments. It must not be moved once it has started. Each chunk runs once, after its
 * inputs are made; chunks run in any order, and several at a time. */

/* The work of a job: task(job, 0..chunks-1, worker). */
typedef struct stage_chunks {
  queue_task task;
  int32_t chunks;
} stage_chunks;

struct line_strip;

/* Returns line y of the blurred plane: a pointer to sample x0. The line holds the samples of the strip and around it,
 * and WORK_OVERREAD readable floats beyond either end. If strip->inner is set, the line holds only samples around the
 * strip's ends. Each line is requested once, in ascending order. */
typedef const float *(*line_reader)(const void *source, struct line_strip *strip, int32_t y);

/* Job of a base or level step. Chunk c makes strip c % work.strips of band c / work.strips. */
typedef struct blur_job {
  stage_chunks run;
  base_args base;     /* arguments, if this is a base job */
  plane_view in;      /* input, if this is a level step */
  const void *source; /* address of `base` or `in`: first argument of the line reader */
  line_reader read;
  plane_view out;
  plane_region region; /* output region */
  float *scratch;
  size_t scratch_floats; /* floats of scratch for each thread: at least work.thread_floats */
  border_mode border;
  const gaussian_filter *filter;
  int32_t rows_ahead;
  bool stream; /* the output is written past the caches */
  pyramid_work work;
} blur_job;

/* Job of halving. Chunk c makes the rows from region.y0 + c * rows on. */
typedef struct halve_job {
  stage_chunks run;
  halve_args args;
  plane_region region;
  int32_t rows;
} halve_job;

/* Size of a chunk of detection: the intersection of a strip of DETECT_STRIP columns and a band of DETECT_BAND rows. */
enum { DETECT_STRIP = 512, DETECT_BAND = 64 /* the pages of this many rows stay in the TLB from strip to strip */ };

typedef struct detect_job {
  stage_chunks run;
  detect_args args;
  keypoint_records records;
  int32_t first_chunk[OCTAVES_MAX + 1]; /* number of the first chunk of each octave */
  atomic_uint_fast64_t count;           /* number of extrema */
  atomic_uint escaped;
} detect_job;

/* Finds the octave of a chunk and the rows that it searches; border rows are excluded. */
int32_t detect_octave_of(const detect_job *job, int32_t chunk);
plane_region detect_region_of(const detect_job *job, int32_t octave_index, int32_t chunk);

/* Chunk c computes the orientations of the keypoints from first_keypoint + c * ORDERED_ITEMS on. */
typedef struct orient_job {
  stage_chunks run;
  orient_args args;
  atomic_uint end; /* the features of all keypoints before this number are in the list */
  ordered_list list;
} orient_job;

enum { DESCRIBE_ITEMS = 8 /* number of features in a chunk */ };

/* Chunk c describes the features from first_feature + c * DESCRIBE_ITEMS on. */
typedef struct describe_job {
  stage_chunks run;
  describe_args args;
  /* number of features that are in the list so far; points to all_listed, or to the counter of orientation */
  const atomic_uint *end;
  atomic_uint all_listed;
} describe_job;

/* Functions that start the jobs of one instruction set. False: out of memory, and the job must not be ended. */
typedef struct stage_jobs {
  void (*base)(blur_job *job, const base_args *args, int32_t threads);
  void (*blur)(blur_job *job, const blur_args *args, int32_t threads);
  void (*halve)(halve_job *job, const halve_args *args);
  void (*detect)(detect_job *job, const detect_args *args);
  bool (*orient)(orient_job *job, const orient_args *args);
  void (*describe)(describe_job *job, const describe_args *args);
} stage_jobs;

/* Divide jobs into chunks, for the start functions of all instruction sets. */
void blur_job_divide(blur_job *job, int32_t threads);
void detect_job_begin(detect_job *job, const detect_args *args, queue_task task);
bool orient_job_begin(orient_job *job, const orient_args *args, queue_task task);
void describe_job_begin(describe_job *job, const describe_args *args, queue_task task);

/* Returns the number of chunks, of `items` items each, for the items from `first` to `end`. */
static inline int32_t chunks_of_items(uint32_t first, uint32_t end, uint32_t items) {
  return end > first ? (int32_t)((end - first - 1) / items + 1) : 0;
}

/* Writes the keypoints of a detection. Called after its last chunk. */
void detect_job_end(const detect_job *job);

/* ------------------------------------------------------------------ patches (patch_threads.c)

   Affine shapes with their orientations and descriptors, and the patches of hs_extract_patches. The patches of some
   keypoints are stored as planes in work memory, and passed to the stages as the levels of one octave. So orientation
   and description are the same stages as for circular keypoints, on every instruction set. */

/* Returns the floats of work memory for this many threads. */
size_t affine_work_floats(int32_t threads);

/* Run the stages of affine_args. work: affine_work_floats(threads of the queue) floats. */
stage_status affine_shape_run(stage_queue *queue, const stage_ops *ops, const affine_args *args);
stage_status affine_orient_run(stage_queue *queue, const stage_ops *ops, const affine_args *args, float *work);
stage_status affine_describe_run(stage_queue *queue, const stage_ops *ops, const affine_args *args, float *work);

/* Samples patches; see patch_args. queue null: on the calling thread. */
void patch_run(stage_queue *queue, const patch_args *args);

#endif
