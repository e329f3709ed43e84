/* The write-behind VFS, which wraps SQLite's default VFS; see colmap_internal.h. */
#include "os/os_threads.h"
#include "pipeline/formats/colmap/colmap_internal.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "pipeline/formats/colmap/blob_pages.h"
#include "pipeline/formats/colmap/page_file.h"
#include "pipeline/formats/colmap/write_queue.h"

enum { BLOBS_MOST = 256 };

/* A database file; in memory SQLite's own file structure follows. */
typedef struct vfs_file {
  sqlite3_file base;
  write_queue *queue;
  page_file pages;           /* used by the queue's thread; by another one when all is written */
  pthread_mutex_t real_lock; /* of SQLite's own file while the queue is not empty */
  bool has_log;              /* the file has a write-ahead log, so writes are not delayed */
  bool is_unlike;            /* SQLite placed a blob otherwise than blob_pages_plan, so no more blobs are taken */
  size_t blob_count;
  blob_pages blobs[BLOBS_MOST]; /* blobs with pages that are not written yet */
} vfs_file;

static sqlite3_vfs *vfs_root; /* default VFS of SQLite */
static sqlite3_vfs vfs_layer;
static pthread_once_t vfs_once = PTHREAD_ONCE_INIT;

static sqlite3_file *real_of(sqlite3_file *file) { return (sqlite3_file *)((vfs_file *)file + 1); }

static write_queue *queue_of(sqlite3_file *file) { return ((vfs_file *)file)->queue; }

/* ---- the queue's functions */

static int write_bytes(void *file, const void *bytes, size_t size, int64_t offset) {
  vfs_file *f = file;
  sqlite3_file *real = real_of(file);
  page_file_note(&f->pages, offset + (int64_t)size);
  pthread_mutex_lock(&f->real_lock);
  const int code = real->pMethods->xWrite(real, bytes, (int)size, offset);
  pthread_mutex_unlock(&f->real_lock);
  return code;
}

static int write_pages(void *file, const write_page *pages, size_t count, size_t page_bytes, int64_t offset) {
  if (page_file_write(&((vfs_file *)file)->pages, pages, count, page_bytes, offset)) return SQLITE_OK;
  return errno == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE; /* as SQLite's own files */
}

/* Waits until all is written. Then the file has the size that SQLite expects. */
static int write_all(sqlite3_file *file) {
  const int code = write_queue_drain(queue_of(file));
  if (code != SQLITE_OK) return code;
  return page_file_trim(&((vfs_file *)file)->pages) ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

/* ---- blobs whose content SQLite does not have */

/* Frees the blobs that are written. */
static void free_written(vfs_file *f) {
  const uint64_t written = f->blob_count > 0 ? write_queue_written(f->queue) : 0;
  size_t kept = 0;
  for (size_t i = 0; i < f->blob_count; i++) {
    blob_pages *b = &f->blobs[i];
    if (b->unseen == 0 && b->mark <= written)
      blob_pages_free(b);
    else
      f->blobs[kept++] = *b;
  }
  f->blob_count = kept;
}

/* Finds the blob that has a page; its index in the blob. Later blobs first: a page may be used again. */
static blob_pages *blob_at(vfs_file *f, int size, sqlite3_int64 offset, int64_t *index) {
  for (size_t i = f->blob_count; i > 0; i--) {
    blob_pages *b = &f->blobs[i - 1];
    if (size != (int)b->page_bytes) continue;
    *index = blob_pages_index(b, offset / size + 1);
    if (*index >= 0) return b;
  }
  return NULL;
}

/* Adds the page of a blob with its content. */
static int write_blob_page(vfs_file *f, blob_pages *b, int64_t index, sqlite3_int64 offset) {
  const write_page page = blob_pages_page(b, index);
  const uint8_t bit = (uint8_t)(1u << (index & 7));
  const int code = write_queue_add_page(f->queue, &page, b->page_bytes, offset);
  b->unseen -= (b->seen[index / 8] & bit) == 0;
  b->seen[index / 8] |= bit;
  b->mark = write_queue_mark(f->queue);
  return code;
}

/* ---- reading and writing */

static int add_page(vfs_file *f, const void *bytes, int size, sqlite3_int64 offset) {
  int64_t index = -1;
  blob_pages *b = blob_at(f, size, offset, &index);
  if (!b) return write_queue_add(f->queue, bytes, (size_t)size, offset);
  if (blob_pages_are_empty(b, index, bytes)) return write_blob_page(f, b, index, offset);
  if ((b->seen[index / 8] >> (index & 7) & 1) != 0) return write_queue_add(f->queue, bytes, (size_t)size, offset);
  f->is_unlike = true; /* the transaction fails, and the next one leaves the content to SQLite */
  return SQLITE_IOERR_WRITE;
}

/* Writes to the file. In WAL mode the write is not delayed: a checkpoint regards a page as written when the call
 * returns, and may skip the sync. */
static int vfs_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset) {
  if (((vfs_file *)file)->has_log) return real_of(file)->pMethods->xWrite(real_of(file), bytes, size, offset);
  return add_page((vfs_file *)file, bytes, size, offset);
}

