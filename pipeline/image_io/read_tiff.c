/*
 * Reads TIFF with libtiff: the first picture of a file that is not a reduced copy. Gray, RGB, CMYK or palette; samples
 * of 8 or 16 bits (gray and palette also 1, 2 and 4; gray and RGB also signed, 32 bits, and floats); strips or tiles,
 * interleaved or planar; any compression that the installed libtiff supports. Extra samples such as alpha are dropped.
 * The orientation, whose numbers are those of EXIF, is applied.
 */
#include "pipeline/image_io/image_io.h"

#if HARTSIFT_HAVE_TIFF

#  include <float.h>
#  include <math.h>
#  include <string.h>
#  include <tiffio.h>

#  include "pipeline/base/memory.h"

enum {
  READ_TIFF_DECODER_BYTES = 1 << 20, /* size of libtiff's state, rounded up; a strip or tile is counted separately */
  READ_TIFF_PALETTE = 256,
  READ_TIFF_SAMPLES_MAX = 16,
  READ_TIFF_CHOSEN_BYTES = 24, /* bytes per pixel of `chosen`: twice three floats */
  READ_TIFF_CMYK = 4,
  READ_TIFF_LINEAR_RAW = 34892 /* PhotometricInterpretation of DNG, which older headers of libtiff lack */
};

/* ---- selection of the page: the first one, unless the file marks it as a reduced copy */

enum {
  TIFF_PAGES_MAX = 64,    /* maximum number of pages that are examined */
  TIFF_SUB_PAGES_MAX = 32 /* maximum number of directories in a page's tag SubIFDs */
};

typedef struct tiff_page {
  uint64_t pixels;
  bool is_reduced, is_mask;
} tiff_page;

/* Search for the first page that is not a reduced copy and has at least least_pixels pixels. */
typedef struct page_search {
  const image_request *request;
  TIFF *tiff;
  uint64_t least_pixels;
  uint64_t offset; /* offset of the page's directory; 0: not found yet */
} page_search;

/* Returns the type of the current page. libtiff does not provide the old tag SubfileType. */
static tiff_page page_of(const image_request *request, TIFF *tiff) {
  uint32_t width = 0, height = 0, kind = 0;
  const double old = exif_page_number(request->bytes, request->size, TIFFCurrentDirOffset(tiff), TIFFTAG_OSUBFILETYPE);
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  TIFFGetField(tiff, TIFFTAG_SUBFILETYPE, &kind);
  const bool is_reduced = (kind & FILETYPE_REDUCEDIMAGE) != 0 || old == (double)OFILETYPE_REDUCEDIMAGE;
  return (tiff_page){(uint64_t)width * height, is_reduced, (kind & FILETYPE_MASK) != 0};
}

static bool has_tag(TIFF *tiff, uint32_t tag) {
  void *value = NULL;
  return TIFFGetField(tiff, tag, &value) != 0;
}

/* Copies the offsets of sub-directories, because libtiff frees them when it reads another directory. */
static uint16_t sub_pages(TIFF *tiff, uint64_t offsets[TIFF_SUB_PAGES_MAX]) {
  uint16_t count = 0;
  uint64_t *from = NULL;
  if (!TIFFGetField(tiff, TIFFTAG_SUBIFD, &count, &from) || !from) return 0;
  if (count > TIFF_SUB_PAGES_MAX) count = TIFF_SUB_PAGES_MAX;
  memcpy(offsets, from, count * sizeof *offsets);
  return count;
}

/* Considers the current directory, unless a page has been chosen. */
static void consider(page_search *search) {
  const tiff_page page = page_of(search->request, search->tiff);
  if (search->offset == 0 && !page.is_reduced && !page.is_mask && page.pixels >= search->least_pixels)
    search->offset = TIFFCurrentDirOffset(search->tiff);
}

static void consider_sub_pages(page_search *search) {
  uint64_t offsets[TIFF_SUB_PAGES_MAX];
  const uint16_t count = sub_pages(search->tiff, offsets);
  for (uint16_t i = 0; i < count; i++)
    if (TIFFSetSubDirectory(search->tiff, offsets[i])) consider(search);
}

