/* catalog.c - `gogh catalog`: what is known, one workload's cells, export, tables. */
#include "cli/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/json.h"
#include "base/log.h"
#include "base/text/text.h"
#include "catalog/catalog.h"
#include "catalog/import/export.h"
#include "cli/offline/learned.h"
#include "nn/gp.h"
#include "refine/model.h"
#include "store/store.h"

static const char help[] =
    "Show what a store knows.\n"
    "\n"
    "  catalog                 how much is known, by GPU type and workload\n"
    "  catalog show WORKLOAD   its descriptor and every cell that was measured\n"
    "  catalog export          all measurements as CSV (docs/formats/measurements.md)\n"
    "      --workloads            the descriptors instead\n"
    "      --out FILE             into FILE instead of standard output\n"
    "  catalog gpus            the built-in GPU types\n"
    "  catalog models          the built-in models\n"
    "  catalog model           what was learned: the model in use, how wrong each of its members\n"
    "                          was on workloads held out, and who challenged it\n"
    "\n"
    "  --db DB   the store (not for gpus and models)\n"
    "  --json    as JSON (not for export)\n"
    "\n"
    "Examples:\n"
    "  gogh catalog --db lab.db --json\n"
    "  gogh catalog show 'ResNet-18 (batch size 16)' --db lab.db\n"
    "  gogh catalog export --db lab.db --out lab.csv\n"
    "  gogh catalog gpus\n"
    "  gogh catalog model --db lab.db\n";

static struct options {
    const char *what, *workload;
    const char *db, *out;
    bool is_json, is_workloads;
} given;

static const struct cmd_option options[] = {
    CMD_TEXT("db", given.db),
    CMD_TEXT("out", given.out),
    CMD_FLAG("workloads", given.is_workloads),
    CMD_FLAG("json", given.is_json),
};

/* ---- helpers ---- */

static void print_json(json_t *j)
{
    json_print(j, JSON_REAL_PRECISION(15));
}

/* "1.2e+10 unit", or "unknown". */
static const char *show_number(char *room, size_t size, double x, const char *unit)
{
    if (isfinite(x))
        snprintf(room, size, "%.4g%s%s", x, unit[0] != '\0' ? " " : "", unit);
    else
        snprintf(room, size, "unknown");
    return room;
}

static const char *show_date(char *room, size_t size, double time_s)
{
    time_t t = (time_t)time_s;
    struct tm tm;

    if (!gmtime_r(&t, &tm) || strftime(room, size, "%Y-%m-%d %H:%M UTC", &tm) == 0)
        snprintf(room, size, "%.0f s", time_s);
    return room;
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* How many columns a UTF-8 text takes, near enough: one a character. */
static int columns_of(const char *s)
{
    int n = 0;

    for (; *s != '\0'; s++)
        n += (*s & 0xc0) != 0x80;
    return n;
}

static int wider(int width, const char *s)
{
    int n = columns_of(s);

    return n > width ? n : width;
}

/* A text, and blanks up to 'width'. */
static void print_padded(const char *s, int width)
{
    int n = columns_of(s);

    printf("%s%*s", s, n < width ? width - n : 0, "");
}

static double cell_speed(const struct cell *cell)
{
    return cell->n_speed > 0 ? exp(cell->ln_speed) : (double)NAN;
}

static double cell_watts(const struct cell *cell)
{
    return cell->n_watts > 0 ? exp(cell->ln_watts) : (double)NAN;
}

/* What this cell's speed is of the same job's alone, elsewhere equal; NaN if unknown. */
static double cell_slowdown(const struct catalog *c, const struct cell *cell)
{
    struct cell_key key = cell->key;
    const struct cell *alone;

    key.neighbour = -1;
    alone = catalog_cell(c, key);
    if (cell->key.neighbour < 0 || alone == NULL || alone->n_speed == 0 || cell->n_speed == 0)
        return (double)NAN;
    return exp(cell->ln_speed - alone->ln_speed);
}

static bool is_isolated(const struct cell *cell)
{
    return cell->key.neighbour < 0 && cell_key_is_plain(&cell->key);
}

static bool is_pair(const struct cell *cell)
{
    return cell->key.neighbour >= 0 && cell_key_is_plain(&cell->key);
}

/* ---- catalog ---- */

struct cell_counts {
    int n_isolated, n_pairs, n_unfit, n_gangs, n_limited, n_watts;
};

static void counts_add(struct cell_counts *t, const struct cell *cell)
{
    bool is_measured = cell->n_speed > 0;

    t->n_isolated += is_measured && is_isolated(cell);
    t->n_pairs += is_measured && is_pair(cell);
    t->n_unfit += !is_measured && cell->n_unfit > 0;
    t->n_gangs += is_measured && cell->key.n_gpus > 1;
    t->n_limited += is_measured && cell->key.limit_w > 0;
    t->n_watts += cell->n_watts > 0;
}

/* Cells by type or by workload; free it. */
static struct cell_counts *count_cells(const struct catalog *c, bool is_by_type)
{
    size_t n = (size_t)(is_by_type ? c->n_types : c->n_workloads);
    struct cell_counts *t = calloc(n + 1, sizeof(*t));

    if (t == NULL)
        abort();
    for (int i = 0; i < c->n_cells; i++) {
        const struct cell *cell = &c->cells[i];

        counts_add(&t[is_by_type ? cell->key.gpu_type : cell->key.workload], cell);
    }
    return t;
}

static json_t *counts_json(const char *name, const struct cell_counts *t)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i}", "name", name, "isolated", t->n_isolated,
                     "pairs", t->n_pairs, "unfit", t->n_unfit, "gangs", t->n_gangs, "limited",
                     t->n_limited, "watts", t->n_watts);
}

