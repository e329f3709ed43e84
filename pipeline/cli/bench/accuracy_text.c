/*
 * Reading of accuracy tables; see accuracy_text.h. The text is cut into its parts where it lies.
 */
#include "pipeline/cli/bench/accuracy_text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/message.h"

enum { ACCURACY_BYTES_MAX = 1 << 20 };

static const char accuracy_fence[] = "```";
const char accuracy_plus_minus[] = "\xC2\xB1"; /* the sign, in UTF-8 */

/* Room for one more item; false without memory. */
static bool grow(void **items, size_t count, size_t *capacity, size_t item_bytes) {
  if (count < *capacity) {
    return true;
  }
  const size_t wanted = *capacity == 0 ? 64 : 2 * *capacity; /* bounded by the file's size */
  void *larger = realloc(*items, wanted * item_bytes);
  if (larger == NULL) {
    return false;
  }
  *items = larger;
  *capacity = wanted;
  return true;
}

static bool add_block(accuracy_text *accuracy, accuracy_kind kind, size_t level) {
  void *blocks = accuracy->blocks;
  const bool fits = grow(&blocks, accuracy->block_count, &accuracy->block_capacity, sizeof *accuracy->blocks);
  accuracy->blocks = blocks;
  if (fits) {
    accuracy->blocks[accuracy->block_count++] =
        (accuracy_block){.kind = kind, .level = level, .first = accuracy->part_count};
  }
  return fits;
}

/* To the last block. */
static bool add_part(accuracy_text *accuracy, const char *part) {
  void *parts = (void *)accuracy->parts;
  const bool fits = grow(&parts, accuracy->part_count, &accuracy->part_capacity, sizeof *accuracy->parts);
  accuracy->parts = (const char **)parts;
  if (fits) {
    accuracy->parts[accuracy->part_count++] = part;
    ++accuracy->blocks[accuracy->block_count - 1].count;
  }
  return fits;
}

static bool is_blank(char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; }

/* Cuts blanks off both ends. */
static char *trim(char *text) {
  while (is_blank(*text)) {
    ++text;
  }
  for (size_t length = strlen(text); length > 0 && is_blank(text[length - 1]); --length) {
    text[length - 1] = '\0';
  }
  return text;
}

/* The line between names and rows, "|---|--:|". */
static bool is_rule(const char *line) { return strchr(line, '-') != NULL && line[strspn(line, "|-: \t")] == '\0'; }

/* One row, "| a | b |", of the table that is the last block. */
static bool add_row(accuracy_text *accuracy, char *line) {
  const size_t block = accuracy->block_count - 1;
  const size_t columns = accuracy->blocks[block].columns; /* 0: this row tells */
  if (columns > 0 && accuracy->blocks[block].count == columns && is_rule(line)) {
    return true;
  }
  size_t cells = 0;
  char *cell = line + 1;
  while (*cell != '\0' && (columns == 0 || cells < columns)) {
    accuracy->is_too_wide = cells == ACCURACY_COLUMNS_MAX;
    if (accuracy->is_too_wide) {
      return false;
    }
    char *end = strchr(cell, '|');
    char *next = end != NULL ? end + 1 : cell + strlen(cell);
    if (end != NULL) {
      *end = '\0';
    }
    if (!add_part(accuracy, trim(cell))) {
      return false;
    }
    ++cells;
    cell = next;
  }
  for (; cells < (columns > 0 ? columns : 1); ++cells) {
    if (!add_part(accuracy, "")) {
      return false;
    }
  }
  if (columns == 0) {
    accuracy->blocks[block].columns = cells;
    ++accuracy->tables;
  }
  return true;
}

static bool add_line_to(accuracy_text *accuracy, accuracy_kind kind, bool continues, char *line) {
  return (continues || add_block(accuracy, kind, 0)) &&
         (kind == ACCURACY_TABLE ? add_row(accuracy, line) : add_part(accuracy, line));
}

