/*
 * Suggestions for mistyped names; see suggestion.h.
 */
#include "pipeline/cli/options/suggestion.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 32 };

static size_t min2(size_t a, size_t b) { return a < b ? a : b; }

/* Insertions, deletions, replacements and swaps of neighbours that lead from one name to the other (Damerau 1964); names
   that are too long count as far apart. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
  size_t rows[3][NAME_BYTES + 1];
  if (a_length > NAME_BYTES || b_length > NAME_BYTES) return NAME_BYTES;
  for (size_t k = 0; k <= b_length; k++) rows[0][k] = k;
  for (size_t i = 1; i <= a_length; i++) {
    size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *above_that = rows[(i + 1) % 3];
    row[0] = i;
    for (size_t k = 1; k <= b_length; k++) {
      row[k] = min2(min2(above[k], row[k - 1]) + 1, above[k - 1] + (a[i - 1] != b[k - 1]));
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1]) row[k] = min2(row[k], above_that[k - 2] + 1);
    }
  }
  return rows[a_length % 3][b_length];
}

/* Keeps the closer one of *best and name. */
static void compare(const char *typed, size_t length, const char *name, const char **best, size_t *best_distance) {
  const size_t distance = edit_distance(typed, length, name, strlen(name));
  /* More than a third of the letters wrong is another word. */
  if (distance < *best_distance && 3 * distance <= length + 1) {
    *best = name;
    *best_distance = distance;
  }
}

static void write_suggestion(const char *best, const char *dashes, char *text, size_t bytes) {
  text[0] = '\0';
  if (best) snprintf(text, bytes, ", did you mean '%s%s'?", dashes, best);
}

void suggest_command(const char *typed, char *text, size_t bytes) {
  const char *best = NULL;
  size_t distance = NAME_BYTES;
  for (int id = COMMAND_TOP + 1; id < COMMAND_COUNT; id++)
    compare(typed, strlen(typed), command_get((command_id)id)->name, &best, &distance);
  compare(typed, strlen(typed), "help", &best, &distance);
  compare(typed, strlen(typed), "version", &best, &distance);
  write_suggestion(best, "", text, bytes);
}

void suggest_option(command_id command, const char *typed, size_t length, char *text, size_t bytes) {
  const char *best = NULL;
  size_t distance = NAME_BYTES;
  for (int id = 0; id < OPTION_COUNT; id++)
    if (option_belongs_to((option_id)id, command))
      compare(typed, length, option_get((option_id)id)->name, &best, &distance);
  write_suggestion(best, "--", text, bytes);
}
