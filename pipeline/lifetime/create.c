/* Creates and destroys contexts, and describes them. */
#include <stdio.h>
#include <string.h>

#include "os/os_threads.h"
#include "cpu/schedule/float_environment.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/context/engine.h"
#include "pipeline/context/options.h"
#include "pipeline/frame/in_flight.h"
#include "pipeline/lifetime/engines.h"
#include "pipeline/matching/pairs/pair_run.h"

static void make_tables(hs_context *c) {
  c->params = options_params(&c->options);
  c->rules = options_pyramid_rules(&c->options);
  c->radius_max = options_filters(&c->options, &c->base_filter, c->step_filter);
  vote_scales_init(&c->scales);
}

static hs_status create(hs_context **context, const hs_options *options, char *message, size_t message_bytes) {
  hs_options adopted;
  hs_expert_options expert;
  hs_status st = options_complete(&adopted, &expert, options, message, message_bytes);
  if (st == HS_OK) st = options_validate(&adopted, message, message_bytes);
  if (st != HS_OK) return st;
  hs_context *c = hs_memory_alloc(adopted.allocator, sizeof *c);
  if (!c)
    return hs_message_fail(HS_ERR_MEMORY, message, message_bytes, "out of memory: %zu bytes for a context", sizeof *c);
  memset(c, 0, sizeof *c);
  c->process = os_process_id();
  c->options = adopted;
  if (adopted.expert) {
    c->expert = expert;
    c->expert.variant = NULL;
    c->options.expert = &c->expert;
  }
  make_tables(c);
  char why[ERROR_TEXT_BYTES] = "";
  st = engine_choose(c, options_rules(&adopted)->variant, why, sizeof why);
  if (st != HS_OK) hs_message_set(message, message_bytes, "%s", why);
  if (st == HS_OK && c->no_device[0] && c->device_shown)
    hs_message_set(message, message_bytes, "the CPU does the work: %s", c->no_device);
  if (st == HS_OK && adopted.decoder == HS_DECODER_GPU && hs_decodes_jpeg(c, why, sizeof why) < 1) {
    hs_message_set(message, message_bytes, "options.decoder asks for a GPU, but no GPU decodes JPEGs: %s", why);
    st = HS_ERR_NO_DEVICE;
  }
  if (st != HS_OK) {
    backend_release(c);
    return st;
  }
  backend_report(c);
  *context = c;
  return HS_OK;
}

hs_status hs_create_explained(hs_context **context, const hs_options *options, char *message, size_t message_bytes) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_message_set(message, message_bytes, "%s", "");
  if (context) *context = NULL;
  if (!context || !options)
    return hs_message_fail(HS_ERR_ARGUMENT, message, message_bytes, "hs_create: context or options is null");
  return create(context, options, message, message_bytes);
}

hs_status hs_create(hs_context **context, const hs_options *options) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return hs_create_explained(context, options, NULL, 0);
}

void hs_destroy(hs_context *c) {
  if (!c) return;
  in_flight_end(c);
  pairs_detach(c);
  backend_release(c);
}

OPTIONS_END_WITH(hs_statistics, way_reason);
static const options_kind kind = OPTIONS_KIND(hs_statistics, frames);

hs_status hs_statistics_init_sized(hs_statistics *statistics, size_t struct_size) {
  return options_give(statistics, struct_size, NULL, kind);
}

hs_status hs_get_statistics(const hs_context *c, hs_statistics *statistics) {
  if (!c || !statistics) return HS_ERR_ARGUMENT;
  hs_statistics s = {.struct_size = sizeof s};
  backend_statistics(c, &s);
  in_flight_add_statistics(c->in_flight, &s);
  return options_give(statistics, statistics->struct_size, &s, kind);
}
