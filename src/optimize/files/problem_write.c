/* problem_write.c - a problem as JSON: each number in as few digits as read back to the same. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "optimize/files/doc.h"
#include "optimize/model/problem.h"
#include "optimize/files/problem_file.h"

static void put_name(struct doc_out *w, const char *before, const char *s)
{
    doc_put(w, "%s", before);
    if (w->rc == 0 && s == NULL)
        w->rc = err_set(w->e, EINVAL, "a type or kind has no name; give it one");
    if (w->rc == 0)
        doc_put_text(w, s);
}

/* ---- cells ---- */

/* Floats, each in as few digits as read back to the same float. */
static void put_floats(struct doc_out *w, const char *key, const float *x, long stride, int n)
{
    char text[40];

    doc_put(w, ",\n   \"%s\": [", key);
    for (int i = 0; i < n; i++) {
        int digits = 6;
        do
            snprintf(text, sizeof text, "%.*g", digits, (double)x[i * stride]);
        while (strtof(text, NULL) != x[i * stride] && ++digits <= 9);
        doc_put(w, i > 0 ? ", %s" : "%s", text);
    }
    doc_put(w, "]");
}

/* The factor of fewest decimals by which the speed alone becomes the one beside; there are millions
 * of them.
 */
static void put_factor(struct doc_out *w, int type, int kind, int beside)
{
    double alone = (double)w->p->speed[problem_cell(w->p, type, kind, -1)];
    float speed = w->p->speed[problem_cell(w->p, type, kind, beside)];
    double r = alone > 0 ? (double)speed / alone : 0;
    long v = r < 1000 ? lround(r * 1000) : -1;
    char text[40];
    int digits = 4;

    if (v >= 0 && (float)(alone * ((double)v / 1000)) == speed) {
        int n = snprintf(text, sizeof text, "%ld.%03ld", v / 1000, v % 1000);
        while (text[n - 1] == '0')
            n--;
        doc_put(w, "%.*s", text[n - 1] == '.' ? n - 1 : n, text);
        return;
    }
    do
        snprintf(text, sizeof text, "%.*g", digits, r);
    while ((float)(alone * strtod(text, NULL)) != speed && ++digits <= 17);
    doc_put(w, "%s", text);
}

/* Does this deviation make every 'low' of 'n' cells of their speeds? */
static bool makes(const struct problem *p, double sd, const float *speed, const float *low, int n)
{
    double part = exp(-p->z * sd);

    for (int i = 0; i < n; i++)
        if ((float)((double)speed[i] * part) != low[i])
            return false;
    return true;
}

/* The deviation of fewest decimals that makes every 'low' of 'n' cells; false: none does. */
static bool find_sd(const struct problem *p, const float *speed, const float *low, int n,
                    double *sd)
{
    double one = 100;
    int i = 0;

    while (i < n && !(speed[i] > 0))
        i++;
    *sd = 0;
    if (i == n || makes(p, 0, speed, low, n))
        return true;
    if (!(p->z > 0))
        return false;
    double exact = low[i] > 0 ? log((double)speed[i] / (double)low[i]) / p->z : 1000 / p->z;
    for (int decimals = 2; decimals <= 10; decimals++) {
        *sd = round(exact * one) / one;
        if (makes(p, *sd, speed, low, n))
            return true;
        one *= 10;
    }
    *sd = exact;
    return makes(p, exact, speed, low, n);
}

/* The deviation of one cell. */
static void put_sd(struct doc_out *w, int type, int kind, int beside)
{
    long cell = problem_cell(w->p, type, kind, beside);
    double sd;

    if (!find_sd(w->p, &w->p->speed[cell], &w->p->held[cell], 1, &sd) && w->rc == 0)
        w->rc = err_set(w->e, EINVAL,
                        "types[%d]: what kind %d holds does not follow from its speed at z = %g; "
                        "give the problem the z that 'low' was made for",
                        type, kind, w->p->z);
    doc_put_number(w, sd);
}

/* A row as a text. */
static void put_row(struct doc_out *w, int type, int kind,
                    void put_one(struct doc_out *w, int type, int kind, int beside))
{
    for (int n = 0; n < w->p->n_kinds; n++) {
        doc_put(w, n > 0 ? " " : "\"");
        put_one(w, type, kind, n);
    }
    doc_put(w, "\"");
}

/* One number where that says it all. */
static void put_sd_row(struct doc_out *w, int type, int kind)
{
    const struct problem *p = w->p;
    long cell = problem_cell(p, type, kind, 0);
    double sd;

    if (find_sd(p, &p->speed[cell], &p->held[cell], p->n_kinds, &sd))
        doc_put_number(w, sd);
    else
        put_row(w, type, kind, put_sd);
}

