/*
 * Fuzz target for the readers of matches: accepted content has its stated size and is unchanged by the CSV writer; a
 * refusal leaves nothing allocated and gives a reason.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/cli/common/match_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_COUNT_A = 1000, FUZZ_COUNT_B = 70000 };

static void fuzz_require(bool condition) {
  if (!condition) abort();
}

static void fuzz_write_again(const match_table *table) {
  char *bytes = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&bytes, &size);
  fuzz_require(stream != NULL);
  match_table_write(stream, MATCH_FORMAT_CSV, table);
  fuzz_require(fclose(stream) == 0);
  const feature_source source = {
      .path = "again", .bytes = (const uint8_t *)bytes, .size = size, .max_features = 1 << 20};
  match_table again = {0};
  fuzz_require(match_table_read(&source, FUZZ_COUNT_A, FUZZ_COUNT_B, &again) == HS_OK);
  const size_t count = table->matches.count;
  fuzz_require(again.matches.count == count && (again.inliers != NULL) == (table->inliers != NULL));
  if (count > 0) fuzz_require(memcmp(again.matches.pairs, table->matches.pairs, count * sizeof(hs_match_pair)) == 0);
  if (count > 0 && again.inliers) fuzz_require(memcmp(again.inliers, table->inliers, count) == 0);
  match_table_free(&again);
  free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char message[256] = "";
  const feature_source source = {.path = "fuzz",
                                 .bytes = data,
                                 .size = size,
                                 .max_features = 1 << 20,
                                 .message = message,
                                 .message_bytes = sizeof message};
  match_table table = {0};
  if (match_table_read(&source, FUZZ_COUNT_A, FUZZ_COUNT_B, &table) != HS_OK) {
    fuzz_require(!table.matches.pairs && !table.inliers && message[0] != '\0');
    return 0;
  }
  for (size_t i = 0; i < table.matches.count; i++) {
    const hs_match_pair *pair = &table.matches.pairs[i];
    fuzz_require(pair->first < FUZZ_COUNT_A && pair->second < FUZZ_COUNT_B && pair->distance >= 0.0f);
    fuzz_require(!table.inliers || table.inliers[i] <= 1);
  }
  fuzz_write_again(&table);
  match_table_free(&table);
  return 0;
}
