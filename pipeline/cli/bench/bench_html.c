/*
 * The page of `bench --html`; see bench_html.h.
 */
#include "pipeline/cli/bench/bench_html.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu/dispatch.h"
#include "cpu/usable_threads.h"
#include "pipeline/cli/bench/accuracy_html.h"
#include "pipeline/cli/bench/html_text.h"
#include "pipeline/cli/bench/svg_plot.h"
#include "pipeline/include/hartsift.h"

static const char page_style[] =
    ":root{color-scheme:light dark;--paper:#fff;--ink:#1c2126;--quiet:#59636e;--line:#d5dbe1;--stripe:#f4f6f8}\n"
    "body{margin:0 auto;max-width:64rem;padding:1.5rem 1rem 4rem;background:var(--paper);color:var(--ink);"
    "font:1rem/1.5 system-ui,sans-serif}\n"
    "h1{font-size:1.7rem;margin:0}h2{font-size:1.3rem;margin:2.5rem 0 .5rem}h3{font-size:1.1rem;margin:2rem 0 .5rem}"
    "h4{font-size:1rem;margin:1.5rem 0 .5rem}\n"
    "p{max-width:44rem}.quiet,figcaption,caption{color:var(--quiet)}\n"
    "figure,.wide{margin:1rem 0;overflow-x:auto}svg{display:block;width:100%;min-width:36rem;height:auto}\n"
    "table{border-collapse:collapse;font-size:.8125rem;font-variant-numeric:tabular-nums}"
    "caption{text-align:left;padding-bottom:.4rem}\n"
    "th,td{padding:.25rem .4rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}"
    "thead th{border-bottom-width:2px;white-space:normal;vertical-align:bottom}tbody th{font-weight:400}"
    "th[scope=row],.word,thead th:first-child{text-align:left}tbody tr:nth-child(even){background:var(--stripe)}\n"
    "pre{overflow-x:auto;padding:.75rem;background:var(--stripe);font-size:.8rem}"
    "details{margin:.75rem 0}summary{cursor:pointer}\n"
    "@media print{body{padding:0}table{font-size:.65rem}figure{break-inside:avoid}}\n";

static const char page_dark_style[] =
    ":root{--paper:#15191d;--ink:#e4e8ec;--quiet:#a3adb8;--line:#3a434c;--stripe:#1d2328}\n";

/* Room for one more item. */
static void *grow(void *items, size_t count, size_t *capacity, size_t item_bytes) {
  if (count < *capacity) {
    return items;
  }
  const size_t wanted = *capacity == 0 ? 16 : 2 * *capacity;
  void *larger = wanted <= SIZE_MAX / 2 / item_bytes ? realloc(items, wanted * item_bytes) : NULL;
  *capacity = larger != NULL ? wanted : *capacity;
  return larger;
}

