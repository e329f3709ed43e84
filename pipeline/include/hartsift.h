/*
 * hartsift - exact SIFT features, the same bytes on every machine.
 *
 * Extracts Lowe's scale-invariant keypoints and descriptors (IJCV 2004) from images
 * in memory or in files: doubled input, sequential Gaussian pyramid, full sub-sample
 * refinement, every orientation, complete descriptor windows. For one image, one set
 * of options and one method version the result is the same sequence of bytes from
 * every backend (plain C, every SIMD level, any number of threads, GPU). Presets
 * ("profiles") reproduce the parameters of OpenCV, VLFeat and COLMAP.
 *
 *     hs_options opt;  hs_options_init(&opt, HS_PROFILE_LOWE);
 *     hs_context *ctx; hs_status st = hs_create(&ctx, &opt);
 *     hs_image img = { .data = pixels, .width = w, .height = h, .stride_bytes = w, .type = HS_U8 };
 *     hs_features f = {0};
 *     st = hs_extract(ctx, &img, NULL, &f);
 *     hs_features_free(&f);  hs_destroy(ctx);
 *
 * Versions. Until 1.0 a minor version may change the interface, and with it the shared library's name
 * (libhartsift.so.0.1); a patch version changes neither. From 1.0 on only a major version removes something, and only
 * what an earlier minor version marked HS_DEPRECATED. While the shared library's name stays the same, a program works
 * with any later library than its header's, and with an earlier one if it uses only what that library has:
 *   - Structs of options begin with struct_size, the caller's sizeof; hs_..._options_init sets it and writes no byte
 *     beyond. Fields are only appended. In a shorter struct, of an earlier header, missing fields get the defaults. In
 *     a longer one fields unknown to this library must be 0: otherwise the call is refused with HS_ERR_OPTION and the
 *     offset.
 *   - Other structs never change their size: they have fields named `reserved`, which are 0 and may become later
 *     fields; 0 in such a field keeps the old meaning. Structs used in arrays (hs_keypoint, hs_match_pair, ...) never
 *     grow.
 *   - Values of enumerations and statuses are only added; hs_status_class_of knows the class of later ones, too.
 *   - hs_version_number() says which library runs. The bytes of features depend on HS_METHOD_VERSION alone, of affine
 *     ones on HS_METHOD_VERSION_AFFINE.
 *
 * Lifetime and threads. A context holds all state: the library has no globals, prints
 * nothing, installs no handlers and never ends the process. One thread at a time may
 * use a context; different contexts may be used at once. Functions without a context
 * are re-entrant. Every pointer argument is host memory.
 *
 * Coordinates. x to the right, y down; the centre of the top-left pixel is (0, 0), in
 * pixels of the original image, whatever the octave. sigma is the keypoint's scale in
 * those pixels (OpenCV's KeyPoint::size is 2 sigma). orientation is in radians in
 * [0, 2 pi), direction (cos, sin) in the y-down frame, so clockwise on the screen.
 * response is |D| at the refined extremum, for intensities scaled to [0, 1].
 *
 * Descriptors. 4 x 4 cells of 8 orientation bins: index (4*row + column)*8 + bin in the patch turned to the
 * orientation, bins in Lowe's order (also OpenCV's, SiftGPU's and COLMAP's; VLFeat orders each cell 0 7 6 5 4 3 2 1,
 * see hs_options.layout).
 *
 * Headers. This one includes all others except hartsift_cuda.h, hartsift_expert.h and hartsift_opencv.hpp. Statuses,
 * images and features are in hartsift_types.h; files and other sources of pictures, matching, pairs, geometry,
 * patches, primitives, retrieval and COLMAP's database have separate headers. Each may be included alone.
 */
#ifndef HARTSIFT_H
#define HARTSIFT_H

#include <stddef.h>
#include <stdint.h>

#include "hartsift_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ versions */

/* The version of this header; hs_version_number() gives the running library's. */
#define HS_VERSION_MAJOR  0
#define HS_VERSION_MINOR  1
#define HS_VERSION_PATCH  0
#define HS_VERSION_NUMBER (HS_VERSION_MAJOR * 10000 + HS_VERSION_MINOR * 100 + HS_VERSION_PATCH)
/* Version of the arithmetic. Results are comparable byte for byte only within one value. */
#define HS_METHOD_VERSION 2
/* The same for features of options.affine, whose shapes have changed since version 2. */
#define HS_METHOD_VERSION_AFFINE 3

/* ------------------------------------------------------------------ options */

