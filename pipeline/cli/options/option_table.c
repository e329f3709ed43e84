/*
 * The table of subcommands and options itself; see option_table.h. Ranges follow the field comments of
 * hs_options, which the library checks again.
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
#define IN_INFO     (1u << COMMAND_INFO)
#define IN_SELFTEST (1u << COMMAND_SELFTEST)
#define IN_BENCH    (1u << COMMAND_BENCH)
/* Those that extract features for their own sake. */
#define IN_BOTH   (IN_EXTRACT | IN_BATCH | IN_DRAW)
#define IN_FRAMES (IN_BOTH | IN_MATCH) /* what extracts features from images given */
#define IN_LEVELS (IN_STATS | IN_HIST) /* what reads one image and computes no features */
#define IN_ALL                                                                                                         \
  (IN_TOP | IN_LEVELS | IN_EXTRACT | IN_MATCH | IN_BATCH | IN_MERGE | IN_DRAW | IN_INFO | IN_SELFTEST | IN_BENCH)

#define AT(member) offsetof(hs_options, member)

/* Shorthands for the columns that most entries share. */
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
    [OPTION_MAN] = FLAG("man", IN_TOP, OPTION_NO_FIELD, "print the manual page (roff) and end"),
    [OPTION_COMPLETION] =
        CHOICE("completion", "bash|zsh", IN_TOP, OPTION_NO_FIELD, "print a completion script for that shell and end"),

    [OPTION_OUTPUT] = {.name = "output",
                       .letter = 'o',
                       .kind = OPTION_KIND_TEXT,
                       .argument = "FILE|DIR",
                       .commands = IN_FRAMES | IN_LEVELS | IN_MERGE,
                       .field = OPTION_NO_FIELD,
                       .help = "the file that the result goes to"},
    [OPTION_FORMAT] = {.name = "format",
                       .kind = OPTION_KIND_CHOICE,
                       .argument = "FMT",
                       .choices = "colmap|npz|csv|json|lowe|vlfeat|opencv|openmvg|bin|colmap-db|visualsfm|oxford",
                       .commands = IN_EXTRACT | IN_BATCH,
                       .field = OPTION_NO_FIELD,
                       .help = "format of the features: colmap, npz, csv, json, lowe, vlfeat, opencv, openmvg, bin, "
                               "colmap-db, visualsfm or oxford; else the ending of FILE tells, csv on standard output, "
                               "npz in DIR"},
    [OPTION_MATCH_FORMAT] =
        CHOICE("format", "csv|json|colmap", IN_MATCH, OPTION_NO_FIELD,
               "format of the matches; else the ending of FILE tells (.json; .txt: colmap), or csv"),
    [OPTION_IMAGE_PATH] =
        TEXT("image-path", "DIR", IN_EXTRACT,
             "name the images of a database by their paths below this folder, not by file name alone"),
    [OPTION_SINGLE_CAMERA] = FLAG("single-camera", IN_EXTRACT | IN_BATCH | IN_MERGE, OPTION_NO_FIELD,
                                  "let the images of one size share one camera of a database"),
    [OPTION_CAMERA_MODEL] = {.name = "camera-model",
                             .kind = OPTION_KIND_CHOICE,
                             .argument = "MODEL",
                             .choices =
                                 "SIMPLE_PINHOLE|PINHOLE|SIMPLE_RADIAL|RADIAL|OPENCV|OPENCV_FISHEYE|FULL_OPENCV|FOV|"
                                 "SIMPLE_RADIAL_FISHEYE|RADIAL_FISHEYE|THIN_PRISM_FISHEYE|RAD_TAN_THIN_PRISM_FISHEYE|"
                                 "SIMPLE_DIVISION|DIVISION|SIMPLE_FISHEYE|FISHEYE|EUCM|EQUIRECTANGULAR",
                             .commands = IN_EXTRACT | IN_BATCH,
                             .field = OPTION_NO_FIELD,
                             .help = "COLMAP's model for the cameras of new images in a database [SIMPLE_RADIAL]"},
    [OPTION_CAMERA_PARAMS] = TEXT("camera-params", "P1,P2,...", IN_EXTRACT | IN_BATCH,
                                  "the parameters of all these cameras, in the order of their model, taken for known; "
                                  "without it the focal length comes from EXIF, or is 1.2 times the larger side"),
    [OPTION_REPLACE] = FLAG("replace", IN_EXTRACT | IN_BATCH | IN_MATCH | IN_MERGE, OPTION_NO_FIELD,
                            "replace what a database has of an image, and drop its old matches, instead of refusing"),
    [OPTION_DATABASE] = TEXT("database", "FILE", IN_MATCH,
                             "match all images of this COLMAP database, instead of A and B, into the database"),
    [OPTION_PAIRS] = TEXT(
        "pairs", "WHICH", IN_MATCH,
        "--database: which pairs: all; sequential:N[,quadratic], the N next by name (and those 1, 2, 4, ... places "
        "on); spatial:METRES[,N], at most so far apart (the N nearest); retrieval:K, the K that look most alike; or "
        "a file, two names a line (with a tab between if they have spaces) [all]"),
    [OPTION_PROFILE] = CHOICE("profile", "lowe|opencv|vlfeat|colmap", IN_FRAMES | IN_BENCH, OPTION_NO_FIELD,
                              "parameters to start from [lowe]; the other options override it in any order"),
    [OPTION_DEVICE] = OTHER("device", OPTION_KIND_DEVICE, "auto|cpu|cuda[:N]|hybrid", IN_FRAMES | IN_INFO | IN_BENCH,
                            OPTION_NO_FIELD, "where to compute [auto: a GPU where one is usable, else the CPU]"),
    [OPTION_DEVICES] = TEXT("devices", "all|LIST", IN_BATCH,
                            "devices that share the images: all GPUs, or a list such as cuda:0,cuda:1,cpu"),
    [OPTION_SPLIT] =
        {.name = "split",
         .kind = OPTION_KIND_AUTO,
         .argument = "N|auto",
         .low = 1,
         .high = 32,
         .commands = IN_FRAMES,
         .field = AT(split),
         .help = "with --device hybrid, octaves on the GPU, the smaller ones go to the CPU; auto measures [auto]"},
    [OPTION_THREADS] = INTEGER("threads", 0, 1024, IN_FRAMES | IN_LEVELS | IN_INFO | IN_BENCH, AT(threads),
                               "CPU threads, 0: one for each usable core [0]"),
    [OPTION_JOBS] =
        INTEGER("jobs", 0, 1024, IN_BATCH, OPTION_NO_FIELD,
                "threads that read images, and as many that write features, 0: chosen by devices and cores [0]"),
    [OPTION_MAX_FEATURES] =
        INTEGER("max-features", 0, 1073741824, IN_FRAMES | IN_BENCH, AT(max_features),
                "keep exactly N when there are more, 0: all [0; colmap 8192 by --selection levels]"),
    [OPTION_SELECTION] =
        CHOICE("selection", "response|scale|levels", IN_FRAMES, AT(selection),
               "which of more than --max-features stay: the strongest, the largest, or whole levels, the "
               "largest first, until they are more, as COLMAP does [response; colmap levels, with "
               "--max-features scale]"),
    [OPTION_CONTRAST] = NUMBER("contrast", "T", 0, 1, IN_FRAMES | IN_BENCH, AT(contrast),
                               "contrast a keypoint needs, divided by the scales [0.04; vlfeat 0; colmap 0.02]"),
    [OPTION_EDGE] = NUMBER("edge", "R", 1, 1000, IN_FRAMES, AT(edge), "largest ratio of principal curvatures [10]"),
    [OPTION_FIRST_OCTAVE] = INTEGER("first-octave", -1, 3, IN_FRAMES | IN_BENCH, AT(first_octave),
                                    "octave of the first sampling, -1 doubles the image [-1]"),
    [OPTION_OCTAVES] = INTEGER("octaves", 0, 32, IN_FRAMES, AT(octaves),
                               "most octaves, 0: as many as the image's size gives [0; colmap 4]"),
    [OPTION_SCALES] = INTEGER("scales", 1, 8, IN_FRAMES, AT(scales), "scales in an octave [3]"),
    [OPTION_MAX_ORIENTATIONS] =
        INTEGER("max-orientations", 0, 18, IN_FRAMES, AT(max_orientations),
                "most features from one keypoint, 0: every strong peak [0; vlfeat 4; colmap 2]"),
    [OPTION_UPRIGHT] = FLAG("upright", IN_FRAMES, AT(upright), "give each keypoint one feature of orientation 0"),
    [OPTION_NORM] = CHOICE("norm", "l2|root", IN_FRAMES, AT(norm),
                           "normalisation of descriptors; root is RootSIFT [l2; colmap root]"),
    [OPTION_DESCRIPTOR] = CHOICE("descriptor", "u8|f32|none", IN_FRAMES | IN_BENCH, AT(descriptor),
                                 "type of the descriptors [u8; opencv, vlfeat f32]"),
    [OPTION_RESUME] = FLAG("resume", IN_BATCH, OPTION_NO_FIELD,
                           "keep what an earlier run with the same options has done, if its output is intact"),
    [OPTION_NULL] = {.name = "null",
                     .letter = '0',
                     .kind = OPTION_KIND_FLAG,
                     .commands = IN_BATCH,
                     .field = OPTION_NO_FIELD,
                     .help = "LIST and '-': each name is ended by a zero byte, as find -print0 writes them"},
    [OPTION_SHARD] = TEXT("shard", "I/N|slurm|env:I,N", IN_BATCH,
                          "do images I, I+N, I+2N, ... of the list only; slurm, env: take both from the scheduler"),
    [OPTION_GRID] = {.name = "grid",
                     .kind = OPTION_KIND_SIZE,
                     .argument = "WxH",
                     .high = 4096,
                     .commands = IN_FRAMES,
                     .field = OPTION_NO_FIELD,
                     .help = "spread --max-features, which must be given for it, evenly over W x H cells of the image"},
    [OPTION_EQUALIZE] =
        FLAG("equalize", IN_FRAMES, AT(equalize), "equalise the histogram of the image first (8-bit images)"),
    [OPTION_EQUALIZED_FILE] = TEXT("equalize", "OUT", IN_HIST,
                                   "write the image with its histogram equalised there (.png, .jpg, .pgm; 8-bit gray)"),
    [OPTION_TILE] = {.name = "tile",
                     .kind = OPTION_KIND_SIZE,
                     .argument = "WxH",
                     .high = 2147483647,
                     .commands = IN_STATS,
                     .field = OPTION_NO_FIELD,
                     .help = "size of a tile in pixels [one tile, the whole image]"},
    [OPTION_THRESHOLD] =
        NUMBER("threshold", "T", -1e9, 1e9, IN_STATS, OPTION_NO_FIELD, "count the pixels with a value above T [0]"),
    [OPTION_MASK] =
        TEXT("mask", "IMAGE", IN_BOTH | IN_HIST, "drop the keypoints where this image, of the same size, is black (0)"),
    [OPTION_REGION] = OTHER("region", OPTION_KIND_REGION, "X,Y,W,H", IN_BOTH, OPTION_NO_FIELD,
                            "keep the keypoints inside this rectangle only"),
    [OPTION_KEYPOINTS] = TEXT("keypoints", "FILE", IN_EXTRACT,
                              "describe the keypoints of this feature file (any format) instead of detecting"),
    [OPTION_UPSAMPLE] = CHOICE("upsample", "aligned|half-pixel|opencv", IN_FRAMES, AT(upsample),
                               "grid of the doubled image [half-pixel; opencv opencv; vlfeat, colmap aligned]"),
    [OPTION_SIGMA] = NUMBER("sigma", "S0", 0.8, 4, IN_FRAMES, AT(sigma), "blur of an octave's first level [1.6]"),
    [OPTION_INPUT_BLUR] = NUMBER("input-blur", "B", 0, 4, IN_FRAMES, AT(input_blur),
                                 "blur that the image is assumed to have, in pixels [0.5]"),
    [OPTION_EXIF] =
        FLAG("exif", IN_FRAMES | IN_MERGE, OPTION_NO_FIELD,
             "turn JPEG files by their EXIF orientation [the default but for the formats colmap, colmap-db, "
             "openmvg and visualsfm, whose programs read them as stored]"),
    [OPTION_NO_EXIF] = FLAG("no-exif", IN_FRAMES | IN_LEVELS, OPTION_NO_FIELD,
                            "leave JPEG files as stored: ignore their EXIF orientation"),
    [OPTION_DECODE_SCALE] =
        CHOICE("decode-scale", "1|2|4|8", IN_FRAMES, OPTION_NO_FIELD,
               "decode JPEG files to 1/N of their width and height; all coordinates, the mask's and region's too, are "
               "pixels of that picture; other images fail [1]"),
    [OPTION_VARIANT] = OTHER("variant", OPTION_KIND_PAIRS, "STAGE=NAME", IN_FRAMES | IN_INFO | IN_BENCH,
                             OPTION_NO_FIELD, "fix the implementation of a stage (for measurements); may be repeated"),
    [OPTION_MAX_MEMORY] = OTHER("max-memory", OPTION_KIND_BYTES, "BYTES", IN_FRAMES | IN_LEVELS, AT(max_memory_bytes),
                                "refuse images that need more memory, 0: no limit; K, M and G multiply by 1024 [0]"),
    [OPTION_MAX_PIXELS] = OTHER("max-pixels", OPTION_KIND_COUNT, "N", IN_FRAMES | IN_LEVELS, AT(max_pixels),
                                "refuse larger images, 0: no limit [2147483648]"),
    [OPTION_RATIO] = NUMBER("ratio", "R", 0, 1, IN_MATCH, OPTION_NO_FIELD,
                            "keep a match nearer than R times the second nearest, 0: no such test [0.8]"),
    [OPTION_MUTUAL] = FLAG("mutual", IN_MATCH, OPTION_NO_FIELD,
                           "keep a match only if it is found from both sides, with all tests [this is the default]"),
    [OPTION_NO_MUTUAL] = FLAG("no-mutual", IN_MATCH, OPTION_NO_FIELD, "look from A to B only"),
    [OPTION_MAX_DISTANCE] =
        NUMBER("max-distance", "D", 0, 1e9, IN_MATCH, OPTION_NO_FIELD,
               "keep matches at most this far apart, unit of the descriptors (u8: norm 512), 0: any [0]"),
    [OPTION_VERIFY] =
        CHOICE("verify", "homography|fundamental|essential", IN_MATCH, OPTION_NO_FIELD,
               "find the geometry that most matches agree with, and mark those [--database: fundamental]"),
    [OPTION_NO_VERIFY] =
        FLAG("no-verify", IN_MATCH, OPTION_NO_FIELD, "--database: leave the verification of the matches to COLMAP"),
    [OPTION_GUIDED] = FLAG("guided", IN_MATCH, OPTION_NO_FIELD,
                           "where a geometry was found, match again among places that agree with it, and verify again"),
    [OPTION_TOLERANCE] = NUMBER("tolerance", "T", 0.01, 1000, IN_MATCH, OPTION_NO_FIELD,
                                "--verify: largest error of an inlier, pixels [2; --database 4]"),
    [OPTION_CAMERA] = TEXT("camera", "FX,FY,CX,CY[,...]", IN_MATCH,
                           "--verify essential: focal lengths and principal point of both cameras, or of A, then B"),
    [OPTION_DRAW] = TEXT("draw", "PICTURE", IN_MATCH,
                         "also draw the matches over the images A and B side by side, as draw does (.png, .jpg, .ppm)"),
    [OPTION_CIRCLE_SCALE] = NUMBER("circle-scale", "F", 0.1, 100, IN_DRAW, OPTION_NO_FIELD,
                                   "radius of the circles, in units of the keypoint's sigma [3]"),
    [OPTION_JSON] = FLAG("json", IN_EXTRACT | IN_BATCH | IN_MATCH | IN_LEVELS | IN_INFO | IN_SELFTEST | IN_BENCH,
                         OPTION_NO_FIELD, "report on standard output as JSON"),
    [OPTION_REPEATS] = INTEGER("repeats", 0, 10000, IN_BENCH, OPTION_NO_FIELD,
                               "rounds that are timed, 0: as many as fit into a few seconds, 5 to 50 [0]"),
    [OPTION_AGAINST] = CHOICE("against", "opencv|vlfeat", IN_BENCH, OPTION_NO_FIELD,
                              "time that library beside hartsift, by turns in one process"),
    [OPTION_PRINT_DIGESTS] = FLAG("print-digests", IN_SELFTEST, OPTION_NO_FIELD,
                                  "print the C source of the table of stored digests instead of comparing with it"),
    [OPTION_QUIET] = {.name = "quiet",
                      .letter = 'q',
                      .kind = OPTION_KIND_FLAG,
                      .commands = IN_FRAMES | IN_SELFTEST | IN_MERGE,
                      .field = OPTION_NO_FIELD,
                      .help = "no progress and no summary; failures are still named"},
};

