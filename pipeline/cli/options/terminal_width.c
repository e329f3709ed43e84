/*
 * The width of a terminal; see terminal_width.h.
 */
#define _DEFAULT_SOURCE /* struct winsize, fileno */
#include "pipeline/cli/options/terminal_width.h"

#include <stdlib.h>
#include <sys/ioctl.h>

enum { COLUMNS_LEAST = 10, COLUMNS_MOST = 1000 };

int terminal_columns(FILE *stream) {
  struct winsize size = {0};
  const int descriptor = fileno(stream);
  return descriptor >= 0 && ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? (int)size.ws_col : 0;
}

int terminal_text_columns(FILE *stream) {
  const char *named = getenv("COLUMNS");
  const long wanted = named ? strtol(named, NULL, 10) : 0;
  if (wanted > 0 && wanted <= COLUMNS_MOST) return wanted < COLUMNS_LEAST ? COLUMNS_LEAST : (int)wanted;
  const int columns = terminal_columns(stream);
  if (columns <= 0 || columns > TERMINAL_COLUMNS_USUAL) return TERMINAL_COLUMNS_USUAL;
  return columns < COLUMNS_LEAST ? COLUMNS_LEAST : columns;
}
