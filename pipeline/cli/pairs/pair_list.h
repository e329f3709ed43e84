/*
 * Which pairs of a database's images are matched: all of them, or those of --pairs: neighbours by name or place,
 * images that look alike, or a list of names.
 */
#ifndef HARTSIFT_CLI_PAIRS_PAIR_LIST_H
#define HARTSIFT_CLI_PAIRS_PAIR_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "pipeline/cli/pairs/pair_output.h"
#include "pipeline/include/hartsift.h"

/* ---- A growing list of pairs of images, or of frames: every way of choosing pairs fills one. */

/* In the order in which they are matched; indices of the images. */
typedef struct pair_list {
  hs_image_pair *each;
  size_t count;
  size_t left_out; /* lines of a file with an image that the database has not */
} pair_list;

/* Adds a pair at the end; false: no memory. */
bool pair_list_add(pair_list *pairs, size_t first, size_t second);

/* Sorts by first, then second, and drops what is there twice. */
void pair_list_settle(pair_list *pairs);

void pair_list_free(pair_list *pairs);

/* ---- The pairs that --pairs asks for. */

/* What pairs are chosen by. */
typedef struct pair_source {
  const option_set *set;
  const database_images *images;
  hs_colmap_database *database; /* of the images: their positions and features */
  hs_context *context;          /* its processor looks for images that look alike */
  uint64_t max_memory_bytes;    /* 0: any */
} pair_source;

/* Whether --pairs has a form that pair_list_make knows; prints why if not. */
cli_exit pair_list_check(const option_set *set);

/* Fills the empty *pairs as the options say. Prints why when it fails; what was added is freed by pair_list_free in any
   case. */
cli_exit pair_list_make(const pair_source *source, pair_list *pairs);

/* ---- the forms of --pairs, and the lists of those that are computed */

typedef enum pair_choice_kind {
  PAIR_CHOICE_ALL,
  PAIR_CHOICE_SEQUENTIAL,
  PAIR_CHOICE_SPATIAL,
  PAIR_CHOICE_RETRIEVAL,
  PAIR_CHOICE_FILE
} pair_choice_kind;

typedef struct pair_choice {
  pair_choice_kind kind;
  uint32_t neighbors; /* of each image; spatial: 0: any number */
  bool quadratic;
  double metres;
} pair_choice;

/* Reads a value of --pairs: what has none of the forms is a file. Prints why when it fails. */
cli_exit pair_choice_parse(const char *text, pair_choice *choice);

/* Fills *pairs for PAIR_CHOICE_SPATIAL or PAIR_CHOICE_RETRIEVAL, by the numbers of the source's images. Prints why when it
   fails. */
cli_exit pair_choice_make(const pair_choice *choice, const pair_source *source, hs_image_pairs *pairs);

/* ---- Pairs of images that follow each other. With a rig of several cameras frames follow each other, as in COLMAP
   from 3.12 on (expand_rig_images): all images of two frames are matched with each other, and the images within a
   frame. */

/* Fills the empty *pairs, by the numbers of the source's images, the smaller one first, in ascending order. One frame
   follows another if an image of the one follows an image of the other among the images of a camera, in the order of
   names. Images without a rig of several cameras, and images without a frame, follow each other in the order of all
   their names. Prints why when it fails. */
cli_exit rig_pairs_make(const pair_choice *choice, const pair_source *source, pair_list *pairs);

#endif
