/*
 * Internal interface of the image readers and of the functions that they share (decoding.c). Public entries:
 * hs_load_image, hs_load_image_memory (load.c) and hs_image_free.
 *
 * A reader gets the complete, untrusted file in memory. It checks sizes against the limits and against the file's
 * length before it allocates memory in proportion to them.
 */
#ifndef HARTSIFT_IMAGE_IO_IMAGE_IO_H
#define HARTSIFT_IMAGE_IO_IMAGE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pipeline/base/adopt.h"
#include "pipeline/base/text.h"
#include "pipeline/include/hartsift.h"

/* The build defines which libraries are available. */
#ifndef HARTSIFT_HAVE_PNG
#  error "HARTSIFT_HAVE_PNG must be defined to 0 or 1"
#endif
#ifndef HARTSIFT_HAVE_JPEG
#  error "HARTSIFT_HAVE_JPEG must be defined to 0 or 1"
#endif
#ifndef HARTSIFT_HAVE_TIFF
#  error "HARTSIFT_HAVE_TIFF must be defined to 0 or 1"
#endif
#ifndef HARTSIFT_HAVE_WEBP
#  error "HARTSIFT_HAVE_WEBP must be defined to 0 or 1"
#endif

enum { IMAGE_REASON_BYTES = 256 };

/* A picture that exceeds max_memory_bytes: its decoded size, and the memory that it needs. */
typedef struct image_need {
  int32_t width, height;
  uint64_t bytes; /* 0: unknown */
} image_need;

/* Information from decoding in addition to the pixels. */
typedef struct image_findings {
  hs_load_notes notes;
  double declared_low, declared_high; /* sample values that the file declares as black and white; 0, 0: none declared */
  bool ran_short;                     /* the file ended early */
} image_findings;

/* One decoding: the file's bytes, and the caller's options with defaults filled in. */
typedef struct image_request {
  const char *name; /* name for messages: the path, "standard input", "the image in memory" */
  const uint8_t *bytes;
  size_t size;
  uint64_t max_pixels;       /* maximum size of a picture in pixels; never 0 */
  uint64_t max_memory_bytes; /* 0: a share of this process's memory; UINT64_MAX: no limit */
  bool apply_exif;
  bool keep_colour;
  bool keep_encoded;   /* whether a JPEG stays encoded; set only by hs_load_source */
  bool is_probe;       /* `bytes` is only the file's beginning: readers return HS_ERR_CANCELLED instead of decoding */
  bool is_stream;      /* is_probe, and the file's size is unknown */
  bool only_files;     /* whether "-" and "@scene" are names of files */
  uint32_t jpeg_scale; /* 1, 2, 4 or 8; above 1 for JPEG only */
  int32_t max_image_size;
  hs_exif *exif;               /* receives the file's EXIF; cleared first; null: not wanted */
  image_need *need;            /* receives size and memory of a picture that does not fit; null: not wanted */
  image_findings *found;       /* findings of the decoding; null if nothing is decoded */
  hs_load_notes *notes;        /* notes for the caller, or null */
  bool strict;                 /* damage that the decoder reports is an error */
  float range_low, range_high; /* value range given by the caller; 0, 0: none */
  const hs_allocator *allocator;
  char *message;
  size_t message_bytes;
} image_request;

/* Writes "NAME: reason" to the request's message and returns status. */
hs_status image_fail(const image_request *request, hs_status status, const char *format, ...) HS_MESSAGE_FORMAT(3, 4);

/* Records that bytes are missing. For a probe, that alone may cause the error. */
void image_ran_short(const image_request *request);

/* Counts a damage report of a file that is decoded nevertheless; stores the first text. */
void image_note_damage(const image_request *request, const char *format, ...) HS_MESSAGE_FORMAT(2, 3);

/* Call after decoding. HS_ERR_FORMAT if the request is strict and damage was reported. */
hs_status image_check_damage(const image_request *request);

/* Passes the notes to the caller, or clears them after a failure. Returns status. */
hs_status image_give_notes(const image_request *request, hs_status status);

/* Refuses sizes outside the limits: HS_ERR_FORMAT for 0, HS_ERR_LIMIT for more than max_pixels or a
   side beyond int32_t. */
hs_status image_check_size(const image_request *request, uint64_t width, uint64_t height);

