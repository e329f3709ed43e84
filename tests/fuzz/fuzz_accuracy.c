/*
 * Fuzz target of the tables of accuracy and their page: what is read can be written as HTML in which no character of the
 * file is markup; what is refused leaves nothing behind and a reason.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/cli/bench/accuracy_html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_require(bool condition) {
  if (!condition) abort();
}

static size_t count_text(const char *text, const char *part) {
  size_t count = 0;
  for (const char *found = strstr(text, part); found != NULL; found = strstr(found + 1, part)) {
    ++count;
  }
  return count;
}

static void write_page(const accuracy_text *accuracy) {
  char *page = NULL;
  size_t size = 0;
  unsigned plots = 0;
  FILE *stream = open_memstream(&page, &size);
  fuzz_require(stream != NULL && accuracy_html_write(stream, accuracy, &plots) && fclose(stream) == 0);
  fuzz_require(strlen(page) == size);
  fuzz_require(count_text(page, "<table>") == accuracy->tables && count_text(page, "</table>") == accuracy->tables);
  fuzz_require(count_text(page, "<svg ") == plots && count_text(page, "</svg>") == plots);
  fuzz_require(count_text(page, "<") == count_text(page, ">") && count_text(page, "<script") == 0);
  free(page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char message[256] = "";
  accuracy_text accuracy;
  char *text = malloc(size + 1);
  fuzz_require(text != NULL);
  memcpy(text, data, size);
  text[size] = '\0'; /* a zero before ends the text here; accuracy_text_read refuses it */
  if (accuracy_text_take(&accuracy, text, "fuzz", message, sizeof message)) {
    fuzz_require(accuracy.tables > 0);
    write_page(&accuracy);
  } else {
    fuzz_require(accuracy.text == NULL && accuracy.parts == NULL && accuracy.blocks == NULL && message[0] != '\0');
  }
  accuracy_text_free(&accuracy);
  return 0;
}
