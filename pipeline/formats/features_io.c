/*
 * Saving and loading of feature files: chooses the format, validates, opens and commits; the layouts
 * are in format_*.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/base/atomic_file.h"
#include "pipeline/base/features.h"
#include "pipeline/formats/feature_codec.h"
#include "pipeline/formats/formats.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/message.h"

/* Default of hs_file_options.max_features. */
#define FEATURES_MOST (UINT64_C(1) << 27)
/* No format spends more bytes on a feature (128 floats as text with separators, and room to spare). */
enum { FEATURE_TEXT_MOST_BYTES = 8192, FILE_EXTRA_BYTES = 1 << 20 };

/* Of two formats with one ending the earlier one is written by it. */
static const feature_format *const format_table[] = {
    &format_colmap, &format_npz,     &format_csv, &format_json,      &format_lowe,   &format_vlfeat,
    &format_opencv, &format_openmvg, &format_bin, &format_colmap_db, &format_visualsfm, &format_oxford};

const feature_format *format_at(size_t index) {
  return index < sizeof format_table / sizeof format_table[0] ? format_table[index] : NULL;
}

const feature_format *format_by_id(hs_format id) {
  for (size_t i = 0; format_at(i) != NULL; i++) {
    if (format_at(i)->id == id) return format_at(i);
  }
  return NULL;
}

const feature_format *format_by_name(const char *name) {
  for (size_t i = 0; name != NULL && format_at(i) != NULL; i++) {
    if (strcmp(format_at(i)->name, name) == 0) return format_at(i);
  }
  return NULL;
}

/* ASCII only: file endings must not depend on the locale. */
static bool path_ends_with(const char *path, const char *ending) {
  size_t path_size = strlen(path);
  size_t ending_size = strlen(ending);
  if (path_size <= ending_size) return false;
  const char *tail = path + (path_size - ending_size);
  for (size_t i = 0; i < ending_size; i++) {
    char c = tail[i];
    if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
    if (c != ending[i]) return false;
  }
  return true;
}

const feature_format *format_by_ending(const char *path) {
  for (size_t i = 0; path != NULL && format_at(i) != NULL; i++) {
    const feature_format *format = format_at(i);
    for (size_t k = 0; k < 3 && format->endings[k] != NULL; k++) {
      if (path_ends_with(path, format->endings[k])) return format;
    }
  }
  return NULL;
}

const feature_format *format_by_content(const uint8_t *bytes, size_t size, const feature_format *first) {
  if (first != NULL && first->probe(bytes, size)) return first;
  for (size_t i = 0; size > 0 && format_at(i) != NULL; i++) {
    if (format_at(i)->probe(bytes, size)) return format_at(i);
  }
  return NULL;
}

hs_format hs_format_of_name(const char *path) {
  const feature_format *format = format_by_ending(path);
  return format != NULL ? format->id : HS_FORMAT_AUTO;
}

/* "path: reason" for both sides; the reason is cut rather than lost. */
static void fail_message(char *message, size_t bytes, const char *path, const char *format, va_list arguments) {
  char reason[384];
  if (vsnprintf(reason, sizeof reason, format, arguments) < 0) reason[0] = '\0';
  hs_message_set(message, bytes, "%s: %s", path, reason);
}

hs_status source_fail(const feature_source *source, hs_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fail_message(source->message, source->message_bytes, source->path, format, arguments);
  va_end(arguments);
  return status;
}

hs_status target_fail(const feature_target *target, hs_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fail_message(target->message, target->message_bytes, target->path, format, arguments);
  va_end(arguments);
  return status;
}

hs_status source_reserve(const feature_source *source, hs_features *features, uint64_t count, hs_descriptor_type type) {
  if (count > source->max_features) {
    return source_fail(source, HS_ERR_LIMIT, "the file holds %llu features, more than the limit of %llu",
                       (unsigned long long)count, (unsigned long long)source->max_features);
  }
  hs_status status =
      count > SIZE_MAX ? HS_ERR_MEMORY : features_reserve(features, (size_t)count, type, source->allocator);
  if (status != HS_OK) {
    return source_fail(source, status, "no memory for %llu features", (unsigned long long)count);
  }
  return HS_OK;
}

