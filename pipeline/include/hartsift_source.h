/*
 * hartsift_source.h - sources of pictures: files, their bytes, rows; and loading; part of hartsift.h.
 */
#ifndef HARTSIFT_SOURCE_H
#define HARTSIFT_SOURCE_H

#include "hartsift_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ loading of images */

/* Camera data from the EXIF of a JPEG, PNG, TIFF or WebP. Missing values are 0. */
typedef struct hs_exif {
  double focal_length; /* focal length in pixels of the decoded picture; 0: unknown. From the 35 mm equivalent, else
                          from FocalLength and the resolution of the focal plane, as COLMAP computes it */
  double latitude, longitude;      /* GPS, degrees, WGS 84, north and east above 0 */
  double altitude;                 /* metres above sea level */
  int32_t has_place, has_altitude; /* 1: latitude and longitude are known; 1: altitude is known */
  uint64_t camera;                 /* digest of make, model and focal length in mm: equal for pictures of one camera
                                      with one lens setting; 0: one of them is missing */
  int32_t reserved[12];            /* 0 */
} hs_exif;

/* Size of a text in hs_load_notes. */
enum { HS_NOTE_BYTES = 256 };

/* Notes on a loaded file. Fields are 0 if there is nothing to note. */
typedef struct hs_load_notes {
  /* number of damages that the decoder reported: wrong checksums, lost or surplus data, wrong headers. If it is not 0,
     pixels may be wrong */
  int32_t damages;
  /* 1: no value range was given, and the samples use so little of their type's range that few or no features will be
     found, for instance 12-bit samples or temperatures in 16 bits */
  int32_t is_low_range;
  double lowest, highest;        /* the smallest and the largest sample; set if is_low_range */
  float range_low, range_high;   /* the value range that the file probably uses; set if is_low_range */
  char damage[HS_NOTE_BYTES];    /* "NAME: " and the first damage report, zero-terminated; "": none */
  char low_range[HS_NOTE_BYTES]; /* "NAME: " and the warning of a low range, zero-terminated; "": is_low_range is 0 */
  int32_t reserved[16];          /* 0 */
} hs_load_notes;

/* Options of hs_load_image. */
typedef struct hs_load_options {
  size_t struct_size;  /* sizeof(hs_load_options), set by hs_load_options_init; fields are only appended */
  uint64_t max_pixels; /* maximum size of an image, checked before allocation, pixels; 0: 2^31; UINT64_MAX: no limit */
  uint64_t
      /* maximum memory for decoding an image, bytes; 0: half the memory that this process may hold (limited by the
         machine, its control groups on Linux, RLIMIT_AS); UINT64_MAX: no limit; default 0 */
      max_memory_bytes;
  int32_t ignore_exif; /* 1: keep the picture as stored; 0: apply its EXIF orientation; default 0 */
  int32_t keep_colour; /* 1: RGB if the file has colour; 0: gray (for a YCbCr JPEG its stored luma); default 0 */
  /* 1, 2, 4, 8: decode a JPEG to 1/N of its width and height, rounded up, inside libjpeg's transform; 0 means 1. Limits
     and feature coordinates refer to the decoded picture. With a value above 1, other files and scenes are
     HS_ERR_UNSUPPORTED; default 0 */
  int32_t jpeg_scale;
  const hs_allocator *allocator; /* allocator of the result; must outlive it. null: the C library's */
  char *message;                 /* null, or buffer for the reason of a failure (zero-terminated) */
  size_t message_bytes;          /* capacity of message */
  hs_exif *exif; /* null, or gets the file's EXIF; all 0 after a failure and for files without EXIF; default null */
  int64_t
      /* maximum side of a picture, pixels. Larger pictures are reduced by exact area averaging in integers (METHOD.md,
         section 2); the other side is rounded down, as with COLMAP's max_image_size. The limits apply to the picture
         before reduction. 0: never reduced; 0 or more; default 0 */
      max_image_size;
  int32_t
      /* 1: hs_load_source, hs_extract_source and related functions keep a JPEG encoded if the GPU can decode it:
         baseline, gray or YCbCr in one scan. Damaged data is then found only when the GPU decodes it. Other JPEGs are
         decoded at once, and so are all with keep_colour, jpeg_scale, max_image_size or a value range. hs_load_image
         and hs_load_image_memory ignore the option; default 0 */
      keep_encoded;
  /* 1: every path names a file; use it for names that users give. 0: "-" is standard input, "@scene..." a generated
     picture; default 0 */
  int32_t only_files;
  int32_t strict; /* 1: any damage that the decoder reports is HS_ERR_FORMAT. 0: damage after which a picture remains
                     is noted (hs_load_notes); default 0 */
  int32_t unused; /* 0 */
  hs_load_notes *notes; /* null, or gets the notes on the file; all 0 after a failure; default null */
  /* Sample values of black and white, low < high, both finite. Set them for integers that use a part of their type's
     range (12 bits, temperatures), and for signed or float samples of TIFF files. The picture becomes HS_F32 with this
     range; samples half a range or more outside it are HS_ERR_ARGUMENT. 0, 0: the range of the type; MinSampleValue and
     MaxSampleValue of a 16-bit TIFF (scaled to 16 bits, like the maximum of a PNM); 0..1 for floats. 0, 0 */
  float range_low, range_high;
} hs_load_options;

