/*
 * The list of a program's tests, and its main. See test.h.
 */
#include "tests/support/test.h"

enum { TESTS_MAX = 64 };

static test_entry *first;
static CMFixtureFunction set_up_all, tear_down_all;

/* Compilers may order constructors freely: sorts by line. */
void test_add(test_entry *entry) {
  test_entry **link = &first;
  while (*link && (*link)->line < entry->line) link = &(*link)->next;
  entry->next = *link;
  *link = entry;
}

void test_set_up_by(CMFixtureFunction set_up) { set_up_all = set_up; }
void test_tear_down_by(CMFixtureFunction tear_down) { tear_down_all = tear_down; }

static bool is_wanted(const test_entry *e, int engines) { return engines ? e->engines & engines : !e->engines; }

bool test_any(int engines) {
  const test_entry *e = first;
  while (e && !is_wanted(e, engines)) e = e->next;
  return e != NULL;
}

int test_run(const char *group, int engines) {
  static struct CMUnitTest tests[TESTS_MAX];
  size_t count = 0;
  for (const test_entry *e = first; e; e = e->next) {
    if (!is_wanted(e, engines)) continue;
    if (count == TESTS_MAX) abort();
    tests[count++] = (struct CMUnitTest){e->name, e->function, e->set_up, e->tear_down, NULL};
  }
  return _cmocka_run_group_tests(group, tests, count, set_up_all, tear_down_all);
}

static int run_once(const char *program) { return test_run(program, 0); }

int (*test_main)(const char *program) = run_once;

#ifndef _WIN32 /* where a weak main is not taken from a library */
__attribute__((weak))
#endif
int main(int argc, char **argv) {
  const char *slash = strrchr(argv[0], '/');
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return test_main(slash ? slash + 1 : argv[0]);
}
