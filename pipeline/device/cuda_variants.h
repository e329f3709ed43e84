/*
 * Names of the CUDA backend's variants: the mechanisms of HartSift, each against its alternative.
 */
#ifndef HARTSIFT_DEVICE_CUDA_VARIANTS_H
#define HARTSIFT_DEVICE_CUDA_VARIANTS_H

#include "pipeline/device/cuda_state.h"

/* "stage=name,..." over the defaults; null: the defaults. False: a name is unknown, and message lists the known ones. */
bool cuda_variants_parse(cuda_variants *variants, const char *text, char *message, size_t message_bytes);

/* One "stage: name" a line. Returns the characters written, as snprintf. */
int cuda_variants_report(const cuda_variants *variants, char *text, size_t bytes);

#endif
