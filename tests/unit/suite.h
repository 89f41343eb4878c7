/* suite.h - how every unit test ends: run the suite; the exit status is the verdict. */
#ifndef TESTS_UNIT_SUITE_H
#define TESTS_UNIT_SUITE_H

#include <check.h>

static inline int suite_run(Suite *s)
{
    SRunner *r = srunner_create(s);

    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

#endif
