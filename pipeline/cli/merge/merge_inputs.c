/*
 * Finds and reads the manifests to merge; see merge.h.
 */
#include "os/os_files.h"
#include "pipeline/cli/merge/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/cli/batch/batch_rows.h"
#include "pipeline/cli/common/cli_output.h"
#include "pipeline/formats/formats.h"

static cli_exit no_memory(void) { return cli_fail(CLI_FAILED, COMMAND_MERGE, "out of memory for the manifests"); }

/* ---- names */

bool merge_is_same_location(const char *one, const char *other) {
  os_info a, b;
  return os_info_of(one, &a) && os_info_of(other, &b) && os_is_same(&a, &b);
}

static bool is_journal(const char *name) {
  const size_t length = strlen(name);
  return length > 8 && strcmp(name + length - 8, ".journal") == 0;
}

/* Parses "BASE-I-of-N.csv", or "BASE.csv" as shard 1 of 1. False if the numbers are invalid. */
static bool parse_shard_of_name(const char *name, const char *base, merge_shard *shard) {
  char text[32] = "";
  const char *rest = name + strlen(base);
  shard->shard = shard->shards = 1;
  if (rest[0] != '-') return true;
  const size_t digits = strspn(rest + 1, "0123456789");
  const char *last = rest + 1 + digits + strlen("-of-");
  const char *first = rest + 1 + strspn(rest + 1, "0");
  snprintf(text, sizeof text, "%.*s/%.*s", (int)(rest + 1 + digits - first), first, (int)strspn(last, "0123456789"),
           last);
  return hs_find_shard(text, NULL, NULL, &shard->shard, &shard->shards, NULL, 0) == HS_OK;
}

/* Adds a manifest. Takes ownership of the strings manifest and location. */
static cli_exit add_shard(merge_inputs *inputs, char *manifest, char *location, const char *name, const char *base) {
  merge_shard *shards = realloc(inputs->shards, (inputs->shard_count + 1) * sizeof *shards);
  inputs->shards = shards ? shards : inputs->shards;
  merge_shard shard = {.manifest = manifest, .location = location};
  if (!shards || !manifest || !location) {
    free(manifest);
    free(location);
    return no_memory();
  }
  const bool named = parse_shard_of_name(name, base, &shard);
  inputs->shards[inputs->shard_count++] = shard;
  if (!named) cli_error(COMMAND_MERGE, "%s: expected a name of a shard, I-of-N with 1 <= I <= N", manifest);
  return named ? CLI_DONE : CLI_FAILED;
}

/* Manifests that were found in a folder. */
typedef struct found_manifests {
  char **entries;
  int64_t count;
  const char *folder; /* path of the folder with a final slash, or "" */
  const char *base;   /* prefix of the names of manifests */
  const char *location;
  bool whole_is_output; /* the manifest without shard belongs to the output of this merge */
} found_manifests;

static cli_exit take_found(merge_inputs *inputs, const found_manifests *found) {
  char whole[OS_NAME_BYTES] = "";
  size_t before = inputs->shard_count;
  snprintf(whole, sizeof whole, "%s.csv", found->base);
  bool has_whole = false;
  for (int64_t i = 0; i < found->count; i++) {
    const char *name = found->entries[i];
    if (!batch_is_manifest_name(name, found->base)) continue;
    if (is_journal(name))
      return cli_fail(CLI_FAILED, COMMAND_MERGE,
                      "%s%s: is not finished: run 'hartsift batch' of that shard again with --resume first",
                      found->folder, name);
    if (strcmp(name, whole) == 0) {
      has_whole = true;
      continue;
    }
    const cli_exit result =
        add_shard(inputs, cli_join(found->folder, name, ""), strdup(found->location), name, found->base);
    if (result != CLI_DONE) return result;
  }
  const bool has_shards = inputs->shard_count > before;
  if (has_whole && has_shards && !found->whole_is_output)
    return cli_fail(
        CLI_FAILED, COMMAND_MERGE,
        "%s: has a manifest of all images and manifests of shards: name the manifest to merge, %s%s, or those of the shards",
        found->location, found->folder, whole);
  if (!has_whole && !has_shards)
    return cli_fail(CLI_FAILED, COMMAND_MERGE, "%s: there is no manifest: expected the -o of 'hartsift batch'",
                    found->location);
  if (has_shards) return CLI_DONE;
  return add_shard(inputs, cli_join(found->folder, whole, ""), strdup(found->location), whole, found->base);
}