/* Options with every field set, also when the caller gives none. */
static hs_status options_complete(const hs_file_options *options, hs_file_options *complete) {
  *complete = (hs_file_options){.struct_size = sizeof *complete};
  if (options != NULL) {
    if (options->struct_size < sizeof *complete) return HS_ERR_ARGUMENT;
    *complete = *options;
  }
  if (complete->max_features == 0) complete->max_features = FEATURES_MOST;
  hs_message_set(complete->message, complete->message_bytes, "%s", "");
  return HS_OK;
}

/* ------------------------------------------------------------------ writing */

static hs_status features_check_descriptors(const feature_target *target) {
  const hs_features *features = target->features;
  if (features->descriptor_type == HS_DESCRIPTOR_NONE || features->count == 0) return HS_OK;
  if (features->descriptors == NULL) return target_fail(target, HS_ERR_ARGUMENT, "descriptors is null");
  if (features->descriptor_type != HS_DESCRIPTOR_F32) return HS_OK;
  for (size_t i = 0; i < features->count; i++) {
    for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) {
      if (!isfinite(descriptor_f32_at(features, i)[k])) {
        return target_fail(target, HS_ERR_ARGUMENT, "descriptor %zu has an entry that is not finite", i);
      }
    }
  }
  return HS_OK;
}

hs_status features_check(const feature_target *target) {
  const hs_features *features = target->features;
  if (features->descriptor_type != HS_DESCRIPTOR_U8 && features->descriptor_type != HS_DESCRIPTOR_F32 &&
      features->descriptor_type != HS_DESCRIPTOR_NONE) {
    return target_fail(target, HS_ERR_ARGUMENT, "descriptor_type is no known type");
  }
  if (features->image_width < 0 || features->image_height < 0) {
    return target_fail(target, HS_ERR_ARGUMENT, "the image size is negative");
  }
  if (features->count > FEATURES_MOST) return target_fail(target, HS_ERR_ARGUMENT, "more than 2^27 features");
  if (features->count > 0 && features->keypoints == NULL)
    return target_fail(target, HS_ERR_ARGUMENT, "keypoints is null");
  for (size_t i = 0; i < features->count; i++) {
    const hs_keypoint *k = &features->keypoints[i];
    hs_keypoint checked;
    const char *fault = keypoint_fill(&checked, (double)k->x, (double)k->y, (double)k->sigma, (double)k->orientation);
    if (fault == NULL) fault = keypoint_fill_origin(&checked, (double)k->response, k->octave, k->level);
    if (fault != NULL) return target_fail(target, HS_ERR_ARGUMENT, "keypoint %zu: %s", i, fault);
  }
  return features_check_descriptors(target);
}

static hs_status save_choose_format(const feature_target *target, hs_format id, const feature_format **format) {
  *format = id == HS_FORMAT_AUTO ? format_by_ending(target->path) : format_by_id(id);
  if (*format == NULL) {
    return target_fail(target, HS_ERR_ARGUMENT,
                       id == HS_FORMAT_AUTO ? "the name's ending stands for no feature format"
                                            : "no such feature format");
  }
  if (target->features->descriptor_type == HS_DESCRIPTOR_NONE && !(*format)->without_descriptors) {
    return target_fail(target, HS_ERR_UNSUPPORTED, "the %s format cannot hold keypoints without descriptors",
                       (*format)->name);
  }
  return HS_OK;
}

static hs_status save_failed_file(const feature_target *target, const atomic_file *file) {
  hs_message_set(target->message, target->message_bytes, "%s", file->message);
  return file->status;
}

static hs_status save_single(feature_target *target, const feature_format *format) {
  atomic_file file;
  target->stream = atomic_file_open(&file, target->path);
  if (target->stream == NULL) return save_failed_file(target, &file);
  hs_status status = format->write(target);
  if (status != HS_OK) {
    atomic_file_abandon(&file);
    return status;
  }
  if (atomic_file_commit(&file) != HS_OK) return save_failed_file(target, &file);
  return HS_OK;
}

