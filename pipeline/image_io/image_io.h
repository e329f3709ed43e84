/*
 * Image files inside the library: what the readers of the single formats share (decoding.c). Public
 * entries are hs_load_image, hs_load_image_memory (load.c) and hs_image_free.
 *
 * A reader gets the whole file in memory and trusts none of it: sizes are checked against the limits
 * and against the number of bytes there before anything of their order is allocated.
 */
#ifndef HARTSIFT_IMAGE_IO_IMAGE_IO_H
#define HARTSIFT_IMAGE_IO_IMAGE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pipeline/include/hartsift.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/message.h"

/* The build says which libraries there are. */
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

/* A picture that max_memory_bytes is too small for: its size as it would be decoded, and the bytes that takes. */
typedef struct image_need {
  int32_t width, height;
  uint64_t bytes; /* 0: nothing is known */
} image_need;

/* What decoding learns in addition to the pixels. */
typedef struct image_findings {
  hs_load_notes notes;
  double declared_low, declared_high; /* samples that the file says are black and white; 0, 0: it says nothing */
  bool ran_short;                     /* there were too few bytes */
} image_findings;

/* One decoding: the file's bytes and the caller's wishes, defaults filled in. */
typedef struct image_request {
  const char *name; /* for messages: the path, "standard input", "the image in memory" */
  const uint8_t *bytes;
  size_t size;
  uint64_t max_pixels;       /* never 0 */
  uint64_t max_memory_bytes; /* 0: a share of what this process may hold; UINT64_MAX: no limit */
  bool apply_exif;
  bool keep_colour;
  bool keep_encoded; /* hs_load_source alone does */
  bool is_probe;     /* bytes are only the beginning of a file: readers end with HS_ERR_CANCELLED instead of decoding */
  bool is_stream;    /* of a probe: the file's size is not known */
  bool only_files;   /* "-" and "@scene" are names of files too */
  uint32_t jpeg_scale; /* 1, 2, 4 or 8; above 1 for JPEG only */
  int32_t max_image_size;
  hs_exif *exif;               /* null, or what the file says; cleared */
  image_need *need;            /* null, or of a picture that does not fit */
  image_findings *found;       /* null where nothing is decoded */
  hs_load_notes *notes;        /* the caller's; null */
  bool strict;                 /* damage that is reported is a failure */
  float range_low, range_high; /* given by the caller; 0, 0: none */
  const hs_allocator *allocator;
  char *message;
  size_t message_bytes;
} image_request;

/* Writes "NAME: reason" to the request's message and returns status. */
hs_status image_fail(const image_request *request, hs_status status, const char *format, ...) HS_MESSAGE_FORMAT(3, 4);

/* Says that there were too few bytes, for a probe: what is wrong may be that alone. */
void image_ran_short(const image_request *request);

/* Counts a report of damage in a file that is decoded nevertheless; the first one's text is kept. */
void image_note_damage(const image_request *request, const char *format, ...) HS_MESSAGE_FORMAT(2, 3);

/* After decoding: HS_ERR_FORMAT where the request is strict and damage was reported. */
hs_status image_check_damage(const image_request *request);

/* Hands the notes to the caller, none of them after a failure. Returns status. */
hs_status image_give_notes(const image_request *request, hs_status status);

/* Refuses sizes outside the limits: HS_ERR_FORMAT for 0, HS_ERR_LIMIT for more than max_pixels or a
   side beyond int32_t. */
hs_status image_check_size(const image_request *request, uint64_t width, uint64_t height);

/* Refuses what needs more than max_memory_bytes: HS_ERR_LIMIT with "NAME: WHAT needs BYTES bytes, more than ...". */
hs_status image_check_memory(const image_request *request, uint64_t bytes, const char *what);

/* Makes *image of a checked size, rows without gaps, uncleared. working_bytes: what the decoder holds
   besides; it, the picture and the file together must keep to max_memory_bytes. On failure *image is
   untouched. HS_ERR_LIMIT, HS_ERR_MEMORY. */
