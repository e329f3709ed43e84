/* Registry of feature formats, and saving and loading of feature files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "os/os_files.h"
#include "cpu/schedule/float_environment.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/atomic_file.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/formats/formats.h"

/* ---- Registry, and choice of a format by id, name, ending and content. */

#define FORMAT_ADDRESS(ID, word) [HS_FORMAT_##ID - 1] = &format_##word,
static const feature_format *const format_table[FORMAT_COUNT] = {FEATURE_FORMATS(FORMAT_ADDRESS)};

const feature_format *format_at(size_t index) { return index < FORMAT_COUNT ? format_table[index] : NULL; }

const feature_format *format_by_id(hs_format id) {
  switch (id) { /* without a default case, so that the compiler warns if FEATURE_FORMATS lacks an enumerator */
#define FORMAT_CASE(ID, word)                                                                                          \
  case HS_FORMAT_##ID:                                                                                                 \
    return &format_##word;
    FEATURE_FORMATS(FORMAT_CASE)
  case HS_FORMAT_AUTO:
    return NULL;
  }
  return NULL;
}

const feature_format *format_by_name(const char *name) {
  for (size_t i = 0; name && format_at(i) != NULL; i++)
    if (strcmp(format_at(i)->name, name) == 0) return format_at(i);
  return NULL;
}

/* Finds the format with the longest matching ending: a.haraff.sift is Oxford's, a.sift VLFeat's. suffix: text that must
   follow the ending. */
static const feature_format *by_ending(const char *path, const char *suffix) {
  const feature_format *found = NULL;
  size_t longest = 0;
  for (size_t i = 0; path && format_at(i) != NULL; i++) {
    const feature_format *format = format_at(i);
    for (size_t k = 0; k < FORMAT_ENDINGS && format->endings[k] != NULL; k++) {
      char ending[FORMAT_ENDING_BYTES];
      const size_t length = strlen(format->endings[k]);
      (void)snprintf(ending, sizeof ending, "%s%s", format->endings[k], suffix);
      if (length <= longest || !path_ends_with(path, ending)) continue;
      longest = length;
      found = format;
    }
  }
  return found;
}

const feature_format *format_by_ending(const char *path) { return by_ending(path, ""); }

bool format_is_compressed_name(const char *path) { return path && path_ends_with(path, GZIP_ENDING); }

const feature_format *format_read_by_ending(const char *path) {
  return by_ending(path, format_is_compressed_name(path) ? GZIP_ENDING : "");
}

const feature_format *format_by_content(const uint8_t *bytes, size_t size, const feature_format *first) {
  if (first && first->probe(bytes, size)) return first;
  for (size_t i = 0; size > 0 && format_at(i) != NULL; i++)
    if (format_at(i)->probe(bytes, size)) return format_at(i);
  return NULL;
}

const feature_format *format_of_content(const char *path, const uint8_t *bytes, size_t size) {
  const feature_format *named = format_read_by_ending(path);
  const feature_format *format = format_by_content(bytes, size, named);
  /* if the beginning is damaged, the format of the name's ending reports it */
  return format ? format : named;
}

const feature_format *format_of_file(const char *path) {
  uint8_t bytes[SOURCE_BEGINNING_BYTES];
  return format_of_content(path, bytes, source_read_beginning(path, bytes));
}

const char *hs_format_name(hs_format format) {
  const feature_format *known = format_by_id(format);
  return known ? known->name : NULL;
}

int32_t hs_format_ignores_exif(hs_format format) {
  const feature_format *known = format_by_id(format);
  return known != NULL && known->as_stored;
}

hs_format hs_format_of_name(const char *path) {
  const feature_format *format = format_by_ending(path);
  return format ? format->id : HS_FORMAT_AUTO;
}

/* ---- saving and loading */

OPTIONS_END_WITH(hs_file_options, unused);
static const options_kind kind = OPTIONS_KIND(hs_file_options, format);

hs_status hs_file_options_init_sized(hs_file_options *options, size_t struct_size) {
  return options_give(options, struct_size, NULL, kind);
}

/* Sets every field of *complete; options may be null. */
static hs_status complete_options(const hs_file_options *options, hs_file_options *complete) {
  char reason[ADOPT_REASON_BYTES] = "";
  *complete = (hs_file_options){.struct_size = sizeof *complete};
  const hs_status status = !options ? HS_OK : options_adopt(complete, options, kind, reason);
  if (complete->max_features == 0) complete->max_features = FEATURES_MAX_DEFAULT;
  return hs_message_fail(status, complete->message, complete->message_bytes, "%s", reason);
}