/* What an option's help says where a command has it otherwise than most. */
static const struct {
  option_id id;
  unsigned commands;
  const char *help;
} option_special_help[] = {
    {OPTION_OUTPUT, IN_EXTRACT, "the file that the features go to, or a folder (it exists, or its name ends in '/')"},
    {OPTION_OUTPUT, IN_BATCH, "the folder that the outputs go to, made if absent, or a database NAME.db"},
    {OPTION_OUTPUT, IN_MERGE, "the folder or, NAME.db, the database to make; a folder may be one of those merged"},
    {OPTION_REPLACE, IN_MERGE, "replace what is there and differs, instead of refusing"},
    {OPTION_EXIF, IN_MERGE,
     "NAME.db: take features of JPEG files turned by their EXIF orientation: COLMAP gets turned copies"},
    {OPTION_FORMAT, IN_BATCH,
     "format of the features: colmap, npz, csv, json, lowe, vlfeat, opencv, openmvg, bin, colmap-db, visualsfm or oxford "
     "[npz; colmap-db with -o NAME.db]"},
    {OPTION_REPLACE, IN_MATCH, "--database: make matches anew that are there"},
    {OPTION_MAX_MEMORY, IN_MATCH,
     "refuse images that need more memory, 0: no limit; --database: hold no more of them at a time, 0: half of the machine's; "
     "K, M and G multiply by 1024 [0]"},
    {OPTION_MASK, IN_HIST, "count the pixels only where this image, of the same size, is not black (0)"},
    {OPTION_JSON, IN_MATCH, "the same as --format json"},
};

