/*
 * EXIF of a picture: camera data, position, and orientation, which is applied while rows are decoded. JPEG has it in an
 * APP1 segment, WebP in a chunk, and a TIFF has the same structure itself. Tags and types: the standard of CIPA and
 * JEITA, "Exchangeable image file format", version 2.32.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "os/os_files.h"
#include "pipeline/base/memory.h"
#include "pipeline/image_io/image_io.h"

enum {
  EXIF_TAG_MAKE = 0x010F,
  EXIF_TAG_MODEL = 0x0110,
  EXIF_TAG_ORIENTATION = 0x0112,
  EXIF_TAG_EXIF_DIRECTORY = 0x8769,
  EXIF_TAG_GPS_DIRECTORY = 0x8825,
  EXIF_TAG_FOCAL_LENGTH = 0x920A, /* millimetres */
  EXIF_TAG_PIXEL_X_DIMENSION = 0xA002,
  EXIF_TAG_PIXEL_Y_DIMENSION = 0xA003,
  EXIF_TAG_FOCAL_PLANE_X_RESOLUTION = 0xA20E,
  EXIF_TAG_FOCAL_PLANE_UNIT = 0xA210,
  EXIF_TAG_FOCAL_LENGTH_35MM = 0xA405,
  EXIF_TAG_LATITUDE_REF = 1, /* tags of the GPS directory follow */
  EXIF_TAG_LATITUDE = 2,
  EXIF_TAG_LONGITUDE_REF = 3,
  EXIF_TAG_LONGITUDE = 4,
  EXIF_TAG_ALTITUDE_REF = 5,
  EXIF_TAG_ALTITUDE = 6
};
enum { EXIF_TYPE_BYTE = 1, EXIF_TYPE_ASCII = 2, EXIF_TYPE_SHORT = 3, EXIF_TYPE_LONG = 4, EXIF_TYPE_RATIONAL = 5 };
enum { EXIF_ENTRY_BYTES = 12, EXIF_INLINE_BYTES = 4 };

/* Diagonal of a 35 mm frame in millimetres, which defines the equivalent focal length (CIPA DCG-001). */
static const double exif_35mm_diagonal = 43.27;

/* The TIFF structure of the segment. */
typedef struct exif_tiff {
  const uint8_t *bytes;
  size_t size;
  bool big_endian;
} exif_tiff;

/* Values of one entry, which are checked to be within the segment. */
typedef struct exif_entry {
  uint32_t type, count;
  size_t at;
} exif_entry;

/* Read numbers; callers have checked the bounds. */
static uint32_t exif_u16(const exif_tiff *tiff, size_t at) {
  const uint32_t first = tiff->bytes[at], second = tiff->bytes[at + 1];
  return tiff->big_endian ? first << 8 | second : second << 8 | first;
}

static uint32_t exif_u32(const exif_tiff *tiff, size_t at) {
  const uint32_t first = exif_u16(tiff, at), second = exif_u16(tiff, at + 2);
  return tiff->big_endian ? first << 16 | second : second << 16 | first;
}

/* Returns the size of a type in bytes; 0: a type that is not used. */
static size_t exif_type_bytes(uint32_t type) {
  static const uint8_t bytes[] = {0, 1, 1, 2, 4, 8};
  return type < sizeof bytes ? bytes[type] : 0;
}

/* Finds the first entry of a tag. */
static bool exif_find(const exif_tiff *tiff, size_t directory, uint32_t tag, exif_entry *found) {
  if (tiff->size < 2 || directory > tiff->size - 2) return false;
  const uint32_t entries = exif_u16(tiff, directory);
  size_t at = directory + 2;
  for (uint32_t i = 0; i < entries && tiff->size - at >= EXIF_ENTRY_BYTES; i++, at += EXIF_ENTRY_BYTES) {
    if (exif_u16(tiff, at) != tag) continue;
    *found = (exif_entry){exif_u16(tiff, at + 2), exif_u32(tiff, at + 4), at + 8};
    const uint64_t bytes = (uint64_t)found->count * exif_type_bytes(found->type);
    if (bytes > EXIF_INLINE_BYTES) found->at = exif_u32(tiff, at + 8);
    return bytes > 0 && found->at <= tiff->size && bytes <= tiff->size - found->at;
  }
  return false;
}

