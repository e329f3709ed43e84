/* Parses the headers and Huffman codes of a JPEG for the GPU, and decides whether it stays encoded; see
   jpeg_stream.h. */
#include "pipeline/image_io/jpeg/jpeg_stream.h"

#include <string.h>

#include "pipeline/base/memory.h"

/* Checks that symbols are within baseline's limits. */
static bool symbols_are_baseline(const jpeg_codes *codes, int32_t count, bool of_ac) {
  for (int32_t i = 0; i < count; i++)
    if ((of_ac ? codes->values[i] & 15 : codes->values[i]) > (of_ac ? 10 : 11)) return false;
  return true;
}

bool jpeg_codes_make(const uint8_t *counts, bool of_ac, jpeg_codes *codes) {
  int32_t code = 0, at = 0;
  for (int32_t n = 1; n <= JPEG_CODE_BITS_MAX; n++, code *= 2) {
    codes->first[n] = code;
    codes->at[n] = at;
    at += counts[n - 1];
    code += counts[n - 1];
    codes->beyond[n] = code;
    if (code >= 1 << n) return false; /* a code of all ones is invalid */
  }
  codes->defined = symbols_are_baseline(codes, at, of_ac);
  return codes->defined;
}

bool jpeg_codes_same(const jpeg_codes *a, const jpeg_codes *b) {
  const int32_t last = JPEG_CODE_BITS_MAX, count = a->at[last] + a->beyond[last] - a->first[last];
  return memcmp(a->first, b->first, sizeof a->first) == 0 && memcmp(a->beyond, b->beyond, sizeof a->beyond) == 0 &&
         memcmp(a->values, b->values, (size_t)count) == 0;
}

/* ---- headers */

enum {
  MARKER_SOF0 = 0xC0, /* baseline */
  MARKER_DHT = 0xC4,
  MARKER_SOI = 0xD8,
  MARKER_SOS = 0xDA,
  MARKER_DQT = 0xDB,
  MARKER_DRI = 0xDD,
  MARKER_APP0 = 0xE0,
  MARKER_APP1 = 0xE1,
  MARKER_APP14 = 0xEE,
  MARKER_APP15 = 0xEF,
  MARKER_COMMENT = 0xFE,
  JFIF_MAJOR_AT = 5,
  ADOBE_BYTES = 12,
  ADOBE_TRANSFORM_AT = 11,
  ADOBE_YCC = 1
};

/* State of the header parser. */
typedef struct header_reader {
  jpeg_stream *stream;
  bool framed, has_exif, has_jfif, has_adobe;
  uint8_t adobe_transform;
} header_reader;

typedef struct segment {
  const uint8_t *bytes;
  size_t size;
} segment;

static int32_t word(const uint8_t *bytes) { return bytes[0] << 8 | bytes[1]; }

static bool read_quantisation(header_reader *r, segment s) {
  while (s.size >= 1 + JPEG_BLOCK) {
    const uint8_t number = s.bytes[0];
    if (number > 3) return false; /* the steps have 16 bits, or the index of the table is invalid */
    if (memchr(s.bytes + 1, 0, JPEG_BLOCK)) return false;
    memcpy(r->stream->quantisation[number], s.bytes + 1, JPEG_BLOCK);
    s = (segment){s.bytes + 1 + JPEG_BLOCK, s.size - 1 - JPEG_BLOCK};
  }
  return s.size == 0;
}

static bool read_codes(header_reader *r, segment s) {
  while (s.size >= 1 + JPEG_CODE_BITS_MAX) {
    const uint8_t of_ac = s.bytes[0] >> 4, number = s.bytes[0] & 15, *counts = s.bytes + 1;
    size_t values = 0;
    for (int i = 0; i < JPEG_CODE_BITS_MAX; i++) values += counts[i];
    if (of_ac > 1 || number > 1 || values > 256 || values > s.size - 1 - JPEG_CODE_BITS_MAX) return false;
    jpeg_codes *codes = of_ac ? &r->stream->ac[number] : &r->stream->dc[number];
    memcpy(codes->values, counts + JPEG_CODE_BITS_MAX, values);
    if (!jpeg_codes_make(counts, of_ac, codes)) return false;
    const size_t used = 1 + JPEG_CODE_BITS_MAX + values;
    s = (segment){s.bytes + used, s.size - used};
  }
  return s.size == 0;
}