/* Searches all pages after the first, and the sub-directories of each. */
static void look_through(page_search *search, bool first_only) {
  for (uint16_t page = 0; page < TIFF_PAGES_MAX && TIFFSetDirectory(search->tiff, page); page++) {
    if (page > 0) consider(search);
    consider_sub_pages(search);
    if (first_only) break;
  }
}

/* Finds the page of the full picture. *offset: offset of its directory; 0: the first page, which is current. Reads
   other pages meanwhile. Statuses: HS_ERR_UNSUPPORTED (only reduced copies), HS_ERR_FORMAT. */
static hs_status tiff_page_find(const image_request *request, TIFF *tiff, uint64_t *offset) {
  const tiff_page first = page_of(request, tiff);
  const bool is_raw = has_tag(tiff, TIFFTAG_DNGVERSION);
  const bool is_extra = first.is_reduced || first.is_mask; /* a file that has only a mask is accepted */
  page_search search = {.request = request, .tiff = tiff, .least_pixels = is_extra ? 1 : first.pixels + 1};
  uint64_t offsets[TIFF_SUB_PAGES_MAX];
  *offset = 0;
  if (!is_extra && !is_raw && sub_pages(tiff, offsets) == 0) return HS_OK;
  look_through(&search, !is_extra && !is_raw);
  *offset = search.offset;
  if (search.offset != 0) return HS_OK;
  if (first.is_reduced)
    return image_fail(request, HS_ERR_UNSUPPORTED,
                      is_raw ? "DNG with reduced copies only: develop its raw data into a TIFF or JPEG first"
                             : "TIFF whose pages are all reduced copies of a picture that is not in the file");
  return TIFFSetDirectory(tiff, 0)
             ? HS_OK
             : image_fail(request, HS_ERR_FORMAT, "damaged TIFF: its first page cannot be read again");
}

/* ---- pixels of a page */

/* Format of a sample in the file. */
typedef enum tiff_sample {
  TIFF_PLAIN,
  TIFF_INT8,
  TIFF_INT16,
  TIFF_INT32,
  TIFF_UINT32,
  TIFF_FLOAT32,
  TIFF_FLOAT64
} tiff_sample;

typedef struct read_tiff_state {
  const image_request *request;
  TIFF *tiff;
  uint64_t at; /* read position in the file */
  uint32_t width, height;
  uint16_t bits, samples, photometric, planar, orientation, format;
  tiff_sample sample;  /* TIFF_PLAIN: unsigned with up to 16 bits; all other samples become floats */
  hs_sample_type type; /* sample type of the picture */
  bool is_searching;   /* the page is being searched for */
  bool tiled;
  uint32_t band_rows; /* number of rows that are decoded before they are converted */
  uint32_t tile_width, tile_rows;
  size_t sample_bytes, channels; /* bytes of a sample in the file (whole bytes); number of converted channels, 1 or 3 */
  size_t kept;                   /* samples per pixel in the band; of separate planes, only the needed ones are read */
  uint8_t palette[READ_TIFF_PALETTE][3];
  exif_placement placement;
  uint8_t *band;   /* band_rows x width x kept samples of whole bytes, interleaved */
  uint8_t *piece;  /* one row or tile from libtiff */
  uint8_t *chosen; /* one row of `channels` samples, and its converted row */
  size_t piece_bytes;
  hs_image image;
  char reason[IMAGE_REASON_BYTES];
} read_tiff_state;

/* ---- callbacks of libtiff */

__attribute__((format(printf, 2, 0))) static void read_tiff_note(const read_tiff_state *s, const char *format,
                                                                 va_list arguments) {
  char text[IMAGE_REASON_BYTES];
  va_list again;
  va_copy(again, arguments);
  vsnprintf(text, sizeof text, format, again);
  va_end(again);
  image_note_damage(s->request, "libtiff: %s", text);
}

static int read_tiff_on_error(TIFF *tiff, void *user, const char *module, const char *format, va_list arguments) {
  read_tiff_state *s = user;
  (void)tiff;
  (void)module;
  if (s->is_searching) return 1;
  read_tiff_note(s, format, arguments);
  if (s->reason[0] == '\0') vsnprintf(s->reason, sizeof s->reason, format, arguments);
  return 1;
}

