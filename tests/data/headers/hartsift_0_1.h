/*
 * hartsift_types.h - what every header of hartsift is built on: statuses, images, memory, features; part of hartsift.h.
 */
#ifndef HARTSIFT_TYPES_H
#define HARTSIFT_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#  define HS_API
#elif defined(__GNUC__)
#  define HS_API __attribute__((visibility("default")))
#else
#  define HS_API
#endif

/* Marks a function or a type that a later version will drop; `instead` says what takes its place. */
#if defined(__GNUC__)
#  define HS_DEPRECATED(instead) __attribute__((deprecated(instead)))
#elif defined(_MSC_VER)
#  define HS_DEPRECATED(instead) __declspec(deprecated(instead))
#else
#  define HS_DEPRECATED(instead)
#endif

/* ------------------------------------------------------------------ statuses */

typedef enum hs_status {
  HS_OK = 0,
  /* Argument class: nothing was done (HS_ERR_CAPACITY apart), the context stays usable. */
  HS_ERR_ARGUMENT = 1,     /* a pointer is null or a plain argument is out of its range */
  HS_ERR_OPTION = 2,       /* a field of a struct of options is out of range; the message names it */
  HS_ERR_IMAGE = 3,        /* an image view is inconsistent (size, stride, type, layout) */
  HS_ERR_KEYPOINT = 4,     /* a keypoint cannot be described (its scale or place is not in the pyramid) */
  HS_ERR_CAPACITY = 5,     /* the caller's arrays are too small: they were filled and the full count given;
                              hs_submit: as many images are in flight as may be */
  HS_ERR_LIMIT = 6,        /* the image exceeds max_pixels or 2^22 samples a side in its first octave (2^21 pixels
                              where that is doubled), or the work max_memory_bytes */
  HS_ERR_FORMAT = 7,       /* the content of a file is damaged or of no known kind */
  HS_ERR_UNSUPPORTED = 8,  /* valid, but outside what this build or this format can do */
  /* Resource class: usable again once the resource is there. */
  HS_ERR_MEMORY = 32,      /* an allocation failed */
  HS_ERR_IO = 33,          /* a file cannot be opened, read, written or renamed */
  HS_ERR_THREAD = 34,      /* a worker thread cannot be started */
  HS_ERR_NO_DEVICE = 35,   /* the device asked for is not usable; hs_last_error says why */
  /* Device class: destroy the context. */
  HS_ERR_DEVICE = 64,      /* the device reported an error */
  HS_ERR_INTERNAL = 65     /* a broken invariant: please report it */
} hs_status;

typedef enum hs_status_class {
  HS_CLASS_OK = 0,
  HS_CLASS_ARGUMENT = 1,   /* context usable */
  HS_CLASS_RESOURCE = 2,   /* context usable after the resource is freed */
  HS_CLASS_DEVICE = 3      /* context must be destroyed */
} hs_status_class;

/* ------------------------------------------------------------------ images */

typedef enum hs_sample_type {
  HS_U8 = 0,   /* 0..255, scaled by 1/255 */
  HS_U16 = 1,  /* 0..65535, native byte order, scaled by 1/65535 */
  HS_F32 = 2   /* hs_image.range_low..range_high; outside is clamped, NaN counts as the low end */
} hs_sample_type;

/* Interleaved channels. Colour becomes gray as (9798 R + 19235 G + 3735 B + 16384) >> 15 for
   integers (same weights for floats); alpha is dropped. */
typedef enum hs_pixel_layout {
  HS_GRAY = 0,
  HS_GRAY_ALPHA = 1,
  HS_RGB = 2,
  HS_BGR = 3,
  HS_RGBA = 4,
  HS_BGRA = 5
} hs_pixel_layout;

typedef struct hs_allocator hs_allocator;

/* A view of pixels; the library reads them during the call only. Start with {0}, so that what is not set is 0. */
typedef struct hs_image {
  const void *data;        /* first row; aligned for the sample type */
  int32_t width, height;   /* pixels, 1 or more */
  size_t stride_bytes;     /* from row to row, at least width * channels * sample size; 0: exactly that */
  hs_sample_type type;
  hs_pixel_layout layout;
  float range_low, range_high; /* HS_F32 only: values of black and white; 0, 0 means 0..1 */
  void *memory;                  /* what hs_image_free releases; null for a view of memory that stays the caller's */
  const hs_allocator *allocator; /* that memory came from and goes back to; null: the C library's */
  int32_t reserved[8];           /* 0 */
} hs_image;

/* ------------------------------------------------------------------ memory */

/* Memory functions of the caller. alloc returns null when it fails, memory aligned to 64 bytes
   otherwise; release takes null. Both are called from one thread at a time per context, with hs_submit from several. */
struct hs_allocator {
  void *(*alloc)(size_t bytes, void *user);
  void (*release)(void *pointer, void *user);
  void *user;
};

/* ------------------------------------------------------------------ results */

/* A feature's place and scale, and where in the pyramid it was found. 24 bytes, for good: what more there is to say of
   each keypoint goes into arrays of its own in hs_features. */
typedef struct hs_keypoint {
  float x, y;              /* pixels of the original image */
  float sigma;             /* scale, original pixels */
  float orientation;       /* radians in [0, 2 pi), y down */
  float response;          /* |D| at the refined extremum, image scaled to [0, 1] */
  int16_t octave;          /* sampling distance 2^octave original pixels */
  int16_t level;           /* Gaussian level 1..S; as an input, 0: octave and level follow from sigma */
} hs_keypoint;

typedef enum hs_descriptor_type {
  HS_DESCRIPTOR_U8 = 0,    /* min(255, floor(512 v + 0.5)) */
  HS_DESCRIPTOR_F32 = 1,   /* unit norm; profile opencv: integer values 0..255 */
  HS_DESCRIPTOR_NONE = 2   /* keypoints with orientations only */
} hs_descriptor_type;

enum { HS_DESCRIPTOR_LENGTH = 128 };

typedef enum hs_profile {
  HS_PROFILE_LOWE = 0,     /* the paper, with what it leaves open chosen by measurement */
  HS_PROFILE_OPENCV = 1,   /* cv::SIFT of OpenCV 4.x */
  HS_PROFILE_VLFEAT = 2,   /* the vl_sift program of VLFeat 0.9.21 */
  HS_PROFILE_COLMAP = 3    /* COLMAP's CPU extractor: VLFeat with RootSIFT, 8192 features */
} hs_profile;

/* How descriptors are normalised: to unit length, or the square root of the L1-normalised (Arandjelovic 2012). */
typedef enum hs_norm { HS_NORM_L2 = 0, HS_NORM_ROOT = 1 } hs_norm;
/* The order of the orientation bins in a cell. */
typedef enum hs_bin_layout { HS_LAYOUT_UBC = 0, HS_LAYOUT_VLFEAT = 1 } hs_bin_layout;

/* How descriptors were made: only those that were made alike can be compared. */
typedef struct hs_origin {
  int32_t method_version;  /* HS_METHOD_VERSION of the library that made them; 0: unknown, and so is the rest */
  hs_profile profile;
  hs_norm norm;
  hs_bin_layout layout;
  int32_t reserved[4];     /* 0 */
} hs_origin;

/* A list of features in the defined order: octave, level, row, column of the settled sample,
   orientation. Start with {0}; filled by the library, which owns both arrays until
   hs_features_free, or until the next call that fills the same struct (its room is used again). */
typedef struct hs_features {
  size_t count;
  hs_keypoint *keypoints;              /* count entries */
  void *descriptors;                   /* count x 128 uint8_t or float, row-major; null for HS_DESCRIPTOR_NONE */
  hs_descriptor_type descriptor_type;
  int32_t image_width, image_height;   /* of the image they come from; 0 when unknown */
  hs_origin origin;                    /* set by extraction and hs_describe; unknown for what was read from a file */
  size_t capacity;                     /* entries that both arrays have room for; the library's */
  size_t descriptor_capacity_bytes;    /* the library's */
  const hs_allocator *allocator;       /* that the arrays came from; must outlive them. The library's */
  int32_t reserved[16];                /* 0. For arrays beside keypoints, an affine frame for each, say */
} hs_features;

/* A context: options, chosen backend and working memory; made by hs_create. */
typedef struct hs_context hs_context;

