/* gogh-pair - measure two programs on one GPU: each alone, then both together.
 *
 * Runs inside one job that has the whole GPU. One phase after the other: start its programs, wait
 * for their reports, warm up, measure (phase.h), end them (guard.h); then write the file
 * (result.h). One thread on one loop; what may hang, the driver and the programs, are processes.
 */
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <gogh.h>

#include "act/local/proc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/text/text.h"
#include "monitor/inbox.h"
#include "probe/pair/gauge.h"
#include "probe/pair/phase.h"
#include "probe/pair/program.h"
#include "probe/pair/result.h"

enum { EXIT_USAGE = 2 };

#define TICK_S 0.1

/* Beyond the grace: the guard takes ten seconds to see that something cannot be killed. */
#define STUCK_S 30.0

static const char usage[] =
    "usage: gogh-pair [OPTION...] --out FILE -- COMMAND... [--- COMMAND...]\n"
    "\n"
    "Measures the steps/s of one or two programs on the GPU of this job: the first alone, the second\n"
    "alone, both together. Programs report their steps as jobs of GOGH do, and run until they are\n"
    "ended by SIGTERM.\n"
    "\n"
    "  --out FILE     where the measurements go, as JSON\n"
    "  --seconds S    how long to measure in each phase (30)\n"
    "  --warmup S     how long to wait before, after the first reports (10)\n"
    "  --wait S       how long a program may say nothing (300)\n"
    "  --grace S      how long a program has to end after SIGTERM (10)\n";

struct pair {
    const char *out;
    double grace_s;
    struct phase_setup setup;
    int n_programs;
    struct pair_program programs[PHASE_PROGRAMS];

    struct loop *loop;
    struct loop_timer timer;
    struct arena arena;    // of a phase
    struct inbox *inboxes[PHASE_PROGRAMS];
    struct gogh gogh;    // the job around us

    int n_begun;    // phases: the first alone, the second alone, both
    struct pair_phase phase;
    bool is_ending;     // the phase's programs were asked to end
    double ending_s;    // since
    bool has_failed;
    char why[PROGRAM_WORDS_MAX + 512];

    pid_t gauge_pid;
    int gauge_fd;    // -1: nothing more will come
    struct pair_gauge gauge;
    struct pair_result result;
};

/* Where the sockets are: "" for nowhere. Guards remove it when gogh-pair was killed. */
static char scratch[96];
static const char *const sockets[PHASE_PROGRAMS] = { "first", "second" };

static void remove_scratch(void)
{
    char path[120];

    for (int i = 0; i < PHASE_PROGRAMS && *scratch; i++) {
        snprintf(path, sizeof path, "%s/%s", scratch, sockets[i]);
        (void)unlink(path);
    }
    if (*scratch)
        (void)rmdir(scratch);
}

/* The first failure is the one that is told. */
__attribute__((format(printf, 2, 3))) static void fail(struct pair *p, const char *format, ...)
{
    va_list args;

    if (p->has_failed)
        return;
    p->has_failed = true;
    va_start(args, format);
    vsnprintf(p->why, sizeof p->why, format, args);
    va_end(args);
    for (size_t n = strlen(p->why); n > 0 && p->why[n - 1] == '\n'; n--)
        p->why[n - 1] = '\0';
}

/* ---- phases ---- */

static unsigned who_in(const struct pair *p)
{
    return p->n_begun <= PHASE_PROGRAMS && p->n_begun <= p->n_programs ? 1U << (p->n_begun - 1)
                                                                       : 3U;
}

static bool is_anybody_there(const struct pair *p)
{
    for (int i = 0; i < p->n_programs; i++)
        if (p->programs[i].is_there)
            return true;
    return false;
}

static void end_phase(struct pair *p)
{
    if (p->is_ending)
        return;
    p->is_ending = true;
    p->ending_s = clock_stopwatch_s();
    for (int i = 0; i < p->n_programs; i++)
        if (p->programs[i].is_there)
            guard_end(&p->programs[i].guard);
}

static void record(struct pair *p)
{
    const unsigned who = who_in(p);

    for (int i = 0; i < p->n_programs; i++) {
        struct pair_alone *a = &p->result.alone[i];

        if (who == 3U)
            p->result.together.rates[i] = phase_rate(&p->phase, i);
        else if (who & 1U << i)
            *a = (struct pair_alone){ phase_rate(&p->phase, i), gauge_watts(&p->gauge),
                                      gauge_gpu(&p->gauge),     gauge_mem(&p->gauge),
                                      p->gauge.mem_bytes,       true };
    }
    if (who == 3U)
        p->result.together.watts = gauge_watts(&p->gauge);
}