/* How the image is doubled for first octave -1. */
typedef enum hs_upsample {
  HS_UPSAMPLE_ALIGNED = 0,    /* every second sample is a pixel of the image, the others are interpolated */
  HS_UPSAMPLE_HALF_PIXEL = 1, /* samples are a quarter pixel away from the image's pixels; coordinates are correct */
  /* samples as with HS_UPSAMPLE_HALF_PIXEL, but treated as aligned: coordinates are 0.25 px too large */
  HS_UPSAMPLE_OPENCV = 2
} hs_upsample;
/* Which features are kept if there are more than hs_options.max_features. */
typedef enum hs_selection {
  HS_SELECT_RESPONSE = 0, /* the strongest */
  HS_SELECT_SCALE = 1,    /* the largest */
  HS_SELECT_LEVELS = 2    /* complete levels of the pyramid, the coarsest first */
} hs_selection;
/* The device that extracts features. */
typedef enum hs_device {
  HS_DEVICE_AUTO = 0,  /* a GPU where one is usable, else the CPU */
  HS_DEVICE_CPU = 1,   /* the CPU */
  HS_DEVICE_CUDA = 2,  /* a GPU */
  HS_DEVICE_HYBRID = 3 /* a GPU processes the large octaves, the CPU the small ones in parallel */
} hs_device;

/* The decoder of JPEGs; all give the same pixels. */
typedef enum hs_decoder {
  HS_DECODER_AUTO = 0, /* a GPU if it passed the comparison with libjpeg, else libjpeg */
  HS_DECODER_CPU = 1,  /* libjpeg */
  HS_DECODER_GPU = 2   /* a GPU; hs_create fails if none decodes */
} hs_decoder;

/* The goal of scheduling images in flight (hs_submit). */
typedef enum hs_workload {
  HS_WORKLOAD_LATENCY = 0, /* return each result as soon as possible, in the order of submission */
  /* Process as many images per second as possible. Only hs_wait_any returns results. Decoded images overtake images
     that are still being read; at most 128 images may be submitted after the oldest unfinished one. Up to 16 workers
     process images on a GPU, else up to 8. Workers sleep while the GPU works, so that the cores can decode images. The
     caller may keep 64 results without a copy (else 16). This goal takes more device memory and pinned memory. */
  HS_WORKLOAD_THROUGHPUT = 1
} hs_workload;

struct hs_expert_options; /* hartsift_expert.h */

/* The comment of a field gives its meaning and unit; then the range, if there is one; last the default, which is that
   of the lowe profile. stages/METHOD.md has the defaults of all four profiles.
   Sources: L = Lowe, IJCV 2004; O = OpenCV 4.x; V = VLFeat 0.9.21; C = COLMAP. */