#endif
/*
 * hartsift - exact SIFT features, the same bytes on every machine.
 *
 * Extracts Lowe's scale-invariant keypoints and descriptors (IJCV 2004) from images
 * in memory or in files: doubled input, sequential Gaussian pyramid, full sub-sample
 * refinement, every orientation, complete descriptor windows. For one image, one set
 * of options and one HS_METHOD_VERSION the result is the same sequence of bytes from
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
 * Versions. Until 1.0 a minor version may change the interface, and the shared library's name changes with it
 * (libhartsift.so.0.1); a patch version changes neither. From 1.0 on only a major version takes something away, and only
 * what was marked HS_DEPRECATED in a minor version before. Within one shared library's name a program works with any
 * later library than its header's, and with an earlier one as far as it uses only what that one has:
 *   - Structs of options begin with struct_size, the caller's own sizeof; hs_..._options_init sets it and writes no byte
 *     beyond. Fields are only appended. A shorter struct, of an earlier header, gets the defaults for what it lacks; in a
 *     longer one what this library does not know must be 0, or the call is refused with HS_ERR_OPTION and the offset.
 *   - Other structs never change their size: they have room named `reserved`, which is 0 and which later fields take;
 *     0 in such a field means what it meant before. What stands in arrays (hs_keypoint, hs_match_pair, ...) never grows.
 *   - Values of enumerations and statuses are only added; hs_status_class_of knows the class of those to come, too.
 *   - hs_version_number() tells which library runs. The bytes of features go by HS_METHOD_VERSION alone.
 *
 * Lifetime and threads. A context holds all state: the library has no globals, prints
 * nothing, installs no handlers and never ends the process. One thread at a time may
 * use a context; different contexts may be used at once. Functions without a context
 * are re-entrant. Every pointer argument is host memory.
 *
 * Coordinates. x to the right, y down; the centre of the top-left pixel is (0, 0), in
 * pixels of the image as given, whatever the octave. sigma is the keypoint's scale in
 * those pixels (OpenCV's KeyPoint::size is 2 sigma). orientation is in radians in
 * [0, 2 pi), direction (cos, sin) in the y-down frame, so clockwise on the screen.
 * response is |D| at the refined extremum, for intensities scaled to [0, 1].
 *
 * Descriptors. 4 x 4 cells of 8 orientation bins: index (4*row + column)*8 + bin in the
 * patch turned to the orientation, bins in Lowe's sense (that of OpenCV, SiftGPU and
 * COLMAP's database; VLFeat orders each cell 0 7 6 5 4 3 2 1, see hs_options.layout).
 *
 * Headers. This one is the whole of the library but hartsift_cuda.h: statuses, images and features are in
 * hartsift_types.h; matching, geometry, primitives and COLMAP's database in headers of their own. Each may be included
 * alone.
 */
#ifndef HARTSIFT_H
#define HARTSIFT_H

#include <stddef.h>
#include <stdint.h>


#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ versions */

#define HS_VERSION_MAJOR 0
#define HS_VERSION_MINOR 1
#define HS_VERSION_PATCH 0
#define HS_VERSION_NUMBER (HS_VERSION_MAJOR * 10000 + HS_VERSION_MINOR * 100 + HS_VERSION_PATCH)
/* Version of the arithmetic. Results are comparable byte for byte only within one value. */
#define HS_METHOD_VERSION 2

/* ------------------------------------------------------------------ options */

/* How the image is doubled for first octave -1. */
typedef enum hs_upsample {
  HS_UPSAMPLE_ALIGNED = 0,    /* every second sample is one of the image, those between are means */
  HS_UPSAMPLE_HALF_PIXEL = 1, /* samples lie a quarter pixel beside the image's; coordinates are true ones */
  HS_UPSAMPLE_OPENCV = 2      /* the same samples, taken for aligned ones: coordinates are 0.25 px too large */
} hs_upsample;
typedef enum hs_selection { HS_SELECT_RESPONSE = 0, HS_SELECT_SCALE = 1 } hs_selection;
/* HS_DEVICE_HYBRID: a GPU makes the large octaves and their features, the CPU the small ones meanwhile. */
typedef enum hs_device { HS_DEVICE_AUTO = 0, HS_DEVICE_CPU = 1, HS_DEVICE_CUDA = 2, HS_DEVICE_HYBRID = 3 } hs_device;

struct hs_expert_options; /* hartsift_expert.h */

/* Every default below is the lowe profile's; stages/METHOD.md has the table of all four profiles.
   Sources: L = Lowe, IJCV 2004; O = OpenCV 4.x; V = VLFeat 0.9.21; C = COLMAP. */
typedef struct hs_options {
  size_t struct_size;          /* sizeof(hs_options), set by hs_options_init; fields are only appended */
  hs_profile profile;          /* the preset these options started from, whose rules hold unless expert has others */

  /* ---- 1. How the work is done: no byte of the features depends on it */

  int32_t threads;             /* CPU threads incl. the caller's, 0: one for each usable core; 0..1024; 0 */
  hs_device device;            /* HS_DEVICE_AUTO: a GPU where one is usable, else the CPU */
  int32_t device_index;        /* which GPU; 0 or more; 0 */
  int32_t split;               /* HS_DEVICE_HYBRID: octaves on the GPU, the rest on the CPU; 0: what a short measurement
                                  for each size of image finds fastest, which may be all; 0..32; 0 */
  int32_t in_flight;           /* most images submitted and not yet waited for; 0: 8; 0..256; 0 */
  int32_t images_per_launch;   /* most images of one size that share the launches of a GPU frame; 0: chosen by size;
                                  0..64; 0 */
  uint64_t max_pixels;         /* largest image, pixels, 0: 2^31; UINT64_MAX: no limit but the address space; 2^31 */
  uint64_t max_memory_bytes;   /* largest workspace of a frame, in host and in device memory each, 0: no limit; 0.
                                  With hs_submit several frames have theirs at once */
  const hs_allocator *allocator; /* for all host memory that is not pinned for a GPU; null: the C library's.
                                   Must outlive the context */

  /* ---- 2. Which features of the image are wanted: those that stay keep their bytes */

  int32_t max_features;        /* exactly this many when there are more, 0: all; 0..2^30; 0 */
  hs_selection selection;      /* which: HS_SELECT_RESPONSE strongest, HS_SELECT_SCALE largest; ties by the order */
  /* Keep keypoints whose rounded place lies inside, pixels; width 0: everywhere; 0 */
  int32_t region_x, region_y, region_width, region_height;
  int32_t grid_columns, grid_rows; /* spread max_features evenly over this many cells of the image: every cell's best
                                  (by selection, ties by the order), then every cell's second, ...; within the last round
                                  the best of it. HS_ERR_OPTION with max_features 0, HS_ERR_UNSUPPORTED for results
                                  that stay on a device; both 0: no grid; 0..4096; 0 */

  /* ---- 3. The method: other values give other features */

  int32_t equalize;            /* 1: equalise the gray image first, as hs_equalize, on the host whatever the device; 8-bit
                                  images in host memory, HS_ERR_UNSUPPORTED for others; 0 or 1; 0 */

  /* Scale space (L section 3) */
  int32_t first_octave;        /* octave of the first sampling: -1 doubles the image; -1..3; -1 */
  int32_t octaves;             /* most octaves built, 0: as many as the image's size gives; 0..32; 0 */
  int32_t scales;              /* S, scales per octave; 1..8; 3 (L 3.2) */
  hs_upsample upsample;        /* grid of the doubling; HS_UPSAMPLE_HALF_PIXEL */
  float sigma;                 /* sigma0, blur of level 0 in samples of its octave; 0.8..4; 1.6 (L 3.3) */
  float input_blur;            /* the image's assumed blur, pixels; 0..sigma/2 if doubled, else 0..sigma; 0.5 (L 3.3) */

  /* Keypoints (L sections 4 and 5) */
  int32_t border;              /* samples at each side that cannot be candidates; 1..64; 5 (O) */
  float contrast;              /* |D| a keypoint needs, times S; 0..1; 0.04 (L section 4 has 0.03 of one level; O) */
  float settle;                /* largest |offset| of a settled sample, samples; 0.5..1; 0.6 (V) */
  float edge;                  /* r, largest ratio of principal curvatures; 1..1000; 10 (L 4.1) */

  /* Orientation (L section 5) */
  int32_t max_orientations;    /* features per keypoint, 0: every peak beyond 0.8; the strongest first; 0..18; 0 */
  int32_t upright;             /* 1: one feature of orientation 0 for each keypoint; 0 or 1; 0 */

  /* Descriptor (L section 6) */
  hs_norm norm;                /* HS_NORM_L2 */
  hs_bin_layout layout;        /* order of the orientation bins in a cell; HS_LAYOUT_UBC */
  hs_descriptor_type descriptor; /* HS_DESCRIPTOR_U8 */

  /* Rules that make up a profile, one by one, and implementations of stages; null: the profile's own, the fastest.
     Read by hs_create only */
  const struct hs_expert_options *expert;
} hs_options;

