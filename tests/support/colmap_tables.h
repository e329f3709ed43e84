/*
 * Databases for tests: tables of several versions of COLMAP, and small queries through SQLite itself.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_COLMAP_TABLES_H
#define HARTSIFT_TESTS_SUPPORT_COLMAP_TABLES_H

#include <stddef.h>
#include <stdint.h>

typedef enum colmap_version {
  COLMAP_3_8,  /* the tables that this library makes */
  COLMAP_3_11, /* has poses of images in a separate table */
  COLMAP_3_12, /* has rigs and frames */
  COLMAP_4_2,  /* has types of descriptors and cameras of pairs */
  COLMAP_VERSIONS
} colmap_version;

/* Makes a database with empty tables. Like all functions of this header, it fails the running cmocka test on errors. */
void colmap_tables_make(const char *path, colmap_version version);

/* Runs SQL statements. */
void colmap_tables_run(const char *path, const char *sql);

/* Returns the first column of the first row as a number; -1 if there is no row. */
int64_t colmap_tables_ask(const char *path, const char *sql);

/* Returns the first column of the first row as bytes from malloc; null if there is no row or the value is NULL. */
unsigned char *colmap_tables_blob(const char *path, const char *sql, size_t *size);

#endif
