/*
 * What one database file takes: features from memory into COLMAP's database, as `batch` writes them, and the same bytes
 * into a plain file.
 *
 *   bench_hartsift database FILE [FEATURES [IMAGES]]
 *
 * FILE must not exist; it is removed at the end. FEATURES (21379) is the number of each image, IMAGES (200) their
 * number. Prints CPU milliseconds an image of the thread that adds rows and of the thread that writes pages, and wall
 * milliseconds. The slower thread bounds the rate; the plain file is the bound of the second.
 */
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "bench/hartsift/bench_modes.h"
#include "pipeline/base/memory.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/formats/colmap/colmap_records.h"

enum { ROWS = 8, WIDTH = 1920, HEIGHT = 1080, COMMIT_MS = 1000, PIECE_BYTES = 64 << 10, WARM_UP = 8 };

typedef struct database_bench {
  const char *path;
  size_t features, images;
  colmap_rows rows[ROWS]; /* different memory for images that follow each other, as in a batch */
} database_bench;

static void *no_memory(size_t bytes, void *user) {
  (void)bytes, (void)user;
  return NULL;
}

/* of arrays that the database takes and that are added again */
static const hs_allocator keeping = {.alloc = no_memory};

static double thread_ms(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static size_t bytes_of_image(const database_bench *b) {
  return b->features * (COLMAP_KEYPOINT_BYTES + HS_DESCRIPTOR_LENGTH);
}

static bool make_rows(database_bench *b) {
  for (int i = 0; i < ROWS; i++) {
    colmap_rows *rows = &b->rows[i];
    *rows = (colmap_rows){.count = b->features, .width = WIDTH, .height = HEIGHT};
    rows->keypoints = hs_memory_alloc(NULL, b->features * COLMAP_KEYPOINT_BYTES);
    rows->descriptors = hs_memory_alloc(NULL, b->features * HS_DESCRIPTOR_LENGTH);
    if (!rows->keypoints || !rows->descriptors) return false;
    memset(rows->keypoints, i + 1, b->features * COLMAP_KEYPOINT_BYTES);
    memset(rows->descriptors, i + 1, b->features * HS_DESCRIPTOR_LENGTH);
  }
  return true;
}

static hs_status add_images(const database_bench *b, hs_colmap_database *database, size_t first, size_t count) {
  double committed = bench_ms();
  hs_colmap_camera camera;
  hs_status status = hs_colmap_camera_init(&camera, WIDTH, HEIGHT, 0.0);
  for (size_t i = first; i < first + count && status == HS_OK; i++) {
    char name[32];
    snprintf(name, sizeof name, "%zu.jpg", i);
    colmap_rows lent = b->rows[i % ROWS];
    lent.allocator = &keeping;
    status = colmap_add_rows(database, name, &camera, &lent, NULL);
    if (status != HS_OK || bench_ms() - committed < COMMIT_MS) continue;
    status = hs_colmap_commit(database);
    committed = bench_ms();
  }
  return status == HS_OK ? hs_colmap_commit(database) : status;
}

static int write_database(const database_bench *b) {
  char message[512] = "";
  hs_colmap_database *database = NULL;
  const hs_colmap_options options = {
      .struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
  hs_status status = colmap_open_behind(&database, b->path, &options);
  if (status != HS_OK) return bench_fail(message);
  status = add_images(b, database, 0, WARM_UP);
  const double images = (double)b->images, wall = bench_ms(), adding = thread_ms();
  const double writing = 1e3 * colmap_writer_cpu_s(database);
  if (status == HS_OK) status = add_images(b, database, WARM_UP, b->images);
  if (status == HS_OK)
    printf("database: adding %.3f, writing %.3f CPU ms, %.3f ms an image of %.2f MB\n", (thread_ms() - adding) / images,
           (1e3 * colmap_writer_cpu_s(database) - writing) / images, (bench_ms() - wall) / images,
           1e-6 * (double)bytes_of_image(b));
  else
    (void)bench_fail(hs_colmap_last_error(database));
  hs_colmap_close(database);
  return status == HS_OK ? 0 : 1;
}

static int write_plain(const database_bench *b) {
  const size_t bytes = bytes_of_image(b) * b->images / PIECE_BYTES * PIECE_BYTES;
  const size_t pieces_of_rows = b->features * HS_DESCRIPTOR_LENGTH / PIECE_BYTES;
  const int file = pieces_of_rows > 0 ? open(b->path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
  if (file < 0) return bench_fail(pieces_of_rows > 0 ? strerror(errno) : "too few features");
  bool done = true;
  const double start = thread_ms();
  for (size_t at = 0; at < bytes && done; at += PIECE_BYTES) {
    const uint8_t *from = b->rows[0].descriptors + at / PIECE_BYTES % pieces_of_rows * PIECE_BYTES;
    done = pwrite(file, from, PIECE_BYTES, (off_t)at) == PIECE_BYTES;
  }
  if (done) printf("plain file: %.3f CPU ms an image\n", (thread_ms() - start) / (double)b->images);
  (void)close(file);
  return done ? 0 : bench_fail("cannot write the file");
}

int mode_database(int argc, char **argv) {
  database_bench b = {.path = argc > 1 ? argv[1] : NULL,
                      .features = argc > 2 ? strtoul(argv[2], NULL, 10) : 21379,
                      .images = argc > 3 ? strtoul(argv[3], NULL, 10) : 200};
  if (!b.path || b.features == 0 || b.images == 0) return bench_fail("usage: database FILE [FEATURES [IMAGES]]");
  if (access(b.path, F_OK) == 0) return bench_fail("FILE exists");
  int result = make_rows(&b) ? write_database(&b) : bench_fail("out of memory");
  if (result == 0) result = unlink(b.path) == 0 ? write_plain(&b) : bench_fail("cannot remove FILE");
  (void)unlink(b.path);
  for (int i = 0; i < ROWS; i++) colmap_rows_free(&b.rows[i]);
  return result;
}
