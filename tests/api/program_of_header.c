/*
 * A user's program, built with three headers and run on the current library.
 *
 * The headers are the current one, an earlier one with shorter option structs, and a later one with a field appended to
 * each (join_headers.cmake). Guard bytes follow every struct that the library fills and must not change.
 *
 * HARTSIFT_HEADER: the header. HARTSIFT_LATER: every option struct ends with the field `later`.
 */
#include HARTSIFT_HEADER
#ifdef HARTSIFT_EXPERT_HEADER
#  include HARTSIFT_EXPERT_HEADER
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 64, GUARD = 0xa5 };

#define GUARDED(type, name)                                                                                            \
  struct {                                                                                                             \
    type value;                                                                                                        \
    unsigned char guard[GUARD_BYTES];                                                                                  \
  } name;                                                                                                              \
  memset(&name, GUARD, sizeof name)

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                  \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

static int guard_stands(const unsigned char *guard) {
  for (int i = 0; i < GUARD_BYTES; i++)
    if (guard[i] != GUARD) return 0;
  return 1;
}

/* Checks that a struct initialised with its own size is filled, and that nothing after it is written. */
#define CHECK_OPTIONS(name)                                                                                            \
  CHECK(name.value.struct_size == sizeof name.value);                                                                  \
  CHECK(guard_stands(name.guard));                                                                                     \
  CHECK_LATER(name)
#ifdef HARTSIFT_LATER
#  define CHECK_LATER(name) CHECK(name.value.later == 0)
#else
#  define CHECK_LATER(name) (void)0
#endif

static void check_extraction(hs_context *context, const hs_image *scene, hs_features *features) {
  GUARDED(hs_statistics, statistics);
  CHECK(hs_statistics_init(&statistics.value) == HS_OK);
  CHECK(hs_extract(context, scene, NULL, features) == HS_OK);
  CHECK(features->count > 100 && features->image_width == scene->width);
  CHECK(features->origin.method_version == hs_method_version() && features->origin.profile == HS_PROFILE_COLMAP);
  CHECK(features->origin.norm == HS_NORM_ROOT);
  CHECK(hs_get_statistics(context, &statistics.value) == HS_OK);
  CHECK(statistics.value.frames == 1 && statistics.value.features == features->count);
  CHECK_OPTIONS(statistics);
  CHECK(hs_extract(context, NULL, NULL, features) == HS_ERR_ARGUMENT);
  CHECK(strstr(hs_last_error(context), "null") && !strchr(hs_last_error(context), ':'));
  CHECK(strncmp(hs_last_error_location(context), "HS_ERR_ARGUMENT at ", 19) == 0);
}

static void check_matching(hs_context *context, const hs_features *features) {
  GUARDED(hs_match_options, match);
  GUARDED(hs_verify_options, verify);
  GUARDED(hs_matches, matches);
  GUARDED(hs_geometry, geometry);
  char message[256] = "";
  CHECK(hs_match_options_init(&match.value) == HS_OK && match.value.ratio == 0.8 && match.value.mutual == 1);
  CHECK_OPTIONS(match);
  CHECK(hs_verify_options_init(&verify.value, HS_HOMOGRAPHY) == HS_OK && verify.value.max_iterations == 10000);
  CHECK_OPTIONS(verify);
  memset(&matches.value, 0, sizeof matches.value);
  CHECK(hs_match(context, features, features, &match.value, &matches.value) == HS_OK && guard_stands(matches.guard));
  CHECK(matches.value.count > 50);
  verify.value.message = message;
  verify.value.message_bytes = sizeof message;
  CHECK(hs_verify(features, features, matches.value.pairs, sizeof(hs_match_pair), matches.value.count, &verify.value,
                  NULL, &geometry.value) == HS_OK);
  CHECK(geometry.value.found == 1 && geometry.value.inlier_count == matches.value.count);
  CHECK(guard_stands(geometry.guard));
#ifdef HARTSIFT_LATER
  match.value.later = 1;
  CHECK(hs_match(context, features, features, &match.value, &matches.value) == HS_ERR_OPTION);
  CHECK(strstr(hs_last_error(context), "hs_match_options sets a field at offset") != NULL);
  verify.value.later = 1;
  CHECK(hs_verify(features, features, NULL, 0, 0, &verify.value, NULL, &geometry.value) == HS_ERR_OPTION);
  CHECK(strstr(message, "hs_verify_options sets a field at offset") != NULL);
#endif
  hs_matches_free(&matches.value);
}

