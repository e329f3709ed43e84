/*
 * Accuracy in HTML; see accuracy_html.h. The last table under a heading sums up those before it: it is the one that is
 * plotted, all are there as tables.
 */
#include "pipeline/cli/bench/accuracy_html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/cli/bench/html_text.h"
#include "pipeline/cli/bench/svg_plot.h"
#include "pipeline/base/message.h"

enum { ACCURACY_TITLE_BYTES = 512, ACCURACY_HEADING_SHIFT = 1, ACCURACY_HEADING_LAST = 6 };

enum { FAMILY_COLUMNS = 4 }; /* at most */

/* Columns by the names that accuracy.sh gives them, in families of one unit that share a plot. */
typedef struct accuracy_column {
  const char *name, *meaning;
} accuracy_column;

typedef struct accuracy_family {
  const char *title, *axis, *difference_axis;
  svg_scale scale; /* of the figures themselves */
  accuracy_column columns[FAMILY_COLUMNS];
} accuracy_family;

static const accuracy_family families[] = {
    {"shares, higher is better",
     "share",
     "difference of shares",
     SVG_SCALE_TIGHT,
     {{"rep", "repeatability"},
      {"prec", "precision of the matches"},
      {"ms", "matching score"},
      {"mAA", "homographies found, mean over 1, 3 and 5 px"}}},
    {"errors of position, lower is better",
     "pixels",
     "difference in pixels",
     SVG_SCALE_FROM_ZERO,
     {{"err", "mean error of correct matches"}, {"med", "median error of correct matches"}}},
    {"errors of orientation, lower is better",
     "degrees",
     "difference in degrees",
     SVG_SCALE_FROM_ZERO,
     {{"ori", "median error of correct matches"}}},
    {"errors of scale, lower is better",
     "octaves",
     "difference in octaves",
     SVG_SCALE_FROM_ZERO,
     {{"sig", "median error of correct matches"}}},
};
enum { FAMILIES = sizeof families / sizeof families[0] };

typedef struct accuracy_page {
  FILE *out;
  const accuracy_text *accuracy;
  const char *section; /* the last heading of level 2, or "" */
  const char *heading; /* the last heading, or "" */
  unsigned *plots;
} accuracy_page;

/* Index of the column, or the number of columns. */
static size_t find_column(const accuracy_page *page, const accuracy_block *table, const char *name) {
  size_t column = 1; /* the first one names the rows */
  while (column < table->columns && strcmp(accuracy_cell(page->accuracy, table, 0, column), name) != 0) {
    ++column;
  }
  return column;
}

/* An extractor has the same style in all plots: that of its row in the first table that names it. */
static size_t find_style(const accuracy_text *accuracy, const char *name) {
  size_t style = 0;
  for (size_t b = 0; b < accuracy->block_count; ++b) {
    const accuracy_block *table = &accuracy->blocks[b];
    for (size_t row = 1; table->kind == ACCURACY_TABLE && row < accuracy_rows(table); ++row, ++style) {
      if (strcmp(accuracy_cell(accuracy, table, row, 0), name) == 0) {
        return style;
      }
    }
  }
  return style;
}

/* Rows for one column; the number of those that have a figure. */
static size_t fill_rows(const accuracy_page *page, const accuracy_block *table, size_t column,
                        const accuracy_column *named, svg_row *rows) {
  size_t figures = 0;
  for (size_t i = 0; i + 1 < accuracy_rows(table); ++i) {
    const char *cell = accuracy_cell(page->accuracy, table, i + 1, column);
    double value = 0.0, uncertainty = 0.0;
    const bool has_figure = accuracy_number(cell, &value, &uncertainty);
    rows[i] = (svg_row){.label = accuracy_cell(page->accuracy, table, i + 1, 0),
                        .value = has_figure ? value : (double)INFINITY,
                        .low = value - uncertainty,
                        .high = value + uncertainty,
                        .style = find_style(page->accuracy, accuracy_cell(page->accuracy, table, i + 1, 0))};
    hs_message_set(rows[i].figure, sizeof rows[i].figure, "%s", cell);
    if (i == 0) {
      rows[i].group = named->name;
      rows[i].note = named->meaning;
    }
    figures += has_figure;
  }
  return figures;
}

static bool is_difference(const accuracy_page *page, const accuracy_block *table) {
  for (size_t i = table->columns; i < table->count; ++i) {
    if (strstr(page->accuracy->parts[table->first + i], accuracy_plus_minus) != NULL) {
      return true;
    }
  }
  return false;
}