static int read_tiff_on_warning(TIFF *tiff, void *user, const char *module, const char *format, va_list arguments) {
  const read_tiff_state *s = user;
  (void)tiff;
  (void)module;
  /* unknown tags are no damage */
  if (!s->is_searching && !strstr(format, "Unknown field")) read_tiff_note(s, format, arguments);
  return 1;
}

static tmsize_t read_tiff_on_read(thandle_t handle, void *target, tmsize_t bytes) {
  read_tiff_state *s = handle;
  const uint64_t there = s->at < s->request->size ? s->request->size - s->at : 0;
  const size_t taken = bytes <= 0 ? 0 : (uint64_t)bytes < there ? (size_t)bytes : (size_t)there;
  if (taken > 0) memcpy(target, s->request->bytes + s->at, taken);
  s->at += taken;
  return (tmsize_t)taken;
}

static tmsize_t read_tiff_on_write(thandle_t handle, void *source, tmsize_t bytes) {
  (void)handle;
  (void)source;
  (void)bytes;
  return 0;
}

static toff_t read_tiff_on_seek(thandle_t handle, toff_t offset, int whence) {
  read_tiff_state *s = handle;
  s->at = whence == SEEK_SET ? offset : whence == SEEK_CUR ? s->at + offset : s->request->size + offset;
  return s->at;
}

static int read_tiff_on_close(thandle_t handle) {
  (void)handle;
  return 0;
}

static toff_t read_tiff_on_size(thandle_t handle) { return ((const read_tiff_state *)handle)->request->size; }

static TIFF *read_tiff_open(read_tiff_state *s) {
  /* This is a second limit: image_allocate counts the decoder's memory in the first one. */
  const uint64_t limit = machine_memory_limit(s->request->max_memory_bytes);
  const uint64_t most = limit > READ_TIFF_DECODER_BYTES ? limit : READ_TIFF_DECODER_BYTES;
  TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
  if (!options) return NULL;
  TIFFOpenOptionsSetErrorHandlerExtR(options, read_tiff_on_error, s);
  TIFFOpenOptionsSetWarningHandlerExtR(options, read_tiff_on_warning, s);
  if (most < INT32_MAX) TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)most);
  /* "m": no memory mapping; "r": read only */
  TIFF *tiff = TIFFClientOpenExt("TIFF", "rm", s, read_tiff_on_read, read_tiff_on_write, read_tiff_on_seek,
                                 read_tiff_on_close, read_tiff_on_size, NULL, NULL, options);
  TIFFOpenOptionsFree(options);
  return tiff;
}

/* ---- header */

static hs_status read_tiff_damaged(const read_tiff_state *s, const char *otherwise) {
  return image_fail(s->request, HS_ERR_FORMAT, "damaged TIFF: %s", s->reason[0] != '\0' ? s->reason : otherwise);
}

static bool read_tiff_is_cmyk(const read_tiff_state *s) {
  uint16_t inks = INKSET_CMYK;
  TIFFGetFieldDefaulted(s->tiff, TIFFTAG_INKSET, &inks);
  return s->photometric == PHOTOMETRIC_SEPARATED && inks == INKSET_CMYK;
}

/* Chooses the format of samples. False: unsupported. */
static bool read_tiff_choose_sample(read_tiff_state *s) {
  const bool is_unsigned = s->format == SAMPLEFORMAT_UINT || s->format == SAMPLEFORMAT_VOID;
  static const struct {
    uint16_t format, bits;
    tiff_sample sample;
  } wide[] = {{SAMPLEFORMAT_INT, 8, TIFF_INT8},        {SAMPLEFORMAT_INT, 16, TIFF_INT16},
              {SAMPLEFORMAT_INT, 32, TIFF_INT32},      {SAMPLEFORMAT_UINT, 32, TIFF_UINT32},
              {SAMPLEFORMAT_IEEEFP, 32, TIFF_FLOAT32}, {SAMPLEFORMAT_IEEEFP, 64, TIFF_FLOAT64}};
  s->sample = TIFF_PLAIN;
  for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
    if (wide[i].format == s->format && wide[i].bits == s->bits) s->sample = wide[i].sample;
  const bool levels = s->photometric == PHOTOMETRIC_MINISBLACK || s->photometric == PHOTOMETRIC_RGB;
  return s->sample == TIFF_PLAIN ? is_unsigned : levels;
}

