/*
 * Pages of SQLite's file that hold a large blob: where they are, and what they contain ("Cell Payload Overflow Pages"
 * in SQLite's description of its file format). SQLite allocates the pages and writes them without content.
 * colmap_vfs.c writes the content in their place, so that SQLite never has a copy of it.
 *
 * A row's first bytes are in the table's page, the others in a chain of pages: 4 bytes with the number of the next
 * page, 0 in the last one, then content. A chain at the end of the file has consecutive numbers, without SQLite's
 * locking page.
 */
#ifndef HARTSIFT_FORMATS_COLMAP_BLOB_PAGES_H
#define HARTSIFT_FORMATS_COLMAP_BLOB_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/formats/colmap/write_queue.h"
#include "pipeline/include/hartsift.h"

typedef struct blob_pages {
  uint32_t page_bytes, usable; /* usable: bytes of a page without those that extensions of SQLite reserve */
  uint32_t first, count;       /* number of the chain's first page, and of its pages */
  size_t local;                /* number of the blob's bytes in the table's page */
  uint8_t *bytes;              /* content; blob_pages_free frees it */
  size_t size;
  const hs_allocator *allocator;
  uint8_t *seen;   /* a bit for each page: whether it was written */
  uint32_t unseen; /* number of pages that were not written */
  uint64_t mark;   /* the content is needed until write_queue_written is `mark`, if no page is unseen */
} blob_pages;

/* Computes the layout of a blob that ends a row of a table. before: bytes of the row's record that precede it.
   page_count: pages of the file. False: fewer than 4 pages, or out of memory. Does not take `bytes`. */
bool blob_pages_plan(blob_pages *b, size_t before, uint32_t page_count);
void blob_pages_free(blob_pages *b);

/* Returns the index in the chain of a page of the file; -1: the page is not in the chain. */
int64_t blob_pages_index(const blob_pages *b, int64_t page);
/* True if this is what SQLite writes as the page of this index: the right next number, then zeros. */
bool blob_pages_are_empty(const blob_pages *b, int64_t index, const uint8_t *page);
/* Makes the page with its content. */
write_page blob_pages_page(const blob_pages *b, int64_t index);

/* Returns the bytes of a record (rows, cols, blob) before the blob's content. The key is not in the record. */
size_t blob_pages_before(int64_t rows, int64_t columns, size_t blob_bytes);

#endif
