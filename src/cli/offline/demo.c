/* demo.c - `gogh demo`: the embedded cluster at high speed, beside what most sites do. */
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text/file.h"
#include "catalog/catalog.h"
#include "catalog/cluster/cluster.h"
#include "catalog/cluster/state.h"
#include "cli/cmd.h"
#include "cli/table.h"
#include "sim/ground.h"
#include "sim/sim.h"
#include "sim/world/world.h"
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

static struct {
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
    struct cluster cluster;
    struct ground ground;
    struct trace trace;
    struct sim *ours, *theirs;    // GOGH, and the policy it is compared with, on the same jobs
};

static volatile sig_atomic_t is_interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    is_interrupted = 1;
}

/* ---- setting up ---- */

static int make_trace(struct demo *d, struct arena *a, struct err *e)
{
    struct trace_draw draw;
    struct trace_generate how = { .n_jobs = (int)given.n_jobs,
                                  .load = given.load,
                                  .inference = 0.2,
                                  .seed = (uint64_t)given.seed };
    int rc = trace_draw_init(&draw, a, &d->ground.truth, &d->cluster, "p100", how.seed, e);

    if (rc == 0)
        rc = trace_generate(a, &how, &draw, &d->cluster, &d->trace, e);
    return rc;
}

static int make_sim(struct demo *d, const char *policy, struct sim **out, struct err *e)
{
    struct sim_options so = { .cluster = &d->cluster,
                              .trace = &d->trace,
                              .truth = &d->ground.truth,
                              .policy = policy,
                              .reference = "p100",
                              .seed = (uint64_t)given.seed };

    return sim_create(&so, out, e);
}

static int demo_open(struct demo *d, struct arena *a, struct err *e)
{
    int rc = cluster_parse(a, "embedded cluster", embedded_cluster, strlen(embedded_cluster),
                           &d->cluster, e);

    if (rc == 0)
        rc = ground_builtin(&d->ground, &d->cluster, NULL, "p100", (uint64_t)given.seed, e);
    if (rc == 0)
        rc = make_trace(d, a, e);
    if (rc == 0)
        rc = make_sim(d, "gogh", &d->ours, e);
    if (rc == 0)
        rc = make_sim(d, THEIR_POLICY, &d->theirs, e);
    return rc;
}

/* How both do. */
struct demo_figures {
    struct sim_result us, them;
    double saved;    // share of the energy per unit of work, 0..1; NaN before both did some
};

static struct demo_figures demo_result(const struct demo *d)
{
    struct demo_figures f = { .saved = NAN };

    sim_result(d->ours, &f.us);
    sim_result(d->theirs, &f.them);
    if (f.us.work_s > 0 && f.them.work_s > 0)
        f.saved = 1 - (f.us.energy_j / f.us.work_s) / (f.them.energy_j / f.them.work_s);
    return f;
}

/* ---- the page: nodes, GPUs and who shares them, watts, promises, what is saved ---- */

#define PAGE_COLUMNS 79
#define PAGE_ROWS 16    // with the seven nodes of the embedded cluster

/* "j000123" is "123": what fits into a cell. */
static const char *short_name(const char *name)
{
    const char *digits = name + strcspn(name, "123456789");

    return *digits ? digits : name;
}

static void draw_gpu(const struct sim *sim, int gpu, struct buf *out)
{
    const struct state *s = sim_state(sim);
    const struct gpu *g = &s->gpus[gpu];
    char cell[64] = "";
    size_t at = 0;

    for (int i = 0; i < g->n_jobs && at < sizeof cell; i++) {
        const char *name = short_name(s->jobs[g->jobs[i]]->spec.name);
        at += (size_t)snprintf(cell + at, sizeof cell - at, "%s%s", i ? "+" : "", name);
    }
    if (g->n_jobs == 0)
        snprintf(cell, sizeof cell, "%s",
                 world_gpu_now(sim_world(sim), gpu).is_asleep ? "zzz" : "idle");
    buf_printf(out, " |%8.8s %4.0f", cell, world_gpu_now(sim_world(sim), gpu).watts);
}

