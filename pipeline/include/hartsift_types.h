/*
 * hartsift_types.h - base of all headers: statuses, images, memory, features; part of hartsift.h.
 */
#ifndef HARTSIFT_TYPES_H
#define HARTSIFT_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Marks every public function. */
#if defined(_WIN32)
#  define HS_API
#elif defined(__GNUC__)
#  define HS_API __attribute__((visibility("default")))
#else
#  define HS_API
#endif

/* Marks a function or a type that a later version will drop; `instead` names its replacement. */
#if defined(__GNUC__)
#  define HS_DEPRECATED(instead) __attribute__((deprecated(instead)))
#elif defined(_MSC_VER)
#  define HS_DEPRECATED(instead) __declspec(deprecated(instead))
#else
#  define HS_DEPRECATED(instead)
#endif

/* ------------------------------------------------------------------ statuses */

/* Outcome of a call. Its class (hs_status_class) says whether the context is usable afterwards: 1 to 31 are of the
   argument class, 32 to 63 of the resource class, from 64 on of the device class. */
typedef enum hs_status {
  HS_OK = 0, /* done */
  /* Argument class: the context stays usable, and nothing was done (except for HS_ERR_CAPACITY and
     HS_ERR_CANCELLED). */
  HS_ERR_ARGUMENT = 1, /* a pointer is null or a plain argument is out of its range */
  HS_ERR_OPTION = 2,   /* a field of a struct of options is out of range; the message names it */
  HS_ERR_IMAGE = 3,    /* an image view is inconsistent (size, stride, type, layout) */
  HS_ERR_KEYPOINT = 4, /* a keypoint cannot be described: it is outside the picture, has no size, or a value is not a
                          number */
  /* the caller's arrays are too small: they are filled, and the returned count is the full number; hs_submit:
     options.in_flight images are in flight */
  HS_ERR_CAPACITY = 5,
  /* the image exceeds max_pixels, or a side of its first octave exceeds 2^22 samples (2^21 pixels if the octave is
     doubled), or the work exceeds max_memory_bytes */
  HS_ERR_LIMIT = 6,
  HS_ERR_FORMAT = 7,      /* the content of a file is damaged or of an unknown kind */
  HS_ERR_UNSUPPORTED = 8, /* the input is valid, but this build or this format cannot handle it */
  HS_ERR_CANCELLED = 9,   /* the progress function ended the call; outputs are as after any failure */
  /* Resource class: the context is usable again when the resource is available. */
  HS_ERR_MEMORY = 32,    /* an allocation failed */
  HS_ERR_IO = 33,        /* a file cannot be opened, read, written or renamed */
  HS_ERR_THREAD = 34,    /* a worker thread cannot be started */
  HS_ERR_NO_DEVICE = 35, /* the requested device is not usable; hs_last_error says why */
  /* Device class: destroy the context. */
  HS_ERR_DEVICE = 64,  /* the device reported an error */
  HS_ERR_INTERNAL = 65 /* a broken invariant: please report it */
} hs_status;

/* Class of a status, which is the state of the context. */
typedef enum hs_status_class {
  HS_CLASS_OK = 0,       /* context usable */
  HS_CLASS_ARGUMENT = 1, /* context usable */
  HS_CLASS_RESOURCE = 2, /* context usable after the resource is freed */
  HS_CLASS_DEVICE = 3    /* context must be destroyed */
} hs_status_class;

/* ------------------------------------------------------------------ images */

/* Type of an image's samples, and the sample values of black and white. */
typedef enum hs_sample_type {
  HS_U8 = 0,  /* 0..255, scaled by 1/255 */
  HS_U16 = 1, /* 0..65535, native byte order, scaled by 1/65535 */
  HS_F32 = 2  /* hs_image.range_low..range_high; values outside are clamped, NaN counts as range_low */
} hs_sample_type;

/* Interleaved channels. Colour becomes gray as (9798 R + 19235 G + 3735 B + 16384) >> 15 for
   integers (same weights for floats); alpha is dropped. */
