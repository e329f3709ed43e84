/*
 * Selection of the image pairs to match: all pairs; or by --pairs neighbours by name or position, similar images, or a
 * list of names.
 */
#ifndef HARTSIFT_CLI_PAIRS_PAIR_LIST_H
#define HARTSIFT_CLI_PAIRS_PAIR_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "pipeline/cli/pairs/pair_output.h"
#include "pipeline/include/hartsift.h"

/* ---- Growing list of pairs of images or frames, filled by every selection. */

/* Pairs of image indices in the order of matching. */
typedef struct pair_list {
  hs_image_pair *each;
  size_t count;
  size_t left_out; /* number of lines of a file that name an unknown image, or one image twice */
} pair_list;

/* Appends a pair; false: out of memory. */
bool pair_list_add(pair_list *pairs, size_t first, size_t second);

/* Sorts by first, then second, and removes duplicates. */
void pair_list_settle(pair_list *pairs);

void pair_list_free(pair_list *pairs);

/* ---- Pairs of --pairs. */

/* Inputs of the selection of pairs. */
typedef struct pair_source {
  const option_set *set;
  const database_images *images;
  hs_colmap_database *database; /* database that has the images' positions and features */
  const hs_image_pair *chosen;  /* pairs of image_ids; null: by the options */
  size_t chosen_count;
  hs_context *context;       /* context for the search of similar images, on the CPU */
  uint64_t max_memory_bytes; /* 0: no limit */
} pair_source;

/* Checks the form of the value of --pairs. Prints the reason of a failure. */
cli_exit pair_list_check(const option_set *set);

/* Fills the empty *pairs according to the options. Prints the reason of a failure; call pair_list_free in any case. */
cli_exit pair_list_make(const pair_source *source, pair_list *pairs);

/* ---- the forms of --pairs, and the lists of pairs for forms that are computed */

typedef enum pair_choice_kind {
  PAIR_CHOICE_ALL,
  PAIR_CHOICE_SEQUENTIAL,
  PAIR_CHOICE_SPATIAL,
  PAIR_CHOICE_RETRIEVAL,
  PAIR_CHOICE_FILE
} pair_choice_kind;

typedef struct pair_choice {
  pair_choice_kind kind;
  uint32_t neighbors; /* maximum number of neighbours per image; for spatial, 0: no limit */
  bool quadratic;
  double metres;
  const char *vectors; /* .npy file of the images' vectors, in the text that was parsed; null: none */
} pair_choice;

/* Parses a value of --pairs; a text of another form is a file name. Prints the reason of a failure. */
cli_exit pair_choice_parse(const char *text, pair_choice *choice);

/* Fills *pairs for PAIR_CHOICE_SPATIAL or PAIR_CHOICE_RETRIEVAL with indices of the source's images. Prints the reason
   of a failure. */
cli_exit pair_choice_make(const pair_choice *choice, const pair_source *source, hs_image_pairs *pairs);

/* ---- Pairs by similarity (pair_retrieval.c). */

/* Fills *pairs for PAIR_CHOICE_RETRIEVAL. */
cli_exit pair_by_looks(const pair_choice *choice, const pair_source *source, hs_image_pairs *pairs);

/* ---- Sequential pairs. With a rig of several cameras the sequence consists of frames, as in COLMAP from 3.12 on
   (expand_rig_images): all images of two frames are matched, and the images within a frame. */

/* Fills the empty *pairs with indices of the source's images, the smaller one first, in ascending order. The images of
   each camera are ordered by name; a frame follows another if one of its images follows an image of the other in such
   an order. Images without a rig of several cameras, or without a frame, are ordered together by name. Prints the
   reason of a failure. */
cli_exit rig_pairs_make(const pair_choice *choice, const pair_source *source, pair_list *pairs);

#endif
