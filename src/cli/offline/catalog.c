/* catalog.c - `gogh catalog`: what is known, one workload's cells, export, tables. */
#include "cli/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/json.h"
#include "base/log.h"
#include "base/text/text.h"
#include "catalog/catalog.h"
#include "catalog/import/import.h"
#include "cli/offline/learned.h"
#include "cli/table.h"
#include "nn/gp.h"
#include "estimate/blend.h"
#include "estimate/model/model.h"
#include "estimate/network/network.h"
#include "store/store.h"

static const char help[] =
    "Show what a store knows.\n"
    "\n"
    "  catalog                 how much is known, by campaign, GPU type and workload\n"
    "  catalog show WORKLOAD   its descriptor and every cell that was measured\n"
    "  catalog export          all measurements as CSV (docs/formats/measurements.md)\n"
    "      --workloads            the descriptors instead\n"
    "      --out FILE             into FILE instead of standard output\n"
    "  catalog gpus            the built-in GPU types\n"
    "  catalog models          the built-in models\n"
    "  catalog model           what was learned: the model in use, how much speeds differ for what,\n"
    "                          how wrong it is about families it has not seen, who challenged it\n"
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

static struct {
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
static const char *show_number(struct arena *a, double x, const char *unit)
{
    return isfinite(x) ? arena_printf(a, "%.4g%s%s", x, unit[0] != '\0' ? " " : "", unit)
                       : "unknown";
}

static const char *show_date(struct arena *a, double time_s)
{
    time_t t = (time_t)time_s;
    char room[40];
    struct tm tm;

    if (!gmtime_r(&t, &tm) || strftime(room, sizeof room, "%Y-%m-%d %H:%M UTC", &tm) == 0)
        return arena_printf(a, "%.0f s", time_s);
    return arena_strdup(a, room);
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static int wider(int width, const char *s)
{
    int n = cell_width(s);

    return n > width ? n : width;
}

/* A text, and blanks up to 'width'. */
static void print_padded(const char *s, int width)
{
    int n = cell_width(s);

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
    return cell->key.neighbour < 0 && cell_key_is_default(&cell->key);
}

static bool is_pair(const struct cell *cell)
{
    return cell->key.neighbour >= 0 && cell_key_is_default(&cell->key);
}

/* ---- catalog ---- */

/* Cells of a campaign, a type or a workload. */
struct cell_counts {
    const char *name;
    bool has_sharing;    // a workload has none
    enum sharing sharing;
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

static json_t *counts_json(const struct cell_counts *t, int n)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++, t++) {
        json_t *j = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i}", "name", t->name, "isolated",
                              t->n_isolated, "pairs", t->n_pairs, "unfit", t->n_unfit, "gangs",
                              t->n_gangs, "limited", t->n_limited, "watts", t->n_watts);
        if (t->has_sharing)
            json_object_set_new(j, "sharing", json_pack("s?", sharing_name(t->sharing)));
        json_array_append_new(list, j);
    }
    return list;
}

/* How they share has a column where it is known of any. */
static void print_counts(const char *what, int width, const struct cell_counts *t, int n)
{
    bool is_known = false;

    for (int i = 0; i < n; i++)
        is_known = is_known || t[i].sharing;
    putchar('\n');
    print_padded(what, width);
    printf(" %8s %8s %8s %8s %8s %8s%s\n", "alone", "pairs", "unfit", "gangs", "limited", "watts",
           is_known ? "    sharing" : "");
    for (int i = 0; i < n; i++, t++) {
        print_padded(t->name, width);
        printf(" %8d %8d %8d %8d %8d %8d", t->n_isolated, t->n_pairs, t->n_unfit, t->n_gangs,
               t->n_limited, t->n_watts);
        if (is_known)
            printf(" %10s", t->sharing ? sharing_name(t->sharing) : "-");
        putchar('\n');
    }
}

