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

graph_spare *graph_cache_spare(graph_cache *cache, size_t nodes) {
  graph_spare *oldest = &cache->spares[0];
  for (int i = 0; i < SPARES_KEPT; i++) {
    graph_spare *s = &cache->spares[i];
    if (s->graph && s->nodes == nodes) return s;
    if (s->frame < oldest->frame) oldest = s;
  }
  return oldest;
}

void graph_cache_keep_spare(graph_cache *cache, graph_entry *entry) {
  for (int i = 0; i < SPARES_KEPT && !entry->graph; i++) {
    graph_spare *s = &cache->spares[i];
    if (!s->graph || s->frame != entry->first) continue;
    entry->graph = s->graph;
    *s = (graph_spare){0};
  }
}
