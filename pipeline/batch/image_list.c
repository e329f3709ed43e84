/* Lists of images: files of a folder and of all folders below it, and lists of names in text; see hartsift_batch.h. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "cpu/schedule/float_environment.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/text.h"
#include "pipeline/include/hartsift_batch.h"

/* Endings of image files, which select the files of a folder. How a file is read depends on its content. */
static const char *const image_endings[] = {".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".jif",  ".mpo", ".pbm", ".pgm",
                                            ".ppm", ".pnm", ".pam",  ".tif", ".tiff", ".webp", ".bmp", ".dib"};

enum {
  IMAGE_ENDINGS = sizeof image_endings / sizeof image_endings[0],
  SHOWN_ENDINGS = 8,
  FIRST_FOLDERS = 64,
  ENDING_BYTES = 16, /* a longer suffix is no ending */
  ENDINGS_MAX = 64,
  WARNING_BYTES = 1024
};

/* Number of files with an ending (lower case, with dot). "": files without an ending, or with a longer suffix. */
typedef struct ending_count {
  char text[ENDING_BYTES];
  size_t count;
} ending_count;

/* Files that do not have an image's ending. */
typedef struct passed_over {
  size_t files;
  ending_count endings[ENDINGS_MAX];
  size_t ending_count;
} passed_over;

/* Identity of a folder, whatever its name. */
typedef struct folder_key {
  uint64_t device, number;
  bool is_set;
} folder_key;

typedef struct path_list {
  char **paths;
  size_t count, capacity;
} path_list;

typedef struct folder_walk {
  const hs_image_search *search;
  hs_image_findings *findings;
  passed_over others;
  folder_key *visited; /* hash table with open addressing */
  size_t visited_count, visited_capacity;
  folder_key left_out;
  path_list links; /* links to folders, which are searched after all folders without links */
  bool in_links;
} folder_walk;

/* ---- endings */

int32_t hs_is_image_name(const char *name) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  for (size_t i = 0; name && i < IMAGE_ENDINGS; i++)
    if (path_ends_with(name, image_endings[i])) return 1;
  return 0;
}

static void list_endings(char *text, size_t bytes) {
  size_t used = 0;
  for (size_t i = 0; i < IMAGE_ENDINGS && used < bytes; i++) {
    const char *separator = i == 0 ? "" : i + 1 < IMAGE_ENDINGS ? ", " : " or ";
    used += (size_t)snprintf(text + used, bytes - used, "%s%s", separator, image_endings[i]);
  }
}

static void count_ending(passed_over *others, const char *path) {
  const char *slash = strrchr(path, '/');
  const char *dot = strrchr(slash ? slash : path, '.');
  char ending[ENDING_BYTES] = "";
  if (dot && strlen(dot) < sizeof ending)
    for (size_t i = 0; dot[i] != '\0'; i++) ending[i] = (char)tolower((unsigned char)dot[i]);
  others->files++;
  size_t at = 0;
  while (at < others->ending_count && strcmp(others->endings[at].text, ending) != 0) at++;
  if (at == ENDINGS_MAX) return; /* such files still count in the total */
  if (at == others->ending_count) memcpy(others->endings[others->ending_count++].text, ending, sizeof ending);
  others->endings[at].count++;
}

static int compare_endings(const void *one, const void *other) {
  const ending_count *a = one, *b = other;
  return a->count != b->count ? (a->count < b->count) - (a->count > b->count) : strcmp(a->text, b->text);
}

/* Writes a sentence such as "5 files were passed over by their endings: 3 .heic, 2 .txt", the most frequent endings
   first; "" if there are none. */
static void explain_passed_over(passed_over *others, char *text, size_t bytes) {
  size_t left = others->files, used = 0;
  text[0] = '\0';
  if (left == 0) return;
  qsort(others->endings, others->ending_count, sizeof others->endings[0], compare_endings);
  used += (size_t)snprintf(text, bytes, "%zu file%s passed over by %s: ", left, left == 1 ? " was" : "s were",
                           left == 1 ? "its ending" : "their endings");
  for (size_t i = 0; i < others->ending_count && i < SHOWN_ENDINGS && used < bytes; i++) {
    const ending_count *one = &others->endings[i];
    left -= one->count;
    used += (size_t)snprintf(text + used, bytes - used, "%s%zu %s", i > 0 ? ", " : "", one->count,
                             one->text[0] != '\0' ? one->text : "without one");
  }
  if (left > 0 && used < bytes) snprintf(text + used, bytes - used, ", %zu others", left);
}

hs_status hs_explain_passed_over(const char *const *names, size_t count, char *text, size_t text_bytes) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  passed_over others = {0};
  if ((count > 0 && !names) || !text || text_bytes == 0) return HS_ERR_ARGUMENT;
  text[0] = '\0';
  for (size_t i = 0; i < count; i++) {
    if (!names[i]) return HS_ERR_ARGUMENT;
    if (!hs_is_image_name(names[i])) count_ending(&others, names[i]);
  }
  explain_passed_over(&others, text, text_bytes);
  return HS_OK;
}

