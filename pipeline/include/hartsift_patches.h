/*
 * hartsift_patches.h - square patches around keypoints, for external descriptors; part of hartsift.h.
 *
 * Learned descriptors (HardNet, SOSNet, ...) take a patch of 32 x 32 samples around each keypoint, turned to its
 * orientation and scaled with its sigma. Every instruction set, number of threads and device gives the same bytes;
 * stages/patch.h defines the arithmetic.
 */
#ifndef HARTSIFT_PATCHES_H
#define HARTSIFT_PATCHES_H

#include "hartsift_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Type of a patch's samples. */
typedef enum hs_patch_type {
  HS_PATCH_U8 = 0, /* uint8_t: floor(255 v + 0.5) of the float value v, at most 255 */
  HS_PATCH_F32 = 1 /* float: intensity v, 0 black, 1 white */
} hs_patch_type;

/* Options of patches. */
typedef struct hs_patch_options {
  size_t struct_size; /* sizeof(hs_patch_options), set by hs_patch_options_init; fields are only appended */
  int32_t size;       /* number of samples along a side; 1..1024; default 32 */
  float scale;        /* length of a side, in units of the keypoint's sigma; (0, 1000]; 12: SIFT's 4 cells of 3 sigma */
  /* maximum blur of the Gaussian level from which a patch is sampled, in distances between samples. The most blurred
     level within this limit is used; without such a level, the image itself. 0: always the image; 0..16; default 0.5 */
  float blur;
  int32_t upright;    /* 1: orientations count as 0; 0 or 1, only 0 with frames; default 0 */
  hs_patch_type type; /* type of the samples; default HS_PATCH_U8 */
  int32_t unused;     /* 0 */
} hs_patch_options;

/* Fills *options with the defaults. HS_ERR_ARGUMENT: null. */
#define hs_patch_options_init(options) hs_patch_options_init_sized((options), sizeof(hs_patch_options))
HS_API hs_status hs_patch_options_init_sized(hs_patch_options *options, size_t struct_size);

/* Extracts patches around keypoints, which need not come from this library. Sample (i, j) of a patch, i to the right,
   is the bilinear value at (u, v) = ((i + 0.5) / size - 0.5, (j + 0.5) / size - 0.5) * scale of the keypoint's frame;
   outside the image its edge repeats. context: its options, all but the region, determine the gray picture and the
   pyramid. The CPU does the work, also in a context on a GPU. image: as for hs_extract. keypoints: [count], host
   memory; x, y, sigma and orientation are used. frames: [count], host memory, instead of sigma and orientation; null:
   the keypoints are circular. options: null for the defaults. patches: [count][size][size] of the options' type, host
   memory of the caller, aligned for it. statuses: [count], host memory, or null: HS_OK or HS_ERR_KEYPOINT.
   HS_ERR_KEYPOINT, and a patch of zeros: a number is not finite or is beyond 2^22 pixels, sigma is not above 0, or
   the frame is singular.
   Blocks. Statuses: HS_ERR_ARGUMENT, HS_ERR_OPTION, HS_ERR_IMAGE, HS_ERR_LIMIT, HS_ERR_MEMORY, HS_ERR_THREAD,
   HS_ERR_UNSUPPORTED (options.equalize and an image that is not 8-bit), HS_ERR_CANCELLED. */
HS_API hs_status hs_extract_patches(hs_context *context, const hs_image *image, const hs_keypoint *keypoints,
                                    const hs_frame *frames, size_t count, const hs_patch_options *options,
                                    void *patches, hs_status *statuses);

#ifdef __cplusplus
}
#endif
#endif
