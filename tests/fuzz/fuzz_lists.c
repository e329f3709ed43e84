/*
 * Fuzz target for lists of images and pairs, and the output names derived from them: no output is outside its folder,
 * and every pair consists of two existing images and occurs once.
 */
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "pipeline/cli/batch/batch_list.h"
#include "pipeline/cli/common/cli_output.h"
#include "pipeline/cli/common/database_output.h"
#include "pipeline/cli/pairs/pair_list.h"
#include "pipeline/formats/formats.h"
#include "tests/fuzz/input_bytes.h"
#include "tests/fuzz/input_file.h"

static bool leaves_folder(const char *path) {
  if (path[0] == '/') return true;
  for (const char *at = path; at; at = strchr(at, '/')) {
    at += at[0] == '/';
    if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0')) return true;
  }
  return false;
}

static char *name_output(const char *name, const void *user) {
  return batch_output_name(name, *(const hs_format *)user);
}

static void check_images(const char *path, char end, hs_format format) {
  batch_list list;
  if (batch_list_read(&list, path, NULL, end) != CLI_DONE) return;
  fuzz_require(batch_list_mark_shared(&list, name_output, &format));
  for (size_t i = 0; i < list.count; i++) {
    const char *name = list.images[i].name;
    char *output = batch_output_name(name, format), message[CLI_MESSAGE_BYTES] = "";
    char *in_database = database_image_name(name, (i & 1u) != 0 ? "photos" : NULL, message, sizeof message);
    /* In a database an invalid file name has an empty output name. */
    fuzz_require(output != NULL && (output[0] != '\0' || format == HS_FORMAT_COLMAP_DB) && !leaves_folder(output));
    fuzz_require(in_database != NULL || message[0] != '\0');
    fuzz_require(batch_list_find(&list, name) != NULL && strcmp(batch_list_find(&list, name)->name, name) == 0);
    free(output);
    free(in_database);
  }
  batch_list_free(&list);
}

static void check_pairs(char *path) {
  static database_image each[] = {{.image_id = 1, .name = (char *)"a.jpg"},
                                  {.image_id = 2, .name = (char *)"b c.jpg"},
                                  {.image_id = 7, .name = (char *)"d.png"},
                                  {.image_id = 9, .name = (char *)""}};
  static option_set set;
  const database_images images = {.path = "database.db", .each = each, .count = sizeof each / sizeof each[0]};
  const pair_source source = {.set = &set, .images = &images};
  bool seen[4][4] = {{false}};
  pair_list pairs = {0};
  set.values[OPTION_PAIRS] = (option_value){.is_set = true, .text = path};
  if (pair_list_make(&source, &pairs) == CLI_DONE) {
    for (size_t i = 0; i < pairs.count; i++) {
      const hs_image_pair p = pairs.each[i];
      fuzz_require(p.first < images.count && p.second < images.count && p.first != p.second);
      fuzz_require(!seen[p.first][p.second]);
      seen[p.first][p.second] = seen[p.second][p.first] = true;
    }
  }
  pair_list_free(&pairs);
}

/* Parses the input as one text, in the forms of --pairs, --shard and names. */
static void check_text(const char *text) {
  char message[CLI_MESSAGE_BYTES] = "";
  pair_choice choice;
  int32_t shard = 0, shards = 0;
  if (pair_choice_parse(text, &choice) == CLI_DONE && choice.kind == PAIR_CHOICE_SPATIAL)
    fuzz_require(choice.metres >= 0.0);
  if (hs_find_shard(text, NULL, NULL, &shard, &shards, message, sizeof message) == HS_OK)
    fuzz_require(shard >= 1 && shard <= shards && shards <= HS_SHARDS_MAX);
  else
    fuzz_require(message[0] != '\0');
  (void)output_is_scene(text);
  (void)format_by_ending(text);
  const char *names[3] = {text, "img2.png", "img010.png"};
  hs_image_pairs pairs = {0};
  fuzz_require(hs_pair_sequence(names, 3, 1, 0, &pairs) == HS_OK && pairs.count == 2);
  hs_image_pairs_free(&pairs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  const hs_format format = (hs_format)(1u + (data[0] >> 1) % FORMAT_COUNT);
  const char end = (data[0] & 1u) != 0 ? '\0' : '\n';
  char *path = strdup(input_file(data + 1, size - 1));
  input_bytes rest = {data + 1, size - 1};
  char *text = input_text(&rest, size);
  fuzz_require(path != NULL && text != NULL);
  check_images(path, end, format);
  check_pairs(path);
  check_text(text);
  free(text);
  free(path);
  return 0;
}
