/* Where a frame's picture comes from; see picture_source.h. */
#include "pipeline/encoded/picture_source.h"

#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/context/image_view.h"
#include "pipeline/image_io/jpeg/jpeg_stream.h"

enum { PACKED_ALIGNMENT = 256 };

/* The image as if it were decoded, its data not yet pixels. */
static hs_image decoded_image(const hs_image *image) {
  hs_image decoded = *image;
  decoded.layout = HS_GRAY;
  decoded.stride_bytes = 0;
  return decoded;
}

/* What an encoded image says of its file: the sides as stored follow from those to be seen, orientations 5 to 8 exchange
   them. */
typedef struct stored_sides {
  int32_t width, height;
} stored_sides;

static stored_sides stored(const hs_image *image) {
  const bool lies_across = image->exif_orientation >= 5;
  return lies_across ? (stored_sides){image->height, image->width} : (stored_sides){image->width, image->height};
}

/* The device writes as many pixels as the file has, whatever the image says. */
static bool has_its_sides(const hs_image *image) {
  const stored_sides sides = stored(image);
  int32_t width, height;
  return image->exif_orientation >= 0 && image->exif_orientation <= 8 &&
         jpeg_stream_sides(image->data, image->stride_bytes, &width, &height) && width == sides.width &&
         height == sides.height;
}

static hs_status not_as_loaded(hs_context *c) {
  return CONTEXT_FAIL(c, HS_ERR_IMAGE, "an encoded image is not as it was loaded");
}

hs_status picture_check(hs_context *c, const hs_image *image) {
  source_view source;
  if (image->layout != HS_JPEG) return image_view_source(c, image, &source);
  if (image->type != HS_U8)
    return CONTEXT_FAIL(c, HS_ERR_IMAGE, "an encoded image.type is %d, expected 0", (int)image->type);
  const hs_image decoded = decoded_image(image);
  const hs_status st = image_view_source(c, &decoded, &source);
  return st != HS_OK || has_its_sides(image) ? st : not_as_loaded(c);
}

/* Opens the files, and gets pinned memory to pack them into; null: libjpeg is to decode them. */
static unsigned char *open_files(hs_context *c, const hs_image *const *images, int32_t count, jpeg_stream **streams,
                                 size_t *bytes) {
  void *memory = NULL;
  size_t all = 0;
  if (context_scratch(c, SCRATCH_HEADERS, (size_t)count, sizeof **streams, &memory) != HS_OK) return NULL;
  *streams = memory;
  for (int32_t i = 0; i < count; i++) {
    const size_t size = images[i]->stride_bytes;
    bytes[i] = 0;
    if (jpeg_stream_open(images[i]->data, size, &(*streams)[i])) bytes[i] = jpeg_pack_bytes(&(*streams)[i], size);
    if (bytes[i] == 0 || !hs_size_add(bytes[i], PACKED_ALIGNMENT - 1, &bytes[i])) return NULL;
    bytes[i] -= bytes[i] % PACKED_ALIGNMENT;
    if (!hs_size_add(all, bytes[i], &all)) return NULL;
  }
  return c->engine->decoder->packed_memory(c, all);
}

static bool pack(const hs_image *image, jpeg_stream *stream, unsigned char *memory, size_t bytes,
                 packed_jpeg *picture) {
  const stored_sides sides = stored(image);
  const exif_placement placement = exif_place(image->exif_orientation, sides.width, sides.height);
  *picture = (packed_jpeg){.packed = memory,
                           .width = image->width,
                           .height = image->height,
                           .start = placement.start,
                           .step_x = placement.step_x,
                           .step_y = placement.step_y};
  return jpeg_pack(image->data, image->stride_bytes, stream, memory, bytes, &picture->shape) &&
         picture->shape.width == sides.width && picture->shape.height == sides.height;
}

bool picture_decode(hs_context *c, const hs_image *const *images, int32_t count, decoded_rows *rows) {
  packed_jpeg pictures[JPEG_GROUP_MAX];
  size_t bytes[JPEG_GROUP_MAX];
  jpeg_stream *streams;
  unsigned char *memory = open_files(c, images, count, &streams, bytes);
  for (int32_t i = 0; i < count && memory; i++) {
    if (!pack(images[i], &streams[i], memory, bytes[i], &pictures[i])) return false;
    memory += bytes[i];
  }
  return memory && c->engine->decoder->decode(c, pictures, count, rows);
}

static bool decodes_on_device(const hs_context *c) {
  const char *reason;
  const engine_decoder *decoder = c->engine->decoder;
  return decoder && decoder->state(c, &reason) == DECODER_READY;
}

static hs_status decode_here(hs_context *c, const hs_image *image, unsigned char *pixels) {
  char message[IMAGE_REASON_BYTES] = "";
  hs_image decoded = {0};
  const hs_load_options load = {.struct_size = sizeof load,
                                .max_pixels = UINT64_MAX,
                                .ignore_exif = image->exif_orientation == 0,
                                .strict = image->refuse_damage,
                                .allocator = c->options.allocator,
                                .message = message,
                                .message_bytes = sizeof message};
  const hs_status st = hs_load_image_memory(image->data, image->stride_bytes, &load, &decoded);
  if (st != HS_OK) return CONTEXT_FAIL(c, st, "%s", message);
  const size_t row = (size_t)image->width;
  const bool same = decoded.width == image->width && decoded.height == image->height && decoded.type == HS_U8 &&
                    decoded.layout == HS_GRAY && decoded.stride_bytes == row;
  if (same) memcpy(pixels, decoded.data, row * (size_t)image->height);
  hs_image_free(&decoded);
  return same ? HS_OK : not_as_loaded(c);
}

hs_status picture_sources(hs_context *c, const hs_image *const *images, int32_t count, bool on_device,
                          frame_request *requests) {
  hs_status st = HS_OK;
  size_t bytes = 0;
  for (int32_t i = 0; i < count && st == HS_OK; i++) {
    const hs_image seen = images[i]->layout == HS_JPEG ? decoded_image(images[i]) : *images[i];
    st = picture_check(c, images[i]);
    if (st == HS_OK) st = image_view_source(c, &seen, &requests[i].source);
    requests[i].source_on_device = false;
    if (!hs_size_add(bytes, (size_t)seen.width * (size_t)seen.height, &bytes)) st = HS_ERR_LIMIT;
  }
  if (st != HS_OK || images[0]->layout != HS_JPEG) return st;
  decoded_rows rows[JPEG_GROUP_MAX];
  if (on_device && decodes_on_device(c) && picture_decode(c, images, count, rows)) {
    for (int32_t i = 0; i < count; i++) {
      requests[i].source.data = rows[i].data;
      requests[i].source.stride_bytes = rows[i].stride_bytes;
      requests[i].source_on_device = true;
    }
    return HS_OK;
  }
  context_clear_error(c); /* of memory that the device's way could not have */
  void *memory = NULL;
  st = context_scratch(c, SCRATCH_DECODED, bytes, 1, &memory);
  unsigned char *pixels = memory;
  for (int32_t i = 0; i < count && st == HS_OK; i++) {
    const source_view *source = &requests[i].source;
    st = decode_here(c, images[i], pixels);
    requests[i].source.data = pixels;
    pixels += (size_t)source->width * (size_t)source->height;
  }
  return st;
}
