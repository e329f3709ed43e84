/*
 * The command line's option table: every entry is complete; values are parsed, or refused with a message that names the
 * option and the expected value; generated texts contain every option.
 */
#include "tests/support/test.h"

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/cli_output.h"
#include "pipeline/cli/options/option_table.h"
#include "pipeline/formats/formats.h"

enum { MOST_WORDS = 32 };

/* A command line of space-separated words. It must live as long as the option set, which refers to argv. */
typedef struct command_line {
  char text[512];
  char *argv[MOST_WORDS + 1];
  int argc;
  option_set set;
  char message[OPTION_MESSAGE_BYTES];
} command_line;

static bool parse(command_line *line, command_id command, const char *words) {
  memset(line, 0, sizeof *line);
  snprintf(line->text, sizeof line->text, "command %s", words);
  for (char *word = strtok(line->text, " "); word; word = strtok(NULL, " ")) {
    assert_true(line->argc < MOST_WORDS);
    line->argv[line->argc++] = word;
  }
  return option_parse(&line->set, command, line->argc, line->argv, line->message, sizeof line->message);
}

/* Fails unless the command line is refused with a message that contains both texts. */
static void assert_refused(command_id command, const char *words, const char *option, const char *expected) {
  command_line line;
  if (parse(&line, command, words)) fail_msg("accepted: %s", words);
  if (!strstr(line.message, option) || !strstr(line.message, expected))
    fail_msg("'%s' gives the message '%s'", words, line.message);
}

TEST(entries_are_complete) {
  for (int id = 0; id < OPTION_COUNT; id++) {
    const option_spec *spec = option_get((option_id)id);
    assert_non_null(spec->name);
    assert_non_null(spec->help);
    assert_true(spec->commands != 0);
    assert_true((spec->kind == OPTION_KIND_FLAG) == (!spec->argument));
    assert_true((spec->kind == OPTION_KIND_CHOICE) == (spec->choices != NULL));
    if (spec->kind == OPTION_KIND_INTEGER || spec->kind == OPTION_KIND_NUMBER) assert_true(spec->low < spec->high);
    for (int other = 0; other < id; other++) {
      /* An option may differ in meaning only between subcommands. */
      const option_spec *earlier = option_get((option_id)other);
      assert_true(strcmp(spec->name, earlier->name) != 0 || (spec->commands & earlier->commands) == 0);
      assert_true(spec->letter == 0 || spec->letter != earlier->letter);
    }
  }
}

TEST(choices_are_the_formats) {
  char names[256] = "";
  for (size_t i = 0; format_at(i) != NULL; i++)
    snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i > 0 ? "|" : "", format_at(i)->name);
  assert_string_equal(option_get(OPTION_FORMAT)->choices, names);
  char expanded[OPTION_TEXT_BYTES];
  const char *text = option_expand("one of {formats}.", expanded);
  assert_int_equal(strncmp(text, "one of colmap, npz, ", 20), 0);
  assert_string_equal(strstr(text, " or "), " or oxford.");
  text = option_expand("{formats as stored}", expanded);
  for (size_t i = 0; format_at(i) != NULL; i++) {
    const bool is_named = strstr(text, format_at(i)->name) != NULL;
    assert_int_equal(is_named, format_at(i)->as_stored);
  }
  assert_string_equal(option_expand("{\"tiles\": []}", expanded), "{\"tiles\": []}");
}

/* The option table does not define the fields of three options, which are tested here. */
TEST(other_forms_fit_the_library) {
  const hs_option_info *info;
  for (size_t i = 0; (info = hs_option_describe(i)) != NULL; i++) {
    if (strcmp(info->name, "profile") == 0) assert_string_equal(option_get(OPTION_PROFILE)->choices, info->values);
    if (strcmp(info->name, "split") == 0) assert_true(option_get(OPTION_SPLIT)->high == info->high);
    if (strcmp(info->name, "device") != 0) continue;
    for (int kind = 0; kind <= (int)info->high; kind++) {
      char words[32];
      const char *name = info->values;
      command_line line;
      for (int k = 0; k < kind; k++) name = strchr(name, '|') + 1;
      snprintf(words, sizeof words, "--device %.*s", (int)strcspn(name, "|"), name);
      assert_true(parse(&line, COMMAND_INFO, words));
      assert_int_equal(line.set.values[OPTION_DEVICE].integer, kind);
    }
  }
}

