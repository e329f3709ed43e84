/*
 * Matches out of the database verified, some pairs at a time; see given_matches.h.
 */
#include "pipeline/cli/pairs/given_matches.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/schedule/threads.h"
#include "pipeline/base/memory.h"
#include "pipeline/formats/colmap/colmap_pairs.h"

enum { PAIRS_A_THREAD = 4, GIVEN_MESSAGE_BYTES = 512 };

/* A pair of the block that is worked on. */
typedef struct given_pair {
  hs_pair_result result;
  hs_features features[2]; /* keypoints */
  hs_match_pair *matches;
  uint8_t *inliers;
  hs_pair_geometry found;
  char message[GIVEN_MESSAGE_BYTES];
} given_pair;

struct given_matches {
  given_plan plan;
  stage_queue *queue; /* null: this thread alone */
  given_pair *block;
  size_t block_room, block_count, block_next; /* pairs of the block: most, read, given */
  size_t next;                                /* of all pairs, to be read */
};

/* ------------------------------------------------------------------ reading */

static void fail(given_pair *p, hs_status status, const char *message) {
  p->result.status = status;
  snprintf(p->message, sizeof p->message, "%s", message);
}

static hs_status read_keypoints(given_matches *g, uint32_t image, hs_features *features) {
  const given_plan *plan = &g->plan;
  const database_image *wanted = &plan->images->each[image];
  char sentence[CLI_MESSAGE_BYTES];
  const hs_status status = colmap_read_keypoints(plan->database, wanted->image_id, features);
  if (status == HS_OK) return status;
  snprintf(sentence, sizeof sentence, "%s: %s", wanted->name, hs_colmap_last_error(plan->database));
  pair_failures_blame(plan->failures, image, sentence);
  return status;
}

static void read_pair(given_matches *g, given_pair *p) {
  const given_plan *plan = &g->plan;
  const hs_image_pair pair = p->result.images;
  const database_image *images = plan->images->each;
  hs_status status = read_keypoints(g, pair.first, &p->features[0]);
  if (status == HS_OK) status = read_keypoints(g, pair.second, &p->features[1]);
  if (status == HS_OK)
    status = colmap_read_matches(plan->database, images[pair.first].image_id, images[pair.second].image_id, &p->matches,
                                 &p->result.match_count);
  p->inliers = status == HS_OK ? malloc(p->result.match_count + 1) : NULL;
  p->result.matches = p->matches;
  if (status != HS_OK)
    fail(p, status, hs_colmap_last_error(plan->database));
  else if (!p->inliers)
    fail(p, HS_ERR_MEMORY, "no memory for its matches");
}

/* ------------------------------------------------------------------ verifying */

/* queue_task */
static void verify_pair(void *job, int32_t chunk, int32_t worker) {
  given_matches *g = job;
  given_pair *p = &g->block[chunk];
  hs_pair_result *const result = &p->result;
  const database_image *images = g->plan.images->each;
  const database_image *a = &images[result->images.first], *b = &images[result->images.second];
  hs_verify_options verify = g->plan.verify;
  hs_pairs_options options = g->plan.options;
  (void)worker;
  if (result->status != HS_OK) return;
  options.verify = &verify;
  verify.message = p->message;
  verify.message_bytes = sizeof p->message;
  verify.camera_a = a->is_calibrated ? a->camera : (hs_camera){0.0, 0.0, 0.0, 0.0};
  verify.camera_b = b->is_calibrated ? b->camera : (hs_camera){0.0, 0.0, 0.0, 0.0};
  const hs_pair_geometry *const found = &p->found;
  result->status = hs_verify_pair(&p->features[0], &p->features[1], p->matches, result->match_count, &options,
                                  p->inliers, &p->found);
  if (result->status != HS_OK) return;
  result->inliers = p->inliers;
  result->geometry = &found->model;
  result->plane = found->has_plane != 0 ? &found->plane : NULL;
  result->fundamental = found->fundamental.found != 0 ? &found->fundamental : NULL;
  result->pose = found->model.found != 0 && found->model.model == HS_ESSENTIAL ? &found->pose : NULL;
  result->watermark = found->watermark;
}

/* ------------------------------------------------------------------ blocks */

static void empty_block(given_matches *g) {
  for (size_t i = 0; i < g->block_count; i++) {
    given_pair *p = &g->block[i];
    hs_features_free(&p->features[0]);
    hs_features_free(&p->features[1]);
    hs_memory_release(NULL, p->matches);
    free(p->inliers);
  }
  g->block_count = g->block_next = 0;
}

static void fill_block(given_matches *g) {
  empty_block(g);
  for (; g->block_count < g->block_room && g->next < g->plan.count; g->block_count++, g->next++) {
    given_pair *p = &g->block[g->block_count];
    *p = (given_pair){.result = {.index = g->next, .images = g->plan.pairs[g->next], .message = p->message}};
    read_pair(g, p);
  }
  queue_run(g->queue, (int32_t)g->block_count, verify_pair, g);
}

const hs_pair_result *given_matches_next(given_matches *given) {
  if (given->block_next == given->block_count) fill_block(given);
  return given->block_next < given->block_count ? &given->block[given->block_next++].result : NULL;
}

given_matches *given_matches_begin(const given_plan *plan) {
  given_matches *g = calloc(1, sizeof *g);
  if (!g) return NULL;
  g->plan = *plan;
  g->plan.verify.allocator = NULL;
  g->block_room = (size_t)plan->threads * PAIRS_A_THREAD;
  g->block = calloc(g->block_room, sizeof *g->block);
  g->queue = plan->threads > 1 ? malloc(queue_bytes(plan->threads)) : NULL;
  if (g->queue && !queue_start(g->queue, plan->threads)) {
    free(g->queue);
    g->queue = NULL;
  }
  if (g->block && (g->queue || plan->threads == 1)) return g;
  given_matches_end(g);
  return NULL;
}

void given_matches_end(given_matches *given) {
  if (!given) return;
  empty_block(given);
  if (given->queue) queue_stop(given->queue);
  free(given->queue);
  free(given->block);
  free(given);
}