static void print_summary(const struct catalog_summary *s)
{
    printf("%d workload%s on %d GPU type%s, %" PRId64 " measurement%s\n", s->n_workloads,
           plural(s->n_workloads), s->n_types, plural(s->n_types), s->n_measurements,
           plural(s->n_measurements));
    printf("%d cells alone, %d in pairs; %d pairs and %d jobs alone do not fit\n", s->n_isolated,
           s->n_pairs, s->n_unfit_pairs, s->n_unfit_isolated);
    printf("%d of gangs, %d under a power limit, %d with watts\n", s->n_gangs, s->n_limited,
           s->n_watts);
}

static json_t *summary_json(const struct catalog_summary *s)
{
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:I}", "workloads",
                     s->n_workloads, "gpu_types", s->n_types, "isolated", s->n_isolated, "pairs",
                     s->n_pairs, "unfit_pairs", s->n_unfit_pairs, "unfit_isolated",
                     s->n_unfit_isolated, "gangs", s->n_gangs, "limited", s->n_limited, "watts",
                     s->n_watts, "measurements", (json_int_t)s->n_measurements);
}

static void run_summary(struct arena *a, const struct catalog *c)
{
    struct cell_counts *types = ARENA_ARRAY(a, struct cell_counts, (size_t)c->n_types);
    struct cell_counts *workloads = ARENA_ARRAY(a, struct cell_counts, (size_t)c->n_workloads);
    struct cell_counts *campaigns = ARENA_ARRAY(a, struct cell_counts, (size_t)c->n_campaigns);
    struct catalog_summary s;
    int width = 20;

    catalog_summarise(c, &s);
    for (int i = 0; i < c->n_campaigns; i++) {
        campaigns[i] = (struct cell_counts){ .name = c->campaigns[i],
                                             .has_sharing = true,
                                             .sharing = c->campaign_sharing[i] };
        width = wider(width, c->campaigns[i]);
    }
    for (int i = 0; i < c->n_types; i++) {
        types[i] = (struct cell_counts){ .name = c->types[i].name,
                                         .has_sharing = true,
                                         .sharing = c->types[i].sharing };
        width = wider(width, c->types[i].name);
    }
    for (int i = 0; i < c->n_workloads; i++)
        width = wider(width, workloads[i].name = c->workloads[i].name);
    for (int i = 0; i < c->n_cells; i++) {
        counts_add(&types[c->cells[i].key.gpu_type], &c->cells[i]);
        counts_add(&workloads[c->cells[i].key.workload], &c->cells[i]);
        counts_add(&campaigns[c->cells[i].key.campaign], &c->cells[i]);
    }
    if (!given.is_json) {
        print_summary(&s);
        if (c->n_campaigns > 1)
            print_counts("campaign", width, campaigns, c->n_campaigns);
        print_counts("GPU type", width, types, c->n_types);
        print_counts("workload", width, workloads, c->n_workloads);
        return;
    }
    json_t *j = summary_json(&s);
    json_object_set_new(j, "by_campaign", counts_json(campaigns, c->n_campaigns));
    json_object_set_new(j, "by_gpu_type", counts_json(types, c->n_types));
    json_object_set_new(j, "by_workload", counts_json(workloads, c->n_workloads));
    print_json(j);
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
        "{s:s, s:o, s:i, s:b, s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:i, s:i, s:o}", "gpu",
        c->types[k->gpu_type].name, "neighbour",
        json_text_or_null(k->neighbour >= 0 ? c->workloads[k->neighbour].name : NULL), "n_gpus",
        k->n_gpus, "spread", k->is_spread, "limit_w",
        k->limit_w > 0 ? json_integer(k->limit_w) : json_null(), "campaign",
        c->campaigns[k->campaign], "fits", cell->n_speed > 0 || cell->n_unfit == 0, "throughput",
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
    for (int i = 0; i < WORKLOAD_FIGURES; i++)
        json_object_set_new(j, workload_number_names[i],
                            json_number_or_null(workload_number(w, i)));
    json_object_set_new(j, "precision", json_text_or_null(precision_name(w->precision)));
    json_object_set_new(j, "needs_capability",
                        w->needs_capability > 0 ? json_integer(w->needs_capability) : json_null());
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

static void show_descriptor(struct arena *a, const struct workload *w)
{
    printf("%s\n", w->name);
    printf("  %-20s %s\n", "kind", w->is_inference ? "inference" : "training");
    printf("  %-20s %s\n", "batch", show_number(a, w->batch, ""));
    printf("  %-20s %s\n", "family", w->family != NULL ? w->family : "unknown");
    printf("  %-20s %s\n", "task", w->task != NULL ? w->task : "unknown");
    printf("  %-20s %s\n", "dataset", w->dataset != NULL ? w->dataset : "unknown");
    for (int i = 0; i < WORKLOAD_FIGURES; i++)
        printf("  %-20s %s\n", workload_number_names[i], show_number(a, workload_number(w, i), ""));
    const char *precision = precision_name(w->precision);
    printf("  %-20s %s\n", "precision", precision != NULL ? precision : "unknown");
    double needed = w->needs_capability > 0 ? w->needs_capability / 10.0 : (double)NAN;
    printf("  %-20s %s\n", "needs_capability", show_number(a, needed, ""));
}

static void show_alone_cell(struct arena *a, const struct catalog *c, const struct cell *cell)
{
    const struct cell_key *k = &cell->key;
    const char *gpu = c->types[k->gpu_type].name, *speed = "-";

    if (k->n_gpus > 1)
        gpu = arena_printf(a, "%.200s x %d%s", gpu, k->n_gpus, k->is_spread ? " spread" : "");
    if (k->limit_w > 0)
        gpu = arena_printf(a, "%s at %d W", gpu, k->limit_w);
    if (k->campaign != CATALOG_SITE)
        gpu = arena_printf(a, "%s, %s", gpu, c->campaigns[k->campaign]);
    if (cell->n_speed > 0)
        speed = show_number(a, cell_speed(cell), "steps/s");
    else if (cell->n_unfit > 0)
        speed = "does not fit";
    printf("  %-28s %18s %12s\n", gpu, speed,
           cell->n_watts > 0 ? show_number(a, cell_watts(cell), "W") : "-");
}

static void show_alone(struct arena *a, const struct catalog *c, int index)
{
    bool has_any = false;

    for (int i = 0; i < c->n_cells; i++) {
        const struct cell *cell = &c->cells[i];

        if (cell->key.workload != index || cell->key.neighbour >= 0)
            continue;
        if (!has_any)
            printf("\nalone\n");
        has_any = true;
        show_alone_cell(a, c, cell);
    }
    if (!has_any)
        printf("\nnothing was measured alone\n");
}

static void show_pair(const struct catalog *c, int index, int neighbour, int campaign, int width)
{
    printf("  ");
    print_padded(c->workloads[neighbour].name, width - 2);
    for (int t = 0; t < c->n_types; t++) {
        struct cell_key key = { .workload = index,
                                .gpu_type = t,
                                .neighbour = neighbour,
                                .n_gpus = 1,
                                .campaign = campaign };
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

static void show_pairs(struct arena *a, const struct catalog *c, int index, int campaign)
{
    const char *head = "beside (speed, of that alone)";
    bool *is_neighbour = ARENA_ARRAY(a, bool, (size_t)c->n_workloads);
    bool has_any = false;

    if (campaign != CATALOG_SITE)
        head = arena_printf(a, "%s, %s", head, c->campaigns[campaign]);
    int width = cell_width(head);
    for (int i = 0; i < c->n_cells; i++) {
        const struct cell_key *k = &c->cells[i].key;

        if (k->workload == index && k->campaign == campaign && is_pair(&c->cells[i]))
            is_neighbour[k->neighbour] = has_any = true;
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
            show_pair(c, index, n, campaign, width);
    }
}

/* Where speeds have changed for good: cells, the workload as a whole, GPU types; nothing where
 * neither it nor a type it ran on has.
 */
static void show_drift(struct arena *a, const struct catalog *c, int index)
{
    const struct drift_watch *w = &c->workload_drift[index];
    bool has_any = w->n_drifts > 0;

    for (int i = c->first_cell[index]; i >= 0; i = c->next_cell[i]) {
        const struct cell *cell = &c->cells[i];
        int beside = cell->key.neighbour;

        has_any |= cell->n_drifts > 0 || c->type_drift[cell->key.gpu_type].n_drifts > 0;
        if (cell->n_drifts > 0)
            printf("\nits speed on %s%s%s changed for good, noticed %s",
                   c->types[cell->key.gpu_type].name, beside >= 0 ? " beside " : "",
                   beside >= 0 ? c->workloads[beside].name : "", show_date(a, cell->drift_s));
    }
    if (w->n_drifts > 0)
        printf("\nso did the workload as a whole, noticed %s", show_date(a, w->last_s));
    for (int t = 0; t < c->n_types && has_any; t++)
        if (c->type_drift[t].n_drifts > 0)
            printf("\n%s as a whole changed, noticed %s", c->types[t].name,
                   show_date(a, c->type_drift[t].last_s));
    if (has_any)
        putchar('\n');
}

static int run_show(struct arena *a, const struct catalog *c)
{
    int index = catalog_find_workload_alike(c, given.workload);

    if (index < 0)
        return suggest(c, given.workload);
    if (given.is_json) {
        show_json(c, index);
        return 0;
    }
    show_descriptor(a, &c->workloads[index]);
    show_alone(a, c, index);
    for (int i = 0; i < c->n_campaigns; i++)
        show_pairs(a, c, index, i);
    show_drift(a, c, index);
    return 0;
}

/* ---- catalog export ---- */

#define EXPORT_BYTES_MAX ((size_t)2 << 30)    // some 20 million measurements

static int run_export(struct store *s, struct err *e)
{
    struct buf out;

    buf_init(&out, EXPORT_BYTES_MAX);
    int rc = given.is_workloads ? catalog_export_workloads(s, &out, e) : catalog_export(s, &out, e);
    return cmd_write(given.out, &out, rc, e);
}

/* ---- built-in tables ---- */

static json_t *gpu_json(const struct gpu_type *t)
{
    return json_pack(
        "{s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:s}",
        "name", t->name, "title", t->title, "year", t->year, "capability", t->capability,
        "peak_fp32_flops", t->peak_fp32_flops, "peak_tf32_flops", t->peak_tf32_flops,
        "peak_fp16_flops", t->peak_fp16_flops, "peak_fp8_flops", t->peak_fp8_flops,
        "peak_int8_flops", t->peak_int8_flops, "bandwidth_bytes_s", t->bandwidth_bytes_s,
        "mem_bytes", t->mem_bytes, "launch_s", t->launch_s, "idle_w", t->idle_w, "sleep_w",
        t->sleep_w, "cap_w", t->cap_w, "limit_low_w", t->limit_low_w, "source", t->source);
}

static void run_gpus(void)
{
    int n, name_width = 12, title_width = 20;
    const struct gpu_type *all = gpu_type_builtin_all(&n);
    json_t *list = json_array();

    for (int i = 0; i < n; i++) {
        json_array_append_new(list, gpu_json(&all[i]));
        name_width = wider(name_width, all[i].name);
        title_width = wider(title_width, all[i].title);
    }
    if (given.is_json) {
        print_json(list);
        return;
    }
    json_decref(list);
    printf("%-*s %-*s %5s %7s %7s %7s %7s %7s %7s %6s %5s %5s %5s\n", name_width, "name",
           title_width, "title", "year", "FP32", "TF32", "FP16", "FP8", "INT8", "GB/s", "GiB",
           "idle", "sleep", "cap");
    for (const struct gpu_type *t = all; t < all + n; t++)
        printf("%-*s %-*s %5d %7.1f %7.1f %7.1f %7.1f %7.1f %7.0f %6.0f %5.0f %5.0f %5.0f\n",
               name_width, t->name, title_width, t->title, t->year, t->peak_fp32_flops / 1e12,
               t->peak_tf32_flops / 1e12, t->peak_fp16_flops / 1e12, t->peak_fp8_flops / 1e12,
               t->peak_int8_flops / 1e12, t->bandwidth_bytes_s / 1e9, t->mem_bytes / 1073741824.0,
               t->idle_w, t->sleep_w, t->cap_w);
    printf("\nFP32 to INT8 in TFLOP/s, dense, 0: has none; idle, sleep and cap in W\n");
}

static void run_models(void)
{
    int n;
    const struct workload *all = workload_builtin_all(&n);
    json_t *list = json_array();

    for (const struct workload *w = all; w < all + n; w++)
        json_array_append_new(list, json_pack("{s:s, s:o, s:b, s:o}", "name", w->name, "batch",
                                              json_number_or_null(w->batch), "inference",
                                              w->is_inference, "features", features_json(w)));
    if (given.is_json) {
        print_json(list);
        return;
    }
    json_decref(list);
    printf("%-44s %-10s %-28s %10s %14s %14s\n", "model at its usual batch size", "kind", "task",
           "params", "FLOP/sample", "bytes/sample");
    for (const struct workload *w = all; w < all + n; w++)
        printf("%-44s %-10s %-28s %10.3g %14.3g %14.3g\n", w->name,
               w->is_inference ? "inference" : "training", w->task != NULL ? w->task : "-",
               w->params, w->flop_per_sample, w->bytes_per_sample);
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

static void show_challenge(struct arena *a, const char *what, const struct model *m, double time_s)
{
    const struct comparison *d = &m->comparison;

    if (isfinite(d->champion) && isfinite(d->challenger))
        printf("%s: %s of %s %s: error %.4f against %.4f (%+.1f %%)\n", what, m->about,
               show_date(a, time_s), d->is_won ? "won" : "lost", d->challenger, d->champion,
               100 * (d->challenger / d->champion - 1));
    else
        printf("%s: %s of %s had nobody to beat\n", what, m->about, show_date(a, time_s));
}

/* Champion, the last challenger that lost, and the network; each may be NULL. */
struct models {
    struct model *champion, *challenger;
    struct network *network;
    double champion_s, challenger_s;
    int n_beside;    // readings of the site beside a neighbour
    bool is_of_site;
};

static json_t *network_json(const struct models *r)
{
    return r->network ? json_pack("{s:s, s:i, s:f}", "about", network_about(r->network), "weights",
                                  network_n_weights(r->network), "share",
                                  blend_share(r->n_beside, SHARING_MPS))
                      : json_null();
}

static void print_models_json(const struct models *r)
{
    print_json(json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o}", "in_use",
        r->is_of_site ? "site"
        : r->champion ? "pretrained"
                      : "none",
        "trained_s", r->is_of_site ? json_real(r->champion_s) : json_null(), "model",
        r->champion ? learned_json(r->champion) : json_null(), "won",
        r->is_of_site ? challenge_json(r->champion, r->champion_s) : json_null(), "challenger",
        r->challenger ? challenge_json(r->challenger, r->challenger_s) : json_null(), "network",
        network_json(r)));
}

static void print_champion(struct arena *a, const struct models *r)
{
    if (r->is_of_site)
        printf("in use: this site's own, of %s\n", show_date(a, r->champion_s));
    else
        printf("in use: the pretrained one\n");
    learned_print(r->champion, true);
    if (r->is_of_site)
        show_challenge(a, "champion", r->champion, r->champion_s);
    if (r->challenger)
        show_challenge(a, "last challenger", r->challenger, r->challenger_s);
}

static void print_models(struct arena *a, const struct models *r)
{
    if (r->champion)
        print_champion(a, r);
    else
        printf("no model: estimates start from what was measured here alone\n");
    if (r->network)
        printf(
            "network: %s; %d weights; its share of what is believed of slowdowns under MPS is %.2f with "
            "%d cells beside a neighbour measured here\n",
            network_about(r->network), network_n_weights(r->network),
            blend_share(r->n_beside, SHARING_MPS), r->n_beside);
}

/* Damaged, or of another version. */
static bool is_unreadable(int rc)
{
    return rc == -EINVAL || rc == -ENOTSUP;
}

/* As beliefs count them. */
static int count_beside(const struct catalog *c)
{
    int n = 0;

    for (int i = 0; i < c->n_cells; i++)
        n += cell_key_is_plain(&c->cells[i].key) && c->cells[i].key.neighbour >= 0 &&
             c->cells[i].n_speed > 0;
    return n;
}

static int run_model(struct arena *a, const struct catalog *c, struct store *s, struct err *e)
{
    struct models r = { .n_beside = count_beside(c) };

    nn_init();
    int rc = fetch(s, MODEL_CHAMPION, &r.champion, &r.champion_s, e);
    if (is_unreadable(rc)) {
        struct err cause = *e;
        rc = err_set(e, cause.code, "%s; train anew: gogh train --db %s", cause.text, given.db);
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
    if (rc == 0)
        rc = network_pretrained(&r.network, e);
    if (rc == -ENOENT)    // a build without one
        rc = 0;
    if (rc == 0 && given.is_json)
        print_models_json(&r);
    else if (rc == 0)
        print_models(a, &r);
    model_destroy(r.champion);
    model_destroy(r.challenger);
    network_destroy(r.network);
    return rc;
}

/* ---- the command ---- */

static int check(const struct cmd_call *call)
{
    static const char *const known[] = { "", "show", "export", "model", "gpus", "models" };
    int i = 0;

    given.what = call->words[0] != NULL ? call->words[0] : "";
    given.workload = call->words[1];
    const bool is_show = strcmp(given.what, "show") == 0,
               is_export = strcmp(given.what, "export") == 0;
    while (i < CMD_COUNT(known) && strcmp(given.what, known[i]) != 0)
        i++;
    if (i == CMD_COUNT(known))
        return cmd_misuse(call->cmd, "unknown word '%s': want show, export, model, gpus or models",
                          given.what);
    if (is_show && given.workload == NULL)
        return cmd_misuse(call->cmd, "say which workload to show");
    if (!is_show && given.workload != NULL)
        return cmd_misuse(call->cmd, "unexpected argument '%s'", given.workload);
    if (is_export && given.is_json)
        return cmd_misuse(call->cmd, "an export is CSV: leave out --json");
    if (!is_export && (given.out != NULL || given.is_workloads))
        return cmd_misuse(call->cmd, "--out and --workloads are for 'catalog export'");
    if (i < 4 && given.db == NULL)
        return cmd_misuse(call->cmd, "say which store to read: --db DB");
    return 0;
}

static int run_with_store(struct arena *a, struct err *e)
{
    struct catalog c;
    struct store *s;
    int rc = store_open(given.db, STORE_READ, &s, e);

    if (rc < 0)
        return rc;
    catalog_init(&c);
    if (strcmp(given.what, "export") == 0)
        rc = run_export(s, e);
    else
        rc = catalog_load(&c, s, e);
    if (rc == 0 && strcmp(given.what, "model") == 0)
        rc = run_model(a, &c, s, e);
    else if (rc == 0 && strcmp(given.what, "show") == 0)
        rc = run_show(a, &c);
    else if (rc == 0 && given.what[0] == '\0')
        run_summary(a, &c);
    catalog_release(&c);
    store_close(s);
    return rc;
}

static int run(const struct cmd_call *call, struct err *e)
{
    if (strcmp(given.what, "gpus") == 0)
        run_gpus();
    else if (strcmp(given.what, "models") == 0)
        run_models();
    else
        return run_with_store(call->arena, e);
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
