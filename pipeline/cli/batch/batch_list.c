/*
 * Finding the images of a batch; see batch_list.h.
 */
#include "pipeline/cli/batch/batch_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pipeline/base/path_text.h"
#include "pipeline/cli/common/output_name.h"

static const char *const image_endings[] = {".png", ".jpg", ".jpeg", ".pgm",  ".ppm", ".pnm",
                                            ".pam", ".tif", ".tiff", ".webp", ".bmp"};

static bool has_image_ending(const char *name) {
  for (size_t i = 0; i < sizeof image_endings / sizeof image_endings[0]; i++)
    if (path_ends_with(name, image_endings[i])) return true;
  return false;
}

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

static char *join_path(const char *folder, const char *name) {
  const size_t length = strlen(folder);
  const size_t room = length + strlen(name) + 2;
  char *path = malloc(room);
  if (path) snprintf(path, room, "%s%s%s", folder, length > 0 && folder[length - 1] == '/' ? "" : "/", name);
  return path;
}

static bool search_folder(batch_list *list, const char *folder, size_t skip);

/* What a folder names and the system cannot say more of: only what is gone may be left out in silence. */
static void note_unknown_entry(batch_list *list, const char *path) {
  if (errno == ENOENT) return;
  cli_error(COMMAND_BATCH, "%s: cannot be read: %s", path, strerror(errno));
  list->unreadable++;
}

/* One entry of a folder; takes `path` over. False without memory. */
static bool look_at_entry(batch_list *list, char *path, size_t skip) {
  struct stat info;
  bool taken = false;
  bool done = path != NULL;
  if (done && lstat(path, &info) != 0) {
    note_unknown_entry(list, path);
  } else if (done && S_ISDIR(info.st_mode)) {
    done = search_folder(list, path, skip);
  } else if (done && has_image_ending(path)) {
    const bool is_link = S_ISLNK(info.st_mode);
    /* A link that leads nowhere stays in the list, so that it is reported. */
    taken = !is_link || stat(path, &info) != 0 || !S_ISDIR(info.st_mode);
  }
  if (taken) return append(list, path, skip);
  free(path);
  return done;
}

/* skip: length of what all paths begin with. */
static bool search_folder(batch_list *list, const char *folder, size_t skip) {
  DIR *entries = opendir(folder);
  bool done = true;
  if (!entries) {
    cli_error(COMMAND_BATCH, "%s: cannot be read: %s", folder, strerror(errno));
    list->unreadable++;
    return true;
  }
  while (done) {
    errno = 0;
    const struct dirent *entry = readdir(entries);
    if (!entry) {
      if (errno != 0) {
        cli_error(COMMAND_BATCH, "%s: cannot be read to its end: %s", folder, strerror(errno));
        list->unreadable++;
      }
      break;
    }
    if (entry->d_name[0] != '.') done = look_at_entry(list, join_path(folder, entry->d_name), skip);
  }
  closedir(entries);
  return done;
}

static int compare_images(const void *one, const void *other) {
  return strcmp(((const batch_image_name *)one)->name, ((const batch_image_name *)other)->name);
}

static cli_exit read_folder(batch_list *list, const char *folder) {
  const size_t length = strlen(folder);
  const size_t skip = length + (folder[length - 1] == '/' ? 0 : 1);
  if (!search_folder(list, folder, skip)) {
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

/* end: the byte that ends a name, a line feed or 0. */
static cli_exit read_lines(batch_list *list, FILE *stream, const char *source, char end) {
  char *line = NULL;
  size_t room = 0;
  cli_exit result = CLI_DONE;
  for (ssize_t length = 0; result == CLI_DONE && (length = getdelim(&line, &room, end, stream)) >= 0;) {
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
  if (has_image_ending(path)) {
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

cli_exit batch_list_read(batch_list *list, const char *operand, char end) {
  struct stat info;
  memset(list, 0, sizeof *list);
  cli_exit result;
  if (strcmp(operand, "-") == 0) {
    result = read_lines(list, stdin, "standard input", end);
  } else if (stat(operand, &info) == 0 && S_ISDIR(info.st_mode)) {
    result = read_folder(list, operand);
    if (result == CLI_DONE && list->count == 0 && list->unreadable == 0) {
      cli_error(
          COMMAND_BATCH,
          "%s: no images there: none of its files ends in .png, .jpg, .jpeg, .pgm, .ppm, .pnm, .pam, .tif, .tiff, .webp or "
          ".bmp",
          operand);
      result = CLI_FAILED;
    }
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