/* Returns value `index` of an entry; NaN: missing. */
static double exif_number(const exif_tiff *tiff, const exif_entry *entry, uint32_t index) {
  if (index >= entry->count) return (double)NAN;
  const size_t at = entry->at + index * exif_type_bytes(entry->type);
  switch (entry->type) {
  case EXIF_TYPE_BYTE:
    return (double)tiff->bytes[at];
  case EXIF_TYPE_SHORT:
    return (double)exif_u16(tiff, at);
  case EXIF_TYPE_LONG:
    return (double)exif_u32(tiff, at);
  case EXIF_TYPE_RATIONAL: {
    const uint32_t below = exif_u32(tiff, at + 4);
    return below == 0 ? (double)NAN : (double)exif_u32(tiff, at) / (double)below;
  }
  default:
    return (double)NAN;
  }
}

/* Returns the first value of a tag; NaN: missing. */
static double exif_number_of(const exif_tiff *tiff, size_t directory, uint32_t tag) {
  exif_entry entry;
  return exif_find(tiff, directory, tag, &entry) ? exif_number(tiff, &entry, 0) : (double)NAN;
}

/* Returns the offset of the sub-directory that a tag names; without the tag, an offset past the end. */
static size_t exif_directory(const exif_tiff *tiff, size_t directory, uint32_t tag) {
  exif_entry entry;
  return exif_find(tiff, directory, tag, &entry) && entry.type == EXIF_TYPE_LONG ? exif_u32(tiff, entry.at)
                                                                                 : tiff->size;
}

static int exif_orientation(const exif_tiff *tiff, size_t directory) {
  exif_entry entry;
  if (!exif_find(tiff, directory, EXIF_TAG_ORIENTATION, &entry) || entry.count != 1) return 1;
  /* the standard requires SHORT, but some writers use LONG */
  if (entry.type != EXIF_TYPE_SHORT && entry.type != EXIF_TYPE_LONG) return 1;
  const double value = exif_number(tiff, &entry, 0);
  return value >= 1.0 && value <= 8.0 ? (int)value : 1;
}

/* Converts degrees, minutes, seconds to degrees, negative if the letter of the hemisphere is `negative`. NaN: missing
   or above `most`. */
static double exif_degrees(const exif_tiff *tiff, size_t directory, uint32_t tag, uint32_t reference, char negative,
                           double most) {
  exif_entry entry, letter;
  if (!exif_find(tiff, directory, tag, &entry)) return (double)NAN;
  const double degrees =
      exif_number(tiff, &entry, 0) + exif_number(tiff, &entry, 1) / 60.0 + exif_number(tiff, &entry, 2) / 3600.0;
  if (!(degrees <= most)) return (double)NAN;
  const bool is_negative = exif_find(tiff, directory, reference, &letter) && letter.type == EXIF_TYPE_ASCII &&
                           (tiff->bytes[letter.at] & ~0x20) == negative;
  return is_negative ? -degrees : degrees;
}

static double exif_altitude(const exif_tiff *tiff, size_t directory) {
  const double metres = exif_number_of(tiff, directory, EXIF_TAG_ALTITUDE);
  return exif_number_of(tiff, directory, EXIF_TAG_ALTITUDE_REF) == 1.0 ? -metres : metres;
}

/* Adds bytes to a digest (FNV-1a). */
static uint64_t exif_digest(uint64_t digest, const void *bytes, size_t count) {
  const uint8_t *at = bytes;
  for (size_t i = 0; i < count; i++) digest = (digest ^ at[i]) * 0x100000001b3u;
  return digest;
}