typedef struct hs_options {
  size_t struct_size; /* sizeof(hs_options), set by hs_options_init; fields are only appended */
  hs_profile profile; /* preset that gave the defaults; its rules apply unless `expert` sets others */

  /* ---- 1. How the work is done: does not change any byte of the features */

  int32_t threads;      /* CPU threads including the caller's, 0: one for each usable core; 0..1024; default 0 */
  hs_device device;     /* device that extracts features; default HS_DEVICE_AUTO */
  int32_t device_index; /* index of the GPU; 0 or more; default 0 */
  /* HS_DEVICE_HYBRID: number of octaves on the GPU; the CPU processes the rest. 0: all octaves, unless a short
     measurement for the image size shows another number to be faster; all for images in flight; 0..32; default 0 */
  int32_t split;
  /* maximum number of images submitted and not yet waited for. 0: 8; for hs_submit_source 64; on a GPU with
     HS_WORKLOAD_THROUGHPUT 48; 0..256; default 0 */
  int32_t in_flight;
  /* maximum number of images of one size that share the launches of a GPU frame; 0: chosen by size; 0..64; default 0 */
  int32_t images_per_launch;
  /* maximum size of an image, pixels; 0: 2^31; UINT64_MAX: limited only by the address space; default 2^31 */
  uint64_t max_pixels;
  /* maximum workspace of each frame in flight, bytes. Host and device memory are limited separately. A larger frame is
     processed in tiles (pipeline/frame/TILES.md); HS_ERR_LIMIT if tiles do not fit either. Not counted: some 40 KiB of
     a context without a frame (hs_workspace_query counts them), and some 200 KiB for the launches of each worker of a
     GPU. 0: no limit; default 0 */
  uint64_t max_memory_bytes;
  /* allocator of all host memory except memory pinned for a GPU; null: the C library's. Must outlive the context */
  const hs_allocator *allocator;

  /* ---- 2. Selection of features: kept features have the same bytes */

  /* maximum number of features; if more are found, exactly this many are kept; 0: all; 0..2^30; default 0 */
  int32_t max_features;
  /* which features are kept: the strongest (HS_SELECT_RESPONSE, the default), the largest (HS_SELECT_SCALE), or
     complete levels (HS_SELECT_LEVELS). Ties follow the order. Levels are kept from the coarsest on, including the
     level with which the number first exceeds max_features (C); with a grid as HS_SELECT_SCALE. The colmap profile has
     HS_SELECT_LEVELS and 8192: for an exact number set another selection */
  hs_selection selection;
  /* Region in pixels: keypoints are kept if their rounded position is inside. An image that has no pixel inside is
     HS_ERR_ARGUMENT. Width 0: everywhere; default 0 */
  int32_t region_x, region_y, region_width, region_height;
  /* max_features are spread evenly over a grid of this many cells: first the best feature of every cell (by selection,
     ties by the order), then every cell's second, ...; in the last round the best of the round. Both 0: no grid. A grid
     with max_features 0 is HS_ERR_OPTION; with more than 65536 cells, for results that stay on a device,
     HS_ERR_UNSUPPORTED. 0..4096; default 0 */
  int32_t grid_columns, grid_rows;

  /* ---- 3. The method: other values give other features */

  /* 1: equalise the gray image first, as hs_equalize does, on the context's device. Only for 8-bit images, others are
     HS_ERR_UNSUPPORTED; 0 or 1; default 0 */
  int32_t equalize;

  /* Scale space (L section 3) */
  int32_t first_octave; /* first octave; -1 doubles the image; -1..3; default -1 */
  int32_t octaves;      /* maximum number of octaves, 0: as many as the image's size allows; 0..32; default 0 */
  int32_t scales;       /* S, scales per octave; 1..8; default 3 (L 3.2) */
  hs_upsample upsample; /* positions of the samples in the doubled image; default HS_UPSAMPLE_HALF_PIXEL */
  float sigma;          /* sigma0, blur of level 0 in samples of its octave; 0.8..4; default 1.6 (L 3.3) */
  float input_blur; /* assumed blur of the image, pixels; 0..sigma/2 if doubled, else 0..sigma; default 0.5 (L 3.3) */

  /* Keypoints (L sections 4 and 5) */
  int32_t border; /* width of the margin of each level without candidates, samples; 1..64; default 5 (O) */
  float contrast; /* minimum |D| of a keypoint, times S; 0..1; default 0.04 (O; L section 4 has 0.03 for one level) */
  float settle;   /* maximum |offset| of an extremum from its sample, samples; 0.5..1; default 0.6 (V) */
  float edge;     /* r, maximum ratio of principal curvatures; 1..1000; default 10 (L 4.1) */

  /* Orientation (L section 5) */
  /* maximum features per keypoint, the strongest peaks first; 0: all peaks above 0.8 of the largest; 0..18; default
   * 0
   */
  int32_t max_orientations;
  int32_t upright; /* 1: one feature of orientation 0 for each keypoint; 0 or 1; default 0 */

  /* Descriptor (L section 6) */
  hs_norm norm;                  /* normalisation of descriptors; default HS_NORM_L2 */
  hs_bin_layout layout;          /* order of the orientation bins in a cell; default HS_LAYOUT_UBC */
  hs_descriptor_type descriptor; /* type of the descriptors; default HS_DESCRIPTOR_U8 */

  /* Replacements for single rules of the profile, and for implementations of stages; null: the profile's rules, the
     fastest implementations. Read by hs_create only */
  const struct hs_expert_options *expert;

  /* Descriptor, continued: domain-size pooling (Dong and Soatto, CVPR 2015). Adds up the descriptors of dsp_sizes
     windows, in even steps from dsp_smallest to dsp_largest times the keypoint's window. Not comparable with other
     descriptors */
  int32_t dsp;       /* 1: pool descriptors over sizes; 0 or 1; default 0 */
  int32_t dsp_sizes; /* number of sizes; 2..16; default 4 (C: 10) */
  /* factors of the smallest and the largest window; 0.125..1 and 1..4; default 2/3 and 7/3 (C: 1/6 and 3) */
  float dsp_smallest, dsp_largest;
  hs_decoder decoder; /* decoder of encoded files; no byte of the features depends on it; default HS_DECODER_AUTO */
  /* 1: orient and describe each keypoint in the ellipse that its gradients determine (Baumberg, CVPR 2000; C:
     estimate_affine_shape), for strong changes of viewpoint; the ellipses are in hs_features.frames. 0 or 1; default 0
   */
  int32_t affine;
  hs_workload workload; /* goal of scheduling images in flight; no byte of the features depends on it; default
                           HS_WORKLOAD_LATENCY */
  int32_t unused;       /* 0 */
} hs_options;

/* Fills *options with the defaults of a profile. Statuses: HS_ERR_ARGUMENT (null, unknown profile). */
#define hs_options_init(options, profile) hs_options_init_sized((options), sizeof(hs_options), (profile))
/* As hs_options_init. struct_size: sizeof of the caller's struct; nothing is written beyond it. */
HS_API hs_status hs_options_init_sized(hs_options *options, size_t struct_size, hs_profile profile);

