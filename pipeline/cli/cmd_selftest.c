/*
 * hartsift selftest: compares every implementation that this machine can run with the plain C reference, byte for byte,
 * on built-in scenes; and the reference with the digests stored for this method version, so that all machines agree.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/formats/common/content_digest.h"

/* Digests of the features of the scenes, as every machine must find them. Made by: hartsift selftest --print-digests */
typedef struct selftest_digest {
  const char *scene; /* null at the end of the table */
  uint64_t digest;
} selftest_digest;

/* HS_METHOD_VERSION of the table; the table of another version counts as empty. */
static const int selftest_digests_method_version = 2;

static const selftest_digest selftest_digests[] = {
    {"lowe 320x240", UINT64_C(0x8D0F1297CDE56531)},
    {"lowe 157x123 f32", UINT64_C(0x4B05E57D36366B99)},
    {"lowe 61x201 root", UINT64_C(0x8389FE42E026E0FD)},
    {"lowe 251x143 first octave 0", UINT64_C(0x500FCBC994BEEED6)},
    {"lowe 200x150 best 40", UINT64_C(0xD007D6241B9E9187)},
    {"lowe 111x145 5 scales", UINT64_C(0xCD94AB3CEFD07AE8)},
    {"lowe 120x90 upright", UINT64_C(0x0A144905C77AEC2D)},
    {"lowe 31x33", UINT64_C(0x82B4FB20F6CDE272)},
    {"lowe 400x13", UINT64_C(0x55B4DD40A67DB51F)},
    {"lowe 1x1", UINT64_C(0x9C0DD6455B72EBE5)},
    {"opencv 200x150", UINT64_C(0x9C80817EAAFB1BAB)},
    {"opencv 131x97 f32", UINT64_C(0x36FF8BCDCD0CB7A2)},
    {"vlfeat 200x150", UINT64_C(0x9848F329572BBA09)},
    {"vlfeat 131x97 f32", UINT64_C(0x733537833BA8FD67)},
    {"colmap 200x150", UINT64_C(0x952D3799ED8FAB97)},
    {"colmap 131x97 best 30", UINT64_C(0x51360CA7D058DCEC)},
    {"lowe 190x140 root dsp", UINT64_C(0x2072E2FD98AF81C6)},
    {"colmap 140x131 f32 dsp", UINT64_C(0xC32898CD633FB8AA)},
    {NULL, 0},
};

#define SELFTEST_CPU_VARIABLE "HARTSIFT_CPU"

/* One picture and options; 0 leaves an option at its profile's default. */
typedef struct selftest_scene {
  const char *name;
  hs_profile profile;
  int32_t width, height;
  uint32_t seed;
  hs_descriptor_type descriptor;
  hs_norm norm;
  int32_t max_features, scales, upright;
  bool not_doubled; /* first octave 0 */
  int32_t dsp;
} selftest_scene;

