/*
 * Table of options; see option_table.h. Ranges are those of the fields of hs_options; the library checks them again.
 */
#include "pipeline/cli/options/option_table.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/include/hartsift.h"

#define IN_TOP      (1u << COMMAND_TOP)
#define IN_EXTRACT  (1u << COMMAND_EXTRACT)
#define IN_MATCH    (1u << COMMAND_MATCH)
#define IN_BATCH    (1u << COMMAND_BATCH)
#define IN_MERGE    (1u << COMMAND_MERGE)
#define IN_DRAW     (1u << COMMAND_DRAW)
#define IN_STATS    (1u << COMMAND_STATS)
#define IN_HIST     (1u << COMMAND_HIST)
#define IN_CONVOLVE (1u << COMMAND_CONVOLVE)
#define IN_INFO     (1u << COMMAND_INFO)
#define IN_SELFTEST (1u << COMMAND_SELFTEST)
#define IN_BENCH    (1u << COMMAND_BENCH)
/* Commands whose result is features. */
#define IN_BOTH       (IN_EXTRACT | IN_BATCH | IN_DRAW)
#define IN_FRAMES     (IN_BOTH | IN_MATCH) /* commands that extract features from images */
#define OF_EXTRACTION (IN_FRAMES | OPTION_OF_EXTRACTION)
#define IN_LEVELS     (IN_STATS | IN_HIST) /* commands that read one image without features */
#define IN_ARRAYS     (IN_LEVELS | IN_CONVOLVE)
#define IN_ALL                                                                                                         \
  (IN_TOP | IN_ARRAYS | IN_EXTRACT | IN_MATCH | IN_BATCH | IN_MERGE | IN_DRAW | IN_INFO | IN_SELFTEST | IN_BENCH)

#define AT(member) offsetof(hs_options, member)
/* Macros for options_table.inc. */
#define UINT64_LIMIT               18446744073709551615.0
#define CHOICES_OF_CHOICE(values)  values
#define CHOICES_OF_FLAG(values)    NULL
#define CHOICES_OF_INTEGER(values) NULL
#define CHOICES_OF_NUMBER(values)  NULL
#define CHOICES_OF_COUNT(values)   NULL
#define CHOICES_OF_BYTES(values)   NULL

/* Shorthands for the columns that most entries have. */
#define FLAG(name_, commands_, field_, help_)                                                                          \
  { .name = name_, .kind = OPTION_KIND_FLAG, .commands = commands_, .field = field_, .help = help_ }
#define TEXT(name_, argument_, commands_, help_)                                                                       \
  {                                                                                                                    \
    .name = name_, .kind = OPTION_KIND_TEXT, .argument = argument_, .commands = commands_, .field = OPTION_NO_FIELD,   \
    .help = help_                                                                                                      \
  }
#define CHOICE(name_, choices_, commands_, field_, help_)                                                              \
  {                                                                                                                    \
    .name = name_, .kind = OPTION_KIND_CHOICE, .argument = choices_, .choices = choices_, .commands = commands_,       \
    .field = field_, .help = help_                                                                                     \
  }
#define INTEGER(name_, low_, high_, commands_, field_, help_)                                                          \
  {                                                                                                                    \
    .name = name_, .kind = OPTION_KIND_INTEGER, .argument = "N", .low = low_, .high = high_, .commands = commands_,    \
    .field = field_, .help = help_                                                                                     \
  }
#define NUMBER(name_, argument_, low_, high_, commands_, field_, help_)                                                \
  {                                                                                                                    \
    .name = name_, .kind = OPTION_KIND_NUMBER, .argument = argument_, .low = low_, .high = high_,                      \
    .commands = commands_, .field = field_, .help = help_                                                              \
  }
#define OTHER(name_, kind_, argument_, commands_, field_, help_)                                                       \
  { .name = name_, .kind = kind_, .argument = argument_, .commands = commands_, .field = field_, .help = help_ }