/* Type of a field of hs_options or hs_expert_options. */
typedef enum hs_option_type {
  HS_OPTION_INTEGER = 0, /* int32_t */
  HS_OPTION_FLAG = 1,    /* int32_t, 0 or 1 */
  HS_OPTION_CHOICE = 2,  /* an enumeration, counted from 0 */
  HS_OPTION_NUMBER = 3,  /* float */
  HS_OPTION_COUNT = 4,   /* uint64_t */
  HS_OPTION_BYTES = 5,   /* uint64_t, a size of memory */
  HS_OPTION_TEXT = 6,    /* const char * or null */
  HS_OPTION_POINTER = 7, /* another pointer or null */
  HS_OPTION_UNUSED = 8   /* int32_t, 0: no option yet */
} hs_option_type;

/* The groups of hs_options: 1, 2 and 3 above. */
typedef enum hs_option_group { HS_OPTIONS_WORK = 1, HS_OPTIONS_WANTED = 2, HS_OPTIONS_METHOD = 3 } hs_option_group;

/* One field of hs_options or hs_expert_options, for programs that offer all options. */
typedef struct hs_option_info {
  const char *name; /* name of the field: "max_memory_bytes" */
  /* name of the command's option: "max-memory"; null: the command has no such option, or one with another syntax */
  const char *command;
  const char *help; /* description for the command's help: a sentence without full stop */
  /* HS_OPTION_CHOICE: names of the values from 0 on, "u8|f32|none". Other types: name of the value in `help`, or
     null */
  const char *values;
  hs_option_type type;   /* type of the value */
  hs_option_group group; /* group of the option */
  int32_t of_expert;     /* 1: field of hs_expert_options, 0: of hs_options */
  size_t offset;         /* offset of the field in its struct, bytes */
  double low, high; /* INTEGER, FLAG, CHOICE, NUMBER: smallest and largest value; other fields may narrow the range */
} hs_option_info;

/* Describes field number `index` of the options: first the fields of hs_options after struct_size, then those of
   hs_expert_options. Returns null after the last field. The library owns the description. */
HS_API const hs_option_info *hs_option_describe(size_t index);

/* ------------------------------------------------------------------ context */

/* Creates a context. options: read only during the call (except allocator). On failure *context is null. message: null,
   or gets the reason of a failure (at most message_bytes, zero-terminated). After success the message is "", or says
   why HS_DEVICE_AUTO does not use a GPU that is present (its memory is full, another program has it, ...). hs_create is
   hs_create_explained without the message. Two environment variables narrow the choice. HARTSIFT_CPU (ref, sse2, avx2,
   avx512, avx512vnni, neon, neondot) selects the instruction set, HARTSIFT_DEVICE (auto, cpu, cuda, cuda:0..9, hybrid)
   what HS_DEVICE_AUTO means.
   Statuses: HS_ERR_ARGUMENT, HS_ERR_OPTION, HS_ERR_MEMORY, HS_ERR_THREAD, HS_ERR_NO_DEVICE. */
HS_API hs_status hs_create(hs_context **context, const hs_options *options);
HS_API hs_status hs_create_explained(hs_context **context, const hs_options *options, char *message,
                                     size_t message_bytes);
/* Destroys a context and frees its memory; null is allowed. Feature lists outlive the context. A forked child process
   has neither the threads nor the GPU: with a context of the parent it may call only this function. There the call
   frees memory, except that of images in flight and of the GPU, and does not wait. */
HS_API void hs_destroy(hs_context *context);

/* Computes the bytes that a context with these options needs for images up to width x height, 8-bit gray without a
   mask. host_bytes: maximum host memory held at one time, without results. Lists count with their first planned
   capacity. If the frame exceeds max_memory_bytes, the bytes are those of processing in tiles. device_bytes: device
   memory. Without a GPU no context is created; for a GPU a context is created there and destroyed. For HS_DEVICE_HYBRID
   the bytes are those of the GPU alone. Images in flight (hs_submit) multiply the bytes: on a GPU by at most 8, within
   half of its memory, on a CPU by at most 16. If even the smallest tiles exceed max_memory_bytes, the result is the
   bytes of these tiles, and extraction is refused with HS_ERR_LIMIT.
   Statuses: HS_ERR_ARGUMENT (also for null), HS_ERR_OPTION, HS_ERR_LIMIT (sides are too large); for a GPU also the
   statuses of hs_create. */
HS_API hs_status hs_workspace_query(const hs_options *options, int32_t width, int32_t height, uint64_t *host_bytes,
                                    uint64_t *device_bytes);

/* As hs_workspace_query, for a file of this size that is decoded row by row while it is processed in tiles (see
   hs_extract_source). The band of decoded rows uses memory that later stages need anyway; only the excess counts. The
   difference from hs_workspace_query is largest for wide, low pictures. type: sample type of the file: HS_U16 for 16
   bits per sample, else HS_U8; tiles are chosen for each type. If these options decode files before processing, the
   result is that of hs_workspace_query, without the picture. Statuses: as hs_workspace_query; HS_ERR_ARGUMENT for other
   types. */