static const selftest_scene selftest_scenes[] = {
    {"lowe 320x240", HS_PROFILE_LOWE, 320, 240, .seed = 1},
    {"lowe 157x123 f32", HS_PROFILE_LOWE, 157, 123, .seed = 2, .descriptor = HS_DESCRIPTOR_F32},
    {"lowe 61x201 root", HS_PROFILE_LOWE, 61, 201, .seed = 3, .norm = HS_NORM_ROOT},
    {"lowe 251x143 first octave 0", HS_PROFILE_LOWE, 251, 143, .seed = 4, .not_doubled = true},
    {"lowe 200x150 best 40", HS_PROFILE_LOWE, 200, 150, .seed = 5, .max_features = 40},
    {"lowe 111x145 5 scales", HS_PROFILE_LOWE, 111, 145, .seed = 6, .scales = 5},
    {"lowe 120x90 upright", HS_PROFILE_LOWE, 120, 90, .seed = 7, .upright = 1},
    {"lowe 31x33", HS_PROFILE_LOWE, 31, 33, .seed = 8},
    {"lowe 400x13", HS_PROFILE_LOWE, 400, 13, .seed = 9},
    {"lowe 1x1", HS_PROFILE_LOWE, 1, 1, .seed = 10},
    {"opencv 200x150", HS_PROFILE_OPENCV, 200, 150, .seed = 11},
    {"opencv 131x97 f32", HS_PROFILE_OPENCV, 131, 97, .seed = 12, .descriptor = HS_DESCRIPTOR_F32},
    {"vlfeat 200x150", HS_PROFILE_VLFEAT, 200, 150, .seed = 13},
    {"vlfeat 131x97 f32", HS_PROFILE_VLFEAT, 131, 97, .seed = 14, .descriptor = HS_DESCRIPTOR_F32},
    {"colmap 200x150", HS_PROFILE_COLMAP, 200, 150, .seed = 15},
    {"colmap 131x97 best 30", HS_PROFILE_COLMAP, 131, 97, .seed = 16, .max_features = 30},
    {"lowe 190x140 root dsp", HS_PROFILE_LOWE, 190, 140, .seed = 17, .norm = HS_NORM_ROOT, .dsp = 1},
    {"colmap 140x131 f32 dsp", HS_PROFILE_COLMAP, 140, 131, .seed = 18, .descriptor = HS_DESCRIPTOR_F32, .dsp = 1},
};
enum { SELFTEST_SCENES = sizeof selftest_scenes / sizeof selftest_scenes[0] };

/* One implementation. */
typedef struct selftest_backend {
  const char *name;
  const char *cpu;     /* value of HARTSIFT_CPU; null: the user's */
  const char *variant; /* hs_expert_options.variant */
  hs_device device;
  int32_t threads;
} selftest_backend;

static const selftest_backend selftest_reference = {"plain C, 1 thread", "ref", NULL, HS_DEVICE_CPU, 1};

static const selftest_backend selftest_backends[] = {
    {"plain C, 3 threads", "ref", NULL, HS_DEVICE_CPU, 3}, {"default, 1 thread", NULL, NULL, HS_DEVICE_CPU, 1},
    {"default, 2 threads", NULL, NULL, HS_DEVICE_CPU, 2},  {"default, 3 threads", NULL, NULL, HS_DEVICE_CPU, 3},
    {"default, 7 threads", NULL, NULL, HS_DEVICE_CPU, 7},  {"sse2, 2 threads", "sse2", NULL, HS_DEVICE_CPU, 2},
    {"avx2, 2 threads", "avx2", NULL, HS_DEVICE_CPU, 2},   {"avx512, 2 threads", "avx512", NULL, HS_DEVICE_CPU, 2},
    {"neon, 2 threads", "neon", NULL, HS_DEVICE_CPU, 2},   {"cuda", NULL, NULL, HS_DEVICE_CUDA, 2},
};
enum { SELFTEST_BACKENDS = sizeof selftest_backends / sizeof selftest_backends[0] };

typedef struct selftest_state {
  const option_set *set;
  const char *user_cpu; /* HARTSIFT_CPU at the start, or null */
  bool usable[SELFTEST_BACKENDS];
  char *unusable_reasons[SELFTEST_BACKENDS]; /* null: usable */
  int failed_scenes[SELFTEST_BACKENDS];
  int32_t decodes; /* hs_decodes_jpeg of the first GPU */
  char decoder_reason[CLI_MESSAGE_BYTES];
  hs_features expected; /* features of the reference for the current scene */
  hs_features found;
} selftest_state;

static hs_status create_backend(const selftest_state *state, const selftest_backend *backend, hs_options *options,
                                hs_context **context, char *message, size_t message_bytes) {
  const char *cpu = backend->cpu ? backend->cpu : state->user_cpu;
  if (cpu)
    setenv(SELFTEST_CPU_VARIABLE, cpu, 1);
  else
    unsetenv(SELFTEST_CPU_VARIABLE);
  options->device = backend->device;
  options->threads = backend->threads;
  hs_expert_options expert;
  hs_expert_options_init(&expert, options->profile);
  expert.variant = backend->variant;
  options->expert = &expert;
  message[0] = '\0';
  const hs_status status = hs_create_explained(context, options, message, message_bytes);
  options->expert = NULL; /* already copied */
  if (status != HS_OK && message[0] == '\0') snprintf(message, message_bytes, "%s", hs_status_string(status));
  return status;
}