static void print_summary_json(const struct catalog *c, const struct catalog_summary *s)
{
    struct cell_counts *by_type = count_cells(c, true), *by_workload = count_cells(c, false);
    json_t *types = json_array(), *workloads = json_array();
    json_t *j;

    for (int i = 0; i < c->n_types; i++)
        json_array_append_new(types, counts_json(c->types[i].name, &by_type[i]));
    for (int i = 0; i < c->n_workloads; i++)
        json_array_append_new(workloads, counts_json(c->workloads[i].name, &by_workload[i]));
    j = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:i, s:o, s:o}", "workloads",
                  s->n_workloads, "gpu_types", s->n_types, "isolated", s->n_isolated, "pairs",
                  s->n_pairs, "unfit_pairs", s->n_unfit_pairs, "unfit_isolated",
                  s->n_unfit_isolated, "gangs", s->n_gangs, "limited", s->n_limited, "watts",
                  s->n_watts, "measurements", (json_int_t)s->n_measurements, "estimates",
                  s->n_estimates, "by_gpu_type", types, "by_workload", workloads);
    free(by_type);
    free(by_workload);
    print_json(j);
}

static void print_counts_head(const char *what, int width)
{
    putchar('\n');
    print_padded(what, width);
    printf(" %8s %8s %8s %8s %8s %8s\n", "alone", "pairs", "unfit", "gangs", "limited", "watts");
}

static void print_counts(const char *name, int width, const struct cell_counts *t)
{
    print_padded(name, width);
    printf(" %8d %8d %8d %8d %8d %8d\n", t->n_isolated, t->n_pairs, t->n_unfit, t->n_gangs,
           t->n_limited, t->n_watts);
}

static void print_summary(const struct catalog *c, const struct catalog_summary *s)
{
    struct cell_counts *by_type = count_cells(c, true), *by_workload = count_cells(c, false);
    int width = 20;

    for (int i = 0; i < c->n_types; i++)
        width = wider(width, c->types[i].name);
    for (int i = 0; i < c->n_workloads; i++)
        width = wider(width, c->workloads[i].name);
    printf("%d workload%s on %d GPU type%s, %" PRId64 " measurement%s, %d estimate%s\n",
           s->n_workloads, plural(s->n_workloads), s->n_types, plural(s->n_types),
           s->n_measurements, plural(s->n_measurements), s->n_estimates, plural(s->n_estimates));
    printf("%d cells alone, %d in pairs; %d pairs and %d jobs alone do not fit\n", s->n_isolated,
           s->n_pairs, s->n_unfit_pairs, s->n_unfit_isolated);
    printf("%d of gangs, %d under a power limit, %d with watts\n", s->n_gangs, s->n_limited,
           s->n_watts);
    print_counts_head("GPU type", width);
    for (int i = 0; i < c->n_types; i++)
        print_counts(c->types[i].name, width, &by_type[i]);
    print_counts_head("workload", width);
    for (int i = 0; i < c->n_workloads; i++)
        print_counts(c->workloads[i].name, width, &by_workload[i]);
    free(by_type);
    free(by_workload);
}