/* Refuses a camera's raw file. Only its previews could be decoded, and those are reduced copies. */
static hs_status read_tiff_refuse_raw(const read_tiff_state *s) {
  return image_fail(s->request, HS_ERR_UNSUPPORTED,
                    "TIFF with a camera's raw data (as DNG and NEF have): develop it into a TIFF or JPEG first");
}

static hs_status read_tiff_check_kind(const read_tiff_state *s, bool has_samples, uint16_t compression) {
  const bool colour = s->photometric == PHOTOMETRIC_RGB, palette = s->photometric == PHOTOMETRIC_PALETTE;
  const bool cmyk = read_tiff_is_cmyk(s);
  const bool gray = s->photometric == PHOTOMETRIC_MINISBLACK || s->photometric == PHOTOMETRIC_MINISWHITE;
  const bool small = s->bits == 1 || s->bits == 2 || s->bits == 4;
  if (s->photometric == PHOTOMETRIC_CFA || s->photometric == READ_TIFF_LINEAR_RAW) return read_tiff_refuse_raw(s);
  if (compression == COMPRESSION_OJPEG || !TIFFIsCODECConfigured(compression))
    return image_fail(s->request, HS_ERR_UNSUPPORTED, "TIFF with compression %u, which this libtiff does not support",
                      (unsigned)compression);
  if (!gray && !colour && !palette && !cmyk)
    return image_fail(s->request, HS_ERR_UNSUPPORTED,
                      "TIFF with colours of kind %u: gray, RGB, CMYK and palettes are read", (unsigned)s->photometric);
  if (!has_samples)
    return image_fail(
        s->request, HS_ERR_UNSUPPORTED,
        "TIFF with samples of format %u and %u bits: unsigned integers are read, and of gray and RGB signed "
        "ones and floats",
        (unsigned)s->format, (unsigned)s->bits);
  const bool fits =
      s->samples <= READ_TIFF_SAMPLES_MAX && (s->sample != TIFF_PLAIN || s->bits == 8 || (s->bits == 16 && !palette) ||
                                              (small && !colour && !cmyk && s->samples == 1));
  if (!fits)
    return image_fail(s->request, HS_ERR_UNSUPPORTED, "TIFF with %u samples of %u bits a pixel", (unsigned)s->samples,
                      (unsigned)s->bits);
  if (s->samples < (cmyk ? READ_TIFF_CMYK : colour ? 3 : 1)) return read_tiff_damaged(s, "too few samples a pixel");
  return HS_OK;
}

/* True if the file is too short even at its compression's best ratio. False if that ratio is unknown. */
static bool read_tiff_is_too_short(const read_tiff_state *s, uint16_t compression) {
  static const struct {
    uint16_t compression, ratio;
  } known[] = {{COMPRESSION_NONE, 1},
               {COMPRESSION_PACKBITS, 64},
               {COMPRESSION_LZW, 2800},
               {COMPRESSION_DEFLATE, 1032},
               {COMPRESSION_ADOBE_DEFLATE, 1032}};
  const uint64_t row = (uint64_t)s->width * s->samples * s->bits / 8;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (known[i].compression == compression) return row / known[i].ratio > s->request->size / s->height + 1;
  return false;
}

static bool read_tiff_has_planes(const read_tiff_state *s) {
  return s->planar == PLANARCONFIG_SEPARATE && s->samples > 1;
}

/* Reads the palette, whose entries have 16 bits; some writers use only 8. */
static hs_status read_tiff_palette(read_tiff_state *s) {
  uint16_t *map[3];
  uint16_t largest = 0;
  if (s->photometric != PHOTOMETRIC_PALETTE) return HS_OK;
  if (!TIFFGetField(s->tiff, TIFFTAG_COLORMAP, &map[0], &map[1], &map[2]))
    return read_tiff_damaged(s, "the palette is missing");
  const size_t count = (size_t)1 << s->bits;
  for (size_t i = 0; i < 3 * count; i++) largest = map[i % 3][i / 3] > largest ? map[i % 3][i / 3] : largest;
  for (size_t i = 0; i < 3 * count; i++)
    s->palette[i / 3][i % 3] = (uint8_t)(largest < 256 ? map[i % 3][i / 3] : map[i % 3][i / 3] >> 8);
  return HS_OK;
}

