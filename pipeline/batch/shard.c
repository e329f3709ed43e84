/* Selects a shard of a list of images, by number or by the scheduler's variables. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/text.h"
#include "pipeline/include/hartsift_batch.h"

enum { SHARD_NAME_BYTES = 256 };

/* Lookup of environment variables. */
typedef struct shard_environment {
  const char *(*variable)(void *user, const char *name);
  void *user;
} shard_environment;

static const char *variable_of(const shard_environment *environment, const char *name) {
  return environment->variable ? environment->variable(environment->user, name) : getenv(name);
}

/* Parses a non-negative integer; *end points after it. */
static bool parse_number(const char *text, int32_t *value, const char **end) {
  const size_t digits = strspn(text, "0123456789");
  const long number = digits > 0 && digits < 10 ? strtol(text, NULL, 10) : -1;
  *value = (int32_t)number;
  *end = text + digits;
  return number >= 0 && number <= HS_SHARDS_MAX;
}

static bool parse_numbers(const char *text, int32_t *shard, int32_t *shards) {
  const char *end = NULL;
  return parse_number(text, shard, &end) && *end == '/' && parse_number(end + 1, shards, &end) && *end == '\0' &&
         *shard >= 1 && *shard <= *shards;
}

/* Reads a variable as a number. */
static bool read_variable(const shard_environment *environment, const char *name, int32_t *value, char *message,
                          size_t message_bytes) {
  const char *text = variable_of(environment, name);
  const char *end = NULL;
  if (!text)
    hs_message_set(message, message_bytes, "the variable %s is not set", name);
  else if (!parse_number(text, value, &end) || *end != '\0')
    hs_message_set(message, message_bytes, "the variable %s is '%s': expected a whole number up to %d", name, text,
                   HS_SHARDS_MAX);
  else
    return true;
  return false;
}

static bool check_range(int32_t shard, int32_t shards, char *message, size_t message_bytes) {
  if (shard >= 1 && shard <= shards) return true;
  hs_message_set(message, message_bytes, "that is shard %ld of %ld: expected 1 <= I <= N", (long)shard, (long)shards);
  return false;
}

/* Finds the shard from variables. names: "INDEX,COUNT". */
static bool find_by_names(const shard_environment *environment, const char *names, int32_t *shard, int32_t *shards,
                          char *message, size_t message_bytes) {
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
  if (!read_variable(environment, index, shard, message, message_bytes)) return false;
  if (!is_number && !read_variable(environment, comma + 1, shards, message, message_bytes)) return false;
  *shard += from_zero;
  return check_range(*shard, *shards, message, message_bytes);
}

/* Finds the shard from the task of a SLURM array, numbered FIRST, FIRST + STEP, ... LAST. */
static bool find_by_array(const shard_environment *environment, int32_t *shard, int32_t *shards, char *message,
                          size_t message_bytes) {
  int32_t task = 0, count = 0, first = 0, last = 0, step = 1;
  if (!read_variable(environment, "SLURM_ARRAY_TASK_ID", &task, message, message_bytes) ||
      !read_variable(environment, "SLURM_ARRAY_TASK_COUNT", &count, message, message_bytes) ||
      !read_variable(environment, "SLURM_ARRAY_TASK_MIN", &first, message, message_bytes) ||
      !read_variable(environment, "SLURM_ARRAY_TASK_MAX", &last, message, message_bytes))
    return false;
  if (variable_of(environment, "SLURM_ARRAY_TASK_STEP") &&
      !read_variable(environment, "SLURM_ARRAY_TASK_STEP", &step, message, message_bytes))
    return false;
  if (step < 1 || last < first || (last - first) / step + 1 != count || task < first || (task - first) % step != 0) {
    hs_message_set(
        message, message_bytes,
        "an array of %ld tasks from %ld to %ld does not have equal steps: expected sbatch --array=1-N; scontrol requeue repeats a lost task",
        (long)count, (long)first, (long)last);
    return false;
  }
  *shard = (task - first) / step + 1;
  *shards = count;
  return check_range(*shard, *shards, message, message_bytes);
}

static bool find_by_slurm(const shard_environment *environment, int32_t *shard, int32_t *shards, char *message,
                          size_t message_bytes) {
  if (variable_of(environment, "SLURM_ARRAY_TASK_COUNT"))
    return find_by_array(environment, shard, shards, message, message_bytes);
  if (variable_of(environment, "SLURM_PROCID") && variable_of(environment, "SLURM_NTASKS"))
    return find_by_names(environment, "SLURM_PROCID+1,SLURM_NTASKS", shard, shards, message, message_bytes);
  hs_message_set(message, message_bytes,
                 "there is neither SLURM_ARRAY_TASK_COUNT nor SLURM_PROCID: expected a job array (sbatch --array) or a "
                 "step of several tasks (srun --ntasks)");
  return false;
}

hs_status hs_find_shard(const char *text, hs_variable_function variable, void *user, int32_t *shard, int32_t *shards,
                        char *message, size_t message_bytes) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  const shard_environment environment = {variable, user};
  char reason[2 * SHARD_NAME_BYTES] = "";
  bool found;
  hs_message_set(message, message_bytes, "%s", "");
  if (!text || !shard || !shards) return HS_ERR_ARGUMENT;
  if (strcmp(text, "slurm") == 0) {
    found = find_by_slurm(&environment, shard, shards, reason, sizeof reason);
  } else if (strncmp(text, "env:", 4) == 0) {
    found = find_by_names(&environment, text + 4, shard, shards, reason, sizeof reason);
  } else {
    found = parse_numbers(text, shard, shards);
    snprintf(reason, sizeof reason, "expected I/N with 1 <= I <= N <= %d, slurm, or env:INDEX,COUNT", HS_SHARDS_MAX);
  }
  if (!found) hs_message_set(message, message_bytes, "--shard '%s': %s", text, reason);
  return found ? HS_OK : HS_ERR_ARGUMENT;
}
