/*
 * Plots of rows with marks and whiskers; see svg_plot.h. Lengths are in the units of the SVG's view box.
 */
#include "pipeline/cli/bench/svg_plot.h"

#include <math.h>
#include <string.h>

#include "pipeline/cli/bench/html_text.h"

enum {
  PLOT_WIDTH = 760,
  PLOT_LEFT = 236,        /* of the axis: room for the labels */
  PLOT_FIGURE_LEAST = 84, /* room for the figures */
  PLOT_FIGURE_CHARACTERS = 26,
  PLOT_FIGURE_GAP = 24,
  PLOT_ROW_HEIGHT = 22,
  PLOT_GROUP_HEIGHT = 34,
  PLOT_TOP = 4,
  PLOT_TOP_WITH_TICKS = 26,
  PLOT_BOTTOM = 48,
  PLOT_LABEL_CHARACTERS = 36,
  PLOT_GROUP_CHARACTERS = 70,
  PLOT_TICKS_MAX = 64,
  PLOT_TALL_ROWS = 20, /* from here on the ticks are repeated above */
  PLOT_SHAPES = 5
};

static const double plot_largest = 1e12; /* differences of values stay finite, ticks distinct */
static const double plot_log_span = 10.0;
static const double plot_character_width = 7.4; /* of a digit, in a wide font of this size */

/* Contrast of at least 3:1 with the page's background; any two at least 30 apart in CIELAB, also as readers without
   red, green or blue cones see them. */
static const char *const plot_light_colours[] = {"#1c1ce4", "#7d0707", "#12a67a", "#e35cd0", "#a79209", "#140e27"};
static const char *const plot_dark_colours[] = {"#3d66ff", "#e85a0a", "#2ff0a4", "#ff8fe2", "#f2f23a", "#80705e"};
enum { PLOT_COLOURS = sizeof plot_light_colours / sizeof plot_light_colours[0] };
_Static_assert(sizeof plot_dark_colours == sizeof plot_light_colours, "a dark colour for each light one");

typedef struct plot_axis {
  bool is_log;
  double low, high; /* ends, low < high; decimal logarithms where is_log */
  double right;     /* where the axis ends */
  double ticks[PLOT_TICKS_MAX];
  size_t tick_count;
} plot_axis;

static bool is_shown(const svg_row *row) {
  return isfinite(row->value) && fabs(row->value) <= plot_largest && isfinite(row->low) && isfinite(row->high) &&
         fabs(row->low) <= plot_largest && fabs(row->high) <= plot_largest;
}

static void find_range(const svg_plot *plot, double *low, double *high) {
  bool any = false;
  for (size_t i = 0; i < plot->count; ++i) {
    const svg_row *row = &plot->rows[i];
    if (is_shown(row)) {
      const double least = fmin(row->low, row->value);
      const double greatest = fmax(row->high, row->value);
      *low = any ? fmin(*low, least) : least;
      *high = any ? fmax(*high, greatest) : greatest;
      any = true;
    }
  }
  if (!any) {
    *low = 0.0;
    *high = 1.0;
  }
}

/* The least of 1, 2, 5, 10 times a power of ten that is no less than the number, which is positive. */
static double round_step(double number) {
  const double power = pow(10.0, floor(log10(number)));
  const double part = number / power;
  return power * (part <= 1.0 ? 1.0 : part <= 2.0 ? 2.0 : part <= 5.0 ? 5.0 : 10.0);
}

static void make_linear(plot_axis *axis, double low, double high) {
  enum { STEPS = 5 };
  if (!(high - low > 1e-9 * fmax(fabs(low), fabs(high)))) { /* all alike: some room around it */
    const double room = low != 0.0 ? 0.5 * fabs(low) : 1.0;
    low = low > 0.0 ? low - room : low;
    high += room;
  }
  const double step = round_step((high - low) / STEPS);
  axis->low = step * floor(low / step + 1e-9);
  axis->high = step * ceil(high / step - 1e-9);
  for (size_t i = 0; i < PLOT_TICKS_MAX; ++i) {
    const double tick = axis->low + (double)i * step;
    if (tick > axis->high + 0.5 * step) {
      break;
    }
    axis->ticks[axis->tick_count++] = fabs(tick) < 1e-6 * step ? 0.0 : tick;
  }
}

/* The greatest of 1, 2, 5 times a power of ten that is no greater than the number, which is positive. */
static double round_down(double number) {
  const double power = pow(10.0, floor(log10(number)));
  const double part = number / power;
  return power * (part >= 5.0 ? 5.0 : part >= 2.0 ? 2.0 : 1.0);
}

