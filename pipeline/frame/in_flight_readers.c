/* The threads of a ring that read and decode files ahead of a GPU's lanes. A CPU's lanes read their own. */
#include <signal.h>

#include "cpu/schedule/float_environment.h"
#include "cpu/schedule/threads.h"
#include "pipeline/frame/in_flight_ring.h"

void in_flight_read_slot(in_flight_slot *s) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  s->status = source_read(&s->opened, &s->picture, s->error, sizeof s->error);
  s->unreadable = s->status != HS_OK;
  hs_message_set(s->location, sizeof s->location, "%s at in_flight_readers.c:%d", hs_status_name(s->status), __LINE__);
}

/* The first image that nobody has begun to read, null: none. Under the lock. */
static in_flight_slot *take_unread(struct in_flight_ring *f) {
  for (uint64_t image = f->next; image != f->end; image++) {
    in_flight_slot *s = ring_slot(f, image);
    if (s->state != SLOT_UNREAD) continue;
    s->state = SLOT_READING;
    return s;
  }
  return NULL;
}

static void *reader_main(void *argument) {
  struct in_flight_ring *f = argument;
  pthread_mutex_lock(&f->lock);
  while (!f->ending) {
    in_flight_slot *s = take_unread(f);
    if (!s) {
      pthread_cond_wait(&f->unread, &f->lock);
      continue;
    }
    pthread_mutex_unlock(&f->lock);
    in_flight_read_slot(s);
    pthread_mutex_lock(&f->lock);
    s->state = SLOT_READY;
    pthread_cond_broadcast(&f->work);
  }
  pthread_mutex_unlock(&f->lock);
  return NULL;
}

hs_status in_flight_start_readers(struct in_flight_ring *f, hs_context *owner) {
  sigset_t blocked, saved;
  const int32_t threads = context_threads(owner), slots = f->slot_count - 1;
  int32_t wanted = threads < slots ? threads : slots;
  if (wanted > READERS_MOST) wanted = READERS_MOST;
  if (f->reader_count > 0) return HS_OK;
  worker_signals_blocked(&blocked);
  if (pthread_sigmask(SIG_SETMASK, &blocked, &saved) != 0)
    return CONTEXT_FAIL(owner, HS_ERR_THREAD, "cannot block signals for the readers");
  while (f->reader_count < wanted && pthread_create(&f->readers[f->reader_count], NULL, reader_main, f) == 0)
    f->reader_count++;
  pthread_sigmask(SIG_SETMASK, &saved, NULL);
  return f->reader_count > 0 ? HS_OK : CONTEXT_FAIL(owner, HS_ERR_THREAD, "cannot start a thread that reads files");
}