/* The name of the second file: the format's own ending exchanged. False when the name has another ending. */
static bool beside_path_of(const char *path, const feature_format *format, char out[ATOMIC_FILE_PATH_BYTES]) {
  if (!path_ends_with(path, format->endings[0])) return false;
  size_t stem = strlen(path) - strlen(format->endings[0]);
  if (stem + strlen(format->beside_ending) >= ATOMIC_FILE_PATH_BYTES) return false;
  memcpy(out, path, stem);
  strcpy(out + stem, format->beside_ending);
  return true;
}

/* Both files are complete under temporary names before either is renamed. */
static hs_status save_commit_pair(const feature_target *target, atomic_file *file, atomic_file *beside) {
  if (fflush(beside->stream) != 0 || fflush(file->stream) != 0) {
    hs_message_set_errno(target->message, target->message_bytes, errno, "%s: cannot write", target->path);
    atomic_file_abandon(beside);
    atomic_file_abandon(file);
    return HS_ERR_IO;
  }
  if (atomic_file_commit(beside) != HS_OK) {
    atomic_file_abandon(file);
    return save_failed_file(target, beside);
  }
  if (atomic_file_commit(file) != HS_OK) return save_failed_file(target, file);
  return HS_OK;
}

static hs_status save_pair(feature_target *target, const feature_format *format) {
  char beside_path[ATOMIC_FILE_PATH_BYTES];
  if (!beside_path_of(target->path, format, beside_path)) {
    return target_fail(target, HS_ERR_ARGUMENT, "the %s format writes two files: the name must end in %s", format->name,
                       format->endings[0]);
  }
  atomic_file file;
  atomic_file beside;
  target->stream = atomic_file_open(&file, target->path);
  if (target->stream == NULL) return save_failed_file(target, &file);
  target->beside_stream = atomic_file_open(&beside, beside_path);
  if (target->beside_stream == NULL) {
    atomic_file_abandon(&file);
    return save_failed_file(target, &beside);
  }
  hs_status status = format->write(target);
  if (status != HS_OK) {
    atomic_file_abandon(&beside);
    atomic_file_abandon(&file);
    return status;
  }
  return save_commit_pair(target, &file, &beside);
}

hs_status hs_save_features(const char *path, const hs_features *features, const hs_file_options *options) {
  hs_file_options complete;
  hs_status status = options_complete(options, &complete);
  if (status != HS_OK) return status;
  if (path == NULL || path[0] == '\0' || features == NULL) {
    hs_message_set(complete.message, complete.message_bytes, "path or features is null or empty");
    return HS_ERR_ARGUMENT;
  }
  feature_target target = {.path = path,
                           .features = features,
                           .layout = complete.layout,
                           .image_name = complete.image_name,
                           .allocator = complete.allocator,
                           .message = complete.message,
                           .message_bytes = complete.message_bytes};
  if (complete.layout != HS_LAYOUT_UBC && complete.layout != HS_LAYOUT_VLFEAT) {
    return target_fail(&target, HS_ERR_ARGUMENT, "layout is no known bin order");
  }
  const feature_format *format = NULL;
  status = features_check(&target);
  if (status == HS_OK) status = save_choose_format(&target, complete.format, &format);
  if (status != HS_OK) return status;
  if (format->write_into != NULL) return format->write_into(&target);
  return format->beside_ending != NULL ? save_pair(&target, format) : save_single(&target, format);
}

/* ------------------------------------------------------------------ reading */

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