/* Refuses more memory than max_memory_bytes: HS_ERR_LIMIT with "NAME: WHAT needs BYTES bytes, more than ...". */
hs_status image_check_memory(const image_request *request, uint64_t bytes, const char *what);

/* Allocates *image with a checked size and contiguous rows; the pixels are not cleared. working_bytes: further memory
   of the decoder; its sum with picture and file must be within max_memory_bytes. On failure *image is unchanged.
   HS_ERR_LIMIT, HS_ERR_MEMORY. */
hs_status image_allocate(const image_request *request, int32_t width, int32_t height, hs_sample_type type,
                         hs_pixel_layout layout, uint64_t working_bytes, hs_image *image);

/* Downscales a picture of the library by exact area averaging, so that its larger side is `largest_wanted` pixels. The
   picture stays unchanged if `largest_wanted` is 0 or the picture fits. On failure *image is unchanged. HS_ERR_LIMIT,
   HS_ERR_MEMORY. */
hs_status image_shrink(const image_request *request, int32_t largest_wanted, hs_image *image);

/* Samples a mask of the original's size (8-bit gray) at the pixel centres of a downscaled picture, into pixels[width *
 * height of that picture]. */
void mask_shrink(const hs_image *mask, const hs_image *picture, uint8_t *pixels);

/* ---- decoding.c */

/* True if the caller gave a value range. */
bool image_has_range(const image_request *request);

/* Minimum and maximum of the samples so far; before the first sample low > high. A NaN sample makes both NaN. */
typedef struct sample_extremes {
  double low, high;
} sample_extremes;

/* Adds `count` samples. */
void extremes_add(sample_extremes *extremes, const void *samples, size_t count, hs_sample_type type);

/* Converts samples of 8 or 16 bits to floats of the same value. */
void range_widen(const void *samples, size_t count, hs_sample_type type, float *floats);

/* Checks a picture's sample extremes. With a given or declared range, the samples must be within it (otherwise
   HS_ERR_ARGUMENT; for a declared range HS_ERR_UNSUPPORTED). Without one, notes a range that is hardly used. */
hs_status range_check(const image_request *request, const sample_extremes *extremes, hs_sample_type type);

/* Converts a decoded picture to the given or declared value range: 16-bit samples are stretched, for floats the range
   is recorded. On failure *image is unchanged. HS_ERR_ARGUMENT, HS_ERR_UNSUPPORTED, HS_ERR_LIMIT, HS_ERR_MEMORY. */
hs_status image_apply_range(const image_request *request, hs_image *image);

/* Return the number of channels of a layout, and the bytes of a sample. */
size_t image_channels(hs_pixel_layout layout);
size_t image_sample_bytes(hs_sample_type type);

/* ---- bytes for a sequential decoder: all in memory, or read from the file on demand */

enum { BYTE_SOURCE_READ = 64 << 10 }; /* bytes of the file that are in memory at one time */

typedef struct byte_source {
  const uint8_t *next; /* the next `left` bytes that are not used yet */
  size_t left;
  FILE *stream;    /* stream of the file; null: the complete file is in memory */
  uint8_t *buffer; /* read buffer of BYTE_SOURCE_READ bytes */
  int error;       /* errno of a failed read; else 0 */
} byte_source;

/* A source of the request's bytes. */
byte_source byte_source_of(const image_request *request);

/* Reads the next bytes of the stream after all previous ones were used. False: the end, or `error` is set. */
bool byte_source_fill(byte_source *source);

/* ---- readers: each makes *image, or leaves it unchanged and sets the message */

hs_status image_read_png(const image_request *request, hs_image *image);
hs_status image_read_jpeg(const image_request *request, hs_image *image);
hs_status image_read_pnm(const image_request *request, hs_image *image);
hs_status image_read_tiff(const image_request *request, hs_image *image);
hs_status image_read_webp(const image_request *request, hs_image *image);
hs_status image_read_bmp(const image_request *request, hs_image *image);

/* True if a file has a valid BMP header; its two letters alone would be ambiguous. */
bool bmp_is_header(const uint8_t *bytes, size_t size);

/* Keeps a JPEG that a GPU may decode: *loaded then refers to the request's bytes. False: it must be decoded here. */
bool image_keep_jpeg(const image_request *request, hs_source *loaded);

/* ---- load.c */

/* As hs_load_image. need: set if a picture of known size does not fit, else unchanged; may be null. */
hs_status image_load(const char *path, const hs_load_options *options, image_need *need, hs_image *image);

