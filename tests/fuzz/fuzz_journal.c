/*
 * Fuzz target for journals and manifests of `batch`. Reading twice gives the same result; an accepted row belongs to
 * the list. A journal is tried again with corrected checksums of its rows, which random changes would never produce.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/cli/batch/batch_rows.h"
#include "pipeline/formats/common/content_digest.h"
#include "tests/fuzz/input_bytes.h"

static const char fuzz_settings[] = "method=2 format=npz profile=lowe";

static void recall(batch_manifest *manifest, const char *text, size_t size, bool is_journal) {
  const char *settings = NULL;
  bool differ = false, again_differ = false;
  const size_t count = manifest->list->count;
  memset(manifest->records, 0, count * sizeof *manifest->records);
  const size_t whole = batch_recall_text(manifest, text, size, is_journal, &differ, &settings);
  fuzz_require(whole <= size);
  for (size_t i = 0; i < count; i++) {
    const batch_record *record = &manifest->records[i];
    fuzz_require(record->state == BATCH_PENDING || (record->state == BATCH_CLAIMED && record->status == HS_OK));
    fuzz_require(record->width >= 0 && record->height >= 0 && !record->message);
  }
  if (differ) {
    char words[CLI_MESSAGE_BYTES];
    fuzz_require(settings >= text && (size_t)(settings - text) + whole <= size);
    batch_list_differences(settings, whole, fuzz_settings, strlen(fuzz_settings), words);
    batch_list_differences(fuzz_settings, strlen(fuzz_settings), settings, whole, words);
    return;
  }
  fuzz_require(batch_recall_text(manifest, text, whole, is_journal, &again_differ, &settings) == whole &&
               !again_differ);
}

/* Returns the text with the last field of each line after the header replaced by the line's checksum. The text comes
 * from malloc. */
static char *repair(const char *text, size_t size, size_t *repaired) {
  char *out = NULL;
  FILE *stream = open_memstream(&out, repaired);
  fuzz_require(stream != NULL);
  size_t number = 0;
  for (const char *at = text, *end = text + size; at < end; number++) {
    const char *line_end = memchr(at, '\n', (size_t)(end - at));
    if (!line_end) line_end = end;
    const char *comma = line_end;
    while (comma > at && comma[-1] != ',') comma--;
    if (number < 3 || comma == at)
      fwrite(at, 1, (size_t)(line_end - at), stream);
    else
      fprintf(stream, "%.*s,%08" PRIx32, (int)(comma - 1 - at), at, crc_zip(0, at, (size_t)(comma - 1 - at)));
    if (line_end < end) fputc('\n', stream);
    at = line_end + (line_end < end);
  }
  fuzz_require(fclose(stream) == 0);
  return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static batch_list list;
  static batch_manifest manifest;
  static batch_image_name images[] = {
      {.name = "a.jpg"}, {.name = "b, c.jpg"}, {.name = "\"d\".png"}, {.name = "sub/e.pgm"}};
  static size_t by_name[] = {2, 0, 1, 3};
  if (!list.images) {
    list = (batch_list){.images = images, .count = sizeof images / sizeof images[0], .by_name = by_name};
    fuzz_require(batch_manifest_make(&manifest, &list, "manifest", 1, 1, fuzz_settings) == CLI_DONE);
  }
  if (size == 0) return 0;
  /* The copy ends with the text, without a terminating zero, so that a sanitizer detects reads past the end. */
  char *text = malloc(size);
  fuzz_require(text != NULL);
  memcpy(text, data + 1, size - 1);
  const bool is_journal = (data[0] & 1u) != 0;
  recall(&manifest, text, size - 1, is_journal);
  for (; manifest.gone_count > 0; manifest.gone_count--) free(manifest.gone[manifest.gone_count - 1]);
  if (is_journal) {
    size_t repaired_size = 0;
    char *repaired = repair(text, size - 1, &repaired_size);
    recall(&manifest, repaired, repaired_size, true);
    free(repaired);
  }
  text[size - 1] = '\0';
  (void)batch_is_manifest_name(text, "manifest");
  free(text);
  return 0;
}
