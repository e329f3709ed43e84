/*
 * Reader of TIFF, on libtiff: the first picture of a file; gray, RGB or a palette, samples of 8 or 16 bits (of gray and
 * palettes also 1, 2 and 4), in strips or tiles, interleaved or in planes, in any compression of the libtiff at hand.
 * Further samples, alpha among them, are dropped; the orientation is applied as that of EXIF, which has the same numbers.
 */
#include "pipeline/image_io/image_io.h"

#if HARTSIFT_HAVE_TIFF

#  include <string.h>
#  include <tiffio.h>

#  include "pipeline/base/machine_memory.h"
#  include "pipeline/base/memory.h"

enum {
  READ_TIFF_DECODER_BYTES = 1 << 20, /* libtiff's own state, rounded up; a strip or tile is counted besides */
  READ_TIFF_PALETTE = 256,
  READ_TIFF_SAMPLES_MOST = 16
};

typedef struct read_tiff_state {
  const image_request *request;
  TIFF *tiff;
  uint64_t at; /* read position in the file */
  uint32_t width, height;
  uint16_t bits, samples, photometric, planar, orientation;
  bool tiled;
  uint32_t band_rows; /* rows that are decoded before they are converted */
  uint32_t tile_width, tile_rows;
  size_t sample_bytes, channels; /* of what is converted: 1 or 3 channels */
  size_t kept;                   /* samples of a pixel in the band: of planes only those that are wanted are read */
  uint8_t palette[READ_TIFF_PALETTE][3];
  exif_placement placement;
  uint8_t *band;   /* band_rows x width x kept, whole samples, interleaved */
  uint8_t *piece;  /* a row or a tile as libtiff gives it */
  uint8_t *chosen; /* a row of `channels`, and as many pixels as the picture wants them */
  size_t piece_bytes;
  hs_image image;
  char reason[IMAGE_REASON_BYTES];
} read_tiff_state;

/* ---- what libtiff calls */

static int read_tiff_on_error(TIFF *tiff, void *user, const char *module, const char *format, va_list arguments) {
  read_tiff_state *s = user;
  (void)tiff;
  (void)module;
  if (s->reason[0] == '\0') vsnprintf(s->reason, sizeof s->reason, format, arguments);
  return 1;
}

static int read_tiff_on_warning(TIFF *tiff, void *user, const char *module, const char *format, va_list arguments) {
  (void)tiff;
  (void)user;
  (void)module;
  (void)format;
  (void)arguments;
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
  /* A second line: the first is what image_allocate counts, the decoder's own memory among it. */
  const uint64_t limit = machine_memory_limit(s->request->max_memory_bytes);
  const uint64_t most = limit > READ_TIFF_DECODER_BYTES ? limit : READ_TIFF_DECODER_BYTES;
  TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
  if (!options) return NULL;
  TIFFOpenOptionsSetErrorHandlerExtR(options, read_tiff_on_error, s);
  TIFFOpenOptionsSetWarningHandlerExtR(options, read_tiff_on_warning, s);
  if (most < INT32_MAX) TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)most);
  /* m: no mapping into memory, r: reading alone. */
  TIFF *tiff = TIFFClientOpenExt("TIFF", "rm", s, read_tiff_on_read, read_tiff_on_write, read_tiff_on_seek,
                                 read_tiff_on_close, read_tiff_on_size, NULL, NULL, options);
  TIFFOpenOptionsFree(options);
  return tiff;
}

/* ---- what the file says */

static hs_status read_tiff_damaged(const read_tiff_state *s, const char *otherwise) {
  return image_fail(s->request, HS_ERR_FORMAT, "damaged TIFF: %s", s->reason[0] != '\0' ? s->reason : otherwise);
}

static hs_status read_tiff_check_kind(const read_tiff_state *s, uint16_t format, uint16_t compression) {
  const bool colour = s->photometric == PHOTOMETRIC_RGB, palette = s->photometric == PHOTOMETRIC_PALETTE;
  const bool gray = s->photometric == PHOTOMETRIC_MINISBLACK || s->photometric == PHOTOMETRIC_MINISWHITE;
  const bool small = s->bits == 1 || s->bits == 2 || s->bits == 4;
  if (compression == COMPRESSION_OJPEG || !TIFFIsCODECConfigured(compression))
    return image_fail(s->request, HS_ERR_UNSUPPORTED, "TIFF with compression %u, which this libtiff is without",
                      (unsigned)compression);
  if (!gray && !colour && !palette)
    return image_fail(s->request, HS_ERR_UNSUPPORTED, "TIFF with colours of kind %u: gray, RGB and palettes are read",
                      (unsigned)s->photometric);
  if (format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID)
    return image_fail(s->request, HS_ERR_UNSUPPORTED, "TIFF with samples that are not unsigned integers");
  const bool fits = s->samples <= READ_TIFF_SAMPLES_MOST &&
                    (s->bits == 8 || (s->bits == 16 && !palette) || (small && !colour && s->samples == 1));
  if (!fits)
    return image_fail(s->request, HS_ERR_UNSUPPORTED, "TIFF with %u samples of %u bits a pixel", (unsigned)s->samples,
                      (unsigned)s->bits);
  if (s->samples < (colour ? 3 : 1)) return read_tiff_damaged(s, "too few samples a pixel");
  return HS_OK;
}