/* "colmap|npz|...": names of the library's formats, set by the first call of option_get. */
static char format_choices[256];

static const option_spec option_specs[OPTION_COUNT] = {
    [OPTION_HELP] = {.name = "help",
                     .letter = 'h',
                     .kind = OPTION_KIND_FLAG,
                     .commands = IN_ALL,
                     .field = OPTION_NO_FIELD,
                     .help = "print this help and end"},
    [OPTION_VERSION] = {.name = "version",
                        .letter = 'V',
                        .kind = OPTION_KIND_FLAG,
                        .commands = IN_TOP,
                        .field = OPTION_NO_FIELD,
                        .help = "print the version and the method version, and end"},
    [OPTION_MAN] = FLAG("man", IN_ALL, OPTION_NO_FIELD, "print the manual page (roff, for man -l -) and end"),
    [OPTION_COMPLETION] = CHOICE("completion", "bash|zsh|fish", IN_TOP, OPTION_NO_FIELD,
                                 "print a completion script for that shell and end"),

    [OPTION_OUTPUT] = {.name = "output",
                       .letter = 'o',
                       .kind = OPTION_KIND_TEXT,
                       .argument = "FILE|DIR",
                       .commands = IN_FRAMES | IN_ARRAYS | IN_MERGE,
                       .field = OPTION_NO_FIELD,
                       .help = "file for the result"},
    [OPTION_FORMAT] =
        {.name = "format",
         .kind = OPTION_KIND_CHOICE,
         .argument = "FMT",
         .choices = format_choices,
         .commands = IN_EXTRACT | IN_BATCH,
         .field = OPTION_NO_FIELD,
         .help = "format of the features: {formats} [by the ending of FILE; csv on standard output, npz in DIR]"},
    [OPTION_MATCH_FORMAT] = CHOICE("format", "csv|json|colmap", IN_MATCH, OPTION_NO_FIELD,
                                   "format of the matches [by the ending of FILE: .json, .txt for colmap, else csv]"),
    [OPTION_IMAGE_PATH] =
        TEXT("image-path", "DIR", IN_EXTRACT | IN_MATCH, "name images for COLMAP by their paths below DIR"),
    [OPTION_SINGLE_CAMERA] = FLAG("single-camera", IN_EXTRACT | IN_BATCH | IN_MERGE, OPTION_NO_FIELD,
                                  "let images of one size share a camera of a database"),
    [OPTION_SINGLE_CAMERA_PER_FOLDER] =
        FLAG("single-camera-per-folder", IN_EXTRACT | IN_BATCH | IN_MERGE, OPTION_NO_FIELD,
             "let images of one size in one folder share a camera of a database"),
    [OPTION_CAMERA_ID] = INTEGER("camera-id", 1, UINT32_MAX, IN_EXTRACT | IN_BATCH | IN_MERGE, OPTION_NO_FIELD,
                                 "give all images this camera of the database"),
    [OPTION_CAMERA_MODEL] = {.name = "camera-model",
                             .kind = OPTION_KIND_CHOICE,
                             .argument = "MODEL",
                             .choices =
                                 "SIMPLE_PINHOLE|PINHOLE|SIMPLE_RADIAL|RADIAL|OPENCV|OPENCV_FISHEYE|FULL_OPENCV|FOV|"
                                 "SIMPLE_RADIAL_FISHEYE|RADIAL_FISHEYE|THIN_PRISM_FISHEYE|RAD_TAN_THIN_PRISM_FISHEYE|"
                                 "SIMPLE_DIVISION|DIVISION|SIMPLE_FISHEYE|FISHEYE|EUCM|EQUIRECTANGULAR",
                             .commands = IN_EXTRACT | IN_BATCH,
                             .field = OPTION_NO_FIELD,
                             .help = "COLMAP's model for the cameras of a database [SIMPLE_RADIAL]"},
    [OPTION_CAMERA_PARAMS] = TEXT(
        "camera-params", "P1,P2,...", IN_EXTRACT | IN_BATCH,
        "parameters of these cameras in the model's order, taken as known [the focal length of EXIF, or 1.2 times the larger side]"),
    [OPTION_REPLACE] = FLAG(
        "replace", IN_EXTRACT | IN_BATCH | IN_MATCH | IN_MERGE, OPTION_NO_FIELD,
        "replace an image's data in the database if it differs, instead of refusing; new features drop the image's old matches, equal features keep them"),
    [OPTION_DATABASE] = TEXT("database", "FILE", IN_MATCH, "match all images of this COLMAP database"),
    [OPTION_PAIRS] = TEXT(
        "pairs", "WHICH", IN_MATCH,
        "--database: which pairs: all; sequential:N[,quadratic], the next N images by name (and those 1, 2, 4, ... later), in a rig by frames; spatial:METRES[,N], images at most this far apart (the N nearest); retrieval:K[,V.npy], the K most similar (by vectors V); or a file, two names per line (tab between if they have spaces) [all]"),
    [OPTION_PROFILE] = CHOICE("profile", "lowe|opencv|vlfeat|colmap", OF_EXTRACTION | IN_BENCH, OPTION_NO_FIELD,
                              "parameters to start from [lowe]; the other options override it in any order"),
    [OPTION_DEVICE] =
        OTHER("device", OPTION_KIND_DEVICE, "auto|cpu|cuda[:N]|hybrid", IN_FRAMES | IN_ARRAYS | IN_INFO | IN_BENCH,
              OPTION_NO_FIELD, "where to compute [auto: a GPU if usable, else CPU]"),
    [OPTION_DEVICES] = TEXT("devices", "all|LIST", IN_BATCH | IN_MATCH,
                            "devices that share the work: all GPUs, or a list such as cuda:0,cuda:1,cpu"),
    [OPTION_SPLIT] =
        {.name = "split",
         .kind = OPTION_KIND_AUTO,
         .argument = "N|auto",
         .low = 1,
         .high = 32,
         .commands = OF_EXTRACTION,
         .field = AT(split),
         .group = HS_OPTIONS_WORK,
         .help =
             "--device hybrid: number of octaves on the GPU; the CPU computes the smaller ones; auto measures [auto]"},
    [OPTION_JOBS] =
        INTEGER("jobs", 0, 1024, IN_BATCH, OPTION_NO_FIELD,
                "threads that read images, and as many that write features, 0: chosen by devices and cores [0]"),
    [OPTION_RESUME] =
        FLAG("resume", IN_BATCH, OPTION_NO_FIELD,
             "keep results of an earlier run with the same options if output, image and mask are unchanged"),
    [OPTION_NULL] = {.name = "null",
                     .letter = '0',
                     .kind = OPTION_KIND_FLAG,
                     .commands = IN_BATCH,
                     .field = OPTION_NO_FIELD,
                     .help = "LIST and '-': names end with a zero byte, as find -print0 writes them"},
    [OPTION_SHARD] =
        TEXT("shard", "I/N|slurm|env:I,N", IN_BATCH,
             "process only images I, I+N, I+2N, ... of the list; slurm, env: take I and N from the scheduler"),
    [OPTION_GRID] = {.name = "grid",
                     .kind = OPTION_KIND_SIZE,
                     .argument = "WxH",
                     .high = 4096,
                     .commands = OF_EXTRACTION,
                     .field = OPTION_NO_FIELD,
                     .help = "spread --max-features, which is needed too, evenly over W x H cells of the image"},
    [OPTION_EQUALIZED_FILE] = TEXT("equalize", "OUT", IN_HIST,
                                   "file for the image with its histogram equalised (.png, .jpg, .pgm; 8-bit gray)"),
    [OPTION_TILE] = {.name = "tile",
                     .kind = OPTION_KIND_SIZE,
                     .argument = "WxH",
                     .high = 2147483647,
                     .commands = IN_STATS,
                     .field = OPTION_NO_FIELD,
                     .help = "size of a tile in pixels [one tile, the whole image]"},
    [OPTION_THRESHOLD] =
        NUMBER("threshold", "T", -1e9, 1e9, IN_STATS, OPTION_NO_FIELD, "count the pixels with a value above T [0]"),
    [OPTION_TAPS] = TEXT(
        "taps", "mean:N|gauss:SIGMA|@FILE|T1,T2,...", IN_CONVOLVE,
        "filter with an odd number of taps: N equal taps; a Gaussian out to four sigmas; the numbers in a file; or the given numbers"),
    [OPTION_ENDS] = CHOICE(
        "ends", "zero|replicate|reflect-101", IN_CONVOLVE, OPTION_NO_FIELD,
        "continuation of the signal beyond its ends: zeros, the outermost number, or mirrored at that number, which is not repeated [zero]"),
    [OPTION_MASK] = TEXT("mask", "IMAGE", IN_BOTH | IN_HIST,
                         "drop keypoints where this image, which has the same size, is black (0)"),
    [OPTION_MASKS] = TEXT(
        "masks", "DIR", IN_EXTRACT | IN_BATCH,
        "folder of masks named as for COLMAP: DIR/NAME.png, or with NAME's ending replaced; images without a mask are used whole"),
    [OPTION_REGION] = OTHER("region", OPTION_KIND_REGION, "X,Y,W,H", IN_BOTH, OPTION_NO_FIELD,
                            "keep the keypoints inside this rectangle only"),
    [OPTION_KEYPOINTS] = TEXT("keypoints", "FILE", IN_EXTRACT,
                              "describe the keypoints of this feature file (any format) instead of detecting"),
    [OPTION_EXIF] = FLAG(
        "exif", OF_EXTRACTION | IN_MERGE, OPTION_NO_FIELD,
        "turn images by their EXIF orientation [the default, except for the formats {formats as stored}, whose programs read images as stored]"),
    [OPTION_NO_EXIF] = FLAG("no-exif", OF_EXTRACTION | IN_LEVELS, OPTION_NO_FIELD,
                            "leave images as stored: ignore their EXIF orientation"),
    [OPTION_DECODE_SCALE] =
        CHOICE("decode-scale", "1|2|4|8", OF_EXTRACTION, OPTION_NO_FIELD,
               "decode JPEG files to 1/N of their width and height; all coordinates, the mask's and region's too, are "
               "pixels of that picture; other images fail [1]"),
    [OPTION_MAX_IMAGE_SIZE] = INTEGER(
        "max-image-size", 0, 2147483647, IN_EXTRACT | IN_BATCH | IN_MATCH | OPTION_OF_EXTRACTION, OPTION_NO_FIELD,
        "reduce images whose larger side has more than N pixels, by exact area averaging; coordinates stay those of the original image, 0: never [0]"),
    [OPTION_VALUE_RANGE] =
        {.name = "value-range",
         .kind = OPTION_KIND_RANGE,
         .argument = "LOW:HIGH",
         .low = -1.5e38,
         .high = 1.5e38,
         .commands = OF_EXTRACTION | IN_HIST,
         .field = OPTION_NO_FIELD,
         .help =
             "sample values of black and white, such as 0:4095 for 12 bits in 16-bit files [the range of the type, or of the file]"},
    [OPTION_STRICT] =
        FLAG("strict", OF_EXTRACTION | IN_LEVELS, OPTION_NO_FIELD, "refuse images whose decoder reports damage"),
    [OPTION_VARIANT] = OTHER("variant", OPTION_KIND_PAIRS, "STAGE=NAME", OF_EXTRACTION | IN_INFO | IN_BENCH,
                             OPTION_NO_FIELD, "fix the implementation of a stage (for measurements); may be repeated"),
    [OPTION_RATIO] =
        NUMBER("ratio", "R", 0, 1, IN_MATCH, OPTION_NO_FIELD,
               "keep a match if its distance is below R times that of the second nearest, 0: no such test [0.8]"),
    [OPTION_MUTUAL] = FLAG("mutual", IN_MATCH, OPTION_NO_FIELD, "cross-check: keep a match found from both sides [on]"),
    [OPTION_NO_MUTUAL] = FLAG("no-mutual", IN_MATCH, OPTION_NO_FIELD, "search from A to B only"),
    [OPTION_MAX_DISTANCE] =
        NUMBER("max-distance", "D", 0, 1e9, IN_MATCH, OPTION_NO_FIELD,
               "maximum distance of a match, in units of the descriptors (u8: norm 512), 0: no limit [0]"),
    [OPTION_NEAREST] =
        INTEGER("nearest", 1, HS_NEIGHBOURS_MAX, IN_MATCH, OPTION_NO_FIELD,
                "instead of matches: the N nearest in B of each feature of A, in order, no ratio test or --mutual"),
    [OPTION_RADIUS] =
        NUMBER("radius", "D", 0, 1e9, IN_MATCH, OPTION_NO_FIELD,
               "instead of matches: all features in B at most this far from each feature of A, nearest first"),
    [OPTION_VERIFY] = CHOICE(
        "verify", "homography|fundamental|essential", IN_MATCH, OPTION_NO_FIELD,
        "find the geometry with which most matches agree, and mark these matches [--database: essential if both cameras are known, else fundamental]"),
    [OPTION_NO_VERIFY] = FLAG("no-verify", IN_MATCH, OPTION_NO_FIELD, "--database: leave the verification to COLMAP"),
    [OPTION_GUIDED] =
        FLAG("guided", IN_MATCH, OPTION_NO_FIELD,
             "match each verified pair again, only among features whose positions agree with its geometry"),
    [OPTION_DOUBTFUL] =
        CHOICE("doubtful", "drop|keep", IN_MATCH, OPTION_NO_FIELD,
               "--database: leave out weak pairs that sure pairs contradict (look-alikes), or keep all pairs [drop]"),
    [OPTION_TRACKS] =
        INTEGER("tracks", 1, 1 << 30, IN_MATCH, OPTION_NO_FIELD,
                "--database: keep only inliers on the N longest tracks of each image, for a faster mapper [all]"),
    [OPTION_TOLERANCE] = NUMBER("tolerance", "T", 0.01, 1000, IN_MATCH, OPTION_NO_FIELD,
                                "maximum error of an inlier, pixels [2; --database 4]"),
    [OPTION_CAMERA] = TEXT("camera", "FX,FY,CX,CY[,...]", IN_MATCH,
                           "--verify essential: focal lengths and principal point, of one camera or of A's and B's"),
    [OPTION_DRAW] = TEXT("draw", "PICTURE", IN_MATCH, "draw the matches over A and B, as draw does"),
    [OPTION_CIRCLE_SCALE] = NUMBER("circle-scale", "F", 0.1, 100, IN_DRAW, OPTION_NO_FIELD,
                                   "radius of the circles, in units of the keypoint's sigma [3]"),
    [OPTION_JSON] = FLAG("json", IN_EXTRACT | IN_BATCH | IN_MATCH | IN_ARRAYS | IN_INFO | IN_SELFTEST | IN_BENCH,
                         OPTION_NO_FIELD, "report on standard output as JSON"),
    [OPTION_REPEATS] = INTEGER("repeats", 0, 10000, IN_BENCH, OPTION_NO_FIELD,
                               "rounds that are timed, 0: as many as fit into a few seconds, 5 to 50 [0]"),
    [OPTION_AGAINST] = CHOICE("against", "opencv|vlfeat", IN_BENCH, OPTION_NO_FIELD,
                              "time that library too, in turns with hartsift in one process"),
    [OPTION_PRINT_DIGESTS] = FLAG("print-digests", IN_SELFTEST, OPTION_NO_FIELD,
                                  "print the C source of the table of stored digests instead of comparing with it"),
    [OPTION_QUIET] = {.name = "quiet",
                      .letter = 'q',
                      .kind = OPTION_KIND_FLAG,
                      .commands = IN_FRAMES | IN_SELFTEST | IN_MERGE,
                      .field = OPTION_NO_FIELD,
                      .help = "no progress and no summary; failures are still named"},

/* Options that set one field of hs_options. */
#define OPTION(kind_, type_, field_, low_, high_, values_, defaults_, group_, help_, id_, name_, commands_)            \
  [OPTION_##id_] = {.name = name_,                                                                                     \
                    .kind = OPTION_KIND_##kind_,                                                                       \
                    .argument = values_,                                                                               \
                    .choices = CHOICES_OF_##kind_(values_),                                                            \
                    .low = low_,                                                                                       \
                    .high = high_,                                                                                     \
                    .commands = commands_,                                                                             \
                    .field = AT(field_),                                                                               \
                    .group = HS_OPTIONS_##group_,                                                                      \
                    .help = help_},
#include "pipeline/context/options_table.inc"
};