/* ------------------------------------------------------------------ writing */

static hs_status save_choose_format(const feature_target *target, hs_format id, const feature_format **format) {
  *format = id == HS_FORMAT_AUTO ? format_by_ending(target->path) : format_by_id(id);
  if (!*format) {
    if (id != HS_FORMAT_AUTO) return target_fail(target, HS_ERR_OPTION, "no such feature format");
    return target_fail(target, HS_ERR_ARGUMENT, "%s",
                       format_is_compressed_name(target->path) ? "compressed files are read, not written"
                                                               : "the name's ending belongs to no feature format");
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
  if (!target->stream) return save_failed_file(target, &file);
  file.is_staged = target->is_staged;
  hs_status status = format->write(target);
  if (status != HS_OK) {
    atomic_file_abandon(&file);
    return status;
  }
  if (atomic_file_commit(&file) != HS_OK) return save_failed_file(target, &file);
  return HS_OK;
}

/* Writes the name of the second file, which has the format's other ending. If the first file is compressed, the second
   may be compressed or not. False if the name has neither ending. */
static bool second_path_of(const char *path, const feature_format *format, char out[ATOMIC_FILE_PATH_BYTES]) {
  char packed[FORMAT_ENDING_BYTES];
  (void)snprintf(packed, sizeof packed, "%s" GZIP_ENDING, format->endings[0]);
  const bool is_packed = path_ends_with(path, packed);
  if (!is_packed && !path_ends_with(path, format->endings[0])) return false;
  size_t stem = strlen(path) - strlen(is_packed ? packed : format->endings[0]);
  if (stem + strlen(format->second_ending) + sizeof GZIP_ENDING > ATOMIC_FILE_PATH_BYTES) return false;
  memcpy(out, path, stem);
  strcpy(out + stem, format->second_ending);
  return true;
}

/* Renames both files. Both are complete under temporary names before either is renamed, and an old file with the first
   name is removed before the second file is replaced. So if both files exist, they belong together. */
static hs_status save_commit_pair(const feature_target *target, atomic_file *file, atomic_file *second) {
  bool written = fflush(second->stream) == 0 && fflush(file->stream) == 0;
  if (!written || (file->temporary_exists && !os_remove(file->target) && errno != ENOENT)) {
    hs_message_set_errno(target->message, target->message_bytes, errno, "%s: cannot %s", target->path,
                         written ? "replace" : "write");
    atomic_file_abandon(second);
    atomic_file_abandon(file);
    return HS_ERR_IO;
  }
  if (atomic_file_commit(second) != HS_OK) {
    atomic_file_abandon(file);
    return save_failed_file(target, second);
  }
  if (atomic_file_commit(file) != HS_OK) return save_failed_file(target, file);
  return HS_OK;
}

static hs_status save_pair(feature_target *target, const feature_format *format) {
  char second_path[ATOMIC_FILE_PATH_BYTES];
  if (format_is_compressed_name(target->path) || !second_path_of(target->path, format, second_path)) {
    return target_fail(target, HS_ERR_ARGUMENT, "the %s format writes two files: the name must end in %s", format->name,
                       format->endings[0]);
  }
  atomic_file file;
  atomic_file second;
  target->stream = atomic_file_open(&file, target->path);
  if (!target->stream) return save_failed_file(target, &file);
  target->second_stream = atomic_file_open(&second, second_path);
  if (!target->second_stream) {
    atomic_file_abandon(&file);
    return save_failed_file(target, &second);
  }
  file.is_staged = second.is_staged = target->is_staged;
  hs_status status = format->write(target);
  if (status != HS_OK) {
    atomic_file_abandon(&second);
    atomic_file_abandon(&file);
    return status;
  }
  return save_commit_pair(target, &file, &second);
}

hs_status hs_save_features(const char *path, const hs_features *features, const hs_file_options *options) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return features_save(path, features, options, false, NULL);
}