static void put_cells(struct doc_out *w, int type)
{
    const struct problem *p = w->p;

    put_floats(w, "speed", &p->speed[problem_cell(p, type, 0, -1)], p->n_kinds + 1, p->n_kinds);
    for (int k = 0; k < p->n_kinds; k++) {
        doc_put(w, k > 0 ? ", " : ",\n   \"sd\": [");
        put_sd(w, type, k, -1);
    }
    doc_put(w, "]");
    put_floats(w, "watts", &p->watts[type * p->n_kinds], 1, p->n_kinds);
    for (int k = 0; k < p->n_kinds; k++) {
        doc_put(w, k > 0 ? ",\n    " : ",\n   \"slowdown\": [\n    ");
        put_row(w, type, k, put_factor);
    }
    for (int k = 0; k < p->n_kinds; k++) {
        doc_put(w, k > 0 ? ", " : "],\n   \"shared_sd\": [");
        put_sd_row(w, type, k);
    }
    doc_put(w, "]");
}

/* ---- the lists ---- */

static void put_type(struct doc_out *w, int type)
{
    const struct problem_type *t = &w->p->types[type];

    put_name(w, "  {\"name\": ", t->name);
    doc_put_fields(w, problem_type_fields, t);
    for (int l = 1; l < t->n_limits; l++) {
        const struct limit_curve *c = &t->limits[l];
        doc_put(w, "%s{\"limit_w\": %d", l == 1 ? ",\n   \"limits\": [" : "},\n    ", c->limit_w);
        doc_put_numbers(w, "speed", c->speed, c->n_points);
        doc_put_numbers(w, "watts", c->watts, c->n_points);
    }
    if (t->n_limits > 1)
        doc_put(w, "}]");
    if (w->p->n_kinds > 0)
        put_cells(w, type);
    else
        doc_put(w, ", \"speed\": [], \"watts\": []");
    doc_put(w, "}");
}

/* Are all steps worth nothing, as where watts are minimised? */
static bool is_watts(const struct problem *p)
{
    for (int k = 0; k < p->n_kinds; k++)
        if (p->kinds[k].value_j != 0)
            return false;
    return true;
}

static void put_kind(struct doc_out *w, int kind)
{
    const struct problem_kind *k = &w->p->kinds[kind];

    put_name(w, "  {\"name\": ", k->name);
    doc_put_pair(w, "mem_gib", k->mem_gib);
    if (k->value_j != problem_best_joules(w->p, kind) && !is_watts(w->p))
        doc_put_pair(w, "value_j", k->value_j);
    doc_put_fields(w, problem_kind_fields + 2, k);    // those behind value_j
    doc_put(w, "}");
}

/* The GPUs from 'from' that one entry describes; returns those behind. */
static int put_group(struct doc_out *w, int from)
{
    const struct problem_gpu *gpus = w->p->gpus, *g = &gpus[from];
    int n = 1, n_drained = 0;

    while (from + n < w->p->n_gpus && g[n].type == g->type && g[n].node == g->node &&
           g[n].rack == g->rack && g[n].device == g->device)
        n++;
    put_name(w, "  {\"type\": ", w->p->types[g->type].name);
    doc_put(w, ", \"count\": %d, \"node\": %d, \"rack\": %d", n, g->node, g->rack);
    if (g->wake_s > 0)
        doc_put_pair(w, "wake_s", g->wake_s);
    if (g->device > 0)
        doc_put(w, ", \"device\": %d", g->device);
    for (int i = 0; i < n; i++)
        if (!g[i].may_start)
            doc_put(w, n_drained++ == 0 ? ", \"drained\": [%d" : ", %d", i);
    doc_put(w, n_drained > 0 ? "]}" : "}");
    return from + n;
}

static void put_allowed(struct doc_out *w, const struct problem_job *j)
{
    int n = 0;

    if (j->allowed_types == 0)
        return;
    for (int t = 0; t < w->p->n_types; t++)
        if (problem_allows(j, t))
            put_name(w, n++ == 0 ? ", \"types\": [" : ", ", w->p->types[t].name);
    doc_put(w, "]");
}

static void put_bars(struct doc_out *w, const unsigned char *barred)
{
    int n_rules = 0;

    for (int rule = ENGINE_CAN + 1; rule < ENGINE_RULES; rule++)
        for (int node = 0, n = 0; node < w->p->n_nodes; node++) {
            if (barred[node] != rule)
                continue;
            if (n++ == 0)
                doc_put(w, "%s\"%s\": [%d", n_rules++ == 0 ? ", \"barred\": {" : "], ",
                        engine_rule_name((enum engine_rule)rule), node);
            else
                doc_put(w, ", %d", node);
        }
    if (n_rules > 0)
        doc_put(w, "]}");
}