/* Fills *options with a profile's defaults. Statuses: HS_ERR_ARGUMENT (null, unknown profile). */
#define hs_options_init(options, profile) hs_options_init_sized((options), sizeof(hs_options), (profile))
/* struct_size: sizeof of the caller's struct; nothing is written beyond. */
HS_API hs_status hs_options_init_sized(hs_options *options, size_t struct_size, hs_profile profile);

/* ------------------------------------------------------------------ context */

/* Makes a context. options: read only during the call (except allocator). On failure *context is null
   and, where message is not null, up to message_bytes of the reason are written (zero-terminated). On success message is
   "", or says why HS_DEVICE_AUTO passed over a GPU that is there (its memory is full, another program has it, ...).
   hs_create is hs_create_explained without the message. Two environment variables narrow what is chosen: HARTSIFT_CPU
   (ref, sse2, avx2, avx512, avx512vnni, neon) the instruction set, HARTSIFT_DEVICE (auto, cpu, cuda, cuda:0..9, hybrid)
   what HS_DEVICE_AUTO stands for.
   Statuses: HS_ERR_ARGUMENT, HS_ERR_OPTION, HS_ERR_MEMORY, HS_ERR_THREAD, HS_ERR_NO_DEVICE. */
HS_API hs_status hs_create(hs_context **context, const hs_options *options);
HS_API hs_status hs_create_explained(hs_context **context, const hs_options *options, char *message,
                                     size_t message_bytes);
/* Ends a context and frees all it holds; null is allowed. hs_features outlive it. */
HS_API void hs_destroy(hs_context *context);

/* Bytes a context needs for images up to width x height with these options, before anything is
   allocated: host_bytes (the most held at once in host memory, results excluded; lists are counted at
   their first planned capacity) and device_bytes, for 8-bit gray images without a mask. Where the options lead to a
   GPU a context is made there for the question and ended again; HS_DEVICE_HYBRID counts as the GPU alone. What is in
   flight (hs_submit) multiplies this: by up to 8 on a GPU, as far as half its memory goes, up to 16 on a CPU.
   Statuses: HS_ERR_ARGUMENT, HS_ERR_OPTION, HS_ERR_LIMIT; with such options also those of hs_create. */
HS_API hs_status hs_workspace_query(const hs_options *options, int32_t width, int32_t height,
                                    uint64_t *host_bytes, uint64_t *device_bytes);

/* ------------------------------------------------------------------ extraction */

/* Extracts the features of one image. Blocks. mask: null, or an image of HS_U8 and HS_GRAY of the same size; a keypoint
   whose rounded place (floor(x + 0.5), floor(y + 0.5)) reads 0 there is dropped before max_features counts. features: in
   and out, see hs_features; unchanged on failure. The context grows to the largest image seen; after that, nothing is
   allocated when *features has room.
   Statuses: HS_ERR_ARGUMENT (null; another mask), HS_ERR_IMAGE, HS_ERR_LIMIT, HS_ERR_UNSUPPORTED (options.equalize),
   HS_ERR_MEMORY, HS_ERR_THREAD (a context of a GPU starts its CPU threads when they are first wanted), HS_ERR_DEVICE. */
HS_API hs_status hs_extract(hs_context *context, const hs_image *image, const hs_image *mask, hs_features *features);

/* The same into the caller's arrays: keypoints[capacity] and descriptors (capacity x 128 entries of the
   descriptor type, or null to leave them out). *count gets the full count; with HS_ERR_CAPACITY the first
   `capacity` features in the defined order were written. */
HS_API hs_status hs_extract_into(hs_context *context, const hs_image *image, const hs_image *mask,
                                 hs_keypoint *keypoints, void *descriptors, size_t capacity, size_t *count);

/* The same without a copy: *features points to a list that the context owns and that stays valid until its next call
   or its end; null on failure. On a GPU this is pinned memory that the device wrote, the fastest way to the host. Not
   to be freed. */
HS_API hs_status hs_extract_view(hs_context *context, const hs_image *image, const hs_image *mask,
                                 const hs_features **features);

/* Keypoints with orientations, without descriptors. As hs_extract. */
HS_API hs_status hs_detect(hs_context *context, const hs_image *image, const hs_image *mask, hs_features *features);

/* Describes given keypoints; on the CPU, also in a context of a GPU. Blocks. keypoints[count]: x, y, sigma, orientation
   (any finite value; NaN: its orientations are computed and the keypoint yields one feature each, possibly none) and
   level 1..S with its octave, or level 0: the octave and level nearest to sigma. features: as hs_extract, one for each
   keypoint in the order given (several or none where the orientation was NaN), response copied.
   statuses: null, or [count]: HS_OK, or HS_ERR_KEYPOINT where a keypoint cannot be described (its features'
   descriptors are zero). keypoints must not lie in features->keypoints. Describing the library's own keypoints gives
   the bytes of extraction. max_features, mask and region do not apply.
   Statuses: as hs_extract; HS_ERR_KEYPOINT is only ever in `statuses`. */
HS_API hs_status hs_describe(hs_context *context, const hs_image *image, const hs_keypoint *keypoints, size_t count,
                             hs_features *features, hs_status *statuses);

/* Frees what the library filled in and clears the struct; null and {0} are allowed. */
HS_API void hs_features_free(hs_features *features);

/* ------------------------------------------------------------------ many images in flight

   A context keeps several images in flight: uploads, computation and downloads of different images overlap, images of
   one size may share launches, and on a CPU several images are worked on at once. Results come in the order of
   submission, with the same bytes as hs_extract's. hs_submit and hs_wait are calls on the context like all others: one
   thread at a time. hs_extract and the others may be called in between; they do not touch what is in flight. The first
   hs_submit starts the workers; after the largest image has been through every place, nothing more is allocated. An
   allocator of the caller's must then bear calls from several threads at once. */

/* Hands an image over and returns without waiting for it. The pixels (and the mask's; null: none) must stay valid and
   unchanged until hs_wait has returned this image's features; the structs themselves are copied. HS_ERR_CAPACITY:
   options.in_flight images are under way: hs_wait first. Statuses: as hs_extract (what is found wrong with the views),
   HS_ERR_CAPACITY, HS_ERR_MEMORY, HS_ERR_THREAD, HS_ERR_NO_DEVICE; then nothing was handed over. */
HS_API hs_status hs_submit(hs_context *context, const hs_image *image, const hs_image *mask);

/* Waits for the oldest image in flight and copies its features to *features (as hs_extract). The status is that image's
   own; after a failure, which ends that image only, the next call is about the next one. HS_ERR_ARGUMENT when none is in
   flight. */
HS_API hs_status hs_wait(hs_context *context, hs_features *features);

/* The same without a copy: *features points to a list of the context that stays valid until the next hs_wait,
   hs_wait_view or hs_destroy; null on failure. On a GPU it is pinned memory that the device wrote. */
HS_API hs_status hs_wait_view(hs_context *context, const hs_features **features);

/* How many images are submitted and not yet waited for; 0 for null. */
HS_API int32_t hs_count_in_flight(const hs_context *context);

/* ------------------------------------------------------------------ files */