/* Computes hs_exif.camera. COLMAP gives one camera to pictures with equal values of these tags. */
static uint64_t exif_camera(const exif_tiff *tiff, size_t directory, const exif_tags *tags) {
  static const uint32_t texts[] = {EXIF_TAG_MAKE, EXIF_TAG_MODEL};
  uint64_t digest = 0xcbf29ce484222325u;
  const double focal = isnan(tags->focal_length_35mm) ? tags->focal_length_mm : tags->focal_length_35mm;
  for (size_t i = 0; i < 2; i++) {
    exif_entry text;
    if (!exif_find(tiff, directory, texts[i], &text) || text.type != EXIF_TYPE_ASCII) return 0;
    digest = exif_digest(digest, tiff->bytes + text.at, text.count);
  }
  return isnan(focal) ? 0 : exif_digest(digest, &focal, sizeof focal);
}

bool exif_parse(const uint8_t *app1, size_t size, exif_tags *tags) {
  static const uint8_t signature[6] = {'E', 'x', 'i', 'f', 0, 0};
  const bool has_signature = size >= sizeof signature && memcmp(app1, signature, sizeof signature) == 0;
  return exif_parse_tiff(app1 + (has_signature ? sizeof signature : 0), has_signature ? size - sizeof signature : 0,
                         tags);
}

bool exif_parse_tiff(const uint8_t *bytes, size_t size, exif_tags *tags) {
  return exif_parse_page(bytes, size, 0, tags);
}

/* Returns the offset of the directory that a tag names, in the page or else in the first directory. */
static size_t exif_page_directory(const exif_tiff *tiff, uint64_t page, size_t first, uint32_t tag) {
  const size_t own = page > 0 && page < tiff->size ? exif_directory(tiff, (size_t)page, tag) : tiff->size;
  return own < tiff->size ? own : exif_directory(tiff, first, tag);
}

/* Opens the structure. False: the byte order mark is invalid. */
static bool exif_open(const uint8_t *bytes, size_t size, exif_tiff *tiff) {
  *tiff = (exif_tiff){.bytes = bytes, .size = size, .big_endian = size >= 8 && memcmp(bytes, "MM\0*", 4) == 0};
  return tiff->big_endian || (size >= 8 && memcmp(bytes, "II*\0", 4) == 0);
}

double exif_page_number(const uint8_t *bytes, size_t size, uint64_t directory, uint32_t tag) {
  exif_tiff tiff;
  return exif_open(bytes, size, &tiff) && directory < size ? exif_number_of(&tiff, (size_t)directory, tag)
                                                           : (double)NAN;
}

bool exif_parse_page(const uint8_t *bytes, size_t size, uint64_t directory, exif_tags *tags) {
  *tags = (exif_tags){.orientation = 1, .latitude = (double)NAN, .longitude = (double)NAN, .altitude = (double)NAN};
  exif_tiff tiff;
  if (!exif_open(bytes, size, &tiff)) return false;
  const size_t first = exif_u32(&tiff, 4);
  const size_t exif = exif_page_directory(&tiff, directory, first, EXIF_TAG_EXIF_DIRECTORY);
  const size_t gps = exif_page_directory(&tiff, directory, first, EXIF_TAG_GPS_DIRECTORY);
  tags->orientation = exif_orientation(&tiff, first);
  tags->focal_length_mm = exif_number_of(&tiff, exif, EXIF_TAG_FOCAL_LENGTH);
  tags->focal_length_35mm = exif_number_of(&tiff, exif, EXIF_TAG_FOCAL_LENGTH_35MM);
  tags->plane_resolution = exif_number_of(&tiff, exif, EXIF_TAG_FOCAL_PLANE_X_RESOLUTION);
  tags->plane_unit = exif_number_of(&tiff, exif, EXIF_TAG_FOCAL_PLANE_UNIT);
  tags->pixel_width = exif_number_of(&tiff, exif, EXIF_TAG_PIXEL_X_DIMENSION);
  tags->pixel_height = exif_number_of(&tiff, exif, EXIF_TAG_PIXEL_Y_DIMENSION);
  tags->latitude = exif_degrees(&tiff, gps, EXIF_TAG_LATITUDE, EXIF_TAG_LATITUDE_REF, 'S', 90.0);
  tags->longitude = exif_degrees(&tiff, gps, EXIF_TAG_LONGITUDE, EXIF_TAG_LONGITUDE_REF, 'W', 180.0);
  tags->altitude = exif_altitude(&tiff, gps);
  tags->camera = exif_camera(&tiff, first, tags);
  return true;
}

