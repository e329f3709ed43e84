/*
 * What readers of feature files ask besides bytes: memory within the limits, and a failure explained.
 */
#include <stdarg.h>

#include "pipeline/base/features.h"
#include "pipeline/base/machine_memory.h"
#include "pipeline/base/message.h"
#include "pipeline/formats/common/feature_file.h"

hs_status source_fail(const feature_source *source, hs_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  hs_message_set_about(source->message, source->message_bytes, source->path, format, arguments);
  va_end(arguments);
  return status;
}

hs_status source_check_memory(const feature_source *source, uint64_t bytes) {
  char limit[MACHINE_MEMORY_LIMIT_TEXT_BYTES];
  const uint64_t content = (uint64_t)source->size + (uint64_t)source->beside_size;
  const uint64_t need = bytes <= UINT64_MAX - content ? bytes + content : UINT64_MAX;
  if (machine_memory_allows(source->max_memory_bytes, need)) return HS_OK;
  machine_memory_describe_limit(source->max_memory_bytes, limit);
  return source_fail(source, HS_ERR_LIMIT, "reading it needs %llu bytes, more than %s", (unsigned long long)need,
                     limit);
}

/* Of a list that the readers make. */
static uint64_t bytes_of_feature(hs_descriptor_type type) {
  const uint64_t entry_bytes = type == HS_DESCRIPTOR_F32 ? sizeof(float) : type == HS_DESCRIPTOR_U8 ? 1 : 0;
  return sizeof(hs_keypoint) + HS_DESCRIPTOR_LENGTH * entry_bytes;
}

static hs_status reserve(const feature_source *source, hs_features *features, uint64_t count, hs_descriptor_type type,
                         bool with_frames) {
  if (count > source->max_features) {
    return source_fail(source, HS_ERR_LIMIT, "the file holds %llu features, more than the limit of %llu",
                       (unsigned long long)count, (unsigned long long)source->max_features);
  }
  const uint64_t each = bytes_of_feature(type) + (with_frames ? sizeof(hs_frame) : 0);
  hs_status status = source_check_memory(source, count <= UINT64_MAX / each ? count * each : UINT64_MAX);
  if (status != HS_OK) return status;
  if (count > SIZE_MAX)
    status = HS_ERR_MEMORY;
  else
    status = features_reserve_framed(features, (size_t)count, type, with_frames, source->allocator);
  if (status != HS_OK) return source_fail(source, status, "no memory for %llu features", (unsigned long long)count);
  return HS_OK;
}

hs_status source_reserve(const feature_source *source, hs_features *features, uint64_t count, hs_descriptor_type type) {
  return reserve(source, features, count, type, false);
}

hs_status source_reserve_framed(const feature_source *source, hs_features *features, uint64_t count,
                                hs_descriptor_type type) {
  return reserve(source, features, count, type, true);
}
