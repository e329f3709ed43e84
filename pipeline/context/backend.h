/*
 * A context and its engine: the report, falling back to the CPU, workers with the same engine, statistics.
 */
#ifndef HARTSIFT_CONTEXT_BACKEND_H
#define HARTSIFT_CONTEXT_BACKEND_H

#include "pipeline/context/engine.h"

/* Writes context->report. */
void backend_report(hs_context *context);
/* engine.report of the CPU. */
size_t backend_report_cpu(const hs_context *context, char *text, size_t bytes);

/* For HS_DEVICE_AUTO on a device: whether the CPU should run a frame that failed with this status, because the device's
   memory is full. */
bool backend_falls_back(const hs_context *context, hs_status status);
/* Notes in the report that it is, with the reason; the first of a context stays. */
void backend_note_fallback(hs_context *context, const char *reason);

/* A context that works as `owner` does, with `threads` of the CPU: for the work in flight. On failure the reason is the
   owner's last error. */
hs_status backend_clone(hs_context *owner, int32_t threads, hs_context **clone);

/* Frees a context that has nothing in flight. */
void backend_release(hs_context *context);

/* The statistics of the context itself, without those of the images in flight; struct_size is left alone. */
void backend_statistics(const hs_context *context, hs_statistics *statistics);

#endif
