/*
 * Databases for tests: tables of several versions of COLMAP, and small queries through SQLite itself.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_COLMAP_TABLES_H
#define HARTSIFT_TESTS_SUPPORT_COLMAP_TABLES_H

#include <stddef.h>
#include <stdint.h>

typedef enum colmap_version {
  COLMAP_3_8,  /* as this library makes them */
  COLMAP_3_11, /* poses of images in a separate table */
  COLMAP_3_12, /* rigs and frames */
  COLMAP_4_2,  /* types of descriptors, cameras of pairs */
  COLMAP_VERSIONS
} colmap_version;

/* Makes a database with empty tables. Like all functions here it fails the running cmocka test on errors. */
void colmap_tables_make(const char *path, colmap_version version);

/* Runs statements. */
void colmap_tables_run(const char *path, const char *sql);

/* The first column of the first row as a number; -1 without a row. */
int64_t colmap_tables_ask(const char *path, const char *sql);

/* The first column of the first row as bytes from malloc; null without a row or if it is NULL. */
unsigned char *colmap_tables_blob(const char *path, const char *sql, size_t *size);

#endif