/* is_verbatim, continues: between fences; the last block goes on. Both are for the next line. */
static bool add_line(accuracy_text *accuracy, char *line, bool *is_verbatim, bool *continues) {
  char *trimmed = trim(line);
  if (strncmp(trimmed, accuracy_fence, sizeof accuracy_fence - 1) == 0) {
    *is_verbatim = !*is_verbatim;
    *continues = false;
    return !*is_verbatim || add_block(accuracy, ACCURACY_VERBATIM, 0);
  }
  if (*is_verbatim) {
    return add_part(accuracy, line); /* with its indent */
  }
  if (*trimmed == '\0') {
    *continues = false;
    return true;
  }
  const size_t level = strspn(trimmed, "#");
  if (level > 0) {
    *continues = false;
    return add_block(accuracy, ACCURACY_HEADING, level) && add_part(accuracy, trim(trimmed + level));
  }
  const accuracy_kind kind = *trimmed == '|' ? ACCURACY_TABLE : ACCURACY_PARAGRAPH;
  const bool goes_on = *continues && accuracy->blocks[accuracy->block_count - 1].kind == kind;
  *continues = true;
  return add_line_to(accuracy, kind, goes_on, trimmed);
}

static bool cut(accuracy_text *accuracy) {
  bool is_verbatim = false;
  bool continues = false;
  for (char *line = accuracy->text; *line != '\0';) {
    const size_t length = strcspn(line, "\n");
    char *next = line + length + (line[length] == '\n');
    line[length] = '\0';
    if (!add_line(accuracy, line, &is_verbatim, &continues)) {
      return false;
    }
    line = next;
  }
  return true;
}

/* Reads the stream into text, of ACCURACY_BYTES_MAX + 1 bytes, and puts a zero after it. */
static bool read_text(FILE *stream, char *text, const char *path, char *message, size_t message_bytes) {
  const size_t size = fread(text, 1, ACCURACY_BYTES_MAX + 1, stream);
  if (ferror(stream)) {
    hs_message_set_errno(message, message_bytes, errno, "%s: cannot be read", path);
    return false;
  }
  if (size > ACCURACY_BYTES_MAX || memchr(text, '\0', size) != NULL) {
    hs_message_set(message, message_bytes, "%s: not a table of accuracy: %s", path,
                   size > ACCURACY_BYTES_MAX ? "larger than 1 MiB" : "no text");
    return false;
  }
  text[size] = '\0';
  return true;
}

/* The file's bytes and a zero after them. */
static char *load(const char *path, char *message, size_t message_bytes) {
  FILE *stream = fopen(path, "rb");
  if (stream == NULL) {
    hs_message_set_errno(message, message_bytes, errno, "%s: cannot be read", path);
    return NULL;
  }
  char *text = malloc(ACCURACY_BYTES_MAX + 1);
  if (text == NULL) {
    hs_message_set(message, message_bytes, "%s: no memory to read it", path);
  } else if (!read_text(stream, text, path, message, message_bytes)) {
    free(text);
    text = NULL;
  }
  fclose(stream);
  return text;
}

bool accuracy_text_take(accuracy_text *accuracy, char *text, const char *name, char *message, size_t message_bytes) {
  *accuracy = (accuracy_text){.text = text};
  const bool done = cut(accuracy);
  if (done && accuracy->tables > 0) {
    return true;
  }
  hs_message_set(message, message_bytes, "%s: %s", name,
                 accuracy->is_too_wide ? "not a table of accuracy: too many columns"
                 : !done               ? "no memory for its tables"
                         : "not a table of accuracy: expected a file as bench/frame/accuracy.sh writes it");
  accuracy_text_free(accuracy);
  return false;
}

bool accuracy_text_read(accuracy_text *accuracy, const char *path, char *message, size_t message_bytes) {
  char *text = load(path, message, message_bytes);
  *accuracy = (accuracy_text){0};
  return text != NULL && accuracy_text_take(accuracy, text, path, message, message_bytes);
}

void accuracy_text_free(accuracy_text *accuracy) {
  free(accuracy->text);
  free((void *)accuracy->parts);
  free(accuracy->blocks);
  *accuracy = (accuracy_text){0};
}

const char *accuracy_cell(const accuracy_text *accuracy, const accuracy_block *table, size_t row, size_t column) {
  return accuracy->parts[table->first + row * table->columns + column];
}

size_t accuracy_rows(const accuracy_block *table) { return table->count / table->columns; }

bool accuracy_number(const char *cell, double *value, double *uncertainty) {
  char *end = NULL;
  *value = strtod(cell, &end);
  *uncertainty = 0.0;
  if (end == cell || !isfinite(*value)) {
    return false;
  }
  end += strspn(end, " ");
  if (strncmp(end, accuracy_plus_minus, sizeof accuracy_plus_minus - 1) != 0) {
    return *end == '\0';
  }
  char *rest = end + sizeof accuracy_plus_minus - 1;
  *uncertainty = fabs(strtod(rest, &end));
  if (end == rest || !isfinite(*uncertainty)) {
    *uncertainty = 0.0;
  }
  return true;
}
