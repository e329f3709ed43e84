/*
 * Pairs by places and looks; see pair_choice.h.
 */
#include "pipeline/cli/pairs/pair_choice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/formats/common/number_text.h"

/* The vocabulary is trained on so many descriptors, of so many images spread over the collection. */
enum { SAMPLE_DESCRIPTORS = 262144, SAMPLE_IMAGES = 2048, BLENDED_NEIGHBORS = 3 };

/* ------------------------------------------------------------------ forms */

static cli_exit refuse(const char *text, const char *expected) {
  cli_error(COMMAND_MATCH, "--pairs '%s': expected %s (a file of that name: ./%s)", text, expected, text);
  return CLI_USAGE;
}

/* 1 or more, from `length` characters. */
static bool parse_count(const char *text, size_t length, uint32_t *count) {
  int64_t value;
  if (!number_to_int(text, length, &value) || value < 1 || value > UINT32_MAX) return false;
  *count = (uint32_t)value;
  return true;
}

static bool parse_sequential(const char *rest, pair_choice *choice) {
  const size_t length = strcspn(rest, ",");
  choice->quadratic = rest[length] == ',';
  return parse_count(rest, length, &choice->neighbors) &&
         (!choice->quadratic || strcmp(rest + length + 1, "quadratic") == 0);
}

static bool parse_spatial(const char *rest, pair_choice *choice) {
  const size_t length = strcspn(rest, ",");
  if (!number_to_double(rest, length, &choice->metres) || !(choice->metres >= 0.0)) return false;
  return rest[length] == '\0' || parse_count(rest + length + 1, strlen(rest + length + 1), &choice->neighbors);
}

cli_exit pair_choice_parse(const char *text, pair_choice *choice) {
  static const char sequential[] = "sequential:", spatial[] = "spatial:", retrieval[] = "retrieval:";
  *choice = (pair_choice){.kind = PAIR_CHOICE_FILE};
  if (strcmp(text, "all") == 0) choice->kind = PAIR_CHOICE_ALL;
  if (strncmp(text, sequential, sizeof sequential - 1) == 0) {
    choice->kind = PAIR_CHOICE_SEQUENTIAL;
    if (!parse_sequential(text + sizeof sequential - 1, choice))
      return refuse(text, "sequential:N or sequential:N,quadratic, N 1 or more");
  } else if (strncmp(text, spatial, sizeof spatial - 1) == 0) {
    choice->kind = PAIR_CHOICE_SPATIAL;
    if (!parse_spatial(text + sizeof spatial - 1, choice))
      return refuse(text, "spatial:METRES or spatial:METRES,N, METRES 0 or more, N 1 or more");
  } else if (strncmp(text, retrieval, sizeof retrieval - 1) == 0) {
    choice->kind = PAIR_CHOICE_RETRIEVAL;
    if (!parse_count(text + sizeof retrieval - 1, strlen(text + sizeof retrieval - 1), &choice->neighbors))
      return refuse(text, "retrieval:K, K 1 or more");
  }
  return CLI_DONE;
}

/* ------------------------------------------------------------------ by places */

static cli_exit fail(const pair_source *source, const char *reason) {
  cli_error(COMMAND_MATCH, "%s: %s", source->images->path, reason);
  return CLI_FAILED;
}

static cli_exit fail_status(const pair_source *source, hs_status status) {
  char message[CLI_MESSAGE_BYTES];
  cli_explain(source->context, status, message, sizeof message);
  return fail(source, message);
}

static bool is_quiet(const pair_source *source) { return source->set->values[OPTION_QUIET].given; }

/* Cameras' altitudes are tens of metres off, or missing, so GPS counts as it is on the map. */
static cli_exit read_places(const pair_source *source, double *places, size_t *known) {
  for (size_t i = 0; i < source->images->count; i++) {
    hs_colmap_position position;
    double *place = places + 3 * i;
    if (hs_colmap_read_position(source->database, source->images->each[i].image_id, &position) != HS_OK) {
      cli_error(COMMAND_MATCH, "%s", hs_colmap_last_error(source->database));
      return CLI_FAILED;
    }
    const double *at = position.coordinates;
    for (int k = 0; k < 3; k++) place[k] = position.is_cartesian != 0 ? at[k] : NAN;
    bool has_place = position.found != 0;
    if (has_place && position.is_cartesian == 0) has_place = hs_earth_place(at[0], at[1], 0.0, place) == HS_OK;
    if (has_place)
      (*known)++;
    else
      place[0] = NAN;
  }
  return CLI_DONE;
}

static cli_exit pair_by_places(const pair_choice *choice, const pair_source *source, hs_image_pairs *pairs) {
  const size_t count = source->images->count;
  size_t known = 0;
  double *places = malloc((count + 1) * 3 * sizeof *places);
  if (!places) return fail(source, "no memory for its images");
  cli_exit result = read_places(source, places, &known);
  if (result == CLI_DONE && known == 0 && count > 0)
    result = fail(source, "none of its images has a position: expected GPS in the EXIF of the JPEGs that features are "
                          "extracted from, or COLMAP's pose_priors");
  if (result == CLI_DONE && known < count && !is_quiet(source))
    cli_note("%s: %zu of %zu images have no position and are matched with none", source->images->path, count - known,
             count);
  if (result == CLI_DONE) {
    const hs_status status = hs_pair_nearby(places, count, choice->metres, choice->neighbors, pairs);
    if (status != HS_OK) result = fail_status(source, status);
  }
  free(places);
  return result;
}

