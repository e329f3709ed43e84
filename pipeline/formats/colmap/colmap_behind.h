/*
 * SQLite's files with writes to the database carried out by a thread of their own: of the time that a large row takes most goes
 * to the system's copy of its pages. Only built with SQLite.
 *
 * What a transaction promises stays: all is written before the database is synchronised, before its size is asked or changed,
 * and before a lock changes, so that a journal is never dropped earlier than what it protects. The journal itself is written
 * as ever.
 */
#ifndef HARTSIFT_FORMATS_COLMAP_COLMAP_BEHIND_H
#define HARTSIFT_FORMATS_COLMAP_COLMAP_BEHIND_H

/* The name for sqlite3_open_v2, registered with the process's SQLite by the first call, not as its default; null: it could not
   be. Not for a library that may be unloaded while SQLite stays. */
const char *colmap_behind_name(void);

#endif
