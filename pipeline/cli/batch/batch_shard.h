/*
 * Which part of its images a run of `batch` does: as it is told, or as the scheduler that started it says in its
 * environment.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_SHARD_H
#define HARTSIFT_CLI_BATCH_BATCH_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BATCH_SHARDS_MOST = 1000000 };

/* I/N, 1 <= I <= N. False when text is something else. */
bool batch_parse_shard(const char *text, int32_t *shard, int32_t *shards);

/* I/N; "slurm": this task of a job array, or without one of a step; "env:INDEX,COUNT": the values of these variables,
   "INDEX+1" where they count from 0; COUNT may be a number. False with a message that says what is expected. */
bool batch_find_shard(const char *text, int32_t *shard, int32_t *shards, char *message, size_t message_bytes);

#endif
