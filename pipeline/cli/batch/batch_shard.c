/*
 * Shards by number and by scheduler; see batch_shard.h.
 */
#include "pipeline/cli/batch/batch_shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/message.h"

enum { SHARD_NAME_BYTES = 256 };

/* A whole number from 0 on at text; *end gets what follows. */
static bool parse_number(const char *text, int32_t *value, const char **end) {
  const size_t digits = strspn(text, "0123456789");
  const long number = digits > 0 && digits < 10 ? strtol(text, NULL, 10) : -1;
  *value = (int32_t)number;
  *end = text + digits;
  return number >= 0 && number <= BATCH_SHARDS_MOST;
}

bool batch_parse_shard(const char *text, int32_t *shard, int32_t *shards) {
  const char *end = NULL;
  return parse_number(text, shard, &end) && *end == '/' && parse_number(end + 1, shards, &end) && *end == '\0' &&
         *shard >= 1 && *shard <= *shards;
}

/* The number that a variable holds. */
static bool read_variable(const char *name, int32_t *value, char *message, size_t message_bytes) {
  const char *text = getenv(name);
  const char *end = NULL;
  if (!text)
    hs_message_set(message, message_bytes, "the variable %s is not set", name);
  else if (!parse_number(text, value, &end) || *end != '\0')
    hs_message_set(message, message_bytes, "the variable %s is '%s': expected a whole number up to %d", name, text,
                   BATCH_SHARDS_MOST);
  else
    return true;
  return false;
}

static bool check_range(int32_t shard, int32_t shards, char *message, size_t message_bytes) {
  if (shard >= 1 && shard <= shards) return true;
  hs_message_set(message, message_bytes, "that is shard %ld of %ld: expected 1 <= I <= N", (long)shard, (long)shards);
  return false;
}

/* names: "INDEX,COUNT". */
static bool find_by_names(const char *names, int32_t *shard, int32_t *shards, char *message, size_t message_bytes) {
  char index[SHARD_NAME_BYTES] = "";
  const char *comma = strchr(names, ',');
  const size_t length = comma ? (size_t)(comma - names) : 0;
  if (length == 0 || length >= sizeof index || comma[1] == '\0' || strchr(comma + 1, ',')) {
    hs_message_set(message, message_bytes, "expected env:INDEX,COUNT, the names of two variables");
    return false;
  }
  memcpy(index, names, length);
  const bool from_zero = length > 2 && strcmp(index + length - 2, "+1") == 0;
  if (from_zero) index[length - 2] = '\0';
  const char *end = NULL;
  const bool is_number = parse_number(comma + 1, shards, &end) && *end == '\0';
  if (!read_variable(index, shard, message, message_bytes)) return false;
  if (!is_number && !read_variable(comma + 1, shards, message, message_bytes)) return false;
  *shard += from_zero;
  return check_range(*shard, *shards, message, message_bytes);
}

/* A task of an array whose numbers are FIRST, FIRST + STEP, ... LAST. */
static bool find_by_array(int32_t *shard, int32_t *shards, char *message, size_t message_bytes) {
  int32_t task = 0, count = 0, first = 0, last = 0, step = 1;
  if (!read_variable("SLURM_ARRAY_TASK_ID", &task, message, message_bytes) ||
      !read_variable("SLURM_ARRAY_TASK_COUNT", &count, message, message_bytes) ||
      !read_variable("SLURM_ARRAY_TASK_MIN", &first, message, message_bytes) ||
      !read_variable("SLURM_ARRAY_TASK_MAX", &last, message, message_bytes))
    return false;
  if (getenv("SLURM_ARRAY_TASK_STEP") && !read_variable("SLURM_ARRAY_TASK_STEP", &step, message, message_bytes))
    return false;
  if (step < 1 || last < first || (last - first) / step + 1 != count || task < first || (task - first) % step != 0) {
    hs_message_set(
        message, message_bytes,
        "an array of %ld tasks from %ld to %ld is not one of equal steps: expected sbatch --array=1-N; a task "
        "that was lost is done again by scontrol requeue",
        (long)count, (long)first, (long)last);
    return false;
  }
  *shard = (task - first) / step + 1;
  *shards = count;
  return check_range(*shard, *shards, message, message_bytes);
}

static bool find_by_slurm(int32_t *shard, int32_t *shards, char *message, size_t message_bytes) {
  if (getenv("SLURM_ARRAY_TASK_COUNT")) return find_by_array(shard, shards, message, message_bytes);
  if (getenv("SLURM_PROCID") && getenv("SLURM_NTASKS"))
    return find_by_names("SLURM_PROCID+1,SLURM_NTASKS", shard, shards, message, message_bytes);
  hs_message_set(message, message_bytes,
                 "there is neither SLURM_ARRAY_TASK_COUNT nor SLURM_PROCID: expected a job array (sbatch --array) or a "
                 "step of several tasks (srun --ntasks)");
  return false;
}

bool batch_find_shard(const char *text, int32_t *shard, int32_t *shards, char *message, size_t message_bytes) {
  char reason[2 * SHARD_NAME_BYTES] = "";
  bool found;
  if (strcmp(text, "slurm") == 0) {
    found = find_by_slurm(shard, shards, reason, sizeof reason);
  } else if (strncmp(text, "env:", 4) == 0) {
    found = find_by_names(text + 4, shard, shards, reason, sizeof reason);
  } else {
    found = batch_parse_shard(text, shard, shards);
    snprintf(reason, sizeof reason, "expected I/N with 1 <= I <= N <= %d, slurm, or env:INDEX,COUNT",
             BATCH_SHARDS_MOST);
  }
  if (!found) hs_message_set(message, message_bytes, "--shard '%s': %s", text, reason);
  return found;
}
