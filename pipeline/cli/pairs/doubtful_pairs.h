/*
 * After `match --database`: which verified pairs the collection contradicts. They are set aside in a table of this library
 * (pipeline/formats/FORMATS.md), from which the next run takes them back before it judges anew.
 */
#ifndef HARTSIFT_CLI_PAIRS_DOUBTFUL_PAIRS_H
#define HARTSIFT_CLI_PAIRS_DOUBTFUL_PAIRS_H

#include "pipeline/cli/common/progress.h"
#include "pipeline/cli/pairs/pair_output.h"

typedef struct doubtful_plan {
  hs_colmap_database *database;
  const database_images *images;
  const stop_signals *signals; /* one that comes ends the work, and nothing of it is kept */
  uint64_t max_memory_bytes;   /* 0: no limit */
  bool keeps;                  /* pairs that were set aside are only taken back */
  bool is_quiet, has_json;
} doubtful_plan;

/* Commits. Prints what was done, or why it failed. */
cli_exit doubtful_pairs_settle(const doubtful_plan *plan);

#endif