/* No file is shorter than its compression can make it; of the other compressions that cannot be said. */
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

/* Palettes have 16 bits a colour; some writers put 8 there. */
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

static hs_status read_tiff_header(read_tiff_state *s) {
  uint16_t format = SAMPLEFORMAT_UINT, compression = COMPRESSION_NONE;
  if (!TIFFGetField(s->tiff, TIFFTAG_IMAGEWIDTH, &s->width) || !TIFFGetField(s->tiff, TIFFTAG_IMAGELENGTH, &s->height))
    return read_tiff_damaged(s, "it has no size");
  hs_status status = image_check_size(s->request, s->width, s->height);
  if (status != HS_OK) return status;
  if (!TIFFGetField(s->tiff, TIFFTAG_PHOTOMETRIC, &s->photometric))
    return read_tiff_damaged(s, "its colours are unknown");
  TIFFGetFieldDefaulted(s->tiff, TIFFTAG_BITSPERSAMPLE, &s->bits);
  TIFFGetFieldDefaulted(s->tiff, TIFFTAG_SAMPLESPERPIXEL, &s->samples);
  TIFFGetFieldDefaulted(s->tiff, TIFFTAG_PLANARCONFIG, &s->planar);
  TIFFGetFieldDefaulted(s->tiff, TIFFTAG_SAMPLEFORMAT, &format);
  TIFFGetFieldDefaulted(s->tiff, TIFFTAG_COMPRESSION, &compression);
  TIFFGetFieldDefaulted(s->tiff, TIFFTAG_ORIENTATION, &s->orientation);
  if (compression == COMPRESSION_JPEG && s->photometric == PHOTOMETRIC_YCBCR) {
    TIFFSetField(s->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    s->photometric = PHOTOMETRIC_RGB;
  }
  status = read_tiff_check_kind(s, format, compression);
  if (status == HS_OK && read_tiff_is_too_short(s, compression))
    status = read_tiff_damaged(s, "the file is too short for the size it claims");
  if (status == HS_OK) status = read_tiff_palette(s);
  if (!s->request->apply_exif) s->orientation = 1;
  s->placement = exif_place(s->orientation, (int32_t)s->width, (int32_t)s->height);
  s->sample_bytes = s->bits == 16 ? 2 : 1;
  s->channels = s->photometric == PHOTOMETRIC_RGB || s->photometric == PHOTOMETRIC_PALETTE ? 3 : 1;
  s->kept = s->samples;
  if (read_tiff_has_planes(s)) s->kept = s->photometric == PHOTOMETRIC_RGB ? 3 : 1;
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
  if (pixels > UINT64_MAX / 64) /* a pixel has 32 bytes at most */
    return image_fail(request, HS_ERR_LIMIT, "the picture is too large for the address space");
  const uint64_t working = pixels * pixel + (uint64_t)piece + (uint64_t)strip + 12 * (uint64_t)s->width;
  const hs_status status =
      image_allocate(request, s->placement.width, s->placement.height, s->bits == 16 ? HS_U16 : HS_U8, layout,
                     working + READ_TIFF_DECODER_BYTES, &s->image);
  if (status != HS_OK) return status;
  s->band = hs_memory_alloc(request->allocator, (size_t)(pixels * pixel));
  s->piece = hs_memory_alloc(request->allocator, s->piece_bytes);
  s->chosen = hs_memory_alloc(request->allocator, 12 * (size_t)s->width);
  if (!s->band || !s->piece || !s->chosen) return image_fail(request, HS_ERR_MEMORY, "no memory for the TIFF's rows");
  return HS_OK;
}

/* ---- pixels */

/* Puts `count` pixels of a piece, beginning at a whole byte, into a row of the band from column x on. plane: which of them
   they are, 0 where samples are interleaved. Values below 8 bits are unpacked, unscaled. */
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

/* A row of the band into a row of s->channels samples: the palette's colours, or the first samples; white is the largest
   value then. */
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
  uint8_t *converted = s->chosen + 6 * (size_t)s->width;
  const size_t pixel_bytes = image_channels(s->image.layout) * s->sample_bytes;
  for (uint32_t r = 0; r < rows; r++) {
    read_tiff_choose(s, s->band + (size_t)r * s->width * s->kept * s->sample_bytes);
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
  TIFFClose(s.tiff);
  hs_memory_release(request->allocator, s.band);
  hs_memory_release(request->allocator, s.piece);
  hs_memory_release(request->allocator, s.chosen);
  if (status != HS_OK) {
    hs_image_free(&s.image);
    return status;
  }
  if (exif_parse_tiff(request->bytes, request->size, &tags))
    exif_give(request, &tags, (double)(s.width > s.height ? s.width : s.height), &s.image);
  *image = s.image;
  image->exif_orientation = s.orientation > 1 && s.orientation <= 8 ? s.orientation : 0;
  return HS_OK;
}

#else

hs_status image_read_tiff(const image_request *request, hs_image *image) {
  (void)image;
  return image_fail(request, HS_ERR_UNSUPPORTED, "built without TIFF support");
}

#endif