/* Help texts that differ between commands. */
static const struct {
  option_id id;
  unsigned commands;
  const char *help;
} option_special_help[] = {
    {OPTION_OUTPUT, IN_EXTRACT, "file or folder for the features (a folder exists, or its name ends in '/')"},
    {OPTION_OUTPUT, IN_BATCH, "folder for the outputs, made if absent, or a database NAME.db"},
    {OPTION_OUTPUT, IN_MERGE, "folder, or database NAME.db, to make; the folder may be one of the inputs"},
    {OPTION_OUTPUT, IN_CONVOLVE, "file for the result: .npy, .bin (doubles), .json; other endings: text"},
    {OPTION_DEVICE, IN_ARRAYS, "where to compute [cpu]"},
    {OPTION_REPLACE, IN_MERGE, "replace existing outputs that differ, instead of refusing"},
    {OPTION_EXIF, IN_MERGE,
     "NAME.db: accept features of images turned by their EXIF orientation, because COLMAP gets turned copies"},
    {OPTION_FORMAT, IN_BATCH, "format of the features: {formats} [npz; colmap-db with -o NAME.db]"},
    {OPTION_REPLACE, IN_MATCH, "--database: match pairs again that have matches"},
    {OPTION_MAX_MEMORY, IN_MATCH,
     "refuse images that need more memory, 0: no limit; --database: limit of the images held at one time, 0: half of the memory; K, M and G multiply by 1024 [0]"},
    {OPTION_MASK, IN_HIST, "count pixels only where this image, which has the same size, is not black (0)"},
    {OPTION_VALUE_RANGE, IN_HIST,
     "range that is divided into 256 levels for 16-bit and float samples; all samples must be inside [0:65535, 0:1]"},
    {OPTION_JSON, IN_MATCH, "the same as --format json"},
};