/* Ends at 1, 2 or 5 times a power of ten; ticks at all of these, over many decades at the powers alone, at most ten. */
static void make_log(plot_axis *axis, double low, double high) {
  static const double parts[] = {1.0, 2.0, 5.0};
  enum { FEW_DECADES = 3, MANY_DECADES = 10 };
  const double least = round_down(low) * (1.0 - 1e-9);
  const double greatest = round_step(high) * (1.0 + 1e-9);
  const int first = (int)floor(log10(low));
  const int last = (int)floor(log10(greatest));
  const int decades = last - first + 1;
  const size_t parts_used = decades <= FEW_DECADES ? sizeof parts / sizeof parts[0] : 1;
  axis->is_log = true;
  axis->low = log10(least);
  axis->high = log10(greatest);
  for (int decade = first; decade <= last; decade += 1 + decades / MANY_DECADES) {
    for (size_t part = 0; part < parts_used; ++part) {
      const double tick = parts[part] * pow(10.0, (double)decade);
      if (tick >= least && tick <= greatest && axis->tick_count < PLOT_TICKS_MAX) {
        axis->ticks[axis->tick_count++] = tick;
      }
    }
  }
}

/* Leaves room for the longest figure. */
static double axis_right(const svg_plot *plot) {
  size_t longest = 0;
  for (size_t i = 0; i < plot->count; ++i) {
    const size_t length = strlen(plot->rows[i].figure);
    longest = length > longest ? length : longest;
  }
  longest = longest < PLOT_FIGURE_CHARACTERS ? longest : PLOT_FIGURE_CHARACTERS;
  return PLOT_WIDTH - PLOT_FIGURE_GAP - fmax(PLOT_FIGURE_LEAST, plot_character_width * (double)longest);
}

static bool has_ticks_above(const svg_plot *plot) { return plot->count > PLOT_TALL_ROWS; }

static double rows_top(const svg_plot *plot) { return has_ticks_above(plot) ? PLOT_TOP_WITH_TICKS : PLOT_TOP; }

static void make_axis(const svg_plot *plot, plot_axis *axis) {
  double low = 0.0, high = 1.0;
  find_range(plot, &low, &high);
  *axis = (plot_axis){.right = axis_right(plot)};
  if (plot->scale == SVG_SCALE_WIDE && low > 0.0 && high > plot_log_span * low) {
    make_log(axis, low, high);
  } else if (plot->scale == SVG_SCALE_TIGHT) {
    make_linear(axis, low, high);
  } else {
    make_linear(axis, fmin(low, 0.0), fmax(high, 0.0));
  }
}

static double place(const plot_axis *axis, double value) {
  const double at = axis->is_log ? log10(value) : value;
  return PLOT_LEFT + (axis->right - PLOT_LEFT) * (at - axis->low) / (axis->high - axis->low);
}

static void write_text_element(FILE *out, double x, double y, const char *attributes, const char *text, size_t most) {
  fprintf(out, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, attributes);
  html_write_start(out, text, most);
  fputs("</text>\n", out);
}

/* A vertical line behind the rows of each group, but not behind their headings. */
static void write_grid_line(FILE *out, const svg_plot *plot, double x, bool is_zero) {
  double y = rows_top(plot);
  fputs("<path d=\"", out);
  for (size_t i = 0; i < plot->count; ++i) {
    if (plot->rows[i].group != NULL || i == 0) {
      y += plot->rows[i].group != NULL ? PLOT_GROUP_HEIGHT : 0;
      fprintf(out, "M%.1f,%.1f", x, y - 2.0);
    }
    y += PLOT_ROW_HEIGHT;
    if (i + 1 == plot->count || plot->rows[i + 1].group != NULL) {
      fprintf(out, "V%.1f", y + 2.0);
    }
  }
  fprintf(out, "\" stroke=\"currentColor\" stroke-opacity=\"%s\"/>\n", is_zero ? "0.6" : "0.2");
}

static void write_ticks(FILE *out, const svg_plot *plot, const plot_axis *axis, double bottom) {
  for (size_t i = 0; i < axis->tick_count; ++i) {
    char number[32];
    const double tick = axis->ticks[i];
    const double x = place(axis, tick);
    write_grid_line(out, plot, x, tick == 0.0);
    snprintf(number, sizeof number, "%.6g", tick);
    write_text_element(out, x, bottom + 17.0, " text-anchor=\"middle\"", number, sizeof number);
    if (has_ticks_above(plot)) {
      write_text_element(out, x, rows_top(plot) - 8.0, " text-anchor=\"middle\"", number, sizeof number);
    }
  }
}

