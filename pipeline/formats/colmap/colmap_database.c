/*
 * COLMAP's database: opening and transactions. Its contents are in colmap_images.c, colmap_features.c,
 * colmap_matches.c.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "cpu/schedule/float_environment.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/formats/colmap/colmap_internal.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/formats/colmap/colmap_records.h"

enum { COLMAP_SIGNATURE_BYTES = 16, COLMAP_PATH_BYTES = 4096, COLMAP_OPEN_TRIES = 10, COLMAP_POLL_MS = 5 };

const char *hs_colmap_last_error(const hs_colmap_database *database) { return database ? database->message : ""; }

/* ------------------------------------------------------------------ transactions */

/* True if the path no longer leads to the opened file, so that everything written would be lost. */
static bool has_moved(const hs_colmap_database *database) {
  int moved = 0;
  return database->sqlite &&
         sqlite3_file_control(database->sqlite, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
}

/* Handler that SQLite calls while the file is locked. Retries until the time is over or the file is removed: for a
   removed file SQLite would use the journal of a new file with the same name. */
static int wait_for_lock(void *user, int count) {
  const hs_colmap_database *database = user;
  if ((int64_t)count * COLMAP_POLL_MS >= database->options.wait_ms) return 0;
  (void)sqlite3_sleep(COLMAP_POLL_MS);
  return !has_moved(database);
}

/* Begins a transaction. Reads the schema again, because another program may have changed it. */
static hs_status colmap_begin(hs_colmap_database *database) {
  assert(!database->is_reading);
  if (database->in_transaction) return HS_OK;
  const bool read_only = database->options.read_only != 0;
  hs_status status = colmap_run(database, read_only ? "BEGIN" : "BEGIN IMMEDIATE");
  if (status != HS_OK)
    return has_moved(database) ? colmap_fail(database, HS_ERR_IO, "was removed or replaced after it was opened")
                               : status;
  if (!read_only && sqlite3_db_readonly(database->sqlite, "main") != 0)
    status = colmap_fail(database, HS_ERR_IO, "may not be written to");
  else if (!read_only && has_moved(database)) /* SQLite makes this check too, but not for an empty file */
    status = colmap_fail(database, HS_ERR_IO, "was removed or replaced after it was opened");
  else
    status = colmap_schema_settle(database);
  const int64_t before = database->data_version;
  if (status == HS_OK) status = colmap_query(database, "PRAGMA data_version", 0, &database->data_version, NULL);
  if (before != database->data_version) colmap_forget_choices(database);
  /* a refused schema must neither stay locked nor count as known in the next call */
  if (status != HS_OK) (void)sqlite3_exec(database->sqlite, "ROLLBACK", NULL, NULL, NULL);
  database->in_transaction = status == HS_OK;
  memset(database->shapes, 0, sizeof database->shapes);
  database->orphans = COLMAP_ORPHANS_UNKNOWN; /* another program may have written since the last transaction */
  return status;
}

hs_status colmap_enter_reading(hs_colmap_database *database) {
  if (!database) return HS_ERR_ARGUMENT;
  database->message[0] = '\0';
  return HS_OK;
}

hs_status colmap_enter_unsaved(hs_colmap_database *database) {
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  if (database->options.read_only != 0) return colmap_fail(database, HS_ERR_ARGUMENT, "was opened for reading only");
  if (database->is_broken)
    return colmap_fail(database, HS_ERR_IO, "an earlier failure ended the transaction, of which nothing was kept");
  database->has_counts = database->has_highest = false;
  return colmap_begin(database);
}

hs_status colmap_save(hs_colmap_database *database) {
  return colmap_query(database, "SAVEPOINT hartsift", 0, NULL, NULL);
}

hs_status colmap_enter(hs_colmap_database *database) {
  const hs_status status = colmap_enter_unsaved(database);
  return status == HS_OK ? colmap_save(database) : status;
}

/* Adds to the message that the failure (such as a full disk) has ended the transaction. */
static void lose_transaction(hs_colmap_database *database) {
  const size_t used = strlen(database->message);
  database->is_broken = true;
  colmap_vfs_drop_blobs(database->sqlite, 0);
  snprintf(database->message + used, sizeof database->message - used, "; nothing of the open transaction was kept");
}

/* Forgets what a rollback has undone. Keeps the message. */
static void drop_undone(hs_colmap_database *database) {
  char reason[COLMAP_MESSAGE_BYTES];
  int64_t pages = 0;
  snprintf(reason, sizeof reason, "%s", database->message);
  colmap_schema_find_own_tables(database);
  const hs_status status = colmap_query(database, "PRAGMA page_count", 0, &pages, NULL);
  snprintf(database->message, sizeof database->message, "%s", reason);
  if (status == HS_OK)
    colmap_vfs_drop_blobs(database->sqlite, (uint32_t)pages);
  else
    lose_transaction(database); /* which blobs are undone is unknown */
}

hs_status colmap_leave(hs_colmap_database *database, hs_status status) {
  if (status == HS_OK) return colmap_query(database, "RELEASE hartsift", 0, NULL, NULL);
  colmap_forget_choices(database);
  /* after some errors (a full disk) SQLite has already rolled back the complete transaction */
  if (sqlite3_get_autocommit(database->sqlite) != 0 ||
      sqlite3_exec(database->sqlite, "ROLLBACK TO hartsift; RELEASE hartsift", NULL, NULL, NULL) != SQLITE_OK)
    lose_transaction(database);
  else
    drop_undone(database);
  return status;
}

hs_status colmap_undo(hs_colmap_database *database, hs_status status, const char *sql, int64_t parameter) {
  char reason[COLMAP_MESSAGE_BYTES];
  snprintf(reason, sizeof reason, "%s", database->message);
  /* after some errors (a full disk) SQLite has already rolled back the complete transaction */
  const bool is_undone = sqlite3_get_autocommit(database->sqlite) == 0 &&
                         (!sql || colmap_query(database, sql, parameter, NULL, NULL) == HS_OK);
  snprintf(database->message, sizeof database->message, "%s", reason);
  if (!is_undone) lose_transaction(database);
  return status;
}

hs_status hs_colmap_commit(hs_colmap_database *database) {
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  if (database->options.read_only != 0) return colmap_fail(database, HS_ERR_ARGUMENT, "was opened for reading only");
  if (database->is_broken)
    return colmap_fail(database, HS_ERR_IO, "an earlier failure ended the transaction, of which nothing was kept");
  if (!database->in_transaction) return HS_OK;
  status = colmap_finish_blobs(database);
  if (status == HS_OK) status = colmap_run(database, "COMMIT");
  if (status != HS_OK) {
    lose_transaction(database);
    return status;
  }
  database->in_transaction = false;
  database->is_new = false;
  colmap_forget_blobs(database);
  return HS_OK;
}

void colmap_begin_reading(hs_colmap_database *database) {
  /* after a failure, and within a transaction that writes, calls work as without */
  database->is_reading =
      !database->in_transaction && sqlite3_exec(database->sqlite, "BEGIN", NULL, NULL, NULL) == SQLITE_OK;
  database->gap_first = database->gap_end = 0;
}

void colmap_end_reading(hs_colmap_database *database) {
  if (database->is_reading && sqlite3_get_autocommit(database->sqlite) == 0)
    (void)sqlite3_exec(database->sqlite, "ROLLBACK", NULL, NULL, NULL);
  database->is_reading = false;
}

/* ------------------------------------------------------------------ opening and closing */

static sqlite3_file *file_of(const hs_colmap_database *database) {
  sqlite3_file *file = NULL;
  const int code = sqlite3_file_control(database->sqlite, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  return code == SQLITE_OK && file && file->pMethods ? file : NULL;
}

/* Removes a file that opening created and that is still empty, but not a link to it, and not while another program uses
   it. A program that waits for the file's lock finds it removed. The lock is taken without an SQLite transaction:
   SQLite would remove that transaction's journal after the file, and by then the journal may belong to a new file.
   refused: name of the file if it could not be removed, as on Windows while it is open; else "". */
static void remove_unused(const hs_colmap_database *database, char refused[COLMAP_PATH_BYTES]) {
  sqlite3_file *file = database->is_new ? file_of(database) : NULL;
  const char *name = file ? sqlite3_db_filename(database->sqlite, "main") : NULL;
  os_info info;
  refused[0] = '\0';
  if (!name) return;
  if (file->pMethods->xLock(file, SQLITE_LOCK_SHARED) == SQLITE_OK &&
      file->pMethods->xLock(file, SQLITE_LOCK_EXCLUSIVE) == SQLITE_OK && !has_moved(database) &&
      os_info_of(name, &info) && info.size == 0 && !os_remove(name) && strlen(name) < COLMAP_PATH_BYTES)
    memcpy(refused, name, strlen(name) + 1);
  (void)file->pMethods->xUnlock(file, SQLITE_LOCK_NONE);
}

void hs_colmap_close(hs_colmap_database *database) {
  if (!database) return;
  const hs_allocator *allocator = database->options.allocator;
  if (database->sqlite) {
    if (sqlite3_get_autocommit(database->sqlite) == 0 &&
        sqlite3_exec(database->sqlite, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
      database->is_broken = true;
    sqlite3_free(database->name_text);
    colmap_forget_choices(database);
    colmap_drop_statements(database);
    /* after a full disk the next reader would roll back; this does it now, because the file may be moved without its
       journal */
    if (database->is_broken) (void)sqlite3_exec(database->sqlite, "PRAGMA schema_version", NULL, NULL, NULL);
    char refused[COLMAP_PATH_BYTES];
    os_info info;
    remove_unused(database, refused);
    (void)sqlite3_close(database->sqlite);
    if (refused[0] != '\0' && os_info_of(refused, &info) && info.size == 0) (void)os_remove(refused);
  }
  hs_memory_release(allocator, database->path);
  hs_memory_release(allocator, database);
}

/* Copies a path in a form that SQLite does not interpret: it treats some names specially (":memory:", "file:..."), but
   none that begin with "/" or "./". */
static char *copy_path(const char *path, const hs_allocator *allocator) {
  const char *prefix = os_is_absolute(path) ? "" : "./";
  const size_t prefix_size = strlen(prefix);
  const size_t size = strlen(path) + 1;
  size_t bytes;
  char *copy = hs_size_add(prefix_size, size, &bytes) ? hs_memory_alloc(allocator, bytes) : NULL;
  if (!copy) return NULL;
  memcpy(copy, prefix, prefix_size);
  memcpy(copy + prefix_size, path, size);
  return copy;
}

/* True if a writer was killed before its first commit: it leaves pages without a first page, and a journal with which
   SQLite rolls them back. */
static bool is_unfinished(const char *path, const char first[COLMAP_SIGNATURE_BYTES]) {
  static const char nothing[COLMAP_SIGNATURE_BYTES];
  static const char ending[] = "-journal";
  char journal[COLMAP_PATH_BYTES];
  const int length = snprintf(journal, sizeof journal, "%s%s", path, ending);
  return memcmp(first, nothing, sizeof nothing) == 0 && length > 0 && (size_t)length < sizeof journal &&
         os_exists(journal);
}

/* Reads the first bytes through SQLite, because closing a second descriptor would release this process's locks on the
   file (POSIX, close). *size: size of the file. */
static bool read_first(const hs_colmap_database *database, char first[COLMAP_SIGNATURE_BYTES], sqlite3_int64 *size) {
  sqlite3_file *file = file_of(database);
  return file && file->pMethods->xFileSize(file, size) == SQLITE_OK &&
         (*size < COLMAP_SIGNATURE_BYTES || file->pMethods->xRead(file, first, COLMAP_SIGNATURE_BYTES, 0) == SQLITE_OK);
}

/* Checks the signature twice: a writer that creates the database may finish between the checks of the pages and of the
   journal. */
static hs_status check_signature(hs_colmap_database *database) {
  static const char signature[COLMAP_SIGNATURE_BYTES] = "SQLite format 3";
  /* the name has the link resolved, because the journal is in the folder of the file itself */
  const char *name = sqlite3_db_filename(database->sqlite, "main");
  for (int look = 0; look < 2; look++) {
    char first[COLMAP_SIGNATURE_BYTES];
    sqlite3_int64 size = 0;
    if (!read_first(database, first, &size)) return colmap_fail(database, HS_ERR_IO, "cannot be read");
    if (size == 0) return HS_OK;
    if (size < (sqlite3_int64)sizeof first) break;
    if (memcmp(first, signature, sizeof first) == 0 || is_unfinished(name, first)) return HS_OK;
  }
  return colmap_fail(database, HS_ERR_FORMAT, "not an SQLite database");
}

/* Refuses files that are not SQLite databases, which SQLite itself would open. */
static hs_status check_file(hs_colmap_database *database) {
  os_info info;
  if (!os_info_of(database->path, &info)) {
    const int error = errno;
    if (error == ENOENT && database->options.read_only == 0) {
      database->is_new = true;
      return HS_OK;
    }
    return colmap_fail(database, HS_ERR_IO, "cannot open: %s", strerror(error));
  }
  if (info.kind == OS_FOLDER) return colmap_fail(database, HS_ERR_IO, "is a folder: expected the name of a database");
  if (info.kind != OS_REGULAR) return colmap_fail(database, HS_ERR_IO, "not a regular file");
  return HS_OK;
}

/* Names the reason why SQLite cannot open a file, of which it keeps none: a file that it cannot create, it tries to
   read. */
static hs_status fail_open(hs_colmap_database *database) {
  char folder[COLMAP_PATH_BYTES];
  const char *slash = strrchr(database->path, '/');
  const size_t length = slash ? (size_t)(slash - database->path) + 1 : sizeof folder;
  if ((sqlite3_errcode(database->sqlite) & 0xff) != SQLITE_CANTOPEN || length >= sizeof folder)
    return colmap_fail_sqlite(database, "open");
  memcpy(folder, database->path, length);
  folder[length] = '\0';
  if (database->is_new && !os_may(folder, OS_MAY_WRITE))
    return colmap_fail(database, HS_ERR_IO, "cannot be created: %s", strerror(errno));
  if (!database->is_new && !os_may(database->path, OS_MAY_READ))
    return colmap_fail(database, HS_ERR_IO, "cannot open: %s", strerror(errno));
  char *whole = os_real_path(folder);
  const size_t bytes = whole ? strlen(whole) + strlen(slash) + strlen("-journal") : 0;
  const size_t path_max = (size_t)sqlite3_vfs_find(NULL)->mxPathname;
  free(whole);
  if (bytes <= path_max) return colmap_fail_sqlite(database, "open");
  return colmap_fail(database, HS_ERR_IO, "cannot open: with its folders the name has %zu bytes too many for SQLite",
                     bytes - path_max);
}

/* Opens the file with SQLite. layer: name of the SQLite VFS; null: the default. */
static hs_status open_sqlite(hs_colmap_database *database, const char *layer) {
  const int flags =
      SQLITE_OPEN_NOMUTEX |
      (database->options.read_only != 0 ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  errno = 0;
  if (sqlite3_open_v2(database->path, &database->sqlite, flags, layer) != SQLITE_OK) {
    if (!database->sqlite) return colmap_fail(database, HS_ERR_MEMORY, "out of memory");
    return fail_open(database);
  }
  hs_status status = check_signature(database);
  if (status != HS_OK) return status;
  (void)sqlite3_busy_handler(database->sqlite, wait_for_lock, database);
  /* in defensive mode the schema of an untrusted database cannot run code */
  (void)sqlite3_db_config(database->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  status = colmap_run(database, "PRAGMA trusted_schema = OFF");
  /* page size of a new file; an existing file keeps its page size. A row of features has megabytes, and with SQLite's
     default of 4096 bytes most of the time is spent on pages */
  if (status == HS_OK && database->options.read_only == 0) status = colmap_run(database, "PRAGMA page_size = 16384");
  return status == HS_OK ? colmap_begin(database) : status;
}

/* Opens a database. options: complete. *again: another program removed its empty file while this program waited for the
   lock. */
static hs_status open_once(const char *layer, hs_colmap_database **database, const char *path,
                           const hs_colmap_options *options, bool *again) {
  hs_colmap_database *made = hs_memory_alloc(options->allocator, sizeof *made);
  char *copy = copy_path(path, options->allocator);
  *again = false;
  if (!made || !copy) {
    hs_memory_release(options->allocator, made);
    hs_memory_release(options->allocator, copy);
    return hs_message_fail(HS_ERR_MEMORY, options->message, options->message_bytes, "%s: out of memory", path);
  }
  memset(made, 0, sizeof *made);
  made->options = *options;
  made->path = copy;
  made->shown_path = copy + strlen(copy) - strlen(path);
  hs_status status = check_file(made);
  if (status == HS_OK) status = open_sqlite(made, layer);
  if (status != HS_OK) {
    *again = has_moved(made);
    hs_message_set(options->message, options->message_bytes, "%s", made->message);
    hs_colmap_close(made);
    return status;
  }
  made->options.message = NULL; /* from here on, messages go to hs_colmap_last_error */
  *database = made;
  return HS_OK;
}

static hs_status open_through(const char *layer, hs_colmap_database **database, const char *path,
                              const hs_colmap_options *options) {
  hs_colmap_options complete;
  *database = NULL;
  hs_status status = colmap_complete_options(options, &complete);
  if (status != HS_OK) return status;
  if (!path || path[0] == '\0')
    return hs_message_fail(HS_ERR_ARGUMENT, complete.message, complete.message_bytes, "path is null or empty");
  bool again = true;
  for (int i = 0; i < COLMAP_OPEN_TRIES && again; i++) status = open_once(layer, database, path, &complete, &again);
  if (status == HS_OK) hs_message_set(complete.message, complete.message_bytes, "%s", "");
  return status;
}

hs_status hs_colmap_open(hs_colmap_database **database, const char *path, const hs_colmap_options *options) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return database ? open_through(NULL, database, path, options) : HS_ERR_ARGUMENT;
}

hs_status colmap_open_behind(hs_colmap_database **database, const char *path, const hs_colmap_options *options) {
  return open_through(colmap_vfs_name(), database, path, options);
}

/* Only while the transaction is open, whose lock keeps other programs from writing. */
const char *colmap_new_path(const hs_colmap_database *database) {
  const bool may_be_new = database->is_new && database->in_transaction;
  const char *name = may_be_new ? sqlite3_db_filename(database->sqlite, "main") : NULL;
  os_info info;
  return name && os_info_of(name, &info) && info.size == 0 ? name : NULL;
}

double colmap_writer_cpu_s(const hs_colmap_database *database) { return colmap_vfs_cpu_s(database->sqlite); }
