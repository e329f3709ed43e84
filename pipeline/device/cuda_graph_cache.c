/* The table of frames; searched from end to end, because it is short. */
#include "pipeline/device/cuda_graph_cache.h"

#include <string.h>

graph_entry *graph_cache_meet(graph_cache *cache, const graph_key *key, bool *again) {
  graph_entry *oldest = &cache->entries[0], *found = NULL;
  for (int i = 0; i < GRAPHS_KEPT && !found; i++) {
    graph_entry *e = &cache->entries[i];
    if (e->met > 0 && memcmp(&e->key, key, sizeof *key) == 0) found = e;
    if (e->met < oldest->met) oldest = e;
  }
  *again = found != NULL;
  if (!found) {
    found = oldest;
    memcpy(&found->key, key, sizeof *key); /* with its padding */
  }
  found->met = ++cache->frames;
  if (!*again) found->first = found->met;
  return found;
}

graph_spare *graph_cache_spare(graph_cache *cache, uint64_t shape) {
  graph_spare *oldest = &cache->spares[0];
  for (int i = 0; i < SPARES_KEPT; i++) {
    graph_spare *s = &cache->spares[i];
    if (s->shape == shape) return s;
    if (s->frame < oldest->frame) oldest = s;
  }
  return oldest;
}

graph_spare *graph_cache_spare_of(graph_cache *cache, const graph_entry *entry) {
  for (int i = 0; i < SPARES_KEPT; i++) {
    graph_spare *s = &cache->spares[i];
    if (s->shape != 0 && s->frame == entry->first) return s;
  }
  return NULL;
}
