/*
 * Launchers of the Gaussian pyramid: base and level step. All pointers are device memory (the source may also be pinned
 * host memory that the device can address). Results are the bytes of base_ref and blur_ref.
 *
 * Planes of an octave have a stride that is a multiple of PLANE_STRIDE_FLOATS, start on 256 bytes, and are followed by
 * PLANE_SLACK_FLOATS floats that kernels may read (never write). Launchers enqueue kernels only: no allocation, no
 * waiting; they may be captured into a graph.
 */
#ifndef HARTSIFT_CUDA_PYRAMID_PYRAMID_CUDA_H
#define HARTSIFT_CUDA_PYRAMID_PYRAMID_CUDA_H

#include "cuda/runtime/device.h"
#include "stages/pyramid.h"

/* Layout of planes in device memory, which kernels rely on and every frame layout must keep. */

enum {
  PLANE_STRIDE_FLOATS = 32,    /* rows begin on multiples of this many floats, a line of 128 bytes */
  PLANE_SLACK_FLOATS = 64,     /* floats after a plane's last row that may be read, never written */
  PLANE_ALIGNMENT_BYTES = 256, /* alignment of a plane's first sample */
  PLANE_ALIGNMENT_FLOATS = PLANE_ALIGNMENT_BYTES / 4
};

/* Rounds `floats` up to a multiple of `step`, a power of two. */
#define PLANE_ROUND_UP(floats, step) (((floats) + (step)-1) & ~((step) - (size_t)1))

#ifdef __cplusplus
extern "C" {
#endif

/* Several pictures of one size in the same launches. A plane of picture i is i * stride_bytes bytes after the plane of
 * picture 0. count 0 or 1: one picture. */
typedef struct picture_group {
  int32_t count;
  size_t stride_bytes; /* a multiple of 256 */
} picture_group;

/* One level step, and its optional outputs. A plane with null data is not requested. */
typedef struct blur_launch_args {
  plane_view in, out; /* different planes of the same size */
  plane_view work;    /* the same size; needed only if blur_needs_work says so */
  plane_view halved;  /* floor(w/2) x floor(h/2): out(2i, 2j), the next octave's level 0 */
  plane_view dog;     /* DoG, out - in; the same size and stride as out; requires the uber kernel */
  border_mode border;
  const gaussian_filter *filter; /* host memory, read during the call only */
  picture_group group;           /* only if !blur_needs_work and no dog is requested */
} blur_launch_args;

/* Whether a radius needs `work`: without a specialised kernel, rows are filtered into it first, then columns. */
bool blur_needs_work(int32_t radius);

/* Makes a level step, by one kernel, or two if blur_needs_work. Empty planes are allowed. */
stage_status blur_launch(const blur_launch_args *args, cuda_stream stream);

/* Makes the base. `gray`, `work` and `doubled` are used if base_is_fused returns false. */
stage_status base_launch(const base_args *args, cuda_stream stream);

/* Makes the base of a group. The sources have the stride of the planes. Not for filters with blur_needs_work. */
stage_status base_group_launch(const base_args *args, picture_group group, cuda_stream stream);

/* Part `band` (0..bands-1) of a fused base: the bands together equal base_launch. It reads only source rows below
 * base_band_rows, so the rest of the picture may still be uploading while its upper part is processed. */
int32_t base_band_rows(const base_args *args, int32_t band, int32_t bands);
stage_status base_band_launch(const base_args *args, int32_t band, int32_t bands, cuda_stream stream);

/* Whether one kernel makes the complete base: u8 gray with rows at multiples of 4 bytes, doubled, and a radius that
 * has a kernel. */
bool base_is_fused(const base_args *args);

/* Gray bytes of 8-bit colour on the device, for equalisation. */

/* Writes each pixel's gray (gray_of_rgb_int; without colours the first channel) to out, in rows of width bytes that
 * are out_stride_bytes apart. source: u8 of any layout in device memory, disjoint from out. In a group both have
 * the stride of the planes. */
stage_status gray_launch(const source_view *source, uint8_t *out, size_t out_stride_bytes, picture_group group,
                         cuda_stream stream);

/* Launcher of the fused ("uber") level step: Gaussian level s+1 and DoG level s together; the new sample is still in a
   register when its difference is stored. Device memory and planes as cuda/pyramid/pyramid_cuda.h says; results are the
   bytes of the split kernels. */

/* Level step with DoG; only for radii with a specialised kernel (!blur_needs_work). */
stage_status uber_level_launch(const blur_launch_args *args, cuda_stream stream);

/* DoG level `dog`, upper - lower, by a separate kernel, with which the uber kernel is compared. Three
 * planes of one size and stride. */
stage_status dog_launch(const plane_view *lower, const plane_view *upper, const plane_view *dog, cuda_stream stream);

/* Launcher of chains: two or three level steps of a small octave in one launch, in which blocks recompute their
 * neighbours' halos. A small level takes the time of a launch whatever its size, so fewer launches save time. Device
 * memory and planes as cuda/pyramid/pyramid_cuda.h says; results are the bytes of single level steps. */

/* Levels first_level .. first_level + count - 1 of an octave, from level first_level - 1. */
typedef struct chain_launch_args {
  octave_view octave;
  int32_t first_level, count; /* count 2 or 3 */
  plane_view halved;          /* every second sample of the last level made; null data: not requested */
  border_mode border;
  const gaussian_filter *filters; /* host memory: filters[s] makes level s */
  picture_group group;
} chain_launch_args;

/* Whether the chain has a kernel for these radii and is faster at this size. */
bool chain_fits(const chain_launch_args *args);
stage_status chain_launch(const chain_launch_args *args, cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif
