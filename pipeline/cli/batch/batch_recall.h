/*
 * Reading what earlier runs of a batch left: manifests and journals.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_RECALL_H
#define HARTSIFT_CLI_BATCH_BATCH_RECALL_H

#include "pipeline/cli/batch/batch_manifest.h"

/* Reads all manifests and journals that begin with manifest->prefix, this run's own last, into manifest->records.
   *whole_bytes: how much of the own journal can be read. Prints messages. */
cli_exit batch_recall(batch_manifest *manifest, uint64_t *whole_bytes);

/* Takes the rows of one file's text, up to the first that is torn or damaged (a journal's rows each end in a checksum),
   and returns how many bytes those and the head are; 0: not even the head is whole. settings_differ: made with other
   settings; nothing was taken, and the result is the length of the line of settings with where it begins
   in *settings. */
size_t batch_recall_text(batch_manifest *manifest, const char *text, size_t size, bool is_journal,
                         bool *settings_differ, const char **settings);

/* Whether a file's name is `base`, perhaps "-I-of-N", and ".csv" or ".journal". */
bool batch_is_manifest_name(const char *name, const char *base);

#endif
