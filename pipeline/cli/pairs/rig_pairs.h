/*
 * Pairs of images that follow each other. Of a rig of several cameras that are frames, as in COLMAP from 3.12 on
 * (expand_rig_images): all images of two frames are matched with each other, and those of one frame.
 */
#ifndef HARTSIFT_CLI_PAIRS_RIG_PAIRS_H
#define HARTSIFT_CLI_PAIRS_RIG_PAIRS_H

#include "pipeline/cli/pairs/pair_choice.h"

/* Fills the empty *pairs, by the numbers of the source's images, the smaller one first, in ascending order. A frame is
   followed by those whose images follow one of its own in the order of names among the images of a camera. Images of a
   camera alone, and those without a frame, follow each other in the order of all their names. Prints why when it fails. */
cli_exit rig_pairs_make(const pair_choice *choice, const pair_source *source, pair_list *pairs);

#endif