const char *option_help(option_id id, command_id command) {
  for (size_t i = 0; i < sizeof option_special_help / sizeof option_special_help[0]; i++)
    if (option_special_help[i].id == id && (option_special_help[i].commands >> command & 1u) != 0)
      return option_special_help[i].help;
  return option_specs[id].help;
}

static const char *const top_details[] = {
    "Extracts Lowe's scale-invariant keypoints and descriptors (IJCV 2004) from images: the same bytes on every "
    "machine, from every backend and any number of threads.",
    "Results go to standard output or to files, everything else to standard error. Files appear whole or not at all.",
    NULL,
};

static const char *const extract_details[] = {
    "Each IMAGE is a PNG, JPEG, PGM, PPM or PAM file, '-' for standard input, or @scene[:WxH[:SEED]] for a generated "
    "picture. One image without -o: its features go to standard output. One image with -o FILE: to that file. "
    "With -o DIR, and always with several images: one file for each image in DIR, named after the image with the "
    "ending of the format (photo.jpg gives photo.npz; format colmap keeps the whole name, photo.jpg.txt, as "
    "COLMAP's feature_importer expects). No two images may give the same name: the second one fails.",
    "Format colmap-db (-o database.db) adds all images to one database for COLMAP's mapper, making it where absent; an "
    "image that is there keeps its number and camera, and its features must be the same ones unless --replace is given. "
    "All is added at once, after the last image. New images get a camera with the focal length of a JPEG's EXIF, marked as "
    "known, and their GPS position.",
    "JPEG files are turned by their EXIF orientation, but not for the formats colmap, colmap-db, openmvg and visualsfm: "
    "those programs read them as stored, and there the coordinates must fit.",
    "Values in brackets are the defaults of profile lowe, and of other profiles where they differ.",
    "With --keypoints, each keypoint's octave and level come from the file where it has them, else from its scale. "
    "Those that cannot be described are named on standard error and get a descriptor of zeros.",
    "With --json, standard output gets one record a line for each image: image, width, height, features, milliseconds "
    "(of the extraction alone), output, status, error.",
    NULL,
};

