/*
 * A queue whose thread writes one file, in order, while the caller continues. Contiguous writes are merged into one
 * piece.
 *
 * One thread adds. The file belongs to the queue's thread. Other threads may use it after write_queue_drain has
 * returned, and read a range of it after write_queue_read; meanwhile other ranges are written.
 *
 * A later call reports a failed write. Nothing more is then written, so the file lacks the caller's last writes, and
 * every call returns the error code, with the write's errno, until write_queue_forget.
 */
#ifndef HARTSIFT_FORMATS_COLMAP_WRITE_QUEUE_H
#define HARTSIFT_FORMATS_COLMAP_WRITE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum size of a piece: SQLite's largest page (SQLite's own files take less than 128 KiB at once); and number of
   pieces. Half of the pieces must exceed a core's cache: otherwise one core fills what the other core's cache holds, at
   half the speed. */
enum { WRITE_QUEUE_PIECE_BYTES = 64 << 10, WRITE_QUEUE_PIECES = 128, WRITE_QUEUE_PAGE_LEAST = 4 << 10 };

/* Function that writes to the file; returns 0 or an error code. */
typedef int (*write_function)(void *file, const void *bytes, size_t size, int64_t offset);

/* A page whose content is not copied to the queue: `head`, `size` bytes of content, then zeros. */
typedef struct write_page {
  uint8_t head[4];
  const uint8_t *content;
  size_t size;
} write_page;

/* Maximum number of bytes that a write_pages_function gets. */
enum { WRITE_QUEUE_RUN_BYTES = 512 << 10 };

/* Function that writes consecutive pages of one size in one go; returns 0 or an error code. */
typedef int (*write_pages_function)(void *file, const write_page *pages, size_t count, size_t page_bytes,
                                    int64_t offset);

typedef struct write_queue write_queue;

/* Creates a queue of 8 MiB and its thread. write_pages: null if pages are written by `write`. Null: out of memory, or
   the thread could not be started. */
write_queue *write_queue_make(write_function write, write_pages_function write_pages, void *file);
/* Writes all pieces, ends the thread and frees the queue; null is allowed. */
void write_queue_free(write_queue *queue);

/* Copies the bytes to the queue. Waits if all pieces are full. */
int write_queue_add(write_queue *queue, const void *bytes, size_t size, int64_t offset);

/* Adds a page of WRITE_QUEUE_PAGE_LEAST to WRITE_QUEUE_PIECE_BYTES bytes. Its content must stay until it is written:
   until write_queue_written is at least a mark that was taken after the call. */
int write_queue_add_page(write_queue *queue, const write_page *page, size_t page_bytes, int64_t offset);
uint64_t write_queue_mark(const write_queue *queue);
uint64_t write_queue_written(write_queue *queue);

/* Waits until everything is written. */
int write_queue_drain(write_queue *queue);
/* Copies a range of the file if its newest bytes are all in one waiting piece. Otherwise waits until the range is
   written, so that it can be read from the file. */
int write_queue_read(write_queue *queue, void *bytes, size_t size, int64_t offset, bool *is_copied);
void write_queue_forget(write_queue *queue);

/* Returns the CPU time of the queue's thread so far, in seconds. */
double write_queue_cpu_s(const write_queue *queue);

#endif