/* Fills *options with the defaults above. They are all 0, so {.struct_size = sizeof(hs_load_options)} gives them too.
   HS_ERR_ARGUMENT: null. */
#define hs_load_options_init(options) hs_load_options_init_sized((options), sizeof(hs_load_options))
HS_API hs_status hs_load_options_init_sized(hs_load_options *options, size_t struct_size);

/* Loads an image: decodes PNG, JPEG, TIFF (the first picture that is no reduced copy), WebP, BMP or PGM/PPM/PAM,
   detected by content, not by name. A name "@scene[:WxH[:SEED]]" renders a scene (see hs_render_scene), and "-" is
   standard input; with options->only_files both are names of files. *image refers to memory that hs_image_free
   releases. 16-bit files keep 16 bits; float, signed and 32-bit samples become HS_F32. options may be null. Blocks.
   options->message gets the reason of a failure: "NAME: reason".
   Statuses: HS_ERR_ARGUMENT, HS_ERR_OPTION, HS_ERR_IO, HS_ERR_FORMAT, HS_ERR_UNSUPPORTED, HS_ERR_LIMIT,
   HS_ERR_MEMORY. */
HS_API hs_status hs_load_image(const char *path, const hs_load_options *options, hs_image *image);
/* As hs_load_image, from the bytes of a file. */
HS_API hs_status hs_load_image_memory(const void *bytes, size_t size, const hs_load_options *options, hs_image *image);

/* Converts features of a picture that loading reduced (hs_load_options.max_image_size) to pixels of the original: x, y,
   sigma, image_width and image_height. octave and level stay those of the reduced picture. If the image was not
   reduced, nothing changes. Call it only once for a list. HS_ERR_ARGUMENT: null, or features of another size than the
   image's. */
HS_API hs_status hs_features_to_original(hs_features *features, const hs_image *image);

/* Returns whether the context's GPU decodes JPEGs of sources. 1: it does, on its multiprocessors, with libjpeg's
   pixels. 0: the context is hybrid, works on the CPU, or has HS_DECODER_CPU. -1: the GPU's pixels differ from
   libjpeg's, or its decoder fails, and the CPU decodes. The first call compares 64 synthetic pictures. message: null,
   or a buffer of message_bytes, which gets the name of the decoder, or the reason why the GPU does not decode. */
HS_API int32_t hs_decodes_jpeg(hs_context *context, char *message, size_t message_bytes);

/* Frees the memory of an image that the library made (hs_load_image, hs_render_scene) and clears the struct. A view
   of the caller's pixels is only cleared. null is allowed. */
HS_API void hs_image_free(hs_image *image);

/* Renders a picture with natural statistics (dead leaves: opaque discs whose radii are distributed as r^-3) as 8-bit
   gray; the pixels are the same on every machine. homography: null, or 9 numbers, row-major, which map points of the
   plain scene to points of the rendered view. Statuses: HS_ERR_ARGUMENT, HS_ERR_LIMIT, HS_ERR_MEMORY. */
HS_API hs_status hs_render_scene(int32_t width, int32_t height, uint32_t seed, const double *homography,
                                 const hs_allocator *allocator, hs_image *image);

