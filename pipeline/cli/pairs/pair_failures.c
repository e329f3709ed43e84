/*
 * Reasons of failed pairs; see pair_failures.h.
 */
#include "pipeline/cli/pairs/pair_failures.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool pair_failures_begin(pair_failures *failures, const database_images *images) {
  *failures = (pair_failures){.images = images,
                              .of_image = calloc(images->count + 1, sizeof *failures->of_image),
                              .is_told = calloc(images->count + 1, sizeof *failures->is_told)};
  return failures->of_image && failures->is_told;
}

void pair_failures_free(pair_failures *failures) {
  for (size_t i = 0; failures->of_image && i < failures->images->count; i++) free(failures->of_image[i]);
  for (size_t i = 0; i < failures->reason_count; i++) free(failures->reasons[i].text);
  free(failures->of_image);
  free(failures->is_told);
  *failures = (pair_failures){0};
}

void pair_failures_blame(pair_failures *failures, uint32_t image, const char *sentence) {
  if (!failures->of_image[image])
    failures->of_image[image] = strdup(sentence); /* null: the pair's message is printed */
}

/* Sentences that differ in their numbers alone are one reason. */
static bool is_same_reason(const char *one, const char *other) {
  while (*one != '\0' && *other != '\0') {
    const bool numbers = isdigit((unsigned char)*one) && isdigit((unsigned char)*other);
    if (!numbers && *one != *other) return false;
    if (numbers) {
      one += strspn(one, "0123456789");
      other += strspn(other, "0123456789");
    } else {
      one++;
      other++;
    }
  }
  return *one == *other;
}

/* The reason's entry; null: there is no room for it. *is_new: it was made now. */
static pair_reason *find_reason(pair_failures *failures, const char *message, bool *is_new) {
  *is_new = false;
  for (size_t i = 0; i < failures->reason_count; i++)
    if (is_same_reason(failures->reasons[i].text, message)) return &failures->reasons[i];
  char *text = failures->reason_count < PAIR_REASONS_MAX ? strdup(message) : NULL;
  if (!text) return NULL;
  *is_new = true;
  failures->reasons[failures->reason_count] = (pair_reason){.text = text};
  return &failures->reasons[failures->reason_count++];
}

void pair_failures_tell(pair_failures *failures, hs_image_pair pair, const char *message) {
  const uint32_t both[2] = {pair.first, pair.second};
  bool is_blamed = false, is_new;
  for (int i = 0; i < 2; i++) {
    const uint32_t image = both[i];
    if (!failures->of_image[image]) continue;
    is_blamed = true;
    if (!failures->is_told[image])
      cli_error(COMMAND_MATCH, "%s: none of its pairs can be matched", failures->of_image[image]);
    failures->is_told[image] = true;
  }
  if (is_blamed) return;
  pair_reason *reason = find_reason(failures, message, &is_new);
  if (!reason)
    failures->further++;
  else if (!is_new)
    reason->further++;
  else
    cli_error(COMMAND_MATCH, "%s and %s: %s", failures->images->each[pair.first].name,
              failures->images->each[pair.second].name, message);
}

void pair_failures_end(const pair_failures *failures) {
  for (size_t i = 0; i < failures->reason_count; i++) {
    const pair_reason *reason = &failures->reasons[i];
    if (reason->further > 0)
      cli_error(COMMAND_MATCH, "%zu more pair%s: %s", reason->further, reason->further == 1 ? "" : "s", reason->text);
  }
  if (failures->further > 0)
    cli_error(COMMAND_MATCH, "%zu more pair%s failed for other reasons", failures->further,
              failures->further == 1 ? "" : "s");
}