typedef struct hs_load_options {
  size_t struct_size;          /* sizeof(hs_load_options), set by hs_load_options_init; fields are only appended */
  uint64_t max_pixels;         /* refuse larger images before allocating, 0: 2^31; UINT64_MAX: no limit */
  uint64_t max_memory_bytes;   /* refuse images whose decoding needs more, 0: no limit */
  int32_t ignore_exif;         /* 1: leave a JPEG as stored; 0: apply its EXIF orientation */
  int32_t keep_colour;         /* 1: RGB where the file has colour; 0: gray (luma of a YCbCr JPEG as stored) */
  int32_t jpeg_scale;          /* 1, 2, 4, 8: decode a JPEG to 1/N of its width and height, rounded up, inside libjpeg's
                                  transform; 0 means 1. The limits are for what is decoded, coordinates found are pixels
                                  of it. Above 1 other files and scenes are HS_ERR_UNSUPPORTED. 0 */
  const hs_allocator *allocator;
  char *message;               /* null, or where the reason of a failure goes (zero-terminated) */
  size_t message_bytes;
} hs_load_options;

/* The defaults above: all 0, so {.struct_size = sizeof(hs_load_options)} is the same. HS_ERR_ARGUMENT: null. */
#define hs_load_options_init(options) hs_load_options_init_sized((options), sizeof(hs_load_options))
HS_API hs_status hs_load_options_init_sized(hs_load_options *options, size_t struct_size);

/* Decodes PNG, JPEG or PGM/PPM/PAM, told apart by content, not name; or renders a scene for a name
   "@scene[:WxH[:SEED]]" (see hs_render_scene). *image views memory that hs_image_free releases. 16-bit
   files keep 16 bits. A path "-" is standard input. options may be null. Blocks.
   Statuses: HS_ERR_ARGUMENT, HS_ERR_OPTION, HS_ERR_IO, HS_ERR_FORMAT, HS_ERR_UNSUPPORTED, HS_ERR_LIMIT, HS_ERR_MEMORY. */
HS_API hs_status hs_load_image(const char *path, const hs_load_options *options, hs_image *image);
/* The same from memory. */
HS_API hs_status hs_load_image_memory(const void *bytes, size_t size, const hs_load_options *options, hs_image *image);

/* Frees the memory of an image that the library made (hs_load_image, hs_render_scene) and clears the struct; a view of
   the caller's pixels is only cleared. null is allowed. */
HS_API void hs_image_free(hs_image *image);

/* Renders a picture of natural statistics (dead leaves: opaque discs, radii distributed as r^-3) of
   exactly the same pixels everywhere, as 8-bit gray. homography: null, or 9 numbers, row-major, that map
   points of the plain scene to points of the view rendered. HS_ERR_ARGUMENT, HS_ERR_LIMIT, HS_ERR_MEMORY. */
HS_API hs_status hs_render_scene(int32_t width, int32_t height, uint32_t seed, const double *homography,
                                 const hs_allocator *allocator, hs_image *image);

typedef enum hs_format {
  HS_FORMAT_AUTO = 0,      /* writing: by the name's ending; reading: by ending, then content */
  HS_FORMAT_COLMAP = 1,    /* .txt: COLMAP text for feature_importer */
  HS_FORMAT_NPZ = 2,       /* .npz: NumPy arrays */
  HS_FORMAT_CSV = 3,       /* .csv */
  HS_FORMAT_JSON = 4,      /* .json */
  HS_FORMAT_LOWE = 5,      /* .key: Lowe's ASCII */
  HS_FORMAT_VLFEAT = 6,    /* .sift: VLFeat's text */
  HS_FORMAT_OPENCV = 7,    /* .yml, .yaml: OpenCV FileStorage */
  HS_FORMAT_OPENMVG = 8,   /* .feat, with .desc beside it */
  HS_FORMAT_BIN = 9,       /* .hsf: own binary, with checksum */
  HS_FORMAT_COLMAP_DB = 10, /* .db: one image of COLMAP's database, see hartsift_colmap.h */
  HS_FORMAT_VISUALSFM = 11, /* VisualSFM's binary; its .sift stands for HS_FORMAT_VLFEAT when writing by ending */
  HS_FORMAT_OXFORD = 12    /* .hesaff, .haraff, .oxford: regions of Oxford's detectors */
} hs_format;

typedef struct hs_file_options {
  size_t struct_size;          /* sizeof(hs_file_options), set by hs_file_options_init; fields are only appended */
  hs_format format;            /* HS_FORMAT_AUTO */
  hs_bin_layout layout;        /* writing: the bin order the descriptors are in; reading gets HS_LAYOUT_UBC always */
  const char *image_name;      /* kept where the format has room for it, or null. HS_FORMAT_COLMAP_DB: which image;
                                  reading, the name with or without leading folders, null: the only image */
  uint64_t max_features;       /* reading: refuse files that claim more; 0: 2^27 */
  const hs_allocator *allocator;
  char *message;               /* null, or where the reason of a failure goes (zero-terminated) */
  size_t message_bytes;
} hs_file_options;

/* The defaults above: all 0, so {.struct_size = sizeof(hs_file_options)} is the same. HS_ERR_ARGUMENT: null. */
#define hs_file_options_init(options) hs_file_options_init_sized((options), sizeof(hs_file_options))
HS_API hs_status hs_file_options_init_sized(hs_file_options *options, size_t struct_size);

/* Writes features whole or not at all (temporary name, then rename; HS_FORMAT_OPENMVG's two files one after the other;
   HS_FORMAT_COLMAP_DB: added to the database by one transaction, which also refuses other features of an image that it
   has). path "-": standard output. Descriptors are converted to what the format holds. options may be null.
   Statuses: HS_ERR_ARGUMENT, HS_ERR_OPTION, HS_ERR_IO, HS_ERR_UNSUPPORTED, HS_ERR_MEMORY. */
HS_API hs_status hs_save_features(const char *path, const hs_features *features, const hs_file_options *options);
/* Reads what hs_save_features or the original tool wrote; the file is not trusted. *features as in hs_extract.
   Statuses: HS_ERR_ARGUMENT, HS_ERR_OPTION, HS_ERR_IO, HS_ERR_FORMAT, HS_ERR_UNSUPPORTED (a compressed file or a
   database in a build without zlib or SQLite; descriptors that are not SIFT's), HS_ERR_LIMIT, HS_ERR_MEMORY. */
HS_API hs_status hs_load_features(const char *path, hs_features *features, const hs_file_options *options);
/* The format a file name's ending stands for, HS_FORMAT_AUTO when none. */
HS_API hs_format hs_format_of_name(const char *path);
/* 1: the program that the format is of reads JPEGs as stored, whatever their EXIF orientation, so that features for it
   come from images loaded with ignore_exif 1. 0: no such program, or no such format. */
HS_API int32_t hs_format_ignores_exif(hs_format format);

/* ------------------------------------------------------------------ diagnostics */

/* A name such as "HS_ERR_OPTION"; "HS_ERR_?" for other values. Static. */
HS_API const char *hs_status_name(hs_status status);
/* One sentence. Static. */
HS_API const char *hs_status_string(hs_status status);
HS_API hs_status_class hs_status_class_of(hs_status status);
/* Why the context's last call failed, in words for a user; "" when it did not. Valid until the next call. */
HS_API const char *hs_last_error(const hs_context *context);
/* The status, and the place in the library's source that gave it, as in "HS_ERR_LIMIT at image_view.c:36"; "" when the
   last call did not fail. For reports of faults. Valid until the next call. */
HS_API const char *hs_last_error_location(const hs_context *context);
/* "0.1.0 (method 1)". Static. */
HS_API const char *hs_version_string(void);
/* HS_VERSION_NUMBER and HS_METHOD_VERSION of the library that runs, which may be another one than the header's. */
HS_API int32_t hs_version_number(void);
HS_API int32_t hs_method_version(void);

/* What was chosen for each stage, one "stage: variant" a line. Valid until the context ends. */
HS_API const char *hs_backend_report(const hs_context *context);

typedef struct hs_statistics {
  size_t struct_size;          /* sizeof(hs_statistics), set by hs_statistics_init; fields are only appended */
  uint64_t frames;             /* extracted so far */
  uint64_t regrown_frames;     /* frames repeated because a list overflowed its planned capacity */
  uint64_t candidates, keypoints, features; /* of the last frame */
  uint64_t workspace_bytes;    /* held now, host memory */
  uint64_t device_bytes;       /* held now, device memory */
} hs_statistics;