/* True if floats can represent a range and its width; otherwise the range is meaningless. */
static bool read_tiff_range_holds(double low, double high) {
  return low >= -1.0e38 && high <= 1.0e38 && (float)low < (float)high;
}

/* Reads the sample values of black and white that the file declares, for 16-bit, signed and float samples. */
static void read_tiff_declared(const read_tiff_state *s) {
  uint16_t low = 0, high = 0;
  double least = 0.0, most = 0.0;
  image_findings *found = s->request->found;
  const bool levels = s->photometric == PHOTOMETRIC_MINISBLACK || s->photometric == PHOTOMETRIC_MINISWHITE ||
                      s->photometric == PHOTOMETRIC_RGB;
  if (!found || !levels || (s->sample == TIFF_PLAIN && s->bits != 16)) return;
  if (s->sample != TIFF_PLAIN && TIFFGetField(s->tiff, TIFFTAG_SMAXSAMPLEVALUE, &most) &&
      TIFFGetField(s->tiff, TIFFTAG_SMINSAMPLEVALUE, &least) && read_tiff_range_holds(least, most)) {
    found->declared_low = least;
    found->declared_high = most;
  }
  if (s->sample == TIFF_PLAIN && TIFFGetField(s->tiff, TIFFTAG_MAXSAMPLEVALUE, &high)) {
    TIFFGetField(s->tiff, TIFFTAG_MINSAMPLEVALUE, &low);
    const bool flips = s->photometric == PHOTOMETRIC_MINISWHITE;
    found->declared_low = flips ? 65535.0 - high : low;
    found->declared_high = flips ? 65535.0 - low : high;
  }
}

/* Checks that a range is known. Floats without one use 0 to 1; signed and 32-bit samples need a given range. */
static hs_status read_tiff_check_range(const read_tiff_state *s) {
  const image_findings *found = s->request->found;
  const bool is_known = image_has_range(s->request) || (found && found->declared_low < found->declared_high);
  if (is_known || s->sample == TIFF_PLAIN || s->sample >= TIFF_FLOAT32) return HS_OK;
  return image_fail(s->request, HS_ERR_UNSUPPORTED,
                    "TIFF with %s integers of %u bits: give a value range, the samples that are black and white",
                    s->sample == TIFF_UINT32 ? "unsigned" : "signed", (unsigned)s->bits);
}

static hs_status read_tiff_page(read_tiff_state *s) {
  uint64_t offset = 0;
  s->is_searching = true;
  const hs_status status = tiff_page_find(s->request, s->tiff, &offset);
  s->is_searching = false;
  if (status != HS_OK || offset == 0) return status;
  return TIFFSetSubDirectory(s->tiff, offset) ? HS_OK : read_tiff_damaged(s, "its full page cannot be read");
}

static hs_status read_tiff_size(const read_tiff_state *s, uint32_t *width, uint32_t *height) {
  if (!TIFFGetField(s->tiff, TIFFTAG_IMAGEWIDTH, width) || !TIFFGetField(s->tiff, TIFFTAG_IMAGELENGTH, height))
    return read_tiff_damaged(s, "it has no size");
  return image_check_size(s->request, *width, *height);
}

