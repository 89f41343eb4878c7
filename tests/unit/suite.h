/* suite.h - what every unit test has: how much of it is run, and how it ends. */
#ifndef TESTS_UNIT_SUITE_H
#define TESTS_UNIT_SUITE_H

#include <check.h>
#include <stdlib.h>
#include <time.h>

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

/* Run the suite; the exit status is the verdict. */
static inline int suite_run(Suite *s)
{
    SRunner *r = srunner_create(s);

    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

#endif