HS_API hs_status hs_workspace_query_rows(const hs_options *options, int32_t width, int32_t height, hs_sample_type type,
                                         uint64_t *host_bytes, uint64_t *device_bytes);

/* ------------------------------------------------------------------ extraction */

/* Extracts the features of one image. Blocks. mask: null, or an image of HS_U8 and HS_GRAY of the same size; a keypoint
   is dropped, before max_features counts, if the mask is 0 at its rounded position (floor(x + 0.5), floor(y + 0.5)).
   features: in and out, see hs_features; unchanged on failure. The context grows to the largest image seen; after that,
   nothing is allocated when *features has the capacity.
   On a GPU, lists of 128 KiB and more are not copied: *features borrows the pinned memory that the device wrote, until
   hs_features_free. Any thread may call that, also after hs_destroy. The same holds for hs_wait. The memory of up to 16
   images (64 with HS_WORKLOAD_THROUGHPUT) can be borrowed at one time; further lists are copied. All lists are copied
   if options.allocator is set. A forked child can read and free borrowed lists; the parent sees what the child writes.
   Statuses: HS_ERR_ARGUMENT (null; a mask of another type or size), HS_ERR_IMAGE, HS_ERR_LIMIT, HS_ERR_UNSUPPORTED
   (options.equalize), HS_ERR_MEMORY, HS_ERR_THREAD (a context on a GPU starts its CPU threads when it first needs
   them),
   HS_ERR_DEVICE. */
HS_API hs_status hs_extract(hs_context *context, const hs_image *image, const hs_image *mask, hs_features *features);

/* As hs_extract, into the caller's arrays: keypoints[capacity] and descriptors (capacity x 128 entries of the
   descriptor type, or null to leave them out). *count gets the number of all features; If it exceeds `capacity`, the
   status is HS_ERR_CAPACITY, and the first `capacity` features in the defined order are written. */
HS_API hs_status hs_extract_into(hs_context *context, const hs_image *image, const hs_image *mask,
                                 hs_keypoint *keypoints, void *descriptors, size_t capacity, size_t *count);

/* As hs_extract, without a copy: *features points to a list of the context, which is valid until the context's next
   call or its destruction; null on failure. The caller must not free the list. On a GPU the list is pinned memory that
   the device wrote, which is the fastest transfer to the host. */
HS_API hs_status hs_extract_view(hs_context *context, const hs_image *image, const hs_image *mask,
                                 const hs_features **features);

/* As hs_extract: extracts keypoints with orientations, without descriptors. */
HS_API hs_status hs_detect(hs_context *context, const hs_image *image, const hs_image *mask, hs_features *features);

/* Describes user keypoints, on the device of the context. Blocks. keypoints[count]: x, y, sigma, orientation, and
   either level 1..S with its octave, or level 0. orientation: any finite value. NaN: orientations are computed, and the
   keypoint yields one feature for each of them, possibly none. A keypoint is described in its octave and level. The
   octave and level nearest to sigma are used instead if level is 0, if this image's pyramid does not have its octave or
   level, or if sigma is too small or too large for the octave. features: as hs_extract, one for each keypoint in the
   caller's order (several or none where the orientation was NaN), with the keypoint's position, sigma and response, and
   the octave and level that were used.
   Every keypoint in the picture is described, at any size: x in [-0.5, width - 0.5], y likewise, sigma above 0 and at
   most 1e9. Samples of the window outside the picture do not vote. The size of a window is bounded: from sigma 0.6, in
   samples of the first octave, to the size of the coarsest octave (stages/METHOD.md). statuses: null, or [count]:
   HS_OK, or HS_ERR_KEYPOINT for a keypoint that cannot be described, whose descriptors are zero: it is outside the
   picture, its sigma is not above 0, a number is not finite, or the picture is too small for any octave. keypoints must
   not overlap features->keypoints. Keypoints that the library extracted get the same descriptors as from extraction.
   max_features, mask and region do not apply.
   Returns the statuses of hs_extract; HS_ERR_KEYPOINT is only in `statuses`. */
HS_API hs_status hs_describe(hs_context *context, const hs_image *image, const hs_keypoint *keypoints, size_t count,
                             hs_features *features, hs_status *statuses);

/* Frees the list's arrays and clears the struct; null and {0} are allowed. */
HS_API void hs_features_free(hs_features *features);

/* ------------------------------------------------------------------ many images in flight

   A context keeps several images in flight: uploads, computation and downloads of different images overlap, images of
   one size may share launches, and on a CPU several images are processed at once. Results come in the order of
   submission, with the same bytes as hs_extract's. As for all functions on a context, one thread at a time may call
   hs_submit and hs_wait. hs_extract and other functions may be called between them; they do not affect the images in
   flight. The first hs_submit starts the workers; on a GPU their number depends on its memory. Once each worker has
   processed an image of the largest size, nothing more is allocated. The workers call the caller's allocator, several
   at once. */