static void check_files(const hs_features *features, const char *path) {
  GUARDED(hs_load_options, load);
  GUARDED(hs_file_options, file);
  GUARDED(hs_colmap_options, colmap);
  GUARDED(hs_image, image);
  GUARDED(hs_features, read);
  static const char pgm[] = "P5 2 2 255 abcd";
  hs_colmap_database *database = NULL;
  char message[256] = "";
  CHECK(hs_load_options_init(&load.value) == HS_OK);
  CHECK_OPTIONS(load);
  CHECK(hs_load_image_memory(pgm, sizeof pgm - 1, &load.value, &image.value) == HS_OK && guard_stands(image.guard));
  CHECK(image.value.width == 2 && image.value.memory);
  hs_image_free(&image.value);
  CHECK(hs_file_options_init(&file.value) == HS_OK);
  CHECK_OPTIONS(file);
  memset(&read.value, 0, sizeof read.value);
  CHECK(hs_save_features(path, features, &file.value) == HS_OK);
  CHECK(hs_load_features(path, &read.value, &file.value) == HS_OK && guard_stands(read.guard));
  CHECK(read.value.count == features->count && read.value.origin.method_version == hs_method_version());
  CHECK(read.value.origin.norm == features->origin.norm);
  hs_features_free(&read.value);
  CHECK(hs_colmap_options_init(&colmap.value) == HS_OK);
  CHECK_OPTIONS(colmap);
  colmap.value.read_only = 1;
  colmap.value.message = load.value.message = file.value.message = message;
  colmap.value.message_bytes = load.value.message_bytes = file.value.message_bytes = sizeof message;
  CHECK(hs_colmap_open(&database, "absent.db", &colmap.value) != HS_OK && strstr(message, "absent.db"));
#ifdef HARTSIFT_LATER
  load.value.later = file.value.later = colmap.value.later = 1;
  CHECK(hs_load_image_memory(pgm, sizeof pgm - 1, &load.value, &image.value) == HS_ERR_OPTION);
  CHECK(strstr(message, "hs_load_options sets a field at offset") != NULL);
  CHECK(hs_save_features(path, features, &file.value) == HS_ERR_OPTION);
  CHECK(strstr(message, "hs_file_options sets a field at offset") != NULL);
  CHECK(hs_load_features(path, &read.value, &file.value) == HS_ERR_OPTION);
  CHECK(hs_colmap_open(&database, "absent.db", &colmap.value) == HS_ERR_OPTION);
  CHECK(strstr(message, "hs_colmap_options sets a field at offset") != NULL);
#endif
}

#ifdef HARTSIFT_LATER
static hs_status read_nothing(void *user, size_t pair, uint32_t *inliers) {
  (void)user, (void)pair, (void)inliers;
  return HS_ERR_IO;
}
#endif

