/*
 * A layer between SQLite and a database file. A thread of its own writes the file, while the caller goes on: most of
 * the time of adding a large row is the system copying its pages. Only built with SQLite.
 *
 * What a transaction promises stays: all is written before the database is synchronised, before its size is asked or
 * changed, and before a lock changes, so that a journal is never dropped earlier than what it protects. The journal
 * itself is written as ever.
 */
#ifndef HARTSIFT_FORMATS_COLMAP_COLMAP_BEHIND_H
#define HARTSIFT_FORMATS_COLMAP_COLMAP_BEHIND_H

#include <sqlite3.h>

/* The layer's name, for sqlite3_open_v2. The first call registers it with the process's SQLite, not as its default;
   null: that failed. Not for a library that may be unloaded while SQLite stays. */
const char *colmap_behind_name(void);

/* CPU time of the thread that writes this database so far, in seconds; 0: it was not opened through the layer. */
double colmap_behind_cpu_s(sqlite3 *sqlite);

#endif
