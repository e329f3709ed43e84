/*
 * Tables of accuracy as a part of the page of `bench --html`, with plots of what they show.
 */
#ifndef HARTSIFT_PIPELINE_CLI_ACCURACY_HTML_H
#define HARTSIFT_PIPELINE_CLI_ACCURACY_HTML_H

#include <stdbool.h>
#include <stdio.h>

#include "pipeline/cli/bench/accuracy_text.h"

/* Writes a section element. plots: how many the page has so far; counted on. False: out of memory. */
bool accuracy_html_write(FILE *out, const accuracy_text *accuracy, unsigned *plots);

#endif
