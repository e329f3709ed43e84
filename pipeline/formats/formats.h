/*
 * Registry of feature formats, and the entry points that the public functions, the command line and the tests
 * share. FORMATS.md describes the layouts.
 *
 * To add a format:
 *   1. its number in hs_format, the next one: pipeline/include/hartsift.h;
 *   2. its line in FEATURE_FORMATS below: without it features_io.c does not compile;
 *   3. its feature_format with writer, reader and probe: pipeline/formats/format_<name>.c, else nothing links.
 * The choices, help, manual page and completions of --format and Python's FORMATS come from these. Tests demand its row
 * and section in FORMATS.md, its name in README's list, Python's type hints (tests/support/make_python_hints.py writes
 * them) and a seed of the fuzzer (tests/support/make_feature_seeds.py).
 */
#ifndef HARTSIFT_FORMATS_FORMATS_H
#define HARTSIFT_FORMATS_FORMATS_H

#include "pipeline/formats/common/feature_file.h"

enum { FORMAT_ENDINGS = 8, FORMAT_ENDING_BYTES = 32 };
#define GZIP_ENDING ".gz"

typedef struct feature_format {
  hs_format id;
  const char *name;                    /* name on the command line */
  const char *summary;                 /* one line for lists of formats */
  const char *endings[FORMAT_ENDINGS]; /* endings with the dot, lower case; the first one is used for writing; unused
                                          entries null */
  const char *beside_ending;           /* ending of the second file, which replaces endings[0]; null: no second file */
  bool without_descriptors;            /* the format can store HS_DESCRIPTOR_NONE */
  bool as_stored;                      /* its program ignores EXIF orientations; FORMATS.md has the sources */
  /* Writes the file. Write errors of the stream need no report: the commit finds them. */
  hs_status (*write)(const feature_target *target);
  /* Reads the file. features: {0}; after a failure the caller frees its content. */
  hs_status (*read)(const feature_source *source, hs_features *features);
  /* True if the content has this format. Must be fast; gets only the beginning. */
  bool (*probe)(const uint8_t *bytes, size_t size);
  /* For files with several lists, opened by the format itself: replace write and read, and get neither stream nor
     bytes. Else null. */
  hs_status (*write_into)(const feature_target *target);
  hs_status (*read_from)(const feature_source *source, hs_features *features);
} feature_format;

/* Every format in order of id: suffixes of its hs_format and its feature_format. If two formats share an ending, the
   first one is written. */
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

/* Returns format number `index` in the order of the registry; null past the end. */
const feature_format *format_at(size_t index);
/* Find a format by id or name; null for HS_FORMAT_AUTO and for unknown values and names. */
const feature_format *format_by_id(hs_format id);
const feature_format *format_by_name(const char *name);
/* Finds a format by the name's ending, case-insensitive; null: none. */
const feature_format *format_by_ending(const char *path);
/* As format_by_ending, for reading: GZIP_ENDING may follow the format's ending. */
const feature_format *format_read_by_ending(const char *path);
bool format_is_compressed_name(const char *path);
/* Finds a format by the content; null: unknown. `first` (or null) is tried before the others. */
const feature_format *format_by_content(const uint8_t *bytes, size_t size, const feature_format *first);

/* Finds a format by the content if one recognises it, else by the ending; null: none. Used by hs_load_features. */
const feature_format *format_of_content(const char *path, const uint8_t *bytes, size_t size);
/* As format_of_content for a file, by its beginning. */
const feature_format *format_of_file(const char *path);

/* As hs_save_features; also adds the written bytes to a digest (or null), those of a second file after those of the
   first. is_staged: the file will be moved, see atomic_file. */
hs_status features_save(const char *path, const hs_features *features, const hs_file_options *options, bool is_staged,
                        digest_state *written);

/* Reads one format from memory. On failure *features is unchanged; on success its old arrays are freed. */
hs_status features_read_memory(const feature_format *format, const feature_source *source, hs_features *features);

#endif
