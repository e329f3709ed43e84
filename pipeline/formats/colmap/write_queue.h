/*
 * A separate thread writes one file, in order, while the caller continues. Contiguous writes are merged into one piece.
 *
 * One thread adds; the file belongs to the queue's thread until write_queue_drain has returned, or between
 * write_queue_hold and write_queue_release.
 *
 * A failed write is reported by a later call. Nothing more is written then, and every call returns its code, until
 * write_queue_forget: the file lacks the caller's last writes.
 */
#ifndef HARTSIFT_FORMATS_COLMAP_WRITE_QUEUE_H
#define HARTSIFT_FORMATS_COLMAP_WRITE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

/* Maximum size of a piece, SQLite's largest page (SQLite's files take less than 128 KiB at once), and number of
   pieces. */
enum { WRITE_QUEUE_PIECE_BYTES = 64 << 10, WRITE_QUEUE_PIECES = 16 };

/* Writes to the file; returns 0 or an error code. */
typedef int (*write_function)(void *file, const void *bytes, size_t size, int64_t offset);

typedef struct write_queue write_queue;

/* Creates a queue. Null: out of memory, or no thread. */
write_queue *write_queue_make(write_function write, void *file);
/* Writes all pieces and ends the thread; null is allowed. */
void write_queue_free(write_queue *queue);

/* Copies the bytes to the queue. Waits while all pieces are full. */
int write_queue_add(write_queue *queue, const void *bytes, size_t size, int64_t offset);
/* Waits until all is written. */
int write_queue_drain(write_queue *queue);
/* Waits until this range of the file is written. */
int write_queue_settle(write_queue *queue, size_t size, int64_t offset);
void write_queue_forget(write_queue *queue);

/* CPU time of the queue's thread so far, in seconds. */
double write_queue_cpu_s(const write_queue *queue);

/* Stops the queue's thread from writing until write_queue_release. */
void write_queue_hold(write_queue *queue);
void write_queue_release(write_queue *queue);

#endif