static cli_exit find_in(merge_inputs *inputs, const char *folder, const char *base, const char *location,
                        const char *output) {
  found_manifests found = {.folder = folder, .base = base, .location = location};
  found.whole_is_output = merge_is_same_location(location, output);
  found.count = os_list_folder(folder[0] != '\0' ? folder : ".", &found.entries);
  if (found.count < 0) return cli_fail(CLI_FAILED, COMMAND_MERGE, "%s: cannot be read: %s", location, strerror(errno));
  const cli_exit result = take_found(inputs, &found);
  for (int64_t i = 0; i < found.count; i++) free(found.entries[i]);
  free(found.entries);
  return result;
}

/* Adds a manifest that is given by its name: that of a folder, or NAME.db.manifest.csv of a database. */
static cli_exit take_manifest(merge_inputs *inputs, const char *path, const char *folder, const char *name) {
  if (batch_is_manifest_name(name, "manifest"))
    return add_shard(inputs, strdup(path), strdup(folder[0] != '\0' ? folder : "."), name, "manifest");
  const char *part = name;
  for (const char *next = name; (next = strstr(next, ".manifest")) != NULL; next++) part = next;
  char *base = os_copy_text(name, (size_t)(part - name) + strlen(".manifest"));
  char *location = base ? os_copy_text(path, strlen(path) - strlen(part)) : NULL;
  cli_exit result;
  if (part == name || (base && !batch_is_manifest_name(name, base))) {
    cli_error(COMMAND_MERGE, "%s: has no name of a manifest: expected manifest.csv or NAME.db.manifest.csv", path);
    free(location);
    result = CLI_USAGE;
  } else {
    result = add_shard(inputs, strdup(path), location, name, base ? base : "");
  }
  free(base);
  return result;
}

static cli_exit take_operand(merge_inputs *inputs, const char *operand, const char *output) {
  const char *slash = strrchr(operand, '/');
  const char *name = slash ? slash + 1 : operand;
  const size_t length = strlen(operand);
  char *folder = os_copy_text(operand, (size_t)(name - operand));
  char *base = NULL;
  cli_exit result = CLI_FAILED;
  if (!folder) {
    result = no_memory();
  } else if (os_is_folder(operand)) {
    char *closed = cli_join(operand, operand[length - 1] == '/' ? "" : "/", "");
    result = closed ? find_in(inputs, closed, "manifest", operand, output) : no_memory();
    free(closed);
  } else if (length > 4 && strcmp(operand + length - 4, ".csv") == 0) {
    result = take_manifest(inputs, operand, folder, name);
  } else if (!os_exists(operand)) {
    cli_error(COMMAND_MERGE, "%s: %s", operand, strerror(errno));
  } else {
    base = cli_join(name, ".manifest", "");
    result = base ? find_in(inputs, folder, base, operand, output) : no_memory();
  }
  free(base);
  free(folder);
  return result;
}

/* ---- content */

static bool add_image(merge_inputs *inputs, const merge_image *image) {
  if (inputs->count == inputs->capacity) {
    const size_t capacity = inputs->capacity == 0 ? 256 : 2 * inputs->capacity;
    merge_image *images = realloc(inputs->images, capacity * sizeof *images);
    if (!images) return false;
    inputs->images = images;
    inputs->capacity = capacity;
  }
  inputs->images[inputs->count++] = *image;
  return true;
}

