/*
 * Fuzz target for command lines. Accepted values are in range, refusals give a reason, and functions that use the
 * options (of contexts, databases, devices, the settings line of `batch`) accept every value that the table accepts.
 * Nothing is run.
 *
 * The first byte chooses the subcommand; the rest are its arguments, separated by line feeds. An argument that begins
 * with a byte of at least 128 gets the option of that number in its place.
 */
#include <stdlib.h>
#include <string.h>

#include "pipeline/cli/batch/batch_report.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/cli_output.h"
#include "pipeline/cli/common/database_output.h"
#include "pipeline/cli/options/option_table.h"
#include "pipeline/cli/pairs/pair_list.h"
#include "tests/fuzz/input_bytes.h"

enum { FUZZ_ARGUMENTS_MAX = 24, FUZZ_OPTION_BYTE = 128 };

/* Returns a copy of the argument. A first byte of at least 128 is replaced by the option of that number. The copy comes
 * from malloc. */
static char *spell(const char *text) {
  const unsigned char first = (unsigned char)text[0];
  if (first < FUZZ_OPTION_BYTE) return strdup(text);
  const char *name = option_get((option_id)((first - FUZZ_OPTION_BYTE) % OPTION_COUNT))->name;
  const size_t room = strlen(name) + strlen(text) + 2;
  char *spelt = malloc(room);
  if (spelt) snprintf(spelt, room, "--%s%s", name, text + 1);
  return spelt;
}

static void check_ranges(const option_set *set) {
  for (int id = 0; id < OPTION_COUNT; id++) {
    const option_value *value = &set->values[id];
    const option_spec *spec = option_get((option_id)id);
    if (!value->is_set) continue;
    fuzz_require(option_belongs_to((option_id)id, set->command) && value->text != NULL);
    if (spec->kind == OPTION_KIND_INTEGER)
      fuzz_require((double)value->integer >= spec->low && (double)value->integer <= spec->high);
    if (spec->kind == OPTION_KIND_NUMBER) fuzz_require(value->number >= spec->low && value->number <= spec->high);
    if (spec->kind == OPTION_KIND_REGION) fuzz_require(value->numbers[2] >= 1 && value->numbers[3] >= 1);
    if (spec->kind == OPTION_KIND_SIZE) fuzz_require(value->numbers[0] >= 1 && value->numbers[1] >= 1);
  }
  fuzz_require(memchr(set->pairs, '\0', sizeof set->pairs) != NULL);
}

static void use_options(const option_set *set) {
  char message[CLI_MESSAGE_BYTES] = "";
  hs_options options;
  hs_expert_options expert;
  cli_devices devices;
  database_camera camera;
  cli_input input;
  cli_fill_options(set, &options, &expert);
  fuzz_require(options.struct_size == sizeof options);
  const batch_inputs inputs = {.as_stored = true};
  char *settings = batch_settings_text(set, &options, "npz", &inputs);
  fuzz_require(settings != NULL && !strchr(settings, '\n'));
  free(settings);
  if (cli_parse_devices(set, &devices, message, sizeof message) == CLI_DONE)
    fuzz_require(devices.count >= 1 && devices.count <= HS_BATCH_DEVICES_MAX);
  else
    fuzz_require(message[0] != '\0');
  message[0] = '\0';
  if (!database_camera_choose(set, &camera, message, sizeof message)) fuzz_require(message[0] != '\0');
  (void)pair_list_check(set);
  (void)cli_decode_scale(set);
  cli_input_init(&input, set, &options);
  cli_input_free(&input);
  output_plan plan;
  message[0] = '\0';
  if (set->command == COMMAND_EXTRACT && set->operand_count > 0) {
    if (output_plan_make(&plan, set, message, sizeof message) == CLI_DONE)
      output_plan_free(&plan);
    else
      fuzz_require(message[0] != '\0');
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char program[] = "hartsift";
  char *arguments[FUZZ_ARGUMENTS_MAX + 2] = {program}, message[OPTION_MESSAGE_BYTES] = "";
  int count = 1;
  if (size == 0) return 0;
  const command_id command = (command_id)(data[0] % COMMAND_COUNT);
  char *text = malloc(size);
  fuzz_require(text != NULL);
  memcpy(text, data + 1, size - 1);
  text[size - 1] = '\0';
  for (char *at = text; at < text + size - 1 && count <= FUZZ_ARGUMENTS_MAX;) {
    char *start = at;
    at += strcspn(at, "\n");
    *at++ = '\0';
    arguments[count] = spell(start);
    fuzz_require(arguments[count++] != NULL);
  }
  char *owned[FUZZ_ARGUMENTS_MAX + 2]; /* the pointers to free; parsing changes the order of the arguments */
  memcpy(owned, arguments, sizeof owned);
  option_set *set = malloc(sizeof *set);
  fuzz_require(set != NULL);
  if (option_parse(set, command, count, arguments, message, sizeof message)) {
    check_ranges(set);
    if (command != COMMAND_TOP) use_options(set);
  } else {
    fuzz_require(message[0] != '\0');
  }
  suggest_command(text, message, sizeof message);
  for (int i = 1; i < count; i++) free(owned[i]);
  free(set);
  free(text);
  return 0;
}