/* ---- searched folders */

static folder_key *find_key(folder_key *keys, size_t capacity, const os_info *info) {
  const uint64_t mixed = (info->number ^ info->device << 40) * 0x9e3779b97f4a7c15u;
  size_t at = (size_t)(mixed >> 32) & (capacity - 1); /* capacity is a power of two */
  while (keys[at].is_set && (keys[at].number != info->number || keys[at].device != info->device))
    at = (at + 1) & (capacity - 1);
  return &keys[at];
}

static bool grow_visited(folder_walk *walk) {
  const size_t capacity = walk->visited_capacity == 0 ? FIRST_FOLDERS : 2 * walk->visited_capacity;
  folder_key *keys = calloc(capacity, sizeof *keys);
  if (!keys) return false;
  for (size_t i = 0; i < walk->visited_capacity; i++) {
    const folder_key *old = &walk->visited[i];
    const os_info info = {.device = old->device, .number = old->number};
    if (old->is_set) *find_key(keys, capacity, &info) = *old;
  }
  free(walk->visited);
  walk->visited = keys;
  walk->visited_capacity = capacity;
  return true;
}

/* Adds a folder to the visited ones; *is_new: it was not among them. False: out of memory. */
static bool note_visited(folder_walk *walk, const os_info *info, bool *is_new) {
  if (2 * walk->visited_count >= walk->visited_capacity && !grow_visited(walk)) return false;
  folder_key *key = find_key(walk->visited, walk->visited_capacity, info);
  *is_new = !key->is_set;
  walk->visited_count += *is_new;
  *key = (folder_key){info->device, info->number, true};
  return true;
}

/* ---- the walk */

static char *join_path(const char *folder, const char *name) {
  const size_t length = strlen(folder);
  const size_t bytes = length + strlen(name) + 2;
  char *path = malloc(bytes);
  if (path) snprintf(path, bytes, "%s%s%s", folder, length > 0 && folder[length - 1] == '/' ? "" : "/", name);
  return path;
}

/* Appends a link. Takes ownership of `path`. */
static bool add_link(path_list *list, char *path) {
  if (list->count == list->capacity) {
    const size_t capacity = list->capacity == 0 ? 16 : 2 * list->capacity;
    char **paths = realloc(list->paths, capacity * sizeof *paths);
    if (!paths) {
      free(path);
      return false;
    }
    list->paths = paths;
    list->capacity = capacity;
  }
  list->paths[list->count++] = path;
  return true;
}

static void note_unreadable(folder_walk *walk, const char *path, const char *what) {
  char message[WARNING_BYTES];
  hs_message_set(message, sizeof message, "%s: cannot be read%s: %s", path, what, strerror(errno));
  walk->findings->unreadable++;
  if (walk->search->warn) walk->search->warn(walk->search->user, message);
}

static bool search_below(folder_walk *walk, const char *folder, const os_info *info);

typedef enum entry_kind { ENTRY_UNKNOWN, ENTRY_FILE, ENTRY_OTHER, ENTRY_FOLDER, ENTRY_LINK_TO_FOLDER } entry_kind;

/* Returns the kind of an entry; for a link, kind and *info are those of its target. A dangling link counts as a file,
   so that it is reported. */
static entry_kind kind_of(folder_walk *walk, const char *path, os_info *info) {
  if (!os_info_of_link(path, info)) {
    if (errno != ENOENT) note_unreadable(walk, path, ""); /* only entries that vanished may be skipped silently */
    return ENTRY_UNKNOWN;
  }
  const bool is_link = info->kind == OS_LINK;
  if (is_link && !os_info_of(path, info)) {
    if (errno == ENOENT || errno == ELOOP || hs_is_image_name(path)) return ENTRY_FILE;
    note_unreadable(walk, path, "");
    return ENTRY_UNKNOWN;
  }
  if (info->kind == OS_FOLDER) return is_link ? ENTRY_LINK_TO_FOLDER : ENTRY_FOLDER;
  return info->kind == OS_REGULAR ? ENTRY_FILE : ENTRY_OTHER;
}

/* Handles one entry of a folder; takes ownership of `path`. False: out of memory. */
static bool look_at_entry(folder_walk *walk, char *path) {
  os_info info;
  bool done = path != NULL;
  const entry_kind kind = path ? kind_of(walk, path, &info) : ENTRY_UNKNOWN;
  const bool is_file = kind == ENTRY_FILE || kind == ENTRY_OTHER;
  if (kind == ENTRY_LINK_TO_FOLDER) return add_link(&walk->links, path);
  if (is_file && hs_is_image_name(path))
    done = walk->search->take(walk->search->user, path) != 0;
  else if (kind == ENTRY_FILE)
    count_ending(&walk->others, path);
  if (kind == ENTRY_FOLDER) done = search_below(walk, path, &info);
  free(path);
  return done;
}

