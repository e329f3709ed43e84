/* Names, formats and temporary files of outputs; see cli_output.h. */
#include "pipeline/cli/common/cli_output.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "os/os_process.h"
#include "pipeline/base/atomic_file.h"
#include "pipeline/cli/common/database_output.h"
#include "pipeline/formats/colmap/colmap_records.h"
#include "pipeline/formats/formats.h"
#include "pipeline/image_io/image_io.h"

/* ---- the list of temporary files */

enum { FILES_MAX = 16, FILE_FREE = 0, FILE_CHANGING, FILE_SET };

/* Paths of temporary files. Static, because a signal handler may read a path while the thread that wrote the file
 * returns. */
static struct listed_file {
  atomic_int state;
  char path[ATOMIC_FILE_PATH_BYTES];
} listed_files[FILES_MAX];

/* Lists a temporary file. If the list is full, the file is written nevertheless; it is left over only if a signal ends
 * the process. */
int atomic_file_begins(const char *temporary) {
  for (int i = 0; i < FILES_MAX; i++) {
    int expected = FILE_FREE;
    if (!atomic_compare_exchange_strong(&listed_files[i].state, &expected, FILE_CHANGING)) continue;
    memcpy(listed_files[i].path, temporary, strlen(temporary) + 1);
    atomic_store(&listed_files[i].state, FILE_SET);
    return i;
  }
  return -1;
}

void atomic_file_gone(int slot) {
  if (slot >= 0) atomic_store(&listed_files[slot].state, FILE_FREE);
}

/* A database that this program has created, with its journal. */
static struct {
  atomic_bool is_listed;
  os_info file;
  char path[ATOMIC_FILE_PATH_BYTES], journal[ATOMIC_FILE_PATH_BYTES];
} new_database;

void unfinished_files_remove(void) {
  os_info found;
  for (int i = 0; i < FILES_MAX; i++)
    if (atomic_load(&listed_files[i].state) == FILE_SET) os_remove(listed_files[i].path);
  /* another program may have put its own database there */
  if (!atomic_load(&new_database.is_listed) || !os_info_of_link(new_database.path, &found) ||
      !os_is_same(&found, &new_database.file))
    return;
  os_remove(new_database.journal); /* first, because SQLite would apply it to a later file of that name */
  os_remove(new_database.path);
}

void database_list_begin(const char *path) {
  if (!os_exists(path)) os_end_hold();
}

void database_list_new(const hs_colmap_database *database) {
  const char *path = database ? colmap_new_path(database) : NULL;
  if (path && strlen(path) + sizeof "-journal" <= sizeof new_database.journal) {
    snprintf(new_database.path, sizeof new_database.path, "%s", path);
    snprintf(new_database.journal, sizeof new_database.journal, "%s-journal", path);
    atomic_store(&new_database.is_listed, os_info_of_link(path, &new_database.file));
  }
  os_end_release();
}

void database_unlist(void) {
  if (!atomic_load(&new_database.is_listed)) return;
  os_end_hold();
  atomic_store(&new_database.is_listed, false);
}

void database_list_end(void) { os_end_release(); }

/* ---- targets of features */

static bool exists(const char *path) {
  os_info info;
  return os_info_of(path, &info);
}

/* Creates a folder; an existing one is accepted. errno is that of mkdir. */
static bool make_directory(const char *path) {
  if (os_make_folder(path)) return true;
  const int error = errno;
  const bool is_there = os_is_folder(path);
  errno = error;
  return is_there;
}

bool output_make_directories(const char *path) {
  char *part = cli_join(path, "", "");
  bool done = part != NULL;
  for (size_t i = 1; done && part[i] != '\0'; i++) {
    if (part[i] == '/') {
      part[i] = '\0';
      done = make_directory(part);
      part[i] = '/';
    }
  }
  free(part); /* frees without changing errno */
  return done && make_directory(path);
}

static const char *target_key(const output_target *target) { return target->name ? target->name : target->path; }

static int compare_targets(const void *one, const void *other) {
  const output_target *a = *(const output_target *const *)one;
  const output_target *b = *(const output_target *const *)other;
  const int order = strcmp(target_key(a), target_key(b));
  return order != 0 ? order : (a > b) - (a < b); /* if names are equal, the earlier image comes first */
}

static bool mark_duplicates(output_plan *plan) {
  output_target **sorted = malloc((size_t)plan->count * sizeof *sorted);
  if (!sorted) return false;
  for (int i = 0; i < plan->count; i++) sorted[i] = &plan->targets[i];
  qsort(sorted, (size_t)plan->count, sizeof *sorted, compare_targets);
  for (int i = 1; i < plan->count; i++)
    sorted[i]->is_duplicate = strcmp(target_key(sorted[i]), target_key(sorted[i - 1])) == 0;
  free(sorted);
  return true;
}

/* Sets the targets: all in one database, with a name for each image. */
static cli_exit fill_database_targets(output_plan *plan, const option_set *set, const char *path, char *message,
                                      size_t message_bytes) {
  const option_value *folder = &set->values[OPTION_IMAGE_PATH];
  char reason[CLI_MESSAGE_BYTES / 2];
  plan->to_database = true;
  plan->targets = calloc((size_t)set->operand_count, sizeof *plan->targets);
  plan->count = plan->targets ? set->operand_count : 0;
  for (int i = 0; i < plan->count; i++) {
    plan->targets[i].path = cli_join(path, "", "");
    plan->targets[i].name =
        database_image_name(set->operands[i], folder->is_set ? folder->text : NULL, reason, sizeof reason);
    if (!plan->targets[i].name || !plan->targets[i].path) {
      snprintf(message, message_bytes, "%s: %s", set->operands[i], reason);
      output_plan_free(plan);
      return CLI_FAILED;
    }
  }
  if (!plan->targets || !mark_duplicates(plan)) {
    snprintf(message, message_bytes, "out of memory for the names of the outputs");
    output_plan_free(plan);
    return CLI_FAILED;
  }
  return CLI_DONE;
}

