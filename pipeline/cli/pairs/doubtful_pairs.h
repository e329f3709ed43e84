/*
 * After `match --database`: which verified pairs the collection contradicts. They are set aside in a table of this library
 * (pipeline/formats/FORMATS.md), from which the next run takes them back before it judges anew.
 */
#ifndef HARTSIFT_CLI_PAIRS_DOUBTFUL_PAIRS_H
#define HARTSIFT_CLI_PAIRS_DOUBTFUL_PAIRS_H

#include "pipeline/cli/pairs/pair_output.h"

/* keep: pairs that were set aside are only taken back. Commits. Prints what was done, or why it failed. */
cli_exit doubtful_pairs_settle(hs_colmap_database *database, const database_images *images, bool keep, bool is_quiet,
                               bool has_json);

#endif