hs_status features_save(const char *path, const hs_features *features, const hs_file_options *options, bool is_staged,
                        digest_state *written) {
  hs_file_options complete;
  hs_status status = complete_options(options, &complete);
  if (status != HS_OK) return status;
  if (!path || path[0] == '\0' || !features)
    return hs_message_fail(HS_ERR_ARGUMENT, complete.message, complete.message_bytes,
                           "path or features is null or empty");
  if (complete.only_files && strcmp(path, "-") == 0) path = "./-"; /* for writers "-" would mean standard output */
  feature_target target = {.path = path,
                           .written = written,
                           .is_staged = is_staged,
                           .features = features,
                           .layout = complete.layout,
                           .image_name = complete.image_name,
                           .allocator = complete.allocator,
                           .message = complete.message,
                           .message_bytes = complete.message_bytes};
  if (complete.layout != HS_LAYOUT_UBC && complete.layout != HS_LAYOUT_VLFEAT)
    return target_fail(&target, HS_ERR_OPTION, "layout is not a known bin order");
  const feature_format *format = NULL;
  status = features_check(&target);
  if (status == HS_OK) status = save_choose_format(&target, complete.format, &format);
  if (status == HS_OK && format->as_stored) status = features_check_unturned(&target, "the program of this format");
  if (status != HS_OK) return status;
  if (format->write_into) return format->write_into(&target);
  return format->second_ending ? save_pair(&target, format) : save_single(&target, format);
}

/* ------------------------------------------------------------------ reading */

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

static hs_status load_with_second(const feature_format *format, feature_source *source, hs_features *features) {
  char second_path[ATOMIC_FILE_PATH_BYTES];
  if (!second_path_of(source->path, format, second_path)) {
    return source_fail(source, HS_ERR_ARGUMENT, "the %s format has two files: the name must end in %s", format->name,
                       format->endings[0]);
  }
  if (format_is_compressed_name(source->path) && !os_exists(second_path)) strcat(second_path, GZIP_ENDING);
  uint8_t *bytes = NULL;
  hs_status status = source_load_file(source, second_path, &bytes, &source->second_size);
  if (status == HS_OK) {
    source->second_path = second_path;
    source->second_bytes = bytes;
    status = features_read_memory(format, source, features);
  }
  hs_memory_release(source->allocator, bytes);
  return status;
}

/* Loads a file with a format that opens the file itself. */
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
  const feature_format *format =
      id == HS_FORMAT_AUTO ? format_of_content(source->path, source->bytes, source->size) : format_by_id(id);
  if (!format && source->size >= 5 && memcmp(source->bytes, "<?xml", 5) == 0)
    return source_fail(source, HS_ERR_FORMAT, "OpenCV's storages in XML are not read, only YAML is");
  if (!format) return source_fail(source, HS_ERR_FORMAT, "neither name nor content is of a known feature format");
  if (format->read_from && format_is_compressed_name(source->path))
    return source_fail(source, HS_ERR_UNSUPPORTED, "a compressed database is not read: decompress it first");
  if (format->read_from) return load_from(format, source, features);
  if (format->second_ending) return load_with_second(format, source, features);
  return features_read_memory(format, source, features);
}

hs_status hs_load_features(const char *path, hs_features *features, const hs_file_options *options) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_file_options complete;
  hs_status status = complete_options(options, &complete);
  if (status != HS_OK) return status;
  if (!path || path[0] == '\0' || !features)
    return hs_message_fail(HS_ERR_ARGUMENT, complete.message, complete.message_bytes,
                           "path or features is null or empty");
  feature_source source = {.path = path,
                           .image_name = complete.image_name,
                           .max_features = complete.max_features,
                           .max_memory_bytes = complete.max_memory_bytes,
                           .allocator = complete.allocator,
                           .message = complete.message,
                           .message_bytes = complete.message_bytes};
  if (complete.format != HS_FORMAT_AUTO && !format_by_id(complete.format))
    return source_fail(&source, HS_ERR_OPTION, "no such feature format");
  const feature_format *named =
      complete.format == HS_FORMAT_AUTO ? format_by_ending(path) : format_by_id(complete.format);
  /* a database may be far larger than one list, so it is not read into memory */
  if (named && named->read_from) return load_from(named, &source, features);
  uint8_t *bytes = NULL;
  status = source_load_file(&source, path, &bytes, &source.size);
  if (status == HS_OK) {
    source.bytes = bytes;
    status = load_content(&source, complete.format, features);
  }
  hs_memory_release(complete.allocator, bytes);
  return status;
}

/* ------------------------------------------------------------------ digest */

hs_status hs_digest_features(const hs_features *features, uint64_t *digest) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!features || !digest || (features->count > 0 && !features->keypoints)) return HS_ERR_ARGUMENT;
  *digest = digest_features(features);
  return HS_OK;
}
