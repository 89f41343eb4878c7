/* Early stopping: the best stays, patience ends. */
#include <math.h>

#include "nn/stop.h"
#include "unit/suite.h"

static const struct {
    const char *name;
    int patience;
    double loss[8];
    int n;           // losses given
    int stops_at;    // which of them ends it; -1: none
    int best_at;     // whose weights are kept; -1: none
} cases[] = {
    { "falling losses never end it", 2, { 5, 4, 3, 2, 1, 0, -1, -2 }, 8, -1, 7 },
    { "two in a row without a better one end it", 2, { 3, 2, 4, 1, 2, 3 }, 6, 5, 3 },
    { "an equal loss is not better", 2, { 1, 1, 1 }, 3, 2, 0 },
    { "patience of one ends at the first that is worse", 1, { 1, 0, 2 }, 3, 2, 1 },
    { "what is not finite is never better", 3, { NAN, 2, -INFINITY, NAN, 3 }, 5, 4, 1 },
    { "nothing finite, nothing kept", 3, { NAN, INFINITY, NAN }, 3, 2, -1 },
};

START_TEST(a_case)
{
    struct stop s;
    float w[2], best[2] = { -1, -1 };

    stop_init(&s, 2, cases[_i].patience);
    for (int i = 0; i < cases[_i].n; i++) {
        w[0] = (float)i;
        w[1] = (float)-i;
        bool is_over = stop_take(&s, cases[_i].loss[i], w);
        ck_assert_msg(is_over == (i == cases[_i].stops_at), "%s: at loss %d", cases[_i].name, i);
    }
    ck_assert_msg(s.best_at == cases[_i].best_at, "%s: best is %d", cases[_i].name, s.best_at);
    ck_assert_msg(stop_best(&s, best) == (s.best_at >= 0), "%s", cases[_i].name);
    if (s.best_at >= 0)
        ck_assert(best[0] == (float)s.best_at && best[1] == (float)-s.best_at &&
                  s.best == cases[_i].loss[s.best_at]);
    else
        ck_assert(best[0] == -1 && best[1] == -1);
    stop_release(&s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("stop");
    TCase *t = tcase_create("stop");

    tcase_add_loop_test(t, a_case, 0, sizeof cases / sizeof *cases);
    suite_add_tcase(s, t);
    return suite_run(s);
}
