/*
 * Table of subcommands with the texts of their help and manual pages; see option_table.h.
 */
#include <string.h>

#include "pipeline/cli/options/option_table.h"

static const char *const top_details[] = {
    "Extracts Lowe's scale-invariant keypoints and descriptors (IJCV 2004) from images: the same bytes on every "
    "machine, from every backend and any number of threads.",
    "Results go to standard output or to files, everything else to standard error. Each file is written whole or not "
    "at all.",
    NULL,
};

static const char *const extract_details[] = {
    "Each IMAGE is a PNG, JPEG, TIFF, WebP, BMP, PGM, PPM or PAM file, '-' for standard input, or "
    "@scene[:WxH[:SEED]] for a generated picture. The features of one image go to standard output, or with -o FILE "
    "to that file; with -o DIR, and always with several images, to one file for each image in DIR; with -o NAME.db "
    "to a COLMAP database.",
    "Values in brackets are the defaults of profile lowe, and of other profiles where they differ.",
    NULL,
};

static const char *const extract_more[] = {
    "A file in DIR is named after the image with the ending of the format (photo.jpg gives photo.npz; format colmap keeps "
    "the whole name, photo.jpg.txt, as COLMAP's feature_importer expects). No two images may give the same name: the second "
    "one fails.",
    "Format colmap-db (-o database.db) adds all images to one database for COLMAP's mapper and creates it if it is "
    "missing. An image of the database must have the same features, and the camera that the options ask for, if any; "
    "else it is refused, or with --replace changed. All images are added at once, after the last one. New images get "
    "a camera with the focal length of the EXIF, marked as known, and their GPS position.",
    "Images are turned by their EXIF orientation, except for the formats {formats as stored}, whose programs read "
    "images as stored.",
    "With --keypoints, octave and level come from the file if it has them, else from the keypoint's scale. A "
    "keypoint outside the picture or without a size cannot be described: it is named on standard error and gets a "
    "descriptor of zeros.",
    "With --json, standard output gets one record for each image, a line each: image, width, height, features, "
    "milliseconds (of the extraction alone), way (how it was computed: hs_frame_way in hartsift.h), way_reason, output, "
    "status, error.",
    NULL,
};

static const char *const match_details[] = {
    "A and B are feature files in any format, or images, from which features are extracted first; '-' is an image "
    "from standard input, @scene[:WxH[:SEED]] a generated picture. All descriptors of A and B are compared, exactly. "
    "Prints CSV: index_a, index_b, distance, and with --verify inlier.",
    "--database FILE matches the images of a COLMAP database, verifies the matches and adds them with their geometry "
    "for COLMAP's mapper. Pairs that have both are skipped, so a stopped run continues; matches without geometry are "
    "verified.",
    NULL,
};

static const char *const match_more[] = {
    "Indices count from 0, in the order of the features; inlier is 1 or 0. --format colmap is the text for COLMAP's "
    "matches_importer, with --verify only the inliers; images are then read as stored.",
    "With --database, --verify essential uses the cameras of the database if their focal length is known and they "
    "have no distortion, else a fundamental matrix. Results are saved twice a second; Ctrl-C (SIGINT) or SIGTERM "
    "saves the rest and ends, and the same command continues. --replace matches again what has matches. With --json, "
    "standard output gets one record for each pair, a line each: image_a, image_b, matches, inliers, model; with "
    "--devices also a summary.",
    NULL,
};

static const char *const batch_details[] = {
    "Extracts the features of many images, several at once, on one or more devices. DIR: all images in it and in its "
    "folders. LIST: a text file with one image a line, '-': the same on standard input.",
    "Each image gets a file in the folder of -o and a row in its manifest.csv; an image that fails is named, and the "
    "others continue. With -o NAME.db all images go to a COLMAP database. Ctrl-C stops, --resume continues.",
    NULL,
};

