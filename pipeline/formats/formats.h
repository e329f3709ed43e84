/*
 * Registry of feature formats, and functions for the public interface, the command and the tests. FORMATS.md describes
 * the layouts.
 *
 * To add a format:
 *   1. its number in hs_format, the next one: pipeline/include/hartsift.h;
 *   2. its line in FEATURE_FORMATS below: without it features_io.c does not compile;
 *   3. its feature_format with writer, reader and probe: pipeline/formats/format_<name>.c, else nothing links. The
 * choices, help, manual page and completions of --format and Python's FORMATS are made from these. Tests require a row
 * and a section in FORMATS.md, the name in README's list, Python's type hints (tests/support/make_python_hints.py
 * writes them) and a seed of the fuzzer (tests/support/make_feature_seeds.py).
 */
#ifndef HARTSIFT_FORMATS_FORMATS_H
#define HARTSIFT_FORMATS_FORMATS_H

#include "pipeline/formats/common/feature_file.h"

enum { FORMAT_ENDINGS = 8, FORMAT_ENDING_BYTES = 32 };
#define GZIP_ENDING ".gz"

typedef struct feature_format {
  hs_format id;
  const char *name;    /* name in the command */
  const char *summary; /* description in one line, for lists of formats */
  /* endings with the dot, in lower case; the first one is used for writing; unused entries are null */
  const char *endings[FORMAT_ENDINGS];
  const char *second_ending; /* ending of the second file, in place of endings[0]; null: there is no second file */
  bool without_descriptors;  /* the format can store lists without descriptors */
  bool as_stored;            /* programs that read the format ignore EXIF orientations; FORMATS.md names the sources */
  /* Writes the file. Errors of the stream need not be reported, because the commit detects them. */
  hs_status (*write)(const feature_target *target);
  /* Reads the file. features: {0} at first; after a failure the caller frees the content. */
  hs_status (*read)(const feature_source *source, hs_features *features);
  /* True if the content has this format. Gets only the file's beginning, and must be fast. */
  bool (*probe)(const uint8_t *bytes, size_t size);
  /* For formats with several lists in a file, which open the file themselves: used instead of write and read, without a
     stream or bytes. Otherwise null. */
  hs_status (*write_into)(const feature_target *target);
  hs_status (*read_from)(const feature_source *source, hs_features *features);
} feature_format;

/* Every format in the order of its id: the suffixes of its hs_format and its feature_format. If two formats share an
   ending, the first one is used for writing. */
#define FEATURE_FORMATS(FORMAT)                                                                                        \
  FORMAT(COLMAP, colmap)                                                                                               \
  FORMAT(NPZ, npz)                                                                                                     \
  FORMAT(CSV, csv)                                                                                                     \
  FORMAT(JSON, json)                                                                                                   \
  FORMAT(LOWE, lowe)                                                                                                   \
  FORMAT(VLFEAT, vlfeat)                                                                                               \
  FORMAT(OPENCV, opencv)                                                                                               \
  FORMAT(OPENMVG, openmvg)                                                                                             \
  FORMAT(BIN, bin)                                                                                                     \
  FORMAT(COLMAP_DB, colmap_db)                                                                                         \
  FORMAT(VISUALSFM, visualsfm)                                                                                         \
  FORMAT(OXFORD, oxford)

#define FORMAT_DECLARED(ID, word) extern const feature_format format_##word;
FEATURE_FORMATS(FORMAT_DECLARED)
#define FORMAT_COUNTED(ID, word) +1
enum { FORMAT_COUNT = FEATURE_FORMATS(FORMAT_COUNTED) };

/* Returns format number `index` of the registry; null past the end. */
const feature_format *format_at(size_t index);
/* Find a format by id or by name; null for HS_FORMAT_AUTO and for unknown ids and names. */
const feature_format *format_by_id(hs_format id);
const feature_format *format_by_name(const char *name);
/* Finds a format by the ending of a name, in either case; null: none. */
const feature_format *format_by_ending(const char *path);
/* As format_by_ending, for reading: GZIP_ENDING may follow the ending. */
const feature_format *format_read_by_ending(const char *path);
bool format_is_compressed_name(const char *path);
/* Finds a format by the content; null: unknown. `first` (or null) is the format to try first. */
const feature_format *format_by_content(const uint8_t *bytes, size_t size, const feature_format *first);

/* Finds a format by the content or, if no format recognises it, by the ending; null: none. hs_load_features uses this
   rule. */
const feature_format *format_of_content(const char *path, const uint8_t *bytes, size_t size);
/* As format_of_content, for a file, of which only the beginning is read. */
const feature_format *format_of_file(const char *path);

/* As hs_save_features. Also adds the written bytes to a digest, if not null: first those of the first file, then of the
   second. is_staged: the file will be moved, see atomic_file. */
hs_status features_save(const char *path, const hs_features *features, const hs_file_options *options, bool is_staged,
                        digest_state *written);

/* Reads a file of this format from memory. On failure *features is unchanged; on success its old arrays are freed. */
hs_status features_read_memory(const feature_format *format, const feature_source *source, hs_features *features);

#endif