static const char *const match_details[] = {
    "A and B are feature files in any format, or images, whose features are extracted with the options of extract; "
    "'-' is an image from standard input, @scene[:WxH[:SEED]] a generated picture. Every descriptor of A is compared "
    "with every one of B, exactly.",
    "Prints CSV to standard output or FILE: index_a, index_b (from 0, in the order of the features), distance, and with "
    "--verify inlier (1 or 0). --format colmap is the text of COLMAP's matches_importer, with --verify inliers only, and JPEG files are then "
    "left as stored, as extract leaves them for COLMAP.",
    "--database FILE matches every image of a COLMAP database with every other, or the pairs of --pairs, verifies them "
    "and adds matches and geometry for COLMAP's mapper. Pairs that have matches are left unless --replace is given. "
    "--verify essential takes the cameras of the database where their focal length is known and there is no distortion, "
    "and a fundamental matrix elsewhere. What is done is saved twice a second; "
    "Ctrl-C (SIGINT) or SIGTERM saves the rest and ends, and the same command goes on. With --json, standard output gets one "
    "record a line for each pair: image_a, image_b, matches, inliers, model.",
    NULL,
};

static const char *const batch_details[] = {
    "Extracts the features of many images, several at once, on one or more devices. DIR: all PNG, JPEG, PGM, PPM, PNM and "
    "PAM files in it and in the folders below it, by their endings, sorted by name; names beginning with '.' and links to "
    "folders are left out. LIST: a text file with one image a line, '-': the same on standard input; @scene names are "
    "allowed.",
    "Each image gets a file in the folder of -o (format npz unless --format says otherwise), named as by extract, in the "
    "same subfolder as the image has in DIR or in its line (without a leading '/', '..' resolved). Of images with the same "
    "output the first one is done, the others fail. An image that fails is named and the rest is done.",
    "JPEG files are turned by their EXIF orientation or left as stored as by extract. "
    "With -o NAME.db (or --format colmap-db) all features go to that database of COLMAP's, in the order of the images, which "
    "are called by their names below DIR or in the list; the manifest is NAME.db.manifest.csv. What is in the database but "
    "differs makes an image fail, unless --replace is given.",
    "The folder also gets manifest.csv, one row an image in the order of the list: image, width, height, features, digest "
    "of the features, digest of the output, status, error. It does not depend on devices, threads or interruptions. Until "
    "everything is done, manifest.journal stands there instead. Ctrl-C (SIGINT) or SIGTERM finishes what is being computed "
    "and ends with exit status 1; after that, or after any other end, --resume goes on: outputs that are there with the "
    "digest of the manifest, and not older than their image, are kept, all others are made. With other options than "
    "before --resume refuses to.",
    "--shard I/N is for job arrays: run I does every N-th image from the I-th on, with a manifest-I-of-N.csv of its own in "
    "the same folder. --shard slurm takes I and N from a Slurm array, or the tasks of a step; --shard env:INDEX,COUNT from "
    "variables of these names, env:INDEX+1,COUNT where they count from 0; COUNT may be a number. With --resume a task that is "
    "started again goes on. Afterwards 'hartsift merge' puts all together, or the same command with --resume and without "
    "--shard verifies all outputs, does what is missing and writes the whole manifest.csv.",
    "With --json, standard output gets a record a line for each image in the order of completion: image, width, height, "
    "features, milliseconds (from its submission to its features), digest, kept, status, error; then one with the member "
    "summary: counts, rate, and the CPU seconds of reading, extracting and writing.",
    NULL,
};

