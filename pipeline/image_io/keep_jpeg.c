/* A JPEG that stays encoded until a GPU decodes it; see image_keep_jpeg. */
#include "pipeline/base/machine_memory.h"
#include "pipeline/base/memory.h"
#include "pipeline/image_io/jpeg_stream.h"

/* The same limits as for decoding it here; what is beyond them is left to the decoder, which says so. */
static bool is_within_limits(const image_request *request, const jpeg_stream *stream) {
  const uint64_t width = (uint64_t)stream->width, height = (uint64_t)stream->height;
  /* The headers give 16 bits a side: no overflow. */
  return width <= request->max_pixels / height &&
         machine_memory_allows(request->max_memory_bytes, width * height + request->size);
}

bool image_keep_jpeg(const image_request *request, hs_image *image) {
  if (!request->keep_encoded || request->keep_colour || request->jpeg_scale > 1 || request->max_image_size > 0 ||
      image_has_range(request))
    return false;
  jpeg_stream *stream = hs_memory_alloc(request->allocator, sizeof *stream);
  const bool kept =
      stream && jpeg_stream_open(request->bytes, request->size, stream) && is_within_limits(request, stream);
  if (kept) {
    const int orientation = request->apply_exif && stream->tags.orientation > 0 ? stream->tags.orientation : 1;
    const exif_placement placement = exif_place(orientation, stream->width, stream->height);
    *image = (hs_image){.data = request->bytes,
                        .width = placement.width,
                        .height = placement.height,
                        .stride_bytes = request->size,
                        .type = HS_U8,
                        .layout = HS_JPEG,
                        .exif_orientation = orientation > 1 ? orientation : 0,
                        .refuse_damage = request->strict || request->notes};
    if (stream->tags.orientation > 0)
      exif_give(request, &stream->tags, (double)(stream->width > stream->height ? stream->width : stream->height),
                image);
  }
  hs_memory_release(request->allocator, stream);
  return kept;
}
