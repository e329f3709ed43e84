/* Numbers as text, independent of the locale, and a cursor over untrusted text files. */
#ifndef HARTSIFT_FORMATS_COMMON_TEXT_CURSOR_H
#define HARTSIFT_FORMATS_COMMON_TEXT_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/formats/common/feature_file.h"

/* ---- numbers as text and back, independent of the locale's decimal point */

/* Buffer size of all writers below, and maximum length of a number that is parsed, in characters. */
enum { NUMBER_TEXT_BYTES = 32, NUMBER_TEXT_LONGEST = 100 };

/* Each function writes a finite number, zero-terminated, and returns its length. */
/* Writes the fewest digits (6 to 9) that restore the same float. */
size_t number_from_float(float value, char text[NUMBER_TEXT_BYTES]);
/* Writes 12 significant digits without trailing zeros: enough to restore a float that was shifted or converted in
   double precision. */
size_t number_from_double(double value, char text[NUMBER_TEXT_BYTES]);
size_t number_from_int(int64_t value, char text[NUMBER_TEXT_BYTES]);
/* Writes 15 to 17 significant digits, as many as restore the same double. */
size_t number_from_double_exactly(double value, char text[NUMBER_TEXT_BYTES]);

/* Parses a text of `size` characters: sign, digits, point, exponent; correctly rounded. False for any other text: words
   such as nan, an empty text, more than NUMBER_TEXT_LONGEST characters, values beyond the range of double. Digits may
   be missing on one side of the point ("2." and ".5"). */
bool number_to_double(const char *text, size_t size, double *value);
/* Parses a decimal integer with an optional sign. */
bool number_to_int(const char *text, size_t size, int64_t *value);

/* Replaces the locale's decimal point (never empty) by '.'. Used by the fallback paths; a separate function, so that it
   can be tested without such a locale. */
size_t number_normalise_point(char *text);

/* ---- Cursor over an untrusted text file: words, numbers, and the current line for messages. */

typedef struct text_cursor {
  const feature_source *source;
  const char *at, *end;
  size_t line; /* line number, from 1 on */
} text_cursor;

/* Starts at the beginning of the source; skips a UTF-8 byte order mark. */
text_cursor cursor_make(const feature_source *source);
/* Sets the message "path:line: reason", and returns HS_ERR_FORMAT. */
hs_status cursor_fail(const text_cursor *cursor, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
/* Skips spaces, tabs and carriage returns; with across_lines also line ends. */
void cursor_skip_blanks(text_cursor *cursor, bool across_lines);
/* True if only blanks and line ends are left; the cursor then moves to the end. */
bool cursor_at_end(text_cursor *cursor);
/* Takes the next word of the line, or if across_lines, the next word of the text. False if there is none. */
bool cursor_word(text_cursor *cursor, bool across_lines, const char **word, size_t *size);
/* Takes the next word as a number; `what` names it in the message. */
hs_status cursor_double(text_cursor *cursor, bool across_lines, const char *what, double *value);
hs_status cursor_int(text_cursor *cursor, bool across_lines, const char *what, int64_t *value);
/* Takes the next comma-separated field of the line, without the blanks and quotes around it. False at the end of the
   line. */
bool cursor_field(text_cursor *cursor, const char **field, size_t *size);
/* Takes the next field as a number. index: number of the field in the line, from 0. */
hs_status cursor_number_field(text_cursor *cursor, size_t index, double *value);
/* Counts the non-blank lines from the cursor's position on. */
uint64_t cursor_count_lines(text_cursor cursor);
/* Takes entry number `entry` of a descriptor, which must be within 0..255. */
hs_status cursor_descriptor_entry(text_cursor *cursor, bool across_lines, size_t entry, double *value);
/* Takes 128 whole numbers 0..255, which may be written as floats ("12.0"). */
hs_status cursor_descriptor(text_cursor *cursor, bool across_lines, uint8_t *descriptor);
/* Ends a line. Only blanks may be left in it. */
hs_status cursor_end_line(text_cursor *cursor);

/* Copies a word for a message: shortened, with printable characters only. */
enum { TEXT_SHOWN_BYTES = 25 };
void text_shown(const char *word, size_t size, char shown[TEXT_SHOWN_BYTES]);

/* Counts the words of the first non-blank line, up to `limit`; 0 for blank content. *rest (if not null): offset after
   that line. Reads only the first 64 KiB. */
size_t text_count_words(const uint8_t *bytes, size_t size, size_t limit, size_t *rest);
/* True if the first word of the text is a number. */
bool text_begins_with_number(const uint8_t *bytes, size_t size);

#endif