static void put_engine(struct doc_out *w, const struct engine_job *j)
{
    if (j->cpus > 0)
        doc_put(w, ", \"cpus\": %d", j->cpus);
    if (j->mem_mib > 0)
        doc_put(w, ", \"mem_mib\": %d", j->mem_mib);
    if (j->device > 0)
        doc_put(w, ", \"device\": %d", j->device);
    if (j->barred)
        put_bars(w, j->barred);
}

static void put_job(struct doc_out *w, int job)
{
    const struct problem_job *j = &w->p->jobs[job];

    if (j->name == NULL) {
        doc_put(w, "  null");
        return;
    }
    put_name(w, "  {\"name\": ", j->name);
    put_name(w, ", \"kind\": ", w->p->kinds[j->kind].name);
    if (j->form == FORM_SPREAD)
        doc_put(w, ", \"form\": \"spread\"");
    if (j->n_min != 1)
        doc_put(w, ", \"n_min\": %d", j->n_min);
    if (j->n_max != j->n_min)
        doc_put(w, ", \"n_max\": %d", j->n_max);
    doc_put_fields(w, problem_job_fields, j);
    put_allowed(w, j);
    doc_put(w, "%s%s", j->is_exclusive ? ", \"exclusive\": true" : "",
            j->n_nodes == 1 ? ", \"one_node\": true" : "");
    if (j->n_nodes > 1)
        doc_put(w, ", \"n_nodes\": %d", j->n_nodes);
    doc_put(w, "%s", j->is_fixed ? ", \"fixed\": true" : "");
    put_engine(w, &j->engine);
    if (j->n_present > 0)
        doc_put_ints(w, "present", j->present, j->n_present);
    if (j->n_present > 0 && j->present_limit > 0) {
        const struct problem_type *t = &w->p->types[w->p->gpus[j->present[0]].type];
        doc_put(w, ", \"limit_w\": %d", t->limits[j->present_limit].limit_w);
    }
    doc_put(w, "}");
}

static void put_nodes(struct doc_out *w)
{
    for (int n = 0; n < w->p->n_nodes; n++) {
        const struct engine_node *has = &w->p->nodes[n];
        doc_put(w, "%s{", n > 0 ? ", " : ",\n \"nodes\": [");
        if (has->cpus <= INT_MAX)
            doc_put(w, "\"cpus\": %ld", has->cpus);
        if (has->mem_mib <= INT_MAX)
            doc_put(w, "%s\"mem_mib\": %ld", has->cpus <= INT_MAX ? ", " : "", has->mem_mib);
        doc_put(w, "}");
    }
    doc_put(w, "]");
}

/* ---- the whole ---- */

static void put_frame(struct doc_out *w)
{
    const struct problem *p = w->p;

    doc_put(w, "{\"version\": 1, \"theta\": %d", p->theta);
    doc_put_pair(w, "z", p->z);
    doc_put(w, ", \"objective\": \"%s\"", is_watts(p) ? "watts" : "joules");
    doc_put_fields(w, problem_fields + 1, p);    // those behind z
    doc_put_numbers(w, "gang_near", p->gang_near + 1, GANG_MAX);
    doc_put_numbers(w, "gang_far", p->gang_far + 1, GANG_MAX);
    if (p->rack_cap_w != NULL)
        doc_put_numbers(w, "racks", p->rack_cap_w, p->n_racks);
}

static void put_list(struct doc_out *w, const char *key, int n,
                     void put_entry(struct doc_out *w, int i))
{
    doc_put(w, ",\n \"%s\": [", key);
    for (int i = 0; i < n && w->rc == 0; i++) {
        doc_put(w, i > 0 ? ",\n" : "\n");
        put_entry(w, i);
    }
    doc_put(w, "]");
}

int problem_write(const struct problem *p, struct buf *out, struct err *e)
{
    struct doc_out w = { .p = p, .buf = out, .e = e };

    put_frame(&w);
    put_list(&w, "kinds", p->n_kinds, put_kind);
    put_list(&w, "types", p->n_types, put_type);
    doc_put(&w, ",\n \"gpus\": [");
    for (int g = 0; g < p->n_gpus && w.rc == 0;) {
        doc_put(&w, g > 0 ? ",\n" : "\n");
        g = put_group(&w, g);
    }
    doc_put(&w, "]");
    if (p->nodes)
        put_nodes(&w);
    put_list(&w, "jobs", p->n_jobs, put_job);
    doc_put(&w, "}\n");
    if (w.rc == -ENOSPC)
        return err_set(e, ENOSPC, "the problem takes more than %zu bytes", out->max);
    return w.rc;
}
