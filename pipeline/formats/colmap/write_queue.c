/*
 * Write queue of one file: pieces in a ring; see write_queue.h. The adding thread owns the piece that is being filled,
 * the queue's thread owns the earlier pieces.
 */
#include "pipeline/formats/colmap/write_queue.h"

#include <errno.h>
#include <string.h>

#include "os/os_threads.h"
#include "pipeline/base/memory.h"

enum {
  PAGES_OF_A_PIECE = WRITE_QUEUE_PIECE_BYTES / WRITE_QUEUE_PAGE_LEAST,
  PAGES_OF_A_RUN = WRITE_QUEUE_RUN_BYTES / WRITE_QUEUE_PAGE_LEAST
};

typedef struct write_piece {
  int64_t offset;
  size_t size;
  size_t page_count; /* number of `pages`; 0: the piece has bytes */
  union {
    uint8_t bytes[WRITE_QUEUE_PIECE_BYTES];
    write_page pages[PAGES_OF_A_PIECE]; /* all of the same size */
  };
} write_piece;

struct write_queue {
  write_function write;
  write_pages_function write_pages;
  void *file;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t filled, emptied;
  bool ending;       /* whether the thread shall end; this field and the fields below are protected by the lock */
  int failure;       /* error of the first write that failed; 0: none */
  int failure_errno; /* errno of that write */
  uint64_t written, closed; /* written: number of written pieces; closed: index of the piece that is being filled */
  uint64_t awaited; /* number of written pieces for which the adding thread waits; NOTHING_AWAITED: it does not wait */
  union {           /* what the queue's thread makes of pieces of pages to write them */
    uint8_t page_bytes[WRITE_QUEUE_PIECE_BYTES]; /* of one piece, for `write` */
    write_page run[PAGES_OF_A_RUN];              /* for `write_pages` */
  };
  write_piece pieces[WRITE_QUEUE_PIECES];
};

#define NOTHING_AWAITED UINT64_MAX

/* Number of pieces after which a thread wakes the other one: a wake-up costs as much as writing a piece. */
enum { WRITE_QUEUE_BATCH = WRITE_QUEUE_PIECES / 2 };

static write_piece *piece_of(write_queue *queue, uint64_t number) {
  return &queue->pieces[number % WRITE_QUEUE_PIECES];
}

/* Returns the bytes of a piece. */
static const uint8_t *bytes_of(write_queue *queue, const write_piece *piece) {
  if (piece->page_count == 0) return piece->bytes;
  const size_t each = piece->size / piece->page_count;
  uint8_t *to = queue->page_bytes;
  for (size_t i = 0; i < piece->page_count; i++, to += each) {
    const write_page *page = &piece->pages[i];
    const size_t filled = sizeof page->head + page->size;
    memcpy(to, page->head, sizeof page->head);
    memcpy(to + sizeof page->head, page->content, page->size);
    memset(to + filled, 0, each - filled);
  }
  return queue->page_bytes;
}

/* Collects the pages of consecutive waiting pieces, and returns the number of pieces. end: the first piece that does
   not wait yet. */
static uint64_t collect_run(write_queue *queue, uint64_t end, size_t *pages) {
  const write_piece *first = piece_of(queue, queue->written);
  const size_t page_bytes = first->size / first->page_count;
  uint64_t number = queue->written;
  size_t size = 0;
  *pages = 0;
  for (; number < end; number++) {
    const write_piece *piece = piece_of(queue, number);
    if (piece->page_count == 0 || piece->size != piece->page_count * page_bytes ||
        piece->offset != first->offset + (int64_t)size || size + piece->size > WRITE_QUEUE_RUN_BYTES)
      break;
    memcpy(queue->run + *pages, piece->pages, piece->page_count * sizeof(write_page));
    *pages += piece->page_count;
    size += piece->size;
  }
  return number - queue->written;
}

/* Writes the first waiting piece, and what can be written with it. end: as in collect_run. Returns the function's
   code. */
static int write_pieces(write_queue *queue, uint64_t end, uint64_t *count) {
  const write_piece *piece = piece_of(queue, queue->written);
  if (!queue->write_pages || piece->page_count == 0)
    return queue->write(queue->file, bytes_of(queue, piece), piece->size, piece->offset);
  size_t pages = 0;
  *count = collect_run(queue, end, &pages);
  return queue->write_pages(queue->file, queue->run, pages, piece->size / piece->page_count, piece->offset);
}

