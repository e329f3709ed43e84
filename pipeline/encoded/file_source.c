/* Pictures given as files; see file_source.h. */
#include "pipeline/encoded/file_source.h"

#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/base/message.h"
#include "pipeline/encoded/decoder_check.h"
#include "pipeline/image_io/image_io.h"

hs_status file_source_take(hs_context *c, const char *path, const void *bytes, size_t size, const hs_load_options *load,
                           file_source *source) {
  char reason[ADOPT_REASON_BYTES];
  *source = (file_source){.path = path, .bytes = bytes, .size = size};
  hs_load_options *own = &source->load;
  const hs_status st = load_options_take(load, own, reason);
  if (st != HS_OK) return CONTEXT_FAIL(c, st, "%s", reason);
  if (own->max_image_size > 0 && c->options.region_width > 0)
    return CONTEXT_FAIL(c, HS_ERR_OPTION, "options.region is of the image as it is: expected without max_image_size");
  const bool wanted = own->keep_encoded != 0 || c->options.decoder == HS_DECODER_GPU;
  /* What is damaged is read twice, see file_source_again. */
  const bool is_still_there = !path || image_is_regular_file(path);
  source->keep_encoded = wanted && decoder_check_ready(c) && is_still_there;
  if (own->max_pixels == 0) own->max_pixels = c->options.max_pixels;
  if (own->max_memory_bytes == 0) own->max_memory_bytes = c->options.max_memory_bytes;
  own->keep_colour = 0;
  own->allocator = c->options.allocator;
  context_clear_error(c); /* of a decoder that is not there */
  return HS_OK;
}

/* A mask of the original's size is made smaller with the picture; whatever else is wrong with it the frame says. */
static hs_status fit_mask(const file_source *source, const hs_image *mask, file_picture *picture) {
  const hs_image *image = &picture->image;
  picture->mask = *mask;
  picture->mask.memory = NULL;
  const bool is_originals = image->original_width != 0 && mask->width == image->original_width &&
                            mask->height == image->original_height && mask->data && mask->type == HS_U8 &&
                            mask->layout == HS_GRAY;
  if (!is_originals) return HS_OK;
  uint8_t *pixels = hs_memory_alloc(source->load.allocator, (size_t)image->width * (size_t)image->height);
  if (!pixels) return HS_ERR_MEMORY;
  mask_shrink(mask, image, pixels);
  picture->mask = (hs_image){.data = pixels,
                             .width = image->width,
                             .height = image->height,
                             .memory = pixels,
                             .allocator = source->load.allocator};
  return HS_OK;
}

hs_status file_source_read(const file_source *source, const hs_image *mask, file_picture *picture, char *reason,
                           size_t reason_bytes) {
  hs_load_options load = source->load;
  load.message = reason;
  load.message_bytes = reason_bytes;
  load.keep_encoded = source->keep_encoded && !mask; /* a mask lies on the host, and the picture beside it */
  *picture = (file_picture){0};
  hs_message_set(reason, reason_bytes, "%s", "");
  hs_status st = source->path ? hs_load_image(source->path, &load, &picture->image)
                              : hs_load_image_memory(source->bytes, source->size, &load, &picture->image);
  /* A view of the caller's bytes needs nothing freed. */
  if (st == HS_OK && mask) st = fit_mask(source, mask, picture);
  if (st == HS_OK) return st;
  file_picture_free(picture);
  if (reason[0] == '\0') hs_message_set(reason, reason_bytes, "%s", hs_status_string(st));
  return st;
}

bool file_source_again(const hs_image *image, hs_status frame) {
  return image->layout == HS_JPEG && hs_status_class_of(frame) == HS_CLASS_ARGUMENT;
}

void file_picture_place(const file_picture *picture, hs_features *features) {
  (void)hs_features_to_original(features, &picture->image); /* of this picture: nothing to refuse */
}

void file_picture_free(file_picture *picture) {
  hs_image_free(&picture->image);
  hs_image_free(&picture->mask);
}