TEST(values_are_parsed) {
  command_line line;
  assert_true(parse(&line, COMMAND_EXTRACT,
                    "a.png --threads 3 --contrast=2.5e-2 -o out.csv b.png --first-octave -1 "
                    "--norm root --region 1,2,30,40 --max-memory 3M -q"));
  const option_value *values = line.set.values;
  assert_int_equal(values[OPTION_THREADS].integer, 3);
  assert_true(values[OPTION_CONTRAST].number == 0.025);
  assert_string_equal(values[OPTION_OUTPUT].text, "out.csv");
  assert_int_equal(values[OPTION_FIRST_OCTAVE].integer, -1);
  assert_int_equal(values[OPTION_NORM].integer, HS_NORM_ROOT);
  assert_int_equal(values[OPTION_REGION].numbers[1], 2);
  assert_int_equal(values[OPTION_REGION].numbers[3], 40);
  assert_int_equal(values[OPTION_MAX_MEMORY].count, 3 * 1024 * 1024);
  assert_true(values[OPTION_QUIET].is_set);
  assert_false(values[OPTION_JSON].is_set);
  assert_int_equal(line.set.operand_count, 2);
  assert_string_equal(line.set.operands[0], "a.png");
  assert_string_equal(line.set.operands[1], "b.png");
}

TEST(devices_are_parsed) {
  command_line line;
  assert_true(parse(&line, COMMAND_INFO, "--device cuda:12"));
  assert_int_equal(line.set.values[OPTION_DEVICE].integer, HS_DEVICE_CUDA);
  assert_int_equal(line.set.values[OPTION_DEVICE].numbers[0], 12);
  assert_true(parse(&line, COMMAND_INFO, "--device cpu"));
  assert_int_equal(line.set.values[OPTION_DEVICE].integer, HS_DEVICE_CPU);
  assert_true(parse(&line, COMMAND_INFO, "--device cuda:3 --device auto"));
  assert_int_equal(line.set.values[OPTION_DEVICE].integer, HS_DEVICE_AUTO);
  assert_int_equal(line.set.values[OPTION_DEVICE].numbers[0], 0);
}

TEST(variants_are_joined) {
  command_line line;
  assert_true(parse(&line, COMMAND_EXTRACT, "a --variant blur=ref --variant orient=avx2,base=ref"));
  assert_string_equal(line.set.pairs, "blur=ref,orient=avx2,base=ref");
}

TEST(abbreviations_and_dashes) {
  command_line line;
  assert_true(parse(&line, COMMAND_EXTRACT, "--max-f 7 -- --json -"));
  assert_int_equal(line.set.values[OPTION_MAX_FEATURES].integer, 7);
  assert_false(line.set.values[OPTION_JSON].is_set);
  assert_int_equal(line.set.operand_count, 2);
  assert_string_equal(line.set.operands[0], "--json");
  assert_string_equal(line.set.operands[1], "-");
  assert_refused(COMMAND_EXTRACT, "a --max 7", "--max", "--max-memory");
}