/* ------------------------------------------------------------------ sources

   The source of a picture is pixels, a file, the bytes of a file, or rows from a function. hs_source_pixels,
   hs_source_file, hs_source_encoded and hs_source_rows make one; set load and mask afterwards if wanted. A source owns
   no memory, unless hs_load_source made it; each call says how long the memory that it points to must stay valid. A
   source may be used again, and by several calls at once, except for a source of rows, whose functions have a state.

       hs_source source = hs_source_file("photo.jpg");
       source.load = &load;
       st = hs_extract_source(ctx, &source, &features); */

/* Kind of a source. */
typedef enum hs_source_kind {
  HS_SOURCE_PIXELS = 0,  /* image: pixels, as for hs_extract and hs_submit; load is ignored */
  HS_SOURCE_FILE = 1,    /* path: name of a file, as for hs_load_image */
  HS_SOURCE_ENCODED = 2, /* bytes[size]: a file in memory */
  /* rows: functions that give the picture; image has its width, height, type and value range, with data null and layout
     HS_GRAY */
  HS_SOURCE_ROWS = 3,
  /* made only by hs_load_source: bytes[size] is a JPEG that waits for the GPU; image describes the decoded picture,
     with data null. May be used like pixels; load is ignored */
  HS_SOURCE_JPEG = 4
} hs_source_kind;

/* Gives the rows of a gray picture from the top, on the calling thread. If a function returns a status other than
   HS_OK, the call ends with that status. */
typedef struct hs_row_reader {
  hs_status (*rewind)(void *user); /* restarts at the first row; called before the first read, and possibly again */
  hs_status (*read)(void *user, void *row); /* writes the next row: image.width samples of image.type, without gaps */
  void *user;                               /* pointer of the caller, passed to both functions */
} hs_row_reader;

/* A source of a picture. Start with {0} or one of the functions below. */
typedef struct hs_source {
  hs_image image;      /* picture of HS_SOURCE_PIXELS, HS_SOURCE_ROWS, HS_SOURCE_JPEG */
  hs_source_kind kind; /* kind of the source; determines the fields that are used */
  /* for HS_SOURCE_JPEG, set by loading with hs_load_options.strict or notes. 1: decoding refuses the JPEG with
     HS_ERR_FORMAT if libjpeg reports damage, and hs_load_image gives the report */
  int32_t refuse_damage;
  const char *path;            /* HS_SOURCE_FILE */
  const void *bytes;           /* bytes of HS_SOURCE_ENCODED, HS_SOURCE_JPEG */
  size_t size;                 /* size of bytes */
  hs_row_reader rows;          /* HS_SOURCE_ROWS */
  const hs_load_options *load; /* options of decoding a file, and limits for rows; null: the defaults */
  /* mask as in hs_extract, of the picture's size; if max_image_size reduced the picture, the original's size is allowed
     too. null: none */
  const hs_image *mask;
  int32_t reserved[8]; /* 0 */
} hs_source;

/* Makes a source of this kind with all other fields 0. */
static inline hs_source hs_source_of(hs_source_kind kind) {
#ifdef __cplusplus
  hs_source source = {};
  source.kind = kind;
#else
  hs_source source = {.kind = kind};
#endif
  return source;
}

/* Makes a source of the pixels of *image; the struct is copied. */
static inline hs_source hs_source_pixels(const hs_image *image) {
  hs_source source = hs_source_of(HS_SOURCE_PIXELS);
  if (image) source.image = *image;
  return source;
}

/* Makes a source of a file, named as for hs_load_image. */
static inline hs_source hs_source_file(const char *path) {
  hs_source source = hs_source_of(HS_SOURCE_FILE);
  source.path = path;
  return source;
}

/* Makes a source of a file's bytes. */
static inline hs_source hs_source_encoded(const void *bytes, size_t size) {
  hs_source source = hs_source_of(HS_SOURCE_ENCODED);
  source.bytes = bytes;
  source.size = size;
  return source;
}

/* Makes a source of rows of a gray picture; the struct is copied. */
static inline hs_source hs_source_rows(int32_t width, int32_t height, hs_sample_type type, const hs_row_reader *rows) {
  hs_source source = hs_source_of(HS_SOURCE_ROWS);
  source.image.width = width;
  source.image.height = height;
  source.image.type = type;
  if (rows) source.rows = *rows;
  return source;
}