static int vfs_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 offset) {
  sqlite3_file *real = real_of(file);
  pthread_mutex_t *lock = &((vfs_file *)file)->real_lock;
  bool is_copied = false;
  int code = write_queue_read(queue_of(file), bytes, (size_t)size, offset, &is_copied);
  if (code != SQLITE_OK || is_copied) return code;
  pthread_mutex_lock(lock); /* does not wait for pages of blobs, which are written without SQLite's file */
  code = real->pMethods->xRead(real, bytes, size, offset);
  pthread_mutex_unlock(lock);
  return code;
}

/* ---- calls that wait until all is written */

static int vfs_truncate(sqlite3_file *file, sqlite3_int64 size) {
  const int code = write_all(file);
  return code != SQLITE_OK ? code : real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int vfs_sync(sqlite3_file *file, int flags) {
  const int code = write_all(file);
  return code != SQLITE_OK ? code : real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int vfs_file_size(sqlite3_file *file, sqlite3_int64 *size) {
  const int code = write_all(file);
  return code != SQLITE_OK ? code : real_of(file)->pMethods->xFileSize(real_of(file), size);
}

/* Locks no file that was removed while the caller waited: SQLite would take the journal of a new file of that name for
 * this file's, and delete it. */
static int vfs_lock(sqlite3_file *file, int level) {
  sqlite3_file *real = real_of(file);
  int has_moved = 0, code = write_queue_drain(queue_of(file)); /* no space is allocated without a lock */
  if (code == SQLITE_OK) code = real->pMethods->xLock(real, level);
  if (code != SQLITE_OK || level != SQLITE_LOCK_SHARED) return code;
  if (real->pMethods->xFileControl(real, SQLITE_FCNTL_HAS_MOVED, &has_moved) != SQLITE_OK || has_moved == 0)
    return SQLITE_OK;
  (void)real->pMethods->xUnlock(real, SQLITE_LOCK_NONE);
  return SQLITE_BUSY;
}

/* Ends the transaction in any case. After a failure SQLite leaves its journal, and the next lock rolls the transaction
 * back. */
static int vfs_unlock(sqlite3_file *file, int level) {
  const int failure = write_queue_drain(queue_of(file));
  const int error = errno;
  page_file_end(&((vfs_file *)file)->pages);
  const int code = real_of(file)->pMethods->xUnlock(real_of(file), level);
  write_queue_forget(queue_of(file));
  if (failure != SQLITE_OK) errno = error;
  return failure != SQLITE_OK ? failure : code;
}

static int vfs_check_lock(sqlite3_file *file, int *reserved) {
  (void)write_queue_drain(queue_of(file));
  return real_of(file)->pMethods->xCheckReservedLock(real_of(file), reserved);
}

/* SQLite sends the size hint before every page, and asks whether pragmas are the VFS's; neither changes the file, so
   they need not wait for the queue */
static int vfs_control(sqlite3_file *file, int operation, void *argument) {
  sqlite3_file *real = real_of(file);
  if (operation == SQLITE_FCNTL_SIZE_HINT) return SQLITE_OK;
  if (operation == SQLITE_FCNTL_PRAGMA) return SQLITE_NOTFOUND;
  const int code = write_all(file);
  return code != SQLITE_OK ? code : real->pMethods->xFileControl(real, operation, argument);
}

static int vfs_sector_size(sqlite3_file *file) {
  (void)write_queue_drain(queue_of(file));
  return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int vfs_characteristics(sqlite3_file *file) {
  (void)write_queue_drain(queue_of(file));
  return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int vfs_close(sqlite3_file *file) {
  vfs_file *f = (vfs_file *)file;
  write_queue_free(queue_of(file));
  page_file_end(&f->pages);
  for (size_t i = 0; i < f->blob_count; i++) blob_pages_free(&f->blobs[i]);
  pthread_mutex_destroy(&f->real_lock);
  return real_of(file)->pMethods->xClose(real_of(file));
}

/* ---- shared memory, of a database with a write-ahead log */

static int vfs_map(sqlite3_file *file, int region, int size, int extend, void volatile **memory) {
  const int code = write_queue_drain(queue_of(file));
  if (code != SQLITE_OK) return code;
  ((vfs_file *)file)->has_log = true;
  return real_of(file)->pMethods->xShmMap(real_of(file), region, size, extend, memory);
}

static int vfs_lock_shared(sqlite3_file *file, int offset, int count, int flags) {
  const int code = write_queue_drain(queue_of(file));
  const bool unlocks = (flags & SQLITE_SHM_UNLOCK) != 0;
  if (code != SQLITE_OK && !unlocks) return code;
  return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}

static void vfs_barrier(sqlite3_file *file) { real_of(file)->pMethods->xShmBarrier(real_of(file)); }

static int vfs_unmap(sqlite3_file *file, int remove) {
  ((vfs_file *)file)->has_log = false;
  return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

/* ---- opening */

/* version 3 is not supported, because it maps a database into memory */
static const sqlite3_io_methods vfs_methods = {.iVersion = 2,
                                               .xClose = vfs_close,
                                               .xRead = vfs_read,
                                               .xWrite = vfs_write,
                                               .xTruncate = vfs_truncate,
                                               .xSync = vfs_sync,
                                               .xFileSize = vfs_file_size,
                                               .xLock = vfs_lock,
                                               .xUnlock = vfs_unlock,
                                               .xCheckReservedLock = vfs_check_lock,
                                               .xFileControl = vfs_control,
                                               .xSectorSize = vfs_sector_size,
                                               .xDeviceCharacteristics = vfs_characteristics,
                                               .xShmMap = vfs_map,
                                               .xShmLock = vfs_lock_shared,
                                               .xShmBarrier = vfs_barrier,
                                               .xShmUnmap = vfs_unmap};

/* Opens a file. Journals and temporary files use the default VFS directly. */
static int vfs_open(sqlite3_vfs *layer, const char *name, sqlite3_file *file, int flags, int *out_flags) {
  (void)layer;
  if ((flags & SQLITE_OPEN_MAIN_DB) == 0) return vfs_root->xOpen(vfs_root, name, file, flags, out_flags);
  sqlite3_file *real = real_of(file);
  file->pMethods = NULL; /* null, so that SQLite does not close it */
  const int code = vfs_root->xOpen(vfs_root, name, real, flags, out_flags);
  if (code != SQLITE_OK) {
    if (real->pMethods) (void)real->pMethods->xClose(real);
    return code;
  }
  ((vfs_file *)file)->has_log = ((vfs_file *)file)->is_unlike = false;
  ((vfs_file *)file)->blob_count = 0;
  /* another layer of the process may encode or count what is written */
  page_file_open(&((vfs_file *)file)->pages, strcmp(vfs_root->zName, "unix") == 0 ? name : NULL);
  const bool has_pages = page_file_is_open(&((vfs_file *)file)->pages);
  const bool has_lock = pthread_mutex_init(&((vfs_file *)file)->real_lock, NULL) == 0;
  ((vfs_file *)file)->queue = has_lock ? write_queue_make(write_bytes, has_pages ? write_pages : NULL, file) : NULL;
  if (!queue_of(file)) {
    if (has_lock) pthread_mutex_destroy(&((vfs_file *)file)->real_lock);
    (void)real->pMethods->xClose(real);
    return SQLITE_NOMEM;
  }
  file->pMethods = &vfs_methods;
  return SQLITE_OK;
}

/* Registers the VFS. All methods except opening are those of the default VFS, which receives a copy of itself. */
static void vfs_register(void) {
  if (sqlite3_initialize() != SQLITE_OK) return;
  vfs_root = sqlite3_vfs_find(NULL);
  if (!vfs_root) return;
  vfs_layer = *vfs_root;
  vfs_layer.zName = "hartsift-behind";
  vfs_layer.szOsFile = (int)sizeof(vfs_file) + vfs_root->szOsFile;
  vfs_layer.xOpen = vfs_open;
  if (sqlite3_vfs_register(&vfs_layer, 0) != SQLITE_OK) vfs_layer.zName = NULL;
}

const char *colmap_vfs_name(void) {
  (void)pthread_once(&vfs_once, vfs_register);
  return vfs_layer.zName;
}

/* Returns the database's file; null: it was opened without this VFS. */
static vfs_file *file_of(sqlite3 *sqlite) {
  sqlite3_file *file = NULL;
  const int code = sqlite3_file_control(sqlite, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  return code == SQLITE_OK && file && file->pMethods == &vfs_methods ? (vfs_file *)file : NULL;
}

double colmap_vfs_cpu_s(sqlite3 *sqlite) {
  const vfs_file *f = file_of(sqlite);
  return f ? write_queue_cpu_s(f->queue) : 0;
}

bool colmap_vfs_takes_blobs(sqlite3 *sqlite) {
  vfs_file *f = file_of(sqlite);
  if (!f || f->has_log || f->is_unlike) return false;
  free_written(f);
  return f->blob_count < BLOBS_MOST;
}

void colmap_vfs_take_blob(sqlite3 *sqlite, const blob_pages *blob) {
  vfs_file *f = file_of(sqlite);
  f->blobs[f->blob_count++] = *blob;
}

void colmap_vfs_free_blobs(sqlite3 *sqlite) {
  vfs_file *f = file_of(sqlite);
  if (!f || f->blob_count == 0) return;
  (void)write_queue_drain(f->queue); /* a failure stays until the lock is released */
  free_written(f);
}

int colmap_vfs_schema_format(sqlite3 *sqlite) {
  enum { HEADER_BYTES = 100, FORMAT_AT = 44 };
  uint8_t bytes[4];
  sqlite3_int64 size = 0;
  sqlite3_file *file = (sqlite3_file *)file_of(sqlite);
  if (!file || vfs_file_size(file, &size) != SQLITE_OK) return -1;
  if (size < HEADER_BYTES) return 0;
  if (vfs_read(file, bytes, sizeof bytes, FORMAT_AT) != SQLITE_OK) return -1;
  return bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

bool colmap_vfs_lacks_pages(sqlite3 *sqlite) {
  const vfs_file *f = file_of(sqlite);
  size_t unseen = 0;
  for (size_t i = 0; f && i < f->blob_count; i++) unseen += f->blobs[i].unseen;
  return unseen > 0;
}

void colmap_vfs_drop_blobs(sqlite3 *sqlite, uint32_t page_count) {
  vfs_file *f = file_of(sqlite);
  size_t kept = 0;
  if (!f || f->blob_count == 0) return;
  (void)write_queue_drain(f->queue); /* a failure stays until the lock is released */
  for (size_t i = 0; i < f->blob_count; i++)
    if (f->blobs[i].first > page_count)
      blob_pages_free(&f->blobs[i]);
    else
      f->blobs[kept++] = f->blobs[i];
  f->blob_count = kept;
}