static hs_status read_tiff_header(read_tiff_state *s) {
  uint16_t compression = COMPRESSION_NONE;
  hs_status status = read_tiff_page(s);
  if (status == HS_OK) status = read_tiff_size(s, &s->width, &s->height);
  if (status != HS_OK) return status;
  if (!TIFFGetField(s->tiff, TIFFTAG_PHOTOMETRIC, &s->photometric))
    return read_tiff_damaged(s, "its colours are unknown");
  TIFFGetFieldDefaulted(s->tiff, TIFFTAG_BITSPERSAMPLE, &s->bits);
  TIFFGetFieldDefaulted(s->tiff, TIFFTAG_SAMPLESPERPIXEL, &s->samples);
  TIFFGetFieldDefaulted(s->tiff, TIFFTAG_PLANARCONFIG, &s->planar);
  TIFFGetFieldDefaulted(s->tiff, TIFFTAG_SAMPLEFORMAT, &s->format);
  TIFFGetFieldDefaulted(s->tiff, TIFFTAG_COMPRESSION, &compression);
  TIFFGetFieldDefaulted(s->tiff, TIFFTAG_ORIENTATION, &s->orientation);
  if (compression == COMPRESSION_JPEG && s->photometric == PHOTOMETRIC_YCBCR) {
    TIFFSetField(s->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    s->photometric = PHOTOMETRIC_RGB;
  }
  status = read_tiff_check_kind(s, read_tiff_choose_sample(s), compression);
  if (status == HS_OK && read_tiff_is_too_short(s, compression))
    status = read_tiff_damaged(s, "the file is too short for the size it claims");
  if (status == HS_OK) status = read_tiff_palette(s);
  read_tiff_declared(s);
  if (status == HS_OK) status = read_tiff_check_range(s);
  if (!s->request->apply_exif) s->orientation = 1;
  s->placement = exif_place(s->orientation, (int32_t)s->width, (int32_t)s->height);
  s->sample_bytes = s->bits >= 8 ? s->bits / 8u : 1;
  s->type = s->sample != TIFF_PLAIN ? HS_F32 : s->bits == 16 ? HS_U16 : HS_U8;
  const bool cmyk = s->photometric == PHOTOMETRIC_SEPARATED, colour = cmyk || s->photometric == PHOTOMETRIC_RGB;
  s->channels = colour || s->photometric == PHOTOMETRIC_PALETTE ? 3 : 1;
  s->kept = s->samples;
  if (read_tiff_has_planes(s)) s->kept = cmyk ? READ_TIFF_CMYK : colour ? 3 : 1;
  return status;
}

/* ---- memory */

static hs_status read_tiff_allocate(read_tiff_state *s) {
  const image_request *request = s->request;
  const hs_pixel_layout layout = request->keep_colour && s->channels == 3 ? HS_RGB : HS_GRAY;
  s->tiled = TIFFIsTiled(s->tiff) != 0;
  s->band_rows = read_tiff_has_planes(s) ? s->height : 1;
  if (s->tiled) {
    if (!TIFFGetField(s->tiff, TIFFTAG_TILEWIDTH, &s->tile_width) ||
        !TIFFGetField(s->tiff, TIFFTAG_TILELENGTH, &s->tile_rows) || s->tile_width == 0 || s->tile_rows == 0)
      return read_tiff_damaged(s, "its tiles have no size");
    s->band_rows = s->tile_rows < s->height ? s->tile_rows : s->height;
  }
  const tmsize_t piece = s->tiled ? TIFFTileSize(s->tiff) : TIFFScanlineSize(s->tiff);
  const tmsize_t strip = s->tiled ? piece : TIFFStripSize(s->tiff);
  if (piece <= 0 || strip <= 0) return read_tiff_damaged(s, "its parts have no size");
  s->piece_bytes = (size_t)piece;
  const uint64_t pixels = (uint64_t)s->band_rows * s->width, pixel = (uint64_t)s->kept * s->sample_bytes;
  if (pixels > UINT64_MAX / 256) /* a pixel has at most 128 bytes */
    return image_fail(request, HS_ERR_LIMIT, "the picture is too large for the address space");
  const uint64_t working =
      pixels * pixel + (uint64_t)piece + (uint64_t)strip + READ_TIFF_CHOSEN_BYTES * (uint64_t)s->width;
  const hs_status status = image_allocate(request, s->placement.width, s->placement.height, s->type, layout,
                                          working + READ_TIFF_DECODER_BYTES, &s->image);
  if (status != HS_OK) return status;
  s->band = hs_memory_alloc(request->allocator, (size_t)(pixels * pixel));
  s->piece = hs_memory_alloc(request->allocator, s->piece_bytes);
  s->chosen = hs_memory_alloc(request->allocator, READ_TIFF_CHOSEN_BYTES * (size_t)s->width);
  if (!s->band || !s->piece || !s->chosen)
    return image_fail(request, HS_ERR_MEMORY, "out of memory for the TIFF's rows");
  return HS_OK;
}

/* ---- pixels */

/* Copies `count` pixels of a piece, which begin at a byte, to a row of the band at column x. plane: index of the plane,
   0 if interleaved. Samples below 8 bits are unpacked but not scaled. */
static void read_tiff_put(const read_tiff_state *s, const uint8_t *from, uint32_t row, uint32_t x, uint32_t count,
                          uint16_t plane) {
  const size_t pixel = s->kept * s->sample_bytes;
  uint8_t *to = s->band + ((size_t)row * s->width + x) * pixel + plane * s->sample_bytes;
  if (s->bits < 8)
    for (size_t i = 0; i < count; i++)
      to[i] = (uint8_t)(from[i * s->bits / 8] >> (8 - s->bits - i * s->bits % 8) & ((1 << s->bits) - 1));
  else if (!read_tiff_has_planes(s))
    memcpy(to, from, count * pixel);
  else
    for (size_t i = 0; i < count; i++) memcpy(to + i * pixel, from + i * s->sample_bytes, s->sample_bytes);
}

/* Converts a signed, 32-bit or float sample. */
static float read_tiff_float(tiff_sample kind, const uint8_t *from) {
  union {
    int8_t i8;
    int16_t i16;
    int32_t i32;
    uint32_t u32;
    float f32;
    double f64;
    uint8_t bytes[8];
  } value;
  static const uint8_t bytes[] = {1, 1, 2, 4, 4, 4, 8};
  memcpy(value.bytes, from, bytes[kind]);
  switch (kind) {
  case TIFF_INT8:
    return (float)value.i8;
  case TIFF_INT16:
    return (float)value.i16;
  case TIFF_INT32:
    return (float)value.i32;
  case TIFF_UINT32:
    return (float)value.u32;
  case TIFF_FLOAT64:
    return fabs(value.f64) <= (double)FLT_MAX ? (float)value.f64 : (float)NAN;
  case TIFF_FLOAT32:
  case TIFF_PLAIN:
    break;
  }
  return value.f32;
}

static void read_tiff_choose_floats(const read_tiff_state *s, const uint8_t *from) {
  float *to = (float *)(void *)s->chosen;
  for (size_t x = 0; x < s->width; x++, from += s->kept * s->sample_bytes)
    for (size_t k = 0; k < s->channels; k++) *to++ = read_tiff_float(s->sample, from + k * s->sample_bytes);
}

/* Converts CMYK to RGB: the product of the light that passes a colour's ink and the light that passes black. */
static void read_tiff_choose_cmyk(const read_tiff_state *s, const uint8_t *from) {
  uint16_t *words = (uint16_t *)(void *)s->chosen, inks[READ_TIFF_CMYK];
  for (size_t x = 0; x < s->width; x++, from += s->kept * s->sample_bytes) {
    if (s->bits == 16) memcpy(inks, from, sizeof inks);
    for (size_t k = 0; k < 3; k++)
      if (s->bits == 16)
        words[3 * x + k] = (uint16_t)(((65535u - inks[k]) * (uint64_t)(65535u - inks[3]) + 32767) / 65535);
      else
        s->chosen[3 * x + k] = (uint8_t)(((255u - from[k]) * (255u - from[3]) + 127) / 255);
  }
}

/* Converts a row of the band to s->channels samples: the palette's colours, or the first samples. White becomes the
   largest value. */
static void read_tiff_choose(const read_tiff_state *s, const uint8_t *from) {
  const size_t pixel = s->kept * s->sample_bytes, wanted = s->channels * s->sample_bytes;
  const unsigned full = s->bits < 8 ? 255u / ((1u << s->bits) - 1u) : 1u;
  const uint8_t flip = s->photometric == PHOTOMETRIC_MINISWHITE ? 255 : 0;
  uint8_t *to = s->chosen;
  for (size_t x = 0; x < s->width; x++, from += pixel, to += wanted) {
    if (s->photometric == PHOTOMETRIC_PALETTE)
      memcpy(to, s->palette[from[0]], 3);
    else
      for (size_t k = 0; k < wanted; k++) to[k] = (uint8_t)(from[k] * full) ^ flip;
  }
}

static void read_tiff_convert(const read_tiff_state *s, uint32_t first, uint32_t rows) {
  uint8_t *converted = s->chosen + READ_TIFF_CHOSEN_BYTES / 2 * (size_t)s->width;
  const size_t pixel_bytes = image_channels(s->image.layout) * image_sample_bytes(s->type);
  for (uint32_t r = 0; r < rows; r++) {
    const uint8_t *row = s->band + (size_t)r * s->width * s->kept * s->sample_bytes;
    if (s->sample != TIFF_PLAIN)
      read_tiff_choose_floats(s, row);
    else if (s->photometric == PHOTOMETRIC_SEPARATED)
      read_tiff_choose_cmyk(s, row);
    else
      read_tiff_choose(s, row);
    gray_convert_row(s->chosen, s->channels, s->image.type, s->width, converted, s->image.layout);
    exif_put_row(&s->placement, (int32_t)(first + r), converted, s->width, pixel_bytes,
                 (uint8_t *)(uintptr_t)s->image.data);
  }
}

static bool read_tiff_strips(read_tiff_state *s) {
  const uint16_t planes = read_tiff_has_planes(s) ? (uint16_t)s->kept : 1;
  for (uint16_t plane = 0; plane < planes; plane++)
    for (uint32_t y = 0; y < s->height; y++) {
      if (TIFFReadScanline(s->tiff, s->piece, y, plane) < 0) return false;
      read_tiff_put(s, s->piece, s->band_rows == 1 ? 0 : y, 0, s->width, plane);
      if (s->band_rows == 1) read_tiff_convert(s, y, 1);
    }
  if (s->band_rows != 1) read_tiff_convert(s, 0, s->height);
  return true;
}

static bool read_tiff_tile(read_tiff_state *s, uint32_t x, uint32_t y, uint16_t plane) {
  const uint32_t rows = s->height - y < s->tile_rows ? s->height - y : s->tile_rows;
  const uint32_t columns = s->width - x < s->tile_width ? s->width - x : s->tile_width;
  const size_t stride = (size_t)TIFFTileRowSize(s->tiff);
  if (TIFFReadTile(s->tiff, s->piece, x, y, 0, plane) < 0) return false;
  for (uint32_t r = 0; r < rows; r++) read_tiff_put(s, s->piece + r * stride, r, x, columns, plane);
  return true;
}

static bool read_tiff_tiles(read_tiff_state *s) {
  const uint16_t planes = read_tiff_has_planes(s) ? (uint16_t)s->kept : 1;
  for (uint64_t y = 0; y < s->height; y += s->tile_rows) {
    for (uint64_t x = 0; x < s->width; x += s->tile_width)
      for (uint16_t plane = 0; plane < planes; plane++)
        if (!read_tiff_tile(s, (uint32_t)x, (uint32_t)y, plane)) return false;
    const uint64_t left = s->height - y;
    read_tiff_convert(s, (uint32_t)y, left < s->tile_rows ? (uint32_t)left : s->tile_rows);
  }
  return true;
}

static hs_status read_tiff_decode(read_tiff_state *s) {
  hs_status status = read_tiff_header(s);
  if (status == HS_OK) status = read_tiff_allocate(s);
  if (status != HS_OK) return status;
  return (s->tiled ? read_tiff_tiles(s) : read_tiff_strips(s)) ? HS_OK : read_tiff_damaged(s, "it cannot be decoded");
}

hs_status image_read_tiff(const image_request *request, hs_image *image) {
  read_tiff_state s = {.request = request};
  exif_tags tags;
  s.tiff = read_tiff_open(&s);
  if (!s.tiff) return read_tiff_damaged(&s, "it cannot be opened");
  const hs_status status = read_tiff_decode(&s);
  const uint64_t directory = TIFFCurrentDirOffset(s.tiff);
  TIFFClose(s.tiff);
  hs_memory_release(request->allocator, s.band);
  hs_memory_release(request->allocator, s.piece);
  hs_memory_release(request->allocator, s.chosen);
  if (status != HS_OK) {
    hs_image_free(&s.image);
    return status;
  }
  if (exif_parse_page(request->bytes, request->size, directory, &tags))
    exif_give(request, &tags, (double)(s.width > s.height ? s.width : s.height), &s.image);
  *image = s.image;
  image->exif_orientation = s.orientation > 1 && s.orientation <= 8 ? s.orientation : 0;
  return HS_OK;
}

#else

hs_status image_read_tiff(const image_request *request, hs_image *image) {
  (void)image;
  return image_fail(request, HS_ERR_UNSUPPORTED, "built without TIFF support; install libtiff-dev and build again");
}

#endif