static void scene_options(const selftest_scene *scene, hs_options *options) {
  hs_options_init(options, scene->profile);
  options->descriptor = scene->descriptor;
  options->upright = scene->upright;
  options->dsp = scene->dsp;
  options->norm = scene->norm != HS_NORM_L2 ? scene->norm : options->norm;
  options->max_features = scene->max_features != 0 ? scene->max_features : options->max_features;
  options->scales = scene->scales != 0 ? scene->scales : options->scales;
  options->first_octave = scene->not_doubled ? 0 : options->first_octave;
}

static hs_status extract_scene(const selftest_state *state, const selftest_backend *backend,
                               const selftest_scene *scene, const hs_image *image, hs_features *features, char *message,
                               size_t message_bytes) {
  hs_options options;
  hs_context *context = NULL;
  scene_options(scene, &options);
  hs_status status = create_backend(state, backend, &options, &context, message, message_bytes);
  if (status == HS_OK) {
    status = hs_extract(context, image, NULL, features);
    if (status != HS_OK) cli_explain(context, status, message, message_bytes);
  }
  hs_destroy(context);
  return status;
}

/* Describes the first difference of two results; false if they are equal. */
static bool describe_difference(const hs_features *expected, const hs_features *found, char *text, size_t bytes) {
  if (expected->count != found->count || expected->descriptor_type != found->descriptor_type) {
    snprintf(text, bytes, "%zu features, expected %zu", found->count, expected->count);
    return true;
  }
  const size_t descriptor_bytes =
      HS_DESCRIPTOR_LENGTH * (found->descriptor_type == HS_DESCRIPTOR_F32 ? sizeof(float) : 1);
  for (size_t i = 0; i < expected->count; i++) {
    if (memcmp(&expected->keypoints[i], &found->keypoints[i], sizeof expected->keypoints[i]) != 0) {
      snprintf(text, bytes, "keypoint %zu of %zu differs", i + 1, expected->count);
      return true;
    }
    if (memcmp((const uint8_t *)expected->descriptors + i * descriptor_bytes,
               (const uint8_t *)found->descriptors + i * descriptor_bytes, descriptor_bytes) != 0) {
      snprintf(text, bytes, "descriptor %zu of %zu differs", i + 1, expected->count);
      return true;
    }
  }
  return false;
}

static bool prints_lines(const selftest_state *state) {
  return !state->set->values[OPTION_QUIET].given && !state->set->values[OPTION_JSON].given;
}

/* Detects the usable backends, and why others are not. A backend equal to an earlier one in every stage and in its
   threads is skipped. */
static void probe_backends(selftest_state *state) {
  char *reports[SELFTEST_BACKENDS] = {NULL};
  char message[CLI_MESSAGE_BYTES];
  hs_options options;
  hs_options_init(&options, HS_PROFILE_LOWE);
  for (int i = 0; i < SELFTEST_BACKENDS; i++) {
    const selftest_backend *backend = &selftest_backends[i];
    hs_context *context = NULL;
    const hs_status status = create_backend(state, backend, &options, &context, message, sizeof message);
    /* Other failures do not depend on the machine: they appear again with each scene. */
    state->usable[i] = status != HS_ERR_OPTION && status != HS_ERR_NO_DEVICE && status != HS_ERR_UNSUPPORTED;
    if (status == HS_OK) {
      reports[i] = strdup(hs_backend_report(context));
      if (backend->device == HS_DEVICE_CUDA)
        state->decodes = hs_decodes_jpeg(context, state->decoder_reason, sizeof state->decoder_reason);
      for (int j = 0; j < i && state->usable[i] && reports[i] != NULL; j++) {
        const bool is_same = reports[j] != NULL && strcmp(reports[i], reports[j]) == 0 &&
                             backend->threads == selftest_backends[j].threads;
        state->usable[i] = !is_same;
        snprintf(message, sizeof message, "the same as %s", selftest_backends[j].name);
      }
    }
    hs_destroy(context);
    if (!state->usable[i]) state->unusable_reasons[i] = strdup(message);
    if (!state->usable[i] && prints_lines(state)) printf("skipped   %s: %s\n", backend->name, message);
  }
  for (int i = 0; i < SELFTEST_BACKENDS; i++) free(reports[i]);
}