/* Reads all rows of a shard. False: out of memory. *damaged: number of the first damaged row; 0: none. */
static bool take_rows(merge_inputs *inputs, size_t index, const char *cursor, const char *end, batch_columns columns,
                      size_t *damaged) {
  const merge_shard *shard = &inputs->shards[index];
  batch_row row = {.text = malloc((size_t)(end - cursor) + BATCH_FIELDS_MAX)};
  bool done = row.text != NULL;
  *damaged = 0;
  for (size_t number = 0; done && cursor < end; number++) {
    merge_image image = {.shard = index, .position = (size_t)(shard->shard - 1) + number * (size_t)shard->shards};
    if (!batch_read_row(&cursor, end, &row) || row.count != batch_row_fields(columns) ||
        !batch_row_record(&row, columns, &image.record)) {
      *damaged = number + 1;
      break;
    }
    const bool failed = image.record.state == BATCH_FAILED;
    image.name = strdup(row.fields[0]);
    image.record.message = failed ? strdup(row.fields[7]) : NULL;
    done = image.name && (!failed || image.record.message) && add_image(inputs, &image);
    if (!done) {
      free(image.name);
      free(image.record.message);
    }
  }
  free(row.text);
  return done;
}

static cli_exit read_shard(merge_inputs *inputs, size_t index) {
  merge_shard *shard = &inputs->shards[index];
  const int descriptor = os_open(shard->manifest, OS_READ);
  size_t size = 0, damaged = 0;
  shard->text = descriptor >= 0 ? batch_read_whole(descriptor, &size) : NULL;
  if (!shard->text) cli_error(COMMAND_MERGE, "%s: cannot be read: %s", shard->manifest, strerror(errno));
  if (descriptor >= 0) os_close(descriptor);
  if (!shard->text) return CLI_FAILED;
  const char *cursor = shard->text, *end = shard->text + size;
  batch_columns columns;
  if (!batch_read_head(&cursor, end, false, &shard->settings, &shard->settings_length, &columns))
    return cli_fail(CLI_FAILED, COMMAND_MERGE, "%s: is no manifest of 'hartsift batch'", shard->manifest);
  if (!take_rows(inputs, index, cursor, end, columns, &damaged)) return no_memory();
  if (damaged > 0)
    return cli_fail(CLI_FAILED, COMMAND_MERGE, "%s: row %zu is damaged: run 'hartsift batch' of it again",
                    shard->manifest, damaged);
  return CLI_DONE;
}

const char *merge_setting(const merge_shard *shard, const char *name, size_t *length) {
  const size_t name_length = strlen(name);
  const char *end = shard->settings + shard->settings_length;
  for (const char *at = shard->settings; at < end;) {
    const char *space = memchr(at, ' ', (size_t)(end - at));
    const char *word_end = space ? space : end;
    if ((size_t)(word_end - at) >= name_length && memcmp(at, name, name_length) == 0) {
      *length = (size_t)(word_end - at) - name_length;
      return at + name_length;
    }
    at = word_end + 1;
  }
  *length = 0;
  return end;
}

/* ---- consistency */

static cli_exit check_settings(merge_inputs *inputs) {
  const merge_shard *first = &inputs->shards[0];
  char name[32];
  size_t length = 0;
  for (size_t i = 1; i < inputs->shard_count; i++) {
    const merge_shard *other = &inputs->shards[i];
    if (other->settings_length == first->settings_length &&
        memcmp(other->settings, first->settings, first->settings_length) == 0)
      continue;
    char here[CLI_MESSAGE_BYTES], there[CLI_MESSAGE_BYTES];
    batch_list_differences(first->settings, first->settings_length, other->settings, other->settings_length, here);
    batch_list_differences(other->settings, other->settings_length, first->settings, first->settings_length, there);
    return cli_fail(CLI_USAGE, COMMAND_MERGE,
                    "%s was made with other options or another method version:%s; %s has:%s; expected the same",
                    other->manifest, there, first->manifest, here);
  }
  const char *text = merge_setting(first, "format=", &length);
  snprintf(name, sizeof name, "%.*s", (int)length, text);
  const feature_format *format = format_by_name(name);
  if (!format)
    return cli_fail(CLI_FAILED, COMMAND_MERGE, "%s: has outputs of an unknown format: '%s'", first->manifest, name);
  inputs->format = format->id;
  return CLI_DONE;
}