/* All 0, so {.struct_size = sizeof(hs_statistics)} is the same. HS_ERR_ARGUMENT: null. */
#define hs_statistics_init(statistics) hs_statistics_init_sized((statistics), sizeof(hs_statistics))
HS_API hs_status hs_statistics_init_sized(hs_statistics *statistics, size_t struct_size);
/* Fills what struct_size has room for; what lies beyond this library's fields, in the struct of a later header, is set
   to zero. HS_ERR_ARGUMENT: null, or struct_size not set. */
HS_API hs_status hs_get_statistics(const hs_context *context, hs_statistics *statistics);

#ifdef __cplusplus
}
#endif


#endif
/*
 * hartsift_expert.h - the rules that make up a profile, one by one, and the implementation of each stage. For experiments
 * and measurements: a profile has the rules that belong together. Not included by hartsift.h.
 *
 *     hs_expert_options expert;  hs_expert_options_init(&expert, HS_PROFILE_LOWE);
 *     expert.descriptor_rule = HS_RULE_OPENCV;
 *     options.expert = &expert;
 */
#ifndef HARTSIFT_EXPERT_H
#define HARTSIFT_EXPERT_H


#ifdef __cplusplus
extern "C" {
#endif

/* Where profiles follow different authors in a rule of several parts, one value names the author. */
typedef enum hs_rule { HS_RULE_LOWE = 0, HS_RULE_OPENCV = 1, HS_RULE_VLFEAT = 2 } hs_rule;
typedef enum hs_border_rule { HS_BORDER_REFLECT_101 = 0, HS_BORDER_REPLICATE = 1 } hs_border_rule;

/* Defaults are the lowe profile's; stages/METHOD.md has every rule's formulas and what each profile takes. */
typedef struct hs_expert_options {
  size_t struct_size;          /* sizeof(hs_expert_options), set by hs_expert_options_init; fields are only appended */

  /* Scale space */
  hs_rule octave_rule;         /* how many octaves; HS_RULE_LOWE: while the smaller side has 2*border + 1 samples */
  hs_rule blur_radius_rule;    /* radius of a Gaussian filter; HS_RULE_LOWE: ceil(4 sigma) */
  hs_border_rule border_rule;  /* samples outside a level while filtering; HS_BORDER_REFLECT_101 */

  /* Keypoints */
  hs_rule candidate_rule;      /* first, cheaper threshold on |D|; HS_RULE_LOWE: > 0.5 contrast/S */
  hs_rule refine_rule;         /* how a Newton step moves and when it has settled; HS_RULE_LOWE */

  /* Orientation and descriptor */
  hs_rule orientation_rule;    /* window, votes, smoothing and comparison of the 36-bin histogram; HS_RULE_LOWE */
  hs_rule descriptor_rule;     /* HS_RULE_OPENCV: centred on the rounded position, float scaled by 512; HS_RULE_LOWE */

  /* Implementations: no byte depends on them */
  const char *variant;         /* "stage=name,...": variants of stages, by the names of the device in use (see
                                  hs_backend_report); null: the fastest */
} hs_expert_options;

/* Fills *options with a profile's rules and no variant. Statuses: HS_ERR_ARGUMENT (null, unknown profile). */
#define hs_expert_options_init(options, profile)                                                                       \
  hs_expert_options_init_sized((options), sizeof(hs_expert_options), (profile))
HS_API hs_status hs_expert_options_init_sized(hs_expert_options *options, size_t struct_size, hs_profile profile);

#ifdef __cplusplus
}
#endif
#endif
/*
 * hartsift_match.h - exact matching of descriptors; part of hartsift.h.
 *
 * Every descriptor is compared with every other: no tree, no approximation. The nearest and second nearest, their
 * distances and the pairs kept are the same bytes from every backend.
 *
 * Distances. Euclidean, in the unit of the descriptors' own values: 8-bit ones have a norm of about 512. Squared
 * distances of 8-bit descriptors are integers below 2^23, so a float holds them exactly. For float descriptors the
 * square is fma(t, t, sum) over t = a[k] - b[k], k = 0 to 127 in that order. Of equal distances the lower index is
 * nearer. A distance that is not finite is no candidate.
 */
#ifndef HARTSIFT_MATCH_H
#define HARTSIFT_MATCH_H


#ifdef __cplusplus
extern "C" {
#endif

/* Which pairs of places are candidates at all. */
typedef enum hs_guide {
  HS_GUIDE_NONE = 0,
  HS_GUIDE_HOMOGRAPHY = 1, /* distance of H (x, y, 1) of the first image from the place in the second */
  HS_GUIDE_FUNDAMENTAL = 2 /* Sampson distance to x2^T F x1 = 0 (Hartley and Zisserman, section 11.4.3) */
} hs_guide;

typedef struct hs_match_options {
  size_t struct_size;      /* sizeof(hs_match_options), set by hs_match_options_init; fields are only appended */
  double ratio;            /* keep a pair whose distance is below ratio times that of the second nearest, 0: no such
                              test; 0..1; 0.8 (Lowe, section 7.1). In squares: d1 < (ratio * ratio) * d2, in doubles.
                              A lone candidate passes */
  double max_distance;     /* keep a pair whose distance is at most this, unit of the descriptors, 0: any; 0 */
  int32_t mutual;          /* 1: both features must be each other's match, with all tests passed both ways: exchanging
                              the images then only exchanges the members of the pairs. 0: one way; 0 or 1; 1 */
  hs_guide guide;          /* restricts candidates by their places; HS_GUIDE_NONE */
  double guide_matrix[9];  /* row-major, any scale, from points of the first image to the second; identity */
  double guide_tolerance;  /* pixels of the second image, infinity: no restriction; above 0; 4 */
} hs_match_options;

/* Fills *options with the defaults above. Statuses: HS_ERR_ARGUMENT (null). */
#define hs_match_options_init(options) hs_match_options_init_sized((options), sizeof(hs_match_options))
HS_API hs_status hs_match_options_init_sized(hs_match_options *options, size_t struct_size);

/* One pair. 16 bytes. */
typedef struct hs_match_pair {
  uint32_t first, second;  /* indices into the two lists of features */
  float distance;          /* of their descriptors */
  float next_distance;     /* of first's descriptor to its second nearest candidate; infinity when there is none */
} hs_match_pair;

/* Pairs by ascending first; no feature of the first list is in two of them, nor, if mutual, of the second. Start with
   {0}; the library owns the array until hs_matches_free, or until the next call that fills the same struct. */
typedef struct hs_matches {
  size_t count;
  hs_match_pair *pairs;
  size_t capacity;               /* the library's */
  const hs_allocator *allocator; /* that the array came from; must outlive it. The library's */
  int32_t reserved[8];           /* 0 */
} hs_matches;

/* Frees what the library filled in and clears the struct; null and {0} are allowed. */
HS_API void hs_matches_free(hs_matches *matches);

/* The two nearest of one descriptor. 16 bytes. */
typedef struct hs_nearest {
  uint32_t nearest, second;              /* indices; HS_NO_FEATURE where there are not as many candidates */
  float nearest_squared, second_squared; /* squared distances; infinity there */
} hs_nearest;
#define HS_NO_FEATURE UINT32_MAX

/* Matches two lists of features in host memory, of one descriptor type, each of fewer than 2^32 - 1 entries. context:
   its threads and instruction set do the work, or its GPU; null: the calling thread alone, memory from the C library.
   options: null for the defaults. matches: in and out, see hs_matches; unchanged on failure. Blocks. Only a guide reads
   the keypoints. Once the context has seen the largest lists, nothing is allocated when *matches has room.
   Statuses: HS_ERR_ARGUMENT (null, or descriptors that are missing or of two types), HS_ERR_OPTION, HS_ERR_LIMIT (more
   features, or more than options.max_memory_bytes of workspace), HS_ERR_MEMORY, HS_ERR_DEVICE. */
HS_API hs_status hs_match(hs_context *context, const hs_features *first, const hs_features *second,
                          const hs_match_options *options, hs_matches *matches);

/* The two nearest in `second` of every feature of `first`. nearest: [first->count], host memory of the caller. Of the
   options only the guide counts. Otherwise as hs_match. */
HS_API hs_status hs_find_nearest(hs_context *context, const hs_features *first, const hs_features *second,
                                 const hs_match_options *options, hs_nearest *nearest);

#ifdef __cplusplus
}
#endif
#endif
/*
 * hartsift_geometry.h - verification of matches by homography, fundamental or essential matrix; part of hartsift.h.
 *
 * Finds the geometry that most matches of two images agree with, and which matches those are. Points are pixels of the
 * images as given, the centre of the top-left pixel at (0, 0), as everywhere in this library. A point x = (x, y, 1) of
 * image a and its match x' of image b satisfy
 *
 *     homography    x' ~ H x            one plane, or a camera that only turned
 *     fundamental   x'^T F x = 0        any two views
 *     essential     x'^T Kb^-T E Ka^-1 x = 0   the same with known cameras, K = (fx 0 cx; 0 fy cy; 0 0 1), so that
 *                                       E = [t]x R for X_b = R X_a + t
 *
 * Matrices are nine doubles, row by row. The error of a match is measured in pixels and is the same notion for every
 * model: how far the two points together must move, to first order, to satisfy it exactly (the Sampson distance; for
 * a homography that keeps sizes this is the distance |x' - H x| divided by sqrt 2).
 *
 * One set of points, options and seed gives the same bytes on every machine. All functions are re-entrant, block, run
 * on the calling thread and touch host memory only.
 */