/* Searches a folder. A folder that a link leads to is searched only once. Other folders are found only once anyway, and
   must not be skipped on file systems with duplicate inode numbers. */
static bool search_below(folder_walk *walk, const char *folder, const os_info *info) {
  bool is_new = false;
  if (walk->left_out.is_set && info->number == walk->left_out.number && info->device == walk->left_out.device) {
    walk->findings->has_left_out = 1;
    return true;
  }
  if (!note_visited(walk, info, &is_new)) return false;
  if (walk->in_links && !is_new) {
    if (walk->findings->repeated++ == 0)
      hs_message_set(walk->findings->repeated_path, sizeof walk->findings->repeated_path, "%s", folder);
    return true;
  }
  os_folder *entries = os_folder_open(folder, true);
  if (!entries) {
    note_unreadable(walk, folder, "");
    return true;
  }
  bool done = true;
  while (done) {
    const char *name = os_folder_next(entries);
    if (!name) {
      if (errno != 0) note_unreadable(walk, folder, " to its end");
      break;
    }
    if (name[0] != '.') done = look_at_entry(walk, join_path(folder, name));
  }
  os_folder_close(entries);
  return done;
}

static int compare_paths(const void *one, const void *other) {
  return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Follows links in the order of their names, so that the names of images do not depend on the order of entries in a
   folder; then the links found through these links. */
static bool search_links(folder_walk *walk) {
  bool done = true;
  walk->in_links = true;
  while (done && walk->links.count > 0) {
    path_list now = walk->links;
    walk->links = (path_list){0};
    qsort(now.paths, now.count, sizeof *now.paths, compare_paths);
    for (size_t i = 0; i < now.count; i++) {
      os_info info;
      if (done && os_info_of(now.paths[i], &info)) done = search_below(walk, now.paths[i], &info);
      free(now.paths[i]);
    }
    free(now.paths);
  }
  return done;
}

hs_status hs_find_images(const char *folder, const hs_image_search *search, hs_image_findings *findings) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!folder || !search || !search->take || !findings || !RESERVED_IS_CLEAR(search->reserved)) return HS_ERR_ARGUMENT;
  folder_walk walk = {.search = search, .findings = findings};
  os_info info;
  bool done = true;
  *findings = (hs_image_findings){0};
  list_endings(findings->endings, sizeof findings->endings);
  if (search->left_out && os_info_of(search->left_out, &info))
    walk.left_out = (folder_key){info.device, info.number, true};
  if (!os_info_of(folder, &info))
    note_unreadable(&walk, folder, "");
  else
    done = search_below(&walk, folder, &info) && search_links(&walk);
  explain_passed_over(&walk.others, findings->passed_over_text, sizeof findings->passed_over_text);
  for (size_t i = 0; i < walk.links.count; i++) free(walk.links.paths[i]);
  free(walk.links.paths);
  free(walk.visited);
  return done ? HS_OK : HS_ERR_MEMORY;
}

/* ---- lists */

/* Returns a copy of the name in a line, without the line end: a zero byte, or a line feed and the carriage returns
   before it. */
static char *copy_line(const char *line, size_t length, bool has_returns) {
  while (has_returns && length > 0 && line[length - 1] == '\r') length--;
  if (length == 1 && line[0] == '-') return strdup("./-"); /* without "./", "-" would mean standard input */
  return os_copy_text(line, length);
}

hs_status hs_read_image_list(const void *text, size_t size, const char *source, int32_t zero_ended,
                             const hs_image_search *search, char *message, size_t message_bytes) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  const char *at = text;
  hs_message_set(message, message_bytes, "%s", "");
  if ((size > 0 && !text) || !source || !search || !search->take || !RESERVED_IS_CLEAR(search->reserved))
    return HS_ERR_ARGUMENT;
  if (utf16_is_marked(at, size))
    return hs_message_fail(HS_ERR_ARGUMENT, message, message_bytes,
                           "%s: is in UTF-16: expected a list in UTF-8, with one image a line", source);
  const size_t mark = utf8_mark_length(at, size);
  const char *end = at + size;
  for (at += mark; at < end;) {
    const char *stop = memchr(at, zero_ended ? '\0' : '\n', (size_t)(end - at));
    const size_t length = (size_t)((stop ? stop : end) - at);
    if (!zero_ended && memchr(at, '\0', length))
      return hs_message_fail(HS_ERR_ARGUMENT, message, message_bytes,
                             "%s: is no text: expected a folder, or a list with one image a line", source);
    char *name = copy_line(at, length, !zero_ended);
    if (name) os_normalise_path(name);
    const bool done = name && (name[0] == '\0' || search->take(search->user, name) != 0);
    free(name);
    if (!done) return HS_ERR_MEMORY;
    at += length + 1;
  }
  return HS_OK;
}