hs_status image_allocate(const image_request *request, int32_t width, int32_t height, hs_sample_type type,
                         hs_pixel_layout layout, uint64_t working_bytes, hs_image *image);

/* Makes a picture of the library's smaller, by exact area averaging, so that its larger side has `largest_wanted` pixels;
   0, or a picture that fits: leaves it. On failure *image is as it was. HS_ERR_LIMIT, HS_ERR_MEMORY. */
hs_status image_shrink(const image_request *request, int32_t largest_wanted, hs_image *image);

/* A mask of the original's size (8-bit gray) as each pixel of a picture that was made smaller sees it at its centre, into
   pixels[width * height of that picture]. */
void mask_shrink(const hs_image *mask, const hs_image *picture, uint8_t *pixels);

/* ---- decoding.c */

/* Whether the caller gave a value range. */
bool image_has_range(const image_request *request);

/* The least and the greatest sample so far; low > high: none yet. NaN in any of them makes both NaN. */
typedef struct sample_extremes {
  double low, high;
} sample_extremes;

/* Takes in `count` samples. */
void extremes_add(sample_extremes *extremes, const void *samples, size_t count, hs_sample_type type);

/* Samples of 8 or 16 bits as floats of the same value. */
void range_widen(const void *samples, size_t count, hs_sample_type type, float *floats);

/* Checks the extremes of a picture whose samples have this type. With a range given or declared: whether the samples
   fit it (HS_ERR_ARGUMENT, without a range given HS_ERR_UNSUPPORTED); else notes a low range. */
hs_status range_check(const image_request *request, const sample_extremes *extremes, hs_sample_type type);

/* Brings a decoded picture into the value range that was given or declared: 16 bits stretched to it, or floats with it.
   On failure *image is as it was. HS_ERR_ARGUMENT, HS_ERR_UNSUPPORTED, HS_ERR_LIMIT, HS_ERR_MEMORY. */
hs_status image_apply_range(const image_request *request, hs_image *image);

/* Channels of a layout; bytes of a sample. */
size_t image_channels(hs_pixel_layout layout);
size_t image_sample_bytes(hs_sample_type type);

/* ---- bytes of a file for a decoder that takes them in order: all in memory, or read from the file as they are wanted */

enum { BYTE_SOURCE_READ = 64 << 10 }; /* bytes of a file that are in memory at once */

typedef struct byte_source {
  const uint8_t *next; /* left bytes are here */
  size_t left;
  FILE *stream;    /* null: there are no others */
  uint8_t *buffer; /* of the stream: BYTE_SOURCE_READ bytes */
  int error;       /* errno of the read that failed; else 0 */
} byte_source;

/* The request's bytes, all of them. */
byte_source byte_source_of(const image_request *request);

/* When none are left: the next ones of the stream. False: there are no more, or error says why they cannot be had. */
bool byte_source_fill(byte_source *source);

/* ---- readers: each makes *image, or leaves it untouched and explains itself in the message */

hs_status image_read_png(const image_request *request, hs_image *image);
hs_status image_read_jpeg(const image_request *request, hs_image *image);
hs_status image_read_pnm(const image_request *request, hs_image *image);
hs_status image_read_tiff(const image_request *request, hs_image *image);
hs_status image_read_webp(const image_request *request, hs_image *image);
hs_status image_read_bmp(const image_request *request, hs_image *image);

/* Whether a file begins as a BMP: two letters alone would be too little. */
bool bmp_is_header(const uint8_t *bytes, size_t size);

/* Leaves a JPEG that a GPU may decode as it is: *loaded becomes a view of the request's bytes. False: it is to be decoded
   here, for whatever reason. */
bool image_keep_jpeg(const image_request *request, hs_source *loaded);

/* ---- load.c */

/* hs_load_image; *need: null, or what a picture takes whose size is known and that does not fit, else left as it is. */
hs_status image_load(const char *path, const hs_load_options *options, image_need *need, hs_image *image);

/* What is wrong with a source of rows before any is read. Statuses: HS_ERR_ARGUMENT, HS_ERR_IMAGE, HS_ERR_LIMIT,
   HS_ERR_UNSUPPORTED. */