static const char *const merge_details[] = {
    "Puts the outputs of several runs of batch together: of the shards of one, or of batches of different images. IN is the "
    "folder or the database NAME.db that was batch's -o, or a manifest in or beside it. All must have been made with the same "
    "options and the same method version.",
    "The files of features are copied to the folder of -o, or with -o NAME.db added to that COLMAP database; databases are "
    "merged into a database, byte for byte. Each output is first compared with its digest in the manifest. The images keep the "
    "order of the list that the shards were made of; those of batches without shards are sorted by name. So the result is "
    "that of one run, with its manifest.csv, whatever the number of shards; images that failed stay failed there.",
    "Where all shards wrote to one folder, -o names that folder: its files are verified and the whole manifest.csv is "
    "written, for which no image is needed.",
    "Refused is what cannot be one run: images that are there twice, a shard that is missing or not finished, other options, "
    "outputs that are not what their manifest says. Parquet files, as those of Ray, are merged by 'python -m hartsift merge'.",
    NULL,
};

static const char *const draw_details[] = {
    "Draws a circle for each feature, of a radius proportional to its scale, with a line from the centre in the "
    "direction of its orientation, over IMAGE. FEATURES is a feature file in any format, of a JPEG as stored where it is of a program that reads them so; without "
    "it the features are extracted, with the options of extract. The colour tells the octave; the palette is safe for colour-blind "
    "readers.",
    "With two images and a file of matches as match writes it: both pictures side by side with a line for each match, "
    "in sky blue for an inlier of --verify, in vermilion and fainter for another. The features come from FEATURES1 and "
    "FEATURES2; without them they are extracted, which takes the options that match was given. Features of other counts than "
    "the file of matches has (JSON), or between which the matches have other distances, are refused.",
    "The ending of the output (.png, .jpg, .ppm) tells the format.",
    NULL,
};

