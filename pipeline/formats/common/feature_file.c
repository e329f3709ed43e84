/*
 * What every reader and writer of feature files asks: a file's bytes, and the check of what is to be written.
 */
#include "pipeline/formats/common/feature_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/base/adopt.h"
#include "pipeline/base/features.h"
#include "pipeline/base/machine_memory.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/message.h"
#include "pipeline/base/origin.h"
#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/common/gzip_content.h"

/* No format spends more bytes on a feature (128 floats as text with separators, and room to spare). */
enum { FEATURE_TEXT_MOST_BYTES = 8192, FILE_EXTRA_BYTES = 1 << 20 };

hs_status target_fail(const feature_target *target, hs_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  hs_message_set_about(target->message, target->message_bytes, target->path, format, arguments);
  va_end(arguments);
  return status;
}

static hs_status features_check_descriptors(const feature_target *target) {
  const hs_features *features = target->features;
  if (features->descriptor_type == HS_DESCRIPTOR_NONE || features->count == 0) return HS_OK;
  if (!features->descriptors) return target_fail(target, HS_ERR_ARGUMENT, "descriptors is null");
  if (features->descriptor_type != HS_DESCRIPTOR_F32) return HS_OK;
  for (size_t i = 0; i < features->count; i++) {
    for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++)
      if (!isfinite(descriptor_f32_at(features, i)[k]))
        return target_fail(target, HS_ERR_ARGUMENT, "descriptor %zu has an entry that is not finite", i);
  }
  return HS_OK;
}

static hs_status features_check_origin(const feature_target *target) {
  const hs_origin *origin = &target->features->origin;
  if (!RESERVED_IS_CLEAR(origin->reserved) || origin->method_version < 0 || origin->method_version > UINT16_MAX ||
      origin->exif_orientation < 0 || origin->exif_orientation > 8 || (uint32_t)origin->dsp > 1)
    return target_fail(target, HS_ERR_ARGUMENT, "features.origin is out of its range: start with {0}");
  if (origin->method_version == 0) return HS_OK;
  if (!origin_profile_name(origin->profile) || !origin_norm_name(origin))
    return target_fail(target, HS_ERR_ARGUMENT, "features.origin has no known profile or norm");
  if (target->features->descriptor_type == HS_DESCRIPTOR_NONE || origin->layout == target->layout) return HS_OK;
  return target_fail(target, HS_ERR_ARGUMENT,
                     "options.layout says that the descriptors are in %s order, features.origin.layout in %s order",
                     target->layout == HS_LAYOUT_UBC ? "UBC" : "VLFeat's",
                     origin->layout == HS_LAYOUT_UBC ? "UBC" : "VLFeat's");
}

hs_status features_check_unturned(const feature_target *target, const char *program) {
  const int32_t orientation = target->features->origin.exif_orientation;
  if (orientation <= 1) return HS_OK;
  return target_fail(
      target, HS_ERR_ARGUMENT,
      "these features are of a picture turned by its EXIF orientation %ld, and %s reads it as stored: load "
      "it as stored (ignore_exif), or set origin.exif_orientation to 0 where there are turned copies",
      (long)orientation, program);
}

/* Whether nothing is wrong with a keypoint; the reason is looked for where something is. */
static bool keypoint_is_sound(const hs_keypoint *k) {
  return isfinite(k->x) && isfinite(k->y) && isfinite(k->sigma) && k->sigma > 0.0f && isfinite(k->orientation) &&
         isfinite(k->response) && k->level >= 0;
}

hs_status features_check(const feature_target *target) {
  const hs_features *features = target->features;
  if (features->descriptor_type != HS_DESCRIPTOR_U8 && features->descriptor_type != HS_DESCRIPTOR_F32 &&
      features->descriptor_type != HS_DESCRIPTOR_NONE)
    return target_fail(target, HS_ERR_ARGUMENT, "descriptor_type is not a known type");
  if (!RESERVED_IS_CLEAR(features->reserved))
    return target_fail(target, HS_ERR_ARGUMENT, "features.reserved is set: start with {0}, or use a later library");
  if (features->image_width < 0 || features->image_height < 0)
    return target_fail(target, HS_ERR_ARGUMENT, "the image size is negative");
  if (features->count > FEATURES_MOST_DEFAULT) return target_fail(target, HS_ERR_ARGUMENT, "more than 2^27 features");
  if (features->count > 0 && !features->keypoints) return target_fail(target, HS_ERR_ARGUMENT, "keypoints is null");
  for (size_t i = 0; i < features->count; i++) {
    const hs_keypoint *k = &features->keypoints[i];
    hs_keypoint checked;
    if (keypoint_is_sound(k)) continue;
    const char *fault = keypoint_fill(&checked, (double)k->x, (double)k->y, (double)k->sigma, (double)k->orientation);
    if (!fault) fault = keypoint_fill_origin(&checked, (double)k->response, k->octave, k->level);
    if (fault) return target_fail(target, HS_ERR_ARGUMENT, "keypoint %zu: %s", i, fault);
  }
  for (size_t i = 0; features->frames && i < features->count; i++)
    if (!frame_has_inverse(&features->frames[i]))
      return target_fail(target, HS_ERR_ARGUMENT, "frame %zu has no inverse", i);
  const hs_status status = features_check_origin(target);
  return status == HS_OK ? features_check_descriptors(target) : status;
}