hs_status source_rows_check(const image_request *request, const hs_source *source);
#define SOURCE_ROWS_FAILED "reading its rows ended with %s"

/* How files of two kinds begin. */
bool image_is_png(const uint8_t *bytes, size_t size);
bool image_is_jpeg(const uint8_t *bytes, size_t size);

/* Whether a name without only_files stands for standard input or a scene. */
bool image_is_no_file(const char *name);

/* Whether a path leads to a file that can be read more than once: a pipe's bytes are gone. */
bool image_is_regular_file(const char *path);

/* Takes over a caller's options; null: the defaults. Clears what the caller gets of tags and notes, and *found.
   HS_ERR_OPTION. */
hs_status image_request_make(const hs_load_options *options, const char *name, image_findings *found,
                             image_request *request);

/* Opens the file that the request names. *expected_bytes: of a regular file, only a hint; else 0. HS_ERR_IO. */
hs_status image_open_file(const image_request *request, FILE **stream, size_t *expected_bytes);

/* Takes over a caller's options, complete; null: the defaults. HS_ERR_OPTION: reason says why not, and what both know
   of is in *mine nevertheless. */
hs_status load_options_take(const hs_load_options *options, hs_load_options *mine, char reason[ADOPT_REASON_BYTES]);

/* Reads a stream to its end, or until its first bytes show that it is no image. *bytes: from request->allocator, to be
   released also on failure. HS_ERR_MEMORY, HS_ERR_LIMIT (max_memory_bytes), HS_ERR_IO. */
hs_status image_read_stream(const image_request *request, FILE *stream, uint8_t **bytes, size_t *size);

/* ---- decoding.c, continued */

/* Converts a row of `count` pixels with 1 (gray), 2 (gray, alpha), 3 (RGB) or 4 (RGB, alpha) channels
   to layout HS_GRAY or HS_RGB (HS_RGB only from 3 or 4 channels): alpha is dropped, colour becomes
   gray as hartsift.h defines it. Samples: uint8_t, native uint16_t or float. source and target are apart. */
void gray_convert_row(const void *source, size_t source_channels, hs_sample_type type, size_t count, void *target,
                      hs_pixel_layout target_layout);

/* ---- exif.c */

/* What an APP1 segment says; NaN where it says nothing, or nothing that can be meant. */
typedef struct exif_tags {
  int orientation; /* 1..8; 1 where there is none */
  double focal_length_mm, focal_length_35mm;
  double plane_resolution, plane_unit; /* FocalPlaneXResolution and its unit's number */
  double pixel_width, pixel_height;    /* of the picture that the camera wrote */
  double latitude, longitude;          /* degrees, WGS 84, north and east above 0 */
  double altitude;                     /* metres above sea level */
} exif_tags;

/* Reads the payload of an APP1 segment, which is not trusted. False: no EXIF; *tags then says nothing. */
bool exif_parse(const uint8_t *app1, size_t size, exif_tags *tags);
/* The same of the TIFF structure alone, without the signature of a JPEG's segment before it. */
bool exif_parse_tiff(const uint8_t *bytes, size_t size, exif_tags *tags);
/* The same of the directory at this offset; what it does not point to is taken from the first one. */
bool exif_parse_page(const uint8_t *bytes, size_t size, uint64_t directory, exif_tags *tags);
/* The first number of a tag in the directory at this offset; NaN: there is none, or the file is a BigTIFF. */
double exif_page_number(const uint8_t *bytes, size_t size, uint64_t directory, uint32_t tag);

/* Fills request->exif, unless null, for a decoded picture. stored_side: as below. */
void exif_give(const image_request *request, const exif_tags *tags, double stored_side, const hs_image *image);

/* The focal length in pixels of a picture decoded as width x height, by COLMAP's rule: from the 35 mm equivalent by the
   picture's diagonal, else from FocalLength and the resolution of the focal plane. stored_side: the larger side of the
   file's picture. 0: not known. */
double exif_focal_length(const exif_tags *tags, double stored_side, int32_t width, int32_t height);

