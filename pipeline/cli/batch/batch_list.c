/*
 * Finds the images of a batch; see batch_list.h.
 */
#include "pipeline/cli/batch/batch_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "pipeline/base/text.h"
#include "pipeline/cli/common/cli_output.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/image_io/image_io.h"

/* Appends an image. Takes ownership of `text` (from malloc, or null), in which the name begins at `skip`. */
static bool append(batch_list *list, char *text, size_t skip) {
  if (text && list->count == list->capacity) {
    const size_t capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
    batch_image_name *images = realloc(list->images, capacity * sizeof *images);
    list->images = images ? images : list->images;
    char **texts = images ? realloc(list->texts, capacity * sizeof *texts) : NULL;
    list->texts = texts ? texts : list->texts;
    if (!texts) {
      free(text);
      return false;
    }
    list->capacity = capacity;
  }
  if (!text) return false;
  list->texts[list->count] = text;
  list->images[list->count] = (batch_image_name){.path = text, .name = text + skip};
  list->count++;
  return true;
}

bool batch_list_add(batch_list *list, const char *name) { return append(list, strdup(name), 0); }

/* ---- folders */

/* State of a folder search: the list that receives the images. */
typedef struct folder_listing {
  batch_list *list;
  size_t skip; /* length of the folder's path, which the names do not contain */
} folder_listing;

static int32_t take_found(void *user, const char *path) {
  const folder_listing *listing = user;
  return append(listing->list, strdup(path), listing->skip);
}

static void warn_of_unreadable(void *user, const char *message) {
  (void)user;
  cli_error(COMMAND_BATCH, "%s", message);
}

static int compare_images(const void *one, const void *other) {
  return strcmp(((const batch_image_name *)one)->name, ((const batch_image_name *)other)->name);
}

static cli_exit read_folder(batch_list *list, const char *folder, const char *masks) {
  const size_t length = strlen(folder);
  folder_listing listing = {list, length + (folder[length - 1] == '/' ? 0 : 1)};
  const hs_image_search search = {.take = take_found, .warn = warn_of_unreadable, .user = &listing, .left_out = masks};
  if (hs_find_images(folder, &search, &list->found) != HS_OK)
    return cli_fail(CLI_FAILED, COMMAND_BATCH, "out of memory for the names of the images");
  if (list->count > 0) qsort(list->images, list->count, sizeof *list->images, compare_images);
  return CLI_DONE;
}

/* ---- lists */

/* Reads a stream to its end, into memory from malloc. Null with errno on failure. */
static char *read_stream(FILE *stream, size_t *size) {
  size_t capacity = 1 << 16;
  char *text = malloc(capacity);
  *size = 0;
  while (text) {
    *size += fread(text + *size, 1, capacity - *size, stream);
    if (*size < capacity) break;
    capacity *= 2;
    char *larger = realloc(text, capacity);
    if (!larger) free(text);
    text = larger;
  }
  if (!text || !ferror(stream)) return text;
  const int error = errno;
  free(text);
  errno = error;
  return NULL;
}

/* Reads the names of a list. end: the byte after each name, a line feed or 0. */
static cli_exit read_lines(batch_list *list, FILE *stream, const char *source, char end) {
  folder_listing listing = {list, 0};
  const hs_image_search search = {.take = take_found, .user = &listing};
  char message[CLI_MESSAGE_BYTES] = "";
  size_t size = 0;
  char *text = read_stream(stream, &size);
  if (!text) return cli_fail(CLI_FAILED, COMMAND_BATCH, "%s: cannot be read: %s", source, strerror(errno));
  const hs_status status = hs_read_image_list(text, size, source, end == '\0', &search, message, sizeof message);
  const bool has_zero = end != '\0' && memchr(text, '\0', size) != NULL && !utf16_is_marked(text, size);
  free(text);
  if (status == HS_ERR_MEMORY) cli_error(COMMAND_BATCH, "out of memory for the names of the images");
  if (status == HS_ERR_ARGUMENT)
    cli_error(COMMAND_BATCH, "%s%s", message, has_zero ? "; --null for a list of names ended by zero bytes" : "");
  return status == HS_OK ? CLI_DONE : status == HS_ERR_MEMORY ? CLI_FAILED : CLI_USAGE;
}

static cli_exit read_list_file(batch_list *list, const char *path, char end) {
  if (hs_is_image_name(path) != 0)
    return cli_fail(CLI_USAGE, COMMAND_BATCH, "%s: is an image: expected a folder, or a list with one image a line; %s",
                    path, command_get(COMMAND_BATCH)->instead);
  FILE *stream = os_open_stream(path, "rb");
  if (!stream) return cli_fail(CLI_FAILED, COMMAND_BATCH, "%s: cannot be opened: %s", path, strerror(errno));
  const cli_exit result = read_lines(list, stream, path, end);
  fclose(stream);
  return result;
}

/* ---- the whole list */

typedef struct sort_key {
  const char *text;
  size_t index;
} sort_key;