/* Sets the targets. directory: null if there is a single output, `single`. */
static bool fill_targets(output_plan *plan, const option_set *set, const char *directory, const char *single) {
  plan->targets = calloc((size_t)set->operand_count, sizeof *plan->targets);
  if (!plan->targets) return false;
  plan->count = set->operand_count;
  for (int i = 0; i < plan->count; i++) {
    if (!directory) {
      plan->targets[i].path = cli_join(single, "", "");
    } else {
      char *name = output_name(set->operands[i], plan->format);
      const bool has_slash = directory[strlen(directory) - 1] == '/';
      plan->targets[i].path = name ? cli_join(directory, has_slash ? "" : "/", name) : NULL;
      free(name);
    }
    if (!plan->targets[i].path) return false;
  }
  return mark_duplicates(plan);
}

/* Lists the endings of all formats: ".txt, .npz, ..." */
static void list_endings(char *text, size_t bytes) {
  size_t used = 0;
  for (size_t i = 0; format_at(i) != NULL && used < bytes; i++) {
    const feature_format *format = format_at(i);
    char name[32] = "x";
    strncat(name, format->endings[0], sizeof name - 2);
    if (format_by_ending(name) != format) continue; /* the ending belongs to an earlier format */
    used += (size_t)snprintf(text + used, bytes - used, "%s%s", i > 0 ? ", " : "", format->endings[0]);
  }
}

/* Chooses the format of one output file or of standard output. False, with a message, if it is unknown. */
static bool choose_format(output_plan *plan, const char *output, char *message, size_t message_bytes) {
  if (plan->to_stdout) {
    if (plan->format == HS_FORMAT_OPENMVG) {
      snprintf(message, message_bytes, "--format openmvg writes two files: expected -o FILE or -o DIR");
      return false;
    }
    plan->format = plan->format == HS_FORMAT_AUTO ? HS_FORMAT_CSV : plan->format;
    return true;
  }
  plan->format = plan->format == HS_FORMAT_AUTO ? hs_format_of_name(output) : plan->format;
  if (plan->format == HS_FORMAT_AUTO) {
    char endings[OPTION_EXPECTED_BYTES] = "";
    list_endings(endings, sizeof endings);
    snprintf(message, message_bytes,
             "--output '%s': expected a name ending in %s, or --format, or a directory's name "
             "followed by '/'",
             output, endings);
    return false;
  }
  return true;
}

cli_exit output_plan_make(output_plan *plan, const option_set *set, char *message, size_t message_bytes) {
  const option_value *values = set->values;
  const char *output = values[OPTION_OUTPUT].is_set ? values[OPTION_OUTPUT].text : NULL;
  const bool several = set->operand_count > 1;
  const char *directory = NULL;
  memset(plan, 0, sizeof *plan);
  plan->format = values[OPTION_FORMAT].is_set ? format_by_name(values[OPTION_FORMAT].text)->id : HS_FORMAT_AUTO;
  plan->to_stdout = !output || strcmp(output, "-") == 0;
  const bool is_folder = !plan->to_stdout && (os_is_folder(output) || output[strlen(output) - 1] == '/');
  if (plan->format == HS_FORMAT_COLMAP_DB ||
      (plan->format == HS_FORMAT_AUTO && !is_folder && hs_format_of_name(output) == HS_FORMAT_COLMAP_DB)) {
    plan->format = HS_FORMAT_COLMAP_DB;
    if (!plan->to_stdout && !is_folder) return fill_database_targets(plan, set, output, message, message_bytes);
    snprintf(message, message_bytes, "--format colmap-db writes one database: expected its name, -o FILE");
    return CLI_USAGE;
  }
  if (several && (plan->to_stdout || (exists(output) && !os_is_folder(output)))) {
    snprintf(message, message_bytes, "--output %s%s%s: expected a directory for the features of several images",
             output != NULL ? "'" : "is missing", output ? output : "", output ? "'" : "");
    return CLI_USAGE;
  }
  if (several && !is_folder && hs_format_of_name(output) != HS_FORMAT_AUTO) {
    snprintf(message, message_bytes,
             "--output '%s' is the name of one file: expected a directory for the features of several images, with '/' "
             "after a name such as this one",
             output);
    return CLI_USAGE;
  }
  if (several || is_folder) {
    directory = output;
    plan->format = plan->format == HS_FORMAT_AUTO ? HS_FORMAT_NPZ : plan->format;
  } else if (!choose_format(plan, output, message, message_bytes)) {
    return CLI_USAGE;
  }
  if (!fill_targets(plan, set, directory, plan->to_stdout ? "-" : output)) {
    output_plan_free(plan);
    snprintf(message, message_bytes, "out of memory for the names of the outputs");
    return CLI_FAILED;
  }
  plan->directory = directory;
  return CLI_DONE;
}

cli_exit output_plan_make_directory(const output_plan *plan, char *message, size_t message_bytes) {
  if (plan->directory && !output_make_directories(plan->directory)) {
    snprintf(message, message_bytes, "cannot make the directory %s: %s", plan->directory, strerror(errno));
    return CLI_FAILED;
  }
  return CLI_DONE;
}

void output_plan_free(output_plan *plan) {
  for (int i = 0; i < plan->count; i++) {
    free(plan->targets[i].path);
    free(plan->targets[i].name);
  }
  free(plan->targets);
  memset(plan, 0, sizeof *plan);
}
