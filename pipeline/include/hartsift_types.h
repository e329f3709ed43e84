/*
 * hartsift_types.h - what every header of hartsift is built on: statuses, images, memory, features; part of hartsift.h.
 */
#ifndef HARTSIFT_TYPES_H
#define HARTSIFT_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Stands before every function of the library. */
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

/* What a call came to. Its class (hs_status_class) says what the context is good for afterwards: 1 to 31 are of the argument
   class, 32 to 63 of the resource class, from 64 on of the device class. */
typedef enum hs_status {
  HS_OK = 0, /* done */
  /* Argument class: nothing was done (HS_ERR_CAPACITY and HS_ERR_CANCELLED apart), the context stays usable. */
  HS_ERR_ARGUMENT = 1,    /* a pointer is null or a plain argument is out of its range */
  HS_ERR_OPTION = 2,      /* a field of a struct of options is out of range; the message names it */
  HS_ERR_IMAGE = 3,       /* an image view is inconsistent (size, stride, type, layout) */
  HS_ERR_KEYPOINT = 4,    /* a keypoint cannot be described: outside the picture, without a size, or not a number */
  HS_ERR_CAPACITY = 5,    /* the caller's arrays are too small: they were filled and the full count given;
                              hs_submit: as many images are in flight as may be */
  HS_ERR_LIMIT = 6,       /* the image exceeds max_pixels or 2^22 samples a side in its first octave (2^21 pixels
                              where that is doubled), or the work max_memory_bytes */
  HS_ERR_FORMAT = 7,      /* the content of a file is damaged or of no known kind */
  HS_ERR_UNSUPPORTED = 8, /* valid, but outside what this build or this format can do */
  HS_ERR_CANCELLED = 9,   /* the caller's hs_progress_function asked for it; results are as after a failure */
  /* Resource class: usable again once the resource is there. */
  HS_ERR_MEMORY = 32,    /* an allocation failed */
  HS_ERR_IO = 33,        /* a file cannot be opened, read, written or renamed */
  HS_ERR_THREAD = 34,    /* a worker thread cannot be started */
  HS_ERR_NO_DEVICE = 35, /* the device asked for is not usable; hs_last_error says why */
  /* Device class: destroy the context. */
  HS_ERR_DEVICE = 64,  /* the device reported an error */
  HS_ERR_INTERNAL = 65 /* a broken invariant: please report it */
} hs_status;

/* What a status means for the context. */
typedef enum hs_status_class {
  HS_CLASS_OK = 0,       /* context usable */
  HS_CLASS_ARGUMENT = 1, /* context usable */
  HS_CLASS_RESOURCE = 2, /* context usable after the resource is freed */
  HS_CLASS_DEVICE = 3    /* context must be destroyed */
} hs_status_class;

/* ------------------------------------------------------------------ images */

/* The type of an image's samples, and which values are black and white. */
typedef enum hs_sample_type {
  HS_U8 = 0,  /* 0..255, scaled by 1/255 */
  HS_U16 = 1, /* 0..65535, native byte order, scaled by 1/65535 */
  HS_F32 = 2  /* hs_image.range_low..range_high; outside is clamped, NaN counts as the low end */
} hs_sample_type;

/* Interleaved channels. Colour becomes gray as (9798 R + 19235 G + 3735 B + 16384) >> 15 for
   integers (same weights for floats); alpha is dropped. */
typedef enum hs_pixel_layout {
  HS_GRAY = 0,       /* one channel */
  HS_GRAY_ALPHA = 1, /* two */
  HS_RGB = 2,        /* three, red first */
  HS_BGR = 3,        /* three, blue first, as OpenCV has them */
  HS_RGBA = 4,       /* four, red first */
  HS_BGRA = 5,       /* four, blue first */
  HS_JPEG = 6 /* no pixels yet: data is a JPEG file of stride_bytes bytes, kept so by hs_load_options.keep_encoded.
                        hs_extract, hs_detect, hs_describe, hs_submit and their kin take it, and decode it on the
                        context's device where hs_decodes_jpeg says 1, else by libjpeg, to the same pixels */
} hs_pixel_layout;

/* See struct hs_allocator below. */
typedef struct hs_allocator hs_allocator;

/* A view of pixels; the library reads them during the call only. Start with {0}, so that what is not set is 0. */
typedef struct hs_image {
  const void *data;              /* first row; aligned for the sample type */
  int32_t width, height;         /* pixels, 1 or more */
  size_t stride_bytes;           /* from row to row, at least width * channels * sample size; 0: exactly that */
  hs_sample_type type;           /* of every channel */
  hs_pixel_layout layout;        /* which channels, in which order */
  float range_low, range_high;   /* HS_F32 only: values of black and white; 0, 0 means 0..1 */
  void *memory;                  /* what hs_image_free releases; null for a view of memory that stays the caller's */
  const hs_allocator *allocator; /* that memory came from and goes back to; null: the C library's */
  int32_t exif_orientation;      /* set by loading: that the picture was turned by, 2..8; 0: it is as stored */
  /* set by loading: the size before max_image_size made the picture smaller; 0: it is as large as it was. Extraction does
     not look at them: hs_features_to_original does */
  int32_t original_width, original_height;
  /* set by loading with keep_encoded and hs_load_options.strict or notes. 1: the call that decodes this HS_JPEG refuses it
     with HS_ERR_FORMAT if libjpeg reports damage; loading the file without keep_encoded gives the report */
  int32_t refuse_damage;
  int32_t reserved[4]; /* 0 */
} hs_image;

/* ------------------------------------------------------------------ memory */

/* Memory functions of the caller. alloc returns null when it fails, memory aligned to 64 bytes
   otherwise; release takes null. Both are called from one thread at a time per context, with hs_submit from several. */