static const char *const batch_more[] = {
    "Takes all files below DIR with the endings of PNG, JPEG, TIFF, WebP, BMP, PBM, PGM, PPM, PNM and PAM, sorted by "
    "name, and counts the others by their endings. Names beginning with '.' are skipped. Links are followed; each "
    "folder is searched once. A LIST may have @scene names.",
    "The format of the files is npz unless --format says otherwise. Names are as for extract. Subfolders of DIR, or "
    "of the path in LIST, are kept; a leading '/' is removed and '..' resolved. If several images have the same "
    "output, the first one gets it and the others fail. The EXIF orientation is applied as for extract.",
    "With -o NAME.db (or --format colmap-db) all features go to that COLMAP database, in the order of the images, "
    "with their names below DIR or in the list; the manifest is NAME.db.manifest.csv. An image whose features in the "
    "database differ fails, unless --replace is given.",
    "The manifest has the rows in the order of the list: image, width, height, features, digest of the features, "
    "digest of the output, status, error, and size, time and digest of the image's file. It does not depend on "
    "devices, threads or interruptions. While the batch runs, manifest.journal has the rows so far. SIGINT (Ctrl-C) "
    "or SIGTERM finishes the images in progress and ends with exit status 1. After any end --resume continues: it "
    "keeps outputs whose digest is in the manifest and whose image has not changed, processes all others, and names "
    "images that are missing. It refuses other options than before. Without --resume all images are processed again; "
    "earlier outputs stay until the first image is done.",
    "--shard I/N is for job arrays: run I processes every N-th image from the I-th on, with manifest-I-of-N.csv in "
    "the same folder. --shard slurm takes I and N from a Slurm array, or the tasks of a step; --shard "
    "env:INDEX,COUNT from variables of these names, env:INDEX+1,COUNT where they count from 0; COUNT may be a "
    "number. With --resume a task that is started again continues. Afterwards 'hartsift merge' joins the shards, or "
    "the same command with --resume and without --shard verifies all outputs, processes missing images and writes "
    "the whole manifest.csv.",
    "With --json, standard output gets a record for each image, a line each in the order of completion: image, "
    "width, height, features, milliseconds (from its submission to its features), way, way_reason, digest, kept, "
    "status, error; then one with the member summary: counts (also of images without features, changed and "
    "missing), rate, time of the first result, CPU seconds of reading, extracting and writing, and the share of "
    "time (busy) in which readers, writers and each device had work.",
    NULL,
};

static const char *const merge_details[] = {
    "Merges the outputs of several runs of batch: the shards of one batch, or batches of different images. IN is the "
    "folder or the database NAME.db of batch's -o, or a manifest in or next to it. All must have the same options "
    "and method version. The result is the same as of one run, with its manifest.csv.",
    NULL,
};

static const char *const merge_more[] = {
    "The files of features are copied to the folder of -o, or with -o NAME.db added to that COLMAP database; "
    "databases are merged into a database, byte for byte. Each output is first compared with its digest in the "
    "manifest. The images of shards keep the order of their list; batches without shards are sorted by name. So the "
    "result does not depend on the number of shards; images that failed stay failed.",
    "If all shards wrote to one folder, -o names that folder: its files are verified and the whole manifest.csv is "
    "written. No image is needed.",
    "Refused: an image that occurs twice, a shard that is missing or unfinished, other options, an output that "
    "differs from its manifest. 'python -m hartsift merge' merges Parquet files.",
    NULL,
};

static const char *const draw_details[] = {
    "Draws a circle for each feature over IMAGE, of a radius proportional to its scale, with a line from the centre "
    "in the direction of its orientation; the colour shows the octave. FEATURES is a feature file in any format; "
    "without it the features are extracted.",
    "With two images and a file of matches from match: both pictures side by side with a line for each match. The "
    "ending of the output (.png, .jpg, .ppm) selects the format.",
    NULL,
};

static const char *const draw_more[] = {
    "If the format of FEATURES belongs to a program that reads images as stored, IMAGE is read as stored too. The "
    "palette is safe for colour-blind readers.",
    "Inliers of --verify are sky blue, other matches vermilion and fainter. The features come from FEATURES1 and "
    "FEATURES2; without them they are extracted, so give the options of match again. Features that differ from the "
    "matched ones in number (JSON) or in distances are refused.",
    NULL,
};