static int compare_keys(const void *one, const void *other) {
  const sort_key *a = one, *b = other;
  const int order = strcmp(a->text, b->text);
  return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

static bool sort_names(batch_list *list) {
  sort_key *keys = malloc((list->count + 1) * sizeof *keys);
  list->by_name = malloc((list->count + 1) * sizeof *list->by_name);
  if (!keys || !list->by_name) {
    free(keys);
    return false;
  }
  for (size_t i = 0; i < list->count; i++) keys[i] = (sort_key){list->images[i].name, i};
  qsort(keys, list->count, sizeof *keys, compare_keys);
  for (size_t i = 0; i < list->count; i++) list->by_name[i] = keys[i].index;
  free(keys);
  return true;
}

static cli_exit refuse_no_images(const batch_list *list, const char *folder) {
  const hs_image_findings *found = &list->found;
  return cli_fail(CLI_FAILED, COMMAND_BATCH, "%s: no images there: none of its files ends in %s%s%s", folder,
                  found->endings, found->passed_over_text[0] != '\0' ? "; " : "", found->passed_over_text);
}

cli_exit batch_list_read(batch_list *list, const char *operand, const char *masks, char end) {
  os_info info, of_masks;
  memset(list, 0, sizeof *list);
  cli_exit result;
  if (strcmp(operand, "-") == 0) {
    result = read_lines(list, stdin, "standard input", end);
  } else if (os_info_of(operand, &info) && info.kind == OS_FOLDER) {
    list->folder = operand;
    if (masks && os_info_of(masks, &of_masks) && os_is_same(&of_masks, &info))
      return cli_fail(CLI_USAGE, COMMAND_BATCH,
                      "--masks '%s': is the folder of the images: expected another one, since all its masks would "
                      "be images too",
                      masks);
    result = read_folder(list, operand, masks);
    if (result == CLI_DONE && list->count == 0 && list->found.unreadable == 0) result = refuse_no_images(list, operand);
  } else {
    result = read_list_file(list, operand, end);
  }
  if (result == CLI_DONE && !sort_names(list)) {
    cli_error(COMMAND_BATCH, "out of memory for the names of the images");
    result = CLI_FAILED;
  }
  if (result != CLI_DONE) batch_list_free(list);
  return result;
}

void batch_list_free(batch_list *list) {
  for (size_t i = 0; i < list->count; i++) free(list->texts[i]);
  free(list->texts);
  free(list->images);
  free(list->by_name);
  memset(list, 0, sizeof *list);
}

bool batch_list_mark_shared(batch_list *list, char *(*output)(const char *name, const void *user), const void *user) {
  sort_key *keys = calloc(list->count + 1, sizeof *keys);
  char **outputs = calloc(list->count + 1, sizeof *outputs);
  bool done = keys != NULL && outputs != NULL;
  for (size_t i = 0; done && i < list->count; i++) {
    outputs[i] = output(list->images[i].name, user);
    keys[i] = (sort_key){outputs[i], i};
    done = outputs[i] != NULL;
  }
  if (done) qsort(keys, list->count, sizeof *keys, compare_keys);
  for (size_t i = 1; done && i < list->count; i++)
    list->images[keys[i].index].shares_output = strcmp(keys[i].text, keys[i - 1].text) == 0;
  for (size_t i = 0; outputs && i < list->count; i++) free(outputs[i]);
  free(outputs);
  free(keys);
  return done;
}

const batch_image_name *batch_list_find(const batch_list *list, const char *name) {
  size_t low = 0;
  for (size_t high = list->count; low < high;) {
    const size_t middle = low + (high - low) / 2;
    if (strcmp(list->images[list->by_name[middle]].name, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == list->count || strcmp(list->images[list->by_name[low]].name, name) != 0) return NULL;
  return &list->images[list->by_name[low]];
}

char *batch_list_path(const batch_list *list, const char *name) {
  const size_t bytes = strlen(name) + (list->folder ? strlen(list->folder) : 0) + 2;
  char *path = malloc(bytes);
  if (path) snprintf(path, bytes, "%s%s%s", list->folder ? list->folder : "", list->folder ? "/" : "", name);
  return path;
}

/* ---- names of outputs */

/* Appends a part of a path, of `length` bytes, to a path of `used` bytes. Returns the new length. */
static size_t append_part(char *path, size_t used, const char *part, size_t length) {
  if (length == 0 || (length == 1 && part[0] == '.')) return used;
  if (length == 2 && part[0] == '.' && part[1] == '.') {
    while (used > 0 && path[--used] != '/') {}
    return used;
  }
  if (used > 0) path[used++] = '/';
  memcpy(path + used, part, length);
  return used + length;
}

char *batch_output_name(const char *name, hs_format format) {
  char *file = output_name(name, format);
  const char *last = output_is_scene(name) ? NULL : strrchr(name, '/');
  char *path = file ? malloc(strlen(name) + strlen(file) + 2) : NULL;
  if (path) {
    size_t used = 0;
    for (const char *part = name; last && part < last;) {
      const size_t length = strcspn(part, "/");
      used = append_part(path, used, part, length);
      part += length + 1;
    }
    used = append_part(path, used, file, strlen(file));
    path[used] = '\0';
  }
  free(file);
  return path;
}

/* ---- state of image files when read */

static bool is_absence(int error) { return error == ENOENT || error == ENOTDIR; }

/* Reads size and times of a file. False if it is no regular file; source->error is then errno, or 0 for another kind of
 * file. */
static bool look(const char *path, batch_source *source) {
  os_info info;
  *source = (batch_source){0};
  if (image_is_no_file(path)) return false;
  if (!os_info_of(path, &info)) {
    source->error = errno;
    return false;
  }
  if (info.kind != OS_REGULAR) return false;
  source->bytes = info.size;
  source->time_ns = info.time_ns;
  source->changed_ns = info.changed_ns;
  return true;
}

void batch_source_begin(const char *path, batch_source *source) { (void)look(path, source); }

hs_status batch_source_finish(const char *path, batch_source *source) {
  batch_source after;
  digest_state state;
  source->digest = 0;
  if (source->error != 0) return HS_ERR_IO;
  if (source->changed_ns == 0) return HS_OK; /* the source was no regular file */
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
  (void)batch_source_finish(path, now); /* if this fails, the next reading of the file reports the failure */
  if (!recorded->is_recorded) return SOURCE_UNKNOWN;
  return now->digest != 0 && now->digest == recorded->digest ? SOURCE_SAME : SOURCE_CHANGED;
}
