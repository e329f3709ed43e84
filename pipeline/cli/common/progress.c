/* The progress line, and the signals that stop a command; see progress.h. */
#include <stdio.h>

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/progress.h"
#include "pipeline/cli/options/option_table.h"

/* ---- the line */

enum { BAR_COLUMNS = 30, BAR_MIN = 5, TIME_BYTES = 32, LINE_BYTES = 256 };

void progress_line_begin(progress_line *line, bool is_quiet) {
  *line = (progress_line){.on_terminal = !is_quiet && os_is_terminal(stderr), .start_ms = cli_milliseconds()};
}

double progress_line_seconds(const progress_line *line) { return (cli_milliseconds() - line->start_ms) * 1e-3; }

double progress_line_rate(const progress_line *line, size_t worked) {
  const double seconds = progress_line_seconds(line);
  return seconds > 0 ? (double)worked / seconds : 0;
}

static void format_time(size_t left, double rate, char text[TIME_BYTES]) {
  const double seconds = rate > 0 ? (double)left / rate : 0;
  if (rate <= 0 || seconds > 1e8) {
    snprintf(text, TIME_BYTES, "-:--");
    return;
  }
  const long whole = (long)(seconds + 0.5);
  if (whole >= 3600)
    snprintf(text, TIME_BYTES, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  else
    snprintf(text, TIME_BYTES, "%ld:%02ld", whole / 60, whole % 60);
}

void progress_line_draw(progress_line *line, size_t ended, size_t total, size_t worked, size_t failed) {
  static const char full[] = "##############################";
  char left[TIME_BYTES], failures[48] = "", text[LINE_BYTES];
  if (!line->on_terminal || total == 0) return;
  const double rate = progress_line_rate(line, worked);
  format_time(total - ended, rate, left);
  if (failed > 0) snprintf(failures, sizeof failures, ", %zu failed", failed);
  const int length = snprintf(text, sizeof text, "%s%s%zu of %zu, %.1f a second, %s left%s",
                              line->what ? line->what : "", line->what ? ": " : "", ended, total, rate, left, failures);
  /* the last column stays free, because some terminals wrap there, and \r would not return to the line */
  const int known = terminal_columns(stderr);
  const int columns = (known > 0 ? known : TERMINAL_COLUMNS_USUAL) - 1;
  /* width of the bar: the rest of the line without two brackets and a space */
  const int available = columns - length - 3;
  const int bar = available < BAR_COLUMNS ? available : BAR_COLUMNS;
  const int filled = (int)((double)ended / (double)total * bar);
  if (bar >= BAR_MIN)
    fprintf(stderr, "\r[%.*s%*s] %s\033[K", filled, full, bar - filled, "", text);
  else
    fprintf(stderr, "\r%.*s\033[K", columns, text);
  fflush(stderr);
  line->is_drawn = true;
}

void progress_line_clear(progress_line *line) {
  if (!line->is_drawn) return;
  fputs("\r\033[K", stderr);
  line->is_drawn = false;
}

/* ---- signals */

void stop_signals_block(stop_signals *signals) { os_stop_block(signals); }

int stop_signals_take(const stop_signals *signals) { return os_stop_take(signals); }

void stop_signals_restore(const stop_signals *signals) { os_stop_restore(signals); }

const char *stop_signal_name(int number) { return number == SIGTERM ? "SIGTERM" : "SIGINT"; }