/* Luma must have the most samples, so that it is never upsampled. A scan of one component has MCUs of one block (T.81,
   A.2). */
static bool sampling_is_known(jpeg_stream *stream) {
  jpeg_component *c = stream->components;
  int32_t blocks = 0;
  for (int32_t i = 0; i < stream->component_count; i++) {
    const bool fits = c[i].across >= 1 && c[i].across <= 4 && c[i].down >= 1 && c[i].down <= 4;
    if (!fits || c[i].across > c[0].across || c[i].down > c[0].down) return false;
    blocks += c[i].across * c[i].down;
  }
  if (stream->component_count == 1) c[0].across = c[0].down = 1;
  return stream->component_count == 1 || blocks <= JPEG_MCU_BLOCKS_MAX;
}

static bool read_frame(header_reader *r, segment s) {
  jpeg_stream *stream = r->stream;
  if (r->framed || s.size < 6 || s.bytes[0] != 8) return false;
  r->framed = true;
  stream->height = word(s.bytes + 1);
  stream->width = word(s.bytes + 3);
  stream->component_count = s.bytes[5];
  if (stream->height == 0 || stream->width == 0) return false;
  if (stream->component_count != 1 && stream->component_count != 3) return false;
  if (s.size != 6 + 3 * (size_t)stream->component_count) return false;
  for (int i = 0; i < stream->component_count; i++) {
    const uint8_t *c = s.bytes + 6 + 3 * i;
    stream->components[i] = (jpeg_component){.id = c[0], .across = c[1] >> 4, .down = c[1] & 15, .quantisation = c[2]};
    if (c[2] > 3) return false;
  }
  return sampling_is_known(stream);
}

/* True if every decoder treats the three components as YCbCr, whichever markers the file has. */
static bool is_ycc(const header_reader *r) {
  const jpeg_component *c = r->stream->components;
  if (r->stream->component_count == 1) return true;
  if (r->has_adobe) return r->adobe_transform == ADOBE_YCC && c[0].id != 'R';
  return c[0].id == 1 && c[1].id == 2 && c[2].id == 3;
}

/* Reads the header of the only scan, which must have all components in order and all coefficients. */
static bool read_scan(header_reader *r, segment s) {
  jpeg_stream *stream = r->stream;
  const size_t count = (size_t)stream->component_count;
  if (!r->framed || s.size != 4 + 2 * count || s.bytes[0] != count || !is_ycc(r)) return false;
  for (size_t i = 0; i < count; i++) {
    const uint8_t *own = s.bytes + 1 + 2 * i;
    jpeg_component *c = &stream->components[i];
    c->dc = own[1] >> 4;
    c->ac = own[1] & 15;
    if (own[0] != c->id || c->dc > 1 || c->ac > 1 || !stream->dc[c->dc].defined || !stream->ac[c->ac].defined ||
        stream->quantisation[c->quantisation][0] == 0)
      return false;
  }
  const uint8_t *last = s.bytes + 1 + 2 * count;
  return last[0] == 0 && last[1] == JPEG_BLOCK - 1 && last[2] == 0;
}

/* libjpeg warns if the major version is not 1 */
static bool read_jfif(header_reader *r, segment s) {
  const bool is_jfif = s.size >= 5 && memcmp(s.bytes, "JFIF", 5) == 0;
  r->has_jfif = r->has_jfif || is_jfif;
  return !is_jfif || s.size <= JFIF_MAJOR_AT || s.bytes[JFIF_MAJOR_AT] == 1;
}