static const char *const stats_details[] = {
    "Prints sum, mean, minimum, maximum and the number of pixels above a threshold, for the whole of IMAGE or for each "
    "tile of it: tiles from the top-left corner, row by row, the last ones as small as what is left. IMAGE is a PNG, "
    "JPEG, PGM, PPM or PAM file, '-' for standard input, or @scene[:WxH[:SEED]]; colour is read as gray, and 16-bit "
    "values count as they are.",
    "CSV with the columns x, y, width, height, sum, mean, min, max, above; with --json, or where FILE ends in .json, "
    "{\"tiles\": [{the same names}, ...]}.",
    NULL,
};

static const char *const hist_details[] = {
    "Prints how many pixels of IMAGE, an 8-bit picture, have each of the 256 levels, colour read as gray; with --mask "
    "only those where the mask is not black. CSV with the columns level and count; with --json, or where FILE ends in "
    ".json, {\"histogram\": [256 counts]}.",
    "--equalize also writes the picture with its levels spread by that histogram (without a mask), byte for byte as "
    "OpenCV's equalizeHist does.",
    NULL,
};

static const char *const info_details[] = {
    "Prints the version, what this build can read, the CPU level and threads, the devices, and the implementation "
    "chosen for each stage; where no GPU is used, why.",
    NULL,
};

