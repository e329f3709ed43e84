/* The forms of --pairs, and the lists of those that are computed. */
#ifndef HARTSIFT_CLI_PAIRS_PAIR_CHOICE_H
#define HARTSIFT_CLI_PAIRS_PAIR_CHOICE_H

#include "pipeline/cli/pairs/pair_list.h"

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
