/* Datagrams of jobs: what is one, and who has signed it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/report.h"
#include "unit/suite.h"

#define SECRET "0123456789abcdef0123456789abcdef"

static const struct {
    const char *name, *given;
    int want_rc;
    struct job_report want;
} cases[] = {
    { "a count", "gogh1 7 0 " SECRET " 1200", 0, { .job = 7, .steps = 1200 } },
    { "a newline may end it", "gogh1 7 2 " SECRET " 5\n", 0, { .job = 7, .run = 2, .steps = 5 } },
    { "nothing done yet", "gogh1 0 0 " SECRET " 0", 0, { 0 } },
    { "parts of steps", "gogh1 1 1 " SECRET " 0.25", 0, { .job = 1, .run = 1, .steps = 0.25 } },
    { "many steps", "gogh1 1 1 " SECRET " 1e15", 0, { .job = 1, .run = 1, .steps = 1e15 } },
    { "sixteen digits", "gogh1 1 0 " SECRET " 1000000000000000", 0, { .job = 1, .steps = 1e15 } },
    { "out of memory",
      "gogh1 1 0 " SECRET " 3 unfit=1",
      0,
      { .job = 1, .steps = 3, .is_unfit = true } },
    { "not out of memory", "gogh1 1 0 " SECRET " 3 unfit=0", 0, { .job = 1, .steps = 3 } },
    { "unknown keys are ignored",
      "gogh1 1 0 " SECRET " 3 loss=0.3 unfit=1 x=",
      0,
      { .job = 1, .steps = 3, .is_unfit = true } },
    { "a job of Slurm's",
      "gogh1 s123 1 " SECRET " 9",
      0,
      { .job = -1, .slurm_id = 123, .run = 1, .steps = 9 } },
    { "Slurm has no job 0", "gogh1 s0 0 " SECRET " 9", -EINVAL, { 0 } },
    { "Slurm's numbers have digits", "gogh1 s 0 " SECRET " 9", -EINVAL, { 0 } },
    { "the largest job", "gogh1 2147483647 0 " SECRET " 1", 0, { .job = 2147483647, .steps = 1 } },
    { "a larger one", "gogh1 2147483648 0 " SECRET " 1", -EINVAL, { 0 } },
    { "nothing", "", -EINVAL, { 0 } },
    { "only a newline", "\n", -EINVAL, { 0 } },
    { "another form", "gogh2 7 0 " SECRET " 1200", -EINVAL, { 0 } },
    { "no count", "gogh1 7 0 " SECRET, -EINVAL, { 0 } },
    { "an empty count", "gogh1 7 0 " SECRET " ", -EINVAL, { 0 } },
    { "a count that is a word", "gogh1 7 0 " SECRET " many", -EINVAL, { 0 } },
    { "less than nothing", "gogh1 7 0 " SECRET " -1", -EINVAL, { 0 } },
    { "not a number", "gogh1 7 0 " SECRET " nan", -EINVAL, { 0 } },
    { "no number at all", "gogh1 7 0 " SECRET " 1e999", -EINVAL, { 0 } },
    { "a short secret", "gogh1 7 0 0123 1200", -EINVAL, { 0 } },
    { "a long secret", "gogh1 7 0 " SECRET "0 1200", -EINVAL, { 0 } },
    { "a secret in capitals", "gogh1 7 0 0123456789ABCDEF0123456789abcdef 1", -EINVAL, { 0 } },
    { "no run", "gogh1 7 " SECRET " 1200", -EINVAL, { 0 } },
    { "a negative job", "gogh1 -7 0 " SECRET " 1200", -EINVAL, { 0 } },
    { "two blanks", "gogh1  7 0 " SECRET " 1200", -EINVAL, { 0 } },
    { "a word that is no key", "gogh1 7 0 " SECRET " 1200 hello", -EINVAL, { 0 } },
    { "a key without a name", "gogh1 7 0 " SECRET " 1200 =1", -EINVAL, { 0 } },
    { "a blank at the end", "gogh1 7 0 " SECRET " 1200 ", 0, { .job = 7, .steps = 1200 } },
};

EACH(datagrams_are_taken_apart, cases)
{
    struct job_report r;
    const size_t len = strlen(cases[_i].given);
    char *exact = malloc(len ? len : 1);    // so that a look past its end is seen

    memcpy(exact, cases[_i].given, len);
    ck_assert_msg(job_report_parse(exact, len, &r) == cases[_i].want_rc, "%s", cases[_i].name);
    if (cases[_i].want_rc == 0) {
        const struct job_report *want = &cases[_i].want;
        ck_assert_int_eq(r.job, want->job);
        ck_assert_int_eq(r.slurm_id, want->slurm_id);
        ck_assert_int_eq(r.run, want->run);
        ck_assert_double_eq(r.steps, want->steps);
        ck_assert_int_eq(r.is_unfit, want->is_unfit);
        ck_assert(job_report_is_signed(&r, SECRET));
    }
    free(exact);
}

TEST(one_wrong_digit_is_a_wrong_secret)
{
    static const char given[] = "gogh1 7 0 " SECRET " 1200";
    struct job_report r;
    char other[] = SECRET;

    ck_assert_int_eq(job_report_parse(given, strlen(given), &r), 0);
    for (int i = 0; i < REPORT_SECRET_BYTES; i++) {
        other[i] ^= 1;
        ck_assert(!job_report_is_signed(&r, other));
        other[i] ^= 1;
    }
    ck_assert(job_report_is_signed(&r, other));
}

TEST(a_datagram_that_is_too_long_is_none)
{
    char given[REPORT_BYTES_MAX + 2];
    struct job_report r;
    int n = snprintf(given, sizeof given, "gogh1 7 0 %s 1200 x=", SECRET);

    memset(given + n, 'y', sizeof given - (size_t)n);
    ck_assert_int_eq(job_report_parse(given, REPORT_BYTES_MAX, &r), 0);
    ck_assert_int_eq(job_report_parse(given, REPORT_BYTES_MAX + 1, &r), -EINVAL);
}