/* Writes the first waiting pieces. Call with the lock, which is released meanwhile. */
static void write_first(write_queue *queue) {
  uint64_t count = 1;
  if (queue->failure == 0) {
    const uint64_t end = queue->closed;
    pthread_mutex_unlock(&queue->lock);
    const int code = write_pieces(queue, end, &count);
    const int error = errno;
    pthread_mutex_lock(&queue->lock);
    queue->failure = code;
    queue->failure_errno = error;
  }
  queue->written += count;
  if (queue->written < queue->awaited) return;
  queue->awaited = NOTHING_AWAITED;
  pthread_cond_signal(&queue->emptied);
}

static void *write_queue_run(void *argument) {
  write_queue *queue = argument;
  pthread_mutex_lock(&queue->lock);
  for (;;) {
    while (queue->closed - queue->written < WRITE_QUEUE_BATCH && queue->awaited == NOTHING_AWAITED && !queue->ending)
      pthread_cond_wait(&queue->filled, &queue->lock);
    if (queue->written == queue->closed) break;
    while (queue->written != queue->closed) write_first(queue);
  }
  pthread_mutex_unlock(&queue->lock);
  return NULL;
}

/* Creates the lock and the condition variables. False: the system has none left, and none exists afterwards. */
static bool write_queue_make_locks(write_queue *queue) {
  if (pthread_mutex_init(&queue->lock, NULL) != 0) return false;
  if (pthread_cond_init(&queue->filled, NULL) == 0) {
    if (pthread_cond_init(&queue->emptied, NULL) == 0) return true;
    pthread_cond_destroy(&queue->filled);
  }
  pthread_mutex_destroy(&queue->lock);
  return false;
}

static void write_queue_drop_locks(write_queue *queue) {
  pthread_cond_destroy(&queue->emptied);
  pthread_cond_destroy(&queue->filled);
  pthread_mutex_destroy(&queue->lock);
}

static bool write_queue_start(write_queue *queue) {
  os_signal_mask saved;
  if (!os_signals_block(&saved)) return false;
  const bool started = os_thread_start(&queue->thread, write_queue_run, queue);
  os_signals_restore(&saved);
  return started;
}

/* the size that docs/guide/install.md states */
_Static_assert(sizeof(write_queue) <= (8 << 20) + (80 << 10), "a queue takes 8 MiB");

write_queue *write_queue_make(write_function write, write_pages_function write_pages, void *file) {
  write_queue *queue = hs_memory_alloc(NULL, sizeof *queue);
  if (!queue) return NULL;
  queue->write = write;
  queue->write_pages = write_pages;
  queue->file = file;
  queue->ending = false;
  queue->failure = queue->failure_errno = 0;
  queue->written = queue->closed = 0;
  queue->awaited = NOTHING_AWAITED;
  queue->pieces[0].size = queue->pieces[0].page_count = 0;
  if (write_queue_make_locks(queue)) {
    if (write_queue_start(queue)) return queue;
    write_queue_drop_locks(queue);
  }
  hs_memory_release(NULL, queue);
  return NULL;
}

/* Ends a call of the adding thread: releases the lock, and returns the error of a failed write. Sets errno as that
 * write did on the queue's thread, because SQLite reads the reason from errno. */
static int unlock_and_report(write_queue *queue) {
  const int failure = queue->failure, error = queue->failure_errno;
  pthread_mutex_unlock(&queue->lock);
  if (failure != 0) errno = error;
  return failure;
}

/* Waits until `count` pieces are written. The caller holds the lock. */
static void wait_until_written(write_queue *queue, uint64_t count) {
  if (queue->written >= count) return;
  queue->awaited = count;
  pthread_cond_signal(&queue->filled);
  while (queue->written < count) pthread_cond_wait(&queue->emptied, &queue->lock);
}

/* Passes the filled piece to the queue's thread and waits for a free one. The caller holds the lock. */
static void close_piece(write_queue *queue) {
  if (piece_of(queue, queue->closed)->size == 0) return;
  queue->closed++;
  const uint64_t waiting = queue->closed - queue->written;
  if (waiting == WRITE_QUEUE_BATCH) pthread_cond_signal(&queue->filled);
  if (waiting == WRITE_QUEUE_PIECES) wait_until_written(queue, queue->closed - WRITE_QUEUE_BATCH);
  piece_of(queue, queue->closed)->size = piece_of(queue, queue->closed)->page_count = 0;
}