const char *option_help(option_id id, command_id command) {
  for (size_t i = 0; i < sizeof option_special_help / sizeof option_special_help[0]; i++)
    if (option_special_help[i].id == id && (option_special_help[i].commands >> command & 1u) != 0)
      return option_special_help[i].help;
  return option_specs[id].help;
}

static void list_formats(char *choices, size_t bytes, bool as_stored) {
  size_t used = 0;
  for (int id = 1; hs_format_name((hs_format)id) != NULL && used < bytes; id++)
    if (!as_stored || hs_format_ignores_exif((hs_format)id) != 0)
      used +=
          (size_t)snprintf(choices + used, bytes - used, "%s%s", used > 0 ? "|" : "", hs_format_name((hs_format)id));
}

const option_spec *option_get(option_id id) {
  if (format_choices[0] == '\0') list_formats(format_choices, sizeof format_choices, false);
  return &option_specs[id];
}

bool option_belongs_to(option_id id, command_id command) { return (option_specs[id].commands >> command & 1u) != 0; }

bool option_is_of_extraction(option_id id, command_id command) {
  const unsigned others = (OF_EXTRACTION | IN_BENCH) & ~IN_EXTRACT;
  return (others >> command & 1u) != 0 && (option_specs[id].commands & OPTION_OF_EXTRACTION) != 0 &&
         option_belongs_to(id, command);
}

