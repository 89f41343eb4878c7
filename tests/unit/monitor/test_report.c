/* Datagrams of jobs: what is one, and who has signed it. */
#include <errno.h>
#include <math.h>
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

/* ---- servers ---- */

#define HEAD "gogh1 7 0 " SECRET " 1200 "

static const struct {
    const char *name, *given;
    bool is_bad;
    int ready;
    double late, queued, batches, busy_s, bin_s;
} servers[] = {
    { "nothing of a server", HEAD "unfit=0", false, -1, NAN, NAN, NAN, NAN, 0 },
    { "it takes requests", HEAD "ready=1", false, 1, NAN, NAN, NAN, NAN, 0 },
    { "it does not any more", HEAD "ready=0", false, 0, NAN, NAN, NAN, NAN, 0 },
    { "all of it", HEAD "late=4 q=2 b=300 busy=17.5 arr=12.5:1,2", false, -1, 4, 2, 300, 17.5,
      0.0125 },
    { "neither ready nor not", HEAD "ready=2", true, 0, 0, 0, 0, 0, 0 },
    { "no word for ready", HEAD "ready=", true, 0, 0, 0, 0, 0, 0 },
    { "late is a count", HEAD "late=-1", true, 0, 0, 0, 0, 0, 0 },
    { "nothing is late", HEAD "late=", true, 0, 0, 0, 0, 0, 0 },
    { "nan are late", HEAD "late=nan", true, 0, 0, 0, 0, 0, 0 },
    { "a word waits", HEAD "q=many", true, 0, 0, 0, 0, 0, 0 },
    { "batches without end", HEAD "b=1e999", true, 0, 0, 0, 0, 0, 0 },
    { "busy with what", HEAD "busy=0x1", true, 0, 0, 0, 0, 0, 0 },
    { "bins of no width", HEAD "arr=0:1", true, 0, 0, 0, 0, 0, 0 },
    { "bins of two minutes", HEAD "arr=120000:1", true, 0, 0, 0, 0, 0, 0 },
    { "bins without a width", HEAD "arr=1,2", true, 0, 0, 0, 0, 0, 0 },
    { "bins without counts", HEAD "arr=25:", true, 0, 0, 0, 0, 0, 0 },
};

static void same_figure(double got, double want, const char *name)
{
    ck_assert_msg(isnan(want) ? isnan(got) : fabs(got - want) < 1e-12, "%s: %g, want %g", name, got,
                  want);
}

EACH(what_a_server_says, servers)
{
    struct job_report r;
    const int rc = job_report_parse(servers[_i].given, strlen(servers[_i].given), &r);

    ck_assert_msg(rc == (servers[_i].is_bad ? -EINVAL : 0), "%s", servers[_i].name);
    if (rc < 0)
        return;
    ck_assert_int_eq(r.ready, servers[_i].ready);
    same_figure(r.late, servers[_i].late, "late");
    same_figure(r.queued, servers[_i].queued, "q");
    same_figure(r.batches, servers[_i].batches, "b");
    same_figure(r.busy_s, servers[_i].busy_s, "busy");
    same_figure(r.bin_s, servers[_i].bin_s, "arr");
    ck_assert_int_eq(job_report_serves(&r), _i > 0);
}

static const struct {
    const char *name, *given;
    int want_n;
    unsigned want[6];
} bins[] = {
    { "one", "7", 1, { 7 } },
    { "some", "3,0,12", 3, { 3, 0, 12 } },
    { "a run of nothing", "1,z3,2", 5, { 1, 0, 0, 0, 2 } },
    { "nothing but a run", "z2", 2, { 0, 0 } },
    { "as many as one may hold", "1000000", 1, { 1000000 } },
    { "more than one may hold", "1000001", -EINVAL, { 0 } },
    { "more than any number", "99999999999999999999999", -EINVAL, { 0 } },
    { "a run of none", "1,z0", -EINVAL, { 0 } },
    { "a run that is too long", "z4097", -EINVAL, { 0 } },
    { "too many", "1,z4096", -EINVAL, { 0 } },
    { "a run without a length", "z,1", -EINVAL, { 0 } },
    { "a comma at the end", "1,", -EINVAL, { 0 } },
    { "a comma at the beginning", ",1", -EINVAL, { 0 } },
    { "two commas", "1,,2", -EINVAL, { 0 } },
    { "less than none", "1,-2", -EINVAL, { 0 } },
    { "half of one", "1.5", -EINVAL, { 0 } },
    { "a run of runs", "zz2", -EINVAL, { 0 } },
};

EACH(arrivals_by_bin, bins)
{
    static unsigned got[REPORT_BINS_MAX];
    struct job_report r;
    char given[200];
    const int len = snprintf(given, sizeof given, HEAD "arr=25:%s", bins[_i].given);

    ck_assert_int_eq(job_report_parse(given, (size_t)len, &r), 0);
    ck_assert_msg(job_report_bins(&r, got) == bins[_i].want_n, "%s", bins[_i].name);
    for (int i = 0; i < bins[_i].want_n; i++)
        ck_assert_uint_eq(got[i], bins[_i].want[i]);
}