/* Both have to fit alone, or they do not fit together. */
static void record_unfit(struct pair *p)
{
    const unsigned who = who_in(p);

    for (int i = 0; i < PHASE_PROGRAMS; i++)
        if (who == 1U << i)
            p->result.alone[i].fits = false;
    p->result.together.fits = false;
}

static void fail_silent(struct pair *p, int i)
{
    const struct pair_program *x = &p->programs[i];
    const char *what =
        p->phase.programs[i].has_reported ? "has done no step" : "has reported nothing";

    fail(p,
         "the %s program (%.60s) %s for %g s: let it report its steps (see 'Making a job report': "
         "gogh.track() in Python, gogh.h in C, gogh tick in a shell), or give it more time by "
         "--wait",
         sockets[i], x->argv[0], what, p->setup.patience_s);
}

static void look(struct pair *p)
{
    const double now_s = clock_stopwatch_s();
    int silent = 0;

    if (p->is_ending) {
        if (now_s - p->ending_s > p->grace_s + STUCK_S) {
            fail(p, "a program cannot be ended; does the GPU's driver hang?");
            loop_stop(p->loop);
        }
        return;
    }
    switch (phase_look(&p->phase, now_s, &silent)) {
    case PHASE_WAITING:
        break;
    case PHASE_MEASURING:
        if (isinf(p->gauge.from_s))
            gauge_begin(&p->gauge, p->phase.measured_s);
        break;
    case PHASE_DONE:
        record(p);
        end_phase(p);
        break;
    case PHASE_SILENT:
        fail_silent(p, silent);
        end_phase(p);
        break;
    }
}

static void on_tick(void *self)
{
    struct pair *p = self;

    look(p);
    loop_timer_set(&p->timer, TICK_S);
}

/* ---- a program has ended ---- */

static void begin_next(struct pair *p);

/* By itself, that is. */
static void judge(struct pair *p, int i, int code)
{
    const struct pair_program *x = &p->programs[i];
    char words[100];

    if (x->is_unfit || (code != 0 && phase_is_out_of_memory(x->words))) {
        record_unfit(p);
        end_phase(p);
        return;
    }
    program_end_words(code, words, sizeof words);
    if (code == 0)
        fail(
            p,
            "the %s program (%.60s) has ended before it was measured: let it run until it is asked "
            "to end, or for longer",
            sockets[i], x->argv[0]);
    else
        fail(p, "the %s program (%.60s) %s%s%s", sockets[i], x->argv[0], words,
             x->n_words > 0 ? "; its last words:\n" : " and said nothing",
             x->n_words > 0 ? program_last_lines(x) : "");
    end_phase(p);
}

/* Whose descriptor it is; -1: of none that is there. */
static int whose(const struct pair *p, int fd)
{
    for (int i = 0; i < PHASE_PROGRAMS; i++)
        if (p->programs[i].is_there &&
            (p->programs[i].guard.status == fd || p->programs[i].guard.errors == fd))
            return i;
    return -1;
}

static void on_status(void *self, int fd, unsigned ready)
{
    struct pair *p = self;
    const int i = whose(p, fd);
    struct pair_program *x;
    int code;

    (void)ready;
    assert(i >= 0);    // it is watched as long as the program is there
    x = &p->programs[i];
    inbox_look(p->inboxes[i]);    // its last words, before it is judged
    (void)program_read_words(x);
    loop_unwatch(p->loop, x->guard.status);
    loop_unwatch(p->loop, x->guard.errors);
    code = guard_close(&x->guard);
    x->is_there = false;
    if (!p->is_ending || code == GUARD_STUCK || code == GUARD_LOST)
        judge(p, i, code);
    if (!is_anybody_there(p))
        begin_next(p);
}

static void on_errors(void *self, int fd, unsigned ready)
{
    struct pair *p = self;
    const int i = whose(p, fd);

    (void)ready;
    if (i < 0 || !program_read_words(&p->programs[i]))
        loop_unwatch(p->loop, fd);
}

/* ---- a phase begins ---- */

static int start(struct pair *p, int i, struct err *e)
{
    struct pair_program *x = &p->programs[i];
    int rc = program_start(x, &p->arena, p->n_begun, p->grace_s, remove_scratch, e);

    if (rc == 0)
        rc = loop_watch(p->loop, x->guard.status, LOOP_READ, "a program's end", on_status, p, e);
    if (rc == 0)
        rc = loop_watch(p->loop, x->guard.errors, LOOP_READ, "a program's words", on_errors, p, e);
    return rc;
}

