/* The write-behind VFS, which wraps SQLite's default VFS; see colmap_internal.h. */
#include "os/os_threads.h"
#include "pipeline/formats/colmap/colmap_internal.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/formats/colmap/write_queue.h"

/* A database file; in memory SQLite's own file structure follows. */
typedef struct vfs_file {
  sqlite3_file base;
  write_queue *queue;
  bool has_log; /* the file has a write-ahead log, so writes are not delayed */
} vfs_file;

static sqlite3_vfs *vfs_root; /* default VFS of SQLite */
static sqlite3_vfs vfs_layer;
static pthread_once_t vfs_once = PTHREAD_ONCE_INIT;

static sqlite3_file *real_of(sqlite3_file *file) { return (sqlite3_file *)((vfs_file *)file + 1); }

static write_queue *queue_of(sqlite3_file *file) { return ((vfs_file *)file)->queue; }

static int write_real(void *file, const void *bytes, size_t size, int64_t offset) {
  sqlite3_file *real = file;
  return real->pMethods->xWrite(real, bytes, (int)size, offset);
}

/* ---- reading and writing */

/* Writes to the file. In WAL mode the write is not delayed: a checkpoint regards a page as written when the call
 * returns, and may skip the sync. */
static int vfs_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset) {
  if (((vfs_file *)file)->has_log) return real_of(file)->pMethods->xWrite(real_of(file), bytes, size, offset);
  return write_queue_add(queue_of(file), bytes, (size_t)size, offset);
}

static int vfs_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 offset) {
  sqlite3_file *real = real_of(file);
  bool is_copied = false;
  int code = write_queue_read(queue_of(file), bytes, (size_t)size, offset, &is_copied);
  if (code != SQLITE_OK || is_copied) return code;
  write_queue_hold(queue_of(file));
  code = real->pMethods->xRead(real, bytes, size, offset);
  write_queue_release(queue_of(file));
  return code;
}

/* ---- calls that wait until all is written */

static int vfs_truncate(sqlite3_file *file, sqlite3_int64 size) {
  const int code = write_queue_drain(queue_of(file));
  return code != SQLITE_OK ? code : real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int vfs_sync(sqlite3_file *file, int flags) {
  const int code = write_queue_drain(queue_of(file));
  return code != SQLITE_OK ? code : real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int vfs_file_size(sqlite3_file *file, sqlite3_int64 *size) {
  const int code = write_queue_drain(queue_of(file));
  return code != SQLITE_OK ? code : real_of(file)->pMethods->xFileSize(real_of(file), size);
}

/* Locks no file that was removed while the caller waited: SQLite would take the journal of a new file of that name for
 * this file's, and delete it. */
static int vfs_lock(sqlite3_file *file, int level) {
  sqlite3_file *real = real_of(file);
  int has_moved = 0, code = write_queue_drain(queue_of(file));
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
  const int code = real_of(file)->pMethods->xUnlock(real_of(file), level);
  write_queue_forget(queue_of(file));
  if (failure != SQLITE_OK) errno = error;
  return failure != SQLITE_OK ? failure : code;
}

static int vfs_check_lock(sqlite3_file *file, int *reserved) {
  (void)write_queue_drain(queue_of(file));
  return real_of(file)->pMethods->xCheckReservedLock(real_of(file), reserved);
}

/* SQLite sends the size hint before every page; it changes nothing, so it need not wait for the queue */
static int vfs_control(sqlite3_file *file, int operation, void *argument) {
  sqlite3_file *real = real_of(file);
  if (operation == SQLITE_FCNTL_SIZE_HINT) return SQLITE_OK;
  const int code = write_queue_drain(queue_of(file));
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
  write_queue_free(queue_of(file));
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
  ((vfs_file *)file)->has_log = false;
  ((vfs_file *)file)->queue = write_queue_make(write_real, real);
  if (!queue_of(file)) {
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

double colmap_vfs_cpu_s(sqlite3 *sqlite) {
  sqlite3_file *file = NULL;
  const int code = sqlite3_file_control(sqlite, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  return code == SQLITE_OK && file && file->pMethods == &vfs_methods ? write_queue_cpu_s(queue_of(file)) : 0;
}
