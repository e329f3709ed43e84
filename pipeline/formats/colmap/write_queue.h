/*
 * Writes to one file that a thread of its own carries out, in their order, while the caller goes on. What follows on in
 * the file is written as one piece.
 *
 * One thread adds; the file belongs to the queue's thread until write_queue_drain has returned, or between write_queue_hold
 * and write_queue_release.
 *
 * A write that fails shows in a later call. From it on nothing more is written and every call gives its code, until
 * write_queue_forget: what the caller wrote last is then not what the file has.
 */
#ifndef HARTSIFT_FORMATS_COLMAP_WRITE_QUEUE_H
#define HARTSIFT_FORMATS_COLMAP_WRITE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

/* A piece of the file is at most this long, SQLite's largest page; SQLite's own files take less than 128 KiB at once.
   So many pieces wait, or are being filled or written. */
enum { WRITE_QUEUE_PIECE_BYTES = 64 << 10, WRITE_QUEUE_PIECES = 16 };

/* Writes to the file; 0, or a code of its own. */
typedef int (*write_function)(void *file, const void *bytes, size_t size, int64_t offset);

typedef struct write_queue write_queue;

/* Null: no memory, or no thread. */
write_queue *write_queue_make(write_function write, void *file);
/* Writes what waits, ends the thread; null is allowed. */
void write_queue_free(write_queue *queue);

/* Takes a copy of the bytes. Waits where all pieces are full. */
int write_queue_add(write_queue *queue, const void *bytes, size_t size, int64_t offset);
/* Waits until all is written. */
int write_queue_drain(write_queue *queue);
/* Waits until nothing of this range of the file waits any more. */
int write_queue_settle(write_queue *queue, size_t size, int64_t offset);
void write_queue_forget(write_queue *queue);

/* CPU time of the queue's thread so far. */
double write_queue_cpu_s(const write_queue *queue);

/* Keeps the queue's thread from the file, while it may have more to write. */
void write_queue_hold(write_queue *queue);
void write_queue_release(write_queue *queue);

#endif
