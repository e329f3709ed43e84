/*
 * Loading by name and from memory, for every format: statuses, messages, limits, pipes, standard input, scenes; and
 * saving.
 */
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

#include "pipeline/cli/draw/drawing.h"

static const char small_pgm[] = "P5 3 2 255 abcdef";
enum { SMALL_BYTES = sizeof small_pgm - 1 };

/* ---- loading */

static void assert_load_fails(const char *path, hs_status expected, const char *named) {
  char message[1400];
  const hs_load_options options = {.struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
  hs_image image = {.width = 5};
  assert_int_equal(hs_load_image(path, &options, &image), expected);
  assert_non_null(strstr(message, named));
  assert_null(image.data);
  assert_int_equal(image.width, 0);
}

static void assert_loads_small(const char *path) {
  scoped_image image;
  assert_int_equal(hs_load_image(path, NULL, &image), HS_OK);
  assert_int_equal(image.width, 3);
  assert_int_equal(image.height, 2);
  assert_int_equal((uintptr_t)image.data % 64, 0);
  assert_memory_equal(image.data, "abcdef", 6);
}

TEST(test_arguments) {
  hs_image image;
  hs_load_options options = {.struct_size = sizeof options};
  assert_int_equal(hs_load_image("name", &options, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_load_image(NULL, &options, &image), HS_ERR_ARGUMENT);
  assert_int_equal(hs_load_image("", &options, &image), HS_ERR_ARGUMENT);
  assert_int_equal(hs_load_image_memory(NULL, 5, &options, &image), HS_ERR_ARGUMENT);
  assert_int_equal(hs_load_image_memory(small_pgm, SMALL_BYTES, &options, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_load_image_memory(small_pgm, 0, &options, &image), HS_ERR_FORMAT);
  options.struct_size = 0;
  assert_int_equal(hs_load_image("name", &options, &image), HS_ERR_OPTION);
  assert_int_equal(hs_load_image_memory(small_pgm, SMALL_BYTES, &options, &image), HS_ERR_OPTION);
  hs_image_free(NULL);
  scoped_image empty = {0};
}

TEST_IN_FOLDER(test_unusable_files) {
  char path[SCRATCH_PATH_BYTES];
  assert_load_fails(scratch_folder_path(folder, "missing", path), HS_ERR_IO, path);
  assert_load_fails(folder->path, HS_ERR_IO, folder->path);
  scratch_write_file(scratch_folder_path(folder, "empty", path), "", 0);
  assert_load_fails(path, HS_ERR_FORMAT, path);
  assert_load_fails(path, HS_ERR_FORMAT, "empty");
  scratch_write_file(scratch_folder_path(folder, "garbage.png", path), "no picture at all", 17);
  assert_load_fails(path, HS_ERR_FORMAT, path);
  assert_load_fails("/dev/null", HS_ERR_FORMAT, "empty");
  if (access("/dev/zero", R_OK) == 0)
    assert_load_fails("/dev/zero", HS_ERR_FORMAT, "/dev/zero"); /* the file is endless, so reading must stop early */
  if (geteuid() != 0) {
    assert_int_equal(chmod(path, 0), 0);
    assert_load_fails(path, HS_ERR_IO, path);
  }
}

TEST_IN_FOLDER(test_control_characters_stay_out_of_messages) {
  char path[SCRATCH_PATH_BYTES], message[1400];
  const hs_load_options options = {.struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
  hs_image image;
  scratch_folder_path(folder, "a\x1b[2Jb", path);
  assert_int_equal(hs_load_image(path, &options, &image), HS_ERR_IO);
  assert_null(strchr(message, '\x1b'));
  assert_non_null(strstr(message, "a?[2Jb"));
}

TEST(test_small_message_buffers) {
  char message[20];
  for (size_t bytes = 0; bytes <= 10; bytes++) {
    memset(message, '~', sizeof message);
    const hs_load_options options = {.struct_size = sizeof options, .message = message, .message_bytes = bytes};
    hs_image image;
    assert_int_equal(hs_load_image_memory("xx", 2, &options, &image), HS_ERR_FORMAT);
    assert_true(bytes == 0 || strlen(message) == bytes - 1);
    assert_int_equal(message[bytes], '~');
  }
}

/* Files are larger than the first read, with sizes around that of the buffer. */
TEST_IN_FOLDER(test_file_sizes) {
  char path[SCRATCH_PATH_BYTES];
  scratch_folder_path(folder, "picture", path);
  for (int32_t width = 4080; width <= 4100; width++) {
    SCOPED_MEMORY uint8_t *file = malloc(9000);
    assert_non_null(file);
    const int head = snprintf((char *)file, 9000, "P5 %d 2 255\n", (int)width);
    for (int32_t i = 0; i < 2 * width; i++) file[head + i] = (uint8_t)(i * 7);
    scratch_write_file(path, file, (size_t)(head + 2 * width));
    scoped_image image;
    assert_int_equal(hs_load_image(path, NULL, &image), HS_OK);
    assert_memory_equal(image.data, file + head, (size_t)(2 * width));
  }
}

TEST_IN_FOLDER(test_limits) {
  char path[SCRATCH_PATH_BYTES];
  scratch_write_file(scratch_folder_path(folder, "small", path), small_pgm, SMALL_BYTES);
  hs_load_options options = {.struct_size = sizeof options, .max_pixels = 6};
  hs_image image;
  assert_int_equal(hs_load_image(path, &options, &image), HS_OK);
  hs_image_free(&image);
  options.max_pixels = 5;
  assert_int_equal(hs_load_image(path, &options, &image), HS_ERR_LIMIT);
  options.max_pixels = 0;
  /* memory of the file, the picture and a row of the picture */
  options.max_memory_bytes = SMALL_BYTES + 6 + 3;
  assert_int_equal(hs_load_image(path, &options, &image), HS_OK);
  hs_image_free(&image);
  options.max_memory_bytes = SMALL_BYTES + 6 + 2;
  assert_int_equal(hs_load_image(path, &options, &image), HS_ERR_LIMIT);
  options.max_memory_bytes = 5;
  assert_int_equal(hs_load_image(path, &options, &image), HS_ERR_LIMIT);
}

TEST_IN_FOLDER(test_every_allocation_fails_once) {
  char path[SCRATCH_PATH_BYTES];
  uint8_t *file = malloc(20000);
  assert_non_null(file);
  memset(file, 50, 20000);
  memcpy(file, "P5 190 100 255\n", 15);
  scratch_write_file(scratch_folder_path(folder, "picture", path), file, 20000);
  free(file);
  counted_allocator counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  const hs_load_options options = {.struct_size = sizeof options, .allocator = &allocator};
  hs_status status = HS_ERR_MEMORY;
  size_t fail_at = 0;
  while (status != HS_OK) {
    scoped_image image;
    counter = (counted_allocator){.fail_at = ++fail_at};
    status = hs_load_image(path, &options, &image);
    assert_true(status == HS_OK || status == HS_ERR_MEMORY);
    assert_int_equal(counter.alive, status == HS_OK ? 1 : 0);
  }
  assert_int_equal(counter.alive, 0);
  assert_true(fail_at >= 5); /* allocations: the file twice, picture and row; after these, none fails */
}

TEST_IN_FOLDER(test_pipes) {
  char path[SCRATCH_PATH_BYTES];
  assert_int_equal(mkfifo(scratch_folder_path(folder, "pipe", path), 0600), 0);
  /* Reading does not wait for a writer. */
  assert_load_fails(path, HS_ERR_IO, "no program writes");
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(write(ends[1], small_pgm, SMALL_BYTES), SMALL_BYTES);
  close(ends[1]);
  snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
  if (access(path, R_OK) == 0) assert_loads_small(path); /* a name as from a shell's process substitution */
  close(ends[0]);
}

/* The test runs in a child process, because it redirects standard input. */
TEST_IN_FOLDER(test_standard_input) {
  char path[SCRATCH_PATH_BYTES];
  scratch_write_file(scratch_folder_path(folder, "small", path), small_pgm, SMALL_BYTES);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    hs_image image;
    char message[100];
    const hs_load_options options = {
        .struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
    if (!freopen(path, "rb", stdin)) _exit(1);
    const hs_status first = hs_load_image("-", NULL, &image);
    const int good = first == HS_OK && image.width == 3 && memcmp(image.data, "abcdef", 6) == 0;
    hs_image_free(&image);
    /* After the first read, standard input is at its end. */
    const hs_status second = hs_load_image("-", &options, &image);
    _exit(good && second == HS_ERR_FORMAT && strstr(message, "standard input") ? 0 : 2);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A buffer that grows exists twice while it is copied, and the limit counts both. */
TEST(test_endless_pipe) {
  enum { LIMIT = 100000 };
  int ends[2];
  char path[64], message[200] = "";
  scoped_counter counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  hs_load_options options = {.struct_size = sizeof options,
                             .max_memory_bytes = LIMIT,
                             .allocator = &allocator,
                             .message = message,
                             .message_bytes = sizeof message};
  hs_image image;
  assert_int_equal(pipe(ends), 0);
  snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
  if (access(path, R_OK) != 0) skip_because("no /dev/fd");
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    static const char zeros[4096];
    close(ends[0]);
    ssize_t written = write(ends[1], "II*", 4); /* begins as a TIFF, whose directory may be at any offset */
    while (written > 0) written = write(ends[1], zeros, sizeof zeros);
    _exit(0); /* not reached, because SIGPIPE ends the process */
  }
  close(ends[1]);
  assert_int_equal(hs_load_image(path, &options, &image), HS_ERR_LIMIT);
  close(ends[0]);
  assert_int_equal(waitpid(child, NULL, 0), child);
  assert_non_null(strstr(message, "the file alone needs"));
  assert_true(counter.most_bytes <= LIMIT && counter.most_bytes > LIMIT / 2);
}

/* With only_files, every name denotes a file. */
TEST_IN_FOLDER(test_only_files) {
  char before[SCRATCH_PATH_BYTES], path[SCRATCH_PATH_BYTES];
  hs_load_options options = {.struct_size = sizeof options, .only_files = 1};
  const hs_file_options only_files = {.struct_size = sizeof only_files, .format = HS_FORMAT_CSV, .only_files = 1};
  const hs_features none = {0};
  hs_image image;
  scoped_features features = {0};
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(((scratch_folder *)folder)->path), 0);
  assert_int_equal(hs_load_image("@scene", &options, &image), HS_ERR_IO);
  assert_int_equal(hs_load_image("-", &options, &image), HS_ERR_IO);
  scratch_write_file("@scene:5x5", small_pgm, SMALL_BYTES);
  scratch_write_file("-", small_pgm, SMALL_BYTES);
  assert_int_equal(hs_load_image("@scene:5x5", &options, &image), HS_OK);
  assert_int_equal(image.width, 3);
  hs_image_free(&image);
  assert_int_equal(hs_load_image("-", &options, &image), HS_OK);
  assert_int_equal(image.width, 3);
  hs_image_free(&image);
  assert_int_equal(hs_save_features("-", &none, &only_files), HS_OK);
  assert_int_equal(hs_load_features("-", &features, &only_files), HS_OK);
  assert_int_equal(chdir(before), 0);
  assert_int_equal(features.count, 0);
  assert_int_equal(access(scratch_folder_path(folder, "-", path), F_OK), 0);
}

TEST(test_scenes) {
  hs_image named, rendered;
  assert_int_equal(hs_load_image("@scene:64x48:7", NULL, &named), HS_OK);
  assert_int_equal(hs_render_scene(64, 48, 7, NULL, NULL, &rendered), HS_OK);
  assert_int_equal(named.width, 64);
  assert_int_equal(named.height, 48);
  assert_int_equal(named.type, HS_U8);
  assert_memory_equal(named.data, rendered.data, 64 * 48);
  hs_image_free(&named);
  hs_image_free(&rendered);
  assert_load_fails("@scene:64x", HS_ERR_ARGUMENT, "@scene:64x");
  assert_load_fails("@scenery", HS_ERR_IO, "@scenery");
  const hs_load_options pixels = {.struct_size = sizeof pixels, .max_pixels = 64 * 48 - 1};
  assert_int_equal(hs_load_image("@scene:64x48", &pixels, &named), HS_ERR_LIMIT);
  const hs_load_options bytes = {.struct_size = sizeof bytes, .max_memory_bytes = 64 * 48 - 1};
  assert_int_equal(hs_load_image("@scene:64x48", &bytes, &named), HS_ERR_LIMIT);
}

/* ---- saving */

/* Returns a view into a wider picture. The padding between its rows must not be written. */
static hs_image padded_view(uint8_t *bytes, hs_pixel_layout layout) {
  const size_t row = layout == HS_RGB ? 33 : 11;
  for (size_t y = 0; y < 7; y++)
    for (size_t i = 0; i < 40; i++) bytes[y * 40 + i] = (uint8_t)(i < row ? 30 + 5 * i + 3 * y : 0xEE);
  return (hs_image){.data = bytes, .width = 11, .height = 7, .stride_bytes = 40, .type = HS_U8, .layout = layout};
}

static void assert_saved(const char *path, const hs_image *view, hs_pixel_layout expected_layout, int tolerance) {
  const hs_load_options options = {.struct_size = sizeof options, .keep_colour = 1};
  const size_t channels = expected_layout == HS_RGB ? 3 : 1, stored = view->layout == HS_RGB ? 3 : 1;
  scoped_image image;
  assert_int_equal(hs_load_image(path, &options, &image), HS_OK);
  assert_int_equal(image.width, 11);
  assert_int_equal(image.height, 7);
  assert_int_equal(image.layout, expected_layout);
  for (size_t y = 0; y < 7; y++) {
    for (size_t i = 0; i < 11 * channels; i++) {
      const int wanted = ((const uint8_t *)view->data)[y * 40 + (stored == channels ? i : i / 3)];
      const int got = ((const uint8_t *)image.data)[y * image.stride_bytes + i];
      assert_true(abs(wanted - got) <= tolerance);
    }
  }
}

TEST_IN_FOLDER(test_saved_pictures_come_back) {
  static const struct {
    const char *name;
    hs_pixel_layout layout, read_as;
    int tolerance, available;
  } cases[] = {{"a.pgm", HS_GRAY, HS_GRAY, 0, 1},
               {"b.PPM", HS_GRAY, HS_RGB, 0, 1},
               {"c.ppm", HS_RGB, HS_RGB, 0, 1},
               {"d.pnm", HS_GRAY, HS_GRAY, 0, 1},
               {"e.pnm", HS_RGB, HS_RGB, 0, 1},
               {"f.png", HS_GRAY, HS_GRAY, 0, HARTSIFT_HAVE_PNG},
               {"g.Png", HS_RGB, HS_RGB, 0, HARTSIFT_HAVE_PNG},
               {"h.jpg", HS_GRAY, HS_GRAY, 6, HARTSIFT_HAVE_JPEG},
               {"i.jpeg", HS_RGB, HS_RGB, 25, HARTSIFT_HAVE_JPEG}};
  uint8_t bytes[7 * 40];
  size_t written = 0;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char path[SCRATCH_PATH_BYTES], message[1400];
    const hs_image view = padded_view(bytes, cases[i].layout);
    scratch_folder_path(folder, cases[i].name, path);
    const hs_status status = image_save(path, &view, message, sizeof message);
    if (cases[i].available) {
      assert_int_equal(status, HS_OK);
      assert_string_equal(message, "");
      assert_saved(path, &view, cases[i].read_as, cases[i].tolerance);
      written++;
    } else {
      assert_int_equal(status, HS_ERR_UNSUPPORTED);
      assert_non_null(strstr(message, "built without"));
    }
  }
  assert_int_equal(scratch_folder_count(folder), written);
}

TEST_IN_FOLDER(test_unusable_pictures_leave_nothing) {
  char path[SCRATCH_PATH_BYTES], message[1400];
  uint8_t bytes[7 * 40];
  const hs_image gray = padded_view(bytes, HS_GRAY), colour = padded_view(bytes, HS_RGB);
  hs_image odd = gray;
  scratch_folder_path(folder, "picture.pgm", path);
  assert_int_equal(image_save(path, &colour, message, sizeof message), HS_ERR_UNSUPPORTED);
  assert_int_equal(image_save(NULL, &gray, message, sizeof message), HS_ERR_ARGUMENT);
  assert_int_equal(image_save(path, NULL, NULL, 0), HS_ERR_ARGUMENT);
  odd.type = HS_U16;
  assert_int_equal(image_save(path, &odd, message, sizeof message), HS_ERR_IMAGE);
  odd = gray;
  odd.stride_bytes = 10;
  assert_int_equal(image_save(path, &odd, message, sizeof message), HS_ERR_IMAGE);
  odd = gray;
  odd.layout = HS_BGRA;
  assert_int_equal(image_save(path, &odd, message, sizeof message), HS_ERR_IMAGE);
  assert_int_equal(image_save(scratch_folder_path(folder, "picture", path), &gray, message, sizeof message),
                   HS_ERR_UNSUPPORTED);
  assert_non_null(strstr(message, path));
  assert_int_equal(image_save(scratch_folder_path(folder, "no/picture.pgm", path), &gray, message, sizeof message),
                   HS_ERR_IO);
  assert_non_null(strstr(message, path));
  assert_int_equal(scratch_folder_count(folder), 0);
}

/* JPEG allows 65500 pixels per side, so the encoder fails in the middle. */
TEST_IN_FOLDER(test_encoder_failure_keeps_the_old_file) {
  char path[SCRATCH_PATH_BYTES], message[1400];
  static uint8_t wide[70000];
  const hs_image image = {.data = wide, .width = 70000, .height = 1, .type = HS_U8, .layout = HS_GRAY};
  scratch_write_file(scratch_folder_path(folder, "old.jpg", path), small_pgm, SMALL_BYTES);
  assert_int_equal(image_save(path, &image, message, sizeof message), HS_ERR_UNSUPPORTED);
  assert_non_null(strstr(message, path));
  assert_loads_small(path);
  assert_int_equal(scratch_folder_count(folder), 1);
}

TEST_IN_FOLDER(test_full_disk) {
  if (access("/dev/full", W_OK) != 0) skip_because("no /dev/full");
  char path[SCRATCH_PATH_BYTES], message[1400];
  static uint8_t large[300 * 300];
  const hs_image image = {.data = large, .width = 300, .height = 300, .type = HS_U8, .layout = HS_GRAY};
  assert_int_equal(symlink("/dev/full", scratch_folder_path(folder, "full.pgm", path)), 0);
  assert_int_equal(image_save(path, &image, message, sizeof message), HS_ERR_IO);
  assert_non_null(strstr(message, "full"));
#if HARTSIFT_HAVE_PNG
  assert_int_equal(symlink("/dev/full", scratch_folder_path(folder, "full.png", path)), 0);
  assert_int_equal(image_save(path, &image, message, sizeof message), HS_ERR_IO);
#endif
#if HARTSIFT_HAVE_JPEG
  assert_int_equal(symlink("/dev/full", scratch_folder_path(folder, "full.jpg", path)), 0);
  assert_int_equal(image_save(path, &image, message, sizeof message), HS_ERR_IO);
#endif
}
