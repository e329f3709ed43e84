/*
 * Tables of accuracy as bench/frame/accuracy.sh writes them, read for the page of `bench --html`: Markdown with
 * headings, paragraphs, verbatim text and tables.
 */
#ifndef HARTSIFT_PIPELINE_CLI_ACCURACY_TEXT_H
#define HARTSIFT_PIPELINE_CLI_ACCURACY_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum { ACCURACY_COLUMNS_MAX = 32 };

typedef enum accuracy_kind {
  ACCURACY_HEADING,   /* one part */
  ACCURACY_PARAGRAPH, /* a part for each line */
  ACCURACY_VERBATIM,  /* a part for each line */
  ACCURACY_TABLE      /* `columns` parts for each row, the names of the columns first */
} accuracy_kind;

typedef struct accuracy_block {
  accuracy_kind kind;
  size_t level;        /* of a heading, from 1 */
  size_t columns;      /* of a table, at least 1 */
  size_t first, count; /* its parts */
} accuracy_block;

/* An empty one is all zero. The parts point into text. */
typedef struct accuracy_text {
  char *text;
  const char **parts;
  size_t part_count, part_capacity;
  accuracy_block *blocks;
  size_t block_count, block_capacity;
  size_t tables;
  bool is_too_wide; /* a table has more columns than ACCURACY_COLUMNS_MAX: not read */
} accuracy_text;

/* Between a figure and what it is uncertain by. */
extern const char accuracy_plus_minus[];

/* Reads a file. False, with a message that names it and nothing to free, when it cannot be read, is no
   text, is larger than any such file or has no table. */
bool accuracy_text_read(accuracy_text *accuracy, const char *path, char *message, size_t message_bytes);
/* The same for a text from malloc, which it takes in any case; name: what messages call it. */
bool accuracy_text_take(accuracy_text *accuracy, char *text, const char *name, char *message, size_t message_bytes);
void accuracy_text_free(accuracy_text *accuracy);

/* The cell of a table's row (0: the names of the columns), "" where the row was shorter. */
const char *accuracy_cell(const accuracy_text *accuracy, const accuracy_block *table, size_t row, size_t column);
size_t accuracy_rows(const accuracy_block *table);

/* A cell's number and, after accuracy_plus_minus, what it is uncertain by (else 0). False: the cell has no number. */
bool accuracy_number(const char *cell, double *value, double *uncertainty);

#endif
