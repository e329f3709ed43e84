/*
 * Files of images that may change; see batch_source.h.
 */
#include "pipeline/cli/batch/batch_source.h"

#include <errno.h>
#include <sys/stat.h>

#include "pipeline/formats/common/content_digest.h"
#include "pipeline/image_io/image_io.h"

static uint64_t nanoseconds(struct timespec time) {
  return time.tv_sec < 0 ? 0 : (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static bool is_absence(int error) { return error == ENOENT || error == ENOTDIR; }

/* False if it is not a regular file. source->error: the system's reason; 0 if something else is there. */
static bool look(const char *path, batch_source *source) {
  struct stat info;
  *source = (batch_source){0};
  if (image_is_no_file(path)) return false;
  if (stat(path, &info) != 0) {
    source->error = errno;
    return false;
  }
  if (!S_ISREG(info.st_mode)) return false;
  source->bytes = (uint64_t)info.st_size;
  source->time_ns = nanoseconds(info.st_mtim);
  source->changed_ns = nanoseconds(info.st_ctim);
  return true;
}

void batch_source_begin(const char *path, batch_source *source) { (void)look(path, source); }

hs_status batch_source_finish(const char *path, batch_source *source) {
  batch_source after;
  digest_state state;
  source->digest = 0;
  if (source->error != 0) return HS_ERR_IO;
  if (source->changed_ns == 0) return HS_OK; /* no file */
  digest_start(&state);
  const hs_status status = digest_add_file(&state, path);
  const int error = errno;
  const bool is_there = look(path, &after);
  if (after.error != 0 && !is_absence(after.error)) source->error = after.error;
  if (status != HS_OK && !is_absence(after.error)) source->error = status == HS_ERR_MEMORY ? ENOMEM : error;
  if (source->error != 0) return status != HS_OK ? status : HS_ERR_IO;
  source->is_recorded = true;
  if (!is_there || after.bytes != source->bytes || after.time_ns != source->time_ns ||
      after.changed_ns != source->changed_ns || state.size != source->bytes)
    return HS_OK;
  const uint64_t digest = digest_end(&state);
  source->digest = digest != 0 ? digest : 1;
  return HS_OK;
}

bool batch_source_is_gone(const char *path) {
  batch_source source;
  return !look(path, &source) && is_absence(source.error);
}

batch_source_state batch_source_compare(const char *path, const batch_source *recorded, batch_source *now) {
  if (!look(path, now)) {
    if (is_absence(now->error)) return SOURCE_GONE;
    return recorded->is_recorded ? SOURCE_CHANGED : SOURCE_UNKNOWN;
  }
  if (recorded->is_recorded && recorded->bytes != now->bytes) return SOURCE_CHANGED;
  (void)batch_source_finish(path, now); /* reading it again gives the reason of a failure */
  if (!recorded->is_recorded) return SOURCE_UNKNOWN;
  return now->digest != 0 && now->digest == recorded->digest ? SOURCE_SAME : SOURCE_CHANGED;
}