#ifndef HARTSIFT_GEOMETRY_H
#define HARTSIFT_GEOMETRY_H


#ifdef __cplusplus
extern "C" {
#endif

typedef enum hs_geometry_model {
  HS_HOMOGRAPHY = 1,   /* from 4 matches */
  HS_FUNDAMENTAL = 2,  /* from 7 */
  HS_ESSENTIAL = 3     /* from 5; needs both cameras */
} hs_geometry_model;

/* Intrinsic parameters of a pinhole camera, pixels. Lens distortion has to be removed from the points before. These
   four for good: another model of camera gets a struct of its own. */
typedef struct hs_camera {
  double fx, fy;           /* focal lengths; above 0 */
  double cx, cy;           /* principal point; the centre of the top-left pixel is (0, 0) */
} hs_camera;

typedef struct hs_verify_options {
  size_t struct_size;      /* sizeof(hs_verify_options), set by hs_verify_options_init; fields are only appended */
  hs_geometry_model model;
  double tolerance;        /* largest error of an inlier, pixels; above 0; homography 3, others 2 */
  double confidence;       /* the search stops when, if what was found so far is the best there is, a sample without
                              outliers has been drawn with this probability; 0..1, both excluded; 0.9999 */
  int32_t min_iterations;  /* samples drawn at least; 0..max_iterations; 50 */
  int32_t max_iterations;  /* samples drawn at most; 1..10^8; 10000 */
  int32_t min_inliers;     /* a model with fewer is not reported as found; 0 or more; homography 8, others 15. Some of
                              any matches agree by chance: with a fundamental matrix about 10 of 30 wrong ones, 25 of
                              800. So raise it for many matches that passed no ratio test */
  int32_t check_plane;     /* 1: where most of a fundamental matrix' support lies in one plane, which does not determine
                              it, complete it from matches off the plane (Chum, Werner, Matas 2005); 0 or 1; 1 */
  uint64_t seed;           /* of the random samples; 0 */
  hs_camera camera_a, camera_b; /* HS_ESSENTIAL only; all 0 */
  const hs_allocator *allocator; /* for working memory; null: the C library's */
  char *message;           /* null, or where the reason of a failure goes (zero-terminated) */
  size_t message_bytes;
} hs_verify_options;

typedef struct hs_geometry {
  hs_geometry_model model;
  int32_t found;           /* 1: matrix and inliers are valid; 0: no model has min_inliers: matrix all 0, no inliers */
  double matrix[9];        /* H: last element 1 (Frobenius norm 1 should that be 0); F: Frobenius norm 1, the element of
                              largest magnitude positive; E: singular values 1, 1, 0, sign as for F. The last singular
                              value of F and E is 0 up to rounding */
  size_t inlier_count;
  double rms_error;        /* root mean square of the inliers' errors, pixels */
  size_t plane_inliers;    /* F and E: inliers that one homography explains too, within the tolerance, as far as a short
                              search finds; near inlier_count the scene is a plane or the camera only turned, and F is
                              not determined. H: inlier_count */
  int32_t iterations;      /* samples drawn */
  int32_t reserved[9];     /* 0 */
} hs_geometry;

/* The defaults above for a model. HS_ERR_ARGUMENT: null or no such model. */
#define hs_verify_options_init(options, model) hs_verify_options_init_sized((options), sizeof(hs_verify_options), (model))
HS_API hs_status hs_verify_options_init_sized(hs_verify_options *options, size_t struct_size, hs_geometry_model model);

/* Estimates options->model from matches of points. points_a, points_b: count x 2 doubles (x, y), pixels, the caller's;
   the i-th of each are a match. Matches with coordinates that are not finite or beyond 10^6 are never inliers. options
   must not be null. inliers: null, or count bytes of the caller: 1 for an inlier, else 0. *geometry is filled in; that
   nothing was found (too few matches, no agreement, all in one place or on one line) is HS_OK with found 0. Takes a
   millisecond or so where a third of the matches is right, and up to max_iterations x 5 us (essential: 30 us) where
   nothing agrees.
   Statuses: HS_ERR_ARGUMENT (null), HS_ERR_OPTION (struct_size not set, a field out of range, or set beyond those that
   this version knows), HS_ERR_LIMIT (more than 2^26 matches), HS_ERR_MEMORY; then *geometry is all 0 where it is not
   null. */
HS_API hs_status hs_verify_points(const double *points_a, const double *points_b, size_t count,
                                  const hs_verify_options *options, uint8_t *inliers, hs_geometry *geometry);

/* The same for matches of features. pairs: count records of pair_stride_bytes (0: 8), each beginning with two uint32_t:
   the index of the keypoint in a and of that in b; what follows in a record is not looked at (so hs_matches.pairs fits,
   with sizeof(hs_match_pair)). HS_ERR_ARGUMENT also for an index outside its list. */
HS_API hs_status hs_verify(const hs_features *a, const hs_features *b, const void *pairs, size_t pair_stride_bytes,
                           size_t count, const hs_verify_options *options, uint8_t *inliers, hs_geometry *geometry);

/* How the second camera stands to the first: X_b = R X_a + t. */
typedef struct hs_pose {
  double rotation[9];      /* R, row-major, a proper rotation */
  double translation[3];   /* t, unit length: the scale of the scene cannot be known */
  size_t in_front;         /* matches triangulated in front of both cameras, of those used */
  size_t used;             /* matches used: those marked as inliers, or all */
  int32_t reserved[8];     /* 0 */
} hs_pose;

/* Chooses among the four poses that an essential matrix stands for the one with the most matches in front of both
   cameras. essential: 9 doubles as in hs_geometry.matrix of HS_ESSENTIAL; cameras as for its estimation; points as in
   hs_verify_points; inliers: null for all, or count bytes, 0 for those to leave out. Statuses: HS_ERR_ARGUMENT (null, a
   camera or matrix that cannot be one); *pose is all 0 then. No match used: HS_OK, in_front 0, one of the four. */
HS_API hs_status hs_relative_pose(const double *essential, const hs_camera *camera_a, const hs_camera *camera_b,
                                  const double *points_a, const double *points_b, size_t count, const uint8_t *inliers,
                                  hs_pose *pose);

/* Copies the places of matched features to points_a and points_b, each room for count x 2 doubles of the caller, in the
   order of the pairs (as in hs_verify): what hs_relative_pose needs. count 0: HS_OK, nothing else is looked at, so that
   all pointers may be null. Statuses: HS_ERR_ARGUMENT (null, a stride of 1..7 bytes, an index outside). */
HS_API hs_status hs_gather_points(const hs_features *a, const hs_features *b, const void *pairs,
                                  size_t pair_stride_bytes, size_t count, double *points_a, double *points_b);

#ifdef __cplusplus
}
#endif
#endif
/*
 * hartsift_colmap.h - COLMAP's database.db: features, matches and verified geometry for its mapper; part of hartsift.h.
 *
 *     hs_colmap_database *db;  hs_status st = hs_colmap_open(&db, "database.db", NULL);
 *     st = hs_colmap_add_image(db, "a.jpg", NULL, &features_a, &a);        the same for b
 *     st = hs_colmap_add_matches(db, a, b, &matches);
 *     st = hs_colmap_commit(db);  hs_colmap_close(db);
 *
 * A database that is not there is made with the tables of COLMAP 3.8, which later versions take over; one that is there
 * keeps its tables, whichever version of COLMAP made them, and everything in it that is not named below. A file that is
 * no such database, or has columns that this library cannot fill, is refused and stays as it is. Everything between
 * opening and hs_colmap_commit is one transaction: hs_colmap_close without a commit leaves no trace. A call that fails
 * leaves the transaction as it was before the call.
 *
 * Keypoints become six float32 as COLMAP's own: x and y with the centre of the top-left pixel at (0.5, 0.5), then the
 * affine shape a11 = s cos t, a12 = -s sin t, a21 = s sin t, a22 = s cos t of scale s and orientation t, in the sense
 * of hs_keypoint (COLMAP's CPU extractor has the same; its GPU extractor stores -t). Descriptors become bytes in UBC
 * order.
 *
 * COLMAP reads JPEGs as stored, whatever their EXIF orientation: features for it come from images loaded with
 * hs_load_options.ignore_exif 1.
 *
 * A handle is used by one thread at a time. A transaction begins with opening and, after a commit, with the next call
 * that adds. While it lasts others cannot write to the database; they can read it, unless the file is not in SQLite's
 * WAL mode and the transaction has outgrown memory. While a read_only handle is open others can read, and in WAL mode
 * write. In a build without SQLite every function that returns a status gives HS_ERR_UNSUPPORTED.
 */
