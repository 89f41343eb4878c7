/* suite.h - what every unit test has: its tests, how much of them is run, and how they end.
 *
 *     FIXTURE(set_up, tear_down)          around each test below it, in the test's process
 *     TEST(a_sentence)                    { ... }
 *     EACH(a_sentence_of_rows, rows)      { ... rows[_i] ... }    a process for each row
 *     TIMES(a_sentence_of_seeds, n)       { ... _i ... }          from 0; SPAN from another number
 *     ABORT(a_sentence)                   { ... }                 and an assertion stops it
 *
 * A test enters itself when the program is loaded, and main of suite.c runs all that did, in the
 * order of their lines.
 */
#ifndef TESTS_UNIT_SUITE_H
#define TESTS_UNIT_SUITE_H

#include <check.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* A test, or what goes around those below it; of a file of tests, which keeps it. */
struct suite_entry {
    TTest test;    // without a function: a fixture
    SFun set_up, tear_down;
    bool is_once;    // the fixture is set up in the parent, and its tests inherit it
    int signal;      // that must end the test; 0: none
    int first, end;
    struct suite_entry *next;
};

void suite_enter(struct suite_entry *e);

#define SUITE_TEST(sentence, its_signal, from, to)                                         \
    static void sentence(int _i);                                                          \
    __attribute__((constructor)) static void enter_##sentence(void)                        \
    {                                                                                      \
        static struct suite_entry entered = { { #sentence, sentence, __FILE__, __LINE__ }, \
                                              .signal = (its_signal) };                    \
        entered.first = (from);                                                            \
        entered.end = (int)(to);                                                           \
        suite_enter(&entered);                                                             \
    }                                                                                      \
    static void sentence(int _i CK_ATTRIBUTE_UNUSED)

#define SUITE_FIXTURE(before, after, once)                                        \
    __attribute__((constructor)) static void enter_##before(void)                 \
    {                                                                             \
        static struct suite_entry entered = { { NULL, NULL, __FILE__, __LINE__ }, \
                                              .set_up = (before),                 \
                                              .tear_down = (after),               \
                                              .is_once = (once) };                \
        suite_enter(&entered);                                                    \
    }

#define N_ROWS(table) (sizeof(table) / sizeof *(table))

#define TEST(sentence) SUITE_TEST(sentence, 0, 0, 1)
#define EACH(sentence, rows) SUITE_TEST(sentence, 0, 0, N_ROWS(rows))
#define TIMES(sentence, n) SUITE_TEST(sentence, 0, 0, n)
#define SPAN(sentence, first, end) SUITE_TEST(sentence, 0, first, end)
#define ABORT(sentence) SUITE_TEST(sentence, SIGABRT, 0, 1)
#define FIXTURE(set_up, tear_down) SUITE_FIXTURE(set_up, tear_down, false)
#define FIXTURE_ONCE(set_up, tear_down) SUITE_FIXTURE(set_up, tear_down, true)

/* How many of something: 'all' in make test-all, else 'usual'; in make memcheck a tenth of these.
 * The way through the code is the same.
 */
static inline int suite_size(int usual, int all)
{
    if (getenv("GOGH_TEST_ALL"))
        return all;
    return getenv("GOGH_TEST_FEW") ? (usual + 9) / 10 : usual;
}

/* CPU seconds of this process: a busy machine does not add to them. */
static inline double suite_cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
