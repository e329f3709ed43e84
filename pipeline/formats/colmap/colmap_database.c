/*
 * COLMAP's database: opening and transactions. What is in it: colmap_images.c, colmap_features.c, colmap_matches.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/formats/colmap/colmap_internal.h"
#include "pipeline/formats/colmap/colmap_records.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/message.h"

enum { COLMAP_SIGNATURE_BYTES = 16, COLMAP_PATH_BYTES = 4096, COLMAP_OPEN_TRIES = 10, COLMAP_POLL_MS = 5 };

const char *hs_colmap_last_error(const hs_colmap_database *database) { return database ? database->message : ""; }

/* ------------------------------------------------------------------ transactions */

/* Whether the file of this name is no longer the one that was opened: what went there would be lost. */
static bool has_moved(const hs_colmap_database *database) {
  int moved = 0;
  return database->sqlite &&
         sqlite3_file_control(database->sqlite, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
}

/* SQLite's call while it waits for a lock. It goes on while there is time and the file is there: beside a file that
   went, SQLite would take the journal of the next one for its own. */
static int wait_for_lock(void *user, int count) {
  const hs_colmap_database *database = user;
  if ((int64_t)count * COLMAP_POLL_MS >= database->options.wait_ms || has_moved(database)) return 0;
  (void)sqlite3_sleep(COLMAP_POLL_MS);
  return 1;
}

/* Reads the tables again each time, because another program may have changed them between two transactions. */
static hs_status colmap_begin(hs_colmap_database *database) {
  if (database->in_transaction) return HS_OK;
  const bool read_only = database->options.read_only != 0;
  hs_status status = colmap_run(database, read_only ? "BEGIN" : "BEGIN IMMEDIATE");
  if (status != HS_OK) return status;
  if (!read_only && sqlite3_db_readonly(database->sqlite, "main") != 0)
    status = colmap_fail(database, HS_ERR_IO, "may not be written to");
  else if (!read_only && has_moved(database)) /* SQLite asks this itself, but not of an empty file */
    status = colmap_fail(database, HS_ERR_IO, "was removed or replaced after it was opened");
  else
    status = colmap_schema_settle(database);
  const int64_t before = database->data_version;
  if (status == HS_OK) status = colmap_query(database, "PRAGMA data_version", 0, &database->data_version, NULL);
  if (before != database->data_version) colmap_forget_choices(database);
  /* Refused tables are neither kept locked nor taken for known by the next call. */
  if (status != HS_OK) (void)sqlite3_exec(database->sqlite, "ROLLBACK", NULL, NULL, NULL);
  database->in_transaction = status == HS_OK;
  database->strays = COLMAP_STRAYS_UNKNOWN; /* another program may have written since */
  return status;
}

hs_status colmap_enter_reading(hs_colmap_database *database) {
  if (!database) return HS_ERR_ARGUMENT;
  database->message[0] = '\0';
  return HS_OK;
}

hs_status colmap_enter(hs_colmap_database *database) {
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  if (database->options.read_only != 0) return colmap_fail(database, HS_ERR_ARGUMENT, "was opened for reading only");
  if (database->is_broken)
    return colmap_fail(database, HS_ERR_IO, "an earlier failure ended the transaction, of which nothing was kept");
  status = colmap_begin(database);
  return status == HS_OK ? colmap_query(database, "SAVEPOINT hartsift", 0, NULL, NULL) : status;
}

/* After a failure that ended the transaction, such as a full disk: adds to the reason what that means. */
static void lose_transaction(hs_colmap_database *database) {
  const size_t used = strlen(database->message);
  database->is_broken = true;
  snprintf(database->message + used, sizeof database->message - used, "; nothing of the open transaction was kept");
}

hs_status colmap_leave(hs_colmap_database *database, hs_status status) {
  if (status == HS_OK) return colmap_query(database, "RELEASE hartsift", 0, NULL, NULL);
  colmap_forget_choices(database);
  /* After some errors (a full disk) SQLite has undone the whole transaction by itself. */
  if (sqlite3_get_autocommit(database->sqlite) != 0 ||
      sqlite3_exec(database->sqlite, "ROLLBACK TO hartsift; RELEASE hartsift", NULL, NULL, NULL) != SQLITE_OK)
    lose_transaction(database);
  else
    colmap_schema_find_own_tables(database);
  return status;
}

hs_status hs_colmap_commit(hs_colmap_database *database) {
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  if (database->options.read_only != 0) return colmap_fail(database, HS_ERR_ARGUMENT, "was opened for reading only");
  if (database->is_broken)
    return colmap_fail(database, HS_ERR_IO, "an earlier failure ended the transaction, of which nothing was kept");
  if (!database->in_transaction) return HS_OK;
  status = colmap_run(database, "COMMIT");
  if (status != HS_OK) {
    lose_transaction(database);
    return status;
  }
  database->in_transaction = false;
  database->is_new = false;
  return HS_OK;
}

/* ------------------------------------------------------------------ opening and closing */

static sqlite3_file *file_of(const hs_colmap_database *database) {
  sqlite3_file *file = NULL;
  const int code = sqlite3_file_control(database->sqlite, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  return code == SQLITE_OK && file && file->pMethods ? file : NULL;
}

/* A file that opening made and that is still empty goes away again, not the link that led to it, unless another program is
   at work on it; one that waits for its lock finds that it has gone. The lock is taken past SQLite's transactions, whose
   journal would be removed after the file, when it may be the journal of the next one. */
static void remove_unused(const hs_colmap_database *database) {
  sqlite3_file *file = database->is_new ? file_of(database) : NULL;
  const char *name = file ? sqlite3_db_filename(database->sqlite, "main") : NULL;
  struct stat info;
  if (!name) return;
  if (file->pMethods->xLock(file, SQLITE_LOCK_SHARED) == SQLITE_OK &&
      file->pMethods->xLock(file, SQLITE_LOCK_EXCLUSIVE) == SQLITE_OK && !has_moved(database) &&
      stat(name, &info) == 0 && info.st_size == 0)
    (void)unlink(name);
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
    /* What a full disk ended is undone by whoever reads next: now, lest the file is moved without its journal. */
    if (database->is_broken) (void)sqlite3_exec(database->sqlite, "PRAGMA schema_version", NULL, NULL, NULL);
    remove_unused(database);
    (void)sqlite3_close(database->sqlite);
  }
  hs_memory_release(allocator, database->path);
  hs_memory_release(allocator, database);
}

/* SQLite gives some names a meaning of their own (":memory:", "file:..."); none of them begins with "/" or "./". */
static char *copy_path(const char *path, const hs_allocator *allocator) {
  const char *prefix = path[0] == '/' ? "" : "./";
  const size_t prefix_size = strlen(prefix);
  const size_t size = strlen(path) + 1;
  size_t bytes;
  char *copy = hs_size_add(prefix_size, size, &bytes) ? hs_memory_alloc(allocator, bytes) : NULL;
  if (!copy) return NULL;
  memcpy(copy, prefix, prefix_size);
  memcpy(copy + prefix_size, path, size);
  return copy;
}

/* A writer that was killed before its first commit leaves pages without the first one, and the journal that SQLite
   takes them back by. */
static bool is_unfinished(const char *path, const char first[COLMAP_SIGNATURE_BYTES]) {
  static const char nothing[COLMAP_SIGNATURE_BYTES];
  static const char ending[] = "-journal";
  char journal[COLMAP_PATH_BYTES];
  const int length = snprintf(journal, sizeof journal, "%s%s", path, ending);
  return memcmp(first, nothing, sizeof nothing) == 0 && length > 0 && (size_t)length < sizeof journal &&
         access(journal, F_OK) == 0;
}

/* The first bytes as SQLite reads them: closing a descriptor of another's would end the locks that this process holds on the
   file (POSIX, close). *size: of the file. */
static bool read_first(const hs_colmap_database *database, char first[COLMAP_SIGNATURE_BYTES], sqlite3_int64 *size) {
  sqlite3_file *file = file_of(database);
  return file && file->pMethods->xFileSize(file, size) == SQLITE_OK &&
         (*size < COLMAP_SIGNATURE_BYTES || file->pMethods->xRead(file, first, COLMAP_SIGNATURE_BYTES, 0) == SQLITE_OK);
}

/* Looks twice: a writer that makes the database may have finished between the look at its pages and that at its journal. */
static hs_status check_signature(hs_colmap_database *database) {
  static const char signature[COLMAP_SIGNATURE_BYTES] = "SQLite format 3";
  const char *name = sqlite3_db_filename(database->sqlite, "main"); /* where a link leads: there the journal is, too */
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

/* Whether the file may be handed to SQLite at all, which would open whatever it is given. */
static hs_status check_file(hs_colmap_database *database) {
  struct stat info;
  if (stat(database->path, &info) != 0) {
    const int error = errno;
    if (error == ENOENT && database->options.read_only == 0) {
      database->is_new = true;
      return HS_OK;
    }
    return colmap_fail(database, HS_ERR_IO, "cannot open: %s", strerror(error));
  }
  if (!S_ISREG(info.st_mode)) return colmap_fail(database, HS_ERR_IO, "not a regular file");
  return HS_OK;
}

/* layer: the name of what lies between SQLite and the files; null: SQLite's default. */
static hs_status open_sqlite(hs_colmap_database *database, const char *layer) {
  const int flags =
      SQLITE_OPEN_NOMUTEX |
      (database->options.read_only != 0 ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (sqlite3_open_v2(database->path, &database->sqlite, flags, layer) != SQLITE_OK) {
    if (!database->sqlite) return colmap_fail(database, HS_ERR_MEMORY, "no memory to open it");
    return colmap_fail_sqlite(database, "open");
  }
  hs_status status = check_signature(database);
  if (status != HS_OK) return status;
  (void)sqlite3_busy_handler(database->sqlite, wait_for_lock, database);
  /* What a database says about itself is not trusted with more than data. */
  (void)sqlite3_db_config(database->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  status = colmap_run(database, "PRAGMA trusted_schema = OFF");
  /* Of a file that is made now; one that is there keeps its own. Features are megabytes a row, so that with SQLite's 4096
     bytes most of the time goes to pages. */
  if (status == HS_OK && database->options.read_only == 0) status = colmap_run(database, "PRAGMA page_size = 16384");
  return status == HS_OK ? colmap_begin(database) : status;
}

/* options: complete. *again: another program took its empty file away while this one waited for it. */
static hs_status open_once(const char *layer, hs_colmap_database **database, const char *path,
                           const hs_colmap_options *options, bool *again) {
  hs_colmap_database *made = hs_memory_alloc(options->allocator, sizeof *made);
  char *copy = copy_path(path, options->allocator);
  *again = false;
  if (!made || !copy) {
    hs_memory_release(options->allocator, made);
    hs_memory_release(options->allocator, copy);
    hs_message_set(options->message, options->message_bytes, "%s: no memory to open it", path);
    return HS_ERR_MEMORY;
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
  made->options.message = NULL; /* from here on hs_colmap_last_error says why */
  *database = made;
  return HS_OK;
}

static hs_status open_through(const char *layer, hs_colmap_database **database, const char *path,
                              const hs_colmap_options *options) {
  hs_colmap_options complete;
  *database = NULL;
  hs_status status = colmap_complete_options(options, &complete);
  if (status != HS_OK) return status;
  if (!path || path[0] == '\0') {
    hs_message_set(complete.message, complete.message_bytes, "path is null or empty");
    return HS_ERR_ARGUMENT;
  }
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

double colmap_writer_cpu_s(const hs_colmap_database *database) { return colmap_vfs_cpu_s(database->sqlite); }