static void run_summary(const struct catalog *c, const struct options *o)
{
    struct catalog_summary s;

    catalog_summarise(c, &s);
    if (o->is_json)
        print_summary_json(c, &s);
    else
        print_summary(c, &s);
}

/* ---- catalog show ---- */

/* A name that contains what was typed is nearer than any that does not. */
static int nearness(const char *typed, const char *name)
{
    return strcasestr(name, typed) != NULL ? -1 : text_distance(typed, name);
}

static int suggest(const struct catalog *c, const char *typed)
{
    enum { SHOWN = 5 };
    int best[SHOWN], n = 0;

    for (int i = 0; i < c->n_workloads; i++) {
        int near = nearness(typed, c->workloads[i].name), at;

        if (near > 1 + (int)strlen(typed) / 2)
            continue;
        for (at = n; at > 0 && nearness(typed, c->workloads[best[at - 1]].name) > near; at--)
            if (at < SHOWN)
                best[at] = best[at - 1];
        if (at < SHOWN) {
            best[at] = i;
            n += n < SHOWN;
        }
    }
    fprintf(stderr, "gogh: no workload '%s' in this store", typed);
    for (int i = 0; i < n; i++)
        fprintf(stderr, "%s'%s'", i == 0 ? "; did you mean " : ", ", c->workloads[best[i]].name);
    fprintf(stderr, "%s\n", n > 0 ? "?" : "; 'gogh catalog' lists them");
    return EXIT_NO;
}

static json_t *cell_json(const struct catalog *c, const struct cell *cell)
{
    const struct cell_key *k = &cell->key;

    return json_pack(
        "{s:s, s:o, s:i, s:b, s:o, s:b, s:o, s:o, s:o, s:o, s:i, s:i, s:o}", "gpu",
        c->types[k->gpu_type].name, "neighbour",
        json_text_or_null(k->neighbour >= 0 ? c->workloads[k->neighbour].name : NULL), "n_gpus",
        k->n_gpus, "spread", k->is_spread, "limit_w",
        k->limit_w > 0 ? json_integer(k->limit_w) : json_null(), "fits",
        cell->n_speed > 0 || cell->n_unfit == 0, "throughput",
        json_number_or_null(cell_speed(cell)), "noise",
        json_number_or_null(cell->n_speed > 0 ? sqrt(cell_variance(cell)) : (double)NAN),
        "slowdown", json_number_or_null(cell_slowdown(c, cell)), "watts",
        json_number_or_null(cell_watts(cell)), "measurements",
        cell->n_speed + cell->n_unfit > cell->n_watts ? cell->n_speed + cell->n_unfit
                                                      : cell->n_watts,
        "drifts", cell->n_drifts, "drift_s",
        cell->n_drifts > 0 ? json_real(cell->drift_s) : json_null());
}

static json_t *features_json(const struct workload *w)
{
    json_t *j = json_object();

    json_object_set_new(j, "family", json_text_or_null(w->family));
    json_object_set_new(j, "task", json_text_or_null(w->task));
    json_object_set_new(j, "dataset", json_text_or_null(w->dataset));
    for (int i = 0; i < WORKLOAD_NUMBERS; i++)
        json_object_set_new(j, workload_number_names[i],
                            json_number_or_null(workload_number(w, i)));
    return j;
}

static void show_json(const struct catalog *c, int index)
{
    const struct workload *w = &c->workloads[index];
    json_t *cells = json_array();

    for (int i = 0; i < c->n_cells; i++) {
        if (c->cells[i].key.workload == index)
            json_array_append_new(cells, cell_json(c, &c->cells[i]));
    }
    print_json(json_pack("{s:s, s:o, s:b, s:o, s:o}", "name", w->name, "batch",
                         json_number_or_null(w->batch), "inference", w->is_inference, "features",
                         features_json(w), "cells", cells));
}

