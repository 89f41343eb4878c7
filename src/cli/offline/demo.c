/* demo.c - `gogh demo`: the embedded cluster at high speed, beside what most sites do. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text/file.h"
#include "catalog/cluster/cluster.h"
#include "cli/cmd.h"
#include "cli/offline/screen.h"
#include "sim/ground.h"
#include "sim/sim.h"
#include "sim/trace/generate.h"

static const char help[] =
    "Run a made-up stream of jobs on an embedded cluster of four GPU generations, twice at the\n"
    "same time: once placed by GOGH, once first come, first served on the fastest free GPU.\n"
    "Needs no data: true speeds come from the built-in tables and an analytic model with\n"
    "hidden factors that GOGH has to learn. On a terminal the screen is live; Ctrl-C ends it\n"
    "early. A summary is printed at the end.\n"
    "\n"
    "  --jobs N      how many jobs (600)\n"
    "  --load L      offered work over the cluster's capacity (0.6)\n"
    "  --seconds S   how long the live screen should last, about (30)\n"
    "  --seed N      another world (1)\n"
    "  --out FILE    write the summary there too, as JSON\n"
    "  --plain       lines instead of a live screen\n"
    "\n"
    "Examples:\n"
    "  gogh demo\n"
    "  gogh demo --load 0.9 --seed 7 --out summary.json\n";

static const char embedded_cluster[] = "node kepler-[1-2]  k80:4\n"
                                       "node pascal-[1-2]  p100:4\n"
                                       "node volta-[1-2]   v100-16:4\n"
                                       "node ampere-1      a100-40:4\n";

#define THEIR_POLICY "fifo-fastest"

static struct options {
    long n_jobs, seed;
    double load, seconds;
    const char *out;
    bool is_plain;
} given = { .n_jobs = 600, .seed = 1, .load = 0.6, .seconds = 30 };

static const struct cmd_option options[] = {
    CMD_WHOLE("jobs", given.n_jobs, 1, 1e6),
    CMD_NUMBER("load", given.load, 0.01, 10),
    CMD_NUMBER("seconds", given.seconds, 1, 86400),
    CMD_WHOLE("seed", given.seed, 0, CMD_SEED_MAX),
    CMD_TEXT("out", given.out),
    CMD_FLAG("plain", given.is_plain),
};

struct demo {
    struct arena arena;
    struct cluster cluster;
    struct ground ground;
    struct trace trace;
    struct screen screen;
    bool has_ground;
};

static volatile sig_atomic_t is_interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    is_interrupted = 1;
}

/* ---- setting up ---- */

static int make_trace(struct demo *d, const struct options *o, struct err *e)
{
    struct trace_draw draw;
    struct trace_generate how = {
        .n_jobs = (int)o->n_jobs, .load = o->load, .inference = 0.2, .seed = (uint64_t)o->seed
    };
    int rc = trace_draw_init(&draw, &d->arena, &d->ground.truth, &d->cluster, "p100",
                             (uint64_t)o->seed, e);

    if (rc == 0)
        rc = trace_generate(&d->arena, &how, &draw, &d->cluster, &d->trace, e);
    return rc;
}

static int make_sim(struct demo *d, const struct options *o, const char *policy, struct sim **out,
                    struct err *e)
{
    struct sim_options so = { .cluster = &d->cluster,
                              .trace = &d->trace,
                              .truth = &d->ground.truth,
                              .policy = policy,
                              .reference = "p100",
                              .seed = (uint64_t)o->seed };

    return sim_create(&so, out, e);
}

static int demo_open(struct demo *d, const struct options *o, struct err *e)
{
    *d = (struct demo){ .screen.their_name = THEIR_POLICY };
    arena_init(&d->arena);
    int rc = cluster_parse(&d->arena, "embedded cluster", embedded_cluster,
                           strlen(embedded_cluster), &d->cluster, e);
    if (rc == 0)
        rc = ground_builtin(&d->ground, &d->cluster, NULL, "p100", (uint64_t)o->seed, e);
    d->has_ground = rc == 0;
    if (rc == 0)
        rc = make_trace(d, o, e);
    if (rc == 0)
        rc = make_sim(d, o, "gogh", &d->screen.ours, e);
    if (rc == 0)
        rc = make_sim(d, o, THEIR_POLICY, &d->screen.theirs, e);
    return rc;
}

static void demo_close(struct demo *d)
{
    sim_destroy(d->screen.ours);
    sim_destroy(d->screen.theirs);
    if (d->has_ground)
        ground_close(&d->ground);
    arena_release(&d->arena);
}

/* ---- running ---- */

/* ECMA-48 and xterm: what every terminal of the last thirty years understands. */
#define CURSOR_HOME "\033[H"
#define ERASE_BELOW "\033[J"
#define OTHER_SCREEN "\033[?1049h"
#define FIRST_SCREEN "\033[?1049l"

/* A terminal that can be drawn on and is large enough for the page. */
static bool can_draw(void)
{
    const char *term = getenv("TERM");
    struct winsize size;

    if (!isatty(STDOUT_FILENO) || !term || strcmp(term, "dumb") == 0)
        return false;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0)
        return true;    // it does not say
    return size.ws_col >= SCREEN_COLUMNS && size.ws_row >= SCREEN_ROWS;
}

static void show(const struct screen *s, bool is_live)
{
    struct buf page;

    buf_init(&page, 1 << 20);
    if (is_live) {
        buf_puts(&page, CURSOR_HOME ERASE_BELOW);
        screen_draw(s, &page);
    } else {
        screen_line(s, &page);
    }
    fwrite(buf_text(&page), 1, page.len, stdout);
    fflush(stdout);
    buf_release(&page);
}

