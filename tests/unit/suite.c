#include "unit/suite.h"

#include <assert.h>
#include <errno.h>

static struct suite_entry *entries;    // by line

/* The compiler decides in which order tests enter. */
void suite_enter(struct suite_entry *e)
{
    struct suite_entry **at = &entries;

    while (*at && (*at)->test.line < e->test.line)
        at = &(*at)->next;
    e->next = *at;
    *at = e;
}

static void add(Suite *s, TCase **t, const struct suite_entry *e)
{
    if (!*t || !e->test.fn) {
        *t = tcase_create(program_invocation_short_name);
        suite_add_tcase(s, *t);
    }
    if (e->test.fn)
        tcase_add_loop_test_raise_signal(*t, &e->test, e->signal, e->first, e->end);
    else if (e->is_once)
        tcase_add_unchecked_fixture(*t, e->set_up, e->tear_down);
    else
        tcase_add_checked_fixture(*t, e->set_up, e->tear_down);
}

/* The exit status is the verdict. */
int main(void)
{
    Suite *s = suite_create(program_invocation_short_name);
    TCase *t = NULL;

    assert(entries);
    for (const struct suite_entry *e = entries; e; e = e->next)
        add(s, &t, e);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