static void check_pairs_and_batch(void) {
  GUARDED(hs_pairs_options, pairs);
  GUARDED(hs_judge_options, judge);
  GUARDED(hs_batch_options, options);
  GUARDED(hs_batch_progress, progress);
  GUARDED(hs_batch_statistics, statistics);
  hs_batch *batch = NULL;
  char message[512] = "";
  CHECK(hs_pairs_options_init(&pairs.value) == HS_OK);
  CHECK_OPTIONS(pairs);
  CHECK(hs_judge_options_init(&judge.value) == HS_OK);
  CHECK_OPTIONS(judge);
  CHECK(hs_batch_options_init(&options.value) == HS_OK && options.value.readers == 0);
  CHECK_OPTIONS(options);
  options.value.readers = options.value.held = 1;
#ifdef HARTSIFT_LATER
  options.value.later = judge.value.later = 1;
  CHECK(hs_batch_open(&batch, &options.value, message, sizeof message) == HS_ERR_OPTION);
  CHECK(strstr(message, "hs_batch_options sets a field at offset") != NULL);
  judge.value.message = message;
  judge.value.message_bytes = sizeof message;
  CHECK(hs_judge_pairs(&(hs_pair_inliers){.read = read_nothing}, NULL, 0, &judge.value) == HS_ERR_OPTION);
  CHECK(strstr(message, "hs_judge_options sets a field at offset") != NULL);
  options.value.later = 0;
#endif
  CHECK(hs_batch_open(&batch, &options.value, message, sizeof message) == HS_OK);
  progress.value.struct_size = sizeof progress.value;
  CHECK(hs_batch_get_progress(batch, &progress.value) == HS_OK && progress.value.readers == 1);
  CHECK_OPTIONS(progress);
  statistics.value.struct_size = sizeof statistics.value;
  CHECK(hs_batch_get_statistics(batch, &statistics.value) == HS_OK && statistics.value.pixel_bytes == 0);
  CHECK_OPTIONS(statistics);
  hs_batch_destroy(batch);
}

static hs_context *check_creation(void) {
  GUARDED(hs_options, options);
  GUARDED(hs_expert_options, expert);
  hs_context *context = NULL;
  char message[512] = "";
  uint64_t host = 0, device = 0;
  CHECK(hs_options_init(&options.value, HS_PROFILE_COLMAP) == HS_OK && options.value.max_features == 8192);
  CHECK_OPTIONS(options);
  CHECK(hs_expert_options_init(&expert.value, HS_PROFILE_COLMAP) == HS_OK);
  CHECK(expert.value.refine_rule == HS_RULE_VLFEAT);
  CHECK_OPTIONS(expert);
  options.value.expert = &expert.value;
  options.value.threads = 1;
  options.value.device = HS_DEVICE_CPU;
#ifdef HARTSIFT_LATER
  options.value.later = 1;
  CHECK(hs_create_explained(&context, &options.value, message, sizeof message) == HS_ERR_OPTION);
  CHECK(strstr(message, "hs_options sets a field at offset") != NULL);
  options.value.later = 0;
  expert.value.later = 1;
  CHECK(hs_create_explained(&context, &options.value, message, sizeof message) == HS_ERR_OPTION);
  CHECK(strstr(message, "hs_expert_options sets a field at offset") != NULL);
  expert.value.later = 0;
#endif
  CHECK(hs_workspace_query(&options.value, 320, 240, &host, &device) == HS_OK && host > 0);
  if (hs_create_explained(&context, &options.value, message, sizeof message) != HS_OK) {
    fprintf(stderr, "%s\n", message);
    exit(1);
  }
  return context;
}

int main(int argc, char **argv) {
  GUARDED(hs_image, scene);
  GUARDED(hs_features, features);
  CHECK(argc == 2);
  /* the interface version is equal; the patch version may differ */
  CHECK(hs_version_number() / 100 == HS_VERSION_NUMBER / 100);
  hs_context *context = check_creation();
  CHECK(hs_render_scene(320, 240, 3, NULL, NULL, &scene.value) == HS_OK && guard_stands(scene.guard));
  memset(&features.value, 0, sizeof features.value);
  check_extraction(context, &scene.value, &features.value);
  CHECK(guard_stands(features.guard));
  check_matching(context, &features.value);
  check_files(&features.value, argv[1]);
  check_pairs_and_batch();
  hs_features_free(&features.value);
  hs_image_free(&scene.value);
  hs_destroy(context);
  return 0;
}
