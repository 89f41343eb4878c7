/* advise_page.c - what came of `gogh advise`, as JSON and for people. */
#include "cli/study/advise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "cli/table.h"
#include "cli/when.h"
#include "sim/ground.h"

static const struct {
    const char *key, *title;
} rows[ROWS] = {
    [WAS] = { "was", "as it was" },
    [WAS_ASLEEP] = { "was-asleep", "as it was, idle asleep" },
    [GOGH] = { "gogh", "GOGH" },
    [NO_SHARING] = { "gogh-no-sharing", "GOGH without sharing" },
    [NO_SLEEP] = { "gogh-no-sleep", "GOGH without sleep" },
};

bool advise_has(const struct advise_options *o, enum advise_row r)
{
    if (r == WAS)
        return !o->site_sleeps;
    return r <= GOGH || !o->has_no_levers;
}

/* What savings are counted from. */
static enum advise_row base_row(const struct advise_options *o)
{
    return o->site_sleeps ? WAS_ASLEEP : WAS;
}

/* ---- what came out ---- */

struct range {
    double mean, low, high;
};

static void range_add(struct range *s, double v, int n)
{
    s->low = n == 0 ? v : fmin(s->low, v);
    s->high = n == 0 ? v : fmax(s->high, v);
    s->mean += (v - s->mean) / (n + 1);
}

enum { IDLE_KWH, MEAN_WAIT_S, P95_WAIT_S, MEAN_JCT_S, PROMISE, FINISHED, LATER, MOVES, N_MEANS };
static const char *const mean_keys[N_MEANS] = {
    "idle_kwh",           "mean_wait_s", "p95_wait_s", "mean_jct_s",
    "promise_attainment", "finished",    "later",      "moves"
};

/* Of a row, over the worlds. */
struct row_figures {
    struct range energy_kwh, saved_kwh, saved;    // the last as a part of the base
    double mean[N_MEANS];
};

static struct row_figures figures_of(const struct advice *v, enum advise_row r)
{
    struct row_figures o = { 0 };

    for (int i = 0; i < v->options->n_seeds; i++) {
        const struct history_figures *f = &v->figures[i][r];
        const double base_j = v->figures[i][base_row(v->options)].energy_j;
        const double is[N_MEANS] = { f->idle_j / KWH_J, f->mean_wait_s,        f->p95_wait_s,
                                     f->mean_jct_s,     f->promise_attainment, f->n_finished,
                                     f->n_later,        (double)f->n_moves };

        range_add(&o.energy_kwh, f->energy_j / KWH_J, i);
        range_add(&o.saved_kwh, (base_j - f->energy_j) / KWH_J, i);
        range_add(&o.saved, 1 - f->energy_j / base_j, i);
        for (int k = 0; k < N_MEANS; k++)
            o.mean[k] += (is[k] - o.mean[k]) / (i + 1);
    }
    return o;
}

/* The site's clock: "2026-03-01T12:00:00". */
static const char *clock_text(struct arena *a, double at_s)
{
    time_t t = (time_t)at_s;
    char text[32];
    struct tm tm;

    gmtime_r(&t, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    return arena_strdup(a, text);
}

static double held_part(const struct history *h)
{
    return h->gpu_s / (h->end_s * h->cluster->n_gpus);
}

/* ---- as JSON ---- */

static json_t *json_lines(const struct sacct *s)
{
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:o}", "all", s->n_lines,
                     "runs", s->n_jobs, "steps", s->n_steps, "other_partitions", s->n_elsewhere,
                     "never_ran", s->n_unstarted, "no_gpu", s->n_cpu, "repeated", s->n_repeated,
                     "refused", s->n_refused, "refused_line",
                     s->n_refused > 0 ? json_integer(s->refused_line) : json_null(), "refused_why",
                     json_text_or_null(s->refused_why));
}

