/*
 * The threads of a batch that read images, and decode what the devices do not.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_READER_H
#define HARTSIFT_CLI_BATCH_BATCH_READER_H

#include "pipeline/cli/batch/batch_run.h"

/* Most bytes of a JPEG that cores with nothing else to do decode at a higher rate than a GPU, which finds little of such a
   file to decode at once. */
enum { BATCH_SMALL_BYTES = 64 << 10 };

/* Reads images until there is none left. A thread takes a slot before an image, so that never more images are in progress
   than there are slots. */
void batch_run_reader(batch_thread *thread);

/* Decodes a small JPEG that stayed encoded, where cores have time for it and the GPU was not asked for; the pixels are the
   same. */
void batch_decode_small(batch_run *batch, batch_slot *slot);

#endif
