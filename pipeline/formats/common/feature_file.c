/*
 * Functions for readers and writers of feature files: reading a file's bytes, checks before writing, memory within the
 * limits, error messages, decompression.
 */
#include "pipeline/formats/common/feature_file.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "os/os_files.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/features.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/formats/common/feature_codec.h"

/* Upper bound of the bytes per feature in any format (128 floats as text with separators), and of further bytes per
 * file. */
enum { FEATURE_TEXT_MAX_BYTES = 8192, FILE_EXTRA_BYTES = 1 << 20 };

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

/* True if a keypoint is valid; if it is not, the caller finds the reason. */
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
  if (features->count > FEATURES_MAX_DEFAULT) return target_fail(target, HS_ERR_ARGUMENT, "more than 2^27 features");
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
    int64_t got = os_read(descriptor, content->bytes + filled, content->size - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return load_fail_errno(source, path, "cannot read");
    if (got == 0) break;
    filled += (size_t)got;
  }
  content->size = filled;
  return HS_OK;
}

/* Returns an upper bound of the size of a file with max_features features, so that a wrong file cannot exhaust
 * memory. */
static uint64_t content_most(const feature_source *source) {
  if (source->max_features > (UINT64_MAX >> 14)) return UINT64_MAX;
  return source->max_features * FEATURE_TEXT_MAX_BYTES + FILE_EXTRA_BYTES;
}

static hs_status load_open_file(int descriptor, const feature_source *source, const char *path, file_content *content) {
  os_info info;
  if (!os_info_of_open(descriptor, &info)) return load_fail_errno(source, path, "cannot read");
  if (info.kind != OS_REGULAR)
    return hs_message_fail(HS_ERR_IO, source->message, source->message_bytes, "%s: not a regular file", path);
  if (info.size > content_most(source) || info.size > SIZE_MAX / 2)
    return hs_message_fail(HS_ERR_LIMIT, source->message, source->message_bytes,
                           "%s: larger than %llu features can need", path, (unsigned long long)source->max_features);
  const hs_status status = source_check_memory(source, info.size);
  if (status != HS_OK) return status;
  content->size = (size_t)info.size;
  content->bytes = hs_memory_alloc(source->allocator, content->size);
  if (!content->bytes)
    return hs_message_fail(HS_ERR_MEMORY, source->message, source->message_bytes, "%s: out of memory for its %zu bytes",
                           path, content->size);
  return load_fill(descriptor, source, path, content);
}

static hs_status load_file(const feature_source *source, const char *path, file_content *content) {
  int descriptor = os_open(path, OS_READ);
  if (descriptor < 0) return load_fail_errno(source, path, "cannot open");
  hs_status status = load_open_file(descriptor, source, path, content);
  os_close(descriptor);
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
  os_info info;
  const int descriptor = os_open(path, OS_READ);
  if (descriptor < 0) return 0;
  const bool filled = os_info_of_open(descriptor, &info) && info.kind == OS_REGULAR &&
                      load_fill(descriptor, &source, path, &content) == HS_OK;
  os_close(descriptor);
  if (!filled || !gzip_begins(bytes, content.size)) return filled ? content.size : 0;
  uint8_t packed[SOURCE_BEGINNING_BYTES];
  memcpy(packed, bytes, content.size);
  return gzip_decompress_beginning(packed, content.size, bytes, SOURCE_BEGINNING_BYTES);
}

/* ---- memory and failures of readers */

hs_status source_fail(const feature_source *source, hs_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  hs_message_set_about(source->message, source->message_bytes, source->path, format, arguments);
  va_end(arguments);
  return status;
}

hs_status source_check_memory(const feature_source *source, uint64_t bytes) {
  char limit[MACHINE_MEMORY_LIMIT_TEXT_BYTES];
  const uint64_t content = (uint64_t)source->size + (uint64_t)source->second_size;
  const uint64_t need = bytes <= UINT64_MAX - content ? bytes + content : UINT64_MAX;
  if (machine_memory_allows(source->max_memory_bytes, need)) return HS_OK;
  machine_memory_describe_limit(source->max_memory_bytes, limit);
  return source_fail(source, HS_ERR_LIMIT, "reading it needs %llu bytes, more than %s", (unsigned long long)need,
                     limit);
}

/* Returns the bytes per feature of a list that a reader fills. */
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
  if (status != HS_OK) return source_fail(source, status, "out of memory for %llu features", (unsigned long long)count);
  return HS_OK;
}

hs_status source_reserve(const feature_source *source, hs_features *features, uint64_t count, hs_descriptor_type type) {
  return reserve(source, features, count, type, false);
}

hs_status source_reserve_framed(const feature_source *source, hs_features *features, uint64_t count,
                                hs_descriptor_type type) {
  return reserve(source, features, count, type, true);
}

/* ---- gzip-compressed content. Its decompressed size is unknown, because the size in the file is not trusted. */

#ifndef HARTSIFT_HAVE_ZLIB
#  define HARTSIFT_HAVE_ZLIB 0
#endif

bool gzip_begins(const uint8_t *bytes, size_t size) {
  return size >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8;
}

#if HARTSIFT_HAVE_ZLIB
#  include <zlib.h>

enum { GZIP_WINDOW = MAX_WBITS + 16, GZIP_FIRST_BYTES = 1 << 16, GZIP_STEP_MAX = 1 << 30 };

/* State of decompressing a file. */
typedef struct gzip_state {
  z_stream stream;
  const feature_source *source;
  const char *path;
  const uint8_t *packed;
  size_t packed_size, packed_at;
  uint8_t *out;
  size_t capacity, size;
  uint64_t most;
} gzip_state;