/* Writes "a|b|c" as "a, b or c". last: the separator before the last choice, " or ". */
static void describe_choices(const char *choices, const char *last, char *text, size_t bytes) {
  size_t used = 0;
  while (used < bytes) {
    const size_t length = strcspn(choices, "|");
    const char *next = choices + length;
    const bool is_last = *next == '\0';
    const bool is_last_but_one = !is_last && !strchr(next + 1, '|');
    used += (size_t)snprintf(text + used, bytes - used, "%.*s%s", (int)length, choices,
                             is_last           ? ""
                             : is_last_but_one ? last
                                               : ", ");
    if (is_last) return;
    choices = next + 1;
  }
}

const char *option_expand(const char *text, char expanded[OPTION_TEXT_BYTES]) {
  static const struct {
    const char *mark, *last;
    bool as_stored;
  } lists[] = {{"{formats}", " or ", false}, {"{formats as stored}", " and ", true}};
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    const char *at = strstr(text, lists[i].mark);
    if (!at) continue;
    char choices[sizeof format_choices], names[2 * sizeof format_choices];
    list_formats(choices, sizeof choices, lists[i].as_stored);
    describe_choices(choices, lists[i].last, names, sizeof names);
    snprintf(expanded, OPTION_TEXT_BYTES, "%.*s%s%s", (int)(at - text), text, names, at + strlen(lists[i].mark));
    return expanded;
  }
  return text;
}

