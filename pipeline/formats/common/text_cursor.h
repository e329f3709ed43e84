/* Numbers as text, and reading of text files. */
#ifndef HARTSIFT_FORMATS_COMMON_TEXT_CURSOR_H
#define HARTSIFT_FORMATS_COMMON_TEXT_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/formats/common/feature_file.h"

/* ---- numbers as text and back, independent of the locale's decimal point */

/* Room that every writer here needs, and the longest number that is read, characters. */
enum { NUMBER_TEXT_BYTES = 32, NUMBER_TEXT_LONGEST = 100 };

/* Each writes a finite number and returns its length; the text is zero-terminated. */
/* As few digits (6 to 9) as give back the same float. */
size_t number_from_float(float value, char text[NUMBER_TEXT_BYTES]);
/* 12 significant digits, zeros at the end dropped: enough for a float that was shifted or converted in
   double precision to come back as the same float. */
size_t number_from_double(double value, char text[NUMBER_TEXT_BYTES]);
size_t number_from_int(int64_t value, char text[NUMBER_TEXT_BYTES]);

/* A whole text of `size` characters: sign, digits, point, exponent; correctly rounded. False for
   anything else: words such as nan, empty text, more than NUMBER_TEXT_LONGEST characters, or a value
   beyond the range of double. Digits may be missing on one side of the point ("2." and ".5"). */
bool number_to_double(const char *text, size_t size, double *value);
/* A decimal integer with optional sign. */
bool number_to_int(const char *text, size_t size, int64_t *value);

/* What the C library's printf puts between integer and fraction (never empty) is replaced by '.';
   for the fallback paths, and separate so that it can be tested without such a locale. */
size_t number_normalise_point(char *text);

/* ---- Reading of text files that are not trusted: words and numbers, the current line for messages. */

typedef struct text_cursor {
  const feature_source *source;
  const char *at, *end;
  size_t line; /* from 1 */
} text_cursor;

/* Starts at the beginning of the source; a UTF-8 byte order mark is passed over. */
text_cursor cursor_make(const feature_source *source);
/* Sets "path:line: reason" and returns HS_ERR_FORMAT. */
hs_status cursor_fail(const text_cursor *cursor, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
/* Passes over spaces, tabs and carriage returns, with across_lines also over line ends. */
void cursor_skip_blanks(text_cursor *cursor, bool across_lines);
/* True when nothing but blanks and line ends is left; the cursor is at the end then. */
bool cursor_at_end(text_cursor *cursor);
/* The next word of the line (or of the rest, with across_lines); false when there is none. */
bool cursor_word(text_cursor *cursor, bool across_lines, const char **word, size_t *size);
/* The next word as a number; `what` names it in the message. */
hs_status cursor_double(text_cursor *cursor, bool across_lines, const char *what, double *value);
hs_status cursor_int(text_cursor *cursor, bool across_lines, const char *what, int64_t *value);
/* The next field of a line of comma-separated values, without blanks and quotes around it, and the comma after it.
   False at the end of the line. */
bool cursor_field(text_cursor *cursor, const char **field, size_t *size);
/* The next such field, the index-th of its line from 0, as a number. */
hs_status cursor_number_field(text_cursor *cursor, size_t index, double *value);
/* How many of the lines from here on have anything but blanks. */
uint64_t cursor_count_lines(text_cursor cursor);
/* Entry `entry` of a descriptor, a number within 0..255. */
hs_status cursor_descriptor_entry(text_cursor *cursor, bool across_lines, size_t entry, double *value);
/* 128 whole numbers 0..255, which may be written as floats ("12.0"). */
hs_status cursor_descriptor(text_cursor *cursor, bool across_lines, uint8_t *descriptor);
/* Leaves a line in which nothing but blanks is left. */
hs_status cursor_end_line(text_cursor *cursor);

/* A word of the content for a message: cut, its characters printable. */
enum { TEXT_SHOWN_BYTES = 25 };
void text_shown(const char *word, size_t size, char shown[TEXT_SHOWN_BYTES]);

/* Words of the first line that has any, counted up to `limit`; 0 for blank content. *rest, where not
   null, gets the offset behind that line. Looks at no more than the first 64 KiB. */
size_t text_count_words(const uint8_t *bytes, size_t size, size_t limit, size_t *rest);
/* Whether the first word of the text is a number. */
bool text_begins_with_number(const uint8_t *bytes, size_t size);

#endif