/* ------------------------------------------------------------------ by looks */

typedef struct looks {
  const pair_source *source;
  hs_retrieval *retrieval;
  hs_features features;
  int8_t *vectors; /* [images][hs_retrieval_length] */
} looks;

/* An image's features; of keypoints without descriptors none. */
static cli_exit read_features(looks *l, size_t image) {
  const pair_source *source = l->source;
  if (hs_colmap_read_features(source->database, source->images->each[image].image_id, &l->features) != HS_OK) {
    cli_error(COMMAND_MATCH, "%s", hs_colmap_last_error(source->database));
    return CLI_FAILED;
  }
  if (l->features.descriptor_type == HS_DESCRIPTOR_NONE) l->features.count = 0;
  return CLI_DONE;
}

/* Descriptors of images that are spread evenly over the collection; whether there were any. */
static cli_exit train(looks *l, bool *has_any) {
  const size_t count = l->source->images->count, taken = count < SAMPLE_IMAGES ? count : SAMPLE_IMAGES;
  size_t features = 0;
  for (size_t i = 0; i < taken; i++) {
    const cli_exit result = read_features(l, (2 * i + 1) * count / (2 * taken));
    if (result != CLI_DONE) return result;
    features += l->features.count;
    const hs_status status = hs_retrieval_sample(l->retrieval, &l->features, (SAMPLE_DESCRIPTORS + taken - 1) / taken);
    if (status != HS_OK) return fail(l->source, hs_status_string(status));
  }
  *has_any = features > 0;
  const hs_status status = features > 0 ? hs_retrieval_train(l->retrieval, l->source->context) : HS_OK;
  return status == HS_OK ? CLI_DONE : fail_status(l->source, status);
}

static cli_exit describe_all(looks *l) {
  const size_t length = hs_retrieval_length(l->retrieval);
  for (size_t i = 0; i < l->source->images->count; i++) {
    const cli_exit result = read_features(l, i);
    if (result != CLI_DONE) return result;
    const hs_status status =
        hs_retrieval_describe(l->retrieval, l->source->context, &l->features, l->vectors + i * length);
    if (status != HS_OK) return fail_status(l->source, status);
  }
  return CLI_DONE;
}

/* Replaces the vectors by those that their neighbours have been added to. */
static cli_exit blend(looks *l) {
  const size_t count = l->source->images->count, length = hs_retrieval_length(l->retrieval);
  int8_t *blended = malloc(count * length);
  if (!blended) return fail(l->source, "no memory for what its images look like");
  const hs_status status = hs_blend_similar(l->source->context, l->vectors, count, length, BLENDED_NEIGHBORS, blended);
  free(l->vectors);
  l->vectors = blended;
  return status == HS_OK ? CLI_DONE : fail_status(l->source, status);
}

/* Bytes of the sample at most: it grows to room for up to twice as many while the former room is still there. */
static double sample_bytes(const pair_source *source) {
  double features = 0.0;
  for (size_t i = 0; i < source->images->count; i++) features += (double)source->images->each[i].features;
  return 3.0 * HS_DESCRIPTOR_LENGTH * fmin(features, SAMPLE_DESCRIPTORS + SAMPLE_IMAGES);
}

static cli_exit make_vectors(looks *l, uint32_t neighbors) {
  const size_t count = l->source->images->count, length = hs_retrieval_length(l->retrieval);
  const uint64_t limit = l->source->max_memory_bytes;
  const double each = 2.0 * (double)length + 16.0 * (double)(neighbors < count ? neighbors : count);
  const double bytes = (double)count * each + sample_bytes(l->source);
  if (limit > 0 && bytes > (double)limit) {
    cli_error(COMMAND_MATCH, "%s: %.0f bytes are needed to compare its %zu images: expected a larger --max-memory",
              l->source->images->path, bytes, count);
    return CLI_FAILED;
  }
  l->vectors = bytes < (double)SIZE_MAX / 2 ? malloc(count * length) : NULL;
  return l->vectors ? CLI_DONE : fail(l->source, "no memory for what its images look like");
}

static cli_exit pair_by_looks(const pair_choice *choice, const pair_source *source, hs_image_pairs *pairs) {
  looks l = {.source = source};
  bool has_any = false;
  if (source->images->count < 2) return CLI_DONE;
  hs_status status = hs_retrieval_create(&l.retrieval, NULL);
  cli_exit result = status == HS_OK ? make_vectors(&l, choice->neighbors) : fail(source, hs_status_string(status));
  if (result == CLI_DONE) result = train(&l, &has_any);
  if (result == CLI_DONE && has_any) result = describe_all(&l);
  if (result == CLI_DONE && has_any) result = blend(&l);
  if (result == CLI_DONE && has_any) {
    status = hs_pair_similar(source->context, l.vectors, source->images->count, hs_retrieval_length(l.retrieval),
                             choice->neighbors, pairs);
    if (status != HS_OK) result = fail_status(source, status);
  }
  free(l.vectors);
  hs_features_free(&l.features);
  hs_retrieval_destroy(l.retrieval);
  return result;
}

cli_exit pair_choice_make(const pair_choice *choice, const pair_source *source, hs_image_pairs *pairs) {
  if (choice->kind == PAIR_CHOICE_SPATIAL) return pair_by_places(choice, source, pairs);
  return pair_by_looks(choice, source, pairs);
}