/* Submits an image and returns without waiting for it. The pixels of image and mask (null: none) must stay valid and
   unchanged until hs_wait has returned this image's features; the structs themselves are copied. HS_ERR_CAPACITY:
   options.in_flight images are in flight: call hs_wait first. Statuses: those of hs_extract for image and mask,
   HS_ERR_CAPACITY, HS_ERR_MEMORY, HS_ERR_THREAD, HS_ERR_NO_DEVICE. After a failure nothing was submitted. */
HS_API hs_status hs_submit(hs_context *context, const hs_image *image, const hs_image *mask);

/* Waits for the oldest image in flight and copies its features to *features (as hs_extract). The status is that of the
   image. A failure concerns only that image; the next call returns the next image. HS_ERR_ARGUMENT if no image is in
   flight, and for HS_WORKLOAD_THROUGHPUT (see hs_wait_any). */
HS_API hs_status hs_wait(hs_context *context, hs_features *features);

/* As hs_wait, without a copy: *features points to a list of the context that stays valid until the next hs_wait,
   hs_wait_view or hs_destroy; null on failure. On a GPU it is pinned memory that the device wrote. */
HS_API hs_status hs_wait_view(hs_context *context, const hs_features **features);

/* As hs_wait, but returns the image that finishes first. *image: its number; the submissions of a context are numbered
   from 0. With HS_WORKLOAD_THROUGHPUT this is the only way to take results; otherwise it may be mixed with hs_wait and
   hs_wait_view. A failure is that of image *image. Statuses: as hs_wait. HS_ERR_ARGUMENT for null, or if no image is in
   flight; *image is UINT64_MAX then. */
HS_API hs_status hs_wait_any(hs_context *context, hs_features *features, uint64_t *image);

/* Number of images submitted and not yet waited for; 0 for null. */
HS_API int32_t hs_count_in_flight(const hs_context *context);

/* ------------------------------------------------------------------ progress

   Calls that block report progress on the CPU: hs_extract, hs_extract_into, hs_extract_view, hs_detect, hs_describe,
   hs_match, hs_find_nearest, hs_find_k_nearest, hs_find_within, hs_blend_similar, hs_pair_similar, hs_pair_matching.
   (Between hs_submit and hs_wait, and between the pairs of hs_pairs_next, the caller has control.) A GPU is not
   interrupted: its context calls the function once, before it submits the work, and in hs_pair_matching once a pair. */

/* Reports progress. The library calls it on the thread of its caller, during the call: at the beginning, then after
   every level of the scale space (some 30 times for a picture of a megapixel), after at most some 2^28 pairs of
   descriptors, for each block of vectors, or for each pair of images. On one or two threads a fused pass processes
   large octaves (if the first has at least 4 megasamples), which is most of a frame; it reports after strips of at most
   768 columns. done, total: work done so far and total work, in units that differ between calls of the library. done
   never decreases; total is 0 if a picture is too small for any octave. The function must not use the context, and runs
   with the floating-point settings of the library. Returns 0 to continue; another value ends the call with
   HS_ERR_CANCELLED as soon as the threads have finished their current chunks. */
typedef int32_t (*hs_progress_function)(void *user, uint64_t done, uint64_t total);

/* Sets the progress function of a context; null: none, the default. user is passed to it. HS_ERR_ARGUMENT: context is
   null. */
HS_API hs_status hs_set_progress(hs_context *context, hs_progress_function function, void *user);

/* ------------------------------------------------------------------ files of features */

/* Formats of feature files; pipeline/formats/FORMATS.md describes each. */
typedef enum hs_format {
  HS_FORMAT_AUTO = 0,       /* writing: chosen by the name's ending; reading: by ending, then content */
  HS_FORMAT_COLMAP = 1,     /* .txt: COLMAP text for feature_importer */
  HS_FORMAT_NPZ = 2,        /* .npz: NumPy arrays */
  HS_FORMAT_CSV = 3,        /* .csv */
  HS_FORMAT_JSON = 4,       /* .json */
  HS_FORMAT_LOWE = 5,       /* .key: Lowe's ASCII */
  HS_FORMAT_VLFEAT = 6,     /* .sift: VLFeat's text */
  HS_FORMAT_OPENCV = 7,     /* .yml, .yaml: OpenCV FileStorage */
  HS_FORMAT_OPENMVG = 8,    /* .feat, with .desc next to it */
  HS_FORMAT_BIN = 9,        /* .hsf: hartsift's binary format, with checksum */
  HS_FORMAT_COLMAP_DB = 10, /* .db: one image of COLMAP's database, see hartsift_colmap.h */
  HS_FORMAT_VISUALSFM = 11, /* VisualSFM's binary; the ending .sift means HS_FORMAT_VLFEAT when writing */
  HS_FORMAT_OXFORD = 12     /* .hesaff, .haraff, .oxford, .haraff.sift: regions of Oxford's detectors */
} hs_format;