/* Checks a source of rows before any row is read. Statuses: HS_ERR_ARGUMENT, HS_ERR_IMAGE, HS_ERR_LIMIT,
   HS_ERR_UNSUPPORTED. */
hs_status source_rows_check(const image_request *request, const hs_source *source);
#define SOURCE_ROWS_FAILED "reading its rows ended with %s"

/* Whether bytes begin with the signature of PNG, or of JPEG. */
bool image_is_png(const uint8_t *bytes, size_t size);
bool image_is_jpeg(const uint8_t *bytes, size_t size);

/* True if the name means standard input or a scene, when only_files is not set. */
bool image_is_no_file(const char *name);

/* True if the path is a regular file, which can be read again, unlike a pipe. */
bool image_is_regular_file(const char *path);

/* Makes a request from a caller's options (null: the defaults). Clears the caller's tags and notes, and *found.
   HS_ERR_OPTION. */
hs_status image_request_make(const hs_load_options *options, const char *name, image_findings *found,
                             image_request *request);

/* Opens the request's file. *expected_bytes: size of a regular file, which may change; else 0. HS_ERR_IO. */
hs_status image_open_file(const image_request *request, FILE **stream, size_t *expected_bytes);

/* Copies a caller's options (null: the defaults) with all fields resolved. HS_ERR_OPTION: reason is set; the known
   fields are copied nevertheless. */
hs_status load_options_take(const hs_load_options *options, hs_load_options *mine, char reason[ADOPT_REASON_BYTES]);

/* Reads a stream to its end, or until its first bytes show that it is no image. *bytes: from request->allocator; the
   caller releases them, also after a failure. HS_ERR_MEMORY, HS_ERR_LIMIT (max_memory_bytes), HS_ERR_IO. */
hs_status image_read_stream(const image_request *request, FILE *stream, uint8_t **bytes, size_t *size);

/* ---- decoding.c, continued */

/* Converts a row of `count` pixels with 1 (gray), 2 (gray, alpha), 3 (RGB) or 4 (RGB, alpha) channels to layout HS_GRAY
   or HS_RGB (HS_RGB only from 3 or 4 channels). Alpha is dropped; colour becomes gray as hartsift_types.h defines it.
   Samples: uint8_t, native uint16_t or float. source and target must not overlap. */
void gray_convert_row(const void *source, size_t source_channels, hs_sample_type type, size_t count, void *target,
                      hs_pixel_layout target_layout);

/* ---- exif.c */

/* Tags of an APP1 segment; NaN: missing or meaningless. */
typedef struct exif_tags {
  int orientation; /* 1..8; 1 if missing */
  double focal_length_mm, focal_length_35mm;
  double plane_resolution, plane_unit; /* FocalPlaneXResolution, and the number of its unit */
  double pixel_width, pixel_height;    /* size of the picture that the camera took */
  double latitude, longitude;          /* degrees, WGS 84, north and east positive */
  double altitude;                     /* metres above sea level */
  uint64_t camera;                     /* as hs_exif.camera */
} exif_tags;

/* Parses the untrusted payload of an APP1 segment. False: it is no EXIF, and *tags is empty. */
bool exif_parse(const uint8_t *app1, size_t size, exif_tags *tags);
/* As exif_parse, for a TIFF structure without the signature of a JPEG segment. */
bool exif_parse_tiff(const uint8_t *bytes, size_t size, exif_tags *tags);
/* As exif_parse_tiff, for the directory at this offset. If it lacks a sub-directory, the first directory's is used. */
bool exif_parse_page(const uint8_t *bytes, size_t size, uint64_t directory, exif_tags *tags);
/* Returns the first value of a tag in the directory at this offset; NaN: missing, or the file is a BigTIFF. */
double exif_page_number(const uint8_t *bytes, size_t size, uint64_t directory, uint32_t tag);

/* Sets request->exif (if not null) for a decoded picture. stored_side: see exif_focal_length. */
void exif_give(const image_request *request, const exif_tags *tags, double stored_side, const hs_image *image);

/* Returns the focal length in pixels of a picture decoded as width x height, by COLMAP's rule: from the 35 mm
   equivalent and the picture's diagonal, else from FocalLength and the resolution of the focal plane. stored_side:
   larger side of the stored picture. 0: unknown. */
