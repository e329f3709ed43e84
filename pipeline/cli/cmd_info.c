/*
 * hartsift info: what this build and this machine can do, as text or JSON.
 */
#include <string.h>

#include "cpu/dispatch.h"
#include "cpu/usable_threads.h"
#include "pipeline/cli/common/cli_common.h"

typedef struct info_codec {
  const char *name, *what;
  bool is_there;
} info_codec;

static const info_codec info_codecs[] = {
    {"png", "PNG images", HARTSIFT_HAVE_PNG},
    {"jpeg", "JPEG images", HARTSIFT_HAVE_JPEG},
    {"pnm", "PGM, PPM and PAM images", true},
    {"zlib", "compressed npz files", HARTSIFT_HAVE_ZLIB},
    {"sqlite", "COLMAP databases", HARTSIFT_HAVE_SQLITE},
    {"cuda", "NVIDIA GPUs", HARTSIFT_HAVE_CUDA},
};
enum { INFO_CODECS = sizeof info_codecs / sizeof info_codecs[0] };

/* The facts of one run of the command. */
typedef struct info_facts {
  const char *version;
  const char *cpu_level;
  int threads;         /* that the CPU offers to this process */
  hs_context *context; /* with the options given; null: see context_message */
  hs_status context_status;
  char context_message[CLI_MESSAGE_BYTES];
  bool gpu_is_usable;
  char gpu_message[CLI_MESSAGE_BYTES];
} info_facts;

static hs_status try_create(hs_context **context, const hs_options *options, char *message, size_t message_bytes) {
  const hs_status status = hs_create_explained(context, options, message, message_bytes);
  if (status != HS_OK && message[0] == '\0') snprintf(message, message_bytes, "%s", hs_status_string(status));
  return status;
}

static void gather(const option_set *set, info_facts *facts) {
  hs_options options;
  hs_expert_options expert;
  hs_context *gpu_context = NULL;
  memset(facts, 0, sizeof *facts);
  facts->version = hs_version_string();
  facts->cpu_level = cpu_level_name();
  facts->threads = cpu_usable_threads();
  cli_fill_options(set, &options, &expert);
  facts->context_status = try_create(&facts->context, &options, facts->context_message, sizeof facts->context_message);
  /* The reason against a GPU comes from asking for one. */
  options.device = HS_DEVICE_CUDA;
  options.expert = NULL;
  facts->gpu_is_usable = try_create(&gpu_context, &options, facts->gpu_message, sizeof facts->gpu_message) == HS_OK;
  hs_destroy(gpu_context);
}

static void print_text(const info_facts *facts) {
  printf("hartsift %s\n\nthis build:\n", facts->version);
  for (int i = 0; i < INFO_CODECS; i++)
    printf("  %-28s%s\n", info_codecs[i].what, info_codecs[i].is_there ? "yes" : "no");
  printf("\nthis machine:\n  %-28s%s\n  %-28s%d\n", "CPU level", facts->cpu_level, "CPU threads", facts->threads);
  printf("  %-28s%s%s\n", "GPU", facts->gpu_is_usable ? "usable" : "not used: ", facts->gpu_message);
  if (!facts->context) return;
  printf("\nchosen for each stage:\n");
  for (const char *line = hs_backend_report(facts->context); *line != '\0';) {
    const size_t length = strcspn(line, "\n");
    printf("  %.*s\n", (int)length, line);
    line += length + (line[length] == '\n');
  }
}

/* The report's lines "stage: variant" as members of an object. */
static void print_json_report(const char *report) {
  bool first = true;
  while (*report != '\0') {
    const size_t length = strcspn(report, "\n");
    const size_t name_length = strcspn(report, ":\n");
    char name[128], variant[512];
    if (name_length < length) {
      const size_t skip = name_length + 1 + strspn(report + name_length + 1, " ");
      snprintf(name, sizeof name, "%.*s", (int)name_length, report);
      snprintf(variant, sizeof variant, "%.*s", skip < length ? (int)(length - skip) : 0, report + skip);
      printf("%s", first ? "" : ", ");
      cli_write_json_string(stdout, name);
      printf(": ");
      cli_write_json_string(stdout, variant);
      first = false;
    }
    report += length + (report[length] == '\n');
  }
}

static void print_json(const info_facts *facts) {
  printf("{\"version\": \"%d.%d.%d\", \"method_version\": %d, \"build\": {", HS_VERSION_MAJOR, HS_VERSION_MINOR,
         HS_VERSION_PATCH, HS_METHOD_VERSION);
  for (int i = 0; i < INFO_CODECS; i++)
    printf("%s\"%s\": %s", i > 0 ? ", " : "", info_codecs[i].name, info_codecs[i].is_there ? "true" : "false");
  printf("}, \"cpu\": {\"level\": ");
  cli_write_json_string(stdout, facts->cpu_level);
  printf(", \"threads\": %d}, \"gpu\": {\"usable\": %s, \"reason\": ", facts->threads,
         facts->gpu_is_usable ? "true" : "false");
  cli_write_json_string(stdout, facts->gpu_is_usable ? NULL : facts->gpu_message);
  printf("}, \"stages\": {");
  if (facts->context) print_json_report(hs_backend_report(facts->context));
  printf("}}\n");
}

cli_exit cmd_info(const option_set *set) {
  info_facts facts;
  gather(set, &facts);
  if (set->values[OPTION_JSON].given)
    print_json(&facts);
  else
    print_text(&facts);
  if (!facts.context) cli_error(COMMAND_INFO, "%s", facts.context_message);
  hs_destroy(facts.context);
  return cli_exit_of_create(facts.context_status);
}