static int compare_shards(const void *one, const void *other) {
  const merge_shard *a = one, *b = other;
  return (a->shard > b->shard) - (a->shard < b->shard);
}

/* Checks that all shards of a division exist, each exactly once. */
static cli_exit check_shards(merge_inputs *inputs) {
  merge_shard *shards = inputs->shards;
  const int32_t all = shards[0].shards;
  for (size_t i = 1; i < inputs->shard_count; i++) {
    if (shards[i].shards != all)
      return cli_fail(CLI_FAILED, COMMAND_MERGE, "%s and %s are shards of different numbers of shards",
                      shards[0].manifest, shards[i].manifest);
  }
  if (all == 1) return CLI_DONE;
  qsort(shards, inputs->shard_count, sizeof *shards, compare_shards);
  for (size_t i = 1; i < inputs->shard_count; i++) {
    if (shards[i].shard == shards[i - 1].shard)
      return cli_fail(CLI_FAILED, COMMAND_MERGE, "%s and %s are the same shard", shards[i - 1].manifest,
                      shards[i].manifest);
  }
  for (int32_t i = 0; i < all; i++) {
    if ((size_t)i == inputs->shard_count || shards[i].shard != i + 1)
      return cli_fail(CLI_FAILED, COMMAND_MERGE, "shard %ld of %ld is missing: there are manifests of %s and others",
                      (long)(i + 1), (long)all, shards[0].manifest);
  }
  return CLI_DONE;
}

static int compare_positions(const void *one, const void *other) {
  const merge_image *a = one, *b = other;
  return (a->position > b->position) - (a->position < b->position);
}

static int compare_names(const void *one, const void *other) {
  const merge_image *a = one, *b = other;
  const int order = strcmp(a->name, b->name);
  if (order != 0) return order;
  /* of images with the same name, those of one shard stay in its order, because batch failed the second one; other
   * duplicates are refused later */
  return a->shard != b->shard ? (a->shard > b->shard) - (a->shard < b->shard) : compare_positions(a, b);
}

static cli_exit order_images(merge_inputs *inputs) {
  if (inputs->count == 0) return CLI_DONE;
  if (inputs->shard_count > 1 && inputs->shards[0].shards == 1) {
    qsort(inputs->images, inputs->count, sizeof *inputs->images, compare_names);
    return CLI_DONE;
  }
  qsort(inputs->images, inputs->count, sizeof *inputs->images, compare_positions);
  for (size_t i = 0; i < inputs->count; i++) {
    if (inputs->images[i].position != i)
      return cli_fail(CLI_FAILED, COMMAND_MERGE,
                      "the shards do not add up to one list: image %zu of it is missing; expected all of them "
                      "made of the same folder or list",
                      i + 1);
  }
  return CLI_DONE;
}

cli_exit merge_read_inputs(merge_inputs *inputs, char **operands, int operand_count, const char *output) {
  cli_exit result = CLI_DONE;
  *inputs = (merge_inputs){0};
  for (int i = 0; result == CLI_DONE && i < operand_count; i++) result = take_operand(inputs, operands[i], output);
  result = result == CLI_DONE ? check_shards(inputs) : result;
  for (size_t i = 0; result == CLI_DONE && i < inputs->shard_count; i++) result = read_shard(inputs, i);
  result = result == CLI_DONE ? check_settings(inputs) : result;
  return result == CLI_DONE ? order_images(inputs) : result;
}

void merge_free_inputs(merge_inputs *inputs) {
  for (size_t i = 0; i < inputs->shard_count; i++) {
    free(inputs->shards[i].manifest);
    free(inputs->shards[i].location);
    free(inputs->shards[i].text);
  }
  for (size_t i = 0; i < inputs->count; i++) {
    free(inputs->images[i].name);
    free(inputs->images[i].record.message);
  }
  free(inputs->shards);
  free(inputs->images);
  *inputs = (merge_inputs){0};
}