/* A file's content. */
typedef struct file_content {
  uint8_t *bytes;
  size_t size;
} file_content;

static hs_status load_fail_errno(const feature_source *source, const char *path, const char *what) {
  hs_message_set_errno(source->message, source->message_bytes, errno, "%s: %s", path, what);
  return HS_ERR_IO;
}

static hs_status load_fill(int descriptor, const feature_source *source, const char *path, file_content *content) {
  size_t filled = 0;
  while (filled < content->size) {
    ssize_t got = read(descriptor, content->bytes + filled, content->size - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return load_fail_errno(source, path, "cannot read");
    if (got == 0) break;
    filled += (size_t)got;
  }
  content->size = filled;
  return HS_OK;
}

/* Bytes that max_features features can need, so that a wrong file does not fill the memory. */
static uint64_t content_most(const feature_source *source) {
  if (source->max_features > (UINT64_MAX >> 14)) return UINT64_MAX;
  return source->max_features * FEATURE_TEXT_MOST_BYTES + FILE_EXTRA_BYTES;
}

static hs_status load_open_file(int descriptor, const feature_source *source, const char *path, file_content *content) {
  struct stat info;
  if (fstat(descriptor, &info) != 0) return load_fail_errno(source, path, "cannot read");
  if (!S_ISREG(info.st_mode)) {
    hs_message_set(source->message, source->message_bytes, "%s: not a regular file", path);
    return HS_ERR_IO;
  }
  if ((uint64_t)info.st_size > content_most(source) || (uint64_t)info.st_size > SIZE_MAX / 2) {
    hs_message_set(source->message, source->message_bytes, "%s: larger than %llu features can need", path,
                   (unsigned long long)source->max_features);
    return HS_ERR_LIMIT;
  }
  const hs_status status = source_check_memory(source, (uint64_t)info.st_size);
  if (status != HS_OK) return status;
  content->size = (size_t)info.st_size;
  content->bytes = hs_memory_alloc(source->allocator, content->size);
  if (!content->bytes) {
    hs_message_set(source->message, source->message_bytes, "%s: no memory for its %zu bytes", path, content->size);
    return HS_ERR_MEMORY;
  }
  return load_fill(descriptor, source, path, content);
}

static hs_status load_file(const feature_source *source, const char *path, file_content *content) {
  int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return load_fail_errno(source, path, "cannot open");
  hs_status status = load_open_file(descriptor, source, path, content);
  (void)close(descriptor);
  return status;
}

hs_status source_load_file(const feature_source *source, const char *path, uint8_t **bytes, size_t *size) {
  file_content content = {0};
  hs_status status = load_file(source, path, &content);
  if (status == HS_OK && gzip_begins(content.bytes, content.size))
    status = gzip_decompress(source, path, content_most(source), &content.bytes, &content.size);
  *bytes = content.bytes;
  *size = content.size;
  return status;
}

size_t source_read_beginning(const char *path, uint8_t bytes[SOURCE_BEGINNING_BYTES]) {
  const feature_source source = {.path = path};
  file_content content = {bytes, SOURCE_BEGINNING_BYTES};
  struct stat info;
  const int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return 0;
  const bool filled =
      fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && load_fill(descriptor, &source, path, &content) == HS_OK;
  (void)close(descriptor);
  if (!filled || !gzip_begins(bytes, content.size)) return filled ? content.size : 0;
  uint8_t packed[SOURCE_BEGINNING_BYTES];
  memcpy(packed, bytes, content.size);
  return gzip_decompress_beginning(packed, content.size, bytes, SOURCE_BEGINNING_BYTES);
}
