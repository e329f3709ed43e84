/*
 * What os_files.h promises of open folders on every system.
 */
#include <errno.h>

#include "tests/support/test.h"

#include "os/os_files.h"
#include "tests/support/scratch_folder.h"

static void make_file(const char *path) {
  const int descriptor = os_open(path, OS_NEW);
  assert_true(descriptor >= 0);
  os_close(descriptor);
}

/* Another program may rename the folder and put another one of its name there; Windows refuses to rename it. */
TEST_IN_FOLDER(test_open_folder_stays_the_same) {
  char path[SCRATCH_PATH_BYTES], other[SCRATCH_PATH_BYTES], file[SCRATCH_PATH_BYTES];
  os_info before, after;
  scratch_folder_path(folder, "folder", path);
  scratch_folder_path(folder, "other", other);
  scratch_folder_path(folder, "folder/file", file);
  assert_true(os_make_folder(path) && os_info_of(path, &before));
  os_folder *opened = os_folder_open(path, false);
  assert_non_null(opened);

  if (os_rename(path, other)) assert_true(os_make_folder(path));
  make_file(file);
  assert_true(os_folder_info(opened, &after) && os_is_same(&before, &after));
  const bool is_same_name = os_info_of(path, &after) && os_is_same(&before, &after);
  assert_int_equal(os_folder_remove(opened, "file"), is_same_name);
  assert_int_equal(os_exists(file), !is_same_name);
  os_folder_close(opened);
}

TEST_IN_FOLDER(test_file_is_no_folder) {
  char path[SCRATCH_PATH_BYTES];
  make_file(scratch_folder_path(folder, "file", path));
  assert_null(os_folder_open(path, false));
  assert_int_equal(errno, ENOTDIR);
  assert_null(os_folder_open(path, true));
  assert_int_equal(errno, ENOTDIR);
  assert_true(os_remove(path));
  assert_null(os_folder_open(path, false));
  assert_int_equal(errno, ENOENT);
}