static json_t *json_left_out(const struct history *h)
{
    return json_pack("{s:i, s:i, s:o, s:i, s:o, s:i, s:i}", "outside", h->n_outside,
                     "unknown_nodes", h->n_unknown_node, "unknown_node",
                     json_text_or_null(h->unknown_node), "no_room", h->n_no_room, "no_room_job",
                     json_text_or_null(h->no_room), "unfit", h->n_unfit, "mixed", h->n_mixed);
}

static json_t *json_workloads(const struct advice *v)
{
    const struct history *h = &v->history;

    return json_pack("{s:i, s:i, s:i, s:s, s:i, s:i, s:i}", "by_comment", h->n_from[FROM_COMMENT],
                     "by_name", h->n_from[FROM_NAME], "by_default", h->n_from[FROM_DEFAULT],
                     "default", h->options.workload, "not_fitting", h->n_taken_for_default,
                     "unknown", h->n_unknown_workload, "unclear_comments", v->sacct.n_unclear);
}

static void put(json_t *j, const char *key, double v)
{
    json_object_set_new(j, key, json_number_or_null(v));
}

static void put_range(json_t *j, struct arena *a, const char *key, const struct range *r)
{
    put(j, key, r->mean);
    put(j, arena_printf(a, "%s_low", key), r->low);
    put(j, arena_printf(a, "%s_high", key), r->high);
}

static json_t *json_run(const struct advice *v, enum advise_row r)
{
    const struct row_figures o = figures_of(v, r);
    json_t *j = json_pack("{s:s}", "name", rows[r].key);

    put_range(j, v->arena, "energy_kwh", &o.energy_kwh);
    put_range(j, v->arena, "saved", &o.saved);
    for (int k = 0; k < N_MEANS; k++)
        put(j, mean_keys[k], o.mean[k]);
    return j;
}

static json_t *json_saved(const struct advice *v)
{
    const struct row_figures o = figures_of(v, GOGH);
    json_t *j = json_object();

    put_range(j, v->arena, "kwh", &o.saved_kwh);
    put(j, "cost", o.saved_kwh.mean * v->options->price);
    put(j, "co2_kg", o.saved_kwh.mean * v->options->co2_g / 1000);
    return j;
}

void advise_print_json(const struct advice *v)
{
    const struct advise_options *o = v->options;
    const struct history *h = &v->history;
    json_t *runs = json_array(), *states = json_object(), *j;

    for (int r = 0; r < ROWS; r++)
        if (advise_has(o, (enum advise_row)r))
            json_array_append_new(runs, json_run(v, (enum advise_row)r));
    for (int i = 0; i < SACCT_STATES; i++)
        json_object_set_new(states, sacct_state_name((enum sacct_state)i),
                            json_integer(v->sacct.n_states[i]));
    j = json_pack("{s:s, s:s, s:o, s:s, s:s, s:s, s:s, s:f, s:i, s:f, s:i, s:i, s:i}", "sacct",
                  o->sacct, "cluster", o->cluster, "partition", json_text_or_null(o->partition),
                  "from", clock_text(v->arena, h->begin_s), "to",
                  clock_text(v->arena, h->begin_s + h->end_s), "first_end",
                  clock_text(v->arena, h->begin_s + h->first_end_s), "last_start",
                  clock_text(v->arena, h->begin_s + h->last_start_s), "span_s", h->end_s, "gpus",
                  h->cluster->n_gpus, "held", held_part(h), "jobs", h->n_jobs, "requeued",
                  v->sacct.n_requeued, "shared", h->n_shared);
    json_object_update_new(
        j, json_pack("{s:o, s:o, s:o, s:o, s:{s:i, s:f}, s:o, s:I, s:I, s:s, s:o, s:o}", "lines",
                     json_lines(&v->sacct), "states", states, "left_out", json_left_out(h),
                     "workloads", json_workloads(v), "promises", "asked", h->n_asked, "tolerance",
                     o->tolerance, "truth", json_text_or_null(o->truth), "seed",
                     (json_int_t)o->seed, "seeds", (json_int_t)o->n_seeds, "base",
                     rows[base_row(o)].key, "runs", runs, "saved", json_saved(v)));
    json_print(j, JSON_REAL_PRECISION(12));
}

