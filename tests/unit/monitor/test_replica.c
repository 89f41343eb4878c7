/* What a server says of itself, joined and doubted. */
#include <math.h>
#include <string.h>

#include "monitor/replica.h"
#include "monitor/sensor.h"
#include "unit/suite.h"

static struct replica r;

/* A report of something that came at a moment: -1 in 'late', 'queued': not said. */
static void say(double at_s, double steps, double late, double queued, int n_bins, unsigned each)
{
    static unsigned bins[REPORT_BINS_MAX];
    const struct job_report said = { .ready = -1,
                                     .steps = steps,
                                     .late = late < 0 ? (double)NAN : late,
                                     .queued = queued < 0 ? (double)NAN : queued,
                                     .batches = NAN,
                                     .busy_s = NAN,
                                     .bin_s = n_bins ? 0.025 : 0 };

    for (int i = 0; i < n_bins; i++)
        bins[i] = each;
    replica_hear(&r, &said, bins, n_bins, at_s);
}

static struct served tell(void)
{
    struct served s;

    ck_assert(replica_tell(&r, &s));
    return s;
}

static void begin(void)
{
    replica_begin(&r);
}

static void nothing(void)
{
}

FIXTURE(begin, nothing)

TEST(nothing_new_is_not_told)
{
    struct served s;

    ck_assert(!replica_tell(&r, &s));
    say(10, 0, 0, 0, 0, 0);
    (void)tell();
    ck_assert(!replica_tell(&r, &s));
}

TEST(counting_begins_with_the_first_report)
{
    say(10, 1000, 7, 3, 40, 1);
    const struct served first = tell();
    ck_assert(first.n_requests == 0 && first.n_late == 0 && first.n_queued == 3);
    ck_assert(first.n_bins == 40 && fabs(first.from_s - 9) < 1e-9 && fabs(first.to_s - 10) < 1e-9);
    say(11, 1040, 8, 3, 40, 1);
    const struct served second = tell();
    ck_assert(second.n_requests == 40 && second.n_late == 1 && !second.is_false);
    ck_assert(second.from_s == first.to_s && second.counts[39] == 1);
}

TEST(what_is_not_said_is_not_known)
{
    say(10, 0, -1, -1, 0, 0);
    say(11, 5, -1, -1, 0, 0);
    const struct served s = tell();
    ck_assert(s.n_requests == 5 && isnan(s.n_late) && isnan(s.n_queued) && isnan(s.busy_s));
    ck_assert(s.n_bins == 0 && s.bin_s == 0 && s.from_s == 10 && s.to_s == 11);
}

/* Chunks come a bit early or late; where one was lost, bins begin anew. */
static const struct {
    const char *name;
    double at_s;    // of a chunk of one second; the last one ended at 10
    bool joins, is_false;
    double from_s;
} chunks[] = {
    { "on time", 11, true, false, 10 },           { "a bit late", 11.4, true, false, 10 },
    { "a bit early", 10.6, true, false, 10 },     { "one was lost", 12, false, false, 11 },
    { "many were lost", 300, false, false, 299 }, { "more than went by", 9.9, false, true, NAN },
};

EACH(chunks_join, chunks)
{
    say(10, 0, 0, 0, 40, 0);
    (void)tell();
    ck_assert_msg(replica_joins(&r, 0.025, 40, chunks[_i].at_s) == chunks[_i].joins, "%s",
                  chunks[_i].name);
    say(chunks[_i].at_s, 0, 0, 0, 40, 0);
    const struct served s = tell();
    ck_assert_msg(s.is_false == chunks[_i].is_false, "%s", chunks[_i].name);
    if (!s.is_false)
        ck_assert_msg(fabs(s.from_s - chunks[_i].from_s) < 1e-9, "%s: %g", chunks[_i].name,
                      s.from_s);
}

TEST(what_is_never_told_takes_no_more_room)
{
    for (int i = 1; i <= 1000; i++)
        say(i, i * 40, 0, 0, 40, 1);
    const struct served s = tell();
    ck_assert(s.n_bins <= REPORT_BINS_MAX && s.n_bins >= 40 && fabs(s.to_s - 1000) < 1e-6);
    ck_assert(s.n_requests == 999 * 40 && !s.is_false);
}

/* Ten seconds, of each: answered, late and waiting in all, and arrivals by bin of 25 ms. */
static const struct {
    const char *name;
    double steps, late, queued;
    unsigned each;
    bool is_false;
} claims[] = {
    { "a server that keeps up", 40, 0, 0, 1, false },
    { "all are late", 40, 40, 0, 1, false },
    { "more are late than were answered", 40, 41, 0, 1, true },
    { "a server that falls behind, and says so", 40, 40, 3600, 10, false },
    { "a server that falls behind, and says it does not", 40, 0, 0, 10, true },
    { "answers to what never came", 400, 0, 0, 0, true },
    { "a fast server", 400000, 0, 0, 10000, false },
    { "faster than any socket", 4e6, 0, 0, 100000, true },
};

EACH(claims_are_doubted, claims)
{
    bool is_false = false;

    say(0, 0, 0, 0, 40, 0);
    for (int i = 1; i <= 10; i++) {
        say(i, i * claims[_i].steps, i * claims[_i].late, i * claims[_i].queued / 10, 40,
            claims[_i].each);
        const struct served s = tell();
        is_false |= s.is_false;
        ck_assert(!s.is_false || (s.n_bins == 0 && isnan(s.n_requests) && isnan(s.n_late)));
    }
    ck_assert_msg(is_false == claims[_i].is_false, "%s", claims[_i].name);
}

TEST(counts_that_fall_are_false_but_not_those_overtaken)
{
    say(10, 100, 50, 0, 0, 0);
    say(11, 90, 40, 0, 0, 0);    // overtaken on its way
    say(11, 120, 55, 0, 0, 0);
    const struct served s = tell();
    ck_assert(!s.is_false && s.n_requests == 20 && s.n_late == 5);
    for (int i = 0; i < 3; i++)
        say(12 + i, 10, 0, 0, 0, 0);
    ck_assert(tell().is_false);
    say(16, 130, 54, 0, 0, 0);    // of those answered, fewer were late than before
    ck_assert(tell().is_false);
    say(17, 140, 56, 0, 0, 0);    // what is true from here on counts
    const struct served last = tell();
    ck_assert(!last.is_false && last.n_requests == 10 && last.n_late == 2);
}

TEST(a_lost_report_is_no_lie)
{
    say(0, 0, 0, 0, 40, 0);
    (void)tell();
    for (int i = 1; i <= 50; i++) {
        if (i % 3 == 0)    // a thousand each second, a third of which is never heard of
            continue;
        say(i, i * 1000, 0, 0, 40, 25);
        const struct served s = tell();
        ck_assert(!s.is_false && s.n_bins == 40);
    }
}

TEST(one_that_counts_requests_does_so_after_a_flood_too)
{
    say(10, 0, 0, 0, 0, 0);
    ck_assert(!replica_counts(&r));    // it only is there
    say(11, 5, 0, 0, 0, 0);
    ck_assert(replica_counts(&r));
    replica_forget(&r);
    ck_assert(replica_counts(&r));
    say(30, 1000, 0, 0, 0, 0);
    ck_assert_double_eq(tell().n_requests, 0);
}