/* Returns FocalPlaneResolutionUnit in millimetres: inch, centimetre, millimetre, micrometre; 0: unknown unit. The
   default is inches. */
static double exif_unit_mm(double unit) {
  if (isnan(unit)) return 25.4;
  static const double millimetres[] = {25.4, 10.0, 1.0, 0.001};
  for (int i = 0; i < 4; i++)
    if (unit == 2.0 + i) return millimetres[i];
  return 0.0;
}

static double larger(double a, double b) { return a > b ? a : b; }

double exif_focal_length(const exif_tags *tags, double stored_side, int32_t width, int32_t height) {
  const double w = (double)width, h = (double)height;
  if (tags->focal_length_35mm > 0.0) return tags->focal_length_35mm / exif_35mm_diagonal * sqrt(w * w + h * h);
  const double unit = exif_unit_mm(tags->plane_unit);
  if (!(tags->focal_length_mm > 0.0) || !(tags->plane_resolution > 0.0) || unit == 0.0) return 0.0;
  /* the resolution refers to the camera's picture; the picture in the file may have been downscaled */
  const bool has_size = tags->pixel_width > 0.0 && tags->pixel_height > 0.0;
  const double full_side = has_size ? larger(tags->pixel_width, tags->pixel_height) : stored_side;
  return tags->focal_length_mm * tags->plane_resolution / unit * (larger(w, h) / full_side);
}

void exif_give(const image_request *request, const exif_tags *tags, double stored_side, const hs_image *image) {
  hs_exif *exif = request->exif;
  if (!exif) return;
  exif->focal_length = exif_focal_length(tags, stored_side, image->width, image->height);
  exif->camera = tags->camera;
  exif->has_place = isfinite(tags->latitude) && isfinite(tags->longitude);
  exif->has_altitude = exif->has_place && isfinite(tags->altitude);
  if (exif->has_place) exif->latitude = tags->latitude;
  if (exif->has_place) exif->longitude = tags->longitude;
  if (exif->has_altitude) exif->altitude = tags->altitude;
}

exif_placement exif_place(int orientation, int32_t stored_width, int32_t stored_height) {
  /* For each orientation: whether columns and rows are swapped, and whether stored columns and stored rows are reversed
     in the upright picture. */
  static const struct {
    bool swap, reverse_x, reverse_y;
  } table[9] = {{false, false, false}, {false, false, false}, {false, true, false},
                {false, true, true},   {false, false, true},  {true, false, false},
                {true, false, true},   {true, true, true},    {true, true, false}};
  const int known = orientation >= 1 && orientation <= 8 ? orientation : 1;
  const bool swap = table[known].swap;
  exif_placement placement = {.width = swap ? stored_height : stored_width,
                              .height = swap ? stored_width : stored_height};
  placement.step_x = swap ? placement.width : 1;
  placement.step_y = swap ? 1 : placement.width;
  if (table[known].reverse_x) {
    placement.start += placement.step_x * (stored_width - 1);
    placement.step_x = -placement.step_x;
  }
  if (table[known].reverse_y) {
    placement.start += placement.step_y * (stored_height - 1);
    placement.step_y = -placement.step_y;
  }
  return placement;
}

void exif_put_row(const exif_placement *placement, int32_t row, const uint8_t *pixels, size_t count, size_t pixel_bytes,
                  uint8_t *picture) {
  const ptrdiff_t first = placement->start + row * placement->step_y;
  if (placement->step_x == 1) {
    memcpy(picture + (size_t)first * pixel_bytes, pixels, count * pixel_bytes);
    return;
  }
  for (size_t x = 0; x < count; x++) {
    uint8_t *target = picture + (size_t)(first + (ptrdiff_t)x * placement->step_x) * pixel_bytes;
    for (size_t i = 0; i < pixel_bytes; i++) target[i] = pixels[x * pixel_bytes + i];
  }
}