double exif_focal_length(const exif_tags *tags, double stored_side, int32_t width, int32_t height);

/* Mapping of stored pixels to the upright picture. */
typedef struct exif_placement {
  int32_t width, height;    /* size of the upright picture */
  ptrdiff_t start;          /* index in the upright picture of the stored pixel (0, 0) */
  ptrdiff_t step_x, step_y; /* change of that index for the next stored column, and for the next stored row */
} exif_placement;

/* Returns the mapping of an orientation 1..8; other values count as 1. */
exif_placement exif_place(int orientation, int32_t stored_width, int32_t stored_height);

/* Writes the stored row number `row`, of `count` pixels, to the upright picture (contiguous rows). */
void exif_put_row(const exif_placement *placement, int32_t row, const uint8_t *pixels, size_t count, size_t pixel_bytes,
                  uint8_t *picture);

/* Reads the tags of the first eXIf chunk of a PNG. stream: the file, whose position is restored; null: the request has
   the bytes. *found: false if there is no readable chunk. Statuses: HS_ERR_MEMORY. */
hs_status png_exif_read(const image_request *request, FILE *stream, bool *found, exif_tags *tags);

/* ---- scene.c: the generated picture of "@scene" names and hs_render_scene, an endless plane of overlapping discs
   whose pixels are the same on every machine */

/* Maximum width and height of a rendered scene, pixels. */
enum { SCENE_MAX_SIDE = 30000 };

/* Parses "@scene", "@scene:WxH" or "@scene:WxH:SEED" (sides 1..SCENE_MAX_SIDE, seed 0..2^32-1, decimal digits only).
   Returns 1 and sets all three outputs (defaults 640, 480, 1); 0 if `name` is a file name: it does not begin with
   "@scene" followed by ':' or the end; -1 if malformed. The outputs are written only for 1. */
int scene_parse_name(const char *name, int32_t *width, int32_t *height, uint32_t *seed);

/* ---- image_rows.c: pictures that are read row by row, for frames that never hold the complete picture: PNG without
   interlacing, and upright JPEG of one scan. Other files are decoded as a whole. */

typedef struct image_rows image_rows;

/* Functions that read the rows of one kind of file. */
typedef struct image_rows_kind {
  /* Creates the decoder and reads the header: width, height, type, working_bytes. Sets `whole` if access by rows is
     impossible. `end` must be called even after a failure. */
  hs_status (*begin)(image_rows *rows);
  /* Reads the next row as gray. After the last row, checks that the file is complete. */
  hs_status (*read)(image_rows *rows, uint8_t *row);
  void (*end)(image_rows *rows);
} image_rows_kind;

struct image_rows {
  image_request request;       /* request with the file's size; if its bytes are null, they are read on demand */
  const image_rows_kind *kind; /* reader of the format; null: nothing is open */
  void *decoder;               /* decoder of this kind, or null */
  byte_source bytes;           /* source of bytes for the decoder */
  FILE *stream;
  uint8_t *buffer;
  int32_t width, height;
  hs_sample_type type;    /* sample type of the returned rows */
  uint64_t working_bytes; /* memory of the decoder in addition to the row */
  bool whole;             /* the picture must be decoded as a whole, not by rows */
  hs_sample_type stored;  /* sample type in the file; with a given value range, `type` is HS_F32 instead */
  image_findings found;
  sample_extremes extremes; /* extremes of the samples of all rows so far */
  uint8_t *samples;         /* buffer for a row of `stored` samples if the types differ; else null */
  int32_t next;             /* row */
};

/* Opens a file by its name, or if path is null, its bytes, with the load options. If rows->kind is null (with HS_OK),
   or on failure, nothing stays open; hs_load_image then reports the details. */
hs_status image_rows_open(image_rows *rows, const char *path, const void *bytes, size_t size,
                          const hs_load_options *load);

/* Reads the next row: `width` gray samples of rows->type. Do not call after the last row. Statuses: as
   hs_load_image. */
hs_status image_rows_read(image_rows *rows, uint8_t *row);

/* Restarts at the first row. Statuses: as hs_load_image. */
hs_status image_rows_rewind(image_rows *rows);

/* Closes the reader; a reader {0} is allowed. */
void image_rows_close(image_rows *rows);

/* The row readers; null: built without the library. */
const image_rows_kind *image_rows_of_png(void);
const image_rows_kind *image_rows_of_jpeg(void);

#endif
