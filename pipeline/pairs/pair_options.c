/* Options of a run over pairs, and of one pair. */
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