static hs_status gzip_fail(const gzip_state *s, hs_status status, const char *reason) {
  return hs_message_fail(status, s->source->message, s->source->message_bytes, "%s: %s", s->path, reason);
}

/* Doubles the output buffer. */
static hs_status gzip_grow(gzip_state *s) {
  const size_t capacity = s->capacity > 0 ? 2 * s->capacity : GZIP_FIRST_BYTES;
  if (s->size > s->most || capacity > SIZE_MAX / 4)
    return gzip_fail(s, HS_ERR_LIMIT, "decompressed, it is larger than its features can need");
  const hs_status status = source_check_memory(s->source, (uint64_t)capacity + s->capacity + s->packed_size);
  if (status != HS_OK) return status;
  uint8_t *out = hs_memory_alloc(s->source->allocator, capacity);
  if (!out) return gzip_fail(s, HS_ERR_MEMORY, "out of memory for its decompressed content");
  if (s->size > 0) memcpy(out, s->out, s->size);
  hs_memory_release(s->source->allocator, s->out);
  s->out = out;
  s->capacity = capacity;
  return HS_OK;
}

/* Runs zlib once on the input and output buffers. */
static int gzip_step(gzip_state *s) {
  const size_t in = s->packed_size - s->packed_at, out = s->capacity - s->size;
  const uInt in_part = (uInt)(in < GZIP_STEP_MAX ? in : GZIP_STEP_MAX);
  const uInt out_part = (uInt)(out < GZIP_STEP_MAX ? out : GZIP_STEP_MAX);
  s->stream.next_in = (z_const Bytef *)(s->packed + s->packed_at);
  s->stream.avail_in = in_part;
  s->stream.next_out = s->out + s->size;
  s->stream.avail_out = out_part;
  const int result = inflate(&s->stream, Z_NO_FLUSH);
  s->packed_at += in_part - s->stream.avail_in;
  s->size += out_part - s->stream.avail_out;
  return result;
}

/* True if only zeros are left, with which tape archives are padded. */
static bool gzip_is_padding(const gzip_state *s) {
  for (size_t i = s->packed_at; i < s->packed_size; i++)
    if (s->packed[i] != 0) return false;
  return true;
}

static hs_status gzip_run(gzip_state *s) {
  for (;;) {
    const hs_status status = s->size == s->capacity ? gzip_grow(s) : HS_OK;
    if (status != HS_OK) return status;
    const int result = gzip_step(s);
    if (result == Z_STREAM_END) {
      if (gzip_is_padding(s)) return HS_OK;
      if (!gzip_begins(s->packed + s->packed_at, s->packed_size - s->packed_at))
        return gzip_fail(s, HS_ERR_FORMAT, "uncompressed bytes follow the compressed content");
      if (inflateReset(&s->stream) != Z_OK) return gzip_fail(s, HS_ERR_FORMAT, "damaged compressed content");
      continue;
    }
    if (result == Z_MEM_ERROR) return gzip_fail(s, HS_ERR_MEMORY, "out of memory for decompressing it");
    if (result != Z_OK && result != Z_BUF_ERROR) return gzip_fail(s, HS_ERR_FORMAT, "damaged compressed content");
    if (s->packed_at == s->packed_size && s->size < s->capacity)
      return gzip_fail(s, HS_ERR_FORMAT, "the compressed content is cut off");
  }
}

void *zlib_alloc(void *user, unsigned items, unsigned size) {
  size_t bytes;
  const hs_allocator *const *allocator = user;
  return hs_size_mul(items, size, &bytes) ? hs_memory_alloc(*allocator, bytes) : NULL;
}

void zlib_release(void *user, void *pointer) {
  const hs_allocator *const *allocator = user;
  hs_memory_release(*allocator, pointer);
}

hs_status gzip_decompress(const feature_source *source, const char *path, uint64_t most, uint8_t **bytes,
                          size_t *size) {
  const hs_allocator *allocator = source->allocator;
  gzip_state s = {.stream = {.zalloc = zlib_alloc, .zfree = zlib_release, .opaque = (voidpf)&allocator},
                  .source = source,
                  .path = path,
                  .packed = *bytes,
                  .packed_size = *size,
                  .most = most};
  if (inflateInit2(&s.stream, GZIP_WINDOW) != Z_OK)
    return gzip_fail(&s, HS_ERR_MEMORY, "out of memory for decompressing it");
  const hs_status status = gzip_run(&s);
  (void)inflateEnd(&s.stream);
  hs_memory_release(allocator, status == HS_OK ? *bytes : s.out);
  if (status != HS_OK) return status;
  *bytes = s.out;
  *size = s.size;
  return HS_OK;
}

size_t gzip_decompress_beginning(const uint8_t *packed, size_t packed_size, uint8_t *out, size_t capacity) {
  gzip_state s = {.packed = packed, .packed_size = packed_size, .out = out, .capacity = capacity};
  if (inflateInit2(&s.stream, GZIP_WINDOW) != Z_OK) return 0;
  while (s.size < capacity && gzip_step(&s) == Z_OK && s.packed_at < packed_size) {}
  (void)inflateEnd(&s.stream);
  return s.size;
}
#else
hs_status gzip_decompress(const feature_source *source, const char *path, uint64_t most, uint8_t **bytes,
                          size_t *size) {
  (void)most;
  (void)bytes;
  (void)size;
  return hs_message_fail(HS_ERR_UNSUPPORTED, source->message, source->message_bytes,
                         "%s: it is compressed with gzip, and this build has no zlib", path);
}

size_t gzip_decompress_beginning(const uint8_t *packed, size_t packed_size, uint8_t *out, size_t capacity) {
  (void)packed;
  (void)packed_size;
  (void)out;
  (void)capacity;
  return 0;
}
#endif