#ifndef HARTSIFT_COLMAP_H
#define HARTSIFT_COLMAP_H


#ifdef __cplusplus
extern "C" {
#endif

typedef struct hs_colmap_database hs_colmap_database;

typedef struct hs_colmap_options {
  size_t struct_size;    /* sizeof(hs_colmap_options), set by hs_colmap_options_init; fields are only appended */
  int32_t read_only;     /* 1: the file must be there and is only read; 0 or 1; 0 */
  int32_t replace;       /* features or matches that are there already and differ from those added: 0: HS_ERR_ARGUMENT,
                              1: replaced, with new features also all matches of the image dropped; 0 or 1; 0 */
  int32_t share_cameras; /* a new image gets 1: the first camera of the same model, size and parameters, 0: its own;
                              0 or 1; 0 */
  int32_t wait_ms;       /* how long to wait while another program writes to the database, milliseconds, 0: 10000;
                              0..2^31 - 1; 0 */
  hs_bin_layout layout;  /* the bin order that descriptors given are in; HS_LAYOUT_UBC */
  uint64_t max_features; /* reading: refuse images that claim more; 0: 2^27 */
  const hs_allocator
      *allocator; /* for the handle and what is read; must outlive both. SQLite's own memory is not its */
  char *message;  /* null, or where the reason goes when hs_colmap_open fails (zero-terminated) */
  size_t message_bytes;
} hs_colmap_options;

/* The defaults above: all 0, so {.struct_size = sizeof(hs_colmap_options)} is the same. HS_ERR_ARGUMENT: null. */
#define hs_colmap_options_init(options) hs_colmap_options_init_sized((options), sizeof(hs_colmap_options))
HS_API hs_status hs_colmap_options_init_sized(hs_colmap_options *options, size_t struct_size);

/* Opens a database, making it if it is not there (it appears at the first commit). options may be null. On failure
   *database is null. Blocks while another program writes to it.
   Statuses: HS_ERR_ARGUMENT (null), HS_ERR_OPTION (struct_size not set, a field out of range, or set beyond those that
   this version knows), HS_ERR_IO (cannot be opened, not there and read_only, locked), HS_ERR_FORMAT (no SQLite database, or damaged), HS_ERR_UNSUPPORTED (not
   COLMAP's, or of tables that this library does not know), HS_ERR_MEMORY. */
HS_API hs_status hs_colmap_open(hs_colmap_database **database, const char *path, const hs_colmap_options *options);

/* Makes everything added since opening, or since the last commit, permanent. After a
   failure nothing more can be added. Statuses: HS_ERR_ARGUMENT (null, read_only), HS_ERR_IO. */
HS_API hs_status hs_colmap_commit(hs_colmap_database *database);

/* Closes; what was not committed is dropped, and with it a file that did not exist before. null is allowed. */
HS_API void hs_colmap_close(hs_colmap_database *database);

/* Why the last failing call on this handle failed, with the name of the file; "" when none did. Valid until the next
   call. */
HS_API const char *hs_colmap_last_error(const hs_colmap_database *database);

/* ---- images and their features */

enum { HS_COLMAP_PARAMETERS = 16 };

/* A camera as COLMAP has it. Lengths in pixels; the corner of the top-left pixel is (0, 0). */
typedef struct hs_colmap_camera {
  int32_t model;         /* COLMAP's number: 0 SIMPLE_PINHOLE f cx cy; 1 PINHOLE fx fy cx cy; 2 SIMPLE_RADIAL f cx cy k;
                              3 RADIAL f cx cy k1 k2; 4 OPENCV fx fy cx cy k1 k2 p1 p2; and so on */
  int32_t width, height; /* 1 or more */
  int32_t prior_focal_length; /* 1: the focal length is known (calibration, EXIF); 0: a guess */
  int32_t parameter_count;    /* as the model has; 1..16 */
  int32_t reserved[3];        /* 0 */
  double parameters[HS_COLMAP_PARAMETERS];
} hs_colmap_camera;

/* What COLMAP takes for an image that it knows nothing else about: SIMPLE_RADIAL, principal point in the middle, no
   distortion. focal_length: pixels, then prior_focal_length is 1; 0: unknown, 1.2 times the larger side, 0.
   Statuses: HS_ERR_ARGUMENT. */
HS_API hs_status hs_colmap_camera_init(hs_colmap_camera *camera, int32_t width, int32_t height, double focal_length);

typedef struct hs_colmap_image {
  int32_t found;     /* 1: the rest is valid; 0: no such image, the rest is 0 */
  uint32_t image_id; /* 0..2^31 - 2 */
  uint32_t camera_id;
  int32_t reserved[9]; /* 0 */
  const char *name; /* the database's; valid until the next call on the handle */
  int64_t features; /* keypoints; -1: none were ever written */
  hs_colmap_camera camera;
} hs_colmap_image;

/* Adds an image with its features. name: as COLMAP's, the path below the folder of images with '/' between folders;
   UTF-8. camera: null for hs_colmap_camera_init with the features' image size, which then must be known. features with
   HS_DESCRIPTOR_NONE get keypoints alone. image_id: null, or gets its number. In a database that has rigs and frames
   the image gets a frame of its own and its camera a rig of its own.
   An image of that name keeps its number, camera (camera is not looked at) and frame. Its features must be absent or the
   same bytes, or options.replace be 1: HS_ERR_ARGUMENT otherwise, also when its camera is of another size.
   Statuses: HS_ERR_ARGUMENT, HS_ERR_LIMIT (too many features for SQLite, about 7.8 million), HS_ERR_MEMORY, HS_ERR_IO. */
HS_API hs_status hs_colmap_add_image(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                                     const hs_features *features, uint32_t *image_id);

/* Looks an image up by name. Not there: HS_OK with found 0. Statuses: HS_ERR_ARGUMENT, HS_ERR_FORMAT, HS_ERR_IO. */
HS_API hs_status hs_colmap_find_image(hs_colmap_database *database, const char *name, hs_colmap_image *image);

/* The image with the smallest number above `after` (-1: the first one). The last one is followed by found 0. */
HS_API hs_status hs_colmap_next_image(hs_colmap_database *database, int64_t after, hs_colmap_image *image);

/* Reads an image's features (in and out, as hs_extract). The database is not trusted. Coordinates come back to within
   the rounding of x + 0.5, scale and orientation to within that of the affine shape; octave, level and response are 0;
   of keypoints with x and y alone sigma is 1 and orientation 0. No features at all: count 0.
   Statuses: HS_ERR_ARGUMENT (null, no such image), HS_ERR_FORMAT, HS_ERR_UNSUPPORTED (descriptors other than SIFT),
   HS_ERR_LIMIT, HS_ERR_MEMORY, HS_ERR_IO. */
HS_API hs_status hs_colmap_read_features(hs_colmap_database *database, uint32_t image_id, hs_features *features);

/* ---- pairs of images */

struct hs_geometry; /* hartsift_geometry.h */

/* The matches of two images a and b, and what was verified of them. */
typedef struct hs_colmap_matches {
  const void *pairs; /* count records of pair_stride_bytes (0: 8), each beginning with two uint32_t: the index of the
                              feature in a and in b (hs_match_pair is such a record); may be null when count is 0 */
  size_t pair_stride_bytes;
  size_t count;
  const uint8_t *inliers; /* count bytes: 1 for matches that agree with the geometry; null: all, where one was found */
  /* What hs_verify found, each may be null; all null: not verified, which leaves it to COLMAP. found 0 counts too: the
     pair is recorded as verified without success. */
  const struct hs_geometry *fundamental, *essential, *homography;
  int32_t reserved[8]; /* 0 */
} hs_colmap_matches;

/* Adds the matches of two images that are in the database with their features, and, if verified, the geometry that the
   mapper works from: configuration CALIBRATED (essential matrix), UNCALIBRATED (fundamental), PLANAR_OR_PANORAMIC (a
   homography alone, or one with more than 0.8 of the other's inliers), DEGENERATE (none found), and the matrices, in
   COLMAP's coordinates. A pair that has the same matches already is left, and gets the geometry if it has none; other
   matches, inliers or configuration: see options.replace (matrices are not compared).
   Statuses: HS_ERR_ARGUMENT (also an unknown image, an index outside its features), HS_ERR_MEMORY, HS_ERR_IO. */
HS_API hs_status hs_colmap_add_matches(hs_colmap_database *database, uint32_t image_a, uint32_t image_b,
                                       const hs_colmap_matches *matches);

/* How many matches and verified matches a pair has, -1 each where it has no entry; either pointer may be null. */
HS_API hs_status hs_colmap_count_matches(hs_colmap_database *database, uint32_t image_a, uint32_t image_b,
                                         int64_t *matches, int64_t *verified);

#ifdef __cplusplus
}
#endif
#endif
/*
 * hartsift_primitives.h - reductions, tile statistics, histograms and 1-D convolution; part of hartsift.h.
 *
 * The results are the same bytes from every instruction set, any number of threads, and from the functions of the same
 * name for CUDA devices (hartsift_cuda.h). stages/primitives.h has the arithmetic that fixes them.
 *
 * context: whose threads work and whose hs_last_error says what went wrong; null: the calling thread works alone. The
 * work is done by the CPU, also in a context on a GPU, and blocks. All pointers are host memory, read or written during
 * the call only. Nothing is allocated, but for the CPU's threads of a context on a GPU, which the first call that wants
 * them starts (HS_ERR_MEMORY, HS_ERR_THREAD). No failure harms the context; it leaves the outputs as they were, unless
 * said otherwise.
 */