static void show_descriptor(const struct workload *w)
{
    char room[40];

    printf("%s\n", w->name);
    printf("  %-20s %s\n", "kind", w->is_inference ? "inference" : "training");
    printf("  %-20s %s\n", "batch", show_number(room, sizeof(room), w->batch, ""));
    printf("  %-20s %s\n", "family", w->family != NULL ? w->family : "unknown");
    printf("  %-20s %s\n", "task", w->task != NULL ? w->task : "unknown");
    printf("  %-20s %s\n", "dataset", w->dataset != NULL ? w->dataset : "unknown");
    for (int i = 0; i < WORKLOAD_NUMBERS; i++)
        printf("  %-20s %s\n", workload_number_names[i],
               show_number(room, sizeof(room), workload_number(w, i), ""));
}

static void show_alone_cell(const struct catalog *c, const struct cell *cell)
{
    const struct cell_key *k = &cell->key;
    char gpu[240], speed[40], watts[40];

    snprintf(gpu, sizeof(gpu), "%s", c->types[k->gpu_type].name);
    if (k->n_gpus > 1)
        snprintf(gpu, sizeof(gpu), "%.200s x %d%s", c->types[k->gpu_type].name, k->n_gpus,
                 k->is_spread ? " spread" : "");
    if (k->limit_w > 0)
        snprintf(gpu + strlen(gpu), sizeof(gpu) - strlen(gpu), " at %d W", k->limit_w);
    show_number(speed, sizeof(speed), cell_speed(cell), "steps/s");
    show_number(watts, sizeof(watts), cell_watts(cell), "W");
    if (cell->n_speed == 0 && cell->n_unfit > 0)
        snprintf(speed, sizeof(speed), "does not fit");
    else if (cell->n_speed == 0)
        snprintf(speed, sizeof(speed), "-");
    printf("  %-28s %18s %12s\n", gpu, speed, cell->n_watts > 0 ? watts : "-");
}

static void show_alone(const struct catalog *c, int index)
{
    bool has_any = false;

    for (int i = 0; i < c->n_cells; i++) {
        const struct cell *cell = &c->cells[i];

        if (cell->key.workload != index || cell->key.neighbour >= 0)
            continue;
        if (!has_any)
            printf("\nalone\n");
        has_any = true;
        show_alone_cell(c, cell);
    }
    if (!has_any)
        printf("\nnothing was measured alone\n");
}

static void show_pair(const struct catalog *c, int index, int neighbour, int width)
{
    printf("  ");
    print_padded(c->workloads[neighbour].name, width - 2);
    for (int t = 0; t < c->n_types; t++) {
        struct cell_key key = {
            .workload = index, .gpu_type = t, .neighbour = neighbour, .n_gpus = 1
        };
        const struct cell *cell = catalog_cell(c, key);
        char room[40] = "-";

        if (cell != NULL && cell->n_speed == 0 && cell->n_unfit > 0)
            snprintf(room, sizeof(room), "unfit");
        else if (cell != NULL && isfinite(cell_slowdown(c, cell)))
            snprintf(room, sizeof(room), "%.3f", cell_slowdown(c, cell));
        else if (cell != NULL && cell->n_speed > 0)
            snprintf(room, sizeof(room), "%.4g/s", cell_speed(cell));
        printf(" %*s", wider(10, c->types[t].name), room);
    }
    putchar('\n');
}

static void show_pairs(const struct catalog *c, int index)
{
    static const char head[] = "beside (speed, of that alone)";
    bool *is_neighbour = calloc((size_t)c->n_workloads + 1, sizeof(*is_neighbour));
    bool has_any = false;
    int width = columns_of(head);

    if (is_neighbour == NULL)
        abort();
    for (int i = 0; i < c->n_cells; i++) {
        if (c->cells[i].key.workload == index && is_pair(&c->cells[i]))
            is_neighbour[c->cells[i].key.neighbour] = has_any = true;
    }
    for (int n = 0; n < c->n_workloads; n++)
        width = is_neighbour[n] ? wider(width, c->workloads[n].name) : width;
    width += 2;
    if (has_any) {
        putchar('\n');
        print_padded(head, width);
        for (int t = 0; t < c->n_types; t++)
            printf(" %*s", wider(10, c->types[t].name), c->types[t].name);
        putchar('\n');
    }
    for (int n = 0; n < c->n_workloads; n++) {
        if (is_neighbour[n])
            show_pair(c, index, n, width);
    }
    free(is_neighbour);
}