typedef enum hs_pixel_layout {
  HS_GRAY = 0,       /* one channel */
  HS_GRAY_ALPHA = 1, /* two channels, gray first */
  HS_RGB = 2,        /* three, red first */
  HS_BGR = 3,        /* three, blue first, as OpenCV has them */
  HS_RGBA = 4,       /* four, red first */
  HS_BGRA = 5        /* four, blue first */
} hs_pixel_layout;

/* defined below */
typedef struct hs_allocator hs_allocator;

/* A view of pixels, which the library reads only during the call. Start with {0}, so that fields that are not set are
   0. */
typedef struct hs_image {
  const void *data;       /* first row; aligned for the sample type */
  int32_t width, height;  /* pixels, 1 or more */
  size_t stride_bytes;    /* bytes from row to row, at least width * channels * sample size; 0: rows without gaps */
  hs_sample_type type;    /* type of the samples of every channel */
  hs_pixel_layout layout; /* number and order of the channels */
  float range_low, range_high;   /* HS_F32 only: values of black and white; 0, 0 means 0..1 */
  void *memory;                  /* memory that hs_image_free releases; null for a view of the caller's memory */
  const hs_allocator *allocator; /* allocator of memory; null: the C library's */
  int32_t exif_orientation;      /* set by loading: EXIF orientation that was applied, 2..8; 0: none, the picture is as
                                    stored */
  /* set by loading: size before max_image_size reduced the picture; 0: not reduced. Used only by
     hs_features_to_original */
  int32_t original_width, original_height;
  int32_t reserved[5]; /* 0 */
} hs_image;

/* ------------------------------------------------------------------ memory */

/* Memory functions of the caller. alloc returns memory aligned to 64 bytes, or null on failure; release accepts null. A
   context calls them on one thread at a time; with hs_submit several threads call them. */
struct hs_allocator {
  void *(*alloc)(size_t bytes, void *user);   /* allocates memory; null: out of memory */
  void (*release)(void *pointer, void *user); /* frees memory */
  void *user;                                 /* pointer of the caller, passed to both functions */
};

/* ------------------------------------------------------------------ results */

/* Position, scale and orientation of a feature, and the octave and level in which it was found. Always 24 bytes:
   further properties are separate arrays of hs_features. */
typedef struct hs_keypoint {
  float x, y;        /* pixels of the original image */
  float sigma;       /* scale, original pixels */
  float orientation; /* radians in [0, 2 pi), y down */
  float response;    /* |D| at the refined extremum, image scaled to [0, 1] */
  int16_t octave;    /* octave; neighbouring samples are 2^octave original pixels apart */
  int16_t level;     /* Gaussian level 1..S. As input 0: octave and level are derived from sigma */
} hs_keypoint;

/* Affine frame of a keypoint: the point (u, v), in units of its scale, is at (x + a11 u + a12 v, y + a21 u + a22 v)
   in the image, pixels, y down. A circular keypoint has a11 = a22 = sigma cos(orientation), a21 = -a12 = sigma
   sin(orientation); these are COLMAP's four columns after x and y. Always 16 bytes. */
typedef struct hs_frame {
  float a11, a12, a21, a22; /* pixels */
} hs_frame;

/* Type of descriptors. */
typedef enum hs_descriptor_type {
  HS_DESCRIPTOR_U8 = 0,  /* min(255, floor(512 v + 0.5)) */
  HS_DESCRIPTOR_F32 = 1, /* unit norm; profile opencv: integer values 0..255 */
  HS_DESCRIPTOR_NONE = 2 /* keypoints with orientations only */
} hs_descriptor_type;

/* Number of entries of a descriptor. */
enum { HS_DESCRIPTOR_LENGTH = 128 /* 4 x 4 cells of 8 bins */ };