#ifndef HARTSIFT_PRIMITIVES_H
#define HARTSIFT_PRIMITIVES_H


#ifdef __cplusplus
extern "C" {
#endif

/* Types of elements; the first three as hs_sample_type. Values are taken as they are, not scaled. */
typedef enum hs_element { HS_ELEMENT_U8 = 0, HS_ELEMENT_U16 = 1, HS_ELEMENT_F32 = 2, HS_ELEMENT_F64 = 3 } hs_element;

/* A view of elements, in rows; these five fields for good. The elements of an array in their order: row by row, each from the left. */
typedef struct hs_array {
  const void *data;     /* first element; aligned for its type */
  size_t width, height; /* elements in a row, rows: 1 or more each, 2^40 elements in all; 1-D: height 1 */
  size_t stride_bytes;  /* from row to row, at least width * element size and a multiple of it; 0: exactly that */
  hs_element type;
} hs_array;

/* ------------------------------------------------------------------ reductions

   Statuses of all: HS_ERR_ARGUMENT (a null pointer, a wrong size, stride, type or alignment), HS_ERR_LIMIT (more than
   2^40 elements, or beyond the address space). Results are doubles, which hold the sum of any u8 and of up to 2^37 u16
   elements exactly. */

/* The sum. u8, u16: exact in 64 bits, rounded to double once. f32, f64: by a fixed tree in double, with an error of at
   most 36 L 2^-53 sum|x|, where L is 1 for up to 1024 elements, 2 for up to 2^20, 3 for up to 2^30, 4 beyond. NaN where
   an element is NaN or both infinities occur. */
HS_API hs_status hs_reduce_sum(hs_context *context, const hs_array *array, double *sum);
/* The sum / the number of elements. */
HS_API hs_status hs_reduce_mean(hs_context *context, const hs_array *array, double *mean);
/* The smallest and the largest element. NaN elements are passed over; NaN when there are no others. A zero is +0. */
HS_API hs_status hs_reduce_min(hs_context *context, const hs_array *array, double *minimum);
HS_API hs_status hs_reduce_max(hs_context *context, const hs_array *array, double *maximum);
/* Both in one pass. */
HS_API hs_status hs_reduce_range(hs_context *context, const hs_array *array, double *minimum, double *maximum);

/* ------------------------------------------------------------------ tiles */

/* How an array is cut into tiles: from its first element on, the last column and row as narrow and low as what is left.
   ceil(array.width / width) tiles a row of tiles, ceil(array.height / height) rows; tiles row by row. */
typedef struct hs_tiling {
  size_t width, height; /* of a tile, elements; 1 or more, may exceed the array's */
  double threshold;     /* elements above it are counted; NaN: none is */
} hs_tiling;

/* One tile: what the reductions give for it, and how many elements are > threshold. 40 bytes. */
typedef struct hs_tile {
  double sum, mean, min, max;
  uint64_t above;
} hs_tile;

/* The figures of every tile. tiles[capacity]: written; may be null with capacity 0, to ask for *count, the number of
   tiles. HS_ERR_CAPACITY: more tiles than capacity; the first `capacity` were written and *count is the full number.
   Statuses: as the reductions, HS_ERR_CAPACITY. */
HS_API hs_status hs_tile_stats(hs_context *context, const hs_array *array, const hs_tiling *tiling, hs_tile *tiles,
                               size_t capacity, size_t *count);

/* ------------------------------------------------------------------ histogram (8-bit) */

/* counts[256] gets how many elements of array (HS_ELEMENT_U8) have each value. mask: null, or HS_ELEMENT_U8 of the same
   width and height; elements where it is 0 are left out. Statuses: as the reductions. */
HS_API hs_status hs_histogram256(hs_context *context, const hs_array *array, const hs_array *mask,
                                 uint64_t counts[256]);

/* Spreads the levels of an 8-bit picture by its own histogram, with the bytes of OpenCV's equalizeHist. out: the
   picture's size, out_stride_bytes from row to row (0: width); the picture itself (same data and stride) or memory
   apart from it.
   Statuses: as the reductions. */
HS_API hs_status hs_equalize(hs_context *context, const hs_array *picture, uint8_t *out, size_t out_stride_bytes);

/* ------------------------------------------------------------------ convolution */

/* What a signal is continued with beyond its ends. */
typedef enum hs_ends {
  HS_ENDS_ZERO = 0,
  HS_ENDS_REPLICATE = 1,  /* the outermost sample */
  HS_ENDS_REFLECT_101 = 2 /* mirrored at the outermost sample, which is not repeated: x[-1] = x[1], x[-2] = x[2], ...;
                              back and forth where the signal is short; a single sample is repeated */
} hs_ends;

/* Convolves each row of signal (HS_ELEMENT_F32 or F64) with taps: out[i] = sum over j of taps[j] x[i + r - j], where
   tap_count = 2 r + 1 is odd, 1..2^24 - 1, and may exceed the row. Taps are rounded to the signal's type. out: the
   signal's type and size, out_stride_bytes from row to row (0: exactly a row), apart from the signal. The error is at
   most 4 2^-53 sum|taps[j] x| for F64, 4 2^-24 sum|taps[j] x| for F32, ends included, where nothing under- or
   overflows. Statuses: as the reductions. */
HS_API hs_status hs_convolve1d(hs_context *context, const hs_array *signal, const double *taps, size_t tap_count,
                               hs_ends ends, void *out, size_t out_stride_bytes);

#ifdef __cplusplus
}
#endif
#endif
