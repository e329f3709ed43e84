/*
 * What is left of a pair; see pair_run.h.
 */
#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/pairs/pair_run.h"

static pair_record *make(const hs_pairs *run, size_t index, size_t extra) {
  pair_record *r = hs_memory_alloc(run->allocator, sizeof *r + extra);
  if (!r) return NULL;
  memset(r, 0, sizeof *r);
  r->bytes = sizeof *r + extra;
  r->result.index = index;
  r->result.images = run->pairs[index];
  r->result.message = "";
  return r;
}

/* Matches are fewer than 2^32, so that sizes do not overflow. */
pair_record *pair_record_make(const hs_pairs *run, size_t index, size_t match_count, bool has_inliers) {
  const size_t inliers = has_inliers ? match_count : 0;
  pair_record *r = make(run, index, match_count * sizeof *r->matches + inliers);
  if (!r) return NULL;
  r->matches = (hs_match_pair *)(r + 1);
  r->inliers = has_inliers ? (uint8_t *)(r->matches + match_count) : NULL;
  r->result.match_count = match_count;
  r->result.matches = r->matches;
  return r;
}

pair_record *pair_record_failed(const hs_pairs *run, size_t index, hs_status status, const char *message) {
  if (!message || message[0] == '\0') message = hs_status_string(status);
  pair_record *r = make(run, index, strlen(message) + 1);
  if (!r) return NULL;
  r->message = (char *)(r + 1);
  strcpy(r->message, message);
  r->result.message = r->message;
  r->result.status = status;
  return r;
}

void pair_record_free(const hs_pairs *run, pair_record *record) { hs_memory_release(run->allocator, record); }