/* Reads a source before its extraction, on the caller's thread. *loaded becomes a source of pixels, or of
   HS_SOURCE_JPEG if load->keep_encoded is 1 and the file is such a JPEG; hs_decodes_jpeg says whether a GPU decodes it.
   *loaded has no load, and the mask of *source, which must have the loaded size then. hs_source_free releases *loaded.
   For pixels, HS_SOURCE_JPEG and bytes that stay encoded, *loaded refers to the memory of *source. Statuses: as
   hs_load_image; HS_ERR_ARGUMENT also for a source without the fields that its kind needs; and the statuses that rows
   return. load->message gets the reason, as for hs_load_image. */
HS_API hs_status hs_load_source(const hs_source *source, hs_source *loaded);

/* Frees memory that hs_load_source allocated and clears the struct; memory of the caller is not freed. null is
   allowed. */
HS_API void hs_source_free(hs_source *source);

/* ------------------------------------------------------------------ from a source to features

   Pixels and HS_SOURCE_JPEG are used unchanged: features are in pixels of image (hs_features_to_original). The library
   reads and decodes other sources, on as many of its threads as options.threads says. For them load is used as in
   hs_load_image (null: the defaults), with these differences: limits of 0 mean the limits of hs_options; hs_last_error
   has the reason of a failure; message, allocator and keep_colour are ignored; and features are in pixels of the
   original, also with max_image_size.
   The GPU decodes JPEGs if options.decoder is HS_DECODER_GPU. With HS_DECODER_AUTO it does so if load->keep_encoded is
   1 and the GPU's decoder passed the comparison, which the first such call makes (hs_decodes_jpeg). Otherwise, and with
   a mask, libjpeg decodes them. */

/* Extracts the features of a source. Blocks. If max_memory_bytes requires tiles, the picture is read row by row
   during processing, on a CPU or a GPU; the context then holds only a band of the picture and 64 KiB of a file. This
   works for rows, for PNG without interlacing, and for JPEG of one scan without EXIF rotation, if a band fits; but
   not with max_image_size, equalize, the refinement of HS_PROFILE_OPENCV, or for rows a value range in load. The
   workspace is then that of hs_workspace_query_rows, and load->max_memory_bytes limits the additional memory of
   decoding. If a later part of the file is damaged, the call returns its status and no features. Statuses: as
   hs_load_source and hs_extract. */
HS_API hs_status hs_extract_source(hs_context *context, const hs_source *source, hs_features *features);

/* Submits a source and returns before it is read. The memory that it points to must stay valid until hs_wait has
   returned this image's features: path, bytes, the pixels of image and mask, load->exif and load->notes (separate ones
   for each file in flight). *source, *load and *mask are copied. hs_wait reports faults of a file or its mask. With
   options.in_flight 0, a context on a GPU allows 64 images in flight if the first submitted image is a file. Statuses:
   HS_ERR_ARGUMENT, HS_ERR_OPTION, HS_ERR_UNSUPPORTED (rows), HS_ERR_CAPACITY (as hs_submit), HS_ERR_MEMORY,
   HS_ERR_THREAD, HS_ERR_NO_DEVICE; for pixels and HS_SOURCE_JPEG also hs_submit's. After a failure nothing was
   submitted. */
HS_API hs_status hs_submit_source(hs_context *context, const hs_source *source);

/* As hs_extract_source and hs_submit_source: for a file (hs_source_file), and for the bytes of a file in memory
   (hs_source_encoded). */
HS_API hs_status hs_extract_file(hs_context *context, const char *path, const hs_load_options *load,
                                 const hs_image *mask, hs_features *features);
HS_API hs_status hs_extract_encoded(hs_context *context, const void *bytes, size_t size, const hs_load_options *load,
                                    const hs_image *mask, hs_features *features);
HS_API hs_status hs_submit_file(hs_context *context, const char *path, const hs_load_options *load,
                                const hs_image *mask);
HS_API hs_status hs_submit_encoded(hs_context *context, const void *bytes, size_t size, const hs_load_options *load,
                                   const hs_image *mask);

#ifdef __cplusplus
}
#endif
#endif