/* Where speeds have changed for good: cells, the workload as a whole, GPU types it ran on. */
static void show_drift(const struct catalog *c, int index)
{
    const struct drift_watch *w = &c->workload_drift[index];
    char date[40];

    for (int i = c->first_cell[index]; i >= 0; i = c->next_cell[i]) {
        const struct cell *cell = &c->cells[i];
        int beside = cell->key.neighbour;

        if (cell->n_drifts > 0)
            printf("\nits speed on %s%s%s changed for good, noticed %s",
                   c->types[cell->key.gpu_type].name, beside >= 0 ? " beside " : "",
                   beside >= 0 ? c->workloads[beside].name : "",
                   show_date(date, sizeof(date), cell->drift_s));
    }
    if (w->n_drifts > 0)
        printf("\nso did the workload as a whole, noticed %s",
               show_date(date, sizeof(date), w->last_s));
    for (int t = 0; t < c->n_types; t++)
        if (c->type_drift[t].n_drifts > 0)
            printf("\n%s as a whole changed, noticed %s", c->types[t].name,
                   show_date(date, sizeof(date), c->type_drift[t].last_s));
    putchar('\n');
}

static bool has_drift(const struct catalog *c, int index)
{
    bool has = c->workload_drift[index].n_drifts > 0;

    for (int i = c->first_cell[index]; i >= 0 && !has; i = c->next_cell[i])
        has = c->cells[i].n_drifts > 0 || c->type_drift[c->cells[i].key.gpu_type].n_drifts > 0;
    return has;
}

static int run_show(const struct catalog *c, const struct options *o)
{
    int index = catalog_find_workload_alike(c, o->workload);

    if (index < 0)
        return suggest(c, o->workload);
    if (o->is_json) {
        show_json(c, index);
        return 0;
    }
    show_descriptor(&c->workloads[index]);
    show_alone(c, index);
    show_pairs(c, index);
    if (has_drift(c, index))
        show_drift(c, index);
    return 0;
}

/* ---- catalog export ---- */

#define EXPORT_BYTES_MAX ((size_t)2 << 30)    // some 20 million measurements

static int run_export(struct store *s, const struct options *o, struct err *e)
{
    struct buf out;
    int rc;

    buf_init(&out, EXPORT_BYTES_MAX);
    rc = o->is_workloads ? catalog_export_workloads(s, &out, e) : catalog_export(s, &out, e);
    if (rc == 0)
        rc = cmd_write(o->out, &out, e);
    buf_release(&out);
    return rc;
}

/* ---- built-in tables ---- */

static void run_gpus(bool is_json)
{
    int n;
    const struct gpu_type *t = gpu_type_builtin_all(&n);
    json_t *list = json_array();
    int name_width = 12, title_width = 20;

    for (int i = 0; i < n; i++) {
        name_width = wider(name_width, t[i].name);
        title_width = wider(title_width, t[i].title);
    }
    if (!is_json)
        printf("%-*s %-*s %5s %7s %7s %7s %6s %5s %5s %5s\n", name_width, "name", title_width,
               "title", "year", "FP32", "FP16", "GB/s", "GiB", "idle", "sleep", "cap");
    for (int i = 0; i < n; i++, t++) {
        if (!is_json)
            printf("%-*s %-*s %5d %7.1f %7.1f %7.0f %6.0f %5.0f %5.0f %5.0f\n", name_width, t->name,
                   title_width, t->title, t->year, t->peak_fp32_flops / 1e12,
                   t->peak_fp16_flops / 1e12, t->bandwidth_bytes_s / 1e9,
                   t->mem_bytes / 1073741824.0, t->idle_w, t->sleep_w, t->cap_w);
        else
            json_array_append_new(
                list,
                json_pack("{s:s, s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:s}",
                          "name", t->name, "title", t->title, "year", t->year, "peak_fp32_flops",
                          t->peak_fp32_flops, "peak_fp16_flops", t->peak_fp16_flops,
                          "bandwidth_bytes_s", t->bandwidth_bytes_s, "mem_bytes", t->mem_bytes,
                          "launch_s", t->launch_s, "idle_w", t->idle_w, "sleep_w", t->sleep_w,
                          "cap_w", t->cap_w, "limit_low_w", t->limit_low_w, "source", t->source));
    }
    if (is_json) {
        print_json(list);
        return;
    }
    printf("\nFP32 and FP16 in TFLOP/s, dense; idle, sleep and cap in W\n");
    json_decref(list);
}