static const char *const stats_details[] = {
    "Prints sum, mean, minimum, maximum and the number of pixels above a threshold, for the whole of IMAGE or for each "
    "tile of it: tiles from the top-left corner, row by row, the last ones as small as what is left. IMAGE is a PNG, "
    "JPEG, TIFF, WebP, BMP, PGM, PPM or PAM file, '-' for standard input, or @scene[:WxH[:SEED]]; colour is read as gray, and 16-bit "
    "values and floats count as they are.",
    "CSV with the columns x, y, width, height (of the tile, pixels), sum, mean, min, max, above (how many pixels have a value "
    "above --threshold); with --json, or where FILE ends in .json, {\"tiles\": [{the same names}, ...]}.",
    NULL,
};

static const char *const hist_details[] = {
    "Prints how many pixels of IMAGE have each of the 256 levels, colour read as gray; with --mask only those where the "
    "mask is not black. Samples of 16 bits and floats are sorted into 256 equal levels of --value-range. CSV with the columns level and count; with --json, or where FILE ends in "
    ".json, {\"histogram\": [256 counts]}.",
    "--equalize also writes the picture with its levels spread by that histogram (without a mask), byte for byte as "
    "OpenCV's equalizeHist does.",
    NULL,
};

static const char *const convolve_details[] = {
    "Convolves a signal with the taps of a filter. SIGNAL is a text file with one number a line, a NumPy array (.npy; of two "
    "dimensions: each row by itself), doubles without a header (.bin), or '-' for text on standard input. Lines that "
    "begin with '#' are skipped.",
    "The result has as many numbers: text with as many digits as restore each of them, or what the ending of FILE says; "
    "float arrays stay float. With --json, {\"values\": [...]}, of two dimensions a list for each row. The bytes are the same on every device.",
    NULL,
};

static const char *const info_details[] = {
    "Prints the version, what this build can read, the CPU level and threads, the devices, and the implementation "
    "chosen for each stage; where no GPU is used, why.",
    NULL,
};

static const char *const selftest_details[] = {
    "Extracts built-in scenes with every implementation that this machine can run and compares the results byte for "
    "byte with the plain C reference, and their digests with those stored for its method versions. Exit status 0 "
    "only if all agree. With --json: method_version, method_version_affine, digests, agree, and for each of the backends "
    "its name, why it was skipped (or null), and how many scenes were compared and differ.",
    NULL,
};

static const char *const bench_details[] = {
    "Times a frame from pixels in memory to features in memory, on one thread, on all (or those of --threads), and "
    "on the GPU where one is usable; with --device only on that device. Each IMAGE is a file or @scene[:WxH[:SEED]]; "
    "without one, scenes of four sizes. All contenders are verified first and timed interleaved. Prints a table in "
    "Markdown, or with --json a list of records: name, width, height, program, profile, device, threads, features, "
    "median_ms, min_ms, p90_ms, ratio (to the first contender).",
    "--against compares with OpenCV's cv::SIFT (and profile opencv) or with VLFeat (and profile vlfeat, both at "
    "contrast 0.04) on the CPU, with the peak memory of each; it needs hartsift-bench-peers next to this command: "
    "build all targets with libopencv-dev and libvlfeat-dev installed.",
    NULL,
};

static const char *const nothing_more[] = {NULL};

