/*
 * Finding the images of a batch; see batch_list.h.
 */
#include "pipeline/cli/batch/batch_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pipeline/base/path_text.h"
#include "pipeline/cli/common/cli_output.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/image_io/image_io.h"

/* Takes `text` (from malloc or null) over; its name begins at `skip`. */
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

/* What a search of a folder adds to. */
typedef struct folder_listing {
  batch_list *list;
  size_t skip; /* length of what all paths begin with */
} folder_listing;

static bool take_found(void *user, char *path) {
  const folder_listing *listing = user;
  return append(listing->list, path, listing->skip);
}

static int compare_images(const void *one, const void *other) {
  return strcmp(((const batch_image_name *)one)->name, ((const batch_image_name *)other)->name);
}

static cli_exit read_folder(batch_list *list, const char *folder, const char *masks) {
  const size_t length = strlen(folder);
  folder_listing listing = {list, length + (folder[length - 1] == '/' ? 0 : 1)};
  if (!folder_search(folder, masks, take_found, &listing, &list->found)) {
    cli_error(COMMAND_BATCH, "no memory for the names of the images");
    return CLI_FAILED;
  }
  if (list->count > 0) qsort(list->images, list->count, sizeof *list->images, compare_images);
  return CLI_DONE;
}

/* ---- lists */

static char *copy_line(const char *line) {
  if (strcmp(line, "-") == 0) return strdup("./-"); /* "-" alone would be standard input */
  return strdup(line);
}

/* Without the end of the line: a zero byte, or a line feed and carriage returns before it. */
static size_t trim_line(char *line, size_t length, char end) {
  while (length > 0 && (line[length - 1] == end || (end == '\n' && line[length - 1] == '\r'))) line[--length] = '\0';
  return length;
}

/* Removes the byte-order mark that editors and shells of Windows write. False, with a message, for UTF-16. */
static bool drop_mark(char *line, ssize_t *length, const char *source) {
  if (utf16_is_marked(line, (size_t)*length)) {
    cli_error(COMMAND_BATCH, "%s: is in UTF-16: expected a list in UTF-8, with one image a line", source);
    return false;
  }
  const size_t mark = utf8_mark_length(line, (size_t)*length);
  *length -= (ssize_t)mark;
  memmove(line, line + mark, (size_t)*length + 1);
  return true;
}

/* end: the byte that ends a name, a line feed or 0. */
static cli_exit read_lines(batch_list *list, FILE *stream, const char *source, char end) {
  char *line = NULL;
  size_t room = 0;
  cli_exit result = CLI_DONE;
  bool is_first = true;
  for (ssize_t length = 0; result == CLI_DONE && (length = getdelim(&line, &room, end, stream)) >= 0;
       is_first = false) {
    if (is_first && !drop_mark(line, &length, source)) {
      result = CLI_USAGE;
      break;
    }
    if (end != '\0' && memchr(line, '\0', (size_t)length)) {
      cli_error(COMMAND_BATCH,
                "%s: is no text: expected a folder, or a list with one image a line; --null for a list of "
                "names ended by zero bytes",
                source);
      result = CLI_USAGE;
      break;
    }
    length = (ssize_t)trim_line(line, (size_t)length, end);
    if (length > 0 && !append(list, copy_line(line), 0)) {
      cli_error(COMMAND_BATCH, "no memory for the names of the images");
      result = CLI_FAILED;
    }
  }
  if (result == CLI_DONE && ferror(stream)) {
    cli_error(COMMAND_BATCH, "%s: cannot be read: %s", source, strerror(errno));
    result = CLI_FAILED;
  }
  free(line);
  return result;
}

static cli_exit read_list_file(batch_list *list, const char *path, char end) {
  if (folder_has_image_ending(path)) {
    cli_error(COMMAND_BATCH, "%s: is an image: expected a folder, or a list with one image a line; %s", path,
              command_get(COMMAND_BATCH)->instead);
    return CLI_USAGE;
  }
  FILE *stream = fopen(path, "rb");
  if (!stream) {
    cli_error(COMMAND_BATCH, "%s: cannot be opened: %s", path, strerror(errno));
    return CLI_FAILED;
  }
  const cli_exit result = read_lines(list, stream, path, end);
  fclose(stream);
  return result;
}

/* ---- the whole list */

typedef struct sort_key {
  const char *text;
  size_t place;
} sort_key;

static int compare_keys(const void *one, const void *other) {
  const sort_key *a = one, *b = other;
  const int order = strcmp(a->text, b->text);
  return order != 0 ? order : (a->place > b->place) - (a->place < b->place);
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
  for (size_t i = 0; i < list->count; i++) list->by_name[i] = keys[i].place;
  free(keys);
  return true;
}

static cli_exit refuse_no_images(const batch_list *list, const char *folder) {
  char endings[CLI_MESSAGE_BYTES], passed_over[FOLDER_TEXT_BYTES];
  folder_list_image_endings(endings, sizeof endings);
  folder_explain_passed_over(&list->found, passed_over, sizeof passed_over);
  cli_error(COMMAND_BATCH, "%s: no images there: none of its files ends in %s%s%s", folder, endings,
            passed_over[0] != '\0' ? "; " : "", passed_over);
  return CLI_FAILED;
}

cli_exit batch_list_read(batch_list *list, const char *operand, const char *masks, char end) {
  struct stat info, of_masks;
  memset(list, 0, sizeof *list);
  cli_exit result;
  if (strcmp(operand, "-") == 0) {
    result = read_lines(list, stdin, "standard input", end);
  } else if (stat(operand, &info) == 0 && S_ISDIR(info.st_mode)) {
    list->folder = operand;
    if (masks && stat(masks, &of_masks) == 0 && of_masks.st_ino == info.st_ino && of_masks.st_dev == info.st_dev) {
      cli_error(COMMAND_BATCH,
                "--masks '%s': is the folder of the images: expected another one, since all its masks would "
                "be images too",
                masks);
      return CLI_USAGE;
    }
    result = read_folder(list, operand, masks);
    if (result == CLI_DONE && list->count == 0 && list->found.unreadable == 0) result = refuse_no_images(list, operand);
  } else {
    result = read_list_file(list, operand, end);
  }
  if (result == CLI_DONE && !sort_names(list)) {
    cli_error(COMMAND_BATCH, "no memory for the names of the images");
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
  folder_findings_free(&list->found);
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
    list->images[keys[i].place].shares_output = strcmp(keys[i].text, keys[i - 1].text) == 0;
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
  const size_t room = strlen(name) + (list->folder ? strlen(list->folder) : 0) + 2;
  char *path = malloc(room);
  if (path) snprintf(path, room, "%s%s%s", list->folder ? list->folder : "", list->folder ? "/" : "", name);
  return path;
}

/* ---- names of outputs */

/* Appends one part of a path, `length` bytes, to a path of which `used` bytes are there; returns the new length. */
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

/* ---- files of images, as they were read */

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