static void run_models(bool is_json)
{
    int n;
    const struct workload *w = workload_builtin_all(&n);
    json_t *list = json_array();

    if (!is_json)
        printf("%-44s %-10s %-28s %10s %14s %14s\n", "model at its usual batch size", "kind",
               "task", "params", "FLOP/sample", "bytes/sample");
    for (int i = 0; i < n; i++, w++) {
        if (!is_json)
            printf("%-44s %-10s %-28s %10.3g %14.3g %14.3g\n", w->name,
                   w->is_inference ? "inference" : "training", w->task != NULL ? w->task : "-",
                   w->params, w->flop_per_sample, w->bytes_per_sample);
        else
            json_array_append_new(list, json_pack("{s:s, s:o, s:b, s:o}", "name", w->name, "batch",
                                                  json_number_or_null(w->batch), "inference",
                                                  w->is_inference, "features", features_json(w)));
    }
    if (is_json)
        print_json(list);
    else
        json_decref(list);
}

/* ---- catalog model ---- */

/* The row 'name' of the store, and when it was put there; NULL: there is none. */
static int fetch(struct store *s, const char *name, struct model **out, double *time_s,
                 struct err *e)
{
    int rc = model_fetch(s, name, out, e);

    if (rc == 0)
        rc = store_model_time(s, name, time_s, e);
    return rc == -ENOENT ? 0 : rc;
}

static json_t *challenge_json(const struct model *m, double time_s)
{
    if (!m)
        return json_null();
    return json_pack("{s:s, s:f, s:o, s:o, s:b}", "about", m->about, "time_s", time_s, "champion",
                     json_number_or_null(m->comparison.champion), "challenger",
                     json_number_or_null(m->comparison.challenger), "won", m->comparison.is_won);
}

static void show_challenge(const char *what, const struct model *m, double time_s)
{
    char date[40];
    const struct comparison *d = &m->comparison;

    if (isfinite(d->champion) && isfinite(d->challenger))
        printf("%s: %s of %s %s: error %.4f against %.4f (%+.1f %%)\n", what, m->about,
               show_date(date, sizeof(date), time_s), d->is_won ? "won" : "lost", d->challenger,
               d->champion, 100 * (d->challenger / d->champion - 1));
    else
        printf("%s: %s of %s had nobody to beat\n", what, m->about,
               show_date(date, sizeof(date), time_s));
}

/* Champion, and the last challenger that lost; either may be NULL. */
struct models {
    struct model *champion, *challenger;
    double champion_s, challenger_s;
    bool is_of_site;
};

static void print_models_json(const struct models *r)
{
    print_json(json_pack(
        "{s:s, s:o, s:o, s:o, s:o}", "in_use",
        r->is_of_site ? "site"
        : r->champion ? "pretrained"
                      : "none",
        "trained_s", r->is_of_site ? json_real(r->champion_s) : json_null(), "model",
        r->champion ? learned_json(r->champion) : json_null(), "won",
        r->is_of_site ? challenge_json(r->champion, r->champion_s) : json_null(), "challenger",
        r->challenger ? challenge_json(r->challenger, r->challenger_s) : json_null()));
}

