/*
 * Inputs of `merge`: the manifests found at its operands, and their images in one order.
 */
#ifndef HARTSIFT_CLI_MERGE_MERGE_INPUTS_H
#define HARTSIFT_CLI_MERGE_MERGE_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/cli/batch/batch_manifest.h"

/* One manifest. */
typedef struct merge_shard {
  char *manifest;       /* its path */
  char *place;          /* folder of its outputs, or its database */
  char *text;           /* its whole text */
  const char *settings; /* line of settings, inside text */
  size_t settings_length;
  int32_t shard, shards; /* I of N from its name; default 1 of 1 */
} merge_shard;

/* One row of a manifest. */
typedef struct merge_image {
  char *name;
  batch_record record; /* BATCH_CLAIMED or BATCH_FAILED */
  size_t shard;        /* index of its manifest */
  size_t place;        /* position in the shards' common list of images */
} merge_image;

typedef struct merge_inputs {
  merge_shard *shards;
  size_t shard_count;
  merge_image *images;
  size_t count, capacity;
  hs_format format; /* format of all outputs */
} merge_inputs;

/* Reads the manifests of all operands (a folder of outputs, a database, or a manifest) and orders their images:
   shards I of N as in their common list, several whole manifests by image name. Refused, with a message (CLI_FAILED,
   CLI_USAGE): no manifest, an unfinished or damaged one, missing or duplicate shards, different settings. output:
   the folder or database to write, whose own whole manifest is no input. *inputs must be freed in any case. */
cli_exit merge_read_inputs(merge_inputs *inputs, char **operands, int operand_count, const char *output);
void merge_free_inputs(merge_inputs *inputs);

/* True if two paths are the same existing file or folder. */
bool merge_is_same_place(const char *one, const char *other);

/* The value of a setting, by "name="; *length 0: not set. */
const char *merge_setting(const merge_shard *shard, const char *name, size_t *length);

#endif