/* A mark of about nine units across, around (x, y). */
static void write_mark(FILE *out, size_t style, double x, double y) {
  static const char *const polygons[PLOT_SHAPES - 1] = {
      "M-4.2,-4.2H4.2V4.2H-4.2Z",    /* square */
      "M0,-5.4L5.2,4.2H-5.2Z",       /* triangle */
      "M0,-5.8L5.8,0L0,5.8L-5.8,0Z", /* diamond */
      "M-5.2,-4.2H5.2L0,5.4Z",       /* triangle, point down */
  };
  const size_t shape = style % PLOT_SHAPES;
  if (shape == 0) {
    fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.8\"/>\n", x, y);
  } else {
    fprintf(out, "<path d=\"%s\" transform=\"translate(%.1f,%.1f)\"/>\n", polygons[shape - 1], x, y);
  }
}

static void write_whisker(FILE *out, double from, double to, double y) {
  fprintf(out, "<path d=\"M%.1f,%.1fV%.1fM%.1f,%.1fH%.1fM%.1f,%.1fV%.1f\" fill=\"none\" stroke-width=\"1.6\"/>\n", from,
          y - 4.0, y + 4.0, from, y, to, to, y - 4.0, y + 4.0);
}

static void write_row(FILE *out, const plot_axis *axis, const svg_row *row, double y) {
  const size_t colour = row->style % PLOT_COLOURS;
  fputs("<g><title>", out);
  html_write_text(out, row->label);
  fputs(": ", out);
  html_write_text(out, row->figure);
  fputs("</title>\n", out);
  write_text_element(out, PLOT_LEFT - 14.0, y + 4.5, " text-anchor=\"end\"", row->label, PLOT_LABEL_CHARACTERS);
  write_text_element(out, PLOT_WIDTH - 4.0, y + 4.5, " text-anchor=\"end\"", row->figure, PLOT_FIGURE_CHARACTERS);
  if (is_shown(row)) {
    fprintf(out, "<g class=\"mark%zu\" fill=\"%s\" stroke=\"%s\" stroke-width=\"0\">\n", colour,
            plot_light_colours[colour], plot_light_colours[colour]);
    if (row->low < row->high) {
      write_whisker(out, place(axis, row->low), place(axis, row->high), y);
    }
    write_mark(out, row->style, place(axis, row->value), y);
    fputs("</g>\n", out);
  }
  fputs("</g>\n", out);
}

/* The rows from the top down. */
static void write_rows(FILE *out, const svg_plot *plot, const plot_axis *axis) {
  double y = rows_top(plot);
  for (size_t i = 0; i < plot->count; ++i) {
    const svg_row *row = &plot->rows[i];
    if (row->group != NULL) {
      fprintf(out, "<text x=\"4\" y=\"%.1f\"><tspan font-weight=\"600\">", y + PLOT_GROUP_HEIGHT - 11.0);
      html_write_start(out, row->group, PLOT_GROUP_CHARACTERS);
      fputs("</tspan>", out);
      if (row->note != NULL) {
        fputs(" <tspan fill-opacity=\"0.75\">", out);
        html_write_text(out, row->note);
        fputs("</tspan>", out);
      }
      fputs("</text>\n", out);
      y += PLOT_GROUP_HEIGHT;
    }
    write_row(out, axis, row, y + 0.5 * PLOT_ROW_HEIGHT);
    y += PLOT_ROW_HEIGHT;
  }
}

/* Where write_rows ends, and a little room. */
static double rows_bottom(const svg_plot *plot) {
  double y = rows_top(plot);
  for (size_t i = 0; i < plot->count; ++i) {
    y += PLOT_ROW_HEIGHT + (plot->rows[i].group != NULL ? PLOT_GROUP_HEIGHT : 0);
  }
  return y + 6.0;
}

void svg_plot_write(FILE *out, const svg_plot *plot) {
  plot_axis axis;
  make_axis(plot, &axis);
  const double bottom = rows_bottom(plot);
  fprintf(out,
          "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-labelledby=\"plot%u-title plot%u-desc\" "
          "font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"currentColor\">\n",
          PLOT_WIDTH, bottom + PLOT_BOTTOM, plot->number, plot->number);
  fprintf(out, "<title id=\"plot%u-title\">", plot->number);
  html_write_text(out, plot->title);
  fprintf(out, "</title>\n<desc id=\"plot%u-desc\">", plot->number);
  html_write_text(out, plot->description);
  fputs("</desc>\n", out);
  write_ticks(out, plot, &axis, bottom);
  write_rows(out, plot, &axis);
  fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", 0.5 * (PLOT_LEFT + axis.right), bottom + 38.0);
  html_write_text(out, plot->axis);
  fputs(axis.is_log ? ", logarithmic scale</text>\n</svg>\n" : "</text>\n</svg>\n", out);
}

void svg_plot_write_dark_style(FILE *out) {
  for (size_t i = 0; i < PLOT_COLOURS; ++i) {
    fprintf(out, ".mark%zu{fill:%s;stroke:%s}\n", i, plot_dark_colours[i], plot_dark_colours[i]);
  }
}