struct hs_allocator {
  void *(*alloc)(size_t bytes, void *user);   /* new memory; null: there is none */
  void (*release)(void *pointer, void *user); /* takes it back */
  void *user;                                 /* the caller's, handed to both */
};

/* ------------------------------------------------------------------ results */

/* A feature's place and scale, and where in the pyramid it was found. 24 bytes, for good: what more there is to say of
   each keypoint goes into arrays of its own in hs_features. */
typedef struct hs_keypoint {
  float x, y;        /* pixels of the original image */
  float sigma;       /* scale, original pixels */
  float orientation; /* radians in [0, 2 pi), y down */
  float response;    /* |D| at the refined extremum, image scaled to [0, 1] */
  int16_t octave;    /* sampling distance 2^octave original pixels */
  int16_t level;     /* Gaussian level 1..S; as an input, 0: octave and level follow from sigma */
} hs_keypoint;

/* The frame of a keypoint: (u, v), in parts of its scale, lies at x + a11 u + a12 v, y + a21 u + a22 v of the image, pixels,
   y down. Of a circular keypoint a11 = a22 = sigma cos(orientation), a21 = -a12 = sigma sin(orientation); these are COLMAP's
   four columns behind x and y. 16 bytes, for good. */
typedef struct hs_frame {
  float a11, a12, a21, a22; /* pixels */
} hs_frame;

/* What descriptors are made of. */
typedef enum hs_descriptor_type {
  HS_DESCRIPTOR_U8 = 0,  /* min(255, floor(512 v + 0.5)) */
  HS_DESCRIPTOR_F32 = 1, /* unit norm; profile opencv: integer values 0..255 */
  HS_DESCRIPTOR_NONE = 2 /* keypoints with orientations only */
} hs_descriptor_type;

/* Entries of a descriptor. */
enum { HS_DESCRIPTOR_LENGTH = 128 /* 4 x 4 cells of 8 bins */ };

/* Whose parameters and rules are followed; METHOD.md, section 4, has them side by side. */
typedef enum hs_profile {
  HS_PROFILE_LOWE = 0,   /* the paper, with what it leaves open chosen by measurement */
  HS_PROFILE_OPENCV = 1, /* cv::SIFT of OpenCV 4.x */
  HS_PROFILE_VLFEAT = 2, /* the vl_sift program of VLFeat 0.9.21 */
  HS_PROFILE_COLMAP = 3  /* COLMAP's CPU extractor: VLFeat with RootSIFT, 8192 features */
} hs_profile;

/* How descriptors are normalised. */
typedef enum hs_norm {
  HS_NORM_L2 = 0,  /* to unit length (Lowe) */
  HS_NORM_ROOT = 1 /* square roots of the L1-normalised: RootSIFT (Arandjelovic, Zisserman, CVPR 2012) */
} hs_norm;
/* The order of the orientation bins in a cell. */
typedef enum hs_bin_layout {
  HS_LAYOUT_UBC = 0,   /* 0 1 2 3 4 5 6 7: Lowe's, OpenCV's, COLMAP's */
  HS_LAYOUT_VLFEAT = 1 /* 0 7 6 5 4 3 2 1 */
} hs_bin_layout;

/* How descriptors were made: hs_match refuses those whose norm, pooling or layout differs, and float ones of the opencv
   profile beside others. The method version and other differences of profiles leave distances their meaning. */
typedef struct hs_origin {
  int32_t method_version;   /* HS_METHOD_VERSION of the library that made them; 0: unknown, and so are the next three */
  hs_profile profile;       /* that they were made with */
  hs_norm norm;             /* that they have */
  hs_bin_layout layout;     /* that they are in */
  int32_t exif_orientation; /* that the picture was turned by before they were found, 2..8; 0: by none, or unknown. Such
                               features are refused for programs that read the picture as stored: set it to 0 where the
                               program has turned copies */
  int32_t dsp;              /* 1: pooled over domain sizes */
  int32_t reserved[2];      /* 0 */
} hs_origin;

/* A list of features in the defined order: octave, level, row, column of the settled sample,
   orientation. Start with {0}; filled by the library, which owns both arrays until
   hs_features_free, or until the next call that fills the same struct (its room is used again, or exchanged). */
typedef struct hs_features {
  size_t count;                       /* features */
  hs_keypoint *keypoints;             /* count entries */
  void *descriptors;                  /* count x 128 uint8_t or float, row-major; null for HS_DESCRIPTOR_NONE */
  hs_descriptor_type descriptor_type; /* of descriptors */
  int32_t image_width, image_height;  /* of the image they come from; 0 when unknown */
  hs_origin origin; /* set by extraction, hs_describe and by reading files that say it; see FORMATS.md */
  size_t capacity;  /* entries that both arrays have room for; the library's */
  size_t descriptor_capacity_bytes; /* the library's */
  const hs_allocator *allocator;    /* that the arrays came from; must outlive them. The library's */
  /* count entries where the affine shape is known (options.affine; FORMATS.md), else null. Extracted, the short axis is
     sigma; the first column has the direction of the orientation. The library's, as the other arrays */
  hs_frame *frames;
  size_t frame_capacity;                                       /* entries that frames has room for; the library's */
  int32_t reserved[16 - 2 * sizeof(void *) / sizeof(int32_t)]; /* 0 */
} hs_features;

/* Two images of a collection, by their numbers there. 8 bytes, for good. */
typedef struct hs_image_pair {
  uint32_t first, second; /* two different ones */
} hs_image_pair;

/* A context: options, chosen backend and working memory; made by hs_create. */
typedef struct hs_context hs_context;

#endif
