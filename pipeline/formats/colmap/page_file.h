/*
 * A database file through SQLite's own descriptor, on Linux: writes many pages in one call, without copying them
 * together, and allocates disk space before it is used, because pages are then written faster.
 *
 * The descriptor is the only one that the process has of the file. A second one would not do: closing it would release
 * SQLite's locks on the file (POSIX, close).
 */
#ifndef HARTSIFT_FORMATS_COLMAP_PAGE_FILE_H
#define HARTSIFT_FORMATS_COLMAP_PAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/formats/colmap/write_queue.h"

/* Bytes that are allocated beyond a write at the end of the file. */
enum { PAGE_FILE_AHEAD = 16 << 20 };

typedef struct page_file {
  int descriptor;     /* SQLite's; -1: unknown */
  bool is_refused;    /* allocating has failed, and is not tried again before page_file_end */
  uint64_t allocated; /* size to which the file was extended; 0: not extended */
  uint64_t end;       /* end of the written bytes, if extended */
} page_file;

/* Finds the descriptor. path: the file as SQLite has opened it. */
void page_file_open(page_file *f, const char *path);
bool page_file_is_open(const page_file *f);

/* Writes pages with at most WRITE_QUEUE_RUN_BYTES in all. Only if open. False with errno. */
bool page_file_write(page_file *f, const write_page *pages, size_t count, size_t page_bytes, int64_t offset);
/* Call before another function writes bytes that end here. */
void page_file_note(page_file *f, int64_t end);

/* Gives unused space back, so that the file ends with the last byte written. False with errno. */
bool page_file_trim(page_file *f);
/* The same at the end of a transaction. Keeps errno. Zeros that cannot be removed stay after the last page, where
   SQLite ignores them. */
void page_file_end(page_file *f);

#endif
