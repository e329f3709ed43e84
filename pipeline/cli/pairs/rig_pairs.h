/*
 * Pairs of images that follow each other. With a rig of several cameras it is frames that follow each other, as in
 * COLMAP from 3.12 on (expand_rig_images): all images of two frames are matched with each other, and the images within
 * a frame.
 */
#ifndef HARTSIFT_CLI_PAIRS_RIG_PAIRS_H
#define HARTSIFT_CLI_PAIRS_RIG_PAIRS_H

#include "pipeline/cli/pairs/pair_choice.h"

/* Fills the empty *pairs, by the numbers of the source's images, the smaller one first, in ascending order. One frame
   follows another if an image of the one follows an image of the other among the images of a camera, in the order of
   names. Images without a rig of several cameras, and images without a frame, follow each other in the order of all
   their names. Prints why when it fails. */
cli_exit rig_pairs_make(const pair_choice *choice, const pair_source *source, pair_list *pairs);

#endif
