/* Names of the stages. */
#include "stages/ops.h"

const char *stage_name(stage_id id) {
  static const char *const names[STAGE_COUNT] = {"base",   "blur",   "halve",    "detect",
                                                 "orient", "select", "describe", "match"};
  return (unsigned)id < STAGE_COUNT ? names[id] : "?";
}