/* Presets: each has the parameters and rules of one implementation; METHOD.md, section 4, compares them. */
typedef enum hs_profile {
  HS_PROFILE_LOWE = 0,   /* the paper; where it leaves a choice, measurements decided */
  HS_PROFILE_OPENCV = 1, /* cv::SIFT of OpenCV 4.x */
  HS_PROFILE_VLFEAT = 2, /* the vl_sift program of VLFeat 0.9.21 */
  HS_PROFILE_COLMAP = 3  /* COLMAP's CPU extractor: VLFeat with RootSIFT, 8192 features */
} hs_profile;

/* Normalisation of descriptors. */
typedef enum hs_norm {
  HS_NORM_L2 = 0,  /* divided by their length (Lowe) */
  HS_NORM_ROOT = 1 /* square roots of the L1-normalised values: RootSIFT (Arandjelovic, Zisserman, CVPR 2012) */
} hs_norm;
/* Order of the orientation bins in a cell. */
typedef enum hs_bin_layout {
  HS_LAYOUT_UBC = 0,   /* 0 1 2 3 4 5 6 7: Lowe's, OpenCV's, COLMAP's */
  HS_LAYOUT_VLFEAT = 1 /* 0 7 6 5 4 3 2 1 */
} hs_bin_layout;

/* Provenance of descriptors. hs_match refuses two lists whose norm, pooling or layout differ, and float descriptors of
   the opencv profile together with float descriptors of another. Method versions and other profiles may be mixed. */
typedef struct hs_origin {
  /* HS_METHOD_VERSION, or HS_METHOD_VERSION_AFFINE, of the library that made the descriptors; 0: unknown, also the next
     three fields */
  int32_t method_version;
  hs_profile profile;   /* profile used for the descriptors */
  hs_norm norm;         /* norm of the descriptors */
  hs_bin_layout layout; /* bin order of the descriptors */
  /* EXIF orientation applied to the picture before extraction, 2..8; 0: none, or unknown. Formats whose programs read
     the picture as stored refuse features with 2..8: set it to 0 if the program gets rotated copies of the pictures */
  int32_t exif_orientation;
  int32_t dsp;         /* 1: descriptors are pooled over domain sizes */
  int32_t reserved[2]; /* 0 */
} hs_origin;

/* A list of features in the defined order: octave, level, row, column of the settled sample, orientation. Start with
   {0}. The library fills it and owns the arrays until hs_features_free, or until the next call that fills the same
   struct (it reuses or replaces their memory). */
typedef struct hs_features {
  size_t count;                       /* number of features */
  hs_keypoint *keypoints;             /* count entries */
  void *descriptors;                  /* count x 128 uint8_t or float, row-major; null for HS_DESCRIPTOR_NONE */
  hs_descriptor_type descriptor_type; /* type of descriptors */
  int32_t image_width, image_height;  /* size of the image that the features are from; 0 if unknown */
  hs_origin origin; /* provenance; set by extraction, hs_describe and reading of files that store it (FORMATS.md) */
  size_t capacity;  /* number of entries that keypoints and descriptors can hold; set by the library */
  size_t descriptor_capacity_bytes; /* bytes that descriptors can hold; set by the library */
  const hs_allocator *allocator;    /* allocator of the arrays; must outlive them. Set by the library */
  /* count entries if the affine shape is known (options.affine; FORMATS.md), else null. In extracted features the short
     axis is sigma, and the first column has the direction of the orientation. Owned as the other arrays */
  hs_frame *frames;
  size_t frame_capacity; /* number of entries that frames can hold; set by the library */
  int32_t reserved[16 - 2 * sizeof(void *) / sizeof(int32_t)]; /* 0 */
} hs_features;

/* Two images of a collection, by their numbers from 0. Always 8 bytes. */
typedef struct hs_image_pair {
  uint32_t first, second; /* two different numbers */
} hs_image_pair;

/* A context: options, chosen backend and working memory. Made by hs_create. */
typedef struct hs_context hs_context;

#endif