/* Where the pixels of a stored picture go in the picture as it is to be seen. */
typedef struct exif_placement {
  int32_t width, height;    /* of the picture to be seen */
  ptrdiff_t start;          /* pixel index there of the stored pixel (0, 0) */
  ptrdiff_t step_x, step_y; /* change of that index for the next stored column and row */
} exif_placement;

/* orientation 1..8; anything else counts as 1. */
exif_placement exif_place(int orientation, int32_t stored_width, int32_t stored_height);

/* Puts stored row `row` of `count` pixels into the picture (rows without gaps). */
void exif_put_row(const exif_placement *placement, int32_t row, const uint8_t *pixels, size_t count, size_t pixel_bytes,
                  uint8_t *picture);

/* Reads the tags of the first eXIf chunk of a PNG. stream: the file, whose position stays; null: the request has the
   bytes. *found: false where there is no such chunk, or none that can be read. Statuses: HS_ERR_MEMORY. */
hs_status png_exif_read(const image_request *request, FILE *stream, bool *found, exif_tags *tags);

/* ---- scene.c: the generated picture of "@scene" names and hs_render_scene, an endless plane of overlapping discs whose
   pixels are the same on every machine */

/* Largest width and height of a rendered scene, pixels. */
enum { SCENE_MAX_SIDE = 30000 };

/* Reads "@scene", "@scene:WxH" or "@scene:WxH:SEED" (sides 1..SCENE_MAX_SIDE, seed 0..2^32-1, decimal
   digits only). Returns 1 and sets all three (defaults 640, 480, 1); 0 when `name` does not begin with
   "@scene" followed by ':' or its end (so it is a file name); -1 when what follows is malformed. The
   outputs are written only for 1. */
int scene_parse_name(const char *name, int32_t *width, int32_t *height, uint32_t *seed);

/* ---- image_rows.c: a picture read row by row, for a frame that does not hold it: PNG that is not interlaced, and JPEG of
   one scan that need not be turned. Any other is decoded as a whole. */

typedef struct image_rows image_rows;

/* Who reads the rows of a kind of file. */
typedef struct image_rows_kind {
  /* Makes the decoder and reads the header: width, height, type, working_bytes. whole is set where rows are no use. On
     failure too it has to be ended. */
  hs_status (*begin)(image_rows *rows);
  /* The next row, as gray; after the last, whether anything was missing. */
  hs_status (*read)(image_rows *rows, uint8_t *row);
  void (*end)(image_rows *rows);
} image_rows_kind;

struct image_rows {
  image_request request;       /* with the file's size; bytes null where they are read as they are wanted */
  const image_rows_kind *kind; /* null: not open */
  void *decoder;               /* the kind's; null: none */
  byte_source bytes;           /* for the decoder to take over as it begins */
  FILE *stream;
  uint8_t *buffer;
  int32_t width, height;
  hs_sample_type type;    /* that rows are given in */
  uint64_t working_bytes; /* that decoding holds in addition to the row */
  bool whole;             /* the picture must be decoded as a whole */
  hs_sample_type stored;  /* as the kind reads them; type is HS_F32 with a value range that was given */
  image_findings found;
  sample_extremes extremes; /* of the rows read */
  uint8_t *samples;         /* a row of `stored`, where type is another; else null */
  int32_t next;             /* row */
};

/* Opens a file by its name, or (path null) its bytes, with the options of loading. Of HS_OK without rows->kind, and of any
   failure, nothing is left, and hs_load_image says what there is to say. */
hs_status image_rows_open(image_rows *rows, const char *path, const void *bytes, size_t size,
                          const hs_load_options *load);

/* The next row, of width gray samples of rows->type; fewer than height have been read. Statuses: as hs_load_image. */
hs_status image_rows_read(image_rows *rows, uint8_t *row);

/* The next row is the first again. Statuses: as hs_load_image. */
hs_status image_rows_rewind(image_rows *rows);

/* Closes what is open; {0} is allowed. */
void image_rows_close(image_rows *rows);

/* Null: built without the library that it needs. */
const image_rows_kind *image_rows_of_png(void);
const image_rows_kind *image_rows_of_jpeg(void);

#endif