static bool is_over(const struct pair *p)
{
    if (p->has_failed || p->n_begun >= (p->n_programs > 1 ? 3 : 1))
        return true;
    return p->n_begun == 2 && !p->result.together.fits;    // one does not even fit alone
}

static void begin_next(struct pair *p)
{
    struct err e = { 0 };
    unsigned who;

    if (p->n_begun > 0 && !p->has_failed)
        gogh_steps(&p->gogh, p->n_begun);
    if (is_over(p)) {
        loop_stop(p->loop);
        return;
    }
    p->n_begun++;
    p->is_ending = false;
    arena_reset(&p->arena);
    gauge_begin(&p->gauge, (double)INFINITY);
    who = who_in(p);
    phase_begin(&p->phase, &p->setup, who, clock_stopwatch_s());
    for (int i = 0; i < p->n_programs && !p->has_failed; i++)
        if (who & 1U << i && start(p, i, &e) < 0)
            fail(p, "%s", e.text);
    if (!p->has_failed)
        return;
    end_phase(p);
    if (!is_anybody_there(p))
        loop_stop(p->loop);
}

/* ---- what comes in ---- */

static void hear(struct pair *p, int i, const char *bytes, size_t len, double arrived_s)
{
    struct job_report r;

    if (!program_hear(&p->programs[i], bytes, len, &r) || p->is_ending)
        return;
    if (!r.is_unfit) {
        phase_count(&p->phase, i, arrived_s, r.steps);
        return;
    }
    record_unfit(p);
    end_phase(p);
}

static void hear_first(void *self, const char *bytes, size_t len, double arrived_s)
{
    hear(self, 0, bytes, len, arrived_s);
}

static void hear_second(void *self, const char *bytes, size_t len, double arrived_s)
{
    hear(self, 1, bytes, len, arrived_s);
}

static void on_gauge(void *self, int fd, unsigned ready)
{
    struct pair *p = self;
    struct gauge_reading r;
    ssize_t n;

    (void)ready;
    while ((n = read(fd, &r, sizeof r)) == (ssize_t)sizeof r)
        if (!p->is_ending)
            gauge_add(&p->gauge, &r);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    loop_unwatch(p->loop, fd);
}

static void on_signal(void *self)
{
    struct pair *p = self;

    fail(p, "asked to end before all was measured");
    if (!is_anybody_there(p))
        loop_stop(p->loop);
    end_phase(p);
}

/* ---- beginning and end ---- */

static int open_inboxes(struct pair *p, struct err *e)
{
    inbox_f *const hears[PHASE_PROGRAMS] = { hear_first, hear_second };
    const char *tmp = getenv("TMPDIR");
    char path[120];
    int n = snprintf(scratch, sizeof scratch, "%s/gogh-pair.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    int rc = 0;

    if (n >= (int)sizeof scratch || !mkdtemp(scratch)) {
        const int error = n >= (int)sizeof scratch ? ENAMETOOLONG : errno;

        scratch[0] = '\0';
        return err_set(e, error, "no directory for sockets in TMPDIR (%.80s): %s; name another",
                       tmp && *tmp ? tmp : "/tmp", strerror(error));
    }
    for (int i = 0; rc == 0 && i < PHASE_PROGRAMS; i++) {
        snprintf(path, sizeof path, "%s/%s", scratch, sockets[i]);
        snprintf(p->programs[i].address, sizeof p->programs[i].address, "unix:%.108s", path);
        rc = inbox_open(p->loop, path, NULL, hears[i], p, &p->inboxes[i], e);
    }
    return rc;
}

static int open_all(struct pair *p, struct err *e)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
    int rc = loop_create(&p->loop, e);

    for (int i = 0; rc == 0 && i < 3; i++)
        rc = loop_signal(p->loop, signals[i], on_signal, p, e);
    if (rc == 0)
        rc = open_inboxes(p, e);
    if (rc < 0)
        return rc;
    p->gauge_fd = gauge_start(&p->gauge_pid);
    if (p->gauge_fd >= 0)
        rc = loop_watch(p->loop, p->gauge_fd, LOOP_READ, "the GPU's readings", on_gauge, p, e);
    loop_timer_init(&p->timer, p->loop, "the phase", on_tick, p);
    loop_timer_set(&p->timer, TICK_S);
    return rc;
}

