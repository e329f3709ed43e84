/* Where a frame's picture comes from; see picture_source.h. */
#include "pipeline/encoded/picture_source.h"

#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/context/image_view.h"
#include "pipeline/device/cuda_jpeg.h"
#include "pipeline/image_io/jpeg_stream.h"

/* The image as if it were decoded, its data not yet pixels. */
static hs_image decoded_image(const hs_image *image) {
  hs_image decoded = *image;
  decoded.layout = HS_GRAY;
  decoded.stride_bytes = 0;
  return decoded;
}

/* The sides as stored follow from those to be seen: orientations 5 to 8 exchange them. */
static cuda_jpeg_file file_of(const hs_image *image) {
  const bool lies_across = image->exif_orientation >= 5;
  cuda_jpeg_file file = {.bytes = image->data,
                         .size = image->stride_bytes,
                         .width = lies_across ? image->height : image->width,
                         .height = lies_across ? image->width : image->height,
                         .turned = image->exif_orientation > 1};
  if (file.turned) {
    const exif_placement placement = exif_place(image->exif_orientation, file.width, file.height);
    file.start = placement.start;
    file.step_x = placement.step_x;
    file.step_y = placement.step_y;
  }
  return file;
}

/* An engine writes as many pixels as the file has, whatever the image says. */
static bool has_its_sides(const hs_image *image) {
  const cuda_jpeg_file file = file_of(image);
  int32_t width, height;
  return image->exif_orientation >= 0 && image->exif_orientation <= 8 &&
         jpeg_stream_sides(file.bytes, file.size, &width, &height) && width == file.width && height == file.height;
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

static bool decode_on_device(hs_context *c, int32_t set, const hs_image *const *images, int32_t count,
                             cuda_jpeg_rows *rows) {
  cuda_jpeg_file files[CUDA_JPEG_MOST];
  const char *reason;
  /* max_memory_bytes counts what a frame's plan has, and these pictures are beside it. */
  if (cuda_jpeg_ask(c, &reason) != CUDA_JPEG_READY || c->options.max_memory_bytes > 0) return false;
  for (int32_t i = 0; i < count; i++) files[i] = file_of(images[i]);
  return cuda_jpeg_decode(c, set, files, count, rows);
}

bool picture_decode_ahead(hs_context *c, int32_t set, const hs_image *const *images, int32_t count, hs_image *decoded) {
  cuda_jpeg_rows rows[CUDA_JPEG_MOST];
  if (!decode_on_device(c, set, images, count, rows) || !cuda_jpeg_finish(c)) return false;
  for (int32_t i = 0; i < count; i++) {
    decoded[i] = decoded_image(images[i]);
    decoded[i].data = rows[i].data;
    decoded[i].stride_bytes = rows[i].stride_bytes;
  }
  return true;
}

static hs_status decode_here(hs_context *c, const hs_image *image, unsigned char *pixels) {
  char message[IMAGE_REASON_BYTES] = "";
  hs_image decoded = {0};
  const hs_load_options load = {.struct_size = sizeof load,
                                .max_pixels = UINT64_MAX,
                                .ignore_exif = image->exif_orientation == 0,
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
  cuda_jpeg_rows rows[CUDA_JPEG_MOST];
  if (on_device && decode_on_device(c, 0, images, count, rows)) {
    for (int32_t i = 0; i < count; i++) {
      requests[i].source.data = rows[i].data;
      requests[i].source.stride_bytes = rows[i].stride_bytes;
      requests[i].source_on_device = true;
    }
    return HS_OK;
  }
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