/* ---- for people ---- */

#define WIDTH 96     // of the page
#define MARGIN 11    // where its texts begin

/* ", 12 steps": nothing of none; on a new line where the old one is full. */
static void put_count(struct buf *b, int n, const char *what)
{
    const char *line = b->len > 0 ? strrchr(buf_text(b), '\n') : NULL;
    size_t used = line != NULL ? strlen(line + 1) : b->len + MARGIN;

    if (n <= 0)
        return;
    if (b->len > 0)
        buf_puts(b, used + strlen(what) + 10 > WIDTH ? ",\n           " : ", ");
    buf_printf(b, "%d %s", n, what);
}

static void print_left_out(const struct advice *v)
{
    const struct sacct *s = &v->sacct;
    const struct history *h = &v->history;
    struct arena *a = v->arena;
    struct buf b;

    buf_init(&b, 4096);
    put_count(&b, s->n_steps, "steps");
    put_count(&b, s->n_elsewhere, "of other partitions");
    put_count(&b, s->n_unstarted, "that never ran");
    put_count(&b, s->n_cpu, "without a GPU");
    put_count(&b, s->n_repeated, "told twice");
    put_count(&b, h->n_outside, "outside the window");
    if (s->n_refused > 0)
        put_count(&b, s->n_refused,
                  arena_printf(a, "not understood (line %d: %s)", s->refused_line, s->refused_why));
    if (h->n_unknown_node > 0)
        put_count(&b, h->n_unknown_node,
                  arena_printf(a, "on nodes that the cluster file has not (%s)", h->unknown_node));
    if (h->n_no_room > 0)
        put_count(&b, h->n_no_room,
                  arena_printf(a, "on more GPUs than their nodes had free (job %s)", h->no_room));
    put_count(&b, h->n_unfit, "that could not have fitted where they ran");
    put_count(&b, h->n_mixed, "gangs of several types of GPU, too large for any one");
    if (b.len > 0)
        printf("left out   %s\n", buf_text(&b));
    buf_release(&b);
}

static void print_head(const struct advice *v)
{
    const struct advise_options *o = v->options;
    const struct history *h = &v->history;

    printf("history    %s to %s (%s), %d GPUs, held %.0f %% of the time\n",
           clock_text(v->arena, h->begin_s), clock_text(v->arena, h->begin_s + h->end_s),
           when_text(v->arena, h->end_s), h->cluster->n_gpus, 100 * held_part(h));
    printf("jobs       %d run%s on GPUs, of %d lines of %s\n", h->n_jobs, h->n_jobs == 1 ? "" : "s",
           v->sacct.n_lines, cell_clean(v->arena, o->sacct));
    print_left_out(v);
    printf("workloads  %d told by comments, %d by names, %d taken for %s\n",
           h->n_from[FROM_COMMENT], h->n_from[FROM_NAME], h->n_from[FROM_DEFAULT],
           h->options.workload);
    if (h->n_taken_for_default > 0)
        printf(
            "           and %d that were told, since as told they would not fit where they ran\n",
            h->n_taken_for_default);
    if (h->n_unknown_workload + v->sacct.n_unclear > 0)
        printf("           %d comments name a workload nobody knows, %d make no sense\n",
               h->n_unknown_workload, v->sacct.n_unclear);
    printf("promises   %d of comments; to the others the speed they had, divided by %g\n\n",
           h->n_asked, o->tolerance);
}

static const char *percent(struct arena *a, double part)
{
    if (!isfinite(part))
        return "-";
    return arena_printf(a, "%.1f", fabs(part) < 0.0005 ? 0 : 100 * part);    // no "-0.0"
}