/* Options for writing and reading feature files. */
typedef struct hs_file_options {
  size_t struct_size; /* sizeof(hs_file_options), set by hs_file_options_init; fields are only appended */
  hs_format format;   /* format of the file; default HS_FORMAT_AUTO */
  /* writing: bin order of the descriptors in memory. Features that are read always have HS_LAYOUT_UBC */
  hs_bin_layout layout;
  /* writing: name of the image, stored if the format can hold it; null: none. HS_FORMAT_COLMAP_DB: name of the image to
     write or read. For reading it may lack leading folders; null: the only image */
  const char *image_name;
  uint64_t max_features;         /* reading: refuse files that claim more features; 0: 2^27 */
  const hs_allocator *allocator; /* allocator of the result; must outlive it. null: the C library's */
  char *message;                 /* null, or buffer for the reason of a failure (zero-terminated) */
  size_t message_bytes;          /* capacity of message */
  /* reading: maximum memory for the bytes of a file and its list of features; files that need more are refused. 0:
     half the memory that this process may hold, as in hs_load_options; UINT64_MAX: no limit; default 0 */
  uint64_t max_memory_bytes;
  int32_t only_files; /* 1: a path always names a file, also "-"; 0: "-" is standard output; default 0 */
  int32_t unused;     /* 0 */
} hs_file_options;

/* Fills *options with the defaults above. They are all 0, so {.struct_size = sizeof(hs_file_options)} gives them too.
   HS_ERR_ARGUMENT: null. */
#define hs_file_options_init(options) hs_file_options_init_sized((options), sizeof(hs_file_options))
HS_API hs_status hs_file_options_init_sized(hs_file_options *options, size_t struct_size);

/* Writes features to a file, which appears complete or not at all (temporary name, then rename; the two files of
   HS_FORMAT_OPENMVG one after the other). HS_FORMAT_COLMAP_DB: one transaction adds the features to the database. If
   the image already has other features, the call is refused. path "-": standard output, unless options->only_files.
   Descriptors are converted to the format's type. HS_ERR_ARGUMENT: features of another layout than the options'; or, if
   hs_format_ignores_exif is 1 for the format, features of a picture that was turned by its EXIF orientation. options
   may be null.
   Statuses: HS_ERR_ARGUMENT, HS_ERR_OPTION, HS_ERR_IO, HS_ERR_UNSUPPORTED, HS_ERR_MEMORY. */
HS_API hs_status hs_save_features(const char *path, const hs_features *features, const hs_file_options *options);
/* Reads a file that hs_save_features or the format's original tool wrote; the file is not trusted. *features as in
   hs_extract. Statuses: HS_ERR_ARGUMENT, HS_ERR_OPTION, HS_ERR_IO, HS_ERR_FORMAT, HS_ERR_UNSUPPORTED (a compressed file
   or a database in a build without zlib or SQLite; descriptors that are not SIFT's), HS_ERR_LIMIT, HS_ERR_MEMORY. */
HS_API hs_status hs_load_features(const char *path, hs_features *features, const hs_file_options *options);
/* Returns the format that a file name's ending means; HS_FORMAT_AUTO if no format has that ending. */
HS_API hs_format hs_format_of_name(const char *path);
/* Returns a format's name, as the option --format takes it: "npz" for HS_FORMAT_NPZ. Null for HS_FORMAT_AUTO and
   unknown numbers. Formats are numbered from 1 on without a gap. */
HS_API const char *hs_format_name(hs_format format);
/* Returns 1 if the program that reads this format takes JPEGs as stored, without their EXIF orientation: its features
   must be extracted from images loaded with ignore_exif. 0: it applies EXIF, or the format is unknown. */
HS_API int32_t hs_format_ignores_exif(hs_format format);
/* Computes the digest that manifests of `hartsift batch` have: 64-bit FNV-1a in eight lanes over count, keypoints,
   descriptors and, if present, frames (FORMATS.md, "Manifest"). Equal features have equal digests on every machine and
   in every lossless format. The digest identifies results and does not protect against forgery.
   Statuses: HS_ERR_ARGUMENT (null, keypoints missing). */
HS_API hs_status hs_digest_features(const hs_features *features, uint64_t *digest);

/* ------------------------------------------------------------------ diagnostics */

/* Returns a status's name, such as "HS_ERR_OPTION"; "HS_ERR_?" for unknown values. The text is static. */
HS_API const char *hs_status_name(hs_status status);
/* Describes a status in one sentence. The text is static. */
HS_API const char *hs_status_string(hs_status status);
/* Returns the class of a status, which says how a context may be used afterwards. Also knows statuses of later
   libraries. */