static const char *const selftest_details[] = {
    "Extracts built-in scenes with every implementation that this machine can run and compares the results byte for "
    "byte with the plain C reference, and their digests with those stored for this method version. Exit status 0 only "
    "if all agree. With --json: method_version, digests, agree, and for each of the backends its name, why it was skipped "
    "(or null), and how many scenes were compared and differ.",
    NULL,
};

static const char *const bench_details[] = {
    "Times a frame from pixels in memory to features in memory, on one thread, on all (or those of --threads), and on "
    "the GPU where one is usable; with --device on that device alone. Each IMAGE is a file or @scene[:WxH[:SEED]]; without one, scenes of four sizes. All "
    "ways are verified first and timed by turns. Prints a table in Markdown, or with --json a list of records: name, width, "
    "height, program, profile, device, threads, features, median_ms, min_ms, p90_ms, ratio (to the first way).",
    "--against compares with OpenCV's cv::SIFT (and profile opencv) or with VLFeat (and profile vlfeat, both at contrast "
    "0.04) on the CPU, with the peak memory of each; it needs hartsift-bench-peers beside this command, which is built "
    "where the libraries are found.",
    NULL,
};

static const command_spec command_specs[COMMAND_COUNT] = {
    [COMMAND_TOP] = {"", "COMMAND", 0, 1, "exact SIFT features, the same bytes on every machine", top_details, NULL},
    [COMMAND_EXTRACT] = {"extract", "IMAGE...", 1, -1, "extract features from images", extract_details, NULL},
    [COMMAND_MATCH] = {"match", "A B | --database FILE", 0, 2, "match two images, or the pairs of a database",
                       match_details, NULL},
    [COMMAND_BATCH] = {"batch", "DIR|LIST|-", 1, 1, "extract features from many images", batch_details,
                       "'hartsift extract IMAGE... -o DIR' takes images by name"},
    [COMMAND_MERGE] = {"merge", "IN...", 1, -1, "put the outputs of several batches together", merge_details, NULL},
    [COMMAND_DRAW] = {"draw", "IMAGE [FEATURES] | IMAGE1 IMAGE2 MATCHES [FEATURES1 FEATURES2]", 1, 5,
                      "draw keypoints over a picture, or the matches of two", draw_details, NULL},
    [COMMAND_STATS] = {"stats", "IMAGE", 1, 1, "sum, mean, minimum and maximum of an image or its tiles", stats_details,
                       NULL},
    [COMMAND_HIST] = {"hist", "IMAGE", 1, 1, "histogram of an image, and the equalised image", hist_details, NULL},
    [COMMAND_INFO] = {"info", "", 0, 0, "what this build and this machine can do", info_details, NULL},
    [COMMAND_SELFTEST] = {"selftest", "", 0, 0, "compare every backend of this machine", selftest_details, NULL},
    [COMMAND_BENCH] = {"bench", "[IMAGE...]", 0, -1, "time of a frame on this machine", bench_details, NULL},
};