static char *copy_text(const char *text) {
  const size_t bytes = strlen(text) + 1;
  char *copy = malloc(bytes);
  return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

/* The style of the same way before, or the next one. */
static size_t find_style(const bench_page *page, const char *way) {
  size_t next = 0;
  for (size_t i = 0; i < page->time_count; ++i) {
    const bench_page_time *time = &page->times[i];
    if (strcmp(time->way, way) == 0) {
      return time->style;
    }
    next = time->style >= next ? time->style + 1 : next;
  }
  return next;
}

void bench_page_add(bench_page *page, const char *image, int32_t width, int32_t height,
                    const bench_contender *contender) {
  bench_page_time *times = grow(page->times, page->time_count, &page->time_capacity, sizeof *times);
  page->times = times != NULL ? times : page->times;
  char *name = times != NULL ? copy_text(image) : NULL;
  if (name == NULL) {
    page->is_short_of_memory = true;
    return;
  }
  bench_page_time *time = &page->times[page->time_count];
  *time = (bench_page_time){.image = name, .contender = *contender};
  snprintf(time->size, sizeof time->size, "%" PRId32 "x%" PRId32, width, height);
  const bool on_cpu = strcmp(contender->device, "cpu") == 0;
  if (on_cpu) {
    snprintf(time->way, sizeof time->way, "%s %s, %" PRId32 " thread%s", contender->name, contender->profile,
             contender->threads, contender->threads == 1 ? "" : "s");
  } else {
    snprintf(time->way, sizeof time->way, "%s %s, %s", contender->name, contender->profile, contender->device);
  }
  time->style = find_style(page, time->way);
  ++page->time_count;
}

void bench_page_add_memory(bench_page *page, const char *image, const char *program, double peak_mib,
                           double above_mib) {
  bench_page_memory *items = grow(page->memory, page->memory_count, &page->memory_capacity, sizeof *items);
  page->memory = items != NULL ? items : page->memory;
  char *name = items != NULL ? copy_text(image) : NULL;
  if (name == NULL) {
    page->is_short_of_memory = true;
    return;
  }
  bench_page_memory *memory = &page->memory[page->memory_count++];
  *memory = (bench_page_memory){.image = name, .peak_mib = peak_mib, .above_mib = above_mib};
  snprintf(memory->program, sizeof memory->program, "%s", program);
}

void bench_page_free(bench_page *page) {
  for (size_t i = 0; i < page->time_count; ++i) {
    free(page->times[i].image);
  }
  for (size_t i = 0; i < page->memory_count; ++i) {
    free(page->memory[i].image);
  }
  free(page->times);
  free(page->memory);
  *page = (bench_page){0};
}

/* Three digits that count, for the right of a plot. */
static void format_figure(char *text, size_t bytes, double value, const char *unit) {
  const int decimals = value >= 100.0 ? 0 : value >= 10.0 ? 1 : value >= 1.0 ? 2 : 3;
  snprintf(text, bytes, "%.*f %s", decimals, value, unit);
}

static void write_plot(FILE *out, const svg_plot *plot) {
  fputs("<figure>\n", out);
  svg_plot_write(out, plot);
  fputs("<figcaption>", out);
  html_write_text(out, plot->description);
  fputs("</figcaption></figure>\n", out);
}

static bool write_time_plot(const bench_page *page, FILE *out, unsigned *plots) {
  svg_row *rows = calloc(page->time_count, sizeof *rows);
  if (rows == NULL) {
    return false;
  }
  for (size_t i = 0; i < page->time_count; ++i) {
    const bench_page_time *time = &page->times[i];
    const bench_page_time *before = i > 0 ? &page->times[i - 1] : NULL;
    const bool is_new =
        before == NULL || strcmp(before->image, time->image) != 0 || strcmp(before->size, time->size) != 0;
    const bench_figures *f = &time->contender.figures;
    rows[i] = (svg_row){.group = is_new ? time->image : NULL,
                        .note = time->size,
                        .label = time->way,
                        .value = f->median_ms,
                        .low = f->min_ms,
                        .high = f->p90_ms,
                        .style = time->style};
    format_figure(rows[i].figure, sizeof rows[i].figure, f->median_ms, "ms");
  }
  write_plot(out,
             &(svg_plot){.number = ++*plots,
                         .title = "Time of a frame by image and contender",
                         .description = "Mark: median of the rounds, written at the right. Whisker: from the fastest "
                                        "round to the 90th percentile. Further left is faster.",
                         .axis = "milliseconds a frame",
                         .scale = SVG_SCALE_WIDE,
                         .rows = rows,
                         .count = page->time_count});
  free(rows);
  return true;
}

/* The head of a table: a caption and the names of its columns, null-terminated, the first `words` of them over text. */
static void open_table(FILE *out, const char *caption, const char *const *names, size_t words) {
  fprintf(out, "<div class=\"wide\"><table>\n<caption>%s</caption>\n<thead><tr>", caption);
  for (size_t i = 0; names[i] != NULL; ++i) {
    fprintf(out, "<th scope=\"col\"%s>%s</th>", i < words ? " class=\"word\"" : "", names[i]);
  }
  fputs("</tr></thead>\n<tbody>\n", out);
}

static void close_table(FILE *out) { fputs("</tbody></table></div>\n", out); }

static void write_word(FILE *out, const char *text) {
  fputs("<td class=\"word\">", out);
  html_write_text(out, text);
  fputs("</td>", out);
}

static void open_row(FILE *out, const char *name) {
  fputs("<tr><th scope=\"row\">", out);
  html_write_text(out, name);
  fputs("</th>", out);
}

static void write_time_table(const bench_page *page, FILE *out) {
  static const char *const names[] = {"image",    "size",      "program", "profile", "device",          "threads",
                                      "features", "median ms", "min ms",  "p90 ms",  "times the first", NULL};
  enum { WORDS = 5 };
  open_table(out, "Time of a frame: the records of --json.", names, WORDS);
  for (size_t i = 0; i < page->time_count; ++i) {
    const bench_page_time *time = &page->times[i];
    const bench_contender *c = &time->contender;
    open_row(out, time->image);
    write_word(out, time->size);
    write_word(out, c->name);
    write_word(out, c->profile);
    write_word(out, c->device);
    fprintf(out, "<td>%" PRId32 "</td><td>%zu</td><td>%.4f</td><td>%.4f</td><td>%.4f</td><td>%.4f</td></tr>\n",
            c->threads, c->figures.features, c->figures.median_ms, c->figures.min_ms, c->figures.p90_ms,
            c->figures.ratio);
  }
  close_table(out);
}

static bool write_memory(const bench_page *page, FILE *out, unsigned *plots) {
  static const char *const names[] = {"image", "program", "peak resident MiB", "above the image alone, MiB", NULL};
  enum { WORDS = 2 };
  svg_row *rows = calloc(page->memory_count, sizeof *rows);
  if (rows == NULL) {
    return false;
  }
  size_t style = 0;
  for (size_t i = 0; i < page->memory_count; ++i) {
    const bench_page_memory *memory = &page->memory[i];
    const bool is_new = i == 0 || strcmp(page->memory[i - 1].image, memory->image) != 0;
    style = is_new ? 0 : style + 1;
    rows[i] = (svg_row){.group = is_new ? memory->image : NULL,
                        .label = memory->program,
                        .value = memory->above_mib,
                        .low = memory->above_mib,
                        .high = memory->above_mib,
                        .style = style};
    format_figure(rows[i].figure, sizeof rows[i].figure, memory->above_mib, "MiB");
  }
  fputs("<section>\n<h2>Memory</h2>\n", out);
  write_plot(out, &(svg_plot){.number = ++*plots,
                              .title = "Peak memory of a frame by image and program",
                              .description = "Peak resident size of a process that extracts one frame, less that of a "
                                             "process that holds the image only.",
                              .axis = "MiB",
                              .scale = SVG_SCALE_WIDE,
                              .rows = rows,
                              .count = page->memory_count});
  free(rows);
  open_table(out, "Peak memory, each program in a process of its own.", names, WORDS);
  for (size_t i = 0; i < page->memory_count; ++i) {
    const bench_page_memory *memory = &page->memory[i];
    open_row(out, memory->image);
    write_word(out, memory->program);
    fprintf(out, "<td>%.1f</td><td>%.1f</td></tr>\n", memory->peak_mib, memory->above_mib);
  }
  close_table(out);
  fputs("</section>\n", out);
  return true;
}

/* Up to the main element's first heading, and where and when this was measured. */
static void write_head(FILE *out) {
  char when[32] = "";
  const time_t now = time(NULL);
  struct tm utc;
  if (gmtime_r(&now, &utc) != NULL) {
    strftime(when, sizeof when, "%Y-%m-%d %H:%M UTC", &utc);
  }
  fprintf(out,
          "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n<title>hartsift bench</title>\n<style>\n%s"
          "@media (prefers-color-scheme:dark){\n%s",
          page_style, page_dark_style);
  svg_plot_write_dark_style(out);
  fputs("}\n</style>\n</head>\n<body>\n<main>\n<h1>hartsift bench</h1>\n<p class=\"quiet\">hartsift ", out);
  html_write_text(out, hs_version_string());
  fprintf(out, ", %s. CPU level %s, %" PRId32 " usable thread%s.</p>\n", when, cpu_level_name(), cpu_usable_threads(),
          cpu_usable_threads() == 1 ? "" : "s");
}

bool bench_page_write(const bench_page *page, FILE *out) {
  unsigned plots = 0;
  bool done = !page->is_short_of_memory;
  write_head(out);
  if (done && page->time_count > 0) {
    fputs(
        "<section>\n<h2>Speed</h2>\n<p>From pixels in memory to features in memory. Every contender was verified first "
        "(two runs, the same features), then all were timed by turns.</p>\n",
        out);
    done = write_time_plot(page, out, &plots);
    write_time_table(page, out);
    fputs("</section>\n", out);
  }
  if (done && page->memory_count > 0) {
    done = write_memory(page, out, &plots);
  }
  if (done && page->accuracy != NULL) {
    done = accuracy_html_write(out, page->accuracy, &plots);
  }
  fputs("</main>\n</body>\n</html>\n", out);
  return done;
}