static void draw_node(const struct sim *sim, int node, struct buf *out)
{
    const struct state *s = sim_state(sim);
    const struct node *n = &s->nodes[node];
    const char *type = sim_catalog(sim)->types[s->gpus[n->first_gpu].type].name;

    buf_printf(out, "%-8.8s %-8.8s", n->name, type);
    for (int g = n->first_gpu; g < n->first_gpu + n->n_gpus; g++)
        draw_gpu(sim, g, out);
    buf_puts(out, " |\n");
}

static void draw_figures(const char *name, const struct sim *sim, const struct sim_result *r,
                         struct buf *out)
{
    const struct state *s = sim_state(sim);
    double per_work = r->work_s > 0 ? r->energy_j / r->work_s : 0;

    buf_printf(out, "%-13.13s %6.0f %7.1f %8.1f %7.0f %% %7d %7d %6d %6ld\n", name,
               world_watts(sim_world(sim)), r->energy_j / 3.6e6, per_work,
               isnan(r->promise_attainment) ? 100 : 100 * r->promise_attainment, s->n_running,
               s->n_waiting, r->n_finished, r->n_moves);
}

static void draw_clock(double t_s, struct buf *out)
{
    long minutes = (long)(t_s / 60);

    buf_printf(out, "day %ld %02ld:%02ld", minutes / 1440, minutes / 60 % 24, minutes % 60);
}

static void draw_page(const struct demo *d, struct buf *out)
{
    const struct state *state = sim_state(d->ours);
    const struct demo_figures f = demo_result(d);

    buf_printf(out, "GOGH, embedded cluster of %d GPUs, ", state->n_gpus);
    draw_clock(sim_now_s(d->ours), out);
    buf_puts(out, "; a cell: who runs there, watts\n\n");
    for (int n = 0; n < state->n_nodes; n++)
        draw_node(d->ours, n, out);
    buf_printf(out, "\n%-13s %6s %7s %8s %9s %7s %7s %6s %6s\n", "", "W now", "kWh", "J/work",
               "promises", "running", "waiting", "done", "moves");
    draw_figures("gogh", d->ours, &f.us, out);
    draw_figures(THEIR_POLICY, d->theirs, &f.them, out);
    buf_printf(out, "\n%ld measurements learned from. ", f.us.n_measurements);
    if (isnan(f.saved))
        buf_puts(out, "No work done yet.\n");
    else
        buf_printf(out, "Energy saved per unit of work: %.0f %%\n", 100 * f.saved);
}

/* For logs and pipes. */
static void draw_line(const struct demo *d, struct buf *out)
{
    const struct demo_figures f = demo_result(d);

    draw_clock(sim_now_s(d->ours), out);
    buf_printf(out, "  %5d jobs done  %6.1f kWh  promises %3.0f %%  saved %3.0f %%\n",
               f.us.n_finished, f.us.energy_j / 3.6e6, 100 * f.us.promise_attainment,
               isnan(f.saved) ? 0 : 100 * f.saved);
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
    return size.ws_col >= PAGE_COLUMNS && size.ws_row >= PAGE_ROWS;
}