HS_API hs_status_class hs_status_class_of(hs_status status);
/* Returns the reason of the last call's failure, in words for a user; "" after success. Valid until the next call. */
HS_API const char *hs_last_error(const hs_context *context);
/* Returns the status of the last call and the line of the library's source that set it, as in "HS_ERR_LIMIT at
   image_view.c:36"; "" after success. For bug reports. Valid until the next call. */
HS_API const char *hs_last_error_location(const hs_context *context);
/* Returns the version as text, such as "0.1.0 (method 2)". The text is static. */
HS_API const char *hs_version_string(void);
/* Return HS_VERSION_NUMBER, HS_METHOD_VERSION and HS_METHOD_VERSION_AFFINE of the running library, which may differ
   from the header's. */
HS_API int32_t hs_version_number(void);
HS_API int32_t hs_method_version(void);
HS_API int32_t hs_method_version_affine(void);

/* Lists the implementation chosen for each stage, one line "stage: variant" each. Valid until hs_destroy. */
HS_API const char *hs_backend_report(const hs_context *context);

/* How a frame was computed. The features do not depend on it. */
typedef enum hs_frame_way {
  HS_WAY_NONE = 0,               /* no frame has been processed */
  HS_WAY_CPU_STAGES = 1,         /* one stage after another, one octave after another */
  HS_WAY_CPU_JOBS = 2,           /* threads process parts of any stage and octave as soon as their inputs are ready */
  HS_WAY_CPU_FUSED_PASS = 3,     /* large octaves in one fused pass each: levels and extrema together, strip by strip */
  HS_WAY_CPU_TILES = 4,          /* tile after tile, within max_memory_bytes */
  HS_WAY_CPU_TILE_ROWS = 5,      /* like HS_WAY_CPU_TILES, while the file is decoded row by row */
  HS_WAY_CPU_USER_KEYPOINTS = 6, /* user keypoints of hs_describe, without detection */
  HS_WAY_GPU_KERNELS = 7,        /* kernel by kernel: the first frame of a size and options */
  /* for images in flight, a first frame as HS_WAY_GPU_KERNELS: one launch of a graph that was changed to this frame */
  HS_WAY_GPU_LISTED = 8,
  HS_WAY_GPU_GRAPH = 9,      /* one launch of the recorded graph of this size and options */
  HS_WAY_GPU_GROUP = 10,     /* several small images in the same launches */
  HS_WAY_GPU_TILES = 11,     /* tile after tile, because the complete frame does not fit */
  HS_WAY_GPU_TILE_ROWS = 12, /* like HS_WAY_GPU_TILES, while the file is decoded row by row */
  HS_WAY_HYBRID = 13         /* the first octaves on the GPU, the others on the CPU */
} hs_frame_way;

/* Returns a way's name, as --json has it: "cpu-jobs" for HS_WAY_CPU_JOBS, "none" for HS_WAY_NONE. Null for unknown
   numbers. Ways are numbered from 0 on without a gap. */
HS_API const char *hs_frame_way_name(hs_frame_way way);

/* Statistics of a context. */
typedef struct hs_statistics {
  size_t struct_size;      /* sizeof(hs_statistics), set by hs_statistics_init; fields are only appended */
  uint64_t frames;         /* number of frames extracted so far */
  uint64_t regrown_frames; /* number of frames repeated because a list overflowed its planned capacity */
  uint64_t candidates, keypoints, features; /* counts of the last frame */
  uint64_t workspace_bytes;                 /* host memory held now */
  uint64_t device_bytes;                    /* device memory held now */
  hs_frame_way way;       /* way of the last frame; with images in flight, of one of the latest frames */
  const char *way_reason; /* reason why that way was chosen, a static string; null before the first frame */
} hs_statistics;

/* Clears *statistics. All fields become 0, so {.struct_size = sizeof(hs_statistics)} clears it too. HS_ERR_ARGUMENT:
   null. */
#define hs_statistics_init(statistics) hs_statistics_init_sized((statistics), sizeof(hs_statistics))
HS_API hs_status hs_statistics_init_sized(hs_statistics *statistics, size_t struct_size);
/* Fills the fields within struct_size. Fields that only a later header has are set to zero. HS_ERR_ARGUMENT: null, or
   struct_size not set. */
HS_API hs_status hs_get_statistics(const hs_context *context, hs_statistics *statistics);

#ifdef __cplusplus
}
#endif

#include "hartsift_batch.h"
#include "hartsift_colmap.h"
#include "hartsift_geometry.h"
#include "hartsift_match.h"
#include "hartsift_pairs.h"
#include "hartsift_patches.h"
#include "hartsift_primitives.h"
#include "hartsift_retrieval.h"
#include "hartsift_source.h"

#endif