void option_describe_expected(const option_spec *spec, char *text, size_t bytes) {
  switch (spec->kind) {
  case OPTION_KIND_FLAG:
    snprintf(text, bytes, "no value");
    break;
  case OPTION_KIND_TEXT:
    snprintf(text, bytes, "%s", spec->argument);
    break;
  case OPTION_KIND_CHOICE:
    describe_choices(spec->choices, " or ", text, bytes);
    break;
  case OPTION_KIND_INTEGER:
    snprintf(text, bytes, "a whole number from %.0f to %.0f", spec->low, spec->high);
    break;
  case OPTION_KIND_NUMBER:
    snprintf(text, bytes, "a number from %g to %g", spec->low, spec->high);
    break;
  case OPTION_KIND_COUNT:
    snprintf(text, bytes, "a whole number, 0 or more");
    break;
  case OPTION_KIND_BYTES:
    snprintf(text, bytes, "a number of bytes such as 65536, 64K, 500M or 2G");
    break;
  case OPTION_KIND_DEVICE:
    snprintf(text, bytes, "auto, cpu, cuda, cuda:N or hybrid");
    break;
  case OPTION_KIND_AUTO:
    snprintf(text, bytes, "auto or a whole number from %.0f to %.0f", spec->low, spec->high);
    break;
  case OPTION_KIND_REGION:
    snprintf(text, bytes, "%s: four whole numbers, X and Y 0 or more, W and H 1 or more", spec->argument);
    break;
  case OPTION_KIND_SIZE:
    snprintf(text, bytes, "%s: two whole numbers from 1 to %.0f", spec->argument, spec->high);
    break;
  case OPTION_KIND_RANGE:
    snprintf(text, bytes, "%s: two numbers from %g to %g, LOW below HIGH", spec->argument, spec->low, spec->high);
    break;
  case OPTION_KIND_PAIRS:
    snprintf(text, bytes, "%s or several of them joined by commas", spec->argument);
    break;
  }
}
