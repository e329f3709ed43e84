/*
 * Judges whether verified pairs show the same place, by the tracks that the sure pairs of a collection form. See
 * hartsift_pairs.h.
 */
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/include/hartsift_pairs.h"

enum {
  /* minimum number of contradicting inliers that make a pair doubtful if none supports it, so that it is no accident */
  DENIED_ALL = 4,
  DENIED_MAX = 10 /* minimum number of contradicting inliers that make a pair doubtful if fewer support it */
};

/* Disjoint sets, stored as trees of parents: sets of features (tracks), and of images (connected by sure pairs). */
typedef struct judge {
  const hs_allocator *allocator;
  const hs_pair_inliers *source;
  hs_judge_options options;
  uint64_t *first_feature; /* [image]: number of its first feature; the features of all images are numbered together */
  uint32_t *parent;        /* [feature] */
  uint8_t *is_on_track;    /* [feature]: 1 if it is in an inlier of a sure pair */
  uint32_t *image_parent;
  /* [image]: start of its entries in `neighbors`; one more entry is the end of the last image */
  uint64_t *neighbor_range;
  uint32_t *neighbors; /* the images with which each image forms sure pairs */
  uint32_t marked_for; /* image number + 1 of the last call of mark_near */
  uint32_t *near_mark; /* [image]: number + 1 of the image for which it was last marked as near */
  uint32_t *inliers;   /* inliers of the current pair */
} judge;

static const options_kind kind = OPTIONS_KIND(hs_judge_options, sure_inliers);
OPTIONS_END_WITH(hs_judge_options, message_bytes);

static const hs_judge_options defaults = {.struct_size = sizeof(hs_judge_options),
                                          .sure_inliers = 100,
                                          .sure_share = 0.6,
                                          .doubtful_share = 0.5,
                                          .least_support = 0.15};

hs_status hs_judge_options_init_sized(hs_judge_options *options, size_t struct_size) {
  return options_give(options, struct_size, &defaults, kind);
}

static uint32_t root_of(uint32_t *parent, uint32_t element) {
  while (parent[element] != element) {
    parent[element] = parent[parent[element]];
    element = parent[element];
  }
  return element;
}

static void join(uint32_t *parent, uint32_t a, uint32_t b) {
  a = root_of(parent, a);
  b = root_of(parent, b);
  if (a < b)
    parent[b] = a;
  else
    parent[a] = b;
}

static double share_of(const hs_judged_pair *pair) {
  const size_t matches = pair->match_count > pair->inlier_count ? pair->match_count : pair->inlier_count;
  return matches > 0 ? (double)pair->inlier_count / (double)matches : 0.0;
}

static bool is_sure(const judge *j, const hs_judged_pair *pair) {
  return pair->inlier_count >= j->options.sure_inliers && share_of(pair) >= j->options.sure_share;
}

static hs_status fail(const judge *j, hs_status status, const char *message) {
  return hs_message_fail(status, j->options.message, j->options.message_bytes, "%s", message);
}

/* Allocates count + 1 elements, so that an empty array is no failure; null: out of memory. */
static void *allocate_array(const judge *j, size_t count, size_t element_bytes) {
  size_t elements, bytes;
  if (!hs_size_add(count, 1, &elements) || !hs_size_mul(elements, element_bytes, &bytes)) return NULL;
  return hs_memory_alloc(j->allocator, bytes);
}

/* Reads a pair's inliers, and converts them to feature numbers. */
static hs_status read_inliers(const judge *j, const hs_judged_pair *pair, size_t index) {
  const uint32_t image[2] = {pair->images.first, pair->images.second};
  const hs_status status = j->source->read(j->source->user, index, j->inliers);
  for (size_t i = 0; status == HS_OK && i < 2 * pair->inlier_count; i++) {
    const size_t side = i % 2;
    if (j->inliers[i] >= j->source->feature_counts[image[side]])
      return fail(j, HS_ERR_ARGUMENT, "an inlier refers to a feature beyond its image's features");
    j->inliers[i] += (uint32_t)j->first_feature[image[side]];
  }
  return status;
}

static hs_status join_sure_pairs(judge *j, hs_judged_pair *pairs, size_t count) {
  for (size_t p = 0; p < count; p++) {
    if (!is_sure(j, &pairs[p])) continue;
    const hs_status status = read_inliers(j, &pairs[p], p);
    if (status != HS_OK) return status;
    pairs[p].verdict = HS_PAIR_SURE;
    join(j->image_parent, pairs[p].images.first, pairs[p].images.second);
    for (size_t i = 0; i < pairs[p].inlier_count; i++) {
      join(j->parent, j->inliers[2 * i], j->inliers[2 * i + 1]);
      j->is_on_track[j->inliers[2 * i]] = 1;
      j->is_on_track[j->inliers[2 * i + 1]] = 1;
    }
  }
  return HS_OK;
}