/* Number of digests stored for this method version; *stored: the scene's, or null. */
static int find_digest(const char *scene, const selftest_digest **stored) {
  int count = 0;
  *stored = NULL;
  if (selftest_digests_method_version != HS_METHOD_VERSION) return 0;
  for (; selftest_digests[count].scene; count++)
    if (strcmp(selftest_digests[count].scene, scene) == 0) *stored = &selftest_digests[count];
  return count;
}

static bool check_digest(const selftest_scene *scene, const hs_features *features) {
  const selftest_digest *stored = NULL;
  const uint64_t digest = digest_features(features);
  const int count = find_digest(scene->name, &stored);
  if (!stored) {
    if (count > 0) cli_error(COMMAND_SELFTEST, "%s: no stored digest", scene->name);
    return count == 0;
  }
  if (stored->digest != digest)
    cli_error(COMMAND_SELFTEST, "%s: digest %016" PRIx64 ", stored %016" PRIx64, scene->name, digest, stored->digest);
  return stored->digest == digest;
}

static void compare_backends(selftest_state *state, const selftest_scene *scene, const hs_image *image) {
  char message[CLI_MESSAGE_BYTES];
  for (int i = 0; i < SELFTEST_BACKENDS; i++) {
    if (!state->usable[i]) continue;
    const hs_status status =
        extract_scene(state, &selftest_backends[i], scene, image, &state->found, message, sizeof message);
    if (status != HS_OK || describe_difference(&state->expected, &state->found, message, sizeof message)) {
      cli_error(COMMAND_SELFTEST, "%s: %s: %s", selftest_backends[i].name, scene->name, message);
      state->failed_scenes[i]++;
    }
  }
}

/* Runs a scene; false if the reference fails or differs from the stored digest. */
static bool run_scene(selftest_state *state, const selftest_scene *scene) {
  char message[CLI_MESSAGE_BYTES] = "";
  hs_image image = {0};
  bool passed = false;
  hs_status status = hs_render_scene(scene->width, scene->height, scene->seed, NULL, NULL, &image);
  if (status != HS_OK)
    snprintf(message, sizeof message, "%s", hs_status_string(status));
  else
    status = extract_scene(state, &selftest_reference, scene, &image, &state->expected, message, sizeof message);
  if (status != HS_OK) {
    cli_error(COMMAND_SELFTEST, "%s: %s: %s", selftest_reference.name, scene->name, message);
  } else if (state->set->values[OPTION_PRINT_DIGESTS].given) {
    printf("    {\"%s\", UINT64_C(0x%016" PRIX64 ")},\n", scene->name, digest_features(&state->expected));
    passed = true;
  } else {
    passed = check_digest(scene, &state->expected);
    compare_backends(state, scene, &image);
  }
  hs_image_free(&image);
  return passed;
}

static int run_scenes(selftest_state *state) {
  int failed = 0;
  for (int i = 0; i < SELFTEST_SCENES; i++) failed += run_scene(state, &selftest_scenes[i]) ? 0 : 1;
  return failed;
}

static cli_exit print_digests(selftest_state *state) {
  printf("static const int selftest_digests_method_version = %d;\n\n"
         "static const selftest_digest selftest_digests[] = {\n",
         HS_METHOD_VERSION);
  const int failed = run_scenes(state);
  printf("    {NULL, 0},\n};\n");
  return failed == 0 ? CLI_DONE : CLI_FAILED;
}

