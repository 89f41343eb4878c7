/* The line to the driver: real processes that answer, die, babble or keep silent. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act/slurm/link.h"
#include "act/driver/wire.h"
#include "base/text/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "unit/suite.h"
#include "unit/support.h"

#define PATIENCE_S 300.0    // nothing here takes a second; a busy machine may

struct scene {
    struct loop *loop;
    struct link *link;
    char *dir;
    char driver[300];
    int n_up, n_to_ask;    // asked of each driver as it comes
    char heard[2000];
};

static void note(struct scene *s, const char *text)
{
    const size_t at = strlen(s->heard);

    snprintf(s->heard + at, sizeof s->heard - at, "%s;", text);
}

static void on_line(void *self, const struct wire_message *m)
{
    char text[100];

    snprintf(text, sizeof text, "%d %s", (int)m->seq, m->verb);
    note(self, text);
}

static void on_end(void *self, const struct link_end *how)
{
    static const char *const words[] = { "done", "failed", "unknown" };
    char text[100];

    snprintf(text, sizeof text, "%d %s%s%s", (int)how->seq, words[how->outcome],
             how->kind == LINK_DOWN ? " down " : "", how->outcome == LINK_FAILED ? how->text : "");
    note(self, text);
}

static void on_up(void *self)
{
    struct scene *s = self;

    s->n_up++;
    for (int i = 0; i < s->n_to_ask; i++) {
        wire_put(link_begin(s->link, "jobs"), "partition", "gogh");
        link_ask(s->link, on_line, on_end, s);
    }
}

/* A driver that is this shell script. */
static void open_scene(struct scene *s, const char *script, int n_to_ask, double silence_s)
{
    struct err e = { 0 };
    FILE *f;

    *s = (struct scene){ .n_to_ask = n_to_ask };
    log_set_level(LOG_ERROR);
    s->dir = scratch_make();
    snprintf(s->driver, sizeof s->driver, "%s/driver", s->dir);
    f = fopen(s->driver, "we");
    ck_assert(f);
    fprintf(f, "#!/bin/sh\n%s\n", script);
    fclose(f);
    ck_assert_int_eq(chmod(s->driver, 0755), 0);
    ck_assert_int_eq(loop_create(&s->loop, &e), 0);
    s->link = link_create(&(struct link_setup){ .loop = s->loop,
                                                .driver = s->driver,
                                                .conf = "/etc/x.conf",
                                                .rate = 3,
                                                .pause_s = 0.001,
                                                .silence_s = silence_s,
                                                .self = s,
                                                .on_up = on_up,
                                                .on_said = on_line });
}

static void close_scene(struct scene *s)
{
    struct err e = { 0 };

    link_destroy(s->link);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    ck_assert_int_eq(loop_turn(s->loop, 0, &e), 0);
    loop_destroy(s->loop);
    scratch_remove(s->dir);
}

static void until_heard(struct scene *s, const char *text)
{
    const double until_s = clock_stopwatch_s() + PATIENCE_S;
    struct err e = { 0 };

    while (!strstr(s->heard, text) && clock_stopwatch_s() < until_s)
        ck_assert_int_eq(loop_turn(s->loop, 0.05, &e), 0);
    ck_assert_msg(strstr(s->heard, text), "waited in vain for '%s'; heard '%s'", text, s->heard);
}

#define SERVE "while read -r seq verb; do "

static const struct {
    const char *name, *script, *want;
    int n_asked;
} drivers[] = {
    { "answers come in the order of the requests",
      SERVE "echo \"$seq job\"; echo \"$seq done\"; done", "1 job;1 done;2 job;2 done;", 2 },
    { "what answers nothing is heard, too", "echo '0 state'; " SERVE "echo \"$seq done\"; done",
      "0 state;1 done;", 1 },
    { "a line may come in pieces",
      SERVE "printf \"$seq \"; sleep 0.05; printf 'do'; sleep 0.05; echo ne; done", "1 done;", 1 },
    { "a failure has a kind and a text",
      SERVE "printf '%s failed\\tkind=down\\ttext=no route\\n' $seq; done",
      "1 failed down no route;", 1 },
    { "what the driver does not know is unknown", SERVE "echo \"$seq unknown\"; done", "1 unknown;",
      1 },
    { "one that dies is replaced, and what it owed in doubt", "read -r x; exit 3",
      "1 unknown;2 unknown;3 unknown;", 1 },
    { "so is one that never begins", "exit 0", "1 unknown;2 unknown;3 unknown;4 unknown;", 2 },
    { "so is one that says what it should not", SERVE "echo \"$seq \"; done",
      "1 unknown;2 unknown;", 1 },
    { "or answers what it was not asked", SERVE "echo '77 done'; done", "1 unknown;2 unknown;", 1 },
    { "or says nothing", SERVE ":; done", "1 unknown;2 unknown;", 1 },
    { "or does not even end when told to", "trap '' TERM HUP PIPE; while :; do sleep 1; done",
      "1 unknown;2 unknown;", 1 },
    { "it is told what it needs", "printf '0 said\\n0 a%s\\n' \"$(echo \"$*\" | tr -dc a-z)\"; cat",
      "0 said;0 aconfetcxconfrate;", 0 },
};

EACH(drivers_of_all_kinds, drivers)
{
    struct scene s;

    open_scene(&s, drivers[_i].script, drivers[_i].n_asked, 0.3);
    until_heard(&s, drivers[_i].want);
    ck_assert_msg(strncmp(s.heard, drivers[_i].want, strlen(drivers[_i].want)) == 0, "%s: %s",
                  drivers[_i].name, s.heard);
    ck_assert_int_eq((int)link_n_drivers(s.link), s.n_up);
    close_scene(&s);
}

TEST(requests_that_are_larger_than_a_socket)
{
    struct scene s;
    char *large = malloc(300001);
    struct err e = { 0 };

    memset(large, 'x', 300000);
    large[300000] = '\0';
    open_scene(&s, SERVE "echo \"$seq done\"; done", 0, PATIENCE_S);
    while (s.n_up == 0)
        ck_assert_int_eq(loop_turn(s.loop, 0.05, &e), 0);
    for (int i = 0; i < 3; i++) {
        wire_put(link_begin(s.link, "submit"), "script", large);
        link_ask(s.link, on_line, on_end, &s);
    }
    ck_assert_int_eq(link_n_pending(s.link), 3);
    until_heard(&s, "1 done;2 done;3 done;");
    ck_assert_int_eq((int)loop_stats(s.loop)->n_stalls, 0);
    free(large);
    close_scene(&s);
}

TEST(a_program_that_is_not_there_is_tried_again)
{
    struct scene s;
    struct err e = { 0 };
    char away[310];

    open_scene(&s, SERVE "echo \"$seq done\"; done", 1, PATIENCE_S);
    snprintf(away, sizeof away, "%s.away", s.driver);
    ck_assert_int_eq(rename(s.driver, away), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(loop_turn(s.loop, 0.01, &e), 0);
    ck_assert(!link_is_up(s.link));
    ck_assert_int_eq(rename(away, s.driver), 0);
    until_heard(&s, "1 done;");
    close_scene(&s);
}