static const command_spec command_specs[COMMAND_COUNT] = {
    [COMMAND_TOP] = {"", "COMMAND", 0, 1, "exact SIFT features, the same bytes on every machine", top_details,
                     nothing_more, NULL},
    [COMMAND_EXTRACT] = {"extract", "IMAGE...", 1, -1, "extract features from images", extract_details, extract_more,
                         NULL},
    [COMMAND_MATCH] = {"match", "A B | --database FILE", 0, 2, "match two images, or the pairs of a database",
                       match_details, match_more, NULL},
    [COMMAND_BATCH] = {"batch", "DIR|LIST|-", 1, 1, "extract features from many images", batch_details, batch_more,
                       "'hartsift extract IMAGE... -o DIR' takes images by name"},
    [COMMAND_MERGE] = {"merge", "IN...", 1, -1, "merge the outputs of several batches", merge_details, merge_more,
                       NULL},
    [COMMAND_DRAW] = {"draw", "IMAGE [FEATURES] | IMAGE1 IMAGE2 MATCHES [FEATURES1 FEATURES2]", 1, 5,
                      "draw keypoints over a picture, or the matches of two", draw_details, draw_more, NULL},
    [COMMAND_STATS] = {"stats", "IMAGE", 1, 1, "sum, mean, minimum and maximum of an image or its tiles", stats_details,
                       nothing_more, NULL},
    [COMMAND_HIST] = {"hist", "IMAGE", 1, 1, "histogram of an image, and the equalised image", hist_details,
                      nothing_more, NULL},
    [COMMAND_CONVOLVE] = {"convolve", "SIGNAL", 1, 1, "filter a signal: mean, Gaussian or given taps", convolve_details,
                          nothing_more, NULL},
    [COMMAND_INFO] = {"info", "", 0, 0, "capabilities of this build and this machine", info_details, nothing_more,
                      NULL},
    [COMMAND_SELFTEST] = {"selftest", "", 0, 0, "compare every backend of this machine", selftest_details, nothing_more,
                          NULL},
    [COMMAND_BENCH] = {"bench", "[IMAGE...]", 0, -1, "time of a frame on this machine", bench_details, nothing_more,
                       NULL},
};

const command_spec *command_get(command_id id) { return &command_specs[id]; }

command_id command_find(const char *name) {
  for (int id = COMMAND_TOP + 1; id < COMMAND_COUNT; id++)
    if (strcmp(command_specs[id].name, name) == 0) return (command_id)id;
  return COMMAND_COUNT;
}

const text_pair text_exit_statuses[] = {
    {"0", "all done"},
    {"1", "some input failed: each is named with its reason, the others are processed"},
    {"2", "wrong usage: the message says which option and what was expected"},
    {"3", "the device asked for is not usable: the message says why"},
    {NULL, NULL},
};

const text_pair text_environment[] = {
    {"HARTSIFT_CPU", "ref, sse2, avx2, avx512, avx512vnni, neon or neondot: use no better instruction set than this"},
    {"HARTSIFT_DEVICE", "auto, cpu, cuda:N or hybrid: what --device auto may use"},
    {NULL, NULL},
};

static const struct {
  command_id command;
  text_pair pair;
} examples[] = {
    {COMMAND_EXTRACT, {"hartsift extract photo.jpg > photo.csv", "the features of one photo as CSV"}},
    {COMMAND_EXTRACT,
     {"hartsift extract *.jpg -o features/ --format colmap", "a text file for each image, for COLMAP"}},
    {COMMAND_MATCH,
     {"hartsift match one.jpg two.jpg --verify homography", "matches of two photos, and which of them agree"}},
    {COMMAND_EXTRACT, {"hartsift extract *.jpg -o database.db --profile colmap", "all photos into a COLMAP database"}},
    {COMMAND_MATCH, {"hartsift match --database database.db", "match and verify them; then run colmap mapper"}},
    {COMMAND_BATCH, {"hartsift batch photos/ -o features/ --resume", "a folder of photos; continues a stopped run"}},
    {COMMAND_BATCH,
     {"hartsift batch photos/ -o part-3.db --shard 3/8", "one eighth of the images, on one of eight machines"}},
    {COMMAND_MERGE, {"hartsift merge part-*.db -o database.db", "the eight parts as one database"}},
    {COMMAND_CONVOLVE, {"hartsift convolve noise.txt --taps mean:5 -o smooth.txt", "each number the mean of five"}},
    {COMMAND_DRAW, {"hartsift draw photo.jpg --max-features 500 -o keypoints.png", "a picture of the 500 strongest"}},
};

const text_pair *text_next_example(command_id command, size_t *next) {
  while (*next < sizeof examples / sizeof examples[0]) {
    const size_t i = (*next)++;
    if (command == COMMAND_TOP || command == examples[i].command) return &examples[i].pair;
  }
  return NULL;
}