/* The size is capped by what max_features features can need, so a wrong file does not fill the memory. */
static hs_status load_open_file(int descriptor, const feature_source *source, const char *path, file_content *content) {
  struct stat info;
  if (fstat(descriptor, &info) != 0) return load_fail_errno(source, path, "cannot read");
  if (!S_ISREG(info.st_mode)) {
    hs_message_set(source->message, source->message_bytes, "%s: not a regular file", path);
    return HS_ERR_IO;
  }
  uint64_t most = source->max_features > (UINT64_MAX >> 14)
                      ? UINT64_MAX
                      : source->max_features * FEATURE_TEXT_MOST_BYTES + FILE_EXTRA_BYTES;
  if ((uint64_t)info.st_size > most || (uint64_t)info.st_size > SIZE_MAX / 2) {
    hs_message_set(source->message, source->message_bytes, "%s: larger than %llu features can need", path,
                   (unsigned long long)source->max_features);
    return HS_ERR_LIMIT;
  }
  content->size = (size_t)info.st_size;
  content->bytes = hs_memory_alloc(source->allocator, content->size);
  if (content->bytes == NULL) {
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
  const hs_status status = load_file(source, path, &content);
  *bytes = content.bytes;
  *size = content.size;
  return status;
}

hs_status features_read_memory(const feature_format *format, const feature_source *source, hs_features *features) {
  hs_features fresh = {0};
  hs_status status = format->read(source, &fresh);
  if (status != HS_OK) {
    hs_features_free(&fresh);
    return status;
  }
  hs_features_free(features);
  *features = fresh;
  return HS_OK;
}

static hs_status load_with_beside(const feature_format *format, feature_source *source, hs_features *features) {
  char beside_path[ATOMIC_FILE_PATH_BYTES];
  if (!beside_path_of(source->path, format, beside_path)) {
    return source_fail(source, HS_ERR_ARGUMENT, "the %s format has two files: the name must end in %s", format->name,
                       format->endings[0]);
  }
  file_content beside = {0};
  hs_status status = load_file(source, beside_path, &beside);
  if (status == HS_OK) {
    source->beside_path = beside_path;
    source->beside_bytes = beside.bytes;
    source->beside_size = beside.size;
    status = features_read_memory(format, source, features);
  }
  hs_memory_release(source->allocator, beside.bytes);
  return status;
}

/* A format that opens the file by itself. */
static hs_status load_from(const feature_format *format, const feature_source *source, hs_features *features) {
  hs_features fresh = {0};
  hs_status status = format->read_from(source, &fresh);
  if (status != HS_OK) {
    hs_features_free(&fresh);
    return status;
  }
  hs_features_free(features);
  *features = fresh;
  return HS_OK;
}

static hs_status load_content(feature_source *source, hs_format id, hs_features *features) {
  const feature_format *format = format_by_id(id);
  if (id == HS_FORMAT_AUTO) {
    const feature_format *named = format_by_ending(source->path);
    format = format_by_content(source->bytes, source->size, named);
    /* Damaged at its very beginning: the reader that the name asks for says how. */
    if (format == NULL) format = named;
  }
  if (format == NULL)
    return source_fail(source, HS_ERR_FORMAT, "neither name nor content is of a known feature format");
  if (format->read_from != NULL) return load_from(format, source, features);
  if (format->beside_ending != NULL) return load_with_beside(format, source, features);
  return features_read_memory(format, source, features);
}

hs_status hs_load_features(const char *path, hs_features *features, const hs_file_options *options) {
  hs_file_options complete;
  hs_status status = options_complete(options, &complete);
  if (status != HS_OK) return status;
  if (path == NULL || path[0] == '\0' || features == NULL) {
    hs_message_set(complete.message, complete.message_bytes, "path or features is null or empty");
    return HS_ERR_ARGUMENT;
  }
  feature_source source = {.path = path,
                           .image_name = complete.image_name,
                           .max_features = complete.max_features,
                           .allocator = complete.allocator,
                           .message = complete.message,
                           .message_bytes = complete.message_bytes};
  if (complete.format != HS_FORMAT_AUTO && format_by_id(complete.format) == NULL) {
    return source_fail(&source, HS_ERR_ARGUMENT, "no such feature format");
  }
  const feature_format *named =
      complete.format == HS_FORMAT_AUTO ? format_by_ending(path) : format_by_id(complete.format);
  /* May be far larger than one list. */
  if (named != NULL && named->read_from != NULL) return load_from(named, &source, features);
  file_content content = {0};
  status = load_file(&source, path, &content);
  if (status == HS_OK) {
    source.bytes = content.bytes;
    source.size = content.size;
    status = load_content(&source, complete.format, features);
  }
  hs_memory_release(complete.allocator, content.bytes);
  return status;
}
