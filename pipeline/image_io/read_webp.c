/*
 * Reads WebP with libwebp: lossy and lossless pictures, with the EXIF orientation applied. Alpha is dropped. Animations
 * are refused.
 */
#include "pipeline/image_io/image_io.h"

#if HARTSIFT_HAVE_WEBP

#  include <string.h>
#  include <webp/decode.h>
#  include <webp/demux.h>

#  include "pipeline/base/memory.h"

enum {
  READ_WEBP_CHANNELS = 3,
  READ_WEBP_DECODER_BYTES = 1 << 20, /* size of libwebp's tables and row buffers, rounded up */
  READ_WEBP_LOSSLESS_BYTES = 5       /* bytes per pixel while a lossless picture is decoded */
};

static hs_status read_webp_fail(const image_request *request, VP8StatusCode code) {
  switch (code) {
  case VP8_STATUS_OUT_OF_MEMORY:
    return image_fail(request, HS_ERR_MEMORY, "out of memory for the WebP decoder");
  case VP8_STATUS_UNSUPPORTED_FEATURE:
    return image_fail(request, HS_ERR_UNSUPPORTED, "WebP cannot be decoded: libwebp does not know its kind");
  case VP8_STATUS_NOT_ENOUGH_DATA:
    image_ran_short(request);
    return image_fail(request, HS_ERR_FORMAT, "damaged WebP: the file ends early");
  default:
    return image_fail(request, HS_ERR_FORMAT, "damaged WebP: libwebp refuses it (%d)", (int)code);
  }
}

/* Reads the EXIF chunk. False: there is none. */
static bool read_webp_tags(const image_request *request, exif_tags *tags) {
  const WebPData data = {request->bytes, request->size};
  WebPDemuxer *demuxer = WebPDemux(&data);
  WebPChunkIterator chunk;
  bool found = false;
  if (!demuxer) return false;
  if (WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk)) {
    /* some writers prepend the signature of a JPEG segment */
    found = exif_parse(chunk.chunk.bytes, chunk.chunk.size, tags) ||
            exif_parse_tiff(chunk.chunk.bytes, chunk.chunk.size, tags);
    WebPDemuxReleaseChunkIterator(&chunk);
  }
  WebPDemuxDelete(demuxer);
  return found;
}

/* Decodes the picture to rows of RGB. */
static VP8StatusCode read_webp_decode(const image_request *request, WebPDecoderConfig *config, uint8_t *rgb,
                                      size_t bytes, size_t row_bytes) {
  config->output.colorspace = MODE_RGB;
  config->output.is_external_memory = 1;
  config->output.u.RGBA.rgba = rgb;
  config->output.u.RGBA.stride = (int)row_bytes;
  config->output.u.RGBA.size = bytes;
  return WebPDecode(request->bytes, request->size, config);
}

static hs_status read_webp_rows(const image_request *request, WebPDecoderConfig *config,
                                const exif_placement *placement, hs_image *image) {
  const size_t width = (size_t)config->input.width, height = (size_t)config->input.height; /* each side is below 2^14 */
  const size_t row_bytes = width * READ_WEBP_CHANNELS, bytes = row_bytes * height;
  const size_t pixel_bytes = image_channels(image->layout);
  uint8_t *rgb = hs_memory_alloc(request->allocator, bytes + row_bytes), *converted = rgb ? rgb + bytes : NULL;
  if (!rgb) return image_fail(request, HS_ERR_MEMORY, "out of memory for %zu bytes of rows", bytes);
  const VP8StatusCode code = read_webp_decode(request, config, rgb, bytes, row_bytes);
  for (size_t y = 0; code == VP8_STATUS_OK && y < height; y++) {
    gray_convert_row(rgb + y * row_bytes, READ_WEBP_CHANNELS, HS_U8, width, converted, image->layout);
    exif_put_row(placement, (int32_t)y, converted, width, pixel_bytes, (uint8_t *)(uintptr_t)image->data);
  }
  hs_memory_release(request->allocator, rgb);
  return code == VP8_STATUS_OK ? HS_OK : read_webp_fail(request, code);
}

hs_status image_read_webp(const image_request *request, hs_image *image) {
  WebPDecoderConfig config;
  exif_tags tags = {.orientation = 1};
  if (!WebPInitDecoderConfig(&config))
    return image_fail(request, HS_ERR_UNSUPPORTED, "libwebp is of another version than its headers");
  const VP8StatusCode code = WebPGetFeatures(request->bytes, request->size, &config.input);
  if (code != VP8_STATUS_OK) return read_webp_fail(request, code);
  if (config.input.has_animation) return image_fail(request, HS_ERR_UNSUPPORTED, "WebP with an animation");
  const uint64_t width = (uint64_t)config.input.width, height = (uint64_t)config.input.height;
  hs_status status = image_check_size(request, width, height);
  if (status != HS_OK) return status;
  const bool has_tags = read_webp_tags(request, &tags);
  const int orientation = request->apply_exif && has_tags ? tags.orientation : 1;
  const exif_placement placement = exif_place(orientation, config.input.width, config.input.height);
  const bool lossy = config.input.format == 1 && !config.input.has_alpha;
  const uint64_t pixel_bytes = READ_WEBP_CHANNELS + (lossy ? 0u : READ_WEBP_LOSSLESS_BYTES);
  hs_image made;
  status = image_allocate(request, placement.width, placement.height, HS_U8, request->keep_colour ? HS_RGB : HS_GRAY,
                          width * (height + 1) * pixel_bytes + READ_WEBP_DECODER_BYTES, &made);
  if (status == HS_OK) {
    status = read_webp_rows(request, &config, &placement, &made);
    if (status != HS_OK) hs_image_free(&made);
  }
  WebPFreeDecBuffer(&config.output);
  if (status != HS_OK) return status;
  if (has_tags) exif_give(request, &tags, (double)(width > height ? width : height), &made);
  *image = made;
  image->exif_orientation = orientation > 1 ? orientation : 0;
  return HS_OK;
}

#else

hs_status image_read_webp(const image_request *request, hs_image *image) {
  (void)image;
  return image_fail(request, HS_ERR_UNSUPPORTED, "built without WebP support; install libwebp-dev and build again");
}

#endif