static void show(const struct demo *d, bool is_live)
{
    struct buf page;

    buf_init(&page, 1 << 20);
    if (is_live) {
        buf_puts(&page, CURSOR_HOME ERASE_BELOW);
        draw_page(d, &page);
    } else {
        draw_line(d, &page);
    }
    table_show(&page);
    fflush(stdout);
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
static int demo_play(struct demo *d, bool is_live, struct err *e)
{
    double last_s = d->trace.jobs[d->trace.n_jobs - 1].at_s;
    double step_s = is_live ? 1.1 * last_s / (10 * given.seconds) : 43200;
    double began_s = clock_stopwatch_s();
    int ours = 1, theirs = 1;

    for (long frame = 1; (ours > 0 || theirs > 0) && !is_interrupted; frame++) {
        double t_s = step_s * (double)frame;
        ours = sim_advance(d->ours, t_s, e);
        theirs = ours < 0 ? ours : sim_advance(d->theirs, t_s, e);
        if (ours < 0 || theirs < 0)
            return -e->code;
        if (is_live || ours > 0)
            show(d, is_live);
        if (is_live)
            pace(began_s + 0.1 * (double)frame);
    }
    return 0;
}

/* ---- summing up ---- */

static json_t *result_json(const struct sim_result *r, const char *policy)
{
    return json_pack("{s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:I}", "policy", policy, "jobs",
                     r->n_jobs, "finished", r->n_finished, "energy_kwh", r->energy_j / 3.6e6,
                     "energy_j_per_work", r->work_s > 0 ? r->energy_j / r->work_s : 0.0,
                     "promise_attainment", isnan(r->promise_attainment) ? 0 : r->promise_attainment,
                     "mean_jct_s", r->n_finished ? r->mean_jct_s : 0.0, "allocation_efficiency",
                     r->gpu_s > 0 ? r->allocation_efficiency : 0.0, "moves",
                     (json_int_t)r->n_moves);
}

static int write_summary(const struct demo_figures *f, const char *path, struct err *e)
{
    json_t *o =
        json_pack("{s:f, s:o, s:o}", "energy_saved", isnan(f->saved) ? 0 : f->saved, "gogh",
                  result_json(&f->us, "gogh"), "baseline", result_json(&f->them, THEIR_POLICY));
    char *text = json_dumps(o, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
    int rc = file_write(path, text, strlen(text), e);

    free(text);
    json_decref(o);
    return rc;
}

static void print_summary(const struct demo_figures *f)
{
    const struct sim_result *us = &f->us, *them = &f->them;

    if (us->n_finished == 0 || them->n_finished == 0) {
        printf("\nEnded before a job was done; nothing to compare.\n");
        return;
    }
    printf("\n%-28s %12s %14s\n", "", "gogh", THEIR_POLICY);
    printf("%-28s %12d %14d\n", "jobs finished", us->n_finished, them->n_finished);
    printf("%-28s %12.1f %14.1f\n", "energy, kWh", us->energy_j / 3.6e6, them->energy_j / 3.6e6);
    printf("%-28s %12.1f %14.1f\n", "joules per unit of work", us->energy_j / us->work_s,
           them->energy_j / them->work_s);
    printf("%-28s %10.1f %% %12.1f %%\n", "promises kept", 100 * us->promise_attainment,
           100 * them->promise_attainment);
    printf("%-28s %12.0f %14.0f\n", "mean completion time, s", us->mean_jct_s, them->mean_jct_s);
    printf("%-28s %12ld %14ld\n", "moves", us->n_moves, them->n_moves);
    printf("\nEnergy saved per unit of work against first come, first served: %.1f %%\n",
           isnan(f->saved) ? 0 : 100 * f->saved);
    printf("(One unit of work is a second of a job alone on a p100. Modelled speeds and\n"
           "watts; see docs/experiments.md.)\n");
    if (given.out)
        printf("Summary written to %s\n", given.out);
}

/* ---- the command ---- */

static int run(const struct cmd_call *call, struct err *e)
{
    const bool is_live = !given.is_plain && can_draw();
    struct sigaction interrupt = { .sa_handler = on_interrupt };
    struct demo d = { 0 };

    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGTERM, &interrupt, NULL);
    if (given.out && file_write(given.out, "", 0, e) < 0)    // better to hear of it now
        return -e->code;
    int rc = demo_open(&d, call->arena, e);
    if (is_live)
        fputs(OTHER_SCREEN, stdout);
    if (rc == 0)
        rc = demo_play(&d, is_live, e);
    if (is_live)
        fputs(FIRST_SCREEN, stdout);
    if (rc == 0) {
        const struct demo_figures f = demo_result(&d);

        rc = given.out ? write_summary(&f, given.out, e) : 0;
        if (rc == 0)
            print_summary(&f);
    }
    sim_destroy(d.ours);
    sim_destroy(d.theirs);
    ground_close(&d.ground);
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