/* ------------------------------------------------------------------ distances between images */

/* Lists for each image the images with which it forms sure pairs. */
static hs_status list_neighbors(judge *j, const hs_judged_pair *pairs, size_t count) {
  const size_t images = j->source->image_count;
  size_t sure = 0;
  for (size_t p = 0; p < count; p++) sure += pairs[p].verdict == HS_PAIR_SURE;
  j->neighbor_range = allocate_array(j, images + 1, sizeof *j->neighbor_range);
  j->neighbors = allocate_array(j, sure, 2 * sizeof *j->neighbors);
  j->near_mark = allocate_array(j, images, sizeof *j->near_mark);
  if (!j->neighbor_range || !j->neighbors || !j->near_mark) return fail(j, HS_ERR_MEMORY, "out of memory");
  uint64_t *const end = j->neighbor_range + 1; /* end[i]: end of image i's entries while they are counted and filled */
  memset(j->neighbor_range, 0, (images + 2) * sizeof *j->neighbor_range);
  memset(j->near_mark, 0, images * sizeof *j->near_mark);
  for (size_t p = 0; p < count; p++) {
    if (pairs[p].verdict != HS_PAIR_SURE) continue;
    end[pairs[p].images.first + 1]++;
    end[pairs[p].images.second + 1]++;
  }
  for (size_t i = 1; i <= images; i++) end[i] += end[i - 1];
  for (size_t p = 0; p < count; p++) {
    const hs_image_pair pair = pairs[p].images;
    if (pairs[p].verdict != HS_PAIR_SURE) continue;
    j->neighbors[end[pair.first]++] = pair.second;
    j->neighbors[end[pair.second]++] = pair.first;
  }
  return HS_OK;
}

/* Marks the images that a chain of one or two sure pairs connects to an image. */
static void mark_near(judge *j, uint32_t image) {
  const uint64_t *const range = j->neighbor_range;
  const uint32_t mark = image + 1;
  if (j->marked_for == mark) return;
  j->marked_for = mark;
  j->near_mark[image] = mark;
  for (uint64_t i = range[image]; i < range[image + 1]; i++) {
    const uint32_t next = j->neighbors[i];
    j->near_mark[next] = mark;
    for (uint64_t k = range[next]; k < range[next + 1]; k++) j->near_mark[j->neighbors[k]] = mark;
  }
}

/* True if a chain of at most three sure pairs connects two images. Tracks need not extend to images farther apart: such
   a pair may close a loop, and the two features of a correct inlier are then on two tracks. */
static bool is_near(judge *j, hs_image_pair images) {
  const uint32_t mark = images.first + 1;
  mark_near(j, images.first);
  bool found = j->near_mark[images.second] == mark;
  for (uint64_t i = j->neighbor_range[images.second]; !found && i < j->neighbor_range[images.second + 1]; i++)
    found = j->near_mark[j->neighbors[i]] == mark;
  return found;
}

/* ------------------------------------------------------------------ verdicts */

static hs_pair_verdict verdict_of(const judge *j, const hs_judged_pair *pair) {
  const double share = share_of(pair);
  if (root_of(j->image_parent, pair->images.first) != root_of(j->image_parent, pair->images.second))
    return HS_PAIR_ONLY_LINK;
  const size_t denied = pair->on_tracks - pair->supported;
  /* if no inlier is on tracks, nothing is proved, because other pairs may not see that part of the scene */
  const bool unsupported =
      denied > 0 && (double)pair->supported < j->options.least_support * (double)pair->inlier_count;
  const bool mostly_denied = denied >= DENIED_MAX && denied > pair->supported;
  if ((unsupported || mostly_denied) && share < j->options.doubtful_share) return HS_PAIR_DOUBTFUL;
  if (pair->supported == 0 && denied >= DENIED_ALL && share < j->options.sure_share) return HS_PAIR_DOUBTFUL;
  return HS_PAIR_SUPPORTED;
}

static hs_status judge_others(judge *j, hs_judged_pair *pairs, size_t count) {
  for (size_t p = 0; p < count; p++) {
    hs_judged_pair *const pair = &pairs[p];
    if (is_sure(j, pair)) continue;
    const hs_status status = read_inliers(j, pair, p);
    if (status != HS_OK) return status;
    for (size_t i = 0; i < pair->inlier_count; i++) {
      const uint32_t a = j->inliers[2 * i], b = j->inliers[2 * i + 1];
      if (j->is_on_track[a] == 0 || j->is_on_track[b] == 0) continue;
      pair->on_tracks++;
      pair->supported += root_of(j->parent, a) == root_of(j->parent, b);
    }
    pair->verdict = verdict_of(j, pair);
    if (pair->verdict == HS_PAIR_DOUBTFUL && !is_near(j, pair->images)) pair->verdict = HS_PAIR_ONLY_LINK;
  }
  return HS_OK;
}

