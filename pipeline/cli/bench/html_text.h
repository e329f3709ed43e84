/*
 * Text inside HTML and SVG: file names and other words of users cannot become markup there.
 */
#ifndef HARTSIFT_PIPELINE_CLI_HTML_TEXT_H
#define HARTSIFT_PIPELINE_CLI_HTML_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* Writes text with the characters of markup escaped, for contents and for quoted attributes. Bytes that are no UTF-8,
   and characters that HTML or XML forbids (controls, U+FFFE, U+FFFF), become U+FFFD. */
void html_write_text(FILE *out, const char *text);

/* The same for at most `most` characters; where there are more, the last one is an ellipsis. */
void html_write_start(FILE *out, const char *text, size_t most);

#endif
