/*
 * hartsift info: reports what this build and this machine can do, as text or JSON.
 */
#include <inttypes.h>
#include <string.h>

#include "cpu/dispatch.h"
#include "cpu/schedule/threads.h"
#include "pipeline/base/memory.h"
#include "pipeline/cli/common/cli_common.h"

typedef struct info_codec {
  const char *name, *what;
  bool is_there;
  const char *needed; /* library that a build needs for it, with Debian's package; null: always available */
} info_codec;

static const info_codec info_codecs[] = {
    {"png", "PNG images", HARTSIFT_HAVE_PNG, "libpng (libpng-dev)"},
    {"jpeg", "JPEG images", HARTSIFT_HAVE_JPEG, "libjpeg-turbo (libjpeg-dev)"},
    {"tiff", "TIFF images", HARTSIFT_HAVE_TIFF, "libtiff 4.5 or later (libtiff-dev)"},
    {"webp", "WebP images", HARTSIFT_HAVE_WEBP, "libwebp (libwebp-dev)"},
    {"bmp", "BMP images", true, NULL},
    {"pnm", "PGM, PPM and PAM images", true, NULL},
    {"zlib", "compressed npz files", HARTSIFT_HAVE_ZLIB, "zlib (zlib1g-dev)"},
    {"sqlite", "COLMAP databases", HARTSIFT_HAVE_SQLITE, "SQLite (libsqlite3-dev)"},
    {"cuda", "NVIDIA GPUs", HARTSIFT_HAVE_CUDA, "the CUDA toolkit (nvcc)"},
};
enum { INFO_CODECS = sizeof info_codecs / sizeof info_codecs[0] };

/* Facts about this machine and build. */
typedef struct info_facts {
  const char *version;
  const char *cpu_level;
  int threads;         /* threads available to this process */
  hs_context *context; /* context with the given options; null: context_message has the reason */
  hs_status context_status;
  char context_message[CLI_MESSAGE_BYTES];
  bool gpu_is_usable;
  char gpu_message[CLI_MESSAGE_BYTES];
  machine_memory memory;
  uint64_t file_bytes; /* memory limit for one file, bytes */
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
  facts->memory = machine_memory_now();
  facts->file_bytes = machine_memory_limit(0);
  cli_fill_options(set, &options, &expert);
  cli_shorten_gpu_start(&options);
  facts->context_status = try_create(&facts->context, &options, facts->context_message, sizeof facts->context_message);
  /* makes the comparison, so that the report names the decoder */
  if (facts->context) (void)hs_decodes_jpeg(facts->context, NULL, 0);
  /* requests a GPU to get the reason why none is usable */
  options.device = HS_DEVICE_CUDA;
  options.expert = NULL;
  facts->gpu_is_usable = try_create(&gpu_context, &options, facts->gpu_message, sizeof facts->gpu_message) == HS_OK;
  hs_destroy(gpu_context);
}

/* Calls `put` with a hint for each missing feature. */
static void for_each_advice(const info_facts *facts, void (*put)(int number, const char *text)) {
  char text[CLI_MESSAGE_BYTES + 128];
  int count = 0;
  char version[64];
  snprintf(version, sizeof version, "%d.%d.%d", HS_VERSION_MAJOR, HS_VERSION_MINOR, HS_VERSION_PATCH);
  if (strncmp(facts->version, version, strlen(version)) != 0) {
    snprintf(
        text, sizeof text,
        "the command has version %s, but the library that it loads has %s: remove one of them, or set LD_LIBRARY_PATH to the folder of the command's library",
        version, facts->version);
    put(count++, text);
  }
  for (int i = 0; i < INFO_CODECS; i++) {
    if (info_codecs[i].is_there || !info_codecs[i].needed) continue;
    snprintf(text, sizeof text, "%s: build hartsift where there is %s, or install a package of it", info_codecs[i].what,
             info_codecs[i].needed);
    put(count++, text);
  }
  if (HARTSIFT_HAVE_CUDA && !facts->gpu_is_usable) {
    snprintf(text, sizeof text, "GPU: %s; everything else works without one", facts->gpu_message);
    put(count++, text);
  }
}

static void put_line(int number, const char *text) {
  printf("%s  - %s\n", number == 0 ? "\nwhat can be done about what is missing:\n" : "", text);
}

static void put_json(int number, const char *text) {
  printf("%s", number == 0 ? "" : ", ");
  cli_write_json_string(stdout, text);
}

static void print_memory(const info_facts *facts) {
  const double mebibytes = 1 << 20;
  printf("  %-28s%.0f MiB, of %s\n", "memory", (double)facts->memory.bytes / mebibytes, facts->memory.of);
  printf("  %-28s%.0f MiB at most; --max-memory sets another limit\n", "memory of a file, to read",
         (double)facts->file_bytes / mebibytes);
}

static void print_text(const info_facts *facts) {
  printf("hartsift %s\n\nthis build:\n", facts->version);
  for (int i = 0; i < INFO_CODECS; i++)
    printf("  %-28s%s\n", info_codecs[i].what, info_codecs[i].is_there ? "yes" : "no");
  printf("\nthis machine:\n  %-28s%s\n  %-28s%d\n", "CPU level", facts->cpu_level, "CPU threads", facts->threads);
  print_memory(facts);
  printf("  %-28s%s%s\n", "GPU", facts->gpu_is_usable ? "usable" : "not used: ", facts->gpu_message);
  for_each_advice(facts, put_line);
  if (!facts->context) return;
  printf("\nchosen for each stage:\n");
  for (const char *line = hs_backend_report(facts->context); *line != '\0';) {
    const size_t length = strcspn(line, "\n");
    printf("  %.*s\n", (int)length, line);
    line += length + (line[length] == '\n');
  }
}

/* Prints the report's lines "stage: variant" as members of a JSON object. */
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
  printf("{\"version\": \"%d.%d.%d\", \"method_version\": %d, \"method_version_affine\": %d, \"build\": {",
         HS_VERSION_MAJOR, HS_VERSION_MINOR, HS_VERSION_PATCH, HS_METHOD_VERSION, HS_METHOD_VERSION_AFFINE);
  for (int i = 0; i < INFO_CODECS; i++)
    printf("%s\"%s\": %s", i > 0 ? ", " : "", info_codecs[i].name, info_codecs[i].is_there ? "true" : "false");
  printf("}, \"cpu\": {\"level\": ");
  cli_write_json_string(stdout, facts->cpu_level);
  printf(", \"threads\": %d}, \"gpu\": {\"usable\": %s, \"reason\": ", facts->threads,
         facts->gpu_is_usable ? "true" : "false");
  cli_write_json_string(stdout, facts->gpu_is_usable ? NULL : facts->gpu_message);
  printf("}, \"memory\": {\"bytes\": %" PRIu64 ", \"of\": ", facts->memory.bytes);
  cli_write_json_string(stdout, facts->memory.of);
  printf(", \"file_bytes\": %" PRIu64 "}, \"advice\": [", facts->file_bytes);
  for_each_advice(facts, put_json);
  printf("], \"stages\": {");
  if (facts->context) print_json_report(hs_backend_report(facts->context));
  printf("}}\n");
}

cli_exit cmd_info(const option_set *set) {
  info_facts facts;
  gather(set, &facts);
  if (set->values[OPTION_JSON].is_set)
    print_json(&facts);
  else
    print_text(&facts);
  if (!facts.context) cli_error(COMMAND_INFO, "%s", facts.context_message);
  hs_destroy(facts.context);
  return cli_exit_of_create(facts.context_status);
}
