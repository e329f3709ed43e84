/*
 * The table of a host backend: one function per stage. (The CUDA backend has launchers instead, which
 * pipeline/device/cuda_record.c records into a graph.)
 *
 * A stage_queue is the pool of threads that runs the work; the pipeline only passes it to the functions. Every function
 * writes only the outputs of its contract in <stage>.h; none allocates. A context fills the table once
 * (cpu/dispatch.c), each entry with the variant that suits the machine; `variant` names them for the report.
 *
 * To add a stage (tests/api/check_places.py names what was forgotten):
 *   1. its contract, arguments and arithmetic of one sample: stages/<stage>.h;
 *   2. an entry in stage_id and stage_ops below, its name in stage_name, in the same order;
 *   3. the reference cpu/ref/<stage>_ref.c, its entry in the table of cpu/dispatch.c and its TAKE line there;
 *   4. its step in pipeline/frame/run_frame.c, and its buffers with first and last step in pipeline/context/plan.c;
 *   5. its kernels and their place in a frame's graph: the list in cuda/keypoints/frame_view.h;
 *   6. tests: tests/agree for every variant against the reference, tests/property for invariants of whole frames.
 */
#ifndef HARTSIFT_STAGES_OPS_H
#define HARTSIFT_STAGES_OPS_H

#include "stages/affine.h"
#include "stages/describe.h"
#include "stages/detect.h"
#include "stages/match.h"
#include "stages/orient.h"
#include "stages/select.h"

typedef struct stage_queue stage_queue;

typedef enum stage_id {
  STAGE_BASE,
  STAGE_BLUR,
  STAGE_HALVE,
  STAGE_DETECT,
  STAGE_ORIENT,
  STAGE_SELECT,
  STAGE_DESCRIBE,
  STAGE_MATCH,
  STAGE_COUNT
} stage_id;

/* Division of a stage's work into chunks that threads can run (cpu/schedule/stage_jobs.h). */
struct stage_jobs;

/* Samples of a later window that a backend prefetches (cpu/schedule/window_prefetch.h). */
struct window_prefetch;

typedef struct stage_ops {
  const char *variant[STAGE_COUNT];
  const struct stage_jobs *jobs[STAGE_COUNT]; /* jobs of each stage; null: the stage cannot run in chunks */
  stage_status (*base)(stage_queue *, const base_args *);
  stage_status (*blur)(stage_queue *, const blur_args *);
  stage_status (*halve)(stage_queue *, const halve_args *);
  stage_status (*detect)(stage_queue *, const detect_args *);
  stage_status (*orient)(stage_queue *, const orient_args *);
  stage_status (*select)(stage_queue *, const select_args *);
  stage_status (*describe)(stage_queue *, const describe_args *);
  stage_status (*match)(stage_queue *, const match_args *);
  /* A further function of STAGE_MATCH: as match. With limits, the second nearest of kept pairs may be wrong; the same
   * pairs are kept. */
  stage_status (*match_without_second)(stage_queue *, const match_args *);
  /* Further functions of STAGE_DESCRIBE. The first computes the moments of a patch's gradients; the patch has rows of
   * `stride` floats, and AFFINE_PATCH_SLACK readable floats after the last. The other samples a patch of side x side
   * samples into such rows. read: the samples to write; null: all. prefetch: samples to prefetch meanwhile. */
  affine_moments (*affine_moments)(const float *patch, size_t stride);
  void (*affine_patch)(const plane_view *level, const patch_map *, const patch_rows *read, int32_t side, size_t stride,
                       float *out, struct window_prefetch *prefetch);
  /* Returns the floats that base_args.work and blur_args.work must hold, for planes of this size and filters up to
     radius_max. Null: a plane of this size. */
  size_t (*pyramid_work_floats)(int32_t width, int32_t height, int32_t radius_max, int32_t threads);
  bool pyramid_work_plane; /* whether work holds at least a plane, because base and blur are of different variants */
  /* Returns the bytes of detect_args.work for these octaves, at least one. */
  size_t (*detect_work_bytes)(const pyramid_geometry *geometry, int32_t scales, uint32_t keypoint_capacity);
  bool detect_reads_top; /* level S+2 must be in memory */
  /* A further function of STAGE_DETECT: a fused pass over an octave. Set only if base, level step and halving are of
   * the same variant, otherwise null. */
  stage_status (*octave)(stage_queue *, const octave_args *);
  /* Computes the bytes of match_args.work for these arguments and this many threads. False: they exceed size_t. */
  bool (*match_work_bytes)(const match_args *, int32_t threads, size_t *bytes);
  /* Further functions of STAGE_MATCH: the first returns the bytes of squares_args.work for a second list; the second
   * packs that list, once; the third computes the squares of any rows, on the calling thread. */
  size_t (*squares_work_bytes)(const squares_args *);
  stage_status (*pack_second)(stage_queue *, const squares_args *);
  stage_status (*squares)(const squares_args *);
} stage_ops;

/* Returns "base", "blur", ...: the stage's name in --variant and in the report. */
static inline const char *stage_name(stage_id id) {
  static const char *const names[STAGE_COUNT] = {"base",   "blur",   "halve",    "detect",
                                                 "orient", "select", "describe", "match"};
  return (unsigned)id < STAGE_COUNT ? names[id] : "?";
}

#endif
