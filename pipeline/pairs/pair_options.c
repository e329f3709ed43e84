/* Options of a run over pairs, and of one pair. */
#include <math.h>

#include "pipeline/pairs/pair_run.h"

OPTIONS_END_WITH(hs_pairs_options, reserved);
static const options_kind kind = OPTIONS_KIND(hs_pairs_options, match);
static const hs_pairs_options defaults = {.struct_size = sizeof defaults};

hs_status hs_pairs_options_init_sized(hs_pairs_options *options, size_t struct_size) {
  return options_give(options, struct_size, &defaults, kind);
}

hs_status pairs_adopt_options(const hs_pairs_options *callers, hs_pairs_options *mine,
                              char reason[ADOPT_REASON_BYTES]) {
  *mine = defaults;
  reason[0] = '\0';
  return callers ? options_adopt(mine, callers, kind, reason) : HS_OK;
}

const char *pairs_options_fault(const hs_pairs_options *o) {
  if (o->guided != 0 && o->guided != 1) return "guided: 0 or 1 expected";
  if (o->find_plane != 0 && o->find_plane != 1) return "find_plane: 0 or 1 expected";
  if (o->find_essential != 0 && o->find_essential != 1) return "find_essential: 0 or 1 expected";
  if (o->reserved != 0) return "reserved: 0 expected";
  if (!(o->plane_tolerance >= 0.0) || isinf(o->plane_tolerance)) return "plane_tolerance: 0 or more expected";
  return NULL;
}