/* ---- the EXIF of a PNG: its eXIf chunk (PNG, third edition, 11.3.3.6), which may follow the pixels */

enum {
  PNG_SIGNATURE_BYTES = 8,
  PNG_CHUNK_HEAD_BYTES = 8, /* bytes of a chunk's length and name */
  PNG_CHECKSUM_BYTES = 4,   /* bytes of the checksum, which follows the data and covers name and data */
  /* more than any picture needs without previews: a JPEG's APP1 segment has up to 64 KiB */
  PNG_EXIF_BYTES_MAX = 16 << 20
};

/* A PNG file, in memory or on disk. */
typedef struct png_file {
  const image_request *request;
  int descriptor; /* descriptor of the file; -1: the request has the file in memory */
} png_file;

static uint32_t big_endian(const uint8_t *b) {
  return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Reads bytes at an offset. False: the file ends too early, or cannot be read. */
static bool read_at(const png_file *file, uint64_t at, void *target, size_t bytes) {
  const image_request *request = file->request;
  if (at > request->size || bytes > request->size - at) return false;
  if (file->descriptor < 0) {
    memcpy(target, request->bytes + at, bytes);
    return true;
  }
  for (size_t done = 0; done < bytes;) {
    const int64_t count = os_read_at(file->descriptor, (uint8_t *)target + done, bytes - done, at + done);
    if (count == 0 || (count < 0 && errno != EINTR)) return false;
    done += count > 0 ? (size_t)count : 0;
  }
  return true;
}

/* Computes PNG's checksum (annex D) bit by bit; that is fast enough for a single chunk. */
static uint32_t checksum(const uint8_t *bytes, size_t count) {
  uint32_t crc = 0xFFFFFFFFu;
  for (size_t i = 0; i < count; i++) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0xEDB88320u & (0u - (crc & 1u)));
  }
  return ~crc;
}

/* Reads a chunk. at: offset of its name. */
static hs_status read_chunk(const png_file *file, uint64_t at, size_t length, bool *found, exif_tags *tags) {
  const size_t name_bytes = PNG_CHUNK_HEAD_BYTES - 4, checked = name_bytes + length;
  uint8_t *chunk = hs_memory_alloc(file->request->allocator, checked + PNG_CHECKSUM_BYTES);
  if (!chunk) return image_fail(file->request, HS_ERR_MEMORY, "out of memory for the EXIF of %zu bytes", length);
  if (read_at(file, at, chunk, checked + PNG_CHECKSUM_BYTES) && checksum(chunk, checked) == big_endian(chunk + checked))
    /* some writers prepend the signature of a JPEG segment */
    *found = exif_parse_tiff(chunk + name_bytes, length, tags) || exif_parse(chunk + name_bytes, length, tags);
  hs_memory_release(file->request->allocator, chunk);
  return HS_OK;
}

hs_status png_exif_read(const image_request *request, FILE *stream, bool *found, exif_tags *tags) {
  const png_file file = {.request = request, .descriptor = stream ? os_descriptor_of(stream) : -1};
  uint8_t head[PNG_CHUNK_HEAD_BYTES];
  *found = false;
  for (uint64_t at = PNG_SIGNATURE_BYTES; read_at(&file, at, head, sizeof head);) {
    const uint32_t length = big_endian(head);
    if (memcmp(head + 4, "IEND", 4) == 0) break;
    if (memcmp(head + 4, "eXIf", 4) == 0 && length <= PNG_EXIF_BYTES_MAX)
      return read_chunk(&file, at + 4, length, found, tags);
    at += sizeof head + (uint64_t)length + PNG_CHECKSUM_BYTES;
  }
  return HS_OK;
}