/* Wait until 'due_s' on the stopwatch, so that a person can follow. */
static void pace(double due_s)
{
    double left_s = due_s - clock_stopwatch_s();
    struct timespec t = { .tv_sec = (time_t)left_s,
                          .tv_nsec = (long)((left_s - floor(left_s)) * 1e9) };

    if (left_s > 0)
        nanosleep(&t, NULL);
}

/* Both worlds advance in step; ten frames a second on a terminal, a line for each
 * simulated half day elsewhere.
 */
static int demo_play(struct demo *d, const struct options *o, bool is_live, struct err *e)
{
    double last_s = d->trace.jobs[d->trace.n_jobs - 1].at_s;
    double step_s = is_live ? 1.1 * last_s / (10 * o->seconds) : 43200;
    double began_s = clock_stopwatch_s();
    int ours = 1, theirs = 1;

    for (long frame = 1; (ours > 0 || theirs > 0) && !is_interrupted; frame++) {
        double t_s = step_s * (double)frame;
        ours = sim_advance(d->screen.ours, t_s, e);
        theirs = ours < 0 ? ours : sim_advance(d->screen.theirs, t_s, e);
        if (ours < 0 || theirs < 0)
            return -e->code;
        if (is_live || ours > 0)
            show(&d->screen, is_live);
        if (is_live)
            pace(began_s + 0.1 * (double)frame);
    }
    return 0;
}

/* ---- summing up ---- */

static json_t *result_json(struct sim *s, const char *policy)
{
    struct sim_result r;

    sim_result(s, &r);
    return json_pack("{s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:I}", "policy", policy, "jobs",
                     r.n_jobs, "finished", r.n_finished, "energy_kwh", r.energy_j / 3.6e6,
                     "energy_j_per_work", r.work_s > 0 ? r.energy_j / r.work_s : 0.0,
                     "promise_attainment", isnan(r.promise_attainment) ? 0 : r.promise_attainment,
                     "mean_jct_s", r.n_finished ? r.mean_jct_s : 0.0, "allocation_efficiency",
                     r.gpu_s > 0 ? r.allocation_efficiency : 0.0, "moves", (json_int_t)r.n_moves);
}

static int write_summary(const struct demo *d, const char *path, struct err *e)
{
    double saved = screen_saved(&d->screen);
    json_t *o = json_pack("{s:f, s:o, s:o}", "energy_saved", isnan(saved) ? 0 : saved, "gogh",
                          result_json(d->screen.ours, "gogh"), "baseline",
                          result_json(d->screen.theirs, THEIR_POLICY));
    char *text = json_dumps(o, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
    int rc = file_write(path, text, strlen(text), e);

    free(text);
    json_decref(o);
    return rc;
}

static void print_summary(const struct demo *d, const char *out)
{
    struct sim_result us, them;
    double saved = screen_saved(&d->screen);

    sim_result(d->screen.ours, &us);
    sim_result(d->screen.theirs, &them);
    if (us.n_finished == 0 || them.n_finished == 0) {
        printf("\nEnded before a job was done; nothing to compare.\n");
        return;
    }
    printf("\n%-28s %12s %14s\n", "", "gogh", THEIR_POLICY);
    printf("%-28s %12d %14d\n", "jobs finished", us.n_finished, them.n_finished);
    printf("%-28s %12.1f %14.1f\n", "energy, kWh", us.energy_j / 3.6e6, them.energy_j / 3.6e6);
    printf("%-28s %12.1f %14.1f\n", "joules per unit of work", us.energy_j / us.work_s,
           them.energy_j / them.work_s);
    printf("%-28s %10.1f %% %12.1f %%\n", "promises kept", 100 * us.promise_attainment,
           100 * them.promise_attainment);
    printf("%-28s %12.0f %14.0f\n", "mean completion time, s", us.mean_jct_s, them.mean_jct_s);
    printf("%-28s %12ld %14ld\n", "moves", us.n_moves, them.n_moves);
    printf("\nEnergy saved per unit of work against first come, first served: %.1f %%\n",
           isnan(saved) ? 0 : 100 * saved);
    printf("(One unit of work is a second of a job alone on a p100. Modelled speeds and\n"
           "watts; see docs/experiments.md.)\n");
    if (out)
        printf("Summary written to %s\n", out);
}

/* ---- the command ---- */

static int run(const struct cmd_call *call, struct err *e)
{
    const struct options *o = &given;
    const bool is_live = !o->is_plain && can_draw();
    struct sigaction interrupt = { .sa_handler = on_interrupt };
    struct demo d;

    (void)call;
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGTERM, &interrupt, NULL);
    if (o->out && file_write(o->out, "", 0, e) < 0)    // better to hear of it now
        return -e->code;
    int rc = demo_open(&d, o, e);
    if (is_live)
        fputs(OTHER_SCREEN, stdout);
    if (rc == 0)
        rc = demo_play(&d, o, is_live, e);
    if (is_live)
        fputs(FIRST_SCREEN, stdout);
    if (rc == 0 && o->out)
        rc = write_summary(&d, o->out, e);
    if (rc == 0)
        print_summary(&d, o->out);
    demo_close(&d);
    return rc;
}

const struct cmd cmd_demo = {
    .name = "demo",
    .synopsis = "demo [--jobs N] [--load L] [--seconds S] [--seed N] [--out FILE] [--plain]",
    .summary = "the embedded cluster, running beside what most sites do",
    .help = help,
    CMD_OPTIONS(options),
    .run = run,
};