static void put_row(const struct advice *v, enum advise_row r, struct table *t)
{
    struct arena *a = v->arena;
    struct row_figures o = figures_of(v, r);
    const bool is_base = r == base_row(v->options), is_history = r <= WAS_ASLEEP;

    table_put(t, rows[r].title);
    table_put(t, arena_printf(a, "%.3f", o.energy_kwh.mean));
    table_put(t, is_base ? "-" : percent(a, o.saved.mean));
    table_put(t, is_base ? "-"
                         : arena_printf(a, "%s to %s", percent(a, o.saved.low),
                                        percent(a, o.saved.high)));
    table_put(t, when_text(a, o.mean[MEAN_WAIT_S]));
    table_put(t, when_text(a, o.mean[MEAN_JCT_S]));
    table_put(t, percent(a, o.mean[PROMISE]));
    table_put(t, is_history ? "-" : percent(a, o.mean[LATER] / v->history.n_jobs));
}

static void print_table(const struct advice *v)
{
    struct table t;

    table_init(&t, v->arena, "|>kWh|>saved %|>in these worlds|>wait|>to the end|>kept %|>later %");
    for (int r = 0; r < ROWS; r++)
        if (advise_has(v->options, (enum advise_row)r))
            put_row(v, (enum advise_row)r, &t);
    table_print(&t, stdout);
    printf("(wait, to the end: means, from when a job was ready; kept: part of that time in which "
           "it had its\n promise; later: jobs that took over %g times as long as they did)\n",
           v->options->tolerance);
}

static void print_saved(const struct advice *v)
{
    const struct advise_options *o = v->options;
    struct row_figures was = figures_of(v, base_row(o)), is = figures_of(v, GOGH);

    printf("\nsaved      %.3f kWh (%.3f to %.3f)", is.saved_kwh.mean, is.saved_kwh.low,
           is.saved_kwh.high);
    if (!isnan(o->price))
        printf(", %.2f at %g a kWh", is.saved_kwh.mean * o->price, o->price);
    if (!isnan(o->co2_g))
        printf(", %.3f kg of CO2 at %g g/kWh", is.saved_kwh.mean * o->co2_g / 1000, o->co2_g);
    printf("\n");
    if (!isnan(was.mean[IDLE_KWH]))
        printf("idle       %.3f kWh of what was used went to GPUs that nobody held\n",
               was.mean[IDLE_KWH]);
    if (is.mean[FINISHED] < v->history.n_jobs)
        printf("unfinished %.1f of %d jobs under GOGH: their work is missing in what it used\n",
               v->history.n_jobs - is.mean[FINISHED], v->history.n_jobs);
}

/* Part of the history at its edges from which on they are worth a word. */
#define EDGES 0.1

/* Accounting that was asked for from a day on has of the time before only who ran still, and so
 * at its end: GPUs would seem idle that were not.
 */
static void print_edges(const struct advice *v)
{
    const struct history *h = &v->history;

    if (h->first_end_s + (h->end_s - h->last_start_s) <= EDGES * h->end_s)
        return;
    printf("edges      Nobody ended before %s, and nobody began after %s.\n"
           "           Where that is because sacct was asked for that time only, say --from and "
           "--to.\n",
           clock_text(v->arena, h->begin_s + h->first_end_s),
           clock_text(v->arena, h->begin_s + h->last_start_s));
}

/* What the figures rest on. */
static void print_caveats(const struct advice *v)
{
    const struct advise_options *o = v->options;

    if (o->truth == NULL)
        printf("beware     Speeds, watts and slowdowns are estimates, of built-in tables; %ld "
               "world%s drawn\n"
               "           from them, %.0f %% off. Your own measurements are better: --truth DB.\n",
               o->n_seeds, o->n_seeds == 1 ? " is" : "s are", 100 * GROUND_SPREAD);
    else
        printf("beware     Speeds, watts and slowdowns that the store has not are estimates.\n");
    printf(
        "           A job counts as busy for as long as it held its GPUs, and its work as what "
        "a busy one\n"
        "           does there. Only GPUs are counted; nothing else of a node draws or sleeps. "
        "GOGH began\n"
        "           knowing nothing of these jobs. docs/advise.md tells how this is reckoned.\n");
}

void advise_print_page(const struct advice *v)
{
    print_head(v);
    print_table(v);
    print_saved(v);
    print_edges(v);
    print_caveats(v);
}