static void write_family(const accuracy_page *page, const accuracy_block *table, const accuracy_family *family,
                         const svg_row *rows, size_t count) {
  char title[ACCURACY_TITLE_BYTES];
  const char *table_name = accuracy_cell(page->accuracy, table, 0, 0);
  const bool differs = is_difference(page, table);
  const bool has_own_heading = page->heading != page->section;
  hs_message_set(title, sizeof title, "%s%s%s: %s, %s", page->section, has_own_heading ? ", " : "",
                 has_own_heading ? page->heading : "", table_name, family->title);
  const svg_plot plot = {.number = ++*page->plots,
                         .title = title,
                         .description =
                             differs ? "A mark for each column and extractor; whiskers reach one standard error to "
                                       "either side. The same figures stand in the table below."
                                     : "A mark for each column and extractor. The same figures stand in the table "
                                       "below.",
                         .axis = differs ? family->difference_axis : family->axis,
                         .scale = differs ? SVG_SCALE_FROM_ZERO : family->scale,
                         .rows = rows,
                         .count = count};
  fputs("<figure><figcaption>", page->out);
  html_write_text(page->out, table_name);
  fprintf(page->out, ": %s%s</figcaption>\n", family->title, differs ? "; whiskers: one standard error" : "");
  svg_plot_write(page->out, &plot);
  fputs("</figure>\n", page->out);
}

static bool write_plots(const accuracy_page *page, const accuracy_block *table) {
  const size_t extractors = accuracy_rows(table) - 1;
  svg_row *rows = extractors > 0 ? calloc(extractors * FAMILY_COLUMNS, sizeof *rows) : NULL;
  if (extractors > 0 && rows == NULL) {
    return false;
  }
  for (size_t f = 0; f < FAMILIES && extractors > 0; ++f) {
    size_t count = 0;
    for (size_t c = 0; c < FAMILY_COLUMNS && families[f].columns[c].name != NULL; ++c) {
      const size_t column = find_column(page, table, families[f].columns[c].name);
      if (column < table->columns && fill_rows(page, table, column, &families[f].columns[c], rows + count) > 0) {
        count += extractors;
      }
    }
    if (count > 0) {
      write_family(page, table, &families[f], rows, count);
    }
  }
  free(rows);
  return true;
}

static void write_table(const accuracy_page *page, const accuracy_block *table) {
  FILE *out = page->out;
  fputs("<details><summary>Table: ", out);
  html_write_text(out, accuracy_cell(page->accuracy, table, 0, 0));
  fputs("</summary>\n<div class=\"wide\"><table>\n<caption>", out);
  html_write_text(out, page->section);
  if (page->heading != page->section) {
    fputs(", ", out);
    html_write_text(out, page->heading);
  }
  fputs(": ", out);
  html_write_text(out, accuracy_cell(page->accuracy, table, 0, 0));
  fputs("</caption>\n<thead><tr>", out);
  for (size_t row = 0; row < accuracy_rows(table); ++row) {
    fputs(row == 0 ? "" : "<tr>", out);
    for (size_t column = 0; column < table->columns; ++column) {
      const char *kind = row == 0 ? "th scope=\"col\"" : column == 0 ? "th scope=\"row\"" : "td";
      fprintf(out, "<%s>", kind);
      html_write_text(out, accuracy_cell(page->accuracy, table, row, column));
      fputs(kind[1] == 'h' ? "</th>" : "</td>", out);
    }
    fputs(row == 0 ? "</tr></thead>\n<tbody>\n" : "</tr>\n", out);
  }
  fputs("</tbody></table></div></details>\n", out);
}

/* No further table before the next heading. */
static bool is_last_table(const accuracy_text *accuracy, size_t block) {
  for (size_t i = block + 1; i < accuracy->block_count && accuracy->blocks[i].kind != ACCURACY_HEADING; ++i) {
    if (accuracy->blocks[i].kind == ACCURACY_TABLE) {
      return false;
    }
  }
  return true;
}

static void write_lines(const accuracy_page *page, const accuracy_block *block, const char *element) {
  fprintf(page->out, "<%s>", element);
  for (size_t i = 0; i < block->count; ++i) {
    fputs(i > 0 ? "\n" : "", page->out);
    html_write_text(page->out, page->accuracy->parts[block->first + i]);
  }
  fprintf(page->out, "</%s>\n", element);
}

static void write_heading(accuracy_page *page, const accuracy_block *block) {
  char element[8];
  const size_t level = block->level + ACCURACY_HEADING_SHIFT;
  snprintf(element, sizeof element, "h%zu", level < ACCURACY_HEADING_LAST ? level : (size_t)ACCURACY_HEADING_LAST);
  page->heading = page->accuracy->parts[block->first];
  page->section = block->level <= 2 ? page->heading : page->section;
  write_lines(page, block, element);
}

bool accuracy_html_write(FILE *out, const accuracy_text *accuracy, unsigned *plots) {
  accuracy_page page = {.out = out, .accuracy = accuracy, .section = "", .heading = "", .plots = plots};
  bool done = true;
  fputs("<section>\n", out);
  page.heading = page.section;
  for (size_t i = 0; i < accuracy->block_count && done; ++i) {
    const accuracy_block *block = &accuracy->blocks[i];
    switch (block->kind) {
    case ACCURACY_HEADING:
      write_heading(&page, block);
      break;
    case ACCURACY_PARAGRAPH:
      write_lines(&page, block, "p");
      break;
    case ACCURACY_VERBATIM:
      write_lines(&page, block, "pre");
      break;
    case ACCURACY_TABLE:
      done = !is_last_table(accuracy, i) || write_plots(&page, block);
      write_table(&page, block);
      break;
    }
  }
  fputs("</section>\n", out);
  return done;
}
