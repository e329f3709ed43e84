/*
 * The vector backends: prototypes of the functions of each *_simd.c, for every instruction set that it can be built
 * for.
 */
#ifndef HARTSIFT_CPU_SIMD_STAGES_SIMD_H
#define HARTSIFT_CPU_SIMD_STAGES_SIMD_H

#include "cpu/schedule/stage_jobs.h"
#include "stages/two_view.h"

#define MATCH_SIMD_DECLARE(ISA)                                                                                        \
  stage_status match_##ISA(stage_queue *queue, const match_args *args);                                                \
  stage_status match_without_second_##ISA(stage_queue *queue, const match_args *args);                                 \
  bool match_work_bytes_##ISA(const match_args *args, int32_t threads, size_t *bytes);                                 \
  size_t squares_work_bytes_##ISA(const squares_args *args);                                                           \
  stage_status pack_second_##ISA(stage_queue *queue, const squares_args *args);                                        \
  stage_status squares_##ISA(const squares_args *args)

#define STAGES_SIMD_DECLARE(ISA)                                                                                       \
  stage_status base_##ISA(stage_queue *queue, const base_args *args);                                                  \
  stage_status blur_##ISA(stage_queue *queue, const blur_args *args);                                                  \
  stage_status halve_##ISA(stage_queue *queue, const halve_args *args);                                                \
  stage_status detect_##ISA(stage_queue *queue, const detect_args *args);                                              \
  stage_status octave_##ISA(stage_queue *queue, const octave_args *args);                                              \
  stage_status orient_##ISA(stage_queue *queue, const orient_args *args);                                              \
  stage_status describe_##ISA(stage_queue *queue, const describe_args *args);                                          \
  void begin_base_##ISA(blur_job *job, const base_args *args, int32_t threads);                                        \
  void begin_blur_##ISA(blur_job *job, const blur_args *args, int32_t threads);                                        \
  void begin_halve_##ISA(halve_job *job, const halve_args *args);                                                      \
  void begin_detect_##ISA(detect_job *job, const detect_args *args);                                                   \
  bool begin_orient_##ISA(orient_job *job, const orient_args *args);                                                   \
  void begin_describe_##ISA(describe_job *job, const describe_args *args);                                             \
  affine_moments affine_moments_##ISA(const float *patch, size_t stride);                                              \
  void affine_patch_##ISA(const plane_view *level, const patch_map *map, const patch_rows *read, int32_t side,         \
                          size_t stride, float *out, struct window_prefetch *prefetch);                                \
  extern const two_view_ops two_view_ops_##ISA;                                                                        \
  MATCH_SIMD_DECLARE(ISA)

STAGES_SIMD_DECLARE(sse2);
STAGES_SIMD_DECLARE(avx2);
STAGES_SIMD_DECLARE(avx512);
STAGES_SIMD_DECLARE(neon);
MATCH_SIMD_DECLARE(avx512vnni);
MATCH_SIMD_DECLARE(neondot);

#endif