void write_queue_free(write_queue *queue) {
  if (!queue) return;
  pthread_mutex_lock(&queue->lock);
  close_piece(queue);
  queue->ending = true;
  pthread_cond_signal(&queue->filled);
  pthread_mutex_unlock(&queue->lock);
  pthread_join(queue->thread, NULL);
  write_queue_drop_locks(queue);
  hs_memory_release(NULL, queue);
}

/* True if the bytes directly follow the piece and fit into it. */
static bool takes(const write_piece *piece, size_t size, int64_t offset) {
  return piece->offset + (int64_t)piece->size == offset && size <= WRITE_QUEUE_PIECE_BYTES - piece->size;
}

/* Returns the piece to be filled: the current one if it takes the bytes or is empty, else the next. */
static write_piece *piece_for(write_queue *queue, bool is_taken, int64_t offset, int *failure) {
  write_piece *piece = piece_of(queue, queue->closed);
  if (piece->size > 0 && !is_taken) {
    pthread_mutex_lock(&queue->lock);
    close_piece(queue);
    *failure = unlock_and_report(queue);
    piece = piece_of(queue, queue->closed);
  }
  if (piece->size == 0) piece->offset = offset;
  return piece;
}

int write_queue_add_page(write_queue *queue, const write_page *page, size_t page_bytes, int64_t offset) {
  const write_piece *current = piece_of(queue, queue->closed);
  int failure = 0;
  const bool is_taken = current->page_count > 0 && takes(current, page_bytes, offset) &&
                        current->size == current->page_count * page_bytes;
  write_piece *piece = piece_for(queue, is_taken, offset, &failure);
  piece->pages[piece->page_count++] = *page;
  piece->size += page_bytes;
  return failure;
}

uint64_t write_queue_mark(const write_queue *queue) {
  return queue->closed + (queue->pieces[queue->closed % WRITE_QUEUE_PIECES].size > 0);
}

uint64_t write_queue_written(write_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  const uint64_t written = queue->written;
  pthread_mutex_unlock(&queue->lock);
  return written;
}

int write_queue_add(write_queue *queue, const void *bytes, size_t size, int64_t offset) {
  write_piece *piece = piece_of(queue, queue->closed);
  int failure = 0;
  if (size > WRITE_QUEUE_PIECE_BYTES) {
    failure = write_queue_drain(queue);
    return failure != 0 ? failure : queue->write(queue->file, bytes, size, offset);
  }
  piece = piece_for(queue, piece->page_count == 0 && takes(piece, size, offset), offset, &failure);
  memcpy(piece->bytes + piece->size, bytes, size);
  piece->size += size;
  return failure;
}

int write_queue_drain(write_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  close_piece(queue);
  wait_until_written(queue, queue->closed);
  return unlock_and_report(queue);
}

/* True if the range overlaps the piece; false for an empty piece, which has no position yet. */
static bool piece_touches(const write_piece *piece, size_t size, int64_t offset) {
  return piece->size > 0 && offset < piece->offset + (int64_t)piece->size && piece->offset < offset + (int64_t)size;
}

int write_queue_read(write_queue *queue, void *bytes, size_t size, int64_t offset, bool *is_copied) {
  pthread_mutex_lock(&queue->lock);
  uint64_t last = queue->closed + 1; /* the newest piece that overlaps the range is the one before */
  while (last > queue->written && !piece_touches(piece_of(queue, last - 1), size, offset)) last--;
  const write_piece *newest = last > queue->written ? piece_of(queue, last - 1) : NULL;
  *is_copied = newest && newest->page_count == 0 && newest->offset <= offset &&
               offset + (int64_t)size <= newest->offset + (int64_t)newest->size;
  if (newest && !*is_copied) {
    if (last > queue->closed) close_piece(queue);
    wait_until_written(queue, last);
  }
  const int failure = unlock_and_report(queue);
  /* only this thread fills pieces, so the bytes stay until the next write_queue_add */
  if (*is_copied) memcpy(bytes, newest->bytes + (offset - newest->offset), size);
  return failure;
}

void write_queue_forget(write_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->failure = 0;
  pthread_mutex_unlock(&queue->lock);
}

double write_queue_cpu_s(const write_queue *queue) { return os_thread_cpu_s(queue->thread); }
