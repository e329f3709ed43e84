/*
 * Plots as inline SVG for an HTML page: a row for each figure with its mark and, where it has a range, a whisker. A
 * plot needs nothing from elsewhere and can be read without its colours: every row carries its name and its figure.
 */
#ifndef HARTSIFT_PIPELINE_CLI_SVG_PLOT_H
#define HARTSIFT_PIPELINE_CLI_SVG_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A row without a group's name belongs to the group of the row before it. Texts need not be escaped. */
typedef struct svg_row {
  const char *group;       /* heading above this row, or null */
  const char *note;        /* after the heading, or null */
  const char *label;       /* left of the plot */
  char figure[48];         /* right of the plot: the value with its unit */
  double value, low, high; /* low == high: no whisker; a value that is not finite or beyond 1e12 gets no mark */
  size_t style;            /* colour and shape of the mark */
} svg_row;

typedef enum svg_scale {
  SVG_SCALE_FROM_ZERO, /* linear, with zero at an end or inside */
  SVG_SCALE_TIGHT,     /* linear, from the least to the greatest */
  SVG_SCALE_WIDE       /* logarithmic where all is positive and spans more than a factor of ten, else from zero */
} svg_scale;

typedef struct svg_plot {
  unsigned number; /* unique in the page: makes the ids */
  const char *title, *description;
  const char *axis; /* what the horizontal axis shows, with its unit */
  svg_scale scale;
  const svg_row *rows;
  size_t count;
} svg_plot;

/* Writes one svg element, in the colours for a light page. */
void svg_plot_write(FILE *out, const svg_plot *plot);

/* Writes CSS that gives the marks the colours for a dark page. */
void svg_plot_write_dark_style(FILE *out);

#endif
