/* What a program says: its reports, and its last words. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probe/pair/program.h"
#include "unit/suite.h"

#define SECRET "0123456789abcdef0123456789abcdef"

static const struct {
    const char *name, *datagram;
    bool is_gone;
    bool want, want_unfit;
} datagrams[] = {
    { "its own", "gogh1 2 3 " SECRET " 12", false, true, false },
    { "it does not fit", "gogh1 2 3 " SECRET " 12 unfit=1", false, true, true },
    { "another program's", "gogh1 1 3 " SECRET " 12", false, false, false },
    { "of a phase before", "gogh1 2 2 " SECRET " 12", false, false, false },
    { "another secret", "gogh1 2 3 ffffffffffffffffffffffffffffffff 12", false, false, false },
    { "one that says so with another secret",
      "gogh1 2 3 ffffffffffffffffffffffffffffffff 12 unfit=1", false, false, false },
    { "a Slurm job's", "gogh1 s2 3 " SECRET " 12", false, false, false },
    { "after its end", "gogh1 2 3 " SECRET " 12", true, false, false },
    { "no report", "hello", false, false, false },
    { "nothing", "", false, false, false },
};

EACH(only_its_own_reports_are_heard, datagrams)
{
    struct pair_program p = { .job = 2, .run = 3, .is_there = !datagrams[_i].is_gone };
    struct job_report r;

    memcpy(p.secret, SECRET, sizeof p.secret);
    ck_assert_msg(program_hear(&p, datagrams[_i].datagram, strlen(datagrams[_i].datagram), &r) ==
                      datagrams[_i].want,
                  "%s", datagrams[_i].name);
    ck_assert_int_eq(p.is_unfit, datagrams[_i].want_unfit);
}

/* Written to a pipe in pieces of 'piece' bytes; the last lines that are kept. */
static void say(struct pair_program *p, const char *text, size_t len, size_t piece)
{
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    p->guard.errors = ends[0];
    for (size_t at = 0; at < len; at += piece) {
        const size_t n = len - at < piece ? len - at : piece;

        ck_assert_int_eq(write(ends[1], text + at, n), (ssize_t)n);
        ck_assert(program_read_words(p));
    }
    close(ends[1]);
    ck_assert(!program_read_words(p));
    close(ends[0]);
}

TEST(of_many_words_the_last_are_kept)
{
    static const size_t pieces[] = { 1, 7, 4096, 30000 };
    static char text[60000];
    size_t len = 0;

    for (int i = 0; i < 4000; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "line %d\n", i);
    for (size_t i = 0; i < N_ROWS(pieces); i++) {
        static struct pair_program p;

        p = (struct pair_program){ .job = 1 };
        say(&p, text, len, pieces[i]);
        ck_assert_uint_eq(p.n_words, PROGRAM_WORDS_MAX);
        ck_assert_str_eq(p.words, text + len - PROGRAM_WORDS_MAX);
        ck_assert_str_eq(program_last_lines(&p), strstr(text, "line 3990\n"));
    }
}

static const struct {
    const char *said, *want;
} lasts[] = {
    { "", "" },
    { "one", "one" },
    { "one\n", "one\n" },
    { "one\ntwo\n\n", "one\ntwo\n\n" },
    { "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n", "2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n" },
};

EACH(few_words_are_all_told, lasts)
{
    static struct pair_program p;

    p = (struct pair_program){ .job = 1 };
    say(&p, lasts[_i].said, strlen(lasts[_i].said), 4096);
    ck_assert_str_eq(program_last_lines(&p), lasts[_i].want);
}

TEST(words_without_their_zeros)
{
    static struct pair_program p;

    p = (struct pair_program){ .job = 1 };
    say(&p, "a\0b", 3, 3);
    ck_assert_str_eq(p.words, "a b");
}

TEST(ends_in_words)
{
    static const struct {
        int code;
        const char *want;
    } rows[] = {
        { 3 << 8, "ended with exit status 3" },
        { SIGKILL, "ended by signal 9" },
        { GUARD_STUCK, "cannot be killed" },
        { GUARD_LOST, "its guard was killed" },
    };

    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char text[100];

        program_end_words(rows[i].code, text, sizeof text);
        ck_assert_msg(strstr(text, rows[i].want), "'%s'", text);
    }
}
