/*
 * Matches and geometry of the databases that `merge` puts together; see merge_matches.h.
 */
#include "pipeline/cli/merge/merge_matches.h"

#include <stdlib.h>

#include "pipeline/formats/colmap/colmap_pairs.h"

/* The images of one database. */
typedef struct source_images {
  const merged_image *first; /* sorted by their numbers there */
  size_t count;
  const char *place;
} source_images;

/* By database, then by the number there. */
static int compare_merged(const void *one, const void *other) {
  const merged_image *a = one, *b = other;
  if (a->shard != b->shard) return a->shard < b->shard ? -1 : 1;
  return (a->from > b->from) - (a->from < b->from);
}

static int compare_numbers(const void *key, const void *entry) {
  const uint32_t number = *(const uint32_t *)key, from = ((const merged_image *)entry)->from;
  return (number > from) - (number < from);
}

/* False: the image was not merged. */
static bool new_number(const source_images *images, uint32_t from, uint32_t *to) {
  const merged_image *found = bsearch(&from, images->first, images->count, sizeof *images->first, compare_numbers);
  if (found) *to = found->to;
  return found != NULL;
}

static cli_exit fail(const hs_colmap_database *database) {
  cli_error(COMMAND_MERGE, "%s", hs_colmap_last_error(database));
  return CLI_FAILED;
}

static cli_exit copy_pairs(merge_output *output, const source_images *images, merge_match_totals *totals) {
  size_t unknown = 0, unfit = 0;
  char why[CLI_MESSAGE_BYTES] = "";
  for (int64_t pair = -1;;) {
    uint32_t from[2], to[2];
    if (colmap_next_pair(output->source, pair, &pair, from) != HS_OK) return fail(output->source);
    if (pair < 0) break;
    if (!new_number(images, from[0], &to[0]) || !new_number(images, from[1], &to[1])) {
      unknown++;
      continue;
    }
    const hs_status status = colmap_copy_pair(output->database, to, output->source, from);
    if (status != HS_OK && status != HS_ERR_FORMAT) return fail(output->database);
    totals->copied += status == HS_OK;
    if (status == HS_OK) continue;
    if (unfit++ == 0) snprintf(why, sizeof why, "%s", hs_colmap_last_error(output->database));
  }
  totals->left += unknown + unfit;
  if (unknown > 0)
    cli_error(COMMAND_MERGE, "%s: the matches of %zu pair%s with images that its manifest does not list are left out",
              images->place, unknown, unknown == 1 ? "" : "s");
  if (unfit > 0)
    cli_error(COMMAND_MERGE, "%s; the matches of %zu pair%s are left out: 'hartsift match --database' makes them anew",
              why, unfit, unfit == 1 ? "" : "s");
  return CLI_DONE;
}

/* Says how many images were in rigs of several cameras and are not any more. */
static cli_exit tell_lost_rigs(const merge_output *output, const source_images *images) {
  size_t lost = 0;
  for (size_t i = 0; i < images->count; i++) {
    colmap_frame before, after;
    if (colmap_read_frame(output->source, images->first[i].from, &before) != HS_OK) return fail(output->source);
    if (colmap_read_frame(output->database, images->first[i].to, &after) != HS_OK) return fail(output->database);
    lost += before.frame_id >= 0 && before.is_of_rig && !(after.frame_id >= 0 && after.is_of_rig);
  }
  if (lost > 0)
    cli_error(COMMAND_MERGE,
              "%s: rigs and frames are not merged: %zu image%s of rigs there: configure the rigs again with COLMAP "
              "(rig_configurator)",
              images->place, lost, lost == 1 ? " is" : "s are");
  return CLI_DONE;
}

/* Shards of one database all count as the first of them. */
static bool name_databases(merge_output *output, const merge_inputs *inputs) {
  size_t *first = calloc(inputs->shard_count, sizeof *first);
  if (!first) return false;
  for (size_t i = 0; i < inputs->shard_count; i++)
    while (first[i] < i && !merge_is_same_place(inputs->shards[first[i]].place, inputs->shards[i].place)) first[i]++;
  for (size_t i = 0; i < output->merged_count; i++) output->merged[i].shard = first[output->merged[i].shard];
  free(first);
  return true;
}

cli_exit merge_copy_matches(merge_output *output, const merge_inputs *inputs, merge_match_totals *totals) {
  char message[CLI_MESSAGE_BYTES] = "";
  cli_exit result = CLI_DONE;
  *totals = (merge_match_totals){0};
  if (output->merged_count == 0) return CLI_DONE;
  if (!name_databases(output, inputs)) {
    cli_error(COMMAND_MERGE, "no memory for the names of the databases");
    return CLI_FAILED;
  }
  qsort(output->merged, output->merged_count, sizeof *output->merged, compare_merged);
  for (size_t i = 0, next; result == CLI_DONE && i < output->merged_count; i = next) {
    const size_t shard = output->merged[i].shard;
    for (next = i; next < output->merged_count && output->merged[next].shard == shard;) next++;
    const source_images images = {&output->merged[i], next - i, inputs->shards[shard].place};
    if (merge_open_source(output, inputs, shard, message, sizeof message)) {
      result = tell_lost_rigs(output, &images);
      if (result == CLI_DONE) result = copy_pairs(output, &images, totals);
    } else {
      cli_error(COMMAND_MERGE, "%s", message);
      result = CLI_FAILED;
    }
  }
  return result;
}