static bool read_segment(header_reader *r, uint8_t marker, segment s) {
  switch (marker) {
  case MARKER_SOF0:
    return read_frame(r, s);
  case MARKER_DHT:
    return read_codes(r, s);
  case MARKER_DQT:
    return read_quantisation(r, s);
  case MARKER_DRI:
    r->stream->restart_interval = s.size == 2 ? word(s.bytes) : 0;
    return s.size == 2;
  case MARKER_APP0:
    return read_jfif(r, s);
  case MARKER_APP1:
    r->has_exif = r->has_exif || exif_parse(s.bytes, s.size, &r->stream->tags);
    return true;
  case MARKER_APP14:
    if (s.size >= ADOBE_BYTES && memcmp(s.bytes, "Adobe", 5) == 0) {
      r->has_adobe = true;
      r->adobe_transform = s.bytes[ADOBE_TRANSFORM_AT];
    }
    return true;
  case MARKER_SOS:
    return read_scan(r, s);
  default: /* other markers may change the coding */
    return marker == MARKER_COMMENT || (marker > MARKER_APP0 && marker <= MARKER_APP15);
  }
}

bool jpeg_stream_sides(const uint8_t *bytes, size_t size, int32_t *width, int32_t *height) {
  for (size_t at = 2; size >= 2 && size - at >= 9 && bytes[at] == 0xFF;) {
    const size_t length = (size_t)word(bytes + at + 2);
    *height = word(bytes + at + 5);
    *width = word(bytes + at + 7);
    if (bytes[at + 1] == MARKER_SOF0) return *width > 0 && *height > 0;
    if (length < 2 || length > size - at - 2) return false;
    at += 2 + length;
  }
  return false;
}

bool jpeg_stream_open(const uint8_t *bytes, size_t size, jpeg_stream *stream) {
  header_reader r = {.stream = stream};
  memset(stream, 0, sizeof *stream);
  if (size < 2 || bytes[0] != 0xFF || bytes[1] != MARKER_SOI) return false;
  for (size_t at = 2; size - at >= 4 && bytes[at] == 0xFF;) {
    const uint8_t marker = bytes[at + 1];
    const size_t length = (size_t)word(bytes + at + 2);
    if (length < 2 || length > size - at - 2) return false;
    if (!read_segment(&r, marker, (segment){bytes + at + 4, length - 2})) return false;
    at += 2 + length;
    stream->scan = at;
    if (marker == MARKER_SOS) return true;
  }
  return false;
}

/* ---- a JPEG that stays encoded until a GPU decodes it */

/* True if the picture is within the limits of decoding on the host. Larger pictures go to libjpeg's reader, which
   reports the error. */
static bool is_within_limits(const image_request *request, const jpeg_stream *stream) {
  const uint64_t width = (uint64_t)stream->width, height = (uint64_t)stream->height;
  /* cannot overflow: a side has 16 bits */
  return width <= request->max_pixels / height &&
         machine_memory_allows(request->max_memory_bytes, width * height + request->size);
}

bool image_keep_jpeg(const image_request *request, hs_source *loaded) {
  if (!request->keep_encoded || request->keep_colour || request->jpeg_scale > 1 || request->max_image_size > 0 ||
      image_has_range(request))
    return false;
  jpeg_stream *stream = hs_memory_alloc(request->allocator, sizeof *stream);
  const bool kept =
      stream && jpeg_stream_open(request->bytes, request->size, stream) && is_within_limits(request, stream);
  if (kept) {
    const int orientation = request->apply_exif && stream->tags.orientation > 0 ? stream->tags.orientation : 1;
    const exif_placement placement = exif_place(orientation, stream->width, stream->height);
    loaded->kind = HS_SOURCE_JPEG;
    loaded->bytes = request->bytes;
    loaded->size = request->size;
    loaded->refuse_damage = request->strict || request->notes;
    loaded->image = (hs_image){.width = placement.width,
                               .height = placement.height,
                               .type = HS_U8,
                               .layout = HS_GRAY,
                               .exif_orientation = orientation > 1 ? orientation : 0};
    if (stream->tags.orientation > 0)
      exif_give(request, &stream->tags, (double)(stream->width > stream->height ? stream->width : stream->height),
                &loaded->image);
  }
  hs_memory_release(request->allocator, stream);
  return kept;
}