static void print_models(const struct models *r)
{
    char date[40];

    if (!r->champion) {
        printf("no model: estimates start at the roofline\n");
        return;
    }
    if (r->is_of_site)
        printf("in use: this site's own, of %s\n", show_date(date, sizeof(date), r->champion_s));
    else
        printf("in use: the pretrained one\n");
    learned_print(r->champion);
    if (r->is_of_site)
        show_challenge("champion", r->champion, r->champion_s);
    if (r->challenger)
        show_challenge("last challenger", r->challenger, r->challenger_s);
}

/* Damaged, or of another version. */
static bool is_unreadable(int rc)
{
    return rc == -EINVAL || rc == -ENOTSUP;
}

static int run_model(struct store *s, const struct options *o, struct err *e)
{
    struct models r = { 0 };

    nn_init();
    int rc = fetch(s, MODEL_CHAMPION, &r.champion, &r.champion_s, e);
    if (is_unreadable(rc)) {
        struct err cause = *e;
        rc = err_set(e, cause.code, "%s; train anew: gogh train --db %s", cause.text, o->db);
    }
    if (rc == 0)
        rc = fetch(s, MODEL_CHALLENGER, &r.challenger, &r.challenger_s, e);
    if (is_unreadable(rc) && r.champion) {
        log_warn("the last challenger: %s", e->text);
        rc = 0;
    }
    r.is_of_site = r.champion != NULL;
    if (rc == 0 && r.champion == NULL)
        rc = model_open(NULL, NULL, &r.champion, e);
    if (rc == 0 && o->is_json)
        print_models_json(&r);
    else if (rc == 0)
        print_models(&r);
    model_destroy(r.champion);
    model_destroy(r.challenger);
    return rc;
}

/* ---- the command ---- */

static int check(const struct cmd_call *call)
{
    static const char *const known[] = { "", "show", "export", "model", "gpus", "models" };
    struct options *o = &given;
    int i = 0;

    o->what = call->words[0] != NULL ? call->words[0] : "";
    o->workload = call->words[1];
    const bool is_show = strcmp(o->what, "show") == 0, is_export = strcmp(o->what, "export") == 0;
    while (i < CMD_COUNT(known) && strcmp(o->what, known[i]) != 0)
        i++;
    if (i == CMD_COUNT(known))
        return cmd_misuse(call->cmd, "unknown word '%s': want show, export, model, gpus or models",
                          o->what);
    if (is_show && o->workload == NULL)
        return cmd_misuse(call->cmd, "say which workload to show");
    if (!is_show && o->workload != NULL)
        return cmd_misuse(call->cmd, "unexpected argument '%s'", o->workload);
    if (is_export && o->is_json)
        return cmd_misuse(call->cmd, "an export is CSV: leave out --json");
    if (!is_export && (o->out != NULL || o->is_workloads))
        return cmd_misuse(call->cmd, "--out and --workloads are for 'catalog export'");
    if (i < 4 && o->db == NULL)
        return cmd_misuse(call->cmd, "say which store to read: --db DB");
    return 0;
}

static int run_with_store(const struct options *o, struct err *e)
{
    struct catalog c;
    struct store *s;
    int rc = store_open(o->db, STORE_READ, &s, e);

    if (rc < 0)
        return rc;
    catalog_init(&c);
    if (strcmp(o->what, "export") == 0)
        rc = run_export(s, o, e);
    else if (strcmp(o->what, "model") == 0)
        rc = run_model(s, o, e);
    else
        rc = catalog_load(&c, s, e);
    if (rc == 0 && strcmp(o->what, "show") == 0)
        rc = run_show(&c, o);
    else if (rc == 0 && o->what[0] == '\0')
        run_summary(&c, o);
    catalog_release(&c);
    store_close(s);
    return rc;
}

static int run(const struct cmd_call *call, struct err *e)
{
    (void)call;
    if (strcmp(given.what, "gpus") == 0)
        run_gpus(given.is_json);
    else if (strcmp(given.what, "models") == 0)
        run_models(given.is_json);
    else
        return run_with_store(&given, e);
    return 0;
}

const struct cmd cmd_catalog = {
    .name = "catalog",
    .synopsis = "catalog [show WORKLOAD | export | model | gpus | models] [--db DB] [options]",
    .summary = "what is known of workloads on GPU types",
    .help = help,
    CMD_OPTIONS(options),
    .max_words = 2,
    .check = check,
    .run = run,
};