static void close_all(struct pair *p)
{
    for (int i = 0; i < PHASE_PROGRAMS; i++)
        inbox_close(p->inboxes[i]);
    gauge_stop(p->gauge_pid, p->gauge_fd);
    loop_destroy(p->loop);
    arena_release(&p->arena);
    remove_scratch();
}

static int measure(struct pair *p)
{
    struct err e = { 0 };
    int rc = open_all(p, &e);

    if (rc == 0) {
        begin_next(p);
        rc = loop_run(p->loop, &e);
    }
    if (rc < 0)
        fail(p, "%s", e.text);
    if (!p->has_failed && result_write(&p->result, p->out, &e) < 0)
        fail(p, "%s", e.text);
    gogh_close(&p->gogh);
    close_all(p);
    if (p->has_failed)
        fprintf(stderr, "gogh-pair: %s\n", p->why);
    return p->has_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- options ---- */

static int read_number(const char *name, const char *text, double low, double high, double *out)
{
    if (text_to_double(slice_of(text), out) == 0 && *out >= low && *out <= high)
        return 0;
    fprintf(stderr, "gogh-pair: --%s %s: want seconds, from %g to %g\n", name, text, low, high);
    return -1;
}

/* What is behind the options: a command, and behind "---" perhaps another. */
static int read_commands(char **words, struct pair *p)
{
    for (p->n_programs = 0; p->n_programs < PHASE_PROGRAMS && *words; p->n_programs++) {
        p->programs[p->n_programs].argv = words;
        p->programs[p->n_programs].job = p->n_programs + 1;
        while (*words && strcmp(*words, "---") != 0)
            words++;
        if (words == p->programs[p->n_programs].argv || (*words && !words[1])) {
            fprintf(stderr, "gogh-pair: want a command on both sides of '---'\n");
            return -1;
        }
        if (*words)
            *words++ = NULL;
    }
    if (*words)
        fprintf(stderr, "gogh-pair: two commands at most: '%.60s' begins a third\n", *words);
    else if (p->n_programs == 0)
        fputs(usage, stderr);
    else if (!p->out)
        fputs("gogh-pair: --out is missing: say by --out FILE where the measurements go\n", stderr);
    else
        return 0;
    return -1;
}

static int read_options(int argc, char **argv, struct pair *p)
{
    static const struct option longs[] = {
        { "out", required_argument, NULL, 'o' },
        { "seconds", required_argument, NULL, 's' },
        { "warmup", required_argument, NULL, 'w' },
        { "wait", required_argument, NULL, 'p' },
        { "grace", required_argument, NULL, 'g' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    int option, rc = 0;

    while (rc == 0 && (option = getopt_long(argc, argv, "+h", longs, NULL)) != -1) {
        if (option == 'o')
            p->out = optarg;
        else if (option == 's')
            rc = read_number("seconds", optarg, 1, 1e6, &p->setup.seconds);
        else if (option == 'w')
            rc = read_number("warmup", optarg, 0, 1e6, &p->setup.warmup_s);
        else if (option == 'p')
            rc = read_number("wait", optarg, 1, 1e6, &p->setup.patience_s);
        else if (option == 'g')
            rc = read_number("grace", optarg, 0, 1e6, &p->grace_s);
        else if (option == 'h')
            exit(fputs(usage, stdout) < 0);
        else
            return -1;
    }
    return rc == 0 ? read_commands(argv + optind, p) : rc;
}

/* An end of the parent's is one of ours: who would read the file? */
static void follow_parent(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        (void)raise(SIGTERM);
}

int main(int argc, char **argv)
{
    static struct pair p = { .grace_s = 10, .setup = { 30, 10, 300 }, .gauge_fd = -1 };
    static char host[256];
    const char *type = getenv("GOGH_GPU_TYPE");
    const pid_t parent = getppid();

    proc_settle_fds();
    if (read_options(argc, argv, &p) < 0)
        return EXIT_USAGE;
    follow_parent(parent);
    (void)signal(SIGPIPE, SIG_IGN);
    arena_init(&p.arena);
    result_init(&p.result, p.n_programs);
    p.result.gpu_type = type && text_is_name(slice_of(type)) ? type : NULL;
    p.result.host = gethostname(host, sizeof host - 1) == 0 && *host ? host : NULL;
    p.result.seconds = p.setup.seconds;
    p.gogh = gogh_open();
    gogh_steps(&p.gogh, 0);    // measured anew from the beginning, whatever was done before
    return measure(&p);
}
