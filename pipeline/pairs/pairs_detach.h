/*
 * What ends with a context: the run over pairs that it may have.
 */
#ifndef HARTSIFT_PAIRS_PAIRS_DETACH_H
#define HARTSIFT_PAIRS_PAIRS_DETACH_H

struct hs_context;

/* Stops the run's threads; the run itself stays its caller's to end, and gives no more pairs than were done. */
void pairs_detach(struct hs_context *context);

#endif
