/* What all readers of images share: checks of limits, memory for the picture, messages of failures. */
#include <string.h>

#include "pipeline/base/machine_memory.h"
#include "pipeline/base/memory.h"
#include "pipeline/image_io/image_io.h"

hs_status image_fail(const image_request *request, hs_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  hs_message_set_about(request->message, request->message_bytes, request->name, format, arguments);
  va_end(arguments);
  return status;
}

void image_ran_short(const image_request *request) {
  if (request->found) request->found->ran_short = true;
}

void image_note_damage(const image_request *request, const char *format, ...) {
  if (!request->found) return;
  hs_load_notes *notes = &request->found->notes;
  va_list arguments;
  if (notes->damages < INT32_MAX && notes->damages++ > 0) return;
  va_start(arguments, format);
  hs_message_set_about(notes->damage, sizeof notes->damage, request->name, format, arguments);
  va_end(arguments);
}

hs_status image_check_damage(const image_request *request) {
  const hs_load_notes *notes = request->found ? &request->found->notes : NULL;
  if (!request->strict || !notes || notes->damages == 0) return HS_OK;
  hs_message_set(request->message, request->message_bytes, "%s; %ld such report%s, refused because strict is set",
                 notes->damage, (long)notes->damages, notes->damages == 1 ? "" : "s");
  return HS_ERR_FORMAT;
}

hs_status image_give_notes(const image_request *request, hs_status status) {
  if (request->notes && request->found) *request->notes = request->found->notes;
  if (request->notes && status != HS_OK) memset(request->notes, 0, sizeof *request->notes);
  return status;
}

size_t image_channels(hs_pixel_layout layout) {
  switch (layout) {
  case HS_GRAY:
    return 1;
  case HS_GRAY_ALPHA:
    return 2;
  case HS_RGB:
  case HS_BGR:
    return 3;
  case HS_RGBA:
  case HS_BGRA:
    return 4;
  case HS_JPEG:
    break;
  }
  return 0;
}

size_t image_sample_bytes(hs_sample_type type) { return type == HS_U8 ? 1 : type == HS_U16 ? 2 : 4; }

hs_status image_check_size(const image_request *request, uint64_t width, uint64_t height) {
  if (width == 0 || height == 0) return image_fail(request, HS_ERR_FORMAT, "the picture has no pixels");
  if (width > INT32_MAX || height > INT32_MAX || width > request->max_pixels / height) {
    return image_fail(request, HS_ERR_LIMIT, "%llu x %llu pixels are more than the limit, max_pixels is %llu",
                      (unsigned long long)width, (unsigned long long)height, (unsigned long long)request->max_pixels);
  }
  return HS_OK;
}

hs_status image_check_memory(const image_request *request, uint64_t bytes, const char *what) {
  char limit[MACHINE_MEMORY_LIMIT_TEXT_BYTES];
  if (machine_memory_allows(request->max_memory_bytes, bytes)) return HS_OK;
  machine_memory_describe_limit(request->max_memory_bytes, limit);
  return image_fail(request, HS_ERR_LIMIT, "%s needs %llu bytes, more than %s", what, (unsigned long long)bytes, limit);
}

hs_status image_allocate(const image_request *request, int32_t width, int32_t height, hs_sample_type type,
                         hs_pixel_layout layout, uint64_t working_bytes, hs_image *image) {
  size_t stride = 0, bytes = 0, need = 0;
  const bool fits = hs_size_mul((size_t)width, image_channels(layout) * image_sample_bytes(type), &stride) &&
                    hs_size_mul(stride, (size_t)height, &bytes) && hs_size_add(bytes, request->size, &need) &&
                    working_bytes <= SIZE_MAX - need;
  char what[64];
  snprintf(what, sizeof what, "decoding %ld x %ld pixels", (long)width, (long)height);
  if (!fits) return image_fail(request, HS_ERR_LIMIT, "%s needs more memory than can be addressed", what);
  if (request->is_probe) {
    const hs_status room = request->is_stream ? image_check_memory(request, bytes, what) : HS_OK;
    return room == HS_OK ? HS_ERR_CANCELLED : room;
  }
  const hs_status status = image_check_memory(request, need + working_bytes, what);
  if (status != HS_OK && request->need) *request->need = (image_need){width, height, need + working_bytes};
  if (status != HS_OK) return status;
  void *pixels = hs_memory_alloc(request->allocator, bytes);
  if (!pixels) return image_fail(request, HS_ERR_MEMORY, "no memory for %ld x %ld pixels", (long)width, (long)height);
  *image = (hs_image){.data = pixels,
                      .width = width,
                      .height = height,
                      .stride_bytes = stride,
                      .type = type,
                      .layout = layout,
                      .memory = pixels,
                      .allocator = request->allocator};
  return HS_OK;
}

void hs_image_free(hs_image *image) {
  if (image) {
    hs_memory_release(image->allocator, image->memory);
    memset(image, 0, sizeof *image);
  }
}
