/*
 * The page that `bench --html` writes: tables and plots of what was timed, and of accuracy where tables of it are
 * given, in one file that needs nothing else.
 */
#ifndef HARTSIFT_PIPELINE_CLI_BENCH_HTML_H
#define HARTSIFT_PIPELINE_CLI_BENCH_HTML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pipeline/cli/bench/accuracy_text.h"
#include "pipeline/cli/bench/bench_rounds.h"

enum { BENCH_WAY_BYTES = 160, BENCH_SIZE_BYTES = 32 };

/* One contender on one image. */
typedef struct bench_page_time {
  char *image;
  char size[BENCH_SIZE_BYTES]; /* "640x480" */
  char way[BENCH_WAY_BYTES];   /* what tells contenders apart, in words */
  size_t style;                /* the same for the same way */
  bench_contender contender;   /* its strings and figures; its state may be gone */
} bench_page_time;

/* Peak memory of one program on one image. */
typedef struct bench_page_memory {
  char *image;
  char program[BENCH_NAME_BYTES];
  double peak_mib, above_mib; /* above_mib: above a process that holds the image only */
} bench_page_memory;

/* What goes on the page. An empty one is all zero. */
typedef struct bench_page {
  bench_page_time *times;
  size_t time_count, time_capacity;
  bench_page_memory *memory;
  size_t memory_count, memory_capacity;
  const accuracy_text *accuracy; /* null: none */
  bool is_short_of_memory;       /* something could not be added */
} bench_page;

/* image: its name, copied. The contender's profile and device must outlive the page. */
void bench_page_add(bench_page *page, const char *image, int32_t width, int32_t height,
                    const bench_contender *contender);
void bench_page_add_memory(bench_page *page, const char *image, const char *program, double peak_mib, double above_mib);

/* Writes the page. False: out of memory, now or while something was added; what was written is of no use then. */
bool bench_page_write(const bench_page *page, FILE *out);
void bench_page_free(bench_page *page);

#endif