/* Checks the pairs; *most: largest number of inliers of a pair. */
static hs_status check(const judge *j, const hs_judged_pair *pairs, size_t count, size_t *most) {
  const hs_judge_options *const o = &j->options;
  const hs_pair_inliers *const source = j->source;
  if (!(o->sure_share >= 0.0 && o->sure_share <= 1.0)) return fail(j, HS_ERR_OPTION, "sure_share: 0..1 expected");
  if (!(o->doubtful_share >= 0.0 && o->doubtful_share <= 1.0))
    return fail(j, HS_ERR_OPTION, "doubtful_share: 0..1 expected");
  if (!(o->least_support >= 0.0 && o->least_support <= 1.0))
    return fail(j, HS_ERR_OPTION, "least_support: 0..1 expected");
  for (size_t p = 0; p < count; p++) {
    const hs_image_pair images = pairs[p].images;
    if (images.first >= source->image_count || images.second >= source->image_count || images.first == images.second)
      return fail(j, HS_ERR_ARGUMENT, "a pair does not consist of two images of the collection");
    if (!RESERVED_IS_CLEAR(pairs[p].reserved))
      return fail(j, HS_ERR_ARGUMENT, "reserved of a pair is set: start with {0}, or use a later library");
    *most = pairs[p].inlier_count > *most ? pairs[p].inlier_count : *most;
  }
  return HS_OK;
}

/* Numbers the features of all images. */
static hs_status number_features(judge *j, size_t *features) {
  const hs_pair_inliers *const source = j->source;
  uint64_t count = 0;
  for (size_t i = 0; i < source->image_count; i++) {
    j->image_parent[i] = (uint32_t)i;
    j->first_feature[i] = count;
    if (source->feature_counts[i] > UINT32_MAX - count) return fail(j, HS_ERR_LIMIT, "more than 2^32 - 1 features");
    count += source->feature_counts[i];
  }
  *features = (size_t)count;
  return HS_OK;
}

static hs_status allocate(judge *j, size_t most_inliers) {
  const size_t images = j->source->image_count;
  size_t features = 0;
  if (images >= UINT32_MAX) return fail(j, HS_ERR_LIMIT, "more than 2^32 - 2 images");
  j->first_feature = allocate_array(j, images, sizeof *j->first_feature);
  j->image_parent = allocate_array(j, images, sizeof *j->image_parent);
  if (!j->first_feature || !j->image_parent) return fail(j, HS_ERR_MEMORY, "out of memory");
  const hs_status status = number_features(j, &features);
  if (status != HS_OK) return status;
  j->parent = allocate_array(j, features, sizeof *j->parent);
  j->is_on_track = allocate_array(j, features, sizeof *j->is_on_track);
  j->inliers = allocate_array(j, most_inliers, 2 * sizeof *j->inliers);
  if (!j->parent || !j->is_on_track || !j->inliers) return fail(j, HS_ERR_MEMORY, "out of memory");
  for (size_t i = 0; i < features; i++) j->parent[i] = (uint32_t)i;
  memset(j->is_on_track, 0, features);
  return HS_OK;
}

static void release(const judge *j) {
  hs_memory_release(j->allocator, j->first_feature);
  hs_memory_release(j->allocator, j->image_parent);
  hs_memory_release(j->allocator, j->neighbor_range);
  hs_memory_release(j->allocator, j->neighbors);
  hs_memory_release(j->allocator, j->near_mark);
  hs_memory_release(j->allocator, j->parent);
  hs_memory_release(j->allocator, j->is_on_track);
  hs_memory_release(j->allocator, j->inliers);
}

hs_status hs_judge_pairs(const hs_pair_inliers *source, hs_judged_pair *pairs, size_t count,
                         const hs_judge_options *options) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  judge j = {.source = source, .options = defaults};
  char reason[ADOPT_REASON_BYTES];
  size_t most = 0;
  if (!source || !source->read || (source->image_count > 0 && !source->feature_counts) || (count > 0 && !pairs))
    return HS_ERR_ARGUMENT;
  hs_status status = options ? options_adopt(&j.options, options, kind, reason) : HS_OK;
  if (status != HS_OK) return fail(&j, status, reason);
  j.allocator = j.options.allocator;
  hs_message_set(j.options.message, j.options.message_bytes, "%s", "");
  for (size_t p = 0; p < count; p++) {
    pairs[p].verdict = HS_PAIR_SUPPORTED;
    pairs[p].on_tracks = pairs[p].supported = 0;
  }
  status = check(&j, pairs, count, &most);
  if (status == HS_OK) status = allocate(&j, most);
  if (status == HS_OK) status = join_sure_pairs(&j, pairs, count);
  if (status == HS_OK) status = list_neighbors(&j, pairs, count);
  if (status == HS_OK) status = judge_others(&j, pairs, count);
  release(&j);
  return status;
}