const option_spec *option_get(option_id id) { return &option_specs[id]; }

const command_spec *command_get(command_id id) { return &command_specs[id]; }

bool option_belongs_to(option_id id, command_id command) { return (option_specs[id].commands >> command & 1u) != 0; }

command_id command_find(const char *name) {
  for (int id = COMMAND_TOP + 1; id < COMMAND_COUNT; id++)
    if (strcmp(command_specs[id].name, name) == 0) return (command_id)id;
  return COMMAND_COUNT;
}

/* "a|b|c" as "a, b or c". */
static void describe_choices(const char *choices, char *text, size_t bytes) {
  size_t used = 0;
  while (used < bytes) {
    const size_t length = strcspn(choices, "|");
    const char *next = choices + length;
    const bool is_last = *next == '\0';
    const bool is_last_but_one = !is_last && !strchr(next + 1, '|');
    used += (size_t)snprintf(text + used, bytes - used, "%.*s%s", (int)length, choices,
                             is_last           ? ""
                             : is_last_but_one ? " or "
                                               : ", ");
    if (is_last) return;
    choices = next + 1;
  }
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
    describe_choices(spec->choices, text, bytes);
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
  case OPTION_KIND_PAIRS:
    snprintf(text, bytes, "%s or several of them joined by commas", spec->argument);
    break;
  }
}