/* Prints whether the GPU decodes JPEGs and passed the comparison. Different pixels are no failure: libjpeg decodes
   then. */
static void print_decoder(const selftest_state *state) {
  static const char *const verdicts[] = {"not used", "skipped", "passed"};
  printf("%-10sJPEG on the GPU: %s%s\n", verdicts[state->decodes + 1], state->decoder_reason,
         state->decodes > 0 ? ", the pixels of synthetic pictures equal libjpeg's, used" : "");
}

static void print_json(const selftest_state *state, int digests, int reference_failures, bool agree) {
  printf("{\"version\": \"%s\", \"method_version\": %d, \"digests\": %d, \"agree\": %s, \"backends\": [\n"
         "  {\"name\": \"%s\", \"skipped\": null, \"scenes\": %d, \"failed\": %d}",
         hs_version_string(), HS_METHOD_VERSION, digests, agree ? "true" : "false", selftest_reference.name,
         SELFTEST_SCENES, reference_failures);
  for (int i = 0; i < SELFTEST_BACKENDS; i++) {
    printf(",\n  {\"name\": \"%s\", \"skipped\": ", selftest_backends[i].name);
    if (state->unusable_reasons[i])
      cli_write_json_string(stdout, state->unusable_reasons[i]);
    else
      printf("null");
    printf(", \"scenes\": %d, \"failed\": %d}", state->usable[i] ? SELFTEST_SCENES : 0, state->failed_scenes[i]);
  }
  static const char *const states[] = {"different", "absent", "used"};
  printf("\n], \"jpeg_decoder\": {\"state\": \"%s\", \"reason\": ", states[state->decodes + 1]);
  cli_write_json_string(stdout, state->decoder_reason);
  printf("}}\n");
}

static cli_exit compare_all(selftest_state *state) {
  const bool prints = prints_lines(state);
  const selftest_digest *unused;
  const int digests = find_digest("", &unused);
  probe_backends(state);
  const int reference_failures = run_scenes(state);
  int failures = reference_failures;
  if (prints) {
    const char *verdict = reference_failures > 0 ? "FAILED" : digests > 0 ? "passed" : "no digest";
    printf("%-10s%s: %d of %d scenes against %d digests stored for method version %d\n", verdict,
           selftest_reference.name, SELFTEST_SCENES - reference_failures, SELFTEST_SCENES, digests, HS_METHOD_VERSION);
  }
  for (int i = 0; i < SELFTEST_BACKENDS; i++) {
    if (state->usable[i]) failures += state->failed_scenes[i];
    if (state->usable[i] && prints) {
      printf("%-10s%s: %d of %d scenes equal to the reference\n", state->failed_scenes[i] > 0 ? "FAILED" : "passed",
             selftest_backends[i].name, SELFTEST_SCENES - state->failed_scenes[i], SELFTEST_SCENES);
    }
  }
  if (prints) print_decoder(state);
  if (prints)
    printf("%s\n", failures > 0 ? "selftest failed" : "all agree");
  else if (state->set->values[OPTION_JSON].given)
    print_json(state, digests, reference_failures, failures == 0);
  return failures > 0 ? CLI_FAILED : CLI_DONE;
}

cli_exit cmd_selftest(const option_set *set) {
  selftest_state state = {.set = set, .decoder_reason = "no GPU"};
  const char *user_cpu = getenv(SELFTEST_CPU_VARIABLE);
  /* Copied, because setenv may release getenv's result. */
  char *copy = user_cpu ? strdup(user_cpu) : NULL;
  state.user_cpu = copy;
  const cli_exit result = set->values[OPTION_PRINT_DIGESTS].given ? print_digests(&state) : compare_all(&state);
  hs_features_free(&state.expected);
  hs_features_free(&state.found);
  for (int i = 0; i < SELFTEST_BACKENDS; i++) free(state.unusable_reasons[i]);
  free(copy);
  return result;
}