TEST(wrong_values_are_refused) {
  static const char *const cases[][3] = {
      {"a --threads -1", "--threads", "from 0 to 1024"},
      {"a --threads 1025", "--threads", "from 0 to 1024"},
      {"a --threads 1.5", "--threads", "whole number"},
      {"a --threads 99999999999999999999", "--threads", "whole number"},
      {"a --threads=", "--threads", "whole number"},
      {"a --contrast nan", "--contrast", "from 0 to 1"},
      {"a --contrast inf", "--contrast", "from 0 to 1"},
      {"a --contrast 0x1p-4", "--contrast", "from 0 to 1"},
      {"a --contrast 0.1x", "--contrast", "from 0 to 1"},
      {"a --sigma 0.79", "--sigma", "from 0.8 to 4"},
      {"a --norm l3", "--norm", "l2 or root"},
      {"a --norm l2|root", "--norm", "l2 or root"},
      {"a --norm=", "--norm", "l2 or root"},
      {"a --format sift", "--format", "colmap, npz"},
      {"a --device cuda:", "--device", "cuda:N"},
      {"a --device cuda:-1", "--device", "cuda:N"},
      {"a --device cuda:99999999999", "--device", "cuda:N"},
      {"a --grid 4", "--grid", "WxH"},
      {"a --grid 0x4", "--grid", "from 1 to 4096"},
      {"a --grid 4x4097", "--grid", "from 1 to 4096"},
      {"a --grid 4x-4", "--grid", "WxH"},
      {"a --grid 4x+4", "--grid", "WxH"},
      {"a --grid 4X4", "--grid", "WxH"},
      {"a --grid x4", "--grid", "WxH"},
      {"a --grid 99999999999999999999x4", "--grid", "WxH"},
      {"a --region 1,2,3", "--region", "X,Y,W,H"},
      {"a --region 1,2,3,4,5", "--region", "X,Y,W,H"},
      {"a --region 1,2,0,4", "--region", "W and H 1 or more"},
      {"a --region 1,,3,4", "--region", "X,Y,W,H"},
      {"a --max-memory 1T", "--max-memory", "500M"},
      {"a --max-memory 99999999999G", "--max-memory", "500M"},
      {"a --max-memory -1", "--max-memory", "500M"},
      {"a --max-pixels 1K", "--max-pixels", "whole number"},
      {"a --variant blur", "--variant", "STAGE=NAME"},
      {"a --variant blur=", "--variant", "STAGE=NAME"},
      {"a --variant =ref", "--variant", "STAGE=NAME"},
      {"a --variant blur=ref,", "--variant", "STAGE=NAME"},
      {"a --variant blur=a=b", "--variant", "STAGE=NAME"},
      {"a --output=", "--output", "FILE|DIR"},
      {"a --json=1", "--json", "takes no value"},
      {"a --edge", "--edge", "from 1 to 1000"},
      {"a -o", "--output", "needs a value"},
      {"a --circle-scale 2", "--circle-scale", "unknown option"},
      {"a -x", "-x", "unknown option"},
      {"a --mask m.png --masks m", "--mask and --masks", "expected one of them"},
      {"a --dsp-sizes 3", "--dsp-sizes", "needs --dsp"},
      {"a --dsp-largest 2", "--dsp-largest", "needs --dsp"},
      {"", "operand", "IMAGE..."},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_refused(COMMAND_EXTRACT, cases[i][0], cases[i][1], cases[i][2]);
  assert_refused(COMMAND_DRAW, "a b c d e f", "'f'", "IMAGE [FEATURES]");
  assert_refused(COMMAND_INFO, "a", "'a'", "none");
}

TEST(options_reach_their_fields) {
  command_line line;
  hs_options options;
  hs_expert_options expert;
  /* A profile at the end of the command line sets only the fields that no other option sets. */
  assert_true(parse(
      &line, COMMAND_EXTRACT,
      "a --contrast 0.5 --max-features 3 --upright --descriptor none --upsample half-pixel "
      "--max-pixels 77 --device cuda:2 --region 5,6,7,8 --grid 9x10 --equalize --dsp --dsp-largest 2.5 --profile colmap"));
  cli_fill_options(&line.set, &options, &expert);
  assert_int_equal(options.profile, HS_PROFILE_COLMAP);
  assert_int_equal(options.norm, HS_NORM_ROOT);
  assert_int_equal(options.octaves, 4);
  assert_true(options.contrast == 0.5f);
  assert_int_equal(options.max_features, 3);
  assert_int_equal(options.upright, 1);
  assert_int_equal(options.descriptor, HS_DESCRIPTOR_NONE);
  assert_int_equal(options.upsample, HS_UPSAMPLE_HALF_PIXEL);
  assert_int_equal(options.max_pixels, 77);
  assert_int_equal(options.device, HS_DEVICE_CUDA);
  assert_int_equal(options.device_index, 2);
  assert_int_equal(options.grid_columns, 9);
  assert_int_equal(options.grid_rows, 10);
  assert_int_equal(options.equalize, 1);
  assert_int_equal(options.dsp, 1);
  assert_int_equal(options.dsp_sizes, 10);
  assert_true(options.dsp_largest == 2.5f);
  assert_int_equal(options.region_x, 5);
  assert_int_equal(options.region_height, 8);
  assert_null(options.expert);
  assert_true(parse(&line, COMMAND_EXTRACT, "a --variant blur=ref --max-pixels 0 --profile opencv"));
  cli_fill_options(&line.set, &options, &expert);
  assert_ptr_equal(options.expert, &expert);
  assert_string_equal(expert.variant, "blur=ref");
  assert_int_equal(expert.refine_rule, HS_RULE_OPENCV);
  assert_true(options.max_pixels == UINT64_MAX); /* 0 is no limit, as the help says */
}

/* The library accepts both ends of every range in the table. */
TEST(ranges_agree_with_the_library) {
  for (int id = 0; id < OPTION_COUNT; id++) {
    const option_spec *spec = option_get((option_id)id);
    if (spec->field == OPTION_NO_FIELD || (spec->kind != OPTION_KIND_INTEGER && spec->kind != OPTION_KIND_NUMBER) ||
        id == OPTION_INPUT_BLUR || id == OPTION_THREADS)
      continue; /* the maximum of input_blur depends on sigma, and 1024 threads would really start */
    for (int end = 0; end < 2; end++) {
      char words[128], message[512];
      command_line line;
      hs_options options;
      hs_expert_options expert;
      scoped_context *context = NULL;
      snprintf(words, sizeof words, "a --device cpu --input-blur 0.4 --dsp --%s %.10g", spec->name,
               end == 0 ? spec->low : spec->high);
      assert_true(parse(&line, COMMAND_EXTRACT, words));
      cli_fill_options(&line.set, &options, &expert);
      if (hs_create_explained(&context, &options, message, sizeof message) != HS_OK) fail_msg("%s: %s", words, message);
    }
  }
}

typedef void (*text_writer)(FILE *out, command_id command);

static void write_completions(FILE *out, command_id shell) {
  static void (*const writers[])(FILE *) = {option_write_bash_completion, option_write_zsh_completion,
                                            option_write_fish_completion};
  writers[shell](out);
}

/* Returns the output of a writer, which the caller frees. */
static char *text_of(text_writer write, command_id command) {
  scratch_folder folder;
  char path[SCRATCH_PATH_BYTES];
  scratch_folder_make(&folder);
  FILE *file = fopen(scratch_folder_path(&folder, "text", path), "wb+");
  assert_non_null(file);
  write(file, command);
  const long size = ftell(file);
  assert_true(size > 0);
  char *text = calloc((size_t)size + 1, 1);
  assert_non_null(text);
  rewind(file);
  assert_int_equal(fread(text, 1, (size_t)size, file), (size_t)size);
  fclose(file);
  scratch_folder_remove(&folder);
  return text;
}

/* Fails unless the option is in the manual in roff, as "--max-features", and in the help as a word. */
static void assert_in_texts_of_command(const char *name, const char *help, const char *man) {
  char listed[80], escaped[128] = "\\-\\-";
  snprintf(listed, sizeof listed, " --%s", name);
  for (size_t used = strlen(escaped); *name != '\0'; name++)
    used += (size_t)snprintf(escaped + used, sizeof escaped - used, *name == '-' ? "\\-" : "%c", *name);
  assert_non_null(strstr(help, listed));
  assert_non_null(strstr(man, escaped));
}

TEST(help_and_manual_hold_every_option) {
  for (int command = COMMAND_TOP; command < COMMAND_COUNT; command++) {
    SCOPED_MEMORY char *help = text_of(option_write_help, (command_id)command);
    SCOPED_MEMORY char *man = text_of(option_write_man, (command_id)command);
    for (int id = 0; id < OPTION_COUNT; id++)
      if (option_belongs_to((option_id)id, (command_id)command))
        assert_in_texts_of_command(option_get((option_id)id)->name, help, man);
  }
}

TEST(completions_hold_every_option) {
  for (int shell = 0; shell < 3; shell++) {
    SCOPED_MEMORY char *script = text_of(write_completions, (command_id)shell);
    for (int id = 0; id < OPTION_COUNT; id++) {
      char dashed[64];
      snprintf(dashed, sizeof dashed, shell == 2 ? " -l %s " : "--%s", option_get((option_id)id)->name);
      assert_non_null(strstr(script, dashed));
    }
  }
}

TEST(outputs_are_named) {
  static const struct {
    const char *image;
    hs_format format;
    const char *name;
  } cases[] = {
      {"photo.jpg", HS_FORMAT_NPZ, "photo.npz"},
      {"a.b/photo.tar.png", HS_FORMAT_CSV, "photo.tar.csv"},
      {"a.b/photo", HS_FORMAT_OPENMVG, "photo.feat"},
      {"dir/.png", HS_FORMAT_JSON, ".png.json"},
      {"dir/photo.jpg", HS_FORMAT_COLMAP, "photo.jpg.txt"},
      {"-", HS_FORMAT_LOWE, "stdin.key"},
      {"@scene:64x48:7", HS_FORMAT_BIN, "scene_64x48_7.hsf"},
      {"@scene", HS_FORMAT_OPENCV, "scene.yml"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    SCOPED_MEMORY char *name = output_name(cases[i].image, cases[i].format);
    assert_non_null(name);
    assert_string_equal(name, cases[i].name);
  }
}

TEST(duplicate_outputs_are_marked) {
  command_line line;
  output_plan plan;
  char message[CLI_MESSAGE_BYTES];
  assert_true(parse(&line, COMMAND_EXTRACT, "b.png a.jpg c/b.jpg a.png b.x -o no/such/folder"));
  assert_int_equal(output_plan_make(&plan, &line.set, message, sizeof message), CLI_DONE);
  static const bool duplicates[] = {false, false, true, true, true};
  assert_int_equal(plan.count, 5);
  for (int i = 0; i < plan.count; i++) assert_int_equal(plan.targets[i].is_duplicate, duplicates[i]);
  assert_string_equal(plan.targets[2].path, "no/such/folder/b.npz");
  output_plan_free(&plan);
}
